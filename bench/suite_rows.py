"""What is kept of TACLeBench: one row for each program, core, compiler, level and what is known of memory.

The rows are in ``bench/taclebench.csv``, under version control; ``bench.suite --keep`` writes them, and
`bench.suite_tables` makes tables of them.
"""

from __future__ import annotations

import csv
import fcntl
import io
import os
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from statistics import median

from bench.programs import Row
from wcet_probe.output_files import write_whole

KEPT = Path(__file__).with_name("taclebench.csv")
CORES = ("cortex-m4", "cortex-m4f", "arm926ej-s", "mpc603e")
"""In the order of the tables; others come behind."""
PACKAGED = "zig"
LEVELS = ("0", "1", "2", "3", "s")


@dataclass(frozen=True, slots=True)
class Build:
    """One run of the suite: a core, a compiler's command, a level, what is known of memory at entry, if anything."""

    core: str
    compiler: str
    level: str
    known: str = ""

    @property
    def place(self) -> tuple[object, ...]:
        """Where it comes in the order of tables."""
        core = CORES.index(self.core) if self.core in CORES else len(CORES)
        return core, self.core, self.known, self.compiler != PACKAGED, self.compiler, LEVELS.index(self.level)


@dataclass(frozen=True, slots=True)
class Kept:
    """One program of a build, as it is kept.

    Attributes:
        build: which table it belongs to.
        program: its name.
        verdict: as of `bench.programs.Row`.
        assumed: ids of assumptions that were made for the bound, with a comma between.
        bound: in instructions; None where there is none.
        observed: of the run, in instructions; None where it was not observed.
        cycles_ratio: bound by run in cycles; None where one of them is missing.
        cpu_seconds: of the proof.
        memory_mib: of the proof.
        code_of: date of the code that made the row.
    """

    build: Build
    program: str
    verdict: str
    assumed: str
    bound: int | None
    observed: int | None
    cycles_ratio: float | None
    cpu_seconds: float
    memory_mib: int
    code_of: str

    @property
    def ratio(self) -> float | None:
        """Bound by run in instructions; None where one is missing, or where the bound tells a type's width only."""
        if self.bound is None or not self.observed or self.verdict == "BOUNDED_BY_TYPE":
            return None
        return self.bound / self.observed


_HEAD = (*(one.name for one in fields(Build)), *(one.name for one in fields(Kept) if one.name != "build"))


def kept_of(build: Build, row: Row, code_of: str) -> Kept:
    """What is kept of ``row``."""
    cycles = None
    if row.bound_cycles is not None and row.observed_cycles and row.verdict != "BOUNDED_BY_TYPE":
        cycles = round(row.bound_cycles / row.observed_cycles, 3)
    counts = row.bound, row.observed, cycles, row.cpu_seconds, row.memory_mib
    return Kept(build, row.name, row.verdict, row.assumed, *counts, code_of)


def read(file: Path | None = None) -> list[Kept]:
    """The rows of ``file``, in its order; none where there is no such file."""
    file = file or KEPT
    if not file.is_file():
        return []
    return [_read(line) for line in csv.DictReader(io.StringIO(file.read_text("utf-8")))]


def _read(line: dict[str, str]) -> Kept:
    build = Build(*(line[one.name] for one in fields(Build)))
    return Kept(
        build,
        line["program"],
        line["verdict"],
        line["assumed"],
        int(line["bound"]) if line["bound"] else None,
        int(line["observed"]) if line["observed"] else None,
        float(line["cycles_ratio"]) if line["cycles_ratio"] else None,
        float(line["cpu_seconds"]),
        int(line["memory_mib"]),
        line["code_of"],
    )


def keep(rows: Sequence[Kept], file: Path | None = None) -> None:
    """Write ``rows`` into ``file``, each in place of what it has of the same program and build; the others stay.

    Processes that do so at the same time wait for each other.
    """
    file = file or KEPT
    folder = os.open(file.parent, os.O_RDONLY)
    try:
        # Not the file, as it is replaced.
        fcntl.flock(folder, fcntl.LOCK_EX)
        _merge(rows, file)
    finally:
        os.close(folder)


def _merge(rows: Sequence[Kept], file: Path) -> None:
    merged = {(one.build, one.program): one for one in (*read(file), *rows)}
    order = programs(merged.values())
    ordered = sorted(merged.values(), key=lambda one: (one.build.place, order.index(one.program)))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_HEAD)
    for one in ordered:
        cells = (*astuple(one.build), *(getattr(one, name) for name in _HEAD[len(fields(Build)) :]))
        writer.writerow("" if cell is None else cell for cell in cells)
    write_whole(file, text.getvalue().encode())


def cheapest_first(rows: Sequence[Kept], names: Iterable[str]) -> list[str]:
    """``names`` by the CPU seconds of their ``rows``, in the median; those of which there is none come first."""
    cost: dict[str, list[float]] = {}
    for row in rows:
        cost.setdefault(row.program, []).append(row.cpu_seconds)
    return sorted(names, key=lambda name: median(cost.get(name, [0.0])))


def programs(rows: Iterable[Kept]) -> list[str]:
    """Names of the programs, in the order in which the rows first name them."""
    return list(dict.fromkeys(one.program for one in rows))
