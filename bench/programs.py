"""Programs that nobody here wrote: bound, observed and their ratio, for a folder of linked ELF files.

Run it from the project's folder with ``python -m bench.programs FOLDER --target NAME [--source DIR]``.
Each ELF file of the folder is one program; ``--entry`` is the name of its analysed function, where ``{}`` stands for
the name of the file. What it is given as input is what ``--before`` (a function of no arguments) leaves.

Each program has a process of its own, with limits: its CPU seconds and its memory are measured, and one that does not
end costs no more than its limit. What a row says of both, and the limit of memory, are of the proof without the
observed run. The table is Markdown; rows come in the order of the names. With ``--check`` the bound is held against
the binary by the independent checker, as by ``wcet-probe verify --image``, in as many CPU seconds again; the last
column says *in full*, or names the lines that are not checked.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median

from wcet_probe.answer.firmware.firmware import (
    ASSUMABLE,
    FirmwareBound,
    FirmwareRequest,
    bound_firmware,
    file_bytes,
)
from wcet_probe.answer.firmware.run_script import parse_script
from wcet_probe.build.image import read_image
from wcet_probe.catalog.lookup import load_target, target_names
from wcet_probe.certificate.facts.findings import OK
from wcet_probe.emu.layout import first_stack_pointer
from wcet_probe.emu.machine import Machine
from wcet_probe.errors import AnalysisError, UsageError, VerificationError, WcetProbeError
from wcet_probe.evidence.checking import check_file_result
from wcet_probe.evidence.said import AUTHORS_WORDS
from wcet_probe.isa.timing import costs
from wcet_probe.model.scenario import InitialCache
from wcet_probe.output_files import write_whole
from wcet_probe.reports.formats.bound_document import firmware_document

_MOST_INSTRUCTIONS = 200_000_000
"""An observed run of so many is given up."""
_MIB = 1 << 20
_IN_FULL = "in full"


@dataclass(frozen=True, slots=True)
class Row:
    """One program: ``verdict`` or why there is none; counts are of one call, None where there is none.

    ``assumed`` are those of `ASSUMABLE` that the bound rests on, with a comma between. ``checked`` says what the
    independent checker finds, where it was asked.
    """

    name: str
    verdict: str
    bound: int | None = None
    observed: int | None = None
    bound_cycles: int | None = None
    observed_cycles: int | None = None
    blocks: int | None = None
    cpu_seconds: float = 0.0
    memory_mib: int = 0
    why: str = ""
    assumed: str = ""
    checked: str = ""


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of each program; ``before`` is called first where the program has it.

    With ``initial_data`` the bound is one for the memory that this leaves; ``assume`` is as of `FirmwareRequest`. With
    ``knows_stack`` it is one for the stack pointer of the run. With ``check`` the checker is asked as well.
    """

    elf: Path
    entry: str
    before: str
    target: str
    sources: tuple[Path, ...]
    cpu_seconds: int
    memory_mib: int
    initial_data: bool = False
    assume: tuple[str, ...] = ()
    knows_stack: bool = False
    check: bool = False


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; 1 where a run was above its bound, else 0."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="with ELF files")
    parser.add_argument("--target", default="cortex-m4", choices=target_names())
    parser.add_argument("--entry", default="{}_main", help="analysed function; {} is the name of the file")
    parser.add_argument("--before", default="{}_init", help="function that makes its input; {} as of --entry")
    parser.add_argument("--source", type=Path, action="append", default=[], help="sources; repeatable")
    parser.add_argument("--seconds", type=int, default=60, help="CPU seconds for each program")
    parser.add_argument("--memory", type=int, default=2048, help="MiB for each program")
    parser.add_argument("--assume", action="append", default=[], choices=ASSUMABLE, help="as of wcet-probe bound")
    parser.add_argument("--stack-pointer", action="store_true", help="bounds for the stack pointer of the run")
    parser.add_argument("--check", action="store_true", help="hold each bound against its binary by the checker")
    parser.add_argument("--json", action="store_true", help="a line of JSON for each program instead")
    parser.add_argument("programs", nargs="*", help="names of files without .elf; all if none is given")
    options = parser.parse_intermixed_args(arguments)
    files = sorted(options.folder.glob("*.elf"))
    files = [elf for elf in files if not options.programs or elf.stem in options.programs]
    if not files:
        raise UsageError(f"{options.folder} has no such ELF file; name a folder with files that end in .elf.")
    rows = []
    for elf in files:
        names = (text.replace("{}", elf.stem) for text in (options.entry, options.before))
        asked = Question(elf, *names, options.target, tuple(options.source), options.seconds, options.memory)
        row = ask(replace(asked, assume=tuple(options.assume), knows_stack=options.stack_pointer, check=options.check))
        rows.append(row)
        if options.json:
            print(json.dumps(asdict(row)), flush=True)
        else:
            print(f"{row.name}: {row.verdict}", file=sys.stderr, flush=True)
    if not options.json:
        print("\n".join(table(rows)))
    return int(any(row.verdict == "UNSOUND" for row in rows))


def ask(question: Question) -> Row:
    """Bound and observe one program in a process of its own."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_answer, args=(question, theirs))
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    process.start()
    theirs.close()
    row = None
    try:
        row = ours.recv()
        if question.check and row.bound is not None:
            row = replace(row, checked="no answer")
            row = replace(row, checked=ours.recv())
    except EOFError:
        pass
    process.join()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return row or Row(question.elf.stem, "DID NOT END", cpu_seconds=round(used, 1))


def _answer(question: Question, pipe: multiprocessing.connection.Connection) -> None:
    limit = question.memory_mib * _MIB
    _limit_seconds(question)
    _limit_addresses(2 * limit)
    row, found = _row(question)
    pipe.send(row)
    if question.check and found is not None:
        _limit_seconds(question)
        pipe.send(_checked(found, question))


def _limit_seconds(question: Question) -> None:
    """Let this process end after the seconds of ``question`` from now on."""
    resource.setrlimit(resource.RLIMIT_CPU, (int(time.process_time()) + question.cpu_seconds, resource.RLIM_INFINITY))


def _limit_addresses(most: int) -> None:
    """Let this process have ``most`` bytes of addresses, as it may itself allow more again."""
    resource.setrlimit(resource.RLIMIT_AS, (most, resource.getrlimit(resource.RLIMIT_AS)[1]))


def _row(question: Question) -> tuple[Row, FirmwareBound | None]:
    """What is told of a program, and its bound, where there is one that is told."""
    name, target = question.elf.stem, load_target(question.target)
    try:
        after = parse_script(f"{question.before}()", "--before") if question.initial_data else ()
        asked = FirmwareRequest(question.elf, question.entry, target, (), question.sources, {})
        if question.knows_stack:
            image = read_image(file_bytes(question.elf), target.isa, compiler="")
            asked = replace(asked, stack_pointer=first_stack_pointer(image, target))
        found = bound_firmware(replace(asked, initial_data=question.initial_data, after=after, assume=question.assume))
    except AnalysisError as error:
        return Row(name, "UNBOUNDED", cpu_seconds=_cpu(), memory_mib=_memory(), why=str(error)), None
    except WcetProbeError as error:
        return Row(name, "ERROR", cpu_seconds=_cpu(), memory_mib=_memory(), why=str(error)), None
    except MemoryError:
        return Row(name, "DID NOT END", cpu_seconds=_cpu(), memory_mib=question.memory_mib, why="memory"), None
    bound, used = found.bound, (_cpu(), _memory())
    if used[1] > question.memory_mib:
        return Row(name, "DID NOT END", cpu_seconds=used[0], memory_mib=used[1], why="memory"), None
    # The limit is one for the proof. The emulator reserves a GiB of addresses, of which it uses little.
    _limit_addresses(resource.getrlimit(resource.RLIMIT_AS)[1])
    verdict, why, observed, cycles = "BOUNDED_BY_TYPE" if bound.by_type else "BOUNDED", "", None, None
    try:
        charged = costs(found.instructions, target)
        # Not less for a small bound: its input may take more to make, and a run that was stopped tells nothing.
        observing = Machine(
            found.image, target, found.instructions, charged, 4096, most_instructions=_MOST_INSTRUCTIONS
        )
        with observing as machine:
            if question.before in found.image.symbols:
                machine.count(question.before, ())
            run = machine.measure(question.entry, (), InitialCache.DIRTY)
        observed, cycles = run.instructions, run.cycles
    except WcetProbeError as error:
        why = str(error)
    if (observed or 0) > bound.instructions or (cycles or 0) > bound.cycles:
        verdict = "UNSOUND"
    counts = bound.instructions, observed, bound.cycles, cycles, bound.blocks
    assumed = ",".join(one.id for one in bound.assumptions if one.id in ASSUMABLE)
    return Row(name, verdict, *counts, *used, why, assumed), found


def _checked(found: FirmwareBound, question: Question) -> str:
    """What the checker finds of the bound: that it is checked in full, the lines that are not, or why it is refused."""
    document = json.loads(json.dumps(firmware_document(found)))
    text, elf = json.dumps(document).encode(), file_bytes(question.elf)
    try:
        checked, others = check_file_result(document, text, elf, source_dirs=question.sources)
    except VerificationError as error:
        return f"refused: {error}"
    open_lines = (one.check for one in (*checked.findings, *others) if one.verdict != OK and one.check != AUTHORS_WORDS)
    return ", ".join(open_lines) or _IN_FULL


def _cpu() -> float:
    return round(time.process_time(), 1)


def _memory() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def table(rows: Sequence[Row]) -> Iterator[str]:
    """The table in Markdown, and a summary."""
    checked = [row for row in rows if row.checked]
    yield f"| program | verdict | bound | observed | ratio | in cycles | CPU s | MiB |{' checked |' if checked else ''}"
    yield f"|---|---|--:|--:|--:|--:|--:|--:|{'---|' if checked else ''}"
    for row in rows:
        pairs = (row.bound, row.observed), (row.bound_cycles, row.observed_cycles)
        # What a type is wide says nothing of how near the bound is.
        ratios = [_ratio(*pair) if row.verdict != "BOUNDED_BY_TYPE" else "" for pair in pairs]
        cells = _number(row.bound), _number(row.observed), *ratios, f"{row.cpu_seconds:.1f}", str(row.memory_mib)
        yield f"| {row.name} | {row.verdict} | {' | '.join((*cells, row.checked) if checked else cells)} |"
    bounded = [row for row in rows if row.verdict == "BOUNDED"]
    near = [row.bound / row.observed for row in bounded if row.bound and row.observed]
    middle = f", median ratio {median(near):.3f}" if near else ""
    unsound = sum(row.verdict == "UNSOUND" for row in rows)
    yield f"\n{len(bounded)} of {len(rows)} bounded{middle}; {unsound} above their bounds."
    if checked:
        yield f"{sum(row.checked == _IN_FULL for row in checked)} of {len(checked)} bounds are checked in full."


def put_table(page: Path, name: str, text: str) -> None:
    """Write ``text`` into ``page`` where the table ``name`` stands.

    Raises:
        UsageError: the page has no such place.
    """
    start, end, content = f"<!-- table: {name} -->\n", "<!-- end -->", page.read_text("utf-8")
    before, found, rest = content.partition(start)
    if not found or end not in rest:
        raise UsageError(f"{page} has no place for it; add the lines {start.strip()} and {end}.")
    write_whole(page, f"{before}{start}\n{text}\n\n{end}{rest.partition(end)[2]}".encode())


def _number(value: int | None) -> str:
    return "" if value is None else f"{value:,}"


def _ratio(bound: int | None, observed: int | None) -> str:
    return f"{bound / observed:.3f}" if bound and observed else ""


if __name__ == "__main__":
    try:
        sys.exit(main())
    except WcetProbeError as error:
        sys.exit(f"error: {error}")
