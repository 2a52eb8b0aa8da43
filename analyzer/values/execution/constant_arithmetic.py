"""What operations make of values that are known in part: numbers, offsets from the stack pointer, bits of a byte.

Of the address that the analysed function returns to nothing is known but that it is that one; so it is of other words,
which have a number as a name: what is between two places counted from one of them is known.

Words: constant propagation (docs/explanation/glossary.md).

*Soundness:* what is told holds of every number that the operands stand for; None where nothing does. Of the lowest bits
of an address of the stack that rests on assumption ``stack-alignment``, of its order on ``stack-bounds``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import and_, eq, le, lt, ne, or_, xor
from typing import TypeGuard

from wcet_probe.analyzer.pcode.semantics import signed
from wcet_probe.analyzer.values.symbolic.stack_alignment import STACK_ALIGNMENT_BYTES

_WORD, _WORD_BITS = 1 << 32, 32
_BYTE = 0xFF
_ALIGNMENTS = frozenset(1 << bits for bits in range(STACK_ALIGNMENT_BYTES.bit_length()))
_ZERO_DECIDES = frozenset({"INT_AND", "INT_MULT", "BOOL_AND"})
_OF_BITS = frozenset({"INT_AND", "INT_OR", "INT_LEFT", "INT_RIGHT"})

Value = (
    int
    | tuple[int]
    | tuple[int, int]
    | tuple[int, int, int]
    | tuple[int, int, int, int]
    | tuple[int, int, int, int, int]
)
"""A number; a signed offset from the stack pointer at entry; of a byte which bits are known, and their values, or so of
the lowest of a word; a signed number less that stack pointer, as pointers to two arrays are apart: it stands first,
before 0 and -1;
`LINK`; or what is made by `named`."""
LINK = (0, 0, 0, 0)
"""Where the analysed function's caller waits; the lowest bits, which tell the state of the core, may be cleared."""
_STATE_BITS = 3


def is_address(value: Value | None) -> TypeGuard[int | tuple[int]]:
    """Whether it is a number, or an offset from the stack pointer."""
    return isinstance(value, int) or (value is not None and len(value) == 1)


def bits_known(opcode: str, values: Sequence[Value | None]) -> Value | None:
    """The bits of a byte that are known of the result of an operation on bytes."""
    if opcode not in _OF_BITS:
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


def tells_in_part(opcode: str, input_count: int) -> bool:
    """Whether `bits_known` or `computed` may tell something where an operand is not known."""
    return input_count > 1 and opcode in _ZERO_DECIDES | _OF_BITS


def _known_bits(value: Value | None) -> tuple[int, int]:
    """Which bits of a byte are known, and their values; the others are 0."""
    if isinstance(value, int):
        return _BYTE, value
    return value if value is not None and len(value) == 2 else (0, 0)


def computed(opcode: str, function: Callable[..., int], values: Sequence[Value | None]) -> Value | None:
    """The result of a pure integer function."""
    if {*map(type, values)} == {int}:
        return function(*values)
    if opcode == "COPY":
        return values[0]
    if opcode in _SAME and values[0] == values[-1] and values[0] is not None and len(values[0]) != 2:  # type: ignore[arg-type]
        return values[0]
    if opcode == "INT_AND" and LINK in values:
        (mask,) = [one for one in values if one != LINK] or [None]
        return LINK if isinstance(mask, int) and mask | _STATE_BITS == _WORD - 1 else 0 if mask == 0 else None
    places = [place for one in values if (place := _place(one)) is not None]
    if len(places) == len(values) and (found := _of_places(opcode, places)) is not None:
        return found
    low = _low_bits(opcode, values) if opcode in _LOW_BITS else None
    return 0 if low is None and opcode in _ZERO_DECIDES and 0 in values else low


def _low_bits(opcode: str, values: Sequence[Value | None]) -> Value | None:
    """The lowest bits of addresses put together, and what a mask leaves of them, as `memcpy` asks whether all are 0.

    *Soundness:* each bit of the result is one of the same bits; of places those that the stack's alignment tells.
    """
    if opcode == "INT_AND":
        known, mask = values if isinstance(values[-1], int) else reversed(values)
        if known is None or isinstance(known, int) or len(known) != 2 or not isinstance(mask, int):
            return None
        return None if mask & ~known[0] else known[1] & mask
    if not any(isinstance(one, tuple) and len(one) in {1, 3} for one in values):
        return None
    bits = [_low(one) for one in values]
    told = [one for one in bits if one is not None]
    if len(told) != len(values):
        return None
    (known_bits, first), (others, other) = told[0], told[-1]
    both = known_bits & others & (STACK_ALIGNMENT_BYTES - 1)
    return (both, _LOW_BITS[opcode](first, other) & both) if both else None


def _low(value: Value | None) -> tuple[int, int] | None:
    """Which of the lowest bits of a word are known, and what is."""
    if value is None or isinstance(value, int):
        return None if value is None else (-1, value)
    return value if len(value) == 2 else (-1, value[0]) if len(value) in {1, 3} else None


def rests_on_alignment(opcode: str, values: Sequence[Value | None]) -> bool:
    """Whether what `computed` tells of an operation that it knows rests on the stack pointer being a multiple of 8."""
    is_asked = opcode in {"INT_AND", "INT_LEFT"} or (opcode in _LOW_BITS and values[0] != values[-1])
    return is_asked and any(isinstance(one, tuple) and len(one) in {1, 3} for one in values)


def placed(opcode: str, values: Sequence[Value | None]) -> tuple[int, int] | None:
    """What comparing places of the stack with each other, or with 0, tells, and of how many bytes of it.

    *Soundness:* where the stack pointer is so many bytes or more from both ends of the address space, as assumption
    ``stack-bounds`` says, addresses less far from it are numbers from 1 on, in the order of their distances.
    """
    if opcode not in _ORDERS or len(values) != 2 or not all(one == 0 or _is_near(one) for one in values):
        return None
    first, other = (-STACK_REACH if isinstance(one, int) else one[0] for one in values if one is not None)
    return int(_ORDERS[opcode](first, other)), max(abs(one[0]) + 1 for one in values if isinstance(one, tuple))


def _is_near(value: Value | None) -> bool:
    return value is not None and not isinstance(value, int) and len(value) == 1 and abs(value[0]) < STACK_REACH


STACK_REACH = 1 << 20
"""Distances from the stack pointer that are less are compared as what they are."""
_Order = Callable[[int, int], bool]
_ORDERS: Mapping[str, _Order] = {"INT_EQUAL": eq, "INT_NOTEQUAL": ne, "INT_LESS": lt, "INT_LESSEQUAL": le}
_LOW_BITS: Mapping[str, Callable[[int, int], int]] = {"INT_OR": or_, "INT_XOR": xor, "INT_AND": and_}
_SAME = frozenset({"INT_AND", "INT_OR"})
"""Operations that make of a value and itself that value, as PowerPC copies a register."""
_SUMS = {"INT_2COMP": (-1, 0), "INT_ADD": (1, 1), "INT_SUB": (1, -1)}
_Place = tuple[int, int, int]
"""How often a word counts, once, not at all or less than that, which, and the number that is added."""
_STACK_POINTER = -1


def named(name: int, number: int, times: int = 1) -> Value:
    """The sum of a word of 32 bits of which nothing is known but its name, ``times`` 1 or -1, and ``number``."""
    return number % _WORD, 0, 0, times, name


def name_of(value: Value) -> int | None:
    """The name of the word that a value of `named` is told from; None of another value."""
    return value[4] if isinstance(value, tuple) and len(value) == 5 else None


def _place(value: Value | None) -> _Place | None:
    if value is None or isinstance(value, int):
        return None if value is None else (0, _STACK_POINTER, value)
    if len(value) == 5:
        return value[3], value[4], value[0]
    return None if len(value) in {2, 4} else (1 if len(value) == 1 else -1, _STACK_POINTER, value[0])


def _value(times: int, name: int, number: int) -> Value | None:
    if times == 0:
        return number % _WORD
    if abs(times) > 1:
        return None
    if name != _STACK_POINTER:
        return named(name, number, times)
    number = signed(_WORD_BITS, number % _WORD)
    return (number,) if times == 1 else (number, 0, -1)


def _of_places(opcode: str, places: Sequence[_Place]) -> Value | None:
    """What is known of places, what is between them, and their lowest bits, wherever the stack is."""
    (times, name, number), (other_times, other_name, other) = places[0], places[-1]
    if times and other_times and name != other_name:
        return None
    name = name if times else other_name
    if opcode in _SUMS:
        own, others = _SUMS[opcode]
        return _value(own * times + others * other_times, name, own * number + others * other)
    if opcode in {"INT_EQUAL", "INT_NOTEQUAL"} and times == other_times:
        return int((number % _WORD == other % _WORD) == (opcode == "INT_EQUAL"))
    match opcode if name == _STACK_POINTER else "":
        case "INT_AND":
            if times == 0:
                times, number, other_times, other = other_times, other, times, number
            return _masked(times, number, other) if other_times == 0 else None
        case "INT_LEFT" if other_times == 0 and other < _WORD_BITS and 1 << _WORD_BITS - other <= STACK_ALIGNMENT_BYTES:
            return (number << other) % _WORD
    return None


def _masked(times: int, number: int, mask: int) -> Value | None:
    """The bits of ``mask`` where they are among those that the stack's alignment tells, or without these."""
    if mask < STACK_ALIGNMENT_BYTES:
        return number & mask
    return _value(times, _STACK_POINTER, number & -(_WORD - mask)) if _WORD - mask in _ALIGNMENTS else None


def of_first(function: Callable[..., int]) -> Callable[[int, int], int]:
    """A function of one operand as one of two."""
    return lambda one, _: function(one)
