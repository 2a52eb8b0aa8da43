"""Accesses of one instruction that are checked at once: where they lie, and what becomes of those that lie astray."""

from __future__ import annotations

from functools import cache

import pytest

from tests.emu.twins import assert_equal, outcome, twins
from tests.support import Guest, assembler, guest_of
from wcet_probe.analyzer.pcode.lift import Lifter, code_reader
from wcet_probe.analyzer.pcode.operations import LiftedInstruction, PcodeOp, Varnode
from wcet_probe.catalog.lookup import load_target
from wcet_probe.compiled.spans import span_of
from wcet_probe.model.instruction import Instruction
from wcet_probe.model.scenario import InitialCache

HEAP_BYTES = 4096
ARM = {
    "move": "push {r4-r6, lr}\nldmia r0!, {r2, r3, r4, r5}\nstmdb r1!, {r2, r3, r4, r5}\nadd r0, r0, r1\n"
    "pop {r4-r6, pc}",
    "base": "ldmia r0, {r0, r2, r3}\nadd r0, r0, r3\nbx lr",
    "pair": "push {r4, r5}\nldrd r4, r5, [r0]\nstrd r4, r5, [r1]\nadd r0, r4, r5\npop {r4, r5}\nbx lr",
}
FUNCTIONS = {
    "arm926ej-s": ARM,
    "cortex-m4": ARM,
    "mpc603e": {
        "move": "stwu 1, -32(1)\nstmw 28, 8(1)\nlmw 28, 0(3)\nstmw 28, -16(4)\nadd 3, 30, 31\nlmw 28, 8(1)\n"
        "addi 1, 1, 32\nblr",
    },
}


@cache
def guest(target_name: str) -> Guest:
    target = load_target(target_name)
    return guest_of(assembler(FUNCTIONS[target_name], target), target)


def lifted(used: Guest) -> list[tuple[Instruction, LiftedInstruction]]:
    lifter = Lifter(used.target.pcode_language, used.target.isa, code_reader(used.image.segments))
    return [(one, lifter.lift(one.address)) for one in used.instructions]


@pytest.mark.parametrize("target", FUNCTIONS)
def test_a_span_is_what_the_decoder_says(target):
    several = 0
    for instruction, one in lifted(guest(target)):
        span = span_of(one.ops, frozenset())
        counts = [access.count * access.bytes_each for access in instruction.accesses if access.count > 1]
        assert ([span.size_bytes] if span else []) == counts, hex(one.address)
        if span is not None:
            several += 1
            words = sorted(span.offsets.values())
            assert words == list(range(0, span.size_bytes, 4))
            assert span.offsets[span.first] == span.below
    assert several >= 4


def test_accesses_that_are_not_known_to_be_adjacent_make_no_span():
    base, other, out = Varnode("register", 0, 4), Varnode("register", 4, 4), Varnode("register", 8, 4)
    load = PcodeOp("LOAD", out, (base,))
    next_word = PcodeOp("INT_ADD", base, (base, Varnode("const", 4, 4)))
    assert span_of((load, next_word, load), frozenset()) is not None
    assert span_of((load, next_word, load), frozenset({2})) is None  # a branch may come in between
    assert span_of((load, load), frozenset()) is None  # the same word twice
    assert span_of((load, next_word, next_word, load), frozenset()) is None  # a gap
    assert span_of((load, PcodeOp("LOAD", out, (other,))), frozenset()) is None
    assert span_of((load, next_word, PcodeOp("STORE", None, (base, out))), frozenset()) is None
    part = PcodeOp("COPY", Varnode("register", 1, 1), (Varnode("const", 0, 1),))
    assert span_of((load, next_word, part, load), frozenset()) is None  # a byte of the address is overwritten
    through = (PcodeOp("LOAD", base, (base,)), next_word, load)
    assert span_of(through, frozenset()) is None  # the address is what was loaded


@pytest.mark.parametrize("target", FUNCTIONS)
def test_where_accesses_lie_at_once_the_engines_agree(target):
    used = guest(target)
    with twins(used, HEAP_BYTES) as (engine, translated):
        heap, stack = engine.heap.base_address, used.target.memory_map.stack
        code = used.image.code[0].base_address
        places = [heap, heap + 20, heap + HEAP_BYTES - 16, stack.base_address, stack.end_address - 16, code]
        astray = [
            heap - 4,
            heap + HEAP_BYTES - 12,
            heap + HEAP_BYTES - 4,
            stack.base_address - 8,
            stack.end_address - 4,
            0,
        ]
        for number, first in enumerate(places + astray):
            for second in (
                heap + 64,
                heap + HEAP_BYTES,
                stack.base_address + 16,
                astray[number % len(astray)],
                code + 16,
            ):
                for name in FUNCTIONS[target]:
                    arguments = (first, second)
                    ask = lambda m, n=name, a=arguments: m.measure(n, a, InitialCache.COLD).cycles  # noqa: E731
                    expected = outcome(engine, ask)
                    assert outcome(translated, ask) == expected, (name, hex(first), hex(second))
                    assert translated.memory.snapshot() == engine.memory.snapshot()
                    seen, counted = engine.observation(), translated.observation()
                    for what in ("instructions", "cycles", "loads", "stores", "touched", "dcache"):
                        assert getattr(counted, what) == getattr(seen, what), (name, hex(first), hex(second), what)
        assert_equal(engine, translated, lambda m: m.measure("move", (heap, heap + 64), InitialCache.COLD).cycles)
