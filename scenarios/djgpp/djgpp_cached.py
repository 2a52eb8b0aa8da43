"""Scenarios of djgpp-cached: as djgpp-tags, but malloc walks the request's list twice, or three times.

The list that is walked holds the least blocks although a freed block of that size waits in a bin: they are what splits
leave. A block is taken whole from the top of a larger one, again and again: the larger one is freed, a smaller one is
cut from it, the least block is cut from the rest, and what is left then goes into its list with the next split. This
takes constant time a node, because the larger one is always alone in its list.

Source: L11 §V names the allocators without a worst state.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from wcet_probe.model.scenario import InitialCache, Operation, OperationKind, ScenarioPlan, Trace
from wcet_probe.scenarios.cache_sets import endings, left_out_of_walks, shifts_of_walks
from wcet_probe.scenarios.djgpp.tagged_heap import WHY_SECOND_WALK, DjgppTagged, node_bytes, nodes_form, virgin_plan
from wcet_probe.scenarios.families import Family, GuestHeap, HeapRequest
from wcet_probe.scenarios.random_workload import random_plans
from wcet_probe.scenarios.tagged_heap import OVERHEAD_BYTES, WORD_BYTES, too_small

_CONTROL = "djgpp_cached_control"
_PITCH_BYTES = 4096
"""Of the regions whose nodes are visited in turn: neighbours of a node are as many visits away as there are regions."""

_FEW_REGIONS = 8
"""With no more, their last one is also tried as the one whose nodes are within lines."""

_MOST_REGIONS = 512
"""With more such a region adds less than one in a thousand."""

_SPENT_NODES = 8
"""More than the nodes that the heap's ends take the place of."""

_WHY_VAIN = (
    "Every block in the list of the request's power of two is too small: all are visited in vain, for a close fit."
)
_WHY_AGAIN = "Then they are visited once more, for any fit."
_WHY_DENSE = (
    "No heap holds many more: all have the least size, as have the used blocks between them, but for the lowest."
)
_WHY_WITHIN = (
    "The nodes of one region are each in one line: a round fills an odd number of lines, and one counter of a whole "
    "cache, which would else leave two ways of four alone, comes to all."
)
_WHY_REFUSED = "All larger lists are empty, and the break is at the end of the arena."
_WHY_REST = "The block taken is split: its rest is held apart, and the one that was so far goes into its list."
_WHY_THRICE = "The break moves, and the free block below it, the last node of the same list, is walked to."
_WHY_LEFT_OUT = "Some nodes at the end of each way's worth of lines are left out: the walk evicts what others modified."
_WHY_FREE = (
    "Both neighbours are free, and the last two nodes of the list that holds all free blocks but the rest: two walks.",
    "The block is the least one that is not small: a smaller one would go into its bin. All others are least blocks.",
)


@dataclass(frozen=True, slots=True)
class _Missing:
    """Nodes that do not become free: numbers of some, as they are visited, further ones, and how many of the last."""

    left_out: tuple[int, ...] = ()
    shift: tuple[int, ...] = ()
    ended: int = 0

    @property
    def name(self) -> str:
        """For variants."""
        parts = [part for part in (self.left_out, self.shift) if part]
        how = ", " + " and ".join(f"{len(part)} nodes left out from {min(part)} on" for part in parts) if parts else ""
        return how + (f", {self.ended} of the last ones left out" if self.ended else "")

    @property
    def why(self) -> tuple[str, ...]:
        """For reasons."""
        is_phase = bool(self.ended or self.shift)
        return (*([_WHY_LEFT_OUT] if self.left_out else []), *([WHY_SECOND_WALK] if is_phase else []))


_NONE_MISSING = _Missing()


def _missing(request: HeapRequest) -> Iterator[_Missing]:
    """Which nodes are missing in states that are tried, where a visit is to one line: none first."""
    most = request.heap_bytes // (2 * request.allocator.values["minimum-block"]) - _SPENT_NODES
    gaps = [(), *(tuple(gap) for gap in left_out_of_walks(most, request))]
    yield from (_Missing(gap) for gap in gaps)
    yield from (_Missing(ended=ended) for ended in endings(most, request))
    yield from (_Missing(gap, tuple(shift)) for shift in shifts_of_walks(most, request) for gap in gaps)


@dataclass(slots=True)
class _Strips:
    """Free blocks of ``node`` bytes that splits leave, each behind a used block of the least size.

    Attributes:
        request: for which heap.
        node: bytes of the blocks that are to be visited.
        apart: whether a node's header ends a cache line, and two neighbours, which share a line, are visited far from
            each other.
        left_bytes: what stays above the break.
        within: the region whose nodes are each within a line although the others are not, ``middle`` or ``last``.
        form: how many nodes are in their list, once they are built.
    """

    request: HeapRequest
    node: int
    apart: bool = False
    left_bytes: int = 0
    within: str = ""
    _kinds: list[int] = field(default_factory=list)
    _slots: list[int] = field(default_factory=list)
    _sizes: list[int] = field(default_factory=list)
    _tops: list[int] = field(default_factory=list)
    _blocks: int = 0
    form: str = ""

    @property
    def least(self) -> int:
        return self.request.allocator.values["minimum-block"]

    @property
    def room_bytes(self) -> int:
        return self.request.heap_bytes - OVERHEAD_BYTES - self.left_bytes

    def _bottom_bytes(self, *, serves: bool) -> int:
        """Of the last block that is freed: not small; lists of nodes are not searched for it, or for what it serves."""
        values = self.request.allocator.values
        above = 1 << self.node.bit_length()
        enough = max(above, self.node + values["alignment"] + self.least) if serves else self.node + above
        return max(values["small-block"], enough)

    def _malloc(self, slot: int, size: int) -> None:
        self._kinds.append(0)
        self._slots.append(slot)
        self._sizes.append(size - OVERHEAD_BYTES)

    def _free(self, slot: int) -> None:
        self._kinds.append(1)
        self._slots.append(slot)
        self._sizes.append(0)

    def _new_slot(self) -> int:
        self._blocks += 1
        return self._blocks - 1

    def _strip(self, region: int, used: int, free: int) -> int:
        """The region's large block becomes smaller by a used and a free block; the slot of the used one."""
        self._tops[region] -= used + free
        self._free(region)
        self._malloc(region, self._tops[region])
        slot = self._new_slot()
        self._malloc(slot, used)
        return slot

    def build(
        self, used: int, free: int, *, serves: bool = False, missing: _Missing = _NONE_MISSING
    ) -> tuple[int, int]:
        """The heap ends with a used and a free block of these sizes; below are strips, as many as fit.

        The last node becomes the rest of the last split. ``serves``: the heap starts with a larger free block.
        ``missing``: which nodes do not become free, those at the heap's end aside; of one region only.

        Returns:
            How many nodes are in their list, and the slot of the used block at the end.
        """
        left_out, ended = {*missing.left_out, *missing.shift}, missing.ended
        strip = self.least + self.node
        line = self.request.data_line_bytes
        pad = (2 * WORD_BYTES + self.room_bytes - used - free - self.node) % line if line and self.apart else 0
        body = self.room_bytes - used - pad - free
        closed, lowest_bottom = self._bottom_bytes(serves=False), self._bottom_bytes(serves=serves)
        if body < lowest_bottom + 2 * strip:
            raise too_small(self.request)
        # As many as there is room for: nodes beyond a pitch would be visited in a row, and share lines.
        regions = 1 + (body - lowest_bottom - 2 * strip) // _PITCH_BYTES if self.apart else 1
        fence = self.least if regions > 1 else 0
        pitch = _PITCH_BYTES - fence
        lowest = body - (regions - 1) * _PITCH_BYTES
        self._tops = [lowest, *(pitch,) * (regions - 1)]
        self._tops[-1] += used + pad + free
        self._blocks = regions
        self._partition(fence)
        within = {"middle": regions // 2, "last": regions - 1}.get(self.within, 0)
        shift = [self.least if region and region == within else 0 for region in range(regions)]
        counts = [(lowest - lowest_bottom) // strip, *((pitch - closed - by) // strip for by in shift[1:])]
        end = self._strip(regions - 1, used + pad, free)
        kept = 0
        for number in range(max(counts)):
            if number < ended or counts[0] - 1 - number in left_out:
                kept += strip
                continue
            for region in reversed(range(regions)):
                if number < counts[region]:
                    self._strip(region, self.least + kept + (0 if number else shift[region]), self.node)
            kept = 0
        for region in reversed(range(regions)):
            self._free(region)
            if region or not serves:
                self._malloc(region, self._tops[region] - self.node)
        spent = self.request.heap_bytes - body + lowest_bottom - (not serves) * strip
        self.form = nodes_form(spent, strip) if regions == 1 else f"n about H / {strip}"
        self.form += f" - {len(left_out) + ended}" if left_out or ended else ""
        # Those of the strips, of the regions' bottoms and of the end, but for the rest.
        return sum(counts) - len(left_out) - ended + regions - serves, end

    def _partition(self, fence: int) -> None:
        """The break moves over the room, and regions are cut from it, with a used block between any two."""
        self._malloc(0, self.room_bytes)
        self._free(0)
        for region, size in enumerate(self._tops):
            self._malloc(region, size)
            if region < len(self._tops) - 1:
                self._malloc(self._new_slot(), fence)

    def trace(self) -> Trace:
        """All operations."""
        kinds, slots, sizes = (tuple(column) for column in (self._kinds, self._slots, self._sizes))
        return Trace(kinds, slots, sizes, (0,) * len(kinds), self._blocks)


@dataclass(frozen=True, slots=True)
class _Way:
    """How nodes lie: `_Strips.apart` and `_Strips.within`."""

    apart: bool = False
    within: str = ""

    @property
    def name(self) -> str:
        """For variants."""
        inner = f", one in the {self.within} region" if self.within else ""
        return f", two lines a visit{inner}" if self.apart else ""

    @property
    def why(self) -> tuple[str, ...]:
        """For reasons."""
        return (_WHY_WITHIN,) if self.within else ()


def _ways(request: HeapRequest) -> tuple[_Way, ...]:
    """Ways that are tried."""
    if not request.data_line_bytes or request.heap_bytes < 4 * _PITCH_BYTES:
        return (_Way(),)
    regions = request.heap_bytes // _PITCH_BYTES
    within = ("middle", "last") if regions <= _FEW_REGIONS else ("middle",) if regions <= _MOST_REGIONS else ()
    return (_Way(), _Way(apart=True), *(_Way(apart=True, within=region) for region in within))


def _size(request: HeapRequest) -> int:
    """Of the block that is asked for, when nodes are a little too small."""
    return node_bytes(request) + request.allocator.values["alignment"]


def _worst_alloc(request: HeapRequest) -> Iterator[ScenarioPlan]:
    values = request.allocator.values
    yield virgin_plan(request)
    left = values["alignment"] + values["minimum-block"]
    ways = _ways(request)
    for way in ways:
        for missing in (_NONE_MISSING,) if len(ways) > 1 else _missing(request):
            yield _served_plan(request, missing, way)
            if request.heap_bytes - OVERHEAD_BYTES - left >= values["chunk"]:
                yield _grown_plan(request, left, missing, way)
            else:  # Then nothing costs more than to look at all lists in vain.
                yield _refused_plan(request, missing, way)


def _served_plan(request: HeapRequest, missing: _Missing, way: _Way) -> ScenarioPlan:
    strips = _Strips(request, node_bytes(request), way.apart, within=way.within)
    nodes, _ = strips.build(strips.least, strips.node, serves=True, missing=missing)
    why = (_WHY_VAIN, _WHY_AGAIN, _WHY_DENSE, _WHY_REST, *missing.why, *way.why)
    return _alloc_plan(strips, nodes, (2, 1), f"a larger block serves{missing.name}{way.name}", why)


def _grown_plan(request: HeapRequest, left: int, missing: _Missing, way: _Way) -> ScenarioPlan:
    strips = _Strips(request, node_bytes(request), way.apart, left, way.within)
    nodes, _ = strips.build(strips.least, strips.node, missing=missing)
    why = (_WHY_VAIN, _WHY_AGAIN, _WHY_THRICE, _WHY_DENSE, _WHY_REST, *missing.why, *way.why)
    return _alloc_plan(strips, nodes, (3, 0), f"the break moves{missing.name}{way.name}", why)


def _refused_plan(request: HeapRequest, missing: _Missing, way: _Way) -> ScenarioPlan:
    strips = _Strips(request, node_bytes(request), way.apart, within=way.within)
    nodes, _ = strips.build(strips.least, strips.node, missing=missing)
    why = (_WHY_VAIN, _WHY_AGAIN, _WHY_DENSE, _WHY_REFUSED, *missing.why, *way.why)
    plan = _alloc_plan(strips, nodes, (2, 0), f"nothing is left above the break{missing.name}{way.name}", why)
    return replace(plan, refused=True)


def _worst_failing(request: HeapRequest) -> Iterator[ScenarioPlan]:
    ways = _ways(request)
    for way in ways:
        for missing in (_NONE_MISSING,) if len(ways) > 1 else _missing(request):
            yield replace(_refused_plan(request, missing, way), scenario="worst-failing-alloc")


def _alloc_plan(
    strips: _Strips, in_list: int, visits: tuple[int, int], variant: str, why: tuple[str, ...]
) -> ScenarioPlan:
    """``visits``: of each node in the list, and of other blocks."""
    size = _size(strips.request) - OVERHEAD_BYTES
    visited = visits[0] * in_list + visits[1]
    return ScenarioPlan(
        scenario="worst-alloc",
        variant=variant,
        trace=strips.trace(),
        measured=Operation(OperationKind.MALLOC, 0, size),
        initial_cache=InitialCache.DIRTY,
        state=f"{in_list} free blocks of {strips.node} bytes in one list, too small for malloc({size}); empty bin",
        why=why,
        prediction={
            "nodes visited": visited,
            "blocks in the list": in_list,
            "blocks in bins": 0,
            "bytes left": strips.left_bytes,
            "rest": 1,
        },
        driver=f"nodes visited = {visits[0]} n{' + 1' if visits[1] else ''}, {strips.form} free blocks in the list",
        driver_value=visited,
    )


def _worst_free(request: HeapRequest) -> Iterator[ScenarioPlan]:
    """A visit reads the link alone: it is in one cache line."""
    for missing in _missing(request):
        yield _free_plan(request, missing)


def _free_plan(request: HeapRequest, missing: _Missing) -> ScenarioPlan:
    least, small = (request.allocator.values[name] for name in ("minimum-block", "small-block"))
    strips = _Strips(request, least)
    nodes, slot = strips.build(small, least, missing=missing)
    visited = 2 * nodes - 1
    return ScenarioPlan(
        scenario="worst-free",
        variant=f"between the last two nodes{missing.name}",
        trace=strips.trace(),
        measured=Operation(OperationKind.FREE, slot),
        initial_cache=InitialCache.DIRTY,
        state=f"{nodes} free blocks of {least} bytes; the last two of their list are the block's neighbours",
        why=(*_WHY_FREE, _WHY_DENSE, *missing.why),
        prediction={
            "nodes visited": visited,
            "free blocks": nodes + 1,
            "blocks in bins": 0,
            "bytes left": 0,
            "rest": 1,
        },
        driver=f"nodes visited = 2 n - 1, {strips.form} nodes",
        driver_value=visited,
    )


def _best(request: HeapRequest, kind: OperationKind) -> tuple[ScenarioPlan, ...]:
    """A block of the least size, which a bin takes or gives."""
    least = request.allocator.values["minimum-block"]
    if request.heap_bytes < OVERHEAD_BYTES + 2 * least:  # There would be no rest.
        raise too_small(request)
    small = least - OVERHEAD_BYTES
    allocating = kind is OperationKind.MALLOC
    kinds = (0, 1) if allocating else (0,)
    return (
        ScenarioPlan(
            scenario="best-alloc" if allocating else "best-free",
            variant="its bin holds a block" if allocating else "a small block",
            trace=Trace(kinds, (0,) * len(kinds), (small, 0)[: len(kinds)], (0,) * len(kinds), 2),
            measured=Operation(kind, int(allocating), small if allocating else 0),
            initial_cache=InitialCache.WARM,
            state=f"a block of the least size {'waits in its bin' if allocating else 'is in use'}",
            why=("The bin is at hand: no list is looked at, and no tag is written.",),
            prediction={"nodes visited": 0, "blocks in bins": int(allocating), "rest": 1},
            driver="nodes visited = 0",
            driver_value=0,
        ),
    )


def _read(guest: GuestHeap) -> DjgppTagged:
    return DjgppTagged(guest, _CONTROL, guest.values["small-block"])


FAMILY = Family(
    builders=MappingProxyType(
        {
            "worst-alloc": lambda request: tuple(_worst_alloc(request)),
            "worst-free": lambda request: tuple(_worst_free(request)),
            "best-alloc": lambda request: _best(request, OperationKind.MALLOC),
            "best-free": lambda request: _best(request, OperationKind.FREE),
            "worst-failing-alloc": lambda request: tuple(_worst_failing(request)),
            "random": random_plans,
        }
    ),
    walk=lambda guest: _read(guest).blocks,
    state=lambda guest, plan: _read(guest).facts(plan),
)
