# SPDX-License-Identifier: 0BSD
"""Which places hold one value where nodes begin, whatever it is: a branch that compares them goes one way only.

What two places hold is one value if it has one name in the execution of each node that leads there, or if both are one
number, or one distance from one base.
"""

from __future__ import annotations

from collections.abc import Mapping

from wcet_probe.certificate.numbers import Value, within
from wcet_probe.certificate.records import Records, demand, place_of
from wcet_probe.certificate.state import Comparison, Place, State

Equalities = Mapping[str, Mapping[Place, Place]]
"""By node: a place, and the one whose value it holds, too."""


def equalities_of(records: Records) -> Equalities:
    """What places are said to hold one value where nodes begin.

    Raises:
        VerificationError: it is said of no node, of one place twice, or of a place in two roles.
    """
    nodes = {name for name, _, _ in records["node"]}
    found: dict[str, dict[Place, Place]] = {}
    for node, text, other in records["equal"]:
        own = found.setdefault(node, {})
        demand(node in nodes and place_of(text) not in own, f"an equality of {text} at {node} is of no node, or twice")
        own[place_of(text)] = place_of(other)
    for node, own in found.items():
        demand(not own.keys() & set(own.values()), f"a place at {node} is equal to one that is equal to another")
    return found


def beginning(values: Mapping[Place, Value], flags: Mapping[str, Comparison], equal: Mapping[Place, Place]) -> State:
    """What holds where a node begins: of places that are equal both have one name, and what is known of one of them."""
    state = State(dict(values), dict(equal), dict(flags))
    for place, other in equal.items():
        own, known = state.read(place), state.read(other)
        both = own if within(own, known) else known
        state.values[other] = both
    for place, other in equal.items():
        state.values[place] = state.values[other]
    return state


def differing(state: State, said: Mapping[Place, Place]) -> Place | None:
    """A place that is not known in ``state`` to hold what it is ``said`` to hold."""
    return next((place for place, other in said.items() if not are_equal(state, place, other)), None)


def are_equal(state: State, one: Place, other: Place) -> bool:
    """Whether two places are known to hold one value."""
    value = state.read(one)
    is_known = value.is_constant and value.base != "any" and value == state.read(other)
    return is_known or state.name(one) == state.name(other)
