"""A bound in words and tables: beside the observation on the first screen of an answer, or alone.

Functions that give lines; `wcet_probe.reports.screens.why` has the long account.
"""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import PurePath

from wcet_probe.model.proof import INITIAL_DATA, PROVED, Assumption, Bound, IdleFact, LoopBound, Origin
from wcet_probe.model.report import Verdict, Witness
from wcet_probe.model.target import Basis, Target
from wcet_probe.reports.screens.layout import cut, paragraph, table

_LOOPS_SHOWN = 5
_ASSUMPTIONS_SHOWN = 4
_HIGHEST_SCENARIOS = ("worst-alloc", "worst-free")
_UNITS = ("instructions", "cycles")


def both_sides(bound: Bound, witnesses: Mapping[str, Witness], scenario: str, width: int) -> list[str]:
    """Bound, observation and slack, and what is to be known about the slack.

    Args:
        bound: what was proved.
        witnesses: what was observed, by unit.
        scenario: of the observation; only the two that look for the dearest call make the slack a measure.
        width: of a line, in characters.
    """
    rows = []
    for unit in _UNITS:
        proved, observed = getattr(bound, unit), witnesses[unit].value(unit)
        rows.append((unit, proved, observed, proved - observed, _slack(proved, observed)))
    lines = table(rows, ("", "bound", "observed", "slack", ""))
    if scenario not in _HIGHEST_SCENARIOS:
        note = f"{scenario} does not look for the dearest call of all, so the slack says nothing about the bound"
        lines += paragraph("", note, width, 1)
        return lines
    seen = witnesses["cycles"]
    if witnesses["instructions"] != seen:
        note = f"in different states; the one with most instructions is: {witnesses['instructions'].plan.variant}"
        lines += paragraph("", note, width, 1)
    if seen.measurement.icache.present or seen.measurement.dcache.present:
        lines += paragraph("", "the bound in cycles holds for any content of the caches at entry", width, 1)
    return lines


def _slack(proved: int, observed: int) -> str:
    if proved == observed:
        return "exact"
    if not observed:
        return ""
    tenths = ((proved - observed) * 2000 + observed) // (2 * observed)
    return f"{tenths // 10}.{tenths % 10} % above the observed" if tenths else "less than 0.1 % above the observed"


def verdict_lines(bound: Bound, width: int) -> list[str]:
    """What a bound alone says, and where it says nothing, why, and the line to add."""
    if not bound.by_type:
        proved = f"{Verdict.BOUNDED}: a proven upper bound, under {how_many_assumed(bound.assumptions)}."
        return [proved, *_summarised(bound, width)]
    loops = counted(len(bound.by_type), "loop")
    head = f"{Verdict.BOUNDED_BY_TYPE}: a proven upper bound, but that of {loops} is the width of a type: add"
    lines = textwrap.wrap(head, width, break_on_hyphens=False)
    for one in bound.by_type:
        said = f"{one.location} runs up to {one.max:,} times, as nothing is known of {one.rests_on}:"
        lines += paragraph("", said, width, 1)
        lines.append(f"    {one.remedy}")
    return lines


def _summarised(bound: Bound, width: int) -> list[str]:
    """Which functions are charged with one bound wherever they are called, if any."""
    if not bound.summarised:
        return []
    names = ", ".join(bound.summarised)
    return paragraph("", f"analysed once, and charged with that bound wherever they are called: {names}", width, 1)


def counted(number: int, noun: str) -> str:
    """``1 loop``, ``2 loops``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def short_loops(loops: Sequence[LoopBound], width: int) -> Iterator[str]:
    """A heading and a line for each loop: the first few, and how many more there are; nothing without loops."""
    if not loops:
        return
    yield f"Loops ({origins(loops)}): executions of the header for each entry, at most"
    rows = [
        (place, most, f"{origin}, in {times} contexts" if times > 1 else origin, why)
        for (place, most, origin, why), times in Counter(map(_loop, loops)).items()
    ]
    yield from (cut(line, width) for line in table(rows[:_LOOPS_SHOWN]))
    if more := rows[_LOOPS_SHOWN:]:
        yield f"  and {len(more)} more: --why"


def _loop(loop: LoopBound) -> tuple[str, int, str, str]:
    total = "" if loop.total is None else f", {loop.total:,} in all"
    return loop.location, loop.max, loop.origin.value, f"{PurePath(loop.where).name or loop.expression}{total}"


def origins(loops: Sequence[LoopBound]) -> str:
    """How many loops have their bound from where: ``2 proved, 1 fact``."""
    found = Counter(loop.origin for loop in loops)
    return ", ".join(f"{found[origin]} {origin.value}" for origin in Origin if found[origin])


def short_assumptions(
    assumptions: Sequence[Assumption], width: int, executions: Mapping[str, int] | None = None
) -> Iterator[str]:
    """The assumptions, a line each while they are few, else by name, and the facts that are proved, by name.

    Args:
        assumptions: what is taken as given.
        width: of a line, in characters.
        executions: in how many an assumption was checked, by its id; None where nothing was run.
    """
    by_id = {one.id: one.statement for one in assumptions if not one.is_proved}
    if len(by_id) <= _ASSUMPTIONS_SHOWN:
        yield f"Assumptions ({len(by_id)}{_HOW_CHECKED if executions else ''})"
        labels = {name: _with_count(name, name, executions) for name in by_id}
        label_width = 3 + max(map(len, labels.values()))
        for name, statement in by_id.items():
            yield from paragraph(f"  {labels[name]}", statement, width, label_width)
    else:
        yield f"Assumptions ({len(by_id)}{_HOW_CHECKED if executions else ''}; --why tells each)"
        names = zip(by_id, _short_ids(by_id), strict=True)
        yield from paragraph(" ", ", ".join(_with_count(one, name, executions) for one, name in names), width, 1)
    if proved := [one.id for one in assumptions if one.is_proved]:
        places = (one.removeprefix(PROVED) for one in _short_ids(proved))
        told = ", ".join(_with_count(one, name, executions) for one, name in zip(proved, places, strict=True))
        yield from paragraph(f"Facts proved under these ({len(proved)}; --why tells by what)", told, width, 1)


def short_idle_facts(idle: Sequence[IdleFact]) -> Iterator[str]:
    """How many facts have no effect, and why what was asked for has none; nothing where all have one."""
    yield from (f"Without {one.where}: {one.why}" for one in idle if one.where == INITIAL_DATA)
    if facts := [one for one in idle if one.where != INITIAL_DATA]:
        yield f"Facts without effect: {len(facts)}; --why tells each"


_HOW_CHECKED = "; x N: N times checked, others by no run"


def _with_count(one: str, name: str, executions: Mapping[str, int] | None) -> str:
    """The name of the assumption ``one``, and in how many executions it was checked."""
    return name if not executions or one not in executions else f"{name} x {executions[one]:,}"


def how_checked(assumption: Assumption, executions: Mapping[str, int] | None) -> str:
    """In how many executions ``assumption`` was checked and how, or why no run can check it."""
    if executions is None or assumption.id not in executions:
        return assumption.check
    return f"in {counted(executions[assumption.id], 'execution')}: {assumption.check}"


def _short_ids(ids: Iterable[str]) -> Iterator[str]:
    """``ids``; of facts that follow each other in one file, all but the first by their line alone."""
    last = ""
    for one in ids:
        file, _, line = one.rpartition(":")
        yield f":{line}" if file and file == last else one
        last = file


def timing_model(target: Target, caches: Sequence[str], width: int) -> Iterator[str]:
    """Whose cycles the numbers are, by which options of ``--cache``, and where those of the model come from."""
    manual, measured, assumed = (target.bases[basis] for basis in (Basis.MANUAL, Basis.MEASURED, Basis.ASSUMED))
    origins_of = f"{counted(manual, 'number')} from a manual, {measured:,} measured, {assumed:,} assumed"
    changed = f" with {', '.join(f'--cache {option}' for option in caches)}" if caches else ""
    yield from paragraph("Timing", f"cycles in the timing model of {target.name}{changed}: {origins_of}", width)


def how_many_assumed(assumptions: Sequence[Assumption]) -> str:
    """Their number in words; a fact that says two things of a loop is one, and what is proved is none."""
    return counted(len({one.id for one in assumptions if not one.is_proved}), "assumption")
