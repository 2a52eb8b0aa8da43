"""The programs of H11 do the real thing: routes are found, ways are shortest, corners are corners."""

import itertools
import random

import pytest

from wcet_probe.scenarios.workloads.herter import PROGRAMS, Heap, RoutingTable, corners, picture, shortest
from wcet_probe.traces.operations import heap_operations


def test_a_routing_table_has_what_was_inserted_and_nothing_else():
    draw, heap = random.Random(1), Heap()
    table, inside = RoutingTable(heap), set()
    for _ in range(2000):
        address = draw.getrandbits(11) << draw.choice((0, 21))
        assert table.insert(address) is (address not in inside)
        inside.add(address)
        probe = draw.getrandbits(11) << draw.choice((0, 21))
        assert table.contains(probe) is (probe in inside)
    assert len(heap.rows) == 3 * len(inside) - 1


def test_ways_are_shortest():
    draw = random.Random(2)
    nodes = 12
    matrix = [[draw.randint(1, 50) for _ in range(nodes)] for _ in range(nodes)]
    far = [[0 if a == b else matrix[a][b] for b in range(nodes)] for a in range(nodes)]
    for middle, a, b in itertools.product(range(nodes), repeat=3):
        far[a][b] = min(far[a][b], far[a][middle] + far[middle][b])
    for a, b in itertools.product(range(nodes), repeat=2):
        assert shortest(matrix, a, b, Heap()) == far[a][b]


def test_the_corners_of_a_square():
    grey = [[200 if 10 <= x < 30 and 10 <= y < 30 else 10 for x in range(40)] for y in range(40)]
    found = corners(grey)
    assert len(found) >= 4
    for x, y in itertools.product((10, 29), repeat=2):
        assert any(abs(x - a) <= 2 and abs(y - b) <= 2 for a, b in found)
    assert all(min(abs(a - 10), abs(a - 29)) <= 2 and min(abs(b - 10), abs(b - 29)) <= 2 for a, b in found)
    assert corners([[5] * 20 for _ in range(20)]) == []
    assert {len(row) for row in picture(50, 40, 0)} == {50}


@pytest.mark.parametrize(
    ("name", "need"),
    [(("susan", "small"), 155979), (("patricia", "small"), 435640), (("dijkstra", "small"), 5880)],
)
def test_the_memory_need_is_near_the_papers(name, need):
    live = most = 0
    held = {}
    for operation in heap_operations(PROGRAMS[name](0, 0)):
        if operation.is_free:
            live -= held.pop(operation.slot)
        else:
            held[operation.slot] = operation.size_bytes
            live += operation.size_bytes
            most = max(most, live)
    assert live == 0
    assert need * 0.95 < most < need * 1.2
