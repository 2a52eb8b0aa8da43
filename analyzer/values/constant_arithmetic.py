"""What operations make of values that are known in part: numbers, offsets from the stack pointer, bits of a byte.

Words: constant propagation (docs/explanation/glossary.md).

*Soundness:* what is told holds of every number that the operands stand for; None where nothing does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from wcet_probe.analyzer.pcode.semantics import signed

_WORD = 1 << 32
_BYTE = 0xFF
_ZERO_DECIDES = frozenset({"INT_AND", "INT_MULT", "BOOL_AND"})

Value = int | tuple[int] | tuple[int, int]
"""A number, a signed offset from the stack pointer at entry, or of a byte which bits are known, and their values."""


def is_bits(value: Value) -> bool:
    """Whether single bits of a byte are all that is known."""
    return isinstance(value, tuple) and len(value) > 1


def bits_known(opcode: str, values: Sequence[Value | None]) -> Value | None:
    """The bits of a byte that are known of the result of an operation on bytes."""
    if opcode not in {"INT_AND", "INT_OR", "INT_LEFT", "INT_RIGHT"}:
        return None
    (known, value), (other_known, other) = map(_known_bits, values)
    if opcode == "INT_AND":
        found = known & other_known | known & ~value | other_known & ~other, value & other
    elif opcode == "INT_OR":
        found = known & other_known | value | other, value | other
    elif other_known != _BYTE or other > _BYTE.bit_length():
        return None
    elif opcode == "INT_LEFT":
        found = (known << other | (1 << other) - 1) & _BYTE, value << other & _BYTE
    else:
        found = known >> other | ~(_BYTE >> other) & _BYTE, value >> other
    return found[1] if found[0] == _BYTE else found if found[0] else None


def _known_bits(value: Value | None) -> tuple[int, int]:
    """Which bits of a byte are known, and their values; the others are 0."""
    if isinstance(value, int):
        return _BYTE, value
    return (0, 0) if value is None or len(value) == 1 else value


def computed(opcode: str, function: Callable[..., int], values: Sequence[Value | None]) -> Value | None:
    """The result of a pure integer function."""
    if {*map(type, values)} == {int}:
        return function(*values)
    if len(values) == 1:
        return values[0] if opcode == "COPY" else None
    first, second = values
    if isinstance(first, tuple) and isinstance(second, tuple):
        return None if is_bits(first) or is_bits(second) else _between(opcode, first[0], second[0])
    if opcode == "INT_ADD" and isinstance(second, tuple):
        first, second = second, first
    if isinstance(first, tuple) and not is_bits(first) and isinstance(second, int) and opcode in {"INT_ADD", "INT_SUB"}:
        moved = first[0] + (second if opcode == "INT_ADD" else -second)
        return (signed(32, moved % _WORD),)
    if opcode in _ZERO_DECIDES and 0 in (first, second):
        return 0
    return None


def _between(opcode: str, first: int, second: int) -> int | None:
    """What is known of two addresses in the stack, by their offsets: which is less depends on where the stack is."""
    apart = (first - second) % _WORD
    match opcode:
        case "INT_SUB":
            return apart
        case "INT_EQUAL":
            return int(not apart)
        case "INT_NOTEQUAL":
            return int(bool(apart))
    return None
