"""The bound of every loop: proved by values, else from a fact or pragma; and what runs are to be held against.

Words: loop bound, flow fact (docs/explanation/glossary.md).

*Soundness:* of several bounds of one loop the least is taken, a proved one where they are equal. A loop without any is
an error. Totals of facts are limits of the flow problem, whatever the loop's own bound is.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from wcet_probe.analyzer.facts.binding import BoundFact
from wcet_probe.analyzer.graph.supergraph import Edge
from wcet_probe.analyzer.ipet.certificate import LoopDerivation
from wcet_probe.analyzer.ipet.flow_problem import BoundedLoop, LinearConstraint, point_name
from wcet_probe.analyzer.loops.chosen_bounds import ChosenBound, chosen_bound, followed_count
from wcet_probe.analyzer.loops.counting import counted_loops
from wcet_probe.analyzer.loops.counts import FOLLOWED, Count, Together
from wcet_probe.analyzer.loops.loop_claims import loop_claims, watched_name
from wcet_probe.analyzer.loops.loop_sites import by_header_address, header_address, header_point
from wcet_probe.analyzer.loops.nest_limits import ExecutedNest, executed_constraints
from wcet_probe.analyzer.loops.type_bounds import type_bound
from wcet_probe.analyzer.values.properties.loop_shapes import LoopShape, loop_shapes
from wcet_probe.analyzer.values.result import Values
from wcet_probe.errors import AnalysisError
from wcet_probe.model.image import Image
from wcet_probe.model.proof import Assumption, FlowClaim, IdleFact, LoopBound, LoopClaim, Origin, TypeBound


@dataclass(frozen=True, slots=True)
class BoundedLoops:
    """All loops with their bounds, in each form that somebody needs.

    Attributes:
        loops: for people and for results.
        flow, limits: for the flow problem.
        derivations: for the certificate.
        claims, flow_claims: for runs.
        total_expressions: of the totals among the facts.
        assumptions: the facts and pragmas that are used.
        idle: facts that are not.
        by_type: the loops whose bound is the width of a type.
    """

    loops: tuple[LoopBound, ...]
    flow: tuple[BoundedLoop, ...]
    constraints: tuple[LinearConstraint, ...]
    derivations: tuple[LoopDerivation, ...]
    claims: tuple[LoopClaim, ...]
    flow_claims: tuple[FlowClaim, ...]
    total_expressions: tuple[str, ...]
    assumptions: tuple[Assumption, ...]
    idle: tuple[IdleFact, ...]
    by_type: tuple[TypeBound, ...]


def bound_loops(
    image: Image,
    values: Values,
    facts: Sequence[BoundFact],
    parameters: Mapping[str, int],
    counted: Collection[int] = (),
    *,
    follow: Callable[[Mapping[int, int], Collection[int]], Sequence[ExecutedNest]] = lambda *_: (),
) -> BoundedLoops:
    """Bound every loop of ``values``.

    Args:
        image: the binary.
        values: result of the value analysis.
        facts: what facts and pragmas say of its loops.
        parameters: what the facts' expressions were evaluated with.
        counted: headers, by address, of the loops that the caller limits; they are left out where they have no bound.
        follow: abstract execution of nests, with the bounds of loops and those that are exact.

    Raises:
        AnalysisError: loops without a bound; the message names each.

    *Soundness:* as said of the module.
    """
    shapes = loop_shapes(values)
    counted_by_values = counted_loops(values, shapes)
    counts = dict(counted_by_values.counts)
    by_address: dict[int, list[BoundFact]] = {}
    for fact in facts:
        by_address.setdefault(fact.header_address, []).append(fact)

    decided: set[int] = set()

    def choices() -> Iterator[tuple[LoopShape, ChosenBound]]:
        for shape in shapes:
            header = shape.loop.header
            own = () if header in decided else by_address.get(header_address(values, shape), ())
            choice = chosen_bound(counts.get(header), own)
            if choice is not None:
                yield shape, choice

    preliminary = {shape.loop.header: choice for shape, choice in choices()}
    exact = {header for header, one in preliminary.items() if one.count and one.count.is_exact}
    nests = follow({header: choice.max_header for header, choice in preliminary.items()}, exact)
    # Where each step is known, a fact can only say as much or be false.
    decided |= {header for nest in nests if nest.is_decided for header in nest.rounds}
    for header, rounds in ((header, rounds) for nest in nests for header, rounds in nest.rounds.items()):
        own = counts.get(header)
        if own is None or rounds < own.max_header:
            counts[header] = replace(followed_count(rounds), total=own.total if own else None)
    followed = {header_address(values, one) for one in shapes if one.loop.header in decided}
    chosen = list(choices())
    bounded = {shape.loop.header for shape, _ in chosen}
    missing = [
        address
        for one in shapes
        if one.loop.header not in bounded and (address := header_address(values, one)) not in counted
    ]
    if missing:
        raise no_bound(image, missing)
    totals = _fact_totals(values, shapes, facts)
    proved = [
        _proved_total(values, shape, shapes, count.total)
        for shape in shapes
        if (count := counts.get(shape.loop.header)) and count.total is not None and shape.parent is not None
    ]
    flow = tuple(BoundedLoop(s.loop.header, s.entry_edges, s.back_edges, c.max_header) for s, c in chosen)
    used = {choice.where: _assumption(image, values, s, choice) for s, choice in chosen if choice.fact is not None}
    joined = {choice.fact.where: choice.fact.rounds for _, choice in chosen if choice.fact and choice.fact.rounds}
    used |= {f"rounds {where}": Assumption(f"rounds {where}", rounds, _CHECK) for where, rounds in joined.items()}
    # What the copies of a loop run in all rests on their pragma, also where values bound each of them.
    pragmas = {fact.where for fact in facts if fact.origin == "pragma"} - used.keys()
    told = [claim for _, claim in totals if claim.where in pragmas]
    used |= {claim.where: Assumption(f"pragma {claim.where}", claim.statement, _CHECK) for claim in told}
    used |= {f"total {claim.where}": Assumption(f"fact {claim.where}", claim.statement, _CHECK) for _, claim in totals}
    return BoundedLoops(
        loops=tuple(_loop_bound(image, values, shape, choice) for shape, choice in chosen),
        flow=flow,
        constraints=(
            *proved,
            *_shared(values, counted_by_values.shared),
            *(constraint for constraint, _ in totals),
            *executed_constraints(values, flow, nests),
        ),
        derivations=tuple(_derivation(image, values, shape, choice, parameters) for shape, choice in chosen),
        claims=loop_claims(values, chosen),
        flow_claims=tuple(claim for _, claim in totals),
        total_expressions=tuple(dict.fromkeys(fact.total_expression for fact in facts if fact.total is not None)),
        assumptions=tuple(used.values()),
        idle=tuple(
            IdleFact(where, _EACH_STEP if address in followed else _AS_SMALL)
            for where, address in {fact.where: fact.header_address for fact in facts if fact.origin == "fact"}.items()
            if where not in used and f"total {where}" not in used
        ),
        by_type=tuple(
            found
            for shape, choice in chosen
            if choice.count is not None
            and (found := type_bound(image, values, shape, point_name(header_point(values, shape)), choice.count))
        ),
    )


def no_bound(image: Image, headers: Iterable[int]) -> AnalysisError:
    """The error that the loops with these headers have no bound."""
    missing = sorted({*headers})
    places = ", ".join(sorted(map(image.location, missing)))
    return AnalysisError(
        f"no bound for the loop{'s' if len(missing) > 1 else ''} at {places}: "
        "say how often it repeats by a flow fact ([[loop]] with max or total) or by a loopbound pragma.",
        tuple(missing),
    )


_MOST_SHARED = 1 << 14
"""A number that may be as far from its end as a type is wide limits no sum; what it bounds is told to be by type."""
_CHECK = "every emulated run counts the loop's iterations"
_AS_SMALL = "a bound of its loop that is as small is known without it"
_EACH_STEP = "each step of the function is known, and how often its loops repeat"


# --------------------------------------------------------------------------------------------------------------- result


def _loop_bound(image: Image, values: Values, shape: LoopShape, choice: ChosenBound) -> LoopBound:
    point = header_point(values, shape)
    file, line = image.lines.find(point.block.address) or ("", 0)
    return LoopBound(
        name=point_name(point),
        function=point.function.name,
        address=point.block.address,
        context=point.context,
        location=image.location(point.block.address),
        file=file,
        line=line,
        max=choice.max_header,
        total=choice.count.total if choice.count else None,
        origin=choice.origin,
        expression=choice.expression,
        where=choice.where,
        because="" if choice.fact is None else choice.fact.because,
    )


def _assumption(image: Image, values: Values, shape: LoopShape, choice: ChosenBound) -> Assumption:
    because = f": {choice.fact.because}" if choice.fact and choice.fact.because else ""
    place = image.location(header_point(values, shape).block.address)
    text = f"the body of the loop at {place} runs at most {choice.expression} times for each entry{because}"
    return Assumption(f"{choice.origin} {choice.where}", text, _CHECK)


def _derivation(
    image: Image, values: Values, shape: LoopShape, choice: ChosenBound, parameters: Mapping[str, int]
) -> LoopDerivation:
    point = header_point(values, shape)
    name = point_name(point)
    place = image.location(point.block.address)
    if choice.count is None:
        return LoopDerivation(
            loop=name,
            constraint=f"loop:{name}",
            description=place,
            origin="pragma" if choice.origin is Origin.PRAGMA else "fact",
            max_header=choice.max_header,
            expression=choice.expression,
            parameters=dict(parameters),
            offset=choice.offset,
        )
    count = choice.count
    comparison, low, high, step = _distance(count)
    return LoopDerivation(
        loop=name,
        constraint=f"loop:{name}",
        description=place,
        origin="proved",
        max_header=choice.max_header,
        initial_low=low,
        initial_high=high,
        step=-step,
        limit_low=0,
        limit_high=0,
        comparison=comparison,
    )


_Comparison = Literal[">", ">=", "!="]


def _distance(count: Count) -> tuple[_Comparison, int, int, int]:
    """The distance that shrinks: the comparison with 0 that goes on, least and greatest at first, and the step."""
    low, high, step = count.distance_low, count.distance_high, count.step
    if count.relation == FOLLOWED:
        return ">", low, high, 1
    match count.relation:
        case "!=":
            return "!=", low // step, high // step, 1
        case "<":
            return ">", low, high, step
        case "<=":
            return ">=", low, high, step
        case "==":
            return ">", 1, 1, 1
    return ">", 0, high.bit_length(), step  # a shift: the number of bits that are left


# --------------------------------------------------------------------------------------------------------------- totals


def _proved_total(values: Values, shape: LoopShape, shapes: Sequence[LoopShape], total: int) -> LinearConstraint:
    """The sum over the iterations of the enclosing loop, for each entry of that."""
    parent = next(each for each in shapes if shape.parent is not None and each.loop.header == shape.parent.header)
    return LinearConstraint(
        name=f"total:{point_name(header_point(values, shape))}",
        points=((shape.loop.header, 1),),
        edges=tuple((edge, -total) for edge in _entries(parent)),
    )


def _shared(values: Values, shared: Sequence[tuple[LoopShape, Together]]) -> Iterator[LinearConstraint]:
    """What loops do together of a number that they all move on, for each entry of the loop around them."""
    known = set[tuple[object, ...]]()
    for number, (shape, one) in enumerate(shared):
        edges = tuple(one.taken.items())
        if one.most <= _MOST_SHARED and (shape.loop.header, edges, one.most) not in known:
            known.add((shape.loop.header, edges, one.most))
            name = f"total:{point_name(header_point(values, shape))}:{number}"
            yield LinearConstraint(name, edges=(*edges, *((edge, -one.most) for edge in _entries(shape))))


def _fact_totals(
    values: Values, shapes: Sequence[LoopShape], facts: Sequence[BoundFact]
) -> list[tuple[LinearConstraint, FlowClaim]]:
    """Totals of facts. Copies of a loop share its total, but for loops in each other that it has become."""
    by_address = by_header_address(values, shapes)
    grouped: dict[tuple[str, int, tuple[int, ...], int], list[BoundFact]] = {}
    for fact in facts:
        if fact.total is not None:
            copies = {each.header_address for each in facts if each.where == fact.where}
            alone = any(_around(values, shapes, shape) & copies for shape in by_address.get(fact.header_address, ()))
            key = fact.where, fact.total, fact.within, fact.header_address if alone else 0
            grouped.setdefault(key, []).append(fact)
    found = []
    for number, ((where, total, within, _), group) in enumerate(grouped.items()):
        own = [(fact, shape) for fact in group for shape in by_address.get(fact.header_address, ())]
        outer = [shape for address in within for shape in by_address.get(address, ())]
        edges = [(edge, -fact.total_for_each_entry) for fact, shape in own for edge in _entries(shape)]
        edges += [(edge, -total) for shape in outer for edge in _entries(shape)]
        constant = 0 if within else total
        constraint = LinearConstraint(
            f"fact:{number}",
            tuple((shape.loop.header, 1) for _, shape in own),
            tuple(e for e in edges if e[1]),
            constant,
        )
        entries = {watched_name(fact.header_address): -fact.total_for_each_entry for fact, _ in own}
        entries |= {watched_name(address): -total for address in within}
        statement = (
            f"the body of the loop at {where} runs at most {group[0].total_expression} times in all: {group[0].because}"
        )
        blocks = tuple((address, 1) for address in sorted({fact.header_address for fact, _ in own}))
        claim = FlowClaim(where, statement, blocks, tuple((n, w) for n, w in entries.items() if w), constant)
        found.append((constraint, claim))
    return found


def _around(values: Values, shapes: Sequence[LoopShape], shape: LoopShape) -> set[int]:
    """Header addresses of all loops around ``shape``."""
    return {
        header_point(values, other).block.address
        for other in shapes
        if other.loop.header != shape.loop.header and shape.loop.header in other.loop.nodes
    }


def _entries(shape: LoopShape) -> tuple[Edge | None, ...]:
    """The edges by which the loop is entered; ``None`` is the call of the analysed function."""
    return (*shape.entry_edges, None) if shape.loop.header == 0 else shape.entry_edges
