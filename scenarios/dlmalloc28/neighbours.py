"""How the free neighbours of a chunk lie in tries of dlmalloc28: each in one of its own, or both in one.

Each is alone in its ring, so a leaf below it is looked for to take its place. The left one leaves its trie first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice, product
from typing import NamedTuple

from wcet_probe.scenarios.dlmalloc28.chains import CHILDREN_AT, LAST_EXPONENT, PARENT_AT, all_tries, leaf_splits
from wcet_probe.scenarios.dlmalloc28.heap import Trie


class Shape(StrEnum):
    """What the paths from both neighbours to their leaves share."""

    TWO_TRIES = "neighbours in two tries"
    TWO_PATHS = "neighbours on two paths of a trie"
    ONE_PATH = "neighbours on one path"


class Place(NamedTuple):
    """Where a node hangs: the first ``level`` bits of its size are those of ``units``.

    ``split`` is the offset of its member that begins a cache line, where its words shall lie in two; None if only its
    children are looked at.
    """

    level: int
    units: int
    split: int | None


@dataclass(frozen=True, slots=True)
class Neighbours:
    """Two free neighbours and the paths below them.

    Attributes:
        shape: what the paths share.
        left: the trie of the left neighbour.
        right: the trie of the right neighbour, the same one unless there are two.
        lengths: nodes on the path of each that is its own; of one path those behind both, and 0.
    """

    shape: Shape
    left: Trie
    right: Trie
    lengths: tuple[int, int]

    @property
    def nodes(self) -> int:
        """Nodes in all, both neighbours among them."""
        return 2 + sum(self.lengths)

    @property
    def lines(self) -> int:
        """Cache lines of the nodes below both, each of which may lie in two."""
        leaves = 2 if self.shape is Shape.ONE_PATH else 1
        return sum(length + min(length, 1 + leaves) for length in self.lengths)

    @property
    def least_bytes(self) -> int:
        """About what they take."""
        return self.left.least * (1 + self.lengths[0]) + self.right.least * (1 + self.lengths[1])

    def below(self, *, fork: bool) -> tuple[int, int]:
        """Nodes from each to its leaf, when it leaves: of one path the left neighbour's leaf is gone by then."""
        if self.shape is Shape.ONE_PATH:
            behind = self.lengths[0]
            return behind + 1, max(behind - 1, int(fork))
        return self.lengths

    def places(self, *, fork: bool, parents: bool) -> tuple[list[Place], list[Place]] | None:
        """Places in both tries, the neighbour's first; one trie has all on its left, the right neighbour second.

        Parameters:
            fork: whether a second child is below what can have one: its parent is written when it has an heir.
            parents: whether the neighbours of two tries are below their roots, which are freed before them and come
                first in their lists; each path is a node shorter.
        """
        if fork and self.shape is not Shape.ONE_PATH and parents in self.lengths:
            return None  # what has no child can have no second one
        top = 1 << self.left.levels
        match self.shape:
            case Shape.TWO_TRIES:
                lefts = _below_root(self.left, self.lengths[0], fork=fork, parents=parents)
                rights = _below_root(self.right, self.lengths[1], fork=fork, parents=parents)
                return (lefts, rights) if lefts and rights else None
            case Shape.TWO_PATHS:
                right = [Place(1, 0, CHILDREN_AT), *_path(self.lengths[1], 2, top // 4 if fork else 0)]
                other = [Place(2, 0, PARENT_AT)] if fork else []
                first = Place(0, 0, CHILDREN_AT)
                return [first, right[0], *_path(self.lengths[0], 1, top // 2), *right[1:], *other], []
            case Shape.ONE_PATH:
                behind = self.lengths[0]
                first_two = [Place(0, 0, CHILDREN_AT), Place(1, 0 if behind else top // 2 * fork, CHILDREN_AT)]
                other = [Place(2 if behind else 1, 0, PARENT_AT)] if fork else []
                return [*first_two, *_path(behind, 2, top // 4 if fork else 0, 2), *other], []


def _path(length: int, level: int, units: int, leaves: int = 1) -> list[Place]:
    """Nodes below one another, of which so many at the end are leaves when a neighbour leaves its trie."""
    return [Place(level + at, units, split) for at, split in enumerate(leaf_splits(length, leaves))]


def _below_root(trie: Trie, length: int, *, fork: bool, parents: bool) -> list[Place]:
    """A neighbour that is the root, or a child of it, and what is below; nothing if it cannot be."""
    if parents and length == 0:
        return []
    level = int(parents)
    root = [Place(0, 0, None)] if parents else []
    units = 1 << (trie.levels - level - 1) if fork else 0
    other = [Place(level + 1, 0, PARENT_AT)] if fork else []
    return [*root, Place(level, 0, CHILDREN_AT), *_path(length - level, level + 1, units), *other]


def all_neighbours(shape: Shape, heap: int, fence: int) -> Iterator[Neighbours]:
    """All of a shape that may fit into the heap, in the least tries that are deep enough.

    The next two are larger in bytes only: two tries must differ, and the merged chunk's is none of them.
    """
    paths = [
        (length, trie)
        for length in range(Trie(LAST_EXPONENT, 0).levels + 1)
        for trie in islice((trie for trie in all_tries() if trie.levels >= length), 3)
        if (1 + length) * (trie.least + fence) <= heap
    ]
    for (own, left), (other, right) in product(paths, repeat=2):
        match shape:
            case Shape.TWO_TRIES:
                can_be = left != right
            case Shape.TWO_PATHS:
                can_be = left == right and own > 0 and other < left.levels
            case _:
                can_be = left == right and own < left.levels and other == 0
        if can_be and (1 + own) * (left.least + fence) + (1 + other) * (right.least + fence) <= heap:
            yield Neighbours(shape, left, right, (own, other))
