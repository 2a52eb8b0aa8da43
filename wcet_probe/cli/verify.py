"""``wcet-probe verify``: are the certificates in result documents proofs of the numbers that they are said to prove."""

# ruff: noqa: PLC0415  (the checker and the renderers are imported when they are needed)

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

import click

from wcet_probe.ci.result_files import read_documents
from wcet_probe.cli import streams
from wcet_probe.errors import UsageError, VerificationError

if TYPE_CHECKING:
    from wcet_probe.certificate.verify import CheckedBound

_DIGITS_SHOWN = 16
EPILOG = """\b
Examples:
  wcet-probe tlsf --json >tlsf.json
  wcet-probe verify tlsf.json
  wcet-probe verify --image firmware.elf bound.json

\b
Exit codes: 0 everything checks, 1 something does not, 2 no such file or no
  result document
"""


@click.command(epilog=EPILOG)
@click.argument("files", nargs=-1, required=True, metavar="RESULT.json...", type=click.Path(path_type=Path))
@click.option("--image", type=click.Path(path_type=Path), metavar="FILE", help="The ELF file that they must be about.")
def verify(*, files: tuple[Path, ...], image: Path | None) -> None:
    """Check the bounds in RESULT.json, without the analyzer and without a solver.

    Builds the flow problem of each certificate again and checks the bound with exact arithmetic; the loop bounds, the
    numbers of the document and the hash of the image must agree with it.
    """
    from wcet_probe.reports.screens.terminal import render_table

    expected = sha256(_bytes(image)).hexdigest() if image else None
    checked = [one for file in files for one in _checked(file, expected)]
    titles = ("entry", "target", "proved: at most", "", "image", "loops", "given")
    render_table(titles, map(_row, checked), streams.result_console())


def _row(one: CheckedBound) -> tuple[object, ...]:
    image = one.image_sha256[:_DIGITS_SHOWN]
    return one.entry_function, one.target, one.bound, one.unit, image, len(one.loops), len(one.given)


def _checked(file: Path, image_sha256: str | None) -> Iterator[CheckedBound]:
    """What the certificates of ``file`` prove."""
    from wcet_probe.certificate.verify import verify_result, verify_slack

    for result in read_documents(file):
        if result.get("bound") is None:
            raise VerificationError(f"{file}: not verified: a result has no bound; ask for one without --no-bound.")
        try:
            found = verify_result(result)
            if result["format"] == "wcet-probe-result":
                verify_slack(result)
        except VerificationError as error:
            raise VerificationError(f"{file}: {error}") from error
        if image_sha256 is not None and image_sha256 != found[0].image_sha256:
            about = found[0].image_sha256[:_DIGITS_SHOWN]
            raise VerificationError(f"{file}: not verified: it is about another image, of sha256 {about}….")
        yield from found


def _bytes(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read {file}: {error.strerror}; name a file that you can read.") from error
