"""Worst, best and random states of dlmalloc28.

Every loop goes down a trie, so the worst states are chains of nodes: each node of a chain is the only child of the one
above, and no size on the way is the one that is looked for. Chains cost memory: d nodes below one another need sizes of
at least 2^(d + 3) bytes, twice that if all of them are on a request's path and too small for it. So they take about
d * 2^(d + 3) bytes, and a heap of H bytes has chains of about log2 H - log2 log2 H nodes. How H is shared out among
the chains of one call is a small optimisation, done here by counting what a visit of each kind costs.

Sources: the public description of the design; H11 §V and L11 name the allocator and state no worst state of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, product
from types import MappingProxyType
from typing import TypeVar

from wcet_probe.errors import HeapTooSmallError
from wcet_probe.model.scenario import InitialCache, Operation, OperationKind, ScenarioPlan
from wcet_probe.scenarios.dlmalloc28_heap import (
    FLAGS,
    HEADER_BYTES,
    MINIMUM_BYTES,
    SMALL_LIMIT_BYTES,
    UNIT_BYTES,
    Layout,
    Node,
    Trie,
    Tries,
    request_of,
    trie_at,
    walk,
)
from wcet_probe.scenarios.families import Family, GuestHeap, HeapRequest
from wcet_probe.scenarios.random_workload import random_plans

_SEARCH, _LEFTMOST, _TO_LEAF, _INSERT, _LINE = 24, 13, 11, 9, 60
"""About what a visited node costs: instructions by kind of walk, and, with a cache, cycles of its line. They only rank
designs; what counts is measured."""

_ALIGNED_FENCE_BYTES = 32
_FIRST_EXPONENT, _LAST_EXPONENT = 8, 23
"""The tries above branch on all bits of a size: no heap is large enough for many nodes of theirs."""
_MOST_TRIALS = 400
_CANDIDATES = 6

_WHY_ALLOC = (
    "The request is large: its trie is searched down the path of its size's bits, and no node there is large enough.",
    "So the next trie that is not empty is searched for its smallest chunk, down the leftmost path to the end.",
    "The smallest chunk is the root, which stands alone in its ring: a leaf is looked for to take its place.",
    "The rest is large as well and goes down a path of its trie to a place behind the last node.",
)
_WHY_FREE = (
    "Both neighbours are free, roots of tries and alone in their rings: for each a leaf is looked for in its stead.",
    "The merged chunk goes down a path of its trie to a place behind the last node.",
)
_DRIVER = "nodes visited on paths down tries"


@dataclass(frozen=True, slots=True)
class _Chains:
    """Free chunks and a call: what a design has become.

    Attributes:
        variant: which design.
        chains: sizes of free chunks, in the order in which they are freed.
        measured: the size that is requested, or the sizes of the three neighbours of a deallocation, the first and
            the last of which are the first two chunks of ``chains``.
        facts: the prediction.
    """

    variant: str
    chains: tuple[int, ...]
    measured: tuple[int, ...]
    facts: Mapping[str, int]


# ----------------------------------------------------------------------------------------------------------- allocation


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
        to_leaf = (self.apart or self.below) * _TO_LEAF + self.apart * line
        inserted = self.inserted * (_INSERT + across * line * (self.rest != self.search))
        return self.searched * (_SEARCH + across * line) + looked_at * (_LEFTMOST + across * line) + to_leaf + inserted


def _tries() -> Iterator[Trie]:
    return (Trie(e, half) for e in range(_FIRST_EXPONENT, _LAST_EXPONENT + 1) for half in (0, 1))


def _alloc_designs(heap: int, fence: int) -> Iterator[_AllocDesign]:
    """All that may fit into the heap; nodes of a trie are at least as large as its least size."""
    for search in _tries():
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
                        if found == search.above and below_it.exponent >= _FIRST_EXPONENT:
                            inserted = min(below_it.levels + 1, left // (below_it.least + fence))
                            yield _AllocDesign(search, searched, found, below, to_leaf, below_it, inserted)


def _found_tries(search: Trie) -> tuple[Trie, ...]:
    above = search.above
    return above, above.above, above.above.above


def _build_alloc(design: _AllocDesign) -> Iterator[_Chains]:
    """Sizes that make the design true. A turn to the right costs a little more on some cores, and more memory."""
    if design.search == design.found:
        built = [_build_beside(design)]
    else:
        built = [_build_above(design, *right) for right in product((True, False), repeat=2)]
    return (chains for chains in built if chains)


def _build_above(design: _AllocDesign, right_search: bool, right_below: bool) -> _Chains | None:  # noqa: FBT001
    """The root of a trie above the request's is the best fit."""
    search, found = design.search, design.found
    half = 1 << (search.levels - 1)
    for wanted in (half - 1,) if right_search else range(design.searched, 2 * half):
        searched = search.path(wanted, range(design.searched), range(wanted))
        if searched is not None:
            break
    else:
        return None
    size = search.size(wanted)
    rest, inserted = _rest(design, size)
    if trie_at(size + rest) != found:
        return None
    root = found.units(size + rest)
    below = _below(design, root, right=right_below)
    if inserted is None or below is None:
        return None
    sizes = [search.size(u) for u in searched] + [found.size(u) for u in (root, *below)] + inserted
    return _Chains(
        _variant(design),
        tuple(sizes),
        (size,),
        {
            "nodes searched": design.searched,
            "nodes on the leftmost path": design.below + 1,
            "nodes down to the leaf": design.apart or design.below,
            "nodes above the rest": design.inserted,
            "bytes of the rest": rest,
        },
    )


def _rest(design: _AllocDesign, size: int) -> tuple[int, list[int] | None]:
    """Size of the rest, and the sizes of the nodes on its path if they are nodes of their own."""
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
            return trie.size(units), [trie.size(u) for u in nodes]
    return least, None


def _below(design: _AllocDesign, root: int, *, right: bool = False) -> list[int] | None:
    """Nodes below the root, all larger: one chain, or two that part at once."""
    found = design.found
    half = 1 << (found.levels - 1)
    least = half if design.search == found else root + 1
    end = half if design.apart else 2 * half
    for units in (end - 1,) if right else _powers(least, end):
        chain = found.path(units, range(1, design.below + 1), range(root + 1, 2 * half))
        if chain is not None:
            break
    else:
        return None
    other = found.path(half, range(1, design.apart + 1), range(half, 2 * half))
    return None if other is None else chain + other


def _powers(least: int, end: int) -> Iterator[int]:
    """The least value, then powers of two: paths that turn right late, so that sizes stay small."""
    value = least
    while value < end:
        yield value
        value = 1 << value.bit_length()


def _build_beside(design: _AllocDesign) -> _Chains | None:
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
    return _Chains(
        _variant(design),
        tuple(trie.size(u) for u in (root, *searched, *below)),
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


# --------------------------------------------------------------------------------------------------------- deallocation


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
        return below * (_TO_LEAF + line) + self.inserted * (_INSERT + across * line * (self.merged != self.right))


def _free_designs(heap: int, fence: int) -> Iterator[_FreeDesign]:
    chains = [(t, n) for t in _tries() for n in range(t.levels + 1) if (n + 1) * (t.least + fence) <= heap]
    for left, left_below in chains:
        room = heap - (left_below + 1) * (left.least + fence)
        for right, right_below in chains:
            free = room - (right_below + 1) * (right.least + fence)
            if left == right or free < 0:
                continue
            if left.least < right.least // 2:
                yield _FreeDesign(left, left_below, right, right_below, right, right_below)
            merged = trie_at(left.least + right.least + right.least // 8)
            if merged in {left, right} or merged.exponent > _LAST_EXPONENT:
                continue
            inserted = min(merged.levels + 1, free // (merged.least + fence))
            yield _FreeDesign(left, left_below, right, right_below, merged, inserted)


def _build_free(design: _FreeDesign) -> Iterator[_Chains]:
    """Sizes that make the design true, at most once."""
    built = _build_between(design)
    return iter((built,) if built else ())


def _build_between(design: _FreeDesign) -> _Chains | None:
    left = design.left.path(0, range(design.left_below + 1), range(1 << design.left.levels))
    if left is None:
        return None
    before = design.left.size(left[0])
    built = _merged_apart(design, before) if design.merged != design.right else _merged_beside(design, before)
    if built is None:
        return None
    right, inserted, merged = built
    own = merged - before - right[0]
    if own < MINIMUM_BYTES:
        return None
    chains = [before, right[0], *(design.left.size(u) for u in left[1:]), *right[1:], *inserted]
    how = "a third trie" if design.merged != design.right else "the right neighbour's trie"
    return _Chains(
        f"merged chunk into {how}",
        tuple(chains),
        (before, own, right[0]),
        {
            "nodes below the left root": design.left_below,
            "nodes below the right root": design.right_below,
            "nodes above the merged": design.inserted,
            "bytes of the merged chunk": merged,
        },
    )


def _merged_apart(design: _FreeDesign, before: int) -> tuple[list[int], list[int], int] | None:
    """Sizes of the right neighbour's trie and of the merged chunk's, and of the merged chunk."""
    trie, count = design.merged, design.inserted
    right = design.right.path(0, range(design.right_below + 1), range(1 << design.right.levels))
    if right is None:
        return None
    sizes = [design.right.size(u) for u in right]
    least = max(trie.least, before + MINIMUM_BYTES + sizes[0])
    for units in range(max(count, trie.units(least)), 1 << trie.levels):
        taken = () if count > trie.levels else (units,)
        nodes = trie.path(units, range(count), range(1 << trie.levels), taken)
        if nodes is not None:
            return sizes, [trie.size(u) for u in nodes], trie.size(units)
    return None


def _merged_beside(design: _FreeDesign, before: int) -> tuple[list[int], list[int], int] | None:
    """As above: the merged chunk lies on the path that the right neighbour's leaf is on."""
    trie = design.right
    for units in _powers(before // UNIT_BYTES + design.right_below + 2, 1 << trie.levels):
        nodes = trie.path(units, range(design.right_below + 1), range(1 << trie.levels), (units,))
        if nodes is not None and units < 1 << trie.levels:
            return [trie.size(u) for u in nodes], [], trie.size(units)
    return None


# ---------------------------------------------------------------------------------------------------------------- plans

_Design = TypeVar("_Design", _AllocDesign, _FreeDesign)


def _offsets(request: HeapRequest) -> tuple[int | None, ...]:
    """Where in a cache line the headers of nodes lie: anywhere, or so that a node's words lie in two lines."""
    line = request.data_line_bytes
    return (None,) if line is None or line <= MINIMUM_BYTES else (None, line - MINIMUM_BYTES)


def _dearest(
    request: HeapRequest, designs: Sequence[_Design], build: Callable[[_Design], Iterator[_Chains]], offset: int | None
) -> Iterator[tuple[_Chains, Layout, list[int]]]:
    """The first designs that fit into the heap, by estimated instructions and, with a cache, by estimated cycles."""
    seen = set[tuple[int, ...]]()
    across = 1 if offset is None else 2
    for line in (0, _LINE) if request.data_line_bytes else (0,):
        worths = [design.worth(line, across) for design in designs]
        ranked = sorted(range(len(designs)), key=worths.__getitem__, reverse=True)
        built = (build(designs[number]) for number in ranked[:_MOST_TRIALS])
        yield from islice(_that_fit(request, built, offset, seen), _CANDIDATES)


def _that_fit(
    request: HeapRequest, built: Iterator[Iterator[_Chains]], offset: int | None, seen: set[tuple[int, ...]]
) -> Iterator[tuple[_Chains, Layout, list[int]]]:
    """Of each design the first that fits, if it is new."""
    for variants in built:
        for chains in variants:
            layout = Layout(request.heap_bytes)
            try:
                slots = _lay_out(request, layout, chains, offset)
            except HeapTooSmallError:
                continue
            if chains.chains not in seen:
                seen.add(chains.chains)
                yield chains, layout, slots
            break


def _lay_out(request: HeapRequest, layout: Layout, chains: _Chains, offset: int | None) -> list[int]:
    """Slots of the chains' chunks, and last of the chunk between neighbours where there is one."""
    slots, own = list[int](), list[int]()
    for number, size in enumerate(chains.chains):
        joined = len(chains.measured) > 1 and number == 1
        if joined:
            own.append(layout.used(chains.measured[1]))
        elif offset is not None and request.data_line_bytes:
            layout.align(offset, request.data_line_bytes)
        slots.append(layout.used(size))
        if len(chains.measured) == 1 or number > 0:
            layout.used(MINIMUM_BYTES)
    return slots + own


def _room(request: HeapRequest, offset: int | None) -> tuple[int, int]:
    fence = MINIMUM_BYTES if offset is None else _ALIGNED_FENCE_BYTES
    return request.heap_bytes - HEADER_BYTES, fence


def _worst_alloc(request: HeapRequest) -> tuple[ScenarioPlan, ...]:
    plans = [
        _alloc_plan(*found, offset)
        for offset in _offsets(request)
        for found in _dearest(request, list(_alloc_designs(*_room(request, offset))), _build_alloc, offset)
    ]
    return _some(request, plans)


def _some(request: HeapRequest, plans: list[ScenarioPlan]) -> tuple[ScenarioPlan, ...]:
    if not plans:
        message = f"a heap of {request.heap_bytes} bytes cannot hold the scenario's state; give a larger --heap."
        raise HeapTooSmallError(message)
    return tuple(plans)


def _where(variant: str, offset: int | None) -> str:
    return variant if offset is None else f"{variant}, nodes across two lines"


def _alloc_plan(chains: _Chains, layout: Layout, slots: list[int], offset: int | None) -> ScenarioPlan:
    facts, size = chains.facts, chains.measured[0]
    visited = sum(count for fact, count in facts.items() if fact.startswith("nodes"))
    return ScenarioPlan(
        scenario="worst-alloc",
        variant=_where(chains.variant, offset),
        trace=layout.trace(slots),
        measured=Operation(OperationKind.MALLOC, 0, request_of(size)),
        initial_cache=InitialCache.DIRTY,
        state=(
            f"{len(chains.chains)} free chunks in chains; a chunk of {size} bytes is wanted: {facts['nodes searched']} "
            f"nodes are searched, {facts['nodes on the leftmost path']} looked at, the root is replaced"
        ),
        why=_WHY_ALLOC,
        prediction={"nodes visited": visited, **facts, "free chunks in tries": len(chains.chains)},
        driver=_DRIVER,
        driver_value=visited,
    )


def _worst_free(request: HeapRequest) -> tuple[ScenarioPlan, ...]:
    plans = [
        _free_plan(*found, offset)
        for offset in _offsets(request)
        for found in _dearest(request, list(_free_designs(*_room(request, offset))), _build_free, offset)
    ]
    return _some(request, plans)


def _free_plan(chains: _Chains, layout: Layout, slots: list[int], offset: int | None) -> ScenarioPlan:
    facts = chains.facts
    visited = sum(count for fact, count in facts.items() if fact.startswith("nodes"))
    *frees, own = slots
    return ScenarioPlan(
        scenario="worst-free",
        variant=_where(chains.variant, offset),
        trace=layout.trace(frees),
        measured=Operation(OperationKind.FREE, own),
        initial_cache=InitialCache.DIRTY,
        state=(
            f"a used chunk of {chains.measured[1]} bytes between free ones of {chains.measured[0]} and "
            f"{chains.measured[2]}, both roots of tries; all merge into {facts['bytes of the merged chunk']} bytes"
        ),
        why=_WHY_FREE,
        prediction={"nodes visited": visited, **facts, "free chunks in tries": len(chains.chains)},
        driver=_DRIVER,
        driver_value=visited,
    )


def _worst_failing_alloc(request: HeapRequest) -> tuple[ScenarioPlan, ...]:
    """One chain in the request's trie, nothing above it, and too little left at the top."""
    heap = request.heap_bytes - HEADER_BYTES
    for offset in reversed(_offsets(request)):
        _, fence = _room(request, offset)
        chains = [(count, trie) for trie in _tries() for count in range(1, trie.levels + 1)]
        chains = [(count, trie) for count, trie in chains if count * (trie.least + fence) <= heap]
        for count, trie in sorted(chains, key=lambda c: (-c[0], c[1].least)):
            wanted = 1 << (count.bit_length() + 1)
            sizes = trie.path(wanted - 1, range(count), range(wanted - 1))
            layout = Layout(request.heap_bytes)
            if sizes is None or wanted > 1 << trie.levels:
                continue
            size = trie.size(wanted - 1)
            built = _Chains("", tuple(trie.size(u) for u in sizes), (size,), {})
            try:
                slots = _lay_out(request, layout, built, offset)
            except HeapTooSmallError:
                continue
            layout.fill()
            return (
                ScenarioPlan(
                    scenario="worst-failing-alloc",
                    variant=_where("one chain", offset),
                    trace=layout.trace(slots),
                    measured=Operation(OperationKind.MALLOC, 0, request_of(size)),
                    initial_cache=InitialCache.DIRTY,
                    state=f"{count} free chunks in a chain, all smaller than the {size} bytes that are wanted",
                    why=("The request's trie is searched down to the end; nothing fits, nor does anything else.",),
                    prediction={"nodes visited": count, "nodes searched": count, "free chunks in tries": count},
                    driver=_DRIVER,
                    driver_value=count,
                    refused=True,
                ),
            )
    return _some(request, [])


def _best_alloc(request: HeapRequest) -> tuple[ScenarioPlan, ...]:
    plans = []
    for chunks in (0, 1, 2):
        layout = Layout(request.heap_bytes)
        slots = [slot for _ in range(chunks) for slot in (layout.used(MINIMUM_BYTES), layout.used(MINIMUM_BYTES))]
        how = f"the bin of the least size holds {chunks} chunk(s)" if chunks else "all memory is the top chunk"
        plans.append(
            ScenarioPlan(
                scenario="best-alloc",
                variant=how,
                trace=layout.trace(slots[::2]),
                measured=Operation(OperationKind.MALLOC, 0, request_of(MINIMUM_BYTES)),
                initial_cache=InitialCache.WARM,
                state=f"{how}; malloc({request_of(MINIMUM_BYTES)}) takes the first",
                why=("The request is small and is served at once: no trie is looked at.",),
                prediction={"free chunks": chunks + 1, "free chunks in tries": 0},
            )
        )
    return tuple(plans)


def _best_free(request: HeapRequest) -> tuple[ScenarioPlan, ...]:
    plans = []
    for others, how in enumerate(("the top chunk", "an empty bin", "a bin that holds one chunk")):
        layout = Layout(request.heap_bytes)
        slots = [layout.used(MINIMUM_BYTES) for _ in range(1 + 2 * others)]
        plans.append(
            ScenarioPlan(
                scenario="best-free",
                variant=f"into {how}",
                trace=layout.trace([] if others < 2 else slots[:1]),
                measured=Operation(OperationKind.FREE, slots[-1 - (others > 0)]),
                initial_cache=InitialCache.WARM,
                state=f"a used chunk of {MINIMUM_BYTES} bytes, the one before it in use; free puts it into {how}",
                why=("No neighbour is in a bin or trie: nothing is taken out.", "The size is small: no trie."),
                prediction={"free chunks": 1 + (others == 2), "free chunks in tries": 0},
            )
        )
    return tuple(plans)


# ---------------------------------------------------------------------------------------------------------------- proof


def _state(guest: GuestHeap, plan: ScenarioPlan) -> Mapping[str, int | str]:
    """Facts of the guest's heap: from its chunks, and from the tries as malloc and free walk through them."""
    blocks, tries = walk(guest), Tries(guest)
    facts: dict[str, int | str] = {
        "free chunks": sum(block.free for block in blocks),
        "used blocks": sum(not block.free for block in blocks),
        "free chunks in tries": sum(block.free and block.size_bytes >= SMALL_LIMIT_BYTES for block in blocks[:-1]),
    }
    walks: dict[str, int] = {}
    if plan.scenario in {"worst-alloc", "worst-failing-alloc"}:
        walks = _alloc_walks(tries, plan)
    elif plan.scenario == "worst-free":
        walks = _free_walks(tries, plan)
    visited = sum(count for fact, count in walks.items() if fact.startswith("nodes"))
    return facts | {"nodes visited": visited} | walks


def _alloc_walks(tries: Tries, plan: ScenarioPlan) -> dict[str, int]:
    size = -(-(plan.measured.size_bytes + 4) // UNIT_BYTES) * UNIT_BYTES
    searched = tries.path(size)
    leftmost = tries.beside(size) or ([] if any(node.size >= size for node in searched) else tries.leftmost(size))
    if plan.refused:
        return {"nodes searched": len(searched) + len(leftmost)}
    best = min((node for node in searched + leftmost if node.size >= size), key=lambda node: node.size)
    rest = best.size - size
    return {
        "nodes searched": len(searched),
        "nodes on the leftmost path": len(leftmost),
        "nodes down to the leaf": len(tries.to_leaf(best)),
        "nodes above the rest": len(tries.path(rest)) if rest >= SMALL_LIMIT_BYTES else 0,
        "bytes of the rest": rest,
    }


def _free_walks(tries: Tries, plan: ScenarioPlan) -> dict[str, int]:
    """The right neighbour's leaf takes its root's place: on a path through both is one node less."""
    guest = tries.guest
    own = guest.slot(plan.measured.slot) - HEADER_BYTES
    size = _size_at(guest, own)
    left, right = tries.node(own - guest.read_word(own)), tries.node(own + size)
    merged = left.size + size + right.size
    moved: list[Node] = tries.to_leaf(right)[-1:]
    path = tries.path(merged)
    return {
        "nodes below the left root": len(tries.to_leaf(left)),
        "nodes below the right root": len(tries.to_leaf(right)),
        "nodes above the merged": len(path) - sum(node in path for node in moved),
        "bytes of the merged chunk": merged,
    }


def _size_at(guest: GuestHeap, address: int) -> int:
    return guest.read_word(address + 4) & ~FLAGS


_BUILDERS: Mapping[str, Callable[[HeapRequest], tuple[ScenarioPlan, ...]]] = MappingProxyType(
    {
        "worst-alloc": _worst_alloc,
        "worst-free": _worst_free,
        "worst-failing-alloc": _worst_failing_alloc,
        "best-alloc": _best_alloc,
        "best-free": _best_free,
        "random": random_plans,
    }
)

FAMILY = Family(
    builders=_BUILDERS,
    walk=walk,
    state=_state,
)
