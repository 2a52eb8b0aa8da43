"""Words of 32 bits as sums of unknowns, and how they compare.

A word is a constant plus unknowns times factors, modulo 2^32. What is known of the unknowns, and what words are as
integers and bit by bit, is in `word_terms`.

Words: linear form (docs/explanation/glossary.md).

*Soundness:* what is computed and compared here holds modulo 2^32, whatever the unknowns are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from wcet_probe.analyzer.deduction.formulas import FALSE, TRUE, Node, condition

SPAN = 1 << 32
TOP_BIT = 1 << 31


@dataclass(frozen=True, slots=True, eq=False)
class Word:
    """``constant`` plus unknowns times factors, modulo 2^32; the factors are from -2^31 up to 2^31 and not 0."""

    constant: int
    parts: tuple[tuple[Node, int], ...] = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Word) and self.constant == other.constant and dict(self.parts) == dict(other.parts)

    def __hash__(self) -> int:
        return hash((self.constant, frozenset(self.parts)))

    def plus(self, other: Word, factor: int = 1) -> Word:
        """This word plus ``factor`` times ``other``."""
        total = dict(self.parts)
        for node, own in other.parts:
            total[node] = total.get(node, 0) + factor * own
        return word_of(self.constant + factor * other.constant, total)

    def times(self, factor: int) -> Word:
        """This word times ``factor``."""
        return Word(0).plus(self, factor)

    @property
    def alignment(self) -> int:
        """The largest power of two up to 2^32 that surely divides it."""
        found = SPAN | self.constant
        for _, factor in self.parts:
            found |= factor
        return found & -found


def base_of(word: Word) -> Word:
    """``word`` divided by its alignment."""
    unit = word.alignment
    return Word(word.constant // unit, tuple((node, factor // unit) for node, factor in word.parts))


def low_bits(word: Word) -> tuple[int, int]:
    """A power of two, the more the better, and what ``word`` surely is modulo it."""
    unit = Word(0, word.parts).alignment
    return unit, word.constant % unit


def word_of(constant: int, parts: Mapping[Node, int]) -> Word:
    """The word of these parts."""
    kept = []
    for node, factor in parts.items():
        least = factor % SPAN
        if least:
            kept.append((node, least - SPAN if least > TOP_BIT else least))
    return Word(constant % SPAN, tuple(kept))


def less(one: Word, other: Word) -> Node:
    """Whether ``one`` is below ``other``, both unsigned."""
    return _compared("less", one, other)


def signed_less(one: Word, other: Word) -> Node:
    """Whether ``one`` is below ``other``, both signed."""
    return _compared("signed less", one, other)


def same(one: Word, other: Word) -> Node:
    """Whether two words are equal."""
    difference = one.plus(other, -1)
    if not difference.parts:
        return TRUE if difference.constant == 0 else FALSE
    if not other.parts and other.constant == 0:
        # A difference that is compared with 0, as flags are: its summands that are subtracted, on the other side.
        taken = Word(0, tuple((node, -factor) for node, factor in one.parts if factor < 0))
        one, other = one.plus(taken), taken
        if one.constant >= TOP_BIT:
            one, other = Word(0, one.parts), other.plus(Word(SPAN - one.constant))
    return condition("same", one, other)


def _compared(name: str, one: Word, other: Word) -> Node:
    if one == other:
        return FALSE
    if not one.parts and not other.parts:
        flip = TOP_BIT if name == "signed less" else 0
        return TRUE if one.constant ^ flip < other.constant ^ flip else FALSE
    return condition(name, one, other)
