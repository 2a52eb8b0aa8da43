"""Constructive worst states: for each allocator, operations that bring its heap into the state a call is slowest in."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from wcet_probe.errors import unknown_name
from wcet_probe.scenarios import tlsf
from wcet_probe.scenarios.families import Family

DESCRIPTIONS: Mapping[str, str] = MappingProxyType(
    {
        "worst-alloc": "the successful allocation that costs most",
        "worst-free": "the deallocation that costs most",
        "best-alloc": "the successful allocation that costs least, for contrast",
        "best-free": "the deallocation that costs least, for contrast",
        "random": "an allocation after a seeded random workload, for contrast",
    }
)

_FAMILIES: Mapping[str, Family] = MappingProxyType({"tlsf": tlsf.FAMILY})


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


def family(allocator_name: str) -> Family:
    """The scenarios of an allocator.

    Raises:
        UsageError: the allocator has none.
    """
    if allocator_name not in _FAMILIES:
        raise unknown_name("allocator with scenarios", allocator_name, _FAMILIES)
    return _FAMILIES[allocator_name]
