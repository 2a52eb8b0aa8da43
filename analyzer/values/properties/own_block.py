"""Accesses at a fixed distance from the block that a call is given or returns, by the values alone.

An address at a distance from the argument is one by its term. Of one at a distance from the result it is followed on
all ways from the access to the returns which registers and stack slots hold it, plus a constant.

Words: term, linear form, fixpoint (docs/explanation/glossary.md).

*Soundness:* a must-analysis on the fixpoint of the values: a location is told of where on every way from the access it
holds the address plus a constant. An address that is made of values that a loop defines is not followed, as its term
may mean another value in a later round; for the same reason copies are followed through no loop.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from wcet_probe.analyzer.domains.lattice import Dual, Subsets
from wcet_probe.analyzer.graph.fixpoint import least
from wcet_probe.analyzer.graph.flow_order import FlowOrder
from wcet_probe.analyzer.graph.supergraph import EXIT, Edge
from wcet_probe.analyzer.values.result import Values
from wcet_probe.analyzer.values.states.bases import Base
from wcet_probe.analyzer.values.states.state import State
from wcet_probe.analyzer.values.symbolic.locations import Location
from wcet_probe.analyzer.values.symbolic.symbol_names import ENTRY, defined_at
from wcet_probe.analyzer.values.symbolic.term_table import Term

Copies = frozenset[tuple[Location, int]]
"""Locations that hold the address plus a number."""

_WORD_BITS = 32


@dataclass(frozen=True, slots=True)
class Roles:
    """Registers with a block: ``given`` at entry, ``returned`` at exit; None where there is none."""

    given: str | None
    returned: str | None


def distances(values: Values, roles: Roles) -> Iterator[int | None]:
    """Of each access, in the order of ``bound.accesses``, its distance from the block in bytes; None: not known.

    Args:
        values: of the operation.
        roles: where its block is.

    *Soundness:* as said of the module.
    """
    returned = _Returned(values, roles.returned) if roles.returned else None
    given = values.terms.symbol(("in", values.registers[roles.given]), _WORD_BITS) if roles.given else None
    for index in sorted(values.states):
        for access in values.accesses[index]:
            distance = None
            if access.pointer is not None and access.base is Base.NUMBER:
                if given is not None:
                    distance = _distance(values, access.pointer, given)
                if distance is None and returned is not None:
                    distance = returned.distance(index, access.pointer)
            yield distance


def _distance(values: Values, one: Term, other: Term) -> int | None:
    """``one - other`` where it is a number, whatever the symbols are."""
    terms = values.terms
    return terms.distance(one, other) if terms[one].bits == terms[other].bits == _WORD_BITS else None


class _Returned:
    """Which addresses are at a distance from what the operation returns in a register."""

    def __init__(self, values: Values, register: str) -> None:
        self._values, self._register = values, values.registers[register]
        taken = [edge for edge in values.edges if edge.target != EXIT]
        self._order = FlowOrder(sorted(values.states), taken)
        self._exits = [edge for edge in values.edges if edge.target == EXIT]
        self._looping = frozenset(node for loop in self._order.loops for node in loop.nodes)
        self._found: dict[tuple[int, Term], int | None] = {}

    def distance(self, index: int, pointer: Term) -> int | None:
        """Of ``pointer``, which an access at point ``index`` is to, from what is returned on every way from there."""
        key = index, pointer
        if key not in self._found:
            self._found[key] = self._find(index, pointer)
        return self._found[key]

    def _find(self, index: int, pointer: Term) -> int | None:
        terms = self._values.terms
        places = [defined_at(terms[symbol].arguments) for symbol in terms.symbols(pointer)]
        if not places or index in self._looping:
            return None
        if any(place is None or (place != ENTRY and place in self._looping) for place in places):
            return None
        held = self._copies(index, pointer)
        found = set()
        for edge in self._exits:
            if edge.source in held:
                result = dict(self._along(edge, held[edge.source], pointer)).get(self._register)
                if result is None:
                    return None
                found.add(-result)
        return found.pop() if len(found) == 1 else None

    def _copies(self, index: int, pointer: Term) -> Mapping[int, Copies]:
        """By point that is reached from ``index``, the locations that surely hold ``pointer`` plus a number there."""
        lattice = Dual(Subsets[tuple[Location, int]](frozenset()))
        return least(
            self._order,
            lattice,
            {index: frozenset()},
            lambda _, copies: copies,
            lambda edge, copies: self._along(edge, copies, pointer),
        )

    def _along(self, edge: Edge, copies: Copies, pointer: Term) -> Copies:
        """What holds ``pointer`` plus a number along ``edge``, where ``copies`` do at its source."""
        behind = self._values.edges[edge].state
        before = self._values.states[edge.source]
        is_followed = edge.source not in self._looping
        found = set()
        for location, term in behind.locations.items():
            if (amount := _distance(self._values, term, pointer)) is not None:
                found.add((location, amount))
            elif is_followed:
                found.update((location, amount) for amount in self._kept(term, before, copies))
        return frozenset(found)

    def _kept(self, term: Term, before: State, copies: Copies) -> Iterator[int]:
        for location, amount in copies:
            held = before.locations.get(location)
            if held is not None and (moved := _distance(self._values, term, held)) is not None:
                yield amount + moved
                return
