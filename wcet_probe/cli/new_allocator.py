"""``wcet-probe new-allocator``: the manifest of an allocator of one's own, written and then checked step by step."""

# ruff: noqa: PLC0415  (engines are imported when they are needed)

from __future__ import annotations

import re
from pathlib import Path

import click

from wcet_probe.cli import completion, streams
from wcet_probe.cli.configured import configured_target, naming_compiler
from wcet_probe.cli.run import DEFAULT_COMPILER
from wcet_probe.config import cache_dir, load_config
from wcet_probe.errors import ExitCode, UsageError
from wcet_probe.sizes import parse_size

EPILOG = """\b
Examples:
  wcet-probe new-allocator ./my-pool
  wcet-probe new-allocator ./my-pool --target mpc603e --heap 16KiB

\b
Exit codes: 0 written, or all steps hold, 1 failure of the build or the
  engine, 2 the manifest is not right, 4 no bound established: facts are
  missing
"""


@click.command("new-allocator", epilog=EPILOG)
@click.argument("folder", metavar="FOLDER", type=click.Path(file_okay=False, path_type=Path))
@click.option("--target", metavar="NAME", help="Core.  [default: cortex-m4]", shell_complete=completion.targets)
@click.option("--heap", "heap_bytes", type=parse_size, metavar="SIZE", help="Size of the heap.  [default: 16KiB]")
@click.option("--cc", "compiler", metavar="COMMAND", help="Compiler.  [default: zig]")
@click.option("-q", "--quiet", is_flag=True, help="Show no progress.")
@click.option("-v", "--verbose", is_flag=True, help="Tell each step on stderr, and the traceback of an error.")
def new_allocator(
    *, folder: Path, target: str | None, heap_bytes: int | None, compiler: str | None, quiet: bool, verbose: bool
) -> int:
    """Write a manifest for the allocator in FOLDER, or check the one that is there.

    Where FOLDER has no manifest.toml, one is written, with the C files of FOLDER and a comment on each key. Where it
    has one, it is checked: reading it, building, init, malloc, the room that blocks take, free, the full heap, and the
    bounds of both operations. The first failure ends the check and tells what to do.
    """
    from wcet_probe.catalog.own_allocator import MANIFEST

    if not (folder / MANIFEST).is_file():
        return _write(folder, folder / MANIFEST)
    from wcet_probe.answer.studies.own_steps import StepsRequest, own_steps
    from wcet_probe.reports.screens.terminal import render_table

    config = load_config(Path.cwd())
    asked = compiler or config.cc or DEFAULT_COMPILER
    request = StepsRequest(folder, configured_target(target, config), heap_bytes, asked, cache_dir(config))
    with streams.progress(quiet=quiet, verbose=verbose) as tell, naming_compiler(compiler, config):
        steps = tuple(own_steps(request, tell))
    rows = [("ok" if step.code is ExitCode.OK else "FAILED", step.name, step.found) for step in steps]
    render_table((), rows, streams.result_console())
    return next((step.code for step in steps if step.code is not ExitCode.OK), ExitCode.OK)


def _write(folder: Path, manifest: Path) -> int:
    from wcet_probe.catalog.lookup import allocator_names
    from wcet_probe.catalog.new_manifest import manifest_text
    from wcet_probe.catalog.own_allocator import HEADER_SUFFIXES
    from wcet_probe.model.allocator import CPP_SUFFIXES
    from wcet_probe.output_files import write_whole

    if not folder.is_dir():
        raise UsageError(f"there is no folder {folder}; name the one that holds the allocator's C files.")
    name = re.sub(r"[^a-z0-9]+", "-", folder.resolve().name.lower()).strip("-") or "my-allocator"
    taken = {packaged.partition(":")[0] for packaged in allocator_names()}
    name = name if name[0].isalpha() and name not in taken else f"own-{name}"
    ends = ((".c", *CPP_SUFFIXES), HEADER_SUFFIXES)
    sources, headers = ([file for file in sorted(folder.iterdir()) if file.suffix in one] for one in ends)
    write_whole(manifest, manifest_text(name, sources, headers).encode())
    click.echo(f"{manifest} is written: fill in [call], then check it with: wcet-probe new-allocator {folder}")
    return ExitCode.OK
