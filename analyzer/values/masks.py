"""What bits of a number tell of more of its bits: `x & 15` is 4 or more where `x & 12` is not 0.

*Soundness:* where the bits of ``mask`` are among those of another mask, ``x & mask`` is no more than ``x`` under the
other, as numbers without sign.
"""

from __future__ import annotations

from collections.abc import Mapping

from wcet_probe.analyzer.domains.strided import StridedInterval
from wcet_probe.analyzer.values.terms import Term, Terms


def mask_of(terms: Terms, term: Term, masked: Term) -> int:
    """The constant by which ``term`` masks ``masked``; 0 where it does not."""
    if terms[term].opcode != "INT_AND" or terms.operands(term)[0] != masked:
        return 0
    return terms.value(terms.operands(term)[1]) or 0


def least_by_masks(terms: Terms, known: Mapping[Term, StridedInterval], term: Term) -> int:
    """The least that ``term``, a number under a mask, is by what is ``known`` of the number under smaller masks.

    Terms that are later than ``term`` are left out: what is known of them may change without ``term`` being told
    (`State.set_known`).
    """
    masked, least = terms.operands(term)[0], 0
    mask = mask_of(terms, term, masked)
    for other in known if mask else ():
        if other < term and (smaller := mask_of(terms, other, masked)) and smaller & mask == smaller:
            least = max(least, known[other].unsigned_range()[0])
    return least
