"""What places hold in the rounds of a loop, by how often it repeats.

Tests: certificate.flow.rounds.
"""

import pytest

from tests.certificate.kernel.test_code import document_of, not_checked
from tests.certificate.specimens import ARRAY
from tests.support import assembler, guest_of
from wcet_probe.catalog.lookup import load_target
from wcet_probe.certificate.flow.rounds import ranges_in_rounds
from wcet_probe.certificate.flow.walk import Covered
from wcet_probe.certificate.kernel.coverage import code_of, cover, said_of
from wcet_probe.certificate.kernel.records import graph_of, loops_of, read_records
from wcet_probe.certificate.values.numbers import number

TABLE = 0x2000_1000
ROUND = """
 ldr r0, =0x20001000
 movs r2, #0
 {first}
1: adds r2, #1
 cmp r2, #40
 beq 2f
 {step}
 {test}
 bne 1b
2: bx lr
"""
"""A counter ends each of these loops."""


def ranges(**parts):
    """What is found of r3 where the loop begins."""
    target = load_target("cortex-m4")
    guest = guest_of(assembler({"f": ROUND.format(**parts)}, target), target)
    records = read_records(document_of(guest)[0]["bound"]["certificates"][0])
    graph, said = graph_of(records), said_of(records)
    code = code_of(guest.image, guest.instructions)
    # As if nothing were said of it: what is in a range already needs no rounds.
    header = loops_of(records)[0].header
    invariants = {
        node: {place: value for place, value in known.items() if place != "r3"}
        for node, known in said.invariants.items()
    }
    covered = Covered(code, graph, invariants, cover(code, graph, said._replace(invariants=invariants), {}))
    return ranges_in_rounds(covered, loops_of(records)).get(header, {}).get("r3")


UP = {"first": "mov r3, r0", "step": "ldr r4, [r3], #4", "test": "cmp r4, #9"}
FOUND = {
    "up": (UP, number(TABLE, TABLE + 4 * 39, 4)),
    "down": (
        {**UP, "first": "add r3, r0, #256", "step": "ldr r4, [r3, #-4]!"},
        number(TABLE + 256 - 4 * 39, TABLE + 256, 4),
    ),
    "from one of two": (
        {**UP, "first": "cmp r5, #9\n ite ne\n movne r3, r0\n addeq r3, r0, #8"},
        number(TABLE, TABLE + 8 + 4 * 39, 4),
    ),
}
NOT_FOUND = {
    "a step at times": {**UP, "step": "cmp r4, #3\n it ne\n addne r3, r3, #4"},
    "steps of two sizes": {**UP, "step": "cmp r4, #3\n ite ne\n addne r3, r3, #4\n addeq r3, r3, #8"},
    "set anew": {**UP, "step": "adds r3, #4\n cmp r4, #3\n it eq\n moveq r3, r0"},
    "by an argument": {**UP, "step": "add r3, r3, r5"},
    "from an argument": {**UP, "first": "mov r3, r6"},
}


@pytest.mark.parametrize("name", FOUND)
def test_a_place_that_each_round_moves_is_in_the_range_of_all_rounds(name):
    parts, expected = FOUND[name]
    assert ranges(**parts) == expected


@pytest.mark.parametrize("name", NOT_FOUND)
def test_nothing_is_told_of_what_moves_otherwise(name):
    assert ranges(**NOT_FOUND[name]) is None


def test_lines_of_an_array_that_a_nest_of_loops_goes_through_miss_once():
    target = load_target("mpc603e")
    on = guest_of(assembler({"f": ARRAY}, target), target)
    assert not_checked(on) == set()


WITHIN_ONE_LINE = """
 ldr r1, =0x20001004
 movs r3, #0
1: ldrsb r2, [r1]
 eors r2, r3
 adds r3, #5
 cmp r3, #30
 strb r2, [r1], #1
 bne 1b
 bx lr
"""


def test_an_array_within_one_line_is_that_line_for_the_certificate_too():
    """It told of the pointer's line behind the loop, where the checker knew only the number of that line: refused."""
    target = load_target("cortex-m7")
    on = guest_of(assembler({"f": WITHIN_ONE_LINE}, target), target)
    assert not_checked(on) == set()
