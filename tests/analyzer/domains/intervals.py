"""Wrapped strided intervals for tests: all of a few bits, and those of 32 bits by Hypothesis."""

from __future__ import annotations

from functools import cache
from random import Random

from hypothesis import strategies as st

from wcet_probe.analyzer.domains.strided_interval import StridedInterval, arc, between, bottom, constant

RELATIONS = ("INT_EQUAL", "INT_NOTEQUAL", "INT_LESS", "INT_LESSEQUAL", "INT_SLESS", "INT_SLESSEQUAL")


@cache
def every_interval(bits: int) -> tuple[StridedInterval, ...]:
    numbers = range(1 << bits)
    found = {arc(bits, low, stride, steps) for low in numbers for stride in numbers for steps in numbers}
    return bottom(bits), *sorted(found, key=lambda a: (a.low, a.stride, a.steps))


def some_pairs(bits: int, count: int, seed: object) -> list[tuple[StridedInterval, StridedInterval]]:
    random, intervals = Random(f"{bits} {seed}"), every_interval(bits)
    return [(random.choice(intervals), random.choice(intervals)) for _ in range(count)]


def members(interval: StridedInterval) -> set[int]:
    return set(interval.values())


WORDS = st.one_of(
    st.integers(-40, 40),
    st.integers(0, 0xFFFFFFFF),
    st.builds(lambda power, near: (1 << power) + near, st.integers(0, 31), st.integers(-2, 2)),
)


INTERVALS = st.builds(
    lambda low, stride, steps: arc(32, low, stride, steps),
    WORDS,
    st.one_of(st.sampled_from((1, 2, 3, 4, 8, 12, 24, 4096)), WORDS),
    st.one_of(st.integers(0, 40), WORDS.map(abs)),
)


@st.composite
def intervals_with_a_member(draw: st.DrawFn) -> tuple[StridedInterval, int]:
    interval = draw(INTERVALS)
    step = draw(st.one_of(st.integers(0, interval.steps), st.sampled_from((0, interval.steps))))
    return interval, (interval.low + step * interval.stride) & 0xFFFFFFFF


def word(low: int, high: int | None = None, stride: int = 1) -> StridedInterval:
    return constant(32, low) if high is None else between(32, low, high, stride)
