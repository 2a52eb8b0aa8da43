"""Orders of walks: in a cache with one counter they find next to nothing, and evict all that others modified."""

from __future__ import annotations

from dataclasses import replace

import pytest

from wcet_probe.catalog.lookup import load_allocator
from wcet_probe.scenarios.cache_sets import (
    Turns,
    last_of_ways_late,
    second_left_out,
    turned_walks,
    two_ways_gathered,
)
from wcet_probe.scenarios.families import HeapRequest

SETS, WAYS = 128, 4
REQUEST = HeapRequest(load_allocator("first-fit"), 5_000, 32, 0)


def transfers(lines):
    """Fills and write-backs of accesses to ``lines`` in a cache whose lines were all modified by others."""
    sets = [[None] * WAYS for _ in range(SETS)]
    modified = {(number, way) for number in range(SETS) for way in range(WAYS)}
    count = counter = 0
    for line in lines:
        number = line % SETS
        if line in sets[number]:
            continue
        count += 1 + ((number, counter) in modified)
        modified.discard((number, counter))
        sets[number][counter] = line
        counter = (counter + 1) % WAYS
    return count


def most(count):
    """What no order exceeds of two accesses to each of ``count`` lines: of a set with one line the second one hits.

    With fewer lines than ways at least one of the last accesses evicts what the walk itself has filled.
    """
    of_a_set = {0: 0, 1: 2, 2: 6, 3: 9}
    lines = [len(range(number, count, SETS)) for number in range(SETS)]
    return sum(of_a_set.get(one, 2 * one + WAYS) for one in lines)


def visited_twice(order):
    return [line for _ in range(2) for line in order]


@pytest.mark.parametrize(
    "count", [156, 157, 200, 256, 260, 300, 384, 400, 512, 513, 600, 800, 1024, 2046, 2047, 32_766]
)
def test_a_turned_walk_misses_nearly_always_and_evicts_all_that_others_modified(count):
    walks = [walk.order(range(count)) for walk in turned_walks(count, REQUEST)]
    assert all(sorted(walk) == list(range(count)) for walk in walks)
    found = max(transfers(line for node in walk for line in (node, node + 1)) for walk in walks)
    assert most(count + 1) - 16 <= found <= most(count + 1)


@pytest.mark.parametrize("count", [700, 800, 1024, 2046, 2047, 32_766])
def test_no_order_of_a_walk_made_twice_is_dearer_than_one_with_the_last_of_ways_late(count):
    orders = [last_of_ways_late(range(count - ended)) for ended in (0, 1)]
    assert sorted(orders[0]) == list(range(count))
    assert most(count) - 6 <= max(transfers(visited_twice(order)) for order in orders) <= most(count)
    assert transfers(visited_twice(range(count))) < most(count) - 300


def test_gathered_ways_find_next_to_nothing_where_the_cache_holds_the_walk():
    order = two_ways_gathered(range(511))
    assert sorted(order) == list(range(511))
    assert transfers(visited_twice(order)) > 1.3 * transfers(visited_twice(range(511)))


@pytest.mark.parametrize(("count", "is_tried"), [(128, False), (129, True), (256, True), (257, False)])
def test_the_second_node_is_left_out_where_two_ways_hold_the_walk(count, is_tried):
    walks = second_left_out(turned_walks(count, REQUEST), count)
    assert bool(walks) == is_tried
    for walk in walks:
        assert walk.order(range(count))[:3] == [0, 3, 5]
        assert sorted(walk.order(range(count))) == [0, *range(2, count)]
        assert walk.name.endswith(", without 1")


def test_without_a_cache_nothing_turns():
    assert turned_walks(1_000, replace(REQUEST, data_line_bytes=None)) == [Turns()]


@pytest.mark.parametrize("count", [1, 100, 128, 129, 400, 1024, 5_000])
def test_names_tell_orders_apart(count):
    names = [walk.name for walk in turned_walks(count, REQUEST)]
    assert len(set(names)) == len(names)
    assert names[0] == ""
