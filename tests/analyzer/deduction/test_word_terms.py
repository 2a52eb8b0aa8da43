"""Words as integers and as bits: neither reading excludes what the machine computes."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from wcet_probe.analyzer.deduction.formulas import condition, conjunction, disjunction, negation, unknown
from wcet_probe.analyzer.deduction.solver import Questions
from wcet_probe.analyzer.deduction.word_terms import WordTerms
from wcet_probe.analyzer.deduction.words import SPAN, Word, less, same, signed_less
from wcet_probe.analyzer.pcode.semantics import operation

NUMBERS = st.sampled_from([0, 1, 2, 7, 8, 31, 96, 128, 4095, 4096, 1 << 28, (1 << 31) - 1, 1 << 31, SPAN - 8, SPAN - 1])
BINARY = ["INT_ADD", "INT_SUB", "INT_AND", "INT_OR", "INT_XOR", "INT_LEFT", "INT_RIGHT"]
STEPS = st.lists(
    st.tuples(
        st.sampled_from([*BINARY, "LZCOUNT", "INT_NEGATE", "REVERSED"]), st.integers(0, 9), st.integers(0, 9), NUMBERS
    ),
    min_size=1,
    max_size=6,
)


def _reversed(number):
    return int(f"{number:032b}"[::-1], 2)


def computed(terms, first, second, steps):
    """Words and what they are, of two words that are given with their numbers."""
    found = [first, second]
    for name, left, right, constant in steps:
        one = found[left % len(found)]
        other = (Word(constant), constant) if right > 6 else found[right % len(found)]
        operands = (one,) if name in {"LZCOUNT", "INT_NEGATE", "REVERSED"} else (one, other)
        operate = (lambda _, of: terms.reversed_bits(of)) if name == "REVERSED" else terms.operate
        word = operate(name, *(operand[0] for operand in operands))
        function = _reversed if name == "REVERSED" else operation(name, (4,) * len(operands), 4)
        if word is not None:
            found.append((word, function(*(operand[1] for operand in operands))))
    return found


@settings(max_examples=examples(25))
@given(NUMBERS, NUMBERS, STEPS)
def test_what_is_computed_is_never_excluded(one, other, steps):
    terms = WordTerms(Questions())
    x, y = terms.known(unknown("x"), SPAN // 8 - 1), terms.known(unknown("y"))
    one //= 8
    pairs = computed(terms, (Word(0, ((x, 8),)), 8 * one), (Word(0, ((y, 1),)), other), steps)
    bits = [condition("bits equal", terms.bits(Word(0, ((x, 1),))), condition("bits constant", one))]
    bits.append(condition("bits equal", terms.bits(Word(0, ((y, 1),))), condition("bits constant", other)))
    terms.questions.assume(conjunction(x.equals(one), y.equals(other)))
    for word, number in pairs:
        constant = condition("bits constant", number)
        assert not terms.questions.bits_hold(bits, negation(condition("bits equal", terms.bits(word), constant)))
        terms.enter()
        terms.questions.assume(terms.value(word).equals(number))
        assert not terms.questions.is_contradiction()
        terms.leave()


@settings(max_examples=30)
@given(NUMBERS, NUMBERS)
def test_comparisons_are_those_of_the_machine(one, other):
    terms = WordTerms(Questions())
    x, y = terms.known(unknown("x")), terms.known(unknown("y"))
    terms.questions.assume(conjunction(x.equals(one), y.equals(other)))
    first, second = Word(0, ((x, 1),)), Word(0, ((y, 1),))
    expected = {less: one < other, same: one == other}
    expected[signed_less] = operation("INT_SLESS", (4, 4), 1)(one, other) == 1
    for function, is_true in expected.items():
        formula = terms.formula(function(first, second))
        assert terms.questions.holds(formula if is_true else negation(formula))


def test_masks_and_shifts_of_sums_stay_sums():
    terms = WordTerms(Questions())
    high, low = terms.known(unknown("high"), 1000), terms.known(unknown("low"), 1)
    word = Word(0, ((high, 8), (low, 1)))
    assert terms.operate("INT_AND", word, Word(SPAN - 2)) == Word(0, ((high, 8),))
    assert terms.operate("INT_AND", word, Word(1)) == Word(0, ((low, 1),))
    assert terms.operate("INT_OR", word, Word(2)) == Word(2, word.parts)
    assert terms.operate("INT_RIGHT", Word(0, ((high, 8),)), Word(3)) == Word(0, ((high, 1),))
    assert terms.operate("INT_OR", word, word) == word


def test_what_wraps_around_is_not_taken_for_a_sum():
    terms = WordTerms(Questions())
    x = terms.known(unknown("x"))
    value = terms.value(Word(1, ((x, 1),)))
    assert not terms.questions.holds(value.equals(x + 1))
    terms.questions.assume(x < SPAN - 1)
    assert terms.questions.holds(value.equals(x + 1))


def test_a_bound_that_was_shown_in_a_scope_is_not_known_behind_it():
    terms = WordTerms(Questions(), (16,))
    x = terms.known(unknown("x"))
    word = Word(0, ((x, 1),))
    known = terms.bits_about([word], [])
    below = condition("bits less", terms.bits(word), condition("bits constant", 16))
    assert not terms.bits_follow(known, below)
    terms.enter()
    terms.questions.assume(x < 16)
    assert terms.bits_follow(known, below)
    asked = terms.questions.asked
    assert terms.bits_follow(known, below)
    assert terms.questions.asked == asked + 1
    terms.leave()
    assert not terms.bits_follow(known, below)


BOUNDS = (4, 9, 12)


@pytest.mark.covering
@pytest.mark.parametrize("low", [0, 3, 4, 5, 9, 12])
@pytest.mark.parametrize("high", [0, 3, 4, 8, 9, 11, 12, 200])
def test_the_bits_know_the_bounds_that_the_integers_show(low, high):
    """Asked for or not, as many follow as if each bound had been asked before."""
    terms = WordTerms(Questions(), BOUNDS)
    x = terms.known(unknown("x"))
    word = Word(0, ((x, 1),))
    terms.questions.assume(conjunction(x >= low, x <= high))
    known = terms.bits_about([word], [])
    for number in range(14):
        below = condition("bits less", terms.bits(word), condition("bits constant", number))
        is_below = low > high or any(high < bound <= number for bound in BOUNDS)
        is_above = low > high or number == 0 or any(number <= bound <= low for bound in BOUNDS)
        assert terms.bits_follow(known, below) is is_below
        assert terms.bits_follow(known, negation(below)) is is_above


def test_no_bound_is_asked_for_what_follows_without_it():
    terms = WordTerms(Questions(), BOUNDS)
    x = terms.known(unknown("x"))
    known = terms.bits_about([Word(0, ((x, 1),))], [])
    asked = terms.questions.asked
    below = condition("bits less", terms.bits(Word(0, ((x, 1),))), condition("bits constant", 9))
    assert terms.bits_follow(known.with_formulas([below]), below)
    assert terms.questions.asked == asked + 1


def test_the_bits_of_a_followed_unknown_see_through_leading_zeros_and_constants():
    terms = WordTerms(Questions())
    x, y = terms.known(unknown("x")), terms.known(unknown("y"))
    terms.follow(x)
    for node, is_seen in ((x, True), (y, False)):
        rounded = terms.operate("INT_AND", Word(11, ((node, 1),)), Word(SPAN - 8))
        zeros = terms.operate("LZCOUNT", rounded)
        one = condition("bits constant", 117)
        premise = condition("bits equal", terms.bits(Word(0, ((node, 1),))), one)
        formula = condition("bits equal", terms.bits(zeros), condition("bits constant", 24))
        assert terms.questions.bits_hold([premise], formula) is is_seen
        assert terms.is_followed(rounded) is is_seen
    opposite = terms.bits(Word(5, ((x, -1),)))
    premise = condition("bits equal", terms.bits(Word(0, ((x, 1),))), condition("bits constant", 7))
    assert terms.questions.bits_hold([premise], condition("bits equal", opposite, condition("bits constant", SPAN - 2)))
    assert not terms.is_followed(Word(0, ((x, 1), (y, 1))))


def test_below_a_mask_it_does_not_matter_whether_a_sum_wraps_around():
    terms = WordTerms(Questions())
    one, other = terms.known(unknown("one"), 127), terms.known(unknown("other"), 127)
    difference = Word(0, ((one, 1), (other, -1)))
    masked = terms.value(terms.operate("INT_AND", difference, Word(127)))
    terms.questions.assume(masked.equals(3))
    assert terms.questions.holds(disjunction((one - other).equals(3), (one - other).equals(3 - 128)))
    assert not terms.questions.holds((one - other).equals(3))
    assert not terms.questions.holds((one - other).equals(3 - 128))


def test_below_what_the_parts_are_multiples_of_constants_are_masked_and_united():
    terms = WordTerms(Questions())
    place = ((terms.known(unknown("place")), 4096),)
    word = Word(0x1018, place)
    assert terms.operate("INT_OR", word, Word(0x400)) == Word(0x1418, place)
    assert terms.operate("INT_AND", word, Word(SPAN - 32)) == Word(0x1000, place)
    beyond = terms.operate("INT_OR", word, Word(0x1400))
    assert beyond is not None
    assert beyond.parts != place
