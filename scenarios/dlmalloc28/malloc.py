"""The worst allocation of dlmalloc28: a search in vain, the best fit in the next trie, a leaf in its place, a rest."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, partial
from itertools import product

from wcet_probe.model.scenario import InitialCache, Operation, OperationKind, ScenarioPlan
from wcet_probe.scenarios.dlmalloc28.chains import (
    CHILDREN_AT,
    DRIVER,
    FIRST_EXPONENT,
    INSERT,
    LEFTMOST,
    PARENT_AT,
    SEARCH,
    TO_LEAF,
    Chains,
    Kind,
    all_tries,
    dearest_plans,
    inserted_splits,
    leaf_splits,
    powers,
    variant_name,
)
from wcet_probe.scenarios.dlmalloc28.heap import (
    MINIMUM_BYTES,
    SMALL_LIMIT_BYTES,
    UNIT_BYTES,
    Layout,
    Trie,
    request_of,
    trie_at,
)
from wcet_probe.scenarios.families import HeapRequest

_CANDIDATES = 4
_WHY_ALLOC = (
    "The request is large: its trie is searched down the path of its size's bits, and no node there is large enough.",
    "So the next trie that is not empty is searched for its smallest chunk, down the leftmost path to the end.",
    "The smallest chunk is the root, which stands alone in its ring: a leaf is looked for to take its place.",
    "The rest is large as well and goes down a path of its trie to a place behind the last node.",
)


@dataclass(frozen=True, slots=True)
class _AllocDesign:
    """How many nodes each walk of an allocation meets.

    Attributes:
        search: the request's trie.
        searched: nodes on the request's path.
        found: the trie whose root is the best fit; ``search`` itself if the root is searched, too.
        below: nodes below that root on the leftmost path.
        apart: nodes on a path of its own to the leaf; 0: the leftmost path leads there, too.
        rest: the trie of the rest, ``search`` itself if it takes the request's path, or None if nothing is prescribed.
        inserted: nodes on the path of the rest.
    """

    search: Trie
    searched: int
    found: Trie
    below: int
    apart: int
    rest: Trie | None
    inserted: int

    def worth(self, line: int, across: int) -> int:
        """Estimated cost, if a line costs ``line`` and the words of a node, but for its links, lie ``across`` lines."""
        looked_at = self.below + (self.found != self.search)
        to_leaf = (self.apart or self.below) * TO_LEAF + self.apart * line
        inserted = self.inserted * (INSERT + across * line * (self.rest != self.search))
        return self.searched * (SEARCH + across * line) + looked_at * (LEFTMOST + across * line) + to_leaf + inserted


def _alloc_designs(heap: int, fence: int) -> list[_AllocDesign]:
    return list(_designs(heap, fence))


def _designs(heap: int, fence: int) -> Iterator[_AllocDesign]:
    """All that may fit into the heap; nodes of a trie are at least as large as its least size."""
    for search in all_tries():
        if search.half or search.least + fence > heap:
            continue
        twice, below_it = Trie(search.exponent + 1, 0), Trie(search.exponent - 1, 0)
        for searched in range(1, search.levels + 1):
            room = heap - searched * (search.least + fence)
            for found in (search, *_found_tries(search)):
                for below in range(found.levels + 1):
                    for to_leaf in range(found.levels + 1 if below else 1):
                        nodes = below + to_leaf + (found != search)
                        left = room - nodes * (found.least + fence)
                        if left < 0:
                            break
                        yield _AllocDesign(search, searched, found, below, to_leaf, None, 0)
                        if found == twice:
                            yield _AllocDesign(search, searched, found, below, to_leaf, search, searched)
                        if found == search.above and below_it.exponent >= FIRST_EXPONENT:
                            inserted = min(below_it.levels + 1, left // (below_it.least + fence))
                            yield _AllocDesign(search, searched, found, below, to_leaf, below_it, inserted)


def _found_tries(search: Trie) -> tuple[Trie, ...]:
    above = search.above
    return above, above.above, above.above.above


def _build_alloc(design: _AllocDesign, line: int | None, *, parent: bool, all_across: bool) -> Iterator[Chains]:
    """Sizes that make the design true, the dearest first, as far as memory allows.

    Parameters:
        design: what is built.
        line: bytes of a cache line, or None if nodes lie anywhere.
        parent: whether the best fit is below a root.
        all_across: whether nodes that are only asked for their children lie in two lines, too.

    A turn to the right costs a little more on some cores, a second chunk in the ring that the rest joins on all that
    have lines.
    """
    if design.search == design.found:
        built = [] if parent else [_build_beside(design)]
    else:
        shapes = product((True, False) if line else (False,), (True, False), (True, False))
        built = [
            _build_above(design, *right, ring=ring, parent=parent, all_across=all_across) for ring, *right in shapes
        ]
    return (chains for chains in built if chains)


def _build_above(
    design: _AllocDesign,
    right_search: bool,  # noqa: FBT001
    right_below: bool,  # noqa: FBT001
    *,
    ring: bool,
    parent: bool,
    all_across: bool,
) -> Chains | None:
    """The root of a trie above the request's is the best fit, or a child of it whose ``parent`` the root is."""
    search, found = design.search, design.found
    half = 1 << (search.levels - 1)
    for wanted in (half - 1,) if right_search else range(design.searched, 2 * half):
        searched = search.path(wanted, range(design.searched), range(wanted))
        if searched is not None:
            break
    else:
        return None
    size = search.size(wanted)
    rest, inserted = _rest(design, size, ring=ring)
    if trie_at(size + rest) != found:
        return None
    root = found.units(size + rest)
    below = _below(design, root, right=right_below, parent=parent)
    if inserted is None or below is None:
        return None
    splits: tuple[int | None, ...] = (CHILDREN_AT,) * (design.searched + 1 + design.below - parent)
    if design.apart:
        apart = design.apart - parent
        splits += (PARENT_AT,) * apart if all_across else leaf_splits(apart)
    if design.rest and inserted:
        splits += inserted_splits(design.rest, len(inserted))
    sizes = [search.size(u) for u in searched] + [found.size(u) for u in (root, *below[parent:])] + inserted
    above = tuple(found.size(u) for u in below[:parent])
    return Chains(
        _variant(design) + (", best fit below a root" if parent else ""),
        (*sizes, *above),
        (*splits, *((CHILDREN_AT,) * len(above))),
        (size,),
        {
            "nodes searched": design.searched,
            "nodes on the leftmost path": design.below + 1,
            "nodes down to the leaf": (design.apart or design.below) - parent,
            "nodes above the rest": design.inserted,
            "bytes of the rest": rest,
        },
        len(above),
    )


def _rest(design: _AllocDesign, size: int, *, ring: bool) -> tuple[int, list[int] | None]:
    """Size of the rest, and the sizes of the chunks that it meets if they are chunks of their own."""
    least = design.found.least - size
    if design.rest is None:
        return least, []
    if design.rest == design.search:
        return size, []
    trie, count = design.rest, design.inserted
    for units in range(max(count, trie.units(least)), 1 << trie.levels):
        taken = () if count > trie.levels else (units,)
        nodes = trie.path(units, range(count), range(1 << trie.levels), taken)
        if nodes is not None:
            joined = nodes[-1:] if ring and count > trie.levels else []
            return trie.size(units), [trie.size(u) for u in nodes + joined]
    return least, None


def _below(design: _AllocDesign, root: int, *, right: bool = False, parent: bool = False) -> list[int] | None:
    """Nodes below the best fit, all larger: one chain, or two that part at once. First its ``parent``, if it has one.

    A parent is one of the nodes on both paths: each has one less below the best fit.
    """
    found, level = design.found, 1 + parent
    half = 1 << max(0, found.levels - level)
    least = half if design.search == found else root + 1
    end = half if design.apart else 2 * half
    if design.below < parent or root >= 2 * half or (design.apart and min(design.apart, design.below) <= parent):
        return None
    for units in (end - 1,) if right else powers(least, end):
        chain = found.path(units, range(level, design.below + 1), range(root + 1, 2 * half))
        if chain is not None:
            break
    else:
        return None
    other = found.path(half, range(level, design.apart + 1), range(half, 2 * half))
    if other is None:
        return None
    above = found.path(0, range(int(parent)), range(root + 1, 1 << found.levels), chain + other)
    return None if above is None else above + chain + other


def _build_beside(design: _AllocDesign) -> Chains | None:
    """The root is searched first and is the best fit; the leftmost path lies in the right subtree beside the search."""
    trie, half = design.search, 1 << (design.search.levels - 1)
    if design.apart or design.rest is not None or design.below == 0:
        return None
    for wanted in range(design.searched, half):
        searched = trie.path(wanted, range(1, design.searched), range(wanted))
        if searched is not None:
            break
    else:
        return None
    root = min(wanted + SMALL_LIMIT_BYTES // UNIT_BYTES, half - 1)
    below = _below(design, root)
    rest = UNIT_BYTES * (root - wanted)
    if below is None or rest < MINIMUM_BYTES:
        return None
    return Chains(
        _variant(design),
        tuple(trie.size(u) for u in (root, *searched, *below)),
        (CHILDREN_AT,) * (1 + len(searched) + len(below)),
        (trie.size(wanted),),
        {
            "nodes searched": design.searched,
            "nodes on the leftmost path": design.below,
            "nodes down to the leaf": design.below,
            "nodes above the rest": 0,
            "bytes of the rest": rest,
        },
    )


def _variant(design: _AllocDesign) -> str:
    if design.found == design.search:
        return "best fit at the root of the request's trie"
    paths = "a path to the leaf of its own" if design.apart else "the leftmost path leads to the leaf"
    rest = {None: "no trie for the rest", design.search: "the rest on the request's path"}
    return f"{paths}, {rest.get(design.rest, 'the rest in a third trie')}"


def worst_alloc(request: HeapRequest) -> tuple[ScenarioPlan, ...]:
    """The dearest designs that fit, of each alignment of nodes."""
    designs = cache(_alloc_designs)
    kinds = [
        Kind(designs, partial(_build_alloc, parent=parent, all_across=all_across), _CANDIDATES)
        for parent, all_across in product((False, True), (False, True) if request.data_line_bytes else (False,))
    ]
    return dearest_plans(request, kinds, _alloc_plan)


def _alloc_plan(chains: Chains, layout: Layout, slots: list[int], line: int | None) -> ScenarioPlan:
    facts, size = chains.facts, chains.measured[0]
    visited = sum(count for fact, count in facts.items() if fact.startswith("nodes"))
    last = len(slots) - chains.first
    return ScenarioPlan(
        scenario="worst-alloc",
        variant=variant_name(chains.variant, line),
        trace=layout.trace([*slots[last:], *slots[:last]]),
        measured=Operation(OperationKind.MALLOC, 0, request_of(size)),
        initial_cache=InitialCache.DIRTY,
        state=(
            f"{len(chains.chains)} free chunks in chains; a chunk of {size} bytes is wanted: {facts['nodes searched']} "
            f"nodes are searched, {facts['nodes on the leftmost path']} looked at, the root is replaced"
        ),
        why=_WHY_ALLOC,
        prediction={"nodes visited": visited, **facts, "free chunks in tries": len(chains.chains)},
        driver=DRIVER,
        driver_value=visited,
    )
