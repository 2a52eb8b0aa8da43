"""The heap of fast-fit: how many blocks it holds, traces that cut it up, and what the guest's memory holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from wcet_probe.errors import HeapTooSmallError
from wcet_probe.model.scenario import OperationKind, ScenarioPlan, Trace
from wcet_probe.model.target import MemoryRange
from wcet_probe.scenarios.families import Blocks, GuestHeap, HeapRequest, chained_blocks
from wcet_probe.scenarios.tree_heap import Words, trace_of_layout

HEADER_BYTES = 4
_USED_BIT = 1
_LEFT, _RIGHT = 4, 8
_END_OFFSET, _ROOT_OFFSET = 4, 8

WHY_GAPS = (
    "Blocks are left out for each way's worth of lines: where one counter serves the whole cache, a way's worth would "
    "bring it back to where it was, and the walk evict its own, clean lines."
)


def _granule(values: Mapping[str, int]) -> int:
    """Bytes that sizes are multiples of."""
    return max(values["granule"], values["alignment"])


def _rounded_up(size: int, granule: int) -> int:
    return -(-size // granule) * granule


def _least(values: Mapping[str, int]) -> int:
    """Bytes of the least block."""
    return _rounded_up(values["minimum-block"], _granule(values))


@dataclass(frozen=True, slots=True)
class Sizes:
    """Sizes of a build, and what a heap holds.

    Attributes:
        granule: of sizes.
        least: the least block.
        least_rest: the least rest that a block is split for.
        closing: a used block at the lower end of the heap, which is allocated last: where the least rest is larger than
            the least block, what is left of the heap could not be cut into least blocks to its end. 0 for none.
        usable: bytes of the heap that hold the other blocks.
    """

    granule: int
    least: int
    least_rest: int
    closing: int
    usable: int

    @classmethod
    def of(cls, request: HeapRequest) -> Sizes:
        """Of the allocator and the heap of ``request``."""
        values = request.allocator.values
        granule, least = _granule(values), _least(values)
        usable = (request.heap_bytes - values["alignment"] + HEADER_BYTES) // granule * granule
        least_rest = max(least, _rounded_up(values["split-threshold"], granule))
        closing = least_rest if least_rest > least else 0
        return cls(granule, least, least_rest, closing, usable - closing)

    @property
    def equal_blocks(self) -> int:
        """Most free blocks of the least size, with a fence between any two."""
        return (self.usable + self.least) // (2 * self.least)

    @property
    def different_blocks(self) -> int:
        """Most free blocks of different sizes, with fences."""
        count, taken = 0, -self.least
        while taken + 2 * self.least + count * self.granule <= self.usable:
            taken += 2 * self.least + count * self.granule
            count += 1
        return count


def layout_trace(request: HeapRequest, sizes: Sequence[int], freed: Sequence[int], *, stretch: int) -> Trace:
    """Blocks of ``sizes`` in address order, of which those with the numbers ``freed`` are freed in that order.

    ``stretch`` is the number of the used block that also takes what the sizes leave of the heap. Blocks are cut from
    the upper end of the heap: the last one is allocated first.
    """
    heap = Sizes.of(request)
    left = heap.usable - sum(sizes)
    require(request, left >= 0)
    requests = [size - HEADER_BYTES for size in sizes]
    requests[stretch] += left
    requests.reverse()
    if heap.closing:
        requests.append(heap.closing - HEADER_BYTES)
    last = len(sizes) - 1
    return trace_of_layout(requests, [last - number for number in freed])


def require(request: HeapRequest, holds: bool) -> None:  # noqa: FBT001  (an assertion with the heap's name)
    """Refuse a heap in which something does not hold that the state needs."""
    if not holds:
        message = (
            f"a heap of {request.heap_bytes} bytes is too small for the scenario's state; "
            "give at least 1024 with --heap."
        )
        raise HeapTooSmallError(message)


def usable_text(request: HeapRequest) -> str:
    """``(H - 8``, or what else of the heap holds no block of the state."""
    lost = request.heap_bytes - Sizes.of(request).usable
    return f"(H - {lost}" if lost else "(H"


# ------------------------------------------------------------------------------------------------ the guest's heap


def walk(guest: GuestHeap) -> Blocks:
    """The blocks of the guest's heap in address order."""
    return _blocks(guest, _words(guest))


def _blocks(guest: GuestHeap, words: Words) -> Blocks:
    control = guest.symbols["fast_fit_control"]
    start, end = guest.read_word(control), guest.read_word(control + _END_OFFSET)
    extent = MemoryRange(start, end - start)
    return chained_blocks(words.words, words.base_address, extent, header_bytes=HEADER_BYTES, flags=_USED_BIT, free={0})


def _words(guest: GuestHeap) -> Words:
    return Words.of(guest, guest.symbols["fast_fit_control"])


def _height(words: Words, root: int) -> int:
    values, base = words.words, words.base_address
    height, waiting = 0, [(root, 0)]
    while waiting:
        node, above = waiting.pop()
        while node:
            above += 1
            links = (node - base + _LEFT) >> 2
            left, right = values[links], values[links + 1]
            if left and right:
                waiting.append((right, above))
            node = left or right
        height = max(height, above)
    return height


def state(guest: GuestHeap, plan: ScenarioPlan) -> Mapping[str, int | str]:
    """Facts of the guest's heap, and of the walks that the measured operation is going to make in it."""
    words = _words(guest)
    root = guest.read_word(guest.symbols["fast_fit_control"] + _ROOT_OFFSET)
    blocks = _blocks(guest, words)
    facts: dict[str, int | str] = {
        "free blocks": blocks.free_blocks,
        "used blocks": blocks.used_blocks,
        "height of the tree": _height(words, root),
        "bytes of the largest": words[root] if root else 0,
    }
    if plan.refused or plan.scenario == "random":
        return facts
    if plan.measured.kind is OperationKind.MALLOC:
        return facts | _malloc_walks(words, root, guest.values, plan.measured.size_bytes)
    return facts | _free_walks(words, root, guest.slot(plan.measured.slot) - HEADER_BYTES)


def _malloc_walks(words: Words, root: int, values: Mapping[str, int], request_bytes: int) -> dict[str, int | str]:
    """The search, and the merging below the node that leaves or moves down."""
    least = _least(values)
    size = max(least, _rounded_up(request_bytes + HEADER_BYTES, _granule(values)))
    heap, base = words.words, words.base_address
    node, searched = root, 1
    while True:
        links = (node - base + _LEFT) >> 2
        left, right = heap[links], heap[links + 1]
        left_size = heap[(left - base) >> 2] if left else 0
        right_size = heap[(right - base) >> 2] if right else 0
        if left_size < size and right_size < size:
            break
        node = left if left_size >= size and not size <= right_size < left_size else right
        searched += 1
    rest = words[node] - size
    rest = rest if rest >= max(least, values["split-threshold"]) else 0
    return {"nodes searched": searched, "nodes merged": _merge(words, *_children(words, node), rest)[1]}


def _children(words: Words, node: int) -> tuple[int, int]:
    return words[node + _LEFT], words[node + _RIGHT]


def _merge(words: Words, left: int, right: int, rest: int) -> tuple[int, int]:
    """Merge two trees, down to nodes of ``rest`` bytes (0: until one is empty): root of the result, nodes passed."""
    heap, base = words.words, words.base_address
    left_size, right_size = (heap[(node - base) >> 2] if node else 0 for node in (left, right))
    top, steps, at = 0, 0, 0
    while max(left_size, right_size) > rest if rest else left and right:
        to_left = left_size >= right_size
        node = left if to_left else right
        if at:
            heap[at] = node
        top, steps = top or node, steps + 1
        at = (node - base + (_RIGHT if to_left else _LEFT)) >> 2
        below = heap[at]
        below_size = heap[(below - base) >> 2] if below else 0
        if to_left:
            left, left_size = below, below_size
        else:
            right, right_size = below, below_size
    if at:
        heap[at] = left or right
    return top or left or right, steps


def _free_walks(words: Words, root: int, block: int) -> dict[str, int | str]:
    """The walk by address, the merging where neighbours leave, and the way in for the merged block."""
    size = words[block] & ~_USED_BIT
    end, node, link, searched = block + size, root, 0, 0
    found = list[tuple[int, int]]()  # neighbours and where the link to each lies; 0: it is the root
    while node:
        searched += 1
        if node in (end, block - words[node]):
            found.append((node, link))
        link = node + (_RIGHT if node < block else _LEFT)
        node = words[link]
    merged = 0
    for neighbour, at in reversed(found):
        size += words[neighbour]
        top, steps = _merge(words, *_children(words, neighbour), 0)
        merged += steps
        if at:
            words[at] = top
        else:
            root = top
    node, passed = root, 0
    while node:  # past larger ones, then cutting: both go on towards the block's address
        passed += 1
        node = words[node + (_RIGHT if node < block else _LEFT)]
    return {
        "nodes searched": searched,
        "nodes merged": merged,
        "nodes passed to insert": passed,
        "free neighbours": len(found),
    }
