"""CAMA's memory as an operation sees it: words by what they are of, with what the operation stored.

A load or store is to a word of the stack, of static data, of a place, of a cell or vector of the tables, the word
before a start, or the first one of a block. Which one it is, is shown of its address; where that fails the way ends.

Words: obligation, claim, stack separation (docs/explanation/glossary.md).

*Soundness:* that words of different kinds are different words is claimed (`analyzer.deduction.cama_claims`). Each
access has obligations: that its word is live, so that what is loaded is what the claims speak of, and that it lies in
the reserved sets of the arena, or is the operation's own block. The stack is apart from all (assumption
``stack-separation``).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from wcet_probe.analyzer.deduction import cama_views as cama
from wcet_probe.analyzer.deduction.cama_geometry import PLACE_BYTES, START_BYTES
from wcet_probe.analyzer.deduction.cama_stores import word_of
from wcet_probe.analyzer.deduction.cama_tables import Tables, TableWord
from wcet_probe.analyzer.deduction.cama_views import View
from wcet_probe.analyzer.deduction.execution import Astray, Site, refuse_callers_frame, stack_offset
from wcet_probe.analyzer.deduction.formulas import FALSE, Node, conjunction, disjunction, term
from wcet_probe.analyzer.deduction.obligations import (
    IN_THE_RESERVED_SETS,
    OF_THE_OWN_BLOCK,
    STORED_BEFORE_LOADED,
    Reached,
)
from wcet_probe.analyzer.deduction.words import SPAN, Word
from wcet_probe.analyzer.domains.congruences import Congruence

AT_STOP = "followed up to where another part begins"
_FIELDS = {0: "left", 4: "right", 8: "prev", 12: "next", 16: "start", 20: "size"}
_LINKS = frozenset({"left", "right", "prev", "next"})
_SCALARS = {0: "arena", 4: "end", 8: "top", 12: "spare", 16: "fresh", 20: "available", 24: "newest", 28: "oldest"}
_NEWEST = 24
_UNITS = {"arena": 8, "end": 8, "top": 8, "spare": 32, "fresh": 32, "available": 1, "newest": 32, "oldest": 32}
_MOST_PLACE, _MOST_START = SPAN // PLACE_BYTES - 1, SPAN // START_BYTES - 1


@dataclass(slots=True)
class CamaMemory(Tables):
    """The memory at one point of a way.

    Attributes:
        stack_pointer: at entry.
        static: words of static data apart from the tables.
        stack: words of the stack, by their distance from the stack pointer at entry.
        starts: known starts, as words.
        aliases: words that are shown to be the address of a place.
        links: words that are shown to be the address before a start, or null.
        touched: starts of blocks whose words were accessed, and an instruction that did it.
    """

    stack_pointer: Word = field(kw_only=True)
    static: dict[int, Word] = field(default_factory=dict)
    stack: dict[int, Word] = field(default_factory=dict)
    starts: dict[Word, Node] = field(default_factory=dict)
    aliases: dict[Word, Node] = field(default_factory=dict)
    links: dict[Word, Node] = field(default_factory=dict)
    touched: dict[Node, int] = field(default_factory=dict)

    def copy(self) -> CamaMemory:
        """The same, to be changed apart."""
        return replace(
            self,
            stored=dict(self.stored),
            cleared=set(self.cleared) if self.rules.begins else self.cleared,
            headers=dict(self.headers),
            cells=dict(self.cells),
            bit_words=dict(self.bit_words),
            set_words=dict(self.set_words),
            found=dict(self.found),
            static=dict(self.static),
            stack=dict(self.stack),
            starts=dict(self.starts),
            aliases=dict(self.aliases),
            links=dict(self.links),
            touched=dict(self.touched),
        )

    # ------------------------------------------------------------------------------------------------------ accesses

    def load(self, address: Word, site: Site) -> Word:
        """The word at ``address``.

        Raises:
            Astray: it is not shown which word it is.
        """
        if not address.parts:
            return self._load_static(address.constant, site)
        offset = stack_offset(address, self.stack_pointer)
        if offset is not None:
            self.reach(Reached.STACK, site)
            if offset not in self.stack:
                raise Astray("a load of a word of the stack that was not stored")
            return self.stack[offset]
        own = self.start_at(address)
        if own is not None:
            return self._load_of_block(*own, site)
        found = self.table_word(address, site)
        if found is not None:
            self.reach(Reached.TABLES, site)
            return self._load_table(found)
        if self.is_vector_of_set(address, site):
            self.reach(Reached.TABLES, site)
            return self.load_set_word(address)
        return self._load_field(*self._field(address), site)

    def store(self, address: Word, value: Word, site: Site) -> None:
        """Store ``value`` at ``address``.

        Raises:
            Astray: it is not shown which word it is, or the value is none that such a word may have.
        """
        if not address.parts:
            self._store_static(address.constant, value, site)
            return
        offset = stack_offset(address, self.stack_pointer)
        if offset is not None:
            refuse_callers_frame(offset, value)
            self.reach(Reached.STACK, site)
            self.stack[offset] = value
            return
        own = self.start_at(address)
        if own is not None:
            self._store_of_block(*own, value, site)
            return
        found = self.table_word(address, site)
        if found is not None:
            self.reach(Reached.TABLES, site)
            self._store_table(found, value, site)
            return
        self._store_field(*self._field(address), value, site)

    # ------------------------------------------------------------------------------------------------- static data

    def _load_static(self, address: int, site: Site) -> Word:
        offset = address - self.rules.geometry.control
        if offset in range(32, 64):
            return self._load_field(term(self.rules.geometry.sentinel), offset - 32, site)
        self.reach(Reached.CONTROL, site, Congruence(PLACE_BYTES, address % PLACE_BYTES))
        if address not in self.static:
            raise Astray("a load of static data of which nothing is claimed")
        if self.rules.stops_at and _SCALARS.get(offset) == self.rules.stops_at:
            raise Astray("where another part begins, though a list was found" if self.found else AT_STOP)
        return self.static[address]

    def _store_static(self, address: int, value: Word, site: Site) -> None:
        geometry = self.rules.geometry
        offset = address - geometry.control
        if offset in range(32, 64):
            self._store_field(term(geometry.sentinel), offset - 32, value, site)
        elif offset in _SCALARS:
            self.reach(Reached.CONTROL, site, Congruence(PLACE_BYTES, address % PLACE_BYTES))
            self.static[address] = value
        elif self.rules.begins and value == Word(0) and geometry.is_of_tables(address) and not self.has_stored_tables:
            self.reach(Reached.TABLES, site)
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
        return self._place_of(word) if _UNITS[name] == PLACE_BYTES else self.divided(word, _UNITS[name])

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
        return self.divided(address.plus(Word(offset), -1), PLACE_BYTES), offset

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
        what = Reached.DESCRIPTOR if self._is_behind_first(place) else Reached.AREA
        self.reach(what, site, Congruence(PLACE_BYTES, offset))
        return _FIELDS[offset]

    def _is_behind_first(self, place: Node) -> bool:
        """Whether ``place`` is shown not to begin a cache page; of an area's begin, which may, it is not asked."""
        newest = self.static.get(self.rules.geometry.control + _NEWEST)
        if place is self.rules.before.newest or (newest is not None and place is self._place_of(newest)):
            return False
        return self.rules.terms.questions.holds(place >= self.rules.geometry.page_places * cama.page(place) + 1)

    def _load_field(self, place: Node, offset: int, site: Site) -> Word:
        name = self._is_place(place, offset, site)
        self.oblige(STORED_BEFORE_LOADED, site, self._is_stored(name, place))
        if name in _LINKS:
            link = self.read(name, place, _MOST_PLACE)
            self.name("place", link)
            return Word(0).plus(word_of(link), PLACE_BYTES)
        if name == "start":
            return word_of(self.read(name, place, _MOST_START)).times(START_BYTES)
        size = self.read("size", place, _MOST_START)
        return word_of(size).times(START_BYTES).plus(word_of(self.read("free", place, 1)))

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
            self.write(name, place, self.divided(value, START_BYTES))
        else:
            size, low = self.split(value, START_BYTES)
            self.write("size", place, self.divided(size, START_BYTES))
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
        return self.divided(value, PLACE_BYTES) if alias is None else alias

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
        self.reach(Reached.BLOCK, site, _aligned(is_header=is_header))
        self.touched.setdefault(start, site.instruction_address)
        if not is_header:
            self.oblige(STORED_BEFORE_LOADED, site, cama.is_filed(view, start))
            return self._link_to(self.read("link", start, _MOST_START))
        self.oblige(STORED_BEFORE_LOADED, site, cama.is_live_header(view, start))
        parts = (
            self.read("tag_class", start, SPAN // 4 - 1),
            self.read("tag_free", start, 1),
            self.read("tag_low", start, 1),
        )
        content = word_of(parts[0]).times(4).plus(word_of(parts[1]).times(2)).plus(word_of(parts[2]))
        self.headers[content] = start, parts[0]
        return content

    def _store_of_block(self, start: Node, is_header: bool, value: Word, site: Site) -> None:  # noqa: FBT001
        self.reach(Reached.BLOCK, site, _aligned(is_header=is_header))
        self.touched.setdefault(start, site.instruction_address)
        if not self.rules.makes_block:
            self.oblige(OF_THE_OWN_BLOCK, site, cama.is_live_header(self.rules.before, start))
        if is_header:
            high, low = self.split(value, 4)
            upper, lowest = self.split(low, 2)
            self.write("tag_class", start, self.divided(high, 4))
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

    def _load_table(self, at: TableWord) -> Word:
        self.need_cleared()
        if at.is_vector:
            return self.load_vector(at)
        if at.is_large:
            first = self.read("first_large", at.cell, _MOST_PLACE)
            self.name("place", first)
            return word_of(first).times(PLACE_BYTES)
        return self._link_to(self.read("first_small", at.cell, _MOST_START))

    def _link_to(self, first: Node) -> Word:
        """A link to the small block at ``first``: the address before it, or null."""
        terms = self.rules.terms
        self.name("start", first)
        link = terms.known(terms.fresh("link"))
        null = conjunction(first.equals(0), link.equals(0))
        terms.questions.assume(disjunction(null, conjunction(first >= 1, link.equals(START_BYTES * first - 4))))
        self.links[word_of(link)] = first
        return word_of(link)

    def _store_table(self, at: TableWord, value: Word, site: Site) -> None:
        self.need_cleared()
        if at.is_vector:
            self.store_vector(at, value, site)
        elif at.is_large:
            self.write("first_large", at.cell, self._place_of(value))
        else:
            self.write("first_small", at.cell, self._start_of(value))


def _aligned(*, is_header: bool) -> Congruence:
    """The class of the address of a block's start, or of the word before it."""
    return Congruence(START_BYTES, START_BYTES - 4 if is_header else 0)
