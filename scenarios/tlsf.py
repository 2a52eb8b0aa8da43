"""Worst, best and random states of TLSF.

The cost of TLSF depends on a dozen two-way decisions and not on the heap's size: so the worst state is a combination of
decisions. What instructions leave open (is a push onto an empty list dearer than onto one with a block? across how many
cache lines do the touched words lie?) is decided by measuring every candidate.

Sources: C06 §3 and §4, M06 §4.2 (the bands of figure 3), H11 §III.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import combinations, permutations
from types import MappingProxyType

from wcet_probe.errors import HeapTooSmallError
from wcet_probe.model.scenario import InitialCache, Operation, OperationKind, ScenarioPlan
from wcet_probe.scenarios.families import Family, GuestHeap, HeapRequest
from wcet_probe.scenarios.random_workload import random_plans
from wcet_probe.scenarios.tlsf_heap import ALIGNMENT_BYTES, HEADER_BYTES, Classes, Layout, lists, walk
from wcet_probe.scenarios.traces import TraceBuilder

_WHY_WORST_ALLOC = (
    "The request is at least the small-block limit and off a class boundary: it is rounded, a logarithm finds its row.",
    "No list from its class to the end of its row holds a block: the first-level bitmap is searched too.",
    "The block found is alone in its list and its row: both bits are cleared.",
    "The block is larger: it is split, and the rest, above the limit as well, is mapped to its class and inserted.",
)
_WHY_FOLLOWED = "The block found is followed by another in its list: a link in that one's cache line is cleared."
_WHY_WORST_FREE = (
    "Both neighbours are free: two blocks leave their lists and two merges are made.",
    "Each neighbour is alone in its list and its row, the rows differ: both bits of both rows are cleared.",
    "All sizes are at least the small-block limit: three logarithms map them to their classes.",
    "The merged block is inserted into a third row.",
)


def _classes(request: HeapRequest) -> Classes:
    return Classes.of_values(request.allocator.values)


def _offsets(request: HeapRequest) -> tuple[int, ...]:
    """Offsets of a block's header in a cache line worth telling apart: aligned, and split behind the header."""
    line = request.data_line_bytes
    return (0,) if line is None or line <= HEADER_BYTES else (0, line - HEADER_BYTES)


def _worst_alloc(request: HeapRequest) -> tuple[ScenarioPlan, ...]:
    classes = _classes(request)
    # The top of the request's row: with its header it spans whole cache lines; the rest's header lies as the block's.
    cut = classes.row_start(2) - HEADER_BYTES
    # The rest goes to a list that holds a block already; that list must lie below the request's class.
    large, rest = classes.row_start(3) - classes.width(classes.row_start(2)), classes.small_limit + 8
    # A found block just above a power of two: its row, the request's and the rest's are far apart in the bitmaps.
    far = [(f"found block in row {row}", cut, classes.row_start(row), None) for row in _far_rows(request)]
    shapes = [
        ("one free block", cut, None, None),
        *far,
        ("rest joins a list", large, large + HEADER_BYTES + rest, rest),
    ]
    aligned = [(*shape, offset) for offset in _offsets(request) for shape in shapes]
    return _fitting(
        partial(_alloc_plan, request, variant, offset, cut=cut, found=found, twin=twin)
        for variant, cut, found, twin, offset in [*aligned, *_table_shapes(request)]
    ) + _followed(request, cut)


def _followed(request: HeapRequest, cut: int) -> tuple[ScenarioPlan, ...]:
    """The block found is followed by another: no bit is cleared, but a link in another cache line is."""
    if request.data_line_bytes is None:
        return ()
    found = [
        (f"block found{'' if row in _found_rows(request) else f' in row {row - 1}'} is followed by another", row - 1)
        for row in _far_rows(request)
    ]
    return _fitting_or_none(
        partial(
            _alloc_plan, request, variant, offset, cut=cut, found=_classes(request).row_start(row), twin=None, mates=1
        )
        for variant, row in found
        for offset in _offsets(request)
    )


def _table_shapes(request: HeapRequest) -> Iterator[tuple[str, int, int | None, int | None, int]]:
    """With bit search by table: one shape for each combination of ways through the searches of a call.

    The table's search has two conditionals, so the magnitude of a size or of a bit decides which instructions run.
    """
    if not request.allocator.values["bit-search"]:
        return
    classes, seen = _classes(request), set()
    last = next(r for r in range(1, classes.row_count) if classes.row_start(r + 1) > request.heap_bytes)
    for row, found_row in combinations(range(1, last + 1), 2):
        cut = classes.row_start(row + 1) - classes.width(classes.row_start(row))
        for column in range(0, 1 << classes.sl_bits, 8):
            found = classes.row_start(found_row) + column * classes.width(classes.row_start(found_row))
            rest = found - cut - HEADER_BYTES
            ways = tuple(_table_branches(word) for word in (cut, 1 << found_row, 1 << column, max(0, rest)))
            if rest >= classes.small_limit and ways not in seen and found + 1024 < request.heap_bytes:
                seen.add(ways)
                yield f"{cut} bytes from row {found_row}, column {column}", cut, found, None, _offsets(request)[-1]


def _table_branches(word: int) -> tuple[bool, bool]:
    """Which of the two conditionals of the table's search hold for ``word``."""
    high = word >> 16 != 0
    return high, (word >> 16 if high else word) >> 8 != 0


def _fitting_or_none(plans: Iterable[Callable[[], ScenarioPlan]]) -> tuple[ScenarioPlan, ...]:
    """The plans that the heap can hold."""
    try:
        return _fitting(plans)
    except HeapTooSmallError:
        return ()


def _fitting(plans: Iterable[Callable[[], ScenarioPlan]]) -> tuple[ScenarioPlan, ...]:
    """The plans that the heap can hold; at least one.

    Raises:
        HeapTooSmallError: it can hold none.
    """
    fitting, refusal = [], None
    for plan in plans:
        try:
            fitting.append(plan())
        except HeapTooSmallError as error:
            refusal = error
    if refusal and not fitting:
        raise refusal
    return tuple(fitting)


def _found_rows(request: HeapRequest) -> tuple[int, ...]:
    """The last row, from the fourth on, whose least block fits into the heap with room to spare."""
    classes, row = _classes(request), 1
    while classes.row_start(row + 1) + 4 * classes.small_limit <= request.heap_bytes:
        row += 1
    return (row,) if row > 3 else ()


def _far_rows(request: HeapRequest) -> tuple[int, ...]:
    """Rows of a found block that are far from the others'; a small heap's last row, which may hold no more than it."""
    return tuple(dict.fromkeys((*_found_rows(request), *(row for row in [_last_row(request)] if row > 3))))


def _last_row(request: HeapRequest) -> int:
    """The last row whose least block fits into the heap."""
    classes = _classes(request)
    return max((row for row in range(1, classes.row_count) if classes.row_start(row) < request.heap_bytes), default=1)


def _alloc_plan(
    request: HeapRequest,
    variant: str,
    offset: int,
    *,
    cut: int,
    found: int | None,
    twin: int | None,
    mates: int = 0,
) -> ScenarioPlan:
    """One candidate: a block of ``found`` bytes (the rest of the heap if None), of which ``cut`` are taken.

    ``twin`` is the size of a free block in the list that the rest will join; ``mates`` blocks, one or
    none, follow the one found in its list.
    """
    classes = _classes(request)
    layout = Layout(classes, request.heap_bytes)
    if twin is not None:
        layout.free(twin)
        layout.fence()
    for _ in range(mates):
        layout.free(found or 0)
        layout.fence()
    if request.data_line_bytes:
        layout.fence_until(offset, request.data_line_bytes)
    found_at = layout.position_bytes
    if found is None:
        found = layout.room_bytes - HEADER_BYTES
    else:
        layout.free(found)
        layout.fence(layout.room_bytes)
    size = cut - classes.width(cut) + 1
    rest = found - cut - HEADER_BYTES
    _require(request, rest >= classes.small_limit and classes.of(cut)[0] < classes.of(found)[0])
    row, rest_row = classes.of(found)[0], classes.of(rest)[0]
    return ScenarioPlan(
        scenario="worst-alloc",
        variant=f"{variant}, header at byte {offset} of its line" if request.data_line_bytes else variant,
        trace=layout.trace(),
        measured=Operation(OperationKind.MALLOC, 0, size),
        initial_cache=InitialCache.DIRTY,
        state=(
            f"{'two blocks' if mates else 'one block'} of {found} bytes {'are' if mates else 'is'} free above the "
            f"request's row ({row} against {classes.of(cut)[0]}); malloc({size}) takes {cut} bytes of "
            f"{'one' if mates else 'it'} and puts {rest} back into row {rest_row}"
        ),
        why=_WHY_WORST_ALLOC if not mates else (*_WHY_WORST_ALLOC[:2], _WHY_FOLLOWED, _WHY_WORST_ALLOC[3]),
        prediction={
            "free blocks": 1 + mates + (twin is not None),
            "free blocks the request's class or above": 1 + mates,
            "free blocks in the request's row from its class on": 0,
            "free blocks in the row of the found block": 1 + mates,
            "address of the found block": found_at + HEADER_BYTES,
            "other blocks in the list of the rest": int(twin is not None),
        },
    )


def _worst_free(request: HeapRequest) -> tuple[ScenarioPlan, ...]:
    classes = _classes(request)
    # Sizes that span whole cache lines with their headers: all headers then lie alike across lines.
    low, high = classes.row_start(1) + 24, classes.row_start(2) + 24
    pairs = [(low, high), (high, low)]
    # A right neighbour that ends just below a power of two: its row, the left's and the merged block's are far apart.
    pairs += [(low, classes.row_start(row) - HEADER_BYTES) for row in _found_rows(request)]
    # And a left one whose row's bitmap lies in another line than those of the others and the first-level bitmap.
    pairs += [(classes.row_start(5) + 24, classes.row_start(row) - HEADER_BYTES) for row in _found_rows(request)]
    # A merged block in the heap's last row: a small heap has no other one whose bitmap lies in another line.
    last = classes.row_start(_last_row(request)) - low - 2 * HEADER_BYTES
    if _last_row(request) not in _found_rows(request):
        pairs += [(before, last - before) for before in (low, high, classes.row_start(5) + 24) if last - before > low]
    shapes = [(offset, joins, *pair, low) for offset in _offsets(request) for joins in (False, True) for pair in pairs]
    if request.allocator.values["bit-search"]:
        # The magnitudes of the three sizes decide how the table's search branches.
        sizes = [classes.row_start(row) + 24 for row in (1, 3, 7, 10, 13)]
        shapes += [
            (_offsets(request)[-1], False, *pair, own)
            for pair in permutations(sizes, 2)
            for own in (low, classes.row_start(7), classes.row_start(11))
        ]
    return _fitting(
        partial(_free_plan, request, offset, before, after, own, joins=joins)
        for offset, joins, before, after, own in shapes
    )


def _free_plan(request: HeapRequest, offset: int, before: int, after: int, own: int, *, joins: bool) -> ScenarioPlan:
    classes = _classes(request)
    merged = before + own + after + 2 * HEADER_BYTES
    layout = Layout(classes, request.heap_bytes)
    if joins:
        layout.free(merged)
        layout.fence()
    if request.data_line_bytes:
        layout.fence_until(offset, request.data_line_bytes)
    layout.free(before)
    slot = layout.used(own)
    layout.free(after)
    layout.fence(layout.room_bytes)
    rows = [classes.of(size)[0] for size in (before, after, merged)]
    _require(request, len(set(rows)) == len(rows))
    how = "a list that holds one block" if joins else "an empty list"
    variant = f"{own} bytes between rows {rows[0]} and {rows[1]}, merged into {how}"
    return ScenarioPlan(
        scenario="worst-free",
        variant=f"{variant}, header at byte {offset} of its line" if request.data_line_bytes else variant,
        trace=layout.trace(),
        measured=Operation(OperationKind.FREE, slot),
        initial_cache=InitialCache.DIRTY,
        state=(
            f"a used block of {own} bytes between free ones of {before} and {after} bytes, each alone in its row "
            f"({rows[0]} and {rows[1]}); free merges all into {merged} bytes of row {rows[2]}"
        ),
        why=_WHY_WORST_FREE,
        prediction={
            "free blocks": 2 + joins,
            "free blocks in the row of the left neighbour": 1,
            "free blocks in the row of the right neighbour": 1,
            "blocks in the list of the merged block": int(joins),
            "bytes of the left neighbour": before,
            "bytes of the right neighbour": after,
        },
    )


def _best_alloc(request: HeapRequest) -> tuple[ScenarioPlan, ...]:
    plans = []
    for blocks in (1, 2):
        layout = Layout(_classes(request), request.heap_bytes)
        for _ in range(blocks):
            layout.free(HEADER_BYTES)
            layout.fence()
        how = "is its only one" if blocks == 1 else "is followed by another"
        plans.append(
            ScenarioPlan(
                scenario="best-alloc",
                variant=f"the block found {how}",
                trace=layout.trace(),
                measured=Operation(OperationKind.MALLOC, 0, HEADER_BYTES),
                initial_cache=InitialCache.WARM,
                state=f"the list of the smallest class holds {blocks} block(s); malloc({HEADER_BYTES}) takes the first",
                why=(
                    "The request is below the small-block limit: no rounding, no logarithm.",
                    "The list of its own class holds a block: one bitmap search. The block fits exactly: no split.",
                ),
                prediction={"free blocks": blocks + 1, "blocks in the smallest class": blocks},
            )
        )
    return tuple(plans)


def _best_free(request: HeapRequest) -> tuple[ScenarioPlan, ...]:
    plans = []
    for others in (0, 1):
        layout = Layout(_classes(request), request.heap_bytes)
        if others:
            layout.free(HEADER_BYTES)
        layout.fence()
        slot = layout.used(HEADER_BYTES)
        layout.fence()
        how = "an empty list" if not others else "a list that holds one block"
        plans.append(
            ScenarioPlan(
                scenario="best-free",
                variant=f"into {how}",
                trace=layout.trace(),
                measured=Operation(OperationKind.FREE, slot),
                initial_cache=InitialCache.WARM,
                state=f"a used block of {HEADER_BYTES} bytes between used ones; free puts it into {how}",
                why=(
                    "No neighbour is free: nothing is merged.",
                    "The size is below the small-block limit: no logarithm.",
                ),
                prediction={"free blocks": 1 + others, "blocks in the smallest class": others},
            )
        )
    return tuple(plans)


def _worst_failing_alloc(request: HeapRequest) -> tuple[ScenarioPlan, ...]:
    """The request is rounded and mapped, and both levels are searched in vain: over an empty row or a block below."""
    classes = _classes(request)
    cut = classes.row_start(2) - HEADER_BYTES
    size = cut - classes.width(cut) + 1
    plans = []
    for below in (0, 1):
        layout = Layout(classes, request.heap_bytes)
        if below:
            layout.free(classes.row_start(1))
        layout.fence(layout.room_bytes)
        what = "no block is free" if not below else "the only free block is of a lower class of the request's row"
        plans.append(
            ScenarioPlan(
                scenario="worst-failing-alloc",
                variant=what,
                trace=layout.trace(),
                measured=Operation(OperationKind.MALLOC, 0, size),
                initial_cache=InitialCache.DIRTY,
                state=f"{what}; malloc({size}) is refused",
                why=(
                    "The request is at least the small-block limit: it is rounded, a logarithm finds its row.",
                    "Both bitmaps are searched, and nothing is found.",
                ),
                prediction={"free blocks the request's class or above": 0, "free blocks": below},
                refused=True,
            )
        )
    return tuple(plans)


def _paper_alloc(_: HeapRequest) -> tuple[ScenarioPlan, ...]:
    """The smallest request on a virgin heap (C06 §4 refers to it): it is not rounded and needs no logarithm."""
    return (
        ScenarioPlan(
            scenario="paper-alloc",
            variant="smallest request",
            trace=TraceBuilder().trace(),
            measured=Operation(OperationKind.MALLOC, 0, 1),
            initial_cache=InitialCache.DIRTY,
            state="the heap is one free block; malloc(1) cuts the least block off it",
            why=(
                "Both bitmaps are searched and the block is split.",
                "It is not the worst: a request at or above the small-block limit is rounded and mapped as well.",
            ),
            prediction={"free blocks": 1, "used blocks": 0},
        ),
    )


def _paper_free(request: HeapRequest) -> tuple[ScenarioPlan, ...]:
    """Both neighbours free, as the papers ask for and no more: their lists hold other blocks, their sizes are small."""
    layout = Layout(_classes(request), request.heap_bytes)
    for _ in range(2):
        layout.free(HEADER_BYTES)
        layout.fence()
    layout.free(HEADER_BYTES)
    slot = layout.used(HEADER_BYTES)
    layout.free(HEADER_BYTES)
    layout.fence()
    return (
        ScenarioPlan(
            scenario="paper-free",
            variant="both neighbours free",
            trace=layout.trace(),
            measured=Operation(OperationKind.FREE, slot),
            initial_cache=InitialCache.DIRTY,
            state="a used block of 8 bytes between free ones of 8 bytes, whose list holds two more",
            why=(
                "Two blocks leave their list and two merges are made.",
                "It is not the worst: no list becomes empty, so that no bit is cleared, and no size needs a logarithm.",
            ),
            prediction={"blocks in the smallest class": 4, "free blocks": 5},
        ),
    )


def _require(request: HeapRequest, holds: bool) -> None:  # noqa: FBT001  (an assertion with the heap's name)
    if not holds:
        message = f"a heap of {request.heap_bytes} bytes cannot hold the scenario's state; give a larger --heap."
        raise HeapTooSmallError(message)


def _state(guest: GuestHeap, plan: ScenarioPlan) -> Mapping[str, int | str]:
    """Facts of the guest's heap: from its blocks where a fact speaks of blocks, from the lists where of lists."""
    classes = Classes.of_values(guest.values)
    blocks, lengths = walk(guest), lists(guest)
    facts: dict[str, int | str] = {
        "free blocks": sum(block.free for block in blocks),
        "used blocks": sum(not block.free for block in blocks),
        "blocks in the smallest class": lengths.get(classes.of(HEADER_BYTES), 0),
    }
    if plan.scenario == "worst-alloc":
        facts |= _alloc_facts(guest, plan)
    if plan.scenario == "worst-free":
        facts |= _free_facts(guest, plan)
    if plan.scenario == "worst-failing-alloc":
        at_or_above = [n for c, n in lengths.items() if c >= classes.of(_cut(classes, plan))]
        facts["free blocks the request's class or above"] = sum(at_or_above)
    return facts


def _cut(classes: Classes, plan: ScenarioPlan) -> int:
    """Bytes that the measured request is rounded up to."""
    size = -(-plan.measured.size_bytes // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
    return -(-size // classes.width(size)) * classes.width(size)


def _alloc_facts(guest: GuestHeap, plan: ScenarioPlan) -> dict[str, int | str]:
    classes, lengths = Classes.of_values(guest.values), lists(guest)
    cut = _cut(classes, plan)
    at_or_above = {c: n for c, n in lengths.items() if c >= classes.of(cut)}
    found_class = min(at_or_above)
    # The last one in the heap was freed last, so it is the first of its list.
    *_, found = (b for b in walk(guest) if b.free and classes.of(b.size_bytes - HEADER_BYTES) == found_class)
    rest = found.size_bytes - HEADER_BYTES - cut - HEADER_BYTES
    return {
        "free blocks the request's class or above": sum(at_or_above.values()),
        "free blocks in the request's row from its class on": sum(
            n for c, n in at_or_above.items() if c[0] == classes.of(cut)[0]
        ),
        "free blocks in the row of the found block": sum(n for c, n in lengths.items() if c[0] == found_class[0]),
        "address of the found block": found.address + HEADER_BYTES - guest.heap.base_address,
        "other blocks in the list of the rest": lengths.get(classes.of(rest), 0) - (classes.of(rest) == found_class),
    }


def _free_facts(guest: GuestHeap, plan: ScenarioPlan) -> dict[str, int | str]:
    classes, lengths, blocks = Classes.of_values(guest.values), lists(guest), walk(guest)
    sizes = [block.size_bytes - HEADER_BYTES for block in blocks]
    own = guest.slot(plan.measured.slot) - HEADER_BYTES
    at = next(i for i, block in enumerate(blocks) if block.address == own)
    rows = [classes.of(sizes[i])[0] for i in (at - 1, at + 1)]
    in_row = [sum(n for c, n in lengths.items() if c[0] == row) for row in rows]
    return {
        "free blocks in the row of the left neighbour": in_row[0],
        "free blocks in the row of the right neighbour": in_row[1],
        "blocks in the list of the merged block": lengths.get(classes.of(sum(sizes[at - 1 : at + 2]) + 16), 0),
        "bytes of the left neighbour": sizes[at - 1],
        "bytes of the right neighbour": sizes[at + 1],
    }


FAMILY = Family(
    builders=MappingProxyType(
        {
            "worst-alloc": _worst_alloc,
            "worst-free": _worst_free,
            "best-alloc": _best_alloc,
            "best-free": _best_free,
            "random": random_plans,
            "worst-failing-alloc": _worst_failing_alloc,
            "paper-alloc": _paper_alloc,
            "paper-free": _paper_free,
        }
    ),
    walk=walk,
    state=_state,
)
