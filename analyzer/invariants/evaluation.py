"""What a term of the value analysis may be, where the contents of the words that it is made of are known.

A term is evaluated part by part of its symbols' contents: `contents`. What the state at that point knows of a term
narrows it: its value, its remainder, an equality with another one, and whether a condition on it holds. Terms with a
count of leading zeros are evaluated for each count: what is shifted by it is then in the range that has this count.

Words: kind, term, predicate (docs/explanation/glossary.md).

*Soundness:* each rule contains the operation's result for all words that the operands' parts stand for; remainders of
sums, products with constants and bitwise operations follow from remainders alone. A symbol's contents hold of every
execution of its definition, and so of the latest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from itertools import product

from wcet_probe.analyzer.domains import strided
from wcet_probe.analyzer.domains.strided import StridedInterval
from wcet_probe.analyzer.invariants.contents import (
    WORD_BITS,
    Contents,
    Part,
    Region,
    anything,
    contents_of,
    is_anything,
    met,
    number,
    remainder_of,
)
from wcet_probe.analyzer.invariants.frontier import NO_FRONTIER, Area, Frontier, moved_in
from wcet_probe.analyzer.values.properties.reach import remainder
from wcet_probe.analyzer.values.states.bases import Base
from wcet_probe.analyzer.values.states.learning import assume
from wcet_probe.analyzer.values.states.state import State
from wcet_probe.analyzer.values.symbolic.term_table import Term

_MOST_COMBINATIONS = 64
_MOST_INDEX = 1 << 16
"""Most values of a word of any kind that is taken for a number."""
_BY_REMAINDER = frozenset({"INT_AND", "INT_OR", "INT_XOR", "INT_ADD", "INT_SUB", "INT_MULT", "INT_2COMP", "INT_NEGATE"})
_MOST_CHOICES = 8
_LAST = (1 << WORD_BITS) - 1

_apply = lru_cache(1 << 16)(strided.apply)
Given = Mapping[Term, Contents]


class Told:
    """What states tell of terms, which does not depend on what memory holds: found once."""

    def __init__(self, way_bits: int) -> None:
        self._way_bits = way_bits
        self._sides: dict[tuple[int, Term, bool], State | None] = {}
        self._remainders: dict[tuple[int, Term], StridedInterval] = {}
        self._bounded: dict[tuple[int, Term], list[Term]] = {}
        self._conditions: dict[tuple[int, Term], list[tuple[Term, StridedInterval]]] = {}
        self._values: dict[tuple[int, Term], StridedInterval] = {}
        self._kept: dict[int, State] = {}  # alive, as they are known by their identity

    def side(self, state: State, condition: Term, *, holds: bool) -> State | None:
        """``state`` where ``condition`` holds, or does not; None where that cannot be."""
        key = id(state), condition, holds
        if key not in self._sides:
            self._kept[id(state)] = state
            side = state.copy()
            self._sides[key] = side if assume(side, condition, holds) else None
        return self._sides[key]

    def way(self, state: State, term: Term) -> StridedInterval:
        """The remainders of ``term``."""
        key = id(state), term
        found = self._remainders.get(key)
        if found is None:
            self._kept[id(state)] = state
            own = remainder_of(self.value(state, term), self._way_bits)
            found = self._remainders[key] = strided.meet(own, remainder(state, term, self._way_bits))
        return found

    def value(self, state: State, term: Term) -> StridedInterval:
        """The values of ``term``; of a symbol of a word, not above those of a disjunction of it that is known."""
        value = state.value(term)
        if state.terms[term].opcode != "symbol" or value.bits != WORD_BITS:
            return value
        key = id(state), term
        found = self._values.get(key)
        if found is None:
            self._kept[id(state)] = state
            found = value
            for one, known in state.known.items():
                if state.terms[one].opcode == "INT_OR" and term in state.terms.operands(one):
                    found = strided.meet(found, strided.between(WORD_BITS, 0, known.unsigned_range()[1]))
            self._values[key] = found
        return found

    def conditions(self, state: State, symbol: Term) -> list[tuple[Term, StridedInterval]]:
        """The terms made of ``symbol`` of which the state knows the value."""
        key = id(state), symbol
        found = self._conditions.get(key)
        if found is None:
            self._kept[id(state)] = state
            found = self._conditions[key] = [
                (term, value)
                for term, value in state.known.items()
                if value.is_constant and state.terms.operands(term) and symbol in state.terms.symbols(term)
            ]
        return found

    def bounded(self, state: State, count: Term) -> list[Term]:
        """The words made of ``count`` of whose values the state knows something."""
        key = id(state), count
        if key not in self._bounded:
            self._kept[id(state)] = state
            self._bounded[key] = _bounded(state, count)
        return self._bounded[key]


class Evaluation:
    """Evaluates terms in states.

    Args:
        way_bits: of a remainder modulo a way.
        lookup: contents of a symbol, as far as they are known.
        frontier, area: how far words that are advanced go (lemma ``frontier-in-its-area``).
        told: what states tell, shared with others.
    """

    def __init__(
        self,
        way_bits: int,
        lookup: Callable[[Term], Contents],
        frontier: Frontier = NO_FRONTIER,
        area: Area | None = None,
        told: Told | None = None,
    ) -> None:
        self._told = told or Told(way_bits)
        self._way_bits, self._lookup, self._frontier, self._area = way_bits, lookup, frontier, area
        self.is_cut = False
        """Whether the lemma has left anything out."""
        self._anything = anything(way_bits)
        self._memo: dict[tuple[int, Term], Contents] = {}
        self._by_case: dict[tuple[int, Term], Contents] = {}  # what depends on the case of a count
        self._is_by_case = False

    def contents(self, state: State, term: Term) -> Contents:
        """What ``term`` may be in ``state``."""
        counts = sorted(_leading_zeros(state, term))
        self._memo, self._by_case = {}, {}
        return self._by_counts(state, term, counts, {})

    def _by_counts(self, state: State, term: Term, counts: list[Term], given: dict[Term, Contents]) -> Contents:
        """By cases of the first of ``counts``, leading zeros of terms; an inner one has the lower number."""
        if not counts:
            return self._evaluate(state, term, given, 0)
        first, *others = counts
        bits = state.terms[first].bits
        (counted,) = state.terms.operands(first)
        self._memo, self._by_case = {}, {}
        zeros = self._interval(state, first, given)
        words = self._interval(state, counted, given)
        width, found = state.terms[counted].bits, list[Part]()
        bounded = self._told.bounded(state, first)
        in_all_cases: dict[tuple[int, Term], Contents] = {}
        for count in zeros.values():
            low, high = (1 << width - 1 - count, (1 << width - count) - 1) if count < width else (0, 0)
            within = strided.meet(words, strided.between(width, low, high))
            if within.is_bottom:
                continue
            case = {
                **given,
                first: self._number(bits, strided.constant(bits, count)),
                counted: self._number(width, within),
            }
            self._memo, self._by_case = in_all_cases, {}
            if all(self._evaluate(state, one, case, 0) for one in bounded):
                found += self._by_counts(state, term, others, case)
        return contents_of(found, self._way_bits)

    def _number(self, bits: int, value: StridedInterval) -> Contents:
        return number(value, self._way_bits) if bits == WORD_BITS else _raw(value, self._way_bits)

    def _interval(self, state: State, term: Term, given: Given) -> StridedInterval:
        """The values of ``term``, whatever it is."""
        return _hull(self._evaluate(state, term, given, 0), state.terms[term].bits)

    # -------------------------------------------------------------------------------------------------------- terms

    def _evaluate(self, state: State, term: Term, given: Given, depth: int) -> Contents:
        known = given.get(term)
        if known is not None:
            self._is_by_case = True
            return known
        if _BARE in given:
            return self._evaluate_anew(state, term, given, depth)
        key = id(state), term
        found = self._memo.get(key)
        if found is not None:
            return found
        found = self._by_case.get(key)
        if found is not None:
            self._is_by_case = True
            return found
        outer, self._is_by_case = self._is_by_case, False
        found = self._evaluate_anew(state, term, given, depth)
        if self._is_by_case:
            self._by_case[key] = found
        else:
            self._memo[key], self._is_by_case = found, outer
        return found

    def _evaluate_anew(self, state: State, term: Term, given: Given, depth: int) -> Contents:
        terms = state.terms
        node = terms[term]
        if node.opcode == "const":
            return self._number(node.bits, strided.constant(node.bits, node.arguments[0]))  # type: ignore[arg-type]
        if state.base(term) is not Base.NUMBER:
            return self._any(state, term)
        if node.opcode == "symbol":
            found = self._symbol(state, term, given) if node.bits == WORD_BITS else self._any(state, term)
        elif node.opcode == "GAMMA":
            found = self._gamma(state, term, given, depth)
        elif node.bits != WORD_BITS:
            found = self._plain(state, term, given, depth)
        elif (form := terms.linear(term)).coefficients != {term: 1}:
            found = self._sum(state, form.coefficients, form.constant, given, depth)
        else:
            found = self._plain(state, term, given, depth)
        return self._narrowed(state, term, found)

    def _any(self, state: State, term: Term) -> Contents:
        bits = state.terms[term].bits
        if state.base(term) is Base.NUMBER:
            value = self._told.value(state, term)
            if bits != WORD_BITS or value.size <= _MOST_INDEX:
                return self._number(bits, value)
        return self._anything if bits == WORD_BITS else self._number(bits, strided.top(bits))

    def _narrowed(self, state: State, term: Term, found: Contents) -> Contents:
        """``found`` without what the state knows that ``term`` is not."""
        value = self._told.value(state, term)
        if is_anything(found):
            return self._any(state, term)
        if value.bits != WORD_BITS:
            return _raw(strided.meet(_hull(found, value.bits), value), self._way_bits)
        way = self._told.way(state, term)
        if value.is_top and way.is_top:
            return found
        return contents_of(
            (
                Part(part.region, 0, part.value, strided.meet(part.way, way))
                if part.region is Region.ARENA
                else Part(part.region, 0, strided.meet(part.value, value), strided.meet(part.way, way))
                for part in found
            ),
            self._way_bits,
        )

    def _symbol(self, state: State, symbol: Term, given: Given) -> Contents:
        found = self._lookup(symbol)
        if given.get(_BARE) is not None:
            return found
        for term, value in self._told.conditions(state, symbol):
            operands = state.terms.operands(term)
            equals = (state.terms[term].opcode == "INT_EQUAL") == bool(value.value)
            if symbol in operands and equals and state.terms[term].opcode in {"INT_EQUAL", "INT_NOTEQUAL"}:
                other = operands[operands[0] == symbol]
                if other != symbol:
                    found = met(found, self._evaluate(state, other, {_BARE: ()}, _MOST_CHOICES), self._way_bits)
            if state.terms.symbols(term) == {symbol} and not is_anything(found):
                found = tuple(part for part in found if self._may_hold(state, term, value, symbol, part))
        return found

    def _may_hold(self, state: State, condition: Term, value: StridedInterval, symbol: Term, part: Part) -> bool:
        """Whether ``condition`` may be ``value`` where ``symbol`` is of ``part``."""
        computed = self._computed(state, condition, {symbol: (part,)})
        return not strided.meet(computed, value).is_bottom

    def _computed(self, state: State, term: Term, given: Given) -> StridedInterval:
        """``term`` by its operands alone."""
        node = state.terms[term]
        if term in given:
            return _hull(given[term], node.bits)
        if node.opcode == "const":
            return strided.constant(node.bits, node.arguments[0])  # type: ignore[arg-type]
        if node.opcode in {"symbol", "GAMMA", "TABLE"}:
            return strided.top(node.bits)
        if node.opcode in {"INT_AND", "INT_LEFT"} and node.bits == WORD_BITS:
            word, by = state.terms.operands(term)
            parts, constant = given.get(word, ()), state.terms.value(by)
            if constant is not None and parts and not is_anything(parts):
                kept = constant.bit_length() if node.opcode == "INT_AND" else WORD_BITS - constant
                if kept <= self._way_bits:  # the lowest bits of an address are those of its remainder
                    way = _apply("INT_ZEXT", (_way_hull(parts, self._way_bits),), WORD_BITS)
                    amount = strided.constant(state.terms[by].bits, constant)
                    return _apply(node.opcode, (way, amount), WORD_BITS)
        return _apply(
            node.opcode, tuple(self._computed(state, one, given) for one in state.terms.operands(term)), node.bits
        )

    def _gamma(self, state: State, term: Term, given: Given, depth: int, added: int = 0) -> Contents:
        """The parts of a gamma node, to each of which ``added`` is added: one of them alone may be a frontier."""
        if depth >= _MOST_CHOICES:
            return self._any(state, term)
        condition, *chosen = state.terms.operands(term)
        found: list[Part] = []
        decided = _hull(self._evaluate(state, condition, given, depth + 1), state.terms[condition].bits)
        for one, holds in zip(chosen, (True, False), strict=True):
            if decided.is_constant and (decided.value != 0) != holds:
                continue
            side = self._told.side(state, condition, holds=holds)
            if side is not None:
                found += self._moved(side, one, given, depth + 1, added)
        if state.terms[term].bits != WORD_BITS:
            return tuple(found)
        return contents_of(found, self._way_bits)

    def _moved(self, state: State, term: Term, given: Given, depth: int, added: int) -> Contents:
        form = state.terms.linear(term)
        if not added:
            return self._evaluate(state, term, given, depth)
        constant = form.constant + added & _LAST
        if not form.coefficients:
            return self._number(WORD_BITS, strided.constant(WORD_BITS, constant))
        return self._sum(state, form.coefficients, constant, given, depth)

    def _sum(self, state: State, coefficients: Mapping[Term, int], constant: int, given: Given, depth: int) -> Contents:
        (first, *others) = coefficients
        is_choice = not others and coefficients[first] == 1 and state.terms[first].opcode == "GAMMA"
        if is_choice and self._frontier.advances and first not in given and depth < _MOST_CHOICES:
            return self._gamma(state, first, given, depth, constant)
        advanced = None if self._area is None else self._frontier.advanced(coefficients, constant)
        parts = [self._evaluate(state, one, given, depth) for one in coefficients]
        if advanced is not None and self._area is not None and not is_anything(parts[0]):
            reached, constant = advanced
            moved = [self._added((part,), [1], reached) for part in parts[0]]
            cut = [moved_in(*each, self._area, self._way_bits) for each in zip(parts[0], moved, strict=True)]
            self.is_cut |= cut != moved
            parts = [contents_of(cut, self._way_bits)]
        factors = list(coefficients.values())
        if any(map(is_anything, parts)):
            return self._anything
        size = 1
        for one in parts:
            size *= len(one)
        if size > _MOST_COMBINATIONS:
            parts = [_merged(one) for one in parts]
        return contents_of((self._added(chosen, factors, constant) for chosen in product(*parts)), self._way_bits)

    def _added(self, chosen: tuple[Part, ...], factors: list[int], constant: int) -> Part:
        bits, full = self._way_bits, (1 << WORD_BITS) - 1
        value, way = strided.constant(WORD_BITS, constant), strided.constant(bits, constant & (1 << bits) - 1)
        arenas = 0
        for part, factor in zip(chosen, factors, strict=True):
            own = _apply("INT_MULT", (part.way, strided.constant(bits, factor & (1 << bits) - 1)), bits)
            way = _apply("INT_ADD", (way, own), bits)
            if part.region is Region.ARENA:
                arenas = (arenas + factor) & full
            else:
                whole = _apply("INT_MULT", (part.value, strided.constant(WORD_BITS, factor)), WORD_BITS)
                value = _apply("INT_ADD", (value, whole), WORD_BITS)
        if any(part.region is Region.ARENA for part in chosen):
            value = strided.top(WORD_BITS)
        if arenas == 1:
            return Part(Region.ARENA, 0, value, way)
        return Part(Region.NUMBER if arenas == 0 else Region.ANY, 0, value, way)

    def _plain(self, state: State, term: Term, given: Given, depth: int) -> Contents:
        node = state.terms[term]
        operands = [self._evaluate(state, one, given, depth) for one in state.terms.operands(term)]
        if node.opcode == "TABLE":
            return self._any(state, term)
        if node.opcode == "INT_AND" and node.bits == WORD_BITS and is_anything(operands[0]):
            mask = state.terms.value(state.terms.operands(term)[1])
            if mask is not None and mask < _MOST_INDEX:
                masked = _apply("INT_AND", (strided.top(WORD_BITS), strided.constant(WORD_BITS, mask)), WORD_BITS)
                return number(masked, self._way_bits)
        if any(map(is_anything, operands)):
            return self._any(state, term)
        size = 1
        for one in operands:
            size *= len(one)
        if size > _MOST_COMBINATIONS:
            operands = [_merged(one) for one in operands]
        results = [self._applied(node.opcode, chosen, node.bits) for chosen in product(*operands)]
        if node.bits != WORD_BITS:
            return tuple(results)
        return contents_of(results, self._way_bits)

    def _applied(self, opcode: str, chosen: tuple[Part, ...], bits: int) -> Part:
        way_bits = self._way_bits
        if bits == WORD_BITS and opcode in {"INT_AND", "INT_OR", "INT_XOR"}:
            way = _apply(opcode, tuple(part.way for part in chosen), way_bits)
            arenas = [part for part in chosen if part.region is Region.ARENA]
            if not arenas:
                value = _apply(opcode, tuple(part.value for part in chosen), bits)
                return Part(Region.NUMBER, 0, value, way)
            (other,) = [part for part in chosen if part is not arenas[0]] or (arenas[0],)
            return self._masked(opcode, other, way)
        if bits == WORD_BITS and any(part.region is Region.ARENA for part in chosen):
            return Part(Region.NUMBER, 0, strided.top(WORD_BITS), strided.top(way_bits))
        value = _apply(opcode, tuple(part.value for part in chosen), bits)
        if bits != WORD_BITS:
            return (
                _raw(value, way_bits)[0]
                if not value.is_bottom
                else Part(Region.NUMBER, 0, value, strided.bottom(way_bits))
            )
        way = remainder_of(value, way_bits)
        if opcode in _BY_REMAINDER and all(part.value.bits == WORD_BITS for part in chosen):
            way = strided.meet(way, _apply(opcode, tuple(part.way for part in chosen), way_bits))
        return Part(Region.NUMBER, 0, value, way)

    def _masked(self, opcode: str, other: Part, way: StridedInterval) -> Part:
        """An address in the arena whose bits ``other`` changes: it stays there if only those of a remainder are."""
        mask, top = (1 << self._way_bits) - 1, strided.top(WORD_BITS)
        if other.region is Region.NUMBER and other.value.is_constant:
            constant = other.value.value
            if opcode == "INT_AND" and constant <= mask:
                return Part(Region.NUMBER, 0, strided.apply("INT_ZEXT", (way,), WORD_BITS), way)
            if (opcode == "INT_AND" and constant | mask == (1 << WORD_BITS) - 1) or (
                opcode != "INT_AND" and constant <= mask
            ):
                return Part(Region.ARENA, 0, top, way)
        return Part(Region.ANY, 0, top, strided.top(self._way_bits))


_BARE: Term = -1
"""Given where the conditions of a state are not asked, as they are being asked."""


def _raw(value: StridedInterval, way_bits: int) -> Contents:
    """Values of another width than a word's."""
    if value.is_bottom:
        return ()
    return (Part(Region.NUMBER, 0, value, remainder_of(value, way_bits)),)


def _hull(contents: Contents, bits: int) -> StridedInterval:
    value = strided.bottom(bits)
    for part in contents:
        value = strided.join(value, part.value if part.value.bits == bits else strided.top(bits))
    return value


def _way_hull(contents: Contents, way_bits: int) -> StridedInterval:
    way = strided.bottom(way_bits)
    for part in contents:
        way = strided.join(way, part.way)
    return way


def _merged(contents: Contents) -> Contents:
    """The same with one part for each region."""
    found: dict[Region, Part] = {}
    for part in contents:
        other = found.get(part.region)
        found[part.region] = (
            part
            if other is None
            else Part(part.region, 0, strided.join(other.value, part.value), strided.join(other.way, part.way))
        )
    return tuple(found.values())


def _bounded(state: State, count: Term) -> list[Term]:
    """The words made of ``count`` of whose values the state knows something."""
    return [
        term
        for term, value in state.known.items()
        if term != count
        and state.terms[term].bits == WORD_BITS
        and state.terms[term].opcode in _OF_COUNTS
        and not value.is_top
        and count in _leading_zeros(state, term)
    ]


_OF_COUNTS = frozenset({"INT_OR", "INT_ADD", "INT_SUB", "INT_AND"})


def _leading_zeros(state: State, term: Term) -> Iterator[Term]:
    """The counts of leading zeros that ``term`` is made of, each once."""
    seen, todo = set[Term](), [term]
    while todo:
        one = todo.pop()
        if one in seen:
            continue
        seen.add(one)
        if state.terms[one].opcode == "LZCOUNT":
            yield one
        todo += state.terms.operands(one)
