"""Which word of CAMA's tables an address is, and the words of bits of the lists that are filled.

The head of a list and the word with its bit are shown of an address over bits: of a start and a size that it is
computed of, of the word before a start, or of a class that was found in the bits of the set that is asked for.

Words: obligation, claim, set (docs/explanation/glossary.md).

*Soundness:* what is assumed of a cell was shown of its address. A word of bits is stored only as what was loaded of it
last, with one bit changed, of a cell that is known.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from wcet_probe.analyzer.deduction import cama_views as cama
from wcet_probe.analyzer.deduction.cama_geometry import START_BYTES
from wcet_probe.analyzer.deduction.cama_stores import Stores, word_of
from wcet_probe.analyzer.deduction.execution import Astray, Site
from wcet_probe.analyzer.deduction.formulas import (
    FALSE,
    TRUE,
    Node,
    condition,
    conjunction,
    disjunction,
    negation,
)
from wcet_probe.analyzer.deduction.word_terms import BitsAbout
from wcet_probe.analyzer.deduction.words import Word, base_of

LEFT_TO_ANOTHER_PART = "left to another part of the operation"
SMALL, LARGE = "small", "large"
BOTH = frozenset({SMALL, LARGE})
"""Kinds of blocks, by which lists are told where a block was found."""


@dataclass(frozen=True, slots=True)
class TableWord:
    """A word of the tables: the head of a cell, or the word of a vector that has its bit.

    Attributes:
        cell, class_bits: the cell, and its class over bits.
        is_large: whether its list is of large blocks.
        is_vector: whether it is the vector's word.
        computed_of: the start and the size, or the word before the start, that the cell is of.
    """

    cell: Node
    class_bits: Node
    is_large: bool
    is_vector: bool
    computed_of: tuple[Word, Word]


@dataclass(frozen=True, slots=True)
class SetWord:
    """A word of the bits of a set that is asked for, as it was loaded.

    Attributes:
        address: where it is, by which it is told of which 32 classes it has the bits.
        version: how often words of the vectors had been stored.
    """

    address: Word
    version: int


@dataclass(slots=True)
class Tables(Stores):
    """What is known of addresses and words of the tables at one point of a way.

    Attributes:
        cleared: words of the tables that were set to 0 at constant addresses.
        headers: words that were loaded from before a start, that start, and their class as it was loaded.
        cells: addresses that are shown to be in the tables, and what of.
        bit_words: loaded words of vectors: of which cell, and which version.
        vectors: how often words of the vectors were stored.
        set_words: loaded words of vectors of the set that is asked for, of which no cell is known.
        found: of each cell that was found by a bit of such a word, its class as a word.
    """

    cleared: set[int] = field(default_factory=set)
    headers: dict[Word, tuple[Node, Node]] = field(default_factory=dict)
    cells: dict[Word, TableWord] = field(default_factory=dict)
    bit_words: dict[Word, tuple[Node, int]] = field(default_factory=dict)
    vectors: int = 0
    set_words: dict[Word, SetWord] = field(default_factory=dict)
    found: dict[Node, Word] = field(default_factory=dict)

    def table_word(self, address: Word, site: Site) -> TableWord | None:
        """The word of the tables that ``address`` is shown to be of, if it is one."""
        terms = self.rules.terms
        if address in self.cells or (terms.is_plain(address) and not terms.is_followed(address)):
            return self.cells.get(address)
        found = self._found_word(address, site)
        if found is not None:
            self.cells[address] = found
            return found
        leaves = terms.leaves(address)
        compared = (word for one in site.conditions for word in terms.words_in(one))
        others = dict.fromkeys((*leaves, *(leaf for word in compared for leaf in terms.leaves(word))))
        for start in leaves:
            for other in others:
                if other not in self.headers and not terms.is_whole(other):
                    continue
                size = other if other in self.headers else other.times(START_BYTES)
                found = self._matching(address, start.times(START_BYTES), size, site)
                if found is not None:
                    self.cells[address] = found
                    return found
        return None

    def _matching(self, address: Word, start: Word, other: Word, site: Site) -> TableWord | None:
        terms, geometry = self.rules.terms, self.rules.geometry
        own = self.headers.get(other)
        if own is not None:
            number = own[1]
            is_large = False
            bits = condition("bits INT_RIGHT", terms.bits(other), condition("bits constant", 2))
            fits = conjunction(number >= 0, number < geometry.first_large)
        else:
            size = self.divided(other, START_BYTES)
            number = cama.class_of(size)
            is_large = True
            bits = geometry.bits_of_class(terms.bits(other))
            fits = size >= geometry.threshold // START_BYTES
        if not terms.questions.holds(fits):
            return None
        premises = terms.bits_about([address, other], site.conditions)
        at = terms.bits(start)
        plane = condition("bits INT_ADD", bits, condition("bits constant", geometry.vector_words))
        upper = condition("bits INT_RIGHT", bits, condition("bits constant", 5))
        for is_vector, expected in ((False, plane), (True, upper)):
            equal = condition("bits equal", terms.bits(address), geometry.bits_of_word(at, expected))
            if terms.bits_follow(premises, equal):
                cell = self._cell(start, number, is_large=is_large)
                return TableWord(cell, bits, is_large, is_vector, (start, other))
        return None

    def _found_word(self, address: Word, site: Site) -> TableWord | None:
        """The word of the tables of the set that is asked for and of a class whose bit was found, if it is that."""
        terms, own_set = self.rules.terms, self.rules.asked_set
        if own_set is None:
            return None
        compared = list(dict.fromkeys(word for one in site.conditions for word in terms.words_in(one) if word.parts))
        start = own_set.times(self.rules.geometry.line_bytes)
        # What is wanted may be of the class of its size, which alone is a multiple of 8.
        for size in sorted(compared, key=lambda one: one.alignment % START_BYTES):
            if terms.is_followed(size) and self._is_head_of_size(address, start, size, site):
                return self._head_of_size(start, size, site)
        for loaded, of in self.set_words.items():
            for number in compared:
                if base_of(loaded) not in terms.leaves(number) or number == loaded:
                    continue
                found = self._found_matching(address, (loaded, of), (start, number), site)
                if found is not None:
                    return found
        return None

    def _is_head_of_size(self, address: Word, start: Word, size: Word, site: Site) -> bool:
        """Whether ``address`` is the head of the set that is asked for and of the class of a large ``size``."""
        terms, geometry = self.rules.terms, self.rules.geometry
        premises = terms.bits_about([address, start, size], site.conditions)
        bits = terms.bits(size)
        is_large = negation(condition("bits less", bits, condition("bits constant", geometry.threshold)))
        plane = condition(
            "bits INT_ADD", geometry.bits_of_class(bits), condition("bits constant", geometry.vector_words)
        )
        own = condition("bits equal", terms.bits(address), geometry.bits_of_word(terms.bits(start), plane))
        return terms.bits_follow(premises, conjunction(is_large, own))

    def _head_of_size(self, start: Word, size: Word, site: Site) -> TableWord:
        """The head of the set that starts at ``start`` and of the class of a large ``size``."""
        if self.rules.leaves_large:
            raise Astray(LEFT_TO_ANOTHER_PART)
        terms, threshold = self.rules.terms, self.rules.geometry.threshold
        premises = terms.bits_about([size], site.conditions)
        is_least = condition("bits equal", terms.bits(size), condition("bits constant", threshold))
        own = Word(threshold) if terms.bits_follow(premises, is_least) else size
        if not terms.questions.holds(terms.value(own) >= threshold):
            raise Astray("a head of a large size that the integers do not know to be large")
        cell = self._cell(start, cama.class_of(self.divided(own, START_BYTES)), is_large=True)
        bits = self.rules.geometry.bits_of_class(terms.bits(size))
        return TableWord(cell, bits, is_large=True, is_vector=False, computed_of=(start, size))

    def _cell(self, start: Word, number: Node, *, is_large: bool) -> Node:
        """The cell of the set of ``start`` and of the class ``number``, at which the claims are assumed."""
        geometry, questions = self.rules.geometry, self.rules.terms.questions
        cell = cama.cell(self.divided(start, START_BYTES), number)
        if is_large:
            questions.assume(conjunction(number >= geometry.first_large, number < geometry.classes))
        questions.assume(cama.class_at(cell).equals(number))
        self.name("cell", cell)
        return cell

    def _found_matching(
        self, address: Word, loaded: tuple[Word, SetWord], asked: tuple[Word, Word], site: Site
    ) -> TableWord | None:
        terms, geometry = self.rules.terms, self.rules.geometry
        (vector, of), (start, number) = loaded, asked
        premises = terms.bits_about([address, vector, start, number, of.address], site.conditions)
        bits, one, five = terms.bits(number), condition("bits constant", 1), condition("bits constant", 5)
        upper = condition("bits INT_RIGHT", bits, five)
        low = condition("bits INT_AND", bits, condition("bits constant", 31))
        bit = condition("bits INT_AND", condition("bits INT_RIGHT", terms.bits(vector), low), one)
        own = condition("bits equal", terms.bits(of.address), geometry.bits_of_word(terms.bits(start), upper))
        is_found = conjunction(own, condition("bits equal", bit, one))
        if not terms.bits_follow(premises, is_found):
            return None
        plane = condition("bits INT_ADD", bits, condition("bits constant", geometry.vector_words))
        for is_vector, expected in ((False, plane), (True, upper)):
            equal = condition("bits equal", terms.bits(address), geometry.bits_of_word(terms.bits(start), expected))
            if terms.bits_follow(premises, equal):
                return self._found_cell((vector, of), (start, number), premises, is_vector=is_vector)
        return None

    def _found_cell(
        self, loaded: tuple[Word, SetWord], asked: tuple[Word, Word], premises: BitsAbout, *, is_vector: bool
    ) -> TableWord | None:
        """The cell that was found, of which the claims tell that its list is not empty."""
        terms, geometry = self.rules.terms, self.rules.geometry
        (_, of), (start, word) = loaded, asked
        below = condition("bits less", terms.bits(word), condition("bits constant", geometry.first_large))
        is_small = terms.bits_follow(premises, below)
        if not is_small and not terms.bits_follow(premises, negation(below)):
            return None
        if is_small and any(one.is_large and one.cell not in self.found for one in self.cells.values()):
            raise Astray("a list of small blocks where a large one was compared")
        if (SMALL if is_small else LARGE) in self.rules.leaves_found:
            raise Astray("a second list that was found" if self.found else LEFT_TO_ANOTHER_PART)
        cell = next((cell for cell, own in self.found.items() if own == word), None)
        if cell is None:
            # The bit belongs to one cell, of this set and a class that the bits alone know.
            number = terms.known(terms.fresh("found class"), 32 * geometry.vector_words - 1)
            cell = cama.cell(self.divided(start, START_BYTES), number)
            terms.questions.assume(cama.class_at(cell).equals(number))
            terms.questions.assume(number < geometry.first_large if is_small else number >= geometry.first_large)
            if of.version == 0:
                terms.questions.assume(self.rules.before.filled(cell))
            self.found[cell] = word
            self.name("cell", cell)
            if not is_small:
                self.name("place", self.rules.before.first_large(cell))
            if not terms.questions.holds(number < geometry.classes):
                raise Astray("a class that was found and is not shown to be one")
        return TableWord(cell, terms.bits(word), not is_small, is_vector, (start, word))

    def is_vector_of_set(self, address: Word, site: Site) -> bool:
        """Whether ``address`` is shown to be that of a word of bits of the set that is asked for."""
        terms, geometry, own_set = self.rules.terms, self.rules.geometry, self.rules.asked_set
        if own_set is None:
            return False
        start = own_set.times(geometry.line_bytes)
        premises = terms.bits_about([address, start], site.conditions)
        planes = (condition("bits constant", plane) for plane in range(geometry.vector_words))
        words = (geometry.bits_of_word(terms.bits(start), plane) for plane in planes)
        is_one = disjunction(*(condition("bits equal", terms.bits(address), word) for word in words))
        return terms.bits_follow(premises, is_one)

    def load_set_word(self, address: Word) -> Word:
        """A word of bits of the set that is asked for, at ``address``."""
        word = self._bits()
        self.set_words[word] = SetWord(address, self.vectors)
        return word

    def load_vector(self, at: TableWord) -> Word:
        """The vector's word ``at``."""
        word = self._bits()
        self.bit_words[word] = at.cell, self.vectors
        return word

    def _bits(self) -> Word:
        """A word of bits of which nothing is known."""
        terms = self.rules.terms
        word = word_of(terms.known(terms.fresh("vector")))
        terms.follow(word.parts[0][0])
        return word

    def store_vector(self, at: TableWord, value: Word, site: Site) -> None:
        """A word of a vector becomes what was loaded of it, with one bit set or cleared."""
        terms = self.rules.terms
        low = condition("bits INT_AND", at.class_bits, condition("bits constant", 31))
        bit = condition("bits INT_LEFT", condition("bits constant", 1), low)
        premises = terms.bits_about([value, *at.computed_of], site.conditions)
        for word, (own, version) in self.bit_words.items():
            if own is not at.cell or version != self.vectors or word not in terms.leaves(value):
                continue
            for is_set in (True, False):
                operation, mask = ("INT_OR", bit) if is_set else ("INT_AND", condition("bits INT_NEGATE", bit))
                expected = condition(f"bits {operation}", terms.bits(word), mask)
                if terms.bits_follow(premises, condition("bits equal", terms.bits(value), expected)):
                    self.write("filled", at.cell, TRUE if is_set else FALSE)
                    self.vectors += 1
                    return
        raise Astray("a vector's word that is not shown to be the former one with one bit changed")

    def need_cleared(self) -> None:
        """What makes the heap has set all words of the tables to 0 before it loads one."""
        if self.rules.begins and not self.is_cleared():
            raise Astray("an access to tables that are not cleared")

    @property
    def has_stored_tables(self) -> bool:
        """Whether a word of the tables was stored of which only its cell is known."""
        return not {"filled", "first_large", "first_small"}.isdisjoint(self.stored)

    def is_cleared(self) -> bool:
        """Whether all words of the tables were set to 0."""
        geometry = self.rules.geometry
        return all(geometry.word_at(number) in self.cleared for number in range(geometry.table_words))
