"""Persistent groups against the most misses that any execution of a scope can have, from any initial content."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from tests.analyzer.concrete_caches import Problem, Reached, config_of, random_problem
from wcet_probe.analyzer.domains.cache_sets import SetAccess
from wcet_probe.analyzer.icache import persistence
from wcet_probe.analyzer.icache.must_may import CacheAccess, CacheGraph, analyze
from wcet_probe.analyzer.icache.persistence import Scope, _join, _Step, _touch, persistent_groups
from wcet_probe.model.target import Replacement


def read(*lines: int) -> CacheAccess:
    return CacheAccess(frozenset(lines), is_write=False)


def write(*lines: int) -> CacheAccess:
    return CacheAccess(frozenset(lines), is_write=True)


ANY = CacheAccess(None, is_write=False)


def loop(*nodes: tuple[CacheAccess, ...]) -> CacheGraph:
    """A header, a choice between the other nodes, and back."""
    inner = range(1, len(nodes))
    return CacheGraph(nodes, (tuple(inner) or (0,), *((0,) for _ in inner)), 0)


def groups(graph: CacheGraph, policy: str, ways: int, *, sets: int = 1, nodes=None, write_allocate: bool = True):
    """The accesses by the lines that they share."""
    config = config_of(policy, ways, sets=sets, write_allocate=write_allocate)
    scope = Scope(0, frozenset(range(len(graph.nodes)) if nodes is None else nodes))
    (found,) = persistent_groups(graph, config, [scope], analyze(graph, config).states)
    return {tuple(sorted(group.lines)): group.accesses for group in found}


def verdicts_of(problem: Problem) -> Counter[str]:
    """Counts of the groups, each held against all that can happen, and of single accesses that are in none."""
    states = analyze(problem.graph, problem.config, is_cold=problem.is_cold).states
    reached, counts = Reached(problem), Counter[str]()
    for scope, found in zip(
        problem.scopes, persistent_groups(problem.graph, problem.config, problem.scopes, states), strict=True
    ):
        for group in found:
            constraint = len(group.lines)
            assert reached.most_misses(scope, group.accesses, constraint) <= constraint, (problem, scope, group)
            counts["group"] += 1
        persistent = {pair for group in found for pair in group.accesses}
        for node in scope.nodes & reached.misses.keys():
            for index, access in enumerate(problem.graph.nodes[node]):
                if access.lines and len(access.lines) == 1 and (node, index) not in persistent and reached.is_complete:
                    counts["none"] += 1
                    counts["decidable"] += reached.most_misses(scope, [(node, index)], 1) <= 1
    return counts


def test_no_group_misses_more_often_than_said():
    counts = sum((verdicts_of(random_problem(Random(seed))) for seed in range(300)), Counter[str]())
    assert counts["group"] > 1000
    # Accesses to one line that could have been proved persistent, among them those that are passed once.
    assert counts["decidable"] < counts["none"] * 0.5


@pytest.mark.slow
@pytest.mark.parametrize("part", range(2))
def test_no_group_misses_more_often_in_half_a_million(part):
    counts, seed = Counter[str](), 0
    while counts["group"] < 500_000:
        counts += verdicts_of(random_problem(Random(f"{part} {seed}")))
        seed += 1


def test_the_loop_that_refutes_the_persistence_of_1997():
    """A choice of three lines and two ways: each evicts the others, whatever the order of iteration."""
    assert groups(loop((), (read(0),), (read(1),), (read(2),)), "lru", 2) == {}
    assert set(groups(loop((), (read(0),), (read(1),), (read(2),)), "lru", 3)) == {(0,), (1,), (2,)}


@pytest.mark.parametrize(
    ("policy", "ways", "most"), [("lru", 4, 4), ("fifo", 4, 4), ("plru", 4, 3), ("random", 4, 1), ("round-robin", 4, 1)]
)
def test_as_many_lines_as_the_policy_keeps(policy, ways, most):
    def row(count: int):
        return groups(loop((), *((read(line),) for line in range(count))), policy, ways)

    assert len(row(most)) == most
    assert row(most + 1) == {}


def test_a_line_is_persistent_though_others_are_not():
    """Line 0 meets one of two others in a pass, never both."""
    assert groups(loop((read(0),), (read(1),), (read(2),)), "lru", 2) == {(0,): ((0, 0),)}


def test_a_line_that_others_push_out_one_by_one_is_not():
    """The inner choice repeats, so that both may come in between; two ways fewer than lines."""
    graph = CacheGraph(((read(0),), (), (read(1),), (read(2),)), ((1,), (2, 3, 0), (1,), (1,)), 0)
    assert (0,) not in groups(graph, "lru", 2)
    assert (0,) in groups(graph, "lru", 3)


def test_sets_count_apart():
    graph = loop((read(0), read(1)), (read(2),), (read(4),))
    assert set(groups(graph, "lru", 1, sets=2)) == {(1,)}


def test_a_range_that_fits_shares_one_bound_with_its_lines():
    found = groups(loop((read(0, 1, 2, 3),), (read(2),)), "lru", 2, sets=2)
    assert found == {(0, 1, 2, 3): ((0, 0), (1, 0)), (2,): ((1, 0),)}


def test_an_access_to_any_line_in_a_loop_leaves_what_is_used_more_often():
    assert groups(loop((read(0), ANY)), "lru", 1) == {}
    assert groups(loop((read(0), ANY)), "lru", 2) == {(0,): ((0, 0),)}
    assert groups(loop((read(0), ANY)), "fifo", 4) == {}


def test_an_access_to_any_line_that_is_passed_once_is_one_line():
    """The header is outside of the loop of node 1."""
    graph = CacheGraph(((ANY,), (read(0), read(1))), ((1,), (1,)), 0)
    assert set(groups(graph, "fifo", 3)) == {(0,), (1,)}
    assert groups(graph, "fifo", 2) == {}


def test_writes_that_do_not_fill():
    graph = loop((write(0), read(1)), (read(2),))
    assert set(groups(graph, "lru", 2, write_allocate=False)) == set()
    assert groups(graph, "fifo", 2, write_allocate=False) == {(1,): ((0, 1),), (2,): ((1, 0),)}
    assert groups(graph, "lru", 3, write_allocate=False) == {(1,): ((0, 1),), (2,): ((1, 0),)}


def test_conditional_ages_are_monotone():
    """What is known less of stays so: or the fixpoint would depend on the order of iteration, or not be reached."""
    random, ways, bits = Random(0), 3, {0: 1, 1: 2, 2: 4}

    def step() -> _Step:
        lines = random.choice((None, (0,), (1,), (2,), (0, 1), (0, 1, 2)))
        part = SetAccess(0, lines, is_certain=random.random() < 0.8, fills=random.random() < 0.8)
        touched = sum(bits[line] for line in lines) if lines else 0b111000
        return _Step(part, {line: random.randint(0, ways) for line in lines or ()}, touched, is_single=False)

    states = [{}]
    for _ in range(3000):
        one, a, b = step(), random.choice(states), random.choice(states)
        above = _join(a, b)
        after, result = _touch(a, one, bits, ways), _touch(above, one, bits, ways)
        assert _join(after, result) == result, (a, b, one)
        states.append(random.choice((after, result)))


def test_every_policy_is_met():
    met = {random_problem(Random(seed)).config.replacement for seed in range(50)}
    assert met == set(Replacement)


def test_what_is_between_cycles_may_be_passed_again_and_nothing_else():
    for seed in range(500):
        random = Random(seed)
        size = random.randint(1, 9)
        successors = tuple(tuple(random.sample(range(size), random.randint(0, min(2, size)))) for _ in range(size))
        nodes = frozenset(node for node in range(size) if random.random() < 0.8)
        left, before = set(nodes), None
        while left != before:
            before = set(left)
            entered = {target for node in left for target in successors[node]}
            left = {node for node in left & entered if not left.isdisjoint(successors[node])}
        assert persistence._on_cycles(CacheGraph(((),) * size, successors, 0), nodes) == left
