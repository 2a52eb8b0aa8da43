"""Random instructions against the engine: what the checker's compiled code says of words, flags and memory is so.

Of each state some registers are unknown, and some are addresses of the stack, which is somewhere: what is called a
number, or a distance, must be that.

Tests: certificate.runs.arm_code, certificate.runs.code, certificate.runs.memory, certificate.runs.powerpc_code,
certificate.runs.run, certificate.runs.words.
"""

import random
from collections import Counter

import pytest

from tests.analyzer.pcode.test_encodings import CODE, DATA, DATA_BYTES, EACH, Engine, plain_instructions
from tests.certificate.machines.test_random_instructions import IMAGE_BYTES, WORST, code_for
from wcet_probe.catalog.lookup import load_target
from wcet_probe.certificate.facts.findings import Binary
from wcet_probe.certificate.kernel.coverage import Code
from wcet_probe.certificate.runs.run import _Run
from wcet_probe.certificate.runs.words import NOTHING, LostError, Low, Stack
from wcet_probe.model.image import Image, LineTable, Segment
from wcet_probe.model.target import Isa

STACK, NEAR = DATA + 0x3000, 0x400
WORD = 1 << 32


class Case:
    """An instruction, from a random state, by the engine and by the checker."""

    def __init__(self, target, instruction, engine, image, choose):
        self.isa, self.instruction = target.isa, instruction
        self.order = "big" if target.isa is Isa.POWERPC else "little"
        self.data = bytearray(choose.randbytes(IMAGE_BYTES).ljust(DATA_BYTES, b"\0"))
        self.data[STACK - NEAR - DATA : STACK + NEAR - DATA] = choose.randbytes(2 * NEAR)
        held = bytes(self.data[:IMAGE_BYTES])
        binary = Binary(image, (), (), target, None, None)
        self.run = _Run(Code(image, {}), binary, [(DATA, held)], None, NEAR)
        self.values, own = {}, self.run.registers
        self.is_apart, self.run._memory.observe = True, self.observe
        for name in engine.registers:
            number = self.run.isa.NUMBER_OF[name]
            inside = DATA + choose.randrange(64, IMAGE_BYTES - 64) & ~choose.choice((0, 3, 3))
            word = choose.choice((inside, inside, choose.choice(WORST), choose.getrandbits(32), choose.getrandbits(6)))
            own[number] = self.values[name] = word
            kind = choose.random()
            if number == self.run.isa.SP or kind < 0.1:
                offset = 4 * choose.randrange(-60, 60)
                own[number] = Stack(offset, self.run._used, 1)
                self.values[name] = STACK + offset
            elif kind < 0.2:
                own[number] = NOTHING
        self.flags = choose.getrandbits(35) if target.isa is Isa.POWERPC else choose.choice(range(12)) << 28
        self.told = {}
        for place, bit in self.places():
            own[place] = choose.choice((bit(self.flags), bit(self.flags), NOTHING))
        if target.isa is not Isa.POWERPC:
            n, z = self.flags >> 31 & 1, self.flags >> 30 & 1
            own[16] = 1 << 31 if n else 0 if z else 5
            if n and z:
                own[16] = NOTHING

    def observe(self, address, size_bytes, is_store, _kind):
        """Of stack and data neither is accessed by way of the other."""
        if isinstance(address, Stack):
            self.is_apart &= -NEAR <= address.offset < NEAR - size_bytes
        elif type(address) is int:
            self.is_apart &= not STACK - NEAR - size_bytes < address < STACK + NEAR
            self.is_apart &= not is_store or DATA <= address < DATA + IMAGE_BYTES - 64

    def places(self):
        """Of each place of a flag, what it is by all flags."""
        if self.isa is not Isa.POWERPC:
            return [(17, lambda flags: flags >> 29 & 1), (18, lambda flags: flags >> 28 & 1)]
        bits = [(35 + each, 31 - 4 * (each // 3) - each % 3) for each in range(24)]
        return [(place, lambda flags, bit=bit: flags >> bit & 1) for place, bit in (*bits, (34, 32))]

    def execute(self):
        """Whether it is known what the checker makes of it."""
        lines, following = self.run._compiled(self.instruction)
        assert following is None
        names = dict(self.run._names)
        exec(  # noqa: S102  as the run does
            "\n ".join(["def block():", *lines, "return None"]), names
        )
        names["block"]()

    def wrong(self, registers, flags, memory):
        """What the checker says otherwise than the engine."""
        for name, number in self.run.isa.NUMBER_OF.items():
            if name in registers:
                yield from self._wrong(name, self.run.registers[number], registers[name])
        for place, bit in self.places():
            known = self.run.registers[place]
            if known is not NOTHING and known != bit(flags):
                yield "flag", place, known, hex(flags)
        result = self.run.registers[16] if self.isa is not Isa.POWERPC else NOTHING
        if type(result) is int and (result >> 31, int(result == 0)) != (flags >> 31 & 1, flags >> 30 & 1):
            yield "flags", hex(result), hex(flags)
        yield from self._wrong_memory(memory)

    def _wrong_memory(self, memory):
        own = self.run._memory
        for words, low in ((own.words, 0), (own._stack, STACK)):
            for number, held in words.items():
                at = (4 * number + low) % WORD - DATA
                if not 0 <= at < DATA_BYTES:
                    continue
                engine = memory[at : at + 4]
                if isinstance(held, list):
                    for one, byte in zip(held, engine, strict=True):
                        yield from self._wrong(hex(at), one, byte)
                else:
                    yield from self._wrong(hex(at), held, int.from_bytes(engine, self.order))

    @staticmethod
    def _wrong(place, known, word):
        if type(known) is int and known != word:
            yield place, hex(known), hex(word)
        if isinstance(known, Stack) and (known.times * STACK + known.offset) % WORD != word:
            yield place, known.times, known.offset, hex(word)
        if isinstance(known, Low) and (known.bits ^ word) % 8:
            yield place, known.bits, hex(word)


@pytest.mark.parametrize("codes", [300, pytest.param(10_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("core", ["cortex-m4", "arm926ej-s", "cortex-r5", "mpc603e"])
def test_what_a_compiled_instruction_does_is_what_the_engine_does(core, codes):
    target, choose = load_target(core), random.Random(f"words {core} {codes}")
    encodings = [code_for(target.isa, choose) for _ in range(codes)]
    engine, found = Engine(target, encodings), Counter()
    code = b"".join(one.ljust(EACH, b"\0") for one in encodings)
    segments = (
        Segment(CODE, code, len(code), writable=False, executable=True),
        Segment(DATA, b"", IMAGE_BYTES, writable=True, executable=False),
    )
    big = target.isa is Isa.POWERPC
    image = Image(b"", "0" * 64, target.isa, big, segments, {}, (), (), LineTable((), (), ()), "", ())
    for _, instruction in plain_instructions(target, encodings):
        for _ in range(3):
            case = Case(target, instruction, engine, image, choose)
            try:
                case.execute()
            except LostError as error:
                found[str(error).partition(" of '")[0], instruction.text.split(" ")[0]] += 1
                continue
            if not case.is_apart:
                continue
            ran = engine.run(instruction, case.values, case.flags, bytes(case.data))
            if ran is None:
                continue
            registers, flags, memory = ran
            flags <<= 0 if big else 28
            told = (
                instruction.text,
                {name: hex(word) for name, word in case.values.items() if name in instruction.reads},
            )
            assert not list(case.wrong(registers, flags, memory)), (told, list(case.wrong(registers, flags, memory)))
            found["known", ""] += 1
    assert found["known", ""] > codes / 2, found.most_common(20)
