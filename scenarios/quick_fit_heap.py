"""The heap of quick fit as the guest's memory holds it: pages, free runs and fragments."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from wcet_probe.model.scenario import Block, OperationKind, ScenarioPlan
from wcet_probe.scenarios.families import GuestHeap

PAGE_HEADER_BYTES = 16
_FREE, _USED = 0, 1
_COUNT_AT, _KIND_AT = 8, 12
_ROVER_AT, _LISTS_AT = 16, 32
_FRAGMENT_LINK_BYTES = 8


@dataclass(frozen=True, slots=True)
class _Heap:
    """The guest's heap as words, and what its control structure says."""

    words: array[int]
    base: int
    control: int
    page_bytes: int
    pages: int
    first_page: int

    def at(self, address: int) -> int:
        return self.words[(address - self.base) >> 2]

    def header(self, page: int) -> int:
        """Address of a page's header; pages are counted from 1."""
        return self.base + PAGE_HEADER_BYTES * page

    def count(self, page: int) -> int:
        return self.at(self.header(page) + _COUNT_AT)

    def kind(self, page: int) -> int:
        return self.at(self.header(page) + _KIND_AT)

    def start(self, page: int) -> int:
        return self.first_page + self.page_bytes * (page - 1)

    def page_of(self, address: int) -> int:
        return (address - self.first_page) // self.page_bytes + 1


def _heap(guest: GuestHeap) -> _Heap:
    control, extent = guest.symbols["quick_fit_control"], guest.heap
    words = array("I", guest.read(extent.base_address, extent.size_bytes // 4 * 4))
    # control.headers is the heap's base: read in the guest's byte order and in the host's, it tells both apart.
    if int.from_bytes(guest.read(control + _ROVER_AT + 8, 4), sys.byteorder) != extent.base_address:
        words.byteswap()
    page_bytes = guest.values["page-bytes"]
    return _Heap(
        words=words,
        base=extent.base_address,
        control=control,
        page_bytes=page_bytes,
        pages=guest.read_word(control + _ROVER_AT + 12),
        first_page=guest.read_word(control + _ROVER_AT + 4),
    )


def _list(guest: GuestHeap, heap: _Heap, head: int) -> Iterator[int]:
    """Addresses of the nodes of a circular list, in order."""
    node = guest.read_word(head)
    while node != head:
        yield node
        node = heap.at(node)


def _fragments(guest: GuestHeap, heap: _Heap, log2: int) -> list[int]:
    return list(_list(guest, heap, heap.control + _LISTS_AT + _FRAGMENT_LINK_BYTES * log2))


def walk(guest: GuestHeap) -> tuple[Block, ...]:
    """The table of page headers, as one used block that is header alone, then the blocks of all pages."""
    return tuple(_walk(guest, _heap(guest)))


def _walk(guest: GuestHeap, heap: _Heap) -> Iterator[Block]:
    table = PAGE_HEADER_BYTES * (heap.pages + 2)
    yield Block(heap.base, table, table, free=False)
    free = {fragment for log2 in range(3, 12) for fragment in _fragments(guest, heap, log2)}
    page = 1
    while page <= heap.pages:
        kind, start = heap.kind(page), heap.start(page)
        if kind in (_FREE, _USED):
            yield Block(start, heap.count(page) * heap.page_bytes, 0, kind == _FREE)
            page += heap.count(page)
        else:
            size = 1 << kind
            for address in range(start, start + heap.page_bytes, size):
                yield Block(address, size, 0, address in free)
            page += 1


def state(guest: GuestHeap, plan: ScenarioPlan) -> Mapping[str, int | str]:
    """What is to be known of the heap before the operation that ``plan`` measures."""
    heap = _heap(guest)
    blocks = walk(guest)[1:]
    runs = list(_list(guest, heap, heap.control))
    facts: dict[str, int | str] = {
        "pages": heap.pages,
        "free runs": len(runs),
        "free pages": sum(heap.at(run + _COUNT_AT) for run in runs),
        "used blocks": sum(not block.free for block in blocks),
    }
    if plan.measured.kind is OperationKind.MALLOC:
        return facts | _alloc_facts(guest, heap, plan.measured.size_bytes)
    return facts | _free_facts(guest, heap, guest.slot(plan.measured.slot))


def _alloc_facts(guest: GuestHeap, heap: _Heap, size: int) -> dict[str, int | str]:
    if size > heap.page_bytes // 2:
        return {"free runs visited": _visited(guest, heap, -(-size // heap.page_bytes))}
    log2 = (max(size, guest.values["minimum-block"]) - 1).bit_length()
    free = len(_fragments(guest, heap, log2))
    linked = 0 if free else (heap.page_bytes >> log2) - 1
    return {
        "free fragments of the size": free,
        "fragments to be linked": linked,
        "free runs visited": _visited(guest, heap, 1) if linked else 0,
    }


def _visited(guest: GuestHeap, heap: _Heap, pages: int) -> int:
    """Free runs that next fit looks at for a run of ``pages``."""
    rover = run = guest.read_word(heap.control + _ROVER_AT)
    visited = 0
    while True:
        if run != heap.control:
            visited += 1
            if heap.at(run + _COUNT_AT) >= pages:
                return visited
        run = guest.read_word(run)
        if run == rover:
            return visited


def _free_facts(guest: GuestHeap, heap: _Heap, block: int) -> dict[str, int | str]:
    page = heap.page_of(block)
    neighbours = sum(heap.kind(beside) == _FREE for beside in (page - 1, page + 1))
    if heap.kind(page) == _USED:
        return {"free neighbours": neighbours}
    nodes = _fragments(guest, heap, heap.kind(page))
    head = heap.control + _LISTS_AT + _FRAGMENT_LINK_BYTES * heap.kind(page)
    ring = [head, *nodes, head]
    links = sum(
        beside != head and heap.page_of(beside) != page
        for before, node, after in zip(ring, nodes, ring[2:], strict=False)
        if heap.page_of(node) == page
        for beside in (before, after)
    )
    return {
        "free fragments of the page": heap.count(page),
        "free neighbours": neighbours,
        "links to other pages": links,
    }
