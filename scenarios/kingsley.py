"""Scenarios of Kingsley's allocator: the one slow call is the malloc that finds its bucket empty and carves a page.

L11 names the allocator without a worst state; the mechanism has only one. What it costs does not depend on the heap's
size, but on the page's: page / M nodes are written and linked.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from wcet_probe.model.scenario import Block, InitialCache, Operation, OperationKind, ScenarioPlan
from wcet_probe.scenarios.families import Family, GuestHeap, HeapRequest
from wcet_probe.scenarios.random_workload import log_uniform, random_plan
from wcet_probe.scenarios.traces import TraceBuilder

_FREE_BIT = 1
_WORD_BYTES = 4
_HEADS_AT = 4 * _WORD_BYTES
_OPERATIONS, _LIVE_BLOCKS, _SHARE_OF_FREES = 2000, 200, 0.4


@dataclass(frozen=True, slots=True)
class _Buckets:
    """Sizes by bucket, and what a heap can hold."""

    minimum_bytes: int
    header_bytes: int
    page_bytes: int

    @classmethod
    def of(cls, values: Mapping[str, int]) -> _Buckets:
        return cls(values["minimum-block"], values["alignment"], values["page"])

    def size(self, bucket: int) -> int:
        return self.minimum_bytes << bucket

    def payload(self, bucket: int) -> int:
        return self.size(bucket) - self.header_bytes

    def bucket(self, size_bytes: int) -> int:
        return max(0, (size_bytes + self.header_bytes - 1).bit_length() - self.minimum_bytes.bit_length() + 1)

    def carved_bytes(self, bucket: int) -> int:
        return max(self.page_bytes, self.size(bucket))

    def largest(self, heap_bytes: int) -> int:
        """The largest bucket with a block that the heap can hold."""
        return heap_bytes.bit_length() - self.minimum_bytes.bit_length()


def _buckets(request: HeapRequest) -> _Buckets:
    return _Buckets.of(request.allocator.values)


def _worst_alloc(request: HeapRequest) -> tuple[ScenarioPlan, ...]:
    buckets = _buckets(request)
    plans = []
    for bucket in (0, 1):
        size, nodes = buckets.payload(bucket), buckets.page_bytes // buckets.size(bucket)
        plans.append(
            ScenarioPlan(
                scenario="worst-alloc",
                variant=f"the empty bucket of {buckets.size(bucket)} bytes",
                trace=TraceBuilder().trace(),
                measured=Operation(OperationKind.MALLOC, 0, size),
                initial_cache=InitialCache.DIRTY,
                state=f"no block of {buckets.size(bucket)} bytes is free; malloc({size}) carves {nodes} nodes",
                why=(
                    "The bucket's list is empty: the next page is carved, and every node of it written and linked.",
                    "A page holds most nodes of the smallest size; larger ones are found later, but half as many.",
                ),
                prediction={
                    "nodes carved": nodes,
                    "blocks in the bucket": 0,
                    "pages left": request.heap_bytes // buckets.page_bytes,
                },
                driver=f"nodes carved = page / {'M' if bucket == 0 else '2M'}",
                driver_value=nodes,
            )
        )
    return tuple(plans)


def _worst_free(request: HeapRequest) -> tuple[ScenarioPlan, ...]:
    buckets = _buckets(request)
    plans = []
    # The head of the bucket of a whole page may lie in another cache line than the smallest one's.
    for bucket in (0, buckets.largest(buckets.page_bytes)):
        builder = TraceBuilder()
        slot = builder.malloc(buckets.payload(bucket))
        in_bucket = buckets.page_bytes // buckets.size(bucket) - 1
        plans.append(
            ScenarioPlan(
                scenario="worst-free",
                variant=f"a block of {buckets.size(bucket)} bytes, {in_bucket} in its bucket",
                trace=builder.trace(),
                measured=Operation(OperationKind.FREE, slot),
                initial_cache=InitialCache.DIRTY,
                state=f"a block of {buckets.size(bucket)} bytes is in use; free pushes it onto its list of {in_bucket}",
                why=("Every free is the same push, whatever the size, the neighbours and the length of the list.",),
                prediction={"blocks in the bucket": in_bucket},
            )
        )
    return tuple(plans)


def _best_alloc(request: HeapRequest) -> tuple[ScenarioPlan, ...]:
    buckets, builder = _buckets(request), TraceBuilder()
    builder.free(builder.malloc(1))
    nodes = buckets.page_bytes // buckets.minimum_bytes
    return (
        ScenarioPlan(
            scenario="best-alloc",
            variant="the smallest bucket",
            trace=builder.trace(),
            measured=Operation(OperationKind.MALLOC, 0, 1),
            initial_cache=InitialCache.WARM,
            state=f"the smallest bucket holds {nodes} blocks; malloc(1) takes the first",
            why=("The bucket is the first that is tried, and holds a block.",),
            prediction={"nodes carved": 0, "blocks in the bucket": nodes},
        ),
    )


def _best_free(request: HeapRequest) -> tuple[ScenarioPlan, ...]:
    buckets, builder = _buckets(request), TraceBuilder()
    slot = builder.malloc(1)
    in_bucket = buckets.page_bytes // buckets.minimum_bytes - 1
    return (
        ScenarioPlan(
            scenario="best-free",
            variant="the smallest bucket",
            trace=builder.trace(),
            measured=Operation(OperationKind.FREE, slot),
            initial_cache=InitialCache.WARM,
            state=f"a block of {buckets.minimum_bytes} bytes is in use; free pushes it onto its list of {in_bucket}",
            why=("Every free is the same push; here the caches know all that it touches.",),
            prediction={"blocks in the bucket": in_bucket},
        ),
    )


def _worst_failing(request: HeapRequest) -> tuple[ScenarioPlan, ...]:
    """Blocks of a page each fill the heap; the request is the largest that the heap could hold."""
    buckets, builder = _buckets(request), TraceBuilder()
    whole_page = buckets.page_bytes - buckets.header_bytes
    pages = request.heap_bytes // buckets.page_bytes
    for _ in range(pages):
        builder.malloc(whole_page)
    bucket = buckets.largest(request.heap_bytes)
    size = buckets.payload(bucket)
    return (
        ScenarioPlan(
            scenario="worst-failing-alloc",
            variant="the largest request of the heap",
            trace=builder.trace(),
            measured=Operation(OperationKind.MALLOC, 0, size),
            initial_cache=InitialCache.DIRTY,
            state=f"all {pages} pages are in use; malloc({size}) is refused after {bucket} steps to its bucket",
            why=("The bucket of the largest request is found last; it is empty, and no page is left to be carved.",),
            prediction={"pages left": 0, "blocks in the bucket": 0, "bucket": bucket},
            driver="steps to the bucket = floor(log2(H / M))",
            driver_value=bucket,
            refused=True,
        ),
    )


def _random(request: HeapRequest) -> tuple[ScenarioPlan, ...]:
    """The workload of ``random_workload``, without the requests that buckets which never coalesce must refuse."""
    buckets, builder = _buckets(request), TraceBuilder()
    draw = random.Random(request.seed)  # noqa: S311  (a workload, no secret)
    blocks = min(_LIVE_BLOCKS, request.heap_bytes // 256)
    largest = max(16, request.heap_bytes // (4 * max(1, blocks)))
    live, unused, left = list[tuple[int, int]](), Counter[int](), request.heap_bytes
    for _ in range(_OPERATIONS):
        if live and (len(live) >= blocks or draw.random() < _SHARE_OF_FREES):
            slot, bucket = live.pop(draw.randrange(len(live)))
            builder.free(slot)
            unused[bucket] += 1
            continue
        size = log_uniform(draw, largest)
        bucket = buckets.bucket(size)
        if not unused[bucket]:
            if left < buckets.carved_bytes(bucket):
                continue
            left -= buckets.carved_bytes(bucket)
            unused[bucket] += buckets.carved_bytes(bucket) // buckets.size(bucket)
        unused[bucket] -= 1
        live.append((builder.malloc(size), bucket))
    size = next(s for s in iter(lambda: log_uniform(draw, largest), 0) if unused[buckets.bucket(s)])
    return (random_plan(request, builder, len(live), largest, size),)


# -------------------------------------------------------------------------------------------------------------- facts


def _control(guest: GuestHeap) -> tuple[int, int, int]:
    """Start of the arena, end of what is carved, end of the arena."""
    control = guest.symbols["kingsley_control"]
    base, top, end = (guest.read_word(control + _WORD_BYTES * i) for i in range(3))
    return base, top, end


def _blocks(guest: GuestHeap) -> Iterator[tuple[int, int, bool]]:
    """Address, bucket and freedom of every block, by address."""
    buckets = _Buckets.of(guest.values)
    base, top, _ = _control(guest)
    memory = guest.read(base, top - base) if top > base else b""
    little = int.from_bytes(guest.read(guest.symbols["kingsley_control"], _WORD_BYTES), "little") == base
    order: Literal["little", "big"] = "little" if little else "big"
    offset = 0
    while offset < len(memory):
        tag = int.from_bytes(memory[offset : offset + _WORD_BYTES], order)
        yield base + offset, tag >> 1, bool(tag & _FREE_BIT)
        offset += buckets.size(tag >> 1)


def _walk(guest: GuestHeap) -> tuple[Block, ...]:
    buckets = _Buckets.of(guest.values)
    return tuple(
        Block(address, buckets.size(bucket), buckets.header_bytes, free) for address, bucket, free in _blocks(guest)
    )


def _length(guest: GuestHeap, bucket: int) -> int:
    block, length = guest.read_word(guest.symbols["kingsley_control"] + _HEADS_AT + _WORD_BYTES * bucket), 0
    while block:
        length += 1
        block = guest.read_word(block + _WORD_BYTES)
    return length


def _state(guest: GuestHeap, plan: ScenarioPlan) -> Mapping[str, int | str]:
    buckets = _Buckets.of(guest.values)
    _, top, end = _control(guest)
    if plan.measured.kind is OperationKind.MALLOC:
        bucket = buckets.bucket(plan.measured.size_bytes)
    else:
        bucket = guest.read_word(guest.slot(plan.measured.slot) - buckets.header_bytes) >> 1
    length = _length(guest, bucket)
    carves = length == 0 and end - top >= buckets.carved_bytes(bucket)
    return {
        "used blocks": sum(not free for _, _, free in _blocks(guest)),
        "blocks in the bucket": length,
        "bucket": bucket,
        "pages left": (end - top) // buckets.page_bytes,
        "nodes carved": buckets.carved_bytes(bucket) // buckets.size(bucket) if carves else 0,
    }


FAMILY = Family(
    builders=MappingProxyType(
        {
            "worst-alloc": _worst_alloc,
            "worst-free": _worst_free,
            "best-alloc": _best_alloc,
            "best-free": _best_free,
            "worst-failing-alloc": _worst_failing,
            "random": _random,
        }
    ),
    walk=_walk,
    state=_state,
)
