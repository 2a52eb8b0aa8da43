"""Worst deallocations of dlmalloc27: one that consolidates all fast bins, and what the literature calls worst.

Sources: C06 §2 and table 1; the worst states are derived in the README of the allocator.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

from wcet_probe.model.scenario import InitialCache, Operation, OperationKind, ScenarioPlan
from wcet_probe.scenarios.dlmalloc27.heap import MINIMUM_BYTES, PAGE_BYTES
from wcet_probe.scenarios.dlmalloc27.script import WHY_BY_PAGES, Order, ordered, pad_bytes, script_for
from wcet_probe.scenarios.families import HeapRequest

_NO_FAST_BYTES = 96
"""More than any fast bin takes."""
_HELPER_BYTES = 128
"""Another size that no fast bin takes."""
_WHY_ONE_PLACE = (
    f"The chunks beside the neighbours lie at the same place of {PAGE_BYTES} bytes, so in one set of the cache: the "
    "links of the chunk before and the tag of the one behind have been evicted when they are written."
)
_PAGES = 12
"""Least heap in pages for a state whose chunks lie at one place of a page."""
_FEW_BYTES = 1 << 20
"""Largest heap in bytes for which all orders of consolidation are tried."""


@dataclass(frozen=True, slots=True)
class _Sizes:
    """Of the chunks, in bytes.

    Attributes:
        line: size of the cache line across which all of them start; 0 for none.
    """

    line: int

    @property
    def block(self) -> int:
        """Of the freed chunk and the one before it."""
        return -(-_NO_FAST_BYTES // self.line) * self.line if self.line else _NO_FAST_BYTES

    @property
    def fence(self) -> int:
        """Of a used chunk between others."""
        return self.line or MINIMUM_BYTES


@dataclass(frozen=True, slots=True)
class _Shape:
    """Which state of a free without consolidation is built.

    Attributes:
        sizes: of the chunks.
        others: how many others there are in the bin of each neighbour.
        fast: how many chunks there are in fast bins.
    """

    sizes: _Sizes
    others: int
    fast: int


def paper_free(request: HeapRequest) -> tuple[ScenarioPlan, ...]:
    """Both neighbours free, and nothing that consolidates."""
    remark = (
        "C06 table 1 claims O(1) for every free. So it is while what comes out is below the consolidation threshold."
    )
    return _constant_frees(request, "paper-free", remark)


def worst_free(request: HeapRequest) -> tuple[ScenarioPlan, ...]:
    """Consolidation of a heap full of fast chunks; where the heap is too small for that, the states of paper-free."""
    threshold = request.allocator.values["consolidation-threshold"]
    if request.heap_bytes < threshold + 6 * MINIMUM_BYTES:
        remark = (
            f"The heap is too small for a free that consolidates: that needs {threshold} free bytes and a fast bin."
        )
        return _constant_frees(request, "worst-free", remark)
    tried = tuple(Order) if request.heap_bytes <= _FEW_BYTES else (Order.IN_SWEEPS, Order.BY_PAGES)
    if not request.data_line_bytes:
        tried = tuple(order for order in tried if order is not Order.BY_PAGES)
    return tuple(
        _consolidating_free(request, threshold, order, line) for order, line in product(tried, _lines(request))
    )


def _lines(request: HeapRequest) -> tuple[int, ...]:
    return (0, request.data_line_bytes) if request.data_line_bytes else (0,)


def _constant_frees(request: HeapRequest, scenario: str, remark: str) -> tuple[ScenarioPlan, ...]:
    """The neighbours alone in their bins; where there is room, between others, and across lines too."""
    line = request.data_line_bytes
    paged = () if line is None else (_paged_free(request, scenario, remark, line),)
    shapes = [_Shape(_Sizes(line), others, fast) for line in _lines(request) for others in (0, 2) for fast in (0, 1)]
    fitting = [shape for shape in shapes if _constant_bytes(shape) <= request.heap_bytes]
    plans = [_constant_free(request, scenario, remark, shape) for shape in fitting or shapes[:1]]
    return (*plans, *(plan for plan in paged if plan))


def _constant_bytes(shape: _Shape) -> int:
    """What the state of ``_constant_free`` needs."""
    sizes, others = shape.sizes, shape.others
    step = sizes.line or MINIMUM_BYTES
    chunks = 3 * sizes.block + step + others * (2 * sizes.block + step) + 2 * (sizes.block + 2 * step)
    fences = (2 * others + 2) * sizes.fence + (1 + shape.fast) * MINIMUM_BYTES
    return (pad_bytes(sizes.line) if sizes.line else 0) + chunks + fences + MINIMUM_BYTES


def _constant_free(request: HeapRequest, scenario: str, remark: str, shape: _Shape) -> ScenarioPlan:
    """A used chunk between two free ones in bins, each among ``others``; another one is the first unsorted one."""
    sizes, others = shape.sizes, shape.others
    script = script_for(request)
    after_bytes = sizes.block + (sizes.line or MINIMUM_BYTES)
    helper_bytes = after_bytes + (sizes.line or MINIMUM_BYTES)
    if sizes.line:
        script.cut(pad_bytes(sizes.line))
    before_slot, slot, after_slot = (script.cut(size) for size in (sizes.block, sizes.block, after_bytes))
    script.cut(sizes.fence)
    beside: list[int] = []
    for size in (sizes.block, after_bytes) * (others // 2) * 2:
        beside.append(script.cut(size))
        script.cut(sizes.fence)
    helper = script.cut(helper_bytes)
    script.cut(sizes.fence)
    first = script.cut(helper_bytes)
    fast = [script.cut(MINIMUM_BYTES) for _ in range(shape.fast)]
    script.cut(MINIMUM_BYTES)
    # Sorted in this order: with two others of its size each neighbour stands between them.
    script.free([*beside[: len(beside) // 2], before_slot, after_slot, *beside[len(beside) // 2 :], helper])
    # The helper fits exactly: what is older is sorted before it is reached.
    script.malloc(helper_bytes)
    script.free([first, *fast])
    where = "between others of their bins" if others else "alone in their bins"
    return ScenarioPlan(
        scenario=scenario,
        variant=", ".join(
            (
                f"no consolidation, neighbours {where}",
                *(("a chunk in a fast bin",) if shape.fast else ()),
                *(("across lines",) if sizes.line else ()),
            )
        ),
        trace=script.trace(),
        measured=Operation(OperationKind.FREE, slot),
        initial_cache=InitialCache.DIRTY,
        state=(
            f"a used chunk of {sizes.block} bytes between free ones of {sizes.block} and {after_bytes} bytes, "
            f"{where}; free merges them into {2 * sizes.block + after_bytes} bytes"
        ),
        why=(
            "Too large for a fast bin, and both neighbours are free: two chunks leave their bins, two merges are made.",
            "The chunks that are linked to each other are in as many lines as they can be.",
            *(
                ("There is a chunk in a fast bin, so that the size of what comes out is looked at.",)
                if shape.fast
                else ()
            ),
            remark,
        ),
        prediction={
            "chunks in fast bins": shape.fast,
            "bytes before": sizes.block,
            "bytes behind": after_bytes,
            "others in the bin before": others,
            "others in the bin behind": others,
            "unsorted chunks": 1,
        },
        driver="",
        driver_value=None,
    )


def _paged_free(request: HeapRequest, scenario: str, remark: str, line: int) -> ScenarioPlan | None:
    """As ``_constant_free``, where all that free touches twice has been evicted in between; None: there is no room."""
    script = script_for(request)
    page, small, large = PAGE_BYTES, _NO_FAST_BYTES, PAGE_BYTES
    if request.heap_bytes < _PAGES * page:
        return None
    script.cut(pad_bytes(line))
    # Links of the chunk before, tags of the one behind and of the next lie at one place of a page.
    before_slot, slot, after_slot = (script.cut(size) for size in (small, page + line - small, large))
    script.cut(page - line)
    beside: list[int] = []
    for size in (small, large, small, large, _HELPER_BYTES, _HELPER_BYTES):
        beside.append(script.cut(size))
        script.cut(-size % page or page)
    *beside, helper, first = beside
    script.free([*beside[:2], before_slot, after_slot, *beside[2:], helper])
    script.malloc(_HELPER_BYTES)
    script.free([first])
    return ScenarioPlan(
        scenario=scenario,
        variant="no consolidation, neighbours between others of their bins, at one place of a page",
        trace=script.trace(),
        measured=Operation(OperationKind.FREE, slot),
        initial_cache=InitialCache.DIRTY,
        state=(
            f"a used chunk of {page + line - small} bytes between free ones of {small} and {large} bytes, between "
            f"others of their bins; free merges them into {page + line + large} bytes"
        ),
        why=(
            "Too large for a fast bin, and both neighbours are free: two chunks leave their bins, two merges are made.",
            _WHY_ONE_PLACE,
            remark,
        ),
        prediction={
            "bytes before": small,
            "bytes behind": large,
            "others in the bin before": 2,
            "others in the bin behind": 2,
            "unsorted chunks": 1,
            "places in a page of chunks beside the neighbours": 1,
        },
        driver="",
        driver_value=None,
    )


def _consolidating_free(request: HeapRequest, threshold: int, order: Order, line: int) -> ScenarioPlan:
    """All but the chunks that merge into ``threshold`` bytes goes to a fast bin."""
    script = script_for(request)
    unused = pad_bytes(line) if line else 0
    if unused:
        script.cut(unused)
    before_bytes = size = _NO_FAST_BYTES
    after_bytes = max(threshold - before_bytes - size, _NO_FAST_BYTES + MINIMUM_BYTES)
    end_bytes = before_bytes + size + after_bytes + MINIMUM_BYTES
    fast = [script.cut(MINIMUM_BYTES) for _ in range((script.room_bytes - end_bytes) // MINIMUM_BYTES)]
    before_slot, slot, after_slot = (script.cut(bytes_) for bytes_ in (before_bytes, size, after_bytes))
    script.cut(MINIMUM_BYTES)
    script.free([before_slot, after_slot, *reversed(ordered(fast, order))])
    merged_bytes = before_bytes + size + after_bytes
    return ScenarioPlan(
        scenario="worst-free",
        variant=f"consolidation {order.value}" + (", across lines" if line else ""),
        trace=script.trace(),
        measured=Operation(OperationKind.FREE, slot),
        initial_cache=InitialCache.DIRTY,
        state=(
            f"{len(fast)} chunks of {MINIMUM_BYTES} bytes in a fast bin, and a used one of {size} between free "
            f"ones; free makes a chunk of {merged_bytes} bytes and then merges the whole fast bin"
        ),
        why=(
            f"The freed chunk and its free neighbours are {merged_bytes} bytes: free consolidates all fast bins.",
            "All else of the heap is in a fast bin, in least chunks: each is merged with its neighbours.",
            *((WHY_BY_PAGES,) if order is Order.BY_PAGES else ()),
            "C06 table 1 claims O(1) for free. It is O(H/M).",
        ),
        prediction={
            "chunks in fast bins": len(fast),
            "bytes that merge at the block": merged_bytes,
            "bytes before": before_bytes,
            "bytes behind": after_bytes,
        },
        driver=f"chunks merged = floor((H - {unused + threshold + 2 * MINIMUM_BYTES}) / 16)",
        driver_value=len(fast),
    )
