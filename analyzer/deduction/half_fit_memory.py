"""Half-fit's memory as an operation sees it: two functions of all units, the bitmap, and what the operation stored.

A load is of a word that was stored on the way, or of one that the claims at entry tell of: a link of a node, the tag of
a block or of a fence. Which list an address is the head of, is told of the leading zeros that it is computed of.

Words: obligation, claim, stack separation (docs/explanation/glossary.md).

*Soundness:* a load gives the last value that was stored at a unit shown to be equal, and for each later store of which
nothing is shown either that value or this one; what was not stored is what the claims say of the memory at entry. A
store is to one word, whichever it is, but the bitmap, which is told by its constant address: of each other address it
is shown that it is none of the bitmap. Each access is obliged to be to the arena or the control structure, so that none
is to the stack (assumption ``stack-separation``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from wcet_probe.analyzer.deduction import half_fit_claims as claims
from wcet_probe.analyzer.deduction.claims import Claim, Named, instances
from wcet_probe.analyzer.deduction.execution import Astray, Site, refuse_callers_frame, stack_offset
from wcet_probe.analyzer.deduction.formulas import (
    Node,
    choice,
    condition,
    conjunction,
    disjunction,
    implies,
    linear,
    negation,
    term,
)
from wcet_probe.analyzer.deduction.half_fit_claims import CLASSES, MOST_SIZE, UNIT, HalfFitGeometry, HalfFitView
from wcet_probe.analyzer.deduction.obligations import IN_ITS_MEMORY
from wcet_probe.analyzer.deduction.word_terms import WordTerms
from wcet_probe.analyzer.deduction.words import Word
from wcet_probe.analyzer.domains.congruences import Congruence

_ODD = 4
_TOP_OF_ZEROS = 31


@dataclass(frozen=True, slots=True)
class Rules:
    """What is the same for all of an operation.

    Attributes:
        claims: that are assumed at entry.
        before: the view at entry.
        begins: whether it makes the heap, so that claims are not assumed.
        oblige: is told of each obligation: what it is, where, and whether it was shown.
        bitmap: the word that the bitmap is at entry.
        made: claims of ``before`` at terms, which are asked for again and again.
        aligned: of each instruction that accesses data, the classes that its addresses were shown to be in.
    """

    geometry: HalfFitGeometry
    terms: WordTerms
    claims: tuple[Claim, ...]
    before: HalfFitView
    begins: bool
    oblige: Callable[[str, int, bool], None]
    bitmap: Word
    made: dict[tuple[Any, ...], Node] = field(default_factory=dict)
    aligned: dict[int, set[Congruence]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Stored:
    """A word that was stored at ``unit``, the odd one of it or the even one."""

    unit: Node
    is_odd: bool
    value: Word


@dataclass(slots=True)
class HalfFitMemory:
    """The memory at one point of a way.

    Attributes:
        stack_pointer: at entry.
        bitmap: the word that the bitmap is.
        stores: in their order.
        stack: words of the stack, by their distance from the stack pointer at entry.
        named: the units that the claims are assumed at.
        zeros: unknowns that count leading zeros and were looked at.
        told: those of them that are told of a size.
        found: classes whose bit was shown to be set at entry.
    """

    rules: Rules
    stack_pointer: Word
    bitmap: Word
    stores: tuple[Stored, ...] = ()
    stack: dict[int, Word] = field(default_factory=dict)
    named: Named = field(default_factory=lambda: Named({}))
    zeros: tuple[Node, ...] = ()
    told: tuple[Node, ...] = ()
    found: tuple[Node, ...] = ()

    def copy(self) -> HalfFitMemory:
        """The same, to be changed apart."""
        return replace(self, stack=dict(self.stack))

    # ------------------------------------------------------------------------------------------------------ accesses

    def load(self, address: Word, site: Site) -> Word:
        """The word at ``address``.

        Raises:
            Astray: nothing is known of it.
        """
        offset = stack_offset(address, self.stack_pointer)
        if offset is not None:
            self._reach(address, site)
            if offset not in self.stack:
                raise Astray("a load of a word of the stack that was not stored")
            return self.stack[offset]
        if address == Word(self.rules.geometry.bitmap):
            self._reach(address, site)
            return self.bitmap
        unit, is_odd = self._word_at(address, site)
        return self._read(unit, is_odd=is_odd)

    def store(self, address: Word, value: Word, site: Site) -> None:
        """Store ``value`` at ``address``.

        Raises:
            Astray: it is not shown which word it is.
        """
        offset = stack_offset(address, self.stack_pointer)
        if offset is not None:
            refuse_callers_frame(offset, value)
            self._reach(address, site)
            self.stack[offset] = value
            return
        if address == Word(self.rules.geometry.bitmap):
            self._reach(address, site)
            self.bitmap = value
            return
        unit, is_odd = self._word_at(address, site)
        self.stores = (*self.stores, Stored(unit, is_odd, value))

    def _reach(self, address: Word, site: Site) -> None:
        unit = min(UNIT, Word(0, address.parts).alignment)
        self.rules.aligned.setdefault(site.instruction_address, set()).add(Congruence(unit, address.constant % unit))

    def _word_at(self, address: Word, site: Site) -> tuple[Node, bool]:
        """The unit of the word at ``address``, and whether it is its odd one."""
        low = address.constant % UNIT
        if low not in {0, _ODD}:
            raise Astray("an access across words")
        for node, _ in address.parts:
            self.tell_zeros(node, site)
        unit = divided(self.rules.terms, address.plus(Word(low), -1))
        self._reach(address, site)
        self.name(unit)
        rules, g = self.rules, self.rules.geometry
        inside = disjunction(claims.is_of_control(g, unit, is_odd=low == _ODD), claims.is_of_arena(rules.before, unit))
        rules.oblige(IN_ITS_MEMORY, site.instruction_address, rules.terms.questions.holds(inside))
        if low == 0 and not rules.terms.questions.holds(unit.differs(g.bitmap // UNIT)):
            raise Astray("an access that may be to the bitmap")
        return unit, low == _ODD

    # -------------------------------------------------------------------------------------------------------- words

    def _read(self, unit: Node, *, is_odd: bool) -> Word:
        questions = self.rules.terms.questions
        open_stores: list[Stored] = []
        found: Word | None = None
        for one in reversed(self.stores):
            is_same = unit.equals(one.unit)
            if one.is_odd != is_odd or questions.holds(unit.differs(one.unit)):
                continue
            if questions.holds(is_same):
                found = one.value
                break
            open_stores.append(one)
        if (
            found is None
            and open_stores
            and questions.holds(disjunction(*(unit.equals(one.unit) for one in open_stores)))
        ):
            found = open_stores.pop().value
        if found is None:
            found = self._at_entry(unit, is_odd=is_odd)
        if not open_stores:
            return found
        whole = divided(self.rules.terms, found)
        for one in reversed(open_stores):
            whole = choice(unit.equals(one.unit), divided(self.rules.terms, one.value), whole)
        own = self.rules.terms.known(self.rules.terms.fresh("link"), claims.MOST_UNIT)
        questions.assume(own.equals(whole))
        self.name(own)
        return Word(0, ((own, UNIT),))

    def _at_entry(self, unit: Node, *, is_odd: bool) -> Word:
        """What the claims say of a word at entry."""
        rules, view = self.rules, self.rules.before
        questions = rules.terms.questions
        if rules.begins:
            raise Astray("a load of a word that was not stored")
        if questions.holds(claims.is_node(rules.geometry, view, unit)):
            link = rules.terms.known((view.back if is_odd else view.link)(unit), claims.MOST_UNIT)
            self.name(link)
            return Word(0, ((link, UNIT),))
        block = unit + 1
        self.name(block)
        if is_odd and questions.holds(disjunction(view.block(block), block.equals(view.upper))):
            return self._tag(block)
        if not is_odd and questions.holds(view.block(block)):
            before = view.before(block)
            self.name(before)
            return self._tag(before)
        raise Astray("a load of a word of which nothing is claimed")

    def _tag(self, block: Node) -> Word:
        terms, view = self.rules.terms, self.rules.before
        size, free = terms.known(view.size(block), MOST_SIZE), terms.known(view.free(block), 1)
        return Word(0, ((size, UNIT), (free, 1)))

    def name(self, unit: Node) -> None:
        """Assume the claims at ``unit`` from here on."""
        if ("unit", unit) in self.named:
            return
        rules = self.rules
        if not rules.begins:
            for formula in claims.definitions(rules.before, unit):
                rules.terms.questions.assume(formula)
            for formula in instances(rules.claims, rules.before, self.named, "unit", unit, made=rules.made):
                rules.terms.questions.assume(formula)
        self.named = self.named.with_term("unit", unit)

    # ------------------------------------------------------------------------------------------------------ classes

    def tell_zeros(self, node: Node, site: Site) -> None:
        """Let the integers know what ``node`` is, if it counts leading zeros of a size, or of bits that were found.

        *Soundness:* the class of a size is defined as what is told here; a bit that the bits show to be set at entry is
        one of ``filled`` at entry.
        """
        terms = self.rules.terms
        word = zeros_of(terms, node)
        if word is None or node in self.zeros:
            return
        terms.tell(node)
        if terms.is_integer(word):
            self._tell_size(node, word)
            self.told = (*self.told, node)
        else:
            self._tell_found(node, site)
        self.zeros = (*self.zeros, node)

    def _tell_size(self, node: Node, word: Word) -> None:
        terms, top = self.rules.terms, term(_TOP_OF_ZEROS) - node
        value = terms.value(word)
        terms.questions.assume(implies(value >= 1, value < claims.power(top + 1)))
        if word.alignment % UNIT == 0:
            size = divided(terms, word) + 1
            terms.questions.assume(claims.class_defined(size))
            terms.questions.assume(implies(size >= 2, top.equals(claims.class_of(size))))

    def _tell_found(self, node: Node, site: Site) -> None:
        """A class whose bit is set at entry, by the bits; and which other powers its own is not below."""
        terms, view = self.rules.terms, self.rules.before
        own, bitmap = Word(0, ((node, 1),)), self.rules.bitmap
        premises = terms.bits_about([own, bitmap], site.conditions).with_formulas([is_bitmap(terms, bitmap)])
        for number in (own, Word(_TOP_OF_ZEROS, ((node, -1),))):
            below = _bits_less(terms.bits(number), _bits_of(CLASSES))
            bit = condition("bits INT_RIGHT", terms.bits(bitmap), terms.bits(number))
            is_set = condition("bits equal", condition("bits INT_AND", bit, _bits_of(1)), _bits_of(1))
            if terms.bits_follow(premises, conjunction(below, is_set)):
                found = linear(number.constant, number.parts)
                terms.questions.assume(conjunction(found >= 0, found < CLASSES, view.filled(found)))
                self.found = (*self.found, found)
                self._tell_order(number, found, site)
                return

    def _tell_order(self, number: Word, found: Node, site: Site) -> None:
        terms, bitmap = self.rules.terms, self.rules.bitmap
        for other in zeros_in(terms, [number]):
            word = zeros_of(terms, other)
            if word is None or not terms.is_integer(word):
                continue
            self.tell_zeros(other, site)
            least = Word(_TOP_OF_ZEROS + 1, ((other, -1),))
            premises = terms.bits_about([number, bitmap, least], site.conditions)
            premises = premises.with_formulas([is_bitmap(terms, bitmap)])
            if terms.bits_follow(premises, negation(_bits_less(terms.bits(number), terms.bits(least)))):
                bound = linear(least.constant, least.parts)
                terms.questions.assume(conjunction(found >= bound, claims.power(found) >= claims.power(bound)))


def zeros_of(terms: WordTerms, node: Node) -> Word | None:
    """The word whose leading zeros ``node`` counts, if it is an unknown that does."""
    definition = terms.definition(node)
    return definition[1][0] if definition is not None and definition[0] == "LZCOUNT" else None


def zeros_in(terms: WordTerms, words: Iterable[Word]) -> tuple[Node, ...]:
    """The unknowns that count leading zeros, of all that ``words`` are computed of."""
    todo, seen = [node for word in words for node, _ in word.parts], dict[Node, None]()
    while todo:
        node = todo.pop()
        definition = terms.definition(node)
        if node not in seen and definition is not None:
            seen[node] = None
            todo.extend(one for word in definition[1] for one, _ in word.parts)
    return tuple(node for node in seen if zeros_of(terms, node) is not None)


def is_bitmap(terms: WordTerms, word: Word) -> Node:
    """Over bits, that ``word`` has no bits but of classes."""
    return _bits_less(terms.bits(word), _bits_of(1 << CLASSES))


def changed_bits(terms: WordTerms, word: Word, cleared: Iterable[Word], filled: Iterable[Word]) -> Node:
    """``word`` over bits, where those of ``cleared`` are made 0 and then those of ``filled`` 1; both are classes."""
    bits = terms.bits(word)
    for number in cleared:
        bits = condition("bits INT_AND", bits, condition("bits INT_NEGATE", _bit(terms, number)))
    for number in filled:
        bits = condition("bits INT_OR", bits, _bit(terms, number))
    return bits


def is_class(terms: WordTerms, number: Word) -> Node:
    """Over bits, that ``number`` is a class."""
    return _bits_less(terms.bits(number), _bits_of(CLASSES))


def divided(terms: WordTerms, word: Word) -> Node:
    """``word`` in units.

    Raises:
        Astray: it is not shown to be a multiple of one.
    """
    if word.alignment % UNIT:
        raise Astray(f"an address or word that is not shown to be a multiple of {UNIT}")
    value = terms.value(word)
    if value.operation == "int":
        return term(value.arguments[0] // UNIT)
    total, parts = value.arguments
    return linear(total // UNIT, [(node, factor // UNIT) for node, factor in parts])


def _bit(terms: WordTerms, number: Word) -> Node:
    return condition("bits INT_LEFT", _bits_of(1), terms.bits(number))


def _bits_of(number: int) -> Node:
    return condition("bits constant", number)


def _bits_less(one: Node, other: Node) -> Node:
    return condition("bits less", one, other)
