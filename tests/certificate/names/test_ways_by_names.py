"""Edges that names exclude: two places that hold one value are not found to differ, whatever the value is.

Tests: certificate.names.symbols, certificate.caches.misses.
"""

from dataclasses import replace

import pytest

from tests.analyzer.ipet.hand_made import TARGET, at_entries, covered, graph_of
from wcet_probe.analyzer.ipet.annotated import find_caches
from wcet_probe.analyzer.ipet.numbering import Numbering
from wcet_probe.certificate.caches.annotations import Annotations
from wcet_probe.certificate.caches.misses import Needed, caches_of
from wcet_probe.certificate.kernel.coverage import Said, cover
from wcet_probe.certificate.names.names import Pointers
from wcet_probe.certificate.names.symbols import Tracer
from wcet_probe.certificate.values.numbers import TOP, Value
from wcet_probe.errors import VerificationError

TEXT = """
    {first}
    cmp r0, #7
    beq 1f
    {between}
1:  cmp r2, r1
    bne 2f
    ldr r3, [r1]
    bx lr
2:  ldr r3, [r2]
3:  ldr r0, [r3]
    bx lr
"""
NODES = {"f": 0, "between": 6, "again": 8, "equal": 12, "differ": 16, "behind": 18}
EDGES = (("f", "between"), ("f", "again"), ("between", "again"), ("again", "equal"), ("again", "differ"))
EDGES += (("differ", "behind"),)


def made(first, between):
    """What the checker is given of a graph, its names, and what it makes of them."""
    code, graph = graph_of(TEXT.format(first=first, between=between), NODES, EDGES, ["equal", "behind"])
    checked = code, graph, *covered(code, graph)
    names = Numbering(*checked, Pointers(), with_sums=False).run()
    return checked, names, caches_of(TARGET, graph, checked[-1], Tracer(*checked, names), lambda _: True)


def test_a_way_on_which_a_value_differs_from_itself_is_not_taken():
    checked, names, caches = made("mov r2, r1", "mov r4, r1")
    taken = checked[-1].taken
    assert {"again>differ", "differ>behind"} <= taken.keys()
    assert taken.keys() - caches.passages.keys() == {"again>differ", "differ>behind"}
    assert set(caches.parts) == set(NODES) - {"differ", "behind"}
    for node in ("differ", "behind"):
        assert caches.needed(node, Annotations(names)) == Needed()
        assert all(side.steps[node] == () for side in caches.sides)
        assert not names.claims[node]
    assert caches.needed("equal", Annotations(names)) != Needed()


@pytest.mark.parametrize("between", ["mov r2, r4", "adds r2, #1"])
def test_where_the_values_may_differ_it_is(between):
    checked, _, caches = made("mov r2, r1", between)
    assert checked[-1].taken.keys() == caches.passages.keys()


@pytest.mark.parametrize("between", ["mov r2, r4", "adds r2, #1"])
def test_a_name_that_the_value_does_not_have_on_each_way_is_refused(between):
    """By the names of the program in which both are one value, that way would not be taken."""
    checked, _, _ = made("mov r2, r1", between)
    _, forged, _ = made("mov r2, r1", "mov r4, r1")
    with pytest.raises(VerificationError, match="r2 at again"):
        caches_of(TARGET, checked[1], checked[-1], Tracer(*checked, forged), lambda _: True)


def test_what_is_shown_is_not_asked_of_ways_that_names_exclude():
    checked, _, _ = made("mov r2, r1", "mov r4, r1")
    code, graph, invariants, coverage = checked
    told = {"target": TARGET, "asserted": Pointers(), "crosses_no_line": lambda _: True}
    for names, caches in find_caches(code, graph, invariants, coverage, **told):
        assert "again>differ" not in caches.passages
        assert not names.shown.get("differ")


def test_names_that_hold_nowhere_else_are_not_looked_at():
    """Nothing is claimed of a run by what is said of a node that control does not come to."""
    checked, names, caches = made("mov r2, r1", "mov r4, r1")
    claims = {**names.claims, "behind": names.claims["equal"]}
    again = caches_of(TARGET, checked[1], checked[-1], Tracer(*checked, replace(names, claims=claims)), lambda _: True)
    assert again.passages.keys() == caches.passages.keys()


RETURNING = """
    push {r4, r5, r6}
    ldr r5, [r1]
    cmp r0, #7
    it eq
    popeq {r4, r5, pc}
    ldr r0, [r5]
    pop {r4, r5, pc}
"""


def test_what_a_conditional_return_would_load_does_not_take_the_names_of_who_goes_on():
    """Its address has a name, as a number has that was loaded: it was taken for a jump, to where nobody knows."""
    code, graph = graph_of(RETURNING, {"f": 0, "on": 10}, (("f", "on"),), ["f", "on"])
    invariants = at_entries(code, graph)
    invariants["on"] |= {"r13": Value("stack", -12, -12, 0)} | dict.fromkeys((-12, -8, -4), TOP)
    checked = code, graph, invariants, cover(code, graph, Said(invariants), {})
    names = Numbering(*checked, Pointers(), with_sums=False).run()
    assert {"r5", -12, -8, -4} <= names.claims["on"].keys()
