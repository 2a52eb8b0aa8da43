"""The engine as an oracle of the decoder: random encodings, one at a time, watched by memory hooks.

The hooks are right outside of Thumb IT blocks, and blind to PowerPC's load and store multiple, string and dcbz.

Tests: isa.effective_address, isa.decode.
"""

import random

import pytest
import unicorn
from unicorn import arm_const, ppc_const

from wcet_probe.isa.decode import decode_range
from wcet_probe.isa.effective_address import evaluate
from wcet_probe.model.instruction import AccessKind
from wcet_probe.model.target import Isa

CODE, PAGE, CARRY_SET = 0x00300000, 0x1000, 0x200001D3
UNSEEN_BY_HOOKS = {"load_multiple", "store_multiple", "load_string", "store_string", "cache_zero"}
MAY_NOT_STORE = {"store_exclusive", "store_conditional"}
"""Without a reservation these do not store."""


class Machine:
    """One instruction at a time in the engine, on memory that appears where it is touched."""

    def __init__(self, isa):
        self.isa = isa
        if isa is Isa.POWERPC:
            self.engine = unicorn.Uc(unicorn.UC_ARCH_PPC, unicorn.UC_MODE_PPC32 | unicorn.UC_MODE_BIG_ENDIAN)
            self.engine.ctl_set_cpu_model(ppc_const.UC_CPU_PPC32_603E_V4_1)
            self.registers = {f"r{n}": getattr(ppc_const, f"UC_PPC_REG_{n}") for n in range(32)}
        else:
            thumb = isa is Isa.THUMB
            self.engine = unicorn.Uc(unicorn.UC_ARCH_ARM, unicorn.UC_MODE_THUMB if thumb else unicorn.UC_MODE_ARM)
            model = arm_const.UC_CPU_ARM_CORTEX_M4 if thumb else arm_const.UC_CPU_ARM_926
            self.engine.ctl_set_cpu_model(model)
            self.registers = {f"r{n}": getattr(arm_const, f"UC_ARM_REG_R{n}") for n in range(15)}
        self.log, self.pages = [], set()
        self.engine.mem_map(CODE, PAGE)
        kinds = {unicorn.UC_MEM_READ: "load", unicorn.UC_MEM_WRITE: "store"}
        self.engine.hook_add(
            unicorn.UC_HOOK_MEM_READ | unicorn.UC_HOOK_MEM_WRITE,
            lambda _engine, kind, *access: self.log.append((kinds[kind], *access[:3])),
        )
        self.engine.hook_add(
            unicorn.UC_HOOK_MEM_READ_UNMAPPED | unicorn.UC_HOOK_MEM_WRITE_UNMAPPED,
            lambda _engine, _kind, address, size, _value, _data: self.map(address, size) or True,
        )

    def map(self, address, size):
        for page in {address & -PAGE, (address + size - 1) & -PAGE} - self.pages - {CODE}:
            self.engine.mem_map(page, PAGE)
            self.pages.add(page)

    def run(self, code, values):
        self.engine.mem_write(CODE, code)
        self.engine.ctl_remove_cache(CODE, CODE + PAGE)
        if self.isa is not Isa.POWERPC:
            thumb_bit = 0x20 if self.isa is Isa.THUMB else 0
            self.engine.reg_write(arm_const.UC_ARM_REG_CPSR, CARRY_SET | thumb_bit)
        for name, value in values.items():
            self.engine.reg_write(self.registers[name], value)
        self.log.clear()
        self.engine.emu_start(CODE | (self.isa is Isa.THUMB), CODE + PAGE, count=1)
        return {name: self.engine.reg_read(register) for name, register in self.registers.items()}


def random_code(isa, choose):
    """A random encoding; most are loads and stores."""
    bits = choose.getrandbits
    if isa is Isa.ARM:
        group = choose.choice((0b000, 0b000, 0b010, 0b011, 0b100, choose.randrange(8)))
        return (14 << 28 | group << 25 | bits(25) | (0x90 if group == 0 else 0)).to_bytes(4, "little")
    if isa is Isa.THUMB:
        if choose.random() < 0.4:
            return (choose.randrange(0xE800)).to_bytes(2, "little")
        top = choose.choice((0b1110100, 0b1111100, 0b1110100, 0b1111100, 0b1110000 | choose.randrange(8, 16)))
        low = bits(16) & choose.choice((0xFFFF, 0xF03F))
        return (top << 9 | bits(9)).to_bytes(2, "little") + low.to_bytes(2, "little")
    if choose.random() < 0.5:
        return (choose.randrange(7, 48) << 26 | bits(26)).to_bytes(4, "big")
    codes = (20, 23, 55, 87, 119, 151, 183, 215, 247, 279, 311, 343, 375, 407, 439, 534, 662, 790, 918, bits(10))
    return (31 << 26 | bits(15) << 11 | choose.choice(codes) << 1 | bits(1)).to_bytes(4, "big")


def random_values(machine, choose):
    return {
        name: choose.choice((0x20000000 + choose.getrandbits(16), choose.getrandbits(32), choose.getrandbits(8)))
        for name in machine.registers
    }


def expected_log(instruction, values):
    """What the hooks must see, or None where they cannot: the guest's last page, the code's page."""
    log = []
    for access in instruction.accesses:
        kinds = ("load", "store") if access.kind is AccessKind.LOAD_STORE else (access.kind.value,)
        log += [(kind, *where) for where in evaluate(access, values, carry=True) for kind in kinds]
    bad = any(address >= 0xFFFFF000 or CODE - 64 <= address < CODE + PAGE for _, address, _ in log)
    return None if bad else log


CODES = [750, pytest.param(8000, marks=pytest.mark.slow)]
"""Random encodings, most of which are compared with nothing: they are none, or go where no hook sees them."""


@pytest.mark.parametrize("codes", CODES)
@pytest.mark.parametrize("isa", Isa)
def test_accesses_are_what_the_engine_does_and_registers_what_it_changes(isa, codes):
    choose, machine = random.Random(2026), Machine(isa)
    compared = {True: 0, False: 0}
    for _ in range(codes):
        code = random_code(isa, choose)
        instruction, *rest = decode_range(code, CODE, isa, big_endian=isa is Isa.POWERPC)
        if rest or instruction.problem or instruction.timing_class in {"it", "coprocessor"} | MAY_NOT_STORE:
            continue
        if isa is Isa.POWERPC and instruction.timing_class in UNSEEN_BY_HOOKS:
            continue
        values = random_values(machine, choose)
        expected = expected_log(instruction, values)
        if expected is None:
            continue
        try:
            after = machine.run(code, values)
        except unicorn.UcError:  # an instruction that the core does not have, or a jump to nowhere
            continue
        assert [seen[:3] for seen in machine.log] == expected, (code.hex(), instruction)
        assert {name for name in values if after[name] != values[name]} <= instruction.writes, (code.hex(), instruction)
        compared[bool(expected)] += 1
    assert compared[True] > 0.17 * codes
    assert compared[False] > 0.025 * codes


@pytest.mark.parametrize("codes", CODES)
@pytest.mark.parametrize("isa", Isa)
def test_results_depend_on_no_register_that_is_not_read(isa, codes):
    choose, machine = random.Random(1120), Machine(isa)
    skipped = {"it", "coprocessor", "integer", "swap", "swap_narrow"} | UNSEEN_BY_HOOKS - {"load_multiple"}
    if isa is Isa.POWERPC:  # integer results may depend on XER[CA], which is no register here
        skipped |= {"load_multiple"}
    compared = 0
    for _ in range(codes):
        code = random_code(isa, choose)
        instruction, *rest = decode_range(code, CODE, isa, big_endian=isa is Isa.POWERPC)
        free = sorted(set(machine.registers) - instruction.reads - instruction.writes)
        if rest or instruction.problem or not free or instruction.timing_class in skipped:
            continue
        values = random_values(machine, choose)
        if expected_log(instruction, values) is None:
            continue
        other = values | {choose.choice(free): choose.getrandbits(32)}
        try:
            one, first = machine.run(code, values), list(machine.log)
            two, second = machine.run(code, other), list(machine.log)
        except unicorn.UcError:
            continue
        assert {name for name in one if one[name] != two[name]} <= set(free), (code.hex(), instruction)
        assert first == second, (code.hex(), instruction)
        compared += 1
    assert compared > 0.17 * codes


@pytest.mark.parametrize(
    "word",
    [
        0xBF63FFFA,  # stmw 27, -6(3)
        0x7F633DAA,  # stswi 27, 3, 7
        0x7FE305AA,  # stswi 31, 3, 0: 32 bytes
        0x7C001FEC,  # dcbz 0, 3
        0x7C0327EC,  # dcbz 3, 4
    ],
)
def test_stores_that_no_hook_sees(word):
    code = word.to_bytes(4, "big")
    (instruction,) = decode_range(code, CODE, Isa.POWERPC, big_endian=True)
    machine = Machine(Isa.POWERPC)
    start = 0x20000000
    machine.map(start, PAGE)
    machine.engine.mem_write(start, b"\xaa" * PAGE)
    values = {name: 0x11111111 * (index % 9 + 1) for index, name in enumerate(machine.registers)}
    values |= {"r3": start + 0x205, "r4": 0x33}
    machine.run(code, values)
    memory = machine.engine.mem_read(start, PAGE)
    changed = {start + offset for offset, byte in enumerate(memory) if byte != 0xAA}
    (access,) = instruction.accesses
    assert changed == {address + i for address, size in evaluate(access, values) for i in range(size)}


@pytest.mark.parametrize(
    "word",
    [
        0xBB63FFFA,  # lmw 27, -6(3)
        0x7F633CAA,  # lswi 27, 3, 7
        0x7FC37CAA,  # lswi 30, 3, 15: wraps round to r0 and r1
    ],
)
def test_loads_that_no_hook_sees(word):
    code = word.to_bytes(4, "big")
    (instruction,) = decode_range(code, CODE, Isa.POWERPC, big_endian=True)
    machine = Machine(Isa.POWERPC)
    start = 0x20000000
    machine.map(start, PAGE)
    machine.engine.mem_write(start, bytes(range(256)) * (PAGE // 256))
    values = dict.fromkeys(machine.registers, 0xFFFFFFFF) | {"r3": start + 0x205}
    after = machine.run(code, values)
    (access,) = instruction.accesses
    loaded = b"".join(bytes(machine.engine.mem_read(*where)) for where in evaluate(access, values))
    first = word >> 21 & 31
    names = [f"r{(first + i) % 32}" for i in range(len(instruction.loaded))]
    assert set(names) == instruction.loaded
    assert b"".join(after[name].to_bytes(4, "big") for name in names)[: len(loaded)] == loaded
