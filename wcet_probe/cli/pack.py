"""``wcet-probe pack``: results with all that an auditor needs to check and repeat them, in one file."""

# ruff: noqa: PLC0415  (builders and checkers are imported when they are needed)

from __future__ import annotations

from pathlib import Path

import click

from wcet_probe.cli import streams
from wcet_probe.errors import UsageError, VerificationError

EPILOG = """\b
Examples:
  wcet-probe tlsf --target mpc603e --json >tlsf.json
  wcet-probe pack tlsf.json -o evidence.zip
  wcet-probe pack bound.json --image firmware.elf --facts f.toml -o firmware.zip

\b
Exit codes: 0 written, 1 what is installed here did not make the results, or
  they do not verify, 2 no such file or no result document
"""


_FILE = click.Path(path_type=Path)


@click.command(epilog=EPILOG)
@click.argument("files", nargs=-1, required=True, metavar="RESULT.json...", type=click.Path(path_type=Path))
@click.option(
    "-o", "--output", required=True, metavar="FILE", type=click.Path(path_type=Path), help="The pack to write."
)
@click.option(
    "--image", "images", multiple=True, type=_FILE, metavar="FILE", help="Of own firmware: the ELF file; repeatable."
)
@click.option("--facts", multiple=True, type=_FILE, metavar="FILE", help="Of own firmware: its facts; repeatable.")
@click.option("--source", multiple=True, type=_FILE, metavar="DIR", help="Of own firmware: sources; repeatable.")
@click.option(
    "--without-sources", is_flag=True, help="Of own firmware: pack the hashes of its sources, not their texts."
)
@click.option("-q", "--quiet", is_flag=True, help="Show no progress.")
@click.option("-v", "--verbose", is_flag=True, help="Tell each step on stderr, and the traceback of an error.")
def pack(
    *,
    files: tuple[Path, ...],
    output: Path,
    images: tuple[Path, ...],
    facts: tuple[Path, ...],
    source: tuple[Path, ...],
    without_sources: bool,
    quiet: bool,
    verbose: bool,
) -> None:
    """Pack the results in RESULT.json with the evidence for them.

    The pack holds the results, their images, sources, flow facts, targets, certificates and witnesses, a bill of
    materials (CycloneDX), and a manifest of hashes. The same results give the same bytes. Tell its digest to whoever
    audits it, by another way than the pack. Bounds of own firmware need their ELF file and facts besides.
    """
    from wcet_probe.config import cache_dir, load_config
    from wcet_probe.evidence.audit import audit
    from wcet_probe.evidence.container import pack_bytes, read_pack
    from wcet_probe.evidence.firmware import Given
    from wcet_probe.evidence.packing import evidence_members
    from wcet_probe.output_files import write_whole
    from wcet_probe.reports.screens.terminal import render_table

    contents = [(str(file), _content(file)) for file in files]
    with streams.progress(quiet=quiet, verbose=verbose) as tell:
        given = Given(images, facts, source, without_sources)
        data = pack_bytes(evidence_members(contents, cache_dir(load_config(Path.cwd())), tell, given))
        tell("auditing what is written")
        failed = next((check.error for check in audit(data, replayed=False) if check.error), None)
    if failed:
        raise VerificationError(f"nothing was written, as the pack would not pass its audit: {failed}")
    write_whole(output, data)
    written = read_pack(data)
    rows = (
        ("pack", output.name),
        ("files", len(written.members) + 1),
        ("bytes", len(data)),
        ("digest", written.digest),
    )
    render_table((), rows, streams.result_console())


def _content(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read {file}: {error.strerror}; name a file that you can read.") from error
