"""Memory at one time, told by functions: of which nothing is known, that change at one place, that are one value.

Words: claim, uninterpreted functions (docs/explanation/glossary.md).

*Soundness:* definitions only; what holds of a view is assumed or asked elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

from wcet_probe.analyzer.deduction.formulas import Node, apply, choice, unknown

Map = Callable[[Node], Node]


def unknown_maps(names: Iterable[str], predicates: Collection[str], suffix: str) -> Mapping[str, Map]:
    """Functions of which nothing is known, by name; ``suffix`` tells those of one view from others."""
    return {one: _function(f"{one}{suffix}", "bool" if one in predicates else "int") for one in names}


def unknown_scalars(names: Iterable[str], suffix: str) -> Mapping[str, Node]:
    """Numbers of which nothing is known, by name; as `unknown_maps`."""
    return {one: unknown(f"{one}{suffix}") for one in names}


def _function(name: str, sort: str) -> Map:
    return lambda argument: apply(name, argument, sort=sort)


def changed(function: Map, argument: Node, value: Node) -> Map:
    """``function`` with ``value`` at ``argument``."""
    return lambda one: choice(one.equals(argument), value, function(one))


def constant(value: Node) -> Map:
    """A function that is ``value`` everywhere."""
    return lambda _: value
