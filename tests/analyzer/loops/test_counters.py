"""What a loop counts: how its back edges change a location, and what arrives there."""

import pytest

from tests.path_check import attack, proved
from tests.support import assembler, guest_of
from wcet_probe.analyzer.domains import strided
from wcet_probe.analyzer.facts.file import parse_facts
from wcet_probe.analyzer.loops.counters import arriving, counters_of, settled
from wcet_probe.analyzer.values.properties.loop_shapes import loop_shapes
from wcet_probe.catalog.lookup import load_target

LOOPS = {
    "up": ("adds r0, r0, #3", (3, False, False)),
    "down": ("subs r0, r0, #1", (-1, False, False)),
    "right": ("lsrs r0, r0, #2", (2, True, False)),
    "left": ("lsls r0, r0, #1", (1, True, True)),
    "lowest": ("subs r2, r0, #1\n    ands r0, r0, r2", (1, True, False)),
    "lowest_two": ("subs r2, r0, #1\n    ands r0, r0, r2\n    subs r2, r0, #1\n    ands r0, r0, r2", (2, True, False)),
    "lowest_flipped": ("rsbs r2, r0, #0\n    ands r2, r0\n    eors r0, r2", (1, True, False)),
    "lowest_subtracted": ("rsbs r2, r0, #0\n    ands r2, r0\n    subs r0, r0, r2", (1, True, False)),
    "lowest_of_the_next": ("mvns r2, r0\n    ands r2, r0\n    eors r0, r2", None),
    "not_lowest": ("adds r2, r0, #1\n    ands r0, r0, r2", None),
    "lowest_of_another": ("subs r2, r0, #1\n    ands r0, r3, r2", None),
    "still": ("mov r0, r0", None),
    "mixed": ("adds r0, r0, r1", None),
    "other": ("ldr r0, [r3]", None),
    "signed": ("asrs r0, r0, #1", None),
}
BODY = """
    movs r1, #9
1:  {}
    subs r1, r1, #1
    bne 1b
    bx lr
"""


@pytest.fixture(scope="module")
def guest():
    target = load_target("cortex-m4")
    return guest_of(assembler({name: BODY.format(code) for name, (code, _) in LOOPS.items()}, target), target)


def counters(values):
    (shape,) = loop_shapes(values)
    names = {location: name for name, location in values.registers.items()}
    return shape, {names.get(step.location): step for step in counters_of(values, shape).values()}


@pytest.mark.parametrize("name", LOOPS)
def test_a_round_changes_a_location_as_its_code_says(guest, name):
    _, found = counters(proved(guest, name).values)
    step = found.get("r0")
    assert (step and (step.amount, step.shifts, step.grows)) == LOOPS[name][1]
    assert (found["r1"].amount, found["r1"].shifts) == (-1, False)


DIGITS = """
    movw r2, #0xcccd
    movt r2, #0xcccc
    movs r1, #0
1:  umull r3, r0, r2, r0
    adds r1, r1, #1
    lsrs r0, r0, #3
    bne 1b
    bx lr
"""
ONES = """
    movs r1, #0
1:  subs r2, r0, #1
    ands r0, r0, r2
    beq 3f
    subs r2, r0, #1
    ands r0, r0, r2
    bne 1b
3:  bx lr
"""


FLAGS = """
    movs r1, #0
1:  rsbs r2, r0, #0
    ands r2, r0
    eors r0, r2
    bne 1b
    bx lr
"""


@pytest.mark.parametrize(("code", "most"), [(DIGITS, 10), (ONES, 16), (FLAGS, 32)])
def test_what_is_divided_or_loses_bits_ends_in_time(code, most):
    target = load_target("cortex-m4")
    proof = proved(guest_of(assembler({"f": code}, target), target), "f")
    (loop,) = proof.bound.loops
    assert loop.max == most
    for number in (0, 1, 9, 10, 999_999_999, 1_000_000_000, 0x80000000, 0xFFFFFFFF):
        attack(proof, number)


TWO_WAYS = """
    movs r1, #20
1:  cmp r2, #5
    beq 2f
    subs r1, r1, #{}
    bgt 1b
    bx lr
2:  subs r1, r1, #{}
    bgt 1b
    bx lr
"""


@pytest.mark.parametrize(("one", "other", "counts"), [(2, 2, True), (2, 1, False)])
def test_back_edges_must_agree(one, other, counts):
    target = load_target("cortex-m4")
    facts = parse_facts("facts.toml", "")
    values = proved(guest_of(assembler({"f": TWO_WAYS.format(one, other)}, target), target), "f", facts).values
    _, found = counters(values)
    assert ("r1" in found) is counts


def test_what_arrives_is_the_union_of_the_edges(guest):
    values = proved(guest, "up").values
    shape, found = counters(values)
    location = found["r1"].location
    first = arriving(values, shape.entry_edges, location)
    again = arriving(values, shape.back_edges, location)
    both = arriving(values, (*shape.entry_edges, *shape.back_edges), location)
    assert (first.low, first.steps) == (9, 0)
    assert again is not None
    assert not strided.leq(strided.constant(32, 0), again)  # the condition to go on is that it is not 0
    assert both == strided.join(first, again)
    assert arriving(values, (), location) is None


def test_what_may_be_an_address_is_no_number(guest):
    values = proved(guest, "up").values
    shape, _ = counters(values)
    assert arriving(values, shape.entry_edges, values.registers["sp"]) is None


PREDICATED = """
    mov r1, #9
1:  cmp r1, #{}
    addhs r0, r0, #1
    subs r1, r1, #1
    bne 1b
    bx lr
"""


@pytest.mark.parametrize(("least", "counts"), [(0, True), (5, False)])
def test_a_choice_that_is_decided_is_settled(least, counts):
    """`hs` of an unsigned number and 0 always holds, so that each round adds; and not where it may not hold."""
    target = load_target("arm926ej-s")
    values = proved(guest_of(assembler({"f": PREDICATED.format(least)}, target), target), "f").values
    shape, found = counters(values)
    assert ("r0" in found) is counts
    state = values.edges[shape.back_edges[0]].state
    assert settled(state, None) is None
    assert settled(state, state.read(values.registers["r2"])) == state.read(values.registers["r2"])
