"""Two arguments, case by case: every pair of words is one of some case, and of one case only."""

from itertools import product

from wcet_probe.analyzer.deduction.arguments import two_words
from wcet_probe.analyzer.deduction.formulas import conjunction
from wcet_probe.analyzer.deduction.solver import Questions
from wcet_probe.analyzer.deduction.word_terms import WordTerms

WORDS = (0, 8, 12, 13, (1 << 32) - 8, (1 << 32) - 1)


def test_each_pair_of_words_is_of_one_case():
    terms, found = WordTerms(Questions()), []
    for one, other in two_words(terms, ("arena", "bytes"), 8):
        values = terms.value(one), terms.value(other)
        for pair in product(WORDS, repeat=2):
            terms.enter()
            terms.questions.assume(conjunction(*(value.equals(word) for value, word in zip(values, pair, strict=True))))
            found += [pair] if terms.questions.is_possible() else []
            terms.leave()
    assert sorted(found) == sorted(product(WORDS, repeat=2))


def test_where_an_argument_is_a_multiple_its_term_says_so():
    terms = WordTerms(Questions())
    alignments = [(one.alignment, other.alignment) for one, other in two_words(terms, ("arena", "bytes"), 8)]
    assert alignments == [(8, 8), (1, 1), (8, 1)]
