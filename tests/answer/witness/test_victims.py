"""Witnesses where replacement leaves victims open: the extreme one of many choices, and how it is run again."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from tests.answer.witness.test_probe import request
from tests.evidence.packs import edited, failure, run, tampered
from tests.support import cache_config, images_dir
from wcet_probe.answer.witness import probe
from wcet_probe.answer.witness.probe import observe
from wcet_probe.answer.witness.victims import MOST_TRIED, extreme_victims, seeded, tried_of_each, victim_choices
from wcet_probe.catalog.lookup import load_allocator, load_target
from wcet_probe.errors import ContradictionError
from wcet_probe.evidence.packing import evidence_members
from wcet_probe.model.scenario import InitialCache
from wcet_probe.model.target import Replacement, Target, Victims

RANDOM = load_target("cortex-m7")


def cached(icache: Replacement, dcache: Replacement, ways: int = 4) -> Target:
    own = replace(cache_config(8, ways, 32, icache, seed=7), write_back=False)
    return replace(RANDOM, icache=own, dcache=cache_config(8, ways, 32, dcache, seed=2**32 - 1))


@pytest.mark.parametrize(
    ("icache", "dcache", "ways", "count"),
    [
        (Replacement.LRU, Replacement.PLRU, 4, 1),
        (Replacement.ROUND_ROBIN, Replacement.LRU, 4, 4),
        (Replacement.LRU, Replacement.ROUND_ROBIN, 8, 8),
        (Replacement.RANDOM, Replacement.ROUND_ROBIN, 4, MOST_TRIED),
        (Replacement.RANDOM, Replacement.RANDOM, 1, 1),
    ],
)
def test_as_many_choices_are_tried_as_the_policy_leaves_open(icache, dcache, ways, count):
    choices = victim_choices(cached(icache, dcache, ways))
    assert len(choices) == len(set(choices)) == count
    first = choices[0]
    assert first.icache_seed == (7 if icache.has_seed else None)
    assert first.dcache_seed == (2**32 - 1 if dcache.has_seed else None)
    assert all(seed is None or 0 <= seed < 2**32 for one in choices for seed in (one.icache_seed, one.dcache_seed))


def test_a_unified_cache_has_one_seed():
    target = load_target("e200z6")
    choices = victim_choices(target)
    assert [(one.icache_seed, one.dcache_seed) for one in choices] == [(None, way) for way in range(8)]
    given = seeded(target, choices[3])
    assert given.icache == given.dcache
    assert given.dcache.seed == 3


@pytest.mark.covering
@pytest.mark.parametrize("scenario", ["worst-free", "best-free"])
@pytest.mark.parametrize("target", ["cortex-m7", "arm926ej-s"])
def test_the_witness_is_the_extreme_one_of_what_was_tried(target, scenario, monkeypatch):
    """Fetches miss as often with each seed here, so that no two choices are put together."""
    tried = []

    def spy(target, found, *, is_fewest):
        tried.append([one.cycles for one in found.values()])
        assert len({one.icache.misses for one in found.values()}) == 1
        assert is_fewest is scenario.startswith("best")
        return extreme_victims(target, found, is_fewest=is_fewest)

    monkeypatch.setattr(probe, "extreme_victims", spy)
    found = observe(request(target, scenario, initial_cache=InitialCache.DIRTY, cross_check=True))
    pick = min if scenario.startswith("best") else max
    assert found.measurement.cycles == pick(map(pick, tried))
    assert max(map(len, tried)) == len(victim_choices(found.target)) == found.measurement.victims.tried
    assert found.measurement.cycles in {one.cycles for one in found.candidates}
    assert found.cross_check is not None


def test_a_free_of_tlsf_with_random_replacement_is_dearer_than_with_the_shipped_seed():
    """With that it takes 1,385 cycles."""
    found = observe(request("cortex-m7", "worst-free")).measurement
    assert found.cycles >= 1_691
    assert found.victims != victim_choices(RANDOM)[0]


def test_many_candidate_states_share_the_choices():
    assert [tried_of_each(states) for states in (1, 52, 64, 100, 1000)] == [64, 64, 64, 40, 16]


def test_states_are_ranked_with_all_victims():
    """With 19 of 64 seeds for each of 52 states another one seemed the dearest, which takes 3,103 cycles."""
    asked = request("cortex-m7", "worst-alloc")
    found = observe(replace(asked, allocator=load_allocator("dlmalloc28"), heap_bytes=4504)).measurement
    assert found.cycles >= 3_116


def test_each_cache_has_its_dearest_seed_though_they_belong_to_different_runs():
    report = observe(request("mpc603e"))
    target, one = report.target, report.measurement
    fill = target.memory.line_cycles(32)
    few = replace(one.icache, read_misses=one.icache.read_misses - 2)
    found = {
        Victims(1, 11): one,
        Victims(2, 12): replace(one, icache=few, cycles=one.cycles - 2 * fill + 30),
        Victims(3, 13): replace(one, icache=few, cycles=one.cycles - 2 * fill + 10),
    }
    assert extreme_victims(target, found, is_fewest=False) == Victims(1, 12, 3)
    assert extreme_victims(target, found, is_fewest=True) == Victims(2, 11, 3)


def test_what_a_warm_cache_holds_was_evicted_by_the_targets_own_seeds():
    found = observe(request("cortex-m7", "worst-free", initial_cache=InitialCache.WARM)).measurement
    assert found.victims == Victims(RANDOM.icache.seed, RANDOM.dcache.seed, 1)


def test_an_audit_runs_the_witness_with_the_recorded_victims():
    text = run("cortex-m7", "--scenario", "worst-free")
    members = evidence_members([("a.json", text)], images_dir())
    assert json.loads(text)["observed"]["victims"]["tried"] == MOST_TRIED
    assert failure(members) is None

    def other(document):
        document["observed"]["victims"]["dcache_seed"] += 1

    error = failure(tampered(members, "results/a.json", edited(other)))
    assert isinstance(error, ContradictionError)
    assert "the replay of the witness contradicts the result" in str(error)
