"""Divisions by constants that a compiler has made multiplications by a reciprocal.

>>> def third(x):
...     return x * 0xAAAAAAAB >> 33

is ``x // 3`` for every word ``x``, so that ``x - 3 * third(x)`` is its remainder, which may index a table of three.

Source: T. Granlund, P. Montgomery, Division by invariant integers using multiplication, PLDI 1994, theorem 4.2.

Words: term (docs/explanation/glossary.md).

*Soundness:* with ``d * m = 2**p + e`` and ``0 <= e``, ``x * m / 2**p`` is ``x / d + x * e / (d * 2**p)``; the second
part is less than ``1 / d`` where ``x * e < 2**p``, and then both have the same whole part. Products that may not fit
into their word are no quotients.
"""

from __future__ import annotations

from typing import NamedTuple

from wcet_probe.analyzer.values.symbolic.term_table import Node, Term, TermTable

_WORD = 32


class Quotient(NamedTuple):
    """``dividend // divisor``, of unsigned numbers."""

    dividend: Term
    divisor: int


def quotient(terms: TermTable, shifted: Term, shift: int) -> Quotient | None:
    """What ``shifted >> shift`` divides by what; None where it is no quotient by a constant.

    *Soundness:* as said of the module.
    """
    node = terms.node(shifted)
    if not 0 < shift < node.bits:
        return None
    if node.opcode == "INT_ADD":
        return _of_long_factor(terms, shifted, shift)
    product = _product(terms, shifted)
    if product is None:
        return None
    dividend, factor, passed = product
    return _exact(terms, dividend, factor, passed + shift)


def _product(terms: TermTable, term: Term) -> tuple[Term, int, int] | None:
    """``term`` as ``(dividend * factor) >> shift``, of a product that fits into its word."""
    shift, node = 0, terms.node(term)
    operands = terms.operands(term)
    if node.opcode == "SUBPIECE":
        shift = 8 * (terms.value(operands[1]) or 0)
        inner = terms.node(operands[0])
        if inner.bits - shift != node.bits:
            inner_operands = terms.operands(operands[0])
            moved = terms.value(inner_operands[1]) if inner.opcode == "INT_RIGHT" else None
            if shift or moved is None or inner.bits - moved != node.bits:
                return None
            shift, operands = moved, inner_operands
        node, operands = terms.node(operands[0]), terms.operands(operands[0])
    factor = terms.value(operands[1]) if node.opcode == "INT_MULT" else None
    if not factor or most(terms, operands[0]) * factor >= 1 << node.bits:
        return None
    return operands[0], factor, shift


def _of_long_factor(terms: TermTable, total: Term, shift: int) -> Quotient | None:
    """``((x - t >> 1) + t) >> shift``, where t is the upper word of ``x * factor``: of a factor of 33 bits."""
    for half, upper in (terms.operands(total), terms.operands(total)[::-1]):
        product, node = _product(terms, upper), terms.node(half)
        if product is None or node.opcode != "INT_RIGHT" or terms.value(terms.operands(half)[1]) != 1:
            continue
        difference = terms.operands(half)[0]
        dividend, factor, passed = product
        if terms.node(difference).opcode != "INT_SUB" or passed != _WORD or factor >> _WORD:
            continue
        one, other = terms.operands(difference)
        if other == upper and one == _unextended(terms, dividend):
            return _exact(terms, dividend, factor + (1 << _WORD), _WORD + 1 + shift)
    return None


def _exact(terms: TermTable, dividend: Term, factor: int, shift: int) -> Quotient | None:
    divisor = -(-(1 << shift) // factor)
    over = divisor * factor - (1 << shift)
    if divisor < 2 or most(terms, dividend) * over >= 1 << shift:
        return None
    dividend = _unextended(terms, dividend)
    # The half of a number, rounded down, divided again.
    while terms.node(dividend).opcode == "INT_RIGHT":
        whole, amount = terms.operands(dividend)
        moved = terms.value(amount)
        if moved is None or moved >= terms.node(whole).bits or divisor << moved >= 1 << terms.node(whole).bits - 1:
            break
        dividend, divisor = whole, divisor << moved
    fits = divisor < 1 << terms.node(dividend).bits - 1
    return Quotient(dividend, divisor) if fits else None


def _unextended(terms: TermTable, term: Term) -> Term:
    return terms.operands(term)[0] if terms.node(term).opcode == "INT_ZEXT" else term


def most(terms: TermTable, term: Term) -> int:
    """A number that ``term`` does not exceed, whatever its symbols are.

    *Soundness:* by what the operations at its top leave of any number.
    """
    node: Node = terms.node(term)
    operands = terms.operands(term)
    every = (1 << node.bits) - 1
    constant = terms.value(operands[1]) if len(operands) == 2 else None
    match node.opcode:
        case "const":
            return terms.value(term) or 0
        case "INT_ZEXT":
            every = most(terms, operands[0])
        case "INT_AND" if constant is not None:
            every = min(constant, most(terms, operands[0]))
        case "INT_RIGHT" if constant is not None:
            every = most(terms, operands[0]) >> constant
        case "INT_DIV" if constant:
            every = most(terms, operands[0]) // constant
        case "INT_REM" if constant:
            every = min(constant - 1, most(terms, operands[0]))
    return every
