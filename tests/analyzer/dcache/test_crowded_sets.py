"""Accesses that are taken for strays so that sets have room: which are chosen, and that no run is above what follows.

Runs are held against such bounds by `tests/end_to_end/test_cache_soundness.py`.
"""

from __future__ import annotations

import pytest

from tests.support import cache_config
from wcet_probe.analyzer.dcache.crowded_sets import relieved
from wcet_probe.analyzer.dcache.footprints import DataFootprint, kept_lines
from wcet_probe.analyzer.values.states.bases import Base
from wcet_probe.model.target import Replacement

CONFIG = cache_config(16, 1, 32, Replacement("lru"))
ARRAY, CONSTANT, FRAME = (1, 0x10), (2, 0x20), (3, 0x30)
NUMBERS = {ARRAY: ((Base.NUMBER, 0, 64),), CONSTANT: ((Base.NUMBER, 512, 516),)}
"""Two lines of an array, and a constant in the set of the first."""


def chosen(extents, executed, stack_pointer=None, config=CONFIG, strays=frozenset()):
    spans = [(base, low, end) for own in extents.values() for base, low, end in own]
    numbers = {number for base, low, end in spans if base is Base.NUMBER for number in range(low // 32, -(-end // 32))}
    stack = [(low, end) for base, low, end in spans if base is Base.STACK]
    footprint = DataFootprint(frozenset(numbers), stack[0] if stack else None)
    return relieved((footprint, strays, extents), config, stack_pointer, executed)


@pytest.mark.parametrize(("executed", "stray"), [({1: 9, 2: 1}, CONSTANT), ({1: 1, 2: 9}, ARRAY)])
def test_what_is_executed_least_is_a_stray(executed, stray):
    found = chosen(NUMBERS, executed)
    assert found.strays == {stray}
    assert found.reach == {stray: frozenset({0}) if stray == CONSTANT else frozenset({0, 1})}
    kept = kept_lines(found.footprint, CONFIG)
    assert found.footprint.has_strays
    assert kept is not None
    assert kept.number == (2 if stray == CONSTANT else 1)


def test_nothing_is_chosen_where_all_lines_fit_or_all_are_executed_alike():
    assert chosen({ARRAY: NUMBERS[ARRAY]}, {1: 9}) is None
    assert chosen(NUMBERS, {1: 9, 2: 1}, config=cache_config(16, 2, 32, Replacement("lru"))) is None
    # Of four lines that are met alike, three would count twice: all are charged each time.
    many = {(number, 0): ((Base.NUMBER, 512 * number, 512 * number + 4),) for number in range(4)}
    assert chosen(many, dict.fromkeys(range(4), 5)) is None
    assert relieved((DataFootprint(None), frozenset(), {}), CONFIG, None, {}) is None


def test_a_stack_at_an_unknown_place_leaves_no_room_in_any_set():
    extents = {ARRAY: NUMBERS[ARRAY], FRAME: ((Base.STACK, -8, 0),)}
    found = chosen(extents, {1: 9, 3: 1})
    assert (found.strays, found.reach) == ({FRAME}, {})  # it may go to any set
    assert found.footprint == DataFootprint(frozenset({0, 1}), None, has_strays=True)
    found = chosen(extents, {1: 1, 3: 9})
    assert (found.strays, found.footprint.stack) == ({ARRAY}, (-8, 0))


def test_a_stack_at_a_known_place_is_in_its_sets():
    extents = {ARRAY: NUMBERS[ARRAY], FRAME: ((Base.STACK, -8, 0),)}
    assert chosen(extents, {1: 9, 3: 1}, stack_pointer=0x1060) is None  # its line is in the third set
    found = chosen(extents, {1: 9, 3: 1}, stack_pointer=0x1020)
    assert (found.strays, found.reach) == ({FRAME}, {FRAME: frozenset({0})})
    assert kept_lines(found.footprint, CONFIG, 0x1020).number == 2


def test_where_most_accesses_may_be_anywhere_no_choice_pays():
    assert chosen(NUMBERS, {1: 9, 2: 1, 5: 7}, strays=frozenset({(5, 0x50)})).strays == {CONSTANT, (5, 0x50)}
    assert chosen(NUMBERS, {1: 9, 2: 1, 5: 8}, strays=frozenset({(5, 0x50)})) is None
