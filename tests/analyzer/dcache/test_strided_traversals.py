"""Which accesses traversal, and how often they miss."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from types import SimpleNamespace

import pytest

from tests.analyzer.concrete_caches import config_of
from tests.analyzer.relational_programs import LINE_BYTES, Address, Program, Step, Sum, Variable
from tests.analyzer.relational_runs import bound_of
from wcet_probe.analyzer.dcache import strided_traversals as traversals
from wcet_probe.analyzer.domains import strided
from wcet_probe.analyzer.facts.memory import Objects, Pointers
from wcet_probe.analyzer.graph.loop_forest import loops_of

FILL = 10
LOOP = ((0, 1), (1, 1), (1, 2))
TWO_WAYS = ((0, 1), (1, 2), (1, 3), (2, 1), (3, 1), (3, 4))
ARGUMENT = Variable(None, 0, tuple(range(0, 256, 16)), strided.top(32))


def step(to: Address, offset: int = 0, *, is_store: bool = False, is_certain: bool = True) -> Step:
    return Step(to, offset, is_store, is_certain, is_named=True)


def program_of(
    *blocks: tuple[Step, ...], edges=LOOP, moves=((1, 4),), policy="lru", ways=2, asserted=8, **more
) -> Program:
    """Variable 0 is an argument; variable 1 is it where the loop is entered, and moves on by ``moves``, by source."""
    config = replace(config_of(policy, ways, sets=8), line_bytes=LINE_BYTES, write_back=False, **more)
    sources = {(0, 1): (0, 0), **{(source, 1): (1, move) for source, move in moves}}
    moving = Variable(1, 0, (0,), strided.top(32), sources)
    return Program(blocks, edges, (ARGUMENT, moving, ARGUMENT), {}, config, asserted, 24)


def traversed(rounds: int, step_bytes: int) -> int:
    """Cycles of as many fills as a traversal comes to lines; the linear relaxation has parts of them."""
    return FILL * (rounds * step_bytes + 2 * LINE_BYTES - 1 - step_bytes) // LINE_BYTES


def cost(program: Program, rounds: int) -> int:
    """Most cycles if the loop, block 1, is executed ``rounds`` times."""
    edges = Counter({(0, 1): 1, (1, 1): rounds - 1, (1, 2): 1})
    return bound_of(program.view.data, SimpleNamespace(points=Counter({0: 1, 1: rounds, 2: 1}), taken=edges))


@pytest.mark.parametrize("policy", ["lru", "fifo", "plru"])
@pytest.mark.parametrize("move", [4, -4, 8])
def test_a_sweep_misses_once_for_each_line(policy, move):
    program = program_of((), (step(1),), (), moves=((1, move),), policy=policy)
    assert cost(program, 40) == traversed(40, abs(move))
    assert cost(program, 1) == FILL


def test_a_sweep_misses_each_time_if_its_line_may_be_evicted():
    assert cost(program_of((), (step(1), step(2)), (), ways=2), 40) == traversed(40, 4) + FILL
    assert cost(program_of((), (step(1), step(2)), (), ways=1), 40) == 80 * FILL
    assert cost(program_of((), (step(1), step(2)), (), policy="random", ways=4), 40) == 80 * FILL


def test_stores_that_do_not_fill_sweep_nothing_and_evict_nothing():
    store = step(2, is_store=True)
    assert cost(program_of((), (step(1), store), (), policy="fifo", write_allocate=False), 40) == traversed(40, 4) + 40


def sweeping_points(program: Program) -> set[int]:
    return {
        point for traversal in program.view.traversals.found for points in traversal.points.values() for point in points
    }


@pytest.mark.parametrize(
    ("where", "points"), [({1}, {1}), ({1, 2}, {1, 2}), ({2, 3}, {2, 3}), ({2}, set()), ({1, 2, 3}, {1, 2, 3})]
)
def test_only_lines_that_are_accessed_in_every_round_are_swept(where, points):
    """Blocks 2 and 3 are the two ways of a round."""
    blocks = tuple((step(1),) if block in where else () for block in range(5))
    assert sweeping_points(program_of(*blocks, edges=TWO_WAYS, moves=((2, 4), (3, 4)))) == points


def test_a_sweep_of_two_copies_misses_as_often_as_one():
    """Block 2 or 3 is executed in a round: here, 40 times block 3."""
    program = program_of((), (), (step(1),), (step(1),), (), edges=TWO_WAYS, moves=((2, 4), (3, 4)))
    taken = Counter({(0, 1): 1, (1, 3): 40, (3, 1): 39, (3, 4): 1})
    run = SimpleNamespace(points=Counter({0: 1, 1: 40, 3: 40, 4: 1}), taken=taken)
    assert bound_of(program.view.data, run) == traversed(40, 4)


def test_an_access_that_may_not_take_place_sweeps_nothing():
    assert program_of((), (step(1, is_certain=False),), ()).view.named[1][0].traversed is None


@pytest.mark.parametrize("moves", [((2, 4), (3, -4)), ((2, 0), (3, 0)), ((2, 1 << 20), (3, 4))])
def test_no_sweep_in_both_directions_nor_in_none_nor_by_leaps(moves):
    blocks = ((), (step(1),), (), (), ())
    assert not program_of(*blocks, edges=TWO_WAYS, moves=moves).view.traversals.found


@pytest.mark.parametrize(
    ("to", "edge", "killed", "points"),
    [
        (1, (1, 2), 1, set()),
        (1, (2, 1), 0, {1, 2, 3}),
        (Sum(1, 0), (2, 1), 0, set()),
        (Sum(1, 0), (0, 1), 0, {1, 2, 3}),
        (1, (3, 4), 1, {1, 2, 3}),
    ],
)
def test_no_sweep_by_a_value_that_is_brought_back_in_a_round(to, edge, killed, points):
    blocks = ((), (step(to),), (step(to),), (step(to),), ())
    program = program_of(*blocks, edges=TWO_WAYS, moves=((2, 4), (3, 4)))
    assert sweeping_points(replace(program, killed={edge: frozenset({killed})})) == points


def test_long_steps_sweep_without_a_number_of_lines():
    (traversal,) = program_of((), (step(1),), (), moves=((1, 64),)).view.traversals.found
    assert traversal.step_bytes == 0
    assert cost(program_of((), (step(1),), (), moves=((1, 64),)), 40) == 40 * FILL


def test_lines_are_counted_each_time_that_a_sweep_begins():
    """The inner loop, block 2, is entered twice, and what is between its entries may evict all lines."""
    edges = ((0, 1), (1, 2), (2, 2), (2, 3), (3, 1), (1, 4))
    unnamed = Step(None, 0, is_store=False, is_certain=True, is_named=False)
    moving = Variable(2, 0, (0,), strided.top(32), {(1, 2): (0, 0), (2, 2): (1, 64)})
    config = replace(config_of("lru", 2, sets=8), line_bytes=LINE_BYTES, write_back=False)
    asserted = {(2, 0): Pointers(8, objects=Objects("fact", 3, 3))}
    blocks = ((), (), (step(1),), (unnamed,) * 2, ())
    program = Program(blocks, edges, (ARGUMENT, moving), {}, config, 8, 24, asserted)
    taken = Counter({(0, 1): 1, (1, 2): 2, (2, 2): 18, (2, 3): 2, (3, 1): 2, (1, 4): 1})
    points = Counter({0: 1, 1: 3, 2: 20, 3: 2, 4: 1})
    assert bound_of(program.view.data, SimpleNamespace(points=points, taken=taken)) == (2 * 3 + 4) * FILL


def test_two_facts_that_count_as_many_lines_of_one_sweep_have_events_of_their_own():
    program = program_of((), (step(1), step(2), step(1)), (), moves=((1, 64),), policy="fifo")
    asserted = {(1, place): Pointers(8, objects=Objects(fact, 3, 3)) for place, fact in ((0, "one"), (2, "other"))}
    assert cost(replace(program, asserted=asserted), 40) == (40 + 2 * 3) * FILL


def test_what_is_defined_nobody_knows_where_does_not_stay():
    program = program_of((), (step(1),), ())
    (symbol,) = (symbol for group in program.view.lines.groups for symbol in group.symbols)
    assert traversals._is_in(program.view.values, symbol, loops_of(program.view.values.forest)[0])
    other = program.view.terms.symbol(("was", 1), 32)
    assert traversals._is_in(program.view.values, other, loops_of(program.view.values.forest)[0])


def test_a_sweep_by_rounds_of_the_outer_loop_misses_as_often_as_these_begin():
    """Block 2 is an inner loop of 10 rounds, and the address moves in those of the outer one, of which there are 40."""
    edges = ((0, 1), (1, 2), (2, 2), (2, 3), (3, 1), (1, 4))
    program = program_of((), (), (step(1),), (), (), edges=edges, moves=((3, 4),))
    taken = Counter({(0, 1): 1, (1, 2): 40, (2, 2): 360, (2, 3): 40, (3, 1): 40, (1, 4): 1})
    run = SimpleNamespace(points=Counter({0: 1, 1: 41, 2: 400, 3: 40, 4: 1}), taken=taken)
    assert bound_of(program.view.data, run) == traversed(41, 4)
