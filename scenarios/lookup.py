"""The scenarios of an allocator: those of the module that is named after it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from importlib import import_module
from pkgutil import walk_packages
from types import MappingProxyType

import wcet_probe.scenarios as home
from wcet_probe.errors import UsageError, unknown_name
from wcet_probe.model.allocator import Allocator
from wcet_probe.scenarios import generic
from wcet_probe.scenarios.families import Family, naming_a_heap_that_works
from wcet_probe.scenarios.found_states import with_found_states

DESCRIPTIONS: Mapping[str, str] = MappingProxyType(
    {
        "worst-alloc": "the allocation that costs most",
        "worst-free": "the deallocation that costs most",
        "best-alloc": "the successful allocation that costs least, for contrast",
        "best-free": "the deallocation that costs least, for contrast",
        "random": "an allocation after a seeded random workload, for contrast",
        "worst-failing-alloc": "the refused allocation that costs most",
        "paper-alloc": "the allocation that the literature calls worst, where another one is",
        "paper-free": "the deallocation that the literature calls worst, where another one is",
        "size-sweep": "allocations of all sizes on a fresh heap; of an allocator of one's own",
        "checkerboard": "an allocation past holes that do not fit; of an allocator of one's own",
        "drained-classes": "an allocation from a class that is empty again; of an allocator of one's own",
        "exhaustion": "an allocation where nothing, or nothing that fits, is left; of an allocator of one's own",
        "neighbours-free": "a deallocation between free blocks; of an allocator of one's own",
    }
)


def scenario_names(allocator_name: str) -> tuple[str, ...]:
    """Names of the scenarios of an allocator."""
    return tuple(family(allocator_name).builders)


def describe(scenario_name: str) -> str:
    """One line on what a scenario measures.

    Raises:
        UsageError: no such scenario.
    """
    if scenario_name not in DESCRIPTIONS:
        raise unknown_name("scenario", scenario_name, DESCRIPTIONS)
    return DESCRIPTIONS[scenario_name]


def family_of(allocator: Allocator) -> Family:
    """The scenarios of ``allocator``; generic ones where it is none of the package.

    Raises:
        UsageError: it has none.
    """
    return family(allocator.name) if allocator.own is None else _naming(generic.FAMILY)


def family(allocator_name: str) -> Family:
    """The scenarios of an allocator: the ``FAMILY`` of the module named after it.

    Those of ``A:X``, the allocator A over X, are built by ``family_over`` of A's module over X's. A builder that
    refuses a heap names one that it does not refuse.

    Raises:
        UsageError: the allocator has none.
    """
    return _naming(_family(allocator_name))


def _naming(found: Family) -> Family:
    named = {scenario: naming_a_heap_that_works(builder) for scenario, builder in found.builders.items()}
    return with_found_states(replace(found, builders=MappingProxyType(named)))


def _family(allocator_name: str) -> Family:
    outer, _, inner = allocator_name.partition(":")
    name = outer.replace("-", "_")
    module = next((module for module in _modules() if module.endswith(f".{name}")), None)
    if module is None:
        message = f"allocator {allocator_name!r} has no scenarios; choose another, or add {name}.py to scenarios/."
        raise UsageError(message)
    loaded = import_module(module)
    found: Family = loaded.family_over(inner, _family(inner)) if inner else loaded.FAMILY
    return found


@cache
def _modules() -> tuple[str, ...]:
    """All modules of the package, those in its folders included."""
    return tuple(found.name for found in walk_packages(home.__path__, f"{home.__name__}.") if not found.ispkg)
