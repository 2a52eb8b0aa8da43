"""The worst deallocation of dlmalloc28: two neighbours leave their tries, the merged chunk goes down another."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from wcet_probe.model.scenario import InitialCache, Operation, OperationKind, ScenarioPlan
from wcet_probe.scenarios.dlmalloc28.chains import (
    CHILDREN_AT,
    DRIVER,
    INSERT,
    LAST_EXPONENT,
    PARENT_AT,
    TO_LEAF,
    Chains,
    all_tries,
    dearest_plans,
    inserted_splits,
    powers,
    variant_name,
)
from wcet_probe.scenarios.dlmalloc28.heap import MINIMUM_BYTES, UNIT_BYTES, Layout, Trie, trie_at
from wcet_probe.scenarios.families import HeapRequest

_WHY_FREE = (
    "Both neighbours are free, roots of tries and alone in their rings: for each a leaf is looked for in its stead.",
    "The merged chunk goes down a path of its trie to a place behind the last node.",
)


@dataclass(frozen=True, slots=True)
class _FreeDesign:
    """How many nodes each walk of a deallocation meets.

    Attributes:
        left: the trie whose root is the left neighbour.
        left_below: nodes below it on the path to its leaf.
        right: the trie whose root is the right neighbour.
        right_below: nodes below it.
        merged: the trie of the merged chunk; ``right`` itself if it takes the path of the right neighbour's trie.
        inserted: nodes on its path.
    """

    left: Trie
    left_below: int
    right: Trie
    right_below: int
    merged: Trie
    inserted: int

    def worth(self, line: int, across: int) -> int:
        """As of an allocation."""
        below = self.left_below + self.right_below
        return below * (TO_LEAF + line) + self.inserted * (INSERT + across * line * (self.merged != self.right))


def _free_designs(heap: int, fence: int) -> Iterator[_FreeDesign]:
    chains = [(t, n) for t in all_tries() for n in range(t.levels + 1) if (n + 1) * (t.least + fence) <= heap]
    for left, left_below in chains:
        room = heap - (left_below + 1) * (left.least + fence)
        for right, right_below in chains:
            free = room - (right_below + 1) * (right.least + fence)
            if left == right or free < 0:
                continue
            if left.least < right.least // 2:
                yield _FreeDesign(left, left_below, right, right_below, right, right_below)
            merged = trie_at(left.least + right.least + right.least // 8)
            if merged in {left, right} or merged.exponent > LAST_EXPONENT:
                continue
            inserted = min(merged.levels + 1, free // (merged.least + fence))
            yield _FreeDesign(left, left_below, right, right_below, merged, inserted)


def _build_free(design: _FreeDesign, line: int | None) -> Iterator[Chains]:
    """Sizes that make the design true, the dearest first.

    Each root has two children or one. Where there are lines the ring that the merged chunk joins has two chunks or one.
    """
    shapes = product((True, False), (True, False) if line else (False,))
    built = [_build_between(design, line or UNIT_BYTES, fork=fork, ring=ring) for fork, ring in shapes]
    return (chains for chains in built if chains)


def _rooted(trie: Trie, below: int, *, fork: bool) -> list[int] | None:
    """Units of a root, of nodes below it that a leaf is looked for along, and of another child of the root."""
    half = 1 << (trie.levels - 1)
    chain = trie.path(half if fork else 0, range(below + 1), range(2 * half))
    other = trie.path(0, range(1, 2), range(half), chain or ()) if fork else []
    return None if chain is None or other is None else chain + other


def _build_between(design: _FreeDesign, line: int, *, fork: bool, ring: bool) -> Chains | None:
    is_apart = design.merged != design.right
    fork = fork and is_apart and min(design.left_below, design.right_below) > 0
    left = _rooted(design.left, design.left_below, fork=fork)
    if left is None:
        return None
    before = design.left.size(left[0])
    built = _merged_apart(design, before, line, fork=fork) if is_apart else _merged_beside(design, before)
    if built is None:
        return None
    right, inserted, merged = built
    if ring and design.inserted > design.merged.levels:
        inserted += inserted[-1:]
    own = merged - before - right[0]
    if own < MINIMUM_BYTES:
        return None
    chains = [before, right[0], *(design.left.size(u) for u in left[1:]), *right[1:], *inserted]
    splits = (CHILDREN_AT,) * 2 + (PARENT_AT,) * (len(left) - 1)
    if is_apart:
        splits += (PARENT_AT,) * (len(right) - 1) + inserted_splits(design.merged, len(inserted))
    else:
        splits += (CHILDREN_AT,) * (len(right) - 1)
    how = "a third trie" if is_apart else "the right neighbour's trie"
    return Chains(
        f"merged chunk into {how}",
        tuple(chains),
        splits,
        (before, own, right[0]),
        {
            "nodes below the left root": design.left_below,
            "nodes below the right root": design.right_below,
            "children of the roots": (1 + fork) * ((design.left_below > 0) + (design.right_below > 0)),
            "nodes above the merged": design.inserted,
            "bytes of the merged chunk": merged,
        },
    )


def _merged_apart(
    design: _FreeDesign, before: int, line: int, *, fork: bool
) -> tuple[list[int], list[int], int] | None:
    """Sizes of the right neighbour's trie and of the merged chunk's, and of the merged chunk.

    The right neighbour lies in its lines as the left one does: whole lines are between their starts.
    """
    trie, count = design.merged, design.inserted
    right = _rooted(design.right, design.right_below, fork=fork)
    if right is None:
        return None
    sizes = [design.right.size(u) for u in right]
    least = max(trie.least, before + MINIMUM_BYTES + sizes[0])
    for units in range(max(count, trie.units(least)), 1 << trie.levels):
        if (trie.size(units) - sizes[0]) % line:
            continue
        taken = () if count > trie.levels else (units,)
        nodes = trie.path(units, range(count), range(1 << trie.levels), taken)
        if nodes is not None:
            return sizes, [trie.size(u) for u in nodes], trie.size(units)
    return None


def _merged_beside(design: _FreeDesign, before: int) -> tuple[list[int], list[int], int] | None:
    """As above: the merged chunk lies on the path that the right neighbour's leaf is on."""
    trie = design.right
    for units in powers(before // UNIT_BYTES + design.right_below + 2, 1 << trie.levels):
        nodes = trie.path(units, range(design.right_below + 1), range(1 << trie.levels), (units,))
        if nodes is not None and units < 1 << trie.levels:
            return [trie.size(u) for u in nodes], [], trie.size(units)
    return None


def worst_free(request: HeapRequest) -> tuple[ScenarioPlan, ...]:
    """The dearest designs that fit, of each alignment of nodes."""
    return dearest_plans(request, _free_designs, _build_free, _free_plan)


def _free_plan(chains: Chains, layout: Layout, slots: list[int], line: int | None) -> ScenarioPlan:
    facts = chains.facts
    visited = sum(count for fact, count in facts.items() if fact.startswith("nodes"))
    *frees, own = slots
    return ScenarioPlan(
        scenario="worst-free",
        variant=variant_name(chains.variant, line),
        trace=layout.trace(frees),
        measured=Operation(OperationKind.FREE, own),
        initial_cache=InitialCache.DIRTY,
        state=(
            f"a used chunk of {chains.measured[1]} bytes between free ones of {chains.measured[0]} and "
            f"{chains.measured[2]}, both roots of tries; all merge into {facts['bytes of the merged chunk']} bytes"
        ),
        why=_WHY_FREE,
        prediction={"nodes visited": visited, **facts, "free chunks in tries": len(chains.chains)},
        driver=DRIVER,
        driver_value=visited,
    )
