"""What a certificate says of caches: names of values, lines that are resident, and which misses are counted where.

The relations that the cache analysis knows are those of its terms. The checker is told less: where a node begins, that
a place holds a symbol and some bytes more. These names are found here, by executing each node as the checker does: a
value number for each class of places that hold the same but for a constant on each edge. So are the lines that are
resident, by the checker's own transfer functions. From the analysis comes only by which event each miss is counted.

*Soundness:* none is claimed. The checker tests the result, and says what it could not follow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from wcet_probe.analyzer.ipet.balances import left_of
from wcet_probe.analyzer.ipet.flow_system import FlowProblem, Solution
from wcet_probe.analyzer.ipet.modified_lines import modified_lines
from wcet_probe.analyzer.ipet.numbering import Numbering, order_of
from wcet_probe.analyzer.ipet.shown import with_shown
from wcet_probe.analyzer.ipet.wanted import wanted_lines
from wcet_probe.certificate.annotations import Annotations
from wcet_probe.certificate.charge import node_cost
from wcet_probe.certificate.coverage import Code, Coverage, cover
from wcet_probe.certificate.flags import Flags
from wcet_probe.certificate.machine import Place
from wcet_probe.certificate.misses import FETCH, Caches, LinearConstraint, Side, caches_of, paying
from wcet_probe.certificate.numbers import Value
from wcet_probe.certificate.records import Graph
from wcet_probe.certificate.residents import Must, joined_must, must_holds
from wcet_probe.certificate.steps import Step
from wcet_probe.certificate.symbols import Names, Pointers, Tracer
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
        yield names, caches_of(target, graph, coverage, tracer, crosses_no_line)
        names = with_shown(code, graph, invariants, coverage, names)
        if names.shown:
            tracer = Tracer(code, graph, invariants, coverage, names)
            yield names, caches_of(target, graph, coverage, tracer, crosses_no_line)


def resident(caches: Caches, side: Side) -> dict[str, Must]:
    """The lines that must be in a cache where nodes begin: the greatest fixpoint, as the checker sees it.

    *Soundness:* none is claimed.
    """
    states: dict[str, Must] = {caches.graph.entry: {}}
    order, kept = order_of(caches.graph), wanted_lines(caches, side)
    waiting = [caches.graph.entry]
    place = {node: number for number, node in enumerate(order)}
    while waiting:
        waiting.sort(key=place.__getitem__, reverse=True)
        node = waiting.pop()
        after = caches.behind(side, node, states[node])
        for edge in caches.graph.leading[node]:
            if edge.name in caches.passages:
                new = kept(edge.target, side.residents.along(after, caches.passages[edge.name]))
                old = states.get(edge.target)
                if old is not None and must_holds(new, old):
                    continue
                states[edge.target] = new if old is None else joined_must(side.residents, old, new)
                if edge.target not in waiting:
                    waiting.append(edge.target)
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


def cache_annotations(
    problem: FlowProblem,
    solution: Solution,
    graph: Graph,
    code: Code,
    *,
    costs: Mapping[int, InstructionCost],
    target: Target,
    invariants: Invariants,
    flags: Flags,
    arguments: Mapping[Place, Value],
    asserted: Pointers,
    counted: CountedMisses,
    crosses_no_line: Callable[[int], bool],
) -> Annotations:
    """What the certificate in cycles says of caches.

    Args:
        problem: the flow problem in cycles.
        solution: of it; what has no multiplier needs no proof.
        graph: of the problem.
        code: the image.
        costs: of its instructions.
        target: as of `find_caches`.
        invariants: of the nodes.
        flags: what they tell where nodes begin.
        arguments: what facts say of registers at entry.
        asserted: see `find_caches`.
        counted: by what misses are counted.
        crosses_no_line: see `find_caches`.

    *Soundness:* none is claimed.
    """
    nothing = Annotations(Names({}, {}, asserted), unchecked=frozenset(graph.nodes))
    best = nothing
    try:
        coverage = cover(code, graph, invariants, arguments, flags)
        for names, caches in find_caches(
            code, graph, invariants, coverage, target=target, asserted=asserted, crosses_no_line=crosses_no_line
        ):
            found = _annotated(problem, solution, names, caches, coverage, costs=costs, counted=counted)
            if best is nothing or len(found.unchecked) < len(best.unchecked):
                best = found
            if not best.unchecked:  # what accesses have shown is told where something is not followed without it
                break
    except VerificationError:
        pass
    return best


def _annotated(
    problem: FlowProblem,
    solution: Solution,
    names: Names,
    caches: Caches,
    coverage: Coverage,
    *,
    costs: Mapping[int, InstructionCost],
    counted: CountedMisses,
) -> Annotations:
    """What is said of caches by ``names``, and the nodes that charge less than the checker then asks for."""
    graph, order = caches.graph, order_of(caches.graph)
    auxiliaries = {auxiliary.name for auxiliary in problem.auxiliaries}
    known = auxiliaries | counted.paid.keys()
    misses = {
        node: {key: name for key, name in own.items() if name in known}
        for node, own in _misses(caches, counted).items()
    }
    must = {side.name: resident(caches, side) for side in caches.sides}
    found = Annotations(names, misses, counted.paid, must)
    constraints = [
        LinearConstraint(
            one.name,
            {name: factor for name, factor in one.coefficients.items() if factor and name in auxiliaries},
            {name: -factor for name, factor in one.coefficients.items() if factor and name not in auxiliaries},
            one.constant,
        )
        for one in problem.constraints
        if solution.dual.get(one.name) and not auxiliaries.isdisjoint(one.coefficients)
    ]
    if any("write-backs" in one.events for one in constraints):
        found = replace(found, modified=modified_lines(caches, found, order))
    for constraint in paying(found).values():
        if not _holds(caches, constraint, found, order):
            kept = {node: {k: n for k, n in own.items() if n != constraint.name} for node, own in found.misses.items()}
            paid = {name: edges for name, edges in found.paid.items() if name != constraint.name}
            found = replace(found, misses=kept, paid=paid)
    held = {}
    for constraint in (*constraints, *paying(found).values()):
        left = left_of(caches, constraint, found, order)
        if left and caches.is_limited(constraint, replace(found, held={constraint.name: left})):
            held[constraint.name] = left
    found = replace(found, held=held)
    needed = {node: caches.needed(node, found) for node in graph.nodes}
    least = {node: node_cost(coverage.instructions[node], costs, caches.target, "cycles") for node in graph.nodes}
    unchecked = {node for node, (_, cost) in graph.nodes.items() if cost < least[node] + needed[node].cycles}
    gone = [(edge.source, edge.cost) for edge in graph.edges if edge.name in coverage.gone]
    for node, cost in (*gone, *graph.exits.items()):
        if needed[node].leaving_cycles > cost:
            unchecked.add(node)
    return replace(found, unchecked=frozenset(unchecked))


def _holds(caches: Caches, constraint: LinearConstraint, annotations: Annotations, order: Sequence[str]) -> bool:
    left = left_of(caches, constraint, annotations, order)
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
