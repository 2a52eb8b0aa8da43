"""Shapes of AVL trees: the sparsest of a height, with a path on which a removal rotates every node."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache


@dataclass(frozen=True, slots=True)
class Shape:
    """A binary tree without keys; subtrees are shared."""

    left: Shape | None
    right: Shape | None
    size: int


def joined(left: Shape | None, right: Shape | None) -> Shape:
    """A node with these subtrees."""
    return Shape(left, right, 1 + size_of(left) + size_of(right))


def size_of(shape: Shape | None) -> int:
    """Nodes of a tree."""
    return shape.size if shape else 0


@cache
def sparse(height: int) -> Shape | None:
    """The AVL tree of ``height`` with fewest nodes; right subtrees are the taller ones."""
    return joined(sparse(height - 2), sparse(height - 1)) if height > 0 else None


@cache
def _outward(height: int) -> Shape | None:
    """As ``sparse``, but the root's left subtree is the taller one: a single rotation brings it up."""
    return joined(sparse(height - 1), sparse(height - 2)) if height > 0 else None


def spine(height: int, kind: str) -> Shape | None:
    """A sparsest AVL tree with a path of ``kind`` at its right; ``behind`` tells how near to the last node it leads.

    ``double`` and ``single``: the path always goes to the lower side, and the node's removal rotates every node on it
    twice or once. The node has a left child, which takes its place: the path ends there. ``long``: the path always goes
    to the taller side, and the removal of the last node but one on it rotates nothing.
    """
    if height <= 0:
        return None
    if height == 2 and kind == "long":
        return joined(sparse(1), None)
    if height == 3 and kind != "long":
        return joined(sparse(1), _outward(2))
    if kind == "long":
        return joined(sparse(height - 2), spine(height - 1, kind))
    return joined(sparse(height - 1) if kind == "double" else _outward(height - 1), spine(height - 2, kind))


def behind(height: int, kind: str) -> int:
    """How many nodes of ``spine`` follow the one that its path leads to: that one is rotated too if it has two more."""
    return 2 if height % 2 and height > 1 and kind != "long" else 0


def nodes_down(height: int, kind: str) -> int:
    """Nodes on the path of ``spine``, to its end."""
    return height if kind == "long" else (height + 2) // 2


def rotated_positions(height: int, kind: str) -> Iterator[int]:
    """In-order positions of the nodes on the path of ``spine``, and of those that rotations bring up from beside it."""
    shape, first = spine(height, kind), 0
    while shape:
        at = first + size_of(shape.left)
        yield at
        if shape.left and kind == "long":
            yield from () if shape.right else (first,)
        elif shape.left:
            yield first + size_of(shape.left.left)
            if shape.left.right:
                yield first + size_of(shape.left.left) + 1 + size_of(shape.left.right.left)
        shape, first = shape.right, at + 1


def sparsest_nodes(height: int) -> int:
    """Nodes of the sparsest AVL tree of ``height``: F(height + 2) - 1."""
    return size_of(sparse(height))


def level_order(shape: Shape | None) -> Iterator[int]:
    """In-order positions of the nodes, level by level."""
    level = [(shape, 0)] if shape else []
    while level:
        below = []
        for node, first in level:
            left, right = node.left, node.right
            at = first + (left.size if left else 0)
            yield at
            if left:
                below.append((left, first))
            if right:
                below.append((right, at + 1))
        level = below
