"""djgpp-cached: conformance against djgpp-tags' model with bins and close fits; the checker against broken heaps."""

from __future__ import annotations

import pytest

from .broken_heaps import CONTROL, Breakage
from .conformance import HEAP, WORD, Conformance, Host, Subject
from .tagged_models import Block
from .test_djgpp_tags import DjgppTags, FreshHost, TaggedTiles, assert_noticed, breakages, head

KEPT_BUCKET, BIN_ADDRESS, BIN_SIZE, BIN_FOOTER, BIN_LENGTH = range(15, 20)
"""enum djgpp_tags_violation's last, and enum djgpp_cached_violation."""

CACHED = "djgpp_cached_control"
LEAST, SMALL = 4 * WORD, 16 * WORD
BINS = 4 + 28
HEADER, LINK, KEPT = range(3)
BINNED = (1, 3, 5)
"""In the bin of the least blocks stand blocks 5, 3 and 1, in this order."""


class DjgppCached(DjgppTags):
    def __init__(self, heap_bytes: int, word_bytes: int) -> None:
        self.bins: dict[int, list[int]] = {}
        super().__init__(heap_bytes, word_bytes)
        self.small = 16 * word_bytes

    def find(self, size: int) -> Block | None:
        if self.rest and self.rest.size >= size:
            return self.rest
        close = (block for block in self.lists[size.bit_length() - 1] if size <= block.size <= size * 5 // 4)
        return next(close, None) or super().find(size)

    def malloc(self, size: int) -> int | None:
        needed = max(-(-(size + 2 * self.word) // self.alignment) * self.alignment, self.minimum)
        if size > 0 and self.bins.get(needed):
            return self.bins[needed].pop()
        return super().malloc(size)

    def free(self, offset: int) -> None:
        size = next(block.size for block in self.blocks if block.offset + self.word == offset)
        if size < self.small:
            self.bins.setdefault(size, []).append(offset)
        else:
            super().free(offset)


BROKEN = (
    Breakage("bin leads out of the heap", BIN_ADDRESS, ((3, LINK, lambda tiles: tiles.host.arena + 2 * HEAP),)),
    Breakage("bin leads into a block", BIN_ADDRESS, ((3, LINK, lambda tiles: tiles.address(1, 2 * WORD)),)),
    Breakage("block in another bin", BIN_SIZE, ((CONTROL, BINS + 1, lambda tiles: tiles.address(0, WORD)),)),
    Breakage("free block in a bin", BIN_SIZE, ((1, LINK, lambda tiles: tiles.address(8, WORD)),)),
    Breakage(
        "no block in a bin",
        BIN_FOOTER,
        ((6, 2, LEAST), (1, LINK, lambda tiles: tiles.address(6, 3 * WORD))),
    ),
    Breakage("cycle in a bin", BIN_LENGTH, ((1, LINK, lambda tiles: tiles.address(5, WORD)),)),
)


class TestDjgppCached(Conformance):
    subject = Subject("djgpp-cached", {"chunk": 4096}, coalesces=False, model=DjgppCached)

    @pytest.fixture(scope="class")
    @classmethod
    def host(cls, tmp_path_factory: pytest.TempPathFactory) -> Host:
        return FreshHost(cls.subject, tmp_path_factory.mktemp(cls.subject.name))

    def test_what_was_served_once_is_served_again(self, host: Host) -> None:
        """Not the largest request, once a small block waits in its bin."""
        for size in (1, SMALL - 2 * WORD, host.largest()):
            client = self.client(host, HEAP)
            for _ in range(2):
                offset = client.malloc(size)
                assert offset is not None
                client.free(offset)

    def test_small_blocks_stay_apart_and_others_merge(self, host: Host) -> None:
        for size, merges in ((SMALL - 2 * WORD, True), (SMALL - 4 * WORD, False)):
            client = self.client(host, HEAP)
            offsets = [client.malloc(size) for _ in range(4)]
            for offset in offsets[:2]:
                assert offset is not None
                client.free(offset)
            assert client.malloc(HEAP - 16 * SMALL) is not None
            while client.malloc(SMALL) is not None:
                pass
            assert (client.live.get(offsets[0] or 0) == SMALL) is merges

    def test_a_close_fit_goes_before_a_loose_one(self, host: Host) -> None:
        """The loose one is the head of the list."""
        client = self.client(host, HEAP)
        close, _, loose, _ = (client.malloc(words * WORD - 2 * WORD) for words in (20, 4, 28, 4))
        while client.malloc(1) is not None:
            pass
        assert close is not None
        assert loose is not None
        client.free(close)
        client.free(loose)
        assert client.malloc(18 * WORD - 2 * WORD) == close

    @pytest.mark.parametrize("breakage", breakages(SMALL), ids=lambda breakage: breakage.name)
    def test_the_checker_notices(self, host: Host, breakage: Breakage) -> None:
        assert_noticed(host, CACHED, SMALL, breakage)

    def test_the_checker_notices_a_kept_bucket_that_is_wrong(self, host: Host) -> None:
        wrong = Breakage("kept bucket", KEPT_BUCKET, ((3, KEPT, head(SMALL)),))
        assert_noticed(host, CACHED, SMALL, wrong)

    @pytest.mark.parametrize("breakage", BROKEN, ids=lambda breakage: breakage.name)
    def test_the_checker_notices_a_broken_bin(self, host: Host, breakage: Breakage) -> None:
        assert_noticed(host, CACHED, LEAST, breakage)

    def test_bins_are_no_longer_than_the_used_blocks(self, host: Host) -> None:
        """A heap whose only used blocks are in the bin: the sound one is as long as can be."""
        assert host.init(HEAP) == 0
        for offset in host.fill():
            host.free(offset)
        assert host.check() == 0
        tiles = TaggedTiles(host, CACHED, LEAST)
        tiles.set(0, LINK, tiles.address(1, WORD))
        assert host.check() == BIN_LENGTH
