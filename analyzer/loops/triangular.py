"""Sums over the iterations of an enclosing loop, on whose counter depends how often an inner one repeats.

Words: triangular loop, induction variable (docs/explanation/glossary.md).

*Soundness:* each inner loop is counted by the largest distance that it may begin with, and where that may lie outside
the numbers, by its largest count.
"""

from __future__ import annotations

from wcet_probe.analyzer.values.symbolic.conditions import repetitions

MOST_SUMMED = 1 << 20
"""Most outer iterations that a sum is formed over."""


def summed(relation: str, step: int, distances: range, *, rate: int, outer: int, header: int, bits: int) -> int | None:
    """Most executions of an inner loop's header in all; None where they are no fewer than ``outer`` times ``header``.

    Args:
        relation: on which the inner loop goes on.
        step: by how much the distance of its sides shrinks each time.
        distances: what it may be where the outer loop is entered.
        rate: by how much each outer iteration changes it.
        outer: most outer iterations, `MOST_SUMMED` or fewer.
        header: most executions of the inner loop's header in one of them.
        bits: of the numbers.

    *Soundness:* as said of the module.
    """
    total = 0
    for moved in (rate * iteration for iteration in range(outer)):
        low, high = distances[0] + moved, distances[-1] + moved
        is_number = low >= 0 and high < 1 << bits
        total += min(header, repetitions(relation, step, high) + 1) if is_number else header
    return total if total < outer * header else None
