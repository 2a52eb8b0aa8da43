"""``wcet-probe export``: a path of a result in the formats of profilers."""

# ruff: noqa: PLC0415  (the schemas are imported when they are needed)

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from wcet_probe.ci.result_files import refusing_damage
from wcet_probe.errors import UsageError, unknown_name
from wcet_probe.json_text import read_json
from wcet_probe.output_files import write_whole
from wcet_probe.reports.formats.profiles import FORMATS, PATHS, profile

EPILOG = """\b
Examples:
  wcet-probe tlsf --json >tlsf.json
  wcet-probe export tlsf.json --format callgrind -o callgrind.out.tlsf
  wcet-probe export tlsf.json --format collapsed --path worst

\b
Exit codes: 0 exported, 1 failure, 2 bad usage, no result document, or no such
  path in it
"""


@click.command(epilog=EPILOG)
@click.argument("file", metavar="RESULT.json", type=click.Path(path_type=Path))
@click.option("--format", "name", required=True, metavar="|".join(FORMATS), help="What to write.")
@click.option("--path", metavar="|".join(PATHS), help="Which path.  [default: observed; of a bound alone, worst]")
@click.option("-o", "output", type=click.Path(path_type=Path), metavar="FILE", help="Write FILE, not stdout.")
def export(*, file: Path, name: str, path: str | None, output: Path | None) -> None:
    """Write a path of RESULT.json as a profile.

    The observed call, or the worst path of the bound: in instructions, or with worst-cycles in cycles. KCachegrind and
    callgrind_annotate open callgrind; speedscope.app opens speedscope; flame graph tools read collapsed stacks.
    """
    from wcet_probe.reports.formats.schema import validate

    for what, given, known in (("format", name, FORMATS), ("path", path or PATHS[0], PATHS)):
        if given not in known:
            raise unknown_name(what, given, known)
    document = _result(file)
    validate(document)
    chosen = path or ("observed" if "observed" in document else "worst")
    with refusing_damage():
        text = FORMATS[name](profile(document, chosen))
    if output is None:
        click.echo(text.encode(), nl=False)
    else:
        write_whole(output, text)


def _result(file: Path) -> dict[str, Any]:
    """The one result, or bound, in ``file``."""
    document = read_json(file)
    name = document.get("format") if isinstance(document, dict) else None
    if name == "wcet-probe-results":
        raise UsageError(f"{file} holds several results; run with one target and one heap, and give it that result.")
    if name not in ("wcet-probe-result", "wcet-probe-bound"):
        raise UsageError(f"{file} is no result; give it what wcet-probe ALLOCATOR --json or wcet-probe bound printed.")
    found: dict[str, Any] = document
    return found
