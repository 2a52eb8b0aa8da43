"""Sections of a dossier on what a bound rests on: numbered assumptions, conditions of use, and flow facts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from wcet_probe.model.proof import PROVED
from wcet_probe.reports.dossier.blocks import Block, Paragraph, Section, Table
from wcet_probe.reports.dossier.qualification import Qualification
from wcet_probe.reports.dossier.subject import Answer, Json, Subject, counted, left_out, number, unique

Numbers = Mapping[tuple[str, str], str]
"""The number of each assumption, by id and statement."""

_FIRST = (
    "no-interference",
    "timing-model",
    "no-translation-misses",
    "aligned-accesses",
    "fifo-replacement",
    "stack-separation",
    "stack-stores",
    "saved-registers",
    "alignment",
    "stack-alignment",
    "stack-pointer",
    "stack-bounds",
    "return-address",
    "main-stack",
    "built-for-another-core",
)
_LOOPS_SHOWN = 30
_ORIGINS = {"proved": "proved from the code", "fact": "by a flow fact", "pragma": "by a pragma in the source"}


def number_assumptions(subjects: Sequence[Subject]) -> Numbers:
    """``A-01``, ``A-02`` … for all assumptions of all bounds: the general ones first, then facts as they come."""
    found: dict[tuple[str, str], None] = {}
    for assumption in _assumptions(answer for subject in subjects for answer in subject.proofs()):
        found.setdefault((assumption["id"], assumption["statement"]))
    places = {name: place for place, name in enumerate(_FIRST)}
    ordered = sorted(found, key=lambda one: places.get(one[0], len(places)))
    return {one: f"A-{place:02}" for place, one in enumerate(ordered, 1)}


def assumptions_section(subjects: Sequence[Subject], numbers: Numbers, data: Qualification) -> Section:
    """Every assumption with its number and what rests on it, and by whom and how each is discharged."""
    concerned: dict[tuple[str, str], list[str]] = {one: [] for one in numbers}
    checks: dict[tuple[str, str], str] = {}
    executions: dict[tuple[str, str], list[int | None]] = {}
    for subject in subjects:
        for answer in subject.proofs():
            for one in _assumptions([answer]):
                key = one["id"], one["statement"]
                concerned[key].append(f"`{answer.entry}`" if len(subjects) == 1 else subject.title)
                checks[key] = one["check"]
                executions.setdefault(key, []).append(one.get("executions"))
    rows = tuple(
        (numbers[key], key[0], key[1], ", ".join(unique(concerned[key])), _executions(executions[key]))
        for key in sorted(numbers, key=numbers.__getitem__)
    )
    assumed = Table(
        "Assumptions", ("No.", "Name", "What is assumed", "Bounds that rest on it", "Checked in"), rows, "lllll"
    )
    header = ("No.", "Discharged by", "How it is checked", "If it is false")
    discharged = Table("How the assumptions are discharged", header, tuple(_discharges(numbers, checks, data)), "llll")
    conditions = Table(
        "Conditions of use",
        ("No.", "What has to hold", "Shown by"),
        tuple((f"U-{place:02}", one.text, one.discharged_by) for place, one in enumerate(data.conditions, 1)),
        "lll",
    )
    is_any_proved = any(
        _is_proved(one) for each in subjects for answer in each.proofs() for one in (answer.bound or {})["assumptions"]
    )
    more = " Facts that are proved from some of them stand with the flow facts." if is_any_proved else ""
    lead = Paragraph(
        f"The bounds rest on {counted(len(numbers), 'assumption')}. None of them is proved; each has to be discharged "
        f"by the one who is named.{more}",
        "lead",
    )
    note = Paragraph(
        "“Not checked” means not checked by wcet-probe. “Every emulated run” are those of the scenarios with which the "
        "result was made, their set-up included; the second engine repeats the witnesses that are not too long.",
        "note",
    )
    return Section("Assumptions and restrictions", "assumptions", (lead, assumed, discharged, note, conditions))


def _executions(counts: Sequence[int | None]) -> str:
    """In how many executions an assumption was checked, over all answers."""
    found = [count for count in counts if count is not None]
    return counted(sum(found), "execution") if found else "none"


def _discharges(
    numbers: Numbers, checks: Mapping[tuple[str, str], str], data: Qualification
) -> Iterator[tuple[str, ...]]:
    """A row for each kind of assumption and way of checking it."""
    grouped: dict[tuple[str, str], list[str]] = {}
    for (name, statement), place in numbers.items():
        kind = name.partition(" ")[0]
        grouped.setdefault((kind, checks[name, statement]), []).append(place)
    for (kind, check), places in grouped.items():
        known = data.discharge(kind)
        by, consequence = (known.discharged_by, known.if_false) if known else ("—", "—")
        yield _ranges(places), by, dict(data.checks).get(check) or _sentence(check), consequence


def _ranges(places: Sequence[str]) -> str:
    whole = [int(place[2:]) for place in places]
    runs: list[list[int]] = []
    for place in whole:
        if runs and place == runs[-1][-1] + 1:
            runs[-1].append(place)
        else:
            runs.append([place])
    return ", ".join(f"A-{run[0]:02}" if len(run) == 1 else f"A-{run[0]:02} to A-{run[-1]:02}" for run in runs)


def range_of(bound: Json, numbers: Numbers) -> str:
    """In words under which assumptions ``bound`` holds, consecutive numbers put together."""
    places = sorted({numbers[one["id"], one["statement"]] for one in bound["assumptions"] if not _is_proved(one)})
    if not places:
        return "the conditions of use alone"
    return f"assumption{'' if len(places) == 1 else 's'} {_ranges(places)}"


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + "."


def _assumptions(answers: Iterable[Answer]) -> Iterator[Json]:
    for answer in answers:
        yield from (one for one in (answer.bound or {})["assumptions"] if not _is_proved(one))


def _is_proved(assumption: Json) -> bool:
    """Whether it is a fact that is proved, and so no assumption, but what its proof rests on is."""
    return bool(assumption["id"].startswith(PROVED))


# ----------------------------------------------------------------------------------------------------------- flow facts


def facts_section(subject: Subject, numbers: Numbers, *, full: bool) -> Section:
    """Loop bounds and flow facts of each proof: origin, evidence, largest observation, slack."""
    parts: list[Section] = []
    for place, answer in enumerate(subject.proofs(), 1):
        anchor = f"facts-{place}-{subject.anchor}"
        parts.append(
            Section(
                f"`{answer.entry}`, {answer.label}",
                anchor,
                tuple(_facts(_with_largest(subject.sharing(answer)), numbers, full=full)),
            )
        )
    lead = "What is known of loops and paths, and from where. What is declared and not proved is an assumption."
    blocks: tuple[Block, ...] = (Paragraph(lead),) if parts else (Paragraph("There is no bound, so no fact is used."),)
    return Section("Flow facts", f"facts-{subject.anchor}", blocks, tuple(parts))


def _facts(bound: Json, numbers: Numbers, *, full: bool) -> Iterator[Block]:
    yield from _loops(bound["loops"], full=full)
    claims = bound.get("flow_claims") or ()
    if claims:
        header = ("Fact", "Claim", "At most", "Largest observed", "Slack")
        yield Table("Weighted sums of executions that are claimed", header, tuple(map(_claim, claims)), "llrrr")
    told = {f"fact {one['where']}" for one in (*bound["loops"], *claims)}
    facts = [one for one in bound["assumptions"] if one["id"].startswith("fact ") and one["id"] not in told]
    if facts:
        rows = tuple((numbers[one["id"], one["statement"]], *_told(one), _sentence(one["check"])) for one in facts)
        yield Table("Facts about other things", ("No.", "Fact", "Statement", "How it is checked"), rows, "llll")
    if proved := tuple(_proved_rows(bound, numbers)):
        titles = ("Fact", "What is proved, and by which invariant", "Proved from", "How it is checked")
        yield Table("Facts that are proved", titles, proved, "llll")
    lemmas = [one for one in bound["assumptions"] if one["id"].startswith("lemma ")]
    if lemmas:
        words = [f"{_told(one)[0]} ({numbers[one['id'], one['statement']]})" for one in lemmas]
        yield Paragraph(f"Lemmas on which facts rest: {', '.join(words)}.")
    lemmas = [one for one in bound["assumptions"] if one["id"].startswith("induction ")]
    if lemmas:
        words = [f"{_told(one)[0]} ({numbers[one['id'], one['statement']]})" for one in lemmas]
        yield Paragraph(f"Lemmas under which facts are proved by induction: {', '.join(words)}.")
    if bound.get("module"):
        carried = ", ".join(one["where"] for one in bound["module"]["facts"])
        yield Paragraph(f"By the module certificate in the result, a check against the binary can prove {carried}.")


def _proved_rows(bound: Json, numbers: Numbers) -> Iterator[tuple[str, ...]]:
    """A row for each fact that is proved: what, and by which invariant, the lemmas and premises, and who checks it."""
    rests_on = {one["where"]: one["lemmas"] for one in bound.get("pointer_facts") or ()}
    assumed = (one for one in bound["assumptions"] if not _is_proved(one))
    listed = {one["id"].removeprefix("induction "): numbers[one["id"], one["statement"]] for one in assumed}
    for one in bound["assumptions"]:
        if _is_proved(one):
            where, statement = _told(one)
            names = ", ".join(f"{name} ({listed[name]})" for name in rests_on.get(where, ()))
            yield where, statement, names, _sentence(one["check"])


def _loops(loops: Sequence[Json], *, full: bool) -> Iterator[Block]:
    if not loops:
        yield Paragraph("No loop is reachable from the entry.")
        return
    found = [loop["origin"] for loop in loops]
    words = [f"{found.count(origin)} {text}" for origin, text in _ORIGINS.items() if origin in found]
    yield Paragraph(f"{counted(len(loops), 'loop')} in all call contexts, bounded: {', '.join(words)}.")
    grouped: dict[tuple[str, ...], list[Json]] = {}
    for loop in loops:
        grouped.setdefault(_loop(loop), []).append(loop)
    rows = [(_in_contexts(row[0], len(same)), *row[1:]) for row, same in grouped.items()]
    shown = rows if full else rows[:_LOOPS_SHOWN]
    header = ("Loop header", "Origin", "Evidence", "Most executions", "Largest observed", "Slack")
    yield Table("Loop bounds, in executions of the header for each entry", header, tuple(shown), "lllrrr")
    yield from left_out(rows, len(shown), "loops")
    reasons = unique(f"{loop['where']}\n{loop['because']}" for loop in loops if loop.get("because"))
    if reasons:
        told = tuple((*reason.split("\n", 1),) for reason in reasons)
        yield Table("Why the declared loop bounds hold", ("Fact", "Reason"), told, "ll")


def _in_contexts(location: str, contexts: int) -> str:
    return location if contexts == 1 else f"{location}, in {contexts} contexts"


def _told(assumption: Json) -> tuple[str, str]:
    return assumption["id"].partition(" ")[2], assumption["statement"]


def _with_largest(answers: Sequence[Answer]) -> Json:
    """The bound that ``answers`` share, with the largest observations of all of them."""
    bounds = [answer.bound or {} for answer in answers]
    loops = [
        {**same[0], "observed_max": _largest(one.get("observed_max") for one in same)}
        for same in zip(*(bound["loops"] for bound in bounds), strict=True)
    ]
    claims = [
        {**same[0], "observed": _largest(one.get("observed") for one in same)}
        for same in zip(*(bound.get("flow_claims") or () for bound in bounds), strict=True)
    ]
    return {**bounds[0], "loops": loops, "flow_claims": claims}


def _largest(observed: Iterable[int | None]) -> int | None:
    return max((one for one in observed if one is not None), default=None)


def _loop(loop: Json) -> tuple[str, ...]:
    evidence = loop["expression"] if loop["origin"] == "proved" else f"{loop['expression']} ({loop['where']})"
    most = number(loop["max"]) + (f", {loop['total']:,} in all" if loop.get("total") is not None else "")
    seen = loop.get("observed_max")
    slack = "—" if seen is None else f"{loop['max'] - seen:,}"
    return loop["location"], _ORIGINS[loop["origin"]], evidence, most, number(seen), slack


def _claim(claim: Json) -> tuple[str, ...]:
    seen = claim.get("observed")
    slack = "—" if seen is None else f"{claim['constant'] - seen:,}"
    return claim["where"], claim["statement"], number(claim["constant"]), number(seen), slack
