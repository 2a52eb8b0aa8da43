"""Wrapped strided intervals: sets of bit vectors that are arcs of a circle, taken at equal steps.

An interval is neither signed nor unsigned: it may run over the end of either order. Each set that can be written so has
one canonical form, so that equal sets are equal objects.

Source: Navas, Schachte, Sondergaard, Stuckey, "Signedness-agnostic program analysis", APLAS 2012 (arcs); Balakrishnan,
Reps, "Analyzing memory accesses in x86 executables", CC 2004 (strides).

Words: strided interval, lattice (docs/explanation/glossary.md).

*Soundness:* each function's result contains what is said of it; where the set is no arc, it is the smallest found.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import accumulate, pairwise
from math import gcd
from typing import NamedTuple

Run = tuple[int, int, int]
"""(low, stride, steps): the integers ``low + k * stride`` for k from 0 to ``steps``, not wrapped."""

_MOST_LISTED = 8


class StridedInterval(NamedTuple):
    """The set {(low + k * stride) mod 2**bits : 0 <= k <= steps}, in canonical form; made by the functions below.

    ``steps`` is -1 for the empty set; ``stride`` is 0 for at most one value, else ``stride * steps < 2**bits``.
    """

    bits: int
    low: int
    stride: int
    steps: int

    @property
    def is_bottom(self) -> bool:
        """Whether the set is empty."""
        return self.steps < 0

    @property
    def is_top(self) -> bool:
        """Whether every value is in the set."""
        return self.steps + 1 == 1 << self.bits

    @property
    def is_constant(self) -> bool:
        """Whether the set is a single value."""
        return self.steps == 0

    @property
    def value(self) -> int:
        """The only value of a constant, unsigned."""
        if self.steps:
            raise ValueError(f"{self} is not a constant.")
        return self.low

    @property
    def size(self) -> int:
        """How many values there are."""
        return self.steps + 1

    @property
    def extent(self) -> int:
        """The distance from ``low`` to the last value, going upwards."""
        return self.stride * self.steps if self.steps > 0 else 0

    @property
    def is_residue_class(self) -> bool:
        """Whether the set is closed under steps of ``stride``: a congruence, and no bound."""
        return self.stride * (self.steps + 1) == 1 << self.bits

    def __contains__(self, value: int) -> bool:  # type: ignore[override]  # of numbers, not of fields
        distance = (value - self.low) & ((1 << self.bits) - 1)
        if self.steps <= 0:
            return self.steps == 0 and distance == 0
        return distance <= self.stride * self.steps and distance % self.stride == 0

    def values(self) -> Iterator[int]:
        """The values, unsigned, going upwards from ``low``."""
        mask = (1 << self.bits) - 1
        return ((self.low + step * self.stride) & mask for step in range(self.steps + 1))

    def unsigned_runs(self) -> tuple[Run, ...]:
        """The set, read as unsigned integers, in at most two runs."""
        return _cut(self.low, self.stride, self.steps, 1 << self.bits)

    def signed_runs(self) -> tuple[Run, ...]:
        """The set, read as two's complement integers, in at most two runs."""
        full = 1 << self.bits
        half = full >> 1
        runs = _cut((self.low + half) & (full - 1), self.stride, self.steps, full)
        return tuple((low - half, stride, steps) for low, stride, steps in runs)

    def unsigned_range(self) -> tuple[int, int]:
        """The least and the greatest value, unsigned; of the empty set, an error."""
        return _range(self.unsigned_runs())

    def signed_range(self) -> tuple[int, int]:
        """The least and the greatest value, signed; of the empty set, an error."""
        return _range(self.signed_runs())


def _cut(low: int, stride: int, steps: int, full: int) -> tuple[Run, ...]:
    """An arc in runs within 0 .. full - 1; the run above the cut is first."""
    if low + stride * steps < full:
        return ((low, stride, steps),) if steps >= 0 else ()
    before = (full - 1 - low) // stride
    return (low, stride, before), (low + (before + 1) * stride - full, stride, steps - before - 1)


def _range(runs: tuple[Run, ...]) -> tuple[int, int]:
    if not runs:
        raise ValueError("The empty set has no range.")
    low, stride, steps = runs[0]
    return runs[-1][0], low + stride * steps


def arc(bits: int, low: int, stride: int, steps: int) -> StridedInterval:
    """The canonical interval with the values of a run of any integers, taken modulo 2**bits.

    *Soundness:* exact where the run is shorter than one turn (with the stride in either direction), else all values
    that are congruent.
    """
    full = 1 << bits
    if steps < 0:
        return bottom(bits)
    stride &= full - 1
    if steps == 0 or stride == 0:
        return StridedInterval(bits, low & (full - 1), 0, 0)
    if stride > full >> 1:
        low += stride * steps
        stride = full - stride
    if stride * steps >= full:
        return residue_class(bits, low, stride)
    if stride * (steps + 1) == full:
        low %= stride
    return StridedInterval(bits, low & (full - 1), stride, steps)


def residue_class(bits: int, low: int, modulus: int) -> StridedInterval:
    """All values congruent to ``low`` modulo the greatest common divisor of ``modulus`` and 2**bits."""
    full = 1 << bits
    stride = gcd(modulus, full)
    if stride == full:
        return StridedInterval(bits, low & (full - 1), 0, 0)
    return StridedInterval(bits, low % stride, stride, full // stride - 1)


def constant(bits: int, value: int) -> StridedInterval:
    """The single value ``value`` modulo 2**bits."""
    return StridedInterval(bits, value & ((1 << bits) - 1), 0, 0)


@cache
def top(bits: int) -> StridedInterval:
    """All values of ``bits`` bits."""
    return StridedInterval(bits, 0, 1, (1 << bits) - 1)


@cache
def bottom(bits: int) -> StridedInterval:
    """No value."""
    return StridedInterval(bits, 0, 0, -1)


def between(bits: int, low: int, high: int, stride: int = 1) -> StridedInterval:
    """``low``, ``low + stride`` and so on up to at most ``high``, modulo 2**bits.

    Args:
        bits: width of the values.
        low: first value, signed or unsigned.
        high: greatest value, in the same reading; nothing is in the set where it is below ``low``.
        stride: distance of neighbours, at least 1.
    """
    return arc(bits, low, stride, (high - low) // stride)


def hull(bits: int, values: Iterable[int]) -> StridedInterval:
    """The smallest strided interval that contains ``values``, each of them unsigned."""
    ordered = sorted(set(values))
    if len(ordered) < 2:
        return constant(bits, ordered[0]) if ordered else bottom(bits)
    full = 1 << bits
    gaps = [after - before for before, after in pairwise(ordered)]
    gaps.append(ordered[0] + full - ordered[-1])
    before = [0, *accumulate(gaps, gcd)]
    behind = [0, *accumulate(reversed(gaps), gcd)][::-1]
    best_steps, best = full, 0
    # The interval leaves one gap out; the last gap comes first, for what wraps is harder to read.
    for index in range(len(gaps) - 1, -1, -1):
        steps = (full - gaps[index]) // gcd(before[index], behind[index + 1])
        if steps < best_steps:
            best_steps, best = steps, index
    return arc(bits, ordered[(best + 1) % len(ordered)], (full - gaps[best]) // best_steps, best_steps)


def union(bits: int, runs: Iterable[Run]) -> StridedInterval:
    """An interval that contains the integers of all ``runs``, modulo 2**bits."""
    result = bottom(bits)
    for low, stride, steps in runs:
        result = join(result, arc(bits, low, stride, steps))
    return result


def leq(one: StridedInterval, other: StridedInterval) -> bool:
    """Whether ``one`` is a subset of ``other``.

    *Soundness:* exact.
    """
    if one.steps <= 0:
        return one.steps < 0 or one.low in other
    if other.steps < one.steps:
        return False
    full = 1 << one.bits
    extent = other.extent
    # Seen from the beginning of `other`, `one` is at most two runs.
    return all(
        low % other.stride == 0 and (steps == 0 or stride % other.stride == 0) and low + stride * steps <= extent
        for low, stride, steps in _cut((one.low - other.low) & (full - 1), one.stride, one.steps, full)
    )


def join(one: StridedInterval, other: StridedInterval) -> StridedInterval:
    """An interval that contains both."""
    if leq(one, other):
        return other
    if leq(other, one):
        return one
    if one.steps + other.steps < _MOST_LISTED - 1:
        return hull(one.bits, (*one.values(), *other.values()))
    forth, back = _followed(one, other), _followed(other, one)
    return forth if (forth.steps, forth.low) <= (back.steps, back.low) else back


def _followed(first: StridedInterval, second: StridedInterval) -> StridedInterval:
    """The arc that begins with ``first`` and goes on until it has both."""
    distance = (second.low - first.low) & ((1 << first.bits) - 1)
    stride = gcd(first.stride, second.stride, distance)
    return arc(first.bits, first.low, stride, max(first.extent, distance + second.extent) // stride)


def meet(one: StridedInterval, other: StridedInterval) -> StridedInterval:
    """An interval that contains what is in both, and is a subset of one of them.

    *Soundness:* over-approximates the intersection; exact where it is a single run, and never empty without reason.
    """
    if one.steps <= 0 or other.is_top:
        return one if one.steps < 0 or one.low in other else bottom(one.bits)
    if other.steps <= 0 or one.is_top:
        return other if other.steps < 0 or other.low in one else bottom(one.bits)
    full = 1 << one.bits
    extent, stride = other.extent, other.stride
    common = [
        (other.low + low, step, steps)
        for run in _cut((one.low - other.low) & (full - 1), one.stride, one.steps, full)
        for low, step, steps in _common(run, stride, extent)
    ]
    result = union(one.bits, common)
    if len(common) < 2 or leq(result, one) or leq(result, other):
        return result
    return one if one.steps <= other.steps else other


def _common(run: Run, modulus: int, high: int) -> Iterator[Run]:
    """The values of ``run``, none negative, that are multiples of ``modulus`` and at most ``high``: one run or none."""
    low, stride, steps = run
    high = min(high, low + stride * steps)
    shared = gcd(stride, modulus)
    if low % shared:
        return
    if steps:
        # low + stride * i = 0 (mod modulus), solved for the least i.
        period = modulus // shared
        low += stride * (-low // shared * pow(stride // shared, -1, period) % period)
        stride *= period
    elif low % modulus:
        return
    if low <= high:
        yield (low, stride, (high - low) // stride) if stride else (low, 0, 0)


def clip(interval: StridedInterval, low: int, high: int, *, is_signed: bool) -> StridedInterval:
    """What of ``interval`` lies in ``low`` .. ``high``, by the signed or the unsigned order.

    *Soundness:* contains all of it, and is a subset of ``interval``.
    """
    clipped = []
    for first, stride, steps in interval.signed_runs() if is_signed else interval.unsigned_runs():
        if not stride:
            if low <= first <= high:
                clipped.append((first, 0, 0))
            continue
        skipped = max(0, -((first - low) // stride))
        last = min(steps, (high - first) // stride)
        if skipped <= last:
            clipped.append((first + skipped * stride, stride, last - skipped))
    result = union(interval.bits, clipped)
    return result if leq(result, interval) else interval


def widen(old: StridedInterval, new: StridedInterval, thresholds: Sequence[int]) -> StridedInterval:
    """An interval that contains both, so coarse that a chain of them ends soon.

    An end that moved goes on to the next threshold or end of an order. What has passed the ends of both orders is
    bounded by no comparison: it reaches all around, and keeps its congruence.

    Args:
        old: what was known.
        new: what is to be covered too.
        thresholds: values, signed or unsigned, beyond which an end shall not go at once.

    *Soundness:* covers both. A chain has at most 2 * len(thresholds) + 2 * bits + 8 different members: a step makes the
    stride a proper divisor, moves an end over a threshold or an order's end, or ends in a residue class; an arc never
    moves but only grows, except where a pair of values turns around, once.
    """
    if not leq(old, new):
        new = join(old, new)
    if old.steps < 0 or old == new:
        return new
    bits, full = old.bits, 1 << old.bits
    left = (old.low - new.low) & (full - 1)
    right = new.extent - left - old.extent
    stride = gcd(old.stride, new.stride, left)
    # What leaves out only a gap between two values of `old` reaches all around.
    if old.is_residue_class or right < 0:
        return residue_class(bits, old.low, stride)
    half = full >> 1
    if all(0 < (end - new.low) & (full - 1) <= new.extent for end in (0, half)):
        return residue_class(bits, old.low, stride)
    if left:
        room = min((old.low - left - end) & (full - 1) for end in (*thresholds, 0, half))
        left += room - room % stride
    if right:
        room = min((end - old.low - old.extent - right) & (full - 1) for end in (*thresholds, half - 1, full - 1))
        right += room - room % stride
    return arc(bits, old.low - left, stride, (left + old.extent + right) // stride)
