"""Scenarios of djgpp-tags: lists that are walked, for a fit or up to a neighbour that leaves them.

malloc walks the list of the request's power of two in vain; where the break can still move, the last block is the last
node of the same list, and so the list is walked twice. free walks to both neighbours, the last two nodes of a list.

Source: L11 §V names the allocators without a worst state.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from wcet_probe.errors import HeapTooSmallError
from wcet_probe.model import Block, InitialCache, Operation, OperationKind, ScenarioPlan, Trace
from wcet_probe.scenarios.families import Family, GuestHeap, HeapRequest
from wcet_probe.scenarios.random_workload import random_plans
from wcet_probe.scenarios.tagged_heap import OVERHEAD_BYTES, WORD_BYTES, TaggedHeap

_CONTROL = "djgpp_tags_control"
_BRK, _END, _REST, _HEADS, _BUCKETS = 1, 2, 3, 4, 28
_WHY_VAIN = "Every block in the list of the request's power of two is a little too small: all are visited in vain."
_WHY_REST = "The block taken is split: its rest is held apart, and the one that was so far goes into its list."
_WHY_TWICE = "The break moves, and the free block below it, the last node of the same list, is walked to once more."
_WHY_FREE = (
    "Both neighbours are free, and the last two nodes of the list that holds all free blocks: it is walked twice.",
    "No heap holds more free blocks: all have the least size, and so have the used ones between them.",
)


@dataclass(slots=True)
class _Layout:
    """Blocks side by side from the heap's start on: the break moves over all of them at first.

    Attributes:
        request: for which heap.
        left_bytes: what stays above the break.
    """

    request: HeapRequest
    left_bytes: int = 0
    _sizes: list[int] = field(default_factory=list)

    @property
    def least(self) -> int:
        return self.request.allocator.values["minimum-block"]

    @property
    def alignment(self) -> int:
        return self.request.allocator.values["alignment"]

    @property
    def chunk(self) -> int:
        return self.request.allocator.values["chunk"]

    @property
    def room_bytes(self) -> int:
        return self.request.heap_bytes - OVERHEAD_BYTES - self.left_bytes

    def alternate(self, node: int, ending: Sequence[int], *, rest: bool) -> list[int]:
        """Slots of as many blocks of ``node`` bytes as fit, and of ``ending``, each behind a least one.

        A fence takes what is left over. ``rest``: the first blocks are those that ``trace`` makes the rest from.
        """
        first = [2 * self.least, self.least] if rest else []
        pair = node + self.least
        over = self.room_bytes - sum(first) - self.least - sum(ending)
        if over < pair:
            message = f"a heap of {self.request.heap_bytes} bytes is too small for the scenario's state; "
            raise HeapTooSmallError(message + f"give at least {2 * self.request.heap_bytes} with --heap.")
        count = over // pair
        self._sizes = [*first, self.least + over % pair, *[node, self.least] * count, *ending]
        if ending:
            start = len(first) + 1
            return [*range(start, start + 2 * count, 2), *range(start + 2 * count, len(self._sizes))]
        # The last block is the one at the break: the least one of the last pair moves to the front.
        self._sizes = [*first, self.least + over % pair, *[self.least, node] * count]
        return list(range(len(first) + 2, len(self._sizes), 2))

    def trace(self, freed: Sequence[int], *, rest: bool) -> Trace:
        """All blocks are cut, then ``freed`` in this order."""
        blocks = len(self._sizes)
        split = [(1, 0, 0), (0, blocks + 1, 1)] if rest else []
        kinds = (0, 1, *(0,) * blocks, *(k for k, _, _ in split), *(1,) * len(freed))
        slots = (blocks, blocks, *range(blocks), *(s for _, s, _ in split), *freed)
        cut = [size - OVERHEAD_BYTES for size in self._sizes]
        whole = self.room_bytes - OVERHEAD_BYTES
        sizes = (whole, 0, *cut, *(b for _, _, b in split), *(0,) * len(freed))
        return Trace(kinds, slots, sizes, (0,) * len(kinds), blocks + 2)


def _in_order(slots: Sequence[int], *, apart: bool) -> list[int]:
    """Visits; ``apart``: two neighbours, which share a cache line, are far from each other."""
    return [*slots[::2], *slots[1::2]] if apart else list(slots)


def _node(layout: _Layout) -> int:
    """The least block that is in the list of a request that it does not serve."""
    size = layout.least
    while (size + layout.alignment).bit_length() != size.bit_length():
        size += layout.alignment
    return size


def _alloc_plans(request: HeapRequest, scenario: str) -> Iterator[ScenarioPlan]:
    refused = scenario == "worst-failing-alloc"
    growing = request.heap_bytes >= 2 * request.allocator.values["chunk"]
    for apart in (False, True) if request.data_line_bytes else (False,):
        if not refused:
            yield _served_plan(request, grows=False, apart=apart)
            if growing:
                yield _served_plan(request, grows=True, apart=apart)
        else:
            yield _failing_plan(request, apart=apart)


def _served_plan(request: HeapRequest, *, grows: bool, apart: bool) -> ScenarioPlan:
    layout = _Layout(request)
    node = _node(layout)
    size = node + layout.alignment
    end = 0
    if grows:
        layout.left_bytes = layout.alignment + layout.least
    else:
        end = size + layout.least
    line = request.data_line_bytes
    while apart and line and (layout.room_bytes - (end or node)) % line != line - OVERHEAD_BYTES:
        if grows:
            layout.left_bytes += layout.alignment
        else:
            end += layout.alignment
    slots = layout.alternate(node, [end] if end else [], rest=True)
    # Of the list; a larger block is in another one. Where the break moves, the last block is its last node.
    visits = [*_in_order(slots[:-1], apart=apart), slots[-1]]
    in_list = len(visits) - bool(end)
    visited = 2 * in_list if grows else in_list + 1
    return ScenarioPlan(
        scenario="worst-alloc",
        variant=("the break moves" if grows else "a larger block serves") + (", two lines a visit" if apart else ""),
        trace=layout.trace(visits[::-1], rest=True),
        measured=Operation(OperationKind.MALLOC, 0, size - OVERHEAD_BYTES),
        initial_cache=InitialCache.DIRTY,
        state=f"{in_list} free blocks of {node} bytes in one list, too small for malloc({size - OVERHEAD_BYTES})",
        why=(_WHY_VAIN, *((_WHY_TWICE,) if grows else ()), _WHY_REST),
        prediction={
            "nodes visited": visited,
            "blocks in the list": in_list,
            "bytes left": layout.left_bytes,
            "rest": 1,
        },
        driver=f"nodes visited = {'2 x' if grows else '1 +'} free blocks in the list, about H / {node + layout.least}",
        driver_value=visited,
    )


def _failing_plan(request: HeapRequest, *, apart: bool) -> ScenarioPlan:
    layout = _Layout(request)
    node = _node(layout)
    size = node + layout.alignment
    slots = layout.alternate(node, [], rest=True)
    return ScenarioPlan(
        scenario="worst-failing-alloc",
        variant="neighbours apart" if apart else "in order",
        trace=layout.trace(_in_order(slots, apart=apart)[::-1], rest=True),
        measured=Operation(OperationKind.MALLOC, 0, size - OVERHEAD_BYTES),
        initial_cache=InitialCache.DIRTY,
        state=f"{len(slots)} free blocks of {node} bytes, nothing above the break; malloc({size - OVERHEAD_BYTES})",
        why=(_WHY_VAIN, "All larger lists are empty, and the break is at the end of the arena."),
        prediction={"nodes visited": len(slots), "blocks in the list": len(slots), "bytes left": 0, "rest": 1},
        driver=f"nodes visited = free blocks in the list, about H / {node + layout.least}",
        driver_value=len(slots),
        refused=True,
    )


def _worst_free(request: HeapRequest) -> Iterator[ScenarioPlan]:
    for apart in (False, True) if request.data_line_bytes else (False,):
        layout = _Layout(request)
        least = layout.least
        *others, before, slot, after = layout.alternate(least, [least] * 3, rest=False)
        visits = [*_in_order(others, apart=apart), before, after]
        visited = 2 * len(visits) - 1
        yield ScenarioPlan(
            scenario="worst-free",
            variant="neighbours apart" if apart else "in order",
            trace=layout.trace(visits[::-1], rest=False),
            measured=Operation(OperationKind.FREE, slot),
            initial_cache=InitialCache.DIRTY,
            state=f"{len(visits)} free blocks of {least} bytes; the last two of their list are the block's neighbours",
            why=_WHY_FREE,
            prediction={"nodes visited": visited, "free blocks": len(visits), "bytes left": 0},
            driver=f"nodes visited = 2 n - 1, of n free blocks, about H / {2 * least}",
            driver_value=visited,
        )


def _best(request: HeapRequest, kind: OperationKind) -> tuple[ScenarioPlan, ...]:
    """A virgin heap but for what the call needs."""
    least = request.allocator.values["minimum-block"]
    whole = request.heap_bytes - 2 * OVERHEAD_BYTES
    small = least - OVERHEAD_BYTES
    allocating = kind is OperationKind.MALLOC
    sizes = (whole, 0, whole - least) if allocating else (whole, 0, small, whole - least)
    kinds, slots = (0, 1, 0, 0)[: len(sizes)], (0, 0, 1, 2)[: len(sizes)]
    return (
        ScenarioPlan(
            scenario="best-alloc" if allocating else "best-free",
            variant="rest of exactly that size" if allocating else "no free neighbour",
            trace=Trace(kinds, slots, sizes, (0,) * len(sizes), 3),
            measured=Operation(kind, 0 if allocating else 1, small if allocating else 0),
            initial_cache=InitialCache.WARM,
            state="the rest of the last split fits exactly" if allocating else "both neighbours are in use",
            why=("It is tried first, and no list is looked at.",) if allocating else ("No list is walked.",),
            prediction={"nodes visited": 0, "free blocks": int(allocating), "bytes left": 0},
            driver="nodes visited = 0",
            driver_value=0,
        ),
    )


# --------------------------------------------------------------------------------------------------- the guest's heap


def _state(guest: GuestHeap, plan: ScenarioPlan) -> Mapping[str, int | str]:
    """Facts of the heap; the walks are repeated on the guest's own lists."""
    heap = TaggedHeap.read(guest, _CONTROL)
    brk, end, rest = (guest.read_word(guest.symbols[_CONTROL] + WORD_BYTES * i) for i in (_BRK, _END, _REST))
    blocks = _walk(guest)
    free = [block.address for block in blocks if block.free]
    facts: dict[str, int | str] = {
        "free blocks": len(free),
        "used blocks": len(blocks) - len(free),
        "bytes left": end - brk,
        "rest": int(rest != 0),
    }

    def members(bucket: int) -> list[int]:
        found, node = [], guest.read_word(guest.symbols[_CONTROL] + WORD_BYTES * (_HEADS + bucket))
        while node:
            found.append(node - WORD_BYTES)
            node = heap.words[(node - heap.base_address) >> 2]
        return found

    def walk_to(address: int) -> int:
        return 0 if address == rest else members(heap.size(address).bit_length() - 1).index(address) + 1

    if plan.measured.kind is OperationKind.FREE:
        own = guest.slot(plan.measured.slot) - WORD_BYTES
        after = own + heap.size(own)
        before = own - heap.size_before(own)
        ways = [(walk_to(at), heap.size(at)) for at in (after, before) if at in set(free)]
        both = len(ways) == 2 and ways[0][1].bit_length() == ways[1][1].bit_length() and ways[0] < ways[1]
        facts["nodes visited"] = sum(way for way, _ in ways) - both
        return facts
    least, alignment = guest.values["minimum-block"], guest.values["alignment"]
    size = max(least, -(-(plan.measured.size_bytes + OVERHEAD_BYTES) // alignment) * alignment)
    own_list = members(size.bit_length() - 1)
    facts["blocks in the list"] = len(own_list)
    facts["nodes visited"] = 0
    if rest and heap.size(rest) >= size:
        return facts
    visits = 0
    for bucket in range(size.bit_length() - 1, _BUCKETS):
        for address in members(bucket):
            visits += 1
            if heap.size(address) >= size:
                return facts | {"nodes visited": visits}
    last = blocks[-1]
    if last.free and size - last.size_bytes <= end - brk:
        visits += walk_to(last.address)
    return facts | {"nodes visited": visits}


def _walk(guest: GuestHeap) -> tuple[Block, ...]:
    """All blocks below the break, in address order."""
    heap = TaggedHeap.read(guest, _CONTROL)
    brk = guest.read_word(guest.symbols[_CONTROL] + WORD_BYTES * _BRK)
    below = (brk - heap.base_address) // WORD_BYTES + 1
    return TaggedHeap(heap.base_address, heap.words[:below]).walk()


FAMILY = Family(
    builders=MappingProxyType(
        {
            "worst-alloc": lambda request: tuple(_alloc_plans(request, "worst-alloc")),
            "worst-free": lambda request: tuple(_worst_free(request)),
            "best-alloc": lambda request: _best(request, OperationKind.MALLOC),
            "best-free": lambda request: _best(request, OperationKind.FREE),
            "worst-failing-alloc": lambda request: tuple(_alloc_plans(request, "worst-failing-alloc")),
            "random": random_plans,
        }
    ),
    walk=_walk,
    state=_state,
)
