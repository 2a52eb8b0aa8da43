"""Code in JSON documents: functions with their hashes, disassembly with source lines, the flow graph."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256

from wcet_probe.model.image import Image, Symbol
from wcet_probe.model.instruction import Instruction
from wcet_probe.model.measurement import Measurement
from wcet_probe.model.proof import Bound, FlowGraph
from wcet_probe.reports.formats.records import Document

_LONGEST_LINE = 1_000
"""Characters of a source line that are shown: a generated table may be one line."""


def reached(
    instructions: Sequence[Instruction], bound: Bound | None, measurement: Measurement | None
) -> tuple[Instruction, ...]:
    """Those of ``instructions``, which are in order of addresses, that the bound or the observation reaches."""
    starts = [one.address for one in instructions]
    rows: set[int] = set()
    for block in bound.graph.blocks if bound else ():
        rows.update(range(bisect_left(starts, block.address), bisect_left(starts, block.end_address)))
    for run in measurement.runs if measurement else ():
        first = bisect_left(starts, run.address)
        rows.update(range(first, min(first + run.instructions, len(starts))))
    return tuple(instructions[row] for row in sorted(rows))


def code_sections(image: Image, code: Sequence[Instruction], sources: Mapping[str, str]) -> Document:
    """The sections ``listing`` and ``source_lines`` of ``code``; ``sources`` are texts by file name."""
    places = [(one, image.lines.find(one.address)) for one in code]
    return {
        "listing": [
            {
                "address": hex_address(one.address),
                "size_bytes": one.size_bytes,
                "text": one.text,
                "control": one.control.value,
                "function": _name(image.function_at(one.address)),
                "file": place[0] if place else None,
                "line": place[1] if place else None,
            }
            for one, place in places
        ],
        "source_lines": _source_lines({place for _, place in places if place}, sources),
    }


def image_section(image: Image, code: Iterable[Instruction]) -> Document:
    """The image, and the functions that ``code`` is of, in order of addresses."""
    found = {symbol.address: symbol for one in code if (symbol := image.function_at(one.address))}
    return {
        "sha256": image.sha256,
        "size_bytes": len(image.elf),
        "compiler": image.compiler,
        "flags": list(image.flags),
        "functions": [_function(image, symbol) for _, symbol in sorted(found.items())],
    }


def graph_section(graph: FlowGraph, executions: Mapping[int, int] | None) -> Document:
    """Blocks, edges and calls, contexts put together; with observed ``executions`` by address, if there are any."""
    calls: dict[tuple[str, str], int | None] = {}
    for edge in graph.edges:
        if edge.kind == "call" or (
            edge.kind not in {"return", "unwind", "resume"} and edge.source_function != edge.target_function
        ):
            pair = edge.source_function, edge.target_function
            calls[pair] = None if edge.executions is None else (calls.get(pair) or 0) + edge.executions
    return {
        "blocks": [
            {
                "address": hex_address(block.address),
                "end_address": hex_address(block.end_address),
                "function": block.function,
                "worst_executions": block.executions,
                "observed_executions": None if executions is None else executions.get(block.address, 0),
            }
            for block in graph.blocks
        ],
        "edges": [
            {
                "source": hex_address(edge.source),
                "target": hex_address(edge.target),
                "kind": edge.kind,
                "worst_executions": edge.executions,
            }
            for edge in graph.edges
        ],
        "calls": [
            {"caller": caller, "callee": callee, "worst_executions": count}
            for (caller, callee), count in sorted(calls.items())
        ],
    }


def hex_address(address: int) -> str:
    """``address`` as documents write it."""
    return f"{address:#010x}"


def _name(symbol: Symbol | None) -> str | None:
    return symbol.name if symbol else None


def _function(image: Image, symbol: Symbol) -> Document:
    code = _bytes(image, symbol)
    return {
        "name": symbol.name,
        "address": hex_address(symbol.address),
        "size_bytes": symbol.size_bytes,
        "sha256": sha256(code).hexdigest() if code else None,
    }


def _bytes(image: Image, symbol: Symbol) -> bytes:
    """The machine code of a function, without what lies between functions; empty where the symbol has no size."""
    for segment in image.segments:
        start = symbol.address - segment.address
        if 0 <= start < len(segment.data):
            return segment.data[start : start + symbol.size_bytes]
    return b""


def _source_lines(places: Iterable[tuple[str, int]], sources: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """The texts of lines that are known: by file, and by line number as a text."""
    return {
        file: dict(lines)
        for file in sorted({file for file, _ in places} & sources.keys())
        if (lines := list(_lines(sorted(line for name, line in places if name == file), sources[file].splitlines())))
    }


def _lines(numbers: Iterable[int], text: Sequence[str]) -> Iterator[tuple[str, str]]:
    for number in numbers:
        if 0 < number <= len(text):
            yield str(number), text[number - 1].rstrip()[:_LONGEST_LINE]
