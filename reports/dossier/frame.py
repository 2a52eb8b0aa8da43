"""Sections around the others: identification, overview, change impact, sign-off, and the listings of a full report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import sha256

from wcet_probe import __version__
from wcet_probe.ci.compare import Comparison, Difference, compare
from wcet_probe.reports.dossier.blocks import Blank, Block, Code, KeyValues, Paragraph, Section, Table
from wcet_probe.reports.dossier.subject import Json, Subject, counted, number, picture, unique

_CHANGES_SHOWN = 40
_REVIEWED = ("loop bound", "flow fact", "assumption", "source", "code of")


def identification_section(subjects: Sequence[Subject]) -> Section:
    """What this report is, which documents it is made of, and which program made those."""
    answers = [(subject, answer) for subject in subjects for answer in subject.answers]
    documents = [answer.document for _, answer in answers]
    rows = [
        ("Report", report_id(subjects)),
        ("Subjects", "; ".join(subject.title for subject in subjects)),
        ("Report made by", f"wcet-probe {__version__}"),
        ("Results made by", ", ".join(unique(_tool(document) for document in documents))),
    ]
    packages = unique(_packages(document) for document in documents)
    rows += [("Libraries that numbers depend on", words) for words in packages if words]
    header = ("No.", "Item", "Result", "SHA-256 of the document as canonical JSON")
    hashes = tuple(
        (str(place), subject.title, answer.label, answer.sha256) for place, (subject, answer) in enumerate(answers, 1)
    )
    blocks: list[Block] = [
        KeyValues(tuple(rows)),
        Blank("Number and issue of this document in configuration management; date."),
        Blank("Commit, or SHA-256 of the installed wheel, of wcet-probe; the machine that it ran on."),
        Table("Result documents of which this report is a function", header, hashes, "rllc"),
    ]
    commands = unique(document["command"] for document in documents if document.get("command"))
    if commands:
        blocks.append(Code("Commands that repeat the results", "\n".join(commands)))
    return Section("Identification", "identification", tuple(blocks))


def report_id(subjects: Sequence[Subject]) -> str:
    """A name that depends on the documents alone: the start of a SHA-256 over their hashes."""
    hashes = (answer.sha256 for subject in subjects for answer in subject.answers)
    return "WP-" + sha256("".join(hashes).encode()).hexdigest()[:12].upper()


def _tool(document: Json) -> str:
    return f"{document['tool']['name']} {document['tool']['version']}"


def _packages(document: Json) -> str:
    return ", ".join(f"{name} {version}" for name, version in sorted((document["tool"].get("packages") or {}).items()))


def overview_section(subjects: Sequence[Subject]) -> Section:
    """All answers in one table, and as a picture."""
    from wcet_probe.reports.pictures import bound_against_observed  # noqa: PLC0415  (drawn only here)

    rows = []
    for subject in subjects:
        for answer in subject.answers:
            bound, seen = answer.bound or {}, answer.witnessed or {}
            counts = [number(part.get(unit)) for unit in ("instructions", "cycles") for part in (bound, seen)]
            verdict = answer.document.get("verdict", "BOUNDED")
            rows.append((subject.title, answer.label, *counts, verdict))
    proofs = sum(len(subject.proofs()) for subject in subjects)
    header = ("Item", "Result", "Bound, instructions", "Observed", "Bound, cycles", "Observed", "Verdict")
    checked = "; every certificate was checked for this report" if proofs else ""
    lead = f"{counted(proofs, 'bound')} for {counted(len(subjects), 'item')}{checked}."
    blocks: list[Block] = [Paragraph(lead, "lead"), Table("All results", header, tuple(rows), "llrrrrl")]
    documents = [answer.document for subject in subjects for answer in subject.answers]
    alternative = "For each result a bar from the observation to the bound; the numbers are those of the table."
    blocks += picture("Bounds against observations", alternative, bound_against_observed(documents))
    return Section("Overview", "overview", tuple(blocks))


# -------------------------------------------------------------------------------------------------------- change impact


def change_section(subjects: Sequence[Subject], earlier: Sequence[Json] | None, *, full: bool) -> Section:
    """What changed since the documents of an earlier report, which bounds moved, and what has to be reviewed again."""
    if earlier is None:
        none = Paragraph("No earlier report was given: `--against OLD.json` compares with one.")
        return Section("Change impact", "change", (none, Blank("Earlier issue of this report, or: first issue.")))
    comparison = compare(earlier, [answer.document for subject in subjects for answer in subject.answers])
    blocks: list[Block] = [Paragraph(_verdict(comparison), "lead"), *_membership(comparison)]
    moves = tuple(
        (one.subject, f"{move.quantity}, {move.unit}", number(move.old), number(move.new), _by(move.old, move.new))
        for one in comparison.differences
        for move in one.moves
    )
    if moves:
        blocks.append(Table("Numbers that moved", ("Result", "Number", "Before", "Now", "Change"), moves, "llrrr"))
    for one in comparison.differences:
        blocks += _changes(one, full=full)
    review = unique(
        f"{change.kind} {change.where}".strip()
        for one in comparison.differences
        for change in one.changes
        if change.kind in _REVIEWED
    )
    words = (
        f"To be reviewed again: {'; '.join(review)}."
        if review
        else "No fact, loop or function changed that would need a review."
    )
    blocks += [Paragraph(words), Blank("Conclusion of the change-impact analysis, and by whom.")]
    return Section("Change impact", "change", tuple(blocks))


def _verdict(comparison: Comparison) -> str:
    changed = [one for one in comparison.differences if one.changes or one.moves]
    pairs = counted(len(comparison.differences), "result")
    worse = "A bound went up or is no more there." if comparison.is_worse else "No bound went up."
    return f"Compared with the earlier documents: {pairs} in both, {len(changed):,} of them not the same. {worse}"


def _membership(comparison: Comparison) -> Iterator[Block]:
    for words, names in (("Only in the earlier documents", comparison.only_old), ("New", comparison.only_new)):
        if names:
            yield Paragraph(f"{words}: {'; '.join(names)}.")


def _changes(one: Difference, *, full: bool) -> Iterator[Block]:
    if not one.changes:
        return
    shown = one.changes if full else one.changes[:_CHANGES_SHOWN]
    rows = tuple((change.kind, change.where, change.old or "—", change.new or "—") for change in shown)
    yield Table(f"What changed: {one.subject}", ("Kind", "Where", "Before", "Now"), rows, "llll")
    if len(one.changes) > len(shown):
        yield Paragraph(f"{len(one.changes) - len(shown):,} more changes are printed with `--full`.", "note")


def _by(old: int | None, new: int | None) -> str:
    return "—" if old is None or new is None else f"{new - old:+,}"


# ------------------------------------------------------------------------------------------------------------- the end


def sign_off_section() -> Section:
    """Who stands for the report: blanks."""
    roles = ("Author", "Reviewer of flow facts and assumptions", "Quality assurance", "Approval")
    blanks = tuple(Blank(f"{role}: name, date, signature.") for role in roles)
    lead = Paragraph("The tool knows nobody's name: what follows is for those who stand for this report.")
    return Section("Sign-off", "sign-off", (lead, *blanks))


def appendix_section(subjects: Sequence[Subject]) -> Section:
    """The certificates in full."""
    parts = tuple(
        Section(
            f"`{answer.entry}`, {answer.label}",
            f"appendix-{place}-{subject.anchor}",
            tuple(
                Code(f"Certificate in {checked.unit}", text)
                for text, checked in zip((answer.bound or {})["certificates"], answer.checked, strict=True)
            ),
        )
        for subject in subjects
        for place, answer in enumerate(subject.proofs(), 1)
    )
    lead = Paragraph("The texts of the certificates, as the result documents hold them.")
    return Section("Appendix: certificates", "appendix", (lead,), parts)
