"""Worst, best and random states of dlmalloc28.

Every loop goes down a trie, so the worst states are chains of nodes: each node of a chain is the only child of the one
above, and no size on the way is the one that is looked for. Chains cost memory: d nodes below one another need sizes of
at least 2^(d + 3) bytes, twice that if all of them are on a request's path and too small for it. So they take about
d * 2^(d + 3) bytes, and a heap of H bytes has chains of about log2 H - log2 log2 H nodes.

Sources: the public description of the design; H11 §V and L11 name the allocator and state no worst state of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from wcet_probe.errors import HeapTooSmallError
from wcet_probe.model.scenario import InitialCache, Operation, OperationKind, ScenarioPlan
from wcet_probe.scenarios.dlmalloc28.chains import (
    CHILDREN_AT,
    DRIVER,
    Chains,
    alignments,
    all_tries,
    at_least_one,
    lay_out,
    room_and_fence,
    variant_name,
)
from wcet_probe.scenarios.dlmalloc28.free import worst_free
from wcet_probe.scenarios.dlmalloc28.heap import (
    FLAGS,
    HEADER_BYTES,
    MINIMUM_BYTES,
    SMALL_LIMIT_BYTES,
    UNIT_BYTES,
    Layout,
    Tries,
    request_of,
    walk,
)
from wcet_probe.scenarios.dlmalloc28.malloc import worst_alloc
from wcet_probe.scenarios.families import Family, GuestHeap, HeapRequest
from wcet_probe.scenarios.random_workload import random_plans


def _worst_failing_alloc(request: HeapRequest) -> tuple[ScenarioPlan, ...]:
    """One chain in the request's trie, nothing above it, and too little left at the top."""
    heap = request.heap_bytes - HEADER_BYTES
    for line in reversed(alignments(request)):
        _, fence = room_and_fence(request, line)
        chains = [(count, trie) for trie in all_tries() for count in range(1, trie.levels + 1)]
        chains = [(count, trie) for count, trie in chains if count * (trie.least + fence) <= heap]
        for count, trie in sorted(chains, key=lambda c: (-c[0], c[1].least)):
            wanted = 1 << (count.bit_length() + 1)
            sizes = trie.path(wanted - 1, range(count), range(wanted - 1))
            layout = Layout(request.heap_bytes)
            if sizes is None or wanted > 1 << trie.levels:
                continue
            size = trie.size(wanted - 1)
            built = Chains("", tuple(trie.size(u) for u in sizes), (CHILDREN_AT,) * count, (size,), {})
            try:
                slots = lay_out(layout, built, line)
            except HeapTooSmallError:
                continue
            layout.fill()
            return (
                ScenarioPlan(
                    scenario="worst-failing-alloc",
                    variant=variant_name("one chain", line),
                    trace=layout.trace(slots),
                    measured=Operation(OperationKind.MALLOC, 0, request_of(size)),
                    initial_cache=InitialCache.DIRTY,
                    state=f"{count} free chunks in a chain, all smaller than the {size} bytes that are wanted",
                    why=("The request's trie is searched down to the end; nothing fits, nor does anything else.",),
                    prediction={"nodes visited": count, "nodes searched": count, "free chunks in tries": count},
                    driver=DRIVER,
                    driver_value=count,
                    refused=True,
                ),
            )
    return at_least_one(request, [])


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
    """The left neighbour leaves its trie, then the right one, then the merged chunk goes down its own."""
    guest = tries.guest
    own = guest.slot(plan.measured.slot) - HEADER_BYTES
    size = _size_at(guest, own)
    left, right = own - guest.read_word(own), own + size
    first = tries.node(left)
    between = tries.without(first)
    second = between.node(right)
    behind = between.without(second)
    merged = first.size + size + second.size
    return {
        "nodes below the left neighbour": len(tries.to_leaf(first)),
        "nodes below the right neighbour": len(between.to_leaf(second)),
        "nodes above the merged": len(behind.path(merged)),
        "bytes of the merged chunk": merged,
    }


def _size_at(guest: GuestHeap, address: int) -> int:
    return guest.read_word(address + 4) & ~FLAGS


FAMILY = Family(
    builders=MappingProxyType(
        {
            "worst-alloc": worst_alloc,
            "worst-free": worst_free,
            "worst-failing-alloc": _worst_failing_alloc,
            "best-alloc": _best_alloc,
            "best-free": _best_free,
            "random": random_plans,
        }
    ),
    walk=walk,
    state=_state,
)
