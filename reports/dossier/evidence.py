"""Sections of a dossier that are about the tool: method, validation, traceability, qualification data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from wcet_probe import __version__
from wcet_probe.reports.dossier.blocks import Blank, Block, Paragraph, Section, Table
from wcet_probe.reports.dossier.qualification import Qualification, Suite
from wcet_probe.reports.dossier.subject import Json, Subject, counted

_STATUS = {"covered": "covered", "not covered": "not covered", "user": "user's task"}


def method_section(data: Qualification) -> Section:
    """How a bound comes about, and where the methods are from."""
    steps = Table("Steps of the proof", ("Step", "What is done"), data.steps, "ll")
    rows = tuple((one.step, f"{one.authors}: {one.title}. {one.venue}, {one.year}.") for one in data.references)
    sources = Table("Publications on which the methods rest", ("Method", "Publication"), rows, "ll")
    lead = Paragraph(
        "A bound is proved from the linked binary by static analysis; a witness is executed. The worst case is between."
    )
    note = Paragraph("The publications are those of the methods; the code is this project's own.", "note")
    return Section("Method", "method", (lead, steps, sources, note))


def validation_section(subjects: Sequence[Subject], data: Qualification, *, full: bool) -> Section:
    """What this version of the tool gives on known programs, and which tests stand behind it."""
    versions = {answer.document["tool"]["version"] for subject in subjects for answer in subject.answers}
    blocks: list[Block] = [
        Paragraph(
            f"Of wcet-probe {__version__}, as its repository holds them; they were not repeated for this report."
        ),
    ]
    if versions != {__version__}:
        others = ", ".join(sorted(versions))
        blocks.append(
            Paragraph(f"Results were made by {others}: these are not the validation of that version.", "lead")
        )
    header = ("Programs", "Pairs", "Bound = observed", "Median ratio", "Largest ratio", "Repeated by")
    rows = tuple((suite.title, *_summary(suite), f"`{suite.command}`") for suite in data.suites)
    blocks.append(Table("Bound over observation, in instructions, on three targets", header, rows, "lrrrrl"))
    for suite in data.suites:
        blocks += _suite(suite, full=full)
    blocks.append(
        Paragraph(
            "Analyses of values and caches are held against brute force over small programs and caches, and random "
            "programs against their proofs. The test cases are listed with the tool operational requirements."
        )
    )
    blocks.append(Blank("Comparison of observed cycles with measurements on the device."))
    blocks.append(Blank("Record of the test run of the installed version: date, environment, result."))
    return Section("Validation of this version", "validation", tuple(blocks))


def _summary(suite: Suite) -> tuple[str, ...]:
    pairs, exact, median, largest = suite.summary()
    return f"{pairs:,}", f"{exact:,}", f"{median:.3f}", f"{largest:.3f}"


def _suite(suite: Suite, *, full: bool) -> Iterator[Block]:
    yield Paragraph(f"{suite.title}: {suite.text} {suite.note}".strip())
    if full:
        header = ("Program", *(name for target in suite.targets for name in (f"{target}, bound", "ratio")))
        rows = tuple(
            (name, *(text for bound, seen in pairs for text in (f"{bound:,}", f"{bound / seen:.3f}")))
            for name, pairs in suite.rows.items()
        )
        yield Table(f"{suite.title}, in instructions", header, rows, "l" + "rr" * len(suite.targets))
        return
    header = ("Program", *suite.targets)
    rows = tuple((name, *(f"{bound / seen:.3f}" for bound, seen in pairs)) for name, pairs in suite.rows.items())
    yield Table(f"{suite.title}: bound over observation", header, rows, "l" + "r" * len(suite.targets))


def traceability_section(subjects: Sequence[Subject], data: Qualification) -> Section:
    """From requirement to evidence, and what the report does for the objectives of standards."""
    calls = tuple(
        (
            subject.title,
            f"`{answer.entry}`, {answer.label}",
            _limit(answer.bound or {}),
            "Results; Certificate; `results.json`",
        )
        for subject in subjects
        for answer in subject.proofs()
    )
    blocks: list[Block] = []
    if calls:
        header = ("Item", "Entry point", "Bound", "Evidence in this report")
        blocks.append(Table("From entry points to evidence", header, calls, "llll"))
    blocks.append(Blank("Identifier of the requirement that each entry point traces to."))
    rows = tuple((one.standard, one.reference, one.text, _STATUS[one.status], one.where) for one in data.objectives)
    counts = [f"{sum(one.status == key for one in data.objectives)} {words}" for key, words in _STATUS.items()]
    blocks += [
        Paragraph(
            f"Of {counted(len(rows), 'objective')}: {', '.join(counts)}. “Covered” means: this report holds evidence "
            "towards the objective. Whether one is met is for the applicant to show and for the authority to accept."
        ),
        Table("Objectives of standards", ("Standard", "Reference", "Objective", "Status", "By what"), rows, "lllll"),
        Paragraph(
            "The objectives are told in short words of this project, not in those of the standards; hold references "
            "and texts against the edition that applies.",
            "note",
        ),
    ]
    return Section("Traceability", "traceability", tuple(blocks))


def _limit(bound: Json) -> str:
    return f"{bound['instructions']:,} instructions, {bound['cycles']:,} cycles"


def qualification_section(data: Qualification) -> Section:
    """Requirements on the tool with their tests, known problems, failure modes: data for a qualification."""
    lead = Paragraph(
        "wcet-probe is not qualified, and it is young. What follows are data that a qualification can start from.",
        "lead",
    )
    blanks = (
        Blank("Tool qualification level (DO-330) or tool confidence level (ISO 26262-8), and why."),
        Blank("Tool operational environment: operating system, Python, hash of the installed packages."),
    )
    requirements = Table(
        "Tool operational requirements and their test cases",
        ("No.", "Requirement", "Test cases"),
        tuple((one.id, one.text, "\n".join(f"`{test}`" for test in one.tests)) for one in data.requirements),
        "lll",
    )
    safe = {"yes": "no", "no": "yes"}
    problems = Table(
        "Known problems and limits",
        ("No.", "Problem", "Effect", "Can a bound be too low by it?"),
        tuple((one.id, one.text, one.effect, safe[one.safe]) for one in data.problems),
        "llll",
    )
    failures = Table(
        "Failure modes: how a bound could be below the worst case",
        ("No.", "Stage", "Failure", "Mitigation", "What remains"),
        tuple((one.id, one.stage, one.event, one.mitigation, one.residual) for one in data.failures),
        "lllll",
    )
    parts = (
        Section("Tool operational requirements", "tool-requirements", (requirements,)),
        Section("Known problems", "known-problems", (problems,)),
        Section("Failure modes and mitigations", "failure-modes", (failures,)),
    )
    return Section("Tool qualification data", "qualification", (lead, *blanks), parts)
