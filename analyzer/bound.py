"""The whole proof: graph, values, loop bounds, flow facts, IPET, certificate.

*Soundness:* the bound holds for every execution of the entry function that meets the assumptions; each of them is an
entry of ``Bound.assumptions``. What cannot be resolved is an error that names it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import NamedTuple

from wcet_probe.analyzer.assumptions import assumptions
from wcet_probe.analyzer.call_summaries import (
    CallSummaries,
    CallSummary,
    every_access_misses,
    every_fetch_misses,
    has_summaries,
    may_summarise,
    merged_claims,
    merged_loops,
    open_loops,
)
from wcet_probe.analyzer.dcache.invariants import access_ranges, idle_facts, register_ranges
from wcet_probe.analyzer.dcache.misses import DataMisses, data_misses
from wcet_probe.analyzer.facts.binding import Analysed, BoundFact, bound_facts, parameter_values
from wcet_probe.analyzer.facts.control import argument_ranges, asserted_targets, recursion_depths
from wcet_probe.analyzer.facts.flow import AssertedFlow, flow_facts
from wcet_probe.analyzer.facts.language import Facts
from wcet_probe.analyzer.facts.memory import (
    asserted_pointers,
    pointer_facts,
    word_claims,
    word_ranges,
)
from wcet_probe.analyzer.facts.source_match import LoopSite, SourceIndex, index_sources
from wcet_probe.analyzer.graph.expansion import FEW, MOST_EXPANDED
from wcet_probe.analyzer.graph.returning import function_from
from wcet_probe.analyzer.graph.supergraph import EXIT, Context, Edge, Point, Supergraph, build_supergraph, reducible
from wcet_probe.analyzer.icache.fetches import FetchMisses, fetch_misses
from wcet_probe.analyzer.ipet.annotated import CountedMisses, cache_annotations
from wcet_probe.analyzer.ipet.certificate import certificate
from wcet_probe.analyzer.ipet.checkable import checkable, flow_graph
from wcet_probe.analyzer.ipet.costs import Costs, block_cycles, check_chargeable, cost_table, fetch_cycles, taken_cycles
from wcet_probe.analyzer.ipet.flow_problem import (
    UNITS,
    LinearConstraint,
    Subject,
    Unit,
    edge_name,
    flow_problem,
    point_name,
)
from wcet_probe.analyzer.ipet.flow_system import (
    ENTER,
    AuxiliaryVariable,
    FlowProblem,
    Solution,
    flow_system,
    leave,
    solve,
)
from wcet_probe.analyzer.loops.bounds import BoundedLoops, analysed_code, bound_loops, no_bound
from wcet_probe.analyzer.loops.induction import analyze_with_counters
from wcet_probe.analyzer.loops.infeasible_pairs import InfeasiblePair, infeasible_edge_pairs
from wcet_probe.analyzer.pcode.lift import Lifter, code_reader
from wcet_probe.analyzer.values.analysis import Values, plain_call
from wcet_probe.analyzer.values.call_effects import CallKey, UnsummarisedError, effect_of
from wcet_probe.analyzer.values.dead_ends import returning_part
from wcet_probe.analyzer.values.loop_shapes import loop_shapes
from wcet_probe.analyzer.values.recursion import deeper
from wcet_probe.analyzer.values.stack_alignment import STACK_ALIGNMENT_BYTES
from wcet_probe.analyzer.values.trace_partitioning import partitioned, pointer_paths
from wcet_probe.analyzer.values.unknown_targets import check_resolved
from wcet_probe.build.image import require_symbol
from wcet_probe.certificate.coverage import Code
from wcet_probe.certificate.machine import Place
from wcet_probe.certificate.numbers import Value, number
from wcet_probe.errors import AnalysisError, UsageError
from wcet_probe.model.image import Image, Symbol
from wcet_probe.model.instruction import Instruction, InstructionCost
from wcet_probe.model.proof import (
    Assumption,
    Bound,
    FlowGraph,
    GraphBlock,
    GraphEdge,
    PathBlock,
    TypeBound,
)
from wcet_probe.model.target import Isa, Target


@dataclass(frozen=True, slots=True)
class BoundRequest:
    """What is to be proved.

    Attributes:
        image: the binary.
        target: the core.
        instructions: the image's code, decoded, with ``costs`` of each.
        entry: name of the analysed function.
        facts: flow facts about it.
        sources: texts of its source files by name, as far as they are known.
        parameters: values of the parameters that flow facts speak of.
        summaries: whether calls need not be expanded where the graph would be too large. What is said of points,
            accesses and registers is then only said of what is expanded, and no run can be held against it.
    """

    image: Image
    target: Target
    instructions: Sequence[Instruction]
    costs: Sequence[InstructionCost]
    entry: str
    facts: Facts
    sources: Mapping[str, str]
    parameters: Mapping[str, int]
    summaries: bool = False


def prove(request: BoundRequest, progress: Callable[[str], None] = lambda _: None) -> Bound:
    """Prove an upper bound of the WCET of ``request.entry``; ``progress`` is told in words what is being done.

    Raises:
        AnalysisError: no bound can be proved; the message names what stands in the way.
        UsageError: there is no such function, or a flow fact is wrong.

    *Soundness:* as said of the module.
    """
    return prove_prepared(prepare(request, progress), progress)


def prove_prepared(prepared: Prepared, progress: Callable[[str], None] = lambda _: None) -> Bound:
    """As `prove`, of what is prepared; its accesses are in the order of the points and of the values' accesses.

    Raises:
        AnalysisError, UsageError: as `prove`.

    *Soundness:* as said of the module.
    """
    request = prepared.request
    progress("solving the flow problem")
    stage = prepared.bounded(request.parameters)
    instructions, cycles = stage.solved("instructions"), stage.solved("cycles")
    values = prepared.values
    accesses = tuple(access_ranges(values, prepared.data.lines))
    summaries = prepared.calls.of(values)
    callees = tuple(summaries.values())
    points = [values.graph.points[index] for index in sorted(values.states)]
    return Bound(
        entry=request.entry,
        parameters=stage.parameters,
        instructions=instructions.solution.certified,
        cycles=cycles.solution.certified,
        blocks=len(points),
        loops=merged_loops((*(loop for callee in callees for loop in callee.loops), *stage.loops.loops)),
        assumptions=_all_assumptions(stage, callees),
        worst_path=tuple(stage.worst_path(instructions)),
        points=tuple((point.block.address, point.context) for point in points),
        accesses=accesses,
        registers=tuple(register_ranges(values, request.target.isa)),
        loop_claims=merged_claims((*stage.loops.claims, *(claim for one in callees for claim in one.claims))),
        flow_claims=(*stage.loops.flow_claims, *stage.asserted.claims),
        certify=cache(lambda: _certificates(request, stage, instructions, cycles)),
        worst_path_cycles=tuple(stage.worst_path(cycles)),
        unattributed_cycles=cycles.auxiliary_cost,
        graph=stage.graph(instructions),
        words=word_claims(request.facts, request.image, stage.parameters) if request.target.dcache else (),
        idle_facts=(
            *stage.loops.idle,
            *stage.asserted.idle,
            *idle_facts(accesses, prepared.data.lines),
        ),
        by_type=_by_type(stage, (instructions, cycles)),
        summarised=tuple(sorted({function_from(request.image, key.target).name for key in summaries})),
    )


def _by_type(stage: Bounded, solved: Sequence[Solved]) -> tuple[TypeBound, ...]:
    return tuple(one for one in stage.loops.by_type if any(each.rests_on(one) for each in solved))


def _all_assumptions(stage: Bounded, callees: Iterable[CallSummary]) -> tuple[Assumption, ...]:
    """Those of the caller and of ``callees``; where two with one id say something else, both."""
    own = (
        *assumptions(
            stage.request.facts,
            stage.request.image,
            stage.request.target,
            stage.prepared.values,
            stage.prepared.data.lines,
        ),
        *stage.loops.assumptions,
        *stage.asserted.assumptions,
    )
    return tuple(dict.fromkeys((*own, *(one for each in callees for one in each.assumptions))))


@dataclass(frozen=True, slots=True)
class Prepared:
    """What does not depend on the parameters of loop bounds: values, conflicts, fetches, loops of binary and source."""

    request: BoundRequest
    values: Values
    index: SourceIndex
    analysed: Analysed
    infeasible_pairs: tuple[LinearConstraint, ...]
    fetches: FetchMisses
    data: DataMisses
    calls: CallSummaries
    costs: Costs

    def bounded(self, given: Mapping[str, int]) -> Bounded:
        """All loops bounded, with ``given`` for the parameters of the run.

        Raises:
            AnalysisError: loops without a bound.
            UsageError: a flow fact is wrong.

        *Soundness:* as said of `loops.bounds` and `facts.flow`.
        """
        facts, values = self.request.facts, self.values
        parameters = parameter_values(facts, given)
        asserted_loops = bound_facts(facts, self.index, self.analysed, parameters)
        loops = self._loops(asserted_loops, parameters)
        asserted = flow_facts(facts, self.request.entry, parameters, values, index=self.index, analysed=self.analysed)
        return Bounded(self, parameters, loops, asserted)

    def _loops(self, facts: Sequence[BoundFact], parameters: Mapping[str, int]) -> BoundedLoops:
        """All loops, those of callees that are not expanded among them."""
        image, missing = self.request.image, open_loops(self.calls.of(self.values).values())
        try:
            loops = bound_loops(image, self.values, facts, parameters)
        except AnalysisError as error:
            if missing and error.headers:
                raise no_bound(image, (*error.headers, *missing)) from error
            raise
        if missing:
            raise no_bound(image, missing)
        return loops

    def sites(self) -> tuple[LoopSite, ...]:
        """All loops that facts may speak of, each once."""
        callees = (one.analysed for one in self.calls.of(self.values).values())
        sites = (site for one in (self.analysed, *callees) if one is not None for site in one.sites)
        return tuple({site.header_address: site for site in sites}.values())


def prepare(request: BoundRequest, progress: Callable[[str], None] = lambda _: None) -> Prepared:
    """Analyse the values of ``request.entry``.

    Raises:
        AnalysisError: what is to be executed is not known.
        UsageError: there is no such function, or a flow fact is wrong.

    *Soundness:* as said of `values` and `infeasible_pairs`.
    """
    image = request.image
    lifter = Lifter(request.target.pcode_language, request.target.isa, code_reader(image.segments))
    entry = require_symbol(image, request.entry)
    if not entry.is_function:
        raise UsageError(f"{request.entry} is no function of the image; name one of its functions.")
    work = _Work(
        request,
        lifter,
        index_sources(request.sources),
        CallSummaries(lambda key: _summary(work, key, progress)),
        cost_table(request.instructions, request.costs),
        may_summarise=request.summaries and may_summarise(request.facts),
    )
    return _prepare(work, entry, None, progress)


@dataclass(frozen=True, slots=True)
class _Work:
    """What is shared by the proofs of a function and of the callees that are not expanded."""

    request: BoundRequest
    lifter: Lifter
    index: SourceIndex
    calls: CallSummaries
    costs: Costs
    may_summarise: bool


def _prepare(work: _Work, entry: Symbol, called: CallKey | None, progress: Callable[[str], None]) -> Prepared:
    request, index = work.request, work.index
    progress(f"following the values of {entry.name}")
    parameters = parameter_values(request.facts, request.parameters)
    values = _values(work, entry, called, parameters)
    progress("bounding the loops")
    infeasible_pairs = tuple(
        _infeasible_constraint(number, each) for number, each in enumerate(infeasible_edge_pairs(values))
    )
    analysed = analysed_code(request.image, values)
    cache = request.target.dcache
    asserted = pointer_facts(request.facts, index, analysed, parameters, cache.line_bytes if cache else None)
    if has_summaries(values):
        fetches = every_fetch_misses(values, request.target)
        data = every_access_misses(values, request.target, asserted)
    else:
        icache = None if request.target.unified_cache else request.target.icache
        fetches = fetch_misses(values, loop_shapes(values), icache) if icache else FetchMisses({}, {}, {})
        data = data_misses(values, request.target, asserted)
    return Prepared(request, values, index, analysed, infeasible_pairs, fetches, data, work.calls, work.costs)


def _summary(work: _Work, key: CallKey, progress: Callable[[str], None]) -> CallSummary:
    """What is proved of a callee by itself; where loops have no bound, or by the width of a type only, which those are.

    Raises:
        AnalysisError: nothing is, or its stack pointer is not surely aligned or given back, or it makes a return
            address of its own.

    *Soundness:* what facts say of arguments they say of the analysed entry only.
    """
    if not key.is_aligned:
        raise AnalysisError(f"a call of it with a stack pointer that may be no multiple of {STACK_ALIGNMENT_BYTES}.")
    request = replace(work.request, facts=replace(work.request.facts, arguments=()))
    prepared = _prepare(replace(work, request=request), function_from(request.image, key.target), key, progress)
    values = prepared.values
    stage, solved, missing = _solved(prepared, request.parameters)
    calls = [call for one in values.edges.values() for call in one.calls]
    return CallSummary(
        effect=effect_of(
            values.terms,
            [one.state for edge, one in values.edges.items() if edge.target == EXIT],
            (access for own in values.accesses.values() for access in own),
            ((work.calls.effect(call.key), call.stack_offset) for call in calls),
            values.registers["r1" if request.target.isa is Isa.POWERPC else "r13"],
            escapes=values.stack_escapes,
        ),
        most={unit: one.solution.certified for unit, one in solved.items()},
        assumptions=_all_assumptions(stage, ()) if stage else (),
        loops=stage.loops.loops if stage else (),
        claims=stage.loops.claims if stage else (),
        inner=frozenset(call.key for call in calls),
        open_loops=missing,
        analysed=prepared.analysed,
    )


def _solved(
    prepared: Prepared, given: Mapping[str, int]
) -> tuple[Bounded | None, Mapping[Unit, Solved], tuple[int, ...]]:
    """The flow problems of a callee, solved; or the headers of the loops for which that cannot be done."""
    try:
        stage = prepared.bounded(given)
    except AnalysisError as error:
        if not error.headers:
            raise
        return None, {}, error.headers
    solved = {unit: stage.solved(unit) for unit in UNITS}
    by_type = {one.loop for one in _by_type(stage, tuple(solved.values()))}
    if by_type:  # the calls may tell better
        return None, {}, tuple(sorted(loop.address for loop in stage.loops.loops if loop.name in by_type))
    return stage, solved, ()


# --------------------------------------------------------------------------------------------------------------- values


def _values(work: _Work, entry: Symbol, called: CallKey | None, parameters: Mapping[str, int]) -> Values:
    """Values of the function, with as few calls expanded as must be."""
    while True:
        calls = work.calls
        known = _Expanded(frozenset(calls.refused) if work.may_summarise else None, frozenset(calls.unbounded))
        try:
            return _values_with(work, entry, called, parameters, known)
        except UnsummarisedError as error:
            if known.whole is None or error.target in known.whole | known.unbounded:
                raise


class _Expanded(NamedTuple):
    """What is expanded: always, None being all; and up to a number of points. See `build_supergraph`."""

    whole: frozenset[int] | None
    unbounded: frozenset[int]


def _values_with(
    work: _Work,
    entry: Symbol,
    called: CallKey | None,
    parameters: Mapping[str, int],
    expanded: _Expanded,
) -> Values:
    """Values of the graph, whose indirect branches are resolved by the values of a smaller one."""
    request, lifter, index = work.request, work.lifter, work.index
    image = request.image
    depths = recursion_depths(request.facts, request.image, parameters, index)
    asserted = asserted_targets(request.facts, request.image, request.instructions, index)
    indirect = dict(asserted)
    arguments = argument_ranges(request.facts, request.entry, request.target.isa, parameters)
    # Without caches nothing hangs on them, and each is one assumption more.
    words = word_ranges(request.facts, image, parameters) if request.target.dcache else {}
    costs = work.costs
    sites, depth, unwinding = frozenset[int](), 1, dict[tuple[Context, int], int]()
    most = FEW if called else MOST_EXPANDED

    def analysed(graph: Supergraph) -> Values:
        return analyze_with_counters(image, lifter, graph, arguments, words, work.calls.effect, called)

    while True:
        whole = build_supergraph(
            image,
            lifter,
            entry,
            indirect,
            depths,
            sites,
            depth,
            all_known=False,
            whole=expanded.whole,
            most=most,
            unbounded=expanded.unbounded,
            unwinding=unwinding,
        )
        for target in sorted(whole.summarised):  # who is refused, before the caller is analysed in vain
            work.calls.effect(plain_call(target, lifter))
        graph = reducible(whole, image)
        try:
            values = analysed(graph)
        except AnalysisError:
            check_chargeable((point.block for point in graph.points), costs, image)  # says more than p-code does
            raise
        # Each round finds targets that were not known before; more code may bring more values to the same branch.
        found = {site: {*targets, *indirect.get(site, ())} for site, targets in values.indirect.items()}
        grown = {
            site: targets
            for site, targets in found.items()
            if site not in asserted and len(targets) > len(indirect.get(site, ()))
        }
        unwound = values.unwound.keys() - unwinding.keys()
        if not grown and values.return_sites <= sites and not unwound:
            more = deeper(image, values, depth)
            if more is not None:
                depth = more
                continue
            check_resolved(image, graph, values, asserted)
            known = build_supergraph(
                image,
                lifter,
                entry,
                indirect,
                depths,
                sites,
                depth,
                whole=expanded.whole,
                most=most,
                unbounded=expanded.unbounded,
                unwinding=unwinding,
            )
            smaller = reducible(known, image)
            if smaller.dead_ends != graph.dead_ends or len(smaller.edges) < len(graph.edges):
                values = analysed(smaller)
                check_resolved(image, smaller, values, asserted)
            while (graph := returning_part(values)) is not values.graph:
                values = analysed(graph)
            check_chargeable((graph.points[place].block for place in values.states), costs, image)
            paths = pointer_paths(values) if request.target.dcache and not has_summaries(values) else {}
            if paths:
                values = analysed(partitioned(values, paths))
            check_resolved(image, values.graph, values, asserted)  # sharper values may tell what was not known
            return values
        indirect |= {site: tuple(sorted(targets)) for site, targets in grown.items()}
        sites |= values.return_sites
        unwinding |= {place: values.unwound[place] for place in unwound}


# ----------------------------------------------------------------------------------------------------------------- IPET


def _infeasible_constraint(number: int, infeasible_pair: InfeasiblePair) -> LinearConstraint:
    """At most one of two edges for each pass of the header, or in the call."""
    edges = tuple((edge, 1) for edge in dict.fromkeys((infeasible_pair.first, infeasible_pair.second)))
    passes = ((infeasible_pair.header, -1),) if infeasible_pair.header is not None else ()
    return LinearConstraint(f"conflict:{number}", passes, edges, 0 if passes else 1)


@dataclass(frozen=True, slots=True)
class Solved:
    """A flow problem and its solution."""

    problem: FlowProblem
    solution: Solution

    def rests_on(self, loop: TypeBound) -> bool:
        """Whether a greater bound of the loop would make the solution greater."""
        return any(self.solution.dual.get(f"{kind}:{loop.loop}") for kind in ("loop", "total"))

    @property
    def auxiliary_cost(self) -> int | None:
        """What the events of the solution cost, which belong to no block; None where no solution was found."""
        if self.solution.optimum is None:
            return None
        return sum(auxiliary.cost * self.solution.counts[auxiliary.name] for auxiliary in self.problem.auxiliaries)


@dataclass(frozen=True, slots=True)
class Bounded:
    """Everything that the flow problem is made of, for one choice of parameters."""

    prepared: Prepared
    parameters: Mapping[str, int]
    loops: BoundedLoops
    asserted: AssertedFlow

    @property
    def request(self) -> BoundRequest:
        """What is to be proved."""
        return self.prepared.request

    def solved(self, unit: Unit) -> Solved:
        """The flow problem in ``unit`` and its solution.

        *Soundness:* as said of `flow_problem`, `costs` and `flow_system`.
        """
        costs = self.prepared.costs
        auxiliaries, constraints = self._shared_misses() if unit == "cycles" else ((), ())
        problem = flow_problem(
            self.prepared.values,
            self.loops.flow,
            (*self.loops.constraints, *self.asserted.constraints, *self.prepared.infeasible_pairs, *constraints),
            Subject(self.request.image.sha256, self.request.target.name, unit),
            cost=lambda point: self._cost(point.index, unit, costs),
            edge_cost=lambda edge: self._edge_cost(edge, unit, costs),
            auxiliaries=auxiliaries,
        )
        return Solved(problem, solve(flow_system(problem)))

    def _shared_misses(self) -> tuple[tuple[AuxiliaryVariable, ...], tuple[LinearConstraint, ...]]:
        """Misses that are limited over several blocks."""
        data, fetches = self.prepared.data, self.prepared.fetches
        fill = fetch_cycles(1, self.request.target)
        auxiliaries = (*data.auxiliaries, *(AuxiliaryVariable(name, fill) for name in fetches.auxiliaries))
        return auxiliaries, (
            *data.constraints,
            *(constraint for constraints in fetches.auxiliaries.values() for constraint in constraints),
        )

    def certificate(self, solved: Solved, followed: Iterable[str] = ()) -> str:
        """The certificate of a solution, with the records that let the checker follow the code."""
        return certificate(solved.problem, solved.solution, self.loops.derivations, followed)

    def _cost(self, index: int, unit: Unit, costs: Costs) -> int:
        block = self.prepared.values.graph.points[index].block
        if unit == "instructions":
            return len(block.instructions)
        misses = self.prepared.fetches.points.get(index, 0)
        target = self.request.target
        waiting = self.prepared.data.points.get(index, 0) + fetch_cycles(misses, target)
        return block_cycles(block, costs) + waiting

    def _edge_cost(self, edge: Edge, unit: Unit, costs: Costs) -> int:
        called = max((one.most[unit] for one in self.prepared.calls.on(self.prepared.values, edge)), default=0)
        if unit == "instructions":
            return called
        misses = self.prepared.fetches.edges.get(edge, 0)
        block = self.prepared.values.graph.points[edge.source].block
        waiting = self.prepared.data.leaving.get(edge.source, 0) if edge.way != "fall" else 0
        return called + taken_cycles(block, edge.way, costs) + waiting + fetch_cycles(misses, self.request.target)

    def counted(self) -> CountedMisses:
        """By what misses are counted, by the names of the certificate."""
        values, data, fetches = self.prepared.values, self.prepared.data, self.prepared.fetches
        names = {index: point_name(values.graph.points[index]) for index in sorted(values.states)}
        return CountedMisses(
            {names[index]: own for index, own in fetches.counted.items()},
            {names[index]: own for index, own in data.counted.items()},
            {name: tuple(edge_name(names, edge) for edge in edges) for name, edges in fetches.paid.items()},
        )

    def worst_path(self, solved: Solved) -> Iterable[PathBlock]:
        """The blocks of the worst path in order of their points, copies of a point put together.

        What leaving a block costs is its own.
        """
        if solved.solution.optimum is None:
            return ()
        executed: dict[str, int] = {}
        leaving: dict[str, int] = {}
        for edge in solved.problem.edges:
            count = solved.solution.counts[edge.name]
            executed[edge.target] = executed.get(edge.target, 0) + count
            leaving[edge.source] = leaving.get(edge.source, 0) + count * edge.extra_cost
        for name, cost in solved.problem.exit_costs.items():
            leaving[name] = leaving.get(name, 0) + solved.solution.counts[leave(name)] * cost
        executed[solved.problem.entry] = executed.get(solved.problem.entry, 0) + solved.solution.counts[ENTER]
        points = (self.prepared.values.graph.points[index] for index in sorted(self.prepared.values.states))
        found: dict[tuple[Context, int], PathBlock] = {}
        for node, point in zip(solved.problem.nodes, points, strict=True):
            if executed.get(node.name):
                own = PathBlock(
                    function=point.function.name,
                    context=point.context,
                    address=point.block.address,
                    end_address=point.block.end_address,
                    location=self.request.image.location(point.block.address),
                    instructions=len(point.block.instructions),
                    executions=executed[node.name],
                    cost=executed[node.name] * node.cost + leaving.get(node.name, 0),
                )
                other = found.get((own.context, own.address))
                if other is not None:
                    executions, cost = own.executions + other.executions, own.cost + other.cost
                    own = replace(own, executions=executions, cost=cost)
                found[own.context, own.address] = own
        return found.values()

    def graph(self, solved: Solved) -> FlowGraph:
        """Blocks and edges that can be reached, call contexts put together, with the counts of ``solved``.

        *Soundness:* none is claimed; it is for people to look at.
        """
        values = self.prepared.values
        points = {index: values.graph.points[index] for index in sorted(values.states)}
        names = {index: point_name(point) for index, point in points.items()}
        found = solved.solution.optimum is not None
        blocks: dict[tuple[int, str, int], int] = dict.fromkeys(map(_place, points.values()), 0)
        blocks[_place(points[0])] += solved.solution.counts.get(ENTER, 0) if found else 0
        edges: dict[tuple[int, int, str, str, str], int] = {}
        for edge in values.edges:
            if edge.target == EXIT:
                continue
            source, target = points[edge.source], points[edge.target]
            count = solved.solution.counts[edge_name(names, edge)] if found else 0
            kind = "unwind" if edge.way == "return" and source.unwinds else edge.way
            key = (source.block.address, target.block.address, kind, source.function.name, target.function.name)
            edges[key] = edges.get(key, 0) + count
            blocks[_place(target)] += count
        return FlowGraph(
            tuple(
                GraphBlock(function, address, end, count if found else None)
                for (address, function, end), count in sorted(blocks.items())
            ),
            tuple(GraphEdge(*key, count if found else None) for key, count in sorted(edges.items())),
        )


def _place(point: Point) -> tuple[int, str, int]:
    return point.block.address, point.function.name, point.block.end_address


def _certificates(request: BoundRequest, stage: Bounded, instructions: Solved, cycles: Solved) -> tuple[str, str]:
    """The certificates, with the records that let the checker follow the code and the caches.

    The checker knows no calls that lead behind themselves: where some are summarised there are no such records.
    """
    if stage.prepared.calls.of(stage.prepared.values):
        return stage.certificate(instructions, ()), stage.certificate(cycles)
    ranges = argument_ranges(request.facts, request.entry, request.target.isa, stage.parameters)
    arguments: dict[Place, Value] = {
        name: number(one.low, one.low + one.stride * one.steps, one.stride or 1) for name, one in ranges.items()
    }
    found = checkable(instructions.problem, request.image, request.instructions, arguments)
    cached: Iterable[str] = ()
    if request.target.icache or request.target.dcache:
        code = Code(request.image, {one.address: one for one in request.instructions})
        costs = {one.address: cost for one, cost in zip(request.instructions, request.costs, strict=True)}
        assumed = stage.prepared.data.lines.assumed if stage.prepared.data.lines else frozenset[int]()
        cached = cache_annotations(
            cycles.problem,
            cycles.solution,
            flow_graph(cycles.problem, found.excluded),
            code,
            costs=costs,
            target=request.target,
            invariants=found.invariants,
            arguments=arguments,
            asserted=asserted_pointers(request.facts, stage.parameters, request.image, request.sources),
            counted=stage.counted(),
            crosses_no_line=assumed.__contains__,
        ).lines()
    return stage.certificate(instructions, found.lines()), stage.certificate(cycles, cached)
