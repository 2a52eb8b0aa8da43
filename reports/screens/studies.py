"""Growth, matrix and search as text and as JSON documents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Console

from wcet_probe.reports.formats.document import Document, plain
from wcet_probe.reports.screens.terminal import render_table
from wcet_probe.sizes import format_size

if TYPE_CHECKING:
    from wcet_probe.answer.studies.adversary import Attack
    from wcet_probe.answer.studies.growth import Growth
    from wcet_probe.answer.studies.search import SearchRequest, SearchResult
    from wcet_probe.answer.studies.sweep import Cell
    from wcet_probe.answer.witness.bench import ProbeRequest
    from wcet_probe.model.scenario import Operation


def render_growth(request: ProbeRequest, found: Growth, console: Console) -> None:
    """Print what the claim says, what was found, and the samples."""
    verdict = "holds on these heaps" if found.holds else "DOES NOT HOLD"
    console.print(f"{request.allocator.name} on {request.target.name}, {request.scenario}: {found.shape.value}")
    console.print(f"claimed {found.claim}: {verdict}" if found.claim else "no complexity is claimed in the manifest")
    console.print(f"{'exactly' if found.exact else 'fitted'}: {found.formula}\n", soft_wrap=True)
    rows = [
        (format_size(s.heap_bytes), s.instructions, "-" if s.driver_value is None else s.driver_value)
        for s in found.samples
    ]
    render_table(("heap", "instructions", "cost driver"), rows, console)


def growth_document(request: ProbeRequest, found: Growth) -> Document:
    """The document ``wcet-probe-growth``."""
    return {
        "format": "wcet-probe-growth",
        "version": 1,
        "allocator": request.allocator.name,
        "target": request.target.name,
        "scenario": request.scenario,
        "claim": found.claim,
        "claimed_shape": found.claimed_shape.value if found.claimed_shape else None,
        "holds": found.holds,
        "shape": found.shape.value,
        "formula": found.formula,
        "exact": found.exact,
        "samples": [plain(sample) for sample in found.samples],
    }


def render_matrix(request: ProbeRequest, cells: Sequence[Cell], console: Console) -> None:
    """Print instructions and cycles: a row an allocator, a column a state; the diagonal in brackets."""
    names = list(dict.fromkeys(cell.allocator for cell in cells))
    by_place = {(cell.allocator, cell.state_of): cell for cell in cells}
    heap = format_size(request.heap_bytes)
    for count in ("instructions", "cycles"):
        console.print(f"{count} of {request.scenario} on {request.target.name}, heap {heap}", soft_wrap=True)
        console.print("rows: who is measured; columns: in whose state; [own state]; ! refused; - no block to free\n")
        rows = [[name, *(_text(by_place[name, other], count) for other in names)] for name in names]
        render_table(("", *(name.replace("-", "-\n") for name in names)), rows, console)
        console.print()


def _text(cell: Cell, count: str) -> str:
    number = getattr(cell, count)
    if number is None:
        return "-"
    text = f"{number:,}{'!' if cell.note else ''}"
    return f"[{text}]" if cell.allocator == cell.state_of else text


def matrix_document(request: ProbeRequest, cells: Sequence[Cell]) -> Document:
    """The document ``wcet-probe-matrix``."""
    return {
        "format": "wcet-probe-matrix",
        "version": 1,
        "target": request.target.name,
        "scenario": request.scenario,
        "heap_bytes": request.heap_bytes,
        "cells": [plain(cell) for cell in cells],
    }


def _verdict(request: SearchRequest, *, is_beaten: bool) -> str:
    if not is_beaten:
        return "not beaten"
    return "dearer than the known states" if request.allocator.own else "BEATEN: the scenario is not the worst"


def _headline(request: SearchRequest, *, is_beaten: bool) -> str:
    asked = f"{request.allocator.name} on {request.target.name}, {request.kind.value}"
    return f"{asked}, heap {format_size(request.heap_bytes)}: {_verdict(request, is_beaten=is_beaten)}"


def render_search(result: SearchResult, console: Console, kept: str | None) -> None:
    """Print whether the search beat the known states, and with what; and in which file that is kept."""
    request = result.request
    console.print(_headline(request, is_beaten=result.beaten), soft_wrap=True)
    rows = [
        ("dearest known state", result.constructed_instructions, "instructions"),
        ("dearest found", result.found_instructions, f"instructions, after {len(result.sequence)} operations"),
        ("sequences run", request.evaluations, f"in {result.climbs} climbs, seed {request.seed}"),
    ]
    render_table((), rows, console)
    if result.beaten:
        console.print("  " + " ".join(map(_operation_words, result.sequence)), soft_wrap=True)
    _render_kept(kept, console)


def _render_kept(kept: str | None, console: Console) -> None:
    if kept:
        console.print(f"kept in {kept}: it is a candidate of the scenario from now on", soft_wrap=True)


def search_document(result: SearchResult, kept: str | None) -> Document:
    """The document ``wcet-probe-search``; ``kept`` is the file that holds what beat the known states."""
    request = result.request
    return {
        "format": "wcet-probe-search",
        "version": 1,
        "allocator": request.allocator.name,
        "target": request.target.name,
        "operation": request.kind.value,
        "heap_bytes": request.heap_bytes,
        "evaluations": request.evaluations,
        "seed": request.seed,
        "climbs": result.climbs,
        "constructed_instructions": result.constructed_instructions,
        "found_instructions": result.found_instructions,
        "beaten": result.beaten,
        "sequence": [plain(operation) for operation in result.sequence],
        "kept": kept,
    }


def render_attack(result: Attack, console: Console, kept: str | None) -> None:
    """Print whether a changed state beat the known ones, what each was held against, and which file keeps it."""
    request = result.request
    console.print(_headline(request, is_beaten=result.beaten), soft_wrap=True)
    rows = [
        ("dearest constructed state", result.constructed, result.unit.value),
        ("dearest known state", result.known, f"{result.unit.value}, those among them that a search found"),
        ("dearest state found", result.found, f"{result.unit.value}, made from: {result.origin}"),
        ("states measured", result.evaluations, f"seed {request.seed}"),
    ]
    if result.bound is not None:
        rows.append(("bound", result.bound, "which no state exceeded; no fact was contradicted"))
    render_table((), rows, console)
    if result.beaten:
        words = map(_operation_words, (*result.state.operations, result.state.measured))
        console.print("  " + " ".join(words), soft_wrap=True)
    _render_kept(kept, console)


def attack_document(result: Attack, kept: str | None) -> Document:
    """The document ``wcet-probe-attack``; ``kept`` is the file that holds what beat the known states."""
    request = result.request
    return {
        "format": "wcet-probe-attack",
        "version": 1,
        "allocator": request.allocator.name,
        "target": request.target.name,
        "operation": request.kind.value,
        "heap_bytes": request.heap_bytes,
        "seed": request.seed,
        "unit": result.unit.value,
        "evaluations": result.evaluations,
        "constructed": result.constructed,
        "known": result.known,
        "found": result.found,
        "bound": result.bound,
        "beaten": result.beaten,
        "origin": result.origin,
        "operations": [plain(operation) for operation in result.state.operations],
        "measured": plain(result.state.measured),
        "kept": kept,
    }


def _operation_words(operation: Operation) -> str:
    if operation.kind.value == "malloc":
        return f"malloc({operation.size_bytes})={operation.slot}"
    return f"free({operation.slot})"
