"""Bounds of random functions held against emulation, in slices with a tally that is kept.

``python -m tests.random_campaign TALLY.json [--functions N] [--slices N]`` goes on where the tally ends. A slice is one
file of random functions, for one core, compiler and level of optimisation. Of it the tally tells how many functions
have more than 20 instructions, how many of those are bounded, how many runs were held against bounds, how many of them
the second engine repeated, with each register at each block, and each finding: a run above a bound or outside of what
is proved or claimed, or an error that no sentence is made for. A slice of a GCC that is not installed tells that it was
not built; to run it later, remove it from the tally.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import traceback
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bench.routines import runtime
from tests.mixed_programs import mixed_source
from tests.random_programs import arguments, packed_source, source
from tests.support import Guest, guest_on
from wcet_probe.analyzer.bound import prove
from wcet_probe.analyzer.facts.language import Facts
from wcet_probe.analyzer.request import BoundRequest
from wcet_probe.answer.witness.contradiction import check_counts, check_loops
from wcet_probe.answer.witness.cross_check import Call, cross_check
from wcet_probe.build import compilation
from wcet_probe.build.image import read_image
from wcet_probe.build.toolchain import find_toolchain
from wcet_probe.catalog.lookup import load_target
from wcet_probe.emu.machine import Machine
from wcet_probe.errors import AnalysisError, BuildError, ContradictionError, EmulationError
from wcet_probe.model.measurement import Measurement
from wcet_probe.model.proof import Bound
from wcet_probe.model.scenario import InitialCache

CORES = (
    ("cortex-m4", "zig"),
    ("arm926ej-s", "arm-none-eabi-gcc"),
    ("mpc603e", "zig"),
    ("cortex-m4", "arm-none-eabi-gcc"),
    ("arm926ej-s", "zig"),
    ("mpc603e", "powerpc-linux-gnu-gcc"),
    ("cortex-m0plus", "zig"),
)
OPTIMISATIONS = ("-O2", "-Os", "-O1", "-O0")
SOURCES = (mixed_source, mixed_source, source, mixed_source, mixed_source, mixed_source, packed_source)
"""Of the kinds of programs, in turn."""
FUNCTIONS = 16
RUNS = 6
LEAST_INSTRUCTIONS = 21
INITIAL = (InitialCache.COLD, InitialCache.DIRTY)
LONGEST = 100_000
"""Bounds above it are not held against runs that hang."""
HANGS = 400_000
"""A run of so many instructions is taken to hang; those before it, which a machine counts too, have room besides."""
REPEATED_INSTRUCTIONS = 3_000
"""Longer runs are not repeated by the second engine."""
ROUTINES = Path("build/suite")
"""Where the packaged compiler's routines for division are kept."""


def slice_of(number: int) -> tuple[str, str, str, str]:
    """Core, compiler, optimisation and the text of a slice."""
    first, rest = divmod(number, len(CORES))
    text = SOURCES[first % len(SOURCES)](10_000 + number, FUNCTIONS)
    return *CORES[rest], OPTIMISATIONS[first % len(OPTIMISATIONS)], text


def built(target_name: str, compiler: str, optimisation: str, text: str) -> Guest:
    """The program ``text``, with the compiler's routines for division.

    Raises:
        BuildError: the compiler is not installed, or refuses it.
    """
    target = load_target(target_name)
    toolchain = find_toolchain(compiler, target)
    flags = (*target.compiler_flags[toolchain.family], *compilation.COMMON_FLAGS, optimisation, "-w")
    layout = target.memory_map
    if toolchain.family == "clang":
        # Else all routines are decoded, and charged, in each proof and run.
        kept = ("--gc-sections", *(part for number in range(FUNCTIONS) for part in ("-u", f"f{number}")))
        link = (*toolchain.link, *kept, "-T", "image.ld", "guest.o", str(runtime(ROUTINES, target).resolve()))
    else:
        flags += ("-fno-tree-loop-distribute-patterns",)
        link = (*toolchain.link, *target.compiler_flags["gcc"], "-T", "image.ld", "guest.o", *toolchain.libraries)
    with TemporaryDirectory() as name:
        here = Path(name)
        (here / "guest.c").write_text(text, "utf-8")
        (here / "image.ld").write_text(compilation._LINKER_SCRIPT.format(code=layout.code, data=layout.data), "utf-8")
        compilation._call([*toolchain.compile, *flags, "-c", "guest.c", "-o", "guest.o"], here)
        compilation._call([*link, "-o", "image.elf"], here)
        image = read_image((here / "image.elf").read_bytes(), target.isa, toolchain.identity, flags)
    return guest_on(image, target)


def run_slice(number: int, functions: int = FUNCTIONS, runs: int = RUNS) -> dict[str, Any]:
    """Prove and run the functions of one slice: counts, and ``findings`` in words."""
    target, compiler, optimisation, text = slice_of(number)
    where = f"slice {number} ({target} {compiler} {optimisation})"
    draw = random.Random(f"campaign {number}")
    try:
        guest = built(target, compiler, optimisation, text)
    except BuildError as error:
        return {"slices not built": 1, "why": str(error), "findings": []}
    found, findings = Counter[str](), []
    for index in range(functions):
        entry = f"f{index}"
        symbol = guest.image.symbols[entry]
        size = sum(
            symbol.address & ~1 <= one.address < (symbol.address & ~1) + symbol.size_bytes for one in guest.instructions
        )
        if size < LEAST_INSTRUCTIONS:
            continue
        found["functions"] += 1
        try:
            found[_answer(guest, entry, draw, runs, found)] += 1
        except ContradictionError as error:
            findings.append(f"{where} {entry}: {error}")
        except Exception:  # noqa: BLE001  whatever it is, it is a finding
            findings.append(f"{where} {entry}: {traceback.format_exc()}")
    return {**found, "findings": findings}


def _answer(guest: Guest, entry: str, draw: random.Random, runs: int, found: Counter[str]) -> str:
    request = BoundRequest(
        guest.image, guest.target, guest.instructions, guest.costs, entry, Facts(), {}, {}, summaries=True
    )
    try:
        bound = prove(request)
    except AnalysisError:
        return "without a bound"
    watched = [claim.loop for claim in bound.loop_claims]
    most = runs * LONGEST + HANGS
    # Of what is not expanded nothing is said of accesses: there only the counts of a run are held against the bound.
    told = () if bound.summarised else (bound,)
    with guest.machine(watched=watched, bounds=told, most_instructions=most) as machine:
        before = machine.memory.snapshot()
        for _ in range(runs):
            machine.memory.restore(before)
            machine.restart_loop_counts()
            given, initial = arguments(draw), draw.choice(INITIAL)
            seen = _held(guest, bound, machine, given, initial)
            if seen is None:
                break  # what it left in the machine is not the next run's
            found["runs"] += 1
            if told and seen.instructions <= REPEATED_INSTRUCTIONS:
                call = Call(bound.entry, machine.entry_registers(given), before, initial)
                cross_check(guest, bound, call, seen, f"{bound.entry}{given}")
                found["runs repeated"] += 1
    return "by type" if bound.by_type else "bounded"


def _held(
    guest: Guest, bound: Bound, machine: Machine, given: tuple[int, ...], initial: InitialCache
) -> Measurement | None:
    """Hold one run against ``bound``; None where it hangs and the bound allows that.

    Raises:
        ContradictionError: something of the bound is not true.
    """
    subject = f"{bound.entry}{given}"
    may_hang = bound.instructions > LONGEST or any(one.id == "call-returns" for one in bound.assumptions)
    try:
        seen = machine.measure(bound.entry, given, initial)
    except EmulationError as error:
        if may_hang:
            return None
        raise ContradictionError(
            f"CONTRADICTED: {subject} within {bound.instructions} instructions: {error}"
        ) from error
    check_counts(bound, seen, subject)
    check_loops(bound.loop_claims, machine.loop_counts(), guest.image, subject)
    broken = machine.broken_claim()
    if broken is not None:
        raise ContradictionError(f"CONTRADICTED: {subject}: {broken}")
    return seen


def totals(tally: Mapping[str, Mapping[str, Any]]) -> Counter[str]:
    """The sums of all slices, findings counted."""
    counts = ({name: value for name, value in one.items() if isinstance(value, int)} for one in tally.values())
    found = sum(map(Counter[str], counts), Counter[str]())
    found["findings"] = sum(len(one["findings"]) for one in tally.values())
    return found


def main() -> int:
    """Run slices until there are enough functions; 0 if nothing was found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tally", type=Path)
    parser.add_argument("--functions", type=int, default=10_000, help="stop when so many are in the tally")
    parser.add_argument("--slices", type=int, default=None, help="stop after so many more slices")
    asked = parser.parse_args()
    if not asked.tally.parent.is_dir():
        parser.error(f"there is no folder {asked.tally.parent} for the tally; make it first.")
    tally: dict[str, Any] = {}
    with suppress(FileNotFoundError):
        tally = json.loads(asked.tally.read_text("utf-8"))
    number = done = 0
    while totals(tally)["functions"] < asked.functions and done != asked.slices:
        if str(number) not in tally:
            tally[str(number)] = run_slice(number)
            done += 1
            new = asked.tally.with_suffix(".new")
            new.write_text(json.dumps(tally, indent=1) + "\n", "utf-8")
            new.replace(asked.tally)
            for finding in tally[str(number)]["findings"]:
                sys.stdout.write(f"{finding}\n")
        number += 1
    told = totals(tally)
    counts = ", ".join(f"{told[name]} {name}" for name in sorted(told))
    sys.stdout.write(f"{len(tally)} slices: {counts}\n")
    return 1 if told["findings"] else 0


if __name__ == "__main__":
    sys.exit(main())
