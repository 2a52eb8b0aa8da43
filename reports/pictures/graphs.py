"""The call graph of a bound, and the control-flow graphs of its functions with the worst path and the counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from wcet_probe.reports.pictures.colours import INK, MUTED, PALE, PAPER, WORST, WORST_PALE
from wcet_probe.reports.pictures.documents import Document, name_of
from wcet_probe.reports.pictures.flow import (
    Flow,
    Node,
    flow_of,
    graph_functions,
    instructions_by_function,
    with_long_edges_written,
)
from wcet_probe.reports.pictures.folding import TALLEST, Drawing, Plan, drawing, planned
from wcet_probe.reports.pictures.routing import Box
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
"""Of one function; a picture of more would not be legible on a page."""

_SIZE = 9.5
_LINE = 12.0
_ROOM = WIDTH - 2 * MARGIN
_BESIDE, _BELOW, _PANEL_HEAD = 30.0, 18.0, 30.0
_PAGE = 900.0
_WIDEST_NAME = 190.0
_LOOP_ROOM = 28.0
_WIDEST_COUNTS = 80.0
_LONG_EDGES = (8, 4, 2)
"""From how many ranks on an edge is long, tried in this order where a drawing is too tall."""

_HOW_TO_READ = (
    "A box: offset of a block in its function; below, executions on the worst path | observed. "
    "Strong frames and lines: the worst path. Dashed: back to an earlier block. A letter: goes on at the same letter."
)


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
    functions = graph_functions(result)
    if not functions:
        return None
    graph = result["bound"]["graph"]
    cost = instructions_by_function(result)
    blocks = {name: sum(block["function"] == name for block in graph["blocks"]) for name in functions}
    calls = _calls(result)
    boxes = {name: _function_box(name, blocks[name], cost.get(name, 0)) for name in functions}
    edges: dict[tuple[str, str], bool] = {}
    for (caller, callee), times in calls.items():
        label = f"{caller}>{callee}"
        boxes[label] = _count_box(times)
        edges |= {(caller, label): times > 0, (label, callee): times > 0}
    title = f"Call graph: {name_of(result)}"
    notes = ["Strong lines: calls of the worst path, with how often; a function's share of the path in instructions."]
    body, y = heading(title, notes)
    drawn = drawing(planned(boxes, edges, _ROOM))
    body += drawn.body(MARGIN + max(0.0, (_ROOM - drawn.width) / 2), y + 8)
    described = " ".join(
        [f"{name}: {counted(blocks[name])} blocks, {counted(cost.get(name, 0))} instructions." for name in functions]
        + [f"{caller} calls {callee} {counted(times)} times." for (caller, callee), times in calls.items()]
    )
    return picture(title, described, y + 8 + drawn.height + MARGIN, body, max(WIDTH, drawn.width + 2 * MARGIN))


def control_flow_graph(result: Document, function: str | None = None) -> str | None:
    """The blocks of functions with their executions on the worst path, which is emphasised, and observed.

    Those functions are shown that fit onto a page, the ones with the most instructions on the worst path first; of one
    with more than ``MOST_BLOCKS`` blocks only what the worst path or the observation executes. The text says what is
    left out.

    Parameters:
        result: a document with ``bound.graph``.
        function: the one to show; see :func:`graph_functions`.

    Returns:
        the SVG, or None without a graph, or without that function in it.
    """
    functions = [name for name in graph_functions(result) if function in {None, name}]
    if not functions:
        return None
    panels, left_out = _shown(result, functions)
    title = f"Control flow: {f'{function}, ' if function else ''}{name_of(result)}"
    is_written = any(node.jumps for panel in panels for node in panel.flow.nodes)
    notes = [_HOW_TO_READ + (" To: a jump that is not drawn." if is_written else ""), left_out]
    body, top = heading(title, [note for note in notes if note])
    places, height = _shelves(panels)
    for panel, (x, y) in zip(panels, places, strict=True):
        body.append(text(MARGIN + x, top + y + 14, panel.title, weight="bold"))
        body.append(line(MARGIN + x, top + y + 20, MARGIN + x + panel.width, top + y + 20))
        body += panel.drawing.body(MARGIN + x + (panel.width - panel.drawing.width) / 2, top + y + _PANEL_HEAD)
    width = max(WIDTH, *(x + panel.width + 2 * MARGIN for panel, (x, _) in zip(panels, places, strict=True)))
    return picture(title, _described(panels, left_out), top + height + MARGIN, body, width)


@dataclass(frozen=True, slots=True)
class _Panel:
    """A function as it is drawn."""

    flow: Flow
    drawing: Drawing

    @property
    def title(self) -> str:
        return f"{self.flow.function}, {counted(self.flow.blocks)} {'blocks' if self.flow.blocks > 1 else 'block'}"

    @property
    def width(self) -> float:
        return max(self.drawing.width, text_width(self.title) * 1.1)


def _shown(result: Document, functions: Sequence[str]) -> tuple[list[_Panel], str]:
    """The functions to be shown, in their order, and in words what is not."""
    cost = instructions_by_function(result)
    chosen: list[str] = []
    panels: dict[str, _Panel] = {}
    left_out = []
    for name in sorted(functions, key=lambda name: (-cost.get(name, 0), functions.index(name))):
        flow = flow_of(result, name)
        reduced = flow_of(result, name, executed_only=True) if flow.blocks > MOST_BLOCKS else flow
        panels[name] = _panel(reduced)
        wished = [other for other in functions if other in {*chosen, name}]
        if chosen and _shelves([panels[other] for other in wished])[1] > _PAGE:
            left_out.append(f"{name} ({counted(flow.blocks)} blocks)")
            continue
        chosen = wished
        if flow.blocks > reduced.blocks:
            left_out.append(f"of {name} {counted(flow.blocks - reduced.blocks)} blocks that nothing executes")
    words = f"Left out, as a page has no room for more: {', '.join(left_out)}." if left_out else ""
    return [panels[name] for name in chosen], words


def _shelves(panels: Sequence[_Panel]) -> tuple[list[tuple[float, float]], float]:
    """The place of each panel, beside the one before where there is room, else below; and the height of all."""
    places = []
    x = y = tallest = 0.0
    for panel in panels:
        if x and x + panel.width > _ROOM:
            x, y, tallest = 0.0, y + tallest + _BELOW, 0.0
        places.append((x, y))
        x += panel.width + _BESIDE
        tallest = max(tallest, _PANEL_HEAD + panel.drawing.height)
    return places, y + tallest


def _panel(flow: Flow) -> _Panel:
    """``flow`` as it fits onto a page: if need be, with long edges written instead of drawn."""
    tried: list[tuple[Flow, Plan]] = []
    for shown in (flow, *(with_long_edges_written(flow, span) for span in _LONG_EDGES)):
        loops = {source for source, target in shown.edges if source == target}
        boxes = {node.name: _block_box(node, has_loop=node.name in loops) for node in shown.nodes}
        plan = planned(boxes, {edge: times > 0 for edge, times in shown.edges.items()}, _ROOM)
        tried.append((shown, plan))
        if plan.height <= TALLEST:
            break
    best, plan = min(tried, key=lambda one: max(one[1].height, TALLEST))
    return _Panel(best, drawing(plan))


def _block_box(node: Node, *, has_loop: bool) -> Box:
    on_path = bool(node.worst)
    worst, seen = (counted(value) if value is not None else "-" for value in (node.worst, node.observed))
    counts = (
        [f"{worst} | {seen}"]
        if text_width(f"{worst} | {seen}", _SIZE) <= _WIDEST_COUNTS
        else [f"{worst} |", f"| {seen}"]
    )
    lines = [_Line(node.label, "bold" if on_path else None, INK if on_path else MUTED)]
    lines += [_Line(words, fill=INK if on_path else MUTED, kind="value") for words in counts]
    lines += [_Line(f"to {label}", fill=INK if on_path else MUTED) for label in node.jumps]
    for name in node.calls:
        words = [f"calls {name}"] if text_width(f"calls {name}", _SIZE) <= _WIDEST_COUNTS else ["calls", name]
        lines += [_Line(fit(one, _WIDEST_NAME, _SIZE), fill=INK if on_path else MUTED) for one in words]
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
        return [rectangle(x - width / 2, y, width, 14, fill=PAPER), label]

    return Box(width, 14, draw, has_arrows=False)


def _box(lines: Sequence[_Line], *, on_path: bool, loop_room: float) -> Box:
    width = max(text_width(one.words, _SIZE) * (1.08 if one.weight else 1) for one in lines) + 10
    height = _LINE * len(lines) + 5
    fill, stroke, thickness = (WORST_PALE, WORST, 2.2) if on_path else (PALE, MUTED, 0.7)

    def draw(x: float, y: float) -> list[str]:
        body = [rectangle(x - width / 2, y, width, height, fill=fill, stroke=stroke, stroke_width=thickness)]
        for index, one in enumerate(lines):
            place = y + _LINE * (index + 1) - 0.5
            body.append(
                text(x, place, one.words, size=_SIZE, anchor="middle", weight=one.weight, fill=one.fill, kind=one.kind)
            )
        return body

    return Box(width + loop_room, height, draw)


def _calls(result: Document) -> dict[tuple[str, str], int]:
    """Calls on the worst path by caller and callee; those that are never taken too."""
    graph = result["bound"]["graph"]
    function_at = {block["address"]: block["function"] for block in graph["blocks"]}
    taken: dict[tuple[str, str], int] = {}
    for edge in graph["edges"]:
        if edge["kind"] == "call" and edge["target"] in function_at:
            ends = (function_at[edge["source"]], function_at[edge["target"]])
            taken[ends] = taken.get(ends, 0) + (edge.get("worst_executions") or 0)
    known = set(function_at.values())
    pairs = [(call["caller"], call["callee"]) for call in graph.get("calls") or ()]
    return {ends: taken.get(ends, 0) for ends in pairs if known.issuperset(ends)}


def _described(panels: Sequence[_Panel], left_out: str) -> str:
    parts = [
        f"{panel.flow.function}: {counted(panel.flow.blocks)} blocks, of which the worst path executes "
        f"{counted(sum(node.blocks for node in panel.flow.nodes if node.worst))}."
        for panel in panels
    ]
    return " ".join([*parts, left_out]).strip()
