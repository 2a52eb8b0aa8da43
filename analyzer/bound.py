"""The whole proof: graph, values, loop bounds, flow facts, IPET, certificate.

*Soundness:* the bound holds for every execution of the entry function that meets the assumptions; each of them is an
entry of ``Bound.assumptions``. What cannot be resolved is an error that names it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from wcet_probe.analyzer import strided
from wcet_probe.analyzer.certificate import certificate
from wcet_probe.analyzer.conflicts import Conflict, conflicting_edges
from wcet_probe.analyzer.costs import Costs, block_cycles, check_chargeable, cost_table, taken_cycles
from wcet_probe.analyzer.expressions import evaluate
from wcet_probe.analyzer.fact_binding import Analysed, bound_facts, check_place, parameter_values
from wcet_probe.analyzer.facts import Facts
from wcet_probe.analyzer.flow_facts import flow_facts
from wcet_probe.analyzer.flow_graph import Limit, Subject, flow_problem
from wcet_probe.analyzer.ipet import ENTER, FlowProblem, Solution, flow_system, solve
from wcet_probe.analyzer.lift import Lifter, code_reader
from wcet_probe.analyzer.loop_bounds import BoundedLoops, analysed_code, bound_loops
from wcet_probe.analyzer.source_match import index_sources
from wcet_probe.analyzer.state import Base, Location
from wcet_probe.analyzer.strided import StridedInterval
from wcet_probe.analyzer.supergraph import EXIT, Edge, Supergraph, build_supergraph
from wcet_probe.analyzer.values import Values, analyze_values
from wcet_probe.errors import AnalysisError, UsageError
from wcet_probe.image import require_symbol
from wcet_probe.model import Image, Instruction, InstructionCost, Isa, Target
from wcet_probe.proof import AccessRange, Assumption, Bound, PathBlock, RegisterRange


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
    analysed = analysed_code(request.image, values)
    progress("bounding the loops")
    facts = bound_facts(request.facts, index, analysed, parameters)
    bounded = bound_loops(request.image, values, facts, parameters)
    told = flow_facts(request.facts, request.entry, parameters, values, index=index, analysed=analysed)
    progress("solving the flow problem")
    conflicts = [_conflict_limit(number, each) for number, each in enumerate(conflicting_edges(values))]
    proof = _Proof(request, values, bounded, [*bounded.limits, *told.limits, *conflicts])
    instructions, cycles = proof.solved("instructions"), proof.solved("cycles")
    return Bound(
        entry=request.entry,
        parameters=parameters,
        instructions=instructions.solution.certified,
        cycles=cycles.solution.certified,
        blocks=len(values.states),
        loops=bounded.loops,
        assumptions=(*_assumptions(request, values), *bounded.assumptions, *told.assumptions),
        worst_path=tuple(proof.worst_path(instructions)),
        points=tuple(
            (values.graph.points[i].block.address, values.graph.points[i].context) for i in sorted(values.states)
        ),
        accesses=tuple(_access_ranges(values)),
        registers=tuple(_register_ranges(request, values)),
        loop_claims=bounded.claims,
        flow_claims=(*bounded.flow_claims, *told.claims),
        certificates=(proof.certificate(instructions), proof.certificate(cycles)),
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
    while True:
        graph = build_supergraph(image, lifter, entry, indirect, depths)
        for point in graph.points:
            check_chargeable(point.block, costs)
        values = analyze_values(image, lifter, graph, arguments)
        # Each round resolves a branch that was not resolved before: there are as many rounds as branches at most.
        found = {site: targets for site, targets in values.indirect.items() if targets and site not in indirect}
        if not found:
            _check_resolved(image, graph, values)
            return values
        indirect |= found


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


# ----------------------------------------------------------------------------------------------------------------- IPET


def _conflict_limit(number: int, conflict: Conflict) -> Limit:
    """At most one of two edges for each pass of the header, or in the call."""
    edges = tuple((edge, 1) for edge in dict.fromkeys((conflict.first, conflict.second)))
    passes = ((conflict.header, -1),) if conflict.header is not None else ()
    return Limit(f"conflict:{number}", passes, edges, 0 if passes else 1)


@dataclass(frozen=True, slots=True)
class _Solved:
    problem: FlowProblem
    solution: Solution


@dataclass(frozen=True, slots=True)
class _Proof:
    """The flow problem in each unit, and what its solution says."""

    request: BoundRequest
    values: Values
    bounded: BoundedLoops
    limits: Sequence[Limit]

    def solved(self, unit: str) -> _Solved:
        values, target = self.values, self.request.target
        costs = cost_table(self.request.instructions, self.request.costs)
        problem = flow_problem(
            values,
            self.bounded.flow,
            self.limits,
            Subject(self.request.image.sha256, target.name, unit),  # type: ignore[arg-type]
            cost=lambda point: self._cost(point.index, unit, costs),
            edge_cost=lambda edge: self._edge_cost(edge, unit, costs),
        )
        return _Solved(problem, solve(flow_system(problem)))

    def certificate(self, solved: _Solved) -> str:
        """The certificate of a solution."""
        return certificate(solved.problem, solved.solution, self.bounded.derivations)

    def _cost(self, index: int, unit: str, costs: Costs) -> int:
        block = self.values.graph.points[index].block
        if unit == "instructions":
            return len(block.instructions)
        return block_cycles(block, self.values.accesses[index], costs, self.request.target)

    def _edge_cost(self, edge: Edge, unit: str, costs: Costs) -> int:
        if unit == "instructions":
            return 0
        return taken_cycles(self.values.graph.points[edge.source].block, edge.address, costs)

    def worst_path(self, solved: _Solved) -> Iterable[PathBlock]:
        """The blocks of the worst path, in order of contexts and addresses."""
        if solved.solution.optimum is None:
            return
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


def _register_ranges(request: BoundRequest, values: Values) -> Iterable[RegisterRange]:
    """What is known of the general registers where blocks begin; nothing where that is nothing."""
    lifter = Lifter(request.target.pcode_language, request.target.isa, code_reader(request.image.segments))
    count = 32 if request.target.isa is Isa.POWERPC else 15
    names = {f"r{number}": lifter.registers[f"r{number}"] for number in range(count)}
    for index in sorted(values.states):
        point, state = values.graph.points[index], values.states[index]
        for name, varnode in names.items():
            term = state.read(Location("register", varnode.offset, varnode.size_bytes))
            if term is None or state.base(term) is Base.ANY or state.value(term).is_top:
                continue
            value = state.value(term)
            base = state.base(term).name.lower()
            yield RegisterRange(point.block.address, point.context, name, base, value.low, value.stride, value.steps)
