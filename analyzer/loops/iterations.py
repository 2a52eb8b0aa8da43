"""What the iterations of a loop have in common: blocks that each one passes, and edges that only the first can take.

Words: loop forest, dominator, back edges (docs/explanation/glossary.md).

*Soundness:* a block is said to be passed where it dominates the source of every edge back, so no iteration goes around
it. From the second iteration on, a symbol of the header is what an edge back brought.
"""

from __future__ import annotations

from collections.abc import Mapping

from wcet_probe.analyzer.domains import strided
from wcet_probe.analyzer.domains.strided import StridedInterval
from wcet_probe.analyzer.graph.loop_forest import Loop, dominators
from wcet_probe.analyzer.graph.supergraph import Edge
from wcet_probe.analyzer.loops.moved_bits import Lost
from wcet_probe.analyzer.values.properties.loop_shapes import LoopShape
from wcet_probe.analyzer.values.result import EdgeValues, Values
from wcet_probe.analyzer.values.states.bases import Base
from wcet_probe.analyzer.values.states.learning import assume, learn
from wcet_probe.analyzer.values.symbolic.term_table import Term


def lost_symbols(values: Values, loop: Loop, killed: Mapping[Edge, frozenset[Term]]) -> Lost:
    """What edges within ``loop`` kill, but for those to its header: by symbol, the blocks behind them."""
    found = dict[Term, set[int]]()
    for edge in values.within(loop.nodes):
        if edge.target != loop.header:
            for symbol in killed[edge]:
                found.setdefault(symbol, set()).add(edge.target)
    return found


def passed_in_each(values: Values, shape: LoopShape) -> list[int]:
    """Blocks of the loop, not of inner ones, that lie on every way from the header back to it."""
    loop = shape.loop
    successors: dict[int, list[int]] = {node: [] for node in loop.nodes}
    for edge in values.within(loop.nodes):
        if edge.target != loop.header:
            successors[edge.source].append(edge.target)
    above = dominators(successors, loop.header)
    inner = {node for part in loop.parts if isinstance(part, Loop) for node in part.nodes}
    common: set[int] | None = None
    for edge in shape.back_edges:
        chain, node = set(), edge.source
        while True:
            chain.add(node)
            if node == loop.header:
                break
            node = above[node]
        common = chain if common is None else common & chain
    return sorted((common or set()) - inner)


def only_at_first(values: Values, shape: LoopShape, edge: EdgeValues, lost: Lost) -> bool:
    """Whether only the first iteration can take an edge of its body.

    *Soundness:* the edge's state and conditions speak of the symbols of the iteration that takes it; these are met with
    what symbols of the header can be from the second one on.

    Args:
        values: of the function.
        shape: the loop.
        edge: one that stays in the loop.
        lost: see `lost_symbols`; of what is killed on the way nothing is taken.
    """
    informed = edge.state.copy()
    for symbol, later in _later(values, shape, lost).items():
        value = strided.meet(informed.value(symbol), later)
        if value.is_bottom:
            return True
        learn(informed, symbol, value)
    return not all(assume(informed, condition, holds) for condition, holds in edge.conditions)


def _later(values: Values, shape: LoopShape, lost: Lost) -> dict[Term, StridedInterval]:
    """What symbols of the header can be from the second iteration on, as far as back edges say it."""
    found: dict[Term, StridedInterval] = {}
    header = shape.loop.header
    state = values.states[header]
    for location, symbol in state.locations.items():
        node = values.terms[symbol]
        if symbol in found or symbol in lost or node.opcode != "symbol" or node.arguments[:2] != ("phi", (header,)):
            continue
        value = strided.bottom(node.bits)
        for edge in shape.back_edges:
            after = values.edges[edge].state
            term = after.read(location)
            if term is None or after.base(term) is not Base.NUMBER or state.base(symbol) is not Base.NUMBER:
                break
            value = strided.join(value, after.value(term))
        else:
            found[symbol] = value
    return found
