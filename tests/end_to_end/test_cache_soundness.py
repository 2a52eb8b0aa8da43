"""Bounds in cycles with tiny data caches of all policies: no run, from any content of the cache, may exceed one.

Memory is made so slow that nothing but misses, write-backs and single accesses counts. Values do not depend on the
cache, so that a function is analysed once for all caches.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import pytest

from tests.analyzer.kept_stores import storing
from tests.analyzer.walking_pointers import walking
from tests.end_to_end.test_bounds import NAMES, accepted_heap, allocator, program, workload
from tests.kernel_suite import KERNELS, SOURCES, Kernel
from tests.kernel_suite import guest as kernel_guest
from tests.random_programs import arguments, packed_source, source
from tests.support import Guest, assembler, guest_of
from wcet_probe.analyzer.bound import prepare, prove
from wcet_probe.analyzer.dcache.misses import data_misses
from wcet_probe.analyzer.dcache.unaligned_accesses import with_unaligned_accesses
from wcet_probe.analyzer.facts.language import Facts
from wcet_probe.analyzer.facts.memory import PointerFacts, Pointers
from wcet_probe.analyzer.prepared import Prepared
from wcet_probe.analyzer.request import BoundRequest
from wcet_probe.analyzer.values.states.bases import Base
from wcet_probe.answer.bounds.proving import prove_operation
from wcet_probe.build.image import require_symbol
from wcet_probe.catalog.cache_option import apply_cache_option
from wcet_probe.catalog.lookup import load_target
from wcet_probe.emu.layout import first_stack_pointer
from wcet_probe.emu.machine import Machine
from wcet_probe.errors import AnalysisError
from wcet_probe.model.scenario import InitialCache
from wcet_probe.model.target import Target

TARGETS = ("mpc603e", "arm926ej-s")
POLICIES = ("lru", "fifo", "plru", "random", "round-robin", "round-robin")
NOTHING_TOLD = PointerFacts(Pointers(), {})
SLOW_CYCLES = 200
FUNCTIONS = 8
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
    seed = draw.randrange(8)
    return f"d:sets={sets},ways={ways},line={line},policy={policy},write={write},allocate={allocate},seed={seed}"


@dataclass(frozen=True)
class Analysed:
    """A function whose values are known."""

    guest: Guest
    entry: str
    prepared: Prepared

    def bound(self, target: Target, pointers: PointerFacts = NOTHING_TOLD) -> int:
        """Cycles with the cache of ``target``."""
        values = self.prepared.values
        data = data_misses(values, target, pointers)
        data = with_unaligned_accesses(data, values, target, pointers, self.prepared.costs)
        stages = []
        for stack_pointer in (None, first_stack_pointer(self.guest.image, target)):
            request = replace(self.prepared.request, target=target, stack_pointer=stack_pointer)
            stage = replace(self.prepared, request=request, data=data).bounded({})
            stages += [stage] if stage.prepared.counted is None else [stage, stage.counting()]
            relieved = stage.relieved(stages[-1].solved("cycles"))
            stages += [] if relieved is None else [relieved]
        return min(one.solved("cycles").solution.certified for one in stages)

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


def provable(seed: int, target: str, written: Callable[[int, int], str] = source) -> Iterator[Analysed]:
    """Those functions of a random file that have a bound."""
    guest = guest_of(written(seed, FUNCTIONS), load_target(target), ".c")
    for number in range(FUNCTIONS):
        try:
            one = analysed(guest, f"f{number}")
            instructions = one.prepared.bounded({}).solved("instructions").solution.certified
        except AnalysisError:
            continue
        # What may come to a place from which it never returns is bounded for the calls that do, and others hang.
        if instructions <= LONGEST and not one.prepared.values.graph.dead_ends:
            yield one


def search(
    seed: int,
    target: str,
    caches: int,
    runs: int,
    written: Callable[[int, int], str] = source,
    *,
    cache_of: Callable[[random.Random], str] = any_cache,
) -> int:
    """Runs of random functions with random caches, none above its bound."""
    draw, done = random.Random(f"caches {target} {seed}"), 0
    found = list(provable(seed, target, written))
    for one in found:
        others = [draw.choice(found).entry]
        for _ in range(caches):
            done += check(one, cache_of(draw), [arguments(draw) for _ in range(runs)], others)
    return done


@pytest.mark.covering(0)
@pytest.mark.parametrize("target", TARGETS)
def test_random_programs_stay_within_their_bounds(target):
    assert search(7, target, 3, 2) > 40


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(200, 240))
@pytest.mark.parametrize("target", TARGETS)
def test_many_random_programs_stay_within_their_bounds(target, seed):
    search(seed, target, 25, 4)


def roomy_cache(draw: random.Random) -> str:
    """A cache that most functions fit into, as far as the policy keeps lines."""
    sets, ways, line = draw.choice((32, 64, 128)), draw.choice((1, 2, 4, 8)), draw.choice((16, 32))
    policy, write, allocate = draw.choice(POLICIES), draw.choice(("back", "through")), draw.choice(("yes", "no"))
    return f"d:sets={sets},ways={ways},line={line},policy={policy},write={write},allocate={allocate},seed=1"


@pytest.mark.covering(0)
@pytest.mark.parametrize("target", TARGETS)
def test_programs_that_fit_into_the_cache_stay_within_their_bounds(target):
    assert search(11, target, 2, 2, cache_of=roomy_cache) > 25


@pytest.mark.slow
@pytest.mark.parametrize("written", [source, walking])
@pytest.mark.parametrize("seed", range(400, 430))
@pytest.mark.parametrize("target", TARGETS)
def test_many_programs_that_fit_into_the_cache_stay_within_their_bounds(target, seed, written):
    search(seed, target, 12, 4, written, cache_of=roomy_cache)


def filling_on_loads(draw: random.Random) -> str:
    """A cache in which stores that miss fill nothing, and most functions' lines are kept or crowd a few sets."""
    sets, ways, line = draw.choice((4, 8, 16, 16, 32)), draw.choice((1, 2, 4)), draw.choice((16, 32))
    policy = draw.choice(("round-robin", "round-robin", "random", "lru", "fifo"))
    return f"d:sets={sets},ways={ways},line={line},policy={policy},allocate=no,seed={draw.randrange(8)}"


@pytest.mark.covering(0)
def test_stores_that_fill_nothing_stay_within_their_bounds():
    assert search(3, "arm926ej-s", 2, 3, storing, cache_of=filling_on_loads) > 25


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(500, 540))
def test_many_stores_that_fill_nothing_stay_within_their_bounds(seed):
    search(seed, "arm926ej-s", 12, 4, storing, cache_of=filling_on_loads)


@pytest.mark.covering(0)
def test_loops_that_keep_what_the_call_does_not_stay_within_their_bounds():
    assert search(5, "mpc603e", 2, 3, storing) > 25


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(540, 570))
def test_many_loops_that_keep_what_the_call_does_not_stay_within_their_bounds(seed):
    search(seed, "mpc603e", 12, 4, storing)


UNALIGNED = ("mpc603e", "cortex-r5", "cortex-m7", "cortex-m4")
"""Cores for which compilers read a word at any address by one instruction."""


@pytest.mark.covering(0)
@pytest.mark.parametrize("target", UNALIGNED)
def test_packed_programs_stay_within_their_bounds(target):
    assert search(3, target, 2, 2, packed_source) > 25


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(300, 330))
@pytest.mark.parametrize("target", UNALIGNED)
def test_many_packed_programs_stay_within_their_bounds(target, seed):
    search(seed, target, 25, 4, packed_source)


_TO_THE_STACK = """
    sub sp, sp, #64
    str sp, [r1]
    ldr r2, [r0]
    add r12, sp, r2
    ldr r1, [r12]
    ldr r1, [r12, #8]
    add sp, sp, #64
    bx lr
"""
_FROM_THE_STACK = """
    sub sp, sp, #64
    str sp, [r1]
    ldr r2, [r0]
    and r3, r3, #4
    mov r12, sp
    ldr r12, [r12, r2]
    ldr r12, =buf
    add r12, r12, r2
    add r12, r12, r3
    ldr r1, [r12]
    ldr r1, [r12, #8]
    add sp, sp, #64
    bx lr
    .ltorg
"""


@pytest.mark.parametrize(("body", "word"), [(_TO_THE_STACK, 0), (_TO_THE_STACK, 16), (_FROM_THE_STACK, 8)])
def test_of_the_stack_pointer_no_more_is_known_than_a_multiple_of_8(body, word):
    """A fact says that numbers are multiples of 16; one that is added to the stack pointer does not show it."""
    target = load_target("arm926ej-s")
    data = f".data\n.balign 64\n.globl buf\nbuf: .space 256\n.globl words\nwords: .word {word}, 0\n"
    guest = guest_of(assembler({"f": body}, target) + data, target)
    one, slow = analysed(guest, "f"), with_cache(target, "d:sets=64,ways=2,line=16,policy=lru,write=back,allocate=yes")
    bound = one.bound(slow, PointerFacts(Pointers(16), {}))
    buf, words = (require_symbol(guest.image, name).address for name in ("buf", "words"))
    with one.machine(slow) as machine:
        machine._stack_pointer = (machine._stack_pointer & ~15) - 8
        for offset in (0, 4):
            for start in InitialCache:
                assert machine.measure("f", (words, buf + 208, 0, offset), start).cycles <= bound


def test_that_the_stack_pointer_is_aligned_is_assumed_of_what_may_come_from_it():
    target = load_target("arm926ej-s")
    loop = "1: ldr r2, [r1, #4]\nldr r3, [r1]\nmov r1, r3\nsubs r12, r12, #1\nbne 1b"
    body = f"sub r1, sp, #32\nmov r12, #3\n{loop}\nbx lr"
    prepared = analysed(guest_of(assembler({"f": body}, target), target), "f").prepared
    assert {access.base for found in prepared.values.accesses.values() for access in found} == {Base.ANY}
    assert "stack-alignment" in {one.id for one in prove(prepared.request).assumptions}


_STRAY_AND_STORES = """
    mov r12, #20
    ldr r1, =stored
    ldr r2, =loaded
1:  ldr r3, [r0]
    ldr r3, [r2]
    ldr r3, =stored + 8
    cmp r0, r1
    blo 2f
    cmp r0, r3
    bhi 2f
    str r12, [r0]
    str r12, [r0]
    str r12, [r0]
    str r12, [r0]
2:  subs r12, r12, #1
    bne 1b
    bx lr
    .ltorg
"""


@pytest.mark.parametrize("policy", ["fifo", "random", "round-robin"])
def test_a_line_that_only_strays_fill_is_evicted_before_it_is_stored_to(policy):
    target = load_target("arm926ej-s")
    data = ".data\n.balign 256\n.globl stored\nstored: .space 256\n.globl loaded\nloaded: .space 256\n"
    one = analysed(guest_of(assembler({"f": _STRAY_AND_STORES}, target) + data, target), "f")
    slow = with_cache(target, f"d:sets=8,ways=1,line=32,policy={policy},write=back,allocate=no")
    bound = one.bound(slow)
    with one.machine(slow) as machine:
        for start in InitialCache:
            words = (require_symbol(one.guest.image, "stored").address,)
            assert machine.measure("f", words, start).cycles <= bound


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


@pytest.mark.covering(0)
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


def check_workload(name: str, target: str, spec: str, operations: int, seed: int) -> None:
    """Calls of malloc and free at random, with a cache that keeps what the calls before have left."""
    heap_bytes, of = accepted_heap(name, target), program(name, target)
    tiny = with_cache(of.target, spec)
    bounds = {role: prove_with(name, target, role, heap_bytes, tiny) for role in ("malloc", "free")}
    points, live = allocator(name).entry_points, dict[int, int]()
    with Machine(of.image, tiny, of.instructions, of.costs, heap_bytes) as machine:
        assert machine.call(points["init"], machine.heap.base_address, heap_bytes) == 0
        draw = random.Random(seed)
        for kind, slot, size in workload(name, operations, heap_bytes, seed):
            start = draw.choice((InitialCache.WARM, InitialCache.WARM, InitialCache.DIRTY, InitialCache.COLD))
            if kind == 0:
                words: tuple[int, ...] = (size, 0) if name == "cama" else (size,)
                found = machine.measure(points["malloc"], words, start)
                live[slot] = found.result
            elif live.get(slot):
                found = machine.measure(points["free"], (live.pop(slot),), start)
            else:
                continue
            role = "free" if kind else "malloc"
            assert found.cycles <= bounds[role], (name, spec, role, size, start, found.cycles, found.dcache)


def prove_with(name: str, target: str, role: str, heap_bytes: int, tiny: Target) -> int:
    return prove_operation(replace(program(name, target), target=tiny), role, heap_bytes).cycles


@pytest.mark.parametrize(("name", "target"), [("tlsf", "mpc603e"), ("best-fit", "arm926ej-s")])
def test_allocators_stay_within_their_bounds(name, target):
    for seed in range(2):
        check_workload(name, target, any_cache(random.Random(f"{name} {seed}")), 60, seed)


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", NAMES)
def test_all_allocators_stay_within_their_bounds(name, target):
    for seed in range(6):
        check_workload(name, target, any_cache(random.Random(f"{name} {target} {seed}")), 2000, seed)
