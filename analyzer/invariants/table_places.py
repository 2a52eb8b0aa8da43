"""Where in static data an address leads that is computed there: its interval, narrowed by residues and the data's ends.

An index that was loaded, such as the number of a list that a block keeps, may be any number that stands at such places,
also a tag of a block. The parts of its word are told apart: as many bits as the number has bound how far one leads, and
residues of the others leave out the words beside a table:

>>> heads, ends = 0x400010, (0x400000, 0x400097)  # a table of words behind four others, in one object
>>> of_a_list = {heads + 4 * number for number in range(32)}
>>> of_a_tag = {heads + 4 * (8 * eighths + bit) for eighths in range(-9, 9) for bit in (0, 1)}
>>> min(place for place in of_a_list | of_a_tag if ends[0] <= place <= ends[1]) == heads
True

Words: kind, congruence (docs/explanation/glossary.md).

*Soundness:* the address is its constant, and each of its terms times its factor, all modulo 2 to the 32; each term is
one of its parts, and its number is one of the values that the state tells. What arrives where paths meet is one of what
arrives on the edges. Addresses that are computed from static data lie there, by lemma ``objects-apart``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from wcet_probe.analyzer.domains import strided
from wcet_probe.analyzer.domains.strided import StridedInterval
from wcet_probe.analyzer.invariants.kinds import (
    MODULUS,
    NUMBERS,
    WORD_BITS,
    Kind,
    Part,
    added,
    number_range,
    residue,
    scaled,
)
from wcet_probe.analyzer.invariants.stored_addresses import Ends, Looks
from wcet_probe.analyzer.values.state import State
from wcet_probe.analyzer.values.term_table import Term

_MOST_WAYS = 64
"""So many ways to choose the parts of an address are told apart."""

Arriving = Mapping[Term, Sequence[tuple[State, Term]]]
"""By symbol of where paths meet, what arrives on each edge; of one of which that is not known, nothing."""


@dataclass(frozen=True, slots=True)
class TablePlaces:
    """The places of static data that addresses of an operation lead to.

    Attributes:
        index: the operation's number.
        looks: what is known of its terms.
        arriving: what arrives where its paths meet.
        data: static data, each part of it from its first address to its last.
    """

    index: int
    looks: Looks
    arriving: Arriving
    data: Ends

    def of(self, state: State, term: Term, size_bytes: int) -> Ends | None:
        """The addresses in static data that ``term`` may be; None: not known, as where it may be one that was loaded.

        Args:
            state: in which it is evaluated.
            term: the address.
            size_bytes: of what lies there.

        *Soundness:* as said of the module.
        """
        ends = tuple((low, high - size_bytes + 1) for low, high in self.data if high - low + 1 >= size_bytes)
        found = self._of(state, term, 0, ends, {})
        return None if found is None else tuple(sorted(set(found)))

    def _of(self, state: State, term: Term, more: int, ends: Ends, seen: dict[Term, int]) -> Ends | None:
        """Those of ``term`` and ``more``; of the symbols ``seen``, each with what was added, none are told again."""
        words = self.looks.word(self.index, state, term)
        if not any(part.kind is Kind.STATIC for part in words):
            return () if all(part.kind is not Kind.ANY for part in words) else None
        form = state.terms.linear(term)
        constant = (form.constant + more) % (1 << WORD_BITS)
        if self.looks.kind_of(form.constant) is Kind.STATIC:
            return self._table(state, form.coefficients, constant, ends)
        if list(form.coefficients.values()) != [1]:
            return None
        return self._copied(state, next(iter(form.coefficients)), constant, ends, seen)

    def _copied(self, state: State, symbol: Term, constant: int, ends: Ends, seen: dict[Term, int]) -> Ends | None:
        """Those of ``symbol``, or of one of two, and a ``constant``."""
        arriving: Sequence[tuple[State, Term]] = self.arriving.get(symbol, ())
        if state.terms[symbol].opcode == "GAMMA":
            arriving = [(state, one) for one in state.terms.operands(symbol)[1:]]
        elif symbol in seen:
            return () if seen[symbol] == constant else None
        seen[symbol] = constant
        return _united(self._of(each, one, constant, ends, seen) for each, one in arriving) if arriving else None

    def _table(self, state: State, coefficients: Mapping[Term, int], constant: int, ends: Ends) -> Ends | None:
        """The addresses that a ``constant`` and terms, each times a factor, are, part by part."""
        words = [self.looks.word(self.index, state, one) for one in coefficients]
        values = [self.looks.value(self.index, state, one) for one in coefficients]
        ways = 1
        for parts in words:
            ways *= len(parts)
        if ways > _MOST_WAYS:
            return None
        found: list[tuple[int, int]] = []
        for chosen in product(*words):
            residues, interval = residue(constant), strided.constant(WORD_BITS, constant)
            for factor, part, value in zip(coefficients.values(), chosen, values, strict=True):
                residues = added(residues, scaled(part.residues, factor % MODULUS))
                own = strided.apply("INT_MULT", (_numbers(part, value), strided.constant(WORD_BITS, factor)), WORD_BITS)
                interval = strided.apply("INT_ADD", (interval, own), WORD_BITS)
            found += (one for each in ends for one in _inside(interval, residues, each))
        return tuple(found)


def _numbers(part: Part, value: StridedInterval) -> StridedInterval:
    """What of ``value`` a ``part`` may be."""
    ends = number_range((part,)) if part.kind in NUMBERS else None
    return value if ends is None else strided.meet(value, strided.between(WORD_BITS, *ends, 1))


def _inside(interval: StridedInterval, residues: int, ends: tuple[int, int]) -> Iterable[tuple[int, int]]:
    """The first and the last address of ``interval`` between ``ends`` that has one of ``residues``, if there is any."""
    own = strided.meet(interval, strided.between(WORD_BITS, *ends, 1))
    if own.is_bottom:
        return
    low, high = max(own.unsigned_range()[0], ends[0]), min(own.unsigned_range()[1], ends[1])
    first = next((one for one in range(low, min(high, low + MODULUS) + 1) if residues >> one % MODULUS & 1), None)
    last = next((one for one in range(high, max(low, high - MODULUS) - 1, -1) if residues >> one % MODULUS & 1), None)
    if first is not None and last is not None:
        yield first, last


def _united(found: Iterable[Ends | None]) -> Ends | None:
    """All of them; None where one is not known."""
    every: list[tuple[int, int]] = []
    for one in found:
        if one is None:
            return None
        every += one
    return tuple(every)
