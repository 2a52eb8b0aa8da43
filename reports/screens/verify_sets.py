"""Cache sets that malloc and free may touch beside those that they did: for the terminal, as JSON, as a picture."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING

from rich.console import Console

from wcet_probe.reports.formats.records import Document, plain
from wcet_probe.reports.pictures.cache_sets import heat_rows
from wcet_probe.reports.screens.layout import glyphs, paragraph, strip, strip_columns, table
from wcet_probe.reports.screens.terminal import Line, heading, page_width, print_lines
from wcet_probe.sizes import format_size

if TYPE_CHECKING:
    from wcet_probe.analyzer.deduction.obligations import Deduced
    from wcet_probe.cache_sets.run import SetRun, Violation
    from wcet_probe.cache_sets.specification import AllowedSets, SetProof
    from wcet_probe.cache_sets.verdict import SetReport
    from wcet_probe.model.allocator import Allocator

_VIOLATIONS_SHOWN = 8
_SITES_SHOWN = 8
_DIGITS_SHOWN = 16
_DEDUCED = {
    "init": "init",
    "caller": "what the caller writes",
    "free-small": "free, null or a small block",
    "free-large": "free, a large block",
    "malloc-small": "malloc, refused or of a small list",
    "malloc-large": "malloc, of a list of large blocks",
    "malloc-grow": "malloc, where no list has a block",
}
Rows = list[tuple[str, frozenset[int]]]


def render_sets(report: SetReport, console: Console) -> None:
    """Print ``report``: the answer, what stands against it, what it rests on, and the sets."""
    print_lines(console, _screen(report, page_width(console), glyphs(console.encoding)))


def sets_document(report: SetReport) -> Document:
    """The document ``wcet-probe-sets``."""
    asked, allowed = report.request, report.allowed
    specified = asked.allocator.promise
    return {
        "format": "wcet-probe-sets",
        "version": 1,
        "allocator": asked.allocator.name,
        "parameters": plain(asked.allocator.values),
        "target": asked.target.name,
        "heap_bytes": asked.heap_bytes,
        "request": {"operations": asked.operations, "seed": asked.seed},
        "image": {"sha256": report.image.sha256, "compiler": report.image.compiler},
        "dcache": {"sets": allowed.sets, "line_bytes": allowed.line_bytes},
        "allowed_sets": sorted(allowed.reserved),
        "static_anywhere": allowed.static_anywhere,
        "promised_by": specified.source if specified and allowed.is_specified else None,
        "argument": _argument_document(asked.allocator),
        "verdict": report.status.value,
        "promises": [
            {"promise": p.text, "verdict": p.status.value, "established_by": p.established_by, "seen": p.seen}
            for p in report.requirements
        ],
        "proofs": {role: _proof_document(proof) for role, proof in report.proofs.items()},
        "observed": _run_document(report.run) if report.run else None,
        "deduced": [_deduced_document(report, one) for one in report.deduced],
        "deduced_whole": dict(report.deduced_whole) if report.deduced else {},
    }


def sets_picture(report: SetReport) -> str:
    """An SVG with a row of sets for each line of the strips on the terminal; the allowed sets are marked."""
    title = f"Cache sets of malloc and free: {report.request.allocator.name} on {report.request.target.name}"
    rows = [(f"{role}: {name}", sets) for role in report.proofs for name, sets in _rows(report, role)]
    return heat_rows(title, report.allowed.sets, rows, report.allowed.reserved)


# ------------------------------------------------------------------------------------------------------------- terminal


def _screen(report: SetReport, width: int, characters: str) -> Iterator[Line]:
    asked, allowed = report.request, report.allowed
    yield heading(f"{asked.allocator.name} on {asked.target.name}: {_answer(report)}")
    yield from (f"heap {format_size(asked.heap_bytes)}, {_what_was_run(report)}").split("\n")
    yield ""
    yield from paragraph("Allowed", _allowed(allowed), width)
    specified = asked.allocator.promise
    source = specified.source if specified and allowed.is_specified else "nobody: the allocator specifies no sets"
    yield from paragraph("Specified", source, width)
    yield ""
    yield from _requirements(report, width)
    yield from _against(report, width)
    yield ""
    yield from _strips(report, width, characters)
    yield ""
    yield from _rests_on(report, width)
    yield from _deduced(report, width)
    yield from paragraph("Image", f"sha256 {report.image.sha256[:_DIGITS_SHOWN]}, {report.image.compiler}", width)


def _requirements(report: SetReport, width: int) -> list[str]:
    """A table; where there is no room for it, two lines a requirement."""
    rows = [(p.text, p.status.value, p.established_by, p.seen) for p in report.requirements]
    wide = table(rows, ("requirement", "verdict", "established by", "seen"))
    if max(map(len, wide)) <= width:
        return wide
    return table(
        row
        for text, status, established_by, seen in rows
        for row in ((status, text), ("", f"  {established_by}" + (f"; {seen}" if report.run else "")))
    )


def _answer(report: SetReport) -> str:
    sets = f"{report.allowed.sets} sets"
    if report.status is report.status.REFUTED:
        return "REFUTED. An operation violated a requirement"
    if all(proof.holds for proof in report.proofs.values()):
        kept = f"keep to {len(report.allowed.reserved)} of {sets}"
        return f"{report.status.value}. malloc and free {kept}"
    most = ", ".join(f"{role} {len(proof.may_touch)}" for role, proof in report.proofs.items())
    return f"{report.status.value}. Of {sets} a call may touch: {most}"


def _what_was_run(report: SetReport) -> str:
    run = report.run
    if run is None:
        return "no operation was run"
    operations = sum(run.operations.values())
    states = f"{run.worst_states} worst state{'s' * (run.worst_states != 1)}"
    rest = f"{run.guided:,} guided, the rest random with seed {report.request.seed}"
    return f"{operations:,} operations run:\n{states}, {rest}"


def _allowed(allowed: AllowedSets) -> str:
    what = "descriptors and static data" if allowed.is_specified else "static data"
    what = "static data, wherever it lies; descriptors" if allowed.static_anywhere else what
    return (
        f"{what} in {_ranges(allowed.reserved)} of {allowed.sets} sets of {allowed.line_bytes} bytes; of the block "
        "that is returned or given back the first word and the word before it; the stack; constants in the code"
    )


def _against(report: SetReport, width: int) -> Iterator[Line]:
    """What keeps a requirement from being proven, or refutes it."""
    if report.run:
        for key, wrong in sorted(report.run.violations.items()):
            if key == "sets" and not report.allowed.is_specified:
                continue
            yield ""
            yield from paragraph("Refuted", _refutation(report, key, wrong), width)
    for role, proof in report.proofs.items():
        if proof.no_bound:
            yield ""
            yield from paragraph(role, proof.no_bound, width)
        if proof.possible_violations:
            yield ""
            yield heading(f"{role}: not known to keep to the allowed sets")
            yield from table(
                (violation.location, violation.text, "store" if violation.is_store else "load", violation.sets, "sets")
                for violation in proof.possible_violations[:_VIOLATIONS_SHOWN]
            )
            if more := len(proof.possible_violations) - _VIOLATIONS_SHOWN:
                yield from [f"  and {more} more; --json has all"] if more > 0 else []


def _refutation(report: SetReport, key: str, wrong: Violation) -> str:
    if key == "invariant":
        return f"{wrong.where}: {wrong.operation}, an invariant of the heap is broken that lemmas rest on"
    if key == "stray":
        return f"{wrong.location} accessed {wrong.address:#010x}, which is no memory; {wrong.operation} went astray"
    where = f"{wrong.location} accessed {wrong.address:#010x}" if wrong.location else "it starts there"
    if key == "alignment":
        where += f", and not at a multiple of {report.request.allocator.alignment_bytes}"
    if key == "lemma":
        where += ", and is proved not to go to the own block"
    return f"{wrong.where}: {wrong.operation}, block {wrong.block:#010x}: set {wrong.set_index}; {where}"


def _strips(report: SetReport, width: int, characters: str) -> Iterator[Line]:
    allowed = report.allowed
    lines = {role: _rows(report, role) for role in report.proofs}
    names = max(len(name) for rows in lines.values() for name, _ in rows)
    numbers = len(str(allowed.sets))
    columns = strip_columns(allowed.sets, width - names - numbers - 6)
    yield heading(f"Cache sets (D-cache, {allowed.sets} sets)")
    for role, rows in lines.items():
        yield f"  {role}"
        for name, sets in rows:
            touched = strip(sets, allowed.sets, columns, characters)
            yield f"    {name:<{names}} {len(sets):>{numbers}} {touched}"
    none, some, every = tuple(characters)
    yield f"  from set 0 on; {every} all, {some} some, {none} none of the sets of a place"
    own = "without the stack and the call's own block, which may be anywhere"
    yield from paragraph("", f"may touch: by the proof, {own}", width, 1)


def _rows(report: SetReport, role: str) -> Rows:
    """What may be touched, and what was, by region."""
    proof, allowed = report.proofs[role], report.allowed
    found: Rows = [("may touch", proof.may_touch)]
    for region, sets in report.run.touched[role].items() if report.run else ():
        if region == "heap" and allowed.is_specified:
            found.append(("did: descriptors", sets & allowed.reserved))
            found.append(("did: own blocks", sets - allowed.reserved))
        else:
            found.append((f"did: {'constants' if region.startswith('code') else region}", sets))
    return [(name, sets) for name, sets in found if sets or name == "may touch"]


def _rests_on(report: SetReport, width: int) -> Iterator[Line]:
    justifications = [justification for proof in report.proofs.values() for justification in proof.instructions]
    rows = (
        [
            (justification.value, *(proof.instructions.get(justification, 0) for proof in report.proofs.values()))
            for justification in type(justifications[0])
            if justification in justifications
        ]
        if justifications
        else []
    )
    if rows:
        yield heading("Instructions that access data, and why they keep to the allowed sets")
        yield from table(rows, ("", *report.proofs))
    lemmas = {lemma.id: lemma for proof in report.proofs.values() for lemma in proof.lemmas}
    for lemma in lemmas.values():
        yield from paragraph("Lemma", f"{lemma.id}: {lemma.statement}", width)
    for sites, names in _by_sites(report, lemmas).items():
        more = len(sites) - _SITES_SHOWN
        all_or_some = "them" if len(names) == len(lemmas) > 1 else ", ".join(names)
        takes = f"take{'s' * (len(sites) == 1)} {all_or_some} for granted"
        text = f"{_count(sites)} {takes}: {', '.join(sites[:_SITES_SHOWN])}"
        yield from paragraph("", text + (f" and {more} more; --json has all" if more > 0 else ""), width)
    if lemmas:
        yield from paragraph("", _checked(report), width)
        yield from paragraph("Argument", _argument(report.request.allocator), width)
    assumed = dict.fromkeys(name for proof in report.proofs.values() for name in proof.assumptions)
    if others := [name for name in assumed if name not in lemmas]:
        yield from paragraph("Assumed", ", ".join(others), width)


def _deduced(report: SetReport, width: int) -> Iterator[Line]:
    """What a solver showed of the allocator's claims, and what it did not."""
    if not report.deduced:
        return
    yield ""
    yield heading("Deduced: that the allocator's claims are kept, if they hold before")
    rows = [(_DEDUCED[one.operation], one.ways or "-", one.shown, len(one.open)) for one in report.deduced]
    yield from table(rows, ("", "ways", "shown", "open"))
    for one in report.deduced:
        for what, places in one.open_by_name.items():
            more = len(places) - _SITES_SHOWN
            text = ", ".join(report.image.location(place) if place else "" for place in places[:_SITES_SHOWN])
            yield from paragraph("Open", f"{what}: {text}" + (f" and {more} more" if more > 0 else ""), width)
    whole = [name for name, is_whole in report.deduced_whole.items() if is_whole]
    rest = [name for name, is_whole in report.deduced_whole.items() if not is_whole]
    text = f"shown as a whole: {', '.join(whole) or 'none'}; not as a whole: {', '.join(rest) or 'none'}."
    yield from paragraph("Operations", text, width)
    accesses = sum(one.accesses for one in report.deduced)
    text = f"{accesses} instructions are shown to go to reserved sets or the own block, where something is stored"
    text += (
        ", if the claims hold. As long as not every operation is shown as a whole, nothing follows from it, and the "
        "lemmas stay."
        if rest
        else ". The claims always hold, but of some accesses too little is known by them, so that the lemmas stay."
        if any(proof.lemmas for proof in report.proofs.values())
        else ". As every operation is shown as a whole, the claims always hold, and the verdict rests on it."
    )
    yield from paragraph("", text, width)


def _deduced_document(report: SetReport, deduced: Deduced) -> Document:
    return {
        "operation": deduced.operation,
        "ways": deduced.ways,
        "shown": deduced.shown,
        "accesses": deduced.accesses,
        "open": [
            {
                "what": one.what,
                "way": one.way,
                "location": report.image.location(one.instruction_address) if one.instruction_address else None,
            }
            for one in deduced.open
        ],
    }


def _argument(allocator: Allocator) -> str:
    specified = allocator.promise
    if specified is None or not specified.argument:
        return "none: no document of the allocator argues that the lemmas hold."
    if specified.argument_sha256 != allocator.sources_sha256:
        return f"none of these sources: {specified.argument} is of another version of them."
    return (
        f"{specified.argument} argues for the lemmas store by store, of these sources; by hand, for review, no proof."
    )


def _argument_document(allocator: Allocator) -> Document | None:
    specified = allocator.promise
    if specified is None or not specified.argument:
        return None
    return {
        "document": specified.argument,
        "is_of_these_sources": specified.argument_sha256 == allocator.sources_sha256,
    }


def _by_sites(report: SetReport, lemmas: Iterable[str]) -> dict[tuple[str, ...], list[str]]:
    """The lemmas by the places of the instructions that take them for granted."""
    found: dict[tuple[str, ...], list[str]] = {}
    for lemma in lemmas:
        sites = (site.location for proof in report.proofs.values() for site in proof.sites if site.lemma == lemma)
        found.setdefault(tuple(dict.fromkeys(sites)), []).append(lemma)
    return found


def _count(sites: Collection[str]) -> str:
    return f"{len(sites)} instruction{'s' * (len(sites) != 1)}"


def _checked(report: SetReport) -> str:
    run = report.run
    if run is None:
        return "No operation was run to check what follows from them."
    check = report.request.allocator.entry_points["check"]
    operations = sum(run.operations.values())
    return f"{operations:,} operations were held to what follows, and {run.checks:,} calls of {check}() to the heap."


def _ranges(sets: Iterable[int]) -> str:
    """``sets`` in words: ``sets 0 to 31``."""
    found: list[list[int]] = []
    for index in sorted(sets):
        if found and found[-1][1] == index - 1:
            found[-1][1] = index
        else:
            found.append([index, index])
    if not found:
        return "none"
    parts = [f"{first}" if first == last else f"{first} to {last}" for first, last in found]
    return f"set{'s' * (len(parts) > 1 or ' ' in parts[0])} {', '.join(parts)}"


# ----------------------------------------------------------------------------------------------------------------- JSON


def _proof_document(proof: SetProof) -> Document:
    return {
        "holds": proof.holds,
        "no_bound": proof.no_bound or None,
        "instructions": {justification.name.lower(): count for justification, count in proof.instructions.items()},
        "may_touch": sorted(proof.may_touch),
        "stack_bytes": proof.stack_bytes,
        "offences": [plain(violation) for violation in proof.possible_violations],
        "lemmas": [plain(lemma) for lemma in proof.lemmas],
        "rests_on_lemmas": [plain(site) for site in proof.sites],
        "assumptions": list(proof.assumptions),
        "is_constant": proof.is_constant,
        "most_accesses": [
            {"heap_bytes": size, "accesses": bound.accesses, "by_set": list(bound.by_set)}
            for size, bound in proof.counts.items()
        ],
    }


def _run_document(run: SetRun) -> Document:
    return {
        "worst_states": run.worst_states,
        "guided_operations": run.guided,
        "operations": run.operations,
        "refused": run.refused,
        "misplaced": run.misplaced,
        "invariant_checks": run.checks,
        "outside": run.outside,
        "touched": {
            role: {region: sorted(sets) for region, sets in regions.items()} for role, regions in run.touched.items()
        },
        "most_accesses": run.most_accesses,
        "most_in_set": run.most_in_set,
        "violations": [plain(wrong) for _, wrong in sorted(run.violations.items())],
    }
