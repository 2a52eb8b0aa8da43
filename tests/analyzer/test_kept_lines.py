"""Calls that are not expanded where caches keep all lines: each misses once, and no run is above the bound."""

from __future__ import annotations

import random
from dataclasses import replace
from types import SimpleNamespace

import pytest

from tests.analyzer.test_call_summaries import _summarised as _summarised  # noqa: PLC0414  a fixture
from tests.analyzer.test_call_summaries import bound_of, chain
from tests.random_programs import arguments, source
from tests.support import cache_config, guest_of
from wcet_probe.analyzer.dcache.footprints import ANYWHERE, DataFootprint, KeptLines
from wcet_probe.analyzer.kept_lines import Footprint, kept_misses, kept_of, with_callees
from wcet_probe.analyzer.values.states.bases import Base
from wcet_probe.catalog.lookup import load_target
from wcet_probe.errors import AnalysisError, EmulationError
from wcet_probe.model.scenario import InitialCache
from wcet_probe.model.target import Replacement

CODE = frozenset(range(10))
DATA = DataFootprint(frozenset({1, 2}), (-32, 0))
LARGE, TINY = (64, 4), (4, 2)


def cached(guest, geometry, policy="lru", *, allocates=True):
    """``guest`` with both caches of one geometry."""
    config = cache_config(*geometry, 32, Replacement(policy), write_allocate=allocates)
    return replace(guest, target=replace(guest.target, icache=config, dcache=config))


@pytest.mark.usefixtures("summarised")
def test_misses_do_not_grow_with_the_calls_where_all_lines_are_kept():
    guest = cached(guest_of(chain(3), load_target("mpc603e"), ".c"), LARGE)
    proved = bound_of(guest, "f3")
    assert proved.summarised
    with guest.machine() as machine:
        run = machine.measure("f3", (7,), InitialCache.DIRTY)
    assert run.cycles <= proved.cycles <= 1.1 * run.cycles
    small = bound_of(cached(guest, TINY), "f3")
    assert small.cycles > 2 * proved.cycles


@pytest.mark.covering(0)
@pytest.mark.parametrize("policy", ["lru", "fifo", "plru", "random", "round-robin"])
@pytest.mark.parametrize("geometry", [LARGE, (16, 2), TINY])
@pytest.mark.usefixtures("summarised")
def test_no_run_is_above_its_bound(geometry, policy):
    draw, summarised = random.Random(policy), 0
    for seed in range(2):
        guest = cached(guest_of(source(seed, 4), load_target("mpc603e"), ".c"), geometry, policy, allocates=seed == 0)
        for number in range(4):
            try:
                proved = bound_of(guest, f"f{number}")
            except AnalysisError:
                continue
            summarised += bool(proved.summarised)
            if proved.instructions > 20_000:
                continue
            with guest.machine(most_instructions=100_000) as machine:
                for words in (arguments(draw), arguments(draw)):
                    for start in InitialCache:
                        try:
                            run = machine.measure(f"f{number}", words, start)
                        except EmulationError:
                            continue  # it does not return
                        assert run.cycles <= proved.cycles, (seed, number, words, start, policy, geometry)
    assert summarised


STRAY = """
unsigned far[1024];
__attribute__((noinline)) void g(unsigned *p) { *p += 3; }
void f(unsigned *p) { volatile unsigned own = 0; for (int i = 0; i < 20; i++) { g(p); own++; } }
"""
"""The callee misses once in each call, and the caller's line misses again if the callee evicts it."""


@pytest.mark.parametrize("target", ["mpc603e", "arm926ej-s"])
@pytest.mark.usefixtures("summarised")
def test_a_callee_pays_for_lines_of_its_caller_that_it_may_evict(target):
    guest = guest_of(STRAY, load_target(target), ".c")
    caches = {"icache": cache_config(64, 4, 32), "dcache": cache_config(64, 1, 32)}
    guest = replace(guest, target=replace(guest.target, **caches))
    proved, far = bound_of(guest, "f"), guest.address("far")
    assert proved.summarised
    with guest.machine() as machine:
        runs = [machine.measure("f", (far + at,), InitialCache.DIRTY).cycles for at in range(0, 64 * 32, 32)]
    assert 4 * min(runs) < max(runs) <= proved.cycles


def test_lines_of_code_are_kept_in_the_sets_that_have_no_more_than_ways():
    target = SimpleNamespace(
        unified_cache=False, icache=cache_config(4, 2, 32), dcache=cache_config(64, 4, 32), memory=None
    )
    kept = kept_of(Footprint(CODE, DATA), target)
    assert kept.code == frozenset({2, 3, 6, 7})
    assert kept.data == KeptLines(4, 2, 3)
    assert kept_of(Footprint(frozenset({0, 4, 8}), ANYWHERE), target) is None
    large = Footprint(
        CODE,
        DataFootprint(frozenset(range(320)), (-32, 0)),
        frozenset({(0, 4)}),
        {(0, 8): ((Base.NUMBER, 0, 4),), (0, 12): ((Base.STACK, -4, 0),)},
    )
    kept_on_stack = kept_of(large, target)
    assert (kept_on_stack.data, kept_on_stack.is_stack_only) == (KeptLines(2, 1, 4), True)
    assert large.strays_of(kept_on_stack) == {(0, 4), (0, 8)}
    assert large.strays_of(kept) == large.strays
    assert large.has_strays(kept_on_stack)
    assert not large.has_strays(kept)
    assert replace(large, data=DATA._replace(has_strays=True)).has_strays(kept)
    assert kept_of(None, target) is None
    target.unified_cache = True
    assert kept_of(Footprint(CODE, DATA), target) is None


def test_callees_are_where_their_stack_pointers_are():
    own = Footprint(frozenset({1}), DataFootprint(frozenset(), (-16, 0)), frozenset({(0, 4)}))
    found = with_callees(own, [(Footprint(CODE, DATA), -64), (Footprint(CODE, DATA), -16)])
    assert found == Footprint(CODE, DataFootprint(frozenset({1, 2}), (-96, 0)), frozenset({(0, 4)}))
    assert with_callees(own, [(Footprint(CODE, DATA), None)]).data == ANYWHERE
    assert with_callees(own, [(None, -64)]) is None


def test_each_line_that_is_kept_costs_a_fill_and_data_a_write_back():
    target = load_target("mpc603e")
    kept = kept_of(Footprint(CODE, DATA), target)
    assert [(one.cost, limit.constant) for one, limit in kept_misses(kept, target)] == [(33, 10), (66, 4)]
