"""What a person reads on a terminal: one screen an answer, and pages of what there is.

Renderers only read their values and print to the console that they are given. Colour never carries meaning alone.
"""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from rich.console import Console
from rich.text import Text

from wcet_probe.model.allocator import Allocator
from wcet_probe.model.measurement import CacheCounts
from wcet_probe.model.report import CrossCheck, Report, Verdict
from wcet_probe.model.scenario import OperationKind
from wcet_probe.model.target import Target
from wcet_probe.reports.screens.bound import (
    both_sides,
    how_many_assumed,
    short_assumptions,
    short_idle_facts,
    short_loops,
    timing_model,
)
from wcet_probe.reports.screens.layout import glyphs, paragraph, strip, strip_columns, table
from wcet_probe.sizes import format_size

_WIDEST = 100
_DIGITS_SHOWN = 16
_FACTS_SHOWN = 3
_FUNCTIONS_SHOWN = 5
_VERDICTS = {
    Verdict.OBSERVED: "a witness, a lower bound of the WCET; no upper bound was asked for.",
    Verdict.BOUNDED: "a witness below, a proven upper bound above",
    Verdict.BOUNDED_BY_TYPE: "a witness below; the upper bound rests on the width of a type, so it says nothing.",
    Verdict.UNBOUNDED: "a witness, a lower bound of the WCET; no upper bound was established.",
    Verdict.OVER_BUDGET: "the upper bound is above the budget.",
    Verdict.CONTRADICTED: "observation and proof contradict each other; the model or the tool has a bug.",
}
Line = str | Text
"""A line of a page, with or without style."""


def render(report: Report, console: Console) -> None:
    """Print ``report`` on one screen: the answer, the state, the counts, the touched sets, the image."""
    print_lines(console, _screen(report, page_width(console), glyphs(console.encoding)))


def render_comparison(reports: Sequence[Report], console: Console) -> None:
    """Print one aligned table with a row for each of ``reports``, and why a bound is missing."""
    subject = ("allocator", "target", "heap", "instruc-\ntions")
    misses = ("I\nmisses", "D\nmisses")
    if all(report.verdict is Verdict.OBSERVED for report in reports):
        titles: Sequence[str] = (*subject, "cycles", *misses, "sets\nI + D", "stack\nbytes")
        render_table(titles, map(_comparison, reports), console)
    else:
        render_table((*subject, "bound", "cycles", "bound", *misses), map(_bounded, reports), console)
    for report in reports:
        if report.no_bound:
            text = f"{_name(report)}, heap {format_size(report.heap_bytes)}: {report.no_bound}"
            print_lines(console, ["", *paragraph("", text, page_width(console), 1)])


def render_allocator(allocator: Allocator, console: Console) -> None:
    """Print the manifest of ``allocator``: what it is, its parameters, entry points, claims and literature."""
    print_lines(console, _allocator_page(allocator, page_width(console)))


def render_scenario(name: str, description: str, allocators: Iterable[str], console: Console) -> None:
    """Print what scenario ``name`` is, and the ``allocators`` that offer it."""
    print_lines(console, [heading(name)])
    print_lines(console, paragraph("", description, page_width(console)))
    print_lines(console, paragraph("Offered by", ", ".join(allocators), page_width(console)))


_IN_CELLS = dict.fromkeys([*range(0x20), *range(0x7F, 0xA0)], "?")
_IN_LINES = {code: mark for code, mark in _IN_CELLS.items() if code != ord("\n")}
"""A mark for each control character; as long as it, so that styles keep their places."""


def render_table(header: Sequence[str], rows: Iterable[Sequence[object]], console: Console) -> None:
    """Print ``rows`` in aligned columns under the titles of ``header``; no cell can begin a line of its own."""
    shown = ([one.translate(_IN_CELLS) if isinstance(one, str) else one for one in row] for row in rows)
    print_lines(console, table(shown, header))


def print_lines(console: Console, lines: Iterable[Line]) -> None:
    """Print ``lines`` as they are, but for what would command the terminal: documents come from anybody."""
    for line in lines:
        text = Text(line) if isinstance(line, str) else line
        if text.plain != (shown := text.plain.translate(_IN_LINES)):
            text.plain = shown
        console.print(text, soft_wrap=True)


def page_width(console: Console) -> int:
    """Characters of a line: those of the console, but not too many to read."""
    return min(console.width, _WIDEST)


def heading(text: str) -> Text:
    """``text`` as a heading."""
    return Text(text, style="bold")


# ---------------------------------------------------------------------------------------------------------- one answer


def _screen(report: Report, width: int, characters: str) -> Iterator[Line]:
    plan = report.plan
    values = "".join(f" {name}={value}" for name, value in report.allocator.values.items())
    yield from head(report, width)
    if report.bound:
        yield from short_loops(report.bound.loops, width)
        yield from short_assumptions(report.bound.assumptions, width, report.executions)
        yield from short_idle_facts(report.bound.idle_facts)
    yield ""
    yield from paragraph("State", plan.state, width)
    for number, reason in enumerate(plan.why):
        yield from paragraph("" if number else "Why", reason, width)
    if len(report.candidates) + len(report.left_out) > 1:
        yield from paragraph("Compared", _candidates(report), width)
    yield from paragraph("Proved", _proved(report), width)
    if plan.driver:
        yield from paragraph("Grows with", f"{plan.driver} = {plan.driver_value:,}", width)
    yield from paragraph("Measured", _call(report), width)
    if report.cross_check:
        yield from paragraph("Repeated", _cross_check(report.cross_check, report.target), width)
    elif report.no_cross_check:
        yield from paragraph("Repeated", report.no_cross_check, width)
    yield ""
    yield heading("Counted")
    yield from _within(_counted(report), width)
    if by_function := _by_function(report):
        yield from paragraph("", by_function, width, 1)
    if _cached(report.target):
        yield ""
        yield from _touched(report, width, characters)
    yield ""
    yield from paragraph("Image", f"sha256 {report.image.sha256[:_DIGITS_SHOWN]}, {report.image.compiler}", width)
    if values:
        yield from paragraph("", f"with{values}", width)


def head(report: Report, width: int) -> Iterator[Line]:
    """The answer in a few lines: what, where, the verdict, and the bound beside the observation."""
    bound, cached = report.bound, _cached(report.target)
    instructions, cycles = (witness.value(unit) for unit, witness in report.witnesses.items())
    entry = f", caches {report.initial_cache.value} at entry" if cached else ", no caches"
    where = f"{report.plan.scenario}, heap {format_size(report.heap_bytes)}{entry}"
    if bound is None:
        yield heading(f"{_name(report)}: {instructions:,} instructions, {cycles:,} cycles")
        yield where
        yield from textwrap.wrap(_refused(report), width)
        yield f"{report.verdict.value}: {_VERDICTS[report.verdict]}"
        if report.no_bound:
            yield from paragraph("", report.no_bound, width, 1)
        yield from timing_model(report.target, report.question.cache_options, width)
        return
    kind = report.plan.measured.kind.value
    most = f"{bound.instructions:,} instructions, {bound.cycles:,} cycles"
    yield heading(f"{_name(report)}: {kind} takes at most {most}")
    yield where
    yield from textwrap.wrap(_refused(report), width)
    assumed = how_many_assumed(bound.assumptions)
    yield f"{report.verdict.value}: {_VERDICTS[report.verdict]}, under {assumed}."
    yield ""
    yield from both_sides(bound, report.witnesses, report.plan.scenario, width)
    yield from timing_model(report.target, report.question.cache_options, width)
    yield ""


def _refused(report: Report) -> str:
    """Which of the observed allocations return no block; nothing where all do."""
    refused = [unit for unit, witness in report.witnesses.items() if witness.refused]
    which = "" if len(refused) == len(report.witnesses) else f" with most {' and '.join(refused)}"
    return f"The observed allocation{which} is refused: it returns NULL." if refused else ""


def _name(report: Report) -> str:
    return f"{report.allocator.name} on {report.target.name}"


def _cached(target: Target) -> bool:
    return bool(target.icache or target.dcache)


def _candidates(report: Report) -> str:
    cycles = [candidate.cycles for candidate in report.candidates]
    spread = f"{min(cycles):,} to {max(cycles):,} cycles"
    no_state = f"; {len(report.left_out)} more are none of this allocator" if report.left_out else ""
    states = f"{len(cycles)} candidate state{'s' * (len(cycles) > 1)}"
    return f"{states}, {spread}; this one is: {report.plan.variant}{no_state}"


def _proved(report: Report) -> str:
    if not report.checks:
        return "nothing: the scenario predicts no fact of its state"
    facts = [f"{check.fact} {check.found}" for check in report.checks[:_FACTS_SHOWN]]
    if more := len(report.checks) - len(facts):
        facts.append(f"{more} more")
    return f"in the guest's heap, as predicted: {', '.join(facts)}"


def _call(report: Report) -> str:
    operation = report.plan.measured
    if operation.kind is OperationKind.FREE:
        if not report.allocator.free_takes_size:
            return f"free(block {operation.slot})"
        trace = report.plan.trace
        taken = max(at for at, slot in enumerate(trace.slots) if slot == operation.slot)
        return f"free(block {operation.slot}, {trace.sizes_bytes[taken]} bytes)"
    cache_set = f", set {operation.cache_set}" if report.allocator.takes_cache_set else ""
    return f"malloc({operation.size_bytes}{cache_set}) = {report.measurement.result:#010x}"


def _cross_check(check: CrossCheck, target: Target) -> str:
    misses = ("misses of fetches", "misses of data") if target.unified_cache else ("I-cache misses", "D-cache misses")
    counts = [
        (check.instructions, "instructions"),
        (check.loads, "loads"),
        (check.stores, "stores"),
        (check.icache_misses, misses[0]),
        (check.dcache_misses, misses[1]),
        (check.dcache_writebacks, "write-backs"),
    ]
    return f"by {check.engine}, the same: {', '.join(f'{n:,} {what}' for n, what in counts if n is not None)}"


def _within(rows: Sequence[tuple[int | str, ...]], width: int) -> Iterator[str]:
    """The rows as a table, whose last column goes on in further lines where it is too long for a line."""
    for row, line in zip(rows, table(rows), strict=True):
        indent = " " * (len(line) - len(str(row[-1])))
        yield from textwrap.wrap(line, width, subsequent_indent=indent, break_on_hyphens=False)


def _counted(report: Report) -> list[tuple[str, int | str, str]]:
    counts = report.measurement
    cycles = f"{counts.instruction_cycles:,} by the timing table, {counts.stall_cycles:,} waiting for memory"
    unified = report.target.unified_cache
    evicted = f", {counts.icache.writebacks:,} write-backs" if unified else ""
    writes = f", {counts.dcache.writebacks:,} write-backs, {counts.dcache.memory_writes:,} single writes"
    return [
        ("instructions", counts.instructions, ""),
        ("cycles", counts.cycles, cycles),
        ("data accesses", counts.loads + counts.stores, f"{counts.loads:,} loads, {counts.stores:,} stores"),
        ("stack bytes", counts.stack_bytes, "deepest extent below the caller's stack pointer"),
        ("cache fetches" if unified else "I-cache accesses", *_accesses(counts.icache, evicted)),
        ("cache data" if unified else "D-cache accesses", *_accesses(counts.dcache, writes)),
    ]


def _accesses(counts: CacheCounts, writes: str) -> tuple[int | str, str]:
    if not counts.present:
        return "-", "no such cache"
    return counts.hits + counts.misses, f"{counts.hits:,} hits, {counts.misses:,} misses{writes}"


def _by_function(report: Report) -> str:
    """The functions with the most instructions, and the rest as one number; nothing where there is but one."""
    by_name: Counter[str] = Counter()
    for run in report.measurement.runs:
        function = report.image.function_at(run.address)
        by_name[function.name if function else f"{run.address:#010x}"] += run.instructions * run.executions
    ranked = sorted(by_name.items(), key=lambda item: (-item[1], item[0]))
    shown = [f"{name} {count:,}" for name, count in ranked[:_FUNCTIONS_SHOWN]]
    if rest := ranked[_FUNCTIONS_SHOWN:]:
        shown.append(f"{len(rest)} more functions {sum(count for _, count in rest):,}")
    return f"instructions of {', '.join(shown)}" if len(ranked) > 1 else ""


def _touched(report: Report, width: int, characters: str) -> Iterator[Line]:
    counts = report.measurement
    strips = []
    unified = report.target.unified_cache
    if cache := report.target.icache:
        strips.append(("fetches" if unified else "I-cache", counts.touched_instruction_sets, cache.sets))
    if cache := report.target.dcache:
        strips.append(("data" if unified else "D-cache", counts.touched_data_sets, cache.sets))
        regions = counts.touched_sets_by_region.items()
        strips += [(f" {name.replace('_', ' ')}", sets, cache.sets) for name, sets in regions if sets]
    names = max(len(name) for name, _, _ in strips)
    numbers = max(len(str(len(sets))) for _, sets, _ in strips)
    caches = [f"{name} {sets} sets" for name, _, sets in strips if not name.startswith(" ")]
    yield heading(f"Touched cache sets ({f'one cache, {strips[0][2]} sets' if unified else ', '.join(caches)})")
    for name, touched, sets in strips:
        columns = strip_columns(sets, width - names - numbers - 4)
        yield f"  {name:<{names}} {len(touched):>{numbers}} {strip(touched, sets, columns, characters)}"
    none, some, every = tuple(characters)
    yield f"  from set 0 on; {every} all, {some} some, {none} none of the sets of a place are touched"


def _comparison(report: Report) -> tuple[object, ...]:
    counts = report.measurement
    sets = f"{len(counts.touched_instruction_sets)} + {len(counts.touched_data_sets)}"
    cached = counts.icache.present or counts.dcache.present
    return (
        report.allocator.name,
        report.target.name,
        format_size(report.heap_bytes),
        report.witnesses["instructions"].measurement.instructions,
        counts.cycles,
        counts.icache.misses if counts.icache.present else "-",
        counts.dcache.misses if counts.dcache.present else "-",
        sets if cached else "-",
        counts.stack_bytes,
    )


def _bounded(report: Report) -> tuple[object, ...]:
    name, target, heap, instructions, cycles, *misses, _, _ = _comparison(report)
    proved = (report.bound.instructions, report.bound.cycles) if report.bound else ("-", "-")
    return name, target, heap, instructions, proved[0], cycles, proved[1], *misses


# ---------------------------------------------------------------------------------------------------------- allocators


def items(title: str, entries: Iterable[tuple[str, str]], width: int) -> Iterator[Line]:
    """A section of labelled paragraphs; nothing where there is none."""
    pairs = list(entries)
    if pairs:
        yield heading(f"\n{title}")
    labels = max((len(label) for label, _ in pairs), default=0) + 2
    for label, text in pairs:
        yield from paragraph(f"  {label:<{labels - 2}}", text, width, labels)


def _allocator_page(allocator: Allocator, width: int) -> Iterator[Line]:
    yield heading(f"{allocator.name}: {allocator.title}")
    yield from paragraph("", allocator.summary, width, 1)
    yield ""
    yield from table(
        [
            ("alignment", format_size(allocator.alignment_bytes)),
            ("minimum heap", format_size(allocator.minimum_heap_bytes)),
            *((role, f"{symbol}()") for role, symbol in allocator.entry_points.items()),
        ]
    )
    if allocator.parameters:
        yield heading("\nParameters")
        yield from table(
            [
                (p.name, allocator.values.get(p.name, p.default), p.default, p.choices_in_words, p.macro)
                for p in allocator.parameters
            ],
            ("name", "value", "default", "choices", "macro"),
        )
    yield from items("Meaning", ((p.name, p.description) for p in allocator.parameters), width)
    claims = ((name, f"{c.claim} [{c.source}]") for name, c in allocator.complexity.items())
    yield from items("Claimed complexity", claims, width)
    yield from items("Literature", (("-", text) for text in allocator.literature), width)
