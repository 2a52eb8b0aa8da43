"""One answer from end to end: what is refused, what is proved, what agrees, what is the same twice."""

from __future__ import annotations

import os
from dataclasses import replace
from itertools import cycle
from pathlib import Path

import pytest

from tests.support import CHOICES, DEFAULTS, TARGETS, cache_config, images_dir, tlsf
from wcet_probe.answer.witness import cross_check as second_engine
from wcet_probe.answer.witness.probe import ProbeRequest, observe
from wcet_probe.build import compilation as build
from wcet_probe.catalog.lookup import load_target
from wcet_probe.emu.cache import CacheSimulation
from wcet_probe.errors import BuildError, ContradictionError, StateError, UsageError
from wcet_probe.model.report import Verdict
from wcet_probe.model.scenario import InitialCache
from wcet_probe.model.target import Replacement, Target
from wcet_probe.scenarios.lookup import scenario_names

SCENARIOS = scenario_names("tlsf")
MIB = 1 << 20


def request(target: Target | str = "cortex-m4", scenario: str = "worst-alloc", **changes) -> ProbeRequest:
    asked = ProbeRequest(
        allocator=tlsf(),
        target=load_target(target) if isinstance(target, str) else target,
        scenario=scenario,
        heap_bytes=64 << 10,
        seed=1,
        initial_cache=None,
        compiler="zig",
        cross_check=False,
        cache_dir=images_dir(),
    )
    return replace(asked, **changes)


# ------------------------------------------------------------------------------------------------------ what is refused

BAD_HEAPS = [
    (0, "a heap of 0 bytes is too small for tlsf; give at least 24."),
    (16, "a heap of 16 bytes is too small for tlsf; give at least 24."),
    (23, "a heap of 23 bytes is too small for tlsf; give at least 24."),
    (4100, "a heap of 4100 bytes is no multiple of the alignment of tlsf, 8 bytes; give 4096 or 4104."),
    (MIB + 1, "a heap of 1048577 bytes is no multiple of the alignment of tlsf, 8 bytes; give 1048576 or 1048584."),
]


@pytest.mark.parametrize(("heap_bytes", "sentence"), BAD_HEAPS)
@pytest.mark.parametrize("target", TARGETS)
def test_a_bad_heap_is_refused_before_anything_is_built(target, heap_bytes, sentence, tmp_path):
    with pytest.raises(UsageError) as caught:
        observe(request(target, heap_bytes=heap_bytes, cache_dir=tmp_path))
    assert str(caught.value) == sentence
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("heap_bytes", [24, 32, 400])
def test_a_heap_without_room_for_the_state_is_refused_before_anything_is_built(heap_bytes, tmp_path):
    with pytest.raises(UsageError, match=rf"a heap of {heap_bytes} bytes .*; give .*--heap"):
        observe(request(heap_bytes=heap_bytes, cache_dir=tmp_path))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("heap_bytes", [(1 << 28) + 8, 1 << 30])
def test_a_heap_that_the_allocator_or_the_memory_cannot_hold(target, heap_bytes):
    with pytest.raises(UsageError, match=rf"a heap of {heap_bytes} bytes|refused a heap of {heap_bytes} bytes"):
        observe(request(target, "best-alloc", heap_bytes=heap_bytes))


def test_an_unknown_scenario_is_refused_with_the_nearest(tmp_path):
    with pytest.raises(UsageError, match="unknown scenario of tlsf 'worst-aloc': did you mean 'worst-alloc'"):
        observe(request(scenario="worst-aloc", cache_dir=tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_a_missing_compiler():
    with pytest.raises(BuildError, match="compiler 'nowhere-gcc' was not found"):
        observe(request(compiler="nowhere-gcc"))


def test_a_broken_source_is_named(tmp_path):
    sources = {name: text + "#error broken\n" * (name == "tlsf.c") for name, text in tlsf().sources}
    broken = replace(tlsf(), sources=tuple(sources.items()))
    with pytest.raises(BuildError, match=r"failed on tlsf\.c: .*broken"):
        observe(request(allocator=broken, cache_dir=tmp_path))


def test_a_full_cache_leaves_nothing_half_written(tmp_path, monkeypatch):
    def full(*_: object) -> None:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(BuildError, match="No space left on device"):
        observe(request(cache_dir=tmp_path))
    assert [path.name for path in tmp_path.rglob("*")] == ["images"]


# ---------------------------------------------------------------------------------------------------- the second engine


@pytest.mark.covering(1)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize("initial", [None, *InitialCache])
def test_the_second_engine_agrees(target, scenario, initial):
    found = observe(request(target, scenario, initial_cache=initial, cross_check=True))
    check, witness = found.cross_check, found.measurement
    assert check is not None
    assert (check.instructions, check.loads, check.stores) == (witness.instructions, witness.loads, witness.stores)
    compared = found.initial_cache is not InitialCache.WARM
    for cache, counts, misses in (
        (found.target.icache, witness.icache, check.icache_misses),
        (found.target.dcache, witness.dcache, check.dcache_misses),
    ):
        assert misses == (counts.misses if cache and compared else None)
    assert found.verdict is Verdict.OBSERVED


@pytest.mark.covering  # the caches are the same on each core
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("build", list(zip(cycle(CHOICES), Replacement, strict=False)))
def test_the_second_engine_agrees_on_all_builds_and_policies(target, build):
    values, replacement = build
    cached = replace(
        load_target(target),
        icache=replace(cache_config(8, 2, 16, replacement, seed=3), write_back=False),
        dcache=cache_config(4, 2, 16, replacement, seed=4, write_allocate=values["bit-search"] == 0),
    )
    for scenario in ("worst-alloc", "worst-free"):
        assert observe(
            request(cached, scenario, allocator=tlsf(values), heap_bytes=65536, cross_check=True)
        ).cross_check


def test_a_second_engine_that_counts_otherwise_is_a_contradiction(monkeypatch):
    honest = second_engine.interpret_call

    def one_more(*arguments, **named):
        done = honest(*arguments, **named)
        return replace(done, path=(*done.path, done.path[-1]))

    monkeypatch.setattr(second_engine, "interpret_call", one_more)
    with pytest.raises(ContradictionError, match=r"the two engines disagree about tlsf_malloc: .*112.*113"):
        observe(request(cross_check=True))


@pytest.mark.parametrize("target", ["arm926ej-s", "mpc603e"])
@pytest.mark.parametrize("lie", ["result", "store", "cache"])
def test_every_difference_is_a_contradiction(target, lie, monkeypatch):
    honest = second_engine.interpret_call

    def lying(*arguments, **named):
        done = honest(*arguments, **named)
        if lie == "result":
            return replace(done, result=done.result ^ 8)
        return replace(done, accesses=done.accesses[:-1])

    if lie == "cache":
        monkeypatch.setattr(CacheSimulation, "misses", property(lambda simulation: simulation.read_misses))
    else:
        monkeypatch.setattr(second_engine, "interpret_call", lying)
    with pytest.raises(ContradictionError):
        observe(request(target, cross_check=True))


# ---------------------------------------------------------------------------------------------------- the state, proved


def test_an_allocator_that_breaks_its_heap_is_noticed():
    broken = dict(tlsf().sources)
    assert "head->prev_free = block;" in broken["tlsf.c"]
    broken["tlsf.c"] = broken["tlsf.c"].replace("head->prev_free = block;", "")
    allocator = replace(tlsf(), sources=tuple(broken.items()))
    with pytest.raises(StateError, match=r"broke heap invariant|was not reached"):
        observe(request(scenario="best-alloc", allocator=allocator))


def test_an_allocator_that_refuses_is_noticed():
    lazy = dict(tlsf().sources)
    head = "void *tlsf_malloc(size_t bytes)\n{"
    lazy["tlsf.c"] = lazy["tlsf.c"].replace(head, f"{head} return 0;")
    with pytest.raises(StateError, match=r"refused \d+ allocation|was not reached|was refused"):
        observe(request(scenario="best-alloc", allocator=replace(tlsf(), sources=tuple(lazy.items()))))


# --------------------------------------------------------------------------------------------------------- determinism


@pytest.mark.covering
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_two_answers_are_equal(target, scenario):
    asked = request(target, scenario, heap_bytes=65536, cross_check=True)
    assert observe(asked) == observe(asked)


def test_an_answer_does_not_depend_on_where_it_was_built(tmp_path):
    one, other = (observe(request(cache_dir=tmp_path / name)) for name in ("a", "another folder"))
    assert one == other
    assert os.fsencode(tmp_path) not in one.image.elf


def test_an_image_is_used_again(tmp_path, monkeypatch):
    first = observe(request(cache_dir=tmp_path))
    files = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}

    def refuse(*_: object) -> None:
        raise AssertionError("the compiler was called")

    monkeypatch.setattr(build, "_call", refuse)
    assert observe(request(cache_dir=tmp_path)) == first
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == files


def test_the_answer_says_what_was_asked():
    asked = request("arm926ej-s", "worst-free", heap_bytes=65536, initial_cache=InitialCache.COLD)
    told: list[str] = []
    found = observe(asked, told.append)
    assert (found.allocator, found.target, found.heap_bytes) == (asked.allocator, asked.target, 65536)
    assert found.initial_cache is InitialCache.COLD
    assert found.plan.scenario == "worst-free"
    assert found.cross_check is None
    assert found.image.compiler
    assert len(told) == 1 + len(found.candidates)
    assert dict(found.allocator.values) == {**DEFAULTS, "small-limit": 0, "tells-previous": 0}


@pytest.mark.parametrize("target", TARGETS)
def test_initial_caches_order_the_cycles(target):
    """Warm caches cannot be slower than cold ones under LRU, nor cold ones slower than dirty ones."""
    lru = load_target(target)
    if lru.dcache and lru.icache:
        lru = replace(
            lru,
            icache=replace(lru.icache, replacement=Replacement.LRU),
            dcache=replace(lru.dcache, replacement=Replacement.LRU),
        )
    order = (InitialCache.WARM, InitialCache.COLD, InitialCache.DIRTY)
    cycles = [observe(request(lru, initial_cache=initial)).measurement.cycles for initial in order]
    assert cycles == sorted(cycles)
    assert (cycles[0] < cycles[1] < cycles[2]) == (lru.dcache is not None)
