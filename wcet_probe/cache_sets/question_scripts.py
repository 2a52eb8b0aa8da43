"""Files that hold what a deduction rests on, as questions to any solver that reads SMT-LIB."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from wcet_probe.analyzer.deduction.obligations import Deduced
from wcet_probe.analyzer.deduction.smt_lib import scripts
from wcet_probe.errors import WcetProbeError
from wcet_probe.output_files import see_to_write, write_whole

_READINGS = {"QF_UFLIA": "integers", "QF_BV": "bits"}


def ready_for_scripts(folder: Path) -> None:
    """Make ``folder`` where it is missing, before minutes go into what is to be written there.

    Raises:
        WcetProbeError: a file cannot be written there, or scripts of another run are there, which would be asked, too.
    """
    if any(folder.glob("*.smt2")):
        raise WcetProbeError(f"{folder} holds scripts of another run; name another folder, or empty this one.")
    see_to_write(folder / "questions")


def write_scripts(folder: Path, deduced: Iterable[Deduced]) -> str:
    """Write the scripts of all that was shown, a file for each part of an operation, and say how many there are.

    Args:
        folder: is made where it is missing; `ready_for_scripts` was asked of it.
        deduced: what came of operations.

    Raises:
        WcetProbeError: a file cannot be written.
    """
    files = questions = 0
    for one in deduced:
        for number, asked in enumerate(one.questions, start=1):
            for script in scripts(asked):
                write_whole(folder / f"{one.operation}-{number}-{_READINGS[script.logic]}.smt2", script.text)
                files, questions = files + 1, questions + script.questions
    return f"{questions:,} questions in {files} files of SMT-LIB in {folder}: each is to be answered by unsat"
