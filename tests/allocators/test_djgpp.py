"""djgpp-sbrk, djgpp-carve and djgpp-quarters: conformance of what never coalesces, the checker against broken heaps."""

from __future__ import annotations

import ctypes
import random
from typing import ClassVar

import pytest

from .broken_heaps import CONTROL, Breakage, Tiles
from .conformance import HEAP, SMALL_HEAP, WORD, Client, Conformance, Host, Subject
from .djgpp_models import model, powers, quarters

NO_HEAP, BREAK, BUCKET, SIZE, LIST_ADDRESS, LIST_BUCKET, LIST_LENGTH = range(1, 8)
"""enum djgpp_violation."""

LEAST = 4 * WORD
HEADER, LINK = range(2)
FREED = (1, 3, 5)
"""In the list of the smallest bucket stand blocks 5, 3 and 1, in this order; all others are in use."""


class DjgppTiles(Tiles):
    """Least blocks side by side from one word on."""

    def address(self, block: int, extra: int = 0) -> int:
        return self.host.arena + WORD + block * self.tile + extra


BROKEN = (
    Breakage("no heap", NO_HEAP, ((CONTROL, 0, 0),)),
    Breakage("break below the arena", BREAK, ((CONTROL, 1, lambda tiles: tiles.address(0) - 8),)),
    Breakage("break above the arena", BREAK, ((CONTROL, 1, lambda tiles: tiles.host.arena + HEAP + 8),)),
    Breakage("bucket below the least", BUCKET, ((0, HEADER, 0),)),
    Breakage("no such bucket", BUCKET, ((0, HEADER, 97),)),
    Breakage("block beyond the break", SIZE, ((200, HEADER, 28),)),
    Breakage("link into a block", LIST_ADDRESS, ((3, LINK, lambda tiles: tiles.address(1, WORD)),)),
    Breakage("link out of the heap", LIST_ADDRESS, ((3, LINK, lambda tiles: tiles.host.arena + 2 * HEAP),)),
    Breakage("cycle", LIST_LENGTH, ((1, LINK, lambda tiles: tiles.address(5)),)),
)


class DjgppHost(Host):
    """The host's heap, fresh again after the largest request was looked for: what was taken stays taken."""

    def largest(self) -> int:
        size = super().largest()
        assert self.init_at(self.arena, self.heap_bytes) == 0
        return size


class Djgpp(Conformance):
    @pytest.fixture(scope="class")
    @classmethod
    def host(cls, tmp_path_factory: pytest.TempPathFactory) -> Host:
        return DjgppHost(cls.subject, tmp_path_factory.mktemp(cls.subject.name))

    def test_the_arena_starts_at_a_multiple_of_the_least_block(self, host: Host) -> None:
        assert host.init(HEAP) == 0
        assert host.init_at(host.arena + LEAST // 2, SMALL_HEAP) != 0
        assert host.init_at(host.arena + LEAST, SMALL_HEAP) == 0

    def test_what_was_served_once_is_served_again(self, host: Host) -> None:
        for size in (1, HEAP // 2 - WORD):
            client = self.client(host, HEAP)
            for _ in range(2):
                offset = client.malloc(size)
                assert offset is not None
                client.free(offset)

    @pytest.mark.parametrize("breakage", BROKEN, ids=lambda breakage: breakage.name)
    def test_the_checker_notices(self, host: Host, breakage: Breakage) -> None:
        tiles = DjgppTiles(host, f"{self.subject.name.replace('-', '_')}_control", LEAST)
        assert host.init(HEAP) == 0
        payloads = sorted(host.fill())
        for block in FREED:
            host.free(payloads[block])
        assert host.check() == 0
        for block, index, value in breakage.words:
            tiles.set(block, index, value if isinstance(value, int) else value(tiles))
        assert host.check() == breakage.violation
        assert host.init(HEAP) == 0
        assert host.check() == 0

    def test_the_checker_notices_a_block_in_a_wrong_list(self, host: Host) -> None:
        assert host.init(HEAP) == 0
        small, large = host.malloc(1), host.malloc(3 * WORD + 1)
        assert small is not None
        assert large is not None
        assert host.malloc(1) is not None
        host.free(small)
        ctypes.c_size_t.from_address(host.arena + small).value = host.arena + large - WORD
        assert host.check() == LIST_BUCKET


class TestSbrk(Djgpp):
    subject: ClassVar[Subject] = Subject("djgpp-sbrk", coalesces=False, model=model(powers))


class TestCarve(Djgpp):
    subject: ClassVar[Subject] = Subject(
        "djgpp-carve", {"chunk": 1024}, coalesces=False, model=model(powers, chunk=1024)
    )


class TestQuarters(Djgpp):
    subject: ClassVar[Subject] = Subject("djgpp-quarters", coalesces=False, model=model(quarters, gives_back=True))

    def test_only_the_topmost_block_is_given_back(self, host: Host) -> None:
        client = self.client(host, HEAP)
        low, middle, top = (client.malloc(40) for _ in range(3))
        assert low is not None
        assert middle is not None
        assert top is not None
        client.free(middle)
        client.free(top)
        assert client.malloc(100) == top
        assert client.malloc(40) == middle


APART = tuple(
    Subject(
        name, {"minimum-block": minimum, "header-apart": 1}, model=model(sizes, minimum, gives_back=back, apart=True)
    )
    for name, sizes, back in (("djgpp-sbrk", powers, False), ("djgpp-quarters", quarters, True))
    for minimum in (8, 16)
)


@pytest.mark.parametrize("subject", APART, ids=lambda one: f"{one.name}-{one.values['minimum-block']}")
def test_with_headers_apart_blocks_lie_where_the_model_has_them(subject, tmp_path):
    """A request of a bucket's size has a block of that size and a word; the heap is sound after each operation."""
    host = DjgppHost(subject, tmp_path)
    for seed in range(4):
        draw = random.Random(seed)
        assert host.init(HEAP) == 0
        client = Client(host, subject.model(HEAP, WORD))
        for _ in range(300):
            if client.live and draw.random() < 0.45:
                client.free(draw.choice(sorted(client.live)))
            else:
                client.malloc(draw.choice((0, draw.randrange(300), 1 << draw.randrange(12))))
    assert host.init(HEAP) == 0
    first, second = host.malloc(256), host.malloc(256)
    assert second - first == 256 + WORD
    host.free(first)
    ctypes.c_size_t.from_address(host.arena + first).value = host.arena + second - WORD + 1
    assert host.check() == LIST_ADDRESS
