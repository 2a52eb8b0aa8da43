"""The domain of the value analysis: wrapped strided intervals, their order, and the operations of p-code on them.

Words: strided interval (docs/explanation/glossary.md).

*Soundness:* `apply` contains the result of `semantics` for all values of the operands; tested against it on all
sets of a few bits. The other functions tell it of themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from itertools import product

from wcet_probe.analyzer.domains import strided_arithmetic as arithmetic
from wcet_probe.analyzer.domains.lattice import Lattice
from wcet_probe.analyzer.domains.strided_bits import bitwise, leading_zeros, population, shift
from wcet_probe.analyzer.domains.strided_comparisons import (
    carry,
    constrain,
    equal,
    ordered,
    saturated,
    saturates,
    signed_overflow,
)
from wcet_probe.analyzer.domains.strided_interval import (
    StridedInterval,
    between,
    bottom,
    constant,
    hull,
    join,
    leq,
    meet,
    residue_class,
    top,
    widen,
)
from wcet_probe.analyzer.pcode.semantics import _SEMANTICS, MAY_BE_UNDEFINED

__all__ = [
    "Intervals",
    "StridedInterval",
    "apply",
    "between",
    "bottom",
    "constant",
    "constrain",
    "join",
    "leq",
    "meet",
    "residue_class",
    "top",
    "widen",
]

Transfer = Callable[..., StridedInterval]
"""``f(output_bits, *operands)``, none of the operands empty."""

_MOST_LISTED = 64
_MOST_REMEMBERED = 1 << 14
"""So many answers are remembered: each pass over a function asks much of what the one before did."""
_LINEAR = frozenset({"COPY", "INT_ADD", "INT_SUB", "INT_2COMP", "INT_NEGATE"})


def apply(opcode: str, operands: Sequence[StridedInterval], output_bits: int) -> StridedInterval:
    """What an integer operation may give.

    Args:
        opcode: name of the operation, of a ``CALLOTHER`` its ``user_op``.
        operands: what its operands may be.
        output_bits: width of the result, in bits.

    *Soundness:* contains all results; exact for constants, the smallest interval for few values, all values for an
    operation that is not known.
    """
    return _applied(opcode, tuple(operands), output_bits)


@lru_cache(_MOST_REMEMBERED)
def _applied(opcode: str, operands: tuple[StridedInterval, ...], output_bits: int) -> StridedInterval:
    combinations, varying = 1, 0
    for operand in operands:
        combinations *= operand.steps + 1
        varying += operand.steps > 0
    if combinations == 0:
        return bottom(output_bits)
    transfer = _TRANSFERS.get(opcode)
    if transfer is None:
        return top(output_bits)
    if opcode in MAY_BE_UNDEFINED:
        return transfer(output_bits, *operands)
    # The linear ones are exact by themselves where one operand varies.
    if combinations <= _MOST_LISTED and not (varying == 1 and opcode in _LINEAR):
        semantics, bits = _SEMANTICS[opcode], operands[-1 if opcode == "PIECE" else 0].bits
        if varying == 0:
            return constant(output_bits, semantics(bits, *(operand.low for operand in operands)))
        mask = (1 << output_bits) - 1
        chosen = product(*(operand.values() for operand in operands))
        return hull(output_bits, (semantics(bits, *values) & mask for values in chosen))
    return transfer(output_bits, *operands)


class Intervals(Lattice[StridedInterval]):
    """The domain of the sets of ``bits`` bits. Joins are upper bounds, not always the least: arcs have several."""

    def __init__(self, bits: int) -> None:
        self._bits = bits

    def bottom(self) -> StridedInterval:
        """No value."""
        return bottom(self._bits)

    def top(self) -> StridedInterval:
        """All values."""
        return top(self._bits)

    def leq(self, one: StridedInterval, other: StridedInterval) -> bool:
        """Inclusion."""
        return leq(one, other)

    def join(self, one: StridedInterval, other: StridedInterval) -> StridedInterval:
        """An arc with both."""
        return join(one, other)

    def widen(self, former: StridedInterval, grown: StridedInterval) -> StridedInterval:
        """Without thresholds."""
        return widen(former, grown, ())


def _same_width(transfer: Transfer) -> Transfer:
    """``transfer`` for operands and results of one width: p-code has no others, and for them all values is right."""

    def checked(bits: int, *operands: StridedInterval) -> StridedInterval:
        if any(operand.bits != bits for operand in operands):
            return top(bits)
        return transfer(*operands)

    return checked


def _where_defined(opcode: str, output_bits: int, a: StridedInterval, b: StridedInterval) -> StridedInterval:
    """The quotients; all values where a division by zero or an overflow may leave one undefined."""
    overflows = opcode == "INT_SDIV" and 1 << a.bits - 1 in a and (1 << b.bits) - 1 in b
    return top(output_bits) if 0 in b or overflows else apply(opcode, (a, b), output_bits)


_AND, _OR, _XOR = (_same_width(partial(bitwise, opcode)) for opcode in ("INT_AND", "INT_OR", "INT_XOR"))
_TRANSFERS: Mapping[str, Transfer] = {
    "COPY": arithmetic.zero_extended,
    "INT_ZEXT": arithmetic.zero_extended,
    "INT_SEXT": arithmetic.sign_extended,
    "SUBPIECE": arithmetic.subpiece,
    "PIECE": arithmetic.piece,
    "INT_2COMP": _same_width(arithmetic.negative),
    "INT_NEGATE": _same_width(arithmetic.inverted),
    "INT_ADD": _same_width(arithmetic.added),
    "INT_SUB": _same_width(arithmetic.subtracted),
    "INT_MULT": _same_width(arithmetic.multiplied),
    "INT_DIV": _same_width(partial(arithmetic.by_division, arithmetic.quotient, is_signed=False)),
    "DEFINED_DIV": lambda bits, a, b: _where_defined("INT_DIV", bits, a, b),
    "DEFINED_SDIV": lambda bits, a, b: _where_defined("INT_SDIV", bits, a, b),
    "INT_REM": _same_width(partial(arithmetic.by_division, arithmetic.remainder, is_signed=False)),
    "INT_SDIV": _same_width(partial(arithmetic.by_division, arithmetic.quotient, is_signed=True)),
    "INT_SREM": _same_width(partial(arithmetic.by_division, arithmetic.remainder, is_signed=True)),
    "INT_LEFT": partial(shift, "INT_LEFT"),
    "INT_RIGHT": partial(shift, "INT_RIGHT"),
    "INT_SRIGHT": partial(shift, "INT_SRIGHT"),
    "INT_AND": _AND,
    "INT_OR": _OR,
    "INT_XOR": _XOR,
    "BOOL_AND": _AND,
    "BOOL_OR": _OR,
    "BOOL_XOR": _XOR,
    "BOOL_NEGATE": lambda bits, a: _XOR(bits, a, constant(bits, 1)),
    "POPCOUNT": population,
    "LZCOUNT": leading_zeros,
    "INT_EQUAL": partial(equal, wanted=True),
    "INT_NOTEQUAL": partial(equal, wanted=False),
    "INT_LESS": partial(ordered, is_signed=False, or_equal=0),
    "INT_LESSEQUAL": partial(ordered, is_signed=False, or_equal=1),
    "INT_SLESS": partial(ordered, is_signed=True, or_equal=0),
    "INT_SLESSEQUAL": partial(ordered, is_signed=True, or_equal=1),
    "INT_CARRY": carry,
    "INT_SCARRY": partial(signed_overflow, 1),
    "INT_SBORROW": partial(signed_overflow, -1),
    "SignedSaturate": partial(saturated, "SignedSaturate"),
    "SignedDoesSaturate": partial(saturates, "SignedDoesSaturate"),
    "UnsignedSaturate": partial(saturated, "UnsignedSaturate"),
    "UnsignedDoesSaturate": partial(saturates, "UnsignedDoesSaturate"),
}
