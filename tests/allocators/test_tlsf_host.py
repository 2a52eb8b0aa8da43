"""TLSF on the host: the C against a specification in random operations, and at the edges."""

from __future__ import annotations

import ctypes
import random
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from .tlsf_host import (
    ALIGNMENT,
    CONFIGURATIONS,
    HEADER,
    MAXIMUM_HEAP,
    MINIMUM_HEAP,
    SIZE_MAX,
    WORD,
    Host,
    Violation,
    configuration_id,
    loaded,
)
from .tlsf_model import Tlsf, class_bounds


def searching(examples: int) -> settings:
    """So many examples, the same ones each time."""
    return settings(
        max_examples=examples,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    )


@pytest.fixture(params=CONFIGURATIONS, ids=configuration_id)
def host(request: pytest.FixtureRequest, build_tlsf: Callable[[int, int], Path]) -> Iterator[Host]:
    yield from loaded(build_tlsf(*request.param), request.param[0])


# ------------------------------------------------------------------------------------------------ random operations

near_a_power = st.builds(lambda bits, off: max(0, (1 << bits) + off), st.integers(3, 16), st.integers(-17, 17))
huge = st.one_of(
    st.integers(0, 2 * ALIGNMENT).map(lambda less: SIZE_MAX - less),
    st.integers(0, 8 * WORD - 1).map(lambda bits: 1 << bits),
    st.integers(0, SIZE_MAX),
)
sizes = st.one_of(st.integers(0, 300), st.integers(0, 6000), near_a_power, huge)
mallocs = st.tuples(st.just("malloc"), sizes)
frees = st.tuples(st.just("free"), st.integers(0, 1000))
step = st.one_of(mallocs, mallocs, frees)
operations = st.one_of(st.lists(step, max_size=10), st.lists(step, min_size=40, max_size=80))
heaps = st.one_of(st.integers(3, 40), st.integers(3, 1 << 11), st.just(1 << 12)).map(lambda units: units * ALIGNMENT)


def pattern(offset: int, size: int) -> bytes:
    return (offset.to_bytes(4, "little") * (size // 4 + 1))[:size]


def follow(host: Host, heap_bytes: int, steps: list[tuple[str, int]]) -> None:
    """Carry out the steps on a fresh heap, each of which must do what the specification says, and free all."""
    model = Tlsf(heap_bytes, host.sl_bits, WORD)
    live: dict[int, int] = {}

    def free(offset: int) -> None:
        size = live.pop(offset)
        assert ctypes.string_at(host.arena + offset, size) == pattern(offset, size)
        host.free(offset)
        model.free(offset)

    def compare() -> None:
        assert host.check() is Violation.HEAP_SOUND
        assert host.chain() == model.chain()

    assert host.init(heap_bytes) == 0
    compare()
    for action, argument in steps:
        if action == "malloc":
            before = host.snapshot()
            offset = host.malloc(argument)
            assert offset == model.malloc(argument)
            if offset is None:
                assert host.snapshot() == before
            else:
                assert (host.arena + offset) % ALIGNMENT == 0
                assert HEADER <= offset <= heap_bytes - HEADER - argument
                assert all(offset + argument <= o or o + s <= offset for o, s in live.items())
                live[offset] = argument
                ctypes.memmove(host.arena + offset, pattern(offset, argument), argument)
        elif live:
            free(sorted(live)[argument % len(live)])
        compare()
    while live:
        free(next(iter(live)))
        compare()
    assert host.chain() == [(0, heap_bytes - 2 * HEADER, True)]


@pytest.mark.covering(0)
@searching(40)
@given(heap_bytes=heaps, steps=operations)
def test_every_operation_does_what_the_specification_says(
    host: Host, heap_bytes: int, steps: list[tuple[str, int]]
) -> None:
    follow(host, heap_bytes, steps)


@pytest.mark.slow
@searching(1000)
@given(heap_bytes=heaps, steps=operations)
def test_every_operation_of_many_does_what_the_specification_says(
    host: Host, heap_bytes: int, steps: list[tuple[str, int]]
) -> None:
    follow(host, heap_bytes, steps)


# ---------------------------------------------------------------------------------------------------------- the edges


def test_before_init_malloc_fails(host: Host) -> None:
    assert host.check() is Violation.NO_HEAP
    assert host.malloc(1) is None


def test_size_zero_and_null(host: Host) -> None:
    host.init(4096)
    before = host.snapshot()
    assert host.malloc(0) is None
    host.library.tlsf_free(None)
    assert host.snapshot() == before


def test_huge_requests_fail_and_change_nothing(host: Host) -> None:
    host.init(4096)
    before = host.snapshot()
    largest_class = class_bounds(host.sl_bits, ALIGNMENT)[-1]
    for size in (
        SIZE_MAX,
        SIZE_MAX - 6,
        SIZE_MAX - 7,
        SIZE_MAX - ALIGNMENT,
        SIZE_MAX // 2 + 1,
        largest_class,
        largest_class + 1,
        1 << 28,
        (1 << 31) + 1,
        1 << 31,
    ):
        assert host.malloc(size) is None, size
        assert host.snapshot() == before


def test_init_refuses_and_changes_nothing(host: Host) -> None:
    host.init(4096)
    before, init, arena = host.snapshot(), host.library.tlsf_init, host.arena
    misaligned = [init(arena + off, 2048) for off in range(1, ALIGNMENT)]
    odd = [init(arena, 2048 + off) for off in range(1, ALIGNMENT)]
    small = [init(arena, size) for size in (0, ALIGNMENT, MINIMUM_HEAP - ALIGNMENT)]
    large = [init(arena, size) for size in (MAXIMUM_HEAP + ALIGNMENT, SIZE_MAX + 1 - ALIGNMENT)]
    assert 0 not in misaligned + odd + small + large + [init(None, 2048)]
    assert host.snapshot() == before
    assert host.check() is Violation.HEAP_SOUND


def test_init_forgets_the_heap_before(host: Host) -> None:
    host.init(8192)
    kept = [host.malloc(40 * i + 1) for i in range(20)]
    for offset in kept[::2]:
        assert offset is not None
        host.free(offset)
    assert host.init(512) == 0
    assert host.check() is Violation.HEAP_SOUND
    assert host.chain() == [(0, 512 - 2 * HEADER, True)]


def test_minimum_heap_serves_one_block(host: Host) -> None:
    assert host.init(MINIMUM_HEAP) == 0
    assert host.malloc(ALIGNMENT + 1) is None
    assert host.malloc(ALIGNMENT) == HEADER
    assert host.malloc(1) is None
    assert host.check() is Violation.HEAP_SOUND
    host.free(HEADER)
    assert host.malloc(1) == HEADER


def test_maximum_heap(host: Host) -> None:
    """The pages of the buffer stay untouched, but for the two at its ends."""
    assert host.init(MAXIMUM_HEAP) == 0
    assert host.check() is Violation.HEAP_SOUND
    largest = class_bounds(host.sl_bits, ALIGNMENT)[-1]
    assert host.malloc(largest + 1) is None
    assert host.malloc(largest) == HEADER
    assert host.check() is Violation.HEAP_SOUND
    host.free(HEADER)
    assert host.chain() == [(0, MAXIMUM_HEAP - 2 * HEADER, True)]


def test_largest_request_of_a_heap_is_the_lower_end_of_its_class(host: Host) -> None:
    bounds = class_bounds(host.sl_bits, ALIGNMENT)
    for heap_bytes in (1024, 10_000 // ALIGNMENT * ALIGNMENT, 65536 + ALIGNMENT):
        host.init(heap_bytes)
        largest = max(bound for bound in bounds if bound <= heap_bytes - 2 * HEADER)
        assert host.malloc(largest + 1) is None
        assert host.malloc(largest) == HEADER


def test_exhaustion_and_recovery(host: Host) -> None:
    host.init((1 << 16) + HEADER)
    first = []
    while (offset := host.malloc(1)) is not None:
        first.append(offset)
    assert len(first) == (1 << 16) // (2 * ALIGNMENT)
    assert host.check() is Violation.HEAP_SOUND
    for offset in first[::2]:
        host.free(offset)
    assert host.malloc(ALIGNMENT + 1) is None
    assert sorted(o for _ in first[::2] if (o := host.malloc(1)) is not None) == first[::2]
    random.Random(1).shuffle(first)
    for offset in first:
        host.free(offset)
        assert host.check() is Violation.HEAP_SOUND
    assert len(host.chain()) == 1


def test_a_block_once_cut_serves_its_whole_class(host: Host) -> None:
    """M06 section 4.3: cut for 130, reused for 132."""
    host.init(1 << 16)
    bounds = class_bounds(host.sl_bits, ALIGNMENT)
    for lower, upper in pairwise(bounds):
        if (cut := host.malloc(lower + 1)) is None:
            break
        fence = host.malloc(1)
        host.free(cut)
        assert host.malloc(upper) == cut
        assert fence is not None
        host.free(fence)
        host.free(cut)
