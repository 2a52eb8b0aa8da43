"""Accesses at the edges of memory, in functions that no compiler writes: both engines do, count and say the same.

Tests: emu.machine, emu.compiled.
"""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from tests.emu import random_accesses
from tests.emu.twins import assert_equal, outcome, registers, twins
from tests.support import TARGETS, assembler, cache_config, guest_of
from wcet_probe.catalog.lookup import load_target
from wcet_probe.emu.machine import Machine
from wcet_probe.model.scenario import InitialCache
from wcet_probe.model.target import Basis, CacheConfig, MemoryRange, Replacement, Sourced, Target, UncachedRegion

COLD, DIRTY = InitialCache.COLD, InitialCache.DIRTY
HEAPS = (16, 17, 20, 31, 40, 63, 64, 100, 257, 4094, 4096)
AFTER_A_FAILURE = ("instructions", "cycles", "loads", "stores", "touched", "lowest_stack_pointer")
CUT_BY_BLOCKS = ("entered", "left", "path", "path_complete")


def random_cache(draw: random.Random, *, of_code: bool) -> CacheConfig:
    policy = draw.choice(list(Replacement))
    return cache_config(
        draw.choice((1, 2, 4, 8)),
        draw.choice((1, 2, 4, 8) if policy is Replacement.PLRU else (1, 2, 3, 5, 8)),
        draw.choice((4, 8, 16, 32, 64)),
        policy,
        write_back=not of_code and draw.random() < 0.6,
        write_allocate=draw.random() < 0.6,
        seed=draw.randrange(9),
    )


def random_target(draw: random.Random, name: str) -> Target:
    """A core with any caches, and perhaps a region without: a few lines, or the stack."""
    target = replace(load_target(name), unified_cache=False)
    if draw.random() < 0.25:
        cache = random_cache(draw, of_code=False)
        target = replace(target, icache=cache, dcache=cache, unified_cache=True)
    else:
        icache = random_cache(draw, of_code=True) if draw.random() < 0.8 else None
        target = replace(
            target, icache=icache, dcache=random_cache(draw, of_code=False) if draw.random() < 0.8 else None
        )
    if draw.random() < 0.5:
        return target
    layout = target.memory_map
    line_bytes = target.dcache.line_bytes if target.dcache else 4
    near = draw.choice((layout.heap_address, layout.stack.end_address - 64, layout.data.base_address))
    extent = MemoryRange(near + draw.choice((0, line_bytes)), draw.choice((1, 2, 5)) * line_bytes)
    if draw.random() < 0.4:  # what translated code counts by itself
        extent = draw.choice((layout.stack, MemoryRange(layout.stack.base_address, layout.stack.size_bytes + 64)))
    read, write = (Sourced(cycles, Basis.ASSUMED, "a test") for cycles in (3, 5))
    return replace(target, memory=replace(target.memory, regions=(UncachedRegion("near", extent, read, write),)))


def ask_both(engine: Machine, translated: Machine, mode: str, ask) -> bool:
    """Ask both, and compare; whether they answered."""
    expected, found = outcome(engine, ask), outcome(translated, ask)
    assert found == expected
    assert translated.memory.snapshot() == engine.memory.snapshot()
    fails = isinstance(expected, str)
    assert registers(translated, flags=not fails) == registers(engine, flags=not fails)
    if fails:  # the next call finds flags that translated code has not kept, and no compiler would read; these do
        translated._engine.take_over(engine._engine.guest_registers())
    seen, counted = engine.observation(), translated.observation()
    names = AFTER_A_FAILURE if fails else [name for name in seen.__slots__ if name not in CUT_BY_BLOCKS]
    for name in () if mode == "call" else names:
        assert getattr(counted, name) == getattr(seen, name), name
    return not fails


def compare(name: str, seed: int, functions: int, calls: int) -> tuple[int, int]:
    """Random calls of random functions on both engines; how many were answered, and how many failed."""
    draw = random.Random(seed)
    target = random_target(draw, name)
    used = guest_of(assembler(random_accesses.functions(draw, target.isa, functions), target), target)
    count, is_clean = [0, 0], False
    with twins(used, draw.choice(HEAPS)) as (engine, translated):
        edges = random_accesses.edges(engine)
        for region in target.memory.regions:
            edges += (region.extent.base_address, region.extent.end_address)
        for _ in range(calls):
            function = f"f{draw.randrange(functions)}"
            arguments = random_accesses.arguments(draw, engine, edges)
            # What the caches hold after a failure may differ.
            initial = draw.choice(list(InitialCache) if is_clean else (COLD, DIRTY))
            mode = draw.choice(("measure", "measure", "measure", "call", "count"))

            def ask(machine, mode=mode, function=function, arguments=arguments, initial=initial):
                if mode == "measure":
                    return machine.measure(function, arguments, initial)
                return machine.count(function, arguments) if mode == "count" else machine.call(function, *arguments)

            succeeds = ask_both(engine, translated, mode, ask)
            is_clean = is_clean if mode == "call" else succeeds
            count[succeeds] += 1
    return count[True], count[False]


@pytest.mark.parametrize("name", TARGETS)
def test_accesses_at_the_edges(name):
    answered, failed = compare(name, 13, 6, 50)
    assert answered > 0
    assert failed > 0


@pytest.mark.slow
@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("seed", range(100, 130))
def test_many_accesses_at_the_edges(name, seed):
    assert sum(compare(name, seed, 14, 200)) == 200


def test_the_last_byte_of_all_is_in_no_line_that_is_known():
    """Lines of a word, and a word there: what is compared was the mark of no line, and the process died."""
    cache = cache_config(4, 2, 4)
    target = replace(load_target("arm926ej-s"), dcache=cache)
    used = guest_of(assembler({"f": "ldr r1, [r0]\nbx lr", "g": "str r1, [r0]\nbx lr"}, target), target)
    with twins(used) as (engine, translated):
        for function in "fg":
            for address in (0xFFFFFFFF, 0xFFFFFFFC, 0xFFFFFFFD, 0):
                assert_equal(
                    engine, translated, lambda m, f=function: m.call(f, engine.heap.base_address), observed=False
                )
                ask = lambda m, f=function, a=address: m.measure(f, (a,), COLD).result  # noqa: E731
                assert not ask_both(engine, translated, "measure", ask)


def test_a_swap_must_be_aligned():
    """The engine refuses it; translated code made it."""
    target = load_target("arm926ej-s")
    body = "mov r2, #5\nswp r1, r2, [r0]\nswpb r3, r2, [r0]\nbx lr"
    used = guest_of(assembler({"f": body}, target), target)
    with twins(used) as (engine, translated):
        for offset in range(5):
            for mode in ("call", "measure", "count"):
                arguments = (engine.heap.base_address + offset,)

                def ask(machine, mode=mode, arguments=arguments):
                    if mode == "measure":
                        return machine.measure("f", arguments, DIRTY)
                    return machine.count("f", arguments) if mode == "count" else machine.call("f", *arguments)

                assert ask_both(engine, translated, mode, ask) == (offset % 4 == 0)


@pytest.mark.parametrize("lines", [(1, 1, 16), (8, 2, 16)])
def test_what_translated_code_fetched_is_not_fetched_again(lines):
    """A heap that ends within a page: the engine allows what is behind it where nothing is observed, and goes on."""
    target = load_target("cortex-m4")
    target = replace(target, icache=cache_config(*lines, write_back=False), unified_cache=False)
    body = "movs r1, #1\nstr.w r1, [r0, #16]\n" + "add.w r1, r1, r1, lsl #1\n" * 9 + "str.w r1, [r0, #20]\nbx lr"
    used = guest_of(assembler({"pad": "movs r0, #1\nmovs r0, #2\nbx lr", "f": f"nop\n{body}"}, target), target)
    with twins(used, 20) as (engine, translated):
        assert_equal(engine, translated, lambda m: m.count("f", (m.heap.base_address,)))
        assert engine.observation().icache.read_hits > 0


def test_an_exception_is_not_blamed_on_an_it_block_before_it():
    """A word that a skipped instruction would have read, or one steps behind, and then an unaligned ldrex."""
    target = load_target("cortex-m4")
    skipped = "it hi\nldrdhi r4, r7, [r1, #12]\nldrex r4, [r2]\nbx lr"
    stepped = "it ls\nldrls r4, [r3], #4096\nldrex r4, [r2]\nbx lr"
    used = guest_of(assembler({"skipped": skipped, "stepped": stepped}, target), target)
    with twins(used) as (engine, translated):
        for function in ("skipped", "stepped"):
            heap = engine.heap.base_address
            ask = lambda m, f=function, a=(0, 4, heap + 2, heap): m.count(f, a)  # noqa: E731
            assert not ask_both(engine, translated, "count", ask)
            assert "stray access" not in str(outcome(engine, ask))


@pytest.mark.parametrize("lines", [None, (4, 2, 16), (4, 2, 4)])
@pytest.mark.parametrize("waiting", [0, 9])
def test_an_unaligned_access_costs_both_engines_the_same(lines, waiting):
    """A halfword at an odd address within a word was taken for an ordinary access by translated code."""
    target = load_target("cortex-m4")
    memory = replace(target.memory, first_beat_cycles=Sourced(waiting, Basis.ASSUMED, "a test"))
    target = replace(target, memory=memory, dcache=cache_config(*lines) if lines else None)
    body = "ldr r1, [r0]\nstr r1, [r0, #8]\nldrh r2, [r0, #16]\nstrh r2, [r0, #24]\nldm r3, {r1, r2}\nbx lr"
    used = guest_of(assembler({"f": body}, target), target)
    with twins(used, 4096) as (engine, translated):
        heap, found = engine.heap.base_address + 64, []
        for offset in range(8):

            def ask(machine, offset=offset):
                return machine.measure("f", (heap + offset, 0, 0, heap), COLD)

            assert ask_both(engine, translated, "measure", ask)
            found.append(engine.observation().cycles)
        each = 1 if lines else 1 + waiting
        assert [one - found[0] for one in found] == [0, 6 * each, 2 * each, 6 * each] * 2
