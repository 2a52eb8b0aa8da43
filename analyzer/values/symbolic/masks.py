"""What bits of a number tell of more of its bits: `x & 15` is 4 or more where `x & 12` is not 0.

And where its highest bit comes to: `x << clz(x)` is 2**31 or more where `x` is not 0.

Words: term, predicate (docs/explanation/glossary.md).

*Soundness:* where the bits of ``mask`` are among those of another mask, ``x & mask`` is no more than ``x`` under the
other, as numbers without sign.
"""

from __future__ import annotations

from collections.abc import Mapping

from wcet_probe.analyzer.domains.strided import StridedInterval
from wcet_probe.analyzer.values.symbolic.term_table import Term
from wcet_probe.analyzer.values.symbolic.terms import Terms


def least_by_bits(terms: Terms, known: Mapping[Term, StridedInterval], term: Term, word: StridedInterval) -> int:
    """The least that ``term`` is, a number under a mask or shifted left; ``word`` is what may be masked or shifted."""
    if terms[term].opcode == "INT_AND":
        return least_by_masks(terms, known, term)
    return 1 << terms[term].bits - 1 if 0 not in word and is_normalised(terms, term) else 0


def least_by_masks(terms: Terms, known: Mapping[Term, StridedInterval], term: Term) -> int:
    """The least that ``term``, a number under a mask, is by what is ``known`` of the number under smaller masks.

    Terms that are later than ``term`` are left out: what is known of them may change without ``term`` being told
    (`State.set_known`).
    """
    masks = terms.masks(terms.operands(term)[0])
    mask, least = masks.get(term, 0), 0
    for other, smaller in masks.items() if mask else ():
        if other < term and smaller & mask == smaller and other in known:
            least = max(least, known[other].unsigned_range()[0])
    return least


def is_normalised(terms: Terms, term: Term) -> bool:
    """Whether ``term`` is a word shifted left by the number of its leading zeros: 0, or its highest bit is set.

    *Soundness:* where the word is not 0 that number is less than its bits, and such a mask takes nothing off it.
    """
    word, amount = terms.operands(term)
    bits = terms[word].bits
    while terms[amount].opcode in {"INT_AND", "INT_ZEXT", "SUBPIECE"}:
        inner, *others = terms.operands(amount)
        if terms[amount].opcode == "INT_AND":
            mask = terms.value(others[0])
            if mask is None or mask & bits - 1 != bits - 1:
                return False
        elif others and (terms.value(others[0]) != 0 or terms[amount].bits < bits.bit_length()):
            return False
        amount = inner
    return terms[amount].opcode == "LZCOUNT" and terms.operands(amount) == (word,)
