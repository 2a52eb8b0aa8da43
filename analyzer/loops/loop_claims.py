"""What emulated runs are held against of the loops' bounds: where each is entered, its code, its most rounds.

Words: loop bound (docs/explanation/glossary.md).

*Soundness:* a claim has the greatest bound of a loop in any context; where runs would count rounds of two loops with
the same code as of one entry it says so, and is not told.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from wcet_probe.analyzer.graph.supergraph import Point
from wcet_probe.analyzer.loops.chosen_bounds import ChosenBound
from wcet_probe.analyzer.loops.loop_sites import header_point, own_points
from wcet_probe.analyzer.values.properties.loop_shapes import LoopShape
from wcet_probe.analyzer.values.result import Values
from wcet_probe.model.proof import LoopClaim
from wcet_probe.model.target import MemoryRange
from wcet_probe.model.watched_loop import WatchedLoop


def watched_name(address: int) -> str:
    """What a watched loop is called."""
    return f"{address:#010x}"


def loop_claims(values: Values, chosen: Sequence[tuple[LoopShape, ChosenBound]]) -> tuple[LoopClaim, ...]:
    """Each loop of the binary with the greatest bound that it has in any context.

    Parameters:
        values: of the graph.
        chosen: its loops, with their bounds.

    *Soundness:* as said of the module.
    """
    grouped: dict[int, list[tuple[LoopShape, ChosenBound]]] = {}
    for shape, choice in chosen:
        grouped.setdefault(header_point(values, shape).block.address, []).append((shape, choice))
    copies: dict[int, list[Point]] = {address: [] for address in grouped}
    for point in values.graph.points:
        if point.block.address in grouped:
            copies[point.block.address].append(point)
    claims = []
    for address, group in grouped.items():
        most = max((choice for _, choice in group), key=lambda choice: choice.max_header)
        blocks = {point.block.address: point.block for shape, _ in group for point in own_points(values, shape)}
        body = {MemoryRange(block.address, block.end_address - block.address) for block in blocks.values()}
        headers = {shape.loop.header: shape for shape, _ in group}
        entered = [_entered_from(values, point, headers.get(point.index), blocks) for point in copies[address]]
        entries = {found for way in entered for found in way or ()}
        if header_point(values, group[0][0]).function.address == address:
            entries.clear()
        loop = WatchedLoop(
            watched_name(address),
            address,
            tuple(sorted(entries)),
            tuple(sorted(body, key=lambda part: part.base_address)),
        )
        claims.append(LoopClaim(loop, most.max_header, most.origin, most.where, is_told=None not in entered))
    return tuple(claims)


def _entered_from(values: Values, header: Point, shape: LoopShape | None, body: Collection[int]) -> set[int] | None:
    """Where ``header`` is reached from: the last instructions of the blocks before; before a return, of the call.

    A block before may be a copy of one of ``body``, the addresses of the loop's blocks: then the blocks before that.
    Where one of these is the header as well, runs count what both execute as of one entry: None.

    Parameters:
        values: of the graph.
        header: a point with the code of the loop's header.
        shape: the loop that it is the header of, if it is that of one.
        body: as said.
    """
    points, found = values.graph.points, set[int]()
    inside = shape.loop.nodes if shape else ()
    todo = list(shape.entry_edges if shape else values.arriving.get(header.index, ()))
    seen = set(todo)
    while todo:
        edge = todo.pop()
        source, target = points[edge.source], points[edge.target]
        before = [source]
        if source.context != header.context:
            before = [
                point
                for point in points
                if point.context == header.context
                and point.block.calls
                and point.block.falls_to == target.block.address
                and point.index not in inside
            ]
        for point in before:
            if point.block.address not in body:
                found.add(point.block.last_address)
            elif point.block.address == header.block.address:
                return None
            else:
                further = [other for other in values.arriving.get(point.index, ()) if other not in seen]
                seen.update(further)
                todo += further
    return found
