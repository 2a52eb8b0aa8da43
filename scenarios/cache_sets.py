"""Where blocks lie in a data cache: fences between them that bring some into one set, where they evict each other.

A walk that comes back the way it went finds its nodes in the cache, unless they share a set: more lines than the set
has ways are never all there. Addresses share one if they are congruent modulo the bytes of a way.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

from wcet_probe.scenarios.families import HeapRequest

LINES_OF_A_WAY = 128
"""Of caches of 16 KiB with four ways and lines of 32 bytes; with others such states are merely further ones."""

_WAYS = 4
"""Of a cache with one counter for all sets."""

_TURNS = (3, 7, 15)
"""After how many all ways were evicted: four of a walk, eight, and four of one that another walk goes along again."""

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


def last_of_ways_late(slots: Sequence[int]) -> list[int]:
    """``slots``, one in each line, of which the last of each way's worth come at the end.

    So one counter of a whole cache is a line behind from each way's worth on: it evicts all ways in turn, what others
    modified as well as what the walk itself has filled. Where a walk that is made twice goes through a third more lines
    than the cache has, or more, and the last one is left out if need be, the second finds nothing of the first.
    """
    late = slots[LINES_OF_A_WAY - 1 : -1 : LINES_OF_A_WAY]
    return [*(slot for number, slot in enumerate(slots, 1) if number % LINES_OF_A_WAY or number == len(slots)), *late]


def two_ways_gathered(slots: Sequence[int]) -> list[int]:
    """``slots``, as of `last_of_ways_late`, of which three each of the first two ways' worth come behind the first.

    Where a walk that is made twice goes through little more than the lines of the cache, or less, the dearest order of
    many that a search tried in a model of the cache: it finds next to nothing of the first walk either.
    """
    way = LINES_OF_A_WAY
    moved = [end - back for end in (way, 2 * way) for back in (1, 2, 3)]
    others = [number for number in range(len(slots)) if number not in moved]
    return [slots[number] for number in (*others[: way - 1], *moved, *others[way - 1 :])]


@dataclass(frozen=True, slots=True)
class Turns:
    """How a walk goes through nodes of which two neighbours share a line: every second one first, then the others.

    Where one counter serves the whole cache, the first half fills the lines of each way's worth into the way that the
    last one was filled into, so that it evicts itself and leaves the others alone. If it turns behind a node, so that
    the next one comes at once and the other half of the nodes from there on, the second half leaves out the line
    between the two, and the counter is a line behind: with a turn for each way's worth of lines the second half evicts
    all ways in turn, and finds next to nothing of the first one. Of the fills and write-backs that no order of visits
    exceeds, at most two for each node and one for each line of the cache, it lacks some ten.

    Attributes:
        behind: numbers of the nodes that the order turns behind.
        late: how many of the second half's first nodes are visited last: it begins where the counter stands.
        left_out: numbers of nodes that are not visited.
    """

    behind: tuple[int, ...] = ()
    late: int = 0
    left_out: tuple[int, ...] = ()

    def order(self, slots: Sequence[int]) -> list[int]:
        """``slots``, by ascending address, in this order, but for those left out."""
        first, turns, number = list[int](), list(reversed(self.behind)), 0
        while number < len(slots):
            first.append(number)
            turning = bool(turns) and number >= turns[-1]
            if turning:
                turns.pop()
            number += 1 if turning else 2
        second = sorted(set(range(len(slots))).difference(first))
        visited = (*first, *second[self.late :], *second[: self.late])
        return [slots[number] for number in visited if number not in self.left_out]

    @property
    def name(self) -> str:
        """For variants."""
        turned = f", turned behind {', '.join(map(str, self.behind))}" if self.behind else ""
        without = f", without {', '.join(map(str, self.left_out))}" if self.left_out else ""
        return turned + without + (f", the second half from its number {self.late} on" if self.late else "")


def turned_walks(count: int, request: HeapRequest) -> list[Turns]:
    """Orders of ``count`` nodes, a visit to each of which is to a line that it shares with the node on either side.

    The first one does not turn. Which of the others is dearest depends on where the counter stands when the second half
    begins, and so on ``count``, in heaps that are not much larger than the cache; all are as good in others.
    """
    if not request.data_line_bytes:
        return [Turns()]
    last = range(LINES_OF_A_WAY, count, LINES_OF_A_WAY)
    fewer = len(last) - 1 if len(last) <= _TURNS[0] else 0  # Of the last way's worth there may be few lines.
    numbers = sorted({fewer, *(min(len(last), turns) for turns in _TURNS)} - {-1, 0})
    if count > _MOST_WALKED_TWICE:
        return [Turns(), *(Turns(tuple(last[:turns])) for turns in numbers)]
    begins = [(begin, late) for begin in ((), (0,), (LINES_OF_A_WAY // 2,)) for late in (0, 1)]
    walks = [
        Turns((*begin, *(end + shift for end in last[:turns])), late)
        for turns in numbers
        for shift in (0, 1)
        for begin, late in begins
    ]
    return [Turns(), *walks]


def second_left_out(walks: Sequence[Turns], count: int) -> list[Turns]:
    """Those of ``walks`` through ``count`` nodes that turn behind the first node, without the second.

    So the first half leaves out a line at once, and finds the counter where it evicts what others modified when it
    comes to the lines behind a way's worth. It is dearer than what the node costs where two ways hold all nodes: some
    0.4 to 0.9 per cent at 4,600 to 8,192 bytes, and nothing in larger heaps.
    """
    if not LINES_OF_A_WAY < count <= 2 * LINES_OF_A_WAY:
        return []
    return [replace(walk, left_out=(1,)) for walk in walks if walk.behind[:1] == (0,) and not walk.late]


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
