"""States of fast-fit in which numbers of its facts are attained; sizes are those of blocks, in bytes.

Blocks are numbered by address. Each that is freed is as large as those that were freed before it, or larger: it becomes
the root, so that the order says the tree.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from wcet_probe.model.scenario import Operation, OperationKind, Trace
from wcet_probe.scenarios.families import HeapRequest
from wcet_probe.scenarios.fast_fit.heap import HEADER_BYTES, Sizes, layout_trace

_State = tuple[str, Trace, Operation]
_TURNS = (2, 4, 8)
"""How many pairs of nodes of equal size begin rounds of merging, if not as many as there is room for."""


def _free(request: HeapRequest, variant: str, sizes: Sequence[int], freed: Sequence[int], own: int) -> _State:
    """Free of the block ``own``; another used block takes what the sizes leave of the heap."""
    stretch = next(number for number in range(len(sizes)) if number != own and number not in freed)
    return (
        variant,
        layout_trace(request, sizes, freed, stretch=stretch),
        Operation(OperationKind.FREE, len(sizes) - 1 - own),
    )


def _malloc(request: HeapRequest, variant: str, sizes: Sequence[int], freed: Sequence[int], size: int) -> _State:
    trace = layout_trace(request, sizes, freed, stretch=1)
    return variant, trace, Operation(OperationKind.MALLOC, 0, size - HEADER_BYTES)


def _mirrored(sizes: Sequence[int], freed: Sequence[int], own: int = 0) -> tuple[list[int], list[int], int]:
    last = len(sizes) - 1
    return list(reversed(sizes)), [last - number for number in freed], last - own


def _chains(request: HeapRequest) -> Iterator[_State]:
    """Free behind a chain of all nodes that goes to the right, or before one that goes to the left."""
    heap = Sizes.of(request)
    count = heap.equal_blocks
    # The block touches the chain's end, or a used one lies between.
    for number, way in ((count, "touches"), (count - 1, "does not touch")):
        own = 2 * number - (number == count)
        sizes = [heap.least] * (own + 1)
        freed = list(reversed(range(0, 2 * number, 2)))
        yield _free(request, f"behind a chain to the right that it {way}", sizes, freed, own)
        yield _free(request, f"before a chain to the left that it {way}", *_mirrored(sizes, freed, own))


def _turns(request: HeapRequest) -> Iterator[_State]:
    """Free of a block around which a chain turns that begins and ends on the same side, and touches it nowhere."""
    heap = Sizes.of(request)
    side = (heap.equal_blocks - 2) // 2
    own = 2 * side
    below, above = range(0, own, 2), range(own + 2, own + 4 + 2 * side, 2)
    freed = sorted((*below, *above), key=lambda number: (abs(number - own), -number))
    sizes = [heap.least] * (above[-1] + 1)
    if sum(sizes) <= heap.usable:
        yield _free(request, "a chain that turns, and begins and ends above", sizes, freed, own)
        yield _free(request, "a chain that turns, and begins and ends below", *_mirrored(sizes, freed, own))


def _placed(request: HeapRequest) -> Iterator[_State]:
    """Free of a least block behind a chain of larger ones: it is placed below all."""
    heap = Sizes.of(request)
    larger = heap.least + heap.granule
    count = (heap.usable - heap.least) // (larger + heap.least)
    sizes = [larger, heap.least] * count + [heap.least]
    freed = list(reversed(range(0, 2 * count, 2)))
    yield _free(request, "placed below a chain of larger blocks", sizes, freed, 2 * count)


def _pairs(heap: Sizes, least: int, own_bytes: int) -> int:
    """How many pairs of nodes of equal size there is room for, beside ``own_bytes``."""
    count = 0
    while own_bytes + sum(2 * (least + heap.granule * n + heap.least) for n in range(count + 1)) <= heap.usable:
        count += 1
    return count


def _two_spines(
    heap: Sizes, middle: Sequence[int], pairs: int, least: int, *, to_left: bool
) -> tuple[list[int], list[int], int]:
    """Blocks ``middle`` between two spines of descending sizes, each pair of them equal, and a chain at an end of one.

    Returns:
        Sizes, nodes in the order in which they are freed, and the number of the first block of ``middle``.
    """
    sides = [least + heap.granule * number for number in range(pairs)]
    taken = sum(middle) + sum(2 * (size + heap.least) for size in sides)
    # Nodes that go on to the left pass larger ones only, so that the chain's are larger than the end of the other side.
    link = least + heap.granule * to_left
    chain = (heap.usable - taken) // (link + heap.least)
    spine, other = [link] * chain + sides[to_left and chain > 0 :], sides
    left, right = (other, spine) if to_left else (spine, other)
    sizes = [size for node in reversed(left) for size in (node, heap.least)]
    start = len(sizes)
    sizes += [*middle, *(size for node in right for size in (heap.least, node))]
    end = start + len(middle)
    # Of equal nodes the one on the other side is freed first: it is below, and the chain's begin at its far end.
    places = [(size, 0, start - 2 * (number + 1)) for number, size in enumerate(left)]
    places += [(size, 1, end + 2 * number + 1) for number, size in enumerate(right)]
    return sizes, [place for *_, place in sorted(places, key=lambda one: one[:2])], start


def _merged(request: HeapRequest) -> Iterator[_State]:
    """The root leaves, or its rest sinks, and its subtrees are merged in rounds that take from each in turn."""
    heap = Sizes.of(request)
    for to_left in (False, True):
        for least, sinks in ((heap.least, False), (heap.least + heap.granule, True)):
            for wanted in (1, *_TURNS, 1 << 30):
                pairs = 0
                while pairs < wanted:
                    root = least + heap.granule * (pairs + 2) + heap.least_rest * sinks
                    if _pairs(heap, least, root) <= pairs:
                        break
                    pairs += 1
                if pairs < 1:
                    continue
                root = least + heap.granule * (pairs + 1) + heap.least_rest * sinks
                sizes, freed, own = _two_spines(heap, (root,), pairs, least, to_left=to_left)
                what = f"the root {'is cut' if sinks else 'leaves'} above {pairs} pairs{', to the left' * to_left}"
                yield _malloc(request, what, sizes, [*freed, own], root - heap.least_rest * sinks)


def _neighbour_leaves(request: HeapRequest) -> Iterator[_State]:
    """The upper or the lower neighbour is the root and leaves, and rounds of merging take from each side in turn."""
    heap = Sizes.of(request)
    least = heap.least
    for to_left in (False, True):
        for wanted in (1, *_TURNS, 1 << 30):
            pairs = 0
            while pairs < wanted and _pairs(heap, least, 2 * least + heap.granule * (pairs + 2)) > pairs:
                pairs += 1
            root = least + heap.granule * pairs
            for lower in (True, False):
                middle = (root, least) if lower else (least, root)
                sizes, freed, start = _two_spines(heap, middle, pairs, least, to_left=to_left)
                node, own = (start, start + 1) if lower else (start + 1, start)
                what = f"a neighbour {'below' if lower else 'above'} leaves {pairs} pairs{', to the left' * to_left}"
                yield _free(request, what, sizes, [*freed, node], own)


def _placed_and_merged(request: HeapRequest) -> Iterator[_State]:
    """A neighbour leaves a chain, below larger nodes, and what is merged is placed below them again."""
    heap = Sizes.of(request)
    least = heap.least
    larger = 2 * least + heap.granule
    for count in (8, heap.usable // (4 * (larger + least)), heap.usable // (2 * (larger + least))):
        rest = heap.usable - count * (larger + least) - 4 * least
        chain = rest // (2 * least)
        sizes = [least] * (2 * chain) + [least, least, least, least] + [least, larger] * count
        node = 2 * chain
        freed = [*range(node - 2, -1, -2), node + 3, node, *range(node + 5, len(sizes), 2)]
        yield _free(request, f"a neighbour leaves a chain below {count} larger nodes", sizes, freed, node + 1)


def _two_children(request: HeapRequest) -> Iterator[_State]:
    """The search passes nodes that have two children each."""
    heap = Sizes.of(request)
    count = heap.equal_blocks
    freed = [number for node in range(0, count - 1, 2) for number in (2 * node + 2, 2 * node)]
    sizes = [heap.least] * (2 * count - 1)
    yield _malloc(request, "a search past nodes with two children", sizes, freed, heap.least)


STATES = (_chains, _turns, _placed, _merged, _neighbour_leaves, _placed_and_merged, _two_children)
