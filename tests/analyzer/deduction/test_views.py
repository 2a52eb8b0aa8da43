"""Views of memory: functions that change at one place only, and share nothing with those of another name."""

from wcet_probe.analyzer.deduction.formulas import TRUE, term, unknown
from wcet_probe.analyzer.deduction.solver import Questions
from wcet_probe.analyzer.deduction.views import changed, constant, unknown_maps, unknown_scalars

X, Y = unknown("x"), unknown("y")


def test_a_function_changes_at_its_argument_only():
    view = unknown_maps(("left",), (), " one")
    left = changed(view["left"], X, term(7))
    questions = Questions()
    assert questions.holds(left(X).equals(7))
    assert not questions.holds(left(Y).equals(view["left"](Y)))
    questions.assume(X.differs(Y))
    assert questions.holds(left(Y).equals(view["left"](Y)))


def test_what_is_told_apart_by_its_name_shares_nothing():
    one, other = (unknown_maps(("left", "held"), ("held",), suffix) for suffix in (" one", " other"))
    assert one["left"](X) is not other["left"](X)
    assert (one["left"](X).sort, one["held"](X).sort) == ("int", "bool")
    assert unknown_scalars(("top",), " one") != unknown_scalars(("top",), " other")
    assert constant(TRUE)(X) is TRUE
