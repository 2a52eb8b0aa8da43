"""Saturating instructions of Arm and sums of differences: p-code against the engine, and what values are known."""

import random

import pytest

from tests.analyzer.pcode.test_encodings import CODE, DATA_BYTES, EACH, Engine, interpreted
from wcet_probe.analyzer.pcode.lift import Lifter
from wcet_probe.catalog.lookup import load_target
from wcet_probe.isa.decode import decode_range
from wcet_probe.model.target import Isa

EDGES = (0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 0x3FFFFFFF, 0x40000000, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)
OPS = ("add16", "asx", "sax", "sub16", "add8", "sub8")


def codes(isa, d, n, m, width):
    """Encodings by mnemonic, of all such instructions whose registers are ``d``, ``n`` and ``m``."""
    if isa is Isa.THUMB:
        word = {
            name: (0xFA80 | n, 0xF080 | d << 8 | op << 4 | m)
            for op, name in enumerate(("qadd", "qdadd", "qsub", "qdsub"))
        }
        lanes = dict(zip(OPS, (1, 2, 6, 5, 0, 4), strict=True))
        signed = {f"q{name}": (0xFA80 | op << 4 | n, 0xF010 | d << 8 | m) for name, op in lanes.items()}
        unsigned = {f"uq{name}": (0xFA80 | op << 4 | n, 0xF050 | d << 8 | m) for name, op in lanes.items()}
        halves = {"ssat16": (0xF320 | n, d << 8 | width), "usat16": (0xF3A0 | n, d << 8 | width)}
        whole = {"ssat": (0xF300 | n, d << 8 | width), "usat": (0xF380 | n, d << 8 | width)}
        sums = {"usad8": (0xFB70 | n, 0xF000 | d << 8 | m), "usada8": (0xFB70 | n, width % 13 << 12 | d << 8 | m)}
        found = word | signed | unsigned | halves | whole | sums
        return {name: b"".join(half.to_bytes(2, "little") for half in pair) for name, pair in found.items()}
    places = 0xE0000000 | d << 12 | n << 16 | m
    word = {name: places | 0x01000050 | op << 21 for op, name in enumerate(("qadd", "qsub", "qdadd", "qdsub"))}
    lanes = dict(zip(OPS, (0, 1, 2, 3, 4, 7), strict=True))
    signed = {f"q{name}": places | 0x06200F10 | op << 5 for name, op in lanes.items()}
    unsigned = {f"uq{name}": places | 0x06600F10 | op << 5 for name, op in lanes.items()}
    limited = 0xE0000000 | d << 12 | n
    halves = {"ssat16": limited | 0x06A00F30 | width << 16, "usat16": limited | 0x06E00F30 | width << 16}
    whole = {"ssat": limited | 0x06A00010 | width << 16, "usat": limited | 0x06E00010 | width << 16}
    differences = 0xE7800010 | d << 16 | m << 8 | n
    sums = {"usad8": differences | 0xF000, "usada8": differences | width % 13 << 12}
    found = word | signed | unsigned | halves | whole | sums
    return {name: one.to_bytes(4, "little") for name, one in found.items()}


def random_word(choose):
    low, high = (choose.choice((*EDGES, choose.getrandbits(16))) & 0xFFFF for _ in range(2))
    return choose.choice((high << 16 | low, choose.choice(EDGES), choose.getrandbits(32)))


@pytest.mark.covering(0)
@pytest.mark.parametrize("core", ["cortex-m4", "cortex-r5"])
def test_a_saturating_instruction_or_sum_of_differences_does_what_the_engine_does(core):
    target, choose = load_target(core), random.Random(core)
    draws = [[choose.randrange(13) for _ in range(3)] for _ in range(6)] + [[1, 1, 2], [1, 2, 1], [1, 1, 1], [1, 2, 2]]
    named = [one for draw in draws for one in codes(target.isa, *draw, choose.randrange(16)).items()]
    encodings = [code for _, code in named]
    engine = Engine(target, encodings)
    lifter = Lifter(target.pcode_language, target.isa, lambda address, size: encodings[(address - CODE) // EACH][:size])
    for place, (name, code) in enumerate(named):
        (instruction,) = decode_range(code, CODE + EACH * place, target.isa, big_endian=False)
        assert instruction.text.split(" ")[0] == name
        for _ in range(30):
            values = {name: random_word(choose) & (~3 if name == "r13" else ~0) for name in engine.registers}
            data = bytes(DATA_BYTES)
            found = interpreted(lifter, instruction, values, 0, data)
            assert found == engine.run(instruction, values, 0, data), (instruction.text, values)
