"""Bounds of malloc by the size of the request, as H11 figure 9 has them: where the bound changes, and to what.

Each range of sizes has a proof of its own, in which the size is a fact about the argument. What is proved of a range
holds for each size in it; of a smaller range, more can be known. The search finds where the bound changes from one
power of two to the next; what is cheaper only within one is not looked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import NamedTuple

from wcet_probe.analyzer.bound import prove
from wcet_probe.analyzer.facts.expressions import parse
from wcet_probe.analyzer.facts.language import ArgumentFact
from wcet_probe.answer.bounds.proving import operation_request, prove_operation
from wcet_probe.build.program import Program
from wcet_probe.errors import UsageError
from wcet_probe.progress import Progress, silent
from wcet_probe.sizes import format_size


class Cost(NamedTuple):
    """A bound: no call takes more of either."""

    instructions: int
    cycles: int

    def is_within(self, other: Cost) -> bool:
        """Whether ``other`` is a bound where this one is."""
        return self.instructions <= other.instructions and self.cycles <= other.cycles

    def least(self, other: Cost) -> Cost:
        """What is known where both are bounds."""
        return Cost(min(self.instructions, other.instructions), min(self.cycles, other.cycles))


class SizeRange(NamedTuple):
    """A bound of requests from ``first_bytes`` to ``last_bytes``."""

    first_bytes: int
    last_bytes: int
    cost: Cost


@dataclass(frozen=True, slots=True)
class PerSizeRequest:
    """What is asked.

    Attributes:
        program: an allocator on a target.
        heap_bytes: size of the heap, and the largest request.
        starts: where ranges begin, rising; none for powers of two, whose ends are moved to where the bound changes.
        cache_sets: first and last of the cache sets that are asked for; None for all.
    """

    program: Program
    heap_bytes: int
    starts: Sequence[int] = ()
    cache_sets: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class PerSize:
    """Bounds of malloc by size, neighbours of the same bound put together, and of free."""

    request: PerSizeRequest
    malloc: tuple[SizeRange, ...]
    free: Cost


def bounds_per_size(request: PerSizeRequest, progress: Progress = silent) -> PerSize:
    """Prove malloc for each range of sizes, and free.

    Raises:
        AnalysisError: no bound can be proved.
        UsageError: sizes that do not rise or are above the heap, or cache sets where malloc takes none.
    """
    starts = _starts(request)
    progress(f"{request.program.allocator.name}: requests of any size")
    whole = _prove(request, 0, (1 << 32) - 1)

    @cache
    def bound(first_bytes: int, last_bytes: int) -> Cost:
        return _prove(request, first_bytes, last_bytes).least(whole)

    found = []
    for number, (first, following) in enumerate(zip(starts, [*starts[1:], request.heap_bytes + 1], strict=True)):
        progress(f"{request.program.allocator.name}: requests from {format_size(first)}", number, len(starts))
        found.append(SizeRange(first, following - 1, bound(first, following - 1)))
    if not request.starts:
        found = _sharpened(found, bound, lambda text: progress(f"{request.program.allocator.name}: {text}"))
    free = prove_operation(request.program, "free", request.heap_bytes)
    return PerSize(request, tuple(_joined(found)), Cost(free.instructions, free.cycles))


def _starts(request: PerSizeRequest) -> Sequence[int]:
    allocator, heap_bytes = request.program.allocator, request.heap_bytes
    if heap_bytes < allocator.minimum_heap_bytes:
        least = allocator.minimum_heap_bytes
        raise UsageError(f"a heap of {heap_bytes} bytes is too small for {allocator.name}; give at least {least}.")
    if request.cache_sets and not allocator.takes_cache_set:
        raise UsageError(f"{allocator.name} takes no cache set; leave --cache-set out, or ask cama.")
    powers = {1 << shift for shift in range(heap_bytes.bit_length())}
    starts = request.starts or sorted({*powers, heap_bytes})
    if sorted({*starts}) != list(starts) or starts[0] < 1 or starts[-1] > heap_bytes:
        raise UsageError(f"--sizes must rise, from 1 at least to the heap of {heap_bytes} bytes at most; correct it.")
    return starts


def _prove(request: PerSizeRequest, first_bytes: int, last_bytes: int) -> Cost:
    question = operation_request(request.program, "malloc", request.heap_bytes)
    ranges = [(first_bytes, last_bytes), *([request.cache_sets] if request.cache_sets else [])]
    arguments = tuple(
        ArgumentFact("--per-size", question.entry, index, None, parse(str(low)), parse(str(high)), "it was asked for")
        for index, (low, high) in enumerate(ranges)
    )
    facts = replace(question.facts, arguments=(*question.facts.arguments, *arguments))
    proved = prove(replace(question, facts=facts))
    return Cost(proved.instructions, proved.cycles)


def _sharpened(
    ranges: Sequence[SizeRange], bound: Callable[[int, int], Cost], progress: Callable[[str], None]
) -> list[SizeRange]:
    """``ranges``, whose ends are where the bound changes: a cheap one takes what it can of its neighbour."""
    found = list(ranges[:1])
    for right in ranges[1:]:
        left = found.pop()
        if left.cost != right.cost:
            progress(f"looking for where the bound changes near {format_size(right.first_bytes)}")
        if left.cost.is_within(right.cost):
            found += _grown_up(left, right, bound)
        elif right.cost.is_within(left.cost):
            found += _grown_down(left, right, bound)
        else:
            found += [left, right]
    return found


def _grown_up(left: SizeRange, right: SizeRange, bound: Callable[[int, int], Cost]) -> Iterator[SizeRange]:
    first, last = right.first_bytes, right.last_bytes
    end = _furthest(first - 1, last, lambda size: bound(first, size).is_within(left.cost))
    yield SizeRange(left.first_bytes, end, left.cost)
    if end < last:
        yield SizeRange(end + 1, last, bound(end + 1, last).least(right.cost))


def _grown_down(left: SizeRange, right: SizeRange, bound: Callable[[int, int], Cost]) -> Iterator[SizeRange]:
    first, last = left.first_bytes, left.last_bytes
    start = _furthest(last + 1, first, lambda size: bound(size, last).is_within(right.cost))
    if start > first:
        yield SizeRange(first, start - 1, bound(first, start - 1).least(left.cost))
    yield SizeRange(start, right.last_bytes, right.cost)


def _furthest(good: int, bad: int, holds: Callable[[int], bool]) -> int:
    """The furthest number from ``good`` to ``bad`` that ``holds``, found by bisection."""
    if good == bad or holds(bad):
        return bad
    while abs(bad - good) > 1:
        middle = (good + bad) // 2
        good, bad = (middle, bad) if holds(middle) else (good, middle)
    return good


def _joined(ranges: Iterable[SizeRange]) -> Iterator[SizeRange]:
    last: SizeRange | None = None
    for one in ranges:
        if last and last.cost == one.cost:
            last = last._replace(last_bytes=one.last_bytes)
        else:
            if last:
                yield last
            last = one
    if last:
        yield last
