"""Loops that count in two words, the carry of the lower one in the upper one: a 64-bit number of a 32-bit core.

>>> def count(n_low, n_high):
...     low = high = 0
...     while low != n_low or high != n_high:
...         low, high = low + 1, high + (low + 1 >> 32)

Both words together are one number that each round changes by the same amount, and the loop ends where it is another
one, that does not change.

Words: loop bound, induction variable (docs/explanation/glossary.md).

*Soundness:* modulo 2**64 the number is ``first + amount * t`` in round ``t``: the upper word is added 1 exactly where
the lower one overflows, and its own part of the amount. Each round that goes on passes a test that it is not the end,
or is not after this round. The end is no nearer than the test allows at first, lies in the direction of the amount, and
a whole number of rounds away, so that it is met, at the latest after the greatest distance.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from wcet_probe.analyzer.domains.strided import StridedInterval
from wcet_probe.analyzer.loops.counters import Step
from wcet_probe.analyzer.pcode.semantics import signed
from wcet_probe.analyzer.values.properties.loop_shapes import LoopShape
from wcet_probe.analyzer.values.result import EdgeValues, Values
from wcet_probe.analyzer.values.states.bases import Base
from wcet_probe.analyzer.values.symbolic.conditions import relations
from wcet_probe.analyzer.values.symbolic.linear import Linear, combined
from wcet_probe.analyzer.values.symbolic.term_table import Term
from wcet_probe.analyzer.values.symbolic.terms import Terms

_MOST_ROUNDS = 1 << 28
"""Where there may be as many, the end is as good as not known."""
_Ranges = Callable[[Linear], StridedInterval | None]


class _Counter(NamedTuple):
    """Two words of the header, the carry as a term, and what a round adds to each."""

    low: Term
    high: Term
    carry: Term
    low_amount: int
    high_amount: int


class _End(NamedTuple):
    """Where a round does not go on: the words of the end, and whether they are met behind the round or before it."""

    low: tuple[tuple[tuple[Term, int], ...], int]
    high: tuple[tuple[tuple[Term, int], ...], int]
    is_behind: bool


def most_rounds_of_wide(
    values: Values,
    shape: LoopShape,
    own: Mapping[Term, Step],
    groups: Iterable[Sequence[EdgeValues]],
    known: tuple[Collection[Term], Callable[[Term], bool], _Ranges],
) -> int | None:
    """Most executions of the header for each entry, if two words that count as one tell it.

    Args:
        values: what is known of the function.
        shape: the loop.
        own: its counters of one word.
        groups: edges of which each round that goes on takes one.
        known: what edges within the loop kill, whether the loop leaves a term as it is, and what a sum may be at entry.

    *Soundness:* as said of the module.
    """
    lost, is_kept, range_of = known
    if shape.loop.header == 0:  # the function begins with it: no edge leads there
        return None
    found = list[int]()
    ways = [group for group in groups if group]
    for counter in _counters(values, shape, own, lost):
        for group in ways:
            each = [{*_ends(values.terms, counter, edge, is_kept)} for edge in group]
            for end in sorted(set.intersection(*each)):
                most = _most(values, shape, counter, end, range_of)
                found += [] if most is None else [most]
    return min(found, default=None)


def _counters(values: Values, shape: LoopShape, own: Mapping[Term, Step], lost: Collection[Term]) -> Iterator[_Counter]:
    terms, header = values.terms, values.states[shape.loop.header]
    for location, high in header.locations.items():
        if high in lost or header.base(high) is not Base.NUMBER or terms[high].bits != 32:
            continue
        states = [values.edges[edge].state for edge in shape.back_edges]
        brought = {state.read(location) for state in states}
        after = brought.pop() if len(brought) == 1 else None
        if after is None or any(state.base(after) is not Base.NUMBER for state in states):
            continue
        rest = terms.difference(after, high)
        carry, factor = next(iter(rest.coefficients.items()), (after, 0))
        if len(rest.coefficients) != 1 or factor != 1 or terms[carry].opcode != "INT_ZEXT":
            continue
        for low, step in own.items():
            amount = step.amount & 0xFFFFFFFF
            is_number = not step.shifts and low not in lost and header.base(low) is Base.NUMBER
            if is_number and amount and _is_carry(terms, terms.operands(carry)[0], low, amount):
                yield _Counter(low, high, carry, amount, rest.constant)


def _is_carry(terms: Terms, condition: Term, low: Term, amount: int) -> bool:
    """Whether ``condition`` holds exactly where ``low + amount`` overflows."""
    node, operands = terms[condition], terms.operands(condition)
    least = {"INT_LESSEQUAL": (1 << 32) - amount, "INT_LESS": (1 << 32) - amount - 1}.get(node.opcode)
    is_of_word = least is not None and operands[1] == low and terms[low].bits == 32
    return is_of_word and terms.value(operands[0]) == least


def _ends(terms: Terms, counter: _Counter, edge: EdgeValues, is_kept: Callable[[Term], bool]) -> Iterator[_End]:
    """The ends that are not met where ``edge`` is taken."""
    for condition, holds in edge.conditions:
        for pair in _not_both_0(terms, condition, holds=holds):
            for low, high in (pair, pair[::-1]):
                lower, upper = _target(low, counter.low), _target(high, counter.high)
                if lower is None or upper is None:
                    continue
                # What the upper word is compared with may have the carry in it: then it is that behind the round.
                factor = upper.coefficients.get(counter.carry, 0)
                is_behind = signed(32, factor) == -1
                if is_behind:
                    upper = combined(upper, Linear({counter.carry: 1}, counter.high_amount, 32), 1)
                    lower = lower._replace(constant=lower.constant + counter.low_amount & 0xFFFFFFFF)
                if all(is_kept(term) for form in (lower, upper) for term in form.coefficients):
                    yield _End(_key(lower), _key(upper), is_behind)


def _key(form: Linear) -> tuple[tuple[tuple[Term, int], ...], int]:
    return tuple(sorted(form.coefficients.items())), form.constant


def _not_both_0(terms: Terms, condition: Term, *, holds: bool) -> Iterator[tuple[Linear, Linear]]:
    """Pairs of sums of 32 bits that are not both 0."""
    node, operands = terms[condition], terms.operands(condition)
    if (node.opcode, holds) in {("BOOL_OR", True), ("BOOL_AND", False)}:
        sides = [[*relations(terms, one, holds=holds)] for one in operands]
        for one in sides[0]:
            for other in sides[1]:
                each = [terms.difference(*sides_of) for relation, _, *sides_of in (one, other) if relation == "!="]
                if [form.bits for form in each] == [32, 32]:
                    yield each[0], each[1]
    for relation, _, joined, than in relations(terms, condition, holds=holds):
        node = terms[joined]
        if relation == "!=" and terms.value(than) == 0 and node.opcode == "INT_OR" and node.bits == 32:
            low, high = terms.operands(joined)
            yield _or_difference(terms, low), _or_difference(terms, high)


def _or_difference(terms: Terms, term: Term) -> Linear:
    """A sum that is 0 exactly where ``term`` is."""
    operands = terms.operands(term)
    return terms.difference(*operands) if terms[term].opcode == "INT_XOR" else terms.linear(term)


def _target(form: Linear, word: Term) -> Linear | None:
    """What ``word`` is where ``form`` is 0; None where it need not be one number."""
    factor = signed(form.bits, form.coefficients.get(word, 0))
    if abs(factor) != 1:
        return None
    return combined(Linear({word: 1}, 0, form.bits), form, -factor)


def _most(values: Values, shape: LoopShape, counter: _Counter, end: _End, range_of: _Ranges) -> int | None:
    header = values.states[shape.loop.header]
    places = [next(at for at, term in header.locations.items() if term == word) for word in (counter.low, counter.high)]
    amount = signed(64, counter.high_amount << 32 | counter.low_amount)
    words = [Linear(dict(coefficients), constant, 32) for coefficients, constant in (end.low, end.high)]
    ends, step = _wide([range_of(word) for word in words]), abs(amount)
    most = list[int]()
    for entry in shape.entry_edges:
        state = values.edges[entry].state
        first = [term for term in map(state.read, places) if term is not None]
        parts = [*first, *(term for word in words for term in word.coefficients)]
        starts = _wide([state.value(term) for term in first]) if len(first) == len(places) else None
        if starts is None or ends is None or any(state.base(term) is not Base.NUMBER for term in parts):
            return None
        if step > 1 and not _is_divided(ends, starts, step):
            return None
        least = max(ends.least, int(_is_not_0(values.terms, state.known, words)))
        near, far = least - starts.most, ends.most - starts.least
        near, far = (near, far) if amount > 0 else (-far, -near)
        if -(-near // step) < end.is_behind or far // step >= _MOST_ROUNDS:
            return None
        most.append(far // step - end.is_behind + 1)
    return max(most, default=None)


class _Wide(NamedTuple):
    """Numbers of two words: the least and the greatest, one of the lower word, and by what its numbers are apart."""

    least: int
    most: int
    low: int
    apart: int


def _wide(words: Sequence[StridedInterval | None]) -> _Wide | None:
    low, high = words
    if low is None or high is None or low.is_bottom or high.is_bottom:
        return None
    (low_least, low_most), (high_least, high_most) = low.unsigned_range(), high.unsigned_range()
    apart = low.stride if low.steps else 0
    return _Wide(high_least << 32 | low_least, high_most << 32 | low_most, low.low, apart)


def _is_divided(ends: _Wide, starts: _Wide, step: int) -> bool:
    """Whether all distances are multiples of ``step``.

    *Soundness:* a power of two below 2**32 divides what is left of a word that wraps around, and all of the upper word.
    """
    is_power = step & step - 1 == 0 and step < 1 << 32
    return is_power and not any(number % step for number in (ends.apart, starts.apart, ends.low - starts.low))


def _is_not_0(terms: Terms, known: Mapping[Term, StridedInterval], words: Sequence[Linear]) -> bool:
    """Whether it is known that one of the words is not 0."""
    for condition, truth in known.items():
        if truth.is_constant:
            for one, other in _not_both_0(terms, condition, holds=bool(truth.value)):
                if {_key(one), _key(other)} == {*map(_key, words)}:
                    return True
    return False
