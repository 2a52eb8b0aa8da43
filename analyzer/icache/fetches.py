"""What instruction fetches cost at most: a miss of a line once in the call, once where a loop is entered, or each time.

Words: line, persistence, scope (docs/explanation/glossary.md).

*Soundness:* a block fetches the lines of its instructions in order, a line once for as long as nothing else is fetched.
A fetch that always hits costs nothing. A line that is persistent in the whole call misses at most once in it, and not
more often than it is fetched: that is an auxiliary variable of the flow problem. A line that is persistent in a loop
misses at most once for each time that the loop is entered, whatever the number of its fetches; that miss is charged to
the edges into the loop.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from wcet_probe.analyzer.domains.lattice import Bits, Dual
from wcet_probe.analyzer.graph.fixpoint import least
from wcet_probe.analyzer.graph.flow_order import Arrow, FlowOrder
from wcet_probe.analyzer.graph.supergraph import EXIT, Edge
from wcet_probe.analyzer.icache.must_may import CacheAccess, CacheGraph, Classification, analyze
from wcet_probe.analyzer.icache.persistence import Scope, persistent_groups
from wcet_probe.analyzer.ipet.flow_problem import LinearConstraint
from wcet_probe.analyzer.pcode.operations import LiftedInstruction
from wcet_probe.analyzer.values.properties.loop_shapes import LoopShape
from wcet_probe.analyzer.values.result import Values
from wcet_probe.model.target import CacheConfig


@dataclass(frozen=True, slots=True)
class FetchMisses:
    """How many fetches miss at most.

    Attributes:
        points: in each execution of a point.
        edges: each time that an edge is taken.
        auxiliaries: once in the call, names with their constraints.
        counted: by point and the number of the fetch in it, the auxiliary variable or the name of edges that its misses
            belong to.
        paid: those edges by name; each pays for one miss.
    """

    points: Mapping[int, int]
    edges: Mapping[Edge, int]
    auxiliaries: Mapping[str, tuple[LinearConstraint, ...]]
    counted: Mapping[int, Mapping[int, str]] = field(default_factory=dict)
    paid: Mapping[str, tuple[Edge, ...]] = field(default_factory=dict)


def fetch_misses(values: Values, shapes: Sequence[LoopShape], config: CacheConfig) -> FetchMisses:
    """The misses of the instruction cache, whatever it holds when the function is entered.

    Args:
        values: points and edges that can be reached.
        shapes: their loops, outer ones before inner ones.
        config: the instruction cache.

    *Soundness:* as said of the module; of hits and persistence, as said of `must_may` and `persistence`.
    """
    points = sorted(values.states)
    number = {point: index for index, point in enumerate(points)}
    lines = [fetched_lines(values.graph.points[point].block.instructions, config.line_bytes) for point in points]
    successors: list[list[int]] = [[] for _ in points]
    for edge in values.edges:
        if edge.target != EXIT:
            successors[number[edge.source]].append(number[edge.target])
    graph = CacheGraph(
        nodes=tuple(tuple(CacheAccess(frozenset({line}), is_write=False) for line in each) for each in lines),
        successors=tuple(tuple(dict.fromkeys(each)) for each in successors),
        entry=number[0],
    )
    analysis = analyze(graph, config)
    left = {
        (node, index)
        for node, classes in enumerate(analysis.classifications)
        for index, found in enumerate(classes)
        if found is not Classification.ALWAYS_HIT
    }
    # A loop that the call itself enters has no edge that could be charged.
    loops = [shape for shape in shapes if shape.loop.header != 0]
    scopes = [Scope(number[0], frozenset(range(len(points))))]
    scopes += [
        Scope(number[shape.loop.header], frozenset(number[node] for node in shape.loop.nodes if node in number))
        for shape in loops
    ]
    whole, *inner = persistent_groups(graph, config, scopes, analysis.states)
    auxiliaries: dict[str, tuple[LinearConstraint, ...]] = {}
    counted: dict[tuple[int, int], str] = {}
    paid: dict[str, tuple[Edge, ...]] = {}
    is_fetched_before = _fetched_before(graph)
    repeated = frozenset().union(*(scope.nodes for scope in scopes[1:]))
    for group in whole:
        missing = sorted(left.intersection(group.accesses))
        if len(group.lines) == 1 and missing and (len(missing) > 1 or missing[0][0] in repeated):
            left.difference_update(missing)
            name = f"fetch:{min(group.lines) * config.line_bytes:#x}"
            counted.update(dict.fromkeys(missing, name))
            (line,) = group.lines
            first = [points[node] for node, _ in missing if not is_fetched_before(node, line)]
            auxiliaries[name] = _once(name, first)
    edges: dict[Edge, int] = {}
    for shape, groups in zip(loops, inner, strict=True):
        kept: set[int] = set()
        for group in groups:
            if len(group.lines) == 1 and left.intersection(group.accesses):
                name = f"paid:{shape.loop.header}:{min(group.lines) * config.line_bytes:#x}"
                counted |= {one: name for one in group.accesses if one in left}
                paid[name] = tuple(shape.entry_edges)
                left.difference_update(group.accesses)
                kept |= group.lines
        for edge in shape.entry_edges:
            edges[edge] = edges.get(edge, 0) + len(kept)
    misses = dict.fromkeys(points, 0)
    for node, _ in left:
        misses[points[node]] += 1
    return FetchMisses(misses, edges, auxiliaries, _by_point(points, counted), paid)


def _by_point(points: Sequence[int], counted: Mapping[tuple[int, int], str]) -> Mapping[int, Mapping[int, str]]:
    found: dict[int, dict[int, str]] = {}
    for (node, index), name in sorted(counted.items()):
        found.setdefault(points[node], {})[index] = name
    return found


def _fetched_before(graph: CacheGraph) -> Callable[[int, int], bool]:
    """Whether on all ways to a node a line was fetched that is fetched somewhere.

    *Soundness:* the greatest fixpoint; all lines where no way leads.
    """
    bits: dict[int, int] = {}
    own = []
    for accesses in graph.nodes:
        fetched = 0
        for access in accesses:
            for line in access.lines or ():
                fetched |= bits.setdefault(line, 1 << len(bits))
        own.append(fetched)
    edges = [Arrow(node, target) for node, targets in enumerate(graph.successors) for target in targets]
    order = FlowOrder(range(len(own)), edges, graph.entry)
    found = least(order, Dual(Bits(len(bits))), {graph.entry: 0}, lambda node, before: before | own[node])
    return lambda node, line: node not in found or bool(found[node] & bits[line])


def _once(name: str, points: Sequence[int]) -> tuple[LinearConstraint, ...]:
    """Constraints of ``name``, one miss in a call that comes by one of ``points``, where a line may be new."""
    executed = tuple((point, -count) for point, count in sorted(Counter(points).items()))
    return (
        LinearConstraint(f"{name}:executed", executed, auxiliaries=((name, 1),)),
        LinearConstraint(f"{name}:call", constant=1, auxiliaries=((name, 1),)),
    )


def fetched_lines(instructions: Iterable[LiftedInstruction], line_bytes: int) -> tuple[int, ...]:
    """The lines that ``instructions`` are fetched from, in order; one that straddles two lines is fetched from both."""
    lines: list[int] = []
    for instruction in instructions:
        end_address = instruction.address + instruction.size_bytes
        spanned = range(instruction.address // line_bytes, (end_address - 1) // line_bytes + 1)
        lines.extend(line for line in spanned if not lines or lines[-1] != line)
    return tuple(lines)
