"""Random encodings in translated code and on the engine, an instruction at a time, from random registers and flags.

Each has a function of its own: before it stands what makes flags, where a call begins without them; behind it, what
puts into registers the flags that the engine tells nobody. What is left to the engine is not among them.
"""

from __future__ import annotations

import random
import re
from dataclasses import replace

import pytest

from tests.analyzer.pcode.test_encodings import OTHERWISE, SYSTEM, is_predictable, random_code
from tests.emu.test_random_accesses import ask_both
from tests.emu.twins import outcome, twins
from tests.support import Guest, assembler, guest_of, guest_on, tlsf
from wcet_probe.build.program import Program
from wcet_probe.catalog.lookup import load_target
from wcet_probe.compiled.translation import translate
from wcet_probe.emu.compiled import Detail
from wcet_probe.emu.machine import Machine
from wcet_probe.isa.decode import decode_range
from wcet_probe.isa.timing import with_timing_problems
from wcet_probe.model.scenario import InitialCache
from wcet_probe.model.target import Isa, Target

HEAP_BYTES, BUDGET = 8192, 200_000
SUMMARY_OVERFLOW = re.compile(r"\w+o\.? |mcrxr|mtxer")
"""Of PowerPC: an image that sets it is left to the engine as a whole."""
PART_OF_PC = re.compile(r"ldr\w+ pc,")
"""Of Arm: a byte or halfword that is loaded there is unpredictable."""
INVALID_FORM = re.compile(r"\w+ux? .*(\(0\)|, 0, r\d+)$|l\w+ux? (r\d+), (.*\(\2\)$|\2,)")
"""Of PowerPC: an update of no register, or of the one that is loaded."""
FLAGS_OF_THUMB = "".join(
    f"it {when}\norr{when} r12, r12, #{1 << k}\n" for k, when in enumerate(("mi", "eq", "cs", "vs"))
)
AROUND = {
    Isa.ARM: ("", "bx lr", 0),
    Isa.THUMB: ("adds r4, r4, r5\n", f"push {{r12}}\nmov.w r12, #0\n{FLAGS_OF_THUMB}pop {{r11}}\nbx lr", 2),
    Isa.POWERPC: ("addic 4, 4, -1\n", "stw 31, -8(1)\nli 31, 0\nadde 31, 31, 31\nblr", 4),
}
"""What stands before an encoding, and behind it, and the bytes before it."""


def is_asked(target: Target, code: bytes) -> bool:
    """Whether both know what the instruction does, and it goes to no other place than the next one."""
    decoded = decode_range(code, 0x1000, target.isa, big_endian=target.isa is Isa.POWERPC)
    instruction, *rest = with_timing_problems(decoded, target)
    if rest or instruction.problem or instruction.control.name != "NEXT" or instruction.timing_class in SYSTEM:
        return False
    others = (OTHERWISE, SUMMARY_OVERFLOW, INVALID_FORM) if target.isa is Isa.POWERPC else (PART_OF_PC,)
    if any(each.match(instruction.text) for each in others):
        return False
    return "float" not in instruction.timing_class and is_predictable(target.isa, instruction, code)


def guest_with(target: Target, encodings: list[bytes]) -> Guest:
    """A function for each: an image with room for them, and then with the encodings in place."""
    before, behind, _ = AROUND[target.isa]
    room = {2: "nop", 4: "nop.w" if target.isa is Isa.THUMB else "nop"}
    bodies = {f"f{n}": f"{before}{room[len(code)]}\n{behind}" for n, code in enumerate(encodings)}
    used = guest_of(assembler(bodies, target), target)
    segment = next(each for each in used.image.segments if each.executable)
    data = bytearray(segment.data)
    for number, code in enumerate(encodings):
        start = place(used, number) - segment.address
        data[start : start + len(code)] = code
    segments = tuple(replace(each, data=bytes(data)) if each is segment else each for each in used.image.segments)
    return guest_on(replace(used.image, segments=segments), target)


def place(used: Guest, number: int) -> int:
    """Address of an encoding."""
    return used.address(f"f{number}") + AROUND[used.target.isa][2]


def random_registers(draw: random.Random, machine: Machine) -> dict[str, int]:
    heap = machine.heap.base_address

    def word() -> int:
        inside, number = heap + 2048 + draw.randrange(4096), draw.getrandbits(32)
        at_edge = draw.choice((heap, heap + HEAP_BYTES)) + draw.randrange(-8, 8)
        return draw.choice(
            (inside & ~3, inside & ~3, inside, at_edge, number, number & 255, 0, 1, (1 << 32) - 1, 1 << 31)
        )

    bits = {"cr": 4, "xe": 1, "ng": 1, "zr": 1, "cy": 1, "ov": 1}
    names = machine._engine.guest_registers()
    return {name: draw.getrandbits(bits[name[:2]]) if name[:2] in bits else word() for name in names}


@pytest.mark.covering(0)
@pytest.mark.parametrize("codes", [50, pytest.param(4000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("core", ["cortex-m4", "arm926ej-s", "cortex-r5", "mpc603e"])
def test_translated_code_does_what_the_engine_does_with_an_instruction(core, codes):
    target, draw = load_target(core), random.Random(f"translated {core} {codes}")
    encodings: list[bytes] = []
    while len(encodings) < codes:
        code = random_code(target.isa, draw)
        if is_asked(target, code):
            encodings.append(code)
    used = guest_with(target, encodings)
    left_out = translate(Program(tlsf(), used.target, used.image, used.instructions, used.costs), Detail.DATA).left_out
    asked = [n for n in range(codes) if place(used, n) not in left_out]
    assert len(asked) > codes / 3
    answered = 0
    with twins(used, HEAP_BYTES, BUDGET) as (engine, translated):
        for number in asked:
            for _ in range(3):
                registers, content = random_registers(draw, engine), draw.randbytes(HEAP_BYTES)
                arguments = [draw.choice((*registers.values(),)) for _ in range(4)]
                engine.memory.write(engine.heap.base_address, content)
                translated.memory.restore(engine.memory.snapshot())
                for machine in (engine, translated):
                    machine._engine.take_over(registers)

                def ask(machine, number=number, arguments=arguments):
                    return machine.measure(f"f{number}", arguments, InitialCache.COLD)

                if "UC_ERR_INSN_INVALID" not in str(outcome(engine, ask)):  # bits that the manual calls unpredictable
                    engine.memory.restore(translated.memory.snapshot())
                    engine._engine.take_over(registers)
                    answered += ask_both(engine, translated, "measure", ask)
        assert translated._translated
    assert answered > len(asked)


def test_a_stack_pointer_that_is_no_multiple_of_4_is_the_engines():
    """The core ignores its lowest bits, as p-code says; the engine keeps them, and what is measured so is refused."""
    target = load_target("cortex-m4")
    body = "mov r4, sp\nadds r3, r4, r0\nmov sp, r3\nmov r0, sp\nmov sp, r4\nbx lr"
    from_memory = "mov r4, sp\nldr.w sp, [r0]\nmov r0, sp\nmov sp, r4\nbx lr"
    used = guest_of(assembler({"f": body, "g": from_memory}, target), target)
    with twins(used, HEAP_BYTES) as (engine, translated):
        heap = engine.heap.base_address
        for machine in (engine, translated):
            machine.memory.write(heap, (heap + 6).to_bytes(4, "little"))
        for function, argument in (("f", 8), ("f", 3), ("g", heap)):
            is_kept = argument == 8
            for answers, ask in (
                (is_kept, lambda m, f=function, a=argument: m.measure(f, (a,), InitialCache.COLD)),
                (True, lambda m, f=function, a=argument: m.call(f, a)),
            ):
                assert ask_both(engine, translated, "measure", ask) == answers
