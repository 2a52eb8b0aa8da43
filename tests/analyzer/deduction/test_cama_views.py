"""Views of memory: functions that change at one place only, and what is said by them."""

from tests.analyzer.deduction.cama_builds import geometry
from wcet_probe.analyzer.deduction import cama_views as cama
from wcet_probe.analyzer.deduction.formulas import conjunction, term, unknown
from wcet_probe.analyzer.deduction.solver import Questions

X, Y = unknown("x"), unknown("y")


def test_views_of_different_names_share_nothing_but_rigid_functions():
    one, other = cama.view_of(" one"), cama.view_of(" other")
    assert one.left(X) is not other.left(X)
    assert one.top is not other.top


def test_a_place_is_spare_or_chained_and_never_both():
    view, questions = cama.view_of(""), Questions()
    both = conjunction(cama.is_spare(view, X), cama.is_chained(view, X))
    questions.assume(both)
    assert questions.is_contradiction()
    assert view.number(X).sort == "int"
    assert view.held(X).sort == "bool"


def test_a_block_of_the_word_before_a_place_is_apart_from_it():
    """The block's header is the word before its start: [start - 4, start + size - 4)."""
    questions = Questions()
    blocks = [(start, size) for start in range(1, 14) for size in range(1, 4)]
    for start, size in blocks:
        first, end = 8 * start - 4, 8 * (start + size) - 4
        is_apart = end <= 32 * 1 or first >= 32 * 2
        formula = cama.apart_from_places(term(start), term(size), term(1), term(2))
        assert questions.holds(formula) == is_apart
    assert not questions.holds(cama.is_reserved(X, geometry()))
