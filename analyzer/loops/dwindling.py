"""Loops that go on by numbers of ever smaller ranges, as one that is divided until nothing is left of it.

>>> def digits(number):
...     while number != 0:
...         yield number % 10
...         number = number // 10

Whatever ``number`` is at first, it is at most a tenth of that in the next round. So the range of what it may be is
followed from round to round, its negative numbers and the others apart, until the loop cannot go on.

Words: loop bound, back edges, symbolic variable (docs/explanation/glossary.md).

*Soundness:* in each round the ranges hold all that the numbers may be: those of the next round are computed by the
domain's transfer functions from those of this one. A round is ruled out only if in these ranges each of some block's
ways on, or each edge back, has a condition that cannot hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import product
from math import prod
from typing import NamedTuple

from wcet_probe.analyzer.domains import strided
from wcet_probe.analyzer.domains.strided import StridedInterval
from wcet_probe.analyzer.pcode.truths import RELATIONS
from wcet_probe.analyzer.values.symbolic.term_table import Term
from wcet_probe.analyzer.values.symbolic.terms import Terms

_MOST_ROUNDS = 256
_LOOK_BACK = 32
"""Rounds of which it is asked whether the loop dwindles at all: a word that loses a bit a round is followed to its end
by then."""
_ARRIVAL = 4
"""Rounds before these, in which what the entry brings gives way to what an edge back brings."""
_MOST_NUMBERS = 4
"""That decide together: of each the negative ones are followed apart."""
_FEW = 128
"""Numbers that are not worth a range, as each can be followed."""

Conditions = Sequence[tuple[Term, bool]]
_Ranges = tuple[StridedInterval, ...]


class Back(NamedTuple):
    """An edge back: its conditions that can be evaluated, and what it brings for each number."""

    conditions: Conditions
    terms: tuple[Term, ...]


class Round(NamedTuple):
    """One way through the body of a loop, as far as conditions decide it of which nothing is known (`choices`).

    Attributes:
        ways: of each block that is passed, the conditions of the ways on.
        back: the edges back.
    """

    ways: Sequence[Sequence[Conditions]]
    back: Sequence[Back]


class Rounds(NamedTuple):
    """What decides whether a loop goes on.

    Attributes:
        own: symbols of the header.
        fixed: terms that the loop does not change.
        each: what a round may be.
    """

    own: tuple[Term, ...]
    fixed: tuple[Term, ...]
    each: Sequence[Round]


def certain(one: Round, back: Back) -> Conditions:
    """Conditions that all hold in a round that goes on by ``back``: of blocks with one way on, and of the edge."""
    return [*(condition for ways in one.ways if len(ways) == 1 for condition in ways[0]), *back.conditions]


def most_rounds_of_ranges(
    terms: Terms,
    rounds: Rounds,
    start: tuple[Sequence[StridedInterval], Sequence[StridedInterval]],
    of_few: Callable[[Iterable[Sequence[int]]], int | None],
) -> int | None:
    """Most executions of a loop's header, from one on in which the numbers are in the ranges of ``start``.

    Args:
        terms: what ``rounds`` speaks of.
        rounds: what decides.
        start: of the own numbers, and of the fixed ones.
        of_few: the same from some own and fixed numbers, where these are few.

    *Soundness:* as said of the module.
    """
    own, fixed = start
    if len(own) > _MOST_NUMBERS:
        return None
    at = _by_signs([tuple(own)])
    counts: list[int] = []
    for passed in range(_MOST_ROUNDS):
        if not at:
            return passed
        each = [(*one, *fixed) for one in at.values()]
        counts.append(sum(prod(number.size for number in one) for one in each))
        if passed > _LOOK_BACK and passed % _LOOK_BACK == _ARRIVAL:
            before, between, now = counts[-1 - _LOOK_BACK :: _LOOK_BACK // 2]
            if not _may_end(before, between, now, _MOST_ROUNDS - passed):
                return None
        if counts[-1] <= _FEW:
            few = of_few(numbers for one in each for numbers in product(*(number.values() for number in one)))
            return None if few is None else passed + few
        following = _by_signs(after for one in at.values() for after in _next(terms, rounds, one, fixed))
        if following == at:
            return None
        at = following
    return None


def _may_end(before: int, between: int, now: int, left: int) -> bool:
    """Whether numbers may be few in ``left`` rounds, ``before`` many `_LOOK_BACK` rounds ago and ``now`` many.

    They may if they halve, if as many go in each round as went in these, twice as fast, or if ever more go: if since
    half of these rounds ago, when they were ``between`` many, more went than before. It is no question of soundness:
    that a loop is given up says nothing of it.
    """
    gone = before - now
    return 2 * now <= before or now - _FEW <= 2 * gone * left // _LOOK_BACK or between - now > max(before - between, 0)


def _by_signs(each: Iterable[_Ranges]) -> dict[tuple[int, ...], _Ranges]:
    """The ranges, those of numbers of the same signs joined."""
    found: dict[tuple[int, ...], _Ranges] = {}
    for ranges in each:
        halves = ([(sign, strided.meet(one, _half(one.bits, sign))) for sign in (0, 1)] for one in ranges)
        for chosen in product(*([half for half in each_half if not half[1].is_bottom] for each_half in halves)):
            signs, parts = tuple(sign for sign, _ in chosen), tuple(part for _, part in chosen)
            known = found.get(signs, parts)
            found[signs] = tuple(strided.join(one, other) for one, other in zip(known, parts, strict=True))
    return found


def _half(bits: int, sign: int) -> StridedInterval:
    half = 1 << bits - 1
    return strided.between(bits, sign * half, sign * half + half - 1)


def _next(terms: Terms, rounds: Rounds, own: _Ranges, fixed: Sequence[StridedInterval]) -> Iterator[_Ranges]:
    """What the numbers may be in the next round; none where there is no next one."""
    known = {**dict(zip(rounds.own, own, strict=True)), **dict(zip(rounds.fixed, fixed, strict=True))}
    for one in rounds.each:
        if all(any(_may_hold(terms, conditions, known) for conditions in ways) for ways in one.ways):
            for back in one.back:
                if _may_hold(terms, back.conditions, known):
                    leaves = {term: known[term] for term in (*rounds.own, *rounds.fixed)}
                    narrowed = _narrowed(terms, certain(one, back), leaves)
                    if not any(value.is_bottom for value in narrowed.values()):
                        yield tuple(_range(terms, term, narrowed) for term in back.terms)


def _may_hold(terms: Terms, conditions: Conditions, known: dict[Term, StridedInterval]) -> bool:
    each = ((_range(terms, term, known), holds) for term, holds in conditions)
    return not any(one.is_constant and bool(one.value) != holds for one, holds in each)


def _narrowed(terms: Terms, conditions: Conditions, known: dict[Term, StridedInterval]) -> dict[Term, StridedInterval]:
    """What terms may be where comparisons hold besides."""
    for condition, holds in conditions:
        node = terms[condition]
        if node.opcode in RELATIONS:
            sides = terms.operands(condition)
            left, right = (_range(terms, side, known) for side in sides)
            known.update(zip(sides, strided.constrain(node.opcode, left, right, holds), strict=True))
    return known


def _range(terms: Terms, term: Term, known: dict[Term, StridedInterval]) -> StridedInterval:
    """What ``term`` may be where its leaves are in the ranges ``known``, to which its own is added."""
    found = known.get(term)
    if found is None:
        node = terms[term]
        if node.opcode == "const":
            found = strided.constant(node.bits, terms.value(term) or 0)
        elif node.opcode == "GAMMA":
            condition, *parts = terms.operands(term)
            decided = _range(terms, condition, known)
            chosen = [parts[0 if decided.value else 1]] if decided.is_constant else parts
            found = strided.bottom(node.bits)
            for part in chosen:
                found = strided.join(found, _range(terms, part, known))
        else:
            operands = tuple(_range(terms, one, known) for one in terms.operands(term))
            found = strided.apply(node.opcode, operands, node.bits)
        known[term] = found
    return found
