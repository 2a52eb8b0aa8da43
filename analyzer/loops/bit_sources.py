"""The bits that words are put together of, and which of them are known to be 0, or not all to be.

Words: term, gamma node (docs/explanation/glossary.md).

*Soundness:* each bit of a term that is followed equals the OR of its sources, bits of other terms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from wcet_probe.analyzer.domains.strided import StridedInterval
from wcet_probe.analyzer.values.states.bases import Base
from wcet_probe.analyzer.values.states.learning import assume
from wcet_probe.analyzer.values.states.state import State
from wcet_probe.analyzer.values.symbolic.term_table import Term

Bit = tuple[Term, int]
"""A bit of a term, 0 the lowest."""

ONE: Bit = (-1, 0)
"""The source of a bit that is always set."""
NONE = frozenset[Bit]()
MOST_BITS = 64
_MOST_CHOICES = 4

Sources = tuple[frozenset[Bit], ...]
"""Of each bit of a term, the lowest first, the bits whose OR it is."""


class Spread:
    """The sources of the bits of terms, as far as ``state`` decides which parts of gamma nodes are chosen.

    What is not put together by moving bits is its own source.
    """

    def __init__(self, state: State) -> None:
        self._state, self._terms = state, state.terms
        self._known: dict[Term, Sources] = {}

    def __call__(self, term: Term) -> Sources:
        """The sources of each bit of ``term``."""
        if term not in self._known:
            self._known[term] = own = self._own(term)
            self._known[term] = self._moved(term) or own
        return self._known[term]

    def _own(self, term: Term) -> Sources:
        """Each bit by itself."""
        return tuple(frozenset({(term, place)}) for place in range(self._terms[term].bits))

    def _moved(self, term: Term) -> Sources | None:
        terms, node, operands = self._terms, self._terms[term], self._terms.operands(term)
        constant = terms.value(operands[1]) if len(operands) == 2 else None
        found: Sequence[frozenset[Bit]] | None = None
        match node.opcode:
            case "const":
                found = _of_number(terms.value(term) or 0, node.bits)
            case "INT_AND" if constant is not None:
                found = [one if constant >> place & 1 else NONE for place, one in enumerate(self(operands[0]))]
            case "INT_RIGHT" if constant is not None:
                found = self(operands[0])[constant:]
            case "SUBPIECE" if constant is not None:
                found = self(operands[0])[8 * constant :][: node.bits]
            case "INT_ZEXT":
                found = self(operands[0])
            case "INT_OR" | "BOOL_OR":
                found = [one | other for one, other in zip(*map(self, operands), strict=True)]
            case "GAMMA" if (decided := self._state.value(operands[0])).is_constant:
                found = self(operands[1 if decided.value else 2])
            case _:
                found = self._otherwise(term)
        return None if found is None else (*found, *[NONE] * (node.bits - len(found)))

    def _otherwise(self, term: Term) -> Sequence[frozenset[Bit]] | None:
        return self._truth(self._terms[term].opcode, self._terms.operands(term)) or self._sum(term)

    def _truth(self, opcode: str, operands: Sequence[Term]) -> Sequence[frozenset[Bit]] | None:
        """A truth value that says whether one of some bits is set."""
        first, second = (*map(self._terms.value, operands[:2]), None, None)[:2]
        if opcode == "INT_NOTEQUAL" and second == 0:
            return [union(self(operands[0]))]
        if (opcode == "INT_SLESS" and second == 0) or (opcode == "INT_CARRY" and operands[0] == operands[1]):
            return self(operands[0])[-1:]
        if opcode == "INT_LESSEQUAL" and first and not first & first - 1:
            return [union(self(operands[1])[first.bit_length() - 1 :])]
        return None

    def _sum(self, term: Term) -> Sources | None:
        """A sum whose parts have no bit in common, so that nothing is carried."""
        form = self._terms.linear(term)
        if term in form.coefficients:
            return None
        found = list(_of_number(form.constant, form.bits))
        for part, factor in form.coefficients.items():
            if factor & factor - 1 or self._terms[part].bits != form.bits:
                return None
            for place, one in enumerate(self(part)[: form.bits - factor.bit_length() + 1], factor.bit_length() - 1):
                if one and found[place]:
                    return None
                found[place] |= one
        return tuple(found)


class Kept(Spread):
    """Bits of other terms each of which, if it is set, sets a bit: of a choice, those that both parts have.

    Args:
        state: on an edge within a loop.
        joined: what is so kept by a symbol that several ways bring together before that edge; None where it tells none.

    *Soundness:* a bit is not the OR of these, so what is asked of bits that are not set must not be asked here.
    """

    def __init__(self, state: State, joined: Callable[[Term], Sources | None]) -> None:
        super().__init__(state)
        self._exact, self._joined = Spread(state), joined

    def _otherwise(self, term: Term) -> Sequence[frozenset[Bit]] | None:
        exact = self._exact(term)
        match self._terms[term].opcode:
            case "GAMMA":
                return [one & other for one, other in zip(*map(self, self._terms.operands(term)[1:]), strict=True)]
            case "symbol" if (joined := self._joined(term)) is not None:
                return [one | other for one, other in zip(exact, joined, strict=True)]
            case _:
                return exact


class Narrowed(Spread):
    """As `Spread`, without the bits that are 0 by the value of a term, and with what a sum without a carry tells.

    *Soundness:* a bit that is 0 is the OR of none.
    """

    def _own(self, term: Term) -> Sources:
        own, value = super()._own(term), self._state.value(term)
        if not has_value(self._state, term) or value.is_bottom:
            return own
        high, low = _high_zeros(value), _low_zeros(value)
        return tuple(one if low <= place < high else NONE for place, one in enumerate(own))

    def _truth(self, opcode: str, operands: Sequence[Term]) -> Sequence[frozenset[Bit]] | None:
        if opcode == "INT_CARRY" and not any(one and other for one, other in zip(*map(self, operands), strict=True)):
            return [NONE]  # where no place has a bit of both, nothing is carried
        return super()._truth(opcode, operands)


def _of_number(number: int, bits: int) -> Sources:
    return tuple(frozenset({ONE}) if number >> place & 1 else NONE for place in range(bits))


def union(parts: Iterable[frozenset[Bit]]) -> frozenset[Bit]:
    """The bits of all ``parts``."""
    return NONE.union(*parts)


def is_word(state: State, term: Term) -> bool:
    """Whether ``term`` speaks of words as they are: nothing that it is made of is known as an offset in the stack.

    *Soundness:* of what may be an address or a number nothing is known but truth values, which are those of the words.
    """
    symbols = state.terms.symbols(term)
    return state.bases.keys().isdisjoint(symbols) or all(state.bases.get(one) is not Base.STACK for one in symbols)


def has_value(state: State, term: Term) -> bool:
    """Whether what is known of ``term`` is so of the word itself."""
    return is_word(state, term) and state.base(term) is Base.NUMBER


def known_zeros(state: State, spread: Spread) -> Iterator[frozenset[Bit]]:
    """Bits that are 0, by what is known of terms: a value below 2**n has n bits, a multiple of 2**n ends in zeros."""
    for term, value in state.known.items():
        if has_value(state, term) and not value.is_bottom and state.terms[term].bits <= MOST_BITS:
            high, low = _high_zeros(value), _low_zeros(value)
            if high < value.bits or low:
                parts = spread(term)
                yield union((*parts[:low], *parts[high:]))


def _high_zeros(value: StridedInterval) -> int:
    return value.unsigned_range()[1].bit_length()


def _low_zeros(value: StridedInterval) -> int:
    both = value.low | (value.stride if value.steps else 0)
    return (both & -both).bit_length() - 1 if both else value.bits


def is_nonzero(state: State, term: Term, choices: int = _MOST_CHOICES) -> bool:
    """Whether ``term`` is known not to be 0: by itself, in each case of a choice, or as it keeps what is set.

    Args:
        state: where it is asked.
        term: a word, or a number.
        choices: how many gamma nodes within each other are told apart at most.

    *Soundness:* where no case is left that can be, the state is that of no execution. Of a number that is not 0 a bit
    is set, which is not among those known to be 0; if each other one is a source of a bit of ``term``, one of that is.
    """
    if not is_word(state, term) or state.terms[term].bits > MOST_BITS:
        return False
    if (has_value(state, term) and 0 not in state.value(term)) or _is_told_nonzero(state, term):
        return True
    if state.terms[term].opcode == "GAMMA" and choices:
        return all(_is_nonzero_where(state, term, holds, choices - 1) for holds in (True, False))
    spread = Spread(state)
    sources = union(spread(term))
    kept = sources.union(*known_zeros(state, spread))
    return any(
        is_nonzero(state, part, choices) and kept.issuperset((part, place) for place in range(state.terms[part].bits))
        for part in sorted({part for part, _ in sources - {ONE}})
        if part < term
    )


def _is_told_nonzero(state: State, term: Term) -> bool:
    """Whether ``term`` was compared with 0, which a range around 0 does not remember."""
    terms = state.terms
    is_zero = terms.apply("INT_EQUAL", (term, terms.constant(0, terms[term].bits)), 8)
    return is_zero is not None and 1 not in state.value(is_zero)


def _is_nonzero_where(state: State, gamma: Term, holds: bool, choices: int) -> bool:  # noqa: FBT001
    """Whether a gamma node is not 0 where its condition holds, or does not."""
    condition, *parts = state.terms.operands(gamma)
    side = state.copy()
    return not assume(side, condition, holds) or is_nonzero(side, parts[0 if holds else 1], choices)
