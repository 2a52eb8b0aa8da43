"""What facts do to a bound is told: with which of them, without which, and which have no effect."""

from __future__ import annotations

import pytest

from tests.support import images_dir, tlsf
from wcet_probe.analyzer.bound import prove
from wcet_probe.answer.bounds.proving import operation_request
from wcet_probe.answer.facts.fact_effects import Units, fact_effects
from wcet_probe.build.program import load_program
from wcet_probe.catalog.lookup import load_allocator, load_target


def asked(name: str, role: str):
    allocator = tlsf() if name == "tlsf" else load_allocator(name, {})
    return operation_request(load_program(allocator, load_target("mpc603e"), "zig", images_dir()), role, 1 << 16)


def effects(name: str, role: str, *, each: bool = False):
    request = asked(name, role)
    bound = prove(request)
    return request, bound, fact_effects(request, Units(bound.instructions, bound.cycles), each=each)


def test_a_loop_fact_without_which_there_is_no_bound():
    request, bound, found = effects("first-fit", "malloc", each=True)
    assert found.all == Units(bound.instructions, bound.cycles)
    assert found.no_facts is None
    assert found.loop_facts_only is not None
    assert found.loop_facts_only.instructions == bound.instructions
    assert found.loop_facts_only.cycles > bound.cycles
    by_kind = {one.kind: one for one in found.facts}
    assert set(by_kind) == {"loop", "pointer"}
    assert by_kind["loop"].without is None
    assert by_kind["pointer"].without == found.loop_facts_only
    told = (*request.facts.loops, *request.facts.pointers)
    assert {one.where for one in found.facts} == {fact.where for fact in told}


def test_effects_of_each_are_told_on_demand_only():
    _, bound, found = effects("tlsf", "malloc")
    assert found.facts is None
    assert found.no_facts is not None
    assert found.no_facts.instructions == bound.instructions


@pytest.mark.parametrize(
    ("name", "role"), [pytest.param("quick-fit", "free", marks=pytest.mark.slow), ("kingsley", "malloc")]
)
def test_no_bound_with_fewer_facts_is_smaller(name, role):
    _, _, found = effects(name, role, each=True)
    for one in found.facts:
        if one.without:
            assert one.without.instructions >= found.all.instructions
            assert one.without.cycles >= found.all.cycles
