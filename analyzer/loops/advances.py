"""Loops whose rounds move a number on by different amounts, some of them in loops inside: by one at least.

A compiler that threads jumps makes of one loop with an ``if`` several, in and beside each other, each of which counts
on in the same register. What a round of the outer one adds is not constant, but positive, and the number stays in a
range. So it is where a round adds a number that the loop does not change, and that is not known, or was read.

Or a round adds what is not known but for its range: a quotient that was guessed is put right by adding the divisor to
the remainder as long as that is below 2**16, where the divisor is at least 2**15.

Words: induction variable, loop bound (docs/explanation/glossary.md).

*Soundness:* a symbol stands for what arrived where it was defined last, in the current round: for one of the terms that
edges bring, each another symbol of the loop and a number with a range, where the edge is taken. Where no such sum wraps
around, the number at the end of a round is that at its start and the numbers on the way between them, which is a path
through the symbols. So it grows by the least path's sum at least; below a least sum of 1 nothing is said, nor where a
cycle of symbols has one below 0. Symbols are left out that an edge within the loop kills other than where they are
defined.

Of amounts with a range see `_of_amounts`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from wcet_probe.analyzer.graph.supergraph import Edge
from wcet_probe.analyzer.loops.known_sums import value_of_sum
from wcet_probe.analyzer.pcode.semantics import signed
from wcet_probe.analyzer.values.properties.loop_shapes import LoopShape
from wcet_probe.analyzer.values.result import Values
from wcet_probe.analyzer.values.states.bases import Base
from wcet_probe.analyzer.values.states.state import State
from wcet_probe.analyzer.values.symbolic.locations import Location
from wcet_probe.analyzer.values.symbolic.symbol_names import defined_at
from wcet_probe.analyzer.values.symbolic.term_table import Term
from wcet_probe.analyzer.values.symbolic.terms import Terms

_MOST_SYMBOLS = 32

_Sum = tuple[Term, int, int]
"""A symbol, and the least and most that is added to it."""


def most_advances(values: Values, shape: LoopShape, killed: Mapping[Edge, frozenset[Term]]) -> int | None:
    """Most executions of the header of a loop that moves a number on in each round; None where there is none.

    Args:
        values: what is known of the function.
        shape: the loop.
        killed: what each edge kills.

    *Soundness:* as said of the module. What a back edge brings is in the range that its state knows.
    """
    nodes, found = shape.loop.nodes, []
    lost = {
        symbol
        for edge, symbols in killed.items()
        if edge.source in nodes and edge.target in nodes
        for symbol in symbols
        if defined_at(values.terms[symbol].arguments) != edge.target
    }
    for location, symbol in values.states[shape.loop.header].locations.items():
        node = values.terms[symbol]
        if node.opcode == "symbol" and node.arguments[:2] == ("phi", (shape.loop.header,)) and symbol not in lost:
            most = _of_symbol(values, shape, location, symbol, lost)
            most = _of_amounts(values, shape, location, symbol) if most is None else most
            found += [] if most is None else [most]
    return min(found, default=None)


def _of_symbol(
    values: Values, shape: LoopShape, location: Location, symbol: Term, lost: Collection[Term]
) -> int | None:
    entering = _range(values, shape.entry_edges, location)
    back = _range(values, shape.back_edges, location)
    if entering is None or back is None:
        return None
    sums = _sums_of(values, shape, location, symbol, lost)
    if sums is None:
        return None
    for sign, distance in ((1, back[1] - entering[0]), (-1, entering[1] - back[0])):
        least = _least(sums, symbol, sign)
        if least is not None and least > 0:
            return max(0, distance) // least + 1
    return None


def _of_amounts(values: Values, shape: LoopShape, location: Location, symbol: Term) -> int | None:
    """Most executions where each round adds a number of a range to ``symbol``, whatever it was at first.

    *Soundness:* each back edge brings the symbol and a number from ``least`` to ``most``, and their sum is from ``low``
    to ``high``. From the second round on the symbol is such a sum itself, and ``high + most`` is a number of the width;
    so nothing wraps around, each of these rounds adds ``least`` or more, and no more of them go back than fit in.
    """
    amounts, sums = [], []
    for edge in shape.back_edges:
        state = values.edges[edge].state
        term = state.read(location)
        if term is None or values.terms[term].bits != values.terms[symbol].bits:
            return None
        if state.base(term) is not Base.NUMBER or state.base(symbol) is not Base.NUMBER:
            return None
        added, total = value_of_sum(state, values.terms.difference(term, symbol)), state.value(term)
        if added.is_bottom or total.is_bottom:
            continue  # never taken
        amounts.append(added.unsigned_range())
        sums.append(total.unsigned_range())
    if not amounts:
        return None
    least, most = min(low for low, _ in amounts), max(high for _, high in amounts)
    low, high = min(one for one, _ in sums), max(one for _, one in sums)
    fits = least > 0 and high + most < 1 << values.terms[symbol].bits
    return (high - low) // least + 2 if fits else None


def _range(values: Values, edges: Collection[Edge], location: Location) -> tuple[int, int] | None:
    """The signed numbers that ``edges`` bring; None where what they bring may be no number.

    An edge that would bring none of all numbers is never taken.
    """
    low, high = [], []
    for edge in edges:
        state = values.edges[edge].state
        term = state.read(location)
        if term is None or state.base(term) is not Base.NUMBER:
            return None
        value = state.value(term)
        if value.is_bottom:
            continue
        least, most = value.signed_range()
        low.append(least)
        high.append(most)
    return (min(low), max(high)) if low else None


_END = -1
"""In place of a symbol: what the back edges bring."""


def _sums_of(
    values: Values, shape: LoopShape, location: Location, symbol: Term, lost: Collection[Term]
) -> Mapping[Term, Collection[_Sum]] | None:
    """The sums that each symbol on the way from ``symbol`` to the back edges may be; None where one is no such sum."""
    found: dict[Term, Collection[_Sum]] = {}
    todo: list[tuple[Term, Location, Collection[Edge]]] = [(_END, location, shape.back_edges)]
    while todo:
        one, place, edges = todo.pop()
        if one in found:
            continue
        parts: set[_Sum] = set()
        for edge in edges:
            state = values.edges[edge].state
            term = state.read(place)
            sums = None if term is None or edge.source not in shape.loop.nodes else list(_sums(state, term, symbol))
            if sums is None or None in sums:
                return None
            parts.update(each for each in sums if each is not None)
        found[one] = parts
        for other, *_ in parts:
            if other == symbol:
                continue
            match values.terms[other].arguments:
                case ("phi", (int(node),), Location() as at) if node in shape.loop.nodes and other not in lost:
                    todo.append((other, at, values.arriving[node]))
                case _:
                    return None
        if len(found) > _MOST_SYMBOLS:
            return None
    return found


def _sums(state: State, term: Term, first: Term) -> Iterator[_Sum | None]:
    """What ``term`` may be: a symbol and numbers whose sum does not wrap around; None for anything else.

    Of several symbols ``first`` is taken, or one that a loop changes; of the rest it is known where it may lie.
    """
    terms, todo = state.terms, [(term, 0)]
    while todo:
        one, added = todo.pop()
        form = terms.linear(one)
        part, factor = next(iter(form.coefficients.items()), (one, 0))
        added += signed(form.bits, form.constant)
        if len(form.coefficients) == 1 and factor == 1 and terms[part].opcode == "GAMMA":
            condition, *parts = terms.operands(part)
            decided = state.value(condition)
            chosen = [parts[1 - decided.value]] if decided.is_constant else parts
            todo += [(each, added) for each in chosen]
        else:
            yield _sum(state, form.coefficients, (added, form.bits), first)


def _sum(state: State, coefficients: Mapping[Term, int], added: tuple[int, int], first: Term) -> _Sum | None:
    """A sum of terms with factors and ``added``, a number and its bits, as one of them and what is added to it."""
    terms, (number, bits) = state.terms, added
    limit = 1 << bits - 1
    moved = [part for part, factor in coefficients.items() if factor == 1 and _is_moved(terms, part)]
    is_number = all(state.base(part) is Base.NUMBER and not state.value(part).is_bottom for part in coefficients)
    if not is_number or not moved:
        return None
    symbol = first if first in moved else moved[0]
    low = high = number
    for part, factor in coefficients.items():
        if part != symbol:
            ends = [signed(bits, factor) * end for end in state.value(part).signed_range()]
            low, high = low + min(ends), high + max(ends)
    least, most = state.value(symbol).signed_range()
    return None if least + low < -limit or most + high >= limit else (symbol, low, high)


def _is_moved(terms: Terms, part: Term) -> bool:
    return terms[part].opcode == "symbol" and terms[part].arguments[:1] == ("phi",)


def _least(sums: Mapping[Term, Collection[_Sum]], symbol: Term, sign: int) -> int | None:
    """The least sum, times ``sign``, on a way from ``symbol`` to a back edge; None where there is no least."""
    least: dict[Term, int] = {symbol: 0}
    for _ in range(len(sums) + 1):
        changed = False
        for one, parts in sums.items():
            reached = [least[other] + min(sign * low, sign * high) for other, low, high in parts if other in least]
            if reached and min(reached) < least.get(one, min(reached) + 1):
                least[one] = min(reached)
                changed = True
        if not changed:
            return least.get(_END)
    return None
