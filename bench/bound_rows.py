"""Rows of the tables of bounds: how each is computed, and the store that keeps what is computed.

A row is a bound with all facts and the dearest known call, or a bound with loop facts only, of one operation of one
allocator on one target and heap, in both units. It is kept under a digest of what it was made from: the allocator's
files, the numbers of the target's file, the heap, and the program. A row that was made by another version of the
program is kept until it is computed again, and told from the others.

What pages and tests speak of is in ``bench/bounds.csv`` besides, under version control, with the digests of the program
and of the files that a bound rests on: of a row whose bound is there, the witness alone can be measured anew.
"""

from __future__ import annotations

import csv
import hashlib
import json
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path

from platformdirs import user_cache_dir

from wcet_probe.answer.bounds.proving import operation_request, prove_operation
from wcet_probe.answer.facts.fact_effects import with_loop_facts_only
from wcet_probe.answer.witness.bench import ProbeRequest
from wcet_probe.answer.witness.probe import observe
from wcet_probe.build.program import Program, load_program
from wcet_probe.catalog.lookup import load_allocator, load_target
from wcet_probe.catalog.own_allocator import FOUND
from wcet_probe.errors import AnalysisError, ContradictionError, WcetProbeError
from wcet_probe.model.allocator import Allocator
from wcet_probe.model.proof import Bound
from wcet_probe.model.target import Target
from wcet_probe.output_files import write_whole

ROOT = Path(__file__).parents[1]
STORE = ROOT / "build" / "bounds"
KEPT = Path(__file__).with_name("bounds.csv")
HEAD = (
    "allocator", "target", "heap", "facts", "operation", "heap_bytes",
    "instructions", "cycles", "witness_instructions", "witness_cycles", "program", "bounds_program", "proved_of",
)  # fmt: skip
SCENARIOS = {"malloc": "worst-alloc", "free": "worst-free"}
PROGRAM = ("analyzer", "emu", "scenarios", *(f"wcet_probe/{name}" for name in ("answer", "build", "isa", "model")))
"""What of the program a row is made by."""
PROSE = frozenset({"title", "modelling_choices", "aligned_accesses", "basis", "source", "note"})
"""What a target's file says for readers, and no row depends on."""


@dataclass(frozen=True, slots=True)
class Cell:
    """What two rows speak of, one for each operation: an allocator, a target, a heap, and which facts are used."""

    allocator: str
    target: str
    heap_bytes: int
    loop_facts_only: bool = False


@dataclass(frozen=True, slots=True)
class Row:
    """One operation of a cell.

    Attributes:
        cell: what was asked.
        operation: ``malloc`` or ``free``.
        heap_bytes: the heap of the row, the greatest multiple of the alignment that the cell's heap holds.
        bounds: proved, by unit; empty where nothing is proved.
        witnesses: of the dearest known call, by unit; empty with loop facts only.
        why_none: why a number is missing, in words.
        program: digest of the program that computed the row.
        bounds_program: of that which proved the bounds, where it is another one: then the witnesses alone are anew.
    """

    cell: Cell
    operation: str
    heap_bytes: int
    bounds: dict[str, int]
    witnesses: dict[str, int]
    why_none: str
    program: str
    bounds_program: str = ""


def _digest(files: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for path in sorted(files):
        digest.update(f"{path.relative_to(ROOT).as_posix()}\n".encode())
        digest.update(_numbers(path) if path.parent == ROOT / "targets" else path.read_bytes())
    return digest.hexdigest()[:16]


def _numbers(path: Path) -> bytes:
    """What a target's file says of the machine: where a number is from changes no row."""
    return json.dumps(_without_prose(tomllib.loads(path.read_text("utf-8")))).encode()


def _without_prose(told: object) -> object:
    if isinstance(told, dict):
        return {key: _without_prose(one) for key, one in told.items() if key not in PROSE}
    return [_without_prose(one) for one in told] if isinstance(told, list) else told


@cache
def program_digest() -> str:
    """Of all sources that a row is made by."""
    folders = (ROOT / name for name in PROGRAM)
    return _digest(path for folder in folders for path in folder.rglob("*") if path.suffix in {".py", ".c", ".h"})


def _files(cell: Cell) -> list[Path]:
    """The files of target and allocator that rows of ``cell`` are made from, those that it shares with others too."""
    files = {ROOT / "targets" / f"{cell.target}.toml"}
    for name in cell.allocator.split(":"):
        home = ROOT / "allocators" / name
        files |= {path for path in home.rglob("*") if path.is_file() and path.suffix != ".md" and _is_of(cell, path)}
        shared = tomllib.loads((home / "manifest.toml").read_text("utf-8")).get("common", ())
        files |= {ROOT / "allocators" / "common" / file for file in shared}
    return sorted(files)


def proved_of(cell: Cell) -> str:
    """Digest of the files that the bounds of ``cell`` rest on: all but states that searches found."""
    return _digest(path for path in _files(cell) if path.parent.name != FOUND)


def _place(cell: Cell) -> Path:
    """Where the rows of ``cell`` are kept: another content of allocator or target is another place."""
    files = _files(cell)
    facts = "loops" if cell.loop_facts_only else "all"
    name = f"{cell.allocator.replace(':', '+')}-{cell.target}-{cell.heap_bytes}-{facts}-{_digest(files)}.json"
    return STORE / name


def _is_of(cell: Cell, path: Path) -> bool:
    """Whether a file of the allocator tells of ``cell``: a state that a search found does on its own heap alone."""
    return path.parent.name != FOUND or f"-{cell.heap_bytes}-" in path.name


def stored(cell: Cell) -> list[Row]:
    """The rows of ``cell``; none where they were not computed."""
    place = _place(cell)
    if not place.is_file():
        return []
    return [Row(**{**row, "cell": Cell(**row["cell"])}) for row in json.loads(place.read_text("utf-8"))]


def store(cell: Cell, rows: Iterable[Row]) -> None:
    """Keep ``rows``, in a file of their own."""
    write_whole(_place(cell), json.dumps([asdict(row) for row in rows], indent=1) + "\n")


def kept_rows(*, of_any_files: bool = False) -> dict[Cell, list[Row]]:
    """What is in ``bench/bounds.csv``; unless ``of_any_files``, of files as they are now: a bound of others is none."""
    found: dict[Cell, list[Row]] = {}
    for cell, line in _kept_lines():
        if of_any_files or line["proved_of"] == proved_of(cell):
            bounds = {unit: int(line[unit]) for unit in ("instructions", "cycles") if line[unit]}
            witnesses = {unit: int(most) for unit in bounds if (most := line[f"witness_{unit}"])}
            programs = line["program"], line["bounds_program"]
            row = Row(cell, line["operation"], int(line["heap_bytes"]), bounds, witnesses, "", *programs)
            found.setdefault(cell, []).append(row)
    return found


def keep(rows: Iterable[Row]) -> None:
    """Write ``rows`` into ``bench/bounds.csv``, in place of what it has of their cells; the other lines stay."""
    made = _by_cell(rows)
    lines = [(cell, [*line.values()]) for cell, line in _kept_lines() if cell not in made]
    for cell, own in made.items():
        for row in own:
            numbers = (of.get(unit, "") for of in (row.bounds, row.witnesses) for unit in ("instructions", "cycles"))
            where = (cell.allocator, cell.target, cell.heap_bytes, "loops" if cell.loop_facts_only else "all")
            told = (row.program, row.bounds_program, proved_of(cell))
            lines.append((cell, [*map(str, (*where, row.operation, row.heap_bytes, *numbers, *told))]))
    lines.sort(key=lambda one: (one[0].heap_bytes, one[0].loop_facts_only, one[0].allocator, one[0].target))
    with KEPT.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows((HEAD, *(line for _, line in lines)))


def _kept_lines() -> list[tuple[Cell, dict[str, str]]]:
    """The lines of ``bench/bounds.csv``, of whatever files, and their cells; none where there is no such file."""
    if not KEPT.exists():
        return []
    with KEPT.open(encoding="utf-8", newline="") as file:
        return [
            (Cell(line["allocator"], line["target"], int(line["heap"]), line["facts"] == "loops"), line)
            for line in csv.DictReader(file)
        ]


def _by_cell(rows: Iterable[Row]) -> dict[Cell, list[Row]]:
    found: dict[Cell, list[Row]] = {}
    for row in rows:
        found.setdefault(row.cell, []).append(row)
    return found


def witnesses_anew(rows: Iterable[Row]) -> Iterator[Row]:
    """``rows`` with the dearest calls of the states as they are, and the bounds that they have.

    Raises:
        ContradictionError: a call is dearer than the bound.
    """
    for row in rows:
        allocator, target = load_allocator(row.cell.allocator), load_target(row.cell.target)
        request = _request(allocator, target, SCENARIOS[row.operation], row.heap_bytes, prove=False)
        found = {unit: witness.value(unit) for unit, witness in observe(request).witnesses.items()}
        _check(row, found)
        yield replace(row, witnesses=found, program=program_digest(), bounds_program=row.bounds_program or row.program)


def _check(row: Row, witnesses: Mapping[str, int]) -> None:
    exceeded = [unit for unit, bound in row.bounds.items() if witnesses[unit] > bound]
    if exceeded:
        message = (
            f"CONTRADICTED: {row.cell.allocator} took {witnesses[exceeded[0]]:,} {exceeded[0]} in {row.operation} on "
            f"{row.cell.target}, and at most {row.bounds[exceeded[0]]:,} were proved; compute the row anew."
        )
        raise ContradictionError(message)


def compute(cell: Cell) -> Iterator[Row]:
    """The rows of ``cell``.

    Raises:
        ContradictionError: a run exceeds what is proved or claimed.
    """
    allocator = load_allocator(cell.allocator)
    target = load_target(cell.target)
    heap_bytes = cell.heap_bytes // allocator.alignment_bytes * allocator.alignment_bytes
    cache_dir = Path(user_cache_dir("wcet-probe"))
    program = load_program(allocator, target, "zig", cache_dir)
    for operation, scenario in SCENARIOS.items():
        if cell.loop_facts_only:
            yield Row(cell, operation, heap_bytes, *_loops_only(program, operation, heap_bytes), program_digest())
            continue
        request = _request(allocator, target, scenario, heap_bytes, prove=True)
        bounds: dict[str, int] = {}
        try:
            report = observe(request, proving=_proved)
        except ContradictionError:
            raise
        except WcetProbeError as error:
            yield Row(cell, operation, heap_bytes, {}, {}, str(error), program_digest())
            continue
        if report.bound:
            bounds = {"instructions": report.bound.instructions, "cycles": report.bound.cycles}
        witnesses = {unit: witness.value(unit) for unit, witness in report.witnesses.items()}
        yield Row(cell, operation, heap_bytes, bounds, witnesses, report.no_bound, program_digest())
    _remembered.clear()


def _request(allocator: Allocator, target: Target, scenario: str, heap_bytes: int, *, prove: bool) -> ProbeRequest:
    cache_dir = Path(user_cache_dir("wcet-probe"))
    return ProbeRequest(
        allocator, target, scenario, heap_bytes, 0, None, "zig", cross_check=False, cache_dir=cache_dir, prove=prove
    )


_remembered: dict[tuple[str, int], Bound | AnalysisError] = {}


def _proved(program: Program, operation: str, heap_bytes: int) -> Bound:
    """As `prove_operation`; both scenarios of a cell ask for both bounds, and each is proved once."""
    if (operation, heap_bytes) not in _remembered:
        try:
            _remembered[operation, heap_bytes] = prove_operation(program, operation, heap_bytes)
        except AnalysisError as error:
            _remembered[operation, heap_bytes] = error
    found = _remembered[operation, heap_bytes]
    if isinstance(found, AnalysisError):
        raise found
    return found


def _loops_only(program: Program, operation: str, heap_bytes: int) -> tuple[dict[str, int], dict[str, int], str]:
    try:
        found = with_loop_facts_only(operation_request(program, operation, heap_bytes))
    except WcetProbeError as error:
        return {}, {}, str(error)
    if found is None:
        return {}, {}, "nothing is proved with loop facts only"
    return {"instructions": found.instructions, "cycles": found.cycles}, {}, ""
