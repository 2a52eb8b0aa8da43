"""The long account of a bound: worst path and observed one side by side, the gap between them, what it rests on."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence

from rich.console import Console

from wcet_probe.answer.bounds.gap import Account, BlockGap, Cause
from wcet_probe.answer.firmware.firmware import FirmwareBound
from wcet_probe.model.image import Image
from wcet_probe.model.observed_run import Observed
from wcet_probe.model.proof import Assumption, Bound, FactCandidate, FactEffects, Formula, LoopBound, Units
from wcet_probe.model.report import Report
from wcet_probe.reports.screens.bound import (
    counted,
    how_checked,
    origins,
    short_assumptions,
    short_idle_facts,
    short_loops,
    timing_model,
    verdict_lines,
)
from wcet_probe.reports.screens.layout import cut, paragraph, table
from wcet_probe.reports.screens.terminal import Line, head, heading, page_width, print_lines

_LABEL_WIDTH = 14


def render_why(report: Report, bound: Bound, account: Account, console: Console) -> None:
    """Print the worst path beside the observed one, the gap between them, and all that ``bound`` rests on."""
    width = page_width(console)
    sources = dict(report.allocator.sources)
    print_lines(console, head(report, width))
    print_lines(console, [heading("Worst path beside the observed one, in instructions")])
    print_lines(console, listing(account.gaps, report.image, sources, width, observed=True))
    print_lines(console, ["", heading("Where bound and observation differ")])
    print_lines(console, attribution(account.gaps, bound, account.observed_instructions, width))
    if account.formula:
        print_lines(console, ["", heading("The bound over heap sizes, in instructions")])
        print_lines(console, _formula(account.formula, width))
    if account.effects:
        print_lines(console, ["", heading("What the facts do to the bound")])
        print_lines(console, fact_effects(account.effects, width))
    print_lines(console, _grounds(bound, report.image, width, report.executions))
    render_candidates(account.candidates, console)


def render_firmware(found: FirmwareBound, console: Console, gaps: Sequence[BlockGap] | None = None) -> None:
    """Print the bound of a function of any firmware; with ``gaps`` its worst path and all that it rests on."""
    bound, width = found.bound, page_width(console)
    most = f"{bound.instructions:,} instructions, {bound.cycles:,} cycles"
    print_lines(console, [heading(f"{bound.entry} on {found.target.name}: takes at most {most}")])
    print_lines(console, verdict_lines(bound, width))
    if found.observed:
        print_lines(console, observed_lines(bound, found.observed, width))
    print_lines(console, [f"image sha256 {found.image.sha256}", ""])
    print_lines(console, [*timing_model(found.target, found.request.caches, width), ""])
    if gaps is None:
        print_lines(console, short_loops(bound.loops, width))
        checked = found.observed.executions if found.observed else None
        print_lines(console, short_assumptions(bound.assumptions, width, checked))
        print_lines(console, short_idle_facts(bound.idle_facts))
        return
    print_lines(console, [heading("Worst path, in instructions")])
    print_lines(console, listing(gaps, found.image, found.sources, width, observed=False))
    if found.effects:
        print_lines(console, ["", heading("What the facts do to the bound")])
        print_lines(console, fact_effects(found.effects, width))
    checked = found.observed.executions if found.observed else None
    print_lines(console, _grounds(bound, found.image, width, checked))


def render_candidates(candidates: Sequence[FactCandidate], console: Console) -> None:
    """Print facts about pointers that would make the bound in cycles smaller, if they are true."""
    if not candidates:
        return
    print_lines(console, ["", heading("Facts that would help, if they are true")])
    for one in candidates:
        fact = " ".join(line for line in one.lines if not line.startswith("because"))
        print_lines(console, paragraph(f"  {fact}:", one.effect, page_width(console), 4))


def observed_lines(bound: Bound, seen: Observed, width: int) -> Iterator[Line]:
    """What was run, and how far the bound is above the dearest of it."""
    yield ""
    most = {"instructions": seen.instructions, "cycles": seen.cycles}
    rows = [
        (f"  {unit}", getattr(bound, unit), value, f"{getattr(bound, unit) / max(1, value):.3f}")
        for unit, value in most.items()
    ]
    yield from table(rows, ("", "bound", "observed", "bound / observed"))
    calls = f"{counted(seen.held, 'call')} of {bound.entry} held against bound and facts, {seen.repeated} repeated"
    yield from paragraph("  ", f"{calls} by the p-code interpreter", width, 2)
    dearest = max(seen.calls, key=lambda call: call.cycles)
    counts = f"{dearest.instructions:,} instructions, {dearest.cycles:,} cycles"
    yield from paragraph("  ", f"dearest in cycles: {dearest.call}, {counts}", width, 2)
    if seen.found:
        found = seen.found
        said = f"dearest of {found.evaluations:,} inputs, seed {found.seed}: {found.cycles:,} cycles, by"
        yield from paragraph("  ", said, width, 2)
        for line in found.script:
            yield from paragraph("    ", line, width, 4)
    yield ""


def _formula(formula: Formula, width: int) -> Iterator[str]:
    values = [value for value, _ in formula.samples]
    yield from paragraph("", str(formula), width, 1)
    held = f"proved to hold at {len(values)} values of {formula.parameter}, from {min(values):,} to {max(values):,}"
    yield from paragraph("", held, width, 1)


def _grounds(bound: Bound, image: Image, width: int, executions: Mapping[str, int] | None = None) -> Iterator[Line]:
    yield ""
    yield heading("Loops")
    yield from all_loops(bound.loops, image, width)
    yield ""
    yield heading("Assumptions")
    yield from all_assumptions([one for one in bound.assumptions if not one.is_proved], width, executions)
    if proved := [one for one in bound.assumptions if one.is_proved]:
        yield ""
        yield heading("Facts that are proved, under the lemmas and premises among these")
        yield from all_assumptions(proved, width, executions)
    yield from idle_facts(bound, width)


def listing(
    gaps: Sequence[BlockGap], image: Image, sources: Mapping[str, str], width: int, *, observed: bool
) -> Iterator[str]:
    """Each block with its place, source lines and disassembly, and how often it is executed.

    Args:
        gaps: the blocks.
        image: the binary.
        sources: texts of source files by name, as far as they are known.
        width: of a line, in characters.
        observed: whether there is an observation beside the worst path.
    """
    lines = {name: text.splitlines() for name, text in sources.items()}
    if not any(gap.bound_executions for gap in gaps):
        yield "no path was found that attains the bound"
    for gap in gaps:
        yield ""
        head_line = f"{gap.location}: {_executions(gap, observed=observed)}"
        yield from textwrap.wrap(head_line, width, subsequent_indent="    ", break_on_hyphens=False)
        last = None
        for instruction in gap.instructions:
            place = image.lines.find(instruction.address)
            if place and place != last:
                yield cut(f"  {place[0]}:{place[1]}  {_line(lines, *place)}".rstrip(), width)
            last = place or last
            yield f"      {instruction.address:#010x}  {instruction.text}"


def _executions(gap: BlockGap, *, observed: bool) -> str:
    if not observed:
        total = gap.bound_executions * len(gap.instructions)
        return f"{counted(gap.bound_executions, 'time')}, {total:,} instructions"
    if gap.cause is Cause.SAME:
        return f"{counted(gap.bound_executions, 'time')}, as observed"
    times = f"worst {gap.bound_executions:,}, observed {gap.observed_executions:,}"
    return f"{times}, {gap.difference:+,} instructions: {gap.cause.value}"


def _line(lines: Mapping[str, Sequence[str]], file: str, number: int) -> str:
    text = lines.get(file, ())
    return text[number - 1].strip() if 0 < number <= len(text) else ""


def attribution(gaps: Sequence[BlockGap], bound: Bound, observed_instructions: int, width: int) -> Iterator[str]:
    """Bound minus observation as a sum over causes and blocks; it adds up exactly.

    Args:
        gaps: all blocks of the worst path and the observed one.
        bound: what was proved.
        observed_instructions: of the observed run.
        width: of a line, in characters.
    """
    slack = bound.instructions - observed_instructions
    rows: list[tuple[object, ...]] = []
    for cause in Cause:
        found = [gap for gap in gaps if gap.cause is cause and gap.difference]
        if found:
            rows.append((f"{cause.value}:", "", "", sum(gap.difference for gap in found)))
        rows += [(f"  {g.location}", g.bound_executions, g.observed_executions, g.difference) for g in found]
    if above := bound.instructions - sum(block.cost for block in bound.worst_path):
        rows.append(("what is proved above the worst path", "", "", above))
    if not rows:
        yield "bound and observation are equal, block by block"
        return
    rows.append(("bound - observed", "", "", slack))
    yield from (cut(line, width) for line in table(rows, ("cause and block", "worst", "observed", "instructions")))


def all_loops(loops: Sequence[LoopBound], image: Image, width: int) -> Iterator[str]:
    """Every loop in each of its contexts, with the number, where it comes from and why it holds."""
    if not loops:
        yield "no loops"
        return
    yield f"{counted(len(loops), 'loop')}: {origins(loops)}"
    for loop in loops:
        total = "" if loop.total is None else f", {loop.total:,} in all"
        yield ""
        yield f"  {loop.location}"
        yield from _item("at most", f"{loop.max:,} executions of the header for each entry{total}", width)
        yield from _item(loop.origin.value, f"{loop.expression}{f' ({loop.where})' if loop.where else ''}", width)
        if loop.because:
            yield from _item("because", loop.because, width)
        if loop.context:
            yield from _item("called at", ", ".join(map(image.location, loop.context)), width)


def fact_effects(effects: FactEffects, width: int) -> Iterator[str]:
    """The bound with all facts, with loop facts only, with none, and without each as far as that was asked for."""

    def row(title: str, found: Units | None) -> tuple[object, ...]:
        return (title, found.instructions, found.cycles) if found else (title, "none", "none")

    rows = [
        row("all facts", effects.all),
        row("loop facts only", effects.loop_facts_only),
        row("no facts", effects.no_facts),
        *(row(f"without the {one.kind} fact {one.where}", one.without) for one in effects.facts or ()),
    ]
    yield from (cut(line, width) for line in table(rows, ("proved with", "instructions", "cycles")))
    if effects.facts is None:
        yield "  the bound without each fact: --fact-effects"


def idle_facts(bound: Bound, width: int) -> Iterator[Line]:
    """Facts without effect, and why they have none; nothing where all have one."""
    if bound.idle_facts:
        yield ""
        yield heading("Facts without effect")
        for one in bound.idle_facts:
            yield from paragraph("", f"{one.where}: {one.why}", width, 2)


def all_assumptions(
    assumptions: Sequence[Assumption], width: int, executions: Mapping[str, int] | None = None
) -> Iterator[str]:
    """Every assumption, how it is checked, and in how many ``executions`` by its id; None where nothing was run."""
    for number, assumption in enumerate(assumptions):
        if number:
            yield ""
        yield f"  {assumption.id}"
        yield from _item("", assumption.statement, width)
        yield from _item("checked", how_checked(assumption, executions), width)


def _item(label: str, text: str, width: int) -> Iterator[str]:
    yield from paragraph(f"    {label}", text, width, _LABEL_WIDTH)
