"""Section of a dossier: the calls of a function of some firmware that were run and held against its bound."""

from __future__ import annotations

from collections.abc import Iterator

from wcet_probe.reports.dossier.blocks import Block, KeyValues, Paragraph, Section, Table
from wcet_probe.reports.dossier.subject import Answer, counted, left_out, number

_CALLS_SHOWN = 12


def runs_section(answer: Answer, anchor: str, *, full: bool) -> Section:
    """What ``answer``, a bound of a function of one's own with runs, tells of them."""
    return Section(f"Runs: {answer.label}", anchor, tuple(_blocks(answer, full=full)))


def _blocks(answer: Answer, *, full: bool) -> Iterator[Block]:
    bound, seen = answer.bound or {}, answer.observed or {}
    ratios = [
        f"{unit}: {bound[unit]:,} against {seen[unit]:,} ({bound[unit] / max(1, seen[unit]):.3f} times)"
        for unit in ("instructions", "cycles")
    ]
    yield Paragraph("; ".join(ratios).capitalize() + ".", "lead")
    rows = [
        ("Run", "; ".join(f"`{statement}`" for statement in seen["statements"])),
        ("Held against bound and facts", counted(seen["held"], "call")),
        ("Repeated by the second engine", number(seen["repeated"])),
    ]
    if found := seen["found"]:
        rows += [
            ("Search", f"{counted(found['evaluations'], 'evaluation')} from the last call, seed {found['seed']}"),
            ("Dearest that it found", f"{found['instructions']:,} instructions, {found['cycles']:,} cycles"),
            ("To run that", "; ".join(f"`{statement}`" for statement in found["script"])),
        ]
    yield KeyValues(tuple(rows))
    calls = sorted(seen["calls"], key=lambda one: (-one["cycles"], -one["instructions"]))
    shown = calls if full else calls[:_CALLS_SHOWN]
    cells = tuple(
        (one["call"], number(one["instructions"]), number(one["cycles"]), number(one["result"])) for one in shown
    )
    yield Table("Calls that were run, the dearest first", ("Call", "Instructions", "Cycles", "Result"), cells, "lrrr")
    yield from left_out(calls, len(shown), "calls")
