"""TACLeBench in one command: compile the suite's programs, bound and observe each, write the table into a page.

Run it from the project's folder with ``python -m bench.suite FOLDER --target NAME --cc COMPILER --level LEVEL``, where
FOLDER is a checkout of the suite (Falk et al., "TACLeBench: A benchmark collection to support worst-case execution
time research", WCET 2016; it is not part of this project). A program is a folder with C sources below ``app``,
``kernel``, ``sequential`` or ``test``; its analysed function is ``NAME_main``, its input what ``NAME_init`` leaves.

Soft-float and division routines are those of `bench.routines`. With ``--keep`` each row goes into
``bench/taclebench.csv`` as soon as it is made, of which `bench.suite_tables` makes the tables of the page; with
``--missing`` only programs are asked that have no row there, those first that were cheap elsewhere, so that a table is
filled in slices, and by several processes. With ``--page`` the table replaces what stands in that file between
``<!-- table: TARGET COMPILER LEVEL -->`` and ``<!-- end -->``. ELF files are made below ``build/suite``; no path of the
machine is in them.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from bench.programs import Question, Row, ask, put_table, table
from bench.routines import CompileError, call, routines
from bench.suite_rows import Build, cheapest_first, keep, kept_of, read
from wcet_probe.answer.firmware.firmware import ASSUMABLE
from wcet_probe.build.toolchain import Toolchain, find_toolchain
from wcet_probe.catalog.lookup import load_target, target_names
from wcet_probe.errors import UsageError, WcetProbeError
from wcet_probe.model.target import Target
from wcet_probe.output_files import write_whole

_PARTS = ("app", "kernel", "sequential", "test")
_MIB = 1 << 20
FLAGS = (
    "-w",
    "-g",
    "-ffreestanding",
    "-ffunction-sections",
    "-fdata-sections",
    "-fno-pic",
    "-fno-unwind-tables",
    "-fno-asynchronous-unwind-tables",
)
FAMILY_FLAGS = {"clang": ("-fdebug-compilation-dir=.",), "gcc": ("-ffile-prefix-map={folder}=.",)}
SCRIPT = f"""\
MEMORY
{{{{
  code (rx) : ORIGIN = {{code:#x}}, LENGTH = {4 * _MIB}
  data (rw) : ORIGIN = {{data:#x}}, LENGTH = {_MIB // 4}
}}}}
PHDRS
{{{{
  text PT_LOAD FLAGS(5);
  data PT_LOAD FLAGS(6);
}}}}
SECTIONS
{{{{
  .text : {{{{ *(.text .text.*) }}}} > code :text
  .rodata : ALIGN(64) {{{{ *(.rodata .rodata.* .data.rel.ro .data.rel.ro.*) }}}} > code :text
  .data : {{{{ *(.data .data.* .sdata .sdata.*) }}}} > data :data
  .bss : {{{{ *(.bss .bss.* .sbss .sbss.*) *(COMMON) }}}} > data :data
  /DISCARD/ : {{{{ *(.ARM.exidx*) *(.ARM.extab*) *(.eh_frame*) *(.note*) }}}}
}}}}
"""


@dataclass(frozen=True, slots=True)
class _Build:
    """How programs are made: where, by what, for which core, with which routines, at which level."""

    place: Path
    toolchain: Toolchain
    target: Target
    routines: tuple[str, ...]
    level: str


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; 1 where a run was above its bound, else 0."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="a checkout of TACLeBench")
    parser.add_argument("--target", default="cortex-m4", choices=target_names())
    parser.add_argument("--cc", default="zig", help="zig, the packaged Clang, or a command")
    parser.add_argument("--level", default="2", choices=("0", "1", "2", "3", "s"), help="of optimisation")
    parser.add_argument("--seconds", type=int, default=60, help="CPU seconds for each program")
    parser.add_argument("--memory", type=int, default=2048, help="MiB for each program")
    parser.add_argument("--build", type=Path, default=Path("build/suite"), help="where ELF files are made")
    parser.add_argument("--initial-data", action="store_true", help="bounds for the memory that NAME_init leaves")
    parser.add_argument("--stack-pointer", action="store_true", help="bounds for the stack pointer of the run")
    parser.add_argument("--assume", action="append", default=[], choices=ASSUMABLE, help="as of wcet-probe bound")
    parser.add_argument("--check", action="store_true", help="hold each bound against its binary by the checker")
    parser.add_argument("--keep", metavar="DATE", help="write rows into bench/taclebench.csv, as of code of this date")
    parser.add_argument("--missing", action="store_true", help="only programs without a row there; cheap ones first")
    parser.add_argument("--page", type=Path, help="a page with a place for the table")
    parser.add_argument("--json", type=Path, help="rows that are there already are not computed again")
    parser.add_argument("programs", nargs="*", help="names of programs; all if none is given")
    options = parser.parse_intermixed_args(arguments)
    target, toolchain = load_target(options.target), find_toolchain(options.cc, load_target(options.target))
    folders = [one for part in _PARTS for one in sorted((options.folder / "bench" / part).glob("*/"))]
    folders = [one for one in folders if not options.programs or one.name in options.programs]
    if not folders:
        raise UsageError(f"{options.folder} has no such program below bench; name a checkout of TACLeBench.")
    of = Build(target.name, Path(options.cc).name, options.level, _told(options))
    if options.missing:
        folders = _missing(folders, of)
    name = f"{of.core} {of.compiler} O{of.level}"
    place = options.build / name.replace(" ", "-")
    place.mkdir(parents=True, exist_ok=True)
    build = _Build(place, toolchain, target, routines(options.build, toolchain, target), options.level)
    known = _known(options.json)
    rows = []
    for folder in folders:
        if folder.name not in known:
            known[folder.name] = _row(folder, build, options)
            if options.json:
                write_whole(options.json, "".join(json.dumps(asdict(row)) + "\n" for row in known.values()).encode())
        rows.append(known[folder.name])
        if options.keep:
            keep([kept_of(of, rows[-1], options.keep)])
        print(f"{rows[-1].name}: {rows[-1].verdict} {rows[-1].why}", file=sys.stderr, flush=True)
    text = "\n".join(table(rows))
    print(text)
    if options.page:
        put_table(options.page, name, text)
    return int(any(row.verdict == "UNSOUND" for row in rows))


def _missing(folders: Sequence[Path], build: Build) -> list[Path]:
    """Those of ``folders`` of which no row of ``build`` is kept, in the order of what they cost elsewhere."""
    rows = read()
    kept = {row.program for row in rows if row.build == build}
    order = cheapest_first(rows, (one.name for one in folders))
    return sorted((one for one in folders if one.name not in kept), key=lambda one: order.index(one.name))


def _told(options: argparse.Namespace) -> str:
    """What bounds are told of memory at entry."""
    told = {"memory": options.initial_data, "stack pointer": options.stack_pointer}
    return " and ".join(name for name, is_told in told.items() if is_told)


def _known(file: Path | None) -> dict[str, Row]:
    if file is None or not file.is_file():
        return {}
    rows = [Row(**json.loads(line)) for line in file.read_text("utf-8").splitlines()]
    return {row.name: row for row in rows}


def _row(folder: Path, build: _Build, options: argparse.Namespace) -> Row:
    name = folder.name
    try:
        elf = _compile(folder, build)
    except CompileError as error:
        return Row(name, "NOT COMPILED", why=str(error))
    functions, limits = (f"{name}_main", f"{name}_init"), (options.seconds, options.memory)
    given = {
        "initial_data": options.initial_data,
        "assume": tuple(options.assume),
        "knows_stack": options.stack_pointer,
        "check": options.check,
    }
    return ask(Question(elf, *functions, build.target.name, (folder,), *limits, **given))


def _compile(folder: Path, build: _Build) -> Path:
    """The linked program of ``folder``.

    Raises:
        CompileError: with what the compiler says.
    """
    name, objects = folder.name, []
    family = build.toolchain.family
    own_flags = tuple(flag.format(folder=folder.resolve()) for flag in FAMILY_FLAGS[family])
    for source in sorted(folder.glob("*.c")):
        made = (build.place / f"{name}-{source.stem}.o").resolve()
        flags = (*build.target.compiler_flags[family], f"-O{build.level}", *FLAGS, *own_flags)
        call([*build.toolchain.compile, *flags, "-c", source.name, "-o", str(made)], folder)
        objects.append(made)
    script, elf = (build.place / "program.ld").resolve(), (build.place / f"{name}.elf").resolve()
    memory = build.target.memory_map
    script.write_text(SCRIPT.format(code=memory.code.base_address, data=memory.data.base_address), "utf-8")
    roots = ("--gc-sections", f"--entry={name}_main", *(f"--undefined={name}_{one}" for one in ("main", "init")))
    if family == "gcc":
        # They choose the libgcc of the core.
        roots = (*build.target.compiler_flags[family], *(f"-Wl,{option}" for option in roots))
    given = (*roots, "-T", str(script), *map(str, objects), *build.routines)
    call([*build.toolchain.link, *given, "-o", str(elf)], folder)
    return elf


if __name__ == "__main__":
    try:
        sys.exit(main())
    except WcetProbeError as error:
        sys.exit(f"error: {error}")
