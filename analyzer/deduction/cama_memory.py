"""CAMA's memory as an operation sees it: words by what they are of, with what the operation stored.

A load or store is to a word of the stack, of static data, of a place, of a cell or vector of the tables, the word
before a start, or the first one of a block. Which one it is, is shown of its address; where that fails the way ends.

Words: obligation, claim, stack separation (docs/explanation/glossary.md).

*Soundness:* that words of different kinds are different words is claimed (`analyzer.deduction.cama_claims`). Each
access has obligations: that its word is live, so that what is loaded is what the claims speak of, and that it lies in
the reserved sets of the arena, or is the operation's own block. A word of the vectors is stored only as what was
loaded of it last, with one bit changed, of a cell that is known. The stack is apart from all (assumption
``stack-separation``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from wcet_probe.analyzer.deduction import cama_views as cama
from wcet_probe.analyzer.deduction.cama_claims import Claim, Named, definitions, instances
from wcet_probe.analyzer.deduction.cama_geometry import PLACE_BYTES, START_BYTES, Geometry
from wcet_probe.analyzer.deduction.cama_views import View
from wcet_probe.analyzer.deduction.execution import Astray, Site
from wcet_probe.analyzer.deduction.formulas import (
    FALSE,
    TRUE,
    Node,
    choice,
    condition,
    conjunction,
    disjunction,
    linear,
    negation,
    term,
)
from wcet_probe.analyzer.deduction.words import SPAN, Word, WordTerms, base_of

LEFT_TO_ANOTHER_PART = "left to another part of the operation"
AT_STOP = "followed up to where another part begins"
IN_THE_RESERVED_SETS = "in the reserved sets"
STORED_BEFORE_LOADED = "stored before it is loaded"
OF_THE_OWN_BLOCK = "of the own block"
_FIELDS = {0: "left", 4: "right", 8: "prev", 12: "next", 16: "start", 20: "size"}
_LINKS = frozenset({"left", "right", "prev", "next"})
_SCALARS = {0: "arena", 4: "end", 8: "top", 12: "spare", 16: "fresh", 20: "available", 24: "newest", 28: "oldest"}
_UNITS = {"arena": 8, "end": 8, "top": 8, "spare": 32, "fresh": 32, "available": 1, "newest": 32, "oldest": 32}
_MOST_PLACE, _MOST_START = SPAN // PLACE_BYTES - 1, SPAN // START_BYTES - 1


@dataclass(frozen=True, slots=True)
class Header:
    """The word before a start, in three parts."""

    tag_class: Node
    tag_free: Node
    tag_low: Node


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


@dataclass(frozen=True, slots=True)
class Rules:
    """What is the same for all of an operation.

    Attributes:
        claims: that are assumed at entry.
        before: the view at entry.
        begins: whether it makes the heap, so that nothing is live at entry, and claims are not assumed.
        oblige: is told of each obligation: what it is, where, and whether it was shown.
        asked_set: the set that the operation is given, if any.
        leaves_large: whether ways are left to another part that load a head of a list of large blocks.
        leaves_found: whether ways are left to another part on which a list with a block was found.
        stops_at: the word of static data, by its name in a view, whose load ends a way; empty for none.
        makes_block: whether the word before a block may be stored that is none yet; it is asked at the end what it is.
        made: claims of ``before`` at terms, which are asked for again and again.
    """

    geometry: Geometry
    terms: WordTerms
    claims: tuple[Claim, ...]
    before: View
    begins: bool
    oblige: Callable[[str, int, bool], None]
    asked_set: Word | None = None
    leaves_large: bool = False
    leaves_found: bool = False
    stops_at: str = ""
    makes_block: bool = False
    made: dict[tuple[Any, ...], Node] = field(default_factory=dict)


@dataclass(slots=True)
class CamaMemory:
    """The memory at one point of a way.

    Attributes:
        stored: of each function of a view, the arguments and values that were stored, in order.
        static: words of static data apart from the tables.
        stack: words of the stack, by their distance from the stack pointer at entry.
        cleared: words of the tables that were set to 0 at constant addresses.
        named: the terms of each kind that the claims are assumed at.
        starts: known starts, as words.
        headers: words that were loaded from before a start, that start, and their class as it was loaded.
        aliases: words that are shown to be the address of a place.
        links: words that are shown to be the address before a start, or null.
        cells: addresses that are shown to be in the tables, and what of.
        bit_words: loaded words of vectors: of which cell, and which version.
        set_words: loaded words of vectors of the set that is asked for, of which no cell is known.
        found: of each cell that was found by a bit of such a word, its class as a word.
        touched: starts of blocks whose words were accessed, and an instruction that did it.
        vectors: how often words of the vectors were stored.
    """

    rules: Rules
    stack_pointer: Word
    stored: dict[str, tuple[tuple[Node, Node], ...]] = field(default_factory=dict)
    static: dict[int, Word] = field(default_factory=dict)
    stack: dict[int, Word] = field(default_factory=dict)
    cleared: set[int] = field(default_factory=set)
    named: Named = field(default_factory=lambda: Named({}))
    starts: dict[Word, Node] = field(default_factory=dict)
    headers: dict[Word, tuple[Node, Node]] = field(default_factory=dict)
    aliases: dict[Word, Node] = field(default_factory=dict)
    links: dict[Word, Node] = field(default_factory=dict)
    cells: dict[Word, TableWord] = field(default_factory=dict)
    bit_words: dict[Word, tuple[Node, int]] = field(default_factory=dict)
    vectors: int = 0
    set_words: dict[Word, SetWord] = field(default_factory=dict)
    found: dict[Node, Word] = field(default_factory=dict)
    touched: dict[Node, int] = field(default_factory=dict)

    def copy(self) -> CamaMemory:
        """The same, to be changed apart."""
        return CamaMemory(
            self.rules,
            self.stack_pointer,
            dict(self.stored),
            dict(self.static),
            dict(self.stack),
            self.cleared if not self.rules.begins else set(self.cleared),
            self.named,
            dict(self.starts),
            dict(self.headers),
            dict(self.aliases),
            dict(self.links),
            dict(self.cells),
            dict(self.bit_words),
            self.vectors,
            dict(self.set_words),
            dict(self.found),
            dict(self.touched),
        )

    # ------------------------------------------------------------------------------------------------------ accesses

    def load(self, address: Word, site: Site) -> Word:
        """The word at ``address``.

        Raises:
            Astray: it is not shown which word it is.
        """
        if not address.parts:
            return self._load_static(address.constant, site)
        offset = self._on_stack(address)
        if offset is not None:
            if offset not in self.stack:
                raise Astray("a load of a word of the stack that was not stored")
            return self.stack[offset]
        own = self.start_at(address)
        if own is not None:
            return self._load_of_block(*own, site)
        found = self._table_word(address, site)
        if found is not None:
            return self._load_table(found)
        if self._is_vector_of_set(address, site):
            return self._load_set_word(address)
        return self._load_field(*self._field(address), site)

    def store(self, address: Word, value: Word, site: Site) -> None:
        """Store ``value`` at ``address``.

        Raises:
            Astray: it is not shown which word it is, or the value is none that such a word may have.
        """
        if not address.parts:
            self._store_static(address.constant, value, site)
            return
        offset = self._on_stack(address)
        if offset is not None:
            self.stack[offset] = value
            return
        own = self.start_at(address)
        if own is not None:
            self._store_of_block(*own, value, site)
            return
        found = self._table_word(address, site)
        if found is not None:
            self._store_table(found, value, site)
            return
        self._store_field(*self._field(address), value, site)

    def oblige(self, what: str, site: Site, formula: Node) -> None:
        """Ask that ``formula`` holds at ``site``."""
        self.rules.oblige(what, site.instruction_address, self.rules.terms.questions.holds(formula))

    def _on_stack(self, address: Word) -> int | None:
        difference = address.plus(self.stack_pointer, -1)
        if difference.parts:
            return None
        offset = difference.constant
        if offset % 4:
            raise Astray("an access across words of the stack")
        return offset - SPAN if offset >= SPAN // 2 else offset

    # ------------------------------------------------------------------------------------------------- static data

    def _load_static(self, address: int, site: Site) -> Word:
        offset = address - self.rules.geometry.control
        if offset in range(32, 64):
            return self._load_field(term(self.rules.geometry.sentinel), offset - 32, site)
        if address not in self.static:
            raise Astray("a load of static data of which nothing is claimed")
        if self.rules.stops_at and _SCALARS.get(offset) == self.rules.stops_at:
            raise Astray(AT_STOP)
        return self.static[address]

    def _store_static(self, address: int, value: Word, site: Site) -> None:
        geometry = self.rules.geometry
        offset = address - geometry.control
        if offset in range(32, 64):
            self._store_field(term(geometry.sentinel), offset - 32, value, site)
        elif offset in _SCALARS:
            self.static[address] = value
        elif self.rules.begins and value == Word(0) and geometry.is_of_tables(address) and not self.has_stored_tables:
            self.cleared.add(address)
        else:
            raise Astray("a store to static data of which nothing is claimed")

    def scalar(self, name: str) -> Node:
        """A word of static data, by its name in a view.

        Raises:
            Astray: it is not aligned as claimed.
        """
        offset = next(one for one, own in _SCALARS.items() if own == name)
        word = self.static[self.rules.geometry.control + offset]
        return self._place_of(word) if _UNITS[name] == PLACE_BYTES else self._divided(word, _UNITS[name])

    # ------------------------------------------------------------------------------------------------------ places

    def _field(self, address: Word) -> tuple[Node, int]:
        """The place and the offset that ``address`` leads to."""
        for base, place in self.aliases.items():
            difference = address.plus(base, -1)
            if not difference.parts and difference.constant < PLACE_BYTES:
                return place, difference.constant
        for content, (start, _) in self.headers.items():
            difference = address.plus(content, -1)
            if not difference.parts and difference.constant < PLACE_BYTES:
                owner = self.rules.before.owner(start)
                self.rules.terms.known(owner, _MOST_PLACE)
                if self.rules.terms.questions.holds(self.rules.terms.value(content).equals(PLACE_BYTES * owner)):
                    self.aliases[content] = owner
                    return owner, difference.constant
        offset = address.constant % PLACE_BYTES
        return self._divided(address.plus(Word(offset), -1), PLACE_BYTES), offset

    def _is_place(self, place: Node, offset: int, site: Site) -> str:
        """The field at ``offset`` of ``place``, which is obliged to lie in the reserved sets of the arena."""
        if offset not in _FIELDS:
            raise Astray(f"an access at offset {offset} of a descriptor")
        self.name("place", place)
        geometry, view = self.rules.geometry, self.rules.before
        inside = conjunction(
            cama.is_reserved(place, geometry),
            PLACE_BYTES // START_BYTES * place >= view.arena,
            PLACE_BYTES // START_BYTES * (place + 1) <= view.end,
        )
        self.oblige(IN_THE_RESERVED_SETS, site, disjunction(inside, place.equals(geometry.sentinel)))
        return _FIELDS[offset]

    def _load_field(self, place: Node, offset: int, site: Site) -> Word:
        name = self._is_place(place, offset, site)
        self.oblige(STORED_BEFORE_LOADED, site, self._is_stored(name, place))
        if name in _LINKS:
            link = self._read(name, place, _MOST_PLACE)
            self.name("place", link)
            return Word(0).plus(_word(link), PLACE_BYTES)
        if name == "start":
            return _word(self._read(name, place, _MOST_START)).times(START_BYTES)
        size = self._read("size", place, _MOST_START)
        return _word(size).times(START_BYTES).plus(_word(self._read("free", place, 1)))

    def _is_stored(self, name: str, place: Node) -> Node:
        """Whether the field was stored, before this operation or in it."""
        here = [place.equals(one) for one, _ in self.stored.get(name, ())]
        return disjunction(self.was_live(name, place), *here)

    def was_live(self, name: str, place: Node) -> Node:
        """Whether the field was live at entry: where the heap is made the sentinel's size is, which the image holds."""
        if self.rules.begins:
            return place.equals(self.rules.geometry.sentinel) if name == "size" else FALSE
        return self.is_live(self.rules.before, name, place)

    def is_live(self, view: View, name: str, place: Node) -> Node:
        """Whether the field ``name`` of ``place`` may be read by operations and claims."""
        geometry = self.rules.geometry
        linked = cama.is_linked(view, place, geometry)
        if name == "left":
            return disjunction(cama.is_taken(view, place), linked)
        return (
            linked
            if name in {"right", "size"}
            else (cama.is_chained(view, place) if name == "start" else cama.is_listed(view, place, geometry))
        )

    def _store_field(self, place: Node, offset: int, value: Word, site: Site) -> None:
        name = self._is_place(place, offset, site)
        if name in _LINKS:
            link = self._place_of(value)
            self.name("place", link)
            self.write(name, place, link)
        elif name == "start":
            self.write(name, place, self._divided(value, START_BYTES))
        else:
            size, low = self._split(value, START_BYTES)
            self.write("size", place, self._divided(size, START_BYTES))
            self.write("free", place, self._low_bit(low))

    def _low_bit(self, low: Word) -> Node:
        if not low.parts and low.constant <= 1:
            return term(low.constant)
        if low.constant == 0 and len(low.parts) == 1 and low.parts[0][1] == 1:
            bit = low.parts[0][0]
            if self.rules.terms.questions.holds(conjunction(bit >= 0, bit <= 1)):
                return bit
        raise Astray("the lowest bits of a size are not known")

    def _place_of(self, value: Word) -> Node:
        """The place whose address ``value`` is; 0 of null."""
        alias = self.aliases.get(value)
        return self._divided(value, PLACE_BYTES) if alias is None else alias

    # ------------------------------------------------------------------------------------------------------ blocks

    def start_at(self, address: Word) -> tuple[Node, bool] | None:
        """The start that ``address`` is at, or before, and whether it is before it; of a link that is no null."""
        for link, node in self.links.items():
            difference = address.plus(link, -1)
            if not difference.parts and difference.constant in {0, 4}:
                return (node, difference.constant == 0) if self.rules.terms.questions.holds(node >= 1) else None
        for start, node in self.starts.items():
            difference = address.plus(start, -1)
            if not difference.parts and difference.constant in {0, SPAN - 4}:
                return node, difference.constant != 0
        return None

    def _load_of_block(self, start: Node, is_header: bool, site: Site) -> Word:  # noqa: FBT001
        view = self.rules.before
        self.touched.setdefault(start, site.instruction_address)
        if not is_header:
            self.oblige(STORED_BEFORE_LOADED, site, cama.is_filed(view, start))
            return self._link_to(self._read("link", start, _MOST_START))
        self.oblige(STORED_BEFORE_LOADED, site, cama.is_live_header(view, start))
        parts = (
            self._read("tag_class", start, SPAN // 4 - 1),
            self._read("tag_free", start, 1),
            self._read("tag_low", start, 1),
        )
        content = _word(parts[0]).times(4).plus(_word(parts[1]).times(2)).plus(_word(parts[2]))
        self.headers[content] = start, parts[0]
        return content

    def _store_of_block(self, start: Node, is_header: bool, value: Word, site: Site) -> None:  # noqa: FBT001
        self.touched.setdefault(start, site.instruction_address)
        if not self.rules.makes_block:
            self.oblige(OF_THE_OWN_BLOCK, site, cama.is_live_header(self.rules.before, start))
        if is_header:
            high, low = self._split(value, 4)
            upper, lowest = self._split(low, 2)
            self.write("tag_class", start, self._divided(high, 4))
            self.write("tag_free", start, self._low_bit(self._halved(upper)))
            self.write("tag_low", start, self._low_bit(lowest))
            return
        self.write("link", start, self._start_of(value))

    @staticmethod
    def _halved(word: Word) -> Word:
        return Word(word.constant // 2, tuple((node, factor // 2) for node, factor in word.parts))

    def _start_of(self, value: Word) -> Node:
        """The start that ``value`` is the word before of; 0 of null."""
        if value == Word(0):
            return term(0)
        for start, node in self.starts.items():
            if value == start.plus(Word(4), -1):
                return node
        if value in self.links:
            return self.links[value]
        raise Astray("a link of a small block that leads to none that is known")

    # ------------------------------------------------------------------------------------------------------ tables

    def _table_word(self, address: Word, site: Site) -> TableWord | None:
        """The word of the tables that ``address`` is shown to be of."""
        terms = self.rules.terms
        if address in self.cells or terms.is_plain(address):
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
            size = self._divided(other, START_BYTES)
            number = cama.class_of(size)
            is_large = True
            bits = geometry.bits_of_class(terms.bits(other))
            fits = size >= geometry.threshold // START_BYTES
        if not terms.questions.holds(fits):
            return None
        premises = tuple(terms.bits_about([address, other], site.conditions))
        at = terms.bits(start)
        plane = condition("bits INT_ADD", bits, condition("bits constant", geometry.vector_words))
        upper = condition("bits INT_RIGHT", bits, condition("bits constant", 5))
        for is_vector, expected in ((False, plane), (True, upper)):
            equal = condition("bits equal", terms.bits(address), geometry.bits_of_word(at, expected))
            if terms.questions.bits_hold(premises, equal):
                cell = cama.cell(self._divided(start, START_BYTES), number)
                if is_large:
                    terms.questions.assume(conjunction(number >= geometry.first_large, number < geometry.classes))
                terms.questions.assume(cama.class_at(cell).equals(number))
                self.name("cell", cell)
                return TableWord(cell, bits, is_large, is_vector, (start, other))
        return None

    def _found_word(self, address: Word, site: Site) -> TableWord | None:
        """The word of the tables of the set that is asked for and of a class whose bit was found, if it is that."""
        terms, own_set = self.rules.terms, self.rules.asked_set
        if own_set is None:
            return None
        compared = list(dict.fromkeys(word for one in site.conditions for word in terms.words_in(one) if word.parts))
        start = own_set.times(self.rules.geometry.line_bytes)
        for size in compared:
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
        premises = tuple(terms.bits_about([address, start, size], site.conditions))
        bits = terms.bits(size)
        is_large = negation(condition("bits less", bits, condition("bits constant", geometry.threshold)))
        plane = condition(
            "bits INT_ADD", geometry.bits_of_class(bits), condition("bits constant", geometry.vector_words)
        )
        own = condition("bits equal", terms.bits(address), geometry.bits_of_word(terms.bits(start), plane))
        return terms.questions.bits_hold(premises, conjunction(is_large, own))

    def _head_of_size(self, start: Word, size: Word, site: Site) -> TableWord:
        """The head of the set that starts at ``start`` and of the class of a large ``size``."""
        if self.rules.leaves_large:
            raise Astray(LEFT_TO_ANOTHER_PART)
        terms, threshold = self.rules.terms, self.rules.geometry.threshold
        premises = tuple(terms.bits_about([size], site.conditions))
        is_least = condition("bits equal", terms.bits(size), condition("bits constant", threshold))
        own = Word(threshold) if terms.questions.bits_hold(premises, is_least) else size
        if not terms.questions.holds(terms.value(own) >= threshold):
            raise Astray("a head of a large size that the integers do not know to be large")
        number = cama.class_of(self._divided(own, START_BYTES))
        cell = cama.cell(self._divided(start, START_BYTES), number)
        geometry = self.rules.geometry
        terms.questions.assume(conjunction(number >= geometry.first_large, number < geometry.classes))
        terms.questions.assume(cama.class_at(cell).equals(number))
        self.name("cell", cell)
        return TableWord(cell, geometry.bits_of_class(terms.bits(size)), True, False, (start, size))

    def _found_matching(
        self, address: Word, loaded: tuple[Word, SetWord], asked: tuple[Word, Word], site: Site
    ) -> TableWord | None:
        terms, geometry = self.rules.terms, self.rules.geometry
        (vector, of), (start, number) = loaded, asked
        premises = tuple(terms.bits_about([address, vector, start, number, of.address], site.conditions))
        bits, one, five = terms.bits(number), condition("bits constant", 1), condition("bits constant", 5)
        upper = condition("bits INT_RIGHT", bits, five)
        low = condition("bits INT_AND", bits, condition("bits constant", 31))
        bit = condition("bits INT_AND", condition("bits INT_RIGHT", terms.bits(vector), low), one)
        own = condition("bits equal", terms.bits(of.address), geometry.bits_of_word(terms.bits(start), upper))
        is_found = conjunction(own, condition("bits equal", bit, one))
        if not terms.questions.bits_hold(premises, is_found):
            return None
        plane = condition("bits INT_ADD", bits, condition("bits constant", geometry.vector_words))
        for is_vector, expected in ((False, plane), (True, upper)):
            equal = condition("bits equal", terms.bits(address), geometry.bits_of_word(terms.bits(start), expected))
            if terms.questions.bits_hold(premises, equal):
                return self._found_cell((vector, of), (start, number), premises, is_vector=is_vector)
        return None

    def _found_cell(
        self, loaded: tuple[Word, SetWord], asked: tuple[Word, Word], premises: tuple[Node, ...], *, is_vector: bool
    ) -> TableWord | None:
        """The cell that was found, of which the claims tell that its list is not empty."""
        terms, geometry = self.rules.terms, self.rules.geometry
        (_, of), (start, word) = loaded, asked
        below = condition("bits less", terms.bits(word), condition("bits constant", geometry.first_large))
        is_small = terms.questions.bits_hold(premises, below)
        if not is_small and not terms.questions.bits_hold(premises, negation(below)):
            return None
        if self.rules.leaves_found:
            raise Astray(LEFT_TO_ANOTHER_PART)
        cell = next((cell for cell, own in self.found.items() if own == word), None)
        if cell is None:
            # The bit belongs to one cell, of this set and a class that the bits alone know.
            number = terms.known(terms.fresh("found class"), 32 * geometry.vector_words - 1)
            cell = cama.cell(self._divided(start, START_BYTES), number)
            terms.questions.assume(cama.class_at(cell).equals(number))
            terms.questions.assume(number < geometry.first_large if is_small else number >= geometry.first_large)
            if of.version == 0:
                terms.questions.assume(self.rules.before.filled(cell))
            self.found[cell] = word
            self.name("cell", cell)
        if self.rules.leaves_large and not is_small:
            raise Astray(LEFT_TO_ANOTHER_PART)
        return TableWord(cell, terms.bits(word), not is_small, is_vector, (start, word))

    def _is_vector_of_set(self, address: Word, site: Site) -> bool:
        """Whether ``address`` is shown to be that of a word of bits of the set that is asked for."""
        terms, geometry, own_set = self.rules.terms, self.rules.geometry, self.rules.asked_set
        if own_set is None:
            return False
        start = own_set.times(geometry.line_bytes)
        premises = tuple(terms.bits_about([address, start], site.conditions))
        planes = (condition("bits constant", plane) for plane in range(geometry.vector_words))
        words = (geometry.bits_of_word(terms.bits(start), plane) for plane in planes)
        is_one = disjunction(*(condition("bits equal", terms.bits(address), word) for word in words))
        return terms.questions.bits_hold(premises, is_one)

    def _load_set_word(self, address: Word) -> Word:
        terms = self.rules.terms
        word = _word(terms.known(terms.fresh("vector")))
        terms.follow(word.parts[0][0])
        self.set_words[word] = SetWord(address, self.vectors)
        return word

    def _load_table(self, at: TableWord) -> Word:
        self._need_cleared()
        terms = self.rules.terms
        if at.is_vector:
            word = _word(terms.known(terms.fresh("vector")))
            terms.follow(word.parts[0][0])
            self.bit_words[word] = at.cell, self.vectors
            return word
        if at.is_large:
            first = self._read("first_large", at.cell, _MOST_PLACE)
            self.name("place", first)
            return _word(first).times(PLACE_BYTES)
        return self._link_to(self._read("first_small", at.cell, _MOST_START))

    def _link_to(self, first: Node) -> Word:
        """A link to the small block at ``first``: the address before it, or null."""
        terms = self.rules.terms
        self.name("start", first)
        link = terms.known(terms.fresh("link"))
        null = conjunction(first.equals(0), link.equals(0))
        terms.questions.assume(disjunction(null, conjunction(first >= 1, link.equals(START_BYTES * first - 4))))
        self.links[_word(link)] = first
        return _word(link)

    def _store_table(self, at: TableWord, value: Word, site: Site) -> None:
        self._need_cleared()
        if at.is_vector:
            self._store_vector(at, value, site)
        elif at.is_large:
            self.write("first_large", at.cell, self._place_of(value))
        else:
            self.write("first_small", at.cell, self._start_of(value))

    def _store_vector(self, at: TableWord, value: Word, site: Site) -> None:
        """A word of a vector becomes what was loaded of it, with one bit set or cleared."""
        terms = self.rules.terms
        low = condition("bits INT_AND", at.class_bits, condition("bits constant", 31))
        bit = condition("bits INT_LEFT", condition("bits constant", 1), low)
        premises = tuple(terms.bits_about([value, *at.computed_of], site.conditions))
        for word, (own, version) in self.bit_words.items():
            if own is not at.cell or version != self.vectors or word not in terms.leaves(value):
                continue
            for is_set in (True, False):
                operation, mask = ("INT_OR", bit) if is_set else ("INT_AND", condition("bits INT_NEGATE", bit))
                expected = condition(f"bits {operation}", terms.bits(word), mask)
                if terms.questions.bits_hold(premises, condition("bits equal", terms.bits(value), expected)):
                    self.write("filled", at.cell, TRUE if is_set else FALSE)
                    self.vectors += 1
                    return
        raise Astray("a vector's word that is not shown to be the former one with one bit changed")

    def _need_cleared(self) -> None:
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

    # ----------------------------------------------------------------------------------------------- functions, terms

    def name(self, kind: str, one: Node) -> None:
        """Assume the claims at ``one`` from here on."""
        if (kind, one) in self.named:
            return
        rules = self.rules
        for formula in definitions(rules.geometry, rules.before, kind, one):
            rules.terms.questions.assume(formula)
        if not rules.begins:
            for formula in instances(rules.claims, rules.before, self.named, kind, one, made=rules.made):
                rules.terms.questions.assume(formula)
        self.named = self.named.with_term(kind, one)

    def _base(self, name: str, argument: Node) -> Node:
        """What the function ``name`` was at entry; behind the clearing of tables, what that left."""
        if self.rules.begins and name in {"first_large", "first_small"}:
            return term(0)
        found: Node = getattr(self.rules.before, name)(argument)
        return found

    def _read(self, name: str, argument: Node, most: int) -> Node:
        """The function ``name`` at ``argument``, behind what was stored."""
        questions = self.rules.terms.questions
        open_stores: list[tuple[Node, Node]] = []
        found: Node | None = None
        for place, value in reversed(self.stored.get(name, ())):
            is_same = argument.equals(place)
            if is_same is TRUE or (is_same is not FALSE and questions.holds(is_same)):
                found = value
                break
            if is_same is not FALSE and not questions.holds(argument.differs(place)):
                open_stores.append((place, value))
        if found is None:
            found = self._base(name, argument)
            if found.operation != "int":
                self.rules.terms.known(found, most)
        for place, value in reversed(open_stores):
            found = choice(argument.equals(place), value, found)
        if found.operation in {"choice", "sum"}:
            whole = self.rules.terms.fresh(name)
            questions.assume(whole.equals(found))
            return self.rules.terms.known(whole, most)
        return found

    def write(self, name: str, argument: Node, value: Node) -> None:
        """Let the function ``name`` be ``value`` at ``argument`` from here on."""
        self.stored[name] = (*self.stored.get(name, ()), (argument, value))

    def _divided(self, word: Word, unit: int) -> Node:
        """``word`` divided by ``unit``, which divides it."""
        if word.alignment % unit:
            raise Astray(f"an address or word that is not shown to be a multiple of {unit}")
        value = self.rules.terms.value(word)
        if value.operation == "int":
            return term(value.arguments[0] // unit)
        if value.operation != "sum":
            return linear(0, [(value, 1)]) if unit == 1 else _raise_undivided()
        total, parts = value.arguments
        return linear(total // unit, [(node, factor // unit) for node, factor in parts])

    @staticmethod
    def _split(word: Word, unit: int) -> tuple[Word, Word]:
        """The parts of ``word`` that ``unit`` divides, and the rest."""
        high = tuple(part for part in word.parts if part[1] % unit == 0)
        low = tuple(part for part in word.parts if part[1] % unit)
        return Word(word.constant - word.constant % unit, high), Word(word.constant % unit, low)

    def divided(self, word: Word, unit: int) -> Node:
        """``word`` divided by ``unit``.

        Raises:
            Astray: it is not shown to divide it.
        """
        return self._divided(word, unit)

    def all_stored(self) -> Iterator[tuple[str, Node]]:
        """The functions and arguments of all stores."""
        for name, stores in self.stored.items():
            for argument, _ in stores:
                yield name, argument


def _raise_undivided() -> Node:
    raise Astray("a word that is no sum")


def _word(node: Node) -> Word:
    """An unknown or constant as a word."""
    if node.operation == "int":
        return Word(node.arguments[0])
    if node.operation == "sum":
        raise Astray("a sum in the place of an unknown")
    return Word(0, ((node, 1),))
