"""The loops of the analysed function with the edges by which they are entered and repeated.

Words: loop forest, back edges (docs/explanation/glossary.md).

*Soundness:* an edge that the value analysis excludes is not there; a loop without an edge back is none.
"""

from __future__ import annotations

from dataclasses import dataclass

from wcet_probe.analyzer.graph.loop_forest import Loop
from wcet_probe.analyzer.graph.supergraph import Edge
from wcet_probe.analyzer.values.result import Values


@dataclass(frozen=True, slots=True)
class LoopShape:
    """The edges of a loop that can be taken.

    Attributes:
        loop: the loop.
        parent: the least loop around it that is repeated, or None.
        entry_edges, back_edges: into the header from outside and from inside.
    """

    loop: Loop
    parent: Loop | None
    entry_edges: tuple[Edge, ...]
    back_edges: tuple[Edge, ...]


def loop_shapes(values: Values) -> tuple[LoopShape, ...]:
    """The loops of the analysed function with their edges, outer loops before inner ones."""
    shapes: list[LoopShape] = []

    def visit(parts: tuple[int | Loop, ...], parent: Loop | None) -> None:
        for part in parts:
            if isinstance(part, Loop):
                shape = _shape(values, part, parent)
                if shape.back_edges:
                    shapes.append(shape)
                visit(part.parts, part if shape.back_edges else parent)

    visit(values.forest, None)
    return tuple(shapes)


def _shape(values: Values, loop: Loop, parent: Loop | None) -> LoopShape:
    arriving = values.arriving.get(loop.header, ())
    return LoopShape(
        loop=loop,
        parent=parent,
        entry_edges=tuple(edge for edge in arriving if edge.source not in loop.nodes),
        back_edges=tuple(edge for edge in arriving if edge.source in loop.nodes),
    )
