"""Loops that test several times a round whether they are at their end, as an unrolled loop with its exits does.

>>> def first_zero(data, n):
...     i = 0
...     while True:  # n is not 0
...         if data[i] == 0 or i + 1 == n: return
...         if data[i + 1] == 0 or i + 2 == n: return
...         i += 2

Each test alone may never be met: ``n`` may be odd, or even. Together they meet each distance to the end, so that it
cannot be jumped over, and there are at most ``(n - 1) // 2 + 1`` rounds.

Words: loop bound, induction variable (docs/explanation/glossary.md).

*Soundness:* the distance to one of the ends shrinks by the same step each round, as an unsigned number. As long as it
is not below the step it does not wrap around; once it is below, it is a remainder that it may leave, and of each of
these one test, which every round passes, is an end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from math import gcd
from typing import NamedTuple

from wcet_probe.analyzer.domains.strided import StridedInterval
from wcet_probe.analyzer.values.result import EdgeValues
from wcet_probe.analyzer.values.symbolic.conditions import relations
from wcet_probe.analyzer.values.symbolic.linear import Linear, combined
from wcet_probe.analyzer.values.symbolic.terms import Terms

_MOST_ENDS = 64


class End(NamedTuple):
    """A test that every round passes: the loop ends where ``gap`` is 0, which each round makes smaller by ``step``."""

    gap: Linear
    step: int


def ends_of(
    terms: Terms,
    ways: Iterable[Sequence[EdgeValues]],
    rate_of: Callable[[Linear], int | None],
    at_entry: Callable[[Linear], Linear | None],
) -> list[End]:
    """The tests whose distance to the end changes by a constant each round.

    *Soundness:* of each of ``ways`` every round takes one edge, so what holds on all of them holds of what goes on.

    Args:
        terms: of the conditions.
        ways: the edges on from each block that every round passes, and the edges back.
        rate_of: by how much a round changes a form; None where that is not constant.
        at_entry: a form as it is in the first round; None where that is not one form.
    """
    found: list[End] = []
    for edges in ways:
        each = [list(_unequal(terms, edge, rate_of, at_entry)) for edge in edges]
        found += [end for end in each[0] if all(end in others for others in each)] if each else []
    return found


def _unequal(
    terms: Terms,
    edge: EdgeValues,
    rate_of: Callable[[Linear], int | None],
    at_entry: Callable[[Linear], Linear | None],
) -> Iterator[End]:
    for condition, holds in edge.conditions:
        for relation, _, first, second in relations(terms, condition, holds=holds):
            gap = terms.difference(second, first)
            rate = rate_of(gap) if relation in {"!=", "<"} else None
            entry = at_entry(gap) if rate else None
            if rate and entry is not None:
                yield End(entry if rate < 0 else combined(Linear({}, 0, gap.bits), entry, -1), abs(rate))


def first_met(
    ends: Sequence[End], range_of: Callable[[Linear], StridedInterval | None]
) -> Iterator[tuple[End, StridedInterval]]:
    """The ends that are met no later than after ``high // step`` rounds, for the range of their gap at entry.

    *Soundness:* as said of the module.

    Args:
        ends: each of a block that every round passes, the gaps as they are in the first round.
        range_of: what a gap may be when the loop is entered.
    """
    groups: dict[tuple[object, ...], list[End]] = {}
    for end in ends[:_MOST_ENDS]:
        groups.setdefault((frozenset(end.gap.coefficients.items()), end.gap.bits, end.step), []).append(end)
    for group in groups.values():
        for end in group if len(group) > 1 else ():
            met = range_of(end.gap)
            if met is None or met.is_bottom or met.unsigned_range()[1] == (1 << met.bits) - 1:
                continue
            # An end is met where the gap of this one is the difference of both.
            ending = {combined(end.gap, other.gap, -1).constant for other in group}
            if all(one in ending for one in _remainders(met, end.step)):  # of many the first that is not is soon met
                yield end, met


def _remainders(met: StridedInterval, step: int) -> range:
    """What a number of ``met`` may leave when it is divided by ``step``, or more."""
    common = gcd(step, met.stride) if met.steps else step
    wraps = met.low + met.stride * met.steps >= 1 << met.bits
    if wraps and common & common - 1:
        common = 1
    return range(met.low % common, step, common)
