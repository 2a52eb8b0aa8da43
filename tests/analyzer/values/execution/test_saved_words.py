"""Which stores save registers, and what a state holds of the words where they are saved."""

import pytest

from tests.analyzer.small_functions import ARM, POWERPC, THUMB, lifter_of, small_graph, small_guest
from wcet_probe.analyzer.domains import strided
from wcet_probe.analyzer.values.execution.saved_words import (
    moves,
    note_store,
    release,
    saving_stores,
    stack_pointer,
    still_saved,
)
from wcet_probe.analyzer.values.states.bases import Base
from wcet_probe.analyzer.values.states.state import State
from wcet_probe.analyzer.values.symbolic.locations import SAVED, Location
from wcet_probe.analyzer.values.symbolic.terms import Terms

POINTER = Location("register", 84, 4)
WORD = Location("stack", -8, 4)


def found(body, target=THUMB):
    """By the distance of an instruction from where ``f`` begins, which of its stores save a register."""
    guest = small_guest({"f": body, "g": "blr" if target is POWERPC else "bx lr"}, target)
    told = {}
    for (address, _), number in saving_stores(small_graph(guest), lifter_of(guest)).items():
        told.setdefault(address - guest.address("f"), set()).add(number)
    return told


@pytest.mark.parametrize(
    ("body", "target", "expected"),
    [
        ("push {r3, r4, lr}\n pop {r3, r4, pc}", THUMB, {0: {1, 2}}),
        ("sub sp, #16\n str r4, [sp, #4]\n ldr r4, [sp, #4]\n add sp, #16\n bx lr", THUMB, {2: {0}}),
        ("sub sp, #16\n movs r4, #1\n str r4, [sp, #4]\n add sp, #16\n bx lr", THUMB, {}),
        ("str r4, [r0]\n bx lr", THUMB, {}),
        ("push {r0, r1}\n add sp, #8\n bx lr", THUMB, {}),
        ("cmp r0, #0\n beq 1f\n push {r4, lr}\n pop {r4, pc}\n1: bx lr", THUMB, {}),
        ("push {r4, r8, lr}\n mov r7, r8\n pop {r4, r8, pc}", THUMB, {0: {0, 1, 2}}),
        ("mov r3, r8\n push {r3, lr}\n pop {r3, pc}", THUMB, {2: {1}}),
        # Room for locals, as GCC -Os makes it: of what is pushed only the address to return to is taken back.
        ("push {r0, r1, r2, r3, r4, r5, lr}\n strb r1, [sp, r0]\n add sp, #24\n pop {pc}", THUMB, {0: {6}}),
        ("push {r4, r5, lr}\n add sp, #8\n pop {pc}", ARM, {0: {2}}),
        ("str r4, [sp, #8]\n push {r5, lr}\n ldr r4, [sp, #16]\n pop {r5, pc}", THUMB, {2: {0, 1}}),
        ("push {r11, lr}\n add r11, sp, #4\n pop {r11, pc}", ARM, {0: {0, 1}}),
        ("str r11, [sp, #-4]!\n ldr r11, [sp], #4\n bx lr", ARM, {0: {0}}),
        ("mov r2, r0\n stmdb r2!, {r4, lr}\n bx lr", ARM, {}),
        ("cmp r0, #0\n pusheq {r4, lr}\n popeq {r4, pc}\n bx lr", ARM, {}),
        (
            (
                "stwu 1, -16(1)\n mflr 0\n stw 31, 12(1)\n stw 0, 20(1)\n lwz 0, 20(1)\n lwz 31, 12(1)\n"
                "addi 1, 1, 16\n mtlr 0\n blr"
            ),
            POWERPC,
            {8: {0}},
        ),
        ("stwu 1, -16(1)\n stmw 30, 8(1)\n lmw 30, 8(1)\n addi 1, 1, 16\n blr", POWERPC, {4: {0, 1}}),
        ("stwu 1, -16(1)\n stw 0, 12(1)\n addi 1, 1, 16\n blr", POWERPC, {}),
    ],
)
def test_what_saves_registers(body, target, expected):
    assert found(body, target) == expected


def test_functions_that_are_called_save_too():
    guest = small_guest({"f": "push {r4, lr}\n bl g\n pop {r4, pc}", "g": "push {r5, lr}\n pop {r5, pc}"})
    graph, lifter = small_graph(guest), lifter_of(guest)
    assert {address for address, _ in saving_stores(graph, lifter)} == {guest.address("f"), guest.address("g")}
    first, *_ = graph.points[0].block.instructions
    assert moves(first, stack_pointer(lifter))


def holding():
    """A state with the stack pointer at -16 and a word that was saved at -8."""
    terms = Terms()
    state = State(terms, big_endian=False)
    pointer = terms.symbol(("stack pointer",), 32)
    state.set_base(pointer, Base.STACK)
    state.set_known(pointer, strided.constant(32, 0))
    value = terms.constant(3, 32)
    note_store(state, WORD, value, is_saving=True)
    return terms, state, pointer, value


@pytest.mark.parametrize(
    ("place", "is_saving", "stays"),
    [
        (None, False, True),
        (None, True, False),
        (Location("stack", -8, 4), False, False),
        (Location("stack", -5, 1), False, False),
        (Location("stack", -12, 8), False, False),
        (Location("stack", -4, 4), True, True),
        (Location("static", 8, 4), False, True),
    ],
)
def test_stores_to_known_places_change_it_and_no_others(place, is_saving, stays):
    terms, state, _, value = holding()
    note_store(state, place, terms.constant(9, 32), is_saving=is_saving)
    assert still_saved(state, WORD) == (value if stays else None)


def test_a_part_of_it_is_not_read():
    _, state, _, _ = holding()
    assert still_saved(state, Location("stack", -8, 1)) is None
    assert still_saved(state, Location("static", -8, 4)) is None
    assert still_saved(state, Location("register", -8, 4)) is None


@pytest.mark.parametrize(
    ("low", "high", "stays"), [(-16, -16, True), (-16, -8, True), (-4, -4, False), (-16, -4, False)]
)
def test_it_is_saved_as_long_as_the_stack_pointer_is_surely_not_above(low, high, stays):
    terms, state, pointer, value = holding()
    offset = state.define((1, 0, 0), 32, strided.between(32, low % 2**32, high % 2**32, 4 if low != high else 1))
    state.write(POINTER, terms.apply("INT_ADD", (pointer, offset), 32))
    release(state, POINTER)
    assert still_saved(state, WORD) == (value if stays else None)


def test_a_stack_pointer_that_is_not_known_leaves_nothing():
    _, state, _, _ = holding()
    state.write(POINTER, state.define((1, 0, 0), 32, base=Base.ANY))
    release(state, POINTER)
    assert not [one for one in state.locations if one.space == SAVED]
