"""The analysis of lines known by name against runs of single programs, each made for one way to be wrong.

Tests: analyzer.dcache.analysis, analyzer.dcache.misses.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random

import pytest

from tests.analyzer.concrete_caches import config_of
from tests.analyzer.relational_attacks import attack, attack_limits
from tests.analyzer.relational_programs import Choice, Program, Step, Sum, Variable
from wcet_probe.analyzer.domains import strided
from wcet_probe.analyzer.facts.memory import Pointers

ARGUMENT = strided.top(32)


def program_of(
    steps, edges, variables, *, policy="lru", ways=1, sets=4, asserted_bytes=16, killed=None, line_count=16
) -> Program:
    config = config_of(policy, ways, sets=sets)
    config = type(config)(**{f: getattr(config, f) for f in config.__slots__} | {"line_bytes": 16})
    return Program(tuple(steps), tuple(edges), tuple(variables), killed or {}, config, asserted_bytes, line_count)


def read(to, offset=0) -> Step:
    return Step(to, offset, is_store=False, is_certain=True, is_named=True)


def worst(program: Program, runs: int = 300) -> Counter[str]:
    return attack(program, Random(0), runs)


def test_a_line_of_a_group_elsewhere_leaves_the_misses_of_its_other_lines():
    """Block 1 accesses a line of the group each time; blocks 2 to 4 access three granules of two others."""
    others = [read(None, 16 * line) for line in range(8)]
    pointer = Variable(None, 0, tuple(range(0, 512, 8)), ARGUMENT)
    worst(
        program_of(
            [(), (read(0, 32), *others), (read(0, 0),), (read(0, 8),), (read(0, 16),), ()],
            [(0, 1), (1, 1), (1, 2), (2, 3), (3, 4), (4, 5)],
            [pointer],
            asserted_bytes=8,
            line_count=40,
        ),
        1000,
    )


def test_an_access_behind_a_join_is_one_more_on_the_way_that_does_not_have_it():
    """Two ways; either is to another line; behind both the line of the one is accessed, which may be the second."""
    pointer, one, other = (Variable(None, 0, tuple(range(0, 512, 16)), ARGUMENT) for _ in range(3))
    program = program_of(
        [(read(0),), (read(1),), (read(2),), (read(1), read(0)), ()],
        [(0, 1), (0, 2), (1, 3), (2, 3), (3, 4)],
        [pointer, one, other],
        ways=2,
        line_count=35,
    )
    worst(program)
    assert not program.view.analysis.verdicts[3][1].is_hit


def _walk(*inside: tuple[Step, ...], edges: tuple[tuple[int, int], ...]) -> Program:
    """A loop that goes on to variable 0, which its last block loads; variable 1 is where it is, 2 its inner loop's."""
    last = len(inside)
    values = tuple(range(0, 256, 16))
    return program_of(
        [(), *inside, ()],
        [(0, 1), *edges, (last, 1), (last, last + 1)],
        [
            Variable(last, 0, values, ARGUMENT),
            Variable(1, 0, (0,), ARGUMENT, {(0, 1): (3, 0), (last, 1): (0, 0)}),
            Variable(2, 0, values, ARGUMENT),
            *(Variable(None, 0, values, ARGUMENT) for _ in range(3)),
        ],
        ways=2,
        sets=2,
        line_count=19,
    )


def test_a_line_whose_stay_begins_in_the_cache_ages_with_each_round_of_an_inner_loop():
    attack_limits(_walk((), (read(2),), (read(1), read(0)), edges=((1, 2), (2, 2), (2, 3))), Random(0), 400)


def test_a_line_whose_stay_begins_in_the_cache_is_no_younger_where_it_may_not_be_accessed():
    perhaps = replace(read(1), is_certain=False)
    attack_limits(_walk((perhaps, read(4)), (read(1),), (read(0), read(5)), edges=((1, 2), (2, 3))), Random(0), 400)


@pytest.mark.parametrize("last", [Pointers(16, remainder=8), Pointers(8)])
def test_a_name_that_no_access_has_shown_to_be_right_gives_no_further_name(last):
    """What a fact says of an access in block 2 is not true of block 0's pointer where block 1 goes on to block 3."""
    pointer = Variable(None, 0, tuple(range(0, 256, 8)), ARGUMENT)
    same = Variable(1, 0, (0,), ARGUMENT, {(0, 1): (0, 0)})
    further = Variable(3, 0, (0,), ARGUMENT, {(1, 3): (1, 8)})
    program = program_of(
        [(read(0, 8),), (), (read(1),), (read(2, -8), read(2)), ()],
        [(0, 1), (1, 2), (1, 3), (2, 4), (3, 4)],
        [pointer, same, further],
        ways=2,
        asserted_bytes=4,
        line_count=24,
    )
    worst(replace(program, asserted={(2, 0): Pointers(16), (3, 0): last, (3, 1): last}))


ANYWHERE = Variable(None, 0, tuple(range(0, 512, 16)), ARGUMENT)
FAR = {"policy": "lru", "ways": 2, "line_count": 300}


def in_one_set(*choices: int) -> Variable:
    return Variable(None, 0, choices, strided.between(32, choices[0], choices[-1], choices[1] - choices[0]))


def before_and_behind(first, inside, variables, *, asserted=None, edges=((0, 1), (1, 2)), **more) -> Program:
    """Block 0, block 1, and block 2 with an access to variable 0, which must not be said to hit."""
    program = program_of([first, inside, (read(0),)], edges, variables, **{**FAR, **more})
    program = replace(program, asserted=asserted or {})
    assert not program.view.analysis.verdicts[2][0].is_hit
    return program


@pytest.mark.parametrize("move", [48, 64, -64])
@pytest.mark.parametrize("policy", ["lru", "fifo"])
def test_lines_that_names_meant_in_many_rounds_are_many(move, policy):
    """Block 1 moves on in each round: what its name meant one round ago is near, but not what it meant before."""
    moving = Variable(1, 0, (0,), ARGUMENT, {(0, 1): (1, 0), (1, 1): (2, move)})
    again = ((0, 1), (1, 1), (1, 2))
    worst(before_and_behind((read(0),), (read(2),), [ANYWHERE, ANYWHERE, moving], edges=again, policy=policy, sets=8))


def test_lines_that_move_on_and_come_back_are_one():
    """Two loops' values: one is what the other was, and that is it again, so that all lines scope near."""
    one = Variable(1, 0, (0,), ARGUMENT, {(0, 1): (1, 0), (2, 1): (3, -16)})
    other = Variable(2, 0, (0,), ARGUMENT, {(1, 2): (2, 16)})
    program = program_of(
        [(read(0),), (read(2),), (read(3, -16),), (read(0),)],
        [(0, 1), (1, 2), (2, 1), (2, 3)],
        [ANYWHERE, ANYWHERE, one, other],
        ways=2,
        sets=8,
        line_count=64,
    )
    assert program.view.analysis.verdicts[3][0].is_hit
    worst(program)


def test_a_group_that_may_be_in_more_sets_than_the_one_before_is_counted_anew():
    """Variables 1 and 2 are in different sets, so that one line is younger; variable 3 is in that of variable 2."""
    same = Variable(1, 0, (0,), ARGUMENT, {(0, 1): (1, 0)})
    variables = [ANYWHERE, in_one_set(0, 64), in_one_set(16, 80), same]
    worst(before_and_behind((read(0), read(1), read(2)), (read(3, 16), read(3)), variables), 2000)


def test_a_line_is_of_no_group_that_is_in_fewer_sets():
    """Variable 1 and 16 bytes is in the set of variable 2; its new name is only read in the set before."""
    same = Variable(1, 0, (0,), ARGUMENT, {(0, 1): (1, 0)})
    first, pointer = replace(ANYWHERE, choices=(128,)), replace(ANYWHERE, choices=(16, 336))
    variables = [pointer, first, in_one_set(16, 80), same, in_one_set(208, 272)]
    asserted = {(1, 0): Pointers(16, sets=frozenset({0}))}
    blocks = (read(0), read(1, 16), read(2)), (read(3), read(4))
    worst(before_and_behind(*blocks, variables, asserted=asserted, ways=3, line_count=40), 400)


def test_what_is_told_of_one_pointer_is_not_told_of_another_one():
    """Block 1 reads variable 2, that variable 1 has become; only variable 0 is known to be a multiple of 16."""
    loose = replace(ANYWHERE, choices=tuple(range(0, 512, 4)))
    same = Variable(1, 0, (0,), ARGUMENT, {(0, 1): (1, 0)})
    blocks = [(read(0),), (read(2), read(2, 12)), ()]
    program = program_of(blocks, [(0, 1), (1, 2)], [ANYWHERE, loose, same], asserted_bytes=4, line_count=40)
    program = replace(program, asserted={(0, 0): Pointers(16)})
    assert not program.view.analysis.verdicts[1][1].is_hit
    worst(program)


@pytest.mark.parametrize("is_told", [True, False])
def test_what_a_pointer_has_become_is_told_of_where_all_that_it_comes_from_is(is_told):
    """Block 3 reads variable 2: variable 0 or 1 by the way, both multiples of 16; a fact may tell it of one only."""
    one, other = ANYWHERE, ANYWHERE if is_told else replace(ANYWHERE, choices=tuple(range(0, 512, 4)))
    same = Variable(3, 0, (0,), ARGUMENT, {(1, 3): (0, 0), (2, 3): (1, 16)})
    blocks = [(), (read(0),), (read(1),), (read(2), read(2, 12)), ()]
    edges = [(0, 1), (0, 2), (1, 3), (2, 3), (3, 4)]
    program = program_of(blocks, edges, [one, other, same], asserted_bytes=4, line_count=40)
    asserted = {(1, 0): Pointers(16)} | ({(2, 0): Pointers(16)} if is_told else {})
    program = replace(program, asserted=asserted)
    assert program.view.analysis.verdicts[3][1].is_hit == is_told
    worst(program)


def test_a_sum_with_a_new_value_has_no_name_by_the_old_one():
    """Variables 1 and 2 are added; block 1 has another name for the one, and loads the other anew."""
    far = Variable(1, 0, tuple(range(0, 512, 64)), ARGUMENT)
    same = Variable(1, 0, (0,), ARGUMENT, {(0, 1): (1, 0)})
    worst(before_and_behind((read(0), read(Sum(1, 2))), (read(Sum(3, 2)),), [ANYWHERE, ANYWHERE, far, same]), 2000)


@pytest.mark.parametrize("ways", [2, 3])
def test_a_line_that_hit_may_miss_later_in_a_fifo_set(ways):
    """Blocks 1 and 3 hit, by what the line was called before; block 2 accesses it behind one fill of another line."""
    first = Variable(None, 0, tuple(range(0, 256, 32)), ARGUMENT)
    allocated = Variable(1, 1, tuple(range(0, 512, 16)), ARGUMENT)
    again = Variable(1, 0, (0,), ARGUMENT, {(0, 1): (0, 0), (3, 1): (3, 0)})
    last = Variable(3, 0, (0,), ARGUMENT, {(2, 3): (2, 0)})
    program = program_of(
        [(read(0),), (read(2), read(1)), (read(2),), (read(3),), ()],
        [(0, 1), (1, 2), (2, 3), (3, 1), (3, 4)],
        [first, allocated, again, last],
        policy="fifo",
        ways=ways,
        sets=2,
        line_count=32,
    )
    assert program.view.analysis.verdicts[3][0].is_hit
    worst(program, 1000)


def test_accesses_to_a_line_share_its_misses_whether_they_share_those_of_a_table_too():
    """Block 3 accesses an entry of a table that block 1 may have accessed and made old."""
    entry = Variable(None, 0, (0, 16, 32), strided.between(32, 0, 32, 16))
    worst(
        program_of(
            [(), (read(0), read(None, 64), read(0), read(None, 128), read(0)), (), (read(0),), ()],
            [(0, 1), (0, 2), (1, 3), (2, 3), (3, 4)],
            [entry],
            ways=2,
            line_count=20,
        )
    )


def test_limits_of_a_line_with_and_without_a_table_have_different_names():
    """Block 1 accesses two lines of a table; where block 3 accesses one of them again, the other may be old."""
    entry = Variable(None, 0, (0, 16), strided.between(32, 0, 16, 16))
    allocated = (read(None, 0), read(0), read(None, 64), read(0), read(None, 128), read(0))
    program = program_of(
        [(), allocated, (), (read(0),), ()],
        [(0, 1), (0, 2), (1, 3), (2, 3), (3, 4)],
        [entry],
        ways=2,
        line_count=20,
    )
    names = [constraint.name for constraint in program.view.data.constraints]
    assert len(set(names)) == len(names)
    worst(program)


@pytest.mark.covering(0)
@pytest.mark.parametrize("policy", ["lru", "fifo", "plru", "random", "round-robin"])
def test_granules_of_one_line_are_evicted_one_by_one(policy):
    """Three granules lie in two lines at most; other lines in between make each miss."""
    others = [read(None, 16 * line) for line in range(12)]
    block = (read(0, 0), *others, read(0, 8), *others, read(0, 16), *others)
    variable = Variable(0, 0, tuple(range(0, 128, 8)), ARGUMENT)
    worst(program_of([block, ()], [(0, 0), (0, 1)], [variable], policy=policy, asserted_bytes=8))
    entry = Variable(None, 0, tuple(range(0, 128, 8)), ARGUMENT)
    worst(program_of([block, ()], [(0, 0), (0, 1)], [entry], policy=policy, asserted_bytes=8))


def test_a_choice_whose_variable_is_never_loaded_misses_all_the_same():
    """Block 1 loads variable 1, block 2 is silent about it; block 3 accesses the choice."""
    condition = Variable(None, 0, (0, 16), ARGUMENT)
    loaded, other = Variable(1, 0, (64, 80), ARGUMENT), Variable(None, 0, (32, 48), ARGUMENT)
    choice = Choice(0, 16, 1, 2)
    program = program_of(
        [(), (), (), (read(choice),), ()],
        [(0, 1), (0, 2), (1, 3), (2, 3), (3, 0), (3, 4)],
        [condition, loaded, other],
        killed={(2, 3): frozenset({1}), (1, 3): frozenset({2})},
    )
    worst(program)
