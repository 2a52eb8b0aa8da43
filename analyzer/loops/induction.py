"""What counters can be, from the bounds of their loops, taken back into the value analysis.

A copying loop counts how much is left and moves a pointer along. Widening loses where the pointer ends, since nothing
compares it, and a store through it may then go anywhere in the stack: the caller's counters and saved registers are
lost, and with them the bounds of the caller's loops. The number of rounds says where the pointer ends. So it does for
a counter that is compared for equality alone, and chooses an entry of a table that is jumped through. Where nothing
counts the rounds, they may follow from constants (`abstract_execution`).

Words: induction variable, widening, loop bound (docs/explanation/glossary.md).

*Soundness:* a first analysis covers all executions, so the bound of a loop that follows from it holds in each of them,
and so does what a counter of constant step can be in its rounds. A second analysis may therefore leave out states that
break it, whatever it finds itself. Within a loop, a symbol of its header is the counter of this round as long as each
edge speaks of it, which is checked of the result. That a point is in no last round is told by what is behind it, so it
is true of executions that return, and only if memory that is taken to be constant surely is.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from wcet_probe.analyzer.domains import strided
from wcet_probe.analyzer.domains.strided import StridedInterval
from wcet_probe.analyzer.graph.loop_forest import loops_of
from wcet_probe.analyzer.graph.supergraph import Supergraph
from wcet_probe.analyzer.loops.counters import Step, counters_of
from wcet_probe.analyzer.loops.counting import count_loops
from wcet_probe.analyzer.loops.nest_limits import ExecutedNest
from wcet_probe.analyzer.pcode.lift import Lifter
from wcet_probe.analyzer.values.analysis import analyze_values
from wcet_probe.analyzer.values.execution.accesses import Access
from wcet_probe.analyzer.values.execution.call_effects import Callees, CallKey
from wcet_probe.analyzer.values.properties.loop_shapes import LoopShape, loop_shapes
from wcet_probe.analyzer.values.result import Values
from wcet_probe.analyzer.values.states.bases import Base
from wcet_probe.analyzer.values.states.learning import SymbolRange, SymbolSteps
from wcet_probe.analyzer.values.symbolic.linear import combined
from wcet_probe.analyzer.values.symbolic.locations import Location
from wcet_probe.analyzer.values.symbolic.term_table import SymbolName, Term
from wcet_probe.model.image import Image

Place = int | tuple[int, int]
"""A point, at whose entry something holds, or source and target of the edges along which it does."""

Ranges = Mapping[Place, tuple[SymbolRange | SymbolSteps, ...]]
"""What is proved of the symbols of loop headers."""

_MOST_ROUNDS = 4
_LAST = (1 << 32) - 1
_ANYWHERE = 1 << 31
"""Extent of what a store may go to from which on nothing is known of its end."""


def analyze_with_counters(  # noqa: PLR0917  as of `analyze_values`
    image: Image,
    lifter: Lifter,
    graph: Supergraph,
    arguments: Mapping[str | int, StridedInterval],
    words: Mapping[int, StridedInterval],
    callees: Callees | None = None,
    called: CallKey | None = None,
    is_enough: Callable[[Values], bool] = lambda _: False,
    analyze: Callable[..., Values] = analyze_values,
    follow: Callable[[Values, Mapping[int, int]], Sequence[ExecutedNest]] = lambda *_: (),
    *,
    returns: bool = True,
) -> Values:
    """The values of ``graph``, as of `analyze_values`, again where counters tell where stores or jumps go.

    Those without counters are returned where they are known to be enough, as ``is_enough`` tells. ``analyze`` is
    `analyze_values`, or finds what that gave. ``follow`` executes nests of values, given the bounds of loops. They are
    of the executions that return, or else of all that these begin with.

    Raises:
        AnalysisError: as of `analyze_values`.

    *Soundness:* as said of the module.
    """

    def again(asserted: Ranges) -> Values:
        ranges = {place: asserted[place] for place in asserted if isinstance(place, int)}
        rounds = {place: asserted[place] for place in asserted if isinstance(place, tuple)}
        return analyze(image, lifter, graph, arguments, words, ranges, rounds, callees, called)

    ranges: Ranges = {}
    refused: set[SymbolName] = set()
    values = again(ranges)
    for _ in range(0 if is_enough(values) else _MOST_ROUNDS):
        is_wanted = _loses_places(values) or _has_forgotten(values)
        found = _ranges(values, follow, returns=returns) if is_wanted else {}
        added = _added(ranges, found, refused)
        if not added:
            break
        ranges = added
        values = again(ranges)
        while killed := _killed(values, ranges):
            refused |= killed
            ranges = _without(ranges, refused)
            values = again(ranges)
    return values


def analyze_within_bounds(
    values: Values, most: Mapping[int, int], analyze: Callable[[Ranges, Ranges], Values]
) -> Values:
    """``values`` again, where their loops have bounds that somebody else tells.

    Args:
        values: of the operation.
        most: how often the header of a loop is executed for each entry of the loop, by header.
        analyze: the values of the same graph, given ranges by point and by edge, as `analyze_values` takes them.

    Raises:
        AnalysisError: as of ``analyze``.

    *Soundness:* as said of the module, as far as ``most`` is true.
    """
    ranges: Ranges = {}
    refused = set[SymbolName]()
    for _ in range(_MOST_ROUNDS):
        found: dict[Place, list[SymbolRange | SymbolSteps]] = {}
        for shape in loop_shapes(values):
            if shape.loop.header in most:
                _add_ranges(found, values, shape, most[shape.loop.header])
                _add_related(found, values, shape)
        added = _added(ranges, found, refused)
        if not added and ranges:
            break
        ranges = added
        values = _analyzed(analyze, ranges)
        while killed := _killed(values, ranges):
            refused |= killed
            ranges = _without(ranges, refused)
            values = _analyzed(analyze, ranges)
    return values


def _analyzed(analyze: Callable[[Ranges, Ranges], Values], ranges: Ranges) -> Values:
    return analyze(
        {place: own for place, own in ranges.items() if isinstance(place, int)},
        {place: own for place, own in ranges.items() if isinstance(place, tuple)},
    )


def _add_related(found: dict[Place, list[SymbolRange | SymbolSteps]], values: Values, shape: LoopShape) -> None:
    """Add what one counter of a loop tells of another: a pointer that is moved along with a number that is compared.

    *Soundness:* where the loop is entered, the one is a constant and a multiple of the other, in the ratio of their
    steps, on each edge the same; each round keeps that.
    """
    if shape.loop.header == 0:
        return
    counters = {symbol: step for symbol, step in counters_of(values, shape).items() if not step.shifts and step.amount}
    state = values.states[shape.loop.header]
    for symbol, step in counters.items():
        for other, its_step in counters.items():
            ratio, left = divmod(step.amount, its_step.amount)
            if symbol == other or left or state.base(other) is not Base.NUMBER:
                continue
            start = _related(values, shape, step, its_step, ratio)
            if start is not None:
                bits = values.terms[symbol].bits
                moved = strided.apply(
                    "INT_MULT", (state.value(other), strided.constant(bits, ratio % (1 << bits))), bits
                )
                reach = strided.apply("INT_ADD", (moved, strided.constant(bits, start[1])), bits)
                if not reach.is_top:
                    _add(found, [shape.loop.header], _asserted(values, symbol, start[0], reach))


def _related(values: Values, shape: LoopShape, one: Step, other: Step, ratio: int) -> tuple[Base, int] | None:
    """What a counter is where the loop is entered, beside ``ratio`` times another one; None: no one constant."""
    found = set[tuple[Base, int]]()
    for edge in shape.entry_edges:
        state = values.edges[edge].state
        terms = state.read(one.location), state.read(other.location)
        if terms[0] is None or terms[1] is None or state.terms[terms[0]].bits != state.terms[terms[1]].bits:
            return None
        left = combined(state.terms.linear(terms[0]), state.terms.linear(terms[1]), -ratio)
        names = [state.terms[term].arguments for term in left.coefficients]
        if left.coefficients and (names != [("stack pointer",)] or [*left.coefficients.values()] != [1]):
            return None
        found.add((Base.STACK if left.coefficients else Base.NUMBER, left.constant))
    return found.pop() if len(found) == 1 else None


def _added(
    ranges: Ranges, found: Mapping[Place, Sequence[SymbolRange | SymbolSteps]], refused: Collection[SymbolName]
) -> Ranges:
    """``ranges`` with what was ``found`` besides; empty where that is nothing."""
    both = {
        point: tuple(dict.fromkeys((*ranges.get(point, ()), *found.get(point, ()))))
        for point in (*ranges, *(new for new in found if new not in ranges))
    }
    both = dict(_without(both, refused))
    return both if both != ranges else {}


def _without(ranges: Ranges, refused: Collection[SymbolName]) -> Ranges:
    """``ranges`` without those ``refused`` elsewhere than at the header that defines the symbol."""
    kept = {
        point: tuple(one for one in asserted if one.name not in refused or _header(one) == point)
        for point, asserted in ranges.items()
    }
    return {point: asserted for point, asserted in kept.items() if asserted}


def _killed(values: Values, ranges: Ranges) -> set[SymbolName]:
    """The symbols with ranges within their loops that an edge there kills, while its target speaks of them.

    *Soundness:* such a symbol need not be what its header defined last, see `joins.live_symbols`.
    """
    nodes = {loop.header: loop.nodes for loop in loops_of(values.forest)}
    inside = {one for point, asserted in ranges.items() for one in asserted if _header(one) != point}
    killed = values.killed
    found = set()
    for one in inside:
        symbol, loop = values.terms.symbol(one.name, one.bits), nodes[_header(one)]
        if any(
            symbol in symbols and edge.source in loop and edge.target in loop and edge.target != _header(one)
            for edge, symbols in killed.items()
        ):
            found.add(one.name)
    return found


def _header(asserted: SymbolRange | SymbolSteps) -> int:
    """The header that defines the symbol."""
    header: Any = asserted.name[1]
    return int(header[0])


def _loses_places(values: Values) -> bool:
    """Whether a store may go anywhere, or a jump reads its target anywhere, by what a loop moves from a known place."""
    lost: set[Term] = set()
    unknown = {site for site, targets in values.indirect.items() if not targets}
    for index, own in values.accesses.items():
        is_jump = values.graph.points[index].block.last_address in unknown
        for access in own:
            is_lost = (is_jump or access.is_store) and access.offset.extent >= _ANYWHERE
            if is_lost and access.base is not Base.ANY and access.pointer:
                lost |= values.terms.symbols(access.pointer)
    return any(
        symbol in lost and (start := _start(values, shape, step)) is not None and start[1].extent < _ANYWHERE
        for shape in (loop_shapes(values) if lost else ())
        for symbol, step in counters_of(values, shape).items()
    )


def _has_forgotten(values: Values) -> bool:
    """Whether a loop's header does not hold a word of the stack that is loaded, though no store of the loop goes there.

    It was lost while a pointer was widened. What is lost does not come back where a comparison tells the pointer's end.
    """
    accesses = [one for own in values.accesses.values() for one in own if one.base is Base.STACK]
    loaded = {one.offset.value for one in accesses if not one.is_store and one.offset.is_constant}
    for shape in loop_shapes(values) if loaded else ():
        held = values.states[shape.loop.header]
        entering = [values.edges[edge].state.locations for edge in shape.entry_edges]
        known = [at for at in entering[0] if at.space == "stack" and at.offset & _LAST in loaded] if entering else []
        lost = [at for at in known if at not in held.locations and all(at in each for each in entering)]
        if lost and not _may_store(values, shape, lost):
            return True
    return False


def _may_store(values: Values, shape: LoopShape, places: Collection[Location]) -> bool:
    """Whether a loop may store to each of some places of the stack, as far as it is known where its stores go."""
    nodes = shape.loop.nodes
    if any(edge.source in nodes and values.graph.is_summary(edge) for edge in values.edges):
        return True
    stores = [one for node in nodes for one in values.accesses.get(node, ()) if one.is_store]
    if any(one.base is Base.ANY or one.offset.extent >= _ANYWHERE for one in stores):
        return True
    reached = [one for one in stores if one.base is Base.STACK]
    return all(any(_reaches(one, at) for one in reached) for at in places)


def _reaches(store: Access, place: Location) -> bool:
    """Whether a store goes to a byte of ``place``, of which the offset is one of the stack."""
    behind = (place.offset - store.offset.low) & _LAST
    return behind < store.offset.extent + store.size_bytes or -behind & _LAST < place.size_bytes


def _ranges(
    values: Values, follow: Callable[[Values, Mapping[int, int]], Sequence[ExecutedNest]], *, returns: bool
) -> dict[Place, list[SymbolRange | SymbolSteps]]:
    """What the counters of bounded loops can be, by the places where that is so."""
    shapes = loop_shapes(values)
    most = {header: count.max_header for header, count in count_loops(values, shapes).items()}
    if len(most) < len(shapes):
        for header, rounds in ((header, own) for nest in follow(values, most) for header, own in nest.rounds.items()):
            most[header] = min(rounds, most.get(header, rounds))
    found: dict[Place, list[SymbolRange | SymbolSteps]] = {}
    for shape in shapes:
        if shape.loop.header in most:
            _add_ranges(found, values, shape, most[shape.loop.header], returns=returns)
    return found


def _add_ranges(
    found: dict[Place, list[SymbolRange | SymbolSteps]],
    values: Values,
    shape: LoopShape,
    max_header: int,
    *,
    returns: bool = True,
) -> None:
    """Add to ``found`` what the counters can be of a loop whose header is executed so often for each entry."""
    going_on = list(_surely_repeated(values, shape)) if returns else []
    steps: list[SymbolSteps] = []
    for symbol, step in counters_of(values, shape).items():
        start = _start(values, shape, step)
        if step.shifts or start is None:
            continue
        everywhere = _reached(start[1], step, max_header - 1)
        if everywhere is None:
            continue
        _add(found, [shape.loop.header], _asserted(values, symbol, start[0], everywhere))
        if start[1].is_constant:
            node = values.terms[symbol]
            steps.append(SymbolSteps(node.arguments, node.bits, start[0], start[1].value, step.amount))
        before_last = _reached(start[1], step, max_header - 2) if max_header >= 2 else None
        if before_last is not None:
            _add(found, going_on, _asserted(values, symbol, start[0], before_last))
    for edge in values.edges if len(steps) > 1 else ():
        if edge.source in shape.loop.nodes and edge.target not in shape.loop.nodes:
            found[edge.source, edge.target] = [*found.get((edge.source, edge.target), ()), *steps]


def _asserted(values: Values, symbol: Term, base: Base, value: StridedInterval) -> SymbolRange:
    node = values.terms[symbol]
    return SymbolRange(node.arguments, node.bits, base, value)


def _start(values: Values, shape: LoopShape, step: Step) -> tuple[Base, StridedInterval] | None:
    """Of what kind a counter is, and what it can be where the loop is entered."""
    states = [values.edges[edge].state for edge in shape.entry_edges]
    terms = [state.read(step.location) for state in states]
    if shape.loop.header == 0 or None in terms or not terms:
        return None
    pairs = [(state, term) for state, term in zip(states, terms, strict=True) if term is not None]
    bases = {state.base(term) for state, term in pairs}
    if len(bases) != 1 or Base.ANY in bases:
        return None
    result = strided.bottom(values.terms[pairs[0][1]].bits)
    for state, term in pairs:
        result = strided.join(result, state.value(term))
    return bases.pop(), result


def _add(found: dict[Place, list[SymbolRange | SymbolSteps]], points: Sequence[int], asserted: SymbolRange) -> None:
    for point in points:
        found.setdefault(point, []).append(asserted)


def _reached(start: StridedInterval, step: Step, rounds: int) -> StridedInterval | None:
    """What a counter can be after up to so many rounds; None where that is too far to tell anything.

    *Soundness:* it does not come round: `SymbolSteps` count rounds by it.
    """
    moved = step.amount * max(0, rounds)
    if abs(moved) + start.extent >= min(_ANYWHERE, 1 << start.bits):
        return None
    reach = strided.between(start.bits, min(0, moved), max(0, moved), abs(step.amount))
    return strided.apply("INT_ADD", (start, reach), start.bits)


def _surely_repeated(values: Values, shape: LoopShape) -> Iterator[int]:
    """The points of a loop from which it can only be left through its header: they are in no last round.

    *Soundness:* an execution that comes to such a point and returns comes to the header again.
    """
    nodes, header = shape.loop.nodes, shape.loop.header
    leaving = {node for node in nodes if any(edge.target not in nodes for edge in values.leaving.get(node, ()))}
    reaching = values.order.before(leaving, lambda edge: edge.source in nodes and edge.target != header)
    yield from sorted(node for node in nodes - reaching - {header} if node in values.states)
