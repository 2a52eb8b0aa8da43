"""What compilers make of small functions: which are bounded, which want a fact, which are refused, for a folder of C.

Run it from the project's folder with ``python -m bench.idioms FOLDER``. Each C file of FOLDER is built for each of
``--target``, by each of ``--cc`` at each of ``--level``; each of its functions that others can call is bounded, and run
with some arguments, each run held against the bound. A compiler that is not installed or does not build for a core is
left out, which is told. With ``--page`` the tables replace what stands in that file between
``<!-- table: idioms NAME -->`` and ``<!-- end -->``, for each NAME.c.

A cell has a letter for each level: ``b`` bounded, ``t`` by the width of a type only, ``f`` where a fact is asked for,
``r`` refused, ``-`` where the compiler has no such function, ``U`` where a run is above its bound. What is asked and
what is refused stands below, in the words of the tool.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from bench.programs import put_table
from bench.routines import CompileError, call, routines
from bench.suite import FAMILY_FLAGS, FLAGS, SCRIPT
from wcet_probe.analyzer.bound import prove
from wcet_probe.analyzer.values.properties.recursion import UnboundedRecursionError
from wcet_probe.answer.firmware.firmware import FirmwareRequest, ReadFirmware, read_firmware
from wcet_probe.answer.witness.contradiction import check_counts, check_loops
from wcet_probe.build.toolchain import Toolchain, find_toolchain
from wcet_probe.catalog.lookup import load_target
from wcet_probe.catalog.resources import folder
from wcet_probe.emu.machine import Machine
from wcet_probe.errors import AnalysisError, BuildError, ContradictionError, EmulationError, WcetProbeError
from wcet_probe.model.proof import Bound
from wcet_probe.model.scenario import InitialCache
from wcet_probe.model.target import Target
from wcet_probe.output_files import write_whole

_TARGETS = ("cortex-m4", "arm926ej-s", "mpc603e")
_COMPILERS = ("zig", "arm-none-eabi-gcc", "powerpc-linux-gnu-gcc")
_RUNS = 8
_HANGS = 1_000_000
"""A run of so many instructions is given up."""
_LETTERS = {"bounded": "b", "by type": "t", "fact": "f", "refused": "r", "UNSOUND": "U"}


@dataclass(frozen=True, slots=True)
class _Build:
    """How files are made: for which core, by what, at which level, where."""

    target: Target
    toolchain: Toolchain
    compiler: str
    level: str
    place: Path


@dataclass(frozen=True, slots=True)
class Answer:
    """What is said of one function in one build: ``answer`` is one of `_LETTERS`, ``observed`` the dearest run."""

    file: str
    function: str
    target: str
    compiler: str
    level: str
    answer: str
    bound: int | None = None
    observed: int | None = None
    why: str = ""


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the tables; 1 where a run was above its bound, else 0."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="with C files")
    parser.add_argument("--target", action="append", help=f"repeatable; default: {' '.join(_TARGETS)}")
    parser.add_argument("--cc", action="append", help=f"repeatable; default: {' '.join(_COMPILERS)}")
    parser.add_argument("--level", action="append", choices=("0", "1", "2", "3", "s"), help="default: 1 2 s")
    parser.add_argument("--seconds", type=int, default=20, help="CPU seconds for each function")
    parser.add_argument("--build", type=Path, default=Path("build/idioms"), help="where ELF files are made")
    parser.add_argument("--page", type=Path, help="a page with places for the tables")
    parser.add_argument("--json", type=Path, help="answers that are there already are not computed again")
    parser.add_argument("files", nargs="*", help="names of files without .c; all if none is given")
    options = parser.parse_intermixed_args(arguments)
    answers = _known(options.json)
    levels = options.level or ["1", "2", "s"]
    files = [one for one in sorted(options.folder.glob("*.c")) if not options.files or one.stem in options.files]
    for target in map(load_target, options.target or _TARGETS):
        for compiler in options.cc or _COMPILERS:
            try:
                toolchain = find_toolchain(compiler, target)
            except BuildError:
                continue  # it builds for other cores, or is not installed
            for level in levels:
                for file in files:
                    key = file.stem, target.name, compiler, level
                    if not any((one.file, one.target, one.compiler, one.level) == key for one in answers):
                        build = _Build(target, toolchain, compiler, level, options.build)
                        answers += _answers(file, build, options.seconds)
                        if options.json:
                            lines = (json.dumps(asdict(one)) + "\n" for one in answers)
                            write_whole(options.json, "".join(lines).encode())
    for file in files:
        lines = list(tables([one for one in answers if one.file == file.stem], levels))
        print("\n".join([f"{file.name}:", "", *lines]))
        if options.page:
            put_table(options.page, f"idioms {file.stem}", "\n".join(lines))
    return int(any(one.answer == "UNSOUND" for one in answers))


def _known(file: Path | None) -> list[Answer]:
    if file is None or not file.is_file():
        return []
    return [Answer(**json.loads(line)) for line in file.read_text("utf-8").splitlines()]


# ------------------------------------------------------------------------------------------------------------- answers


def _answers(file: Path, build: _Build, seconds: int) -> Iterator[Answer]:
    """What is said of each function of ``file``, each asked in a process of its own that ends in time."""
    target, compiler, level = build.target, build.compiler, build.level
    print(f"{file.stem} {target.name} {compiler} O{level}", file=sys.stderr, flush=True)
    empty = Answer(file.stem, "", target.name, compiler, level, "refused")
    try:
        elf = _built(file, build)
    except CompileError as error:
        print(f"not built: {error}", file=sys.stderr)
        return
    read = read_firmware(FirmwareRequest(elf, "", target, (), (file.parent,), {}))
    for function in read.asked.image.functions:
        where = read.asked.image.lines.find(function.address)
        is_shared = function.name in file.read_text("utf-8")
        if where is not None and Path(where[0]).name == file.name and is_shared:
            yield _asked(read, replace(empty, function=function.name), seconds)


def _asked(read: ReadFirmware, empty: Answer, seconds: int) -> Answer:
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(ours)
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
        try:
            said = json.dumps(asdict(_answer(read, empty)))
        except Exception as error:  # noqa: BLE001  a traceback is a finding as well
            said = json.dumps(asdict(replace(empty, why=f"traceback: {error!r}")))
        os.write(theirs, said.encode())
        os._exit(0)
    os.close(theirs)
    with os.fdopen(ours, "rb") as pipe:
        said = pipe.read().decode()
    os.waitpid(child, 0)
    return Answer(**json.loads(said)) if said else replace(empty, why=f"no answer within {seconds} CPU seconds.")


def _answer(read: ReadFirmware, empty: Answer) -> Answer:
    asked = replace(read.asked, entry=empty.function)
    try:
        bound = prove(asked)
    except UnboundedRecursionError as error:
        return replace(empty, answer="fact", why=str(error))
    except AnalysisError as error:
        return replace(empty, answer="fact" if error.headers or error.sites else "refused", why=str(error))
    except WcetProbeError as error:
        return replace(empty, why=str(error))
    found = replace(empty, answer="by type" if bound.by_type else "bounded", bound=bound.instructions)
    found = replace(found, why=bound.by_type[0].remedy if bound.by_type else "")
    try:
        return replace(found, observed=_observed(read, bound))
    except ContradictionError as error:
        return replace(found, answer="UNSOUND", why=str(error))


def _observed(read: ReadFirmware, bound: Bound) -> int | None:
    """The most instructions of some runs, all held against ``bound``; None where each went astray.

    Raises:
        ContradictionError: something of the bound is not true.
    """
    asked = read.asked
    parts = asked.image, asked.target, asked.instructions, asked.costs
    watched, draw, most = [claim.loop for claim in bound.loop_claims], random.Random(bound.entry), None  # noqa: S311  arguments
    for number in range(_RUNS):
        # One for each run: what a run that goes astray has left behind is not of the next one.
        with Machine(*parts, 4096, watched=watched, bounds=(bound,), most_instructions=_HANGS) as machine:
            choices = (machine.heap.base_address, 3, draw.randrange(100), draw.getrandbits(32))
            given = tuple(draw.choice(choices) if number else choices[0] for _ in range(4))
            try:
                seen = machine.measure(bound.entry, given, InitialCache.DIRTY)
            except EmulationError:
                continue
            subject = f"{bound.entry}{given}"
            check_counts(bound, seen, subject)
            check_loops(bound.loop_claims, machine.loop_counts(), asked.image, subject)
            broken = machine.broken_claim()
            if broken is not None:
                raise ContradictionError(f"CONTRADICTED: {subject}: {broken}")
            most = max(most or 0, seen.instructions)
    return most


def _built(file: Path, build: _Build) -> Path:
    """The linked program of ``file``, with what compilers call on their own.

    Raises:
        CompileError: with what the compiler says.
    """
    target, toolchain, level = build.target, build.toolchain, build.level
    here = (build.place / f"{target.name}-{Path(build.compiler).name}-O{level}").resolve()
    here.mkdir(parents=True, exist_ok=True)
    family, script, elf = toolchain.family, here / "program.ld", here / f"{file.stem}.elf"
    flags = (*target.compiler_flags[family], *FLAGS)
    own = tuple(flag.format(folder=file.parent.resolve()) for flag in FAMILY_FLAGS[family])
    plain = ("-fno-builtin", *(("-fno-tree-loop-distribute-patterns",) if family == "gcc" else ()))
    guest = (here / "runtime.c", here / "runtime.o")
    guest[0].write_bytes((folder("guest") / "runtime.c").read_bytes())
    call([*toolchain.compile, *flags, f"-O{level}", *own, "-c", file.name, "-o", str(here / "file.o")], file.parent)
    call([*toolchain.compile, *flags, "-O1", *plain, "-c", "runtime.c", "-o", str(guest[1])], here)
    memory = target.memory_map
    script.write_text(SCRIPT.format(code=memory.code.base_address, data=memory.data.base_address), "utf-8")
    last = routines(build.place, toolchain, target)
    start = () if family == "clang" else target.compiler_flags[family]
    lazily = toolchain.links_lazily or ("", "")
    objects = ["file.o", *(one for one in (lazily[0], "runtime.o", lazily[1]) if one)]
    call([*toolchain.link, *start, "-T", str(script), *objects, *last, "-o", str(elf)], here)
    return elf


# -------------------------------------------------------------------------------------------------------------- tables


def tables(answers: Sequence[Answer], levels: Sequence[str]) -> Iterator[str]:
    """The table of one file in Markdown, a summary, and what is asked and refused."""
    builds = list(dict.fromkeys((one.target, one.compiler) for one in answers))
    functions = list(dict.fromkeys(one.function for one in answers))
    found: Mapping[tuple[str, ...], Answer] = {
        (one.function, one.target, one.compiler, one.level): one for one in answers
    }
    yield f"| function | {' | '.join(f'{target}, {compiler}' for target, compiler in builds)} |"
    yield f"|---|{'---|' * len(builds)}"
    for function in functions:
        cells = (" ".join(_letter(found.get((function, *build, level))) for level in levels) for build in builds)
        yield f"| {function} | {' | '.join(cells)} |"
    bounded = sum(one.answer == "bounded" for one in answers)
    unsound = sum(one.answer == "UNSOUND" for one in answers)
    held = sum(one.observed is not None for one in answers)
    yield f"\n{bounded} of {len(answers)} bounded; runs of {held} were held against their bounds, {unsound} above.\n"
    for function in functions:
        open_ones = [one for one in answers if one.function == function and one.why]
        for answer in dict.fromkeys(one.answer for one in open_ones):
            first = next(one for one in open_ones if one.answer == answer)
            yield f"* {function}, {answer} (as by {first.compiler} for {first.target}, -O{first.level}): {first.why}"


def _letter(answer: Answer | None) -> str:
    return "-" if answer is None else _LETTERS[answer.answer]


if __name__ == "__main__":
    try:
        sys.exit(main())
    except WcetProbeError as error:
        sys.exit(f"error: {error}")
