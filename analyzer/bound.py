"""The whole proof: graph, values, loop bounds, flow facts, IPET, certificate.

*Soundness:* the bound holds for every execution of the entry function that meets the assumptions; each of them is an
entry of ``Bound.assumptions``. What cannot be resolved is an error that names it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from wcet_probe.analyzer import strided
from wcet_probe.analyzer.costs import Costs, block_cycles, check_chargeable, cost_table, taken_cycles
from wcet_probe.analyzer.expressions import evaluate
from wcet_probe.analyzer.fact_binding import Analysed, BoundFact, bound_facts, check_place, parameter_values
from wcet_probe.analyzer.facts import Facts, FlowFact
from wcet_probe.analyzer.flow_graph import BoundedLoop, Limit, Subject, flow_problem
from wcet_probe.analyzer.ipet import ENTER, FlowProblem, Solution, flow_system, solve
from wcet_probe.analyzer.lift import Lifter, code_reader
from wcet_probe.analyzer.loops import Count, LoopShape, count_loops, loop_shapes
from wcet_probe.analyzer.source_match import LoopSite, SourceIndex, index_sources, match_loops
from wcet_probe.analyzer.state import Base
from wcet_probe.analyzer.strided import StridedInterval
from wcet_probe.analyzer.supergraph import EXIT, Supergraph, build_supergraph
from wcet_probe.analyzer.values import Values, analyze_values
from wcet_probe.errors import AnalysisError, UsageError
from wcet_probe.image import require_symbol
from wcet_probe.model import Image, Instruction, InstructionCost, Isa, MemoryRange, Target
from wcet_probe.proof import AccessRange, Assumption, Bound, LoopBound, Origin, PathBlock

_MOST_RESOLUTIONS = 16


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
    """

    image: Image
    target: Target
    instructions: Sequence[Instruction]
    costs: Sequence[InstructionCost]
    entry: str
    facts: Facts
    sources: Mapping[str, str]
    parameters: Mapping[str, int]


def prove(request: BoundRequest, progress: Callable[[str], None] = lambda _: None) -> Bound:
    """Prove an upper bound of the WCET of ``request.entry``; ``progress`` is told in words what is being done.

    Raises:
        AnalysisError: no bound can be proved; the message names what stands in the way.
        UsageError: there is no such function, or a flow fact is wrong.

    *Soundness:* as said of the module.
    """
    parameters = parameter_values(request.facts, request.parameters)
    progress(f"following the values of {request.entry}")
    values = _values(request, parameters)
    index = index_sources(request.sources)
    analysed = _analysed(request.image, values)
    progress("bounding the loops")
    bounded = _bounded_loops(request.image, values, bound_facts(request.facts, index, analysed, parameters))
    limits, facts = _limits(request, parameters, values, index, analysed)
    progress("solving the flow problem")
    proof = _Proof(request, values, bounded, [*bounded.limits, *limits])
    instructions, cycles = proof.solved("instructions"), proof.solved("cycles")
    return Bound(
        entry=request.entry,
        parameters=parameters,
        instructions=instructions.solution.certified,
        cycles=cycles.solution.certified,
        blocks=len(values.states),
        loops=bounded.loops,
        assumptions=(*_assumptions(request, values), *bounded.assumptions, *facts),
        worst_path=tuple(proof.worst_path(instructions)),
        accesses=tuple(_access_ranges(values)),
        certificates={},
    )


# --------------------------------------------------------------------------------------------------------------- values


def _values(request: BoundRequest, parameters: Mapping[str, int]) -> Values:
    """Values of the graph, whose indirect branches are resolved by the values of a smaller one."""
    image, facts = request.image, request.facts
    lifter = Lifter(request.target.pcode_language, request.target.isa, code_reader(image.segments))
    entry = require_symbol(image, request.entry)
    if not entry.is_function:
        raise UsageError(f"{request.entry} is no function of the image; name one of its functions.")
    depths = {fact.place.function: evaluate(fact.max_depth, parameters) for fact in facts.recursions}
    indirect: dict[int, tuple[int, ...]] = _told_targets(request)
    arguments = _arguments(request, parameters)
    costs = cost_table(request.instructions, request.costs)
    for _ in range(_MOST_RESOLUTIONS):
        graph = build_supergraph(image, lifter, entry, indirect, depths)
        for point in graph.points:
            check_chargeable(point.block, costs)
        values = analyze_values(image, lifter, graph, arguments)
        found = {site: targets for site, targets in values.indirect.items() if targets and site not in indirect}
        if not found:
            break
        indirect |= found
    _check_resolved(image, graph, values)
    return values


def _told_targets(request: BoundRequest) -> dict[int, tuple[int, ...]]:
    """Targets of indirect branches and calls, as facts name them."""
    image = request.image
    everything = Analysed(image, [function.name for function in image.functions], ())
    index = index_sources(request.sources)
    told: dict[int, tuple[int, ...]] = {}
    for fact in request.facts.calls:
        ranges = check_place(fact.where, fact.place, fact.sha256, index, everything)
        targets = tuple(require_symbol(image, name).address for name in fact.targets)
        for instruction in request.instructions:
            if any(instruction.address in code for code in ranges) and instruction.branch_target is None:
                told[instruction.address] = targets
    return told


def _arguments(request: BoundRequest, parameters: Mapping[str, int]) -> dict[str, StridedInterval]:
    first = 3 if request.target.isa is Isa.POWERPC else 0
    ranges: dict[str, StridedInterval] = {}
    for fact in request.facts.arguments:
        if fact.function == request.entry:
            register = fact.register if fact.index is None else f"r{first + fact.index}"
            low, high = evaluate(fact.minimum, parameters), evaluate(fact.maximum, parameters)
            if low > high:
                raise UsageError(f"{fact.where}: the least value, {low}, is above the greatest, {high}; correct one.")
            ranges[str(register)] = strided.between(32, low, high)
    return ranges


def _check_resolved(image: Image, graph: Supergraph, values: Values) -> None:
    reachable = {graph.points[index].block.last_address for index in values.states}
    for address in graph.unresolved:
        if address in reachable:
            raise AnalysisError(
                f"the targets of the indirect branch or call at {image.location(address)} are not known: "
                "name them by a flow fact, [[calls]] function = …, offset = …, targets = […]."
            )
    if not any(edge.target == EXIT for edge in values.edges):
        raise AnalysisError(f"{graph.entry.name} never returns: there is no worst-case execution time.")


# ---------------------------------------------------------------------------------------------------------------- loops


@dataclass(frozen=True, slots=True)
class _Bounded:
    loops: tuple[LoopBound, ...]
    flow: tuple[BoundedLoop, ...]
    limits: tuple[Limit, ...]
    assumptions: tuple[Assumption, ...]


def _analysed(image: Image, values: Values) -> Analysed:
    """The binary's loops, the contexts put together."""
    points = values.graph.points
    shapes = loop_shapes(values)
    grouped: dict[int, list[LoopShape]] = {}
    for shape in shapes:
        grouped.setdefault(points[shape.loop.header].block.address, []).append(shape)
    sites = tuple(_site(image, values, address, group) for address, group in grouped.items())
    return Analysed(image, sorted({points[index].function.name for index in values.states}), sites)


def _site(image: Image, values: Values, address: int, shapes: Sequence[LoopShape]) -> LoopSite:
    points = values.graph.points
    header = points[shapes[0].loop.header]
    latches = {points[edge.source].block.last_address for shape in shapes for edge in shape.back_edges}
    own: set[int] = set()
    for shape in shapes:
        inner = {node for part in shape.loop.parts if not isinstance(part, int) for node in part.nodes}
        context = points[shape.loop.header].context
        for node in shape.loop.nodes - inner:
            if points[node].context == context:
                own.update(instruction.address for instruction in points[node].block.instructions)
    parent = shapes[0].parent
    outer = None
    if parent is not None and points[parent.header].context == header.context:
        outer = points[parent.header].block.address
    return LoopSite(
        function=header.function.name,
        header_address=address,
        offset=address - header.function.address,
        latch_lines=tuple(line for at in sorted(latches) if (line := image.lines.find(at))),
        own_lines=tuple(line for at in sorted(own) if (line := image.lines.find(at))),
        bottom_tested=all(shape.bottom_tested for shape in shapes),
        outer=outer,
    )


def _bounded_loops(image: Image, values: Values, facts: Sequence[BoundFact]) -> _Bounded:
    shapes = loop_shapes(values)
    counts = count_loops(values, shapes)
    loops, flow, limits = [], [], []
    assumed: dict[str, Assumption] = {}
    missing: list[str] = []
    by_header = {}
    for shape in shapes:
        point = values.graph.points[shape.loop.header]
        told = [fact for fact in facts if fact.header_address == point.block.address and fact.max_header is not None]
        count = counts.get(shape.loop.header)
        fact = min(told, key=lambda each: each.max_header or 0, default=None)
        if fact is None and count is None and not _has_total(facts, point.block.address):
            missing.append(image.location(point.block.address))
            continue
        bound = _loop_bound(image, values, shape, count, fact, facts)
        loops.append(bound)
        if bound.origin is not Origin.PROVED:
            assumed[bound.where] = _fact_assumption(bound)
        flow.append(BoundedLoop(shape.loop.header, shape.entry_edges, shape.back_edges, bound.max))
        by_header.setdefault(point.block.address, []).append(shape)
        if count is not None and count.total is not None and shape.parent is not None:
            limits.append(_proved_total(values, shape, shapes, count.total))
    if missing:
        raise AnalysisError(
            f"no bound for the loop{'s' if len(missing) > 1 else ''} at {', '.join(sorted(set(missing)))}: "
            "say how often it repeats by a flow fact ([[loop]] with max or total) or by a loopbound pragma."
        )
    totals = _fact_totals(values, shapes, facts)
    for fact in facts:
        if fact.total is not None:
            text = f"the loop at {fact.where} repeats at most {fact.total_expression} times in all"
            assumed[f"{fact.where} total"] = Assumption(f"fact {fact.where}", f"{text}: {fact.because}", "every run")
    return _Bounded(tuple(loops), tuple(flow), (*limits, *totals), tuple(assumed.values()))


def _has_total(facts: Sequence[BoundFact], header_address: int) -> bool:
    return any(fact.header_address == header_address and fact.total is not None for fact in facts)


def _loop_bound(
    image: Image,
    values: Values,
    shape: LoopShape,
    count: Count | None,
    fact: BoundFact | None,
    facts: Sequence[BoundFact],
) -> LoopBound:
    point = values.graph.points[shape.loop.header]
    address = point.block.address
    line = image.lines.find(address) or ("", 0)
    if count is not None and (fact is None or fact.max_header is None or count.max_header <= fact.max_header):
        origin, most, where, because = Origin.PROVED, count.max_header, "", ""
        expression = f"{count.counter} {count.relation} in steps of {count.step} from {count.distance_high}"
        total = count.total
    elif fact is not None and fact.max_header is not None:
        origin, most, where, because = Origin(fact.origin), fact.max_header, fact.where, fact.because
        expression, total = fact.max_expression, None
    else:
        whole = next(f for f in facts if f.header_address == address and f.total is not None)
        most = (whole.total or 0) + whole.total_for_each_entry
        origin, where, because = Origin(whole.origin), whole.where, whole.because
        expression, total = f"total {whole.total_expression}", whole.total
    return LoopBound(
        function=point.function.name,
        address=address,
        context=point.context,
        location=image.location(address),
        file=line[0],
        line=line[1],
        max=most,
        total=total,
        origin=origin,
        expression=expression,
        where=where,
        because=because,
    )


def _fact_assumption(bound: LoopBound) -> Assumption:
    because = f": {bound.because}" if bound.because else ""
    return Assumption(
        f"{bound.origin} {bound.where}",
        f"the loop at {bound.location} repeats at most {bound.expression} times for each entry{because}",
        "every emulated run counts its iterations",
    )


def _proved_total(values: Values, shape: LoopShape, shapes: Sequence[LoopShape], total: int) -> Limit:
    parent = next(each for each in shapes if shape.parent is not None and each.loop.header == shape.parent.header)
    entering: list[tuple[object, int]] = [(edge, -total) for edge in parent.entry_edges]
    if parent.loop.header == 0:
        entering.append((None, -total))
    return Limit(f"total:{shape.loop.header}", ((shape.loop.header, 1),), tuple(entering))  # type: ignore[arg-type]


def _fact_totals(values: Values, shapes: Sequence[LoopShape], facts: Sequence[BoundFact]) -> list[Limit]:
    """Totals of facts; all copies of a loop that one fact speaks of share its total."""
    by_address: dict[int, list[LoopShape]] = {}
    for shape in shapes:
        by_address.setdefault(values.graph.points[shape.loop.header].block.address, []).append(shape)
    grouped: dict[tuple[str, int, tuple[int, ...]], list[BoundFact]] = {}
    for fact in facts:
        if fact.total is not None:
            grouped.setdefault((fact.where, fact.total, fact.within), []).append(fact)
    limits = []
    for number, ((_, total, within), group) in enumerate(grouped.items()):
        points: list[tuple[int, int]] = []
        edges: list[tuple[object, int]] = []
        for fact in group:
            for shape in by_address.get(fact.header_address, []):
                points.append((shape.loop.header, 1))
                edges += [(edge, -fact.total_for_each_entry) for edge in _entries(shape)]
        outer = [shape for address in within for shape in by_address.get(address, [])]
        edges += [(edge, -total) for shape in outer for edge in _entries(shape)]
        limits.append(Limit(f"fact:{number}", tuple(points), tuple(edges), 0 if within else total))  # type: ignore[arg-type]
    return limits


def _entries(shape: LoopShape) -> list[object]:
    return [*shape.entry_edges, *([None] if shape.loop.header == 0 else [])]


# ----------------------------------------------------------------------------------------------------------- flow facts


def _limits(
    request: BoundRequest,
    parameters: Mapping[str, int],
    values: Values,
    index: SourceIndex,
    analysed: Analysed,
) -> tuple[list[Limit], list[Assumption]]:
    """What infeasible and flow facts say, and the other assumptions of the facts."""
    limits, assumed = [], []
    facts = request.facts
    for number, infeasible in enumerate(facts.infeasible):
        ranges = check_place(infeasible.where, infeasible.place, infeasible.sha256, index, analysed)
        never = _points_within(values, ranges)
        if never:
            limits.append(Limit(f"infeasible:{number}", tuple((point, 1) for point in never)))
            text = f"{infeasible.place} is never executed: {infeasible.because}"
            assumed.append(Assumption(f"fact {infeasible.where}", text, "every emulated run"))
    for number, flow in enumerate(facts.flows):
        points = _flow_terms(values, index, analysed, flow)
        most = evaluate(flow.maximum, parameters)
        if points:
            limits.append(Limit(f"flow:{flow.where.replace(' ', '_')}:{number}", tuple(points.items()), constant=most))
            text = f"a weighted sum of executions in {flow.place.function} is at most {flow.maximum}: {flow.because}"
            assumed.append(Assumption(f"fact {flow.where}", text, "every emulated run"))
    for argument in facts.arguments:
        if argument.function == request.entry:
            name = argument.register if argument.index is None else f"argument {argument.index}"
            text = f"{name} is {argument.minimum} to {argument.maximum} at entry: {argument.because}"
            assumed.append(Assumption(f"fact {argument.where}", text, "every emulated run"))
    for recursion in facts.recursions:
        if recursion.place.function in analysed.functions:
            text = f"at most {recursion.max_depth} calls of {recursion.place.function} are open: {recursion.because}"
            assumed.append(Assumption(f"fact {recursion.where}", text, "not checked"))
    for calls in facts.calls:
        if calls.place.function in analysed.functions:
            text = f"{calls.place} calls only {', '.join(calls.targets)}: {calls.because}"
            assumed.append(Assumption(f"fact {calls.where}", text, "every emulated run"))
    assumed += [
        Assumption(f"lemma {lemma.id}", f"{lemma.statement}: {lemma.because}", lemma.check) for lemma in facts.lemmas
    ]
    return limits, assumed


def _points_within(values: Values, ranges: Sequence[MemoryRange]) -> list[int]:
    """The reachable points all of whose instructions are in ``ranges``: what else shares a block is executed anyway."""
    return [
        index
        for index in sorted(values.states)
        if all(
            any(instruction.address in code for code in ranges)
            for instruction in values.graph.points[index].block.instructions
        )
    ]


def _flow_terms(values: Values, index: SourceIndex, analysed: Analysed, flow: FlowFact) -> dict[int, int]:
    """Weights of the points that a flow fact sums over; empty where its function is not analysed."""
    weights: dict[int, int] = {}
    for kind, name, coefficient in flow.terms:
        if kind == "point":
            ranges = check_place(flow.where, replace(flow.place, name=name), flow.sha256, index, analysed)
            found = [i for i in values.states if _touches(values, i, ranges)]
        else:
            source = [each for each in index.loops(flow.place.function, flow.place.file) if each.label == name]
            headers = {a for a, loop in match_loops(analysed.sites, index).items() if loop in source}
            found = [i for i in values.states if values.graph.points[i].block.address in headers]
        if len({values.graph.points[i].block.address for i in found}) > 1 and kind == "point":
            raise UsageError(
                f"{flow.where}: point {name!r} has become several blocks; name a statement that stays one."
            )
        for point in found:
            weights[point] = weights.get(point, 0) + coefficient
    return weights


def _touches(values: Values, index: int, ranges: Sequence[MemoryRange]) -> bool:
    block = values.graph.points[index].block
    return any(instruction.address in code for code in ranges for instruction in block.instructions)


# ----------------------------------------------------------------------------------------------------------------- IPET


@dataclass(frozen=True, slots=True)
class _Solved:
    problem: FlowProblem
    solution: Solution


@dataclass(frozen=True, slots=True)
class _Proof:
    """The flow problem in each unit, and what its solution says."""

    request: BoundRequest
    values: Values
    bounded: _Bounded
    limits: Sequence[Limit]

    def solved(self, unit: str) -> _Solved:
        values, target = self.values, self.request.target
        costs = cost_table(self.request.instructions, self.request.costs)
        problem = flow_problem(
            values,
            self.bounded.flow,
            self.limits,
            Subject(self.request.image.sha256, target.name, unit),  # type: ignore[arg-type]
            lambda point: self._cost(point.index, unit, costs),
            lambda edge: (
                0
                if unit == "instructions"
                else taken_cycles(values.graph.points[edge.source].block, edge.address, costs)
            ),
        )
        return _Solved(problem, solve(flow_system(problem)))

    def _cost(self, index: int, unit: str, costs: Costs) -> int:
        block = self.values.graph.points[index].block
        if unit == "instructions":
            return len(block.instructions)
        return block_cycles(block, self.values.accesses[index], costs, self.request.target)

    def worst_path(self, solved: _Solved) -> Iterable[PathBlock]:
        """The blocks of the worst path, in order of contexts and addresses."""
        executed: dict[str, int] = {}
        for edge in solved.problem.edges:
            executed[edge.target] = executed.get(edge.target, 0) + solved.solution.counts[edge.name]
        executed[solved.problem.entry] = executed.get(solved.problem.entry, 0) + solved.solution.counts[ENTER]
        points = (self.values.graph.points[index] for index in sorted(self.values.states))
        for node, point in zip(solved.problem.nodes, points, strict=True):
            if executed.get(node.name):
                yield PathBlock(
                    function=point.function.name,
                    context=point.context,
                    address=point.block.address,
                    end_address=point.block.end_address,
                    location=self.request.image.location(point.block.address),
                    instructions=len(point.block.instructions),
                    executions=executed[node.name],
                    cost=executed[node.name] * node.cost,
                )


# ---------------------------------------------------------------------------------------------------------- assumptions


def _assumptions(request: BoundRequest, values: Values) -> list[Assumption]:
    assumed = [
        Assumption(
            "no-interference",
            "nothing else runs during the call: no interrupt, exception, DMA or other core",
            "not checked: the integrator's",
        ),
        Assumption("timing-model", f"the core takes the cycles of targets/{request.target.name}.toml", "not checked"),
    ]
    stores = [access for found in values.accesses.values() for access in found if access.is_store]
    if any(access.base is Base.NUMBER and not access.offset.is_constant for access in stores):
        assumed.append(
            Assumption(
                "stack-separation",
                "a store through a pointer that is not derived from the stack pointer misses the call's stack frames",
                "every cross-checked run compares each access with its invariant",
            )
        )
    if request.target.dcache:
        assumed.append(Assumption("alignment", "no data access crosses a cache line", "every cross-checked run"))
    if values.unchecked_returns:
        assumed.append(Assumption("return-address", "functions return to their callers", "every cross-checked run"))
    return assumed


def _access_ranges(values: Values) -> Iterable[AccessRange]:
    for index in sorted(values.states):
        point = values.graph.points[index]
        for access in values.accesses[index]:
            yield AccessRange(
                address=access.instruction_address,
                context=point.context,
                is_store=access.is_store,
                base=access.base.name.lower(),
                low=access.offset.low,
                stride=access.offset.stride,
                steps=access.offset.steps,
                size_bytes=access.size_bytes,
            )
