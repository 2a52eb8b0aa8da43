"""Fast-fit: conformance, the model, the checker against broken heaps."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import pytest

from .conformance import WORD, Conformance, Host, Subject

HEAP_LIMIT = 1 << 28
NO_HEAP, BLOCK_SIZE, CHAIN_END, NEIGHBOURS, LINK, ADDRESS, HEAP_ORDER, ORDER, MEMBERS = range(1, 10)
"""enum fast_fit_violation."""


@dataclass(eq=False)
class Node:
    """A free block."""

    offset: int
    size: int
    left: Node | None = None
    right: Node | None = None


def merge(left: Node | None, right: Node | None) -> Node | None:
    """One tree of two, of which the left one lies below the right one."""
    if left is None or right is None:
        return left or right
    if left.size >= right.size:
        left.right = merge(left.right, right)
        return left
    right.left = merge(left, right.left)
    return right


def split(tree: Node | None, offset: int) -> tuple[Node | None, Node | None]:
    if tree is None:
        return None, None
    if tree.offset < offset:
        tree.right, above = split(tree.right, offset)
        return tree, above
    below, tree.left = split(tree.left, offset)
    return below, tree


def inserted(tree: Node | None, node: Node) -> Node:
    if tree is None or tree.size <= node.size:
        node.left, node.right = split(tree, node.offset)
        return node
    if node.offset < tree.offset:
        tree.left = inserted(tree.left, node)
    else:
        tree.right = inserted(tree.right, node)
    return tree


def removed(tree: Node | None, node: Node) -> Node | None:
    assert tree is not None
    if tree is node:
        return merge(node.left, node.right)
    if node.offset < tree.offset:
        tree.left = removed(tree.left, node)
    else:
        tree.right = removed(tree.right, node)
    return tree


def nodes(tree: Node | None) -> Iterator[Node]:
    if tree is not None:
        yield from nodes(tree.left)
        yield tree
        yield from nodes(tree.right)


class FastFit:
    """The tree as a recursive specification. Neighbours are found by looking at all free blocks."""

    def __init__(
        self,
        heap_bytes: int,
        word_bytes: int,
        *,
        alignment: int = 8,
        granule: int = 8,
        minimum: int = 16,
        threshold: int = 16,
    ) -> None:
        self.word = word_bytes
        scale = word_bytes // 4
        self.granule, self.minimum = granule * scale, minimum * scale
        self.threshold = max(threshold, minimum) * scale
        first = alignment * scale - self.word
        self.root: Node | None = Node(first, (heap_bytes - first) // self.granule * self.granule)
        self.used: dict[int, int] = {}

    def malloc(self, size: int) -> int | None:
        needed = max(-(-(size + self.word) // self.granule) * self.granule, self.minimum)
        node = self.root
        if node is None or node.size < needed or not 0 < size <= HEAP_LIMIT:
            return None
        while fits := [child for child in (node.left, node.right) if child and child.size >= needed]:
            node = min(fits, key=lambda child: child.size)
        self.root = removed(self.root, node)
        start, rest = node.offset, node.size - needed
        if rest >= self.threshold:
            self.root = inserted(self.root, Node(start, rest))
            start += rest
        else:
            needed += rest
        self.used[start] = needed
        return start + self.word

    def free(self, offset: int) -> None:
        start = offset - self.word
        end = start + self.used.pop(start)
        neighbours = [node for node in nodes(self.root) if node.offset + node.size == start or node.offset == end]
        for node in neighbours:
            self.root = removed(self.root, node)
        low = min([start, *(node.offset for node in neighbours)])
        high = max([end, *(node.offset + node.size for node in neighbours)])
        merged = Node(low, high - low)
        self.root = inserted(self.root, merged)


class Broken:
    """A heap with three free blocks: what is left is the root, its right child the middle one, then the upper one."""

    def __init__(self, host: Host) -> None:
        self.host = host
        host.init(4096)
        upper_used, upper, self.used, middle, lower_used = (host.malloc(88) for _ in range(5))
        assert None not in (upper_used, upper, self.used, middle, lower_used)
        self.top, self.upper, self.middle, self.root = upper_used, upper, middle, 2 * WORD
        host.free(upper)
        host.free(middle)
        assert host.check() == 0

    def poke(self, payload: int, word: int, value: int) -> None:
        """Write a word of a block: 0 for its header, 1 and 2 for its links."""
        ctypes.c_size_t.from_address(self.host.arena + payload + (word - 1) * WORD).value = value

    def link(self, payload: int, word: int, target: int) -> None:
        self.poke(payload, word, self.host.arena + target - WORD)

    def control(self, word: int, value: int) -> None:
        (ctypes.c_size_t * 3).in_dll(self.host.library, "fast_fit_control")[word] = value


BREAKAGES = {
    "no heap": (NO_HEAP, lambda b: b.control(0, 0)),
    "size zero": (BLOCK_SIZE, lambda b: b.poke(b.used, 0, 1)),
    "size below the least": (BLOCK_SIZE, lambda b: b.poke(b.used, 0, 16 | 1)),
    "unknown flag": (BLOCK_SIZE, lambda b: b.poke(b.used, 0, 96 | 3)),
    "beyond the end": (CHAIN_END, lambda b: b.poke(b.top, 0, 128 | 1)),
    "used block marked free": (NEIGHBOURS, lambda b: b.poke(b.used, 0, 96)),
    "root in use": (LINK, lambda b: b.control(2, b.host.arena + b.used - WORD)),
    "link above the arena": (LINK, lambda b: b.link(b.middle, 2, 8192)),
    "link below the arena": (LINK, lambda b: b.link(b.middle, 1, -8192)),
    "link misaligned": (LINK, lambda b: b.link(b.middle, 2, b.upper + 1)),
    "left child above": (ADDRESS, lambda b: b.link(b.middle, 1, b.upper)),
    "right child below": (ADDRESS, lambda b: b.link(b.upper, 2, b.middle)),
    "cycle of one": (ADDRESS, lambda b: b.link(b.upper, 2, b.upper)),
    "child larger": (HEAP_ORDER, lambda b: b.link(b.upper, 1, b.root)),
    "no root": (ORDER, lambda b: b.control(2, 0)),
    "other root": (ORDER, lambda b: b.control(2, b.host.arena + b.middle - WORD)),
    "block lost": (ORDER, lambda b: b.poke(b.middle, 2, 0)),
    "child of two": (ORDER, lambda b: b.link(b.upper, 1, b.middle)),
    "left of the first": (ADDRESS, lambda b: b.link(b.root, 1, b.middle)),
    "parent lost": (MEMBERS, lambda b: (b.poke(b.middle, 2, 0), b.link(b.upper, 1, b.middle))),
}


class TestFastFit(Conformance):
    subject = Subject("fast-fit", model=FastFit, too_large_bytes=HEAP_LIMIT + 16)

    @pytest.mark.parametrize("name", BREAKAGES)
    def test_check_names_the_violation(self, host: Host, name: str) -> None:
        violation, breaks = BREAKAGES[name]
        breaks(Broken(host))
        before = host.contents()
        assert host.check() == violation
        assert host.contents() == before

    def test_every_violation_is_tested(self) -> None:
        assert {violation for violation, _ in BREAKAGES.values()} == set(range(1, 10))

    def test_order_is_checked_where_no_block_is_free(self, host: Host) -> None:
        host.init(4096)
        while host.malloc(1) is not None:
            pass
        assert host.check() == 0


class TestFastFitOfP02(Conformance):
    subject = Subject(
        "fast-fit",
        {"alignment": 4, "granule": 4, "minimum-block": 12, "split-threshold": 12},
        model=partial(FastFit, alignment=4, granule=4, minimum=12, threshold=12),
        too_large_bytes=HEAP_LIMIT + 16,
    )


class TestFastFitOfWords(Conformance):
    """Payloads as well as sizes are multiples of the alignment only: nodes may lie in two lines."""

    subject = Subject("fast-fit", {"granule": 4}, model=partial(FastFit, granule=8), too_large_bytes=HEAP_LIMIT + 16)
