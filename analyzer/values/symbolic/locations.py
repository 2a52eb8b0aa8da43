"""Places that hold values: registers, temporaries, stack slots, static words; and which of them share bytes.

Words: abstract location (docs/explanation/glossary.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import NamedTuple

from wcet_probe.analyzer.pcode.lift import Lifter
from wcet_probe.analyzer.pcode.operations import Varnode
from wcet_probe.identity import Same
from wcet_probe.model.target import Isa

SAVED = "saved"
"""The space of words of the stack as registers were saved there, see `saved_words`."""
_CORES = 16
"""So many sets of registers are remembered: that of mpc603e has 3,208."""
_MOST_WORDS_AT_ENTRY = 12
"""Of arguments on the stack; of those behind them nothing is known."""


class Location(NamedTuple):
    """``size_bytes`` bytes at ``offset`` of ``space``: ``register``, ``unique``, ``stack``, ``static`` or `SAVED`."""

    space: str
    offset: int
    size_bytes: int

    def overlaps(self, other: Location) -> bool:
        """Whether the two share a byte."""
        return (
            self.space == other.space
            and self.offset < other.offset + other.size_bytes
            and other.offset < self.offset + self.size_bytes
        )


def register_locations(lifter: Lifter) -> Mapping[str, Location]:
    """The locations of all registers by name, in order; they are found once for all lifters of an image."""
    return _register_locations(Same(lifter.registers))


@lru_cache(_CORES)
def _register_locations(registers: Same[Mapping[str, Varnode]]) -> Mapping[str, Location]:
    found = {name: Location("register", one.offset, one.size_bytes) for name, one in sorted(registers.value.items())}
    return MappingProxyType(found)


@lru_cache(_CORES)
def _words_of_bytes(registers: Same[Mapping[str, Varnode]]) -> Mapping[int, Location]:
    words = {Location("register", *one[1:]) for one in registers.value.values() if one.size_bytes == _WORD_BYTES}
    return {word.offset + number: word for word in sorted(words) for number in range(_WORD_BYTES)}


def part_of(place: Location, lifter: Lifter) -> tuple[Location, int] | None:
    """The register of four bytes that ``place`` is a part of, and how far its bits are shifted there; None: of none."""
    is_narrow = place.space == "register" and place.size_bytes < _WORD_BYTES
    word = _words_of_bytes(Same(lifter.registers)).get(place.offset) if is_narrow else None
    if word is None or place.offset + place.size_bytes > word.offset + _WORD_BYTES:
        return None
    ahead = place.offset - word.offset
    return word, 8 * (_WORD_BYTES - place.size_bytes - ahead if lifter.big_endian else ahead)


_WORD_BYTES = 4
_PAGE_BYTES = 16


class Overlaps:
    """Which of the locations that were ever added share a byte; each is compared once with those near it.

    *Soundness:* locations that share a byte share a page.
    """

    def __init__(self) -> None:
        self._of: dict[Location, list[Location]] = {}
        self._pages: dict[tuple[str, int], list[Location]] = {}

    def add(self, location: Location) -> list[Location]:
        """Those that overlap ``location``, itself among them; the list grows with what is added later."""
        found = self._of.get(location)
        if found is None:
            first, last = location.offset // _PAGE_BYTES, (location.offset + location.size_bytes - 1) // _PAGE_BYTES
            pages = [self._pages.setdefault((location.space, page), []) for page in range(first, last + 1)]
            found = self._of[location] = [location]
            for other in dict.fromkeys(other for page in pages for other in page):
                if location.overlaps(other):
                    found.append(other)
                    self._of[other].append(location)
            for page in pages:
                page.append(location)
        return found


def words_at_entry(isa: Isa) -> Iterator[Location]:
    """The words of the stack that may hold arguments, as far as functions have that many (`control.argument_place`).

    *Soundness:* a caller writes them before the call, and the call's own stores are followed; that no other store
    reaches them is assumption ``stack-separation``.
    """
    behind = 8 if isa is Isa.POWERPC else 0
    return (Location("stack", behind + 4 * number, 4) for number in range(_MOST_WORDS_AT_ENTRY))
