"""What is told of the accesses of a block, against the addresses of a run."""

import random

import pytest

from tests.analyzer.small_functions import ARM, POWERPC, THUMB, analysed, small_guest
from tests.analyzer.values.symbolic.test_terms import CORNERS, evaluated
from wcet_probe.analyzer.values.execution.transfer import Transfer
from wcet_probe.analyzer.values.states.bases import Base
from wcet_probe.analyzer.values.states.memory import Memory

BODIES = {
    "thumb": "ldr r3, [r0, #4]\nstr r1, [r0, r2, lsl #2]\nstrb r3, [r1]\nstr r0, [sp, #-8]\nldrh r2, [r1, #6]\nbx lr",
    "arm": "ldr r3, [r0, #4]\nstr r1, [r0, r2, lsl #2]\nstrb r3, [r1]\nstr r0, [sp, #-8]\nldrh r2, [r1, #6]\nbx lr",
    "powerpc": "lwz 6, 4(3)\nslwi 7, 5, 2\nstwx 4, 3, 7\nstb 6, 0(4)\nstw 3, -8(1)\nlhz 5, 6(4)\nblr",
}
EXPECTED = ((False, 4), (True, 4), (True, 1), (True, 4), (False, 2))


def told(name):
    target = {"thumb": THUMB, "arm": ARM, "powerpc": POWERPC}[name]
    guest = small_guest(BODIES[name], target)
    lifter, values = analysed(guest.image, target)
    transfers = []
    transfer = Transfer(lifter, values.terms, Memory(guest.image))
    transfer.block(0, values.graph.points[0].block.instructions, values.states[0].copy(), transfers=transfers.append)
    return values, values.accesses[0], transfers


@pytest.mark.parametrize("target", BODIES)
def test_an_address_is_its_constant_and_its_parts(target):
    values, accesses, _ = told(target)
    terms, draw = values.terms, random.Random("accesses")
    symbols = {symbol for access in accesses for symbol in terms.symbols(access.pointer)}
    for _ in range(50):
        numbers = {symbol: draw.choice((draw.choice(CORNERS), draw.getrandbits(32))) for symbol in symbols}
        for access in accesses:
            address = evaluated(terms, access.pointer, numbers)
            parts = [(factor, evaluated(terms, part, numbers), value) for factor, part, value in access.parts]
            assert (access.constant + sum(factor * number for factor, number, _ in parts) - address) % (1 << 32) == 0
            assert access.base is Base.STACK or address in access.offset
            assert access.has_stack_part or all(number in value for _, number, value in parts)


@pytest.mark.parametrize("target", BODIES)
def test_loads_and_stores_are_told_in_order_with_their_sizes(target):
    _, accesses, transfers = told(target)
    assert [(one.is_store, one.size_bytes) for one in accesses] == list(EXPECTED)
    assert [(one.is_store, one.size_bytes) for one in transfers] == list(EXPECTED)
    assert [one.value is not None for one in transfers] == [one.is_store for one in transfers]
    assert [one.pointer for one in transfers] == [one.pointer for one in accesses]
    assert all(one.is_certain and not one.is_leaving for one in accesses)
    on_stack = [one.base is Base.STACK for one in accesses]
    assert on_stack == [one.has_stack_part for one in accesses] == [False, False, False, True, False]


def test_a_predicated_access_is_not_certain():
    guest = small_guest("cmp r0, #0\nit eq\nstreq r1, [r2]\nstr r1, [r3]\nbx lr")
    _, values = analysed(guest.image, THUMB)
    assert [one.is_certain for one in values.accesses[0]] == [False, True]
