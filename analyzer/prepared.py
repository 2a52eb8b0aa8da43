"""What a bound is asked of, and the flow problem that it becomes: values, loops and costs, put together for IPET.

Words: flow problem, loop bound (docs/explanation/glossary.md).

*Soundness:* the flow problem counts every execution of the entry function that meets the assumptions; the largest
solution of it is a bound. What is prepared is told by `bound`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from wcet_probe.analyzer.call_summaries import (
    CallSummaries,
    has_summaries,
    open_loops,
)
from wcet_probe.analyzer.dcache.crowded_sets import relieved
from wcet_probe.analyzer.dcache.footprints import KeptLines, Strays, kept_lines, not_kept
from wcet_probe.analyzer.dcache.kept_parts import KeptPart, kept_parts
from wcet_probe.analyzer.dcache.misses import DataMisses
from wcet_probe.analyzer.dcache.pointer_extents import PointerExtents
from wcet_probe.analyzer.facts.binding import Analysed, bound_facts, parameter_values
from wcet_probe.analyzer.facts.flow import AssertedFlow, flow_facts
from wcet_probe.analyzer.facts.restrictions import Unexpanded
from wcet_probe.analyzer.facts.source_index import SourceIndex
from wcet_probe.analyzer.facts.source_match import LoopSite
from wcet_probe.analyzer.graph.returning import function_from
from wcet_probe.analyzer.graph.supergraph import EXIT, Context, Edge, Point
from wcet_probe.analyzer.icache.fetches import FetchMisses
from wcet_probe.analyzer.ipet.annotated import CountedMisses
from wcet_probe.analyzer.ipet.certificate import certificate
from wcet_probe.analyzer.ipet.costs import Costs, block_cycles, fetch_cycles, taken_cycles
from wcet_probe.analyzer.ipet.flow_problem import (
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
from wcet_probe.analyzer.kept_lines import (
    Footprint,
    Kept,
    kept_misses,
    other_fetch_misses,
    own_footprint,
    with_callees,
)
from wcet_probe.analyzer.loops.abstract_execution import executed_nests
from wcet_probe.analyzer.loops.body_counts import with_bodies
from wcet_probe.analyzer.loops.bounds import BoundedLoops, bound_loops, no_bound
from wcet_probe.analyzer.loops.infeasible_pairs import InfeasiblePair
from wcet_probe.analyzer.loops.source_calls import Known, bounded_by_calls
from wcet_probe.analyzer.loops.source_rounds import SourceRounds, source_rounds, with_rounds
from wcet_probe.analyzer.recursive_calls import CountedCalls, facts_of_calls
from wcet_probe.analyzer.request import BoundRequest
from wcet_probe.analyzer.values.execution.call_effects import stack_offset
from wcet_probe.analyzer.values.execution.constant_execution import ConstantExecution
from wcet_probe.analyzer.values.properties.recursion import UnboundedRecursionError
from wcet_probe.analyzer.values.result import Values
from wcet_probe.errors import AnalysisError
from wcet_probe.model.proof import (
    FlowGraph,
    GraphBlock,
    GraphEdge,
    PathBlock,
    TypeBound,
)
from wcet_probe.model.target import CacheConfig


@dataclass(frozen=True, slots=True)
class Prepared:
    """What no parameter of loop bounds changes: values, infeasible pairs, fetches, loops of binary and source.

    ``hits`` are data accesses that miss on no line that is kept, ``footprint`` is all lines of the call, and ``kept``
    are those of them that are not evicted, if their misses are counted for the whole call. ``counted`` is ``data`` with
    misses counted for the whole call and for ``parts`` of it, where no calls are left unexpanded.
    """

    request: BoundRequest
    values: Values
    index: SourceIndex
    analysed: Analysed
    infeasible_pairs: tuple[LinearConstraint, ...]
    fetches: FetchMisses
    data: DataMisses
    calls: CallSummaries
    costs: Costs
    constants: ConstantExecution
    is_callee: bool = False
    hits: Callable[[KeptLines, Strays], DataMisses] | None = None
    footprint: Footprint | None = None
    kept: Kept | None = None
    counted: DataMisses | None = None
    parts: tuple[KeptPart, ...] = ()

    def keeping(self, kept: Kept) -> Prepared:
        """The same where lines are ``kept``, with their misses counted for the whole call, not where they take place.

        *Soundness:* as said of `kept_lines`; what is not kept is charged as before.
        """
        fetches, data = self.fetches, self.data
        if kept.code:
            fetches = other_fetch_misses(self.values, self.request.target, kept)
        if kept.data is not None and self.hits is not None and self.footprint is not None:
            data = self.hits(kept.data, self.footprint.strays_of(kept))
        return replace(self, fetches=fetches, data=data, kept=kept)

    def bounded(self, given: Mapping[str, int], repeated: Collection[int] = ()) -> Bounded:
        """All loops bounded but those ``repeated``, by address, with ``given`` for the parameters of the run.

        Raises:
            AnalysisError: loops without a bound.
            UsageError: a flow fact is wrong.

        *Soundness:* as said of `loops.bounds` and `facts.flow`.
        """
        facts, values = self.request.facts, self.values
        parameters = parameter_values(facts, given, self.request.image)
        asserted_loops = bound_facts(facts, self.index, self.analysed, parameters)
        rounds = source_rounds(self.request.image, values, asserted_loops, self.index)
        counted = tuple(self._counted())
        unexpanded = None if self.is_callee else self._unexpanded(counted)
        loops = with_rounds(self._loops(rounds, parameters, repeated, counted), rounds)
        loops = with_bodies(self.request.image, values, loops, asserted_loops, self.index)
        entry, index, analysed = self.request.entry, self.index, self.analysed
        asserted = flow_facts(facts, entry, parameters, values, index=index, analysed=analysed, unexpanded=unexpanded)
        told = tuple(facts_of_calls(facts, values, counted, parameters))
        asserted = replace(
            asserted,
            constraints=(*asserted.constraints, *(constraint for constraint, _, _ in told)),
            claims=(*asserted.claims, *(claim for _, claim, _ in told)),
            assumptions=(*asserted.assumptions, *(assumption for *_, assumption in told)),
        )
        limited = {name for one in asserted.constraints for name, factor in one.auxiliaries if factor > 0}
        for one in counted:
            if one.variable not in limited:
                why = "; ".join(idle.why for idle in asserted.idle)
                raise UnboundedRecursionError(self.request.image.location(one.address), one.function, why)
        return Bounded(self._with_footprint(loops), parameters, loops, asserted, counted)

    def _with_footprint(self, loops: BoundedLoops) -> Prepared:
        """The same with the lines of the call, as far as the bounds of its ``loops`` tell them.

        *Soundness:* as said of `dcache.footprints` and `dcache.pointer_extents`.
        """
        values, target = self.values, self.request.target
        if target.unified_cache or (target.icache is None and target.dcache is None):
            return self
        extents = PointerExtents(values, {one.header: one.max_header for one in loops.flow})
        pointer = values.registers[target.isa.stack_pointer]
        callees = (
            (callee.footprint, stack_offset(one.state, pointer))
            for edge, one in values.edges.items()
            for callee in self.calls.on(values, edge)
        )
        found = with_callees(own_footprint(values, target, extents.of), callees)
        counted, counting = None, self.data.counting
        parts: tuple[KeptPart, ...] = ()
        if found is not None and target.dcache is not None and counting is not None:
            kept = kept_lines(found.data, target.dcache, self.stack_pointer, in_part=True)
            crowd = not_kept(found.extents, found.data, kept, target.dcache) if kept is not None else frozenset()
            whole = (KeptPart(kept, found.strays, crowd),) if kept is not None and kept.number else ()
            parts = self._parts(found, target.dcache, whole)
            counted = counting((*whole, *parts), {}) if whole or parts else None
        return replace(self, footprint=found, counted=counted, parts=parts)

    def _parts(self, found: Footprint, config: CacheConfig, whole: Sequence[KeptPart]) -> tuple[KeptPart, ...]:
        """The parts of the call that keep what the ``whole`` does not, or not without strays; none of summaries."""
        if has_summaries(self.values):
            return ()
        held = {one for each in whole if not found.data.has_strays for one in found.extents if one not in each.crowding}
        call = found.data, found.strays, found.extents
        return kept_parts(self.values, call, config, self.stack_pointer, frozenset(held))

    @property
    def stack_pointer(self) -> int | None:
        """Its value at entry, where it is known; not of a callee, which is called from many places."""
        return None if self.is_callee else self.request.stack_pointer

    def _counted(self) -> Iterator[CountedCalls]:
        """The functions that call themselves and are not expanded, but for the callee itself."""
        own = self.values.graph.entry.address if self.is_callee else None
        edges: dict[int, list[Edge]] = {}
        for edge, one in self.values.edges.items():
            for call in one.calls:
                edges.setdefault(call.key.target, []).append(edge)
        for target in sorted((edges.keys() & self.calls.counted) - {own}):
            yield CountedCalls(function_from(self.request.image, target).name, target, tuple(edges[target]))

    def _unexpanded(self, counted: Iterable[CountedCalls], *, told: bool = False) -> Unexpanded:
        """What is executed in calls that are not expanded; where calls go, if pragmas or ``told`` ask for it."""
        image, summaries = self.request.image, self.calls.of(self.values)
        entered = {function_from(image, key.target).name for key in summaries}
        inside = {name for one in summaries.values() if one.analysed for name in one.analysed.functions}
        if any(one.analysed is None for one in summaries.values()):
            inside = {function.name for function in image.functions}
        functions = frozenset(entered | inside)
        return Unexpanded(
            functions, {one.function: (one.variable, one.outside) for one in counted}, self._calls_of(functions, told)
        )

    def _calls_of(self, functions: frozenset[str], told: bool) -> frozenset[tuple[str, int]]:  # noqa: FBT001
        """Where ``functions`` call or jump to others, where pragmas speak of sums or ``told`` asks for it."""
        if not functions or not (told or any(one.restrictions for one in self.index.files.values())):
            return frozenset()
        image = self.request.image
        direct = ((one.address, one.branch_target) for one in self.request.instructions)
        indirect = (
            (address, target)
            for one in self.calls.of(self.values).values()
            for address, targets in one.indirect.items()
            for target in targets
        )
        found = set()
        for address, target in (*direct, *indirect):
            function = image.function_at(address) if target is not None else None
            if function is not None and target is not None and function.name in functions:
                end = function.address + function.size_bytes
                found |= {(function.name, target)} if not function.address <= target < end else set()
        return frozenset(found)

    def _loops(
        self,
        rounds: SourceRounds,
        parameters: Mapping[str, int],
        repeated: Collection[int],
        counted: Collection[CountedCalls],
    ) -> BoundedLoops:
        """All loops, those of callees that are not expanded among them; without a fact by the calls in their rounds."""
        image, missing = self.request.image, open_loops(self.calls.of(self.values).values())
        follow = partial(executed_nests, self.values, execution=self.constants, effect=self.calls.effect)
        try:
            bounded = partial(bound_loops, image, self.values, parameters=parameters, counted=repeated, follow=follow)
            unexpanded = None if self.is_callee else lambda: self._unexpanded(counted, told=True)
            known = Known(self.values, self.index, self.analysed, unexpanded)
            loops = bounded_by_calls(bounded, rounds.facts, known, self.sites, rounds.loose)
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


def infeasible_constraint(number: int, infeasible_pair: InfeasiblePair) -> LinearConstraint:
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
    trees: tuple[CountedCalls, ...] = ()

    @property
    def request(self) -> BoundRequest:
        """What is to be proved."""
        return self.prepared.request

    def keeping(self, kept: Kept) -> Bounded:
        """As `Prepared.keeping`."""
        return replace(self, prepared=self.prepared.keeping(kept))

    def counting(self) -> Bounded:
        """The same with misses of data counted for the whole call, where they can be."""
        prepared = self.prepared
        return replace(self, prepared=replace(prepared, data=prepared.counted or prepared.data))

    def relieved(self, solved: Solved) -> Bounded | None:
        """As `counting`, with accesses taken for strays where sets are crowded, those that ``solved`` executes least.

        None where no sets are, or no choice pays.

        *Soundness:* as said of `dcache.crowded_sets`.
        """
        prepared, config = self.prepared, self.request.target.dcache
        counting, found = prepared.data.counting, prepared.footprint
        if counting is None or found is None or config is None:
            return None
        names = {index: point_name(prepared.values.graph.points[index]) for index in prepared.values.states}
        passed: Counter[str] = Counter()
        for edge in solved.problem.edges:
            passed[edge.target] += solved.solution.counts.get(edge.name, 0)
        executed = {index: max(index == 0, passed[name]) for index, name in names.items()}
        pointer = prepared.stack_pointer
        chosen = relieved((found.data, found.strays, found.extents), config, pointer, executed)
        kept = kept_lines(chosen.footprint, config, pointer, in_part=True) if chosen is not None else None
        if chosen is None or kept is None or not kept.number:
            return None
        left = {one: spans for one, spans in found.extents.items() if one not in chosen.strays}
        whole = KeptPart(kept, chosen.strays, not_kept(left, chosen.footprint, kept, config))
        data = counting((whole, *prepared.parts), chosen.reach)
        return replace(self, prepared=replace(prepared, data=data))

    def solved(self, unit: Unit, *, counted: bool = True) -> Solved:
        """The flow problem in ``unit`` and its solution; see `flow_system.solve` for ``counted``.

        *Soundness:* as said of `flow_problem`, `costs` and `flow_system`.
        """
        problem = self.problem(unit)
        return Solved(problem, solve(flow_system(problem), counted=counted))

    def problem(self, unit: Unit) -> FlowProblem:
        """The flow problem in ``unit``.

        *Soundness:* as said of `flow_problem`, `costs` and `recursive_calls`.
        """
        costs = self.prepared.costs
        auxiliaries, constraints = self._shared_misses() if unit == "cycles" else ((), ())
        return flow_problem(
            self.prepared.values,
            self.loops.flow,
            (*self.loops.constraints, *self.asserted.constraints, *self.prepared.infeasible_pairs, *constraints),
            Subject(self.request.image.sha256, self.request.target.name, unit),
            cost=lambda point: self._cost(point.index, unit, costs),
            edge_cost=lambda edge: self._edge_cost(edge, unit, costs),
            auxiliaries=(*auxiliaries, *self._executions(unit)),
        )

    def _executions(self, unit: Unit) -> Iterator[AuxiliaryVariable]:
        """Calls of functions by themselves, at what each costs."""
        summaries = self.prepared.calls.of(self.prepared.values)
        for one in self.trees:
            kept = self.prepared.kept
            own = (summary.cost(unit, kept).each for key, summary in summaries.items() if key.target == one.address)
            yield AuxiliaryVariable(one.variable, max(own))

    def _shared_misses(self) -> tuple[tuple[AuxiliaryVariable, ...], tuple[LinearConstraint, ...]]:
        """Misses that are limited over several blocks."""
        data, fetches = self.prepared.data, self.prepared.fetches
        fill = fetch_cycles(1, self.request.target)
        kept = (
            ()
            if self.prepared.kept is None or self.prepared.is_callee
            else (tuple(kept_misses(self.prepared.kept, self.request.target)))
        )
        auxiliaries = (
            *data.auxiliaries,
            *(AuxiliaryVariable(name, fill) for name in fetches.auxiliaries),
            *(auxiliary for auxiliary, _ in kept),
        )
        return auxiliaries, (
            *data.constraints,
            *(constraint for _, constraint in kept),
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
        calls, kept = self.prepared.calls.on(self.prepared.values, edge), self.prepared.kept
        called = max((one.cost(unit, kept).most for one in calls), default=0)
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
            kind = edge.way
            if kind == "return":
                is_resumed = source.resumed_by is not None and target.block.address != source.return_address
                kind = "unwind" if source.unwinds else "resume" if is_resumed else kind
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
