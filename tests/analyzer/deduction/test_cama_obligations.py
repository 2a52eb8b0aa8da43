"""What is asked of an operation of CAMA while it is under way is kept, and claims that do not change are not asked."""

from tests.analyzer.deduction.cama_builds import geometry
from wcet_probe.analyzer.deduction import cama_views as cama
from wcet_probe.analyzer.deduction.cama_obligations import Deduction
from wcet_probe.analyzer.deduction.formulas import FALSE, TRUE


def test_what_was_asked_of_what_the_caller_writes_is_kept_shown_or_not():
    run = Deduction(geometry(), cama.view_of(" before"), begins=False)
    run.end_way(None, [("this", TRUE), ("that", FALSE)])
    found = run.deduced("caller")
    assert (found.ways, found.shown) == (0, 1)
    assert found.open_by_name == {"that": (0,)}


def test_a_view_that_has_not_changed_keeps_all_claims():
    view = cama.view_of(" before")
    run = Deduction(geometry(), view, begins=False)
    asked = run.terms.questions.asked
    run.ask_claims(run.memory, view, None)
    run.end_way(None, ())
    assert (len(run.deduced("caller").obligations), run.deduced("caller").open) == (30, ())
    assert run.terms.questions.asked == asked
