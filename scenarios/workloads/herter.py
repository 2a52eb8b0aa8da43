"""The three programs of H11 §V.A, small ones of our own: what they ask of their heap while they do the real thing.

H11 (J. Herter et al., CAMA: a predictable cache-aware memory allocator, ECRTS 2011) records *susan*, *patricia* and
*dijkstra* of MiBench on small and large inputs. Here each is written anew, and its blocks are those of a C program of
32 bits: a node of a trie takes five words, a route three, an entry of a queue four. Inputs are drawn from the seed;
sizes are chosen so that what is live at most is near the paper's memory need (figure 8):

* susan: corners of a picture of 76 by 95 or 384 by 288 grey values, by comparing each with its neighbourhood in a
  circle of 37; blocks are the picture, the table of brightness differences, the responses and four more maps of words,
  and the corners that are found.
* patricia: a routing table, a trie of addresses whose forks name the bit in which their sides differ, of 8,378 or
  48,247 routes, each read into a line of 32 bytes that is freed at once. Routes are freed at the end only.
* dijkstra: shortest ways in a matrix of 100 nodes, with a queue of entries that are allocated and freed, between 20 or
  100 pairs of nodes.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType

from wcet_probe.traces.operations import TraceRow

_WORD_BYTES = 4
_MASK = ((0, 3), (1, 5), (2, 7), (3, 7), (4, 7), (5, 5), (6, 3))
"""Row and width of the circle of 37 pixels."""
_BRIGHTNESS_LEVELS, _BRIGHTNESS_STEP = 516, 20


class Heap:
    """Numbers the blocks of a program and keeps the operations."""

    def __init__(self) -> None:
        self.rows: list[TraceRow] = []
        self._blocks = 0

    def malloc(self, size_bytes: int) -> int:
        """A block of ``size_bytes``, by its number."""
        self._blocks += 1
        self.rows.append(TraceRow("malloc", self._blocks, size_bytes))
        return self._blocks

    def free(self, block: int) -> None:
        """Give ``block`` back."""
        self.rows.append(TraceRow("free", block))


# ------------------------------------------------------------------------------------------------------------- susan


def picture(width: int, height: int, seed: int) -> list[list[int]]:
    """Grey values: rectangles and a slope, with noise."""
    draw = random.Random(seed)  # noqa: S311  (a workload, no secret)
    grey = [[(x * 96) // width + draw.randrange(6) for x in range(width)] for _ in range(height)]
    for _ in range(6):
        left, top = draw.randrange(width // 2), draw.randrange(height // 2)
        right, bottom = draw.randint(left + 8, width - 4), draw.randint(top + 8, height - 4)
        level = draw.randrange(64, 256)
        for y in range(top, bottom):
            grey[y][left:right] = [level] * (right - left)
    return grey


def corners(grey: list[list[int]]) -> list[tuple[int, int]]:
    """Places whose neighbourhood has few pixels of their brightness, and fewer than those around them."""
    height, width = len(grey), len(grey[0])
    circle = [(y - 3, x) for y, span in _MASK for x in range(-(span // 2), span // 2 + 1)]
    least = len(circle) // 2
    response = [[0] * width for _ in range(height)]
    for y in range(4, height - 4):
        for x in range(4, width - 4):
            here = grey[y][x]
            alike = sum(abs(grey[y + dy][x + dx] - here) < _BRIGHTNESS_STEP for dy, dx in circle)
            response[y][x] = max(0, least - alike)
    return [
        (x, y)
        for y in range(4, height - 4)
        for x in range(4, width - 4)
        if response[y][x]
        and all(response[y][x] >= response[y + dy][x + dx] for dy in range(-3, 4) for dx in range(-3, 4))
    ]


def _susan(width: int, height: int, maps: int, seed: int, _allocations: int) -> Iterator[TraceRow]:
    """``maps``: how many further arrays of words the program keeps beside the responses (directions, centres)."""
    heap = Heap()
    grey = picture(width, height, seed)
    name, image = heap.malloc(80), heap.malloc(width * height)
    table = heap.malloc(_BRIGHTNESS_LEVELS)
    response = heap.malloc(width * height * _WORD_BYTES)
    others = [heap.malloc(width * height * _WORD_BYTES) for _ in range(maps)]
    found = [heap.malloc(6 * _WORD_BYTES) for _ in corners(grey)]
    for block in (*found, *others[::-1], response, table, image, name):
        heap.free(block)
    return iter(heap.rows)


# ---------------------------------------------------------------------------------------------------------- patricia


@dataclass(slots=True)
class _Node:
    """A node: the first bit from the left in which its two sides differ; a route where it is a leaf."""

    bit: int
    address: int
    left: _Node | None = None
    right: _Node | None = None


class RoutingTable:
    """A Patricia trie of 32-bit addresses; each route is a leaf of two blocks, each fork a block."""

    NODE_BYTES, ROUTE_BYTES = 5 * _WORD_BYTES, 3 * _WORD_BYTES

    def __init__(self, heap: Heap) -> None:
        self._heap = heap
        self._root: _Node | None = None
        self.blocks: list[int] = []

    def insert(self, address: int) -> bool:
        """Add a route; False where it is there already."""
        nearest = self._leaf(address)
        if nearest is not None and nearest.address == address:
            return False
        self.blocks += [self._heap.malloc(self.NODE_BYTES), self._heap.malloc(self.ROUTE_BYTES)]
        leaf = _Node(32, address)
        if nearest is None:
            self._root = leaf
            return True
        differs = 32 - (nearest.address ^ address).bit_length()
        self.blocks.append(self._heap.malloc(self.NODE_BYTES))
        above, below = None, self._root
        while below is not None and below.bit < differs:
            above, below = below, self._side(below, address)
        fork = _Node(differs, address)
        fork.left, fork.right = (below, leaf) if _bit(address, differs) else (leaf, below)
        if above is None:
            self._root = fork
        elif _bit(address, above.bit):
            above.right = fork
        else:
            above.left = fork
        return True

    def contains(self, address: int) -> bool:
        """Whether there is a route."""
        leaf = self._leaf(address)
        return leaf is not None and leaf.address == address

    def _leaf(self, address: int) -> _Node | None:
        node = self._root
        while node is not None and node.bit < 32:
            node = self._side(node, address)
        return node

    @staticmethod
    def _side(node: _Node, address: int) -> _Node | None:
        return node.right if _bit(address, node.bit) else node.left


def _bit(address: int, number: int) -> int:
    return address >> (31 - number) & 1


def _patricia(routes: int, seed: int, _allocations: int) -> Iterator[TraceRow]:
    draw, heap = random.Random(seed), Heap()  # noqa: S311  (a workload, no secret)
    table, inserted = RoutingTable(heap), 0
    networks = [draw.getrandbits(16) << 16 for _ in range(64)]
    while inserted < routes:
        address = draw.choice(networks) | draw.getrandbits(16) if draw.random() < 0.5 else draw.getrandbits(32)
        line = heap.malloc(32)
        inserted += table.insert(address)
        heap.free(line)
    for block in table.blocks:
        heap.free(block)
    return iter(heap.rows)


# ---------------------------------------------------------------------------------------------------------- dijkstra


def shortest(matrix: list[list[int]], start: int, goal: int, heap: Heap) -> int:
    """Length of the shortest way, with a queue of entries in the order in which they came, as MiBench's has."""
    best = [1 << 30] * len(matrix)
    best[start] = 0
    queue = [(start, heap.malloc(4 * _WORD_BYTES))]
    while queue:
        node, block = queue.pop(0)
        heap.free(block)
        for other, length in enumerate(matrix[node]):
            if best[node] + length < best[other]:
                best[other] = best[node] + length
                queue.append((other, heap.malloc(4 * _WORD_BYTES)))
    return best[goal]


def _dijkstra(pairs: int, seed: int, _allocations: int) -> Iterator[TraceRow]:
    draw, heap = random.Random(seed), Heap()  # noqa: S311  (a workload, no secret)
    nodes = 100
    matrix = [[draw.randint(1, 100) for _ in range(nodes)] for _ in range(nodes)]
    file = heap.malloc(352)
    for number in range(pairs):
        shortest(matrix, number % nodes, (number + nodes // 2) % nodes, heap)
    heap.free(file)
    return iter(heap.rows)


PROGRAMS: Mapping[tuple[str, str], Callable[[int, int], Iterator[TraceRow]]] = MappingProxyType(
    {
        ("susan", "small"): partial(_susan, 76, 95, 4),
        ("susan", "large"): partial(_susan, 384, 288, 4),
        ("patricia", "small"): partial(_patricia, 8_378),
        ("patricia", "large"): partial(_patricia, 48_247),
        ("dijkstra", "small"): partial(_dijkstra, 20),
        ("dijkstra", "large"): partial(_dijkstra, 100),
    }
)
"""By name and size of the input: rows by seed; the number of allocations is the program's own."""
