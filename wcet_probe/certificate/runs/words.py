# SPDX-License-Identifier: 0BSD
"""Words of a run: numbers, distances from the stack pointer at entry, and what nobody knows.

A number is an `int`; all else knows by its operators what is computed of it, so that compiled code is plain arithmetic.
Who asks anything of what is not known, a branch or an address, ends the run: `LostError`.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import or_, xor
from typing import Any, NoReturn

from wcet_probe.certificate.values.numbers import WORD

ALL, SIGN = WORD - 1, WORD // 2
_ALIGNED = 8


Word = Any
"""A number, an `int`, or an `Unknown`."""


class LostError(Exception):
    """What a run does next is not known; why, for people."""


class Unknown:
    """A word, or a bit, of which nothing is known, and nothing that is computed of it."""

    __slots__ = ()

    def _with(self, _other: Word, /) -> Word:
        return NOTHING

    def _alone(self) -> Word:
        return NOTHING

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __and__ = __rand__ = __or__ = __ror__ = _with
    __xor__ = __rxor__ = __lshift__ = __rlshift__ = __rshift__ = __rrshift__ = __floordiv__ = __rfloordiv__ = _with
    __mod__ = __rmod__ = __lt__ = __le__ = __gt__ = __ge__ = _with
    __neg__ = __invert__ = _alone
    __eq__ = __ne__ = _with

    def __bool__(self) -> bool:
        raise LostError("a condition depends on what is not known")

    def __hash__(self) -> int:
        raise LostError("where control goes depends on what is not known")

    def __index__(self) -> NoReturn:
        raise LostError("a computation depends on what is not known")

    __int__ = bit_length = __index__


NOTHING = Unknown()


class Link(Unknown):
    """The address that the caller of the function waits at: it is kept, and jumped to."""

    __slots__ = ()


LINK = Link()


class Fields(Unknown):
    """The condition fields of PowerPC as one word, which is moved only; of its bits the summaries are not known."""

    __slots__ = ("bits",)

    def __init__(self, bits: tuple[Word, ...]) -> None:
        self.bits = bits


class Rests(set[str]):
    """The assumptions that something computed rests on.

    Attributes:
        margin: the stack pointer is taken to be so many bytes or more from both ends of the address space.
    """

    margin = 0


class Low(Unknown):
    """A word of which only the lowest three bits are known, which *stack-alignment* tells of addresses put together."""

    __slots__ = ("bits", "used")

    def __init__(self, bits: int, used: Rests) -> None:
        self.bits, self.used = bits, used

    def __and__(self, mask: Word, /) -> Word:
        if type(mask) is not int or not 0 <= mask < _ALIGNED:
            return NOTHING
        self.used.add("stack-alignment")
        return self.bits & mask

    __rand__ = __and__


class Stack(Unknown):
    """A signed distance from the stack pointer at entry, or, if ``times`` is -1, a number less that stack pointer.

    ``used`` takes the assumptions that something computed of it rests on.
    """

    __slots__ = ("offset", "times", "used")

    def __init__(self, offset: int, used: Rests, times: int = 1) -> None:
        self.offset, self.used, self.times = (offset + SIGN) % WORD - SIGN, used, times

    def _sum(self, other: Word, own: int, others: int) -> Word:
        if isinstance(other, Stack):
            times, offset = own * self.times + others * other.times, own * self.offset + others * other.offset
        elif type(other) is int:
            times, offset = own * self.times, own * self.offset + others * other
        else:
            return NOTHING
        return offset if times == 0 else Stack(offset, self.used, times) if times in {1, -1} else NOTHING

    def __add__(self, other: Word, /) -> Word:
        return self._sum(other, 1, 1)

    __radd__ = __add__

    def __sub__(self, other: Word, /) -> Word:
        return self._sum(other, 1, -1)

    def __rsub__(self, other: Word, /) -> Word:
        return self._sum(other, -1, 1)

    def __and__(self, mask: Word, /) -> Word:
        """What a mask leaves: of its lowest three bits *stack-alignment* tells."""
        if type(mask) is not int:
            return NOTHING
        if mask & ALL == ALL:
            return self
        cleared = WORD - mask
        if 0 <= mask < _ALIGNED or (self.times == 1 and cleared in {2, 4, 8}):
            self.used.add("stack-alignment")
            return self.offset & mask if mask < _ALIGNED else Stack(self.offset & -cleared, self.used)
        return NOTHING

    __rand__ = __and__

    def __or__(self, other: Word, /) -> Word:
        return self if other is self else self._together(other, or_)

    def __xor__(self, other: Word, /) -> Word:
        return self._together(other, xor)

    __ror__, __rxor__ = __or__, __xor__

    def _together(self, other: Word, function: Callable[[int, int], int]) -> Word:
        """The lowest bits of two addresses put together, or of an address and a number."""
        own = other.offset if isinstance(other, Stack) else other.bits if isinstance(other, Low) else other
        return Low(function(self.offset, own), self.used) if type(own) is int else NOTHING

    def _beyond(self, other: Word) -> Word:
        """By how much its address is above another one's, in its sign, or above 0: by *stack-bounds*."""
        places = [one for one in (self, other) if isinstance(one, Stack)]
        is_compared = len(places) == 2 or (type(other) is int and other == 0)
        if not is_compared or any(one.times != 1 or abs(one.offset) >= self.used.margin for one in places):
            return NOTHING
        self.used.add("stack-bounds")
        return self.offset - other.offset if len(places) == 2 else 1

    def __eq__(self, other: Word, /) -> Word:
        is_like = isinstance(other, Stack) and other.times == self.times
        return self.offset == other.offset if is_like else self._beyond(other) == 0

    def __ne__(self, other: Word, /) -> Word:
        is_like = isinstance(other, Stack) and other.times == self.times
        return self.offset != other.offset if is_like else self._beyond(other) != 0

    def __lt__(self, other: Word, /) -> Word:
        return self._beyond(other) < 0

    def __le__(self, other: Word, /) -> Word:
        return self._beyond(other) <= 0

    def __gt__(self, other: Word, /) -> Word:
        return self._beyond(other) > 0

    def __ge__(self, other: Word, /) -> Word:
        return self._beyond(other) >= 0

    __hash__ = Unknown.__hash__
