"""What fetches cost at most, against plain caches along random paths, whatever these hold at entry."""

from random import Random
from types import SimpleNamespace

import pytest

from tests.analyzer.small_functions import of_text
from tests.support import cache_config
from wcet_probe.analyzer.graph.supergraph import EXIT
from wcet_probe.analyzer.icache.fetches import fetch_misses, fetched_lines
from wcet_probe.analyzer.values.properties.loop_shapes import loop_shapes

LINE = 16
NOPS = "adds r4, r4, #1\n" * 9
TEXTS = {
    "straight": NOPS * 3 + "bx lr",
    "branches": f"cmp r0, #0\nbeq 1f\n{NOPS}1: {NOPS}cmp r1, #0\nbeq 2f\n{NOPS}2: bx lr",
    "loop": f"movs r2, #0\n1: {NOPS}cmp r3, r2\nbeq 2f\n{NOPS}2: subs r0, #1\nbne 1b\n{NOPS}bx lr",
    "nest": f"movs r2, #0\n1: adds r5, #1\n2: {NOPS}subs r1, #1\nbne 2b\n{NOPS}{NOPS}subs r0, #1\nbne 1b\nbx lr",
    "entered at once": f"1: {NOPS}subs r0, #1\nbne 1b\nbx lr",
}


def lines_of(values, point):
    return fetched_lines(values.graph.points[point].block.instructions, LINE)


def random_path(random, values, longest=60):
    """Points and edges from the entry to a return."""
    while True:
        points, edges = [0], []
        while len(points) < longest:
            edge = random.choice([one for one in values.edges if one.source == points[-1]])
            edges.append(edge)
            if edge.target == EXIT:
                return points, edges
            points.append(edge.target)


def misses(values, points, sets, ways, held):
    """Of a cache that replaces the least recently used line, and holds ``held`` at first."""
    content = {number: [line for line in held if line % sets == number][:ways] for number in range(sets)}
    count = 0
    for point in points:
        for line in lines_of(values, point):
            own = content[line % sets]
            count += line not in own
            content[line % sets] = [line, *(one for one in own if one != line)][:ways]
    return count


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize(("sets", "ways"), [(1, 1), (1, 4), (2, 2), (4, 2), (16, 2)])
def test_no_path_misses_more_often(name, sets, ways):
    _, values = of_text(TEXTS[name])
    found = fetch_misses(values, loop_shapes(values), cache_config(sets, ways, LINE))
    every = sorted({line for point in values.states for line in lines_of(values, point)})
    random, met = Random(f"{name} {sets} {ways}"), 0
    for _ in range(60):
        points, edges = random_path(random, values)
        bound = sum(found.points[point] for point in points) + sum(found.edges.get(edge, 0) for edge in edges)
        for constraints in found.auxiliaries.values():
            limits = [
                sum(-factor * points.count(at) for at, factor in one.points) + one.constant for one in constraints
            ]
            bound += min(limits)
        held = random.sample(every, random.randrange(len(every) + 1)) if random.random() < 0.5 else []
        real = misses(values, points, sets, ways, held)
        assert real <= bound
        met += real == bound
    assert met or sets * ways < len(every)  # from an empty cache, where nothing is evicted


def test_a_line_that_stays_in_the_call_is_counted_once():
    _, values = of_text(TEXTS["loop"])
    found = fetch_misses(values, loop_shapes(values), cache_config(64, 2, LINE))
    assert not any(found.points[point] for point in values.states if point in loop_shapes(values)[0].loop.nodes)
    assert found.auxiliaries
    for name, constraints in found.auxiliaries.items():
        assert name.startswith("fetch:0x")
        assert {one.name for one in constraints} == {f"{name}:executed", f"{name}:call"}
    counted = {name for own in found.counted.values() for name in own.values()}
    assert counted == found.auxiliaries.keys() | found.paid.keys()


def test_what_stays_in_an_inner_loop_only_is_paid_by_the_edges_into_it():
    """Two lines of ways are enough for the inner loop, and not for both."""
    _, values = of_text(TEXTS["nest"])
    _, inner = loop_shapes(values)
    found = fetch_misses(values, loop_shapes(values), cache_config(1, 3, LINE))
    for edge in inner.entry_edges:
        paid = [name for name, edges in found.paid.items() if edge in edges]
        assert found.edges[edge] == len(paid) > 0
    assert not any(found.points[point] for point in inner.loop.nodes)


def instruction(address, size):
    return SimpleNamespace(address=address, size_bytes=size)


def test_an_instruction_that_straddles_two_lines_is_fetched_from_both():
    block = [instruction(10, 4), instruction(14, 4), instruction(18, 2), instruction(40, 4)]
    assert fetched_lines(block, LINE) == (0, 1, 2)
    assert fetched_lines([instruction(14, 4)], LINE) == (0, 1)
    assert fetched_lines([instruction(12, 4)], LINE) == (0,)
    assert fetched_lines([instruction(0, 2), instruction(16, 2), instruction(2, 2)], LINE) == (0, 1, 0)
