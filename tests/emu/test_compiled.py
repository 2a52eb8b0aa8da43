"""Translated code counts what the engine counts, fails where it fails, and leaves the same state."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import random_programs
from tests.emu.guests import guest
from tests.emu.test_oracle import CACHES
from tests.emu.twins import assert_equal, outcome, twins
from tests.support import TARGETS, Guest, assembler, cache_config, guest_of, guest_on, images_dir, tlsf_guest, trace_of
from wcet_probe.build import toolchain
from wcet_probe.build.program import Program, load_program
from wcet_probe.catalog.lookup import allocator_names, load_allocator, load_target, target_names
from wcet_probe.compiled import library, supply
from wcet_probe.compiled.library import compiled_library
from wcet_probe.compiled.translation import translate
from wcet_probe.emu import compiled, memory
from wcet_probe.emu.compiled import Detail
from wcet_probe.emu.machine import Machine
from wcet_probe.errors import UsageError
from wcet_probe.model.scenario import InitialCache, Trace
from wcet_probe.model.target import Basis, Replacement, Sourced, UncachedRegion, without_caches

COLD, DIRTY = InitialCache.COLD, InitialCache.DIRTY
ROOT = Path(__file__).parents[2]
OUTSIDE = 0x90000000
BUDGET = 300_000


@cache
def random_guest(target: str, seed: int, functions: int = 3) -> Guest:
    return guest_of(random_programs.source(seed, functions), load_target(target), ".c")


def measured(function: str, arguments: tuple[int, ...], initial: InitialCache, machine: Machine) -> int:
    return machine.measure(function, arguments, initial).result


def call_all(used: Guest, functions: int, seed: int, each: int, initial: InitialCache = COLD) -> int:
    """Call the functions of a random program on both machines; how many instructions were counted and compared."""
    draw, compared = random.Random(seed), 0
    for number in range(functions):
        for _ in range(each):
            ask = partial(measured, f"f{number}", random_programs.arguments(draw), initial)
            with twins(used, most_instructions=BUDGET) as (engine, translated):
                compared += assert_equal(engine, translated, ask)
    return compared


@pytest.mark.covering(0)
@pytest.mark.parametrize("target", TARGETS)
@given(seed=st.integers(0, 1 << 16))
@settings(max_examples=1)
def test_random_programs(target, seed):
    """Loops without an end among them: the budget stops both at the same instruction."""
    assert call_all(random_guest(target, seed, 2), 2, seed, 6) > 0


POLICIES = [
    *(
        (name, lambda target, pair=pair: replace(
            target, icache=replace(pair[0], write_back=False) if pair[0] else None, dcache=pair[1]
        ))
        for name, pair in CACHES.items()
    ),
    ("none", without_caches),
    ("round robin", lambda target: replace(
        target,
        icache=cache_config(4, 3, 16, Replacement.ROUND_ROBIN, write_back=False, seed=1),
        dcache=cache_config(4, 3, 16, Replacement.ROUND_ROBIN, write_allocate=False, seed=2),
    )),
    *(
        (f"unified {policy}", lambda target, policy=policy: replace(
            target,
            icache=cache_config(8, 4, 16, policy, seed=3),
            dcache=cache_config(8, 4, 16, policy, seed=3),
            unified_cache=True,
        ))
        for policy in (Replacement.LRU, Replacement.PLRU, Replacement.ROUND_ROBIN)
    ),
    ("uncached stack", lambda target: replace(target, memory=replace(target.memory, regions=(
        UncachedRegion(
            "near", target.memory_map.stack, Sourced(3, Basis.ASSUMED, "a test"), Sourced(5, Basis.ASSUMED, "a test")
        ),
    )))),
]  # fmt: skip


_TWO_PARTS = {
    "wp_replay": "push {r4, lr}\nbl shared\npop {r4, pc}",
    "shared": "adds r0, r0, #3\nbx lr",
    "apart": "push {r4, lr}\nmovs r4, #5\n1: bl shared\nsubs r4, r4, #1\nbne 1b\nb tail",
    "tail": "adds r0, r0, #100\npop {r4, pc}",
    "far": "push {r4, lr}\nbl apart\nldr r1, [r0]\npop {r4, pc}",
}


_LONG_PARTS = _TWO_PARTS | {
    "wp_replay": "push {r4, lr}\nbl shared\nbl long\npop {r4, pc}",
    "long": f"{'adds r0, r0, #1;' * 599}\nb shared",
}
_THROUGH_POINTER = _TWO_PARTS | {
    "wp_replay": "push {r4, lr}\nbl through\npop {r4, pc}",
    "through": "push {r4, lr}\nldr r4, =shared\nblx r4\npop {r4, pc}\n.ltorg",
}


def test_a_host_that_reserves_no_addresses(monkeypatch):
    """A limit of address space: regions have memory of their own then, and the engine does all of it."""
    target = load_target("cortex-m4")
    used = guest_of(assembler(_TWO_PARTS, target), target)

    def refuse(size_bytes):
        raise OSError(size_bytes)

    monkeypatch.setattr(compiled, "reserved", refuse)  # the second time
    with twins(used) as (engine, translated):
        assert translated.memory.is_flat
        assert translated.measure("apart", (7,), COLD) == engine.measure("apart", (7,), COLD)
    monkeypatch.setattr(memory, "reserved", refuse)  # at once
    with twins(used) as (engine, translated):
        assert not translated.memory.is_flat
        assert translated.measure("apart", (7,), COLD) == engine.measure("apart", (7,), COLD)


@pytest.mark.covering(0)
@pytest.mark.parametrize("name", ["arm926ej-s", "cortex-m4"])
@pytest.mark.parametrize(
    ("functions", "replayed"),
    [(_TWO_PARTS, (True, False)), (_LONG_PARTS, (True, True, False)), (_THROUGH_POINTER, (True, True))],
    ids=["two", "long", "through a pointer"],
)
def test_control_goes_from_part_to_part(name, functions, replayed):
    """What the replay loop does not call is compiled apart: calls, returns, budgets and failures cross the border.

    Of what it calls through a pointer nothing is known, and all is optimised; what is long is cut in two.
    """
    target = load_target(name)
    used = guest_of(assembler(functions, target), target)
    program = Program(load_allocator("tlsf"), used.target, used.image, used.instructions, used.costs)
    assert tuple(text.is_replayed for text in translate(program, Detail.DATA).texts) == replayed
    with twins(used) as (engine, translated):
        assert engine.call("apart", 1) == 116
        for function in ("apart", "shared", "wp_replay"):
            assert assert_equal(engine, translated, lambda m, f=function: m.measure(f, (7,), COLD).result)
            assert_equal(engine, translated, lambda m, f=function: m.call(f, 7), observed=False)
        assert "stray access" in str(outcome(translated, lambda m: m.call("far", 7)))
        assert_equal(engine, translated, lambda m: m.call("far", 7), observed=False)


@pytest.mark.covering(1)
@pytest.mark.parametrize("initial", [COLD, DIRTY])
@pytest.mark.parametrize(("name", "change"), POLICIES, ids=[name for name, _ in POLICIES])
def test_each_policy(name, change, initial):
    """A small program on each; target and policy are what the code is made for."""
    number = [each for each, _ in POLICIES].index(name)
    target = TARGETS[number % len(TARGETS)]
    used = guest_on(random_guest(target, 11, 1).image, change(load_target(target)))
    assert call_all(used, 1, number, 8, initial) > 0


def workload(operations: int, seed: int, largest: int = 600) -> Trace:
    draw, live, rows = random.Random(seed), [], []
    for slot in range(operations):
        if live and draw.random() < 0.45:
            rows.append((1, live.pop(draw.randrange(len(live))), 0))
        else:
            rows.append((0, slot, draw.randrange(largest)))
            live.append(slot)
    return trace_of(rows)


@pytest.mark.parametrize("target", ["mpc603e"])
def test_replays_of_an_allocator(target, monkeypatch):
    """Each kind of replay, one after the other on the same machines, and pauses in the middle."""
    monkeypatch.setattr(compiled, "_QUANTUM", 1000)
    trace, expected = workload(300, 1), {"heap": range(0, 128, 2)}
    with twins(tlsf_guest(target), 1 << 14) as (engine, translated):
        assert_equal(engine, translated, lambda m: m.call("tlsf_init", m.heap.base_address, 1 << 14), observed=False)
        assert_equal(engine, translated, lambda m: m.replay(trace), observed=False)
        assert_equal(engine, translated, lambda m: m.replay_counted(trace), observed=False)
        assert_equal(engine, translated, lambda m: m.replay_observed(trace))
        assert_equal(engine, translated, lambda m: m.replay_observed(trace, data=False))
        assert translated.observation().path == ()  # and not that of the replay before
        columns = [m.replay_operations(trace, InitialCache.WARM) for m in (engine, translated)]
        for name in columns[0].__slots__:
            assert getattr(columns[0], name).tolist() == getattr(columns[1], name).tolist(), name
        assert_equal(engine, translated, lambda m: m.replay_sets(trace, expected).touched)
        assert_equal(engine, translated, lambda m: m.measure("tlsf_malloc", (100,), InitialCache.WARM).cycles)


@pytest.mark.covering(0)
@pytest.mark.parametrize("target", TARGETS)
def test_failures(target):
    """The same sentence, with the same counts up to there, and nothing of it clings to the next call."""
    thumb = int(target == "cortex-m4")
    with twins(guest(target)) as (engine, translated):
        heap = engine.heap.base_address
        calls = [
            *(("store_pair", pair) for pair in ((heap, OUTSIDE), (OUTSIDE, heap), (heap, heap + 4094))),
            ("load_pair", (heap, OUTSIDE)),
            ("long_store", (heap + 4096 - 8,)),
            ("jump", (OUTSIDE | thumb,)),
            ("jump", (0,)),
            ("jump", (heap | thumb,)),
            ("write_code", ()),
            *((name, (heap,)) for name in ("no_class", "system_call", "newer")),
            *((("it_stray", (heap, OUTSIDE)), ("it_stray_skips", (heap, OUTSIDE))) if thumb else ()),
        ]
        for function, arguments in calls:
            for ask in (
                lambda m, f=function, a=arguments: m.measure(f, a, COLD).result,
                lambda m, f=function, a=arguments: m.call(f, *a),
                lambda m, f=function, a=arguments: m.count(f, a),
            ):
                expected = outcome(engine, ask)
                assert outcome(translated, ask) == expected
                assert isinstance(expected, str) or function == "no_class"
                seen, counted = engine.observation(), translated.observation()
                for name in ("instructions", "cycles", "loads", "stores", "touched", "lowest_stack_pointer"):
                    assert getattr(counted, name) == getattr(seen, name), (function, name)
            assert_equal(engine, translated, lambda m: m.measure("plain", (), COLD).cycles)


@pytest.mark.parametrize("budget", [10, 1000, 400_000])
def test_a_budget_ends_where_the_engine_ends_it(budget):
    for mode in (lambda m: m.call("loop", 1 << 30), lambda m: m.count("loop", (1 << 30,))):
        with twins(guest("mpc603e"), most_instructions=budget) as (engine, translated):
            assert_equal(engine, translated, mode)


def test_the_path_goes_on_where_the_engine_takes_over():
    """The last 2^17 instructions of a budget are the engine's; the call ends before it is spent."""
    with twins(guest("mpc603e"), most_instructions=200_000) as (engine, translated):
        assert_equal(engine, translated, lambda m: m.measure("loop", (50_000,), COLD).cycles)
        assert engine.observation().path_complete


def test_the_carry_goes_along_to_the_engine():
    """On PowerPC the engine gives its carry to none but the guest's instructions."""
    body = "mflr 7\naddic 4, 3, -1\nfmr 1, 2\nli 6, 0\nadde 3, 6, 6\nmtlr 7\nblr"
    used = guest_of(assembler({"f": body}, load_target("mpc603e")), load_target("mpc603e"))
    with twins(used) as (engine, translated):
        for argument, carry in ((1, 1), (0, 0), (5, 1)):
            assert engine.call("f", argument) == carry
            assert translated.call("f", argument) == carry


def test_the_same_call_again_and_again():
    """Each finds the heap as it was; what the calls take is what the engine counts of each."""
    with twins(tlsf_guest("mpc603e"), 4096) as (engine, translated):
        for machine in (engine, translated):
            machine.call("tlsf_init", machine.heap.base_address, 4096)
        rows = [(size,) for size in range(0, 600, 37)]
        found = translated.count_from_here("tlsf_malloc", rows)
        before = engine.memory.snapshot()
        for (size,), instructions, result in zip(rows, found.instructions, found.results, strict=True):
            engine.memory.restore(before)
            assert engine.count("tlsf_malloc", (size,)) == instructions
            engine.memory.restore(before)
            assert engine.call("tlsf_malloc", size) == result
        assert translated.memory.snapshot() == before
        with translated.calls_from_here("tlsf_malloc") as calls:
            assert [calls.count_one(*row) for row in rows] == list(zip(*asked_of(found), strict=True))
        assert translated.memory.snapshot() == before
        with translated.calls_from_here("tlsf_malloc", most_instructions=10) as calls:
            assert calls.count_one(8) is None
            with pytest.raises(UsageError, match="takes 1 words"):
                calls.count_one(8, 9)
            with pytest.raises(UsageError, match="takes 1 words"):
                calls.count([(8, 9)])
            assert len(calls.count(rows[1:]).results) == 0


def asked_of(found):
    return found.instructions.tolist(), found.results.tolist()


def test_without_a_compiler_the_engine_does_it(monkeypatch, tmp_path):
    used = tlsf_guest("cortex-m4")
    monkeypatch.setattr(toolchain, "find_spec", lambda _: None)
    program = Program(load_allocator("tlsf"), used.target, used.image, used.instructions, used.costs)
    assert compiled_library(program, Detail.DATA, tmp_path) is None
    trace = workload(50, 2)
    with used.machine(translations=lambda detail, _: compiled_library(program, detail, tmp_path)) as machine:
        machine.call("tlsf_init", machine.heap.base_address, 4096)
        without = machine.replay_counted(trace)
    with used.machine() as machine:
        machine.call("tlsf_init", machine.heap.base_address, 4096)
        assert machine.replay_counted(trace) == without


def test_small_jobs_do_not_wait_and_long_ones_are_compiled_once(monkeypatch, tmp_path):
    built = []
    monkeypatch.setattr(library, "compiled_library", lambda *_, build: built.append(build))
    used = tlsf_guest("cortex-m4")
    program = Program(load_allocator("tlsf"), used.target, used.image, used.instructions, used.costs)
    ask = supply.translations(program, tmp_path)
    ask(Detail.DATA, 100)
    assert built == []
    ask(Detail.DATA, 1 << 15)
    ask(Detail.DATA, 1 << 20)
    ask(Detail.FETCHES, 1 << 20)
    assert built == [False, True, False]


def test_few_operations_that_take_long_are_compiled_too(monkeypatch, tmp_path):
    built, seconds = [], iter([10.0, 10.0, 14.0, 10.0])
    monkeypatch.setattr(library, "compiled_library", lambda *_, build: built.append(build))
    monkeypatch.setattr(supply, "process_time", lambda: next(seconds))
    used = tlsf_guest("cortex-m4")
    program = Program(load_allocator("tlsf"), used.target, used.image, used.instructions, used.costs)
    ask = supply.translations(program, tmp_path)
    for _ in range(2):
        ask(Detail.DATA, 1 << 15)
    assert built == [False, True]


def test_a_library_is_taken_from_the_cache_and_never_half_written(monkeypatch, tmp_path):
    used = random_guest("mpc603e", 7, 1)
    first = used.translated(Detail.NOTHING, folder=tmp_path)
    monkeypatch.setattr(library, "compile_texts", None)
    assert used.translated(Detail.NOTHING, folder=tmp_path) == first
    assert list(first.parent.glob("build-*")) == []


def one_of_each_isa() -> list[object]:
    """The cores; all but the first of each instruction set and FPU are marked as campaigns."""
    cores = [load_target(name) for name in target_names()]
    kinds = [(core.isa, core.pcode_language, core.fpu) for core in cores]
    return [
        pytest.param(core.name, marks=() if kinds.index(kind) == number else pytest.mark.slow)
        for number, (core, kind) in enumerate(zip(cores, kinds, strict=True))
    ]


@pytest.mark.covering(0)
@pytest.mark.parametrize("target", one_of_each_isa())
def test_all_instructions_of_an_allocator_are_translated(target):
    program = load_program(load_allocator("tlsf"), load_target(target), "zig", images_dir())
    assert translate(program, Detail.NOTHING).left_out == {}


HANGING = """
import signal
import sys
from tests.support import assembler, guest_of
from wcet_probe.catalog.lookup import load_target

signal.signal(signal.SIGINT, signal.default_int_handler)
target = load_target("mpc603e")
used = guest_of(assembler({"f": "1: b 1b"}, target), target)
with used.machine(translations=used.translated, translates_calls=True) as machine:
    machine._translation(1)
    print("running", flush=True)
    try:
        machine.call("f")
    except KeyboardInterrupt:
        print("interrupted")
"""


def test_an_interrupt_is_heard():
    with subprocess.Popen([sys.executable, "-c", HANGING], stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        assert process.stdout.readline() == "running\n"
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        try:
            assert process.communicate(timeout=60)[0] == "interrupted\n"
        finally:
            process.kill()
    assert process.returncode == 0


# ---------------------------------------------------------------------------------------------------------- campaigns


def tally(name: str, instructions: int) -> None:
    """Keep how much a campaign compared, where somebody asks for it."""
    file = os.environ.get("WCET_PROBE_TRANSLATED_TALLY")
    if file:
        with Path(file).open("a", encoding="utf-8") as lines:
            lines.write(f"{name} {instructions}\n")


@pytest.mark.slow
@pytest.mark.parametrize("target", target_names())
@pytest.mark.parametrize("name", allocator_names())
def test_workloads_of_every_allocator(name, target):
    """20,000 operations in 64 KiB, compiled as by the product: all that is observed, and every operation's numbers."""
    try:
        allocator = load_allocator(name)
        program = load_program(allocator, load_target(target), "zig", images_dir())
    except UsageError as error:
        pytest.skip(str(error))
    used = Guest(program.image, program.target, program.instructions, program.costs)
    heap_bytes = max(1 << 16, -(-allocator.minimum_heap_bytes // 4096) * 4096)
    entry, compared = allocator.entry_points, 0
    with twins(used, heap_bytes) as (engine, translated):
        for machine in (engine, translated):
            assert machine.call(entry["init"], machine.heap.base_address, heap_bytes) == 0
        for seed in range(2):
            trace = workload(10_000, seed, 700)
            compared += assert_equal(engine, translated, lambda m, t=trace: m.replay_observed(t))
            columns = [m.replay_operations(trace, InitialCache.WARM) for m in (engine, translated)]
            for column in columns[0].__slots__:
                assert (getattr(columns[0], column) == getattr(columns[1], column)).all(), column
            compared += engine.observation().instructions
            assert_equal(engine, translated, lambda m, t=trace: m.replay_counted(t), observed=False)
            compared += engine.observation().instructions
        assert engine.call(entry["check"]) == translated.call(entry["check"]) == 0
    tally(f"{name} {target}", compared)


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("seed", range(8))
def test_many_random_programs(target, seed):
    tally(f"random {target} {seed}", call_all(random_guest(target, seed, 8), 8, seed, 12))


@pytest.mark.parametrize("name", ["cortex-m4", "mpc603e"])
def test_quotients_that_are_undefined_or_zero(name):
    """By zero, and the least number by -1: what the engine makes of it, which PowerPC leaves undefined."""
    target = load_target(name)
    signed, unsigned = ("sdiv", "udiv") if name == "cortex-m4" else ("divw", "divwu")
    code = "{} r0, r0, r1\nbx lr" if name == "cortex-m4" else "{} 3, 3, 4\nblr"
    used = guest_of(assembler({"signed": code.format(signed), "plain": code.format(unsigned)}, target), target)
    with twins(used) as (engine, translated):
        for function in ("signed", "plain"):
            for a, b in ((7, 0), (0x80000000, 0), (0x80000000, 0xFFFFFFFF), (0xFFFFFFF9, 2), (7, 7)):
                assert assert_equal(engine, translated, lambda m, f=function, x=(a, b): m.measure(f, x, COLD).result)
