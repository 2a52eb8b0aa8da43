"""Accesses with bytes in reverse are one access each, and do what the engine does."""

import random

import pytest

from tests.analyzer.pcode.machines import BASE, powerpc
from tests.analyzer.pcode.test_encodings import CODE, DATA, DATA_BYTES, EACH, Engine, interpreted
from wcet_probe.analyzer.pcode.lift import Lifter
from wcet_probe.catalog.lookup import load_target
from wcet_probe.isa.decode import decode_range

CODES = {"lwbrx": 534, "lhbrx": 790, "stwbrx": 662, "sthbrx": 918}


def encoded(name, own, base, index):
    return 31 << 26 | own << 21 | base << 16 | index << 11 | CODES[name] << 1


@pytest.mark.covering(0)
@pytest.mark.parametrize("name", CODES)
@pytest.mark.parametrize("draws", [6, pytest.param(20, marks=pytest.mark.slow)])
def test_it_does_what_the_engine_does(name, draws):
    target, choose = load_target("mpc603e"), random.Random(name)
    places = [(choose.randrange(32), choose.randrange(32), choose.randrange(32)) for _ in range(draws)]
    places += [(3, 0, 4), (3, 3, 4), (3, 4, 3), (3, 3, 3), (0, 0, 0)]
    encodings = [encoded(name, *each).to_bytes(4, "big") for each in places]
    engine = Engine(target, encodings)
    lifter = Lifter(target.pcode_language, target.isa, lambda address, size: encodings[(address - CODE) // EACH][:size])
    made = 0
    for number, (_, base, index) in enumerate(places):
        (instruction,) = decode_range(encodings[number], CODE + EACH * number, target.isa, big_endian=True)
        assert instruction.text.split(" ")[0] == name
        for _ in range(10):
            values = {register: choose.getrandbits(32) for register in engine.registers}
            values[f"r{index}"] = DATA + 4 * choose.randrange(DATA_BYTES // 4)
            if base:
                values[f"r{base}"] = choose.randrange(8) if base != index else DATA // 2 + choose.randrange(8)
            data = choose.randbytes(DATA_BYTES)
            found = interpreted(lifter, instruction, values, 0, data)
            if found is not None:
                made += 1
                assert found == engine.run(instruction, values, 0, data), (instruction.text, values)
    assert made > 100


@pytest.mark.parametrize("name", CODES)
def test_it_is_one_access_of_its_width(name):
    ops = powerpc(encoded(name, 3, 4, 5)).lift(BASE).ops
    (access,) = [op for op in ops if op.opcode in {"LOAD", "STORE"}]
    value = access.output if access.output is not None else access.inputs[1]
    assert (access.opcode, value.size_bytes) == ("LOAD" if name[0] == "l" else "STORE", 2 if "hb" in name else 4)
