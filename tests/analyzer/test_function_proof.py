"""A function is prepared by itself, and a callee that is not expanded costs its callers what it is proved to cost."""

import pytest

from tests.support import assembler, guest_of
from wcet_probe.analyzer.bound import prepare, prove
from wcet_probe.analyzer.call_summaries import LostStackPointerError
from wcet_probe.analyzer.facts.language import Facts
from wcet_probe.analyzer.function_proof import callee_summary
from wcet_probe.analyzer.graph import supergraph
from wcet_probe.analyzer.request import BoundRequest
from wcet_probe.catalog.lookup import load_target

BODIES = {
    "f": "push {r4, lr}\nbl g\nmovs r0, #7\nbl g\npop {r4, pc}",
    "g": "cmp r0, #3\nbls 1f\nmuls r0, r0, r0\nadds r0, #1\n1: bx lr",
}


@pytest.fixture(name="guest")
def _guest():
    target = load_target("cortex-m4")
    return guest_of(assembler(BODIES, target), target)


def request(guest, entry):
    parts = guest.image, guest.target, guest.instructions, guest.costs
    return BoundRequest(*parts, entry, Facts(), {}, {}, summaries=True)


def summarised(guest, monkeypatch):
    called = frozenset({guest.image.symbols["g"].address & ~1})
    monkeypatch.setattr(supergraph, "to_summarise", lambda _, entry, *__: called - {entry})
    prepared = prepare(request(guest, "f"))
    return prepared.calls.of(prepared.values)


def test_a_callee_costs_what_is_proved_of_it_as_an_entry(guest, monkeypatch):
    alone = prove(request(guest, "g"))
    summaries = summarised(guest, monkeypatch)
    assert summaries
    for one in summaries.values():
        assert one.most == {"instructions": alone.instructions, "cycles": alone.cycles}
        assert not one.open_loops


def test_a_callee_whose_stack_pointer_may_be_unaligned_has_no_summary(guest, monkeypatch):
    (key, *_) = summarised(guest, monkeypatch)
    with pytest.raises(LostStackPointerError, match="may be no multiple of 8"):
        callee_summary(None, key._replace(is_aligned=False), print)
