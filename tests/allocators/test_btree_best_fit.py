"""Best-fit in an ordered binary tree: conformance, the model, the checker against broken heaps."""

from __future__ import annotations

from functools import partial

import pytest

from .broken_lists import HEAP_BYTES, SIZE, A, B, Breakage, C, D, assert_noticed, tags
from .conformance import WORD, Conformance, Host, Subject
from .tagged_models import HEAP_LIMIT, Block, Tagged

(
    NO_HEAP,
    FENCE,
    BLOCK_SIZE,
    CHAIN_END,
    FOOTER,
    NEIGHBOURS,
    PATH,
    NODE,
    LIST,
    LIST_LINK,
    LINK_COUNT,
    FREE_COUNT,
) = range(1, 13)
"""enum btree_best_fit_violation."""


class BtreeBestFit(Tagged):
    """One pile of blocks for every size: the node lies at the bottom, the next one to be taken on top."""

    def __init__(self, heap_bytes: int, word_bytes: int, **parameters: int) -> None:
        self.piles: dict[int, list[Block]] = {}
        super().__init__(heap_bytes, word_bytes, **parameters)

    def insert(self, block: Block) -> None:
        self.piles.setdefault(block.size, []).append(block)

    def remove(self, block: Block) -> None:
        pile = self.piles[block.size]
        was_node = pile[0] is block
        pile.remove(block)
        if was_node and pile:
            pile.insert(0, pile.pop())
        if not pile:
            del self.piles[block.size]

    def find(self, size: int) -> Block | None:
        fits = [own for own in self.piles if own >= size]
        return self.piles[min(fits)][-1] if fits else None


# B is a node with D as its member; what is left of the heap is the root, and B its left child.
ROOT = C + 3 * SIZE
NEXT, RIGHT, LEFT = 0, WORD, 2 * WORD
ROOT_OF_CONTROL = 2 * WORD
BROKEN = (
    Breakage("no heap", NO_HEAP, ((0, 0),), in_control=True),
    Breakage("lower fence has a size", FENCE, ((0, 16),)),
    Breakage("upper fence free", FENCE, ((HEAP_BYTES - WORD, 1),)),
    Breakage("unknown flag", BLOCK_SIZE, tags(A, SIZE | 2)),
    Breakage("size zero", BLOCK_SIZE, tags(A, 0)),
    Breakage("beyond the upper fence", CHAIN_END, tags(A, HEAP_BYTES)),
    Breakage("footer differs", FOOTER, tags(A, SIZE + 2 * WORD)[1:]),
    Breakage("used block marked free", NEIGHBOURS, tags(C, SIZE | 1)),
    Breakage("no root", PATH, ((ROOT_OF_CONTROL, 0),), in_control=True),
    Breakage("root outside", PATH, ((ROOT_OF_CONTROL, 2 * HEAP_BYTES),), in_control=True, relative=True),
    Breakage("root below the arena", PATH, ((ROOT_OF_CONTROL, -HEAP_BYTES),), in_control=True, relative=True),
    Breakage("root misaligned", PATH, ((ROOT_OF_CONTROL, B),), in_control=True, relative=True),
    Breakage("root is a member", PATH, ((ROOT_OF_CONTROL, D - WORD),), in_control=True, relative=True),
    Breakage("root in use", PATH, ((ROOT_OF_CONTROL, A - WORD),), in_control=True, relative=True),
    Breakage("node lost", PATH, ((ROOT + LEFT, 0),)),
    Breakage("cycle in the tree", PATH, ((ROOT + LEFT, ROOT - WORD),), relative=True),
    Breakage("two nodes of one size", NODE, ((B + NEXT, 0), (D + RIGHT, 0))),
    Breakage("list leads outside", LIST, ((B + NEXT, HEAP_BYTES),), relative=True),
    Breakage("list leads to another size", LIST, ((B + NEXT, ROOT - WORD),), relative=True),
    Breakage("list leads to a used block", LIST, ((B + NEXT, C - WORD),), relative=True),
    Breakage("cycle of a node", LIST_LINK, ((B + NEXT, B - WORD),), relative=True),
    Breakage("cycle of a member", LIST_LINK, ((D + NEXT, D - WORD),), relative=True),
    Breakage("back link elsewhere", LIST_LINK, ((D + RIGHT, D - WORD + 1),), relative=True),
    Breakage("link too many", LINK_COUNT, ((ROOT + RIGHT, B - WORD),), relative=True),
    Breakage("member lost", FREE_COUNT, ((B + NEXT, 0),)),
)


class TestBtreeBestFit(Conformance):
    subject = Subject("btree-best-fit", model=BtreeBestFit, too_large_bytes=HEAP_LIMIT + 16)

    @pytest.mark.parametrize("breakage", BROKEN, ids=lambda b: b.name)
    def test_check_names_the_violation(self, host: Host, breakage: Breakage) -> None:
        assert_noticed(host, "btree_best_fit_control", breakage)

    def test_every_violation_is_tested(self) -> None:
        assert {breakage.violation for breakage in BROKEN} == set(range(1, 13))


class TestBtreeBestFitOfP02(Conformance):
    subject = Subject(
        "btree-best-fit",
        {"alignment": 4, "minimum-block": 16, "split-threshold": 64},
        model=partial(BtreeBestFit, alignment=4, threshold=64),
        too_large_bytes=HEAP_LIMIT + 16,
    )
