"""Where blocks lie in a data cache: fences between them that bring some into one set, where they evict each other.

A walk that comes back the way it went finds its nodes in the cache, unless they share a set: more lines than the set
has ways are never all there. Addresses share one if they are congruent modulo the bytes of a way.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import product

from wcet_probe.scenarios.families import HeapRequest

LINES_OF_A_WAY = 128
"""Of caches of 16 KiB with four ways and lines of 32 bytes; with others such states are merely further ones."""

_WAYS = 4
"""Of a cache with one counter for all sets."""

_MOST_WALKED_TWICE = 2 * _WAYS * LINES_OF_A_WAY
"""Nodes of the longest walk of which something is left when it is made again."""

_MOST_GAPPED = 64 * LINES_OF_A_WAY
"""Nodes of the longest walk that gaps are tried with."""


_MOST_LEFT_OUT = 512 * LINES_OF_A_WAY
"""Of lists, whose states are made in linear time: gaps add some four in a thousand."""


def way_bytes(request: HeapRequest) -> int | None:
    """Distance in bytes of addresses in one set, as far as states know of it; None without a cache."""
    return request.data_line_bytes and LINES_OF_A_WAY * request.data_line_bytes


def gapped_walks(count: int, request: HeapRequest, most: int = _MOST_GAPPED) -> tuple[tuple[int, ...], ...]:
    """Which of ``count`` nodes, each in the line behind that of the one before, a walk passes if it leaves some out.

    Where one counter serves the whole cache, a walk through as many lines as a way has sets finds the counter where it
    was, and evicts what it filled itself, which is clean. With a line less, or two, it evicts what others modified.
    They are left out at the end of each way's worth of nodes, until all lines are the walk's own: in a cache of four
    ways, or of eight. There is no such walk without a cache, or where a way holds all nodes; and none is tried through
    more nodes than ``most``: what a cache full of modified lines adds is below some two per cent by default.
    """
    if count > most:
        return ()
    walks = dict[tuple[int, ...], None]()
    for gap, ways in product((1, 2), (4, 8)) if request.data_line_bytes else ():
        ends = [LINES_OF_A_WAY * number for number in range(1, ways)]
        left_out = {end - back for end in ends for back in range(1, gap + 1)}
        walks[tuple(number for number in range(count) if number not in left_out)] = None
    return tuple(walk for walk in walks if len(walk) < count)


def left_out_of_walks(count: int, request: HeapRequest) -> list[list[int]]:
    """Which of ``count`` nodes each of `gapped_walks` leaves out; those behind its last one are not among them."""
    walks = gapped_walks(count, request, _MOST_LEFT_OUT)
    return [sorted(set(range(max(walk))).difference(walk)) for walk in walks]


def left_out_of_turned_walks(count: int, request: HeapRequest) -> list[tuple[list[int], list[int]]]:
    """The same for walks as of `every_second_first` that turn: what is left out so, and what is on the way besides.

    A visit is to two lines. So where one counter serves the whole cache, it is two lines behind from each node on that
    is left out, and one from the turn on: phases enough for all ways. In heaps that are much larger than the cache one
    behind the turn does it. Where the cache holds the heap, or nearly, a few alone do, and which ones differs from heap
    to heap: those tried were found on some, as the dearest of many. There the last one visited before the others come,
    or the second of these, may be one.
    """
    gaps = left_out_of_walks(count, request)
    if not gaps:
        return []
    spreads = [(gaps[0], _first_ones(count, (75,)))]
    if count <= _MOST_WALKED_TWICE:
        last, second = count - 2 | 1, 3
        spreads += [([], _first_ones(count, percents)) for percents in ((30, 75), (20, 30), (30, 60, 80))]
        spreads += [([], [last]), ([], [second]), ([], [1, last])]
    return spreads


def _first_ones(count: int, percents: Collection[int]) -> list[int]:
    """Numbers at ``percents`` of ``count`` of nodes that are visited before their neighbours."""
    return [_visited_first(count * percent // 100, count) for percent in percents]


def _visited_first(number: int, count: int) -> int:
    """``number``, or the next one, which is visited before its neighbours where the order turns in the middle."""
    return number | 1 if number > count // 2 else number + number % 2


def endings(count: int, request: HeapRequest) -> range:
    """How many nodes are to be left out at the end of a walk through ``count``, one in each line, that is made twice.

    Where one counter serves the whole cache, it stands at the second walk's begin where the first one has left it. What
    the second one misses then evicts what is visited next, or what is not visited any more; and which it is changes
    with each line. It makes no difference where a way holds all nodes, nor where the cache holds few of them.
    """
    fits = bool(request.data_line_bytes) and LINES_OF_A_WAY < count <= _MOST_WALKED_TWICE
    return range(1, _WAYS if fits else 1)


def shifts_of_walks(count: int, request: HeapRequest) -> list[list[int]]:
    """Which nodes are to be left out within the first way of such a walk, beside those of `left_out_of_walks`."""
    middle = LINES_OF_A_WAY // 2
    return [list(range(middle, middle + number)) for number in endings(count, request)]


def every_second_first(slots: Sequence[int], *, turned: bool = False) -> list[int]:
    """An order in which two neighbours, which share a line, are visited far from each other: every second one first.

    ``turned``: the others first in the second half, which begins with the other of two neighbours. One counter of a
    whole cache is a line behind from there on.
    """
    middle = len(slots) // 2 | 1 if turned else len(slots)
    numbers = range(len(slots))
    first = [number for number in numbers if (number % 2 == 0) == (number < middle)]
    return [slots[number] for number in (*first, *sorted(set(numbers).difference(first)))]


def fences(
    sizes: Sequence[int],
    least: int,
    moved: Collection[int],
    *,
    residue: int,
    modulus: int,
    position: int = 0,
    wider: Collection[int] = (),
) -> Iterator[int]:
    """Sizes of the fences behind blocks of ``sizes`` that bring some of these to ``residue`` modulo ``modulus``.

    Parameters:
        sizes: of the blocks, in address order, in bytes.
        least: bytes of a fence that moves nothing.
        moved: numbers of the blocks to be moved; the first block stays where it is.
        residue: where they shall begin, in bytes modulo ``modulus``, or twice that.
        modulus: in bytes.
        position: where the first block begins, in bytes.
        wider: those of ``moved`` that are brought there modulo twice ``modulus``.
    """
    for number, size in enumerate(sizes, 1):
        position += size + least
        gap = (residue - position) % (2 * modulus if number in wider else modulus) if number in moved else 0
        position += gap
        yield least + gap
