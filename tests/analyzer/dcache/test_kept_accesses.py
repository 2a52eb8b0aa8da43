"""Accesses by name where lines are kept: what conditional returns load, and lines of the stack at a known place."""

from __future__ import annotations

import pytest

from tests.end_to_end.test_cache_soundness import analysed, check, with_cache
from tests.support import assembler, cache_config, guest_of
from wcet_probe.analyzer.dcache.access_steps import AccessStep
from wcet_probe.analyzer.dcache.kept_accesses import KeptSteps
from wcet_probe.analyzer.dcache.symbolic_blocks import ReferenceGroup, SymbolicBlock
from wcet_probe.analyzer.dcache.younger_sets import UNKNOWN, LineAccess, RelationalCache, Verdict
from wcet_probe.catalog.lookup import load_target

ONE_LINE_A_SET = "d:sets=16,ways=2,line=32,policy=round-robin,allocate=no"
MANY_CALLS = {
    "f": """
        push {r4, lr}
        mov r4, #40
    1:  mov r0, #1
        bl g
        subs r4, r4, #1
        bne 1b
        pop {r4, pc}
    """,
    "g": """
        push {r4, r5, r6, lr}
        cmp r0, #0
        popne {r4, r5, r6, pc}
        mov r4, #0
        pop {r4, r5, r6, pc}
    """,
}
"""Of the second call on, what is pushed is in the line that was popped."""
NOT_POPPED = {
    "f": """
        push {r1, r2, r3, lr}
        mov r4, #40
    1:  cmp r0, #0
        popne {r1, r2, r3, pc}
        str r4, [sp, #4]
        subs r4, r4, #1
        bne 1b
        pop {r1, r2, r3, pc}
    """.replace("r4", "r2"),
}
"""Where the condition fails nothing is loaded, so each store to the line may be a single write."""


def _guest(functions):
    target = load_target("arm926ej-s")
    return guest_of(assembler(functions, target), target)


def test_what_a_conditional_return_loads_is_in_the_cache_behind_it():
    one = analysed(_guest(MANY_CALLS), "f")
    target = with_cache(one.guest.target, ONE_LINE_A_SET)
    check(one, ONE_LINE_A_SET, [()])
    assert one.bound(target) < 40 * target.memory.single_cycles  # less than a single write for each call


def test_what_a_conditional_return_would_load_is_not_where_it_does_not_return():
    one = analysed(_guest(NOT_POPPED), "f")
    target = with_cache(one.guest.target, ONE_LINE_A_SET)
    check(one, ONE_LINE_A_SET, [(0,), (1,)])
    assert one.bound(target) >= 40 * target.memory.single_cycles


@pytest.mark.parametrize("offset", range(0, 32, 8))
def test_granules_are_one_line_only_where_the_stack_pointer_says_so(offset):
    """Eight words from below the stack pointer: one is loaded, all are stored to, again and again."""
    stores = "\n".join(f"str r1, [sp, #{4 * one}]" for one in range(8))
    body = f"""
        sub sp, sp, #{32 + offset}
        mov r1, #20
    1:  {stores}
        ldr r3, [sp, #0]
        subs r1, r1, #1
        bne 1b
        add sp, sp, #{32 + offset}
        bx lr
    """
    one = analysed(_guest({"f": body}), "f")
    check(one, ONE_LINE_A_SET, [()])


def test_others_keep_the_verdicts_that_they_had():
    line = LineAccess(SymbolicBlock(0, 0), fills=True, is_certain=True)

    class Access:
        instruction_address = 0x100

    before, after = Verdict(*[False] * 7), Verdict(*[True] * 7)
    steps = {0: [AccessStep(line, Access()), AccessStep(line, None)], 1: [AccessStep(line, Access())]}
    earlier, later = {0: [before] * 2, 1: [before]}, {0: [after] * 2, 1: [after]}
    found = KeptSteps(steps, steps, {}).verdicts(earlier, later, {(1, 0x100)})
    assert found == {0: (after, before), 1: (before,)}


def test_a_stray_evicts_all_that_may_be_in_the_sets_that_it_may_go_to():
    config = cache_config(4, 2, 32)
    groups = [
        ReferenceGroup(frozenset(), frozenset(), 8, 0, None, sets, is_short=True, set_count=4)
        for sets in (None, frozenset({1, 2}), frozenset({3}), None)
    ]
    lines = [SymbolicBlock(number, 0) for number in range(3)]
    known = SymbolicBlock(3, -8)
    cache = RelationalCache(groups, config, keeps_all=True, at={known: 3})
    state = UNKNOWN
    for line in (*lines, known):
        state = cache.touch(state, LineAccess(line, fills=True, is_certain=True))
    stray = LineAccess(None, fills=True, is_certain=True, evicts=frozenset({0, 1}))
    after = cache.touch(state, stray)
    assert set(after.must) == {lines[2], known}
    assert {line for line, younger in after.scope.items() if younger is None} == {lines[0], lines[1]}
