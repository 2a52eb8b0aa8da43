"""Sections of a dossier: the worst path in source and disassembly, the certificate and what the checker says of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from hashlib import sha256

from wcet_probe.certificate.kernel.verify import CheckedBound
from wcet_probe.reports.dossier.blocks import Block, Code, KeyValues, Paragraph, Section, Table
from wcet_probe.reports.dossier.code_check import code_check_words
from wcet_probe.reports.dossier.subject import Answer, Json, Subject, counted, left_out, number, picture

_BLOCKS_SHOWN = 12
_INSTRUCTIONS_SHOWN = 160
_FEWER_INSTRUCTIONS_SHOWN = 24
_MANY_SUBJECTS = 3


def results_section(subject: Subject, *, full: bool, among: int) -> Section:
    """Each bound with its worst path; ``among`` so many subjects, which decides how much code is printed."""
    from wcet_probe.reports.pictures import call_graph, control_flow_graph  # noqa: PLC0415  (drawn only here)

    parts = []
    shown = _FEWER_INSTRUCTIONS_SHOWN if among > _MANY_SUBJECTS else _INSTRUCTIONS_SHOWN
    for place, answer in enumerate(subject.proofs(), 1):
        blocks = list(_summary(answer))
        name = f"{answer.entry} on {answer.document['target']}"
        if ((answer.bound or {}).get("graph") or {}).get("calls"):
            alternative = f"The functions that {name} calls."
            blocks += picture(f"Call graph of `{answer.entry}`", alternative, call_graph(answer.document))
        if full or among <= _MANY_SUBJECTS:
            blocks += picture(
                f"Control flow of `{answer.entry}` with the worst path and its counts",
                f"The basic blocks of {name}; those of the worst path are marked and carry their executions.",
                control_flow_graph(answer.document),
            )
        blocks += _path(answer, full=full)
        blocks += _code(answer, None if full else shown)
        anchor = f"results-{place}-{subject.anchor}"
        parts.append(Section(f"Bound of `{answer.entry}`, {answer.label}", anchor, tuple(blocks)))
    lead = "" if parts else "No bound was proved; what was observed is in the section on the witness."
    return Section("Results", f"results-{subject.anchor}", (Paragraph(lead),) if lead else (), tuple(parts))


def _summary(answer: Answer) -> Iterator[Block]:
    bound = answer.bound or {}
    apart = ", ".join(f"`{name}`" for name in bound.get("summarised") or ())
    expanded = "each call expanded where it stands" + (f", but for those of {apart}, analysed once" if apart else "")
    rows = [
        ("Bound", f"{bound['instructions']:,} instructions; {number(bound['cycles'])} cycles"),
        ("Basic blocks", f"{bound['blocks']:,}, {expanded}"),
        ("Loops", f"{len(bound['loops']):,} in all call contexts"),
    ]
    graph = bound.get("graph")
    if graph:
        rows.append(
            ("Flow graph", f"{len(graph['blocks']):,} blocks and {len(graph['edges']):,} edges, contexts put together")
        )
    yield KeyValues(tuple(rows))


def _path(answer: Answer, *, full: bool) -> Iterator[Block]:
    """The dearest blocks of the worst path in instructions."""
    bound = answer.bound or {}
    path = bound["worst_path"]
    if not path:
        yield Paragraph("No path was found that attains the bound: the bound is that of the relaxed flow problem.")
        return
    cycles = {(one["address"], *one["context"]): one["cost_cycles"] for one in bound.get("worst_path_cycles") or ()}
    dearest = sorted(path, key=lambda one: (-one["cost_instructions"], one["address"], one["context"]))
    shown = dearest if full else dearest[:_BLOCKS_SHOWN]
    header = ("Block", "Call depth", "Executions", "Instructions", "Share", "Cycles on their worst path")
    rows = tuple(_path_row(one, bound["instructions"], cycles) for one in shown)
    most = "All blocks" if full else "Dearest blocks"
    yield Table(f"{most} of the worst path in instructions", header, rows, "crrrrr")
    yield from left_out(path, len(shown), "blocks of the worst path")


def _path_row(one: Json, total: int, cycles: Mapping[tuple[str, ...], int]) -> tuple[str, ...]:
    share = f"{100 * one['cost_instructions'] / total:.1f} %"
    place = cycles.get((one["address"], *one["context"]))
    return (
        one["location"],
        str(len(one["context"])),
        number(one["executions"]),
        number(one["cost_instructions"]),
        share,
        number(place),
    )


def _code(answer: Answer, most: int | None) -> Iterator[Block]:
    """Source and disassembly of the worst path, of its dearest blocks first if ``most`` instructions are too few."""
    document, bound = answer.document, answer.bound or {}
    listing = document.get("listing")
    if not listing or not bound["worst_path"]:
        return
    executed: Counter[tuple[str, str]] = Counter()
    for one in bound["worst_path"]:
        executed[one["address"], one["end_address"]] += one["executions"]
    places = {(one["address"], one["end_address"]): one["location"] for one in bound["worst_path"]}
    by_block = {span: [one for one in listing if span[0] <= one["address"] < span[1]] for span in executed}
    chosen: list[tuple[str, str]] = []
    room = most
    for span in sorted(executed, key=lambda span: (-executed[span] * len(by_block[span]), span)):
        if room is not None and chosen and len(by_block[span]) > room:
            continue
        chosen.append(span)
        room = None if room is None else room - len(by_block[span])
    lines: list[str] = []
    for span in sorted(chosen):
        lines += (
            ["", f"{places[span]}: {counted(executed[span], 'time')}"]
            if lines
            else [f"{places[span]}: {counted(executed[span], 'time')}"]
        )
        lines += _block_lines(by_block[span], document.get("source_lines") or {})
    caption = f"Worst path of `{answer.entry}` in source and disassembly"
    yield Code(caption if len(chosen) == len(executed) else f"{caption}, dearest blocks", "\n".join(lines))
    yield from left_out([*executed], len(chosen), "blocks in source and disassembly")


def _block_lines(listing: list[Json], sources: Json) -> Iterator[str]:
    last = None
    for one in listing:
        place = one.get("file"), one.get("line")
        if place[0] and place != last:
            text = (sources.get(place[0]) or {}).get(str(place[1]), "").strip()
            yield f"  {place[0]}:{place[1]}  {text}".rstrip()
        last = place if place[0] else last
        yield f"    {one['address']}  {one['text']}"


# ---------------------------------------------------------------------------------------------------------- certificate

_CHECKER = (
    "The checker builds the flow problem of a certificate again, checks with exact arithmetic that no path costs more "
    "than the bound, and derives the loop bounds again. It uses neither the solver nor the analyzer. Where it has the "
    "binary, it decodes that again and holds graph, costs, invariants, loop counters, cache annotations, facts and "
    "assumptions against it; where it has none, it takes these and the constraints that are counted below as given. "
    "That declared facts and assumptions hold is taken as given always."
)


def certificate_section(subject: Subject) -> Section:
    """What the independent checker made of each certificate when this report was made."""
    rows = [
        _certificate_row(answer, text, one)
        for answer in subject.proofs()
        for text, one in zip((answer.bound or {})["certificates"], answer.checked, strict=True)
    ]
    if not rows:
        none = Paragraph("There is no certificate, as there is no bound.")
        return Section("Certificate and checker's verdict", f"certificate-{subject.anchor}", (none,))
    header = ("Call", "Unit", "Proved: at most", "Nodes", "Edges", "Loops derived", "Given", "Invariants", "SHA-256")
    verdict = Paragraph(
        f"The arithmetic of all {len(rows)} certificates holds: it was computed again when this report was made. "
        "How far they were held against the code stands below.",
        "lead",
    )
    against = tuple((f"{one.entry}, {one.label}", code_check_words(one)) for one in subject.proofs())
    table = Table("Certificates that were checked", header, tuple(rows), "llrrrrrrc")
    digests = tuple((f"{answer.entry}, {answer.label}", (answer.bound or {})["digest"]) for answer in subject.proofs())
    blocks = (
        verdict,
        Table("Held against the code", ("Bound", "What was found"), against, "ll"),
        Paragraph(_CHECKER),
        table,
        Table("Digests", ("Bound", "SHA-256 of the section `bound`"), digests, "lc"),
    )
    again = Paragraph("To check them against the code: `wcet-probe verify --image FILE results.json`.", "note")
    return Section("Certificate and checker's verdict", f"certificate-{subject.anchor}", (*blocks, again))


def _certificate_row(answer: Answer, text: str, one: CheckedBound) -> tuple[str, ...]:
    kinds = Counter(line.split(" ", 1)[0] for line in text.splitlines())
    counts = (kinds["node"], kinds["edge"], len(one.loops), len(one.given), kinds["invariant"])
    digest = sha256(text.encode()).hexdigest()[:16]
    return f"{answer.entry}, {answer.heap}", one.unit, number(one.bound), *map(number, counts), digest
