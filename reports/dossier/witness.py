"""Sections of a dossier: the witness and its distance from the bound, and what the numbers depend on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from wcet_probe.reports.dossier.blocks import Block, KeyValues, Paragraph, Section, Table
from wcet_probe.reports.dossier.runs import runs_section
from wcet_probe.reports.dossier.subject import BOUND, Answer, Json, Subject, counted, left_out, number, picture
from wcet_probe.sizes import format_size

_GAPS_SHOWN = 12
_REGIONS = {
    "code": "code",
    "static": "static data",
    "stack": "stack",
    "heap_metadata": "heap metadata",
    "heap_blocks": "heap blocks",
}
_VARIED = {
    "heap_bytes": "heap",
    "caches": "caches",
    "initial_cache": "caches at entry",
    "memory": "memory latency",
    "parameters": "build parameters",
}
_LOOKS_FOR_WORST = ("worst-alloc", "worst-free")


def witness_section(subject: Subject, *, full: bool) -> Section:
    """Each observation: its state and why, its counts, and where its distance from the bound is."""
    from wcet_probe.reports.pictures import gap_bars, heat_strip  # noqa: PLC0415  (drawn only here)

    parts = []
    for place, answer in enumerate(subject.observations(), 1):
        if answer.document["format"] == BOUND:
            parts.append(runs_section(answer, f"witness-{place}-{subject.anchor}", full=full))
            continue
        document, words = answer.document, f"{answer.label} on {answer.document['target']}"
        blocks = [*_state(answer), *_counts(answer), *_candidates(document, full=full)]
        blocks += picture(
            f"Cache sets that the call touched: {answer.label}",
            f"For each memory region, the cache sets that {words} touched.",
            heat_strip(document),
        )
        blocks += _gap(answer, full=full)
        blocks += picture(
            f"Where bound and observation differ: {answer.label}",
            f"A bar for each block of {words} whose executions on the worst path differ from those observed.",
            gap_bars(document),
        )
        parts.append(Section(f"Witness: {answer.label}", f"witness-{place}-{subject.anchor}", tuple(blocks)))
    lead = Paragraph(
        "A witness is one call that was executed in an emulator, of an allocator from a heap state that was built and "
        "read back. It is a lower bound of the worst case: the worst case lies between it and the bound."
        if parts
        else "Nothing was executed: a bound of a firmware's function is proved from the file alone."
    )
    return Section("Witness and gap", f"witness-{subject.anchor}", (lead,), tuple(parts))


def _state(answer: Answer) -> Iterator[Block]:
    document = answer.document
    state, measured = document["state"], document["measured_operation"]
    size = f"({measured['size_bytes']:,})" if measured["kind"] == "malloc" else ""
    refused = measured["kind"] == "malloc" and document["observed"].get("result") == 0
    command = document.get("command")
    rows = [
        ("Call", f"`{measured['kind']}{size}`{', refused: it returns NULL' if refused else ''}"),
        ("State", state["description"]),
        ("Why this one", " ".join(state["why"])),
        ("Caches at entry", document["initial_cache"]),
    ]
    if state.get("driver"):
        rows.append(("Cost grows with", f"{state['driver']}: {number(state['driver_value'])}"))
    if command:
        rows.append(("To repeat it", f"`{command}`"))
    yield KeyValues(tuple(rows))
    checks = tuple((one["fact"], number(one["predicted"]), number(one["found"])) for one in state["checks"])
    if checks:
        yield Table(
            "The state, predicted and read from the guest's memory", ("Fact", "Predicted", "Found"), checks, "lrr"
        )


def _counts(answer: Answer) -> Iterator[Block]:
    seen, document = answer.observed or {}, answer.document
    rows = [
        ("Instructions", number(seen["instructions"])),
        (
            "Cycles",
            f"{seen['cycles']:,}: {seen['instruction_cycles']:,} of instructions, {seen['stall_cycles']:,} of memory",
        ),
        ("Loads, stores", f"{seen['loads']:,}, {seen['stores']:,}"),
    ]
    for key, words in (("icache", "Instruction cache"), ("dcache", "Data cache")):
        counts = seen[key]
        if counts["present"]:
            backs = f", {counts['writebacks']:,} write-backs" if key == "dcache" else ""
            rows.append((words, f"{counts['hits']:,} hits, {counts['misses']:,} misses{backs}"))
    touched = {region: sets for region, sets in seen["touched_sets_by_region"].items() if sets}
    if touched:
        words = ", ".join(f"{_REGIONS.get(region, region)} {len(sets)}" for region, sets in sorted(touched.items()))
        rows.append(("Data cache sets touched, by region", words))
    rows.append(("Stack", f"{seen['stack_bytes']:,} bytes below the value at entry"))
    checked = "equal counts in the second engine" if document.get("cross_check") else "not by a second engine"
    rows.append(("Cross-check", checked))
    yield KeyValues(tuple(rows))


def _candidates(document: Json, *, full: bool) -> Iterator[Block]:
    candidates, refused = document["state"].get("candidates") or (), document["state"].get("left_out") or ()
    if len(candidates) + len(refused) < 2:
        return
    shown = candidates if full else candidates[:6]
    rows = tuple((one["variant"], number(one["instructions"]), number(one["cycles"])) for one in shown)
    yield Table("Candidate states that were measured", ("State", "Instructions", "Cycles"), rows, "lrr")
    yield from left_out(candidates, len(shown), "candidate states")
    if refused:
        why = "which refuses the block that is freed, or does not come back"
        yield Paragraph(f"No states of this allocator, {why}: {'; '.join(refused)}.", "note")


def _gap(answer: Answer, *, full: bool) -> Iterator[Block]:
    document, slack = answer.document, answer.document.get("slack")
    bound, seen = answer.bound, answer.witnessed
    if bound is None or seen is None or slack is None:
        yield Paragraph("There is no bound to compare with.")
        return
    words = [
        f"{unit}: {bound[unit]:,} against {seen[unit]:,}, a slack of {slack[unit]:,} ({_ratio(bound, seen, unit)})"
        for unit in ("instructions", "cycles")
    ]
    yield Paragraph("; ".join(words).capitalize() + ".", "lead")
    witnesses = document.get("witnesses")
    if witnesses and witnesses["instructions"]["variant"] != witnesses["cycles"]["variant"]:
        yield Paragraph(
            "No one state is the dearest in both units: most cycles were counted in the one that is described above, "
            f"most instructions in this one: {witnesses['instructions']['variant']}."
        )
    if document["scenario"] not in _LOOKS_FOR_WORST:
        yield Paragraph("This scenario does not look for the dearest call: its slack says nothing about the bound.")
    gap = document.get("gap")
    if gap is None:
        yield Paragraph("The slack was not attributed: the result was made without `--why`.", "note")
    elif slack["instructions"] == 0:
        yield Paragraph("In instructions the bound is exact: an execution attains it.")
    else:
        yield from _attribution(gap, full=full)
    if slack["cycles"]:
        yield Paragraph(
            "The slack in cycles is not attributed block by block. Besides that of the path it consists of accesses "
            "whose hit in a cache was observed and not proved, and of write-backs that did not take place.",
            "note",
        )


def _ratio(bound: Json, seen: Json, unit: str) -> str:
    return f"{bound[unit] / seen[unit]:.3f} times"


def _attribution(gap: Json, *, full: bool) -> Iterator[Block]:
    causes: dict[str, list[int]] = {}
    for one in gap["blocks"]:
        if one["instructions"]:
            causes.setdefault(one["cause"], []).append(one["instructions"])
    rows = [(cause, number(len(counts)), f"{sum(counts):+,}") for cause, counts in sorted(causes.items())]
    if gap["above_worst_path"]:
        rows.append(("above every path, by the relaxed flow problem", "—", f"{gap['above_worst_path']:+,}"))
    rows.append(("in all", "—", f"{gap['instructions']:+,}"))
    yield Table("The slack in instructions, by cause", ("Cause", "Blocks", "Instructions"), tuple(rows), "lrr")
    blocks = sorted(
        (one for one in gap["blocks"] if one["instructions"]),
        key=lambda one: (-abs(one["instructions"]), one["address"]),
    )
    shown = blocks if full else blocks[:_GAPS_SHOWN]
    header = ("Block", "Cause", "Worst path", "Observed", "Instructions")
    cells = tuple(
        (
            one["location"],
            one["cause"],
            number(one["bound_executions"]),
            number(one["observed_executions"]),
            f"{one['instructions']:+,}",
        )
        for one in shown
    )
    yield Table("Blocks whose executions differ", header, cells, "clrrr")
    yield from left_out(blocks, len(shown), "blocks")


# ---------------------------------------------------------------------------------------------------------- sensitivity


def sensitivity_section(subject: Subject) -> Section:
    """How bound and observation change with the heap and the caches, as far as the results tell it."""
    from wcet_probe.reports.pictures import wcet_against_heap  # noqa: PLC0415  (drawn only here)

    varied = [words for key, words in _VARIED.items() if _varies(subject, key)]
    constant = [words for words in _VARIED.values() if words not in varied]
    blocks: list[Block] = [*_formulas(subject.answers)]
    if varied:
        blocks.append(_side_by_side(subject.answers))
    blocks += picture(
        f"WCET against the size of the heap: {subject.title}",
        f"Bounds and observations of {subject.title} over heap sizes.",
        wcet_against_heap([answer.document for answer in subject.answers]),
    )
    if constant:
        text = f"Not varied between the results that this report is made of: {', '.join(constant)}."
        blocks.append(Paragraph(text, "note"))
    return Section("Sensitivity", f"sensitivity-{subject.anchor}", tuple(blocks))


def _varies(subject: Subject, key: str) -> bool:
    return len({str(answer.document.get(key)) for answer in subject.answers}) > 1


def _formulas(answers: Sequence[Answer]) -> Iterator[Block]:
    """The bounds as formulas, and the samples between which they are not proved."""
    found = {answer.entry: answer.document["formula"] for answer in answers if answer.document.get("formula")}
    for entry, formula in found.items():
        terms = [formula["constant"], *(f"{one['factor']} * ({one['expression']})" for one in formula["terms"])]
        yield Paragraph(f"The bound of `{entry}` in instructions is `{' + '.join(terms)}` at the heap sizes H below.")
    samples = {
        entry: {one[formula["parameter"]]: one["instructions"] for one in formula["samples"]}
        for entry, formula in found.items()
    }
    heaps = sorted({heap for one in samples.values() for heap in one})
    if heaps:
        rows = tuple((format_size(heap), *(number(one.get(heap)) for one in samples.values())) for heap in heaps)
        header = ("H", *(f"Bound of `{entry}`" for entry in samples))
        yield Table("Bounds over heap sizes, in instructions", header, rows, "r" * len(header))
        yield Paragraph("A bound was proved at each of these sizes; between them the formula is not proved.", "note")


def _side_by_side(answers: Sequence[Answer]) -> Table:
    rows = tuple(
        (
            answer.label,
            *(
                number((part or {}).get(unit))
                for unit in ("instructions", "cycles")
                for part in (answer.bound, answer.witnessed)
            ),
        )
        for answer in answers
    )
    header = ("Result", "Bound, instructions", "Observed", "Bound, cycles", "Observed")
    return Table(f"{counted(len(rows), 'result')} side by side", header, rows, "lrrrr")
