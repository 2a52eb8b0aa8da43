"""How much of our own bounds the checker checks in full: a row for each allocator, core and operation.

Run with ``python -m bench.checks [--print | --again] [--heap SIZE] [--target NAME] [--lines] [ALLOCATOR ...]``. What
is not in ``build/checks`` yet is proved and checked, cheap allocators first; a run can be stopped and goes on where it
was. ``--again`` proves nothing: it holds the certificates that are kept against their binaries once more, which shows
what a changed rule of the checker does to the same certificates. ``--print`` only prints. The table counts the lines of
the answer that are ok and those that are *not checked*, and names these; ``--lines`` says what each of them says.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench.bounds import DEAR
from wcet_probe.answer.bounds.proving import operation_request
from wcet_probe.build.program import Program, load_program
from wcet_probe.catalog.lookup import allocator_names, load_allocator, load_target, target_names
from wcet_probe.certificate.check import check_bound
from wcet_probe.certificate.facts.findings import OK, Finding
from wcet_probe.certificate.kernel.verify import bound_digest
from wcet_probe.cli.run import DEFAULT_COMPILER
from wcet_probe.config import cache_dir, load_config
from wcet_probe.errors import AnalysisError, VerificationError
from wcet_probe.evidence.checking import allocator_binary
from wcet_probe.output_files import write_whole
from wcet_probe.sizes import parse_size

ROOT = Path(__file__).parents[1]
STORE = ROOT / "build" / "checks"
TARGETS = ("cortex-m4", "cortex-m7", "arm926ej-s", "mpc603e")
"""One core without caches, and one for each kind of cache and instruction set."""
OPERATIONS = ("malloc", "free")
HEAP_BYTES = 5000


@dataclass(frozen=True, slots=True)
class Question:
    """Which bound: of an operation of an allocator on a core, for a heap."""

    allocator: str
    target: str
    operation: str
    heap_bytes: int

    @property
    def file(self) -> Path:
        """Where its certificate and what was found of it are kept."""
        return STORE / f"{self.allocator.replace(':', '+')}-{self.target}-{self.operation}-{self.heap_bytes}.json"


@dataclass(frozen=True, slots=True)
class Row:
    """What was found of a bound.

    Attributes:
        findings: the lines of the answer; none where there is no bound, or it is refused.
        why_none: then why, in words.
        certificate_bytes: of all units.
        check_cpu_seconds: what the check took.
        checker: digest of the checker that found it.
    """

    findings: tuple[Finding, ...]
    why_none: str
    certificate_bytes: int
    check_cpu_seconds: float
    checker: str

    @property
    def open(self) -> tuple[Finding, ...]:
        """The lines that say *not checked*."""
        return tuple(one for one in self.findings if one.verdict != OK)

    @property
    def is_full(self) -> bool:
        """Whether all of the bound is checked, but for author's words, which stand beside it."""
        return bool(self.findings) and not self.open


def checker_digest() -> str:
    """Of the sources of the checker."""
    digest = hashlib.sha256()
    for path in sorted((ROOT / "wcet_probe" / "certificate").rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def questions(names: Sequence[str], targets: Sequence[str], heap_bytes: int) -> Iterator[Question]:
    """What is asked, the cheap allocators first."""
    for name in sorted(names, key=lambda name: (DEAR.index(name) + 1 if name in DEAR else 0, name)):
        for target in targets:
            for operation in OPERATIONS:
                yield Question(name, target, operation, heap_bytes)


def stored(question: Question) -> Row | None:
    """What is kept of ``question``."""
    if not question.file.is_file():
        return None
    row = json.loads(question.file.read_text("utf-8"))["row"]
    return Row(**{**row, "findings": tuple(Finding(**one) for one in row["findings"])})


def compute(question: Question) -> Row:
    """Prove the bound, check it, and keep both."""
    program = program_of(question)
    try:
        # Of the modules of the proof nothing is loaded where certificates are only checked again.
        from wcet_probe.analyzer.bound import prove  # noqa: PLC0415
        from wcet_probe.reports.formats.bound_document import bound_section  # noqa: PLC0415

        section = bound_section(prove(operation_request(program, question.operation, question.heap_bytes)))
    except AnalysisError as error:
        return _keep(question, {}, Row((), f"no bound: {error}", 0, 0.0, checker_digest()))
    document = json.loads(json.dumps({"image": {"sha256": program.image.sha256}, "bound": section}))
    document["bound"]["digest"] = bound_digest(document["bound"])
    return _keep(question, document, checked(question, document, program))


def check_again(question: Question) -> Row | None:
    """Hold the certificate that is kept of ``question`` against its binary once more; None where none is kept."""
    if not question.file.is_file():
        return None
    document = json.loads(question.file.read_text("utf-8"))["document"]
    return _keep(question, document, checked(question, document, program_of(question))) if document else None


def checked(question: Question, document: Mapping[str, Any], program: Program) -> Row:
    """What the checker finds of ``document``."""
    size, start = sum(map(len, document["bound"]["certificates"])), time.process_time()
    findings, why_none = tuple[Finding, ...](), ""
    try:
        findings = check_bound(document, allocator_binary(program, question.heap_bytes)).findings
    except VerificationError as error:
        why_none = f"refused: {error}"
    return Row(findings, why_none, size, round(time.process_time() - start, 2), checker_digest())


def program_of(question: Question) -> Program:
    """The binary that a bound is of."""
    home = cache_dir(load_config(Path.cwd()))
    allocator, target = load_allocator(question.allocator), load_target(question.target)
    return load_program(allocator, target, DEFAULT_COMPILER, home)


def _keep(question: Question, document: Mapping[str, Any], row: Row) -> Row:
    write_whole(question.file, json.dumps({"row": asdict(row), "document": document}) + "\n")
    return row


def table(rows: Sequence[tuple[Question, Row | None]], *, with_lines: bool) -> Iterator[str]:
    """The rows in aligned columns, then how many are checked in full by core, and what is open by how many."""
    yield f"{'allocator':16}{'core':12}{'call':8}{'ok':>3}{'open':>6}  not checked"
    by_target: dict[str, list[Row]] = {}
    causes = Counter[str]()
    for question, row in rows:
        start = f"{question.allocator:16}{question.target:12}{question.operation:8}"
        if row is None:
            yield f"{start}  -     -  not computed"
            continue
        by_target.setdefault(question.target, []).append(row)
        causes.update({one.check for one in row.open})
        words = row.why_none or ", ".join(one.check for one in row.open)
        yield f"{start}{len(row.findings) - len(row.open):3}{len(row.open):6}  {words}".rstrip()
        if with_lines:
            yield from (f"{'':47}{one.check}: {one.found}" for one in row.open)
    yield ""
    for target, own in by_target.items():
        seconds, size = sum(row.check_cpu_seconds for row in own), sum(row.certificate_bytes for row in own)
        yield (
            f"{target}: {sum(row.is_full for row in own)} of {len(own)} in full; "
            f"{size >> 10:,} KiB of certificates, {seconds:.0f} CPU seconds of checking"
        )
    yield from (f"{count:4} bounds with {check!r} open" for check, count in causes.most_common())
    older = sum(row.checker != checker_digest() for _, row in rows if row)
    if older:
        yield f"{older} rows are of another version of the checker; --again repeats them"


def main() -> int:
    """Compute what is missing, or check again, and print; exit code 1 where a bound of our own is refused."""
    parser = argparse.ArgumentParser(prog="python -m bench.checks", description=__doc__)
    parser.add_argument("allocators", nargs="*", metavar="ALLOCATOR")
    parser.add_argument("--heap", default=str(HEAP_BYTES), metavar="SIZE")
    parser.add_argument("--target", action="append", choices=[*target_names()])
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--print", action="store_true", help="only print what is kept")
    how.add_argument("--again", action="store_true", help="check kept certificates again, and prove nothing")
    parser.add_argument("--lines", action="store_true", help="what each line that is not checked says")
    asked = parser.parse_args()
    names = asked.allocators or [name for name in allocator_names() if ":" not in name]
    chosen = list(questions(names, asked.target or TARGETS, parse_size(asked.heap)))
    for number, question in enumerate(chosen):
        if asked.print or (not asked.again and stored(question)):
            continue
        sys.stderr.write(f"{number + 1} of {len(chosen)}: {question.file.stem}\n")
        _ = check_again(question) if asked.again else compute(question)
    rows = [(question, stored(question)) for question in chosen]
    print("\n".join(table(rows, with_lines=asked.lines)))
    return int(any(row is not None and row.why_none.startswith("refused") for _, row in rows))


if __name__ == "__main__":
    sys.exit(main())
