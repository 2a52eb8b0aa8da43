"""What a certificate says of caches: names of values, lines that are resident, and which misses are counted where.

The relations that the cache analysis knows are those of its terms. The checker is told less: where a node begins, that
a place holds a symbol and some bytes more. These names are found here, by executing each node as the checker does: a
value number for each class of places that hold the same but for a constant on each edge. So are the lines that are
resident, by the checker's own transfer functions. From the analysis comes only by which event each miss is counted.

Words: certificate, value numbering, must analysis, credits (docs/explanation/glossary.md).

*Soundness:* none is claimed. The checker tests the result, and says what it could not follow.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from math import floor

from wcet_probe.analyzer.domains.lattice import Joined
from wcet_probe.analyzer.ipet.balances import left_of
from wcet_probe.analyzer.ipet.checkable import flow_graph
from wcet_probe.analyzer.ipet.flow_system import Constraint, FlowProblem, Solution, flow_system, solve
from wcet_probe.analyzer.ipet.followed_proof import FollowedPairs, at_costs, followed_solution, with_credits
from wcet_probe.analyzer.ipet.joined_lines import joined_must
from wcet_probe.analyzer.ipet.modified_lines import modified_lines
from wcet_probe.analyzer.ipet.node_flow import NodeFlow
from wcet_probe.analyzer.ipet.numbering import Numbering
from wcet_probe.analyzer.ipet.shown import with_shown
from wcet_probe.analyzer.ipet.wanted import wanted_lines
from wcet_probe.certificate.caches.annotations import Annotations
from wcet_probe.certificate.caches.cached import shown_limits
from wcet_probe.certificate.caches.misses import FETCH, Caches, LinearConstraint, Needed, Side, caches_of, paying
from wcet_probe.certificate.caches.residents import Must, must_holds
from wcet_probe.certificate.caches.steps import Step
from wcet_probe.certificate.flow.rounds import ranges_in_rounds
from wcet_probe.certificate.flow.walk import Covered
from wcet_probe.certificate.kernel.charge import node_cost
from wcet_probe.certificate.kernel.coverage import Code, Coverage
from wcet_probe.certificate.kernel.records import Edge, Graph, LoopRecord
from wcet_probe.certificate.names.names import Names, Pointers
from wcet_probe.certificate.names.symbols import Tracer, speaking
from wcet_probe.certificate.values.numbers import Value
from wcet_probe.certificate.values.state import Place
from wcet_probe.errors import VerificationError
from wcet_probe.model.instruction import InstructionCost
from wcet_probe.model.target import Target

_MOST_ROUNDS = 12
_FRESH = "@"

Invariants = Mapping[str, Mapping[Place, Value]]


def find_caches(
    code: Code,
    graph: Graph,
    invariants: Invariants,
    coverage: Coverage,
    *,
    target: Target,
    asserted: Pointers,
    crosses_no_line: Callable[[int], bool],
) -> Iterator[tuple[Names, Caches]]:
    """Names of values, and the accesses of the graph by them; then with what accesses have shown of names, if anything.

    Then both with sums of symbols as names of places. Without caches there are no names first: alignments alone are
    asked for, which invariants may tell.

    Args:
        code: the image.
        graph: of the flow problem.
        invariants: of its nodes.
        coverage: of the graph, by the checker.
        target: a core with caches, or one on which unaligned accesses take longer.
        asserted: what facts say that numbers are multiples of, if they are loaded and added to addresses.
        crosses_no_line: whether an assumption says so of the accesses of the instruction at an address.

    Raises:
        VerificationError: the names do not hold.

    *Soundness:* none is claimed.
    """
    asserted = speaking(asserted, code, graph, invariants, coverage)
    if target.icache is None and target.dcache is None:
        names = Names({}, {}, asserted)
        yield (
            names,
            caches_of(target, graph, coverage, Tracer(code, graph, invariants, coverage, names), crosses_no_line),
        )
    for with_sums in (False, True):
        names = Numbering(code, graph, invariants, coverage, asserted, with_sums=with_sums).run()
        if with_sums and not names.sums:
            break
        tracer = Tracer(code, graph, invariants, coverage, names)
        caches = caches_of(target, graph, coverage, tracer, crosses_no_line)
        yield names, caches
        taken = {name: coverage.taken[name] for name in caches.passages}
        names = with_shown(code, graph, invariants, replace(coverage, taken=taken), names)
        if names.shown:
            tracer = Tracer(code, graph, invariants, coverage, names)
            yield names, caches_of(target, graph, coverage, tracer, crosses_no_line)


def resident(caches: Caches, side: Side, flow: NodeFlow) -> dict[str, Must]:
    """The lines that must be in a cache where nodes begin: the greatest fixpoint, as the checker sees it.

    *Soundness:* none is claimed.
    """
    residents, kept = side.residents, wanted_lines(side, flow)

    def leaving(node: str, must: Must) -> Callable[[Edge], Must]:
        after = caches.behind(side, node, must)
        return lambda edge: kept(edge.target, residents.along(after, caches.passages[edge.name]))

    states = flow.least(Joined(partial(joined_must, residents), partial(must_holds, residents)), {}, leaving)
    return {node: must for node, must in states.items() if must}


@dataclass(frozen=True, slots=True)
class CountedMisses:
    """By which event, or by which edges, the analysis counts misses.

    Attributes:
        fetches: by node and the number of the fetch in it.
        data: by node, for each access in order the address of its instruction (None: a fetch), and the event or None.
        paid: edges by name, each of which pays for a miss.
    """

    fetches: Mapping[str, Mapping[int, str]]
    data: Mapping[str, Sequence[tuple[int | None, str | None]]]
    paid: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Annotated:
    """A flow problem in cycles and its solution, as far as the checker can follow it, and what is said of caches.

    Attributes:
        annotations: records of the certificate.
        problem: the flow problem; see `followed_proof` for how it may differ from the one that was given.
        solution: of it.
    """

    annotations: Annotations
    problem: FlowProblem
    solution: Solution


@dataclass(frozen=True, slots=True)
class _Found:
    """What is said of caches by some names, and the least that the checker then asks for.

    Attributes:
        annotations: what is said.
        caches: by the names.
        needed: by node, what it has to charge besides its instructions.
        nodes, edges, exits: the least costs of each.
        open_limits: limits of misses that are used and not shown.
    """

    annotations: Annotations
    caches: Caches
    needed: Mapping[str, Needed]
    nodes: Mapping[str, int]
    edges: Mapping[str, int]
    exits: Mapping[str, int]
    open_limits: frozenset[str]


def cache_annotations(
    problem: FlowProblem,
    solution: Solution,
    pairs: FollowedPairs,
    *,
    costs: Mapping[int, InstructionCost],
    target: Target,
    asserted: Pointers,
    counted: CountedMisses,
    crosses_no_line: Callable[[int], bool],
) -> Annotated:
    """What the certificate in cycles says of caches.

    Args:
        problem: the flow problem in cycles.
        solution: of it; what has no multiplier needs no proof.
        pairs: of its graph, which is covered, that exclude each other.
        costs: of the instructions.
        target: as of `find_caches`.
        asserted: see `find_caches`.
        counted: by what misses are counted.
        crosses_no_line: see `find_caches`.

    *Soundness:* none is claimed.
    """
    annotate = partial(_annotated, coverage=pairs.coverage, costs=costs, counted=counted)
    best: _Found | None = None
    try:
        for names, caches in find_caches(
            pairs.code,
            pairs.graph,
            _with_rounds(problem, pairs, target),
            pairs.coverage,
            target=target,
            asserted=asserted,
            crosses_no_line=crosses_no_line,
        ):
            found = annotate(problem, solution.dual, names, caches)
            if best is None or len(found.annotations.unchecked) < len(best.annotations.unchecked):
                best = found
            if not best.annotations.unchecked:  # what accesses have shown is told where something is not followed
                break
    except VerificationError:
        pass  # the names that were found before hold
    if best is None:
        nothing = Annotations(Names({}, {}, asserted), unchecked=frozenset(pairs.graph.nodes))
        return Annotated(nothing, problem, solution)
    return _followed(problem, solution, pairs, best, annotate)


def _with_rounds(problem: FlowProblem, pairs: FollowedPairs, target: Target) -> Invariants:
    """The invariants, with what the rounds of loops tell of places besides: the checker reads addresses by both."""
    if target.dcache is None:
        return pairs.invariants
    covered = Covered(pairs.code, pairs.graph, pairs.invariants, pairs.coverage)
    moved = ranges_in_rounds(covered, _loop_records(problem, pairs.graph))
    return {node: {**known, **moved.get(node, {})} for node, known in pairs.invariants.items()}


def _loop_records(problem: FlowProblem, graph: Graph) -> list[LoopRecord]:
    targets = {edge.name: edge.target for edge in graph.edges}
    return [
        LoopRecord(one.name, targets[one.back_edges[0]], one.max_back_edges, one.entry_edges, one.back_edges)
        for one in problem.loops
    ]


def _followed(
    problem: FlowProblem, solution: Solution, pairs: FollowedPairs, best: _Found, annotate: Callable[..., _Found]
) -> Annotated:
    """A proof of the same bound of which the checker can follow all, if there is one; else what there is."""
    names, caches, found = best.annotations.names, best.caches, best
    weaker: FlowProblem | None = problem
    proof: Solution | None = None
    open_limits = set[str]()
    if best.annotations.unchecked:
        weaker = at_costs(problem, solution, nodes=best.nodes, edges=best.edges, exits=best.exits)
    if weaker is not None and (best.annotations.unchecked or best.open_limits):
        for name, credits_of in _write_backs(pairs.coverage, best).items():
            weaker = with_credits(weaker, name, credits_of)
    if weaker is not None:
        graph = flow_graph(weaker, caches.graph.excluded)
        caches = replace(caches, graph=graph)

        known = {one.name for one in problem.constraints if solution.dual.get(one.name)}

        def unfollowed(used: Collection[Constraint]) -> Collection[str]:
            nonlocal found
            if weaker is problem and {one.name for one in used} == known:
                found = best
            else:
                found = annotate(weaker, dict.fromkeys((one.name for one in used), 1), names, caches)
            open_limits.update(found.open_limits)
            return pairs.unfollowed(used) | found.open_limits

        start = solution
        if weaker is not problem:
            start = replace(solution, dual=solve(flow_system(weaker), counted=False).dual)
            if _proved(weaker, start.dual) != solution.certified:
                weaker = None
        proof = followed_solution(weaker, start, unfollowed) if weaker is not None else None
        if weaker is not None and proof is not None and not found.annotations.unchecked:
            return Annotated(found.annotations, weaker, proof)
    was_asked = weaker is problem and not open_limits
    proof = (proof if was_asked else followed_solution(problem, solution, pairs.unfollowed)) or solution
    return Annotated(annotate(problem, proof.dual, names, best.caches).annotations, problem, proof)


def _proved(problem: FlowProblem, dual: Mapping[str, Fraction]) -> int:
    return floor(sum(one.constant * dual[one.name] for one in flow_system(problem).constraints))


def _write_backs(coverage: Coverage, found: _Found) -> dict[str, dict[str, int]]:
    """By limit of write-backs, the credits that the checker asks for of each edge."""
    result: dict[str, dict[str, int]] = {}
    for edge in found.caches.graph.edges:
        if edge.name in coverage.taken:
            behind, before = found.needed[edge.target], found.needed[edge.source]
            fills = behind.fills + (before.leaving_fills if edge.name in coverage.gone else 0)
            each = {"write-backs:misses": fills, "write-backs:modified": behind.modify}
            for name, count in {**each, "write-backs:single": behind.singles}.items():
                result.setdefault(name, {})[edge.name] = count
    return result


def _annotated(
    problem: FlowProblem,
    dual: Mapping[str, object],
    names: Names,
    caches: Caches,
    *,
    coverage: Coverage,
    costs: Mapping[int, InstructionCost],
    counted: CountedMisses,
) -> _Found:
    """What is said of caches by ``names``, and the nodes that charge less than the checker then asks for."""
    graph = caches.graph
    flow = NodeFlow(graph, (edge for edge in graph.edges if edge.name in caches.passages))
    auxiliaries = {auxiliary.name: auxiliary.cost for auxiliary in problem.auxiliaries}
    known = auxiliaries.keys() | counted.paid.keys()
    misses = {
        node: {key: name for key, name in own.items() if name in known}
        for node, own in _misses(caches, counted).items()
    }
    must = {side.name: resident(caches, side, flow) for side in caches.sides}
    found = Annotations(names, misses, counted.paid, must)
    constraints = [
        LinearConstraint(
            one.name,
            {name: factor for name, factor in one.coefficients.items() if factor and name in auxiliaries},
            {name: -factor for name, factor in one.coefficients.items() if factor and name not in auxiliaries},
            one.constant,
        )
        for one in problem.constraints
        if dual.get(one.name) and not auxiliaries.keys().isdisjoint(one.coefficients)
    ]
    if any("write-backs" in one.events for one in constraints):
        found = replace(found, modified=modified_lines(caches, found, flow))
    for constraint in paying(found).values():
        if not _holds(caches, constraint, found, flow):
            kept = {node: {k: n for k, n in own.items() if n != constraint.name} for node, own in found.misses.items()}
            paid = {name: edges for name, edges in found.paid.items() if name != constraint.name}
            found = replace(found, misses=kept, paid=paid)
    held = {}
    for constraint in (*constraints, *paying(found).values()):
        left = left_of(caches, constraint, found, flow)
        if left and caches.is_limited(constraint, replace(found, held={constraint.name: left})):
            held[constraint.name] = left
    found = replace(found, held=held)
    needed = {node: caches.needed(node, found) for node in graph.nodes}
    nodes = {
        node: node_cost(coverage.instructions[node], costs, caches.target, "cycles") + needed[node].cycles
        for node in graph.nodes
    }
    edges = {edge.name: needed[edge.source].leaving_cycles for edge in graph.edges if edge.name in coverage.gone}
    exits = {node: needed[node].leaving_cycles for node in graph.exits}
    unchecked = {node for node, (_, cost) in graph.nodes.items() if cost < nodes[node]}
    unchecked |= {edge.source for edge in graph.edges if edge.cost < edges.get(edge.name, 0)}
    unchecked |= {node for node, cost in graph.exits.items() if cost < exits[node]}
    found = replace(found, unchecked=frozenset(unchecked))
    limits = {one.name: one for one in constraints}
    loops = _loop_records(problem, caches.graph)
    shown = shown_limits(caches, limits, found, needed, coverage, events=auxiliaries, loops=loops)
    return _Found(found, caches, needed, nodes, edges, exits, frozenset(limits.keys() - shown))


def _holds(caches: Caches, constraint: LinearConstraint, annotations: Annotations, flow: NodeFlow) -> bool:
    left = left_of(caches, constraint, annotations, flow)
    return caches.is_limited(constraint, replace(annotations, held={constraint.name: left}))


def _misses(caches: Caches, counted: CountedMisses) -> dict[str, dict[tuple[int, int], str]]:
    """By what the misses of the checker's steps are counted."""
    found: dict[str, dict[tuple[int, int], str]] = {}
    for side in caches.sides:
        for node, steps in side.steps.items():
            own = found.setdefault(node, {})
            if side.name == FETCH:
                names = counted.fetches.get(node, {})
                own |= {step.key: names[number] for number, step in enumerate(steps) if number in names}
                continue
            data = counted.data.get(node, ())
            fetched = [name for address, name in data if address is None]
            own |= _paired([step for step in steps if step.is_fetch], fetched)
            for address in dict.fromkeys(address for address, _ in data if address is not None):
                named = [name for one, name in data if one == address]
                mine = [step for step in steps if step.instruction_address == address and not step.is_fetch]
                own |= _paired(mine, named)
    return {node: own for node, own in found.items() if own}


def _paired(steps: Sequence[Step], names: Sequence[str | None]) -> dict[tuple[int, int], str]:
    if len(names) == 2 * len(steps):  # the checker knows that no access is to two lines
        names = [first if last is not None else None for first, last in zip(names[::2], names[1::2], strict=True)]
    if len(steps) != len(names):
        return {}
    return {step.key: name for step, name in zip(steps, names, strict=True) if name is not None and step.fills}
