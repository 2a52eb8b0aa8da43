"""Scenarios of the DJGPP allocators with buckets: djgpp-sbrk, djgpp-carve and djgpp-quarters.

They differ in how sizes are numbered, in what an empty list costs, and in what a free of the topmost block does;
nothing depends on the heap's size. Where nothing is carved, what is left open is decided by measuring: whether a miss
costs more than a hit, which way through the binary search is the longest (there is a candidate for each: compilers make
branches of its steps or none), how header and link lie across cache lines.

Source: L11 §V names the allocators without a worst state.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from types import MappingProxyType
from typing import Literal

from wcet_probe.model.scenario import Block, InitialCache, Operation, OperationKind, ScenarioPlan
from wcet_probe.scenarios.families import Builder, Family, GuestHeap, HeapRequest
from wcet_probe.scenarios.random_workload import log_uniform, random_plan
from wcet_probe.scenarios.tagged_heap import too_small
from wcet_probe.scenarios.traces import TraceBuilder

_WORD_BYTES = 4
_HEADER_BYTES = 4
_HEADS_AT = 3 * _WORD_BYTES
_OPERATIONS, _LIVE_BLOCKS, _SHARE_OF_FREES = 2000, 200, 0.4


@dataclass(frozen=True, slots=True)
class Mechanism:
    """What tells the allocators apart.

    Attributes:
        control: symbol of the control structure.
        quarters: four buckets per power of two, else one.
        carves: whether a miss takes a chunk, else one block.
        gives_back: whether the topmost block goes back below the break when it is freed.
        header_apart: whether sizes of buckets leave the header out.
    """

    control: str
    quarters: bool = False
    carves: bool = False
    gives_back: bool = False
    header_apart: bool = False

    def of(self, values: Mapping[str, int]) -> Mechanism:
        """It with the build parameters ``values``."""
        return replace(self, header_apart=bool(values.get("header-apart", 0)))

    def sized(self, bucket: int) -> int:
        """Bytes of a block as the bucket counts them."""
        if not self.quarters:
            return 1 << bucket
        return 8 * (bucket if bucket < 4 else (4 + bucket % 4) << (bucket // 4 - 1))

    def size(self, bucket: int) -> int:
        """Bytes of a block, header included."""
        return self.sized(bucket) + (_HEADER_BYTES if self.header_apart else 0)

    def buckets(self, values: Mapping[str, int], room_bytes: int) -> list[int]:
        """The buckets with blocks that fit into ``room_bytes``, by ascending size."""
        sizes = ((bucket, self.size(bucket)) for bucket in range(97))
        return [bucket for bucket, size in sizes if values["minimum-block"] <= size <= room_bytes]

    def bucket_for(self, values: Mapping[str, int], size_bytes: int) -> int:
        """The bucket that serves a request."""
        least = max(values["minimum-block"], size_bytes + _HEADER_BYTES)
        return next(bucket for bucket in range(97) if self.size(bucket) >= least)

    def taken_bytes(self, values: Mapping[str, int], bucket: int, room_bytes: int) -> int:
        """What a miss takes of the ``room_bytes`` that are left; 0 if they are too few."""
        size = self.size(bucket)
        return min(max(size, values["chunk"] if self.carves else 0), room_bytes // size * size)

    def log(self, bucket: int) -> int:
        """What the binary search finds for a full block's request: its bits are the way through the five steps."""
        searched = self.sized(bucket) // 8 if self.quarters else self.sized(bucket) - 1
        return searched.bit_length() - 1


def _room(request: HeapRequest) -> int:
    return request.heap_bytes - _HEADER_BYTES


@dataclass(frozen=True, slots=True)
class _Builders:
    """Builders of an allocator's scenarios."""

    mechanism: Mechanism

    def _payload(self, bucket: int) -> int:
        return self.mechanism.size(bucket) - _HEADER_BYTES

    def _telling(self, request: HeapRequest, largest_bytes: int) -> list[int]:
        """One bucket of blocks up to ``largest_bytes`` for each way through the search: nothing else matters."""
        buckets = self.mechanism.buckets(request.allocator.values, largest_bytes)
        return sorted({self.mechanism.log(bucket): bucket for bucket in buckets}.values())

    def worst_alloc(self, request: HeapRequest) -> tuple[ScenarioPlan, ...]:
        values = request.allocator.values
        if self.mechanism.carves:
            largest = min(values["chunk"], _room(request))
            return tuple(self._miss(request, bucket) for bucket in self.mechanism.buckets(values, largest)[:2])
        room = _room(request)
        misses = [self._miss(request, bucket) for bucket in self._telling(request, room)]
        hits = [self._hit(request, "worst-alloc", b) for b in self._telling(request, room - values["minimum-block"])]
        return (*misses, *hits)

    def _miss(self, request: HeapRequest, bucket: int, scenario: str = "worst-alloc") -> ScenarioPlan:
        room, size = _room(request), self._payload(bucket)
        taken = self.mechanism.taken_bytes(request.allocator.values, bucket, room)
        blocks = taken // self.mechanism.size(bucket)
        carving = self.mechanism.carves
        return ScenarioPlan(
            scenario=scenario,
            variant=f"no block of {self.mechanism.size(bucket)} bytes is free",
            trace=TraceBuilder().trace(),
            measured=Operation(OperationKind.MALLOC, 0, size),
            initial_cache=InitialCache.DIRTY if scenario == "worst-alloc" else InitialCache.WARM,
            state=(
                f"no block of {self.mechanism.size(bucket)} bytes is free; malloc({size}) "
                + (f"carves {taken} bytes into {blocks}" if carving else "moves the break")
            ),
            why=(
                ("The bucket's list is empty: a chunk is carved, every block of it is written and linked.",)
                if carving
                else ("The bucket's list is empty: the break is compared with the end, moved, and a header written.",)
            ),
            prediction={"blocks taken at the break": blocks, "blocks in its list": 0, "bytes left": room},
            driver="blocks carved = floor(min(chunk, H - 4) / block)" if carving else "",
            driver_value=blocks if carving else None,
        )

    def _hit(self, request: HeapRequest, scenario: str, bucket: int) -> ScenarioPlan:
        size, builder = self._payload(bucket), TraceBuilder()
        slot = builder.malloc(size)
        builder.malloc(1)  # The block is not the topmost.
        builder.free(slot)
        in_list = self._in_list(request, bucket, used=0)
        return ScenarioPlan(
            scenario=scenario,
            variant=f"a block of {self.mechanism.size(bucket)} bytes is free",
            trace=builder.trace(),
            measured=Operation(OperationKind.MALLOC, 0, size),
            initial_cache=InitialCache.DIRTY if scenario == "worst-alloc" else InitialCache.WARM,
            state=f"a block of {self.mechanism.size(bucket)} bytes is free; malloc({size}) takes it from its list",
            why=("The bucket's list has a head, whose link is loaded: in a cache line of its own.",),
            prediction={"blocks in its list": in_list, "blocks taken at the break": 0},
        )

    def _in_list(self, request: HeapRequest, bucket: int, *, used: int) -> int:
        """Blocks in the list after a first miss, and malloc(1), of which ``used`` of the bucket are in use."""
        values = request.allocator.values
        blocks = self.mechanism.taken_bytes(values, bucket, _room(request)) // self.mechanism.size(bucket)
        least = self.mechanism.carves and bucket == self.mechanism.bucket_for(values, 1)
        return blocks - used - least

    def worst_free(self, request: HeapRequest) -> tuple[ScenarioPlan, ...]:
        values = request.allocator.values
        largest = values["chunk"] // 2 if self.mechanism.carves else request.heap_bytes // 4
        buckets = self._telling(request, max(largest, values["minimum-block"]))
        ways = (False, True) if self.mechanism.gives_back else (False,)
        states: dict[tuple[int, tuple[int, int], bool], None] = {}
        for at, fences, topmost in product((0, -1), self._fences(request), ways):
            held = [bucket for bucket in buckets if self._holds(request, bucket, fences, topmost=topmost)]
            states |= {(bucket, fences, topmost): None for bucket in held[at:][:1]}
        if not states:
            raise too_small(request)
        return tuple(self._free_plan(request, "worst-free", *state[:2], topmost=state[2]) for state in states)

    def _holds(self, request: HeapRequest, bucket: int, fences: tuple[int, int], *, topmost: bool) -> bool:
        """Whether the heap has room for the fences, the block and, unless it is the topmost, another one above it."""
        values, mechanism, (count, fence) = request.allocator.values, self.mechanism, fences
        room = _room(request) - count * mechanism.size(fence)
        taken, least = mechanism.taken_bytes(values, bucket, room), mechanism.bucket_for(values, 1)
        blocks = taken // mechanism.size(bucket)
        if topmost or (bucket == least and blocks > 1):
            return blocks > 0
        return blocks > 0 and mechanism.taken_bytes(values, least, room - taken) > 0

    def _fences(self, request: HeapRequest) -> Iterator[tuple[int, int]]:
        """Blocks (how many, of which bucket) below the freed one: none, and such that its link starts a cache line."""
        yield 0, 0
        line = request.data_line_bytes
        if line is None or self.mechanism.carves:
            return
        for bucket in self.mechanism.buckets(request.allocator.values, line):
            for count in range(1, line // _WORD_BYTES):
                if (2 * _HEADER_BYTES + count * self.mechanism.size(bucket)) % line == 0:
                    yield count, bucket
                    return

    def _free_plan(
        self, request: HeapRequest, scenario: str, bucket: int, fences: tuple[int, int], *, topmost: bool
    ) -> ScenarioPlan:
        builder, (count, fence) = TraceBuilder(), fences
        for _ in range(count):
            builder.malloc(self._payload(fence))
        slot = builder.malloc(self._payload(bucket))
        if not topmost:
            builder.malloc(1)
        size = self.mechanism.size(bucket)
        where = "the topmost block" if topmost else "a block below another"
        return ScenarioPlan(
            scenario=scenario,
            variant=f"{where}, {size} bytes, {count} block(s) below it",
            trace=builder.trace(),
            measured=Operation(OperationKind.FREE, slot),
            initial_cache=InitialCache.WARM if scenario == "best-free" else InitialCache.DIRTY,
            state=f"{where} of {size} bytes is in use; free {'moves the break' if topmost else 'pushes it'}",
            why=(
                ("The block ends at the break, which is moved back to it; no list is touched.",)
                if topmost
                else ("Every push is the same, whatever size, neighbours and the list's length.",)
            ),
            prediction={
                "is topmost": int(topmost),
                "offset of the payload": 2 * _HEADER_BYTES + count * (self.mechanism.size(fence) if count else 0),
                "blocks in its list": self._in_list(request, bucket, used=1) if self.mechanism.carves else 0,
            },
        )

    def best_alloc(self, request: HeapRequest) -> tuple[ScenarioPlan, ...]:
        least = self._least(request)
        if not self._holds(request, least, (0, 0), topmost=False):
            raise too_small(request)
        hit = self._hit(request, "best-alloc", least)
        return (hit,) if self.mechanism.carves else (hit, self._miss(request, least, "best-alloc"))

    def best_free(self, request: HeapRequest) -> tuple[ScenarioPlan, ...]:
        least = self._least(request)
        plans = tuple(
            self._free_plan(request, "best-free", least, (0, 0), topmost=topmost)
            for topmost in ((False, True) if self.mechanism.gives_back else (False,))
            if self._holds(request, least, (0, 0), topmost=topmost)
        )
        if not plans:
            raise too_small(request)
        return plans

    def _least(self, request: HeapRequest) -> int:
        return self.mechanism.bucket_for(request.allocator.values, 1)

    def worst_failing(self, request: HeapRequest) -> tuple[ScenarioPlan, ...]:
        """Blocks by descending size fill the heap; all lists are empty."""
        values, builder, left = request.allocator.values, TraceBuilder(), _room(request)
        while fitting := self.mechanism.buckets(values, left):
            builder.malloc(self._payload(fitting[-1]))
            left -= self.mechanism.size(fitting[-1])
        plans = []
        for bucket in self._telling(request, request.heap_bytes):
            size = self._payload(bucket)
            plans.append(
                ScenarioPlan(
                    scenario="worst-failing-alloc",
                    variant=f"a request for a block of {self.mechanism.size(bucket)} bytes",
                    trace=builder.trace(),
                    measured=Operation(OperationKind.MALLOC, 0, size),
                    initial_cache=InitialCache.DIRTY,
                    state=f"no list holds a block, and {left} bytes are left; malloc({size}) is refused",
                    why=("The bucket is searched for, its list found empty, and the break compared with the end.",),
                    prediction={"bytes left": left, "blocks in its list": 0, "blocks taken at the break": 0},
                    refused=True,
                )
            )
        return tuple(plans)

    def random(self, request: HeapRequest) -> tuple[ScenarioPlan, ...]:
        """The workload of ``random_workload``, without the requests that buckets which never coalesce may refuse.

        Memory that is given back is not counted: then the break is at most as far as it is thought to be.
        """
        values, builder, mechanism = request.allocator.values, TraceBuilder(), self.mechanism
        draw = random.Random(request.seed)  # noqa: S311  (a workload, no secret)
        blocks = min(_LIVE_BLOCKS, request.heap_bytes // 256)
        largest = max(16, request.heap_bytes // (4 * max(1, blocks)))
        live, unused, left = list[tuple[int, int]](), Counter[int](), _room(request)
        for _ in range(_OPERATIONS):
            if live and (len(live) >= blocks or draw.random() < _SHARE_OF_FREES):
                slot, bucket = live.pop(draw.randrange(len(live)))
                builder.free(slot)
                unused[bucket] += 1
                continue
            size = log_uniform(draw, largest)
            bucket = mechanism.bucket_for(values, size)
            if not unused[bucket]:
                taken = mechanism.taken_bytes(values, bucket, left)
                if not taken:
                    continue
                left -= taken
                unused[bucket] += taken // mechanism.size(bucket)
            unused[bucket] -= 1
            live.append((builder.malloc(size), bucket))
        if not unused.total():  # Nothing that is drawn could be served.
            raise too_small(request)
        size = next(s for s in iter(lambda: log_uniform(draw, largest), 0) if unused[mechanism.bucket_for(values, s)])
        return (random_plan(request, builder, len(live), largest, size),)


# --------------------------------------------------------------------------------------------------- the guest's heap


@dataclass(frozen=True, slots=True)
class _Guest:
    """A guest's heap, as control structure, headers and lists show it."""

    mechanism: Mechanism
    guest: GuestHeap

    def _control(self, index: int) -> int:
        return self.guest.read_word(self.guest.symbols[self.mechanism.control] + _WORD_BYTES * index)

    @property
    def top(self) -> int:
        return self._control(1)

    @property
    def left_bytes(self) -> int:
        return self._control(2) - self.top

    def members(self, bucket: int) -> Iterator[int]:
        """Addresses of the blocks in a list."""
        block = self._control(_HEADS_AT // _WORD_BYTES + bucket)
        while block:
            yield block
            block = self.guest.read_word(block + _HEADER_BYTES)

    def blocks(self) -> Iterator[tuple[int, int]]:
        """Address and bucket of every block, by address."""
        base, top = self._control(0), self.top
        memory = self.guest.read(base, top - base) if top > base else b""
        first = int.from_bytes(memory[:_WORD_BYTES], "little")
        order: Literal["little", "big"] = "little" if not memory or first == self.guest.read_word(base) else "big"
        offset = 0
        while offset < len(memory):
            bucket = int.from_bytes(memory[offset : offset + _WORD_BYTES], order)
            yield base + offset, bucket
            offset += self.mechanism.size(bucket)

    def walk(self) -> tuple[Block, ...]:
        blocks = list(self.blocks())
        free = {member for bucket in {bucket for _, bucket in blocks} for member in self.members(bucket)}
        return tuple(Block(a, self.mechanism.size(bucket), _HEADER_BYTES, a in free) for a, bucket in blocks)

    def state(self, measured: Operation) -> dict[str, int | str]:
        values, mechanism = self.guest.values, self.mechanism
        facts: dict[str, int | str] = {
            "used blocks": sum(not block.free for block in self.walk()),
            "bytes left": self.left_bytes,
        }
        if measured.kind is OperationKind.MALLOC:
            bucket = mechanism.bucket_for(values, measured.size_bytes)
        else:
            payload = self.guest.slot(measured.slot)
            bucket = self.guest.read_word(payload - _HEADER_BYTES)
            facts["offset of the payload"] = payload - self.guest.heap.base_address
            facts["is topmost"] = int(payload - _HEADER_BYTES + mechanism.size(bucket) == self.top)
        in_list = facts["blocks in its list"] = sum(1 for _ in self.members(bucket))
        taken = 0 if in_list else mechanism.taken_bytes(values, bucket, self.left_bytes)
        facts["blocks taken at the break"] = taken // mechanism.size(bucket)
        return facts


def family_of(mechanism: Mechanism) -> Family:
    """The scenarios of an allocator."""

    def built(build: Callable[[_Builders, HeapRequest], tuple[ScenarioPlan, ...]]) -> Builder:
        return lambda request: build(_Builders(mechanism.of(request.allocator.values)), request)

    return Family(
        builders=MappingProxyType(
            {
                "worst-alloc": built(_Builders.worst_alloc),
                "worst-free": built(_Builders.worst_free),
                "best-alloc": built(_Builders.best_alloc),
                "best-free": built(_Builders.best_free),
                "worst-failing-alloc": built(_Builders.worst_failing),
                "random": built(_Builders.random),
            }
        ),
        walk=lambda guest: _Guest(mechanism.of(guest.values), guest).walk(),
        state=lambda guest, plan: _Guest(mechanism.of(guest.values), guest).state(plan.measured),
    )
