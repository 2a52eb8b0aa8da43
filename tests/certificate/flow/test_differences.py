"""Loops that go on until a pointer comes to an end: counted where the difference is known and each step."""

from __future__ import annotations

import pytest

from tests.certificate.kernel.test_code import document_of, not_checked
from tests.support import assembler, guest_of
from wcet_probe.catalog.lookup import load_target
from wcet_probe.certificate.flow.differences import most_by_difference
from wcet_probe.certificate.flow.walk import Covered
from wcet_probe.certificate.kernel.coverage import code_of, cover, said_of
from wcet_probe.certificate.kernel.records import graph_of, loops_of, read_records

LIMIT = 40
"""Rounds after which another counter ends each of these loops, so that it has a proof."""
ENDING = {
    "cortex-m4": f"adds r2, #1\n cmp r2, #{LIMIT}\n beq 2f\n",
    "arm926ej-s": f"add r2, r2, #1\n cmp r2, #{LIMIT}\n beq 2f\n",
    "mpc603e": f"addi 7, 7, 1\n cmpwi 7, {LIMIT}\n beq 2f\n",
}
BEGIN = {"cortex-m4": "movs r2, #0\n", "arm926ej-s": "mov r2, #0\n", "mpc603e": "li 7, 0\n"}
LEAVE = {"cortex-m4": "2: bx lr\n", "arm926ej-s": "2: bx lr\n", "mpc603e": "2: blr\n"}
UP = {
    "cortex-m4": ("subs r3, r0, #4\n add r1, r0, #60\n", "ldr r0, [r3, #4]!\n", "cmp r3, r1\n bne 1b\n"),
    "arm926ej-s": ("sub r3, r0, #4\n add r1, r0, #60\n", "ldr r0, [r3, #4]!\n", "cmp r3, r1\n bne 1b\n"),
    "mpc603e": ("addi 5, 3, -4\n addi 6, 3, 60\n", "lwzu 3, 4(5)\n", "cmplw 5, 6\n bne 1b\n"),
}


def most(core, entry, each_round, test):
    """The checker's count of the loop of a function, and the function."""
    target = load_target(core)
    body = f"{entry}{BEGIN[core]}1: {each_round}{ENDING[core]}{test}{LEAVE[core]}"
    guest = guest_of(assembler({"f": body}, target), target)
    records = read_records(document_of(guest)[0]["bound"]["certificates"][0])
    graph, said, (loop,) = graph_of(records), said_of(records), loops_of(records)
    code = code_of(guest.image, guest.instructions)
    return most_by_difference(Covered(code, graph, said.invariants, cover(code, graph, said, {})), loop), guest


@pytest.mark.parametrize("core", UP)
def test_a_pointer_that_goes_up_to_an_end_is_counted(core):
    found, guest = most(core, *UP[core])
    assert found == 16
    assert not not_checked(guest) & {"loop bounds", "graph"}


OF_THUMB = {
    "down": ("add r3, r0, #64\n mov r1, r0\n", "ldr r0, [r3, #-4]!\n", "cmp r3, r1\n bne 1b\n", 16),
    "swapped": ("subs r3, r0, #4\n add r1, r0, #60\n", "ldr r0, [r3, #4]!\n", "cmp r1, r3\n bne 1b\n", 16),
    "less": ("subs r3, r0, #4\n add r1, r0, #60\n", "ldr r0, [r3, #4]!\n", "cmp r3, r1\n blo 1b\n", 16),
    "before": (
        "mov r3, r0\n add r1, r0, #64\n",
        "cmp r3, r1\n beq 2f\n ldr r0, [r3], #4\n",
        "cmp r3, r1\n bne 1b\n",
        16,
    ),
    "two ways": (
        "add r1, r0, #28\n cbz r1, 3f\n add r1, r0, #60\n 3: subs r3, r0, #4\n",
        *("ldr r0, [r3, #4]!\n", "cmp r3, r1\n bne 1b\n", None),
    ),
    "behind the end": ("add r3, r0, #4\n mov r1, r0\n", "adds r3, #4\n", "cmp r3, r1\n bne 1b\n", (1 << 30) - 1),
    "from the end on by threes": ("mov r3, r0\n mov r1, r0\n", "adds r3, #3\n", "cmp r3, r1\n bne 1b\n", None),
    "behind the end by threes": ("adds r3, r0, #3\n mov r1, r0\n", "adds r3, #3\n", "cmp r3, r1\n bne 1b\n", None),
    "up to one of several": (
        "and r4, r0, #12\n adds r4, #4\n subs r3, r1, #4\n add r1, r3, r4\n",
        *("adds r3, #4\n", "cmp r3, r1\n bne 1b\n", 4),
    ),
    "up to one of several, or none": (
        "and r4, r0, #12\n subs r3, r1, #4\n add r1, r3, r4\n",
        *("adds r3, #4\n", "cmp r3, r1\n bne 1b\n", None),
    ),
    "up to one of several, or none, tested before": (
        "and r4, r0, #12\n mov r3, r1\n add r1, r3, r4\n",
        *("cmp r3, r1\n beq 2f\n adds r3, #4\n", "b 1b\n", 4),
    ),
    "beside one of several": (
        "and r4, r0, #14\n adds r4, #4\n subs r3, r1, #4\n add r1, r3, r4\n",
        *("adds r3, #4\n", "cmp r3, r1\n bne 1b\n", None),
    ),
    "flags that an inner loop changes": (
        "and r4, r0, #12\n mov r3, r1\n add r1, r3, r4\n",
        *("cmp r3, r1\n beq 2f\n adds r3, #4\n", "cmp r0, #1\n ite eq\n moveq r0, #2\n movne r0, #1\n b 1b\n", 4),
    ),
    "a test of another word": (
        "and r4, r0, #12\n mov r3, r1\n add r1, r3, r4\n",
        *("adds r5, r1, #4\n cmp r3, r5\n beq 2f\n adds r3, #4\n", "b 1b\n", None),
    ),
    "beside the end": ("subs r3, r0, #4\n add r1, r0, #62\n", "ldr r0, [r3, #4]!\n", "cmp r3, r1\n bne 1b\n", None),
    "or more": ("subs r3, r0, #4\n add r1, r0, #60\n", "ldr r0, [r3, #4]!\n", "cmp r3, r1\n bhs 1b\n", None),
    "no more": ("subs r3, r0, #4\n add r1, r0, #60\n", "ldr r0, [r3, #4]!\n", "cmp r3, r1\n bls 1b\n", None),
    "other end": ("subs r3, r0, #4\n adds r1, #60\n", "ldr r0, [r3, #4]!\n", "cmp r3, r1\n bne 1b\n", None),
    "loaded end": ("subs r3, r0, #4\n ldr r1, [r0]\n", "ldr r0, [r3, #4]!\n", "cmp r3, r1\n bne 1b\n", None),
    "moved end": (
        "subs r3, r0, #4\n add r1, r0, #60\n",
        "adds r1, #4\n ldr r0, [r3, #4]!\n",
        "cmp r3, r1\n bne 1b\n",
        None,
    ),
    "a step at times": (
        "subs r3, r0, #4\n add r1, r0, #60\n",
        *("cmp r2, #3\n it ne\n addne r3, r3, #4\n", "cmp r3, r1\n bne 1b\n", None),
    ),
    "steps of two sizes": (
        "subs r3, r0, #4\n add r1, r0, #60\n",
        *("cmp r2, #3\n ite ne\n addne r3, r3, #4\n addeq r3, r3, #8\n", "cmp r3, r1\n bne 1b\n", None),
    ),
    "shifted": (
        "lsrs r3, r0, #1\n lsrs r1, r0, #2\n adds r1, #8\n",
        *("adds r3, #1\n", "cmp r3, r1\n bne 1b\n", None),
    ),
    "a test at times": (
        "subs r3, r0, #4\n add r1, r0, #60\n",
        *(
            "adds r2, #1\n cmp r2, #80\n bhs 2f\n ldr r0, [r3, #4]!\n cmp r0, #9\n beq 1b\n",
            "cmp r3, r1\n bne 1b\n",
            None,
        ),
    ),
}


@pytest.mark.parametrize("name", OF_THUMB)
def test_only_what_surely_comes_to_the_end_is_counted(name):
    *code, count = OF_THUMB[name]
    assert most("cortex-m4", *code)[0] == count


def test_the_edge_that_enters_with_the_greatest_difference_counts():
    target = load_target("cortex-m4")
    entry = "movs r2, #0\n cbz r1, 3f\n adds r3, r0, #4\n add r1, r0, #60\n b 1f\n"
    entry += "3: adds r3, r0, #4\n add r1, r0, #124\n"
    body = f"{entry} 1: adds r3, #4\n {ENDING['cortex-m4']} cmp r3, r1\n bne 1b\n {LEAVE['cortex-m4']}"
    guest = guest_of(assembler({"f": body}, target), target)
    records = read_records(document_of(guest)[0]["bound"]["certificates"][0])
    graph, said, (loop,) = graph_of(records), said_of(records), loops_of(records)
    code = code_of(guest.image, guest.instructions)
    covered = Covered(code, graph, said.invariants, cover(code, graph, said, {}))
    assert len(loop.entering) == 2
    assert most_by_difference(covered, loop) == 30
    assert {most_by_difference(covered, loop._replace(entering=[edge])) for edge in loop.entering} == {14, 30}
