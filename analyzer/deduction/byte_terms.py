"""What operations make of bytes on terms, bit by bit, and comparisons of words as bytes.

Words: symbolic execution (docs/explanation/glossary.md).

*Soundness:* an operation that is not known here, or whose result is not known bit by bit, gives None, and no bits.
"""

from __future__ import annotations

from wcet_probe.analyzer.deduction.formulas import FALSE, TRUE, Node, conjunction, disjunction, equivalence, negation
from wcet_probe.analyzer.deduction.words import Word, less, same, signed_less

Bits = tuple[Node, ...]
"""The bits of a byte, the lowest first."""
NO_BITS: Bits = (FALSE,) * 8


def byte(value: int) -> Bits:
    """The bits of the lowest byte of ``value``."""
    return tuple(TRUE if value >> bit & 1 else FALSE for bit in range(8))


def constant(bits: Bits) -> int | None:
    """The number that ``bits`` are, if they are known."""
    if any(bit not in {TRUE, FALSE} for bit in bits):
        return None
    return sum(1 << index for index, bit in enumerate(bits) if bit is TRUE)


def compared(opcode: str, words: list[Word]) -> Bits | None:
    """What a comparison of words gives, as a byte."""
    one, other = words[0], words[-1]
    found = {
        "INT_EQUAL": lambda: same(one, other),
        "INT_NOTEQUAL": lambda: negation(same(one, other)),
        "INT_LESS": lambda: less(one, other),
        "INT_LESSEQUAL": lambda: negation(less(other, one)),
        "INT_SLESS": lambda: signed_less(one, other),
        "INT_SLESSEQUAL": lambda: negation(signed_less(other, one)),
        "INT_CARRY": lambda: less(one.plus(other), one),
        "INT_SCARRY": lambda: _signed_carry(one, other),
        "INT_SBORROW": lambda: negation(equivalence(signed_less(one, other), _is_negative(one.plus(other, -1)))),
    }.get(opcode)
    return None if found is None else (found(), *NO_BITS[1:])


def _is_negative(word: Word) -> Node:
    return signed_less(word, Word(0))


def _signed_carry(one: Word, other: Word) -> Node:
    """The sum has another sign than both."""
    sign = _is_negative(one)
    differs = negation(equivalence(sign, _is_negative(one.plus(other))))
    return conjunction(equivalence(sign, _is_negative(other)), differs)


def of_bits(opcode: str, inputs: list[Word | Bits]) -> Bits | None:  # noqa: C901, PLR0911, PLR0912  a case for each
    """What an operation makes of bytes; amounts of shifts may be words."""
    first = inputs[0]
    if isinstance(first, Word):
        return None
    if len(inputs) == 1:
        match opcode:
            case "COPY":
                return first
            case "INT_NEGATE":
                return tuple(map(negation, first))
            case "BOOL_NEGATE":
                return (negation(first[0]), *first[1:])
        return None
    second = inputs[1]
    number = (second.constant if not second.parts else None) if isinstance(second, Word) else constant(second)
    if opcode in {"INT_LEFT", "INT_RIGHT"} and number is not None:
        if opcode == "INT_LEFT":
            return (NO_BITS[: min(number, 8)] + first)[:8]
        return (first[number:] + NO_BITS)[:8]
    if isinstance(second, Word):
        return None
    match opcode:
        case "INT_EQUAL" | "INT_NOTEQUAL":
            found = conjunction(*map(equivalence, first, second))
            return found if opcode == "INT_EQUAL" else negation(found), *NO_BITS[1:]
        case "INT_AND" | "BOOL_AND":
            return tuple(map(conjunction, first, second))
        case "INT_OR" | "BOOL_OR":
            return tuple(map(disjunction, first, second))
        case "INT_XOR" | "BOOL_XOR":
            return tuple(negation(equivalence(one, other)) for one, other in zip(first, second, strict=True))
        case "INT_SUB" | "INT_ADD":
            whole = constant(first)
            if whole is None or number is None:
                return None
            return byte((whole - number if opcode == "INT_SUB" else whole + number) % 256)
    return None
