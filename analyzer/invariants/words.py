"""What a term of the value analysis may be as a word of `kinds`, where the words that it is made of are known.

Words: kind, term (docs/explanation/glossary.md).

*Soundness:* each rule contains what the term is for all words that its symbols' parts stand for. What the state knows
of a term's value narrows its residues, and leaves out null where 0 is none of its values. So does what it knows of the
way that was taken (`ways_taken`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from wcet_probe.analyzer.domains import strided
from wcet_probe.analyzer.domains.strided import StridedInterval
from wcet_probe.analyzer.invariants.kinds import (
    ALL,
    ANYTHING,
    MODULUS,
    NULL,
    NUMBERS,
    WORD_BITS,
    Kind,
    Part,
    Word,
    bitwise,
    joined,
    members,
    number_range,
    operated,
    residue,
    residues_of,
    shifted,
    summed,
    word,
)
from wcet_probe.analyzer.invariants.situations import NOWHERE, Situation, Situations
from wcet_probe.analyzer.invariants.ways_taken import Conditions
from wcet_probe.analyzer.pcode.semantics import signed
from wcet_probe.analyzer.values.properties.reach import remainder
from wcet_probe.analyzer.values.states.bases import Base
from wcet_probe.analyzer.values.states.learning import assume, learn
from wcet_probe.analyzer.values.states.memory import MOST_READ
from wcet_probe.analyzer.values.states.state import State
from wcet_probe.analyzer.values.symbolic.term_table import Term

_RESIDUE_BITS = MODULUS.bit_length() - 1
_MOST_CHOICES = 8
_MOST_SHIFTS = 64
_SHORT = 16
"""Bits of a number that is no address, as no memory lies so low."""
_BITWISE = frozenset({"INT_AND", "INT_OR", "INT_XOR"})
_EVERY = 0, (1 << WORD_BITS) - 1


class _Limits(NamedTuple):
    """What a state tells of a term.

    Attributes:
        is_nothing: whether there is no such value.
        constant: the value, if there is one only.
        residues: of the values, as a mask.
        low: the least value.
        high: the greatest value.
        has_zero: whether it may be 0.
    """

    is_nothing: bool = False
    constant: int | None = None
    residues: int = 0
    low: int = 0
    high: int = 0
    has_zero: bool = False


class Words:
    """Evaluates terms in states.

    Args:
        kind_of: of a constant, whether it is a number or an address.
        lookup: what a symbol may be.
        situations: what is known beside the states.
        taken: what a state tells of the ways that were taken to it.
    """

    def __init__(
        self,
        kind_of: Callable[[int], Kind],
        lookup: Callable[[Term], Word],
        situations: Situations,
        taken: Callable[[State], Conditions] = lambda _: {},
    ) -> None:
        self._kind_of, self._lookup, self._situations = kind_of, lookup, situations
        self._ways_taken = taken
        self._taken: dict[int, tuple[State, Conditions]] = {}  # by state that was asked for, which it keeps alive
        self._conditions_taken: Conditions = {}
        self._situation = NOWHERE
        self._is_learnt = False  # whether values rest on what symbols may be, which are null or numbers
        self._told: Mapping[Term, StridedInterval] = {}  # what is told of those symbols
        self._values: dict[tuple[int, Term, tuple[tuple[Term, StridedInterval], ...]], StridedInterval] = {}
        self._memo: dict[tuple[int, Term], Word] = {}
        self._conditions: dict[tuple[Term, Term, int], StridedInterval] = {}
        self._possible: dict[tuple[Term, int, Term], tuple[int, int]] = {}  # residues that were asked for, and possible
        # States that are kept, so that what is remembered of them by their identity stays theirs.
        self._told_to: dict[tuple[int, tuple[tuple[Term, StridedInterval], ...]], State] = {}
        self._sides: dict[tuple[int, Term, bool], State | None] = {}
        self._asked: tuple[State, ...] = ()  # and learnt
        self._limits: dict[tuple[int, Term], _Limits] = {}

    def of(self, state: State, term: Term, situation: Situation) -> Word:
        """What ``term`` may be in ``state``, which holds in ``situation``."""
        learnt, self._told = self._learnt(state, term)
        self._memo, self._asked, self._situation, self._is_learnt = {}, (state, learnt), situation, learnt is not state
        if id(state) not in self._taken:
            self._taken[id(state)] = state, self._ways_taken(state)
        _, self._conditions_taken = self._taken[id(state)]
        return self._of(learnt, term, 0)

    def value(self, state: State, term: Term) -> StridedInterval:
        """What number ``term`` may be in ``state``, by what its symbols may be."""
        return self._learnt(state, term)[0].value(term)

    def _learnt(self, state: State, term: Term) -> tuple[State, Mapping[Term, StridedInterval]]:
        """``state``, with what is known of the numbers that ``term`` is made of, and what of them it does not tell."""
        told: dict[Term, StridedInterval] = {}
        for symbol in sorted(state.terms.symbols(term)):
            if state.terms[symbol].bits != WORD_BITS or state.base(symbol) is not Base.NUMBER:
                continue
            ends = number_range(self._lookup(symbol))
            if ends is not None and ends != _EVERY:
                number = strided.between(WORD_BITS, *ends, 1)
                if not strided.leq(state.value(symbol), number):
                    told[symbol] = number
        return self._with(state, told), told

    def _with(self, state: State, told: Mapping[Term, StridedInterval]) -> State:
        """``state``, where symbols are among the numbers that are ``told``; the same state for the same question."""
        if not told:
            return state
        key = id(state), tuple(told.items())
        if key not in self._told_to:
            learnt = self._told_to[key] = state.copy()
            for symbol, number in told.items():
                learn(learnt, symbol, number)
        return self._told_to[key]

    def _value(self, state: State, term: Term) -> StridedInterval:
        """What ``term`` may be; remembered of the state that was asked for, which outlives the question.

        *Soundness:* what is told of other symbols than its own may be left out.
        """
        asked, learnt = self._asked
        if state is not asked and state is not learnt:
            return self._situations.value(self._situation, state, term)
        symbols = state.terms.symbols(term)
        told = {one: number for one, number in self._told.items() if one in symbols} if state is learnt else {}
        key = id(asked), term, tuple(told.items())
        if key not in self._values:
            self._values[key] = self._situations.value(self._situation, self._with(asked, told), term)
        return self._values[key] if state is asked else strided.meet(self._values[key], state.value(term))

    def constant(self, value: int) -> Word:
        """The word ``value``."""
        if value == 0:
            return NULL
        kind = self._kind_of(value)
        bits = (value.bit_length(), value.bit_length()) if kind in NUMBERS else ()
        return (Part(kind, False, residue(value), *bits),)

    def _of(self, state: State, term: Term, depth: int) -> Word:
        key = id(state), term
        found = self._memo.get(key)
        if found is None:
            found = self._memo[key] = self._narrowed(state, term, self._made(state, term, depth))
        return found

    def _made(  # noqa: PLR0911  a return for each kind of term
        self, state: State, term: Term, depth: int
    ) -> Word:
        terms = state.terms
        node = terms[term]
        if node.opcode == "const":
            return self.constant(terms.value(term) or 0)
        if state.base(term) is not Base.NUMBER:
            return ANYTHING
        if node.opcode == "symbol":
            return self._symbol(state, term) if node.bits == WORD_BITS else _unknown(node.bits)
        if node.opcode == "GAMMA":
            return self._gamma(state, term, depth)
        if node.bits < WORD_BITS:
            return _unknown(node.bits)
        if node.bits == WORD_BITS:
            form = terms.linear(term)
            if form.coefficients != {term: 1}:
                parts = [(factor, self._of(state, one, depth)) for one, factor in form.coefficients.items()]
                return self.sum(parts, form.constant)
        return self._operation(state, term, depth)

    def sum(self, parts: Sequence[tuple[int, Word]], constant: int) -> Word:
        """The sum of words, each times its factor, and a constant."""
        number: Word = (Part(self._kind_of(constant), False, residue(constant)),)
        return summed(parts, number, is_negative=signed(WORD_BITS, constant) < 0)

    def _symbol(self, state: State, symbol: Term) -> Word:
        """What ``symbol`` may be, without the residues that conditions on it alone rule out."""
        found = self._lookup(symbol)
        possible = 0
        for part in found:
            possible |= part.residues
        for term, value in (*self._conditions_taken.items(), *state.known.items()):
            if value.is_constant and term != symbol and symbol in state.terms.symbols(term):
                possible = self._not_ruled_out(state, term, value, symbol, possible)
        return word(part._replace(residues=part.residues & possible) for part in found)

    def _not_ruled_out(
        self, state: State, condition: Term, value: StridedInterval, symbol: Term, residues: int
    ) -> int:  # fmt: skip
        """Those of the ``residues`` of ``symbol`` with which ``condition`` may be the constant ``value``.

        *Soundness:* it is asked of terms alone, which are the same in each state.
        """
        key = condition, value.low, symbol
        asked, possible = self._possible.get(key, (0, 0))
        if residues & ~asked:
            new = members(residues & ~asked)
            possible |= sum(1 << one for one in new if not self._is_ruled_out(state, condition, value, symbol, one))
            self._possible[key] = asked | residues, possible
        return residues & possible

    def _is_ruled_out(self, state: State, condition: Term, value: StridedInterval, symbol: Term, one: int) -> bool:
        """Whether ``condition`` is not ``value`` where ``symbol`` has the residue ``one``."""
        key = condition, symbol, one
        if _shifted_out(state, condition, value, symbol, one):
            return True
        if key not in self._conditions:
            self._conditions[key] = _computed(state, condition, symbol, one)
        return strided.meet(self._conditions[key], value).is_bottom

    def _gamma(self, state: State, term: Term, depth: int) -> Word:
        if depth >= _MOST_CHOICES:
            return ANYTHING
        condition, *chosen = state.terms.operands(term)
        found: Word = ()
        for one, holds in zip(chosen, (True, False), strict=True):
            side = self._side(state, condition, holds=holds)
            if side is not None:
                found = joined(found, self._of(side, one, depth + 1))
        return found

    def _side(self, state: State, condition: Term, *, holds: bool) -> State | None:
        """``state`` where ``condition`` holds, or does not; None where that cannot be."""
        key = id(state), condition, holds
        if key not in self._sides:
            side = state.copy()
            self._sides[key] = side if assume(side, condition, holds) else None
        return self._sides[key]

    def _operation(self, state: State, term: Term, depth: int) -> Word:
        node, operands = state.terms[term], state.terms.operands(term)
        if node.opcode == "TABLE":
            return self._looked_up(state, term)
        parts = [self._of(state, one, depth) for one in operands]
        if not all(parts):
            return ()
        if node.opcode in {"INT_ZEXT", "INT_SEXT", "SUBPIECE"} and node.bits == WORD_BITS:
            return self._resized(state, term, parts[0])
        if node.opcode == "INT_LEFT" and {part.kind for part in parts[0]} <= NUMBERS:
            amounts = self._value(state, operands[1])
            known = list(amounts.values()) if amounts.size <= _MOST_SHIFTS else list(range(WORD_BITS))
            return word(Part(Kind.NUMBER, part.is_loaded, shifted(part.residues, known)) for part in parts[0])
        if node.opcode in {*_BITWISE, "INT_MULT"} and node.bits == WORD_BITS:
            return operated(node.opcode, parts[0], parts[1], state.terms.value(operands[1]))
        found = parts[0]
        for other in parts[1:]:
            found = operated(node.opcode, found, other, None)
        if len(parts) == 1:
            found = operated(node.opcode, found, NULL, None)
        return found

    def _looked_up(self, state: State, term: Term) -> Word:
        """A word of read-only memory, of whose values the state tells."""
        values = self._value(state, term)
        if values.size > MOST_READ:
            return ANYTHING
        return word(part for value in values.values() for part in self.constant(value))

    @staticmethod
    def _resized(state: State, term: Term, part: Word) -> Word:
        """A word of a narrower number, or the lower half of a wider one."""
        opcode, operands = state.terms[term].opcode, state.terms.operands(term)
        is_kept = opcode != "SUBPIECE" or state.terms.value(operands[1]) == 0
        if opcode != "SUBPIECE" and state.terms[operands[0]].bits < _RESIDUE_BITS:
            is_kept = opcode == "INT_ZEXT"
        if opcode != "SUBPIECE" or all(one.kind in NUMBERS for one in part):
            return word(Part(Kind.NUMBER, one.is_loaded, one.residues if is_kept else ALL) for one in part)
        return ANYTHING

    def _narrowed(self, state: State, term: Term, found: Word) -> Word:
        """``found`` without what the state knows that ``term`` is not."""
        if state.base(term) is not Base.NUMBER:
            return found
        key = id(state), term
        limits = self._limits.get(key)
        if limits is None:
            limits = self._limits[key] = self._limits_of(state, term)
        if limits.is_nothing:
            return ()
        if limits.constant is not None and not self._is_learnt:
            return self.constant(limits.constant) if found else ()
        return word(
            _within(part, limits.residues, limits.low, limits.high)
            for part in found
            if part.kind is not Kind.NULL or limits.has_zero
        )

    def _limits_of(self, state: State, term: Term) -> _Limits:
        bits, value = state.terms[term].bits, self._value(state, term)
        if value.is_bottom:
            return _Limits(is_nothing=True)
        residues = residues_of(value)
        if bits == WORD_BITS:
            residues &= residues_of(remainder(state, term, _RESIDUE_BITS))
        low, high = value.unsigned_range() if bits <= WORD_BITS else _EVERY
        constant = value.value if value.is_constant else None
        return _Limits(constant=constant, residues=residues, low=low, high=high, has_zero=0 in value)


def _within(part: Part, residues: int, low: int, high: int) -> Part:
    """What is in ``part`` of words from ``low`` to ``high`` with these ``residues``."""
    kind = Kind.NUMBER if high < 1 << _SHORT and part.kind is Kind.ANY else part.kind
    found = Part(kind, part.is_loaded, part.residues & residues, part.least, part.most)
    if kind not in NUMBERS:
        return found
    return found._replace(least=max(part.least, low.bit_length()), most=min(part.most, high.bit_length()))


def _shifted_out(state: State, condition: Term, value: StridedInterval, symbol: Term, one: int) -> bool:
    """Whether ``condition``, the lowest bits of a term shifted up, is not ``value``: so Thumb looks at alignments."""
    node, operands = state.terms[condition], state.terms.operands(condition)
    amount = state.terms.value(operands[1]) if node.opcode == "INT_LEFT" and node.bits == WORD_BITS else None
    if amount is None or not WORD_BITS - _RESIDUE_BITS <= amount < WORD_BITS:
        return False
    left = _residues(state, operands[0], symbol, one)
    return all((number << amount) % (1 << WORD_BITS) != value.value for number in members(left))


def _residues(state: State, term: Term, symbol: Term, one: int) -> int:
    """The residues of ``term``, where ``symbol`` has the residue ``one``."""
    opcode = state.terms[term].opcode
    if opcode not in _BITWISE:
        return residues_of(_computed(state, term, symbol, one))
    first, second = (_residues(state, each, symbol, one) for each in state.terms.operands(term))
    return bitwise(opcode, first, second)


def _computed(state: State, term: Term, symbol: Term, residue_: int) -> StridedInterval:
    """``term`` by its operands alone, where ``symbol`` has a residue."""
    node = state.terms[term]
    if term == symbol:
        return strided.residue_class(WORD_BITS, residue_, MODULUS)
    if node.opcode == "const":
        return strided.constant(node.bits, state.terms.value(term) or 0)
    if node.opcode in {"symbol", "GAMMA", "TABLE"}:
        return strided.top(node.bits)
    operands = tuple(_computed(state, one, symbol, residue_) for one in state.terms.operands(term))
    return strided.apply(node.opcode, operands, node.bits)


def _unknown(bits: int) -> Word:
    """A narrow number; of one as wide as a word or wider nothing is known."""
    if bits >= WORD_BITS:
        return ANYTHING
    return (Part(Kind.NUMBER, False, residues_of(strided.top(bits))),)
