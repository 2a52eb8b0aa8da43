"""Where on the stack addresses of it may stand: what is loaded from elsewhere there is none, whatever else it is.

A function that copies a structure out of its frame would else seem to copy addresses of the stack into memory, and then
each word that is loaded later could be one.

Words: base, stack separation, summary (docs/explanation/glossary.md).

*Soundness:* of all stores of an analysis, in whichever order: where a load took it that none of them leaves an address,
and one is found later that may, the analysis is made again, with that one known from its beginning. Bytes that no store
of the call wrote are not derived from its stack pointer: what earlier calls left there is meant by *stack-separation*.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from wcet_probe.analyzer.values.states.state import State
from wcet_probe.analyzer.values.symbolic.locations import Location
from wcet_probe.analyzer.values.symbolic.term_table import Term

_FAR = 1 << 31
WHOLE_STACK = (-_FAR, _FAR - 1)
"""The offsets of all bytes of the stack."""
_MOST_BEGUN = 6
"""So often is an analysis made again before it is taken that addresses of the stack may stand anywhere on it."""


class Held(NamedTuple):
    """What a call may leave on the stack.

    Attributes:
        ranges: first and last offset of bytes that may be of an address of the stack.
        saved: the same of bytes below the stack pointer at entry that may be of what a register held at entry.
        kept: these registers.
    """

    ranges: tuple[tuple[int, int], ...] = ()
    saved: tuple[tuple[int, int], ...] = ()
    kept: frozenset[Location] = frozenset()

    @property
    def is_any(self) -> bool:
        """Whether any may stand anywhere."""
        return bool(self.ranges or self.saved)


ANYWHERE = Held((WHOLE_STACK,))
"""They may stand anywhere."""


@dataclass(slots=True)
class HeldAddresses:
    """Where addresses of the stack may stand on it as far as is known, and where it was taken that none does.

    Attributes:
        held: where they may; anywhere, unless it is said.
        is_refuted: whether what was taken for none may be one.
    """

    held: Held = ANYWHERE
    is_refuted: bool = False
    _begun: int = 0
    _trusted: tuple[tuple[int, int], ...] = ()

    def note(self, low: int, high: int, register: Location | None = None) -> None:
        """An address may be stored in the bytes from ``low`` to ``high``: what ``register`` held at entry, or any."""
        one, held = (low, high) if high < _FAR else WHOLE_STACK, self.held
        if register is not None and one[1] < 0:
            self.held = held._replace(saved=_merged((*held.saved, one)), kept=held.kept | {register})
        else:
            self.held = held._replace(ranges=_merged((*held.ranges, one)))
        self.is_refuted |= _meet(self._trusted, *one)

    def may_hold(self, low: int, high: int) -> bool:
        """Whether one may stand in a byte from ``low`` to ``high``; that none does is held against what comes later."""
        one = (low, high) if high < _FAR else WHOLE_STACK
        if _meet(self.held.ranges, *one) or _meet(self.held.saved, *one):
            return True
        self._trusted = _merged((*self._trusted, one))
        return False

    def begin(self) -> None:
        """All is analysed again; what was refuted too often is not taken for true any more."""
        self._begun += 1
        self.held = ANYWHERE if self._begun >= _MOST_BEGUN else self.held
        self.is_refuted = False
        self._trusted = ()


def _merged(ranges: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """The same bytes in fewer ranges: those that touch each other are one."""
    found: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if found and low <= found[-1][1] + 1:
            found[-1] = found[-1][0], max(found[-1][1], high)
        else:
            found.append((low, high))
    return tuple(found)


def both(one: Held, other: Held) -> Held:
    """What either leaves; where that may stand anywhere, nothing is told of registers besides."""
    ranges, saved = _merged((*one.ranges, *other.ranges)), _merged((*one.saved, *other.saved))
    return ANYWHERE if WHOLE_STACK in ranges else Held(ranges, saved, one.kept | other.kept)


def register_at_entry(state: State, value: Term | None) -> Location | None:
    """The register that held ``value`` at entry, or None."""
    match None if value is None else state.terms[value].arguments:
        case ("in", Location(space="register") as register):
            return register
    return None


def moved(held: Held, offset: int | None) -> list[tuple[int, int]]:
    """The ranges of ``held`` as a caller has them, whose stack pointer is at ``offset``, if that is known."""
    return [
        (low + offset, high + offset)
        if offset is not None and low + offset >= -_FAR and high + offset < _FAR
        else WHOLE_STACK
        for low, high in held.ranges
    ]


def _meet(ranges: Iterable[tuple[int, int]], low: int, high: int) -> bool:
    return any(first <= high and low <= last for first, last in ranges)
