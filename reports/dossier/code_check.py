"""How far the bounds of a dossier were checked against their binaries, in words for its first page and claims."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from wcet_probe.reports.dossier.subject import Answer, Subject, counted

ARITHMETIC_ONLY = "that its graph is that of the code is the prover's word"


def code_check_lines(subjects: Sequence[Subject]) -> Iterator[str]:
    """A line for the bounds that were checked in full, in part, and for those of which the arithmetic alone was."""
    answers = [answer for subject in subjects for answer in subject.answers if answer.bound is not None]
    full = [one for one in answers if one.not_checked == ()]
    in_part = [one for one in answers if one.not_checked]
    unseen = [one for one in answers if one.not_checked is None]
    if full:
        yield f"Checked in full against the code: {_bounds(full, answers)}"
    if in_part:
        yield f"Checked in part against the code: {_bounds(in_part, answers)}"
    if unseen:
        yield f"Arithmetic only, as no binary was there; the graph is the prover's word: {_bounds(unseen, answers)}"


def code_check_words(answer: Answer) -> str:
    """How far the bound of ``answer`` was checked, as part of a sentence about it."""
    if answer.not_checked is None:
        return f"its arithmetic alone was checked: {ARITHMETIC_ONLY}"
    if answer.not_checked:
        return f"it was checked against the code but for: {'; '.join(answer.not_checked)}"
    return "it was checked in full against the code"


def _bounds(some: Sequence[Answer], of_all: Sequence[Answer]) -> str:
    return (
        counted(len(of_all), "bound")
        if len(some) == len(of_all)
        else f"{len(some):,} of {counted(len(of_all), 'bound')}"
    )
