"""Loops that search by bisection: the distance of two numbers is halved, whichever half is gone on with.

>>> def found(keys, key):
...     low, high = 0, len(keys) - 1
...     while low <= high:
...         middle = (low + high) // 2
...         if keys[middle] < key:
...             low = middle + 1
...         else:
...             high = middle - 1

The range of ``high - low`` is followed from round to round until the loop cannot go on, about once for each bit of
the distance at entry. Ranges of both numbers alone (`dwindling`) forget that only one of them moves.

Words: loop bound, back edges, symbolic variable (docs/explanation/glossary.md).

*Soundness:* with ``low`` and the distance, integers, a number of the round is a `Form`, exactly, modulo the width of a
word. What is shifted right or compared must be a form whose integer is a number of that width, read with a sign or
without one; so must be what the next round begins with. The least and the greatest number that a monotone form of the
distance takes are those at the ends of its range. A condition that is not understood is taken to hold.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import permutations
from typing import NamedTuple

from wcet_probe.analyzer.domains.strided import StridedInterval
from wcet_probe.analyzer.loops.dwindling import Conditions, Rounds, certain
from wcet_probe.analyzer.pcode.semantics import signed
from wcet_probe.analyzer.values.symbolic.conditions import relations
from wcet_probe.analyzer.values.symbolic.term_table import Term
from wcet_probe.analyzer.values.symbolic.terms import Terms

HALVED = "a distance that is halved"
"""How the rounds were followed, for people."""
_MOST_ROUNDS = 256
_MOST_NUMBERS = 4
"""Of which two are chosen."""
_HALVING = {"INT_RIGHT": 1, "INT_SRIGHT": 1, "INT_DIV": 2, "INT_SDIV": 2}
Range = tuple[int, int]
"""The least and the greatest of some integers; of none where the first is above the second."""


class Form(NamedTuple):
    """``lows`` low + ``distances`` distance + ``halves`` (distance // 2) + ``constant``."""

    lows: int
    distances: int
    halves: int
    constant: int

    def at(self, distance: int) -> int:
        """Without the part of ``low``."""
        return self.distances * distance + self.halves * (distance // 2) + self.constant

    def is_monotone(self) -> bool:
        """Whether the part of the distance never falls as that grows, or never rises."""
        return self.distances * (self.distances + self.halves) >= 0

    def plus(self, other: Form, factor: int) -> Form:
        """The sum with ``factor`` times ``other``."""
        return Form(*(one + factor * another for one, another in zip(self, other, strict=True)))


class Numbers(NamedTuple):
    """Two numbers of a loop at the begin of a round.

    Attributes:
        low, high: their terms.
        lows, highs: what they may be.
        distances: what ``high - low`` may be.
        is_signed: how they are read.
    """

    low: Term
    high: Term
    lows: Range
    highs: Range
    distances: Range
    is_signed: bool

    @property
    def is_empty(self) -> bool:
        """Whether there are no such numbers."""
        return any(low > high for low, high in (self.lows, self.highs, self.distances))

    def holds(self, form: Form, bits: int, *, is_signed: bool) -> bool:
        """Whether the integer is a number of ``bits`` bits, read with a sign or without, for all that both may be."""
        if is_signed == self.is_signed and self._lies_between(form):
            return True
        low, high = self.range(form)
        return (-(1 << bits - 1) <= low and high < 1 << bits - 1) if is_signed else (low >= 0 and high < 1 << bits)

    def _lies_between(self, form: Form) -> bool:
        """Whether it is not below ``low``, nor above ``high``."""
        above = form._replace(lows=0)
        each = above, Form(0, 1, 0, 0).plus(above, -1)
        return form.lows == 1 and all(one.is_monotone() and min(map(one.at, self.distances)) >= 0 for one in each)

    def range(self, form: Form) -> Range:
        """What it may be, by ``low`` and the distance, and by both numbers and half of it, rounded down or up."""
        lows, distances, halves, constant = form
        down = self.distances[0] // 2, self.distances[1] // 2
        up = -(-self.distances[0] // 2), -(-self.distances[1] // 2)
        both = distances + halves
        each = (
            ((lows, self.lows), (distances, self.distances), (halves, down)),
            ((lows - distances, self.lows), (distances, self.highs), (halves, down)),
            ((lows - both, self.lows), (both, self.highs), (-halves, up)),
        )
        ends = [[sorted(factor * end for end in ends) for factor, ends in one] for one in each]
        least, greatest = (
            max(sum(low for low, _ in one) for one in ends),
            min(sum(high for _, high in one) for one in ends),
        )
        return least + constant, greatest + constant


def most_rounds_of_bisection(
    terms: Terms, rounds: Rounds, start: Sequence[StridedInterval], going_on: Sequence[StridedInterval]
) -> int | None:
    """Most executions of a loop's header, if the distance of two of its numbers tells it.

    Args:
        terms: what ``rounds`` speaks of.
        rounds: what decides.
        start: what the own numbers may be when the loop is entered.
        going_on: what they may be in a round behind which another one follows.

    *Soundness:* as said of the module.
    """
    if len(start) > _MOST_NUMBERS or any(one.is_bottom for one in (*start, *going_on)):
        return None
    for is_signed in (True, False):
        first, later = (
            [one.signed_range() if is_signed else one.unsigned_range() for one in ranges]
            for ranges in (start, going_on)
        )
        for pair in permutations(range(len(start)), 2):
            low, high = (rounds.own[at] for at in pair)
            if terms[low].bits == terms[high].bits:
                lows, highs = (first[at] for at in pair)
                numbers = Numbers(low, high, lows, highs, distance_of(lows, highs), is_signed)
                most = _followed(terms, rounds, pair, numbers, tuple(later[at] for at in pair))
                if most is not None:
                    return most
    return None


def _followed(
    terms: Terms, rounds: Rounds, pair: tuple[int, int], numbers: Numbers, going_on: tuple[Range, ...]
) -> int | None:
    """Most executions of the header, the own numbers of this ``pair`` being ``numbers`` at entry."""
    for passed in range(_MOST_ROUNDS):
        lows, highs = meet(numbers.lows, going_on[0]), meet(numbers.highs, going_on[1])
        within = numbers._replace(lows=lows, highs=highs, distances=meet(numbers.distances, distance_of(lows, highs)))
        if within.is_empty:
            return passed + 1
        following = list[Numbers]()
        for body, back in [(one, back) for one in rounds.each for back in one.back]:
            after = after_round(terms, within, certain(body, back), [back.terms[at] for at in pair])
            if after is None:
                return None
            if not after.is_empty:
                following.append(after)
        if not following:
            return passed + 1
        lows, highs = hull([one.lows for one in following]), hull([one.highs for one in following])
        distances = hull([one.distances for one in following])
        if meet(numbers.distances, distances) == numbers.distances:
            return None
        numbers = numbers._replace(lows=lows, highs=highs, distances=distances)
    return None


def distance_of(lows: Range, highs: Range) -> Range:
    """What the distance of two numbers may be, by what each may be."""
    return highs[0] - lows[1], highs[1] - lows[0]


def meet(one: Range, other: Range) -> Range:
    """What is in both ranges."""
    return max(one[0], other[0]), min(one[1], other[1])


def hull(each: Sequence[Range]) -> Range:
    """The least range that covers each."""
    return min(low for low, _ in each), max(high for _, high in each)


def after_round(terms: Terms, numbers: Numbers, conditions: Conditions, brought: Sequence[Term]) -> Numbers | None:
    """What both are in the next round, where ``conditions`` hold in this one; None where it is not known."""
    low, high = numbers.distances
    for form, is_different in _Reader(terms, numbers).signs(conditions):
        low, high = _where(form, low, high, is_different=is_different)
    within = numbers._replace(distances=(low, high))
    if low > high:
        return within
    reader = _Reader(terms, within)
    forms = [reader.number(term) for term in brought]
    distance = reader.difference(brought[1], brought[0])
    if distance is None or forms[0] is None or forms[1] is None:
        return None
    least, greatest = sorted(map(distance.at, (low, high)))
    lows, highs = map(within.range, (forms[0], forms[1]))
    return within._replace(lows=lows, highs=highs, distances=(least, greatest))


def _where(form: Form, low: int, high: int, *, is_different: bool) -> Range:
    """The distances from ``low`` to ``high``, those at the ends left out where a form is negative, or where it is 0.

    *Soundness:* the form is monotone: it is negative up to some distance, or from one on, which halving finds.
    """
    if low > high:
        return low, high
    if is_different:
        return low + (form.at(low) == 0), high - (form.at(high) == 0)
    fails = form.at(low) < 0, form.at(high) < 0
    if all(fails):
        return 1, 0
    if not any(fails):
        return low, high
    one, other = (low, high) if fails[0] else (high, low)
    while abs(other - one) > 1:
        middle = (one + other) // 2
        one, other = (middle, other) if form.at(middle) < 0 else (one, middle)
    return (other, high) if fails[0] else (low, other)


class _Reader:
    """Reads terms of a round as forms."""

    def __init__(self, terms: Terms, numbers: Numbers) -> None:
        self._terms, self._numbers = terms, numbers
        self._forms: dict[Term, Form | None] = {numbers.low: Form(1, 0, 0, 0), numbers.high: Form(1, 1, 0, 0)}

    def signs(self, conditions: Conditions) -> Iterator[tuple[Form, bool]]:
        """Forms of the distance that are not negative or, if so said, not 0, where ``conditions`` hold."""
        for condition, holds in conditions:
            for relation, order_signed, first, second in relations(self._terms, condition, holds=holds):
                gap = self.difference(second, first)
                if gap is None or (relation in ("<", "<=") and order_signed != self._numbers.is_signed):
                    continue
                yield gap.plus(Form(0, 0, 0, 1), -1 if relation == "<" else 0), relation == "!="
                if relation == "==":
                    yield Form(0, 0, 0, 0).plus(gap, -1), False

    def difference(self, one: Term, other: Term) -> Form | None:
        """``one - other`` as a monotone form of the distance alone; None where they are not known to be numbers."""
        first, second = self.number(one), self.number(other)
        gap = None if first is None or second is None else first.plus(second, -1)
        return gap if gap is not None and not gap.lows and gap.is_monotone() else None

    def number(self, term: Term) -> Form | None:
        """The form whose integer is that of ``term``, as the numbers are read."""
        form = self.form(term)
        is_number = form is not None and self._holds(form, self._terms[term].bits, is_signed=self._numbers.is_signed)
        return form if is_number else None

    def form(self, term: Term) -> Form | None:
        """``term`` as a form, modulo the width of it; None where it is not known to be one."""
        if term not in self._forms:
            self._forms[term] = None
            self._forms[term] = self._found(term)
        return self._forms[term]

    def _found(self, term: Term) -> Form | None:
        terms = self._terms
        bits, value = terms[term].bits, terms.value(term)
        if value is not None:
            return Form(0, 0, 0, signed(bits, value))
        if bits != terms[self._numbers.low].bits:
            return None
        shifted = self._right(term)
        if shifted is not None:
            return shifted
        if terms[term].opcode == "INT_ZEXT" and terms[terms.operands(term)[0]].bits < bits:
            return Form(0, 0, 0, 0) if self._fails(terms.operands(term)[0]) else None
        linear = terms.linear(term)
        total = Form(0, 0, 0, signed(bits, linear.constant))
        for part, factor in linear.coefficients.items():
            form = self.form(part)
            if form is None:
                return None
            total = total.plus(form, signed(bits, factor))
        return total

    def _right(self, term: Term) -> Form | None:
        """A form that is halved, or shifted to the right until its sign alone is left; None of any other term."""
        node, operands = self._terms[term], self._terms.operands(term)
        by = self._terms.value(operands[1]) if len(operands) == 2 else None
        whole = self.form(operands[0]) if by is not None and node.opcode in _HALVING else None
        if whole is None or self._terms[operands[0]].bits != node.bits:
            return None
        is_signed = node.opcode in ("INT_SRIGHT", "INT_SDIV")
        is_positive = self._holds(whole, node.bits, is_signed=False) and self._holds(whole, node.bits, is_signed=True)
        if by == _HALVING[node.opcode]:
            fits = is_positive if node.opcode == "INT_SDIV" else self._holds(whole, node.bits, is_signed=is_signed)
            return _half(whole) if fits else None
        is_sign = by == node.bits - 1 and node.opcode in ("INT_RIGHT", "INT_SRIGHT")
        return Form(0, 0, 0, 0) if is_sign and is_positive else None

    def _fails(self, condition: Term) -> bool:
        """Whether a condition, as that of a carry, never holds: a part does not, or what is to be below 0 is not."""
        node, operands = self._terms[condition], self._terms.operands(condition)
        if node.opcode == "BOOL_AND":
            return any(map(self._fails, operands))
        form = self.form(operands[0]) if node.opcode == "INT_SLESS" and self._terms.value(operands[1]) == 0 else None
        return form is not None and all(
            self._holds(form, self._terms[operands[0]].bits, is_signed=is_signed) for is_signed in (True, False)
        )

    def _holds(self, form: Form, bits: int, *, is_signed: bool) -> bool:
        return self._numbers.holds(form, bits, is_signed=is_signed)


def _half(whole: Form) -> Form | None:
    """Half of it, rounded down, where that is a form again."""
    if whole.lows % 2 or whole.halves % 2:
        return None
    odd = whole.distances % 2 * (1 + whole.constant % 2)
    # Of an odd number of distances, one is halved: rounded down, or up, which is the distance without its half.
    rest = (Form(0, 0, 0, 0), Form(0, 0, 1, 0), Form(0, 1, -1, 0))[odd]
    return Form(*(one // 2 for one in whole)).plus(rest, 1)
