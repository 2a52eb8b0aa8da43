"""``wcet-probe bound``: an upper bound of a function of anybody's firmware."""

# ruff: noqa: PLC0415  (the analyzer is imported when it is needed)

from __future__ import annotations

from functools import reduce
from pathlib import Path

import click

from wcet_probe.cache_option import apply_cache_option
from wcet_probe.cli import completion, streams
from wcet_probe.cli.configured import configured_target
from wcet_probe.cli.run import parameter_value
from wcet_probe.config import load_config

EPILOG = """\b
Examples:
  wcet-probe bound firmware.elf --entry control_step --target cortex-m4
  wcet-probe bound firmware.elf --entry filter --target mpc603e --source src
  wcet-probe bound firmware.elf --entry find --facts f.toml --param N=64 --why

\b
Exit codes: 0 bounded, 1 failure, 2 bad usage or input, 4 no bound
  established, 130 interrupted, 141 the reader of the output went away
"""
_FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)


@click.command(epilog=EPILOG)
@click.argument("elf", metavar="FILE.elf", type=click.Path(path_type=Path))
@click.option("--entry", required=True, metavar="FUNCTION", help="The function that is called.")
@click.option("--target", metavar="NAME", help="Core.  [default: cortex-m4]", shell_complete=completion.targets)
@click.option("--facts", multiple=True, type=click.Path(path_type=Path), metavar="FILE", help="Flow facts; repeatable.")
@click.option("--source", "sources", multiple=True, type=_FOLDER, metavar="DIR", help="Sources, for facts; repeatable.")
@click.option(
    "--param", "values", multiple=True, type=parameter_value, metavar="NAME=N", help="Parameter of the facts."
)
@click.option("--cache", "caches", multiple=True, metavar="SPEC", help="Change the caches, as of a run; repeatable.")
@click.option("--why", is_flag=True, help="Tell the worst path, all loops and all assumptions.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.option("-q", "--quiet", is_flag=True, help="Show no progress.")
@click.option("-v", "--verbose", is_flag=True, help="Tell each step on stderr, and the traceback of an error.")
def bound(
    *,
    elf: Path,
    entry: str,
    target: str | None,
    facts: tuple[Path, ...],
    sources: tuple[Path, ...],
    values: tuple[tuple[str, int], ...],
    caches: tuple[str, ...],
    why: bool,
    as_json: bool,
    quiet: bool,
    verbose: bool,
) -> None:
    """Prove how long a call of FUNCTION in FILE.elf can take at worst.

    FILE.elf is a linked 32-bit executable with its symbols. Its debug information leads to the sources, which are
    looked for below the folders of --source, by default below that of FILE.elf and the current one; they are needed
    for loopbound pragmas, and for facts that name a loop by label or line.
    """
    from wcet_probe.firmware import FirmwareRequest, bound_firmware
    from wcet_probe.gap import block_gaps

    core = reduce(apply_cache_option, caches, configured_target(target, load_config(Path.cwd())))
    folders = sources or (elf.parent, Path.cwd())
    request = FirmwareRequest(elf, entry, core, facts, folders, dict(values))
    with streams.progress(quiet=quiet, verbose=verbose) as tell:
        found = bound_firmware(request, tell)
    if as_json:
        from wcet_probe.reports.bound_document import firmware_document

        streams.print_json(firmware_document(found))
    else:
        from wcet_probe.reports.why import render_firmware

        gaps = block_gaps(found.bound, None, found.image, found.instructions) if why else None
        render_firmware(found, streams.result_console(), gaps)
