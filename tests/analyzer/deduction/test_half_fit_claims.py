"""Half-fit's claims: they contradict neither each other nor a heap with free blocks in a list and one in use."""

from tests.analyzer.deduction.half_fit_builds import geometry
from wcet_probe.analyzer.deduction.claims import Named, instances
from wcet_probe.analyzer.deduction.formulas import conjunction, equivalence, unknown
from wcet_probe.analyzer.deduction.half_fit_claims import (
    class_of,
    definitions,
    half_fit_claims,
    is_free_block,
    is_head,
    is_held,
    view_of,
)
from wcet_probe.analyzer.deduction.solver import Questions


def heap():
    """Two free blocks of one class, a held one, and the head of the list; the claims are assumed at all of them."""
    g, questions, view, named = geometry(), Questions(), view_of(""), Named({})
    own = half_fit_claims(g)
    young, old, held = (unknown(f"{name} block") for name in ("young", "old", "held"))
    head = g.heads + class_of(view.size(young))
    for claim in own:
        if not claim.kinds:
            questions.assume(claim.of(view))
    for one in (young, old, held, head, view.first, view.upper):
        for formula in (*definitions(view, one), *instances(own, view, named, "unit", one, made={})):
            questions.assume(formula)
        named = named.with_term("unit", one)
    questions.assume(conjunction(is_free_block(view, young), is_free_block(view, old), is_held(view, held)))
    questions.assume(conjunction(view.link(young).equals(old), view.link(head).equals(young)))
    return g, questions, view, (young, old, held, head)


def test_the_claims_allow_a_heap_with_everything():
    g, questions, view, (young, old, held, head) = heap()
    assert questions.is_possible()
    assert questions.holds(conjunction(young.differs(held), old.differs(held), is_head(g, head)))
    assert questions.holds(class_of(view.size(old)).equals(class_of(view.size(young))))
    assert questions.holds(view.filled(head - g.heads))
    assert not questions.holds(view.link(old).equals(head))


def test_blocks_in_a_list_are_no_ring_without_its_head():
    _, questions, view, (young, old, _, _) = heap()
    questions.assume(view.link(old).equals(young))
    assert questions.is_contradiction()


def test_each_claim_has_a_name_of_its_own():
    names = [claim.name for claim in half_fit_claims(geometry())]
    assert len(set(names)) == len(names) == 12


def test_a_claim_that_is_told_in_one_order_says_the_same_in_the_other():
    view, one, other = view_of(""), unknown("one"), unknown("other")
    (symmetric,) = (claim for claim in half_fit_claims(geometry()) if claim.is_symmetric)
    assert Questions().holds(equivalence(symmetric.of(view, one, other), symmetric.of(view, other, one)))
