"""Loops that count with words which may be addresses of the stack, held against runs: each is a number in any case.

Tests: analyzer.loops.counting, analyzer.values.result.
"""

from dataclasses import replace

import pytest

from tests.analyzer.loops.one_loop import hold, hold_random, proof_of, refuse
from wcet_probe.analyzer.values import result
from wcet_probe.analyzer.values.states.bases import Base
from wcet_probe.analyzer.values.states.plain_numbers import as_words
from wcet_probe.analyzer.values.states.state import State
from wcet_probe.catalog.lookup import load_target

THUMB, POWERPC = "cortex-m4", "mpc603e"
LOADED = {
    THUMB: "sub sp, #8\nstr sp, [r1]\nstr r0, [r1, #4]\nldr r0, [r1, #4]\n",
    POWERPC: "stwu 1, -16(1)\nstw 1, 0(4)\nstw 3, 4(4)\nlwz 3, 4(4)\n",
}
"""A loop's number comes from memory, where an address of the stack is stored as well."""
LEFT = {THUMB: "\n2: add sp, #8\nbx lr", POWERPC: "\n2: addi 1, 1, 16\nblr"}
WORDS = (0, 1, 2, 5, 9, 30, 31, 37, 38, 39, 40, 63, 64, 65, 100, 1 << 31, (1 << 31) - 1, (1 << 32) - 2, (1 << 32) - 1)


def runs(core, words=WORDS):
    own = load_target(core).memory_map
    return [(word, own.heap_address) for word in (*words, own.heap_address, own.stack.end_address - 16)]


def function(core, text):
    return LOADED[core] + text + LEFT[core]


def test_the_number_may_be_an_address_for_all_that_is_known():
    text = function(THUMB, "cmp r0, #37\nbhi 2f\n1: adds r0, #1\ncmp r0, #38\nbne 1b")
    values = proof_of(THUMB, text).values
    assert values.stack_escapes
    (header,) = {edge.target for edge in values.edges if edge.source == edge.target}
    state, words = values.states[header], values.as_words.states[header]
    assert Base.ANY in map(state.base, state.locations.values())
    assert Base.ANY not in map(words.base, words.locations.values())
    assert values.as_words.states[header] is words
    assert values.as_words.killed is values.killed


def test_a_state_is_told_as_numbers_only_where_it_is_asked_for(monkeypatch):
    found = proof_of(THUMB, function(THUMB, "cmp r0, #37\nbhi 2f\n1: adds r0, #1\ncmp r0, #38\nbne 1b")).values
    values, told = replace(found), list[State]()
    monkeypatch.setattr(result, "as_words", lambda state: told.append(state) or as_words(state))
    words = values.as_words
    assert all(edge in words.edges for edge in values.edges)
    assert all(point in words.states for point in values.states)
    assert words.conditions == {edge: one.conditions for edge, one in values.edges.items()}
    assert words.held_terms == {point: state.locations for point, state in values.states.items()}
    assert not told
    assert words.conditions == {edge: one.conditions for edge, one in words.edges.items()}
    assert words.held_terms == {point: state.locations for point, state in words.states.items()}
    assert len(told) == len(values.edges) + len(values.states)


COUNTED = {
    "up to an end that is met": (THUMB, "cmp r0, #37\nbhi 2f\n1: adds r0, #1\ncmp r0, #38\nbne 1b", 38),
    "to an end by order": (THUMB, "cmp r0, #37\nbhi 2f\n1: adds r0, #3\ncmp r0, #40\nblt 1b", 14),
    "within a range, down": (THUMB, "cmp r0, #0\nble 2f\n1: cmp r0, #100\nbhi 2f\nsubs r0, #1\nbne 1b", 102),
    "a ring's index": (THUMB, "cmp r0, #7\nbhi 2f\n1: adds r0, #1\nand r0, #7\ncmp r0, #5\nbne 1b", 8),
    "up, PowerPC": (POWERPC, "cmplwi 3, 37\nbgt 2f\n1: addi 3, 3, 1\ncmpwi 3, 38\nbne 1b", 38),
}


@pytest.mark.parametrize("name", COUNTED)
def test_it_counts_as_the_number_that_it_is(name):
    core, text, most = COUNTED[name]
    hold(core, function(core, text), most, runs(core))


UNKNOWN = {
    "nothing is known of it": "1: adds r0, #1\ncmp r0, #38\nbne 1b",
    "it may begin behind the end": "cmp r0, #39\nbhi 2f\n1: adds r0, #1\ncmp r0, #38\nbne 1b",
    "the test is signed, and the end is not": "cmp r0, #37\nbgt 2f\n1: adds r0, #1\ncmp r0, #38\nbne 1b",
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_without_a_comparison_that_tells_the_width_of_the_word_bounds_it(name):
    (by_type,) = proof_of(THUMB, function(THUMB, UNKNOWN[name])).bound.by_type
    assert by_type.max > 1 << 30


def test_a_loop_that_its_number_does_not_end_has_no_bound():
    refuse(THUMB, function(THUMB, "1: ldr r0, [r1, #4]\nadds r0, #1\nstr r0, [r1, #8]\ncmp r0, #38\nbne 1b"))


@pytest.mark.parametrize("part", [1, pytest.param(0, marks=pytest.mark.slow)])
def test_random_loops_are_held_against_runs(part):
    ends = (0, 1, 5, 31, 38, 64, 100, 255)
    conditions = ("eq", "ne", "hi", "ls", "hs", "lo", "gt", "le", "ge", "lt", "mi", "pl")

    def loop(draw):
        guards = "".join(
            f"cmp r0, #{draw.choice(ends)}\nb{draw.choice(conditions)} 2f\n" for _ in range(draw.randint(1, 2))
        )
        step = f"{draw.choice(('adds', 'subs'))} r0, #{draw.choice((1, 1, 1, 2, 3, 7))}\n"
        test = f"cmp r0, #{draw.choice(ends)}\nb{draw.choice(conditions)} {{}}"
        body = draw.choice((f"1: {step}{test.format('1b')}", f"1: {test.format('2f')}\n{step}b 1b"))
        return function(THUMB, guards + body)

    hold_random(THUMB, 16 + part, loop, lambda draw: draw.sample(runs(THUMB), 5))
