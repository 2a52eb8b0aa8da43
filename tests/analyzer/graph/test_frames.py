"""Which functions return in a caller's stead: what they do to the stack pointer and the return address tells it."""

from random import Random

import pytest

from tests.analyzer.graph.random_calls import assembled, plainly, random_bodies
from tests.analyzer.small_functions import ARM, POWERPC, THUMB, lifter_of, small_guest
from wcet_probe.analyzer.graph.frames import UNKNOWN, Left, returning_for_callers

SAVED = "push {r4, lr}\n"
BODIES = {
    "a leaf": ("bx lr", set()),
    "its own frame": (SAVED + "sub sp, #8\nstr r0, [sp]\nadd sp, #8\npop {r4, pc}", set()),
    "its address in another register": ("mov r3, lr\nmov lr, r0\nbx r3", set()),
    "one frame of a caller": ("pop {r4, pc}", {Left(8, 4)}),
    "a frame and what lies below it": ("add sp, #8\npop {r4, pc}", {Left(16, 12)}),
    "either": ("cmp r0, #0\nbne 1f\npop {r4, pc}\n1: bx lr", {Left(8, 4)}),
    "an address of its own making": ("mov lr, r0\nbx lr", {UNKNOWN}),
    "an address that was overwritten": (SAVED + "str r0, [sp, #4]\npop {r4, pc}", {UNKNOWN}),
    "the address of a caller that was overwritten": ("str r0, [sp, #4]\npop {r4, pc}", {UNKNOWN}),
    "an address of which a byte was overwritten": (SAVED + "strb r0, [sp, #5]\npop {r4, pc}", {UNKNOWN}),
    "a byte beside its address": (SAVED + "strb r0, [sp, #3]\npop {r4, pc}", set()),
    "half of the address of a caller": ("strh r0, [sp, #6]\npop {r4, pc}", {UNKNOWN}),
    "two words over its address": ("push {r2, r3, r4, lr}\nstrd r0, r1, [sp, #8]\npop {r2, r3, r4, pc}", {UNKNOWN}),
    "a frame pointer, from which the stack pointer is restored": (
        "push {r7, lr}\nsub sp, #16\nmov r7, sp\nadds r7, #16\nmov sp, r7\npop {r7, pc}",
        set(),
    ),
    "a frame pointer that leaves a frame": ("push {r7, lr}\nmov r7, sp\nadds r7, #4\nmov sp, r7\nbx lr", {UNKNOWN}),
    "a frame pointer that pops one of a caller": ("mov r7, sp\nmov sp, r7\npop {r4, pc}", {Left(8, 4)}),
    "a frame pointer of no whole word": ("mov r7, sp\nadds r7, #3\nmov sp, r7\nbx lr", set()),
    "another stack": ("mov sp, r0\nbx lr", {UNKNOWN}),
    "its frame left on the stack": (SAVED + "bx lr", {UNKNOWN}),
    "a frame of a size that is not known": ("add sp, r0\nbx lr", {UNKNOWN}),
    "its address lost in a call": ("bl leaf\nbx lr", {UNKNOWN}),
    "its address in a register that a call may change": ("mov r3, lr\nbl leaf\nmov lr, r3\nbx lr", {UNKNOWN}),
    "its address in a register that a call keeps": ("mov r4, lr\nbl leaf\nbx r4", set()),
    "a frame that a call keeps": (SAVED + "bl leaf\npop {r4, pc}", set()),
    "a frame by way of a callee": (SAVED + "bl popping\n1: b 1b", set()),
    "two frames by way of a callee": ("bl popping\n1: b 1b", {Left(8, 4)}),
    "the address of an aligned caller": (SAVED + "ldr r3, [sp, #4]\nbic r3, r3, #1\nadd sp, #8\nbx r3", set()),
}
OTHERS = {"leaf": "bx lr", "popping": "pop {r4, pc}"}


def told(body, target=THUMB, others=OTHERS):
    guest = small_guest({"f": body, **others}, target)
    returning = {guest.address(name) for name in guest.image.symbols if name in {"f", *others}}
    found = returning_for_callers(lifter_of(guest), guest.address("f"), {}, returning)
    return set(found.get(guest.address("f"), ()))


@pytest.mark.parametrize("name", BODIES)
def test_who_pops_a_caller_s_frame_is_told_with_where_its_address_is(name):
    body, expected = BODIES[name]
    assert told(body) == expected


def test_other_instruction_sets_have_their_own_frames():
    saving = "stwu 1, -16(1)\nmflr 0\nstw 0, 20(1)\nlwz 0, 20(1)\naddi 1, 1, 16\nmtlr 0\nblr"
    assert told(saving, POWERPC, {}) == set()
    popping = "lwz 0, 20(1)\naddi 1, 1, 16\nmtlr 0\nblr"
    assert told(popping, POWERPC, {}) == {Left(16, 20)}
    assert told("ldmia sp!, {r4, pc}", ARM, {}) == {Left(8, 4)}
    assert told("stmdb sp!, {r4, lr}\nldmia sp!, {r4, pc}", ARM, {}) == set()


@pytest.mark.parametrize("part", range(3))
def test_functions_that_keep_their_frames_return_for_nobody(part):
    bodies = random_bodies(Random(f"frames {part}"), 10)
    guest = assembled(bodies)
    lifter = lifter_of(guest)
    for entry in range(len(bodies)):
        returning = {guest.address(f"f{one}") for one in plainly(bodies, entry)[0]}
        assert not returning_for_callers(lifter, guest.address(f"f{entry}"), {}, returning)


def test_what_was_told_before_is_told_anew_where_a_callee_is_another():
    """An answer is remembered with all that it was told from: whether the callee comes back is part of it."""
    guest = small_guest({"f": "bl g\nbx lr", "g": "1: b 1b"})
    lifter, entry, callee = lifter_of(guest), guest.address("f"), guest.address("g")
    assert not returning_for_callers(lifter, entry, {}, {entry})
    assert set(returning_for_callers(lifter, entry, {}, {entry, callee})[entry]) == {UNKNOWN}
    assert not returning_for_callers(lifter, entry, {}, {entry})
