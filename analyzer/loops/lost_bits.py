"""Loops that go on while a bit of some words is set, all of whose bits are moved out, as both halves of ``v >>= 1``.

Or those that are set: division of libgcc for ARMv6-M goes on while a bit is carried out of a word that begins with
eight or sixteen ones, and takes in the quotient's below.

Words: loop bound, back edges (docs/explanation/glossary.md).

*Soundness:* as of `moved_bits`, each bit of a term is the OR of its sources. A round goes on only if one of the tested
bits is set, which then was so of a source in the round before, and so on: where after n rounds back no source is left,
the loop does not go on in round n + 1. Nor does it where each of these sources is 0 on all ways into the loop, of which
a function that begins with it has none. A source that is no bit of a symbol of the header ends the search.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from wcet_probe.analyzer.loops.bit_sources import Bit, Narrowed, is_word
from wcet_probe.analyzer.loops.moved_bits import Lost, symbols_of_header
from wcet_probe.analyzer.values.properties.loop_shapes import LoopShape
from wcet_probe.analyzer.values.result import EdgeValues, Values
from wcet_probe.analyzer.values.states.state import State
from wcet_probe.analyzer.values.symbolic.conditions import relations
from wcet_probe.analyzer.values.symbolic.locations import Location
from wcet_probe.analyzer.values.symbolic.term_table import Term

_MOST_ROUNDS = 256
_OF_BITS = frozenset({"BOOL_OR", "INT_CARRY"})
"""Conditions that say that one of some bits is set, as what an addition with a carry carries out."""


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
    spreads = [(state, Narrowed(state)) for state in states]
    entries = [(state, Narrowed(state)) for state in (values.edges[entry].state for entry in shape.entry_edges)]
    wanted = frozenset[Bit]().union(*(one for one in each if one is not None))
    for rounds in range(_MOST_ROUNDS):
        if not wanted or (entries and _sources(entries, symbols, wanted) == frozenset()):
            return rounds + 1
        sources = _sources(spreads, symbols, wanted)
        if sources is None:
            return None
        wanted = sources
    return None


def _sources(
    spreads: Sequence[tuple[State, Narrowed]], symbols: Mapping[Term, Location], wanted: frozenset[Bit]
) -> frozenset[Bit] | None:
    """The sources of bits of a header's ``symbols`` on ways to it; None where one is none of these, or not known."""
    found = set[Bit]()
    for symbol, place in wanted:
        if symbol not in symbols:
            return None
        for state, spread in spreads:
            term = state.read(symbols[symbol])
            if term is None or not is_word(state, term):
                return None
            found |= spread(term)[place]
    return frozenset(found)


def _tested(edge: EdgeValues) -> frozenset[Bit] | None:
    """The bits of which one is set where ``edge`` is taken; None where no condition tells."""
    terms, spread = edge.state.terms, Narrowed(edge.state)
    for condition, holds in edge.conditions:
        for relation, _, first, second in relations(terms, condition, holds=holds):
            if relation == "!=" and terms.value(second) == 0 and is_word(edge.state, first):
                return frozenset[Bit]().union(*spread(first))
    for condition, holds in edge.conditions:
        if holds and terms[condition].opcode in _OF_BITS and is_word(edge.state, condition):
            return spread(condition)[0]
    return None
