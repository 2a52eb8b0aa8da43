"""An abstract state: what each register, stack slot and static word holds, as terms, and what is known of the terms.

A state stands for all concrete states for which some assignment of numbers to the symbols agrees with every location's
term and lies within every known value. A symbol is the value of its definition's latest execution; when it is defined
anew, what still speaks of the older one is renamed.

Words: abstract state, symbolic variable, killed binding, stack separation (docs/explanation/glossary.md).

*Soundness:* pointers are numbers, offsets from the stack pointer at entry (``Base.STACK``), or may be either
(``Base.ANY``). A store through a number does not hit the stack of the call: that is assumption ``stack-separation``.
Locations that are not in the state hold anything, registers that were never written their value at entry.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import lru_cache

from wcet_probe.analyzer.domains import strided
from wcet_probe.analyzer.domains.strided import StridedInterval
from wcet_probe.analyzer.pcode.truths import BIT_COUNTS, RELATIONS, TRUTHS
from wcet_probe.analyzer.values.states.address_low_bits import SMALLEST_ADDRESS, has_low_part, is_low_part
from wcet_probe.analyzer.values.states.bases import Base, is_computable
from wcet_probe.analyzer.values.symbolic.locations import Location
from wcet_probe.analyzer.values.symbolic.masks import least_by_bits
from wcet_probe.analyzer.values.symbolic.term_table import SymbolName, Term
from wcet_probe.analyzer.values.symbolic.terms import Terms

_NARROW = frozenset({"INT_AND", "INT_ZEXT", "INT_RIGHT"})
"""Operations whose results are a few values, of whatever they are."""
_REGISTERS = frozenset({"register", "unique"})
_MOST_REMEMBERED = 1 << 16
_MOST_EVALUATED = 64

# The same few questions are asked at each point of a function.
_apply = lru_cache(_MOST_REMEMBERED)(strided.apply)
_meet = lru_cache(_MOST_REMEMBERED)(strided.meet)
_constrain = lru_cache(_MOST_REMEMBERED)(strided.constrain)


class State:
    """An abstract state over ``terms``. It changes by its own methods only, and not at all once it is frozen.

    Who makes a state changes it and freezes it when it is handed on; who works on with a frozen one copies it. Copies
    share what they hold until one of them changes (copy on write). What was evaluated is forgotten by the state that
    it is no longer true of.
    """

    __slots__ = (
        "_base_cache", "_bases", "_cache", "_is_frozen", "_known", "_knows_own", "_locations", "_locations_own",
        "_part_bases", "big_endian", "terms",
    )  # fmt: skip

    def __init__(self, terms: Terms, *, big_endian: bool) -> None:
        self.terms = terms
        self.big_endian = big_endian
        self._locations: dict[Location, Term] = {}
        self._known: dict[Term, StridedInterval] = {}
        self._bases: dict[Term, Base] = {}
        self._cache: dict[Term, StridedInterval] = {}
        self._base_cache: dict[Term, Base] = {}
        self._part_bases: dict[Term, Base] = {}
        self._locations_own = self._knows_own = True
        self._is_frozen = False

    @property
    def locations(self) -> Mapping[Location, Term]:
        """What locations hold."""
        return self._locations

    @property
    def known(self) -> Mapping[Term, StridedInterval]:
        """What is known of terms beside what follows from their operands."""
        return self._known

    @property
    def bases(self) -> Mapping[Term, Base]:
        """The symbols that are not numbers."""
        return self._bases

    def __eq__(self, other: object) -> bool:
        """Whether both say the same in the same terms."""
        if not isinstance(other, State):
            return NotImplemented
        return self is other or (
            self._locations == other._locations and self._known == other._known and self._bases == other._bases
        )

    __hash__ = None  # type: ignore[assignment]

    def copy(self) -> State:
        """An independent state with the same content, which is not frozen."""
        other = State(self.terms, big_endian=self.big_endian)
        other._locations, other._known, other._bases = self._locations, self._known, self._bases
        other._cache, other._base_cache, other._part_bases = self._cache, self._base_cache, self._part_bases
        self._locations_own = self._knows_own = other._locations_own = other._knows_own = other._is_frozen = False
        return other

    def freeze(self) -> State:
        """This state, which changes no more."""
        self._is_frozen, self._locations_own, self._knows_own = True, False, False
        return self

    def _make_locations_own(self) -> None:
        if not self._locations_own:
            self._require_thawed()
            self._locations = self._locations.copy()
            self._locations_own = True

    def _make_knowledge_own(self) -> None:
        """What is known and what was evaluated from it, which no location takes part in."""
        if not self._knows_own:
            self._require_thawed()
            self._known, self._bases, self._part_bases = self._known.copy(), self._bases.copy(), self._part_bases.copy()
            self._cache, self._base_cache = self._cache.copy(), self._base_cache.copy()
            self._knows_own = True

    def _require_thawed(self) -> None:
        if self._is_frozen:
            raise TypeError("a frozen state was about to change: copy it first.")

    def set_location(self, location: Location, term: Term) -> None:
        """``location`` holds ``term``; nothing that is held overlaps it in part."""
        if not self._locations_own:
            self._make_locations_own()
        self.terms.overlaps.add(location)
        self._locations[location] = term

    def differing_locations(self, others: Iterable[State]) -> set[Location]:
        """The locations that not all ``others`` hold, or not, as this state does."""
        found: set[Location] = set()
        for other in others:
            if other._locations is not self._locations:  # noqa: SLF001
                found.update([at for at, _ in self._locations.items() ^ other._locations.items()])  # noqa: SLF001
        return found

    def differing_known(self, others: Iterable[State]) -> set[Term]:
        """The terms of which not all ``others`` know what this state does."""
        found: set[Term] = set()
        for other in others:
            if other._known is not self._known:  # noqa: SLF001
                found.update([term for term, _ in self._known.items() ^ other._known.items()])  # noqa: SLF001
        return found

    def differing_bases(self, others: Iterable[State]) -> set[Term]:
        """The symbols that not all ``others`` measure from what this state does."""
        found: set[Term] = set()
        for other in others:
            if other._bases is not self._bases:  # noqa: SLF001
                found.update([symbol for symbol, _ in self._bases.items() ^ other._bases.items()])  # noqa: SLF001
        return found

    def holding(self, terms: AbstractSet[Term]) -> list[Location]:
        """The locations that hold one of ``terms``."""
        if not terms or terms.isdisjoint(self._locations.values()):
            return []
        return [at for at, term in self._locations.items() if term in terms]

    def keep_live(self, live: AbstractSet[Term]) -> None:
        """Nothing is known any more of terms that are made of other symbols than ``live``."""
        symbols = self.terms.symbols
        dead = [term for term in self._known if not symbols(term) <= live]
        unbased = self._bases.keys() - live
        if len(self._cache) > _MOST_EVALUATED + 4 * (len(self._locations) + len(self._known)):
            self._make_knowledge_own()  # most of it is of terms that nothing is made of any more
            self._cache, self._base_cache, self._part_bases = {}, {}, {}
        if dead or unbased:
            self._make_knowledge_own()
            for term in dead:
                del self._known[term]
            for symbol in unbased:
                del self._bases[symbol]
            self._cache = {term: value for term, value in self._cache.items() if symbols(term) <= live}
            self._base_cache = {term: base for term, base in self._base_cache.items() if symbols(term) <= live}
            self._part_bases = {}

    def keep_known_numbers(self, others: AbstractSet[Term]) -> None:
        """Nothing is known any more of what may be of any base, but for ``others``."""
        if self._bases:
            special, symbols = self._bases.keys(), self.terms.symbols
            for term in [one for one in self._known if not special.isdisjoint(symbols(one))]:
                if term not in others and self.base(term) is Base.ANY:
                    self.set_known(term, None)

    def set_known(self, term: Term, value: StridedInterval | None) -> None:
        """``term`` is among ``value``; None where nothing is known of it."""
        if value is not None and self._tells_nothing(term, value):
            value = None
        if self._known.get(term) == value:
            return
        if not self._knows_own:
            self._make_knowledge_own()
        if value is None:
            del self._known[term]
        else:
            self._known[term] = value
        self._forget_values(term)

    def _tells_nothing(self, term: Term, value: StridedInterval) -> bool:
        """Whether ``value`` follows from what operation ``term`` is, whatever its operands are."""
        if value.is_top:
            return True
        node = self.terms.node(term)
        if node.opcode in TRUTHS:
            return 0 in value and 1 in value
        if node.opcode not in _NARROW or not self._bases.keys().isdisjoint(self.terms.symbols(term)):
            return False
        return strided.leq(_apply(node.opcode, tuple(map(self._widest, self.terms.operands(term))), node.bits), value)

    def _widest(self, term: Term) -> StridedInterval:
        """What a term may be of whose symbols nothing is known."""
        constant, bits = self.terms.value(term), self.terms[term].bits
        return strided.top(bits) if constant is None else strided.constant(bits, constant)

    def set_base(self, symbol: Term, base: Base) -> None:
        """``symbol`` is measured from ``base``."""
        if self._bases.get(symbol, Base.NUMBER) is base:
            return
        self._make_knowledge_own()
        if base is Base.NUMBER:
            del self._bases[symbol]
        else:
            self._bases[symbol] = base
        self._forget_values(symbol)
        for stale in self._base_cache.keys() & self.terms.made_of(symbol):
            del self._base_cache[stale]

    def _forget_values(self, term: Term) -> None:
        """What was evaluated of terms that ``term`` may be a part of is forgotten: a whole has a greater number."""
        if self._part_bases:
            self._part_bases.clear()
        cache, symbols = self._cache, self.terms.symbols
        if not cache:
            return
        part = symbols(term)
        for whole in self._evaluated(cache, term):
            if whole >= term and part <= symbols(whole):
                del cache[whole]

    def _evaluated(self, cache: Mapping[Term, object], term: Term) -> Collection[Term]:
        """The terms of ``cache`` that ``term`` may be a part of."""
        wholes = self.terms.wholes(term)
        return list(cache) if wholes is None else cache.keys() & wholes

    # ---------------------------------------------------------------------------------------------------- locations

    def read(self, location: Location) -> Term | None:
        """The term of ``location``; None where it is not known, which a register never is."""
        term = self._locations.get(location)
        if term is not None:
            return term
        for held in self.overlapping(location):
            inside = held.offset <= location.offset and (
                location.offset + location.size_bytes <= held.offset + held.size_bytes
            )
            return (
                self._part(self._locations[held], held, location) if inside and location.space in _REGISTERS else None
            )
        if location.space == "register":
            return self.terms.symbol(("in", location), 8 * location.size_bytes)
        return None

    def part(self, location: Location) -> Term | None:
        """A part of a location that is known as a whole; None where there is none around ``location``."""
        for held in self.overlapping(location):
            if (
                held.offset <= location.offset
                and location.offset + location.size_bytes <= held.offset + held.size_bytes
            ):
                return self._part(self._locations[held], held, location)
        return None

    def _part(self, content: Term, held: Location, wanted: Location) -> Term | None:
        before = wanted.offset - held.offset
        behind = held.size_bytes - wanted.size_bytes - before
        skipped = self.terms.constant(behind if self.big_endian else before, 32)
        return self.terms.apply("SUBPIECE", (content, skipped), 8 * wanted.size_bytes)

    def write(self, location: Location, term: Term) -> None:
        """``location`` holds ``term``; what overlaps it is forgotten.

        A register that is written in part is one whose content is not known, and no two registers in one.
        """
        sharing = self.terms.overlaps.add(location)
        overlapping = () if len(sharing) == 1 or location in self._locations else self.overlapping(location)
        if not overlapping:
            if not self._locations_own:
                self._make_locations_own()
            self._locations[location] = term
            return
        wider = next((held for held in overlapping if held.size_bytes > location.size_bytes), None)
        if wider is not None and location.space == "register":
            self.set_location(wider, self.define(("part", wider), 8 * wider.size_bytes, base=Base.ANY))
            return
        self.forget(overlapping)
        self.set_location(location, term)

    def overlapping(self, location: Location) -> list[Location]:
        """The held locations that share a byte with ``location``."""
        held = self._locations
        return [one for one in self.terms.overlaps.add(location) if one in held]

    def forget(self, locations: Sequence[Location]) -> None:
        """Nothing is known of ``locations`` any more."""
        if locations:
            self._make_locations_own()
        for location in locations:
            del self._locations[location]

    def forget_range(self, space: str, low: int, high: int) -> None:
        """A store may have changed bytes ``low`` to ``high`` of ``space``."""
        self.forget(
            [
                held
                for held in self._locations
                if held.space == space and held.offset <= high and low < held.offset + held.size_bytes
            ]
        )

    # ------------------------------------------------------------------------------------------------------- symbols

    def define(
        self, name: SymbolName, bits: int, value: StridedInterval | None = None, base: Base = Base.NUMBER
    ) -> Term:
        """The symbol ``name``, newly defined: older uses of the name are renamed."""
        symbol = self.terms.symbol(name, bits)
        self._retire(symbol, name)
        if value is not None:
            self.set_known(symbol, value)
        self.set_base(symbol, base)
        return symbol

    def _retire(self, symbol: Term, name: SymbolName) -> None:
        users: dict[Term, list[Location]] = {}
        for location in self.holding(self.terms.made_of(symbol)):
            users.setdefault(self._locations[location], []).append(location)
        renamed: list[tuple[Term, StridedInterval, Base, list[Location]]] = [
            (term, self.value(term), Base.ANY if self.has_low_part(term) else self.base(term), locations)
            for term, locations in users.items()
        ]
        self._forget_symbol(symbol)
        for term, value, base, locations in renamed:
            old = self._unused(("was", *name, *locations[0]), self.terms[term].bits)
            for location in locations:
                self.set_location(location, old)
            self.set_known(old, value)
            self.set_base(old, base)

    def _forget_symbol(self, symbol: Term) -> None:
        """Nothing is known of ``symbol`` any more, nor of what it is in."""
        for term in self._known.keys() & self.terms.made_of(symbol):
            self.set_known(term, None)
        self.set_base(symbol, Base.NUMBER)

    def _unused(self, name: SymbolName, bits: int) -> Term:
        number = 0
        while self.holding(self.terms.made_of(symbol := self.terms.symbol((*name, number), bits))):
            number += 1
        self._forget_symbol(symbol)
        return symbol

    # ------------------------------------------------------------------------------------------------------- values

    def base(self, term: Term) -> Base:
        """What ``term`` is measured from."""
        if self._bases.keys().isdisjoint(self.terms.symbols(term)):
            return Base.NUMBER
        found = self._base_cache.get(term, self._part_bases.get(term))
        if found is None:
            found = self._find_base(term)
            # What is put together from low bits is a number as long as it is small, which may change.
            cache = self._part_bases if self.terms.has_low_bits(term) else self._base_cache
            cache[term] = found
        return found

    def _find_base(self, term: Term) -> Base:
        """What a term is measured from that is made of a symbol that is no number."""
        node = self.terms[term]
        if node.opcode == "symbol":
            return self._bases.get(term, Base.NUMBER)
        if node.opcode in TRUTHS or node.opcode in BIT_COUNTS or node.opcode == "const":
            return Base.NUMBER
        bases = [self.base(operand) for operand in self.terms.operands(term)]
        if is_low_part(self.terms, term, bases):
            return Base.NUMBER
        if not any(bases):
            return Base.ANY if self._may_be_put_together(term) else Base.NUMBER
        if node.opcode == "GAMMA":
            return bases[1] if bases[1] is bases[2] else Base.ANY
        match node.opcode, bases:
            case ("INT_ADD", [Base.STACK, Base.NUMBER] | [Base.NUMBER, Base.STACK]):
                return Base.STACK
            case ("INT_SUB", [Base.STACK, Base.NUMBER]):
                return Base.STACK
            case ("INT_SUB", [Base.STACK, Base.STACK]):
                return Base.NUMBER
        return Base.ANY

    def value(self, term: Term) -> StridedInterval:
        """The numbers that ``term`` may be; of a stack address, its offset from the stack pointer at entry."""
        found = self._cache.get(term)
        if found is None:
            found = self.terms.intervals.get(term)
            if found is None:
                found = self._cache[term] = self._evaluate(term)
        return found

    def _evaluate(self, term: Term) -> StridedInterval:
        node = self.terms.node(term)
        known = self._known.get(term)
        if node.opcode == "symbol":
            return known if known is not None else strided.top(node.bits)
        operands: tuple[Term, ...] = node.arguments  # type: ignore[assignment]
        if node.opcode == "GAMMA":
            computed = self._chosen(term)
            return computed if known is None else _meet(computed, known)
        are_numbers = self._bases.keys().isdisjoint(self.terms.symbols(term))
        bases = [] if are_numbers else [self.base(operand) for operand in operands]
        if are_numbers:
            computed = _apply(node.opcode, tuple([self.value(operand) for operand in operands]), node.bits)
        elif any(bases) and node.opcode in BIT_COUNTS:
            computed = _apply(node.opcode, tuple(strided.top(self.terms[o].bits) for o in operands), node.bits)
        elif any(bases) and not (is_computable(node.opcode, bases) or is_low_part(self.terms, term, bases)):
            computed = strided.between(node.bits, 0, 1) if node.opcode in TRUTHS else strided.top(node.bits)
        else:
            parts = zip(operands, bases, strict=True)
            # What is known of a value of either base holds for one of them only.
            numbers = (strided.top(self.terms[o].bits) if base is Base.ANY else self.value(o) for o, base in parts)
            computed = _apply(node.opcode, tuple(numbers), node.bits)
        if node.opcode in {"INT_AND", "INT_LEFT"} and not any(bases):
            least = least_by_bits(self.terms, self._known, term, self.value(operands[0]))
            computed = _meet(computed, strided.between(node.bits, least, (1 << node.bits) - 1)) if least else computed
        return computed if known is None else _meet(computed, known)

    def _chosen(self, term: Term) -> StridedInterval:
        """The values of a gamma node: of each part, where its side of the condition can be."""
        condition, *parts = self.terms.operands(term)
        if self.base(term) is Base.ANY:
            return strided.top(self.terms[term].bits)
        decided = self.value(condition)
        result = strided.bottom(self.terms[term].bits)
        for part, holds in zip(parts, (True, False), strict=True):
            if int(holds) in decided:
                result = strided.join(result, self.under(part, condition, holds=holds))
        return result

    def under(self, part: Term, condition: Term, *, holds: bool) -> StridedInterval:
        """The values of ``part`` where ``condition`` holds, or does not, as far as it speaks of it."""
        opcode, operands = self.terms[condition].opcode, self.terms.operands(condition)
        value = self.value(part)
        if part in operands and opcode in RELATIONS and self.comparable(opcode, operands):
            both = _constrain(opcode, self.value(operands[0]), self.value(operands[1]), holds)
            value = _meet(value, both[operands.index(part)])
        return value

    def _may_be_put_together(self, term: Term) -> bool:
        """Whether ``term``, all of whose operands are numbers, may be an address that was taken apart into low bits.

        *Soundness:* what is one of a few numbers tells no more of an address than its low bits do.
        """
        if self.terms[term].opcode == "GAMMA" or not self.has_low_part(term):
            return False
        return self.value(term).size > SMALLEST_ADDRESS

    def has_low_part(self, term: Term) -> bool:
        """Whether low bits of what may be an address are in ``term``, other than by a comparison.

        Where it is given another name, nobody would see any more what it is put together with.
        """
        return has_low_part(self.terms, term, self._bases, self.base)

    def linear_value(self, coefficients: Iterable[tuple[Term, int]], constant: int, bits: int) -> StridedInterval:
        """The numbers that a linear combination may be; top where a stack address takes part."""
        total = strided.constant(bits, constant)
        for term, coefficient in coefficients:
            if self.base(term) is not Base.NUMBER:
                return strided.top(bits)
            part = _apply("INT_MULT", (self.value(term), strided.constant(bits, coefficient)), bits)
            total = _apply("INT_ADD", (total, part), bits)
        return total

    def comparable(self, opcode: str, operands: Sequence[Term]) -> bool:
        """Whether a comparison of ``operands`` is one of their values."""
        bases = [self.base(operand) for operand in operands]
        if bases == [Base.NUMBER, Base.NUMBER]:
            return True
        return bases == [Base.STACK, Base.STACK] and opcode in ("INT_EQUAL", "INT_NOTEQUAL")
