"""Files that hold the certificate of a deduction: one that is written, or one that is checked."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from wcet_probe.analyzer.deduction.asked import asking_z3
from wcet_probe.analyzer.deduction.obligations import Deduced
from wcet_probe.build.program import Program
from wcet_probe.cache_sets.deduction_certificate import Deducing, Json, checked, operations_of, with_certificate
from wcet_probe.errors import UsageError
from wcet_probe.json_text import read_json
from wcet_probe.output_files import see_to_write, write_whole
from wcet_probe.progress import Progress, silent


@dataclass(frozen=True, slots=True)
class CertificateFiles:
    """What becomes of the certificate of a deduction.

    Attributes:
        written: the file that it is written to, if any.
        checked: the document that is checked, by whose answers the deduction goes, if any.
        solver: that is asked what is checked, of `analyzer.deduction.other_solvers.SOLVERS`.
    """

    written: Path | None = None
    checked: Json | None = None
    solver: str = "z3"


NO_FILES = CertificateFiles()
"""Nothing is written, and z3 is asked."""


def certificate_files(
    written: Path | None, checked_file: Path | None, solver: str | None, deduced: tuple[str, ...]
) -> tuple[CertificateFiles, tuple[str, ...]]:
    """What options say of certificates, and the operations: those ``deduced``, or those that a certificate is of.

    Raises:
        UsageError: they do not go together, or the file to be checked is no certificate.
    """
    if checked_file is None:
        if solver is not None:
            raise UsageError("--solver is whom --check asks; give both.")
        if written is not None and not deduced:
            raise UsageError("--certificate writes what --deduce rests on; give both.")
        return CertificateFiles(written), deduced
    if written is not None:
        raise UsageError("--check reads a certificate and --certificate writes one; give one of them.")
    if deduced:
        raise UsageError("--check deduces what the certificate is of; leave --deduce out.")
    document = read_json(checked_file, "a file that --certificate wrote")
    operations = operations_of(document)
    return CertificateFiles(None, document, solver or "z3"), operations


def deduced_by(
    files: CertificateFiles, program: Program, deducing: Deducing, progress: Progress = silent
) -> tuple[Deduced, ...]:
    """What comes of ``deducing``, by z3 or by the certificate that is checked; the one that is wanted is written.

    Raises:
        UsageError: z3 or the solver is not installed.
        VerificationError: the certificate does not check.
        WcetProbeError: a file cannot be written.
    """
    if files.checked is not None:
        return checked(program, files.checked, deducing, files.solver, progress)
    if files.written is None:
        return deducing(asking_z3)
    see_to_write(files.written)
    parts, document = with_certificate(program, deducing)
    write_whole(files.written, json.dumps(document, separators=(",", ":")) + "\n")
    return parts
