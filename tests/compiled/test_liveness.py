"""Flags that are given up at exits of translated code: those, and only those, that nobody reads any more."""

from __future__ import annotations

from functools import cache

import pytest

from tests.emu.twins import assert_equal, twins
from tests.support import Guest, assembler, guest_of
from wcet_probe.analyzer.pcode.lift import Lifter, code_reader
from wcet_probe.analyzer.pcode.operations import Varnode
from wcet_probe.catalog.lookup import load_target
from wcet_probe.compiled.blocks import flow
from wcet_probe.compiled.liveness import Registers, live_flags
from wcet_probe.model.scenario import InitialCache

ARM = {
    "straight": "cmp r0, #1\nldr r2, [r1]\nadds r0, r0, r2\nldr r3, [r1]\nbeq 1f\nldr r0, [r1]\n1: bx lr",
    "carry": "adds r0, r0, r1\nldr r2, [r3]\nadc r0, r0, r2\ncmp r0, #0\nbx lr",
    "round": "1: ldr r2, [r1]\nsubs r0, r0, #1\nbne 1b\ncmp r0, #0\nbx lr",
    "loop": "cmp r0, r0\n1: ldr r2, [r1]\nadc r2, r2, #0\nsubs r0, r0, #1\nbne 1b\nbx lr",
}
FUNCTIONS = {
    "arm926ej-s": ARM
    | {
        "skipped": "cmp r0, #1\nldr r2, [r1]\naddseq r0, r0, r2\nldr r3, [r1]\nmovcs r0, r3\nbx lr",
        "left": "cmp r0, r1\nldr r2, [r3]\nmrs r2, cpsr\nlsr r0, r2, #28\nbx lr",
    },
    "cortex-m4": ARM
    | {
        "skipped": "cmp r0, #1\nldr r2, [r1]\nit eq\naddseq r0, r0, r2\nldr r3, [r1]\nit cs\nmovcs r0, r3\nbx lr",
        "left": "cmp r0, r1\nldr r2, [r3]\nmrs r2, apsr\nlsr r0, r2, #28\nbx lr",
    },
    "mpc603e": {
        "straight": "cmpwi 3, 1\nlwz 5, 0(4)\nadd. 3, 3, 5\nlwz 6, 0(4)\nbeq 1f\nlwz 3, 0(4)\n1: blr",
        "carry": "addc 3, 3, 4\nlwz 5, 0(6)\nadde 3, 3, 5\naddic 4, 4, 1\ncmpwi 3, 0\nblr",
    },
}
ALL = frozenset({"ng", "zr", "cy", "ov"})
CONDITIONS = frozenset(f"cr{number}" for number in range(8)) | {"xer_so", "xer_ov", "xer_ca"}
OF_ARM = {
    "straight": [set(), ALL, ALL],  # all are written behind the first; a return may lead anywhere
    "carry": [{"cy"}],
    "round": [set()],
    "loop": [{"cy"}],
    "skipped": [ALL, ALL],  # what is written in a conditional instruction may keep what it was
    "left": [ALL],  # in front of an instruction that is not translated
}
BEFORE_LOADS = {
    "arm926ej-s": OF_ARM,
    "cortex-m4": OF_ARM,
    "mpc603e": {
        "straight": [CONDITIONS, CONDITIONS, CONDITIONS],  # `add.` writes its condition bit by bit
        "carry": [CONDITIONS - {"cr0"}],
    },
}
"""The flags that are live before each load."""


@cache
def guest(target_name: str) -> Guest:
    target = load_target(target_name)
    return guest_of(assembler(FUNCTIONS[target_name], target), target)


def live_before_loads(target_name: str) -> dict[str, list[set[str]]]:
    """Names of the flags that are live before each load, by function."""
    used = guest(target_name)
    lifter = Lifter(used.target.pcode_language, used.target.isa, code_reader(used.image.segments))
    lifted = [lifter.lift(one.address) for one in used.instructions if not one.problem]
    names = ALL if "cy" in lifter.registers else CONDITIONS
    by_offset = {lifter.registers[name].offset: name for name in names}

    def container(varnode: Varnode) -> int:
        return varnode.offset

    general = {v.offset for name, v in lifter.registers.items() if name[0] == "r" and name[1:].isdigit()}
    registers = Registers(container, frozenset(by_offset) | general, frozenset(by_offset))
    live = live_flags(flow(used.image, lifted), registers)
    found: dict[str, list[set[str]]] = {}
    for symbol in used.image.functions:
        inside = range(symbol.address, symbol.address + symbol.size_bytes)
        loads = [one for one in lifted if one.address in inside and any(op.opcode == "LOAD" for op in one.ops)]
        found[symbol.name] = [{by_offset[low] for low in live[one.address]} for one in loads]
    return found


@pytest.mark.parametrize("target", FUNCTIONS)
def test_flags_are_live_where_some_way_reads_them_before_it_writes_them(target):
    assert live_before_loads(target) == BEFORE_LOADS[target]


@pytest.mark.parametrize("target", FUNCTIONS)
def test_the_engine_is_given_the_flags_that_it_may_read(target):
    with twins(guest(target)) as (engine, translated):
        at = engine.heap.base_address
        for name in FUNCTIONS[target]:
            for first in (1, 3, 200):  # loops end
                arguments = (first, at if name != "carry" else 0xFFFFFFFF, 0, at)
                assert_equal(
                    engine, translated, lambda m, n=name, a=arguments: m.measure(n, a, InitialCache.COLD).cycles
                )
