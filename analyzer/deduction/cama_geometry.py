"""What CAMA's claims depend on of a build: parameters, where static data lie, and where words of its tables are.

Words: claim, set (docs/explanation/glossary.md).

*Soundness:* classes are told by the intervals of `allocators/cama/cama.h` and not by what the code computes: that it
computes the same is asked of the solver wherever a word of the tables is accessed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from wcet_probe.analyzer.deduction.formulas import Node, condition

PLACE_BYTES, START_BYTES = 32, 8
STARTS_PER_PLACE = PLACE_BYTES // START_BYTES
_ROW_MIN = 4


@dataclass(frozen=True, slots=True)
class Geometry:
    """What the claims depend on: parameters of the build, and where static data lie. Addresses and sizes in bytes.

    Attributes:
        sets, line_bytes: the cache that CAMA is built for.
        reserved_sets: how many, from set 0 on.
        classes, classes_per_row: of sizes.
        control, tables: addresses of ``cama_control`` and ``cama_tables``.
        data: first address and end of all writable static data.
    """

    sets: int
    line_bytes: int
    reserved_sets: int
    classes: int
    classes_per_row: int
    control: int
    tables: int
    data: tuple[int, int]

    @property
    def page_bytes(self) -> int:
        """A line of each set."""
        return self.sets * self.line_bytes

    @property
    def page_places(self) -> int:
        """Places in a cache page."""
        return self.page_bytes // PLACE_BYTES

    @property
    def area_places(self) -> int:
        """Places in the reserved sets of a cache page."""
        return self.reserved_sets * self.line_bytes // PLACE_BYTES

    @property
    def threshold(self) -> int:
        """The least size of a large block."""
        return self.sets // self.reserved_sets * PLACE_BYTES

    @property
    def vector_words(self) -> int:
        """Words of bits for each set."""
        return (self.classes + 31) // 32

    @property
    def sentinel(self) -> int:
        """The sentinel, as a place."""
        return (self.control + 32) // PLACE_BYTES

    def least_size(self, number: int) -> int:
        """The least size of a class."""
        row, column = divmod(number, self.classes_per_row)
        width = (1 << _ROW_MIN + row) // self.classes_per_row
        return (self.classes_per_row + column) * width

    @property
    def first_large(self) -> int:
        """The least class of large blocks."""
        return next(one for one in range(self.classes) if self.least_size(one) >= self.threshold)

    @property
    def small_sizes(self) -> Mapping[int, int]:
        """The sizes of small blocks divided by 8, by classes; none of a class whose least size 8 does not divide."""
        sizes = {one: self.least_size(one) for one in range(self.first_large)}
        return {one: size // START_BYTES for one, size in sizes.items() if size % START_BYTES == 0}

    @property
    def table_words(self) -> int:
        """How many words the tables have."""
        return (self.vector_words + self.classes) * self.sets

    def is_of_tables(self, address: int) -> bool:
        """Whether a word of the tables is at ``address``."""
        words = self.reserved_sets * self.line_bytes // 4
        page, offset = divmod(address - self.tables, self.page_bytes)
        number = page * words + offset // 4
        return address % 4 == 0 and 0 <= number < self.table_words and self.word_at(number) == address

    def word_at(self, number: int) -> int:
        """The address of a word of the tables."""
        words = self.reserved_sets * self.line_bytes // 4
        return self.tables + number // words * self.page_bytes + number % words * 4

    def bits_of_class(self, size: Node) -> Node:
        """The class of a size, over bits."""
        found = _bits(0)
        for number in range(1, self.classes):
            is_below = condition("bits less", size, _bits(self.least_size(number)))
            found = condition("bits choice", is_below, found, _bits(number))
        return found

    def bits_of_least_size(self, number: Node) -> Node:
        """The least size of a class of small blocks, over bits."""
        found = _bits(self.least_size(0))
        for one in range(1, self.first_large):
            found = condition(
                "bits choice", condition("bits less", number, _bits(one)), found, _bits(self.least_size(one))
            )
        return found

    def bits_of_word(self, start: Node, plane: Node) -> Node:
        """The address of the word of the tables for the set of ``start`` and a plane, over bits."""
        line = condition("bits INT_RIGHT", start, _bits(self.line_bytes.bit_length() - 1))
        own_set = condition("bits INT_AND", line, _bits(self.sets - 1))
        number = condition("bits INT_ADD", condition("bits INT_MULT", plane, _bits(self.sets)), own_set)
        words = self.reserved_sets * self.line_bytes // 4
        page = condition("bits INT_RIGHT", number, _bits(words.bit_length() - 1))
        offset = condition("bits INT_MULT", condition("bits INT_AND", number, _bits(words - 1)), _bits(4))
        base = condition("bits INT_ADD", condition("bits INT_MULT", page, _bits(self.page_bytes)), _bits(self.tables))
        return condition("bits INT_ADD", base, offset)


def _bits(value: int) -> Node:
    return condition("bits constant", value)
