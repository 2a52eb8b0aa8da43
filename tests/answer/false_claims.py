"""A function, what is proved of it, and the proof with one claim changed, for what must refuse it."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from tests.path_check import Proved, lifter_of, proved
from tests.support import assembler, guest_of
from wcet_probe.analyzer.pcode.interpreter import interpret_call
from wcet_probe.answer.witness.contradiction import (
    check_accesses,
    check_path,
)
from wcet_probe.catalog.lookup import load_target
from wcet_probe.emu.machine import RETURN_ADDRESS
from wcet_probe.errors import ContradictionError
from wcet_probe.model.held_calls import BrokenClaim
from wcet_probe.model.proof import Bound, FlowClaim, RegisterRange, WordClaim
from wcet_probe.model.scenario import InitialCache
from wcet_probe.model.target import MemoryRange

TARGET = load_target("mpc603e")
HEAP_BYTES = 1 << 14
LINE, WAY = 32, 4096
assert (TARGET.dcache.line_bytes, TARGET.dcache.line_bytes * TARGET.dcache.sets) == (LINE, WAY)

BODY = f"""
stwu 1, -32(1)
mflr 0
stw 0, 36(1)
lwz 5, 0(3)
lwz 6, -{LINE}(3)
lwz 7, -{WAY}(3)
stw 5, 8(3)
bl g
li 9, 3
1: addi 9, 9, -1
cmpwi 9, 0
bne 1b
lwz 0, 36(1)
mtlr 0
addi 1, 1, 32
blr
"""
PUSH, LOAD, NEXT_LINE, SAME_SET, STORE, AFTER_CALL, LOOP = (4 * row for row in (0, 3, 4, 5, 6, 8, 9))
"""Offsets of instructions of ``f``."""


@cache
def proof() -> Proved:
    """``f``, which loads from two lines and a third one in the set of the first, stores, calls, and repeats a loop."""
    source = assembler({"f": BODY, "g": "nop\nblr"}, TARGET)
    return proved(guest_of(source, TARGET), "f")


def at(offset: int) -> int:
    return proof().guest.address("f") + offset


def heap() -> int:
    """The pointer that ``f`` is given."""
    return TARGET.memory_map.heap_address + WAY


def native(bound: Bound, pointer: int, content: dict[int, int]) -> BrokenClaim | None:
    guest = proof().guest
    watched = [claim.loop for claim in bound.loop_claims]
    with guest.machine(HEAP_BYTES, watched=watched, bounds=[bound]) as machine:
        for address, value in content.items():
            machine.memory.write(address, value.to_bytes(4, "big"))
        machine.measure("f", (pointer,), InitialCache.DIRTY)
        (calls,) = machine.held_calls()
        assert calls.calls == 1
        return machine.broken_claim()


def second(bound: Bound, pointer: int, content: dict[int, int]) -> str:
    """The refusal of the second engine's accesses, or nothing."""
    guest = proof().guest
    with guest.machine(HEAP_BYTES) as machine:
        for address, value in content.items():
            machine.memory.write(address, value.to_bytes(4, "big"))
        memory, registers = machine.memory.snapshot(), machine.entry_registers((pointer,))
    run = interpret_call(
        lifter_of(TARGET.pcode_language, TARGET.isa, guest.image.segments),
        memory,
        registers,
        entry_address=at(0),
        return_address=RETURN_ADDRESS,
        step_limit=1000,
    )
    frames = MemoryRange(registers["r1"] - 32, 32)
    try:
        check_accesses(bound, run.accesses, guest.image, TARGET, frames=frames, subject="a test")
        check_path(bound, run.path, guest.image, "a test")
    except ContradictionError as error:
        return str(error)
    return ""


def changed(offset: int, **changes: object) -> Bound:
    """The bound with another claim on the accesses of an instruction."""
    bound = proof().bound
    assert any(each.address == at(offset) for each in bound.accesses)
    return replace(
        bound,
        accesses=tuple(replace(each, **changes) if each.address == at(offset) else each for each in bound.accesses),
    )


def without(offset: int) -> Bound:
    bound = proof().bound
    return replace(bound, accesses=tuple(each for each in bound.accesses if each.address != at(offset)))


def counted(most: int, of_set: int) -> Bound:
    """The three loads, in so many lines, and so many of a set."""
    bound = proof().bound
    loads = {at(offset) for offset in (LOAD, NEXT_LINE, SAME_SET)}
    told = ("a fact", most, of_set)
    return replace(
        bound,
        accesses=tuple(replace(each, lines=told) if each.address in loads else each for each in bound.accesses),
    )


def counted_across(most: int, of_set: int) -> Bound:
    """The three loads, which may be across two lines each, as `counted`."""
    bound = counted(most, of_set)
    return replace(bound, accesses=tuple(replace(each, is_one_line=False) for each in bound.accesses))


def with_word(low: int, high: int) -> Bound:
    return replace(proof().bound, words=(WordClaim("a fact", heap(), low, high),))


ANYWHERE = {"base": "number", "low": 0, "stride": 1, "steps": 0xFFFFFFFF}
STACK_POINTER = TARGET.memory_map.stack.end_address - 24
"""At entry."""


def flow(weights: dict[int, int], entries: tuple[tuple[str, int], ...], constant: int) -> Bound:
    blocks = tuple((at(offset), weight) for offset, weight in weights.items())
    return replace(proof().bound, flow_claims=(FlowClaim("a fact", "a sum", blocks, entries, constant),))


def loop_name() -> str:
    (claim,) = proof().bound.loop_claims
    assert claim.loop.header_address == at(LOOP)
    return claim.loop.name


def register(low: int, **changes: object) -> RegisterRange:
    return replace(RegisterRange(at(AFTER_CALL), (), "r9", "number", low, 0, 0), **changes)
