"""TLSF in other builds: sanitized, 32-bit and covered ones give the same answers; the guests' code has no loop."""

from __future__ import annotations

import json
import platform
import random
import re
import shutil
import struct
import subprocess
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import capstone
import pytest
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import Symbol, SymbolTableSection

from .host_compiler import CC, ZIG, compile_or_fail, sanitizing
from .tlsf_host import (
    COMMON,
    CONFIGURATIONS,
    DRIVER,
    MAXIMUM_HEAP,
    SOURCES,
    TLSF,
    WARNINGS,
    WORD,
    Violation,
    macros,
)
from .tlsf_model import Tlsf

# ----------------------------------------------------------------------------- the driver: other builds, same answers

INIT, MALLOC, FREE, FREE_NULL, MALLOC_HUGE, INIT_AT_1, INIT_NULL = range(7)
NONE = 0xFFFFFFFF


def driver_operations(sl_bits: int, word_bytes: int) -> tuple[list[tuple[int, int]], list[int | None]]:
    """A fixed sequence that takes every branch, and the answer to each operation; None for "not 0"."""
    rng = random.Random(sl_bits)
    alignment = 2 * word_bytes
    steps: list[tuple[int, int]] = [(MALLOC, 8), (FREE_NULL, 0)]
    answers: list[int | None] = [NONE, 0]
    for heap_bytes in (0, 2 * alignment, 2048 + 4, MAXIMUM_HEAP + alignment):
        steps.append((INIT, heap_bytes))
        answers.append(None)
    for heap_bytes in (3 * alignment, 1024, 1 << 14, 1 << 17):
        model = Tlsf(heap_bytes, sl_bits, word_bytes)
        steps.extend([(INIT, heap_bytes), (INIT_AT_1, 1024), (INIT_NULL, 1024)])
        answers.extend([0, None, None])
        for less in (0, 1, 6, 7, 8, 15, 16, 1 << 20, 1 << 31):
            steps.append((MALLOC_HUGE, less))
            answers.append(NONE)
        for size in (model.bounds[-1], model.bounds[-1] + 1):
            steps.append((MALLOC, size))
            answers.append(NONE)
        slots: list[int] = []
        live: set[int] = set()
        for _ in range(1500):
            if rng.random() < 0.55:
                size = min(int(2 ** rng.uniform(0, 15)), heap_bytes) if rng.random() < 0.8 else rng.randrange(80)
                offset = model.malloc(size)
                steps.append((MALLOC, size))
                answers.append(NONE if offset is None else offset)
                if offset is not None:
                    live.add(len(slots))
                    slots.append(offset)
            elif live:
                slot = rng.choice(sorted(live))
                live.remove(slot)
                model.free(slots[slot])
                steps.append((FREE, slot))
                answers.append(0)
    return steps, answers


def drive(program: Path, sl_bits: int, word_bytes: int) -> None:
    steps, answers = driver_operations(sl_bits, word_bytes)
    stdin = b"".join(struct.pack("=II", *step) for step in steps)
    done = subprocess.run([program], input=stdin, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    results = list(struct.iter_unpack("=II", done.stdout))
    for step, expected, (answer, violation) in zip(steps, answers, results, strict=True):
        assert answer != 0 if expected is None else answer == expected, step
        assert violation in (Violation.HEAP_SOUND, Violation.NO_HEAP), step


@pytest.mark.covering
@pytest.mark.parametrize(("sl_bits", "bit_search"), CONFIGURATIONS)
def test_sanitizers_find_nothing(tmp_path: Path, sl_bits: int, bit_search: int) -> None:
    program = tmp_path / "driver"
    compile_or_fail(
        [
            *CC,
            *sanitizing(tmp_path),
            *WARNINGS[1:],
            "-std=gnu11",
            *macros(sl_bits, bit_search),
            *SOURCES,
            DRIVER,
            "-o",
            str(program),
        ],
        tmp_path,
    )
    drive(program, sl_bits, WORD)


@pytest.mark.covering
@pytest.mark.parametrize(("sl_bits", "bit_search"), CONFIGURATIONS)
def test_32_bit_layout(tmp_path: Path, sl_bits: int, bit_search: int) -> None:
    """The guests' word size, executed natively: needs no 32-bit library."""
    if platform.machine() not in ("x86_64", "i686") or platform.system() != "Linux":
        pytest.skip("32-bit x86 code does not run on this machine")
    program = tmp_path / "driver"
    target = ["-target", "x86-linux-none", "-ffreestanding", "-nostdlib", "-static", "-DDRIVER_FREESTANDING"]
    compile_or_fail(
        [str(ZIG), "cc", "-O2", *WARNINGS, *target, *macros(sl_bits, bit_search), *SOURCES, DRIVER, "-o", str(program)],
        tmp_path,
    )
    try:
        subprocess.run([program], input=b"", check=True)
    except OSError as error:
        pytest.skip(f"the kernel does not run 32-bit code: {error}")
    drive(program, sl_bits, 4)


@pytest.mark.covering
@pytest.mark.parametrize(("sl_bits", "bit_search"), CONFIGURATIONS)
def test_no_line_or_branch_stays_unexecuted(tmp_path: Path, sl_bits: int, bit_search: int) -> None:
    gcc, gcov = shutil.which("gcc"), shutil.which("gcov")
    if gcc is None or gcov is None:
        pytest.skip("needs gcc and gcov")
    command = [
        gcc,
        "-std=gnu11",
        "--coverage",
        "-O0",
        f"-I{TLSF}",
        f"-I{COMMON}",
        *macros(sl_bits, bit_search),
        *SOURCES,
        DRIVER,
    ]
    compile_or_fail([*command, "-o", "driver"], tmp_path)
    drive(tmp_path / "driver", sl_bits, WORD)
    data = next(tmp_path.glob("*tlsf.gcda"))
    done = subprocess.run(
        [gcov, "--branch-probabilities", "--json-format", "--stdout", data.name],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    )
    (report,) = (file for file in json.loads(done.stdout)["files"] if file["file"].endswith("tlsf.c"))
    assert len(report["lines"]) > 80
    assert [line["line_number"] for line in report["lines"] if line["count"] == 0] == []
    assert [line["line_number"] for line in report["lines"] for b in line["branches"] if b["count"] == 0] == []


# -------------------------------------------------------------------------------------------------- code of the guests

GUESTS = {
    "cortex-m4": ["--target=arm-none-eabi", "-mcpu=cortex-m4", "-mthumb", "-mfloat-abi=soft"],
    "arm926ej-s": ["--target=arm-none-eabi", "-mcpu=arm926ej-s", "-marm", "-mfloat-abi=soft"],
    "mpc603e": ["--target=powerpc-none-eabi", "-mcpu=603e", "-msoft-float"],
}
DECODERS = {
    "cortex-m4": (capstone.CS_ARCH_ARM, capstone.CS_MODE_THUMB | capstone.CS_MODE_MCLASS),
    "arm926ej-s": (capstone.CS_ARCH_ARM, capstone.CS_MODE_ARM),
    "mpc603e": (capstone.CS_ARCH_PPC, capstone.CS_MODE_32 | capstone.CS_MODE_BIG_ENDIAN),
}


def successors(instruction: capstone.CsInsn) -> set[int]:
    """Where a function goes on after an instruction that is no call."""
    mnemonic, operands = instruction.mnemonic.split(".")[0], instruction.op_str
    target = operands.rsplit(" ", 1)[-1].lstrip("#")
    is_branch = re.match(r"(cb|b(?!ic|fc|fi))", mnemonic) is not None and target.startswith("0x")
    returns = mnemonic in {"bx", "blr"} or (mnemonic in {"pop", "ldm"} and "pc" in operands)
    goes_on = set() if returns or mnemonic == "b" else {instruction.address + instruction.size}
    return goes_on | ({int(target, 16)} if is_branch else set())


def has_loop(code: list[capstone.CsInsn]) -> bool:
    try:
        TopologicalSorter({instruction.address: successors(instruction) for instruction in code}).prepare()
    except CycleError:
        return True
    return False


def symbols_of(elf: ELFFile) -> list[Symbol]:
    table = elf.get_section_by_name(".symtab")
    assert isinstance(table, SymbolTableSection)
    return list(table.iter_symbols())


def undefined(elf: ELFFile) -> set[str]:
    return {symbol.name for symbol in symbols_of(elf) if symbol["st_shndx"] == "SHN_UNDEF" and symbol.name}


def disassemble(elf: ELFFile, name: str, guest: str) -> list[capstone.CsInsn]:
    """Instructions of a function, without the literals behind them."""
    symbols = symbols_of(elf)
    (symbol,) = (s for s in symbols if s.name == name)
    start = symbol["st_value"] & ~1
    end = start + symbol["st_size"]
    literals = [s["st_value"] for s in symbols if s.name == "$d" and start < s["st_value"] < end]
    end = min([end, *literals])
    code = elf.get_section(symbol["st_shndx"]).data()[start:end]
    instructions = list(capstone.Cs(*DECODERS[guest]).disasm(code, start))
    assert sum(instruction.size for instruction in instructions) == end - start
    return instructions


@pytest.mark.parametrize("guest", GUESTS)
@pytest.mark.parametrize(("sl_bits", "bit_search"), CONFIGURATIONS)
def test_guest_code_has_no_loop_and_needs_nothing(tmp_path: Path, guest: str, sl_bits: int, bit_search: int) -> None:
    freestanding = ["-ffreestanding", "-nostdinc", "-isystem", str(ZIG.parent / "lib" / "include"), "-O2", "-c"]
    compile_or_fail(
        [str(ZIG), "clang", *GUESTS[guest], *freestanding, *WARNINGS, *macros(sl_bits, bit_search), *SOURCES], tmp_path
    )
    with (tmp_path / "tlsf_check.o").open("rb") as stream:
        assert undefined(ELFFile(stream)) == {"tlsf_control"}
    with (tmp_path / "tlsf.o").open("rb") as stream:
        elf = ELFFile(stream)
        assert undefined(elf) == set()
        assert has_loop(disassemble(elf, "tlsf_init", guest)), "a loop that is there must be seen"
        for name in ("tlsf_malloc", "tlsf_free"):
            code = disassemble(elf, name, guest)
            mnemonics = {instruction.mnemonic.split(".")[0] for instruction in code}
            assert not has_loop(code)
            assert mnemonics.isdisjoint({"bl", "blx", "udiv", "sdiv", "divw", "divwu", "bctr", "bctrl", "tbb", "tbh"})
            assert mnemonics.isdisjoint({"clz", "cntlzw"}) == (bit_search == 1)
