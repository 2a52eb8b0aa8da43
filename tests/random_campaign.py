"""Bounds of random functions held against emulation, in slices with a tally that is kept.

``python -m tests.random_campaign TALLY.json [--functions N] [--slices N]`` goes on where the tally ends. A slice is one
file of random functions, for one core and one level of optimisation; of it the tally tells how many functions have more
than 20 instructions, how many of those are bounded, how many runs were held against bounds, and each finding: a run
above a bound or outside what is claimed, or an error that no sentence is made for.
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
from typing import Any

from tests.random_programs import arguments, packed_source, source
from tests.support import Guest, guest_of
from wcet_probe.analyzer.bound import prove
from wcet_probe.analyzer.facts.language import Facts
from wcet_probe.analyzer.prepared import BoundRequest
from wcet_probe.answer.contradiction import check_counts, check_loops
from wcet_probe.catalog.lookup import load_target
from wcet_probe.emu.machine import Machine
from wcet_probe.errors import AnalysisError, BuildError, ContradictionError, EmulationError
from wcet_probe.model.proof import Bound
from wcet_probe.model.scenario import InitialCache

TARGETS = ("cortex-m4", "arm926ej-s", "mpc603e", "cortex-m0plus")
OPTIMISATIONS = ("-O2", "-Os", "-O1", "-O0")
FUNCTIONS = 16
RUNS = 6
LEAST_INSTRUCTIONS = 21
INITIAL = (InitialCache.COLD, InitialCache.DIRTY)
LONGEST = 100_000
"""Bounds above it are not held against runs that hang."""
HANGS = 400_000
"""A run of so many instructions is taken to hang."""


def slice_of(number: int) -> tuple[str, str, int, bool]:
    """Core, optimisation, seed and whether members of packed structures are accessed, of a slice."""
    first, rest = divmod(number, len(TARGETS))
    return TARGETS[rest], OPTIMISATIONS[first % len(OPTIMISATIONS)], 10_000 + number, first % 3 == 2


def run_slice(number: int, functions: int = FUNCTIONS, runs: int = RUNS) -> dict[str, Any]:
    """Prove and run the functions of one slice: counts, and ``findings`` in words."""
    target, optimisation, seed, is_packed = slice_of(number)
    text = (packed_source if is_packed else source)(seed, functions)
    draw = random.Random(f"campaign {seed}")
    try:
        guest = guest_of(text, load_target(target), ".c", optimisation)
    except BuildError:  # a multiplication of long words, which no library is linked for
        return {"slices not built": 1, "findings": []}
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
            findings.append(f"{target} {optimisation} seed {seed} {entry}: {error}")
        except Exception:  # noqa: BLE001  whatever it is, it is a finding
            findings.append(f"{target} {optimisation} seed {seed} {entry}: {traceback.format_exc()}")
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
    with guest.machine(watched=watched, bounds=(bound,), most_instructions=HANGS) as machine:
        before = machine.memory.snapshot()
        for _ in range(runs):
            machine.memory.restore(before)
            machine.restart_loop_counts()
            found["runs"] += _is_held(guest, bound, machine, arguments(draw), draw.choice(INITIAL))
    return "by type" if bound.by_type else "bounded"


def _is_held(guest: Guest, bound: Bound, machine: Machine, given: tuple[int, ...], initial: InitialCache) -> bool:
    """Hold one run against ``bound``; False where it hangs and the bound allows that.

    Raises:
        ContradictionError: something of the bound is not true.
    """
    subject = f"{bound.entry}{given}"
    may_hang = bound.instructions > LONGEST or any(one.id == "call-returns" for one in bound.assumptions)
    try:
        seen = machine.measure(bound.entry, given, initial)
    except EmulationError as error:
        if may_hang:
            return False
        raise ContradictionError(
            f"CONTRADICTED: {subject} within {bound.instructions} instructions: {error}"
        ) from error
    check_counts(bound, seen, subject)
    check_loops(bound.loop_claims, machine.loop_counts(), guest.image, subject)
    broken = machine.broken_claim()
    if broken is not None:
        raise ContradictionError(f"CONTRADICTED: {subject}: {broken}")
    return True


def totals(tally: Mapping[str, Mapping[str, Any]]) -> Counter[str]:
    """The sums of all slices, findings counted."""
    return sum((Counter({**one, "findings": len(one["findings"])}) for one in tally.values()), Counter[str]())


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
