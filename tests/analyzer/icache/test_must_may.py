"""Classes of accesses against all that can happen in tiny programs; the order of iteration decides nothing."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import product
from random import Random

import pytest

from tests.analyzer.concrete_caches import Problem, Reached, config_of, random_problem
from wcet_probe.analyzer.icache.must_may import (
    CacheAccess,
    CacheGraph,
    Classification,
    analyze,
    is_fixpoint,
)

HIT, MISS, UNKNOWN = Classification.ALWAYS_HIT, Classification.ALWAYS_MISS, Classification.UNKNOWN


def read(*lines: int) -> CacheAccess:
    return CacheAccess(frozenset(lines), is_write=False)


def write(*lines: int) -> CacheAccess:
    return CacheAccess(frozenset(lines), is_write=True)


ANY = CacheAccess(None, is_write=False)


def chain(*accesses: CacheAccess) -> CacheGraph:
    return CacheGraph((accesses,), ((),), 0)


def classes(graph: CacheGraph, policy: str, ways: int, *, sets: int = 1, is_cold=False, write_allocate=True):
    config = config_of(policy, ways, sets=sets, write_allocate=write_allocate)
    found = analyze(graph, config, is_cold=is_cold)
    assert is_fixpoint(graph, config, found.states, is_cold=is_cold)
    return [c for node in found.classifications for c in node]


def verdicts_of(problem: Problem) -> Counter[str]:
    """Counts of the verdicts, each held against all that can happen."""
    analysis = analyze(problem.graph, problem.config, is_cold=problem.is_cold)
    reached, counts = Reached(problem), Counter[str]()
    for node, verdicts in enumerate(analysis.classifications):
        for index, verdict in enumerate(verdicts):
            hits = reached.hits.get(node, 0) >> index & 1
            misses = reached.misses.get(node, 0) >> index & 1
            assert not (verdict is HIT and misses), (problem, node, index)
            assert not (verdict is MISS and hits), (problem, node, index)
            counts[verdict] += 1
            counts["decidable"] += verdict is UNKNOWN and hits + misses == 1 and reached.is_complete
    return counts


def test_no_verdict_is_refuted_from_any_initial_content():
    counts = sum((verdicts_of(random_problem(Random(seed))) for seed in range(600)), Counter[str]())
    assert counts[HIT] > 1000
    assert counts[MISS] > 400
    # The yardstick: of the accesses that nothing is said of, few always hit or always miss.
    assert counts["decidable"] < counts[UNKNOWN] * 0.12


@pytest.mark.slow
@pytest.mark.parametrize("part", range(2))
def test_no_verdict_is_refuted_in_half_a_million(part):
    counts, seed = Counter[str](), 0
    while counts[HIT] + counts[MISS] < 500_000:
        counts += verdicts_of(random_problem(Random(f"{part} {seed}")))
        seed += 1


def test_the_numbers_of_nodes_decide_nothing():
    for seed in range(150):
        problem = random_problem(Random(seed))
        graph = problem.graph
        expected = analyze(graph, problem.config, is_cold=problem.is_cold).classifications
        for shuffle in range(3):
            place = list(range(len(graph.nodes)))
            Random(shuffle).shuffle(place)
            old = sorted(range(len(place)), key=place.__getitem__)
            successors = tuple(tuple(place[target] for target in graph.successors[node]) for node in old)
            other = CacheGraph(tuple(graph.nodes[node] for node in old), successors, place[graph.entry])
            found = analyze(other, problem.config, is_cold=problem.is_cold).classifications
            assert tuple(found[place[node]] for node in range(len(place))) == expected


def test_the_check_refuses_states_that_say_too_much():
    refused = 0
    for seed in range(150):
        problem = random_problem(Random(seed))
        graph, config, is_cold = problem.graph, problem.config, problem.is_cold
        states = analyze(graph, config, is_cold=is_cold).states
        assert is_fixpoint(graph, config, states, is_cold=is_cold)
        assert not states or not is_fixpoint(graph, config, {}, is_cold=is_cold)
        for number, node in product(states, range(len(graph.nodes))):
            changed = list(states[number])
            old = changed[node]
            if old is None or not problem.lines():
                continue
            line = problem.lines()[0]
            stronger = replace(old, oldest={**old.oldest, line: 0})
            if stronger != old:
                changed[node] = stronger
                refused += not is_fixpoint(graph, config, {**states, number: tuple(changed)}, is_cold=is_cold)
                changed[node] = None
                assert not is_fixpoint(graph, config, {**states, number: tuple(changed)}, is_cold=is_cold)
    assert refused > 300


@pytest.mark.parametrize(
    ("policy", "ways", "expected"),
    [
        ("lru", 4, [UNKNOWN] * 4 + [HIT] * 2),
        ("lru", 2, [UNKNOWN] * 2 + [MISS] * 4),
        ("fifo", 2, [UNKNOWN] * 3 + [MISS] * 3),
        ("plru", 4, [UNKNOWN] * 6),
        ("plru", 8, [UNKNOWN] * 4 + [HIT] * 2),
        ("random", 4, [UNKNOWN] * 6),
    ],
)
def test_a_row_of_four_lines_and_the_first_two_again(policy, ways, expected):
    assert classes(chain(*(read(line) for line in (0, 1, 2, 3, 0, 1))), policy, ways) == expected


@pytest.mark.parametrize("policy", ["lru", "fifo", "plru", "random", "round-robin"])
def test_an_empty_cache_misses_what_was_never_touched(policy):
    assert classes(chain(read(0), read(1), read(1)), policy, 4, is_cold=True) == [MISS, MISS, HIT]


def test_sets_do_not_disturb_each_other():
    graph = chain(read(0), read(1), read(3), read(5), read(0))
    assert classes(graph, "lru", 2, sets=2)[-1] is HIT
    assert classes(graph, "lru", 2)[-1] is MISS


def test_an_imprecise_access_ages_all_its_sets_and_loads_none_for_certain():
    assert classes(chain(read(0), read(2, 3), read(0)), "lru", 1, sets=2) == [UNKNOWN] * 3
    assert classes(chain(read(0), read(2, 3), read(0)), "lru", 2, sets=2) == [UNKNOWN, UNKNOWN, HIT]
    assert classes(chain(read(0), read(1), read(0, 1)), "lru", 2) == [UNKNOWN, UNKNOWN, HIT]
    assert classes(chain(read(0), ANY, read(0), ANY, ANY, read(0)), "lru", 2)[2::3] == [HIT, UNKNOWN]


def test_a_write_miss_fills_only_with_write_allocate():
    graph = chain(write(0), write(0), read(0), write(0))
    assert classes(graph, "lru", 2) == [UNKNOWN, HIT, HIT, HIT]
    assert classes(graph, "lru", 2, write_allocate=False) == [UNKNOWN, UNKNOWN, UNKNOWN, HIT]
    assert classes(graph, "lru", 2, write_allocate=False, is_cold=True) == [MISS, MISS, MISS, HIT]


def test_a_write_that_does_not_fill_may_still_make_others_older():
    graph = chain(read(0), write(1), read(2), read(0))
    assert classes(graph, "lru", 2, write_allocate=False)[-1] is UNKNOWN
    assert classes(graph, "lru", 2, write_allocate=False, is_cold=True)[-1] is HIT


def test_a_branch_that_loads_on_one_side_only():
    graph = CacheGraph(((read(0),), (read(1),), (read(0), read(1))), ((1, 2), (2,), ()), 0)
    assert classes(graph, "lru", 2, is_cold=True) == [MISS, MISS, HIT, UNKNOWN]


def test_what_no_path_reaches_is_unknown():
    graph = CacheGraph(((read(0),), (read(0), read(0))), ((), (0,)), 0)
    assert classes(graph, "lru", 2) == [UNKNOWN] * 3
