"""Heaps of djgpp-tags and djgpp-cached, in plain Python: lists by powers of two, a break, the rest of the last split.

Written from ``allocators/common/djgpp_tags.h``, and kept equal to it by the state proof of every run: the walks of a
call are repeated on the guest's own lists.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import compress

from wcet_probe.model.scenario import InitialCache, Operation, OperationKind, ScenarioPlan, Trace
from wcet_probe.scenarios.families import Blocks, GuestHeap, HeapRequest
from wcet_probe.scenarios.tagged_heap import OVERHEAD_BYTES, WORD_BYTES, TaggedHeap

_BRK, _END, _REST, _HEADS, _BUCKETS = 1, 2, 3, 4, 28
_BINS = _HEADS + _BUCKETS

WHY_SECOND_WALK = (
    "So many are visited that the second walk evicts what it comes to next, where one counter serves the cache."
)

Facts = Mapping[str, int | str]


def node_bytes(request: HeapRequest) -> int:
    """The least block that is in the list of a request that it does not serve."""
    size, alignment = request.allocator.values["minimum-block"], request.allocator.values["alignment"]
    while (size + alignment).bit_length() != size.bit_length():
        size += alignment
    return size


def nodes_form(spent_bytes: int, pair_bytes: int) -> str:
    """How many nodes there are: each with a used block, and what is spent on other things or saved at the ends."""
    sign = "-" if spent_bytes >= 0 else "+"
    return f"n = floor((H {sign} {abs(spent_bytes)}) / {pair_bytes})"


def virgin_plan(request: HeapRequest) -> ScenarioPlan:
    """The first allocation of all: the worst one on heaps of so few blocks that lists cost more than nodes."""
    size = request.allocator.values["minimum-block"] - OVERHEAD_BYTES
    return ScenarioPlan(
        scenario="worst-alloc",
        variant="a virgin heap",
        trace=Trace((), (), (), (), 0),
        measured=Operation(OperationKind.MALLOC, 0, size),
        initial_cache=InitialCache.DIRTY,
        state=f"nothing is below the break; malloc({size}) moves it",
        why=("All lists are looked at, the break moves, and what is there is split.",),
        prediction={"nodes visited": 0, "free blocks": 0, "used blocks": 0, "rest": 0},
        driver="nodes visited = 0",
        driver_value=0,
    )


@dataclass(frozen=True)
class DjgppTagged:
    """A guest's heap.

    Attributes:
        guest: what is read.
        control: symbol of the control structure.
        small_bytes: blocks below wait in bins, and close fits are looked for first; 0: neither.
    """

    guest: GuestHeap
    control: str
    small_bytes: int = 0

    def _word(self, index: int) -> int:
        return self.guest.read_word(self.guest.symbols[self.control] + WORD_BYTES * index)

    @cached_property
    def _heap(self) -> TaggedHeap:
        return TaggedHeap.read(self.guest, self.control)

    @cached_property
    def blocks(self) -> Blocks:
        """All blocks below the break, in address order."""
        below = (self._word(_BRK) - self._heap.base_address) // WORD_BYTES + 1
        return TaggedHeap(self._heap.base_address, self._heap.words[:below]).blocks()

    def _members(self, head: int) -> list[int]:
        """Addresses of the blocks in the list or bin whose head is this word of the control structure."""
        words, base = self._heap.words, self._heap.base_address
        found, node = list[int](), self._word(head)
        add = found.append
        while node:
            add(node - WORD_BYTES)
            node = words[(node - base) >> 2]
        return found

    def _list(self, bucket: int) -> list[int]:
        return self._members(_HEADS + bucket)

    def _visits_to(self, address: int) -> int:
        """How many nodes are visited until a free block leaves its list."""
        if address == self._word(_REST):
            return 0
        return self._list(self._heap.size(address).bit_length() - 1).index(address) + 1

    def facts(self, plan: ScenarioPlan) -> Facts:
        """What the predictions speak of."""
        values = self.guest.values
        bins = (self.small_bytes - values["minimum-block"]) // values["alignment"] if self.small_bytes else 0
        binned = sum(len(self._members(_BINS + number)) for number in range(bins))
        facts = {
            "free blocks": self.blocks.free_blocks,
            "used blocks": self.blocks.used_blocks - binned,
            "blocks in bins": binned,
            "bytes left": self._word(_END) - self._word(_BRK),
            "rest": int(self._word(_REST) != 0),
        }
        if plan.measured.kind is OperationKind.FREE:
            return facts | {"nodes visited": self._visits_of_free(self.guest.slot(plan.measured.slot) - WORD_BYTES)}
        least, alignment = values["minimum-block"], values["alignment"]
        size = max(least, -(-(plan.measured.size_bytes + OVERHEAD_BYTES) // alignment) * alignment)
        own = self._list(size.bit_length() - 1)
        return facts | {"blocks in the list": len(own), "nodes visited": self._visits_of_malloc(size, own)}

    def _visits_of_free(self, block: int) -> int:
        if self._heap.size(block) < self.small_bytes:
            return 0
        after = block + self._heap.size(block)
        before = block - self._heap.size_before(block)
        free = set(compress(self.blocks.addresses, self.blocks.free))
        ways = [(self._visits_to(at), self._heap.size(at).bit_length()) for at in (after, before) if at in free]
        # The second walk is one node shorter if the first one has removed a node before it.
        return sum(way for way, _ in ways) - (len(ways) == 2 and ways[0][1] == ways[1][1] and ways[0] < ways[1])

    def _visits_of_malloc(self, size: int, own: Sequence[int]) -> int:
        rest, visits = self._word(_REST), 0
        if size < self.small_bytes:
            least, alignment = self.guest.values["minimum-block"], self.guest.values["alignment"]
            if self._word(_BINS + (size - least) // alignment):
                return 0
        if rest and self._heap.size(rest) >= size:
            return 0
        own_sizes = self._heap.sizes_of(own)
        for found in own_sizes if self.small_bytes else ():
            visits += 1
            if size <= found <= size + size // 4:
                return visits
        first = size.bit_length() - 1
        for bucket in range(first, _BUCKETS):
            for found in own_sizes if bucket == first else self._heap.sizes_of(self._list(bucket)):
                visits += 1
                if found >= size:
                    return visits
        if self.blocks and self.blocks.free[-1]:
            left = self._word(_END) - self._word(_BRK)
            visits += self._visits_to(self.blocks.addresses[-1]) if size - self.blocks.sizes_bytes[-1] <= left else 0
        return visits
