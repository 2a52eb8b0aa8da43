"""Operations that look for trouble: each class of sizes in each set, exhaustion of heap and descriptors, every start.

Random operations do not come by what is rare: a path that one address takes, or one size in one set. These go through
them in turn. What is asked for next depends on the blocks that were returned: the sweep asks for the set that lies
behind the last block, so that blocks lie without a gap from the start of the heap to its end.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise

from wcet_probe.model.scenario import Trace

Call = tuple[int, int, int, int]
"""Kind (0: malloc, 1: free), slot, bytes and set."""
Blocks = Sequence[int]
"""The block of each operation of a piece: malloc's result, free's argument."""
Pieces = Generator[Trace, Blocks, None]

_PIECE = 1 << 14
_SMALLEST_PIECE = 16
_CLASSES_A_ROW = 4
_GAP_SETS = 2


@dataclass(frozen=True, slots=True)
class Place:
    """Where operations are run: a heap of ``heap_bytes`` bytes and a cache of ``sets`` sets of ``line_bytes`` bytes."""

    heap_bytes: int
    sets: int
    line_bytes: int

    def set_of(self, address: int) -> int:
        """The set of ``address``."""
        return address // self.line_bytes % self.sets


def classes(place: Place) -> Pieces:
    """Each class of sizes in each set: a block is freed and taken again beside one that is held, then both freed."""
    yield from _in_pieces(
        call
        for size in _sizes(place.heap_bytes // 8)
        for chosen in range(place.sets)
        for call in (
            (0, 0, size, chosen),
            (0, 1, 1, chosen),
            (1, 0, 0, 0),
            (0, 0, size, chosen),
            (1, 0, 0, 0),
            (1, 1, 0, 0),
        )
    )


def gaps(place: Place) -> Pieces:
    """Blocks half a cache apart until the heap refuses, so that each leaves a gap that wants to be described.

    Then every second one is freed, so that none has a free neighbour but the gap; they are taken again, and all are
    freed, each between two free neighbours.
    """
    size = _GAP_SETS * place.line_bytes * 2
    count = 4 * place.heap_bytes // (place.sets * place.line_bytes)
    taken = [(0, slot, size, slot * place.sets // 2 % place.sets) for slot in range(count)]
    freed = [(1, slot, 0, 0) for slot in range(count)]
    for _ in range(2):
        yield from _in_pieces(iter([*taken, *freed[::2], *taken[::2], *freed[::2], *freed[1::2]]))


def sweep(place: Place) -> Pieces:
    """The smallest blocks one behind the other until the heap refuses, then all are freed: every start comes by."""
    slot, last, step, wanted = 0, 0, 0, 0
    piece = _SMALLEST_PIECE
    while True:
        calls: list[Call] = []
        at = last
        for number in range(piece):
            at += step
            calls.append((0, slot + number, 1, place.set_of(at) if step else wanted))
        blocks = yield _trace(calls)
        slot += piece
        if not all(blocks):
            break
        distances = [behind - before for before, behind in pairwise(blocks)]
        step = min((distance for distance in distances if distance > 0), default=0)
        last = blocks[-1]
        piece = min(2 * piece, _PIECE)
    yield from _in_pieces((1, number, 0, 0) for number in range(slot))


GUIDED: tuple[tuple[str, Callable[[Place], Pieces]], ...] = (
    ("each class of sizes in each set", classes),
    ("gaps until the descriptors end", gaps),
    ("every start in turn", sweep),
)


def _sizes(most: int) -> Iterator[int]:
    """Sizes of each row of powers of two, ``_CLASSES_A_ROW`` of each."""
    row = 4
    while row <= most:
        yield from (row + part * row // _CLASSES_A_ROW for part in range(_CLASSES_A_ROW))
        row *= 2


def _in_pieces(calls: Iterator[Call]) -> Pieces:
    while piece := list(islice(calls, _PIECE)):
        yield _trace(piece)


def _trace(calls: Sequence[Call]) -> Trace:
    kinds, slots, sizes, wanted = zip(*calls, strict=True)
    return Trace(kinds, slots, sizes, wanted, max(slots) + 1)
