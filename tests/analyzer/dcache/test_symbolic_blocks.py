"""Lines by name against addresses: which share a line, how many there can be, which meet in a set, what is renamed."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.analyzer.concrete_caches import config_of
from tests.analyzer.relational_programs import LINE_BYTES, Program, Step, Sum, Variable
from tests.end_to_end.test_cache_soundness import analysed
from tests.examples import examples
from tests.support import assembler, guest_of
from wcet_probe.analyzer.dcache.symbolic_blocks import ReferenceGroup, SymbolicBlocks, most_in_one_set
from wcet_probe.analyzer.domains import strided
from wcet_probe.analyzer.facts.memory import PointerFacts, Pointers
from wcet_probe.analyzer.values.symbolic.linear import Linear
from wcet_probe.catalog.lookup import load_target

SETS = 4
_alignments = st.sampled_from((1, 2, 4, 8, 16))
_numbers = st.frozensets(st.integers(0, 11), min_size=1, max_size=4)


def group(alignment: int = 16, residue: int = 0, *, numbers=None, sets=None) -> ReferenceGroup:
    return ReferenceGroup(frozenset(), frozenset(), alignment, residue, numbers, sets, is_short=True, set_count=SETS)


def program_of(*variables: Variable, steps: tuple[Step, ...], asserted_bytes: int = 8) -> Program:
    config = replace(config_of("lru", 2, sets=SETS), line_bytes=LINE_BYTES)
    return Program((steps,), (), variables, {}, config, asserted_bytes, 64)


def read(to, offset: int) -> Step:
    return Step(to, offset, is_store=False, is_certain=True, is_named=True)


@settings(max_examples=examples(100))
@given(_alignments, st.integers(0, 15), st.lists(st.integers(-40, 40), min_size=1, max_size=5))
def test_granules_lie_in_one_line_and_most_lines_is_reached(alignment, residue, offsets):
    one = group(alignment, residue % alignment)
    granules = [one.granule(offset) for offset in offsets]
    counts = []
    for value in range(160 + one.residue, 192 + one.residue, alignment):
        lines = [(value + offset) // LINE_BYTES for offset in offsets]
        assert len(set(zip(granules, lines, strict=True))) == len(set(granules))
        counts.append(len(set(lines)))
    assert max(counts) == one.most_lines(set(granules), LINE_BYTES)


@settings(max_examples=examples(100))
@given(_numbers, _numbers, st.frozensets(st.integers(0, 3)), st.frozensets(st.integers(0, 3)), st.booleans())
def test_groups_that_never_meet_have_no_two_lines_in_a_set(one, other, more, others, is_known):
    """The sets may be known less exactly than the lines, and the lines not at all."""
    left = group(numbers=one, sets=frozenset(n % SETS for n in one) | more)
    right = group(numbers=other if is_known else None, sets=frozenset(n % SETS for n in other) | others)
    meeting = any(a != b and a % SETS == b % SETS for a in one for b in other)
    assert left.may_meet(right) >= meeting
    assert left.may_meet(right) == right.may_meet(left)


@settings(max_examples=examples(100))
@given(st.data())
def test_no_more_lines_are_in_one_set_than_is_said(data):
    """A line of each group, of the numbers and sets that are known of it, and the set of a further line."""
    others, lines = [], set()
    own = data.draw(st.integers(0, SETS - 1))
    for _ in range(data.draw(st.integers(0, 5))):
        line = data.draw(st.integers(0, 11))
        numbers = data.draw(_numbers) | {line} if data.draw(st.booleans()) else None
        sets = data.draw(st.frozensets(st.integers(0, 3))) | {n % SETS for n in numbers or {line}}
        others.append(group(numbers=numbers, sets=sets if data.draw(st.booleans()) else None))
        lines |= {line} if line % SETS == own else set()
    sets = data.draw(st.none() | st.frozensets(st.integers(0, 3)).map(lambda more: more | {own}))
    assert len(lines) <= most_in_one_set(group(sets=sets), others) <= len(others)


def test_of_lines_by_number_no_more_count_than_there_are():
    table = group(numbers=frozenset({4, 5}), sets=frozenset({0, 1}))
    assert most_in_one_set(group(), [table, table, table]) == 1
    assert most_in_one_set(group(sets=frozenset({2})), [table, table]) == 0
    assert most_in_one_set(group(), [table, group(), group(sets=frozenset({1}))]) == 3


def test_lines_in_one_set_meet_though_two_sets_are_possible():
    both = frozenset({0, 1})
    assert group(numbers=frozenset({8}), sets=both).may_meet(group(numbers=frozenset({12}), sets=both))


@settings(max_examples=examples(100))
@given(st.randoms(use_true_random=False), _alignments, st.integers(-48, 48), st.integers(-48, 48))
def test_a_renamed_line_is_the_same_line(draw, asserted, old, new):
    """Two variables that differ by a constant; a line that has a name by the one is the line by the other."""
    offsets = [draw.randrange(0, 44, 4) for _ in range(4)]
    steps = tuple(read(number, offset) for number in (0, 1) for offset in offsets)
    whole = tuple(range(0, 256, asserted))
    program = program_of(*[Variable(None, 0, whole, strided.top(32))] * 2, steps=steps, asserted_bytes=asserted)
    view, lines = program.view, program.view.lines
    one, other = view.symbols
    for access in view.accesses[0][:4]:
        line = lines.of_access(access)
        named = lines.substituted(line, Linear({one: 1}, old, 32), Linear({other: 1}, new, 32), ()) if line else None
        if named is None:
            continue
        for value in range(1024, 1088, asserted):
            there = value + old - new  # the other variable, if what was known of alignments is true of it
            if there % asserted:
                continue
            target = lines.groups[named.line.group]
            byte = there + named.line.granule * target.alignment_bytes - target.residue
            assert byte // LINE_BYTES == (value + access.constant) // LINE_BYTES


def test_a_line_is_renamed_to_what_is_accessed_only():
    """By the name of a line that no access is to, it would not be known which lines it meets."""
    far = SETS * LINE_BYTES
    program = program_of(
        *[Variable(None, 0, (0,), strided.top(32))] * 2, steps=(read(0, 0), read(1, 0)), asserted_bytes=16
    )
    view = program.view
    (line, _), (one, other) = [view.lines.of_access(access) for access in view.accesses[0]], view.symbols
    same = view.lines.substituted(line, Linear({one: 1}, 0, 32), Linear({other: 1}, 0, 32), ())
    assert same is not None
    assert view.lines.substituted(line, Linear({one: 1}, 0, 32), Linear({other: 1}, far, 32), ()) is None


@pytest.mark.parametrize(
    ("first", "alignment"), [(0, 16), (Sum(0, 1), 4), (Sum(0, 2), 8)], ids=["alone", "with-another", "with-an-index"]
)
def test_what_is_told_of_a_number_holds_behind_as_far_as_runs_show_it(first, alignment):
    """The facts speak of the first access only; of a sum, runs show the sum."""
    variables = (
        *[Variable(None, 0, (0,), strided.top(32))] * 2,
        Variable(None, 0, (0, 8), strided.between(32, 0, 8, 8)),
    )
    program = program_of(*variables, steps=(read(first, 0), read(0, 0)), asserted_bytes=4)
    view = replace(program, asserted={(0, 0): Pointers(16)}).view
    line = view.lines.of_access(view.accesses[0][1])
    assert line is not None
    assert view.lines.groups[line.group].alignment_bytes == alignment


def test_an_index_into_the_stack_is_measured_from_the_stack_pointer():
    """Both accesses have the same index; one of them is to so much more than the stack pointer."""
    target = load_target("mpc603e")
    body = "stwu 1, -64(1)\n lbzx 7, 1, 3\n lbz 8, -64(3)\n addi 1, 1, 64\n blr"
    values = analysed(guest_of(assembler({"f": body}, target), target), "f").prepared.values
    assert target.dcache is not None
    lines = SymbolicBlocks(values, target.dcache, PointerFacts(Pointers(4), {}))
    _, indexed, plain = values.accesses[0]
    assert lines.of_access(indexed) != lines.of_access(plain)


def test_an_index_that_is_folded_gives_a_name_only_what_accesses_before_show():
    """No run shows of an access to a pointer and an index, 0 or 4, that the pointer is a multiple of 16."""
    pointer, strides, index = (
        Variable(None, 0, (), strided.top(32)),
        Variable(None, 0, (), strided.between(32, 0, 64, 8)),
        Variable(None, 0, (), strided.between(32, 0, 4, 4)),
    )
    steps = read(Sum(0, 1), 0), read(Sum(0, 2), 0)
    asserted = {(0, 0): Pointers(8), (0, 1): Pointers(16)}
    program = replace(program_of(pointer, strides, index, steps=steps, asserted_bytes=1), asserted=asserted)
    lines = program.view.lines
    line = lines.of_access(program.view.accesses[0][1])
    assert line is not None
    assert lines.symbolic_part(line.group).keys() == {program.view.symbols[0]}
    assert lines.groups[line.group].alignment_bytes == 8
