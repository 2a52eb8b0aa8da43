"""The worst deallocation of dlmalloc28: two neighbours leave their tries, the merged chunk goes down another."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, partial
from itertools import product

from wcet_probe.model.scenario import InitialCache, Operation, OperationKind, ScenarioPlan
from wcet_probe.scenarios.dlmalloc28.chains import (
    CHILDREN_AT,
    DRIVER,
    INSERT,
    LAST_EXPONENT,
    TO_LEAF,
    Chains,
    Kind,
    dearest_plans,
    inserted_splits,
    variant_name,
)
from wcet_probe.scenarios.dlmalloc28.heap import MINIMUM_BYTES, UNIT_BYTES, Layout, Trie, trie_at
from wcet_probe.scenarios.dlmalloc28.neighbours import Neighbours, Shape, all_neighbours
from wcet_probe.scenarios.families import HeapRequest

_CANDIDATES = 3
_TRIES_FOR_MERGED = 4
"""So many tries are tried for the merged chunk, from the least on that it can be in."""
_WHY_FREE = (
    "Both neighbours are free and alone in their rings: for each a leaf is looked for in its stead.",
    "The merged chunk goes down a path of its trie to a place behind the last node.",
)
_WHY_SHARED = {
    Shape.TWO_TRIES: (),
    Shape.TWO_PATHS: ("One trie holds both, so that all nodes are small; they are on two paths from its root.",),
    Shape.ONE_PATH: ("One trie holds both, and one path leads from both to their leaves: it is walked twice.",),
}


@dataclass(frozen=True, slots=True)
class _FreeDesign:
    """How many nodes each walk of a deallocation meets.

    Attributes:
        neighbours: what is walked to the leaves.
        merged: the trie of the merged chunk, no neighbour's.
        inserted: nodes on its path.
    """

    neighbours: Neighbours
    merged: Trie
    inserted: int

    def worth(self, line: int, across: int) -> int:
        """As of an allocation."""
        to_leaf = sum(self.neighbours.below(fork=False)) * TO_LEAF + self.neighbours.lines * line
        return to_leaf + self.inserted * (INSERT + across * line)


def _designs(shape: Shape, heap: int, fence: int) -> Iterator[_FreeDesign]:
    for neighbours in all_neighbours(shape, heap, fence):
        room = heap - neighbours.least_bytes - neighbours.nodes * fence
        before = neighbours.left.least + neighbours.right.least
        merged = trie_at(before + MINIMUM_BYTES)
        for _ in range(_TRIES_FOR_MERGED):
            free = room - max(0, merged.least - before)
            if merged not in {neighbours.left, neighbours.right} and free >= 0 and merged.exponent <= LAST_EXPONENT:
                most = min(merged.levels + 1, free // (merged.least + fence))
                yield from (_FreeDesign(neighbours, merged, count) for count in (most, most - 1) if count >= 0)
            merged = merged.above


def _free_designs(shape: Shape, heap: int, fence: int) -> list[_FreeDesign]:
    return list(_designs(shape, heap, fence))


def _build_free(design: _FreeDesign, line: int | None, *, fork: bool, parents: bool) -> Iterator[Chains]:
    """Sizes that make the design true.

    Where there are lines the ring that the merged chunk joins has two chunks if there is room, else one.
    """
    rings = (True, False) if line else (False,)
    built = (_build_between(design, line, fork=fork, ring=ring, parents=parents) for ring in rings)
    return (chains for chains in built if chains)


def _build_between(design: _FreeDesign, line: int | None, *, fork: bool, ring: bool, parents: bool) -> Chains | None:
    neighbours = design.neighbours
    places = neighbours.places(fork=fork, parents=parents)
    if places is None:
        return None
    sizes = neighbours.left.placed([place[:2] for place in places[0]])
    others = neighbours.right.placed([place[:2] for place in places[1]])
    if sizes is None or others is None:
        return None
    nodes = [*zip(sizes, places[0], strict=True), *zip(others, places[1], strict=True)]
    apart = parents and neighbours.shape is Shape.TWO_TRIES
    above = [nodes[0], nodes[len(sizes)]] if apart else []
    at = (int(apart), len(sizes) + apart if neighbours.shape is Shape.TWO_TRIES else 1)
    left, right = nodes[at[0]][0], nodes[at[1]][0]
    rest = [node for number, node in enumerate(nodes) if number not in at and node not in above]
    built = _merged(design, left + right, right, line or UNIT_BYTES)
    if built is None:
        return None
    inserted, merged = built
    if ring and design.inserted > design.merged.levels:
        inserted += inserted[-1:]
    below = neighbours.below(fork=fork)
    return Chains(
        f"{neighbours.shape}{', not roots' if above else ''}{', second children' if fork else ''}",
        (left, right, *(size for size, _ in rest), *inserted, *(size for size, _ in above)),
        (
            *((CHILDREN_AT,) * 2),
            *(place.split for _, place in rest),
            *inserted_splits(design.merged, len(inserted)),
            *(place.split for _, place in above),
        ),
        (left, merged - left - right, right),
        {
            "nodes below the left neighbour": below[0] - apart,
            "nodes below the right neighbour": below[1] - apart,
            "nodes above the merged": design.inserted,
            "bytes of the merged chunk": merged,
        },
        len(above),
    )


def _merged(design: _FreeDesign, before: int, right: int, line: int) -> tuple[list[int], int] | None:
    """Sizes of the nodes that the merged chunk passes, and its own.

    The right neighbour lies in its lines as the left one does: whole lines are between their starts.
    """
    trie, count = design.merged, design.inserted
    least = max(trie.least, before + MINIMUM_BYTES)
    for units in range(max(count, trie.units(least)), 1 << trie.levels):
        if (trie.size(units) - right) % line:
            continue
        taken = () if count > trie.levels else (units,)
        nodes = trie.path(units, range(count), range(1 << trie.levels), taken)
        if nodes is not None:
            return [trie.size(u) for u in nodes], trie.size(units)
    return None


def worst_free(request: HeapRequest) -> tuple[ScenarioPlan, ...]:
    """The dearest designs that fit, of each shape and alignment of nodes."""
    designs = {shape: cache(partial(_free_designs, shape)) for shape in Shape}
    kinds = [
        Kind(designs[shape], partial(_build_free, fork=fork, parents=parents), _CANDIDATES)
        for shape, fork, parents in product(Shape, (True, False), (False, True))
        if shape is Shape.TWO_TRIES or not parents
    ]
    return dearest_plans(request, kinds, _free_plan)


def _free_plan(chains: Chains, layout: Layout, slots: list[int], line: int | None) -> ScenarioPlan:
    facts = chains.facts
    visited = sum(count for fact, count in facts.items() if fact.startswith("nodes"))
    *frees, own = slots
    last = len(frees) - chains.first
    shape = Shape(chains.variant.partition(",")[0])
    return ScenarioPlan(
        scenario="worst-free",
        variant=variant_name(chains.variant, line),
        trace=layout.trace([*frees[last:], *frees[:last]]),
        measured=Operation(OperationKind.FREE, own),
        initial_cache=InitialCache.DIRTY,
        state=(
            f"a used chunk of {chains.measured[1]} bytes between free ones of {chains.measured[0]} and "
            f"{chains.measured[2]}, {shape}; all merge into {facts['bytes of the merged chunk']} bytes"
        ),
        why=(*_WHY_FREE, *_WHY_SHARED[shape]),
        prediction={"nodes visited": visited, **facts, "free chunks in tries": len(chains.chains)},
        driver=DRIVER,
        driver_value=visited,
    )
