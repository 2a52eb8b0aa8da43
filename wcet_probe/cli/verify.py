"""``wcet-probe verify``: are the certificates in result documents proofs of the numbers that they are said to prove."""

# ruff: noqa: PLC0415  (the checker and the renderers are imported when they are needed)

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from wcet_probe.ci.result_files import read_documents
from wcet_probe.cli import streams
from wcet_probe.errors import ExitCode, UsageError, VerificationError
from wcet_probe.json_text import read_json

if TYPE_CHECKING:
    from wcet_probe.certificate.facts.findings import Finding
    from wcet_probe.certificate.kernel.verify import CheckedBound

_DIGITS_SHOWN = 16
EPILOG = """\b
Examples:
  wcet-probe tlsf --json >tlsf.json
  wcet-probe verify tlsf.json
  wcet-probe verify --image firmware.elf --facts loops.toml bound.json
  wcet-probe verify --image m.json.elf m.json

\b
Exit codes: 0 everything checks, 1 something does not, 2 no such file or no
  result document, 6 what was checked holds, and something was not checked;
  without --image the arithmetic alone is
"""

ARITHMETIC_ONLY = "arithmetic only: the graph is the prover's word; give the binary with --image"


@click.command(epilog=EPILOG)
@click.argument("files", nargs=-1, required=True, metavar="RESULT.json...", type=click.Path(path_type=Path))
@click.option("--image", type=click.Path(path_type=Path), metavar="FILE", help="The ELF file that they are about.")
@click.option(
    "--facts", multiple=True, type=click.Path(path_type=Path), metavar="FILE", help="Of own firmware: its facts."
)
@click.option(
    "--source", multiple=True, type=click.Path(path_type=Path), metavar="DIR", help="Of own firmware: sources."
)
@click.option("--cache", "caches", multiple=True, metavar="SPEC", help="Of own firmware: change the target's caches.")
def verify(
    *,
    files: tuple[Path, ...],
    image: Path | None,
    facts: tuple[Path, ...],
    source: tuple[Path, ...],
    caches: tuple[str, ...],
) -> int:
    """Check the bounds in RESULT.json, without the analyzer and without a solver.

    With --image: decodes the binary again and checks that the graph of each certificate covers its code, by invariants
    that it finds again, what each block costs, the loop bounds, the facts, the assumptions, and the bound, with exact
    arithmetic. Each line is ok or not checked. Without --image, the arithmetic alone.
    """
    if image is None:
        return _arithmetic(files)
    return _full(files, image, facts=facts, source_dirs=source or (image.parent, Path.cwd()), caches=caches)


def _arithmetic(files: Sequence[Path]) -> int:
    from wcet_probe.certificate.results.given import given_documents
    from wcet_probe.reports.screens.terminal import render_table

    if modules := [str(file) for file in files if _module(file) is not None]:
        raise UsageError(f"{modules[0]} is a module certificate; name the ELF file that it is about with --image.")
    checked = [one for file in files for one in _checked(file)]
    titles = ("entry", "target", "proved: at most", "", "image", "loops", "given")
    render_table(titles, map(_row, checked), streams.result_console())
    click.echo(ARITHMETIC_ONLY)
    hashes = {sha256(_bytes(file)).hexdigest() for file in files}
    for file in files:
        for result in _documents(file):
            for function, document in given_documents(result):
                told = "verified here" if document in hashes else "not given here: name that file as well"
                click.echo(
                    f"{file}: calls of {function} are charged by the document {document[:_DIGITS_SHOWN]}, {told}"
                )
    return ExitCode.CHECKED_IN_PART


def _row(one: CheckedBound) -> tuple[object, ...]:
    image = one.image_sha256[:_DIGITS_SHOWN]
    return one.entry_function, one.target, one.bound, one.unit, image, len(one.loops), len(one.given)


def _checked(file: Path) -> Iterator[CheckedBound]:
    """What the certificates of ``file`` prove."""
    from wcet_probe.certificate.kernel.verify import verify_result
    from wcet_probe.certificate.results.observed import verify_slack

    for result in _documents(file):
        try:
            found = verify_result(result)
            if result["format"] == "wcet-probe-result":
                verify_slack(result)
        except VerificationError as error:
            raise VerificationError(f"{file}: {error}") from error
        yield from found


def _documents(file: Path) -> Iterator[dict[str, Any]]:
    from wcet_probe.reports.formats.schema import validate_types

    for result in read_documents(file, check=validate_types):
        if result.get("bound") is None:
            raise VerificationError(f"{file}: not verified: a result has no bound; ask for one without --no-bound.")
        yield result


def _full(files: Sequence[Path], image: Path, **options: Any) -> int:  # noqa: ANN401  (as the checker takes them)
    from wcet_probe.certificate.trusted import TRUSTED
    from wcet_probe.evidence.said import AUTHORS_WORDS
    from wcet_probe.reports.screens.terminal import render_table

    elf = _bytes(image)
    rows: list[tuple[str, str, str]] = []
    for file in files:
        module = _module(file)
        if module is not None:
            rows += [(one.check, one.verdict, one.found) for one in _of_module(file, module, elf)]
            continue
        with streams.progress(quiet=False, verbose=False) as tell:
            for result in _documents(file):
                found = _findings(file, result, elf, **options, progress=tell)
                rows += [(one.check, one.verdict, one.found) for one in found]
    console = streams.result_console()
    render_table(("check", "verdict", ""), rows, console)
    render_table(("taken on trust", ""), TRUSTED, console)
    is_full = all(verdict == "ok" for check, verdict, _ in rows if check != AUTHORS_WORDS)
    return ExitCode.OK if is_full else ExitCode.CHECKED_IN_PART


def _module(file: Path) -> dict[str, Any] | None:
    """The module certificate in ``file``; None where it holds something else."""
    document = read_json(file)
    is_module = isinstance(document, dict) and document.get("format") == "wcet-probe-module"
    return document if is_module else None


def _of_module(file: Path, document: dict[str, Any], elf: bytes) -> Sequence[Finding]:
    from wcet_probe.evidence.modules import check_module_document
    from wcet_probe.reports.formats.schema import validate

    validate(document)
    try:
        return check_module_document(document, elf)
    except VerificationError as error:
        raise VerificationError(f"{file}: {error}") from error


def _findings(file: Path, result: dict[str, Any], elf: bytes, **options: Any) -> Sequence[Finding]:  # noqa: ANN401
    from wcet_probe.certificate.results.observed import verify_slack
    from wcet_probe.evidence.checking import check_file_result
    from wcet_probe.reports.formats.schema import validate

    try:
        validate(result)
        if result["format"] == "wcet-probe-result":
            verify_slack(result)
        checked, others = check_file_result(result, json.dumps(result).encode(), elf, **options)
    except VerificationError as error:
        raise VerificationError(f"{file}: {error}") from error
    return (*checked.findings, *others)


def _bytes(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read {file}: {error.strerror}; name a file that you can read.") from error
