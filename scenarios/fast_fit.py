"""Worst, best and random states of fast-fit.

All walk one path of the Cartesian tree. With blocks of equal size the tie rule alone gives the tree its shape, and a
path can hold every free block: H / 2M nodes. With sizes that differ, as P02 has them, it holds about sqrt(2H / a); that
state is kept as ``paper-alloc`` and ``paper-free``.

The set-up takes constant time an operation, although the tree is a chain: a freed block that is as large as the root
becomes the root, and so the chain grows at its upper end.

Sources: P02 §2.3.2, §3.1.1, §3.1.2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from wcet_probe.errors import HeapTooSmallError
from wcet_probe.model.scenario import InitialCache, Operation, OperationKind, ScenarioPlan, Trace
from wcet_probe.model.target import MemoryRange
from wcet_probe.scenarios.families import Blocks, Family, GuestHeap, HeapRequest, chained_blocks
from wcet_probe.scenarios.random_workload import random_plans
from wcet_probe.scenarios.tree_heap import Words, trace_of_layout

HEADER_BYTES = 4
_USED_BIT = 1
_LEFT, _RIGHT = 4, 8
_END_OFFSET, _ROOT_OFFSET = 4, 8

_WHY_SEARCH = (
    "All free blocks have the least size, and each was freed when the one below it was the root: the last lies on top.",
    "So the tree is one chain of all free blocks; every child is large enough, and the search ends at its far end.",
    "Blocks of different sizes cannot make so long a chain: n of them need a multiple of n * n bytes.",
)
_WHY_MERGE = (
    "The root fits exactly and leaves the tree: its subtrees, one block and a chain of all others, are merged.",
    "All these blocks have the same size: the left one is preferred, so the whole chain is passed.",
)
_WHY_DEMOTE = (
    "The root is split, and the rest is smaller than all other free blocks: it moves down past each of them.",
    "They must be larger than the rest, hence fewer than blocks of the least size.",
)
_WHY_FREE = (
    "All free blocks have the least size and all but one form a chain, with the upper neighbour as the root.",
    "The walk by address passes the chain and finds the lower neighbour at its far end.",
    "The upper neighbour leaves the tree: the chain and the one block on its other side are merged, left ones first.",
    "The merged block is the largest: it becomes the root, and all blocks below are cut apart around its address.",
)
_WHY_PAPER = (
    "The free blocks have different sizes that grow with the address: the tree is a chain (P02 §3.1.1).",
    "It is not the worst state: equal sizes make a longer chain.",
)
_WHY_REFUSED = ("The root is the largest free block: one comparison refuses a request, whatever the heap.",)


def _least(values: Mapping[str, int]) -> int:
    """Bytes of the least block: a multiple of the alignment."""
    return -(-values["minimum-block"] // values["alignment"]) * values["alignment"]


@dataclass(frozen=True, slots=True)
class _Bytes:
    """Sizes of a build, and what a heap holds.

    Attributes:
        alignment: of payloads and sizes.
        least: the least block.
        least_rest: the least rest that a block is split for.
        closing: a used block at the lower end of the heap, which is allocated last: where the least rest is larger than
            the least block, what is left of the heap could not be cut into least blocks to its end. 0 for none.
        usable: bytes of the heap that hold the other blocks.
    """

    alignment: int
    least: int
    least_rest: int
    closing: int
    usable: int

    @classmethod
    def of(cls, request: HeapRequest) -> _Bytes:
        values = request.allocator.values
        alignment, least = values["alignment"], _least(values)
        lost = alignment if alignment > HEADER_BYTES else 0
        least_rest = max(least, values["split-threshold"])
        closing = least_rest if least_rest > least else 0
        return cls(alignment, least, least_rest, closing, request.heap_bytes - lost - closing)

    @property
    def equal_blocks(self) -> int:
        """Most free blocks of the least size, with a fence between any two."""
        return (self.usable + self.least) // (2 * self.least)

    @property
    def different_blocks(self) -> int:
        """Most free blocks of different sizes, with fences."""
        count, taken = 0, -self.least
        while taken + 2 * self.least + count * self.alignment <= self.usable:
            taken += 2 * self.least + count * self.alignment
            count += 1
        return count


def _trace(request: HeapRequest, sizes: Sequence[int], freed: Sequence[int], *, stretch: int) -> Trace:
    """Blocks of ``sizes`` in address order, of which those with the numbers ``freed`` are freed in that order.

    ``stretch`` is the number of the used block that also takes what the sizes leave of the heap. Blocks are cut from
    the upper end of the heap: the last one is allocated first.
    """
    heap = _Bytes.of(request)
    left = heap.usable - sum(sizes)
    _require(request, left >= 0)
    requests = [size - HEADER_BYTES for size in sizes]
    requests[stretch] += left
    requests.reverse()
    if heap.closing:
        requests.append(heap.closing - HEADER_BYTES)
    last = len(sizes) - 1
    return trace_of_layout(requests, [last - number for number in freed])


def _require(request: HeapRequest, holds: bool) -> None:  # noqa: FBT001  (an assertion with the heap's name)
    if not holds:
        message = (
            f"a heap of {request.heap_bytes} bytes is too small for the scenario's state; "
            "give at least 1024 with --heap."
        )
        raise HeapTooSmallError(message)


def _worst_alloc(request: HeapRequest) -> tuple[ScenarioPlan, ...]:
    return (
        _search_plan(request, to_left=True),
        _search_plan(request, to_left=False),
        _merge_plan(request),
        _demote_plan(request, to_left=True),
        _demote_plan(request, to_left=False),
    )


def _search_plan(request: HeapRequest, *, to_left: bool) -> ScenarioPlan:
    size = _Bytes.of(request)
    count = size.equal_blocks
    _require(request, count >= 4)
    numbers = range(0, 2 * count, 2)
    return ScenarioPlan(
        scenario="worst-alloc",
        variant=f"search along a chain to the {'left' if to_left else 'right'}",
        trace=_trace(request, [size.least] * (2 * count - 1), numbers if to_left else numbers[::-1], stretch=1),
        measured=Operation(OperationKind.MALLOC, 0, size.least - HEADER_BYTES),
        initial_cache=InitialCache.DIRTY,
        state=f"{count} free blocks of {size.least} bytes, a chain; malloc({size.least - HEADER_BYTES}) takes its end",
        why=_WHY_SEARCH,
        prediction={
            "nodes searched": count,
            "nodes merged": 0,
            "free blocks": count,
            "height of the tree": count,
            "bytes of the largest": size.least,
        },
        driver=f"nodes visited = floor({_usable_text(request)} + M) / 2M), M = {size.least}",
        driver_value=count,
    )


def _merge_plan(request: HeapRequest) -> ScenarioPlan:
    size = _Bytes.of(request)
    root = size.least + size.alignment
    count = (size.usable - size.alignment + size.least) // (2 * size.least)
    _require(request, count >= 4)
    sizes = [size.least] * (2 * count - 1)
    sizes[-3] = root
    numbers = range(0, 2 * count, 2)
    return ScenarioPlan(
        scenario="worst-alloc",
        variant="the root leaves, its subtrees are merged",
        trace=_trace(request, sizes, [numbers[-1], *numbers[-3::-1], numbers[-2]], stretch=1),
        measured=Operation(OperationKind.MALLOC, 0, root - HEADER_BYTES),
        initial_cache=InitialCache.DIRTY,
        state=(
            f"a root of {root} bytes above {count - 1} free blocks of {size.least}, a chain and one more; "
            f"malloc({root - HEADER_BYTES}) takes the root"
        ),
        why=_WHY_MERGE,
        prediction={
            "nodes searched": 1,
            "nodes merged": count - 2,
            "free blocks": count,
            "height of the tree": count - 1,
            "bytes of the largest": root,
        },
        driver=f"nodes = floor({_usable_text(request)} - {size.alignment} + M) / 2M) - 1, M = {size.least}",
        driver_value=count - 1,
    )


def _demote_plan(request: HeapRequest, *, to_left: bool) -> ScenarioPlan:
    size = _Bytes.of(request)
    below = size.least_rest + size.alignment
    cut = below + size.alignment
    root = cut + size.least_rest
    count = (size.usable - root) // (below + size.least)
    _require(request, count >= 2)
    sizes, numbers = [below, size.least] * count + [root], range(0, 2 * count, 2)
    freed = [*numbers[::-1], 2 * count]
    if not to_left:
        sizes.reverse()
        freed = [2 * count - number for number in freed]
    return ScenarioPlan(
        scenario="worst-alloc",
        variant=f"the rest of the root moves down a chain on its {'left' if to_left else 'right'}",
        trace=_trace(request, sizes, freed, stretch=1),
        measured=Operation(OperationKind.MALLOC, 0, cut - HEADER_BYTES),
        initial_cache=InitialCache.DIRTY,
        state=(
            f"a root of {root} bytes above a chain of {count} free blocks of {below}; "
            f"malloc({cut - HEADER_BYTES}) leaves {size.least_rest} bytes of the root"
        ),
        why=_WHY_DEMOTE,
        prediction={
            "nodes searched": 1,
            "nodes merged": count,
            "free blocks": count + 1,
            "height of the tree": count + 1,
            "bytes of the largest": root,
        },
        driver=f"nodes visited = floor({_usable_text(request)} - {root}) / {below + size.least}) + 1",
        driver_value=count + 1,
    )


def _usable_text(request: HeapRequest) -> str:
    """``(H - 8``, or what else of the heap holds no block of the state."""
    lost = request.heap_bytes - _Bytes.of(request).usable
    return f"(H - {lost}" if lost else "(H"


def _worst_free(request: HeapRequest) -> tuple[ScenarioPlan, ...]:
    size = _Bytes.of(request)
    count = size.equal_blocks
    _require(request, count >= 4)
    numbers = range(0, 2 * count, 2)
    own = 2 * count - 5  # between the last of the chain and its upper neighbour, behind which is one more free block
    trace = _trace(request, [size.least] * (2 * count - 1), [numbers[-1], *numbers[-3::-1], numbers[-2]], stretch=1)
    plan = ScenarioPlan(
        scenario="worst-free",
        variant="both neighbours free, at the ends of the chain",
        trace=trace,
        measured=Operation(OperationKind.FREE, 2 * count - 2 - own),
        initial_cache=InitialCache.DIRTY,
        state=(
            f"{count} free blocks of {size.least} bytes: the upper neighbour is the root, the lower one "
            f"the end of a chain of {count - 2}; free merges three blocks"
        ),
        why=_WHY_FREE,
        prediction={
            "nodes searched": count - 1,
            "nodes merged": count - 3,
            "nodes passed to insert": count - 2,
            "free neighbours": 2,
            "free blocks": count,
            "height of the tree": count - 1,
            "bytes of the largest": size.least,
        },
        driver=f"nodes visited = 3 floor({_usable_text(request)} + M) / 2M) - 6, M = {size.least}",
        driver_value=3 * count - 6,
    )
    return (plan,)


def _paper_layout(request: HeapRequest) -> tuple[list[int], range]:
    """Free blocks whose sizes grow with the address, and fences; the numbers of the free ones."""
    size = _Bytes.of(request)
    count = size.different_blocks
    _require(request, count >= 4)
    sizes = [size.least] * (2 * count - 1)
    sizes[::2] = [size.least + size.alignment * i for i in range(count)]
    return sizes, range(0, 2 * count, 2)


def _paper_alloc(request: HeapRequest) -> tuple[ScenarioPlan, ...]:
    size = _Bytes.of(request)
    sizes, numbers = _paper_layout(request)
    count = len(numbers)
    plan = ScenarioPlan(
        scenario="paper-alloc",
        variant="different sizes",
        trace=_trace(request, sizes, numbers, stretch=-2),
        measured=Operation(OperationKind.MALLOC, 0, size.least - HEADER_BYTES),
        initial_cache=InitialCache.DIRTY,
        state=f"{count} free blocks of different sizes in a chain; malloc({size.least - HEADER_BYTES}) takes the last",
        why=_WHY_PAPER,
        prediction={
            "nodes searched": count,
            "free blocks": count,
            "height of the tree": count,
            "bytes of the largest": sizes[-1],
        },
        driver="nodes visited = n; n different sizes and their fences fill H (n ~ sqrt(2H / a))",
        driver_value=count,
    )
    return (plan,)


def _paper_free(request: HeapRequest) -> tuple[ScenarioPlan, ...]:
    sizes, numbers = _paper_layout(request)
    count = len(numbers)
    plan = ScenarioPlan(
        scenario="paper-free",
        variant="different sizes",
        trace=_trace(request, sizes, numbers, stretch=-2),
        measured=Operation(OperationKind.FREE, 2 * count - 3),
        initial_cache=InitialCache.DIRTY,
        state=f"{count} free blocks of different sizes in one chain; free merges a block with the two at its far end",
        why=_WHY_PAPER,
        prediction={
            "nodes searched": count,
            "nodes merged": 0,
            "nodes passed to insert": count - 2,
            "free neighbours": 2,
            "free blocks": count,
            "height of the tree": count,
        },
        driver="nodes visited = 2n - 2; n different sizes and their fences fill H (n ~ sqrt(2H / a))",
        driver_value=2 * count - 2,
    )
    return (plan,)


def _small_plan(
    request: HeapRequest, scenario: str, variant: str, *, free: Sequence[int], measured: Operation, why: Sequence[str]
) -> ScenarioPlan:
    """A plan of constant cost: six least blocks, the fifth of which takes the rest of the heap."""
    size = _Bytes.of(request)
    trace = _trace(request, [size.least] * 6, free, stretch=4)
    call = f"malloc({measured.size_bytes})" if measured.kind is OperationKind.MALLOC else "free"
    return ScenarioPlan(
        scenario=scenario,
        variant=variant,
        trace=trace,
        measured=measured,
        initial_cache=InitialCache.DIRTY if scenario.startswith("worst") else InitialCache.WARM,
        state=f"{len(free)} free block(s) of {size.least} bytes; {call}",
        why=tuple(why),
        prediction={"free blocks": len(free), "height of the tree": len(free)},
        refused=scenario == "worst-failing-alloc",
    )


def _best_alloc(request: HeapRequest) -> tuple[ScenarioPlan, ...]:
    size = _Bytes.of(request)
    why = ("The tree is one node, and it fits exactly: nothing to search, to merge or to move.",)
    measured = Operation(OperationKind.MALLOC, 0, size.least - HEADER_BYTES)
    return (_small_plan(request, "best-alloc", "the only free block", free=(0,), measured=measured, why=why),)


def _best_free(request: HeapRequest) -> tuple[ScenarioPlan, ...]:
    why = ("The tree is as small as can be: nothing to search, to merge or to cut apart.",)
    measured = Operation(OperationKind.FREE, 2)
    return (
        _small_plan(request, "best-free", "no free block", free=(), measured=measured, why=why),
        _small_plan(request, "best-free", "one free block, no neighbour", free=(0,), measured=measured, why=why),
    )


def _worst_failing_alloc(request: HeapRequest) -> tuple[ScenarioPlan, ...]:
    measured = Operation(OperationKind.MALLOC, 0, 2 * _Bytes.of(request).least)
    name = "worst-failing-alloc"
    return (
        _small_plan(request, name, "no free block", free=(), measured=measured, why=_WHY_REFUSED),
        _small_plan(request, name, "too small a root", free=(0,), measured=measured, why=_WHY_REFUSED),
    )


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


def _state(guest: GuestHeap, plan: ScenarioPlan) -> Mapping[str, int | str]:
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
    alignment, least = values["alignment"], _least(values)
    size = max(least, -(-(request_bytes + HEADER_BYTES) // alignment) * alignment)
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


FAMILY = Family(
    builders=MappingProxyType(
        {
            "worst-alloc": _worst_alloc,
            "worst-free": _worst_free,
            "best-alloc": _best_alloc,
            "best-free": _best_free,
            "worst-failing-alloc": _worst_failing_alloc,
            "paper-alloc": _paper_alloc,
            "paper-free": _paper_free,
            "random": random_plans,
        }
    ),
    walk=walk,
    state=_state,
)
