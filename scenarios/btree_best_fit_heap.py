"""The heap of best-fit in an ordered binary tree as the guest's memory holds it: blocks, the tree and its walks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from wcet_probe.model.scenario import OperationKind, ScenarioPlan
from wcet_probe.model.target import MemoryRange
from wcet_probe.scenarios.families import Blocks, GuestHeap, chained_blocks
from wcet_probe.scenarios.tree_heap import Words

HEADER_BYTES = 4
OVERHEAD_BYTES = 8
_FREE_BIT, _MEMBER_BIT = 1, 1
_FENCE_OFFSET, _ROOT_OFFSET = 4, 8
_NEXT, _RIGHT, _LEFT = 4, 8, 12
_FOUR_WORDS = 16


def walk(guest: GuestHeap) -> Blocks:
    """The blocks of the guest's heap in address order, the fences left out."""
    control = guest.symbols["btree_best_fit_control"]
    words = Words.of(guest, control)
    start, fence = guest.read_word(control), guest.read_word(control + _FENCE_OFFSET)
    extent = MemoryRange(start, fence - start)
    return chained_blocks(
        words.words, words.base_address, extent, header_bytes=HEADER_BYTES, flags=_FREE_BIT, free={_FREE_BIT}
    )


@dataclass(slots=True)
class _Tree:
    """The guest's tree. A link is the address of the word that leads to a node, 0 for the root's."""

    words: Words
    root: int

    def target(self, link: int) -> int:
        """What a link leads to."""
        return self.words[link] if link else self.root

    def redirect(self, link: int, node: int) -> None:
        """Have a link lead to ``node``; in the copy."""
        if link:
            self.words[link] = node
        else:
            self.root = node

    def children(self, node: int) -> tuple[int, int]:
        """Left and right child, 0 for none."""
        has_left = self.words[node] & ~_FREE_BIT > _FOUR_WORDS
        return self.words[node + _LEFT] if has_left else 0, self.words[node + _RIGHT]

    def height(self) -> int:
        """Nodes on the longest path."""
        height, level = 0, [self.root] if self.root else []
        while level:
            height += 1
            level = [child for node in level for child in self.children(node) if child]
        return height

    def path(self, size: int) -> list[int]:
        """Links to the nodes that are passed on the way to a size, that of its own node included."""
        links, link = [], 0
        while node := self.target(link):
            links.append(link)
            own = self.words[node] & ~_FREE_BIT
            if own == size:
                break
            link = node + (_RIGHT if own < size else _LEFT)
        return links

    def detach(self, block: int) -> int:
        """Take a free block out of the tree; the nodes passed. Members of lists stay: nothing passes them."""
        if self.words[block + _RIGHT] & _MEMBER_BIT:
            return 0
        links = self.path(self.words[block] & ~_FREE_BIT)
        left, right = self.children(block)
        passed = len(links)
        if heir := self.words[block + _NEXT]:
            self.words[heir + _RIGHT] = right
            if left:
                self.words[heir + _LEFT] = left
        elif left and right:
            at, heir = block + _RIGHT, right
            while below := self.words[heir + _LEFT]:
                at, heir, passed = heir + _LEFT, below, passed + 1
            self.words[at] = self.words[heir + _RIGHT]
            self.words[heir + _LEFT] = left
            self.words[heir + _RIGHT] = self.words[block + _RIGHT]
        else:
            heir = left or right
        self.redirect(links[-1], heir)
        return passed


def state(guest: GuestHeap, plan: ScenarioPlan) -> Mapping[str, int | str]:
    """Facts of the guest's heap, and of the walks that the measured operation is going to make in it."""
    control = guest.symbols["btree_best_fit_control"]
    tree = _Tree(Words.of(guest, control), guest.read_word(control + _ROOT_OFFSET))
    blocks = walk(guest)
    facts: dict[str, int | str] = {
        "free blocks": sum(block.free for block in blocks),
        "used blocks": sum(not block.free for block in blocks),
        "height of the tree": tree.height(),
    }
    if plan.scenario == "random":
        return facts
    if plan.measured.kind is OperationKind.MALLOC:
        return facts | _malloc_walks(tree, guest.values, plan.measured.size_bytes)
    return facts | _free_walks(tree, guest.slot(plan.measured.slot) - HEADER_BYTES)


def _malloc_walks(tree: _Tree, values: Mapping[str, int], request_bytes: int) -> dict[str, int | str]:
    """The search, and the way in for the rest."""
    alignment, least = values["alignment"], values["minimum-block"]
    size = max(least, -(-(request_bytes + OVERHEAD_BYTES) // alignment) * alignment)
    links = tree.path(size)
    fits = [node for node in map(tree.target, links) if tree.words[node] & ~_FREE_BIT >= size]
    found_bytes = passed = 0
    if fits:
        found = fits[-1]  # every node that fits is smaller than those that did before it
        found_bytes = tree.words[found] & ~_FREE_BIT
        rest = found_bytes - size
        if rest >= max(least, values["split-threshold"]):
            if not tree.words[found + _NEXT]:
                tree.detach(found)
            passed = len(tree.path(rest))
    return {"nodes searched": len(links), "bytes of the best fit": found_bytes, "nodes passed to insert": passed}


def _free_walks(tree: _Tree, block: int) -> dict[str, int | str]:
    """The walks to the neighbours that leave the tree, and the way in for the merged block."""
    size = tree.words[block]
    passed = neighbours = 0
    following = tree.words[block + size]
    if following & _FREE_BIT:
        passed += tree.detach(block + size)
        size += following & ~_FREE_BIT
        neighbours += 1
    preceding = tree.words[block - HEADER_BYTES]
    if preceding & _FREE_BIT:
        passed += tree.detach(block - (preceding & ~_FREE_BIT))
        size += preceding & ~_FREE_BIT
        neighbours += 1
    return {
        "nodes passed to detach": passed,
        "nodes passed to insert": len(tree.path(size)),
        "free neighbours": neighbours,
    }
