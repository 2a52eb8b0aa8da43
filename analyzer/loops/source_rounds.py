"""How many iterations of a source loop a round of a binary loop is, by the source variable that counts them.

A compiler that unrolls or splits a loop keeps, in the debug information, where the loop's variables are. A variable
that an iteration changes once at most, by ``c`` (`facts.source_loops`), counts iterations: where the registers that
hold it change by ``k * c`` in each round of a binary loop, a round is ``k`` iterations at least. So a count of the
source loop follows it: to the header of an unrolled loop, and to the rounds of all loops that one has become.

Words: induction variable, loop bound, assumption (docs/explanation/glossary.md).

*Soundness:* what the registers do is proved; that they hold the variable is the compiler's word, and an assumption; see
`source_variables`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from wcet_probe.analyzer.facts.binding import BoundFact
from wcet_probe.analyzer.facts.source_index import SourceIndex
from wcet_probe.analyzer.facts.source_parts import SourceCounter, SourceLoop
from wcet_probe.analyzer.graph.supergraph import Context, Edge, Point
from wcet_probe.analyzer.ipet.flow_problem import LinearConstraint
from wcet_probe.analyzer.loops.bounds import BoundedLoops
from wcet_probe.analyzer.loops.source_variables import Variables
from wcet_probe.analyzer.values.properties.loop_shapes import LoopShape, loop_shapes
from wcet_probe.analyzer.values.result import Values
from wcet_probe.build.image import variable_locations
from wcet_probe.model.image import Image, VariableLocation
from wcet_probe.model.proof import Assumption, FlowClaim

_REPEATED = "every emulated run counts the loop's iterations"
_UNCHECKED = "no run can check it; the loops' own counts are checked"


@dataclass(frozen=True, slots=True)
class SourceRounds:
    """Facts as they hold of loops that the compiler changed, limits of several loops together, and what is assumed.

    Attributes:
        facts: of each loop, a count that is divided by the iterations of a round.
        constraints, claims: of all loops that a source loop has become, for the flow problem and for runs.
        assumptions: the first ones are of ``facts``, the others of ``constraints``.
        loose: by where a fact is, in words, that the code of its loop looks unrolled and nothing shows how often.
    """

    facts: tuple[BoundFact, ...]
    constraints: tuple[LinearConstraint, ...] = ()
    claims: tuple[FlowClaim, ...] = ()
    assumptions: tuple[Assumption, ...] = ()
    loose: Mapping[str, str] = field(default_factory=dict)


def source_rounds(image: Image, values: Values, facts: Sequence[BoundFact], index: SourceIndex) -> SourceRounds:
    """``facts`` where each count of a source loop is divided by the iterations that a round of its binary loop is.

    Raises:
        ImageError: damaged debug information.

    *Soundness:* as said of the module. A round ends where the header is executed again; of the last one, which may end
    before, nothing is said.
    """
    counted = [fact for fact in facts if fact.source is not None and fact.max_header is not None]
    if not counted:
        return SourceRounds(tuple(facts))
    variables = Variables(values, _locations(image, values, counted), image.lines)
    shapes = loop_shapes(values)
    found: list[BoundFact] = []
    assumed: dict[str, Assumption] = {}
    loose: dict[str, str] = {}
    for fact in facts:
        rounds = _rounds(variables, shapes, fact) if fact in counted else None
        if rounds is None:
            found.append(fact)
            if fact in counted and (copies := _copies(variables, shapes, fact)) > 1:
                place = image.location(fact.header_address)
                loose[fact.where] = f"the loop at {place} may be unrolled: then this is up to {copies} times too much"
            continue
        found.append(_divided(fact, *rounds))
        iterations, counter = rounds
        text = (
            f"each round of the loop at {image.location(fact.header_address)} is {iterations} iterations of "
            f"{fact.source}: the debug information says which registers hold {counter.name}, and each round changes "
            "them so"
        )
        assumed[text] = Assumption(f"rounds {fact.where}", text, _REPEATED)
    together = list(_together(image, variables, shapes, counted, index))
    return SourceRounds(
        facts=tuple(found),
        constraints=tuple(constraint for one in together for constraint in one.constraints),
        claims=tuple(one.claim for one in together if one.claim is not None),
        assumptions=(*assumed.values(), *(one.assumption for one in together)),
        loose=loose,
    )


def _locations(image: Image, values: Values, facts: Sequence[BoundFact]) -> Sequence[VariableLocation]:
    """Where the variables of the analysed functions are, if one of ``facts`` is about a loop with a counter."""
    if not any(fact.source.counters for fact in facts if fact.source):
        return ()
    functions = {values.graph.points[index].function.name for index in values.states}
    held = {function.name for index in values.states if (function := image.function_at(_start(values, index)))}
    return variable_locations(image, functions | held)


def _start(values: Values, index: int) -> int:
    return values.graph.points[index].block.address


# --------------------------------------------------------------------------------------------------------- single loops


def _divided(fact: BoundFact, iterations: int, counter: SourceCounter) -> BoundFact:
    """What ``fact`` says of a loop each round of which is so many iterations.

    Between two executions of the header so many changes of the counter lie, and there are no more of them than
    executions of the body, and one more where the test changes it.
    """
    assert fact.max_header is not None  # noqa: S101  (asked before)
    most = fact.max_header - fact.offset
    expression = f"({fact.max_expression})" if not counter.in_test else f"({fact.max_expression} + 1)"
    return replace(
        fact,
        max_header=(most + counter.in_test) // iterations + 1,
        max_expression=f"{expression} // {iterations}",
        offset=1,
    )


def _rounds(variables: Variables, shapes: Sequence[LoopShape], fact: BoundFact) -> tuple[int, SourceCounter] | None:
    """How many iterations a round of the binary loop of ``fact`` is at least, if more than one; and what says so."""
    assert fact.source is not None  # noqa: S101  (asked before)
    own = [shape for shape in shapes if _start(variables.values, shape.loop.header) == fact.header_address]
    found: list[tuple[int, SourceCounter]] = []
    for counter in fact.source.counters:
        each = [variables.iterations(shape, fact.source, counter) for shape in own]
        if each and all(each):
            found.append((min(min(steps) for steps in each), counter))
    best = max(found, key=lambda one: (one[0], one[1].name), default=(1, None))
    return (best[0], best[1]) if best[0] > 1 and best[1] is not None else None


def _copies(variables: Variables, shapes: Sequence[LoopShape], fact: BoundFact) -> int:
    """How often the body of the loop of ``fact`` stands in the code, so far as the line table tells."""
    own = [shape for shape in shapes if _start(variables.values, shape.loop.header) == fact.header_address]
    return max((variables.copies(shape, fact.source) for shape in own), default=1) if fact.source else 1


# -------------------------------------------------------------------------------------------------- loops side by side


@dataclass(frozen=True, slots=True)
class _Together:
    """What holds of several loops together, in each context; what runs are held against; what is assumed."""

    constraints: tuple[LinearConstraint, ...]
    claim: FlowClaim | None
    assumption: Assumption


@dataclass(frozen=True, slots=True)
class _Part:
    """A binary loop that is a part of a source loop, and how many iterations a round of it is."""

    shape: LoopShape
    iterations: int


def _together(
    image: Image, variables: Variables, shapes: Sequence[LoopShape], facts: Sequence[BoundFact], index: SourceIndex
) -> Iterator[_Together]:
    """For each source loop that has become several loops side by side, the iterations of all their rounds.

    *Soundness:* rounds of different loops are different iterations. A loop that is in no other one is entered once in a
    call of its function. Any other is entered once in an iteration of the loop around it; of these there are no more
    than rounds of that one's binary loop, if each moves its counter by one, and two for the ends.
    """
    by_source: dict[SourceLoop, list[BoundFact]] = {}
    for fact in facts:
        if fact.source is not None:
            by_source.setdefault(fact.source, []).append(fact)
    number = 0
    for source, own in by_source.items():
        headers = {fact.header_address for fact in own}
        copies = [shape for shape in shapes if _start(variables.values, shape.loop.header) in headers]
        most = min(fact.max_header - fact.offset for fact in own if fact.max_header is not None)
        for counter in source.counters if len(headers) > 1 else ():
            by_context = _parts(variables, shapes, copies, source, counter, index)
            if by_context:
                limits = [_limit(variables, parts, outer, most + counter.in_test) for outer, parts in by_context]
                constraints = [replace(one, name=f"rounds:{number + row}") for row, one in enumerate(limits)]
                number += len(constraints)
                yield _stated(
                    image, variables, shapes, own[0], counter, [parts for _, parts in by_context], constraints
                )
                break


def _parts(  # noqa: PLR0917  as of `_part`
    variables: Variables,
    shapes: Sequence[LoopShape],
    copies: Sequence[LoopShape],
    source: SourceLoop,
    counter: SourceCounter,
    index: SourceIndex,
) -> list[tuple[int | None, list[_Part]]]:
    """The binary loops of ``source`` that stand side by side, by context, with the header of the loop around them.

    *Soundness:* all that are known are of one copy of the function. Loops into which a compiler has distributed the
    statements of one are no such parts: they store on other lines, or begin with the counter of the other one. So a
    loop of which nothing is known is a part where none of them stores, as one that does not is not distributed; its
    round is one iteration at least, as the count of each loop alone has it.
    """
    known = {shape.loop.header: _part(variables, shapes, shape, source, counter, index) for shape in copies}
    found = [one for one in known.values() if one is not None]
    if len({scope for _, scope, _ in found}) != 1 or max(part.iterations for part, _, _ in found) == 1:
        return []
    points = variables.values.graph.points
    result: dict[tuple[Context, int | None], list[_Part]] = {}
    for part, _, outer in found:
        result.setdefault((points[part.shape.loop.header].context, outer), []).append(part)
    if not any(variables.stored_lines(shape) for shape in copies):
        for (context, _), parts in result.items():
            parts += [
                _Part(shape, 1)
                for shape in copies
                if known[shape.loop.header] is None and points[shape.loop.header].context == context
                if _parent(shape) == _parent(parts[0].shape)
            ]
    groups = [(outer, parts) for (_, outer), parts in result.items() if len(parts) > 1]
    return [] if any(_is_distributed(variables, parts, source, counter) for _, parts in groups) else groups


def _parent(shape: LoopShape) -> int | None:
    return shape.parent.header if shape.parent is not None else None


def _is_distributed(variables: Variables, parts: Sequence[_Part], source: SourceLoop, counter: SourceCounter) -> bool:
    """Whether rounds of several of ``parts`` may be of one iteration."""
    shapes = [part.shape for part in parts]
    return len({variables.stored_lines(shape) for shape in shapes}) > 1 or any(
        variables.begins_again(one, other, source, counter) for one in shapes for other in shapes if one != other
    )


def _part(  # noqa: PLR0917  two loops, and what is known of both
    variables: Variables,
    shapes: Sequence[LoopShape],
    shape: LoopShape,
    source: SourceLoop,
    counter: SourceCounter,
    index: SourceIndex,
) -> tuple[_Part, int, int | None] | None:
    """``shape`` as a part of ``source``, in which copy of the function, and the header of the loop around; or None."""
    header, points = shape.loop.header, variables.values.graph.points
    location, steps = variables.location(source, counter, header), variables.iterations(shape, source, counter)
    if location is None or not steps:
        return None
    part, outer = _Part(shape, min(steps)), _loop_around(source, index)
    parent = next((one for one in shapes if shape.parent and one.loop.header == shape.parent.header), None)
    if parent is not None and points[parent.loop.header].context != points[header].context:
        parent = None
    if outer is None and parent is None:
        return (part, location.scope, None) if points[header].function.name == source.function else None
    if outer is None or parent is None:
        return None
    for one in outer.counters:
        place = variables.location(outer, one, parent.loop.header)
        if place and place.scope == location.scope and variables.iterations(parent, outer, one) == {1}:
            return part, location.scope, parent.loop.header
    return None


def _loop_around(source: SourceLoop, index: SourceIndex) -> SourceLoop | None:
    """The next source loop around ``source`` in its function."""
    around = [
        loop
        for loop in index.loops(source.function, source.file)
        if loop.number != source.number and loop.first_line <= source.first_line and source.last_line <= loop.last_line
    ]
    return min(around, key=lambda loop: loop.last_line - loop.first_line, default=None)


def _limit(variables: Variables, parts: Sequence[_Part], outer: int | None, most: int) -> LinearConstraint:
    """The sum of one context, of which ``outer`` is the header of the loop around in it."""
    edges: dict[Edge | None, int] = {edge: part.iterations for part in parts for edge in part.shape.back_edges}
    values = variables.values
    if outer is not None:
        shape = next(one for one in loop_shapes(values) if one.loop.header == outer)
        edges |= dict.fromkeys(shape.entry_edges, -most)
        if outer == 0:
            edges[None] = -most
        return LinearConstraint("", points=((outer, -most),), edges=tuple(edges.items()))
    point = values.graph.points[parts[0].shape.loop.header]
    firsts = _first_points(values, point)
    return LinearConstraint("", points=tuple((index, -most) for index in firsts), edges=tuple(edges.items()))


def _first_points(values: Values, point: Point) -> list[int]:
    """The points of the first block of the function that ``point`` is in, in its context."""
    points = values.graph.points
    return [
        index
        for index in sorted(values.states)
        if points[index].context == point.context and points[index].block.address == point.function.address
    ]


def _stated(  # noqa: PLR0917  a limit with all that words and runs need
    image: Image,
    variables: Variables,
    shapes: Sequence[LoopShape],
    fact: BoundFact,
    counter: SourceCounter,
    by_context: Sequence[Sequence[_Part]],
    constraints: Sequence[LinearConstraint],
) -> _Together:
    """The limits in words, and as a sum over addresses where each context has the same."""
    values = variables.values
    parts = by_context[0]
    places = ", ".join(sorted({image.location(_start(values, part.shape.loop.header)) for part in parts}))
    text = (
        f"the iterations of all rounds of the loops at {places} together are iterations of one loop, {fact.source}: "
        f"the debug information says which registers hold {counter.name}, and each round changes them so"
    )
    weights = {_start(values, part.shape.loop.header): part.iterations for part in parts}
    alike = [
        {_start(values, part.shape.loop.header): part.iterations for part in each} == weights for each in by_context
    ]
    copies = [shape for shape in shapes if _start(values, shape.loop.header) in weights]
    claim = None
    if all(alike) and len(copies) == sum(map(len, by_context)):
        blocks, entries = dict(weights), {address: -weight for address, weight in weights.items()}
        for index, weight in constraints[0].points:
            blocks[_start(values, index)] = blocks.get(_start(values, index), 0) + weight
            if any(shape.loop.header == index for shape in shapes) and len(constraints[0].points) == 1:
                entries |= _outer_entry(values, constraints[0], index, weight)
        claim = FlowClaim(
            fact.where,
            text,
            tuple(sorted(blocks.items())),
            tuple((f"{address:#010x}", weight) for address, weight in sorted(entries.items())),
            0,
        )
    check = "every emulated run holds the sum of each call against it" if claim else _UNCHECKED
    return _Together(tuple(constraints), claim, Assumption(f"rounds {fact.where}", text, check))


def _outer_entry(values: Values, constraint: LinearConstraint, header: int, weight: int) -> Mapping[int, int]:
    """The entries of the loop around, if the limit counts them."""
    counted = any(edge is not None and edge.target == header and factor < 0 for edge, factor in constraint.edges)
    return {_start(values, header): weight} if counted or (None, weight) in constraint.edges else {}


def with_rounds(loops: BoundedLoops, rounds: SourceRounds) -> BoundedLoops:
    """``loops`` with the limits of ``rounds``, and with what is assumed of the facts that are used.

    *Soundness:* as said of the module.
    """
    used = {loop.where for loop in loops.loops if " // " in loop.expression}
    used |= {claim.where for claim in rounds.claims}
    own = {f"rounds {where}" for where in used}
    told = (
        replace(one, statement=f"{one.statement}; {words}")
        if (words := rounds.loose.get(one.id.partition(" ")[2]))
        else one
        for one in loops.assumptions
    )
    return replace(
        loops,
        constraints=(*loops.constraints, *rounds.constraints),
        flow_claims=(*loops.flow_claims, *rounds.claims),
        assumptions=(*told, *(o for o in rounds.assumptions if o.check == _UNCHECKED or o.id in own)),
    )
