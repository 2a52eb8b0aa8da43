"""Loops that call a function in each round, by how often the sources call it in all.

Where the line table does not tell the source loop of a binary loop, what it does may: a function that gives back
nothing is called where the source calls it, and no more often than the pragmas of the loops around its calls say.

Words: loop bound, line table, assumption (docs/explanation/glossary.md).

*Soundness:* a round that executes a call on every way from the header back to it is one call at least. How often the
function is called in all is told as of the pragma ``flowrestriction`` (`facts.restrictions`); a function that its
callers have inlined, or that is told by another name, is not counted, and so bounds nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from wcet_probe.analyzer.facts.binding import Analysed, BoundFact
from wcet_probe.analyzer.facts.restrictions import Restricted, Unexpanded, counted_calls
from wcet_probe.analyzer.facts.source_index import SourceIndex
from wcet_probe.analyzer.facts.source_match import LoopSite
from wcet_probe.analyzer.graph.loop_forest import dominators
from wcet_probe.analyzer.graph.returning import function_from
from wcet_probe.analyzer.loops.bounds import BoundedLoops
from wcet_probe.analyzer.loops.loop_sites import by_header_address, header_point
from wcet_probe.analyzer.values.properties.loop_shapes import LoopShape, loop_shapes
from wcet_probe.analyzer.values.result import Values
from wcet_probe.errors import AnalysisError
from wcet_probe.model.image import Image


class SourceCalls(NamedTuple):
    """Bounds of loops by the calls in their rounds, and what is assumed of the functions that are called."""

    facts: Sequence[BoundFact] = ()
    restricted: Sequence[Restricted] = ()


class Known(NamedTuple):
    """The values of the analysed code, its sources, the code and the image; who tells what is not in the graph."""

    values: Values
    sources: SourceIndex
    analysed: Analysed
    unexpanded: Callable[[], Unexpanded] | None


def bounded_by_calls(
    bounded: Callable[..., BoundedLoops],
    facts: Sequence[BoundFact],
    known: Known,
    sites: Callable[[], Collection[LoopSite]],
    loose: Collection[str] = (),
) -> BoundedLoops:
    """All loops, those that nothing else bounds well, or several pragmas together, by the calls in their rounds.

    Args:
        bounded: bounds them with the ``facts`` that it is given.
        facts: what facts and pragmas say.
        known: of the code.
        sites: all loops, those of calls that are not expanded among them.
        loose: where the pragmas are whose loops look unrolled, and nothing shows how often.

    Raises:
        AnalysisError: loops without a bound.

    *Soundness:* as said of the module.
    """
    joined = {fact.header_address for fact in facts if fact.rounds or (fact.origin == "pragma" and fact.where in loose)}
    found = source_calls(known, headers=joined, sites=sites()) if joined else SourceCalls()
    try:
        return _with_used(bounded(facts=(*facts, *found.facts)), found, loose)
    except AnalysisError as error:
        headers = joined | {*error.headers}
        found = source_calls(known, headers=headers, sites=sites()) if error.headers else SourceCalls()
        if not found.facts:
            raise
    return _with_used(bounded(facts=(*facts, *found.facts)), found, loose)


def _with_used(loops: BoundedLoops, found: SourceCalls, loose: Collection[str]) -> BoundedLoops:
    """``loops`` with what holds of the calls, where these bound any, or a pragma of ``loose`` does."""
    wheres = {(fact.where, fact.max_expression) for fact in found.facts}
    headers = {fact.header_address for fact in found.facts}
    is_used = any(
        (one.where, one.expression) in wheres or (one.where in loose and one.address in headers) for one in loops.loops
    )
    return with_calls(loops, found) if is_used else loops


def source_calls(known: Known, *, headers: Collection[int], sites: Collection[LoopSite]) -> SourceCalls:
    """What calls say of the loops with ``headers``, by address.

    Args:
        known: of the code.
        headers: of the loops without a bound.
        sites: all loops, those of calls that are not expanded among them.

    Raises:
        ImageError: damaged debug information.

    *Soundness:* as said of the module. What starts with a loop would count its rounds as calls.
    """
    values, index, analysed, asked = known
    if asked is None:
        return SourceCalls()
    unexpanded = asked()
    defined = Counter(function.name for source in index.files.values() for function in source.functions)
    starts = {site.header_address for site in sites}
    symbols = analysed.image.symbols
    names = {
        name
        for name, number in defined.items()
        if number == 1 and name in symbols and symbols[name].address not in starts
    }
    facts: list[BoundFact] = []
    used: dict[str, tuple[int, Restricted] | None] = {}
    grouped = by_header_address(values, loop_shapes(values))
    for address in sorted({*headers} & grouped.keys()):
        called = [frozenset(_called(analysed.image, values, shape)) for shape in grouped[address]]
        own = sorted(names & frozenset.intersection(*called))
        for name in own:
            if name not in used:
                used[name] = counted_calls(values, index, analysed, unexpanded, name=name, number=len(used))
        told = [found for name in own if (found := used[name])]
        if told:
            facts.append(_fact(values, grouped[address][0], *min(told, key=lambda one: one[0])))
    wheres = {fact.where for fact in facts}
    chosen = (found[1] for found in used.values() if found)
    return SourceCalls(facts, [one for one in chosen if any(claim.where in wheres for claim in one.claims)])


def with_calls(loops: BoundedLoops, found: SourceCalls) -> BoundedLoops:
    """``loops``, for which the facts of ``found`` were used, with what holds of the calls that they speak of.

    *Soundness:* as said of the module.
    """
    return replace(
        loops,
        constraints=(*loops.constraints, *(constraint for one in found.restricted for constraint in one.constraints)),
        flow_claims=(*loops.flow_claims, *(claim for one in found.restricted for claim in one.claims)),
        assumptions=(*loops.assumptions, *(one.assumption for one in found.restricted)),
    )


def _fact(values: Values, shape: LoopShape, most: int, found: Restricted) -> BoundFact:
    point = header_point(values, shape)
    return BoundFact(
        function=point.function.name,
        header_address=point.block.address,
        source=None,
        origin="pragma",
        where=found.claims[0].where,
        because="",
        max_expression=str(most),
        max_header=most + 1,
        offset=1,
    )


def _called(image: Image, values: Values, shape: LoopShape) -> Iterator[str]:
    """The functions that each round calls, in its own function."""
    loop, points = shape.loop, values.graph.points
    context = header_point(values, shape).context
    successors: dict[int, list[int]] = {node: [] for node in loop.nodes}
    for edge in values.within(loop.nodes):
        if edge.target != loop.header:
            successors[edge.source].append(edge.target)
    above = dominators(successors, loop.header)
    common: set[int] | None = None
    for edge in shape.back_edges:
        chain, node = {edge.source}, edge.source
        while node != loop.header:
            node = above[node]
            chain.add(node)
        common = chain if common is None else common & chain
    for node in common or ():
        point = points[node]
        if point.block.address == point.function.address and point.context[:-1] == context != point.context:
            yield point.function.name
        if point.context == context:
            leaving = [values.edges[edge].calls for edge in values.leaving.get(node, ()) if edge.target in loop.nodes]
            for target in frozenset.intersection(*(frozenset(call.key.target for call in own) for own in leaving)):
                yield function_from(image, target).name
