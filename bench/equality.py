"""Equality of the two engines: guest instructions that both executed and counted, compared, with a kept tally.

A cell is an allocator on a target under caches; of each, traces are replayed on Unicorn and in translated code, and
results, registers, memory, all counts, touched words, paths and the numbers of each operation are compared. Each trace
has more operations than the product leaves to Unicorn. ELF files of others are compared by calls of their functions.

Run it from the project's folder with ``python -m bench.equality``; it can be stopped and goes on where it was, as long
as neither the machine nor the translator has changed. Options: ``--instructions`` (to compare in all), ``--elf FOLDER
--target NAME``, ``--table``. The tally is ``build/equality.jsonl``, a line for each cell.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import cycle
from pathlib import Path

from tests.emu.test_compiled import POLICIES
from tests.emu.twins import assert_equal, outcome, twins
from tests.support import Guest, cache_config, guest_on, trace_of
from wcet_probe.build.image import read_image
from wcet_probe.build.program import load_program
from wcet_probe.catalog.lookup import allocator_names, load_allocator, load_target, target_names
from wcet_probe.compiled import library
from wcet_probe.compiled.supply import LEAST_OPERATIONS
from wcet_probe.config import cache_dir, load_config
from wcet_probe.emu.machine import Machine
from wcet_probe.errors import WcetProbeError
from wcet_probe.model.scenario import InitialCache, Trace
from wcet_probe.model.target import Replacement, Target

ROOT = Path(__file__).parents[1]
TALLY = ROOT / "build" / "equality.jsonl"
OPERATIONS = LEAST_OPERATIONS + 3_616
HEAP_BYTES = 1 << 16
MOST_INSTRUCTIONS = 40_000_000
"""Of one call of a foreign program."""
_SOURCES = ("emu", "wcet_probe/compiled", "analyzer/pcode", "wcet_probe/isa")
_NO_ENGINE = ("supply.py",)
"""Decides which engine runs, and is no part of one."""
OWN = "own caches"


def with_unified(target: Target, policy: Replacement) -> Target:
    """``target`` with one cache for code and data."""
    cache = cache_config(8, 4, 16, policy, seed=3)
    return replace(target, icache=cache, dcache=cache, unified_cache=True)


CHANGES: dict[str, Callable[[Target], Target]] = {OWN: lambda target: target, **dict(POLICIES)}
for _policy in (Replacement.FIFO, Replacement.RANDOM):
    CHANGES[f"unified {_policy}"] = partial(with_unified, policy=_policy)


def changed(target: Target, caches: str) -> Target:
    """``target`` with the caches of that name; two where its own is one."""
    return CHANGES[caches](target if caches == OWN else replace(target, unified_cache=False))


@dataclass(frozen=True, slots=True)
class Cell:
    """One comparison: ``least`` instructions of it, compiled as the product does or without optimisation."""

    subject: str
    target: str
    caches: str
    optimised: bool
    least: int

    @property
    def name(self) -> str:
        """What it is in the tally."""
        return f"{self.subject} {self.target} {self.caches} {'-O2' if self.optimised else '-O0'}"


def cells() -> Iterator[Cell]:
    """Each policy, then each allocator as the product compiles it, then each pair of allocator and target."""
    targets, policies = cycle(target_names()), cycle(CHANGES)
    names = allocator_names()
    for policy, name in zip([p for p in CHANGES if p != OWN], cycle(names), strict=False):
        yield Cell(name, next(targets), policy, optimised=False, least=20_000_000)
    for name in names:
        yield Cell(name, next(targets), OWN, optimised=True, least=36_000_000)
    for name in names:
        for target in target_names():
            yield Cell(name, target, next(policies), optimised=False, least=3_000_000)


def workload(operations: int, seed: int, largest: int) -> Trace:
    """Allocations and deallocations in random order; few live blocks in some stretches, many in others."""
    draw, rows = random.Random(seed), []  # noqa: S311  (a workload, no secret)
    live: list[int] = []
    spare = list(range(512))
    for number in range(operations):
        share = 0.6 if number // 1000 % 2 else 0.42
        if spare and (not live or draw.random() < share):
            live.append(spare.pop())
            rows.append((0, live[-1], draw.randrange(largest)))
        else:
            slot = live.pop(draw.randrange(len(live)))
            spare.append(slot)
            rows.append((1, slot, 0))
    return trace_of(rows)


def same(expected: object, found: object, what: str) -> None:
    """Raise an AssertionError where the two differ, as the comparison of the tests does."""
    if expected != found:
        raise AssertionError(what)


def compare_allocator(cell: Cell) -> int:
    """Replay traces until enough is compared; how many instructions were.

    Raises:
        AssertionError: the engines differ.
        WcetProbeError: the allocator does not run on the target.
    """
    allocator = load_allocator(cell.subject)
    program = load_program(allocator, load_target(cell.target), "zig", cache_dir(load_config(ROOT)))
    used = guest_on(program.image, changed(program.target, cell.caches))
    heap_bytes = max(HEAP_BYTES, -(-allocator.minimum_heap_bytes // 4096) * 4096)
    entry, compared, seed = allocator.entry_points, 0, 0
    with twins(used, heap_bytes) as (engine, translated):
        for machine in (engine, translated):
            same(machine.call(entry["init"], machine.heap.base_address, heap_bytes), 0, "init")
        while compared < cell.least:
            trace = workload(OPERATIONS, seed, (700, 120, 3000)[seed % 3])
            initial = (InitialCache.COLD, InitialCache.DIRTY, InitialCache.WARM)[seed % 3]
            columns = [machine.replay_operations(trace, initial) for machine in (engine, translated)]
            for column in columns[0].__slots__:
                same(*(getattr(each, column).tolist() for each in columns), column)
            compared += engine.observation().instructions
            compared += assert_equal(engine, translated, lambda m, t=trace: m.replay_observed(t))
            compared += assert_equal(engine, translated, lambda m, t=trace: m.replay_observed(t, data=False))
            same(*(machine.replay_counted(trace) for machine in (engine, translated)), "instructions of operations")
            seed += 1
        for machine in (engine, translated):
            same(machine.call(entry["check"]), 0, "check")
    return compared


def compare_elf(elf: Path, target: Target, cell: Cell) -> int:
    """Call each function of a foreign program, with numbers and addresses; how many instructions were compared.

    Functions that run astray or without an end are compared up to there: both engines must tell the same of it.
    """
    used = foreign(elf.read_bytes(), changed(target, cell.caches))
    names = sorted({symbol.name for symbol in used.image.functions if symbol.size_bytes})
    compared, heap = 0, used.target.memory_map.heap_address
    first = [name for name in names if name in (f"{elf.stem}_init", "main", f"{elf.stem}_main")]
    for name in [*first, *names]:
        arguments = () if name in first else (heap, 3, heap + 64, 7)
        budget = MOST_INSTRUCTIONS if name in first else 300_000
        with twins(used, 1 << 14, most_instructions=budget) as (engine, translated):
            if name in first[1:]:
                assert_equal(engine, translated, lambda m: m.call(first[0]), observed=False)
            ask = lambda m, n=name, a=arguments: m.measure(n, a, InitialCache.COLD).result  # noqa: E731
            results = {machine: outcome(machine, ask) for machine in (engine, translated)}
            if isinstance(results[engine], str):
                compared += same_failure(engine, translated, results)
            else:
                compared += assert_equal(engine, translated, results.__getitem__)
    return compared


def same_failure(engine: Machine, translated: Machine, results: Mapping[Machine, object]) -> int:
    """Compare all but the fetches, of which an engine has counted the rest of its own block; instructions compared."""
    same(results[engine], results[translated], "message")
    same(engine.memory.snapshot(), translated.memory.snapshot(), "memory")
    for name in ("instructions", "cycles", "loads", "stores", "touched", "lowest_stack_pointer", "dcache"):
        same(*(getattr(machine.observation(), name) for machine in (engine, translated)), name)
    return engine.observation().instructions


def foreign(elf: bytes, target: Target) -> Guest:
    """An ELF file of somebody else on a target."""
    return guest_on(read_image(elf, target.isa, "foreign", ()), target)


def sources_digest() -> str:
    """Of all that the two engines are made of."""
    digest = hashlib.sha256()
    for folder in _SOURCES:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".py", ".c", ".h") and path.name not in _NO_ENGINE:
                digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def tallies() -> Mapping[str, Mapping[str, Mapping[str, object]]]:
    """What is known of each cell, by the sources of which it was learned."""
    found: dict[str, dict[str, Mapping[str, object]]] = {}
    for line in TALLY.read_text("utf-8").splitlines() if TALLY.is_file() else []:
        row = json.loads(line)
        found.setdefault(row["sources"], {})[row["cell"]] = row
    return found


def run(cell: Cell, elf: Path | None) -> Mapping[str, object]:
    """One cell; its line of the tally."""
    library.OPTIMISATION = library.OPTIMISATION if cell.optimised else ("-O0",)
    start = time.process_time()
    row: dict[str, object] = {"cell": cell.name, "subject": cell.subject, "target": cell.target, "caches": cell.caches}
    try:
        compared = compare_elf(elf, load_target(cell.target), cell) if elf else compare_allocator(cell)
        row |= {"instructions": compared, "outcome": "equal"}
    except WcetProbeError as error:
        row |= {"instructions": 0, "outcome": f"does not run: {error}"}
    except AssertionError as error:
        row |= {"instructions": 0, "outcome": f"DIFFERENT: {str(error)[:400]}"}
    return row | {"seconds": round(time.process_time() - start, 1)}


def show(rows: Mapping[str, Mapping[str, object]]) -> None:
    """The tally as a Markdown table, by subject, and what was compared in all."""
    sums: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    kinds: dict[str, set[str]] = defaultdict(set)
    for row in rows.values():
        sums[str(row["subject"])][0] += int(str(row["instructions"]))
        sums[str(row["subject"])][1] += row["outcome"] != "equal" and str(row["outcome"]).startswith("DIFF")
        if row["outcome"] == "equal":
            kinds[str(row["subject"])] |= {f"{row['target']}/{row['caches']}"}
    print("| subject | targets and caches | instructions | different |\n|---|--:|--:|--:|")
    for subject, (instructions, different) in sums.items():
        print(f"| {subject} | {len(kinds[subject])} | {instructions:,} | {different} |")
    total = sum(instructions for instructions, _ in sums.values())
    print(f"| all | {sum(map(len, kinds.values()))} | {total:,} | {sum(each for _, each in sums.values())} |")


def main() -> None:
    """Go on with the campaign until enough is compared."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--instructions", type=int, default=1_000_000_000)
    parser.add_argument("--elf", type=Path, help="a folder of linked ELF files, compared in place of the allocators")
    parser.add_argument("--target", choices=target_names(), help="of these files")
    parser.add_argument(
        "--table", action="store_true", help="print what is known, of older sources as well; compare nothing"
    )
    options = parser.parse_args()
    digest = sources_digest()
    TALLY.parent.mkdir(exist_ok=True)
    optimisation = library.OPTIMISATION
    work: list[tuple[Cell, Path | None]] = [(cell, None) for cell in cells()]
    if options.elf:
        if not any(options.elf.glob("*.elf")):
            parser.error(f"there is no ELF file in {options.elf}; name a folder of linked ones.")
        files = zip(sorted(options.elf.glob("*.elf")), cycle(CHANGES), strict=False)
        work = [(Cell(f.stem, options.target, caches, optimised=False, least=0), f) for f, caches in files]
    for cell, elf in () if options.table else work:
        known = tallies().get(digest, {})
        if sum(int(str(row["instructions"])) for row in known.values()) >= options.instructions and not elf:
            break
        if cell.name in known:
            continue
        library.OPTIMISATION = optimisation
        row = {"sources": digest, **run(cell, elf)}
        with TALLY.open("a", encoding="utf-8") as lines:
            lines.write(json.dumps(row) + "\n")
        told = f"{row['cell']}: {row['instructions']:,} {row['outcome']} ({row['seconds']} s)"
        print(told, file=sys.stderr, flush=True)
    for sources, rows in tallies().items():
        if options.table or sources == digest:
            print(f"\nOf the sources {sources}{', which are these' if sources == digest else ''}:\n")
            show(rows)


if __name__ == "__main__":
    main()
