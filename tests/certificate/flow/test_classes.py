"""Loops that end by one bit of a word: followed in each class of words, and never counted too low."""

from unittest.mock import patch

import pytest

from tests.analyzer.loops import test_moved_bits as moved
from tests.certificate.kernel.test_code import document_of
from tests.support import assembler, guest_of
from wcet_probe.catalog.lookup import load_target
from wcet_probe.certificate.check import check_bound
from wcet_probe.certificate.flow import classes
from wcet_probe.certificate.flow.classes import Classes
from wcet_probe.certificate.flow.walk import Covered
from wcet_probe.certificate.kernel.coverage import code_of, cover, said_of
from wcet_probe.certificate.kernel.records import graph_of, loops_of, read_records
from wcet_probe.certificate.values.numbers import TOP, WORD
from wcet_probe.certificate.values.state import State

SHOWN = {
    "one word": (moved.ONE_WORD, "cortex-m4", 23),
    "one word of A32, each instruction by itself": (moved.EACH_BY_ITSELF, "arm926ej-s", 23),
    "two words": (moved.TWO_WORDS, "cortex-m4", 52),
    "downwards": (moved.DOWNWARDS, "cortex-m4", 32),
}
"""Loops, and how often each is executed at most for each entry."""

MOST = 30
COUNTED = f"adds r7, #1\n cmp r7, #{MOST}\n beq 9f\n"
"""Another counter ends these loops, so that they have a proof."""
UNTIL_A_BIT = "lsls r0, r0, #1\n tst r0, #0x00800000\n beq 1b\n"
ENDLESS = {
    "of 0": f"1: {COUNTED} {UNTIL_A_BIT}",
    "of a bit above": f"orr r0, r0, #0x01000000\n 1: {COUNTED} {UNTIL_A_BIT}",
    "of a word that a round clears": f"orr r0, r0, #1\n 1: {COUNTED} cmp r1, #3\n it eq\n moveq r0, #0\n {UNTIL_A_BIT}",
    "of a register that a round swaps": (
        f"orr r0, r0, #1\n 1: {COUNTED} mov r2, r0\n mov r0, r1\n mov r1, r2\n {UNTIL_A_BIT}"
    ),
    "in steps that miss it": f"orr r0, r0, #1\n 1: {COUNTED} lsls r0, r0, #2\n tst r0, #0x00800000\n beq 1b\n",
    "that a way enters with another word": f"orr r0, r0, #1\n cbz r1, 1f\n mov r0, r2\n 1: {COUNTED} {UNTIL_A_BIT}",
    "that is entered again": (
        f"movs r4, #3\n orr r0, r0, #1\n 0: nop\n 1: {COUNTED} {UNTIL_A_BIT} subs r4, #1\n bne 0b\n"
    ),
    "of a pointer in steps of 2": f"1: {COUNTED} strb r1, [r0], #2\n lsls r2, r0, #30\n bne 1b\n",
    "of a lower half whose carry is lost": (
        f"orr r0, r0, #1\n movs r1, #0\n 1: {COUNTED} lsls r0, r0, #1\n cmp r3, r4\n adc r1, r1, r1\n"
        " tst r1, #0x00100000\n beq 1b\n"
    ),
}
"""Loops that end by their counter only for some words."""


def covered_of(text, core):
    """The graph that is covered of a proof of a function, its loops, and the proof with what it is held against."""
    target = load_target(core)
    guest = guest_of(assembler({"f": text}, target), target)
    document = document_of(guest)
    records = read_records(document[0]["bound"]["certificates"][0])
    graph, said = graph_of(records), said_of(records)
    code = code_of(guest.image, guest.instructions)
    return Covered(code, graph, said.invariants, cover(code, graph, said, {})), loops_of(records), document


@pytest.mark.covering(0)
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name == "two words")) for name in SHOWN]
)
def test_a_loop_that_ends_by_a_bit_is_counted_just_so(name):
    text, core, most = SHOWN[name]
    covered, (loop,), document = covered_of(text, core)
    assert Classes(covered).limit(loop._replace(most=most - 1))
    assert not Classes(covered).limit(loop._replace(most=most - 2)), "it takes so many rounds"
    assert check_bound(*document).is_full


@pytest.mark.parametrize(("test", "most"), [("lsls r2, r0, #30", 4), ("tst r0, #7", 8)])
def test_a_pointer_that_steps_on_until_it_is_aligned_is_counted(test, most):
    body = f"movs r7, #0\n 1: {COUNTED} strb r1, [r0], #1\n {test}\n bne 1b\n 9: bx lr\n"
    covered, (loop,), _ = covered_of(body, "cortex-m4")
    assert Classes(covered).limit(loop._replace(most=most - 1))
    assert not Classes(covered).limit(loop._replace(most=most - 2))


@pytest.mark.parametrize("name", ENDLESS)
def test_where_a_bit_need_not_come_to_its_place_nothing_is_counted(name):
    covered, loops, _ = covered_of(f"movs r7, #0\n {ENDLESS[name]} 9: bx lr\n", "cortex-m4")
    for loop in loops:
        if "f+0x" in loop.header and loop.most > 3:
            assert not Classes(covered).limit(loop._replace(most=MOST - 2))


def test_one_graph_is_followed_no_longer_than_its_budget():
    covered, (loop,), _ = covered_of(moved.ONE_WORD, "cortex-m4")
    with patch.object(classes, "_MOST_INSTRUCTIONS", 100):
        assert not Classes(covered).limit(loop)


def test_classes_are_all_words():
    start = State({"r0": TOP, "r1": TOP})
    for found in (classes._by_highest_bit(start, ("r0",)), classes._by_remainder(start, "r0")):
        assert sum(state.read("r0").size for state in found) == WORD, "no two have a word in common"
    both = sum(state.read("r0").size * state.read("r1").size for state in classes._by_highest_bit(start, ("r0", "r1")))
    assert both == WORD**2
