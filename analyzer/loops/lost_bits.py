"""Loops that go on while a bit of some words is set, all of whose bits are moved out, as both halves of ``v >>= 1``.

Words: loop bound, back edges (docs/explanation/glossary.md).

*Soundness:* as of `moved_bits`, each bit of a term is the OR of its sources. A round goes on only if one of the tested
bits is set, which then was so of a source in the round before, and so on: where after n rounds back no source is left,
the loop does not go on in round n + 1. A source that is no bit of a symbol of the header ends the search.
"""

from __future__ import annotations

from collections.abc import Sequence

from wcet_probe.analyzer.loops.bit_sources import Bit, Spread, is_word
from wcet_probe.analyzer.loops.moved_bits import Lost, symbols_of_header
from wcet_probe.analyzer.values.properties.loop_shapes import LoopShape
from wcet_probe.analyzer.values.result import EdgeValues, Values
from wcet_probe.analyzer.values.symbolic.conditions import relations

_MOST_ROUNDS = 256


def most_until_lost(values: Values, shape: LoopShape, edges: Sequence[EdgeValues], lost: Lost) -> int | None:
    """Most executions of the header of a loop each of whose iterations takes one of ``edges``, if bits tell it.

    Args:
        values: what is known of the function.
        shape: the loop.
        edges: ways on from a block that every iteration passes.
        lost: what edges within the loop kill.

    *Soundness:* as said of the module.
    """
    symbols = symbols_of_header(values, shape, lost)
    each = [_tested(edge) for edge in edges]
    if not symbols or not each or None in each:
        return None
    states = [values.edges[back].state for back in shape.back_edges]
    spreads = [(state, Spread(state)) for state in states]
    wanted = frozenset[Bit]().union(*(one for one in each if one is not None))
    for rounds in range(_MOST_ROUNDS):
        if not wanted:
            return rounds + 1
        sources = set[Bit]()
        for symbol, place in wanted:
            if symbol not in symbols:
                return None
            for state, spread in spreads:
                term = state.read(symbols[symbol])
                if term is None or not is_word(state, term):
                    return None
                sources |= spread(term)[place]
        wanted = frozenset(sources)
    return None


def _tested(edge: EdgeValues) -> frozenset[Bit] | None:
    """The bits of which one is set where ``edge`` is taken; None where no condition tells."""
    terms, spread = edge.state.terms, Spread(edge.state)
    for condition, holds in edge.conditions:
        for relation, _, first, second in relations(terms, condition, holds=holds):
            if relation == "!=" and terms.value(second) == 0 and is_word(edge.state, first):
                return frozenset[Bit]().union(*spread(first))
    return None
