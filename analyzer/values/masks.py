"""What bits of a number tell of more of its bits: `x & 15` is 4 or more where `x & 12` is not 0.

Words: term, predicate (docs/explanation/glossary.md).

*Soundness:* where the bits of ``mask`` are among those of another mask, ``x & mask`` is no more than ``x`` under the
other, as numbers without sign.
"""

from __future__ import annotations

from collections.abc import Mapping

from wcet_probe.analyzer.domains.strided import StridedInterval
from wcet_probe.analyzer.values.term_table import Term
from wcet_probe.analyzer.values.terms import Terms


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
