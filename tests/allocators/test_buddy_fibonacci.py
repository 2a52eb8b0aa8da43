"""The Fibonacci buddy system: conformance, heaps that are no Fibonacci number, the checker against broken heaps."""

from __future__ import annotations

from functools import partial
from typing import ClassVar

import pytest

from .broken_heaps import CONTROL, Breakage, Tiles, assert_noticed, at, marked_free
from .buddy_conformance import HEADER, MINIMUM, BuddyConformance
from .buddy_models import fibonacci
from .conformance import WORD, Conformance, Host, Subject

(
    NO_HEAP,
    CLASS,
    BITS,
    UNMERGED,
    LIST_ADDRESS,
    LIST_TAG,
    LIST_LINK,
    FREE_COUNT,
    FREE_MEMBERS,
) = range(1, 10)
"""enum buddy_fibonacci_violation."""

TAG, NEXT, PREV = range(3)
# 24 blocks are roots of 21 and 3. The first 8 are of classes 1 0 1 1 0 1 0 1: 1 and 4 are the buddies of 0 and 3.
# In the list of class 1 stand blocks 8, 5 and 3, in this order; all others are in use.
FREED = (3, 5, 8)
BROKEN = (
    Breakage("no heap", NO_HEAP, ((CONTROL, 0, 0),)),
    Breakage("class too small", CLASS, ((0, TAG, 0),)),
    Breakage("class too large", CLASS, ((1, TAG, 3 << 3),)),
    Breakage("left child marked right", BITS, ((1, TAG, 0),)),
    Breakage("inherited bit lost", BITS, ((3, TAG, 1 << 3 | 1),)),
    Breakage("buddies both free", UNMERGED, (marked_free(4),)),
    Breakage("link into a block", LIST_ADDRESS, ((5, NEXT, at(3, WORD)),)),
    Breakage("link out of the heap", LIST_ADDRESS, ((5, NEXT, at(24)),)),
    Breakage("used block in a list", LIST_TAG, ((5, NEXT, at(2)),)),
    Breakage("back link cleared", LIST_LINK, ((5, PREV, 0),)),
    Breakage("cycle", LIST_LINK, ((3, NEXT, at(8)),)),
    Breakage("list lost", FREE_COUNT, ((CONTROL, 5, 0),)),
    Breakage("another block free", FREE_MEMBERS, ((0, TAG, 4 << 3), marked_free(7))),
)


class TestBuddyFibonacci(BuddyConformance):
    subject: ClassVar[Subject] = Subject("buddy-fibonacci", model=fibonacci)

    @pytest.mark.parametrize(
        ("units", "roots"),
        [(2, [2]), (4, [3, 1]), (12, [8, 3, 1]), (233, [233]), (232, [144, 55, 21, 8, 3, 1]), (256, [233, 21, 2])],
    )
    def test_roots_are_zeckendorfs(self, host: Host, units: int, roots: list[int]) -> None:
        assert host.init(units * MINIMUM + HEADER) == 0
        assert host.check() == 0
        offset = 0
        for root in roots:
            assert host.malloc(root * MINIMUM - HEADER) == offset * MINIMUM + HEADER
            offset += root
        assert host.malloc(1) is None
        for root in roots:
            offset -= root
            host.free(sum(roots[: roots.index(root)]) * MINIMUM + HEADER)
            assert host.check() == 0
        assert host.malloc(roots[0] * MINIMUM - HEADER) == HEADER

    @pytest.mark.parametrize("breakage", BROKEN, ids=lambda breakage: breakage.name)
    def test_the_checker_notices(self, host: Host, breakage: Breakage) -> None:
        assert_noticed(Tiles(host, "buddy_fibonacci_control", MINIMUM), 24 * MINIMUM, FREED, breakage)


class TestBuddyFibonacciFollowsLarger(Conformance):
    subject: ClassVar[Subject] = Subject(
        "buddy-fibonacci", {"follow": 1, "alignment": 4}, model=partial(fibonacci, follow=1, alignment=4)
    )
