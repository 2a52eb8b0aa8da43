"""A comparison one side of which moves by a constant: whether it wraps around, and how many rounds it holds at most.

Words: loop bound, induction variable (docs/explanation/glossary.md).

*Soundness:* sides are hulls of what they are in the first round, in the order of the comparison. As long as the
comparison lets each round go on, a side that `cannot_wrap` moves as a whole number does.
"""

from __future__ import annotations

from wcet_probe.analyzer.values.symbolic.conditions import limits

Side = tuple[int, int]
"""The least and the greatest number of a side."""


def cannot_wrap(fixed: Side | None, relation: str, step: int, bits: int, *, order_signed: bool, rising: bool) -> bool:
    """Whether the moving side cannot jump over the end of the numbers while the loop goes on.

    Args:
        fixed: the side that does not move; None where nothing is known of it.
        relation: ``<`` or ``<=``.
        step: by how much the other side moves in a round, above 0.
        bits: how wide the sides are.
        order_signed: whether they are compared as signed numbers.
        rising: whether the first side rises; else the second falls.

    *Soundness:* the moving side has not passed the fixed one where the loop goes on, so it is at most a step behind it.
    """
    if fixed is None:
        return False
    lowest, highest = limits(order_signed, bits)
    slack = 0 if relation == "<=" else 1
    return fixed[1] - slack + step <= highest if rising else fixed[0] + slack - step >= lowest


def lasting(moving: Side | None, step: int, bits: int, *, order_signed: bool, rising: bool) -> int:
    """For how many executions of the header the moving side does not wrap around, whatever lets the loop go on."""
    if moving is None:
        return 0
    lowest, highest = limits(order_signed, bits)
    return (highest - moving[1] if rising else moving[0] - lowest) // step + 1


def most_apart(first: Side | None, second: Side | None) -> int | None:
    """By how much ``second`` is above ``first`` at most; 0 where it is below, None where nothing is known of one.

    *Soundness:* where the loop goes on in round t, the sides of the first round are at least t steps apart.
    """
    return None if first is None or second is None else max(0, second[1] - first[0])
