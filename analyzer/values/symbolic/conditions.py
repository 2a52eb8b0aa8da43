"""Conditions on which loops go on, as comparisons, and how often one holds while the distance of its sides shrinks.

Words: predicate, induction variable (docs/explanation/glossary.md).

*Soundness:* a comparison is the condition itself, or follows from it; the counts are exact.
"""

from __future__ import annotations

from collections.abc import Iterator

from wcet_probe.analyzer.values.symbolic.term_table import Term
from wcet_probe.analyzer.values.symbolic.terms import Terms

_CONTINUES = {
    ("INT_EQUAL", True): "==",
    ("INT_NOTEQUAL", False): "==",
    ("INT_EQUAL", False): "!=",
    ("INT_NOTEQUAL", True): "!=",
}
_ORDERS = {
    "INT_LESS": ("<", False),
    "INT_LESSEQUAL": ("<=", False),
    "INT_SLESS": ("<", True),
    "INT_SLESSEQUAL": ("<=", True),
}
_MIRRORED = {"<": "<=", "<=": "<"}


def relations(terms: Terms, condition: Term, *, holds: bool) -> Iterator[tuple[str, bool, Term, Term]]:
    """``condition``, or its negation, as comparisons that hold all: relation, whether it is signed, and both sides.

    *Soundness:* a conjunction holds if both parts do, and a disjunction does not if neither does.
    """
    node, operands = terms[condition], terms.operands(condition)
    if node.opcode == "BOOL_NEGATE":
        yield from relations(terms, operands[0], holds=not holds)
    elif node.opcode in ("BOOL_AND", "BOOL_OR") and (node.opcode == "BOOL_AND") == holds:
        for operand in operands:
            yield from relations(terms, operand, holds=holds)
    elif (node.opcode, holds) in _CONTINUES:
        yield _CONTINUES[node.opcode, holds], False, operands[0], operands[1]
    elif node.opcode in _ORDERS:
        relation, order_signed = _ORDERS[node.opcode]
        if holds:
            yield relation, order_signed, operands[0], operands[1]
        else:
            yield _MIRRORED[relation], order_signed, operands[1], operands[0]


def repetitions(relation: str, step: int, distance: int) -> int:
    """How often a comparison holds whose sides are ``distance`` apart, and ``step`` less each time.

    *Soundness:* of ``!=`` the distance is a multiple of the step.
    """
    match relation:
        case "!=":
            return distance // step
        case "<":
            return -(-distance // step)
    return distance // step + 1


def limits(order_signed: bool, bits: int) -> tuple[int, int]:  # noqa: FBT001
    """Least and greatest number."""
    return (-(1 << bits - 1), (1 << bits - 1) - 1) if order_signed else (0, (1 << bits) - 1)
