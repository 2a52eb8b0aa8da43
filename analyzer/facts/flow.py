"""What infeasible, flow, argument, recursion and call facts, and lemmas, come to: constraints, claims, assumptions.

Words: flow fact, linear constraint, assumption (docs/explanation/glossary.md).

*Soundness:* a place is infeasible only where a whole block is: what else shares its block is executed all the same. The
line table decides which block a point is in.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from wcet_probe.analyzer.facts.binding import Analysed, check_place, compare_hash, is_analysed
from wcet_probe.analyzer.facts.control import other_assumptions
from wcet_probe.analyzer.facts.expressions import evaluate
from wcet_probe.analyzer.facts.language import Facts, FlowFact, FlowTerm, Place
from wcet_probe.analyzer.facts.never_executed import claims_of_cuts
from wcet_probe.analyzer.facts.outcomes import UnknownOutcomeError, executions_where_true, follow_each_other
from wcet_probe.analyzer.facts.restrictions import (
    Restricted,
    Unexpanded,
    only_call,
    require_known_callers,
    restrictions,
)
from wcet_probe.analyzer.facts.source_executions import SourceExecutions, UncountedError, counted_loops, said_of_loops
from wcet_probe.analyzer.facts.source_index import SourceIndex
from wcet_probe.analyzer.facts.source_match import match_loops
from wcet_probe.analyzer.facts.source_parts import SourceLoop
from wcet_probe.analyzer.facts.source_tests import unknown_names
from wcet_probe.analyzer.graph.supergraph import Context, Edge
from wcet_probe.analyzer.ipet.flow_problem import LinearConstraint
from wcet_probe.analyzer.pcode.operations import LiftedInstruction
from wcet_probe.analyzer.pcode.skipping import may_be_skipped
from wcet_probe.analyzer.values.properties.loop_shapes import loop_shapes
from wcet_probe.analyzer.values.result import Values
from wcet_probe.build.compilers import unshared_functions
from wcet_probe.build.image import variable_locations
from wcet_probe.errors import UsageError
from wcet_probe.model.proof import Assumption, FlowClaim, IdleFact
from wcet_probe.model.target import MemoryRange

_SPLIT_OFF = re.compile(r".\.(?:part|cold)\b")
"""In the name of what a compiler has split off a function."""


@dataclass(frozen=True, slots=True)
class AssertedFlow:
    """Constraints of the flow problem, claims for runs, expressions of facts, assumptions, facts without effect."""

    constraints: tuple[LinearConstraint, ...]
    claims: tuple[FlowClaim, ...]
    expressions: tuple[str, ...]
    assumptions: tuple[Assumption, ...]
    idle: tuple[IdleFact, ...] = ()


def flow_facts(
    facts: Facts,
    entry: str,
    parameters: Mapping[str, int],
    values: Values,
    *,
    index: SourceIndex,
    analysed: Analysed,
    unexpanded: Unexpanded | None,
) -> AssertedFlow:
    """What all facts but those of loops say of the analysed code; None for ``unexpanded`` where it is a callee.

    Raises:
        UsageError: a fact speaks of nothing, its function has changed, or its expression has no value.

    *Soundness:* as said of the module.
    """
    code = _Code(
        values,
        index,
        analysed,
        match_loops(analysed.sites, index) if facts.flows else {},
        *said_of_loops(facts, parameters, index),
        [],
        unexpanded or Unexpanded(),
        unshared_functions(analysed.image) if facts.flows or facts.infeasible else frozenset(),
    )
    cut = [_asserted((), claim, claim.where, claim.statement) for claim in claims_of_cuts(facts, analysed)]
    asserted = [*cut, *_infeasible(facts, code), *_flows(facts, parameters, code)]
    sums = [each for each in asserted if isinstance(each, _Asserted)]
    # Sums are of one call of the entry: of a single call of a callee they say nothing.
    pragmas = list(restrictions(values, index, analysed, unexpanded)) if unexpanded is not None else []
    restricted = [each for each in pragmas if isinstance(each, Restricted)]
    everything: list[_Asserted | Restricted] = [*sums, *restricted]
    return AssertedFlow(
        constraints=tuple(constraint for each in everything for constraint in each.constraints),
        claims=(
            *(each.claim for each in sums if each.claim is not None),
            *(claim for each in restricted for claim in each.claims),
        ),
        expressions=tuple(dict.fromkeys(str(fact.maximum) for fact in facts.flows)),
        assumptions=(
            *(each.assumption for each in everything),
            *counted_loops(facts, index, code.asked),
            *other_assumptions(facts, entry, analysed),
        ),
        idle=tuple(each for each in (*asserted, *pragmas) if isinstance(each, IdleFact)),
    )


@dataclass(frozen=True, slots=True)
class _Asserted:
    """One fact: constraints that it comes to, what runs are held against, if they can be, and what is assumed."""

    constraints: tuple[LinearConstraint, ...]
    claim: FlowClaim | None
    assumption: Assumption


_NO_CALL = "the function is inlined wherever it is called, so that none of its calls can be told; leave out per"
_SHARED = "GCC may have made the code of several places one, with the line of one of them"
_CHECKED = "every emulated run holds the sum of each call against it"


def _asserted(
    constraints: Sequence[LinearConstraint], claim: FlowClaim | None, where: str, statement: str
) -> _Asserted:
    check = _CHECKED if claim else "no run can check it: its blocks are executed outside of these calls too"
    return _Asserted(tuple(constraints), claim, Assumption(f"fact {where}", statement, check))


def _infeasible(facts: Facts, code: _Code) -> Iterator[_Asserted | IdleFact]:
    values, index, analysed = code.values, code.index, code.analysed
    for number, fact in enumerate(facts.infeasible):
        ranges = check_place(fact.where, fact.place, fact.sha256, index, analysed)
        whole = [i for i in sorted(values.states) if all(_inside(address, ranges) for address in _addresses(values, i))]
        own = whole if fact.place.offset is not None else [i for i in whole if _is_of_one_place(code, fact.place, i)]
        skipped = _predicated(code, ranges, {_start(values, i) for i in own})
        never = [i for i in own if _start(values, i) not in skipped]
        if never:
            constraint = LinearConstraint(f"infeasible:{number}", tuple((point, 1) for point in never))
            statement = f"{fact.place} is never executed: {fact.because}"
            blocks = tuple((address, 1) for address in sorted({_start(values, point) for point in never}))
            yield _asserted([constraint], FlowClaim(fact.where, statement, blocks, (), 0), fact.where, statement)
        elif own:
            yield IdleFact(fact.where, f"code of {fact.place} is predicated, in a block that is executed without it")
        elif whole:
            yield IdleFact(fact.where, f"{_SHARED}; name {fact.place} by an offset")
        elif any(_inside(address, ranges) for i in values.states for address in _addresses(values, i)):
            yield IdleFact(fact.where, f"no whole block is of {fact.place} alone; name a statement that has one")
        elif not ranges and is_analysed(fact.place, index, analysed):
            yield IdleFact(fact.where, f"{fact.place} has no code of its own; name a statement that has")


# ----------------------------------------------------------------------------------------------------------------- sums


_SourcePlace = tuple[str, int, SourceLoop | None]
"""A file and a line of it, and the loop that is meant by its body."""


@dataclass(frozen=True, slots=True)
class _Sum:
    """Weights of binary blocks and of the entries of binary loops, each by its address.

    ``by_source`` is what the source says of terms with a negative weight: the most that they take off the sum, in all.
    """

    blocks: Mapping[int, int]
    entries: Mapping[int, int]
    by_source: Mapping[FlowTerm, int]

    @property
    def taken_off(self) -> int:
        return sum(self.by_source.values())


@dataclass(frozen=True, slots=True)
class _Code:
    """The analysed code and its sources.

    ``matches`` is the source loop of each binary loop, by header address; ``most`` and ``totals`` are what facts say of
    source loops (`SourceExecutions`), ``asked`` those of which sums have asked it, ``unexpanded`` what is not in the
    graph, and ``unshared`` the functions of which a piece of code is of one place of the source.
    """

    values: Values
    index: SourceIndex
    analysed: Analysed
    matches: Mapping[int, SourceLoop | None]
    most: Mapping[SourceLoop, int]
    totals: Mapping[SourceLoop, int]
    asked: list[SourceLoop]
    unexpanded: Unexpanded
    unshared: frozenset[int]


class _UncountableError(UsageError):
    """A point cannot be counted in this binary; ``why`` is that in short."""

    def __init__(self, message: str, why: str) -> None:
        super().__init__(message)
        self.why = why


def _flows(facts: Facts, parameters: Mapping[str, int], code: _Code) -> Iterator[_Asserted | IdleFact]:
    values, index, analysed = code.values, code.index, code.analysed
    for number, fact in enumerate(facts.flows):
        calls = _calls(values, fact) if fact.for_each_call else [()]
        try:
            found = _sum(code, fact, parameters, is_counted=bool(calls))
        except _UncountableError as error:
            if fact.optional:
                yield IdleFact(fact.where, error.why)
                continue
            raise
        if not found.blocks or not calls:
            if all(any(is_analysed(each, index, analysed) for each in places) for places in _places(fact)):
                without = f"nothing that adds to its sum has code of its own; {_SHARED}"
                yield IdleFact(fact.where, _NO_CALL if found.blocks else without)
            continue
        most = evaluate(fact.maximum, parameters) + found.taken_off
        names = " + ".join(str(term) for term in fact.terms)
        scope = f"in each call of {fact.place.function}" if fact.for_each_call else f"for {fact.place.function}"
        statement = f"{scope}, {names} <= {fact.maximum}: {fact.because}"
        for term, number_of in found.by_source.items():
            statement += f"; {term} takes off {number_of:,} at most, by the source and what is said of its loops"
        constraints = [_limit(f"flow:{number}.{row}", values, found, most, call) for row, call in enumerate(calls)]
        yield _asserted(
            constraints, _claim(values, fact, found, calls, most=most, statement=statement), fact.where, statement
        )


def _places(fact: FlowFact) -> tuple[tuple[Place, ...], ...]:
    """The function that the fact is of, and those that it sums over."""
    return (fact.place,), tuple(term.place for term in fact.terms)


def _calls(values: Values, fact: FlowFact) -> list[tuple[int, ...]]:
    """The points of the first block of the fact's function, by context."""
    grouped: dict[Context, list[int]] = {}
    for index in sorted(values.states):
        point = values.graph.points[index]
        if point.function.name == fact.place.function and point.block.address == point.function.address:
            grouped.setdefault(point.context, []).append(index)
    return [tuple(group) for group in grouped.values()]


def _limit(name: str, values: Values, found: _Sum, most: int, call: tuple[int, ...]) -> LinearConstraint:
    """The sum in the whole run, or in the calls that begin with the points ``call``."""
    inside = _points_in(values, call)
    points = {i: weight for i in inside if (weight := found.blocks.get(_start(values, i), 0))}
    edges: dict[Edge | None, int] = {}
    for shape in loop_shapes(values):
        weight = found.entries.get(_start(values, shape.loop.header), 0)
        if weight and shape.loop.header in inside:
            entering = (*shape.entry_edges, None) if shape.loop.header == 0 else shape.entry_edges
            edges |= dict.fromkeys(entering, weight)
    points = {i: weight for i, weight in _added(points, dict.fromkeys(call, -most)).items() if weight}
    return LinearConstraint(name, tuple(points.items()), tuple(edges.items()), 0 if call else most)


def _points_in(values: Values, call: tuple[int, ...]) -> set[int]:
    """The points of a call and of what it calls: their contexts begin with that of the call."""
    if not call:
        return set(values.states)
    points, context = values.graph.points, values.graph.points[call[0]].context
    return {i for i in values.states if points[i].context[: len(context)] == context}


def _claim(
    values: Values, fact: FlowFact, found: _Sum, calls: Sequence[tuple[int, ...]], *, most: int, statement: str
) -> FlowClaim | None:
    """What runs are held against; None where blocks of the calls are executed in others too: runs count them all."""
    inside: set[int] = set().union(*(_points_in(values, call) for call in calls))
    own = {_start(values, i) for i in inside} & found.blocks.keys()
    if any(_start(values, i) in own for i in values.states if i not in inside):
        return None
    firsts = {_start(values, point): -most for call in calls for point in call}
    weights = _added({address: found.blocks[address] for address in own}, firsts)
    entries = ((f"{address:#010x}", weight) for address, weight in sorted(found.entries.items()) if address in own)
    constant = 0 if fact.for_each_call else most
    return FlowClaim(fact.where, statement, tuple(sorted(weights.items())), tuple(entries), constant)


def _sum(code: _Code, fact: FlowFact, parameters: Mapping[str, int], *, is_counted: bool) -> _Sum:
    """What a flow fact sums over, and if ``is_counted`` what takes off; nothing where none of it is analysed.

    *Soundness:* a loop's body runs at least as often as its header less its entries; with no test in front of it, as
    often as the header, unless several loops have become of it: one may be entered in an iteration that began in
    another. A block in which a point is executed on conditions is executed at least as often: it is left out. Of what
    takes off, the binary says nothing (`_by_source`).
    """
    blocks: dict[int, int] = {}
    entries: dict[int, int] = {}
    less: dict[FlowTerm, tuple[int, _SourcePlace]] = {}
    for term in fact.terms:
        weight = evaluate(term.weight, parameters)
        if weight < 0 and term.kind in {"branch", "then"}:
            raise UsageError(
                f"{fact.where}: {term} has a negative weight, and only what the source counts may; give one to a point "
                "or a loop instead."
            )
        if weight < 0:
            less[term] = weight, _source_place(code, fact, term)
            continue
        if term.kind != "loop":
            found = _executions(code, fact, term)
        else:
            source = _loop_of(code, fact, term)
            found = dict.fromkeys((address for address, loop in code.matches.items() if loop == source), 1)
            for address in found if source.test_first or len(found) > 1 else ():
                entries[address] = entries.get(address, 0) - weight
        for address, times in found.items():
            blocks[address] = blocks.get(address, 0) + weight * times
    blocks = {address: weight for address, weight in blocks.items() if weight}
    taking_off = less.items() if blocks and is_counted else ()
    by_source = {term: -weight * _by_source(code, fact, term, place) for term, (weight, place) in taking_off}
    return _Sum(blocks, {a: w for a, w in entries.items() if w}, by_source)


def _source_place(code: _Code, fact: FlowFact, term: FlowTerm) -> _SourcePlace:
    """The file and line of a term, and the loop that it is the body of."""
    place, index = term.place, code.index
    if term.kind == "loop":
        body = _loop_of(code, fact, term)
        return body.file, body.first_line, body
    check_place(fact.where, place, term.sha256, index, code.analysed)
    (point,) = (one for one in index.points(place.function, place.file) if one.name == place.name)
    return point.file, point.line, None


def _by_source(code: _Code, fact: FlowFact, term: FlowTerm, where: _SourcePlace) -> int:
    """How often a term with a negative weight is executed at most, in the entry's call or in each of the function's.

    *Soundness:* compilers leave out executions of any statement, in copies whose operands are constants, where another
    store follows, or altogether; so they are counted by the source, as of the pragma ``flowrestriction``.
    """
    index, (file, line, body) = code.index, where
    entry = fact.place.function if fact.for_each_call else code.values.graph.entry.name
    try:
        require_known_callers(code.values, index, code.analysed, code.unexpanded)
        counts = SourceExecutions(index, entry, code.most, code.totals)
        times = counts.at(file, line, body)
    except UncountedError as error:
        why = f"how often {term.place} is executed at most, which has a negative weight, is not clear: {error}"
        raise _UncountableError(f"{fact.where}: {why}; leave it out, or say optional = true.", why) from error
    code.asked.extend(counts.asked)
    return times


def _executions(code: _Code, fact: FlowFact, term: FlowTerm) -> Mapping[int, int]:
    """The blocks that count what is no loop, each with how often it counts."""
    if term.kind == "then":
        found = _outcomes(code, fact, term)
    else:
        blocks = _point_blocks(code, fact, term)
        ranges = check_place(fact.where, term.place, term.sha256, code.index, code.analysed)
        found = dict.fromkeys(blocks - _predicated(code, ranges, blocks), 1)
    shared = {_start(code.values, i) for i in code.values.states if not _is_of_one_place(code, term.place, i)}
    return {address: times for address, times in found.items() if address not in shared}


def _is_of_one_place(code: _Code, place: Place, point: int) -> bool:
    """Whether the block of ``point``, if its line is that of ``place``, is executed only where that is.

    *Soundness:* GCC makes one piece of code of several that are alike, with the line of one, and executes a store on
    all ways where another one would have been executed else; it does neither without optimisation. So of its code
    only a call counts that the sources have nowhere else (`only_call`).
    """
    start = _start(code.values, point)
    function = code.analysed.image.function_at(start)
    if function is not None and function.address & ~1 in code.unshared:
        return True
    return any(
        one.name == place.name and only_call(code.values, code.index, code.analysed, code.unexpanded, one) == start
        for one in code.index.points(place.function or "", place.file)
    )


def _loop_of(code: _Code, fact: FlowFact, term: FlowTerm) -> SourceLoop:
    place = term.place
    compare_hash(fact.where, place, term.sha256, code.index, code.analysed.image)
    sources = [each for each in code.index.loops(place.function, place.file) if each.label == place.name]
    if len(sources) != 1:
        number = len(sources) or "no"
        raise UsageError(
            f"{fact.where}: {place.function} has {number} loop {place.name!r}; label one so, or correct the name."
        )
    return sources[0]


def _point_blocks(code: _Code, fact: FlowFact, term: FlowTerm) -> set[int]:
    """The blocks that hold a point: one in each binary function, or copies of the test that it is; or all its branches.

    *Soundness:* what branches on the point's line tests its condition; of tests that do not follow each other, other
    than through a loop's header, each is a copy of the whole. What a compiler has split off a function is no copy, but
    may be the rest of one elsewhere: it is left out then.
    """
    values = code.values
    ranges = check_place(fact.where, term.place, term.sha256, code.index, code.analysed)
    points = [i for i in values.states if any(_inside(address, ranges) for address in _addresses(values, i))]
    if term.kind == "point" and len({_function(values, i) for i in points}) > 1:
        points = [i for i in points if not _SPLIT_OFF.search(_function(values, i))]
    tests = [i for i in points if _branches(values, i) and _inside(values.graph.points[i].block.last_address, ranges)]
    if term.kind == "branch":
        return {_start(values, i) for i in tests}
    found = {(_function(values, i), _start(values, i)) for i in points}
    if len({function for function, _ in found}) == len(found):
        return {address for _, address in found}
    if not tests or follow_each_other(values, tests, tests):
        raise _UncountableError(
            f"{fact.where}: point {term.place.name!r} has become several blocks; name a statement that stays one, "
            "or say optional = true.",
            "a point of it has become several blocks",
        )
    return {_start(values, i) for i in tests}


def _outcomes(code: _Code, fact: FlowFact, term: FlowTerm) -> Mapping[int, int]:
    """Weights of blocks that count how often the condition of the point's ``if`` holds, see `outcomes`.

    *Soundness:* where the compiler has made no branch of it, as of predicated code, it counts as nothing.
    """
    place, values, analysed = term.place, code.values, code.analysed
    ranges = check_place(fact.where, place, term.sha256, code.index, analysed)
    points = [one for one in code.index.points(place.function, place.file) if one.name == place.name]
    declared = code.index.function(place.function, place.file).variables
    if len(points) != 1 or points[0].test is None:
        raise UsageError(f"{fact.where}: {place} is no `if` with one comparison, alone on its line; name one that is.")
    functions = {one.name for source in code.index.files.values() for one in source.functions}
    unknown = unknown_names(points[0].test, {*declared, *functions}, code.index.macros)
    if unknown:
        raise UsageError(
            f"{fact.where}: {place} speaks of {', '.join(unknown)}, which may be a macro with branches of its own; "
            "name a condition of the function's variables and of functions in the sources."
        )
    test = points[0].test.of_variables({name for name in declared if declared.count(name) == 1})
    branches = [i for i in values.states if _branches(values, i) and _decides(code, i, ranges)]
    variables = variable_locations(analysed.image, analysed.functions) if branches else ()
    try:
        return executions_where_true(values, test, place.function, branches, variables)
    except UnknownOutcomeError as error:
        why = f"{place} cannot be counted: {error}"
        raise _UncountableError(f"{fact.where}: {why}; name another place, or say optional = true.", why) from error


def _decides(code: _Code, point: int, ranges: Sequence[MemoryRange]) -> bool:
    """Whether the branch at the end of a block is of the code ``ranges``, or of no line and behind such code."""
    block = code.values.graph.points[point].block
    if _inside(block.last_address, ranges):
        return True
    is_behind = any(_inside(address, ranges) for address in _addresses(code.values, point))
    return is_behind and code.analysed.image.lines.find(block.last_address) is None


def _predicated(code: _Code, ranges: Sequence[MemoryRange], blocks: set[int]) -> set[int]:
    """Those of ``blocks`` that may be executed without the place of ``ranges``: its code there is predicated.

    *Soundness:* but for conditions that the place itself has tested there before.
    """
    found = set[int]()
    for i in code.values.states:
        block = code.values.graph.points[i].block
        own = (one for one in block.instructions if _inside(one.address, ranges))
        deciding = next((one for one in own if may_be_skipped(one) or _is_test(one)), None)
        if block.address in blocks and deciding is not None and may_be_skipped(deciding):
            found.add(block.address)
    return found


def _is_test(instruction: LiftedInstruction) -> bool:
    """Whether the instruction sets flags, which on ARM are registers of a byte."""
    outputs = (op.output for op in instruction.ops)
    return any(output and output.space == "register" and output.size_bytes == 1 for output in outputs)


def _branches(values: Values, point: int) -> bool:
    block = values.graph.points[point].block
    return block.falls and bool(block.jumps)


def _added(one: Mapping[int, int], other: Mapping[int, int]) -> Mapping[int, int]:
    return {key: one.get(key, 0) + other.get(key, 0) for key in (*one, *(key for key in other if key not in one))}


def _function(values: Values, point: int) -> str:
    return values.graph.points[point].function.name


def _start(values: Values, point: int) -> int:
    return values.graph.points[point].block.address


def _addresses(values: Values, index: int) -> list[int]:
    return [instruction.address for instruction in values.graph.points[index].block.instructions]


def _inside(address: int, ranges: Sequence[MemoryRange]) -> bool:
    return any(address in code for code in ranges)
