"""CAMA's claims: they contradict neither each other nor a heap with something of everything."""

from tests.analyzer.deduction.cama_builds import geometry
from wcet_probe.analyzer.deduction import cama_views as cama
from wcet_probe.analyzer.deduction.cama_claims import claims, definitions, sets
from wcet_probe.analyzer.deduction.claims import Named, instances
from wcet_probe.analyzer.deduction.formulas import conjunction, equivalence, term, unknown
from wcet_probe.analyzer.deduction.solver import Questions


def test_the_claims_allow_a_heap_with_everything():
    """A spare place, a listed one, a used one, a held small block and a filed one: else all would follow."""
    g, questions, view = geometry(), Questions(), cama.view_of("")
    named = Named({})
    spare, listed, used = map(unknown, ("spare place", "listed place", "used place"))
    held, filed = unknown("held start"), unknown("filed start")
    terms = [("place", one) for one in (term(g.sentinel), spare, listed, used)]
    terms += [("start", held), ("start", filed), ("cell", cama.home(view, listed)), ("number", term(1))]
    for claim in claims(g):
        if not claim.kinds:
            questions.assume(claim.of(view))
    for kind, one in terms:
        for formula in (*definitions(g, view, kind, one), *instances(claims(g), view, named, kind, one, made={})):
            questions.assume(formula)
        named = named.with_term(kind, one)
    questions.assume(conjunction(cama.is_spare(view, spare), cama.is_listed(view, listed, g), view.held(held)))
    questions.assume(conjunction(cama.is_chained(view, used), view.free(used).equals(0)))
    questions.assume(conjunction(cama.is_small(view, held), cama.is_filed(view, filed)))
    assert not questions.is_contradiction()
    assert not questions.holds(spare.equals(view.spare))
    assert questions.holds(listed.differs(used))
    assert questions.holds(held.differs(filed))
    assert questions.holds(cama.is_reserved(spare, g))


def test_each_claim_has_a_name_of_its_own():
    names = [claim.name for claim in claims(geometry())]
    assert len(set(names)) == len(names) == 30


def test_a_claim_that_is_told_in_one_order_says_the_same_in_the_other():
    view, one, other = cama.view_of(""), unknown("one"), unknown("other")
    symmetric = [claim for claim in claims(geometry()) if claim.is_symmetric]
    assert [claim.name for claim in symmetric] == ["blocks-apart", "small-apart"]
    for claim in symmetric:
        assert Questions().holds(equivalence(claim.of(view, one, other), claim.of(view, other, one)))


def test_a_cell_tells_the_set_of_its_start():
    g, questions = geometry(), Questions()
    one, other, number = unknown("one"), unknown("other"), unknown("number")
    for start in (one, other):
        for formula in sets(g, start, number):
            questions.assume(formula)
    questions.assume(cama.cell(one, number).equals(cama.cell(other, number)))
    same = cama.set_of(one).equals(cama.set_of(other))
    assert not questions.holds(same)
    questions.assume(conjunction(number >= 0, number < 64))
    assert questions.holds(same)
    questions.assume(one.equals(4 * (128 * 7 + 5) + 3))
    assert questions.holds(cama.set_of(other).equals(5))
