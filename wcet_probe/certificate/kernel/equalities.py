# SPDX-License-Identifier: 0BSD
"""Which places hold one value where nodes begin, whatever it is, and cases of which one holds there.

What two places hold is one value if it has one name in the execution of each node that leads there, or if both are one
number, or one distance from one base. A node with cases is executed once in each of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from wcet_probe.certificate.kernel.records import Records, demand, place_of, value_of_text
from wcet_probe.certificate.values.numbers import Value, within
from wcet_probe.certificate.values.state import Comparison, Place, State

Equalities = Mapping[str, Mapping[Place, Place]]
"""By node: a place, and the one whose value it holds, too."""


def equalities_of(records: Records) -> Equalities:
    """What places are said to hold one value where nodes begin.

    Raises:
        VerificationError: it is said of a place in two roles.
    """
    found: dict[str, dict[Place, Place]] = {}
    for node, place, other in records["equal"]:
        found.setdefault(node, {})[place_of(place)] = place_of(other)
    for node, own in found.items():
        _check_roles(node, own)
    return found


def _check_roles(node: str, equal: Mapping[Place, Place]) -> None:
    demand(equal.keys().isdisjoint(equal.values()), f"a place at {node} is equal to one that is equal to another")


class Case(NamedTuple):
    """What holds where a node begins, if nothing of another case does: values of places, and places that are equal."""

    values: dict[Place, Value]
    equal: dict[Place, Place]

    def holds(self, state: State) -> bool:
        """Whether that is known in ``state``."""
        is_within = all(within(state.read(place), value) for place, value in self.values.items())
        return is_within and differing(state, self.equal) is None


Cases = Mapping[str, Sequence[Case]]
"""By node; one of them holds."""


def cases_of(records: Records) -> Cases:
    """The cases of nodes.

    Raises:
        VerificationError: they say something of no value, or of a place in two roles.
    """
    numbered = dict.fromkeys(fields[:2] for kind in ("case", "case-equal") for fields in records[kind])
    found = {key: Case({}, {}) for key in numbered}
    for node, number, place, *value in records["case"]:
        found[node, number].values[place_of(place)] = value_of_text(node, place, value)
    for node, number, place, other in records["case-equal"]:
        found[node, number].equal[place_of(place)] = place_of(other)
    cases: dict[str, tuple[Case, ...]] = {}
    for (node, _), case in found.items():
        _check_roles(node, case.equal)
        cases[node] = (*cases.get(node, ()), case)
    return cases


def beginning(values: Mapping[Place, Value], flags: Mapping[str, Comparison], equal: Mapping[Place, Place]) -> State:
    """What holds where a node begins: of places that are equal both have one name, and what is known of one of them."""
    return told_of_both(State(dict(values), dict(equal), dict(flags)), equal)


def told_of_both(state: State, equal: Mapping[Place, Place]) -> State:
    """``state``, where what is known of one of two places that are ``equal`` is known of the other from now on."""
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
