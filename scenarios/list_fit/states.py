"""Worst, best and random states of first-fit and best-fit: one list of free blocks, searched from its first.

malloc costs what it visits: so the worst heap alternates free and used blocks of the least size, which are all too
small for the request, but for one block at the end of the list. On a core with a cache each visit is then made to read
two lines, both of which are evicted before a node that shares them is visited.

Sources: P02 §2.2 and §3.1.1, C06 §2.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from wcet_probe.model.scenario import InitialCache, Operation, OperationKind, ScenarioPlan
from wcet_probe.scenarios.cache_sets import Turns, second_left_out, turned_walks
from wcet_probe.scenarios.families import Blocks, Family, GuestHeap, HeapRequest
from wcet_probe.scenarios.random_workload import random_plans
from wcet_probe.scenarios.tagged_heap import (
    OVERHEAD_BYTES,
    WORD_BYTES,
    Layout,
    Sizes,
    TaggedHeap,
    freed_into_empty_list,
    too_small,
)

_WHY_ALLOC = (
    "All free blocks but the list's last have the least size, and the request is larger: they are visited in vain.",
    "No heap that serves the request holds more: between any two free blocks lies a used one, of the least size too.",
    "The block taken is split: it leaves the list, and its rest joins it.",
)
_WHY_GIVEN_UP = "A block that fits, but less well, is visited before the one that is taken, and given up for it."
_WHY_FAILING = (
    "The request is larger than every free block: all are visited in vain.",
    "No heap holds more free blocks: all but the last have the least size, and so have the used ones between them.",
)
_WHY_LINES = (
    "A node's header is the last word of a cache line and its links are in the next one: a visit reads two.",
    "Every second node comes first, then the others: a line that two neighbours share is evicted between their visits.",
)
_WHY_TURNED = (
    "The order turns: the second half leaves out a line for each way's worth, so that one counter of a whole cache is "
    "a line behind, evicts all that others modified, and finds next to nothing of the first half."
)
_WHY_FREE = (
    "Both neighbours are free: both leave the list, both merges are made, and the merged block joins the list.",
    "The list is circular: leaving it takes the same instructions at its head, in its middle and at its tail.",
    "What differs with the places is how many cache lines hold the links to mend.",
)
_PLACES = ("head", "middle", "tail")
_HEAD_BYTES = 2 * WORD_BYTES
"""Offset of the list's head in the control structure."""


@dataclass(frozen=True, slots=True)
class ListFit:
    """What tells the two allocators apart.

    Attributes:
        control: symbol of the control structure.
        last_in_first_out: whether a freed block becomes the first of the list, or the last.
        takes_best: whether the whole list is searched for the best fit, or up to the first fit.
    """

    control: str
    last_in_first_out: bool
    takes_best: bool

    def family(self) -> Family:
        """The scenarios."""
        return Family(
            builders=MappingProxyType(
                {
                    "worst-alloc": lambda request: tuple(self._worst_alloc(request)),
                    "worst-free": lambda request: tuple(self._worst_free(request)),
                    "best-alloc": lambda request: tuple(self._best_alloc_plan(request, alone=a) for a in (False, True)),
                    "best-free": self._best_free,
                    "random": random_plans,
                    "worst-failing-alloc": lambda request: tuple(self._worst_failing(request)),
                    "paper-alloc": self._paper_alloc,
                }
            ),
            walk=self.walk,
            state=self.state,
        )

    # ------------------------------------------------------------------------------------------------------ allocation

    def _worst_alloc(self, request: HeapRequest) -> Iterator[ScenarioPlan]:
        yield self._alloc_plan(request, "as many free blocks as possible")
        if request.data_line_bytes:
            walks = turned_walks(_most_nodes(request), request)
            for turns in (*walks, *second_left_out(walks, _most_nodes(request))):
                yield self._alloc_plan(request, f"two cache lines a visit{turns.name}", turns=turns)
        elif self.takes_best:  # It costs one visit, which is dearer wherever a visit waits for a cache line.
            yield self._alloc_plan(request, "one more that fits, less well", given_up=True)

    def _alloc_plan(
        self,
        request: HeapRequest,
        variant: str,
        *,
        turns: Turns | None = None,
        given_up: bool = False,
    ) -> ScenarioPlan:
        """``turns``: the order of visits where each is to two lines; None: as blocks lie, and by address.

        ``given_up``: whether a block is found, and given up for a better one, before the one that is taken.
        """
        layout = Layout(request)
        least, size = layout.sizes.minimum, layout.sizes.minimum + layout.sizes.alignment
        if turns:
            layout.align()
        taken_bytes = size + layout.sizes.split
        given_up_bytes = least + taken_bytes + layout.sizes.alignment if given_up else 0
        spent = request.heap_bytes - layout.room_bytes + taken_bytes + given_up_bytes
        count = (request.heap_bytes - spent) // (2 * least)
        if count < 1:
            raise too_small(request)
        small = layout.cut([least, least] * count)[::2]
        # The block at the heap's end has what is left over: it is the one given up, where there is one.
        taken_at = layout.position_bytes
        if given_up:
            taken = layout.cut([taken_bytes, least])[:1]
            large = [*layout.cut([layout.room_bytes]), *taken]
        else:
            taken_bytes = layout.room_bytes
            large = [*layout.cut([taken_bytes])]
        freed = turns.order(small) if turns else small
        self._free(layout, [*freed, *large])
        request_bytes = least - OVERHEAD_BYTES + 1
        line = request.data_line_bytes or 0
        if turns and size < line <= taken_bytes - layout.sizes.split:
            request_bytes = line - OVERHEAD_BYTES  # The header of the rest then lies in its line as the block's does.
        visited = len(freed) + len(large)
        left_out = f" - {count - len(freed)}" if len(freed) < count else ""
        return ScenarioPlan(
            scenario="worst-alloc",
            variant=variant,
            trace=layout.trace(),
            measured=Operation(OperationKind.MALLOC, 0, request_bytes),
            initial_cache=InitialCache.DIRTY,
            state=(
                f"{len(freed)} free blocks of {least} bytes between used ones, one of {taken_bytes} at the end; "
                f"malloc({request_bytes}) visits them all and splits the last"
            ),
            why=(
                *_WHY_ALLOC,
                *(_WHY_LINES if turns else ()),
                *([_WHY_TURNED] if turns and turns.behind else []),
                *([_WHY_GIVEN_UP] if given_up else []),
            ),
            prediction={
                "nodes visited": visited,
                "free blocks": visited,
                "used blocks": layout.used_blocks,
                "free blocks that fit": len(large),
                "address of block taken": taken_at,
                "bytes of block taken": taken_bytes,
            },
            driver=f"nodes visited = floor((H - {spent}) / {2 * least}) + {len(large)}{left_out}",
            driver_value=visited,
        )

    def _worst_failing(self, request: HeapRequest) -> Iterator[ScenarioPlan]:
        yield self._failing_plan(request, "as many free blocks as possible")
        if request.data_line_bytes:
            for turns in turned_walks(_most_nodes(request), request):
                yield self._failing_plan(request, f"two cache lines a visit{turns.name}", turns)

    def _failing_plan(self, request: HeapRequest, variant: str, turns: Turns | None = None) -> ScenarioPlan:
        layout = Layout(request)
        if turns:
            layout.align()
        spent = request.heap_bytes - layout.room_bytes + layout.sizes.split
        count, last_bytes = self._alternate(layout, turns)
        request_bytes = last_bytes - OVERHEAD_BYTES + 1
        return ScenarioPlan(
            scenario="worst-failing-alloc",
            variant=variant,
            trace=layout.trace(),
            measured=Operation(OperationKind.MALLOC, 0, request_bytes),
            initial_cache=InitialCache.DIRTY,
            state=(
                f"{count - 1} free blocks of {layout.sizes.minimum} bytes between used ones, and one of {last_bytes}; "
                f"malloc({request_bytes}) fits into none"
            ),
            why=(*_WHY_FAILING, *(_WHY_LINES if turns else ()), *([_WHY_TURNED] if turns and turns.behind else [])),
            prediction={
                "nodes visited": count,
                "free blocks": count,
                "used blocks": layout.used_blocks,
                "free blocks that fit": 0,
            },
            driver=f"nodes visited = floor((H - {spent}) / {2 * layout.sizes.minimum}) + 1",
            driver_value=count,
            refused=True,
        )

    def _paper_alloc(self, request: HeapRequest) -> tuple[ScenarioPlan, ...]:
        layout = Layout(request)
        count, _ = self._alternate(layout, None)
        request_bytes = layout.sizes.minimum - OVERHEAD_BYTES
        return (
            ScenarioPlan(
                scenario="paper-alloc",
                variant="P02 §3.1.1",
                trace=layout.trace(),
                measured=Operation(OperationKind.MALLOC, 0, request_bytes),
                initial_cache=InitialCache.DIRTY,
                state=f"{count} free blocks between used ones; malloc({request_bytes}) takes the first visited",
                why=(
                    "P02 §3.1.1 calls this heap the worst: no heap holds more free blocks.",
                    "It is not: a request that a block of the least size can serve is served by the first one visited.",
                ),
                prediction={"nodes visited": 1, "free blocks": count, "used blocks": layout.used_blocks},
                driver="nodes visited = 1",
                driver_value=1,
            ),
        )

    def _alternate(self, layout: Layout, turns: Turns | None) -> tuple[int, int]:
        """Free blocks of the least size between used ones, the last at the heap's end: how many, and its size.

        The last one is as small as the end of the heap allows: less than the split threshold is never split off.
        """
        least = layout.sizes.minimum
        count = (layout.room_bytes - layout.sizes.split) // (2 * least)
        if count < 1:
            raise too_small(layout.request)
        small = layout.cut([least, least] * count)[::2]
        last_bytes = layout.room_bytes
        self._free(layout, [*(turns.order(small) if turns else small), *layout.cut([last_bytes])])
        return count + 1, last_bytes

    def _best_alloc_plan(self, request: HeapRequest, *, alone: bool) -> ScenarioPlan:
        layout = Layout(request)
        least = layout.sizes.minimum
        taken, _, other, _ = layout.cut([least] * 4)
        self._free(layout, [taken] if alone else [taken, other])
        layout.fill()
        how = "only one" if alone else "first"
        return ScenarioPlan(
            scenario="best-alloc",
            variant=f"the list's {how}",
            trace=layout.trace(),
            measured=Operation(OperationKind.MALLOC, 0, least - OVERHEAD_BYTES),
            initial_cache=InitialCache.WARM,
            state=f"a free block of {least} bytes is the list's {how}; malloc({least - OVERHEAD_BYTES}) takes it whole",
            why=("The first block visited fits exactly: no more are visited, and none is split.",),
            prediction={"nodes visited": 1, "free blocks": 1 if alone else 2, "used blocks": layout.used_blocks},
            driver="nodes visited = 1",
            driver_value=1,
        )

    # ---------------------------------------------------------------------------------------------------- deallocation

    def _worst_free(self, request: HeapRequest) -> Iterator[ScenarioPlan]:
        for left in _PLACES:
            for right in _PLACES:
                if left != right or left == "middle":
                    yield self._free_plan(request, left, right)
        yield self._free_plan(request, "head", "tail", others=0)

    def _free_plan(self, request: HeapRequest, left: str, right: str, *, others: int = 6) -> ScenarioPlan:
        """Both neighbours free, at these places of a list that holds ``others`` more blocks.

        Those in the middle are not next to each other, nor to the list's ends: the links to mend are in other blocks.
        """
        layout = Layout(request)
        size = 2 * max(request.data_line_bytes or 0, layout.sizes.minimum)
        visits = [layout.cut([size, size])[0] for _ in range(others)]
        layout.align()
        before, slot, after = layout.cut([size] * 3)
        layout.fill()
        left_at = {"head": 0, "middle": 2, "tail": others + 1}[left]
        right_at = {"head": 0, "middle": 5, "tail": others + 1}[right]
        for at, neighbour in sorted(((left_at, before), (right_at, after))):
            visits.insert(at, neighbour)
        self._free(layout, visits)
        return ScenarioPlan(
            scenario="worst-free",
            variant=f"left neighbour at the {left}, right at the {right}"
            + ("" if others else ", no other in the list"),
            trace=layout.trace(),
            measured=Operation(OperationKind.FREE, slot),
            initial_cache=InitialCache.DIRTY,
            state=f"a used block of {size} bytes between free ones of {size}, at the list's {left} and {right}",
            why=_WHY_FREE,
            prediction={
                "free blocks": others + 2,
                "used blocks": layout.used_blocks,
                "place of left neighbour": left_at,
                "place of right neighbour": right_at,
            },
        )

    def _best_free(self, request: HeapRequest) -> tuple[ScenarioPlan, ...]:
        return (freed_into_empty_list(Layout(request), "free puts it into the list, which is empty"),)

    # ------------------------------------------------------------------------------------------------- the guest's heap

    def _free(self, layout: Layout, visits: Sequence[int]) -> None:
        """Free blocks so that a search visits them in this order."""
        layout.free(reversed(visits) if self.last_in_first_out else visits)

    def walk(self, guest: GuestHeap) -> Blocks:
        """All blocks in address order."""
        return TaggedHeap.read(guest, self.control).blocks()

    def state(self, guest: GuestHeap, plan: ScenarioPlan) -> Mapping[str, int | str]:
        """Facts of the heap; the search is repeated on the guest's own list."""
        heap = TaggedHeap.read(guest, self.control)
        blocks = heap.blocks()
        facts = {"free blocks": blocks.free_blocks, "used blocks": blocks.used_blocks}
        visits = heap.free_list(guest, guest.symbols[self.control] + _HEAD_BYTES)
        if plan.measured.kind is OperationKind.MALLOC:
            return facts | self._search(heap, visits, Sizes.of(guest.values).block(plan.measured.size_bytes))
        own = guest.slot(plan.measured.slot) - WORD_BYTES
        neighbours = {"left": own - heap.size_before(own), "right": own + heap.size(own)}
        return facts | {
            f"place of {side} neighbour": visits.index(at) for side, at in neighbours.items() if at in visits
        }

    def _search(self, heap: TaggedHeap, visits: Sequence[int], size: int) -> dict[str, int]:
        sizes = heap.sizes_of(visits)
        fits = [at for at, found in enumerate(sizes) if found >= size]
        facts = {"nodes visited": len(sizes), "free blocks that fit": len(fits)}
        if not fits:
            return facts
        taken = min(fits, key=sizes.__getitem__) if self.takes_best else fits[0]
        if not self.takes_best or sizes[taken] == size:
            facts["nodes visited"] = taken + 1
        return facts | {
            "address of block taken": visits[taken] - heap.base_address,
            "bytes of block taken": sizes[taken],
        }


def _most_nodes(request: HeapRequest) -> int:
    """How many blocks there are at least, where two lines are visited."""
    layout = Layout(request)
    layout.align()
    return layout.room_bytes // (2 * layout.sizes.minimum) - 2
