"""The binary's loops, their copies in call contexts put together, as facts and pragmas of the source are bound to them.

Words: flow fact, context (docs/explanation/glossary.md).

*Soundness:* a loop is told to lie in another one only where its copies in all contexts do.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from wcet_probe.analyzer.facts.binding import Analysed
from wcet_probe.analyzer.facts.inlined_lines import Inlining
from wcet_probe.analyzer.facts.round_lines import LoopWays
from wcet_probe.analyzer.facts.source_match import LoopSite
from wcet_probe.analyzer.graph.cfg import Block
from wcet_probe.analyzer.graph.supergraph import Point
from wcet_probe.analyzer.values.properties.loop_shapes import LoopShape, loop_shapes
from wcet_probe.analyzer.values.result import Values
from wcet_probe.model.image import Image


def analysed_code(image: Image, values: Values, cut: Collection[int] = ()) -> Analysed:
    """The analysed functions and the binary's loops in them, their contexts put together.

    Parameters:
        image: the binary.
        values: result of the value analysis.
        cut: addresses of the instructions that were taken out.

    *Soundness:* as said of the module.
    """
    points = values.graph.points
    own = {points[index].function.name for index in values.states}
    # A function may share the end of another one, which is told by that one's name.
    held = {function.name for index in values.states if (function := image.function_at(points[index].block.address))}
    functions = sorted(own | held)
    inlining = Inlining(image, functions)
    grouped = by_header_address(values, loop_shapes(values))
    calls, entered = _calls(image, values), _entered(image, values)
    found = (_site(image, values, at, group, inlining) for at, group in grouped.items())
    sites = tuple(replace(one, calls=calls, entered=entered.get(one.function, frozenset())) for one in found)
    return Analysed(image, functions, sites, cut)


def _calls(image: Image, values: Values) -> Mapping[tuple[str, int, str], Sequence[int]]:
    """Where calls are, by file, line and name of the function; none of jumps to functions."""
    blocks = (values.graph.points[index].block for index in values.states)
    calls = sorted({(block.last_address, target) for block in blocks for target in block.calls})
    found: dict[tuple[str, int, str], list[int]] = {}
    for at, target in calls:
        line, called = image.lines.find(at), image.function_at(target)
        if line and called:
            found.setdefault((*line, called.name), []).append(at)
    return found


def _entered(image: Image, values: Values) -> Mapping[str, frozenset[tuple[str, int] | None]]:
    """The lines of the instructions that call a function or jump to it from another one, by its name."""
    found: dict[str, set[tuple[str, int] | None]] = {}
    for block in {values.graph.points[index].block for index in values.states}:
        own = image.function_at(block.address)
        for target in (*block.calls, *block.jumps):
            called = image.function_at(target)
            if called is not None and target == called.address and (called != own or target in block.calls):
                found.setdefault(called.name, set()).add(image.lines.find(block.last_address))
    return {name: frozenset(lines) for name, lines in found.items()}


def header_point(values: Values, shape: LoopShape) -> Point:
    """The header of ``shape``, with its context."""
    return values.graph.points[shape.loop.header]


def header_address(values: Values, shape: LoopShape) -> int:
    """Where the code of the header of ``shape`` begins."""
    return header_point(values, shape).block.address


def by_header_address(values: Values, shapes: Iterable[LoopShape]) -> dict[int, list[LoopShape]]:
    """``shapes`` by the address of their header: those of one are copies of one loop of the binary."""
    grouped: dict[int, list[LoopShape]] = {}
    for shape in shapes:
        grouped.setdefault(header_point(values, shape).block.address, []).append(shape)
    return grouped


def own_points(values: Values, shape: LoopShape) -> list[Point]:
    """The points of the loop in its own function, callees not."""
    context = header_point(values, shape).context
    points = (values.graph.points[node] for node in sorted(shape.loop.nodes))
    return [point for point in points if point.context == context]


def _site(image: Image, values: Values, address: int, shapes: Sequence[LoopShape], inlining: Inlining) -> LoopSite:
    header = header_point(values, shapes[0])
    latches = {_decides(block, image) for shape in shapes for block in _latches(values, shape)}
    own, tests, has_calls = set[int](), set[int](), False
    for shape in shapes:
        inner = {node for part in shape.loop.parts if not isinstance(part, int) for node in part.nodes}
        for point in own_points(values, shape):
            if point.index not in inner:
                own.update(instruction.address for instruction in point.block.instructions)
                has_calls |= bool(point.block.calls)
                if _has_two_ways(point.block):
                    tests.add(point.block.last_address)
    outers = {_outer(values, shape) for shape in shapes}
    function = image.function_at(address) or header.function
    return LoopSite(
        function=function.name,
        header_address=address,
        offset=address - function.address,
        latch_lines=tuple(line for at in sorted(latches) if (line := image.lines.find(at))),
        own_lines=tuple(line for at in sorted(own) if (line := image.lines.find(at))),
        outer=outers.pop() if len(outers) == 1 else None,
        latches=tuple(sorted(latches)),
        own=tuple(sorted(own)),
        header_line=image.lines.find(address),
        inlining=inlining,
        test_lines=tuple(line for at in sorted(tests) if (line := image.lines.find(at))),
        has_calls=has_calls,
        ways=_ways(values, address, shapes),
    )


def _ways(values: Values, address: int, shapes: Sequence[LoopShape]) -> LoopWays:
    """The ways through the copies of a loop in all contexts."""
    blocks: dict[int, tuple[int, ...]] = {}
    following: dict[int, set[int]] = {}
    tests = set[int]()
    for shape in shapes:
        points = [point for point in own_points(values, shape) if point.index in values.states]
        inside = {point.index for point in points}
        addresses = {point.block.address for point in points}
        for point in points:
            block = point.block
            blocks[block.address] = tuple(one.address for one in block.instructions)
            found = following.setdefault(block.address, set())
            targets = {edge.target for edge in values.leaving[point.index]} & inside
            found |= {values.graph.points[target].block.address for target in targets}
            if block.calls and block.falls_to in addresses:
                found.add(block.falls_to)
            if _has_two_ways(block):
                tests.add(block.last_address)
    followed = {start: frozenset(found) for start, found in following.items()}
    return LoopWays(address, blocks, followed, frozenset(tests))


def _has_two_ways(block: Block) -> bool:
    return len(block.jumps) + block.falls + block.returns > 1


def _latches(values: Values, shape: LoopShape) -> Iterator[Block]:
    """The blocks of the loop's own function that go back to its header, by themselves or behind their calls."""
    header = header_point(values, shape)
    sources = [values.graph.points[edge.source] for edge in shape.back_edges]
    yield from (point.block for point in sources if point.context == header.context)
    if any(point.context != header.context for point in sources):
        blocks = (point.block for point in own_points(values, shape))
        yield from (block for block in blocks if block.calls and block.falls_to == header.block.address)


def _decides(block: Block, image: Image) -> int:
    """The instruction whose line tells whose latch ``block`` is; a return in it has the line of the function's end."""
    addresses = [each.address for each in reversed(block.instructions)]
    end = image.lines.find(addresses[0])
    return next((at for at in addresses if block.returns and image.lines.find(at) != end), addresses[0])


def _outer(values: Values, shape: LoopShape) -> int | None:
    """Header address of the next loop around it in the same function."""
    if shape.parent is None:
        return None
    header = values.graph.points[shape.parent.header]
    return header.block.address if header.context == header_point(values, shape).context else None
