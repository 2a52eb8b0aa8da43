"""Arguments of an operation of which nothing is known, told by what a claim speaks of: multiples, and what is left.

Words: symbolic execution (docs/explanation/glossary.md).

*Soundness:* the cases together are all pairs of words.
"""

from __future__ import annotations

from collections.abc import Iterator

from wcet_probe.analyzer.deduction.formulas import unknown
from wcet_probe.analyzer.deduction.word_terms import WordTerms
from wcet_probe.analyzer.deduction.words import SPAN, Word

_CASES = (False, False), (True, True), (False, True)


def two_words(terms: WordTerms, names: tuple[str, str], unit: int) -> Iterator[tuple[Word, Word]]:
    """Two words, case by case: each is a multiple of ``unit`` bytes, with a rest where that is not 0.

    Neither has a rest, or the first has one and the second may, or the second alone has. So code that tests whether
    they are multiples is followed on terms that say so. Each case is a scope of ``terms`` as long as it is looked at.
    """
    multiples = [terms.known(unknown(f"{name} in units"), SPAN // unit - 1) for name in names]
    rests = [terms.known(unknown(f"odd bytes of {name}"), unit - 1) for name in names]
    for has_rest in _CASES:
        terms.enter()
        if any(has_rest):
            terms.questions.assume(rests[has_rest.index(True)] >= 1)
        one, other = (
            Word(0, ((multiple, unit), (rest, 1)) if has else ((multiple, unit),))
            for multiple, rest, has in zip(multiples, rests, has_rest, strict=True)
        )
        yield one, other
        terms.leave()
