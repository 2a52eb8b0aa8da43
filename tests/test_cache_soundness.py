"""Bounds in cycles with tiny data caches of all policies: no run, from any content of the cache, may exceed one.

Memory is made so slow that nothing but misses, write-backs and single accesses counts. Values do not depend on the
cache, so that a function is analysed once for all caches.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import pytest

from tests.kernel_suite import KERNELS, SOURCES, Kernel
from tests.kernel_suite import guest as kernel_guest
from tests.random_programs import arguments, source
from tests.support import Guest, assembler, guest_of, images_dir
from tests.test_bounds import NAMES, accepted_heap, allocator, program, workload
from wcet_probe.analyzer.bound import BoundRequest, Prepared, prepare
from wcet_probe.analyzer.data_misses import data_misses
from wcet_probe.analyzer.facts import Facts, parse_facts
from wcet_probe.analyzer.memory_facts import PointerFacts, Pointers
from wcet_probe.cache_option import apply_cache_option
from wcet_probe.catalog import load_target
from wcet_probe.emu.machine import Machine
from wcet_probe.errors import AnalysisError
from wcet_probe.model import InitialCache, Target
from wcet_probe.probe import ProbeRequest, observe
from wcet_probe.toolchain import PACKAGED

TARGETS = ("mpc603e", "arm926ej-s")
POLICIES = ("lru", "fifo", "plru", "random")
NOTHING_TOLD = PointerFacts(Pointers(), {})
SLOW_CYCLES = 1000
FUNCTIONS = 12
LONGEST = 20_000
"""Bounds in instructions above it are not held against runs that hang."""


def with_cache(target: Target, spec: str) -> Target:
    """``target`` with slow memory, and no cache but that of data."""
    memory = replace(
        target.memory, first_beat_cycles=replace(target.memory.first_beat_cycles, value=SLOW_CYCLES), regions=()
    )
    return replace(apply_cache_option(replace(target, memory=memory), spec), icache=None)


def any_cache(draw: random.Random) -> str:
    """A tiny cache."""
    sets, ways, line = draw.choice((2, 2, 4, 8)), draw.choice((1, 2, 2, 4)), draw.choice((16, 16, 32))
    policy, write, allocate = draw.choice(POLICIES), draw.choice(("back", "through")), draw.choice(("yes", "no"))
    return f"d:sets={sets},ways={ways},line={line},policy={policy},write={write},allocate={allocate}"


@dataclass(frozen=True)
class Analysed:
    """A function whose values are known."""

    guest: Guest
    entry: str
    prepared: Prepared

    def bound(self, target: Target, pointers: PointerFacts = NOTHING_TOLD) -> int:
        """Cycles with the cache of ``target``."""
        request = replace(self.prepared.request, target=target)
        data = data_misses(self.prepared.values, target, pointers)
        stage = replace(self.prepared, request=request, data=data).bounded({})
        return stage.solved("cycles").solution.certified

    def machine(self, target: Target) -> Machine:
        return replace(self.guest, target=target).machine()


def analysed(guest: Guest, entry: str, facts: Facts | None = None) -> Analysed:
    request = BoundRequest(
        guest.image, guest.target, guest.instructions, guest.costs, entry, facts or Facts(), SOURCES, {}
    )
    return Analysed(guest, entry, prepare(request))


def check(one: Analysed, spec: str, runs: Sequence[tuple[int, ...]], others: Sequence[str] = ()) -> int:
    """Runs of ``one``, each from a cold cache, a dirty one, what the one before left, and what another one left."""
    target = with_cache(one.guest.target, spec)
    bound, done = one.bound(target), 0
    with one.machine(target) as machine:
        for words in runs:
            for before in (None, *others):
                if before is not None:
                    machine.measure(before, words, InitialCache.DIRTY)
                starts = (InitialCache.WARM,) if before else InitialCache
                for start in starts:
                    found = machine.measure(one.entry, words, start)
                    assert found.cycles <= bound, (one.entry, spec, words, start, before, found.dcache)
                    done += 1
    return done


# --------------------------------------------------------------------------------------------------- random programs


def provable(seed: int, target: str) -> Iterator[Analysed]:
    """Those functions of a random file that have a bound."""
    guest = guest_of(source(seed, FUNCTIONS), load_target(target), ".c")
    for number in range(FUNCTIONS):
        try:
            one = analysed(guest, f"f{number}")
            instructions = one.prepared.bounded({}).solved("instructions").solution.certified
        except AnalysisError:
            continue
        if instructions <= LONGEST:
            yield one


def search(seed: int, target: str, caches: int, runs: int) -> int:
    """Runs of random functions with random caches, none above its bound."""
    draw, done = random.Random(f"caches {target} {seed}"), 0
    found = list(provable(seed, target))
    for one in found:
        others = [draw.choice(found).entry]
        for _ in range(caches):
            done += check(one, any_cache(draw), [arguments(draw) for _ in range(runs)], others)
    return done


@pytest.mark.parametrize("target", TARGETS)
def test_random_programs_stay_within_their_bounds(target):
    assert search(7, target, 3, 2) > 60


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(200, 240))
@pytest.mark.parametrize("target", TARGETS)
def test_many_random_programs_stay_within_their_bounds(target, seed):
    search(seed, target, 25, 4)


# ---------------------------------------------------------------------------------------------------------- kernels


def check_kernel(kernel: Kernel, target: str, caches: int, runs: int) -> None:
    guest, draw = kernel_guest(target), random.Random(f"{kernel.name} {target}")
    one = analysed(guest, kernel.name, kernel.facts)
    symbols = guest.image.symbols
    for _ in range(caches):
        tiny = with_cache(guest.target, any_cache(draw))
        bound = one.bound(tiny)
        for number in range(runs):
            how = "random" if number else "worst"
            with one.machine(tiny) as machine:
                words = kernel.arguments(draw) if number else kernel.worst
                for start in InitialCache:
                    if f"{kernel.name}_{how}" in symbols:
                        machine.call(f"{kernel.name}_{how}", *([draw.getrandbits(32)] * bool(number)))
                    found = machine.measure(kernel.name, words, start)
                    assert found.cycles <= bound, (kernel.name, tiny.dcache, words, start, found.dcache)


QUICK = ("insertion_sort", "matrix_multiply", "string_search", "ring_buffer", "memory_copy", "run_length")


@pytest.mark.parametrize("target", TARGETS)
def test_kernels_stay_within_their_bounds(target):
    for kernel in KERNELS:
        if kernel.name in QUICK:
            check_kernel(kernel, target, 2, 2)


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
def test_all_kernels_stay_within_their_bounds(kernel, target):
    check_kernel(kernel, target, 16, 6)


# -------------------------------------------------------------------------------------------------------- allocators


def check_allocator(name: str, target: str, spec: str, scenarios: Sequence[str]) -> None:
    heap_bytes = 65536 if allocator(name).minimum_heap_bytes > 4096 else 4096
    for scenario in scenarios:
        request = ProbeRequest(
            allocator(name), with_cache(load_target(target), spec), scenario, heap_bytes, 0, None, PACKAGED, prove=True,
            cross_check=False, cache_dir=images_dir(),
        )  # fmt: skip
        report = observe(request)  # a run above the bound is a contradiction, which is raised
        assert report.measurement.cycles <= report.bound.cycles
