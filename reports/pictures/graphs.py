"""The call graph of a bound, and the control-flow graphs of its functions with the worst path and the counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from wcet_probe.reports.pictures.colours import INK, MUTED, PALE, PAPER, WORST, WORST_PALE
from wcet_probe.reports.pictures.documents import Document, name_of
from wcet_probe.reports.pictures.flow import Flow, Node, flow_of, functions_of, instructions_by_function
from wcet_probe.reports.pictures.folding import Box, Drawing, Style, drawing
from wcet_probe.reports.pictures.scales import counted
from wcet_probe.reports.pictures.svg import (
    MARGIN,
    WIDTH,
    fit,
    heading,
    line,
    picture,
    rectangle,
    text,
    text_width,
)

MOST_BLOCKS = 150
"""A picture of more would not be legible on a page."""

_SIZE = 9.5
_LINE = 12.0
_ROOM = WIDTH - 2 * MARGIN
_BETWEEN = 30.0
_WIDEST_NAME = 190.0
_LOOP_ROOM = 28.0
_ROUGHLY = 80.0


@dataclass(frozen=True, slots=True)
class _Line:
    words: str
    weight: str | None = None
    fill: str = INK
    kind: str | None = None


def call_graph(result: Document) -> str | None:
    """Who calls whom, how often on the worst path, and how many instructions each function has on it.

    Parameters:
        result: a document with ``bound.graph``.

    Returns:
        the SVG, or None without a graph.
    """
    functions = functions_of(result)
    if not functions:
        return None
    graph = result["bound"]["graph"]
    cost = instructions_by_function(result)
    blocks = {name: sum(block["function"] == name for block in graph["blocks"]) for name in functions}
    calls = _calls(result)
    boxes = {name: _function_box(name, blocks[name], cost.get(name, 0)) for name in functions}
    edges: dict[tuple[str, str], Style] = {}
    for (caller, callee), times in calls.items():
        label = f"{caller}>{callee}"
        boxes[label] = _count_box(times)
        style = Style(strong=times > 0)
        edges |= {(caller, label): style, (label, callee): style}
    title = f"Call graph: {name_of(result)}"
    notes = ["Strong lines: calls of the worst path, with how often; a function's share of the path in instructions."]
    body, y = heading(title, notes)
    labels = set(boxes) - set(functions)
    drawn = drawing(boxes, edges, _ROOM, arrows=lambda name: name not in labels)
    body += drawn.body(MARGIN + max(0.0, (_ROOM - drawn.width) / 2), y + 8)
    described = " ".join(
        [f"{name}: {counted(blocks[name])} blocks, {counted(cost.get(name, 0))} instructions." for name in functions]
        + [f"{caller} calls {callee} {counted(times)} times." for (caller, callee), times in calls.items()]
    )
    return picture(title, described, y + 8 + drawn.height + MARGIN, body, max(WIDTH, drawn.width + 2 * MARGIN))


def control_flow_graph(result: Document, function: str | None = None) -> str | None:
    """The blocks of each function with their executions on the worst path, which is emphasised, and observed.

    Of more than ``MOST_BLOCKS`` blocks the functions that contribute most to the worst path are shown, of a larger
    function the blocks that the worst path or the observation executes; the text says what is left out.

    Parameters:
        result: a document with ``bound.graph``.
        function: the one to show, instead of all.

    Returns:
        the SVG, or None without a graph, or without that function in it.
    """
    functions = [name for name in functions_of(result) if function in {None, name}]
    if not functions:
        return None
    flows, left_out = _shown(result, functions)
    subject = f"{function}, {name_of(result)}" if function else name_of(result)
    title = f"Control flow: {subject}"
    notes = [
        "A box: offset of a block in its function, below it how often the worst path executes it | how often it was "
        "observed. Strong frame and lines: the worst path. Dashed: back to an earlier block. A letter: goes on at the "
        "same letter of the next column.",
        left_out,
    ]
    body, y = heading(title, [note for note in notes if note])
    y += 4
    row_height, x = 0.0, float(MARGIN)
    widest = float(WIDTH)
    for flow in flows:
        drawn = _flow_drawing(flow)
        name = f"{flow.function}, {counted(flow.blocks)} {'blocks' if flow.blocks > 1 else 'block'}"
        width = max(drawn.width, text_width(name) * 1.1)
        if x > MARGIN and x + width > WIDTH - MARGIN:
            x, y, row_height = float(MARGIN), y + row_height + 16, 0.0
        body.append(text(x, y + 10, name, weight="bold"))
        body.append(line(x, y + 16, x + width, y + 16))
        body += drawn.body(x + (width - drawn.width) / 2, y + 26)
        row_height = max(row_height, 26 + drawn.height)
        widest = max(widest, x + width + MARGIN)
        x += width + _BETWEEN
    return picture(title, _described(flows, left_out), y + row_height + MARGIN, body, widest)


def _shown(result: Document, functions: Sequence[str]) -> tuple[list[Flow], str]:
    """The flows to be shown, and in words what is not."""
    flows = [flow_of(result, name) for name in functions]
    cost = instructions_by_function(result)
    room, chosen = MOST_BLOCKS, set[str]()
    for flow in sorted(flows, key=lambda flow: (-cost.get(flow.function, 0), flow.function)):
        if flow.blocks <= room:
            chosen.add(flow.function)
            room -= flow.blocks
        elif not chosen:
            chosen.add(flow.function)
            room = 0
    kept, missing = [], []
    for flow in flows:
        if flow.function not in chosen:
            missing.append(f"{flow.function} ({counted(flow.blocks)} blocks)")
        elif flow.blocks > MOST_BLOCKS:
            executed = flow_of(result, flow.function, executed_only=True)
            kept.append(executed)
            missing.append(f"of {flow.function} {counted(flow.blocks - executed.blocks)} blocks that nothing executes")
        else:
            kept.append(flow)
    return kept, f"Left out: {', '.join(missing)}." if missing else ""


def _flow_drawing(flow: Flow) -> Drawing:
    loops = {source for source, target in flow.edges if source == target}
    boxes = {node.name: _block_box(node, has_loop=node.name in loops) for node in flow.nodes}
    return drawing(boxes, {edge: Style(strong=times > 0) for edge, times in flow.edges.items()}, _ROOM)


def _block_box(node: Node, *, has_loop: bool) -> Box:
    on_path = bool(node.worst)
    worst, seen = (counted(value) if value is not None else "-" for value in (node.worst, node.observed))
    counts = (
        [f"{worst} | {seen}"] if text_width(f"{worst} | {seen}", _SIZE) <= _ROUGHLY else [f"{worst} |", f"| {seen}"]
    )
    lines = [_Line(node.label, "bold" if on_path else None, INK if on_path else MUTED)]
    lines += [_Line(words, fill=INK if on_path else MUTED, kind="value") for words in counts]
    lines += [_Line(fit(f"calls {name}", _WIDEST_NAME, _SIZE), fill=INK if on_path else MUTED) for name in node.calls]
    return _box(lines, on_path=on_path, loop_room=_LOOP_ROOM if has_loop else 0.0)


def _function_box(name: str, blocks: int, instructions: int) -> Box:
    lines = [
        _Line(fit(name, _WIDEST_NAME, _SIZE), "bold"),
        _Line(f"{counted(instructions)} instructions", kind="value"),
        _Line(f"{counted(blocks)} {'blocks' if blocks > 1 else 'block'}", fill=MUTED),
    ]
    return _box(lines, on_path=instructions > 0, loop_room=0.0)


def _count_box(times: int) -> Box:
    words = counted(times)
    width = text_width(words, _SIZE) + 8

    def draw(x: float, y: float) -> list[str]:
        label = text(x, y + 10.5, words, size=_SIZE, anchor="middle", fill=INK if times else MUTED, kind="value")
        return [rectangle(x - width / 2, y, width, 14, PAPER), label]

    return Box(width, 14, draw)


def _box(lines: Sequence[_Line], *, on_path: bool, loop_room: float) -> Box:
    width = max(text_width(one.words, _SIZE) * (1.08 if one.weight else 1) for one in lines) + 12
    height = _LINE * len(lines) + 6
    fill, stroke, thickness = (WORST_PALE, WORST, 2.2) if on_path else (PALE, MUTED, 0.7)

    def draw(x: float, y: float) -> list[str]:
        body = [rectangle(x - width / 2, y, width, height, fill, stroke, thickness)]
        for index, one in enumerate(lines):
            place = y + _LINE * (index + 1) + 0.5
            body.append(
                text(x, place, one.words, size=_SIZE, anchor="middle", weight=one.weight, fill=one.fill, kind=one.kind)
            )
        return body

    return Box(width + loop_room, height, draw)


def _calls(result: Document) -> dict[tuple[str, str], int]:
    """Calls on the worst path by caller and callee; those that are never taken too."""
    graph = result["bound"]["graph"]
    function_at = {block["address"]: block["function"] for block in graph["blocks"]}
    calls = {(call["caller"], call["callee"]): 0 for call in graph.get("calls") or ()}
    for edge in graph["edges"]:
        ends = (function_at.get(edge["source"]), function_at.get(edge["target"]))
        if edge["kind"] == "call" and ends in calls:
            calls[ends] += edge.get("worst_executions") or 0
    known = set(function_at.values())
    return {ends: times for ends, times in calls.items() if known.issuperset(ends)}


def _described(flows: Sequence[Flow], left_out: str) -> str:
    parts = [
        f"{flow.function}: {counted(flow.blocks)} blocks, of which the worst path executes "
        f"{counted(sum(node.blocks for node in flow.nodes if node.worst))}."
        for flow in flows
    ]
    return " ".join([*parts, left_out]).strip()
