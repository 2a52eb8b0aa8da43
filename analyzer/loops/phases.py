"""Loops of several ways back, one of which ends a phase and is taken a few times only: two loops with one header.

libgcc divides so: a mask is shifted out for one word of the result, then the same loop goes on for the next word with a
new mask, until a bit of the result tells that this was the last. No single counter has both.

Words: loop bound, header, back edges (docs/explanation/glossary.md).

*Soundness:* the executions of the header between two takings of that way back are those of a loop that is entered by
the loop's entries, or by that way, and repeated by the others only. So there are at most as many as from the entries,
and for each taking as many as from there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from wcet_probe.analyzer.loops.moved_bits import Lost, most_taken
from wcet_probe.analyzer.values.properties.loop_shapes import LoopShape
from wcet_probe.analyzer.values.result import Values

_MOST_WAYS_BACK = 4


def most_in_phases(values: Values, shape: LoopShape, lost: Lost, most: Callable[[LoopShape], int | None]) -> int | None:
    """Most executions of the header for each entry of a loop, if its phases and their number tell it.

    Args:
        values: what is known of the function.
        shape: the loop.
        lost: what edges within the loop kill.
        most: the most executions of the header for each entry of a loop that has fewer ways back.

    *Soundness:* as said of the module.
    """
    if not 2 <= len(shape.back_edges) <= _MOST_WAYS_BACK:
        return None
    return min(_each(values, shape, lost, most), default=None)


def _each(values: Values, shape: LoopShape, lost: Lost, most: Callable[[LoopShape], int | None]) -> Iterator[int]:
    for ending in shape.back_edges:
        others = tuple(edge for edge in shape.back_edges if edge != ending)
        times = most_taken(values, shape, ending, lost)
        if times is None:
            continue
        first = most(replace(shape, back_edges=others))
        later = most(replace(shape, back_edges=others, entry_edges=(ending,)))
        if first is not None and later is not None:
            yield first + times * later
