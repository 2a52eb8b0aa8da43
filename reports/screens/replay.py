"""A replay as text and as JSON document."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rich.console import Console

from wcet_probe import __version__
from wcet_probe.model.scenario import OperationKind
from wcet_probe.reports.formats.document import Document, plain
from wcet_probe.reports.screens.terminal import render_table
from wcet_probe.sizes import format_size

if TYPE_CHECKING:
    from wcet_probe.answer.witness.bench import ProbeRequest
    from wcet_probe.answer.workloads.replay import Replay


def render_replay(request: ProbeRequest, found: Replay, console: Console) -> None:
    """Print for each kind of operation how many there are, and their least, median and most instructions."""
    where = f"{request.allocator.name} on {request.target.name}, heap {format_size(request.heap_bytes)}"
    console.print(f"{where}: {len(found.operations):,} operations of {request.scenario}", soft_wrap=True)
    rows = []
    for kind in OperationKind:
        pairs = zip(found.operations, found.instructions, strict=True)
        counts = sorted(count for operation, count in pairs if operation.kind is kind)
        if counts:
            rows.append((kind.value, len(counts), counts[0], counts[(len(counts) - 1) // 2], counts[-1]))
    render_table(("", "calls", "least\ninstructions", "median\ninstructions", "most\ninstructions"), rows, console)


def replay_document(request: ProbeRequest, found: Replay) -> Document:
    """The document ``wcet-probe-replay``; its operations are columns of equal length."""
    image = found.image
    return {
        "format": "wcet-probe-replay",
        "version": 1,
        "tool": {"name": "wcet-probe", "version": __version__},
        "allocator": request.allocator.name,
        "parameters": plain(request.allocator.values),
        "target": request.target.name,
        "scenario": request.scenario,
        "variant": found.variant,
        "heap_bytes": request.heap_bytes,
        "seed": request.seed,
        "image": {"sha256": image.sha256, "compiler": image.compiler, "flags": plain(image.flags)},
        "operations": {
            "kind": [operation.kind.value for operation in found.operations],
            "size_bytes": [operation.size_bytes for operation in found.operations],
            "instructions": list(found.instructions),
        },
    }


def replay_samples(document: Mapping[str, Any]) -> list[tuple[str, int]]:
    """Kind and instructions of each operation of a document ``wcet-probe-replay``."""
    columns = document["operations"]
    return list(zip(columns["kind"], columns["instructions"], strict=True))
