"""What followed nests of loops tell the flow problem: limits of points that do not follow from the bounds of loops.

Words: loop bound, flow fact (docs/explanation/glossary.md).

*Soundness:* a nest's counts hold for each entry of it, and a limit is so many times the executions of its entry edges.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from wcet_probe.analyzer.graph.loop_forest import Loop
from wcet_probe.analyzer.graph.supergraph import Edge
from wcet_probe.analyzer.ipet.flow_problem import BoundedLoop, LinearConstraint
from wcet_probe.analyzer.values.properties.loop_shapes import LoopShape
from wcet_probe.analyzer.values.result import Values


@dataclass(frozen=True, slots=True)
class ExecutedNest:
    """Most executions of each point of a nest for each entry of it; of what is not in ``counts``, none.

    ``rounds`` are most executions of the header of each loop in it that ended by itself, or was not arrived at, by
    header, for each entry of that: where a loop was cut by its bound, that is not proved. Where it ``is_whole``, the
    nest is the function, which is entered once; it ``is_decided`` where there was one way to go at each step, and no
    bound was needed.
    """

    shape: LoopShape
    counts: Mapping[int, int]
    rounds: Mapping[int, int]
    is_whole: bool = False
    is_decided: bool = False


def executed_constraints(
    values: Values, loops: Sequence[BoundedLoop], nests: Sequence[ExecutedNest]
) -> Iterator[LinearConstraint]:
    """The limits of points that ``nests`` tell and that do not follow from the bounds of ``loops``.

    *Soundness:* not telling one costs precision only.
    """
    arriving, leaving = values.arriving, values.leaving
    bounds = {loop.header: loop.max_header for loop in loops}
    for nest in nests:
        header, entries = nest.shape.loop.header, nest.shape.entry_edges
        limits_of = products_of if nest.is_whole else products
        for index, product in limits_of(nest.shape.loop, bounds, leaving, 1):
            count = nest.counts.get(index, 0)
            before = arriving.get(index, ())
            is_alone = len(before) == 1 and len(leaving[before[0].source]) == 1
            if index not in values.states or (product is not None and count >= product):
                continue
            if is_alone and index != header and nest.counts.get(before[0].source, 0) == count:
                continue
            edges: tuple[Edge | None, ...] = (*entries, None) if header == 0 else entries
            yield LinearConstraint(f"executed:{index}", ((index, 1),), tuple((edge, -count) for edge in edges))


def products(
    loop: Loop, bounds: Mapping[int, int], leaving: Mapping[int, Sequence[Edge]], times: int | None
) -> Iterator[tuple[int, int | None]]:
    """Each point of ``loop`` with how often the bounds let it be executed for each entry of the nest; None: any.

    What is left by its header only executes its header once more than the rest.
    """
    most = bounds.get(loop.header)
    product = None if times is None or most is None else times * most
    below = loop.nodes - {loop.header}
    is_left_below = any(edge.target not in loop.nodes for at in below for edge in leaving.get(at, ()))
    rest = product if product is None or is_left_below else product - (times or 0)
    for index, most_of_part in products_of(loop, bounds, leaving, rest):
        yield index, product if index == loop.header else most_of_part


def products_of(
    loop: Loop, bounds: Mapping[int, int], leaving: Mapping[int, Sequence[Edge]], times: int | None
) -> Iterator[tuple[int, int | None]]:
    """The same of the parts of ``loop``, each of which is come to so many times."""
    for part in loop.parts:
        if isinstance(part, Loop):
            yield from products(part, bounds, leaving, times)
        else:
            yield part, times
