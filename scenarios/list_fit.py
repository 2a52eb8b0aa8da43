"""Worst, best and random states of first-fit and best-fit: one list of free blocks, searched from its first.

malloc costs what it visits: so the worst heap alternates free and used blocks of the least size, which are all too small
for the request, but for one block at the end of the list. What instructions leave open is decided by measuring: across how
many cache lines a visit reaches, and whether a line that two nodes share is still there when the second one is visited.

Sources: P02 §2.2 and §3.1.1, C06 §2.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from wcet_probe.model import Block, InitialCache, Operation, OperationKind, ScenarioPlan
from wcet_probe.scenarios.families import Extreme, Family, GuestHeap, HeapRequest
from wcet_probe.scenarios.random_workload import random_plans
from wcet_probe.scenarios.tagged_heap import OVERHEAD_BYTES, WORD_BYTES, Layout, Sizes, TaggedHeap, too_small

_WHY_ALLOC = (
    "Every free block but the last of the list has the least size, and the request is one byte more: all are visited in vain.",
    "No heap holds more free blocks: between any two of them lies a used one, and all have the least size.",
    "The block found is split: it leaves the list, and its rest joins it.",
)
_WHY_TWO_LINES = "Each visit reads the last word of one cache line and the first of the next."
_WHY_TWO_PASSES = (
    "Every second block is visited first, the others after them: neighbours share a line, which is evicted in between."
)
_WHY_FREE = (
    "Both neighbours are free: both leave the list, both merges are made, and the merged block joins the list.",
    "The list is circular, so a block leaves it with the same instructions at its head, in its middle and at its tail; "
    "what differs is how many other blocks' cache lines are written.",
)
_POSITIONS = ("head", "middle", "tail")
_CONTROL_HEAD_BYTES = 2 * WORD_BYTES


@dataclass(frozen=True, slots=True)
class ListFit:
    """What tells the two allocators apart.

    Attributes:
        control: symbol of the control structure.
        last_in_first_out: whether a freed block becomes the first of the list, or the last.
        takes_best: whether the whole list is searched for the best fit, or up to the first.
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
                    "best-alloc": self._best_alloc,
                    "best-free": self._best_free,
                    "random": random_plans,
                    "worst-failing-alloc": lambda request: tuple(self._worst_failing(request)),
                    "paper-alloc": self._paper_alloc,
                }
            ),
            extremes=MappingProxyType(
                {
                    "worst-alloc": Extreme.MOST_CYCLES,
                    "worst-free": Extreme.MOST_CYCLES,
                    "best-alloc": Extreme.FEWEST_CYCLES,
                    "best-free": Extreme.FEWEST_CYCLES,
                    "random": Extreme.MOST_CYCLES,
                    "worst-failing-alloc": Extreme.MOST_CYCLES,
                    "paper-alloc": Extreme.MOST_CYCLES,
                }
            ),
            walk=self.walk,
            state=self.state,
        )

    # ------------------------------------------------------------------------------------------------------ allocation

    def _worst_alloc(self, request: HeapRequest) -> Iterator[ScenarioPlan]:
        yield self._alloc_plan(request, "as many free blocks as possible", aligned=False, passes=1, better=0)
        if self.takes_best:
            yield self._alloc_plan(request, "one better fit more", aligned=False, passes=1, better=1)
        if request.data_line_bytes:
            yield self._alloc_plan(request, "two lines a visit, upwards", aligned=True, passes=1, better=0)
            yield self._alloc_plan(request, "two lines a visit, in two passes", aligned=True, passes=2, better=0)

    def _alloc_plan(
        self, request: HeapRequest, variant: str, *, aligned: bool, passes: int, better: int
    ) -> ScenarioPlan:
        """``better``: how many blocks are found, and given up for a better one, before the one that is taken."""
        layout = Layout(request)
        least, split = layout.sizes.minimum, layout.sizes.split
        size = least + layout.sizes.alignment
        if aligned:
            layout.align()
        finds = [size + split + layout.sizes.alignment * i for i in range(better, 0, -1)]
        count = (layout.room_bytes - size - split - sum(finds) - least * len(finds)) // (2 * least)
        if count < 1:
            raise too_small(request)
        pairs = layout.cut([least, least] * count)
        given_up = [layout.cut([find, least])[0] for find in finds]
        found_at, found_size = layout.position_bytes, layout.room_bytes
        found = layout.cut([found_size])
        visits = [*_in_passes(pairs[::2], passes), *given_up, *found]
        if self.takes_best and better:
            visits = [*_in_passes(pairs[::2], passes), *given_up, *found]
        layout.free(reversed(visits) if self.last_in_first_out else visits)
        # The rest's header ends a cache line as the block's does, where the block is large enough.
        line = request.data_line_bytes or 0
        if aligned and line > size and found_size - line >= split and line % layout.sizes.alignment == 0:
            size = line
        bytes_ = size - OVERHEAD_BYTES if size == line else least - OVERHEAD_BYTES + 1
        spent = request.heap_bytes - 2 * least * count
        why = (*_WHY_ALLOC, *((_WHY_TWO_LINES,) if aligned else ()), *((_WHY_TWO_PASSES,) if passes > 1 else ()))
        if better:
            why = (*why, f"Before it {better} larger block is found and given up for it.")
        return ScenarioPlan(
            scenario="worst-alloc",
            variant=variant,
            trace=layout.trace(),
            measured=Operation(OperationKind.MALLOC, 0, bytes_),
            initial_cache=InitialCache.DIRTY,
            state=(
                f"{count} free blocks of {least} bytes between used ones, and one of {found_size} at the end of the list; "
                f"malloc({bytes_}) visits them all and splits the last"
            ),
            why=why,
            prediction={
                "nodes visited": count + better + 1,
                "free blocks": count + better + 1,
                "blocks that fit": better + 1,
                "used blocks": count + better + (layout_pad := int(pairs[0])),
                "address of the block taken": found_at,
                "bytes of the block taken": found_size,
            },
            driver=f"nodes visited = floor((H - {spent % (2 * least) + _whole(spent, least, better)}) / {2 * least})"
            if layout_pad < 0
            else _driver(request, layout, count + better + 1, least),
            driver_value=count + better + 1,
        )
