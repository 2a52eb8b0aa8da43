"""djgpp-tags: conformance against a model with a break, lists and the rest of the last split; broken heaps."""

from __future__ import annotations

import ctypes

import pytest

from .broken_heaps import CONTROL, Breakage, Tiles
from .conformance import HEAP, WORD, Conformance, Host, Subject
from .tagged_models import Block, Tagged

NO_HEAP, LOWER_FENCE, SIZE_ALIGNMENT, SIZE_MINIMUM, CHAIN_END, FOOTER, ADJACENT_FREE, UPPER_FENCE = range(1, 9)
BREAK, LIST_ADDRESS, LIST_FREE_BIT, LIST_BUCKET, LIST_LENGTH, FREE_BLOCKS = range(9, 15)
"""enum djgpp_tags_violation."""

FREED = (1, 3, 5)
"""In one list stand blocks 5, 3 and 1, in this order; the last block is the rest; all others are in use."""
FREE_BIT, FIRST, BRK, REST, HEADS = 1, 0, 1, 3, 4
HEADER, LINK = range(2)
LEAST = 4 * WORD


class TaggedTiles(Tiles):
    """Equal blocks side by side from one word on."""

    def address(self, block: int, extra: int = 0) -> int:
        return self.host.arena + WORD + block * self.tile + extra

    def word(self, block: int, index: int) -> ctypes.c_size_t:
        """All words of the control structure, bins included."""
        if block != CONTROL:
            return super().word(block, index)
        control = ctypes.addressof(ctypes.c_size_t.in_dll(self.host.library, self.control))
        return ctypes.c_size_t.from_address(control + index * WORD)

    def set(self, block: int, index: int, value: int) -> None:
        self.word(block, index).value = value


def head(tile: int) -> int:
    """The head of the list for a block of ``tile`` bytes, in words of the control structure."""
    return HEADS + tile.bit_length() - 1


def breakages(tile: int) -> tuple[Breakage, ...]:
    """Of a heap of blocks of ``tile`` bytes: what is wrong with chain, break, lists or rest."""
    footer = tile // WORD - 1
    used, free = tile, tile | FREE_BIT
    return (
        Breakage("no heap", NO_HEAP, ((CONTROL, FIRST, 0),)),
        Breakage("lower fence", LOWER_FENCE, ((0, -1, 8),)),
        Breakage("a size that is not aligned", SIZE_ALIGNMENT, ((0, HEADER, used + 2),)),
        Breakage("a size below the least", SIZE_MINIMUM, ((0, HEADER, 0),)),
        Breakage("a block beyond the break", CHAIN_END, ((0, HEADER, 2 * HEAP),)),
        Breakage("a footer that differs", FOOTER, ((2, footer, free),)),
        Breakage("neighbours that are both free", ADJACENT_FREE, ((2, HEADER, free), (2, footer, free))),
        Breakage("break below the heap", BREAK, ((CONTROL, BRK, lambda tiles: tiles.address(0) - WORD),)),
        Breakage("break beyond the arena", BREAK, ((CONTROL, BRK, lambda tiles: tiles.host.arena + 2 * HEAP),)),
        Breakage("break that is not aligned", BREAK, ((CONTROL, BRK, lambda tiles: tiles.address(4) + WORD),)),
        Breakage("break within the heap", UPPER_FENCE, ((CONTROL, BRK, lambda tiles: tiles.address(4)),)),
        Breakage("link out of the heap", LIST_ADDRESS, ((3, LINK, lambda tiles: tiles.host.arena + 2 * HEAP),)),
        Breakage("link into a block", LIST_ADDRESS, ((3, LINK, lambda tiles: tiles.address(1, 2 * WORD)),)),
        Breakage("link to a used block", LIST_FREE_BIT, ((3, LINK, lambda tiles: tiles.address(2, WORD)),)),
        Breakage("rest out of the heap", LIST_ADDRESS, ((CONTROL, REST, lambda tiles: tiles.host.arena + 2 * HEAP),)),
        Breakage("rest that is in use", LIST_FREE_BIT, ((CONTROL, REST, lambda tiles: tiles.address(2)),)),
        Breakage("cycle", LIST_LENGTH, ((1, LINK, lambda tiles: tiles.address(5, WORD)),)),
        Breakage("list cut short", FREE_BLOCKS, ((3, LINK, 0),)),
        Breakage("rest forgotten", FREE_BLOCKS, ((CONTROL, REST, 0),)),
        Breakage("rest that is in a list", FREE_BLOCKS, ((CONTROL, REST, lambda tiles: tiles.address(3)),)),
        Breakage(
            "list under another head",
            LIST_BUCKET,
            ((CONTROL, head(tile), 0), (CONTROL, head(tile) - 1, lambda tiles: tiles.address(5, WORD))),
        ),
    )


def assert_noticed(host: Host, control: str, tile: int, breakage: Breakage) -> None:
    """Equal blocks, three of them freed: the checker notices what is then overwritten, and nothing before."""
    tiles = TaggedTiles(host, control, tile)
    assert host.init(HEAP) == 0
    payloads = [host.malloc(tile - 2 * WORD) for _ in range(8)]
    assert payloads == [2 * WORD + tile * number for number in range(8)]
    for block in FREED:
        host.free(payloads[block])
    assert host.check() == 0
    for block, index, value in breakage.words:
        tiles.set(block, index, value if isinstance(value, int) else value(tiles))
    assert host.check() == breakage.violation
    assert host.init(HEAP) == 0
    assert host.check() == 0


class DjgppTags(Tagged):
    def __init__(self, heap_bytes: int, word_bytes: int) -> None:
        self.lists: list[list[Block]] = [[] for _ in range(28)]
        self.rest: Block | None = None
        super().__init__(heap_bytes, word_bytes)
        self.lists = [[] for _ in range(28)]
        self.blocks.clear()
        self.brk, self.end = word_bytes, heap_bytes - word_bytes

    def insert(self, block: Block) -> None:
        self.lists[block.size.bit_length() - 1].insert(0, block)

    def remove(self, block: Block) -> None:
        if block is self.rest:
            self.rest = None
        else:
            self.lists[block.size.bit_length() - 1].remove(block)

    def find(self, size: int) -> Block | None:
        if self.rest and self.rest.size >= size:
            return self.rest
        candidates = (block for blocks in self.lists[size.bit_length() - 1 :] for block in blocks)
        return next((block for block in candidates if block.size >= size), None) or self.grow(size)

    def grow(self, size: int) -> Block | None:
        top = self.blocks[-1] if self.blocks and self.blocks[-1].free else None
        more, left = size - (top.size if top else 0), self.end - self.brk
        if more > left:
            return None
        more = min(left, max(more, 4096))
        if top:
            self.remove(top)
            top.size += more
        else:
            top = Block(self.brk, more, free=True)
            self.blocks.append(top)
        self.brk += more
        self.insert(top)
        return top

    def malloc(self, size: int) -> int | None:
        if not 0 < size <= self.end - self.word:
            return None
        needed = max(-(-(size + 2 * self.word) // self.alignment) * self.alignment, self.minimum)
        block = self.find(needed)
        if block is None:
            return None
        self.remove(block)
        block.free = False
        spare = block.size - needed
        if spare >= self.minimum:
            block.size = needed
            if self.rest:
                self.insert(self.rest)
            self.rest = Block(block.offset + needed, spare, free=True)
            self.blocks.insert(self.blocks.index(block) + 1, self.rest)
        return block.offset + self.word


class FreshHost(Host):
    """Fresh again after the largest request was looked for, which has moved the break."""

    def largest(self) -> int:
        size = super().largest()
        assert self.init_at(self.arena, self.heap_bytes) == 0
        return size


class TestDjgppTags(Conformance):
    subject = Subject("djgpp-tags", {"chunk": 4096}, model=DjgppTags)

    @pytest.fixture(scope="class")
    @classmethod
    def host(cls, tmp_path_factory: pytest.TempPathFactory) -> Host:
        return FreshHost(cls.subject, tmp_path_factory.mktemp(cls.subject.name))

    @pytest.mark.parametrize("breakage", breakages(LEAST), ids=lambda breakage: breakage.name)
    def test_the_checker_notices(self, host: Host, breakage: Breakage) -> None:
        assert_noticed(host, "djgpp_tags_control", LEAST, breakage)
