"""What data accesses cost: misses each time, misses that a scope shares, single accesses, write-backs."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from types import SimpleNamespace

import pytest

from tests.analyzer.concrete_caches import config_of
from tests.analyzer.relational_programs import LINE_BYTES, Program, Step, Variable
from tests.analyzer.relational_runs import bound_of
from wcet_probe.analyzer.dcache.misses import data_misses
from wcet_probe.analyzer.domains import strided

FILL, SINGLE = 10, 1
ANYWHERE = tuple(range(0, 256, 16))
LOOP = ((0, 1), (1, 1), (1, 2))
ARGUMENT = Variable(None, 0, ANYWHERE, strided.top(32))


def step(to, offset: int = 0, *, is_store: bool = False, is_certain: bool = True, is_named: bool = True) -> Step:
    return Step(to, offset, is_store, is_certain, is_named)


def program_of(
    *blocks: tuple[Step, ...], loads: int | None = None, edges=LOOP, policy="lru", ways=2, **write
) -> Program:
    """Blocks with one variable, an argument or loaded at the start of block ``loads``."""
    config = replace(config_of(policy, ways, sets=4), line_bytes=LINE_BYTES, **{"write_back": False, **write})
    return Program(blocks, tuple(edges), (Variable(loads, 0, ANYWHERE, strided.top(32)),), {}, config, 16, 24)


def cost(program: Program, *, rounds: int = 10) -> int:
    """Most cycles if the loop, block 1, is executed ``rounds`` times."""
    edges = Counter({(0, 1): 1, (1, 1): rounds - 1, (1, 2): 1})
    return bound_of(program.view.data, SimpleNamespace(points=Counter({0: 1, 1: rounds, 2: 1}), taken=edges))


@pytest.mark.parametrize("policy", ["lru", "fifo", "plru", "random", "round-robin"])
def test_a_line_that_nothing_evicts_misses_once_in_all(policy):
    assert cost(program_of((), (step(0), step(0, 4)), (), policy=policy)) == FILL
    assert cost(program_of((), (step(0), step(0, 4)), (), policy=policy, loads=0)) == FILL


def test_a_line_that_is_another_each_time_misses_each_time():
    assert cost(program_of((), (step(0), step(0, 4)), (), loads=1)) == 10 * FILL


def test_two_lines_of_a_group_miss_once_each():
    assert cost(program_of((), (step(0), step(0, 16), step(0, 20)), ())) == 2 * FILL


def test_what_has_no_name_misses_each_time_and_ages_the_rest():
    unknown = step(None, is_named=False)
    assert cost(program_of((), (step(0), unknown), (), ways=2)) == FILL + 10 * FILL
    assert cost(program_of((), (step(0), unknown), (), ways=1)) == 20 * FILL
    assert cost(program_of((), (step(0), unknown, unknown), (), ways=2)) == 30 * FILL


def test_what_may_not_take_place_may_be_the_first_to_miss():
    assert cost(program_of((), (step(0, is_certain=False), step(0)), ())) == FILL


def test_stores_that_are_written_through_cost_a_single_access_each():
    assert cost(program_of((), (step(0, is_store=True),), ())) == FILL + 10 * SINGLE
    assert cost(program_of((), (step(0, is_store=True),), (), write_allocate=False)) == 10 * SINGLE
    assert cost(program_of((), (step(0), step(0, is_store=True)), (), write_allocate=False)) == FILL + 10 * SINGLE


def test_a_store_that_does_not_allocate_costs_a_single_access_where_it_may_miss():
    back = {"write_back": True, "write_allocate": False}
    assert cost(program_of((), (step(0, is_store=True),), (), **back)) == 10 * SINGLE
    assert cost(program_of((step(0),), (step(0, is_store=True),), (), **back)) == FILL + FILL


def test_a_write_back_takes_a_miss_and_a_line_that_was_modified():
    unknown = step(None, is_named=False)
    assert cost(program_of((), (step(0),), (), write_back=True)) == FILL + FILL
    lines = 4 * 2  # all that the cache holds at entry may be modified
    assert cost(program_of((), (unknown,), (), write_back=True)) == 10 * FILL + lines * FILL
    assert cost(program_of((), (unknown,), (), write_back=True), rounds=30) == 30 * FILL + lines * FILL
    store = replace(unknown, is_store=True)
    assert cost(program_of((), (store,), (), write_back=True), rounds=30) == 30 * FILL + 30 * FILL


def test_without_a_cache_each_access_is_single():
    view = program_of((), (step(0), step(0, 4), step(0, is_store=True)), ()).view
    target = replace(view.program.target, dcache=None)
    data = data_misses(view.values, target, view.pointers)
    assert (data.points[1], data.auxiliaries, data.constraints, data.lines) == (3 * SINGLE, (), (), None)


@pytest.mark.parametrize("policy", ["lru", "fifo"])
def test_accesses_to_a_table_miss_once_for_each_of_its_lines(policy):
    entry = Variable(None, 0, tuple(range(0, 32, 4)), strided.between(32, 0, 28, 4))
    config = replace(config_of(policy, 2, sets=4), line_bytes=LINE_BYTES, write_back=False)
    blocks = ((), (step(0), step(1), step(2), step(1)), ())
    table = Program(blocks, LOOP, (entry, entry, entry), {}, config, 4, 24)
    assert cost(table) == 2 * FILL
    evicting = ((step(0),), (step(3), step(4)), (step(1),))
    assert cost(Program(evicting, LOOP, (entry,) * 3 + (ARGUMENT,) * 2, {}, config, 4, 24)) == 4 * FILL
