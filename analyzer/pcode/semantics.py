"""What the integer operations of p-code compute: plain functions on unsigned integers.

Source: Ghidra, "P-Code Reference Manual", sections "P-Code Operation Reference" and "Pseudo P-CODE Operations".

Words: P-code (docs/explanation/glossary.md).

*Soundness:* a division by zero gives 0, as on ARM without DIV_0_TRP (ARMv7-M ARM DDI 0403E A7.7.125, A7.7.195). On
PowerPC a division by zero, or of -2^31 by -1, leaves the result undefined (Programming Environments Manual, MPCFPE32B,
``divw``, ``divwu``): the lifter names these operations ``DEFINED_DIV`` and ``DEFINED_SDIV``, which have no result
there, and the analysis takes it for any value. A shift by the width or more gives 0, or the sign (``INT_SRIGHT``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache


class UndefinedResultError(ArithmeticError):
    """An operation whose result the architecture leaves undefined for these operands."""


WHERE_DEFINED: Mapping[str, str] = {"INT_DIV": "DEFINED_DIV", "INT_SDIV": "DEFINED_SDIV"}
"""Operations, and what they are called where their result may be undefined."""
MAY_BE_UNDEFINED = frozenset(WHERE_DEFINED.values())

Semantics = Callable[..., int]
"""``f(bits, *values)`` with ``bits`` the width of the first operand (``PIECE``: of the last); not yet truncated."""

NO_EFFECT = frozenset(
    {
        # ARM: barriers and hints; what an event wakes is no part of the call.
        "DataMemoryBarrier",
        "DataSynchronizationBarrier",
        "InstructionSynchronizationBarrier",
        "HintYield",
        "SendEvent",
        "HintDebug",
        "HintPreloadData",
        "HintPreloadDataForWrite",
        "HintPreloadInstruction",
        # PowerPC: sync, eieio, isync, dcbt, dcbtst.
        "sync",
        "enforceInOrderExecutionIO",
        "instructionSynchronize",
        "dataCacheBlockTouch",
        "dataCacheBlockTouchForStore",
    }
)
"""Operations of ``CALLOTHER`` that change neither registers nor memory; ``setISAMode`` is for who follows branches."""


def signed(bits: int, value: int) -> int:
    """``value``, unsigned and ``bits`` bits wide, read as two's complement."""
    return value - (value >> (bits - 1) << bits)


def is_operation(opcode: str) -> bool:
    """Whether `operation` knows ``opcode``, of a ``CALLOTHER`` its ``user_op``, as a pure integer function."""
    return opcode in _SEMANTICS


@cache
def operation(opcode: str, input_bytes: tuple[int, ...], output_bytes: int) -> Semantics | None:
    """The function of an integer operation.

    Args:
        opcode: name of the operation, of a ``CALLOTHER`` its ``user_op``.
        input_bytes: widths of the operands, in bytes.
        output_bytes: width of the result, in bytes.

    Returns:
        A function from operands to result, all unsigned; None for an operation that is no pure integer function.
        It raises `UndefinedResultError` for operands of which the result is undefined.
    """
    function = _SEMANTICS.get(opcode)
    if function is None:
        return None
    bits = 8 * input_bytes[-1 if opcode == "PIECE" else 0]
    mask = (1 << 8 * output_bytes) - 1
    if len(input_bytes) == 1:
        return lambda a: function(bits, a) & mask
    return lambda a, b: function(bits, a, b) & mask


def _divide(a: int, b: int) -> int:
    """Quotient rounded towards zero."""
    if b == 0:
        return 0
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def _defined(bits: int, quotient: int, b: int) -> int:
    if b == 0 or quotient == 1 << bits:
        raise UndefinedResultError
    return quotient


def _remainder(a: int, b: int) -> int:
    """Remainder of `_divide`; it has the sign of ``a``."""
    return a - _divide(a, b) * b if b else 0


def _signed_carry(bits: int, a: int, b: int) -> int:
    return ((a ^ a + b) & (b ^ a + b)) >> (bits - 1) & 1


def _signed_borrow(bits: int, a: int, b: int) -> int:
    return ((a ^ b) & (a ^ a - b)) >> (bits - 1) & 1


def _clamp_signed(bits: int, a: int, b: int) -> int:
    return min(max(signed(bits, a), -1 << b), (1 << b) - 1)


def _clamp_unsigned(bits: int, a: int, b: int) -> int:
    return min(max(signed(bits, a), 0), (1 << b) - 1)


_SEMANTICS: Mapping[str, Semantics] = {
    "COPY": lambda _, a: a,
    "INT_ZEXT": lambda _, a: a,
    "INT_SEXT": signed,
    "INT_2COMP": lambda _, a: -a,
    "INT_NEGATE": lambda _, a: ~a,
    "BOOL_NEGATE": lambda _, a: a ^ 1,
    "POPCOUNT": lambda _, a: a.bit_count(),
    "LZCOUNT": lambda n, a: n - a.bit_length(),
    "INT_ADD": lambda _, a, b: a + b,
    "INT_SUB": lambda _, a, b: a - b,
    "INT_MULT": lambda _, a, b: a * b,
    "INT_AND": lambda _, a, b: a & b,
    "INT_OR": lambda _, a, b: a | b,
    "INT_XOR": lambda _, a, b: a ^ b,
    "BOOL_AND": lambda _, a, b: a & b,
    "BOOL_OR": lambda _, a, b: a | b,
    "BOOL_XOR": lambda _, a, b: a ^ b,
    "INT_LEFT": lambda n, a, b: a << b if b < n else 0,
    "INT_RIGHT": lambda _, a, b: a >> b,
    "INT_SRIGHT": lambda n, a, b: signed(n, a) >> b,
    "INT_DIV": lambda _, a, b: _divide(a, b),
    "DEFINED_DIV": lambda n, a, b: _defined(n, _divide(a, b), b),
    "DEFINED_SDIV": lambda n, a, b: _defined(n - 1, _divide(signed(n, a), signed(n, b)), b),
    "INT_REM": lambda _, a, b: _remainder(a, b),
    "INT_SDIV": lambda n, a, b: _divide(signed(n, a), signed(n, b)),
    "INT_SREM": lambda n, a, b: _remainder(signed(n, a), signed(n, b)),
    "INT_EQUAL": lambda _, a, b: a == b,
    "INT_NOTEQUAL": lambda _, a, b: a != b,
    "INT_LESS": lambda _, a, b: a < b,
    "INT_LESSEQUAL": lambda _, a, b: a <= b,
    "INT_SLESS": lambda n, a, b: signed(n, a) < signed(n, b),
    "INT_SLESSEQUAL": lambda n, a, b: signed(n, a) <= signed(n, b),
    "INT_CARRY": lambda n, a, b: a + b >> n,
    "INT_SCARRY": _signed_carry,
    "INT_SBORROW": _signed_borrow,
    "PIECE": lambda n, a, b: a << n | b,
    "SUBPIECE": lambda _, a, b: a >> 8 * b,
    # CALLOTHER of ARM's ssat and usat; b is the highest bit of the signed, the width of the unsigned result.
    "SignedSaturate": _clamp_signed,
    "SignedDoesSaturate": lambda n, a, b: signed(n, a) != _clamp_signed(n, a, b),
    "UnsignedSaturate": _clamp_unsigned,
    "UnsignedDoesSaturate": lambda n, a, b: signed(n, a) != _clamp_unsigned(n, a, b),
}
