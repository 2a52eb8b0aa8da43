"""How tight the bounds of the allocators are: bound and dearest witness, and their ratio, in both units.

Run with ``python -m bench.bounds [--print] [--heap SIZE] [--target NAME] [--facts WHICH] [--missing] [--witnesses]
[--keep] [--store DIR] [ALLOCATOR ...]``: what is not in the store yet (``build/bounds``) is computed, cheap rows first,
then what an older version of the program computed, unless ``--missing`` leaves that. Each row is kept when it is there,
so that a run can be stopped and goes on where it was; ``--print`` prints what is in the store, or else under version
control in ``bench/bounds.csv``, and computes nothing. The tables are those of ``docs/explanation/bounds.md``.
``--keep`` writes the rows into ``bench/bounds.csv`` too, and ``--witnesses`` measures the dearest calls of what is
there anew, and proves nothing: for states that are dearer now.
A cell with a contradiction has no row; the run goes on, and ends with exit code 5.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from bench import bound_rows
from bench.bound_rows import Cell, Row, compute, keep, kept_rows, program_digest, store, stored, witnesses_anew
from wcet_probe.catalog.lookup import allocator_names, target_names
from wcet_probe.errors import WcetProbeError
from wcet_probe.sizes import parse_size

TARGETS = ("cortex-m4", "arm926ej-s", "mpc603e", "cortex-m7", "cortex-r5", "e200z6", "mpc755")
"""The cores that differ in instruction set, caches or policy; the other Cortex-M are cortex-m4 with other costs."""
LRU_TARGETS = ("mpc603e",)
"""Those whose data cache replaces the least recently used line; cortex-m4 has no caches, the others other policies."""
UNCACHED_TARGETS = ("cortex-m4",)
HEAPS_BYTES = (5000, 64 << 10, 1 << 20, 4 << 20)
UNITS = ("instructions", "cycles")
DEAR = ("avl-best-fit", "fast-fit", "quick-fit", "dlmalloc28", "cama", "dlmalloc27")
"""Allocators whose rows take longest, the cheaper ones first."""

CONSTANT_TIME = (
    "half-fit", "tlsf", "budgeted:tlsf", "cama", "djgpp-sbrk", "djgpp-carve", "djgpp-quarters", "kingsley",
)  # fmt: skip
TREES = ("avl-best-fit", "btree-best-fit", "fast-fit", "dlmalloc28", "buddy-binary", "buddy-fibonacci")
"""All others walk lists."""
GOALS = {
    "constant time": {"instructions": 1.00, "cycles": 1.15},
    "list walkers": {"instructions": 1.05, "cycles": 1.10},
    "trees": {"instructions": 1.15, "cycles": 1.30},
}
OTHER_POLICY_GOAL = 1.5
"""In cycles, on cores whose caches do not replace the least recently used line."""


def group_of(allocator: str) -> str:
    """Which goals hold for ``allocator``."""
    return "constant time" if allocator in CONSTANT_TIME else "trees" if allocator in TREES else "list walkers"


def goal_of(row: Row, unit: str) -> float:
    """The greatest ratio that is meant for ``row``."""
    if unit == "cycles" and row.cell.target not in (*LRU_TARGETS, *UNCACHED_TARGETS):
        return OTHER_POLICY_GOAL
    return GOALS[group_of(row.cell.allocator)][unit]


def cells(names: Sequence[str], targets: Sequence[str], heaps_bytes: Sequence[int]) -> Iterator[Cell]:
    """What is computed, in this order: with all facts, then with loop facts only; small heaps first."""
    ordered = sorted(names, key=lambda name: (DEAR.index(name) + 1 if name in DEAR else 0, name))
    stages = [
        *((heap, targets, False) for heap in HEAPS_BYTES),
        *((heap, targets, True) for heap in HEAPS_BYTES),
    ]
    for heap, of, loop_facts_only in stages:
        if heap in heaps_bytes:
            yield from (Cell(name, target, heap, loop_facts_only) for name in ordered for target in of)


def ratio_of(row: Row, unit: str) -> float | None:
    """Bound over dearest known call; None where one is missing."""
    if not row.bounds or not row.witnesses:
        return None
    return row.bounds[unit] / row.witnesses[unit]


def table(rows: Sequence[Row], loops_only: Mapping[tuple[Cell, str], Row], unit: str) -> Iterator[str]:
    """A line of Markdown for each of ``rows``, which have bounds with all facts."""
    yield "| allocator | target | operation | bound | loop facts only | witness | ratio |"
    yield "|---|---|---|--:|--:|--:|--:|"
    for row in rows:
        cell = row.cell
        other = loops_only.get((replace(cell, loop_facts_only=True), row.operation))
        ratio = ratio_of(row, unit)
        numbers = (
            f"{row.bounds[unit]:,}" if row.bounds else "none",
            "" if other is None else f"{other.bounds[unit]:,}" if other.bounds else "none",
            f"{row.witnesses[unit]:,}" if row.witnesses else "-",
            f"{ratio:.3f}" if ratio else "-",
        )
        yield f"| {' | '.join((cell.allocator, cell.target, row.operation, *numbers))} |"


def summary(rows: Sequence[Row], loops_only: Mapping[tuple[Cell, str], Row], unit: str) -> Iterator[str]:
    """Medians and worst rows of each group and kind of target, beside the goal and the median with loop facts only."""
    yield "| allocators | cores | goal | rows | median | worst | above the goal | loop facts only: median |"
    yield "|---|---|--:|--:|--:|---|--:|--:|"
    kinds = {
        "without caches": UNCACHED_TARGETS,
        "LRU": LRU_TARGETS,
        "other policies": tuple(name for name in TARGETS if name not in (*LRU_TARGETS, *UNCACHED_TARGETS)),
    }
    for group in GOALS:
        for kind, targets in kinds.items() if unit == "cycles" else (("all", TARGETS),):
            chosen = [row for row in rows if group_of(row.cell.allocator) == group and row.cell.target in targets]
            ratios = [(ratio, row) for row in chosen if (ratio := ratio_of(row, unit)) is not None]
            if not ratios:
                continue
            goal = goal_of(ratios[0][1], unit)
            worst, row = max(ratios, key=lambda pair: pair[0])
            above = sum(round(ratio, 3) > goal for ratio, _ in ratios)
            median = statistics.median(ratio for ratio, _ in ratios)
            name = f"{worst:.3f} {row.cell.allocator} {row.operation}, {row.cell.target}"
            others = [_loops_ratio(row, loops_only, unit) for _, row in ratios]
            loops = f"{statistics.median(others):.3f}" if all(others) else "-"
            yield f"| {group} | {kind} | {goal:.2f} | {len(ratios)} | {median:.3f} | {name} | {above} | {loops} |"


def _loops_ratio(row: Row, loops_only: Mapping[tuple[Cell, str], Row], unit: str) -> float:
    """Of the bound with loop facts only; infinite where there is none, and 0 where it was not computed."""
    other = loops_only.get((replace(row.cell, loop_facts_only=True), row.operation))
    if other is None:
        return 0.0
    return other.bounds[unit] / row.witnesses[unit] if other.bounds else math.inf


def print_tables(names: Sequence[str], targets: Sequence[str], heaps_bytes: Sequence[int]) -> None:
    """All that is stored or kept of ``names``, by heap and unit, and how much is missing or of an older program."""
    kept = kept_rows()
    found = {cell: stored(cell) or kept.get(cell, []) for cell in cells(names, targets, heaps_bytes)}
    older = sum(row.program != program_digest() for rows in found.values() for row in rows)
    for heap in heaps_bytes:
        wanted = [Cell(name, target, heap) for name in sorted(names) for target in targets]
        rows = [row for cell in wanted for row in found[cell]]
        missing = 2 * sum(not found[cell] for cell in wanted)
        others = [replace(cell, loop_facts_only=True) for cell in wanted]
        loops_only = {(row.cell, row.operation): row for cell in others for row in found[cell]}
        for unit in UNITS:
            print(f"\n## {heap:,} bytes, in {unit}: {len(rows)} rows, {missing} not computed\n")
            print("\n".join((*summary(rows, loops_only, unit), "", *table(rows, loops_only, unit))))
        for row in rows:
            if row.why_none:
                print(f"\n{row.cell.allocator}, {row.cell.target}, {row.operation}: {row.why_none}")
    print(f"\n{older} rows are of an older version of the program")


def compute_missing(chosen: Sequence[Cell], *, leave_older: bool = False) -> int:
    """Compute what is missing of ``chosen``, then what an older program has computed; the exit code."""
    missing = [cell for cell in chosen if not stored(cell)]
    kept = () if leave_older else chosen
    older = [cell for cell in kept if any(row.program != program_digest() for row in stored(cell))]
    code = 0
    for cell in (*missing, *older):
        try:
            rows = list(compute(cell))
        except WcetProbeError as error:
            print(cell, error, file=sys.stderr, flush=True)
            code = error.exit_code
            continue
        store(cell, rows)
        for row in rows:
            print(cell, row.operation, row.bounds, row.witnesses, row.why_none, file=sys.stderr, flush=True)
    return code


def measure_witnesses(chosen: Sequence[Cell]) -> int:
    """Measure the witnesses of those of ``chosen`` whose bounds are kept with all facts; the exit code."""
    kept, code = kept_rows(), 0
    for cell in chosen:
        if cell in kept and not cell.loop_facts_only:
            try:
                store(cell, list(witnesses_anew(kept[cell])))
            except WcetProbeError as error:
                print(cell, error, file=sys.stderr, flush=True)
                code = error.exit_code
    return code


def main() -> int:
    """Compute what is missing, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--heap", type=parse_size, action="append", help="of these heaps only, such as 64KiB")
    parser.add_argument("--target", action="append", choices=target_names(), help="of these targets only")
    parser.add_argument("--facts", choices=("all", "loops"), help="with all facts, or with loop facts only")
    parser.add_argument("--missing", action="store_true", help="leave what an older version of the program computed")
    parser.add_argument(
        "--witnesses", action="store_true", help="measure the witnesses of kept rows, and prove nothing"
    )
    parser.add_argument("--keep", action="store_true", help="write what is in the store into bench/bounds.csv")
    parser.add_argument("--print", action="store_true", dest="is_print_only", help="compute nothing")
    parser.add_argument("--store", type=Path, default=bound_rows.STORE, help="where rows are kept")
    parser.add_argument("allocators", nargs="*", default=allocator_names())
    options = parser.parse_args()
    bound_rows.STORE = options.store
    chosen = (options.allocators, options.target or TARGETS, options.heap or HEAPS_BYTES)
    code = 0
    if not options.is_print_only:
        asked = {"all": (False,), "loops": (True,), None: (False, True)}[options.facts]
        wanted = [cell for cell in cells(*chosen) if cell.loop_facts_only in asked]
        code = measure_witnesses(wanted) if options.witnesses else compute_missing(wanted, leave_older=options.missing)
    if options.keep:
        keep(row for cell in cells(*chosen) for row in stored(cell))
    print_tables(*chosen)
    return code


if __name__ == "__main__":
    sys.exit(main())
