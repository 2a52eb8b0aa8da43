"""Rows of the tables of bounds: how each is computed, and the store that keeps what is computed.

A row is a bound with all facts and the dearest known call, or a bound with loop facts only, of one operation of one
allocator on one target and heap, in both units. It is kept under a digest of what it was made from: the allocator's
files, the target's file, the heap, and the program. A row that was made by another version of the program is kept until
it is computed again, and told from the others.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

from platformdirs import user_cache_dir

from wcet_probe.answer.bench import ProbeRequest
from wcet_probe.answer.fact_effects import with_loop_facts_only
from wcet_probe.answer.probe import observe
from wcet_probe.answer.proving import operation_request, prove_operation
from wcet_probe.build.program import Program, load_program
from wcet_probe.catalog.lookup import load_allocator, load_target
from wcet_probe.catalog.own_allocator import FOUND
from wcet_probe.errors import AnalysisError, ContradictionError, WcetProbeError
from wcet_probe.model.proof import Bound
from wcet_probe.output_files import write_whole

ROOT = Path(__file__).parents[1]
STORE = ROOT / "build" / "bounds"
SCENARIOS = {"malloc": "worst-alloc", "free": "worst-free"}
PROGRAM = ("analyzer", "emu", "scenarios", *(f"wcet_probe/{name}" for name in ("answer", "build", "isa", "model")))
"""What of the program a row is made by."""


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
    """

    cell: Cell
    operation: str
    heap_bytes: int
    bounds: dict[str, int]
    witnesses: dict[str, int]
    why_none: str
    program: str


def _digest(files: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for path in sorted(files):
        digest.update(f"{path.relative_to(ROOT).as_posix()}\n".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


@cache
def program_digest() -> str:
    """Of all sources that a row is made by."""
    folders = (ROOT / name for name in PROGRAM)
    return _digest(path for folder in folders for path in folder.rglob("*") if path.suffix in {".py", ".c", ".h"})


def _place(cell: Cell) -> Path:
    """Where the rows of ``cell`` are kept: another content of allocator or target is another place."""
    files = [ROOT / "targets" / f"{cell.target}.toml"]
    for name in cell.allocator.split(":"):
        files += [path for path in (ROOT / "allocators" / name).rglob("*") if path.is_file() and _is_of(cell, path)]
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
        request = ProbeRequest(
            allocator, target, scenario, heap_bytes, 0, None, "zig",
            cross_check=False, cache_dir=cache_dir, prove=True,
        )  # fmt: skip
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
