"""Scenarios of djgpp-tags: lists that are walked, for a fit or up to a neighbour that leaves them.

malloc walks the list of the request's power of two in vain; where the break can still move, the last block is the last
node of the same list, and so the list is walked twice. free walks to both neighbours, the last two nodes of a list.

Source: L11 §V names the allocators without a worst state.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from wcet_probe.model.scenario import InitialCache, Operation, OperationKind, ScenarioPlan, Trace
from wcet_probe.scenarios.cache_sets import (
    LINES_OF_A_WAY,
    Turns,
    endings,
    last_of_ways_late,
    left_out_of_walks,
    shifts_of_walks,
    turned_walks,
    two_ways_gathered,
)
from wcet_probe.scenarios.djgpp.tagged_heap import WHY_SECOND_WALK, DjgppTagged, node_bytes, nodes_form, virgin_plan
from wcet_probe.scenarios.families import Family, HeapRequest
from wcet_probe.scenarios.random_workload import random_plans
from wcet_probe.scenarios.tagged_heap import OVERHEAD_BYTES, WORD_BYTES, too_small

_CONTROL = "djgpp_tags_control"
_WHY_VAIN = "Every block in the list of the request's power of two is a little too small: all are visited in vain."
_WHY_REFUSED = "All larger lists are empty, and the break is at the end of the arena."
_WHY_REST = "The block taken is split: its rest is held apart, and the one that was so far goes into its list."
_WHY_TWICE = "The break moves, and the free block below it, the last node of the same list, is walked to once more."
_WHY_LEFT_OUT = "Some nodes at the end of each way's worth of lines are left out: the walk evicts what others modified."
_WHY_TURNED = (
    "The order turns: the second half leaves out a line for each way's worth, so that one counter of a whole cache is "
    "a line behind, evicts all that others modified, and finds next to nothing of the first half."
)
_WHY_LAST_LATE = (
    "The last node of each way's worth is visited at the end: one counter of a whole cache is a line behind from each "
    "on, and evicts all ways in turn."
)
_WHY_FREE = (
    "Both neighbours are free, and the last two nodes of the list that holds all free blocks: it is walked twice.",
    "No heap holds more free blocks: all have the least size, and so have the used ones between them.",
)


_EARLY, _LATE = 18, 21
"""How far before the end of the first way's nodes, or behind it, one is visited that is postponed."""


@dataclass(frozen=True, slots=True)
class _Order:
    """In which order nodes are visited.

    Attributes:
        turns: how two neighbours, which share a line, are visited far from each other, where a node's header ends a
            cache line; None where it does not.
        left_out: numbers of nodes that stay in use.
        shift: numbers of further nodes that stay in use, as of `shifts_of_walks`.
        ended: how many of the last ones stay in use, as of `endings`.
        gathered: whether some come earlier, as of `two_ways_gathered`.
        last_late: whether the last node of each way's worth is visited at the end, as of `last_of_ways_late`.
        postponed: number of a node that is visited later, among those that are visited, and where; or None.
    """

    turns: Turns | None = None
    left_out: tuple[int, ...] = ()
    shift: tuple[int, ...] = ()
    ended: int = 0
    gathered: bool = False
    last_late: bool = False
    postponed: tuple[int, int] | None = None

    @property
    def name(self) -> str:
        """For variants."""
        parts = [part for part in (self.left_out, self.shift) if part]
        left = ", " + " and ".join(f"{len(part)} nodes left out from {min(part)} on" for part in parts) if parts else ""
        left += f", {self.ended} of the last ones left out" if self.ended else ""
        left += ", the last ones of two ways behind the first" if self.gathered else ""
        left += ", the last one of each way at the end" if self.last_late else ""
        left += f", number {self.postponed[0]} not before number {self.postponed[1]}" if self.postponed else ""
        return left + (self.turns.name if self.turns else "")

    @property
    def passed(self) -> int:
        """How many nodes stay in use."""
        return len(self.left_out) + len(self.shift) + self.ended

    @property
    def why(self) -> tuple[str, ...]:
        """For reasons."""
        return (
            *([_WHY_LEFT_OUT] if self.left_out else []),
            *([_WHY_TURNED] if self.turns and self.turns.behind else []),
            *([WHY_SECOND_WALK] if self.shift or self.ended or self.postponed or self.gathered else []),
            *([_WHY_LAST_LATE] if self.last_late else []),
        )

    def of(self, slots: Sequence[int]) -> list[int]:
        """The nodes of ``slots``, by ascending address, that are visited, as they are."""
        passed = {*self.left_out, *self.shift}
        visited = [slot for number, slot in enumerate(slots[: len(slots) - self.ended]) if number not in passed]
        if self.postponed:
            visited.insert(self.postponed[1], visited.pop(self.postponed[0]))
        if self.gathered:
            return two_ways_gathered(visited)
        if self.last_late:
            return last_of_ways_late(visited)
        return self.turns.order(visited) if self.turns else visited


@dataclass(slots=True)
class _Layout:
    """Blocks side by side from the heap's start on: the break moves over all of them at first.

    Attributes:
        request: for which heap.
        node: bytes of the blocks that are to be visited.
        order: of the nodes.
        left_bytes: what stays above the break.
        form: how many nodes there are, once they are laid.
    """

    request: HeapRequest
    node: int
    order: _Order
    left_bytes: int = 0
    form: str = ""
    _sizes: list[int] = field(default_factory=list)

    @property
    def least(self) -> int:
        return self.request.allocator.values["minimum-block"]

    @property
    def room_bytes(self) -> int:
        return self.request.heap_bytes - OVERHEAD_BYTES - self.left_bytes

    def lay(self, head: Sequence[int] = (), tail: Sequence[int] = (), uncut: int = 0) -> list[int]:
        """A node, ``head``, then used and free blocks in turn, as many as fit, then ``tail`` and ``uncut`` bytes.

        Returns:
            The slots of all nodes, by ascending address.
        """
        pair = self.least + self.node
        start = self.node + sum(head)
        line = self.request.data_line_bytes
        pad = (line - 2 * WORD_BYTES - start - self.least) % line if line and self.order.turns else 0
        ends = start + pad + sum(tail) + uncut
        count, over = divmod(self.room_bytes - ends, pair)
        if count < 1:
            raise too_small(self.request)
        pairs = [self.least, self.node] * count
        pairs[0] += pad
        pairs[-2] += over
        self.form = nodes_form(self.request.heap_bytes - self.room_bytes + ends - pair, pair)
        self._sizes = [self.node, *head, *pairs, *tail]
        return [0, *range(len(head) + 2, len(head) + 1 + 2 * count, 2)]

    @property
    def nodes(self) -> str:
        """How many nodes are visited in a walk, as a form of the heap's size."""
        return self.form + (f" - {self.order.passed}" if self.order.passed else "")

    def trace(self, visits: Sequence[int], split: int | None = None) -> Trace:
        """All blocks are cut; the rest of ``split`` becomes the rest; what is to be visited is freed."""
        blocks = len(self._sizes)
        made = [] if split is None else [(1, split, 0), (0, blocks + 1, 1)]
        kinds = (0, 1, *(0,) * blocks, *(k for k, _, _ in made), *(1,) * len(visits))
        slots = (blocks, blocks, *range(blocks), *(s for _, s, _ in made), *reversed(visits))
        cut = [size - OVERHEAD_BYTES for size in self._sizes]
        sizes = (self.room_bytes - OVERHEAD_BYTES, 0, *cut, *(b for _, _, b in made), *(0,) * len(visits))
        return Trace(kinds, slots, sizes, (0,) * len(kinds), blocks + 2)


def _orders(request: HeapRequest) -> Iterator[_Order]:
    """Orders of nodes that are tried."""
    yield _Order()
    if request.data_line_bytes:
        pairs = (request.heap_bytes - OVERHEAD_BYTES) // (2 * request.allocator.values["minimum-block"])
        yield from (_Order(turns) for turns in turned_walks(pairs - 4, request))


def _worst_alloc(request: HeapRequest) -> Iterator[ScenarioPlan]:
    values = request.allocator.values
    yield virgin_plan(request)
    left = values["alignment"] + values["minimum-block"]
    fitting = node_bytes(request) + left
    for order in _orders(request):
        for taken in (fitting, 1 << fitting.bit_length()):
            yield _served_plan(request, taken, order)
        if request.heap_bytes - OVERHEAD_BYTES - left >= values["chunk"]:
            yield _grown_plan(request, left, order)
        else:  # Then nothing costs more than to look at all lists in vain.
            yield _refused_plan(request, order)


def _served_plan(request: HeapRequest, taken: int, order: _Order) -> ScenarioPlan:
    """A block of ``taken`` bytes serves; the last block of the heap is the rest of the last split."""
    layout = _Layout(request, node_bytes(request), order)
    slots = layout.lay(tail=(layout.least, taken, layout.least), uncut=layout.least)
    visits = order.of(slots)
    return _alloc_plan(
        layout,
        len(visits),
        trace=layout.trace([*visits, slots[-1] + 2]),
        variant=f"a block of {taken} bytes serves",
        visited=len(visits) + 1,
        driver="n + 1",
        why=(_WHY_VAIN, _WHY_REST),
    )


def _grown_plan(request: HeapRequest, left: int, order: _Order) -> ScenarioPlan:
    layout = _Layout(request, node_bytes(request), order, left)
    slots = layout.lay(head=(2 * layout.least,))
    visits = [*order.of(slots[:-1]), slots[-1]]  # The last block, at the break, is the last node.
    return _alloc_plan(
        layout,
        len(visits),
        trace=layout.trace(visits, split=1),
        variant="the break moves",
        visited=2 * len(visits),
        driver="2 n",
        why=(_WHY_VAIN, _WHY_TWICE, _WHY_REST),
    )


def _alloc_plan(
    layout: _Layout, in_list: int, *, trace: Trace, variant: str, visited: int, driver: str, why: tuple[str, ...]
) -> ScenarioPlan:
    size = layout.node + layout.request.allocator.values["alignment"] - OVERHEAD_BYTES
    return ScenarioPlan(
        scenario="worst-alloc",
        variant=variant + (", two lines a visit" if layout.order.turns else "") + layout.order.name,
        trace=trace,
        measured=Operation(OperationKind.MALLOC, 0, size),
        initial_cache=InitialCache.DIRTY,
        state=f"{in_list} free blocks of {layout.node} bytes in one list, too small for malloc({size})",
        why=(*why, *layout.order.why),
        prediction={
            "nodes visited": visited,
            "blocks in the list": in_list,
            "bytes left": layout.left_bytes,
            "rest": 1,
        },
        driver=f"nodes visited = {driver}, {layout.nodes} free blocks in the list",
        driver_value=visited,
    )


def _refused_plan(request: HeapRequest, order: _Order) -> ScenarioPlan:
    """Nothing serves; nothing is left above the break."""
    layout = _Layout(request, node_bytes(request), order)
    visits = order.of(layout.lay())
    size = layout.node + request.allocator.values["alignment"] - OVERHEAD_BYTES
    apart = ", two lines a visit" if order.turns else ""
    return ScenarioPlan(
        scenario="worst-alloc",
        variant=f"nothing is left above the break{apart}{order.name}",
        trace=layout.trace(visits),
        measured=Operation(OperationKind.MALLOC, 0, size),
        initial_cache=InitialCache.DIRTY,
        state=f"{len(visits)} free blocks of {layout.node} bytes, nothing above the break; malloc({size}) is refused",
        why=(_WHY_VAIN, _WHY_REFUSED, *order.why),
        prediction={"nodes visited": len(visits), "blocks in the list": len(visits), "bytes left": 0, "rest": 0},
        driver=f"nodes visited = {layout.nodes} free blocks in the list",
        driver_value=len(visits),
        refused=True,
    )


def _worst_failing(request: HeapRequest) -> Iterator[ScenarioPlan]:
    for order in _orders(request):
        yield replace(_refused_plan(request, order), scenario="worst-failing-alloc")


def _orders_of_two_walks(request: HeapRequest) -> Iterator[_Order]:
    """Orders in which it matters where the first walk leaves one counter of a whole cache."""
    yield from _orders(request)
    pairs = (request.heap_bytes - OVERHEAD_BYTES) // (2 * request.allocator.values["minimum-block"])
    if request.data_line_bytes and pairs > 2 * LINES_OF_A_WAY:
        yield from (_Order(last_late=True, ended=ended) for ended in (0, 1))
    for ended in endings(pairs - 4, request):
        yield _Order(ended=ended)
        if pairs > 2 * LINES_OF_A_WAY + 4:
            yield _Order(ended=ended - 1, gathered=True)
    for shift in shifts_of_walks(pairs - 4, request):
        for left_out in ([], *left_out_of_walks(pairs - 4, request)):
            yield _Order(left_out=tuple(left_out), shift=tuple(shift))
    # What follows was found by a search, as the dearest of many such orders on heaps of 5,000 and of 8,192 bytes.
    way = LINES_OF_A_WAY
    if endings(pairs - 4, request) and pairs < 2 * way:
        yield _Order(shift=(0,), postponed=(pairs - way, way - 1))
        yield _Order(postponed=(pairs - way, way - _EARLY))
    if endings(pairs - 4, request) and pairs > way + _LATE + 4:
        yield _Order(shift=(way + _LATE - 1,), postponed=(2, way + _LATE))


def _worst_free(request: HeapRequest) -> Iterator[ScenarioPlan]:
    for order in _orders_of_two_walks(request):
        least = request.allocator.values["minimum-block"]
        layout = _Layout(request, least, order)
        *others, before = layout.lay(tail=(least, least))
        visits = [*order.of(others), before, before + 2]
        visited = 2 * len(visits) - 1
        yield ScenarioPlan(
            scenario="worst-free",
            variant=("neighbours apart" if order.turns else "in order") + order.name,
            trace=layout.trace(visits),
            measured=Operation(OperationKind.FREE, before + 1),
            initial_cache=InitialCache.DIRTY,
            state=f"{len(visits)} free blocks of {least} bytes; the last two of their list are the block's neighbours",
            why=(*_WHY_FREE, *order.why),
            prediction={"nodes visited": visited, "free blocks": len(visits), "bytes left": 0},
            driver=f"nodes visited = 2 n - 1, {layout.nodes} + 1 free blocks",
            driver_value=visited,
        )


def _best(request: HeapRequest, kind: OperationKind) -> tuple[ScenarioPlan, ...]:
    """A virgin heap but for what the call needs."""
    least = request.allocator.values["minimum-block"]
    if request.heap_bytes < OVERHEAD_BYTES + 2 * least:
        raise too_small(request)
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
    walk=lambda guest: DjgppTagged(guest, _CONTROL).blocks,
    state=lambda guest, plan: DjgppTagged(guest, _CONTROL).facts(plan),
)
