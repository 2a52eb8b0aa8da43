"""Kingsley's allocator: conformance of what never coalesces, the checker against broken heaps."""

from __future__ import annotations

from functools import partial
from typing import ClassVar

import pytest

from .broken_heaps import CONTROL, Breakage, Tiles, assert_noticed, at, marked_free
from .buddy_models import kingsley
from .conformance import HEAP, WORD, Conformance, Host, Subject

(
    NO_HEAP,
    BUCKET,
    PLACE,
    PAGE,
    LIST_ADDRESS,
    LIST_TAG,
    LIST_LENGTH,
    LIST_MEMBERS,
) = range(1, 9)
"""enum kingsley_violation."""

HEADER, MINIMUM = 2 * WORD, 4 * WORD
PAGE_BYTES = 1024
PAGE_BLOCKS = PAGE_BYTES // MINIMUM
PAGE_BUCKET = PAGE_BLOCKS.bit_length() - 1
TAG, NEXT = range(2)
# In the smallest bucket stand blocks 5, 3 and 1, in this order; all others are in use.
FREED = (1, 3, 5)
BROKEN = (
    Breakage("no heap", NO_HEAP, ((CONTROL, 0, 0),)),
    Breakage("no such bucket", BUCKET, ((0, TAG, 2 * 40),)),
    Breakage("block at no multiple of its size", PLACE, ((1, TAG, 2),)),
    Breakage("block beyond the top", PLACE, ((0, TAG, 2 * (PAGE_BUCKET + 3)),)),
    Breakage("two buckets in a page", PAGE, ((2, TAG, 2),)),
    Breakage("link into a block", LIST_ADDRESS, ((3, NEXT, at(1, WORD)),)),
    Breakage("link out of the heap", LIST_ADDRESS, ((3, NEXT, at(4 * PAGE_BLOCKS)),)),
    Breakage("used block in a list", LIST_TAG, ((3, NEXT, at(2)),)),
    Breakage("cycle", LIST_LENGTH, ((1, NEXT, at(5)),)),
    Breakage("list lost", LIST_LENGTH, ((CONTROL, 4, 0),)),
    Breakage(
        "a block within a block",
        LIST_MEMBERS,
        (
            (PAGE_BLOCKS, TAG, 2 * PAGE_BUCKET),
            (PAGE_BLOCKS + 1, NEXT, 0),
            marked_free(PAGE_BLOCKS + 1),
            (3, NEXT, at(PAGE_BLOCKS + 1)),
        ),
    ),
)


class KingsleyHost(Host):
    """The host's heap, fresh again after the largest request was looked for: what was carved stays carved."""

    def largest(self) -> int:
        size = super().largest()
        assert self.init_at(self.arena, self.heap_bytes) == 0
        return size


class Kingsley(Conformance):
    @pytest.fixture(scope="class")
    @classmethod
    def host(cls, tmp_path_factory: pytest.TempPathFactory) -> Host:
        return KingsleyHost(cls.subject, tmp_path_factory.mktemp(cls.subject.name))

    def test_what_was_served_once_is_served_again(self, host: Host) -> None:
        for size in (1, HEAP - HEADER):
            client = self.client(host, HEAP)
            for _ in range(2):
                offset = client.malloc(size)
                assert offset is not None
                client.free(offset)
        assert host.malloc(1) is None

    def test_a_page_stays_in_its_bucket(self, host: Host) -> None:
        client = self.client(host, HEAP)
        while client.malloc(1) is not None:
            pass
        for offset in sorted(client.live):
            client.free(offset)
        assert client.malloc(200) is None
        assert client.malloc(1) is not None


class TestKingsley(Kingsley):
    subject: ClassVar[Subject] = Subject("kingsley", {"page": PAGE_BYTES}, coalesces=False, model=kingsley)

    @pytest.mark.parametrize("breakage", BROKEN, ids=lambda breakage: breakage.name)
    def test_the_checker_notices(self, host: Host, breakage: Breakage) -> None:
        assert_noticed(Tiles(host, "kingsley_control", MINIMUM), 4 * PAGE_BYTES, FREED, breakage)


class TestKingsleyL11(Kingsley):
    subject: ClassVar[Subject] = Subject(
        "kingsley",
        {"page": PAGE_BYTES, "minimum-block": 8, "alignment": 4},
        coalesces=False,
        model=partial(kingsley, minimum=8, alignment=4),
    )
