"""What is told of the result of a value analysis: edges by their ends, orders, and the bindings that edges kill."""

import pytest

from tests.analyzer.small_functions import POWERPC, THUMB, of_text
from wcet_probe.analyzer.graph.supergraph import EXIT
from wcet_probe.analyzer.values.states.joins import live_symbols

LOOPS = {
    "thumb": (THUMB, "1: ldr r2, [r1]\nadd r3, r2\nadds r1, #4\nsubs r0, #1\nbne 1b\nmov r0, r3\nbx lr"),
    "powerpc": (POWERPC, "1: lwz 5, 0(4)\nadd 6, 6, 5\naddi 4, 4, 4\naddic. 3, 3, -1\nbne 1b\nmr 3, 6\nblr"),
}


@pytest.fixture(params=LOOPS)
def values(request):
    target, text = LOOPS[request.param]
    return of_text(text, target)[1]


def test_each_edge_leaves_one_point_and_arrives_at_one(values):
    for ends, found in (("source", values.leaving), ("target", values.arriving)):
        listed = [(point, edge) for point, edges in found.items() for edge in edges]
        assert all(getattr(edge, ends) == point for point, edge in listed)
        assert sorted(edge for _, edge in listed) == sorted(values.edges)


def test_the_order_has_what_is_reached_without_the_exit(values):
    edges = {edge for edges in values.order.outgoing.values() for edge in edges}
    assert edges == {edge for edge in values.edges if edge.target != EXIT}
    assert set(values.order.outgoing) == set(values.states)
    assert set(values.within(values.states.keys())) == edges


def test_what_an_edge_kills_is_spoken_of_behind_it_and_not_by_it(values):
    assert any(values.killed.values())  # the word that was loaded in the round before
    for edge, killed in values.killed.items():
        assert killed.isdisjoint(live_symbols(values.edges[edge].state))
        assert edge.target == EXIT or killed <= live_symbols(values.states[edge.target])
