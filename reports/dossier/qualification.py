"""What stands in every dossier whatever it is about: the data of ``reports/qualification/``, read and typed.

Requirements on the tool with their tests, known problems, failure modes, objectives of standards, references, and the
validation results of this version. They are data, so that a review of them is a review of tables.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from statistics import median
from typing import Any

from wcet_probe.catalog.resources import folder


@dataclass(frozen=True, slots=True)
class Requirement:
    """A tool operational requirement and the test cases that show it, as ``file::function`` below the repository."""

    id: str
    text: str
    tests: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Problem:
    """A known problem; ``safe`` tells whether it can only make a bound too high or missing (``yes``), or not."""

    id: str
    text: str
    effect: str
    safe: str


@dataclass(frozen=True, slots=True)
class Failure:
    """A way in which a bound could be too low: stage, event, what stands in its way, what remains for the user."""

    id: str
    stage: str
    event: str
    mitigation: str
    residual: str


@dataclass(frozen=True, slots=True)
class Objective:
    """An objective of a standard; ``status`` is ``covered``, ``not covered`` or ``user``."""

    standard: str
    reference: str
    text: str
    status: str
    where: str


@dataclass(frozen=True, slots=True)
class Reference:
    """A publication, and the step of the method that it supports."""

    step: str
    authors: str
    title: str
    venue: str
    year: int


@dataclass(frozen=True, slots=True)
class Discharge:
    """Who discharges an assumption of a kind, and what follows if it is false."""

    id: str
    discharged_by: str
    if_false: str


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition of use that stands behind every bound, whatever its assumptions."""

    text: str
    discharged_by: str


@dataclass(frozen=True, slots=True)
class Suite:
    """Validation results: ``rows`` maps a subject to ``(bound, observed)`` in instructions for each of ``targets``."""

    id: str
    title: str
    command: str
    text: str
    note: str
    targets: tuple[str, ...]
    rows: dict[str, tuple[tuple[int, int], ...]]

    def ratios(self) -> list[float]:
        """Bound over observation, of every subject on every target."""
        return [bound / seen for pairs in self.rows.values() for bound, seen in pairs]

    def summary(self) -> tuple[int, int, float, float]:
        """How many pairs there are, how many of them equal, and median and greatest ratio."""
        ratios = self.ratios()
        exact = sum(bound == seen for pairs in self.rows.values() for bound, seen in pairs)
        return len(ratios), exact, median(ratios), max(ratios)


@dataclass(frozen=True, slots=True)
class Qualification:
    """All of it; ``steps`` of the method and ``checks`` of lemmas are names and what is done."""

    requirements: tuple[Requirement, ...]
    problems: tuple[Problem, ...]
    failures: tuple[Failure, ...]
    objectives: tuple[Objective, ...]
    references: tuple[Reference, ...]
    steps: tuple[tuple[str, str], ...]
    discharges: tuple[Discharge, ...]
    checks: tuple[tuple[str, str], ...]
    conditions: tuple[Condition, ...]
    suites: tuple[Suite, ...]

    def discharge(self, assumption_id: str) -> Discharge | None:
        """What is known of an assumption, by its id or by the word that it begins with; None where nothing is."""
        known = {one.id: one for one in self.discharges}
        return known.get(assumption_id) or known.get(assumption_id.partition(" ")[0])


@cache
def load_qualification() -> Qualification:
    """The data that is packaged with this version."""
    return Qualification(
        requirements=tuple(
            Requirement(one["id"], one["text"], tuple(one["tests"])) for one in _rows("requirements", "requirement")
        ),
        problems=tuple(Problem(**one) for one in _rows("problems", "problem")),
        failures=tuple(Failure(**one) for one in _rows("failures", "failure")),
        objectives=tuple(Objective(**one) for one in _rows("objectives", "objective")),
        references=tuple(Reference(**one) for one in _rows("references", "reference")),
        steps=tuple((one["name"], one["text"]) for one in _rows("method", "step")),
        discharges=tuple(Discharge(**one) for one in _rows("assumptions", "assumption")),
        checks=tuple((one["name"], one["text"]) for one in _rows("assumptions", "check")),
        conditions=tuple(Condition(**one) for one in _rows("assumptions", "condition")),
        suites=tuple(_suite(one) for one in _rows("validation", "suite")),
    )


def _rows(file: str, name: str) -> list[dict[str, Any]]:
    text = (folder("reports") / "qualification" / f"{file}.toml").read_text("utf-8")
    rows: list[dict[str, Any]] = tomllib.loads(text)[name]
    return rows


def _suite(one: dict[str, Any]) -> Suite:
    rows = {name: tuple((bound, seen) for bound, seen in pairs) for name, pairs in one["rows"].items()}
    return Suite(**{**one, "targets": tuple(one["targets"]), "rows": rows})
