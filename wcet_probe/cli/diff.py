"""``wcet-probe diff``: what changed between two results, and which bounds moved."""

# ruff: noqa: PLC0415  (the renderer is imported when it is needed)

from __future__ import annotations

from pathlib import Path

import click

from wcet_probe.ci.compare import compare
from wcet_probe.ci.result_files import read_documents, refusing_damage
from wcet_probe.cli import streams
from wcet_probe.errors import ExitCode

_FILE = click.Path(path_type=Path)
EPILOG = """\b
Examples:
  wcet-probe diff before.json after.json
  wcet-probe diff wcet-probe-baselines/main.json after.json --fail-on-worse

\b
Exit codes: 0 compared, 2 no such file or no result document, 3 with
  --fail-on-worse, a bound went up or is lost
"""


@click.command(epilog=EPILOG)
@click.argument("old", metavar="OLD.json", type=_FILE)
@click.argument("new", metavar="NEW.json", type=_FILE)
@click.option("--fail-on-worse", is_flag=True, help="Exit with 3 where a bound went up or is lost.")
def diff(*, old: Path, new: Path, fail_on_worse: bool) -> int:
    """Tell what changed between two results, and moved their bounds.

    Compiler, code, loop bounds, facts, target. Each file is what --json printed, of one result or of several, or a
    baseline, of which less is known. Results are paired by what they are of; two single ones are a pair in any case.
    """
    from wcet_probe.reports.formats.schema import validate_types
    from wcet_probe.reports.screens.difference import difference_lines
    from wcet_probe.reports.screens.terminal import page_width, print_lines

    documents = [read_documents(file, check=validate_types, baselines=True) for file in (old, new)]
    console = streams.result_console()
    with refusing_damage():
        found = compare(*documents)
        lines = list(difference_lines(found, page_width(console)))
    print_lines(console, lines)
    return ExitCode.OVER_BUDGET if fail_on_worse and found.is_worse else ExitCode.OK
