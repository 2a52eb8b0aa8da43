"""djgpp-tags: conformance against a model with a break, lists and the rest of the last split."""

from __future__ import annotations

import ctypes

import pytest

from .conformance import HEAP, WORD, Conformance, Host, Subject
from .tagged_models import Block, Tagged

LIST_ADDRESS = 10
"""enum djgpp_tags_violation."""


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

    def test_the_checker_notices_a_link_out_of_the_heap(self, host: Host) -> None:
        assert host.init(HEAP) == 0
        first = host.malloc(40)
        assert host.malloc(40) is not None
        assert first is not None
        host.free(first)
        assert host.check() == 0
        ctypes.c_size_t.from_address(host.arena + first).value = host.arena + 2 * HEAP + WORD
        assert host.check() == LIST_ADDRESS
