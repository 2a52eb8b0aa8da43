"""The operations of a module as an induction sees them: their loads and stores, what arrives where paths meet, results.

Words: data invariant, transfer function (docs/explanation/glossary.md).

*Soundness:* every load and store of each point that can be reached is told, with the state in which it takes place.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from wcet_probe.analyzer.domains import strided
from wcet_probe.analyzer.domains.strided import StridedInterval
from wcet_probe.analyzer.graph.supergraph import EXIT, Edge
from wcet_probe.analyzer.invariants.contents import WORD_BITS
from wcet_probe.analyzer.loops.counters import counters_of
from wcet_probe.analyzer.loops.counting import count_loops
from wcet_probe.analyzer.pcode.lift import Lifter
from wcet_probe.analyzer.values.execution.accesses import WordTransfer
from wcet_probe.analyzer.values.execution.transfer import Transfer
from wcet_probe.analyzer.values.properties.loop_shapes import loop_shapes
from wcet_probe.analyzer.values.properties.own_block import Roles, distances
from wcet_probe.analyzer.values.result import Values
from wcet_probe.analyzer.values.states.bases import Base
from wcet_probe.analyzer.values.states.held_addresses import HeldAddresses
from wcet_probe.analyzer.values.states.memory import Memory
from wcet_probe.analyzer.values.states.state import State
from wcet_probe.analyzer.values.symbolic.locations import Location
from wcet_probe.analyzer.values.symbolic.term_table import Term
from wcet_probe.errors import AnalysisError
from wcet_probe.model.image import Image

_WORD_BYTES = 4


@dataclass(frozen=True, slots=True)
class Moved:
    """A load or a store: the ``number``-th access of the operation's values, ``distance`` bytes from the call's block.

    ``distance`` is None where it is not known.
    """

    number: int
    transfer: WordTransfer
    distance: int | None
    is_certain: bool

    @property
    def symbol_name(self) -> tuple[int, int, int]:
        """Of the symbol of a loaded word."""
        return self.transfer.place, self.transfer.instruction_address, self.transfer.operation


@dataclass(frozen=True, slots=True)
class Meeting:
    """A symbol of where paths meet: what it is along each edge, as a state and a term; None: not known.

    The edges of a counter enter its loop only, and ``reach`` is how far it may have been counted then.
    """

    symbol: Term
    arriving: tuple[tuple[State, Term], ...] | None
    reach: StridedInterval | None = None


@dataclass(frozen=True, slots=True)
class Operation:
    """An entry point.

    Attributes:
        role: its name in the manifest, such as ``malloc``.
        values: what its value analysis found.
        roles: registers with the block that it is given or returns.
        moved: its loads and stores that do not surely go to its stack.
        meetings: symbols of where paths meet.
        returned: what the register of the result holds on each way out; empty where there is no result.
        surely_stored: addresses of words that it stores on every way to an end where it may return 0.
    """

    role: str
    values: Values
    roles: Roles
    moved: tuple[Moved, ...]
    meetings: tuple[Meeting, ...]
    returned: tuple[tuple[State, Term], ...]
    surely_stored: frozenset[int] = frozenset()


def operation(  # noqa: PLR0917  the operation and what it is read from
    role: str, values: Values, image: Image, lifter: Lifter, roles: Roles, result: str
) -> Operation:
    """The operation ``role`` with these ``values``; ``result`` is the register in which functions return.

    Raises:
        AnalysisError: calls in it are not expanded.

    *Soundness:* as said of the module.
    """
    require_expanded(role, values)
    within: dict[Term, Meeting] = {}
    moved = tuple(_moved(values, image, lifter, roles, within))
    return Operation(
        role=role,
        values=values,
        roles=roles,
        moved=moved,
        meetings=(*_meetings(values, held_symbols(values)), *(within[symbol] for symbol in sorted(within))),
        returned=returned_words(role, values, roles),
        surely_stored=frozenset(surely_stored(values, moved, values.registers[result])),
    )


def require_expanded(role: str, values: Values) -> None:
    """Refuse an operation with calls whose stores are not seen.

    Raises:
        AnalysisError: there are such calls.
    """
    if any(one.calls for one in values.edges.values()):
        raise AnalysisError(f"{role} has calls that are not expanded, whose stores are not seen.")


def held_symbols(values: Values) -> set[Term]:
    """The symbols of all that locations hold where blocks begin and at edges."""
    states = (*values.states.values(), *(one.state for one in values.edges.values()))
    return {symbol for state in states for term in state.locations.values() for symbol in values.terms.symbols(term)}


def returned_words(role: str, values: Values, roles: Roles) -> tuple[tuple[State, Term], ...]:
    """What the operation returns, with the state there, at each of its ways out; nothing where it returns no word.

    Raises:
        AnalysisError: what it returns is not known.
    """
    returned = []
    for edge, one in values.edges.items():
        if edge.target == EXIT and roles.returned:
            term = one.state.read(values.registers[roles.returned])
            if term is None:
                raise AnalysisError(f"what {role} returns is not known.")
            returned.append((one.state, term))
    return tuple(returned)


def _moved(values: Values, image: Image, lifter: Lifter, roles: Roles, within: dict[Term, Meeting]) -> Iterable[Moved]:
    """The loads and stores; ``within`` gets the symbols of where ways within one instruction meet."""

    def meet(place: tuple[int, ...], states: Sequence[State], merged: State) -> None:
        for location, symbol in merged.locations.items():
            node = values.terms[symbol]
            if node.arguments == ("phi", place, location) and node.bits == WORD_BITS:
                held = tuple((state, term) for state in states if (term := state.read(location)) is not None)
                within[symbol] = Meeting(symbol, held if len(held) == len(states) else None)

    found = distances(values, roles)
    memory = Memory(image, stack_escapes=values.stack_escapes, held=HeldAddresses(values.held))
    transfer = Transfer(lifter, values.terms, memory, meet)
    number = 0
    for index in sorted(values.states):
        transfers: list[WordTransfer] = []
        block = values.graph.points[index].block
        transfer.block(index, block.instructions, values.states[index].copy(), transfers=transfers.append)
        accesses = values.accesses[index]
        for one, access, distance in zip(transfers, accesses, [next(found) for _ in accesses], strict=True):
            if access.base is not Base.STACK:
                yield Moved(number, one, distance, access.is_certain)
            number += 1


def _meetings(values: Values, symbols: Iterable[Term]) -> Iterable[Meeting]:
    counters = _counters(values)
    for symbol in sorted(symbols):
        match values.terms[symbol].arguments:
            case ("phi", (int(place),), Location()) if values.terms[symbol].bits == WORD_BITS:
                entering, reach = counters.get(symbol, (None, None))
                edges = [edge for edge in values.edges if edge.target == place]
                yield Meeting(symbol, _arriving(values, symbol, place, entering or edges), reach)


def _counters(values: Values) -> Mapping[Term, tuple[Sequence[Edge], StridedInterval]]:
    """The counters of bounded loops: the edges that enter their loop, and how far they are counted."""
    shapes = loop_shapes(values)
    counts = count_loops(values, shapes)
    found = {}
    for shape in shapes:
        count = counts.get(shape.loop.header)
        if count is None or shape.loop.header == 0:
            continue
        for symbol, step in counters_of(values, shape).items():
            moved = step.amount * (count.max_header - 1)
            if not step.shifts and abs(moved) < 1 << (WORD_BITS - 1) and values.terms[symbol].bits == WORD_BITS:
                reach = strided.between(WORD_BITS, min(0, moved), max(0, moved), abs(step.amount))
                found[symbol] = shape.entry_edges, reach
    return found


def _arriving(values: Values, symbol: Term, place: int, edges: Sequence[Edge]) -> tuple[tuple[State, Term], ...] | None:
    """What ``symbol`` is along ``edges`` to ``place``: what a location held that holds it there."""
    state = values.states.get(place)
    if state is None or place == 0:
        return None
    for location, term in state.locations.items():
        if term == symbol:
            states = [values.edges[edge].state for edge in edges]
            held = [(one, one.read(location)) for one in states]
            if all(content is not None for _, content in held):
                return tuple(held)  # type: ignore[arg-type]
    return None


def surely_stored(values: Values, moved: Iterable[Moved], result: Location) -> Iterable[int]:
    """Addresses of words that are stored on every way to an end where the operation may return 0.

    *Soundness:* no way from the entry to an end with result 0 has no such store.
    """
    places: dict[int, set[int]] = {}
    for one in moved:
        target = one.transfer.state.value(one.transfer.pointer)
        if one.transfer.is_store and one.is_certain and target.is_constant and one.transfer.size_bytes == _WORD_BYTES:
            places.setdefault(target.value, set()).add(one.transfer.place)
    failing = _failing(values, result)
    for address, own in places.items():

        def avoids(edge: Edge, own: set[int] = own) -> bool:
            return edge not in failing and edge.source not in own

        ends = {edge.source for edge in values.arriving.get(EXIT, ()) if avoids(edge)}
        if 0 not in values.order.before(ends, avoids):
            yield address


def _failing(values: Values, result: Location) -> set[Edge]:
    """Edges that lead to ends with a result that is not 0.

    *Soundness:* on every way behind such an edge nothing changes the register, which is not 0 there.
    """
    carrying = {edge: result for edge in values.edges if edge.target == EXIT}
    todo = set(values.leaving)
    while True:
        held = {index: at for index in todo if (at := _held(values, index, carrying)) is not None}
        if not held:
            break
        todo -= held.keys()
        carrying |= {edge: held[edge.target] for edge in values.edges if edge.target in held}
    found = set()
    for edge, location in carrying.items():
        state = values.edges[edge].state
        term = state.read(location)
        if term is not None and state.base(term) is Base.NUMBER and 0 not in state.value(term):
            found.add(edge)
    return found


def _held(values: Values, index: int, carrying: Mapping[Edge, Location]) -> Location | None:
    """The location that holds at the entry of point ``index`` what is the result behind every edge out of it."""
    leaving = values.leaving[index]
    if not all(edge in carrying for edge in leaving):
        return None
    results = {values.edges[edge].state.read(carrying[edge]) for edge in leaving}
    return next((at for at, term in values.states[index].locations.items() if {term} == results), None)
