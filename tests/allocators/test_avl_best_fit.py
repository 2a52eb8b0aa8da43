"""AVL best fit: what every allocator must do, the block it must choose, a checker that can fail, no recursion."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from wcet_probe.catalog.lookup import load_allocator

from .conformance import WORD, Conformance, Host, Subject

HEADER, LEAST, TALL_RIGHT, BALANCED = 2 * WORD, 4 * WORD, 3, 1


class Model:
    """Best fit, of several the lowest: a list of blocks in address order, without any tree."""

    def __init__(
        self, heap_bytes: int, word_bytes: int, granule: int = 8, minimum: int = 16, threshold: int = 16
    ) -> None:
        scale = word_bytes // 4
        self.unit, self.header, self.minimum = granule * scale, 2 * word_bytes, minimum * scale
        self.rest = max(minimum, threshold) * scale
        self.blocks = [(0, (heap_bytes - self.header) // self.unit * self.unit, True)]

    def malloc(self, size: int) -> int | None:
        if size == 0:
            return None
        size = max(self.minimum, -(-(size + self.header) // self.unit) * self.unit)
        fits = [(bytes_, offset) for offset, bytes_, free in self.blocks if free and bytes_ >= size]
        if not fits:
            return None
        found, offset = min(fits)
        size = size if found - size >= self.rest else found
        at = self.blocks.index((offset, found, True))
        self.blocks[at : at + 1] = [(offset, size, False)] + [(offset + size, found - size, True)] * (found > size)
        return offset + self.header

    def free(self, payload: int) -> None:
        at = next(i for i, block in enumerate(self.blocks) if block[0] == payload - self.header)
        self.blocks[at] = (*self.blocks[at][:2], True)
        for first in (at, at - 1):
            pair = self.blocks[first : first + 2] if first >= 0 else []
            if len(pair) == 2 and pair[0][2] and pair[1][2]:
                self.blocks[first : first + 2] = [(pair[0][0], pair[0][1] + pair[1][1], True)]


class TestAvlBestFit(Conformance):
    subject = Subject("avl-best-fit", model=Model)


class TestOtherSizes(Conformance):
    subject = Subject(
        "avl-best-fit",
        {"minimum-block": 24, "split-threshold": 64, "alignment": 4, "granule": 4},
        model=lambda heap, word: Model(heap, word, 4, 24, 64),
    )
    # The manifest's least heap is that of the least block of 16 bytes.
    test_least_heap = None  # type: ignore[assignment]


# --------------------------------------------------------------------------------------------- the checker can fail


class Control(ctypes.Structure):
    """struct avl_best_fit_control."""

    _fields_ = (
        ("header", 2 * ctypes.c_size_t),  # of the head, as both links
        ("root", ctypes.c_size_t),
        ("unused", ctypes.c_size_t),
        ("first", ctypes.c_size_t),
        ("sentinel", ctypes.c_size_t),
    )


class Block(ctypes.Structure):
    """struct avl_best_fit_block."""

    _fields_ = (
        ("tag", ctypes.c_size_t),
        ("prev", ctypes.c_size_t),
        ("left", ctypes.c_size_t),
        ("right", ctypes.c_size_t),
    )


class Tree:
    """Least blocks a to g, of which b, d and f are free, and the large rest: d is the root above b and the rest, f is
    the rest's left child."""

    def __init__(self, host: Host) -> None:
        assert host.init(4096) == 0
        self.control = Control.in_dll(host.library, "avl_best_fit_control")
        offsets = [host.malloc(1) for _ in range(7)]
        self.a, self.b, self.c, self.d, self.e, self.f, self.g = (self.block(o or 0) for o in offsets)
        self.inside = self.block((host.malloc(200) or 0) + LEAST)
        for at in (1, 3, 5):
            host.free(offsets[at])
        self.rest = Block.from_address(self.d.right)
        self.sentinel = Block.from_address(self.control.sentinel)
        assert self.rest.left == ctypes.addressof(self.f)

    def block(self, payload: int) -> Block:
        return Block.from_address(self.control.first + payload - HEADER)


def spoil_members(tree: Tree) -> None:
    """f is replaced by what looks like a free block inside a used one."""
    tree.inside.tag, tree.inside.left, tree.inside.right = LEAST | BALANCED, 0, 0
    tree.rest.left = ctypes.addressof(tree.inside)


def spoil_count(tree: Tree) -> None:
    tree.rest.left, tree.rest.tag, tree.d.tag = 0, tree.rest.tag & ~3 | BALANCED, LEAST | BALANCED


def set_(name: str, member: str, value: Callable[[Tree], int]) -> Callable[[Tree], None]:
    return lambda tree: setattr(getattr(tree, name), member, value(tree))


SPOILS: list[tuple[int, str, Callable[[Tree], None]]] = [
    (1, "no heap", set_("control", "first", lambda _: 0)),
    (2, "previous block", set_("c", "prev", lambda t: t.c.prev + LEAST)),
    (2, "before the sentinel", set_("sentinel", "prev", lambda _: 0)),
    (3, "size alignment", set_("c", "tag", lambda _: LEAST + 4)),
    (4, "size minimum", set_("c", "tag", lambda _: 0)),
    (5, "chain end", set_("c", "tag", lambda _: 1 << 20)),
    (6, "free neighbours", set_("c", "tag", lambda _: LEAST | BALANCED)),
    (7, "sentinel", set_("sentinel", "tag", lambda _: BALANCED)),
    (8, "a cycle", set_("b", "left", lambda t: t.control.root)),
    (9, "a child between blocks", set_("b", "left", lambda t: t.control.first + 4)),
    (9, "a child below the heap", set_("b", "left", lambda t: t.control.first - LEAST)),
    (9, "a child above the heap", set_("b", "left", lambda t: t.control.sentinel)),
    (10, "a used child", set_("b", "left", lambda t: t.control.first)),
    (11, "order", lambda t: (setattr(t.d, "left", t.d.right), None)[1]),
    (12, "state", set_("d", "tag", lambda _: LEAST | BALANCED)),
    (12, "state of a leaf", set_("b", "tag", lambda _: LEAST | TALL_RIGHT)),
    (12, "heights", set_("d", "left", lambda _: 0)),
    (13, "count", spoil_count),
    (14, "members", spoil_members),
]


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Host:
    return Host(Subject("avl-best-fit"), tmp_path_factory.mktemp("avl-best-fit"))


@pytest.fixture
def tree(host: Host) -> Iterator[Tree]:
    yield (tree := Tree(host))
    ctypes.memset(ctypes.addressof(tree.control), 0, ctypes.sizeof(tree.control))


def test_before_init(tmp_path: Path) -> None:
    host = Host(Subject("avl-best-fit"), tmp_path)
    assert host.check() == 1
    assert host._malloc(1) is None


@pytest.mark.parametrize(("violation", "spoil"), [(v, s) for v, _, s in SPOILS], ids=[name for _, name, _ in SPOILS])
def test_every_violation_is_found(host: Host, tree: Tree, violation: int, spoil: Callable[[Tree], None]) -> None:
    assert host.check() == 0
    spoil(tree)
    assert host.check() == violation


def test_every_violation_is_listed() -> None:
    """The codes above are those of the header, in its order."""
    header = dict(load_allocator("avl-best-fit").sources)["avl_best_fit.h"]
    listed = header.split("enum avl_best_fit_violation {")[1].split("}")[0].count("AVL_BEST_FIT_")
    assert {violation for violation, _, _ in SPOILS} == set(range(1, listed))
