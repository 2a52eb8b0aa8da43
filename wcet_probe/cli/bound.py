"""``wcet-probe bound``: an upper bound of a function of anybody's firmware, or of malloc by the size of the request."""

# ruff: noqa: PLC0415  (the analyzer is imported when it is needed)

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from wcet_probe.catalog.cache_option import apply_cache_option
from wcet_probe.cli import completion, streams
from wcet_probe.cli.configured import DEFAULT_HEAP_BYTES, configured_target, naming_compiler
from wcet_probe.cli.run import DEFAULT_COMPILER, parameter_value
from wcet_probe.config import Config, cache_dir, load_config
from wcet_probe.errors import AnalysisError, ExitCode, UsageError
from wcet_probe.sizes import parse_size

if TYPE_CHECKING:
    from wcet_probe.answer.firmware.firmware import FirmwareRequest
    from wcet_probe.answer.firmware.firmware_run import SearchInputs
    from wcet_probe.answer.firmware.run_script import Statement
    from wcet_probe.model.target import Target

EPILOG = """\b
Examples:
  wcet-probe bound firmware.elf --entry control_step --target cortex-m4
  wcet-probe bound firmware.elf --entry filter --target mpc603e --source src
  wcet-probe bound firmware.elf --entry find --facts f.toml --param N=64 --why
  wcet-probe bound firmware.elf --entry f --run 'init(); f(3, &buffer)'
  wcet-probe bound firmware.elf --entry f --initial-data --after 'init()'
  wcet-probe bound cama tlsf --per-size --target mpc603e --svg figure.svg

\b
Exit codes: 0 bounded, 1 failure, 2 bad usage or input, 4 no bound
  established, or one by the width of a type only, 5 a run contradicts the
  bound or a fact, 130 interrupted, 141 the reader of the output went away
"""
_FIRMWARE_ONLY = (
    "after",
    "initial_data",
    "assume",
    "stack_pointer",
    "entry",
    "facts",
    "source",
    "why",
    "fact_effects",
    "run",
    "run_file",
    "search",
    "vary",
)
_PER_SIZE_ONLY = ("heap_bytes", "sizes", "cache_set", "svg", "cc")
_FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)


def _sizes(text: str) -> tuple[int, ...]:
    return tuple(parse_size(part) for part in text.split(","))


def _cache_sets(text: str) -> tuple[int, int]:
    """First and last of ``N`` or ``N-M``."""
    first, _, last = text.partition("-")
    if not first.isdecimal() or not (last or first).isdecimal() or int(last or first) < int(first):
        raise UsageError(f"--cache-set {text!r} is no range of cache sets; write it like 5 or 0-31.")
    return int(first), int(last or first)


def _address(text: str) -> int:
    """A number such as ``0x2000fff8``."""
    try:
        return int(text, 0)
    except ValueError as error:
        raise UsageError(f"--stack-pointer {text!r} is no address; write it like 0x2000fff8.") from error


@click.command(epilog=EPILOG)
@click.argument("names", metavar="FILE.elf|ALLOCATOR...", nargs=-1, required=True, shell_complete=completion.allocators)
@click.option("--entry", metavar="FUNCTION", help="The function of FILE.elf that is called.")
@click.option("--target", metavar="NAME", help="Core.  [default: cortex-m4]", shell_complete=completion.targets)
@click.option("--facts", multiple=True, type=click.Path(path_type=Path), metavar="FILE", help="Flow facts; repeatable.")
@click.option("--source", multiple=True, type=_FOLDER, metavar="DIR", help="Sources, for facts; repeatable.")
@click.option(
    "--param",
    "values",
    multiple=True,
    type=parameter_value,
    metavar="NAME=N",
    help="Parameter of the facts; with --per-size, of the build.",
)
@click.option("--cache", "caches", multiple=True, metavar="SPEC", help="Change the caches, as of a run; repeatable.")
@click.option("--run", metavar="CALLS", help="Calls to emulate, such as 'init(); f(3, &buffer)'.")
@click.option("--run-file", type=click.Path(path_type=Path), metavar="FILE", help="A file of calls to emulate.")
@click.option("--initial-data", is_flag=True, help="Memory holds at entry what FILE.elf says: an assumption.")
@click.option("--after", metavar="CALLS", help="Of --initial-data: and what these calls leave, as 'init()'.")
@click.option(
    "--assume",
    multiple=True,
    type=click.Choice(["saved-registers"]),
    metavar="NAME",
    help="Where there is no bound without it: saved-registers.",
)
@click.option(
    "--stack-pointer",
    type=_address,
    metavar="N",
    help="Its value at entry, for caches of data: an assumption.",
)
@click.option("--search", type=click.IntRange(1), metavar="N", help="Then look for dearer inputs, N times.")
@click.option("--vary", multiple=True, metavar="&NAME:BYTES", help="Of --search: memory to change; repeatable.")
@click.option("--seed", type=click.IntRange(0, 2**32 - 1), default=0, metavar="N", help="Of --search.")
@click.option("--why", is_flag=True, help="Tell the worst path, all loops and all assumptions.")
@click.option("--fact-effects", is_flag=True, help="As --why, and the bound without each fact.")
@click.option("--per-size", is_flag=True, help="Bounds of malloc of each ALLOCATOR by the size of the request.")
@click.option("--heap", "heap_bytes", type=parse_size, metavar="SIZE", help="Of --per-size.  [default: 4MiB]")
@click.option(
    "--sizes", type=_sizes, metavar="SIZE,...", help="Of --per-size: where ranges begin, instead of a search."
)
@click.option("--cache-set", type=_cache_sets, metavar="N[-M]", help="Of --per-size: only these.  [default: all]")
@click.option("--svg", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Of --per-size: draw it.")
@click.option("--cc", metavar="COMMAND", help="Of --per-size: compiler.  [default: zig]")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.option("-q", "--quiet", is_flag=True, help="Show no progress.")
@click.option("-v", "--verbose", is_flag=True, help="Tell each step on stderr, and the traceback of an error.")
def bound(
    *,
    names: tuple[str, ...],
    target: str | None,
    values: tuple[tuple[str, int], ...],
    caches: tuple[str, ...],
    per_size: bool,
    as_json: bool,
    **options: Any,  # noqa: ANN401  (those of the one kind or of the other)
) -> int:
    """Prove how long a call of FUNCTION in FILE.elf can take at worst.

    FILE.elf is a linked 32-bit executable with its symbols. Its debug information leads to the sources, which are
    looked for below the folders of --source, by default below that of FILE.elf and the current one; they are needed
    for loopbound pragmas, and for facts that name a loop by label or line.

    With --run or --run-file: emulate these calls, hold each call of FUNCTION against the bound, all facts and all that
    was proved on the way, and print what it took beside the bound. With --search as well: change the arguments of the
    last call within the ranges that facts declare, and the memory of --vary, and keep what is dearer.

    With --per-size: prove malloc of each ALLOCATOR, for each range of sizes that has another bound and for every cache
    set, and free.
    """
    for name in _FIRMWARE_ONLY if per_size else _PER_SIZE_ONLY:
        if options[name]:
            shown = "--" + name.removesuffix("_bytes").replace("_", "-")
            remedy = "does not go with --per-size; leave one of them out" if per_size else "needs --per-size; add it"
            raise UsageError(f"{shown} {remedy}.")
    config = load_config(Path.cwd())
    core = reduce(apply_cache_option, caches, configured_target(target, config))
    if per_size:
        return _bound_sizes(names, core, dict(values), config, as_json=as_json, **options)
    return _bound_firmware(names, core, dict(values), caches, as_json=as_json, **options)


def _bound_firmware(
    names: Sequence[str],
    core: Target,
    values: Mapping[str, int],
    caches: Sequence[str],
    *,
    entry: str | None,
    facts: tuple[Path, ...],
    source: tuple[Path, ...],
    why: bool,
    fact_effects: bool,
    as_json: bool,
    quiet: bool,
    verbose: bool,
    **others: Any,  # noqa: ANN401  (those of a run, and of the other kind)
) -> int:
    from wcet_probe.answer.bounds.gap import block_gaps
    from wcet_probe.answer.firmware.firmware import FirmwareRequest, bound_firmware, with_effects
    from wcet_probe.reports.formats.records import target_document

    if entry is None:
        raise UsageError("missing option '--entry'; name the function, or ask for --per-size of an allocator.")
    if len(names) > 1:
        raise UsageError(f"one ELF file has the function, not {len(names)}; name one.")
    elf = Path(names[0])
    script = _script(others["run"], others["run_file"])
    search = _search(others["search"], others["seed"], others["vary"], has_script=bool(script))
    roots = source or (elf.parent, Path.cwd())
    initial, after = others["initial_data"], others["after"]
    if after and not initial:
        raise UsageError("--after tells what memory holds for --initial-data; give that as well, or leave it out.")
    request = FirmwareRequest(
        elf,
        entry,
        core,
        facts,
        roots,
        values,
        caches,
        target_document(core),
        initial_data=initial,
        after=_statements(after) if after else (),
        is_run=bool(script),
        assume=others["assume"],
        stack_pointer=others["stack_pointer"],
    )
    with streams.progress(quiet=quiet, verbose=verbose) as tell:
        try:
            found = bound_firmware(request, tell)
        except AnalysisError as error:
            raise _with_command(error, request) from error
        if script:
            from wcet_probe.answer.firmware.firmware_run import run_firmware

            tell("emulating the calls")
            found = replace(found, observed=run_firmware(found, script, search, tell))
        if why or fact_effects:
            found = with_effects(found, each=fact_effects, progress=tell)
    if as_json:
        from wcet_probe.reports.formats.bound_document import firmware_document

        streams.warn_of_large(found.bound.certificates)
        streams.print_json(firmware_document(found))
    else:
        from wcet_probe.reports.screens.why import render_firmware

        gaps = block_gaps(found.bound, None, found.image, found.instructions) if why or fact_effects else None
        render_firmware(found, streams.result_console(), gaps)
        if why or fact_effects:
            from wcet_probe.answer.facts.fact_skeleton import pointer_candidates
            from wcet_probe.answer.firmware.firmware import read_firmware
            from wcet_probe.reports.screens.why import render_candidates

            with streams.progress(quiet=quiet, verbose=verbose) as tell:
                candidates = tuple(pointer_candidates(read_firmware(request).asked, tell))
            render_candidates(candidates, streams.result_console())
    return ExitCode.NO_BOUND if found.bound.by_type else ExitCode.OK


def _with_command(error: AnalysisError, request: FirmwareRequest) -> AnalysisError:
    """``error``, with the command that writes the facts whose lack it names, where it names any."""
    if not error.headers and "[[" not in str(error):
        return error
    command = ["wcet-probe", "facts", str(request.elf), "--entry", request.entry, "--target", request.target.name]
    command += [word for file in request.facts for word in ("--facts", str(file))]
    space = "\n" if "\n" in str(error) else " "
    return AnalysisError(
        f"{error}{space}All that is missing is written at once by: {shlex.join(command)}", error.headers
    )


def _script(run: str | None, file: Path | None) -> tuple[Statement, ...]:
    """The statements that are to be run; none where nothing is."""
    if run is None and file is None:
        return ()
    from wcet_probe.answer.firmware.run_script import parse_script

    if run is not None and file is not None:
        raise UsageError("--run and --run-file both say what to run; give one of them.")
    if file is None:
        return parse_script(run or "")
    try:
        return parse_script(file.read_text("utf-8"), str(file))
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read {file}: {error}; name a text file of calls.") from error


def _statements(text: str) -> tuple[Statement, ...]:
    from wcet_probe.answer.firmware.run_script import parse_script

    return parse_script(text, "--after")


def _search(evaluations: int | None, seed: int, vary: tuple[str, ...], *, has_script: bool) -> SearchInputs | None:
    if evaluations is None:
        if vary:
            raise UsageError("--vary names memory for a search; add --search N.")
        return None
    if not has_script:
        raise UsageError("--search starts from a call; add --run 'f(3, &buffer)'.")
    from wcet_probe.answer.firmware.firmware_run import SearchInputs
    from wcet_probe.answer.firmware.run_script import parse_place

    return SearchInputs(evaluations, seed, tuple(parse_place(text, "--vary") for text in vary))


def _bound_sizes(
    names: Sequence[str],
    core: Target,
    values: Mapping[str, int],
    config: Config,
    *,
    heap_bytes: int | None,
    sizes: tuple[int, ...] | None,
    cache_set: tuple[int, int] | None,
    svg: Path | None,
    cc: str | None,
    as_json: bool,
    quiet: bool,
    verbose: bool,
    **_others: object,
) -> int:
    from wcet_probe.answer.bounds.per_size import PerSizeRequest, bounds_per_size
    from wcet_probe.build.program import load_program
    from wcet_probe.catalog.lookup import load_allocator
    from wcet_probe.reports.screens.per_size import per_size_document, per_size_picture, render_per_size

    allocators = [load_allocator(name, values) for name in dict.fromkeys(names)]
    heap = heap_bytes or config.heap_bytes or DEFAULT_HEAP_BYTES
    found = []
    with streams.progress(quiet=quiet, verbose=verbose) as tell, naming_compiler(cc, config):
        for allocator in allocators:
            program = load_program(allocator, core, cc or config.cc or DEFAULT_COMPILER, cache_dir(config), heap)
            found.append(bounds_per_size(PerSizeRequest(program, heap, sizes or (), cache_set), tell))
    if svg:
        from wcet_probe.output_files import write_whole

        write_whole(svg, per_size_picture(found))
    if as_json:
        streams.print_json(per_size_document(found))
    else:
        render_per_size(found, streams.result_console())
    return ExitCode.OK
