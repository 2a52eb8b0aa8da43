"""What is chosen by conditions of which nothing is known, followed each way."""

from tests.analyzer.loops.one_loop import proof_of
from wcet_probe.analyzer.loops.choices import choices, chosen
from wcet_probe.analyzer.values.symbolic.locations import Location
from wcet_probe.analyzer.values.symbolic.terms import Terms

THUMB = "cortex-m4"


def symbols(terms, number=4):
    return [terms.symbol(("in", Location("register", 4 * at, 4)), 32) for at in range(number)]


def test_each_way_decides_all_choices_by_one_condition():
    terms = Terms()
    low, high, one, other = symbols(terms)
    condition = terms.apply("INT_LESS", (one, other), 8)
    following = terms.gamma(condition, low, high), terms.gamma(terms.negated(condition), low, high)
    ways = [*choices(terms, following, lambda _: True)]
    found = {tuple(chosen(terms, term, way) for term in following) for way in ways}
    assert found == {(low, high), (high, low)}


def test_a_choice_that_is_known_is_left_as_it_is():
    terms = Terms()
    low, high, one, other = symbols(terms)
    following = terms.gamma(terms.apply("INT_LESS", (one, other), 8), low, high)
    (way,) = choices(terms, [following], lambda _: False)
    assert chosen(terms, following, way) == following


def test_too_many_choices_are_not_followed():
    terms = Terms()
    low, high, *others = symbols(terms, number=9)
    following = [terms.gamma(terms.apply("INT_LESS", (low, one), 8), low, high) for one in others]
    assert len([*choices(terms, following[:4], lambda _: True)]) == 16
    assert not [*choices(terms, following, lambda _: True)]


def test_a_part_of_what_is_computed_is_chosen():
    terms = Terms()
    low, high, one, other = symbols(terms)
    condition = terms.apply("INT_LESS", (one, other), 8)
    whole = terms.apply("INT_MULT", (terms.gamma(condition, low, high), one), 32)
    found = {chosen(terms, whole, way) for way in choices(terms, [whole], lambda _: True)}
    assert found == {terms.apply("INT_MULT", (side, one), 32) for side in (low, high)}


def test_few_numbers_are_followed_whichever_half_is_gone_on_with():
    """As of a table of constant size, where the condition is what memory holds."""
    text = (
        "mov r2, r0\nmovs r0, #0\nmovs r1, #14\n1: adds r3, r0, r1\nasrs r3, r3, #1\nldr r12, [r2, r3, lsl #3]\n"
        "cmp r12, #8\nbeq 3f\nite gt\naddgt r1, r3, #-1\naddle r0, r3, #1\ncmp r1, r0\nbge 1b\n3: bx lr"
    )
    (loop,) = proof_of(THUMB, text).bound.loops
    assert (loop.max, loop.expression) == (4, "few values, each followed")
