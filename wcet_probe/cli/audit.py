"""``wcet-probe audit``: is an evidence pack whole, and does it prove and repeat what its results say."""

# ruff: noqa: PLC0415  (engines and checkers are imported when they are needed)

from __future__ import annotations

from pathlib import Path

import click

from wcet_probe.cli import streams

EPILOG = """\b
Examples:
  wcet-probe audit evidence.zip
  wcet-probe audit evidence.zip --digest "$(cat evidence.digest)" --no-replay

\b
Exit codes: 0 all checks pass, 1 the pack was changed or does not verify,
  2 no such file, 5 the replay of a witness counts something else
"""


@click.command(epilog=EPILOG)
@click.argument("file", metavar="PACK.zip", type=click.Path(path_type=Path))
@click.option("--digest", metavar="SHA256", help="The digest that wcet-probe pack printed.")
@click.option("--no-replay", is_flag=True, help="Run nothing: check hashes, documents and certificates only.")
@click.option("-q", "--quiet", is_flag=True, help="Show no progress.")
@click.option("-v", "--verbose", is_flag=True, help="Tell each step on stderr, and the traceback of an error.")
def audit(*, file: Path, digest: str | None, no_replay: bool, quiet: bool, verbose: bool) -> None:
    """Audit the evidence pack PACK.zip, without a compiler.

    Every byte of the pack, the form of its results, their certificates in exact arithmetic, and the measured call once
    more on the packed image, with the operations in the pack. Nothing is extracted.
    """
    from wcet_probe.evidence.audit import audit as audited
    from wcet_probe.evidence.container import read_pack_file
    from wcet_probe.reports.screens.terminal import render_table

    data = read_pack_file(file)
    with streams.progress(quiet=quiet, verbose=verbose) as tell:
        checks = tuple(audited(data, digest=digest, replayed=not no_replay, progress=tell))
    rows = ((check.check, check.subject, check.verdict) for check in checks)
    render_table(("check", "subject", "verdict"), rows, streams.result_console())
    for check in checks:
        if check.error:
            raise check.error
