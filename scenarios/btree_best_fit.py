"""Worst, best and random states of best-fit in an ordered binary tree.

The tree has one node per size and nothing balances it. A path of n nodes needs n different sizes, and n of them, with
the fences between them, need a multiple of n * n bytes: n is about sqrt(2H / a), and not H / 2M.

Where a line of the cache ends behind a node's header, a visit touches two lines: candidates are built for both.

Sources: P02 §2.3.1, §3.1.1, §3.1.2.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import isqrt
from types import MappingProxyType

from wcet_probe.errors import HeapTooSmallError
from wcet_probe.model.scenario import InitialCache, Operation, OperationKind, ScenarioPlan, Trace
from wcet_probe.scenarios.btree_best_fit_heap import HEADER_BYTES, OVERHEAD_BYTES, state, walk
from wcet_probe.scenarios.families import Family, HeapRequest
from wcet_probe.scenarios.random_workload import random_plans
from wcet_probe.scenarios.tree_heap import trace_of_layout

_MOST_BYTES_FOR_APART = 1 << 21
"""Above it a path is so much longer than the cache that its nodes are evicted wherever they lie."""
_DOUBLINGS = (2, 3)
"""Nodes are 4 or 8 lines apart."""
_GATHERED = (0, 1)
"""Nodes that are gathered in sets are multiples of one line or of two apart."""
_WAYS = 4
"""Of the caches of the cores."""
_LEAST_BYTES_FOR_TURNS = 1 << 17
"""Below it a path has so few lines that some sets have no more of them than ways in any order."""
_SETS = 128
"""What is even over so many sets is even over half of them, too; the cores have as many."""
_N = "n different sizes and their fences fill H (n ~ sqrt(2H / a))"

_WHY_ALLOC = (
    "All free blocks have different sizes and were freed in order of size: the tree is one path.",
    "The search goes down the whole path; only the node at its end is the best fit.",
    "That block is so large that it is split, and its rest is inserted at the end of the same path: a second walk.",
)
_WHY_FREE = (
    "All free blocks have different sizes and were freed in order of size: the tree is one path.",
    "Both neighbours are free and are the two deepest nodes: each is looked for along the whole path.",
    "The merged block is inserted near the end of the same path: a third walk.",
)
_WHY_PAPER = (
    "All free blocks have different sizes and were freed in order of size: one path, searched to its end.",
    "It is not the worst state: P02 §3.1.1 leaves out that the block can be split and its rest inserted.",
)
_WHY_REFUSED = (
    "The tree is one path of ever larger sizes, and the request is larger than all: the whole path is searched.",
)


@dataclass(frozen=True, slots=True)
class _Bytes:
    """Sizes of a build: alignment, least block, least rest, and the bytes of the heap that hold blocks."""

    alignment: int
    least: int
    least_rest: int
    usable: int

    @classmethod
    def of(cls, request: HeapRequest) -> _Bytes:
        values = request.allocator.values
        least = values["minimum-block"]
        usable = request.heap_bytes - OVERHEAD_BYTES
        return cls(values["alignment"], least, max(least, values["split-threshold"]), usable)

    def sizes(self, count: int, first: int | None = None) -> list[int]:
        """``count`` different sizes from ``first`` (the least block) on."""
        first = self.least if first is None else first
        return [first + self.alignment * i for i in range(count)]


@dataclass(frozen=True, slots=True)
class _Layout:
    """Blocks in address order: a fence to begin with, if any, then free blocks with a used one behind each.

    Attributes:
        lead: bytes of the fence before the first free block, 0 for none.
        free: sizes of the free blocks, in the order in which they are freed.
        fences: sizes of the used blocks behind them; the last one takes what is left of the heap, 0 for none.
        placed: numbers of the free blocks in address order; the last two of both are the same.
    """

    lead: int
    free: Sequence[int]
    fences: Sequence[int]
    placed: Sequence[int]

    def slot(self, number: int) -> int:
        """Slot of the free block ``number``; that of the used one behind it follows."""
        return 2 * self.placed.index(number) + (self.lead > 0)

    def trace(self) -> Trace:
        """Allocate all from low addresses to high ones, free the free blocks."""
        blocks = [self.lead] if self.lead else []
        for number in self.placed:
            blocks += [self.free[number], self.fences[number]]
        requests = [size - OVERHEAD_BYTES for size in blocks if size]
        return trace_of_layout(requests, [self.slot(number) for number in range(len(self.free))])


def _lay_out(size: _Bytes, line: int | None, free: Sequence[int]) -> _Layout | None:
    """Free blocks with least fences between them; None if the heap is too small.

    With a ``line`` every header is the last word of a line, and the links are in the next one.
    """
    lead, fences = 0, [size.least] * (len(free) - 1)
    if line is not None:
        lead = (line - 2 * HEADER_BYTES) % line
        while 0 < lead < size.least:
            lead += line
        fences = [size.least + -(block + size.least) % line for block in free[:-1]]
    left = size.usable - lead - sum(free) - sum(fences)
    if left < 0 or (left < size.least_rest and free[-1] < size.least_rest):
        return None  # the block that is allocated last takes all that is no least rest
    if left < size.least_rest:
        fences[-1] += left  # moves the last free block alone
        left = 0
    return _Layout(lead, free, [*fences, left], range(len(free)))


def _in_turn(layout: _Layout, line: int) -> _Layout:
    """``layout`` with its blocks in another order of addresses, in which no set of a cache has few of the nodes' lines.

    A set with no more of them than ways is not read again by a second walk. Each length leads to the sets which have
    fewest so far. A node lies in two lines.
    """
    return _one_behind_the_other(layout, line, _SETS, 2, lambda lines, blocks, length: (-lines, blocks, -length))


def _gathered(layout: _Layout, distance: int, classes: int) -> _Layout:
    """``layout`` with its blocks in another order of addresses, in which most nodes lie in sets that cannot hold them.

    A set with more of the path's lines than ways is read anew by a second walk, one with fewer is not. Nodes begin
    multiples of ``distance`` bytes apart, so there are ``classes`` of them by their sets. Each length leads to a class
    which is not empty, and of these to the fullest that is not full.
    """
    return _one_behind_the_other(
        layout,
        distance,
        classes,
        1,
        lambda nodes, blocks, length: (nodes if nodes <= _WAYS else 0.5 * (nodes > 0), blocks, length),
    )


def _one_behind_the_other(
    layout: _Layout, unit: int, classes: int, width: int, rank: Callable[[int, int, int], tuple[float, int, int]]
) -> _Layout:
    """``layout`` with its blocks, but the last two, put one behind the other: each of the length that ranks highest.

    A node takes ``width`` classes of ``unit`` bytes, of which ``classes`` are counted apart. Ranked are the nodes that
    the classes of the next one have so far, how many blocks of the length are left, and the length.
    """
    lengths: dict[int, list[int]] = {}
    for number in range(len(layout.free) - 2):
        lengths.setdefault((layout.free[number] + layout.fences[number]) // unit, []).append(number)
    used, at, placed = [0] * classes, 0, list[int]()
    while lengths:
        for place in range(at, at + width):
            used[place % classes] += 1
        ahead = {length: sum(used[(at + length + more) % classes] for more in range(width)) for length in lengths}
        chosen = max(lengths, key=lambda length: rank(ahead[length], len(lengths[length]), length))
        placed.append(lengths[chosen].pop())
        at += chosen
        if not lengths[chosen]:
            del lengths[chosen]
    count = len(layout.free)
    return replace(layout, placed=(*placed, count - 2, count - 1))


@dataclass(frozen=True, slots=True)
class _Places:
    """How nodes lie in lines: headers before a multiple of ``line`` bytes, or, None, wherever they come to lie.

    ``in_turn``: so that no set has few of them; ``classes``, if not 0: so that most are in few of so many sets.
    """

    line: int | None = None
    in_turn: bool = False
    classes: int = 0

    def variant(self, path: str) -> str:
        """The name of a path whose nodes lie so."""
        where = "" if self.line is None else f", headers before a multiple of {self.line} bytes"
        order = ", in all sets in turn" if self.in_turn else ", gathered in sets" if self.classes else ""
        return f"{path}{where}{order}"


def _longest(request: HeapRequest, places: _Places, sizes: Callable[[int], Sequence[int]]) -> _Layout:
    """The layout with the most free blocks of ``sizes(count)`` that the heap holds."""
    size, line = _Bytes.of(request), places.line
    low, high = 3, 4 + isqrt(2 * request.heap_bytes // size.alignment)
    if _lay_out(size, line, sizes(low)) is None:
        message = (
            f"a heap of {request.heap_bytes} bytes is too small for the scenario's state; "
            "give at least 1024 with --heap."
        )
        raise HeapTooSmallError(message)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _lay_out(size, line, sizes(middle)) is None else (middle, high)
    layout = _lay_out(size, line, sizes(low))
    assert layout is not None  # noqa: S101  (for the type checker: low always fits)
    if line and places.classes:
        return _gathered(layout, line, places.classes)
    return _in_turn(layout, line) if places.in_turn and line else layout


def _places(request: HeapRequest) -> tuple[_Places, ...]:
    """Where nodes may lie.

    A path that the cache can hold is read again for nothing, unless its nodes are in few sets: several lines apart. Of
    one that it cannot hold, what lies in sets with few others is, unless they are in all sets in turn.
    """
    line = request.data_line_bytes
    if line is None or line < 2 * OVERHEAD_BYTES:
        return (_Places(),)
    near = [_Places(), _Places(line)]
    if request.heap_bytes > _LEAST_BYTES_FOR_TURNS:
        near.append(_Places(line, in_turn=True))
    if request.heap_bytes > _MOST_BYTES_FOR_APART:
        return tuple(near)
    apart = (_Places(line << doublings) for doublings in _DOUBLINGS)
    return (*near, *apart, *(_Places(line << doublings, classes=_SETS >> doublings) for doublings in _GATHERED))


def _worst_alloc(request: HeapRequest) -> tuple[ScenarioPlan, ...]:
    size = _Bytes.of(request)

    def right(count: int, extra: int) -> list[int]:
        """The last one is cut above all others, and its rest is ``extra`` larger than the largest of them."""
        *below, largest = size.sizes(count - 1)
        return [*below, largest, largest + size.alignment + max(largest + extra, size.least_rest)]

    def new(count: int) -> list[int]:
        return right(count, size.alignment)

    def joining(count: int) -> list[int]:
        return right(count, 0)

    def left(count: int) -> list[int]:
        return size.sizes(count, size.least + size.least_rest)[::-1]

    plans = []
    for places in _places(request):
        for path, sizes in (
            ("path to the right", new),
            ("path to the right, rest joins a list", joining),
            ("path to the left", left),
        ):
            layout = _longest(request, places, sizes)
            cut = size.least if sizes is left else layout.free[-2] + size.alignment
            plans.append(_alloc_plan("worst-alloc", places.variant(path), layout, cut))
    return tuple(plans)


def _alloc_plan(scenario: str, variant: str, layout: _Layout, cut: int) -> ScenarioPlan:
    """The last of the free blocks of ``layout`` is the end of the path; ``cut`` bytes are taken of it."""
    count, found = len(layout.free), layout.free[-1]
    split = found > cut
    return ScenarioPlan(
        scenario=scenario,
        variant=variant,
        trace=layout.trace(),
        measured=Operation(OperationKind.MALLOC, 0, cut - OVERHEAD_BYTES),
        initial_cache=InitialCache.DIRTY,
        state=(
            f"{count} free blocks of different sizes on one path; malloc({cut - OVERHEAD_BYTES}) takes the deepest, "
            + (f"of {found} bytes, and inserts the rest of {found - cut}" if split else f"of {found} bytes")
        ),
        why=_WHY_ALLOC if split else _WHY_PAPER,
        prediction={
            "nodes searched": count,
            "nodes passed to insert": count - 1 if split else 0,
            "free blocks": count,
            "height of the tree": count,
            "bytes of the best fit": found,
        },
        driver=f"nodes visited = {'2n - 1' if split else 'n'}; {_N}",
        driver_value=2 * count - 1 if split else count,
    )


def _worst_free(request: HeapRequest) -> tuple[ScenarioPlan, ...]:
    size = _Bytes.of(request)
    plans = []
    for places in _places(request):
        plans.append(_free_plan(places.variant("path to the right"), _longest(request, places, size.sizes)))
        variant = places.variant("path to the left")
        to_left = [
            _free_plan(variant, _longest(request, places, partial(_sizes_to_left, size, skip))) for skip in range(5)
        ]
        plans.append(max(to_left, key=lambda plan: plan.driver_value or 0))
    return tuple(plans)


def _sizes_to_left(size: _Bytes, skip: int, count: int) -> list[int]:
    """Sizes from large to small, two of the least and, ``skip`` sizes above them, the others.

    The merged block does not pass nodes that are smaller: it passes one more for each size that is skipped.
    """
    return [*size.sizes(count - 2, size.least + (2 + skip) * size.alignment)[::-1], *size.sizes(2)[::-1]]


def _free_plan(variant: str, layout: _Layout) -> ScenarioPlan:
    """The used block between the last two free ones of ``layout``, which are the two deepest nodes, is freed."""
    count, own = len(layout.free), layout.fences[-2]
    merged = layout.free[-2] + own + layout.free[-1]
    rest = layout.free[:-2]
    passed = len(rest) if rest[0] < rest[-1] else min(len(rest), sum(block > merged for block in rest) + 1)
    return ScenarioPlan(
        scenario="worst-free",
        variant=variant,
        trace=layout.trace(),
        measured=Operation(OperationKind.FREE, layout.slot(count - 2) + 1),
        initial_cache=InitialCache.DIRTY,
        state=(
            f"{count} free blocks of different sizes on one path; free merges a block with the two deepest, of "
            f"{layout.free[-2]} and {layout.free[-1]} bytes, into one of {merged}"
        ),
        why=_WHY_FREE,
        prediction={
            "nodes passed to detach": 2 * count - 1,
            "nodes passed to insert": passed,
            "free neighbours": 2,
            "free blocks": count,
            "height of the tree": count,
        },
        driver=f"nodes visited = 3n - {count + 1 - passed}; {_N}",
        driver_value=2 * count - 1 + passed,
    )


def _paper_alloc(request: HeapRequest) -> tuple[ScenarioPlan, ...]:
    size = _Bytes.of(request)
    plans = []
    for places in _places(request):
        layout = _longest(request, places, size.sizes)
        plans.append(_alloc_plan("paper-alloc", places.variant("path to the right"), layout, layout.free[-1]))
    return tuple(plans)


def _worst_failing_alloc(request: HeapRequest) -> tuple[ScenarioPlan, ...]:
    size = _Bytes.of(request)
    plans = []
    for places in _places(request):
        layout = _longest(request, places, size.sizes)
        count, wanted = len(layout.free), layout.free[-1] + size.alignment
        plans.append(
            ScenarioPlan(
                scenario="worst-failing-alloc",
                variant=places.variant("path to the right"),
                trace=layout.trace(),
                measured=Operation(OperationKind.MALLOC, 0, wanted - OVERHEAD_BYTES),
                initial_cache=InitialCache.DIRTY,
                state=f"{count} free blocks of different sizes on one path; malloc({wanted - OVERHEAD_BYTES})",
                why=_WHY_REFUSED,
                prediction={"nodes searched": count, "free blocks": count, "height of the tree": count},
                driver=f"nodes visited = n; {_N}",
                driver_value=count,
                refused=True,
            )
        )
    return tuple(plans)


def _best_plan(request: HeapRequest, scenario: str, variant: str, free: int, why: str) -> ScenarioPlan:
    """``free`` least blocks are free, apart from each other; the call takes or returns another least block."""
    size = _Bytes.of(request)
    if size.usable < 7 * size.least:
        message = f"a heap of {request.heap_bytes} bytes is too small for the scenario's state; give more with --heap."
        raise HeapTooSmallError(message)
    requests = [size.least - OVERHEAD_BYTES] * 6 + [size.usable - 6 * size.least - OVERHEAD_BYTES]
    allocates = scenario == "best-alloc"
    kind = OperationKind.MALLOC if allocates else OperationKind.FREE
    return ScenarioPlan(
        scenario=scenario,
        variant=variant,
        trace=trace_of_layout(requests, range(0, 2 * free, 2)),
        measured=Operation(kind, 0 if allocates else 5, size.least - OVERHEAD_BYTES if allocates else 0),
        initial_cache=InitialCache.WARM,
        state=f"{free} free block(s) of {size.least} bytes; the call {'takes' if allocates else 'returns'} another",
        why=(why,),
        prediction={"free blocks": free, "height of the tree": min(free, 1)},
    )


def _best_alloc(request: HeapRequest) -> tuple[ScenarioPlan, ...]:
    why = "The root fits exactly: nothing to search for, nothing to split."
    return (
        _best_plan(request, "best-alloc", "the only free block", 1, why),
        _best_plan(request, "best-alloc", "a member of the root's list", 2, why),
    )


def _best_free(request: HeapRequest) -> tuple[ScenarioPlan, ...]:
    why = "No neighbour is free, and the place in the tree is found at once."
    return (
        _best_plan(request, "best-free", "into an empty tree", 0, why),
        _best_plan(request, "best-free", "into the root's list", 1, why),
    )


FAMILY = Family(
    builders=MappingProxyType(
        {
            "worst-alloc": _worst_alloc,
            "worst-free": _worst_free,
            "best-alloc": _best_alloc,
            "best-free": _best_free,
            "worst-failing-alloc": _worst_failing_alloc,
            "paper-alloc": _paper_alloc,
            "random": random_plans,
        }
    ),
    walk=walk,
    state=state,
)
