"""The p-code interpreter against Unicorn, on compiled and hand-written functions of all three instruction sets."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import unicorn
import ziglang
from elftools.elf.elffile import ELFFile
from hypothesis import given, settings
from hypothesis import strategies as st
from unicorn import arm_const, ppc_const

from tests.examples import examples
from wcet_probe.analyzer.pcode.interpreter import DataAccess, Interpretation, interpret_call
from wcet_probe.analyzer.pcode.lift import Lifter, code_reader
from wcet_probe.analyzer.pcode.semantics import operation, signed
from wcet_probe.errors import DecodeError, EmulationError, UnknownOperationError
from wcet_probe.model.image import Segment
from wcet_probe.model.target import Isa

GUEST = Path(__file__).with_name("guest")
ZIG = Path(ziglang.__file__).parent
DATA, DATA_BYTES = 0x20000000, 0x200
STACK, STACK_BYTES = 0x30000000, 0x1000
RETURN_ADDRESS = 0x08000000
PAGE = 0x1000


@dataclass(frozen=True)
class Machine:
    """What a target needs in this test."""

    isa: Isa
    language: str
    flags: tuple[str, ...]
    emulation: str
    engine: tuple[int, int, int]
    arguments: tuple[str, ...]
    stack_pointer: str
    unicorn_registers: dict[str, int] = field(hash=False)


ARM_REGISTERS = {f"r{n}": getattr(arm_const, f"UC_ARM_REG_R{n}") for n in range(15)}
PPC_REGISTERS = {f"r{n}": getattr(ppc_const, f"UC_PPC_REG_{n}") for n in range(32)} | {"lr": ppc_const.UC_PPC_REG_LR}
ARM_FLAGS = ("--target=arm-none-eabi", "-mfloat-abi=soft")
MACHINES = {
    "m4": Machine(
        Isa.THUMB,
        "ARM:LE:32:Cortex",
        (*ARM_FLAGS, "-mcpu=cortex-m4", "-mthumb", "-DDIVISION"),
        "armelf",
        (unicorn.UC_ARCH_ARM, unicorn.UC_MODE_THUMB, arm_const.UC_CPU_ARM_CORTEX_M4),
        ("r0", "r1", "r2"),
        "r13",
        ARM_REGISTERS,
    ),
    "arm926": Machine(
        Isa.ARM,
        "ARM:LE:32:v5t",
        (*ARM_FLAGS, "-mcpu=arm926ej-s", "-marm"),
        "armelf",
        (unicorn.UC_ARCH_ARM, unicorn.UC_MODE_ARM, arm_const.UC_CPU_ARM_926),
        ("r0", "r1", "r2"),
        "r13",
        ARM_REGISTERS,
    ),
    "603e": Machine(
        Isa.POWERPC,
        "PowerPC:BE:32:default",
        ("--target=powerpc-none-eabi", "-mcpu=603e", "-msoft-float", "-DDIVISION"),
        "elf32ppc",
        (
            unicorn.UC_ARCH_PPC,
            unicorn.UC_MODE_PPC32 | unicorn.UC_MODE_BIG_ENDIAN,
            ppc_const.UC_CPU_PPC32_603E_V4_1,
        ),
        ("r3", "r4", "r5"),
        "r1",
        PPC_REGISTERS,
    ),
}


def names(target: str) -> list[str]:
    """The functions of a target, from the texts of their sources."""
    source = (GUEST / "functions.c").read_text()
    if "-DDIVISION" not in MACHINES[target].flags:
        source = source[: source.index("#ifdef DIVISION")]
    return re.findall(r"F\((c_\w+)\) \{", source) + re.findall(
        r"^F (\w+)", (GUEST / f"{target}.s").read_text(), re.MULTILINE
    )


FUNCTIONS = [(target, name) for target in MACHINES for name in names(target)]


@dataclass(frozen=True)
class Program:
    """A linked program: what is loaded, and its functions without Thumb bit."""

    segments: tuple[Segment, ...]
    symbols: dict[str, int]


@cache
def program(target: str) -> Program:
    """The C source and the assembly of ``target``, compiled and linked."""
    machine = MACHINES[target]
    with TemporaryDirectory() as folder:
        elf = Path(folder) / "out"
        flags = ("-O2", "-ffreestanding", "-nostdinc", "-isystem", ZIG / "lib/include", *machine.flags, "-w")
        objects = []
        for source in (GUEST / "functions.c", GUEST / f"{target}.s"):
            objects.append(Path(folder) / f"{source.name}.o")
            run(ZIG / "zig", "clang", *flags, "-c", source, "-o", objects[-1])
        link = ("--image-base=0x10000", "-Ttext=0x11000", "-e", "0", "-o", elf, *objects)
        run(ZIG / "zig", "ld.lld", "-m", machine.emulation, *link)
        with elf.open("rb") as file:
            parsed = ELFFile(file)
            segments = tuple(
                Segment(
                    part["p_vaddr"], part.data(), part["p_memsz"], bool(part["p_flags"] & 2), bool(part["p_flags"] & 1)
                )
                for part in parsed.iter_segments("PT_LOAD")
            )
            symbols = {
                s.name: s["st_value"] & ~1 for s in parsed.get_section_by_name(".symtab").iter_symbols() if s.name
            }
    return Program(segments, symbols)


def run(*command: object) -> None:
    done = subprocess.run([str(part) for part in command], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def memory_of(target: str, data: bytes) -> dict[int, bytes | bytearray]:
    regions: dict[int, bytes | bytearray] = {DATA: bytearray(data), STACK: bytearray(STACK_BYTES)}
    for segment in program(target).segments:
        content = segment.data.ljust(segment.size_bytes, b"\0")
        regions[segment.address] = bytearray(content) if segment.writable else content
    return regions


@cache
def lifter_of(target: str) -> Lifter:
    machine = MACHINES[target]
    return Lifter(machine.language, machine.isa, code_reader(program(target).segments))


def interpret(target: str, name: str, a: int, b: int, data: bytes) -> Interpretation:
    machine = MACHINES[target]
    return interpret_call(
        lifter_of(target),
        memory_of(target, data),
        dict(zip(machine.arguments, (a, b, DATA + 64), strict=True))
        | {machine.stack_pointer: STACK + STACK_BYTES - 64},
        entry_address=program(target).symbols[name],
        return_address=RETURN_ADDRESS,
        step_limit=10_000,
    )


@dataclass
class Emulation:
    """What Unicorn did."""

    result: int
    path: list[int]
    accesses: list[tuple[int, int, bool]]
    memory: dict[int, bytes]


@cache
def engine_of(target: str) -> tuple[unicorn.Uc, list[tuple[int, int]], list[tuple[int, int, bool]]]:
    """An engine with everything mapped, and the lists that its hooks fill: blocks and accesses.

    Blocks, because the hook on instructions is not called for those that an IT block skips. No hook on accesses for
    Thumb: it makes Unicorn execute IT blocks wrongly.
    """
    machine = MACHINES[target]
    architecture, mode, model = machine.engine
    engine = unicorn.Uc(architecture, mode)
    engine.ctl_set_cpu_model(model)
    for base, content in {**memory_of(target, bytes(DATA_BYTES)), RETURN_ADDRESS: b" "}.items():
        first = base // PAGE * PAGE
        engine.mem_map(first, -(-(base + len(content) - first) // PAGE) * PAGE)
    blocks: list[tuple[int, int]] = []
    accesses: list[tuple[int, int, bool]] = []
    engine.hook_add(unicorn.UC_HOOK_BLOCK, lambda _uc, address, size, _data: blocks.append((address, size)))
    if machine.isa is not Isa.THUMB:
        engine.hook_add(
            unicorn.UC_HOOK_MEM_READ | unicorn.UC_HOOK_MEM_WRITE,
            lambda _uc, kind, address, size, *_: accesses.append((address, size, kind == unicorn.UC_MEM_WRITE)),
        )
    return engine, blocks, accesses


def emulate(target: str, name: str, a: int, b: int, data: bytes) -> Emulation:
    machine = MACHINES[target]
    engine, blocks, accesses = engine_of(target)
    blocks.clear()
    accesses.clear()
    memory = memory_of(target, data)
    for base, content in memory.items():
        engine.mem_write(base, bytes(content))
    thumb = machine.isa is Isa.THUMB
    initial = dict.fromkeys(machine.unicorn_registers, 0)
    initial |= dict(zip(machine.arguments, (a, b, DATA + 64), strict=True))
    initial[machine.stack_pointer] = STACK + STACK_BYTES - 64
    initial["lr" if machine.isa is Isa.POWERPC else "r14"] = RETURN_ADDRESS | thumb
    for register, value in initial.items():
        engine.reg_write(machine.unicorn_registers[register], value)
    if machine.isa is Isa.POWERPC:
        engine.reg_write(ppc_const.UC_PPC_REG_CR, 0)
        engine.reg_write(ppc_const.UC_PPC_REG_XER, 0)
    engine.emu_start(program(target).symbols[name] | thumb, RETURN_ADDRESS, count=0)
    result = engine.reg_read(machine.unicorn_registers[machine.arguments[0]])
    path = [pc for start, size in blocks if start != RETURN_ADDRESS for pc in split(target, start, size)]
    return Emulation(result, path, accesses, {base: bytes(engine.mem_read(base, len(memory[base]))) for base in memory})


def split(target: str, start: int, size_bytes: int) -> list[int]:
    """The instructions of a block; their sizes from the encoding alone (ARMv7-M ARM DDI 0403E A5.1)."""
    read = code_reader(program(target).segments)
    addresses = []
    address = start
    while address < start + size_bytes:
        addresses.append(address)
        wide = MACHINES[target].isa is not Isa.THUMB or read(address + 1, 1)[0] >> 3 > 0b11100
        address += 4 if wide else 2
    return addresses


words = st.one_of(st.integers(0, 40), st.integers(0, 0xFFFFFFFF), st.sampled_from([0x7FFFFFFF, 0x80000000, 0xFFFFFFFF]))


def agrees_with_unicorn(target, name, a, b, data):
    ours, theirs = interpret(target, name, a, b, data), emulate(target, name, a, b, data)
    assert list(ours.path) == theirs.path
    assert ours.result == theirs.result
    assert ours.memory == theirs.memory
    assert all(ours.path[access.step] == access.instruction_address for access in ours.accesses)
    if MACHINES[target].isa is not Isa.THUMB and (target, name) != ("603e", "s_multiple"):  # no hook on lmw, stmw
        assert [access[2:5] for access in ours.accesses] == theirs.accesses


@pytest.mark.parametrize(("target", "name"), FUNCTIONS)
@settings(max_examples=examples(5))
@given(a=words, b=words, data=st.binary(min_size=DATA_BYTES, max_size=DATA_BYTES))
def test_interpreter_agrees_with_unicorn(target, name, a, b, data):
    agrees_with_unicorn(target, name, a, b, data)


@pytest.mark.slow
@pytest.mark.parametrize(("target", "name"), FUNCTIONS)
@settings(max_examples=examples(40))
@given(a=words, b=words, data=st.binary(min_size=DATA_BYTES, max_size=DATA_BYTES))
def test_interpreter_agrees_with_unicorn_on_many_words(target, name, a, b, data):
    agrees_with_unicorn(target, name, a, b, data)


def test_thumb_accesses_are_those_of_the_instructions_that_execute():
    def accesses(name, a, b):
        found = interpret("m4", name, a, b, bytes(DATA_BYTES))
        return [(access.address - DATA, access.size_bytes, access.is_store) for access in found.accesses]

    base = 64
    assert accesses("s_ite", 200, 1) == [(base + 3, 1, False), (base + 10, 2, True)]
    assert accesses("s_ite", 2, 1) == [
        (base, 4, False),
        (base + 4, 4, True),
        (base + 3, 1, False),
        (base + 10, 2, True),
    ]
    assert accesses("s_ite", 200, 0) == [(base + 6, 2, False), (base + 9, 1, True)]
    table = [access for access in accesses("s_tbb", 0, 0) if access[1] == 1]
    assert len(table) == 1
    in_data = [access for access in accesses("s_multiple", 1, 2) if 0 <= access[0] < DATA_BYTES]
    loads = [(base + offset, 4, False) for offset in (0, 4, 8, 12)]
    stores = [(base + offset, 4, True) for offset in (16, 20, 24, 20, 24)]
    assert in_data == [
        *loads,
        *stores,
        (base + 28, 4, False),
        (base + 32, 4, False),
        (base + 16, 4, True),
        (base + 20, 4, True),
    ]


def test_counts_include_predicated_false_instructions():
    fall_through, early = (interpret("m4", "s_it_bx", a, 1, bytes(DATA_BYTES)) for a in (5, 0x80000000))
    assert fall_through.instructions == 8
    assert early.instructions == 3
    assert (early.loads, early.stores) == (0, 0)


def test_load_and_store_multiple_of_powerpc_are_a_word_each():
    found = interpret("603e", "s_multiple", 0, 0, bytes(DATA_BYTES))
    assert (found.instructions, found.loads, found.stores) == (9, 6, 6)
    assert {access.size_bytes for access in found.accesses} == {4}


def run_code(language, isa, code, *, memory=None, registers=None, step_limit=100):
    base = 0x1000
    lifter = Lifter(language, isa, lambda address, size: code[address - base :][:size] if address >= base else b"")
    return interpret_call(
        lifter, memory or {}, registers or {}, entry_address=base, return_address=0x8000, step_limit=step_limit
    )


def run_arm(*words, **more):
    return run_code("ARM:LE:32:v5t", Isa.ARM, b"".join(word.to_bytes(4, "little") for word in words), **more)


def run_powerpc(*words, **more):
    return run_code("PowerPC:BE:32:default", Isa.POWERPC, b"".join(word.to_bytes(4, "big") for word in words), **more)


LDR, STR, BX_LR = 0xE5910000, 0xE5810000, 0xE12FFF1E


@pytest.mark.parametrize(
    ("address", "message"),
    [
        (0x1FFF, "at 0x00001000 loads 4 bytes at 0x00001fff, outside"),
        (0x200D, "loads 4 bytes at 0x0000200d, outside"),
        (0xFFFFFFFE, "loads 4 bytes at 0xfffffffe, outside"),
    ],
)
def test_stray_access_names_address_and_pc(address, message):
    with pytest.raises(EmulationError, match=message):
        run_arm(LDR, BX_LR, memory={0x2000: bytearray(16)}, registers={"r1": address})


def test_memory_given_is_not_changed_and_bytes_are_read_only():
    given = bytearray(16)
    found = run_arm(STR, BX_LR, memory={0x2000: given}, registers={"r0": 0x01020304, "r1": 0x2004})
    assert given == bytes(16)
    assert found.memory[0x2000][4:8] == b"\4\3\2\1"
    assert (found.instructions, found.loads, found.stores) == (2, 0, 1)
    assert found.accesses == (DataAccess(0, 0x1000, 0x2004, 4, is_store=True),)
    with pytest.raises(EmulationError, match="0x00001000 stores to read-only memory at 0x00002004"):
        run_arm(STR, BX_LR, memory={0x2000: bytes(given)}, registers={"r1": 0x2004})


def test_regions_may_not_overlap():
    with pytest.raises(EmulationError, match="0x00002000 and 0x0000200f overlap"):
        run_arm(BX_LR, memory={0x200F: b"xx", 0x2000: bytearray(16)})


def test_unknown_register():
    with pytest.raises(EmulationError, match="no register 'x7'"):
        run_arm(BX_LR, registers={"x7": 1})


def test_step_limit():
    with pytest.raises(EmulationError, match="did not return within 7"):
        run_arm(0xEAFFFFFE, step_limit=7)
    assert run_arm(BX_LR, step_limit=1).instructions == 1


def test_change_of_instruction_set():
    with pytest.raises(EmulationError, match="0x00001000 changes between ARM and Thumb"):
        run_arm(0xE12FFF11, registers={"r1": 0x8001})  # bx r1
    with pytest.raises(EmulationError, match="changes between ARM and Thumb"):
        run_code("ARM:LE:32:Cortex", Isa.THUMB, b"\x08\x47", registers={"r1": 0x8000})  # bx r1


@pytest.mark.parametrize(
    ("run", "word", "name"),
    [
        (run_arm, 0xEF000000, "software_interrupt"),
        (run_powerpc, 0xFC21102A, "float"),
        (run_powerpc, 0x7C0027EC, "dataCacheBlockClearToZero"),
    ],
)
def test_unknown_operations_are_named(run, word, name):
    with pytest.raises(UnknownOperationError, match=f"does not know {name} of the instruction at 0x00001000"):
        run(word)


def test_jump_to_nowhere():
    with pytest.raises(DecodeError, match="no code at 0x00000000"):
        run_arm(0xE12FFF11)  # bx r1


@pytest.mark.parametrize("opcode", ["INT_DIV", "INT_SDIV", "INT_REM", "INT_SREM"])
@given(a=words, b=words)
def test_division_truncates(opcode, a, b):
    function = operation(opcode, (4, 4), 4)
    x, y = (signed(32, a), signed(32, b)) if "_S" in opcode else (a, b)
    exact = Fraction(x, y) if y else Fraction(0)
    expected = int(exact) if "DIV" in opcode else (x - int(exact) * y if y else 0)
    assert function(a, b) == expected & 0xFFFFFFFF


@pytest.mark.parametrize(
    ("opcode", "sizes", "values", "expected"),
    [
        ("INT_SEXT", (1,), (0x80,), 0xFFFFFF80),
        ("INT_ZEXT", (1,), (0x80,), 0x80),
        ("INT_CARRY", (4, 4), (0xFFFFFFFF, 1), 1),
        ("INT_CARRY", (4, 4), (0xFFFFFFFE, 1), 0),
        ("INT_SCARRY", (4, 4), (0x7FFFFFFF, 1), 1),
        ("INT_SCARRY", (4, 4), (0xFFFFFFFF, 1), 0),
        ("INT_SCARRY", (4, 4), (0x80000000, 0x80000000), 1),
        ("INT_SBORROW", (4, 4), (0x80000000, 1), 1),
        ("INT_SBORROW", (4, 4), (0, 0x80000000), 1),
        ("INT_SBORROW", (4, 4), (1, 2), 0),
        ("INT_LEFT", (4, 4), (1, 0xFFFFFFFF), 0),
        ("INT_LEFT", (4, 1), (3, 31), 0x80000000),
        ("INT_RIGHT", (4, 4), (0x80000000, 32), 0),
        ("INT_SRIGHT", (4, 4), (0x80000000, 40), 0xFFFFFFFF),
        ("PIECE", (2, 1), (0x1234, 0x56), 0x123456),
        ("SUBPIECE", (8, 4), (0x1122334455667788, 4), 0x11223344),
        ("POPCOUNT", (4,), (0xF00F,), 8),
        ("LZCOUNT", (4,), (0,), 32),
        ("LZCOUNT", (2,), (1,), 15),
        ("INT_2COMP", (4,), (1,), 0xFFFFFFFF),
        ("INT_NEGATE", (4,), (1,), 0xFFFFFFFE),
        ("BOOL_NEGATE", (1,), (1,), 0),
        ("INT_SLESS", (1, 1), (0x80, 0x7F), 1),
        ("INT_LESS", (1, 1), (0x80, 0x7F), 0),
    ],
)
def test_semantics_at_the_edges(opcode, sizes, values, expected):
    assert operation(opcode, sizes, 4)(*values) == expected


def test_semantics_of_what_is_no_function():
    assert operation("STORE", (4, 4), 4) is None
    assert operation("FLOAT_ADD", (8, 8), 8) is None
