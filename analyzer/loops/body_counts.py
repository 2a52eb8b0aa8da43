"""What a pragma's count says of the code that is surely of the loop's body: no more than it counts, not one more.

A loop's header may be executed once more than the body, for its test; how a compiler tests the loop does not tell. But
a store, a call, or the entry of a loop inside that the line table gives to the body is executed in an iteration only.

Words: loop bound, line table, assumption (docs/explanation/glossary.md).

*Soundness:* compilers make no store and no call without cause, and a statement that is in no other loop of the source,
and whose code is in no other loop of the binary, is executed once in an iteration at most; and so a loop that is next
inside in source and binary is entered. That the lines are right is the compiler's word: an assumption, which runs are
held against. It is asked of Clang only, which gives no line to code that it has made of two places. GCC leaves the
line of one: what stands before the loop and at the end of its body, and then is one in front of the test, or a call
without effects that it makes before the test, for the body and for what is behind the loop.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from wcet_probe.analyzer.facts.binding import BoundFact
from wcet_probe.analyzer.facts.source_index import SourceIndex
from wcet_probe.analyzer.facts.source_parts import SourceLoop
from wcet_probe.analyzer.graph.supergraph import Edge, Point
from wcet_probe.analyzer.ipet.flow_problem import LinearConstraint
from wcet_probe.analyzer.loops.bounds import BoundedLoops
from wcet_probe.analyzer.pcode.skipping import may_be_skipped
from wcet_probe.analyzer.values.properties.loop_shapes import LoopShape, loop_shapes
from wcet_probe.analyzer.values.result import Values
from wcet_probe.build.compilers import functions_of_clang
from wcet_probe.model.image import Image
from wcet_probe.model.proof import Assumption, FlowClaim, Origin


@dataclass(frozen=True, slots=True)
class _Limited:
    """A point, or the entries of a loop inside, that a pragma limits for each entry of the loop ``shape``.

    ``point`` is that point, or the header of the loop inside, whose entries are ``edges``.
    """

    fact: BoundFact
    shape: LoopShape
    address: int
    point: int
    edges: tuple[Edge, ...]


def with_bodies(
    image: Image, values: Values, loops: BoundedLoops, facts: Sequence[BoundFact], index: SourceIndex
) -> BoundedLoops:
    """``loops`` with what the pragmas among ``facts`` that bound them say of the code of bodies.

    *Soundness:* as said of the module.
    """
    shapes = loop_shapes(values)
    at: dict[int, list[LoopShape]] = {}
    for shape in shapes:
        at.setdefault(_point(values, shape.loop.header).block.address, []).append(shape)
    sources = {fact.header_address: fact.source for fact in facts if fact.source is not None}
    bounded = {(loop.address, loop.where) for loop in loops.loops if loop.origin is Origin.PRAGMA}
    told = [
        fact
        for fact in facts
        if fact.offset
        and (fact.header_address, fact.where) in bounded
        and fact.max_header
        # Whether the round that a `break` ends is counted, pragmas do not say.
        and not (fact.source and fact.source.left_inside)
    ]
    trusted = functions_of_clang(image) if told else frozenset()
    found = [
        _Limited(fact, shape, *part)
        for fact in told
        for shape in at.get(fact.header_address, ())
        for part in _parts(image, values, shape, fact, (index, trusted))
        + _inside(values, [one for one in shapes if one.parent == shape.loop], shape, fact, (sources, index))
    ]
    grouped: dict[tuple[str, int, bool], list[_Limited]] = {}
    for one in found:
        grouped.setdefault((one.fact.where, one.address, bool(one.edges)), []).append(one)
    return replace(
        loops,
        constraints=(*loops.constraints, *(_constraint(number, one) for number, one in enumerate(found))),
        flow_claims=(*loops.flow_claims, *(_claim(image, own) for own in grouped.values() if _is_counted(values, own))),
        assumptions=(*loops.assumptions, *_assumptions(image, found)),
    )


def _point(values: Values, index: int) -> Point:
    return values.graph.points[index]


def _most(fact: BoundFact) -> int:
    """How often the body is executed for each entry."""
    return (fact.max_header or 0) - fact.offset


_Part = tuple[int, int, tuple[Edge, ...]]


def _parts(
    image: Image, values: Values, shape: LoopShape, fact: BoundFact, known: tuple[SourceIndex, Collection[int]]
) -> list[_Part]:
    """The points of a loop, in no loop inside, that are surely of the body; of functions whose lines are trusted."""
    index, trusted = known
    function = image.function_at(fact.header_address)
    if function is None or function.address not in trusted:
        return []
    own = [part for part in shape.loop.parts if isinstance(part, int) and part in values.states]
    context = _point(values, shape.loop.header).context
    points = [_point(values, part) for part in own]
    return [
        (point.block.address, point.index, ())
        for point in points
        if point.context == context and _is_of_body(image, point, fact, index)
    ]


def _inside(
    values: Values,
    children: Sequence[LoopShape],
    shape: LoopShape,
    fact: BoundFact,
    known: tuple[Mapping[int, SourceLoop], SourceIndex],
) -> list[_Part]:
    """The entries of the loops next inside that are surely of the body."""
    (sources, index), context = known, _point(values, shape.loop.header).context
    found: list[_Part] = []
    for inner in children:
        header = _point(values, inner.loop.header)
        source = sources.get(header.block.address)
        if header.context == context and source is not None and _is_next_inside(source, fact, index):
            found.append((header.block.address, header.index, inner.entry_edges))
    return found


def _is_of_body(image: Image, point: Point, fact: BoundFact, index: SourceIndex) -> bool:
    """Whether the block surely stores or calls on a line of the body that is in no loop inside."""
    source = fact.source
    if source is None:
        return False
    for instruction in point.block.instructions:
        acts = any(op.opcode in {"STORE", "CALL", "CALLIND"} for op in instruction.ops)
        place = image.lines.find(instruction.address) if acts and not may_be_skipped(instruction) else None
        if place is not None and place[1] not in source.header_lines and index.loops_at(*place) == [source]:
            return True
    return False


def _is_next_inside(inner: SourceLoop, fact: BoundFact, index: SourceIndex) -> bool:
    """Whether a source loop stands in that of ``fact``, and in no other one that is inside of it."""
    if fact.source is None or inner.file != fact.source.file or inner.function != fact.source.function:
        return False
    around = [
        loop
        for loop in index.loops(inner.function, inner.file)
        if loop.number != inner.number and loop.first_line <= inner.first_line and inner.last_line <= loop.last_line
    ]
    return bool(around) and min(around, key=lambda loop: loop.last_line - loop.first_line) == fact.source


def _constraint(number: int, one: _Limited) -> LinearConstraint:
    entries: tuple[Edge | None, ...] = one.shape.entry_edges
    if one.shape.loop.header == 0:
        entries = (*entries, None)
    most = _most(one.fact)
    return LinearConstraint(
        f"body:{number}",
        () if one.edges else ((one.point, 1),),
        (*((edge, 1) for edge in one.edges), *((edge, -most) for edge in entries)),
    )


def _statement(image: Image, where: str, addresses: Iterable[int]) -> str:
    places = ", ".join(sorted({image.location(address) for address in addresses}))
    return f"the code at {places} is executed in iterations of the loop at {where} only, as the line table says"


def _is_counted(values: Values, own: Sequence[_Limited]) -> bool:
    """Whether all that runs count of a place is limited: copies of it may be before a loop that is entered twice."""
    at = {index for index in values.states if _point(values, index).block.address == own[0].address}
    return at <= {one.point for one in own}


def _claim(image: Image, own: Sequence[_Limited]) -> FlowClaim:
    one = own[0]
    blocks = () if one.edges else ((one.address, 1),)
    inside = ((f"{one.address:#010x}", 1),) if one.edges else ()
    # A compiler may have made several loops of one, in each of which the code stands.
    around = {each.fact.header_address: -_most(each.fact) for each in own}
    entries = (*inside, *((f"{address:#010x}", most) for address, most in sorted(around.items())))
    return FlowClaim(one.fact.where, _statement(image, one.fact.where, [one.address]), blocks, entries, 0)


def _assumptions(image: Image, found: Sequence[_Limited]) -> Iterator[Assumption]:
    """One for each pragma."""
    for where in dict.fromkeys(one.fact.where for one in found):
        text = _statement(image, where, (one.address for one in found if one.fact.where == where))
        yield Assumption(f"body {where}", text, "every emulated run holds the sum of each call against it")
