"""``wcet-probe audit``: is an evidence pack whole, and does it prove and repeat what its results say."""

# ruff: noqa: PLC0415  (engines and checkers are imported when they are needed)

from __future__ import annotations

from pathlib import Path

import click

from wcet_probe.cli import streams
from wcet_probe.errors import ExitCode

EPILOG = """\b
Examples:
  wcet-probe audit evidence.zip
  wcet-probe audit evidence.zip --digest "$(cat evidence.digest)" --no-replay

\b
Exit codes: 0 all is checked and holds, 1 the pack was changed or does not
  verify, 2 no such file, 5 the replay of a witness counts something else,
  6 what was checked holds, and something was not checked
"""


@click.command(epilog=EPILOG)
@click.argument("file", metavar="PACK.zip", type=click.Path(path_type=Path))
@click.option("--digest", metavar="SHA256", help="The digest that wcet-probe pack printed.")
@click.option("--no-replay", is_flag=True, help="Run nothing: check hashes, documents and certificates only.")
@click.option(
    "--budget", type=click.IntRange(1), metavar="N", help="Instructions that a replay may take.  [default: 1000000000]"
)
@click.option("-q", "--quiet", is_flag=True, help="Show no progress.")
@click.option("-v", "--verbose", is_flag=True, help="Tell each step on stderr, and the traceback of an error.")
def audit(*, file: Path, digest: str | None, no_replay: bool, budget: int | None, quiet: bool, verbose: bool) -> int:
    """Audit the evidence pack PACK.zip, without a compiler.

    Every byte of the pack, the form of its results, their certificates against the code of the packed image, and the
    measured call once more on it, with the operations in the pack. Each line is ok, FAILED or not checked. Nothing is
    extracted.
    """
    from wcet_probe.evidence.audit import MOST_INSTRUCTIONS, OPEN
    from wcet_probe.evidence.audit import audit as audited
    from wcet_probe.evidence.container import read_pack_file
    from wcet_probe.evidence.said import AUTHORS_WORDS
    from wcet_probe.reports.screens.terminal import render_table

    data = read_pack_file(file)
    with streams.progress(quiet=quiet, verbose=verbose) as tell:
        most = budget or MOST_INSTRUCTIONS
        checks = tuple(audited(data, digest=digest, replayed=not no_replay, most_instructions=most, progress=tell))
    rows = ((check.check, check.subject, check.verdict) for check in checks)
    render_table(("check", "subject", "verdict"), rows, streams.result_console())
    for check in checks:
        if check.error:
            raise check.error
    is_open = any(check.verdict.startswith(OPEN) for check in checks if check.check != AUTHORS_WORDS)
    return ExitCode.CHECKED_IN_PART if is_open else ExitCode.OK
