"""What the numbers of a loop are together: what functions return is among what their rounds tell."""

import random

import pytest

from tests.end_to_end.test_cache_soundness import analysed
from tests.path_check import lifter_of
from tests.support import guest_of
from wcet_probe.analyzer.domains import strided
from wcet_probe.analyzer.graph.supergraph import EXIT
from wcet_probe.analyzer.invariants.situations import situations
from wcet_probe.analyzer.pcode.interpreter import interpret_call
from wcet_probe.catalog.lookup import load_target
from wcet_probe.model.target import Isa

LOG = """
unsigned f(unsigned value) {
    unsigned log = 0;
    if (value < 15) value = 15;
    for (unsigned step = 16; step; step >>= 1)
        if (value >> step) { value >>= step; log += step; }
    return log;
}"""
LEFT_EARLY = """
unsigned f(unsigned value) {
    unsigned twice = 0;
    for (unsigned round = 0; round < 6; round++) {
        twice += 2;
        if (value >> round & 1) break;
    }
    return twice;
}"""
IN_A_LOOP = """
unsigned f(unsigned value) {
    unsigned sum = 1;
    for (unsigned outer = 0; outer < 3; outer++) {
        unsigned more = 4;
        for (unsigned inner = 0; inner < 3; inner++)
            if (value >> (3 * outer + inner) & 1) more *= 2;
        sum = more + outer;
        __asm__ volatile("");
    }
    return sum;
}"""
BEHIND_A_LOOP = """
unsigned f(unsigned value) {
    unsigned low = 3;
    if (value & 1) {
        low = 0;
        for (unsigned step = 4; step; step >>= 1)
            if (value >> step & 2) low += step;
        if (value & 256) low = 99;
    }
    return low + (value & 512);
}"""
TOO_MANY = "unsigned f(unsigned value) { unsigned n = 0; while (value >> 3 > n) n += 3; return n; }"
PROGRAMS = {"log": LOG, "early": LEFT_EARLY, "nested": IN_A_LOOP, "behind": BEHIND_A_LOOP, "many": TOO_MANY}


def told(name, target_name="mpc603e"):
    """What is told of the result of a program, and how to call it."""
    guest = guest_of(PROGRAMS[name], load_target(target_name), ".c")
    values = analysed(guest, "f").prepared.values
    register = values.registers["r3" if guest.target.isa is Isa.POWERPC else "r0"]
    situated, found = situations(values), strided.bottom(32)
    for edge, one in values.edges.items():
        if edge.target == EXIT:
            term = one.state.read(register)
            found = strided.join(found, situated.value(situated.leaving[edge.source], one.state, term))
    return guest, found


def called(guest, value):
    names = ("r3", "r1") if guest.target.isa is Isa.POWERPC else ("r0", "r13")
    regions = {one.address: bytes(one.data) for one in guest.image.segments} | {0x700000: bytearray(4096)}
    lifter = lifter_of(guest.target.pcode_language, guest.target.isa, guest.image.segments)
    entry = guest.image.symbols["f"].address
    registers = dict(zip(names, (value, 0x700F00), strict=True))
    return interpret_call(
        lifter, regions, registers, entry_address=entry, return_address=0xFFF0, step_limit=10_000
    ).result


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_a_function_returns_is_among_what_its_rounds_tell(name):
    guest, found = told(name)
    chosen = random.Random(name)
    values = [
        *range(0, 40, 3),
        255,
        256,
        512,
        0xFFFFFFFF,
        *(chosen.getrandbits(chosen.randint(1, 11)) for _ in range(25)),
    ]
    for value in values:
        assert called(guest, value) in found, (name, value)


def test_the_least_logarithm_is_that_of_the_least_number():
    assert told("log")[1].unsigned_range() == (3, 31)
