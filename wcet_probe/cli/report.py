"""``wcet-probe report``: the dossier of results, as an HTML page and a PDF, beside the results themselves."""

# ruff: noqa: PLC0415  (engines and renderers are imported when they are needed)

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from functools import reduce
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from wcet_probe.catalog.cache_option import apply_cache_option
from wcet_probe.cli import streams
from wcet_probe.cli.configured import configured_target, default_heap_bytes, naming_compiler
from wcet_probe.cli.run import DEFAULT_COMPILER, EXIT_CODES, long_account
from wcet_probe.config import cache_dir, load_config
from wcet_probe.errors import ExitCode, UsageError
from wcet_probe.model.report import Verdict
from wcet_probe.sizes import format_size, parse_size

if TYPE_CHECKING:
    from wcet_probe.answer.witness.bench import ProbeRequest
    from wcet_probe.progress import Progress
    from wcet_probe.reports.dossier.blocks import Dossier

Document = Mapping[str, Any]
_SCENARIOS = ("worst-alloc", "worst-free")
EPILOG = """\b
Examples:
  wcet-probe report tlsf --target mpc603e -o dossier
  wcet-probe report old.json new.json --against accepted.json -o dossier

\b
Exit codes, of several results the largest: 0 written, 1 failure or a
  certificate that does not check, and nothing is written, 2 bad usage or
  input, 3 written and over budget, 4 written and a bound is missing,
  5 contradiction, 130 interrupted
"""


@click.command(epilog=EPILOG)
@click.argument("items", nargs=-1, required=True, metavar="RESULT.json...|ALLOCATOR...")
@click.option("-o", "output", required=True, type=click.Path(path_type=Path), metavar="DIR", help="Folder to write to.")
@click.option("--against", type=click.Path(path_type=Path), metavar="OLD.json", help="Tell what changed since then.")
@click.option("--full", is_flag=True, help="All rows of long tables, all code, the certificates.")
@click.option("--target", "targets", multiple=True, metavar="NAME", help="Core; repeatable.  [default: cortex-m4]")
@click.option("--heap", "heaps", multiple=True, type=parse_size, metavar="SIZE", help="Repeatable.  [default: 4MiB]")
@click.option(
    "--scenario", "scenarios", multiple=True, metavar="NAME", help="Repeatable.  [default: worst-alloc, worst-free]"
)
@click.option("--cache", "caches", multiple=True, metavar="SPEC", help="Change the caches, as in a run; repeatable.")
@click.option(
    "--image",
    "images",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Of a saved result: its ELF file; repeatable.",
)
@click.option(
    "--facts",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="With --image, of own firmware: its facts.",
)
@click.option(
    "--source",
    "source_dirs",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="With --image: sources.",
)
@click.option("--cc", "compiler", metavar="COMMAND", help="zig, the packaged one, or e.g. clang-19.  [default: zig]")
@click.option("--cross-check/--no-cross-check", default=None, help="Repeat calls in a second engine, however long.")
@click.option("-q", "--quiet", is_flag=True, help="Show no progress.")
@click.option("-v", "--verbose", is_flag=True, help="Tell each step on stderr, and the traceback of an error.")
@click.pass_context
def report(
    ctx: click.Context,
    /,
    *,
    items: tuple[str, ...],
    output: Path,
    against: Path | None,
    full: bool,
    images: tuple[Path, ...],
    facts: tuple[Path, ...],
    source_dirs: tuple[Path, ...],
    quiet: bool,
    verbose: bool,
    **asked: Any,  # noqa: ANN401  (options of a run, read where it is run)
) -> int:
    """Write the dossier of results: report.html, report.pdf and results.json.

    Of saved results it is a function of these and of their binaries: no emulator and no proof is run but the check of
    their certificates against the code. The binary of an allocator is built again; others are given with --image, and
    where there is none, the first page says so. Of allocators it is that of a run for each combination of target, heap
    and scenario.
    """
    from wcet_probe.ci.result_files import read_documents, refusing_damage
    from wcet_probe.evidence.reported import checked_against_code
    from wcet_probe.reports.dossier.dossier import build_dossier
    from wcet_probe.reports.formats.schema import validate_types

    files = [Path(item) for item in items if item.endswith(".json") or Path(item).is_file()]
    earlier = read_documents(against, check=validate_types) if against else None
    if (facts or source_dirs) and not images:
        raise UsageError(
            "--facts and --source go with --image, the ELF file of a bound of own firmware; name it as well."
        )
    elves: dict[str, bytes] = {}
    with streams.progress(quiet=quiet, verbose=verbose) as tell:
        if files:
            _refuse_mixture(ctx, items, files)
            documents = [one for file in files for one in read_documents(file, check=validate_types)]
        else:
            if images:
                raise UsageError("--image belongs to saved results; leave it out of a run, whose binary is at hand.")
            documents = list(_answers(items, asked, tell, elves))
        tell("checking the certificates")
        with refusing_damage() if files or against else nullcontext():
            open_lines = checked_against_code(
                documents,
                cache_dir(load_config(Path.cwd())),
                at_hand=elves,
                images=images,
                facts=facts,
                source_dirs=source_dirs,
                progress=tell,
            )
            dossier = build_dossier(documents, earlier, full=full, not_checked=open_lines)
        tell("setting the pages")
        _write(output, _rendered(dossier, documents))
    for name in ("report.html", "report.pdf", "results.json"):
        click.echo(output / name)
    return max(_exit_code(document) for document in documents)


def _refuse_mixture(ctx: click.Context, items: Sequence[str], files: Sequence[Path]) -> None:
    """Saved results are not run again: neither allocators nor options of a run go with them."""
    if len(files) < len(items):
        (name, *_) = (item for item in items if Path(item) not in files)
        raise UsageError(f"{name} is no saved result like the others; run it with --json first, and name that file.")
    given = [
        option.opts[0]
        for option in ctx.command.params
        if option.name in ("targets", "heaps", "scenarios", "caches", "compiler", "cross_check")
        and ctx.params.get(option.name) not in {None, ()}
    ]
    if given:
        raise UsageError(f"{given[0]} belongs to a run, and saved results are not run again; leave it out.")


def _answers(
    names: Sequence[str], asked: Mapping[str, Any], tell: Progress, elves: dict[str, bytes]
) -> Iterator[dict[str, Any]]:
    """A result for each combination of allocator, target, heap and scenario; ``elves`` gets the binaries."""
    from wcet_probe.answer.bounds.proving import remembering
    from wcet_probe.answer.witness import bench, probe
    from wcet_probe.catalog.lookup import load_allocator
    from wcet_probe.reports.formats.document import document, dumps

    config, compiler = load_config(Path.cwd()), asked["compiler"]
    allocators = [load_allocator(name) for name in dict.fromkeys(names)]
    targets = [
        reduce(apply_cache_option, asked["caches"], configured_target(name, config))
        for name in dict.fromkeys(asked["targets"]) or (None,)
    ]
    proving = remembering()  # the scenarios of an allocator share its bounds
    scenarios = dict.fromkeys(asked["scenarios"] or _SCENARIOS)
    heaps = {one.name: dict.fromkeys(asked["heaps"] or (default_heap_bytes(one, config),)) for one in allocators}
    combinations = [each for one in allocators for each in product((one,), targets, heaps[one.name], scenarios)]
    with naming_compiler(compiler, config):
        for done, (allocator, target, heap_bytes, scenario) in enumerate(combinations):
            request = bench.ProbeRequest(
                allocator=allocator,
                target=target,
                scenario=scenario,
                heap_bytes=heap_bytes,
                seed=0,
                initial_cache=None,
                compiler=compiler or config.cc or DEFAULT_COMPILER,
                cross_check=asked["cross_check"],
                cache_dir=cache_dir(config),
                prove=True,
                cache_options=asked["caches"],
            )

            def told(text: str, request: ProbeRequest = request, done: int = done) -> None:
                what = f"{request.allocator.name} on {request.target.name}, heap {format_size(request.heap_bytes)}"
                tell(f"{what}, {request.scenario}: {text}", done, len(combinations))

            found = probe.observe(request, told, proving=proving)
            elves[found.image.sha256] = found.image.elf
            # As it is read back from results.json: the same report is made of it.
            yield json.loads(dumps(document(found, long_account(request, found, told))))


def _rendered(dossier: Dossier, documents: Iterable[Document]) -> dict[str, bytes]:
    """The files by name, all of them before any is written."""
    from wcet_probe.reports.dossier.html import render_html
    from wcet_probe.reports.dossier.pdf import render_pdf
    from wcet_probe.reports.formats.document import dumps, results_document

    return {
        "report.html": render_html(dossier).encode(),
        "report.pdf": render_pdf(dossier),
        "results.json": dumps(results_document(map(dict, documents))).encode(),
    }


def _write(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write the files beside their places, and rename them when all are written: nobody sees half a report."""
    beside = {folder / name: folder / f".{name}.{os.getpid()}" for name in files}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            beside[folder / name].write_bytes(content)
        for place, temporary in beside.items():
            temporary.replace(place)
    except OSError as error:
        with suppress(OSError):
            for temporary in beside.values():
                temporary.unlink(missing_ok=True)
        raise UsageError(f"cannot write to {folder}: {error.strerror}; name a folder that you can write to.") from error


def _exit_code(document: Document) -> ExitCode:
    return EXIT_CODES[Verdict(document.get("verdict", Verdict.BOUNDED))]
