"""What is told of an instruction without a state: predicated and straight ones, and what only they write."""

from itertools import pairwise

import pytest

from tests.analyzer.small_functions import ARM, POWERPC, THUMB, lifter_of, small_guest
from wcet_probe.analyzer.values.execution.prepared_instruction import PreparedInstruction
from wcet_probe.analyzer.values.symbolic.locations import Location

TARGETS = {"thumb": THUMB, "arm": ARM, "powerpc": POWERPC}


def prepared(body, name="arm"):
    """All instructions of ``body``, and the register of a name."""
    guest = small_guest(body, TARGETS[name])
    lifter, found = lifter_of(guest), []
    symbol = guest.image.symbols["f"]
    at = symbol.address
    while at < symbol.address + symbol.size_bytes:
        found.append(PreparedInstruction.of(lifter.lift(at), lifter))
        at = found[-1].following
    registers = lifter.registers
    return found, lambda of: Location("register", registers[of].offset, registers[of].size_bytes)


def test_a_predicated_instruction_has_the_flags_of_its_condition_for_guard():
    (plain, equal, other, signed, store, _), at = prepared(
        "add r0, r0, #1\nmoveq r1, r2\nmovne r1, r3\nmovgt r1, r3\nstreq r1, [r2]\nbx lr"
    )
    assert not plain.guard
    assert equal.guard == other.guard == store.guard == {at("zr")}
    assert signed.guard == {at("zr"), at("ng"), at("ov")}
    registers = {at(f"r{number}") for number in range(16)}
    assert equal.written & registers == {at("r1")}
    assert not store.written & registers


def test_what_comes_next_under_the_same_condition_is_told():
    (equal, other, signed, changed, _), _ = prepared("moveq r1, r2\nmovne r1, r3\nmovgt r1, r3\ncmpeq r1, #0\nbx lr")
    assert equal.is_under_the_condition_of(other)
    assert other.is_under_the_condition_of(equal)
    assert not equal.is_under_the_condition_of(signed)
    assert not changed.is_under_the_condition_of(equal)  # it writes the flag that decides
    assert equal.is_under_the_condition_of(changed)


@pytest.mark.parametrize("name", ["arm", "powerpc"])
def test_control_falls_through_what_is_straight(name):
    body = {
        "arm": "add r0, r0, #1\nmoveq r1, r2\nb 1f\n1: bl f\nbx lr",
        "powerpc": "addi 3, 3, 1\nbeq 1f\nb 1f\n1: bl f\nblr",
    }[name]
    found, _ = prepared(body, name)
    assert [one.is_straight for one in found] == [True, False, False, False, False]
    branches = found[1:] if name == "powerpc" else found[2:]
    assert not any(one.guard for one in branches)  # a branch to elsewhere skips nothing
    for one, after in pairwise(found):
        assert one.following == after.instruction.address
        assert one.end == (one.instruction.address, len(one.instruction.ops))


def test_an_access_behind_the_condition_is_not_certain_and_one_before_is():
    (store, load, popping), _ = prepared("streq r1, [r2]\nldr r1, [r2]\npopeq {r4, pc}")
    for one in (store, popping):
        for index, op in enumerate(one.instruction.ops):
            if op.opcode in {"LOAD", "STORE"}:
                assert not one.is_certain(index)
                assert one.is_leaving(index) is (one is popping)
    assert all(load.is_certain(index) and not load.is_leaving(index) for index in range(len(load.instruction.ops)))


def test_operands_are_locations_but_for_constants_memory_and_the_status_of_floats():
    (add, load, *_), at = prepared("add r0, r1, #4\nldr r0, [r1, #8]\nbx lr")
    for one in (add, load):
        for op, inputs, output in zip(one.instruction.ops, one.inputs, one.outputs, strict=True):
            assert [location is None for location in inputs] == [varnode.space == "const" for varnode in op.inputs]
            assert (output is None) == (op.output is None)
    assert at("r1") in {location for inputs in add.inputs for location in inputs}
    assert {place.space for place in (*add.temporaries, *load.temporaries)} <= {"unique"}
    (moved, _), at = prepared("fmr 1, 2\nblr", "powerpc")
    assert moved.inputs == ((at("f2"),),)
    assert moved.outputs == (at("f1"),)
    (status, _), _ = prepared("mtfsf 255, 1\nblr", "powerpc")
    assert {location.space for location in status.outputs if location} <= {"unique", "register"}
    assert not {at("fp_fx"), at("fp_zx")} & status.written


def test_pure_functions_are_computed_and_loads_are_not():
    (add, load, float_add, _), _ = prepared("addi 3, 3, 1\nlwz 4, 0(3)\nfadd 1, 2, 3\nblr", "powerpc")
    assert all(add.is_computed)
    assert not all(load.is_computed)
    assert [op.opcode == "LOAD" for op in load.instruction.ops] == [not one for one in load.is_computed]
    assert not all(float_add.is_computed)
