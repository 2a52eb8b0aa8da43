"""The binary buddy system: conformance, heaps that are no power of two, the checker against broken heaps."""

from __future__ import annotations

from functools import partial
from typing import ClassVar

import pytest

from .broken_heaps import CONTROL, Breakage, Tiles, assert_noticed, at, marked_free
from .buddy_conformance import HEADER, MINIMUM, BuddyConformance
from .buddy_models import binary
from .conformance import WORD, Conformance, Host, Subject

(
    NO_HEAP,
    ORDER,
    PLACE,
    UNMERGED,
    LIST_ADDRESS,
    LIST_TAG,
    LIST_LINK,
    FREE_COUNT,
    FREE_MEMBERS,
) = range(1, 10)
"""enum buddy_binary_violation."""

TAG, NEXT, PREV = range(3)
# In the list of order 0 stand blocks 5, 3 and 1, in this order; all others are in use.
FREED = (1, 3, 5)
BROKEN = (
    Breakage("no heap", NO_HEAP, ((CONTROL, 0, 0),)),
    Breakage("order above the largest", ORDER, ((0, TAG, 2 * 5),)),
    Breakage("block at no multiple of its size", PLACE, ((1, TAG, 2),)),
    Breakage("block beyond the heap", PLACE, ((16, TAG, 2 * 4),)),
    Breakage("buddies both free", UNMERGED, (marked_free(0),)),
    Breakage("link into a block", LIST_ADDRESS, ((3, NEXT, at(1, WORD)),)),
    Breakage("link out of the heap", LIST_ADDRESS, ((3, NEXT, at(24)),)),
    Breakage("used block in a list", LIST_TAG, ((3, NEXT, at(2)),)),
    Breakage("back link cleared", LIST_LINK, ((3, PREV, 0),)),
    Breakage("cycle", LIST_LINK, ((1, NEXT, at(5)),)),
    Breakage("list lost", FREE_COUNT, ((CONTROL, 4, 0),)),
    Breakage("another block free", FREE_MEMBERS, ((0, TAG, 2), marked_free(6))),
)


class TestBuddyBinary(BuddyConformance):
    subject: ClassVar[Subject] = Subject("buddy-binary", model=binary)

    @pytest.mark.parametrize("heap_bytes", [2 * MINIMUM, 1000 * MINIMUM + HEADER, 65536 - HEADER, 1 << 16])
    def test_roots_are_the_bits_of_the_heap(self, host: Host, heap_bytes: int) -> None:
        assert host.init(heap_bytes) == 0
        assert host.check() == 0
        units, offset = heap_bytes // MINIMUM, 0
        for bit in reversed(range(units.bit_length())):
            if units >> bit & 1:
                assert host.malloc((MINIMUM << bit) - HEADER) == offset + HEADER
                offset += MINIMUM << bit
        assert host.malloc(1) is None
        assert host.check() == 0

    @pytest.mark.parametrize("breakage", BROKEN, ids=lambda breakage: breakage.name)
    def test_the_checker_notices(self, host: Host, breakage: Breakage) -> None:
        assert_noticed(Tiles(host, "buddy_binary_control", MINIMUM), 24 * MINIMUM, FREED, breakage)


class TestBuddyBinaryOtherParameters(Conformance):
    subject: ClassVar[Subject] = Subject(
        "buddy-binary", {"alignment": 4, "minimum-block": 32}, model=partial(binary, alignment=4, minimum=32)
    )
