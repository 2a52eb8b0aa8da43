"""Iterations of watched loops, against counts worked by hand and against the paths of the second engine."""

from __future__ import annotations

import re
from collections import Counter
from contextlib import nullcontext
from dataclasses import replace
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.emu.loop_oracle import counts_of_paths, loops_of
from tests.emu.second_engine import interpret, registers_of
from tests.examples import examples
from tests.support import PACKAGED, TARGETS, Guest, assembler, guest_of, guest_on, images_dir, trace_of
from wcet_probe.build.compilation import build_image
from wcet_probe.catalog.lookup import load_allocator, load_target
from wcet_probe.emu.machine import Machine
from wcet_probe.errors import EmulationError, UsageError
from wcet_probe.model.scenario import InitialCache
from wcet_probe.model.target import MemoryRange
from wcet_probe.model.watched_loop import LoopCount, WatchedLoop

pytestmark = pytest.mark.usefixtures("each_engine")

COLD, WARM = InitialCache.COLD, InitialCache.WARM
TARGET = {name: load_target(name) for name in TARGETS}
STRAY = 0x90000000

ARM_LOOPS = {
    "nested": "1: mov r2, r1\n2: subs r2, r2, #1\nbne 2b\nsubs r0, r0, #1\nbne 1b\nbx lr",
    "rotated": "push {r4, lr}\nmov r4, r0\nb 2f\n1: bl leaf\n2: subs r4, r4, #1\nbne 1b\npop {r4, pc}",
    "behind_a_call": "push {r4, lr}\nmov r4, r0\nbl leaf\n1: subs r4, r4, #1\nbne 1b\npop {r4, pc}",
    "leaf": "mov r3, #2\n1: subs r3, r3, #1\nbne 1b\nbx lr",
    "at_entry": "subs r0, r0, #1\nbne at_entry\nbx lr",
    "tail_call": "cmp r0, r1\nb at_entry",
    "often": "push {r4, lr}\nmov r4, r0\n1: mov r0, r4\nbl at_entry\nsubs r4, r4, #1\nbne 1b\npop {r4, pc}",
    "two_ways_in": "cmp r1, #0\nbeq 1f\nmov r2, r0\nb 2f\n1: mov r2, #1\n2: subs r2, r2, #1\nbne 2b\nbx lr",
    "falls_in": "str r0, [r1]\n1: str r0, [r2]\nstr r0, [r3]\nsubs r0, r0, #1\nbne 1b\nbx lr",
    "stores": "str r0, [r1]\nbx lr",
    "returns": "movs r3, #1\n1: subs r0, r0, #1\nit eq\nbxeq lr\nb 1b",
    "above": "movs r3, #1\nadds r3, r3, #1",
    "below": "subs r0, r0, #1\nbeq 1f\ntst r0, #1\nbeq.w above\nb below\n1: bx lr",
}
PREDICATED_ENTRIES = {
    "cortex-m4": {
        "skipped_entry": "cmp r1, #0\nit eq\naddeq r3, r3, #1\n1: subs r0, r0, #1\nbne 1b\nbx lr",
        "it_branch_in": "mov r3, r0\ncmp r1, #0\nit eq\nbeq 1f\nadds r3, #1\n1: subs r3, #1\nbne 1b\nbx lr",
        "it_latch": "1: subs r0, #1\ncmp r0, r1\nite ne\nmovne r3, #1\nmoveq r3, #2\ncmp r0, #0\nit ne\nbne 1b\nbx lr",
    },
    "arm926ej-s": {
        "skipped_entry": "cmp r1, #0\naddeq r3, r3, #1\n1: subs r0, r0, #1\nbne 1b\nbx lr",
        "skipped_call": "push {r4, lr}\nmov r4, r0\n1: cmp r4, r1\nblne leaf\nsubs r4, r4, #1\nbne 1b\npop {r4, pc}",
    },
}
CALLS = "mflr 0\nstwu 1, -16(1)\nstw 0, 20(1)\nstw 31, 8(1)\nmr 31, 3\n"
RETURNS = "lwz 31, 8(1)\nlwz 0, 20(1)\naddi 1, 1, 16\nmtlr 0\nblr"
POWERPC_LOOPS = {
    "nested": "1: mtctr 4\n2: bdnz 2b\naddic. 3, 3, -1\nbne 1b\nblr",
    "rotated": f"{CALLS}b 2f\n1: bl leaf\n2: addic. 31, 31, -1\nbne 1b\n{RETURNS}",
    "behind_a_call": f"{CALLS}bl leaf\n1: addic. 31, 31, -1\nbne 1b\n{RETURNS}",
    "leaf": "li 6, 2\n1: addic. 6, 6, -1\nbne 1b\nblr",
    "at_entry": "addic. 3, 3, -1\nbne at_entry\nblr",
    "tail_call": "cmpw 3, 4\nb at_entry",
    "often": f"{CALLS}1: mr 3, 31\nbl at_entry\naddic. 31, 31, -1\nbne 1b\n{RETURNS}",
    "two_ways_in": "cmpwi 4, 0\nbeq 1f\nmtctr 3\nb 2f\n1: li 5, 1\nmtctr 5\n2: bdnz 2b\nblr",
    "falls_in": "stw 3, 0(4)\n1: stw 3, 0(5)\nstw 3, 0(6)\naddic. 3, 3, -1\nbne 1b\nblr",
    "stores": "stw 3, 0(4)\nblr",
    "returns": "li 5, 1\n1: addic. 3, 3, -1\nbeqlr\nb 1b",
    "above": "li 5, 1\naddi 5, 5, 1",
    "below": "addic. 3, 3, -1\nbeq 1f\nandi. 5, 3, 1\nbeq above\nb below\n1: blr",
}
LOOPS = {
    name: ARM_LOOPS | PREDICATED_ENTRIES[name] if name in PREDICATED_ENTRIES else POWERPC_LOOPS for name in TARGETS
}
BY_HAND = {
    "nested": ((3, 5), {0: (3, 3, 1), 1: (5, 15, 3)}),
    "rotated": ((6, 0), {0: (6, 6, 1)}),
    "behind_a_call": ((6, 0), {0: (6, 6, 1)}),
    "at_entry": ((4, 0), {0: (4, 4, 1)}),
    "tail_call": ((4, 0), {}),
    "often": ((4, 0), {0: (4, 4, 1)}),
    "two_ways_in": ((7, 1), {0: (7, 7, 1)}),
    "returns": ((4, 0), {0: (4, 4, 1)}),
    "below": ((4, 0), {0: (2, 4, 2)}),  # from its middle to `above`, which runs on into its header: a new entry
    "skipped_entry": ((5, 1), {0: (5, 5, 1)}),
    "it_branch_in": ((5, 1), {0: (6, 6, 1)}),
    "it_latch": ((5, 1), {0: (5, 5, 1)}),
    "skipped_call": ((5, 2), {0: (5, 5, 1)}),
}
"""Arguments of each function, and of its own loops in order of address: maximum, header executions, entries."""
CASES = [(target, name) for target in TARGETS for name in LOOPS[target] if name in BY_HAND]
MODES = {
    "measured": lambda machine, function, arguments: machine.measure(function, arguments, COLD),
    "counted": lambda machine, function, arguments: machine.count(function, arguments),
    "unobserved": lambda machine, function, arguments: machine.call(function, *arguments),
}


@cache
def guest(target: str) -> Guest:
    return guest_of(assembler(LOOPS[target], TARGET[target]), TARGET[target])


def watching(used: Guest, loops: tuple[WatchedLoop, ...] | None = None, heap_bytes: int = 4096) -> Machine:
    watched = loops_of(used) if loops is None else loops
    return used.machine(heap_bytes, watched=watched)


def call_in_both(
    used: Guest, machine: Machine, function: str, arguments: tuple[int, ...]
) -> tuple[tuple[int, ...], int]:
    """Measure a call: the path that the second engine takes from the same state, and the result."""
    memory = machine.memory.snapshot()
    registers = registers_of(machine, used.target.isa) | machine.entry_registers(arguments)
    measurement = machine.measure(function, arguments, COLD)
    second = interpret(used, memory, registers, function)
    assert measurement.instructions == second.instructions
    return second.path, second.result


@pytest.mark.covering
@pytest.mark.parametrize(("target", "function"), CASES)
@pytest.mark.parametrize("mode", MODES)
def test_counts_worked_by_hand(target, function, mode):
    arguments, expected = BY_HAND[function]
    with watching(guest(target)) as machine:
        MODES[mode](machine, function, arguments)
        counts = [count for count in machine.loop_counts() if count.name.startswith(f"{function}+")]
    assert {i: (c.max_header_executions, c.header_executions, c.entries) for i, c in enumerate(counts)} == expected


@pytest.mark.parametrize("target", TARGETS)
def test_a_loop_at_the_entry_of_its_function_is_entered_by_whatever_calls_it(target):
    with watching(guest(target)) as machine:

        def count() -> LoopCount:
            (found,) = [count for count in machine.loop_counts() if count.name == "at_entry+0x0"]
            return found

        machine.measure("often", (4,), COLD)
        assert count() == LoopCount("at_entry+0x0", 4, 4 + 3 + 2 + 1, 4)
        machine.call("tail_call", 3)
        assert count() == LoopCount("at_entry+0x0", 4, 13, 5)
        machine.count("at_entry", (5,))
        machine.call("at_entry", 2)
        assert count() == LoopCount("at_entry+0x0", 5, 20, 7)
        machine.restart_loop_counts()
        assert count() == LoopCount("at_entry+0x0", 0, 0, 0)
        machine.call("at_entry", 2)
        assert count() == LoopCount("at_entry+0x0", 2, 2, 1)


@pytest.mark.parametrize(("target", "function"), CASES)
def test_hand_written_loops_against_the_second_engine(target, function):
    loops = loops_of(guest(target))
    with watching(guest(target), loops) as machine:
        paths = [
            call_in_both(guest(target), machine, function, (count, other))[0] for count in (1, 2, 7) for other in (1, 3)
        ]
        assert machine.loop_counts() == counts_of_paths(guest(target), paths, loops)


# ----------------------------------------------------------------------------------------------------- random programs

MIX = {
    "cortex-m4": "add.w r1, r1, r1, lsl #2\nadds r1, #1\n",
    "arm926ej-s": "add r1, r1, r1, lsl #2\nadd r1, r1, #1\n",
    "mpc603e": "mulli 4, 4, 5\naddi 4, 4, 1\n",
}
STEP = {
    "cortex-m4": "subs r0, #1\nbeq.w end\n",
    "arm926ej-s": "subs r0, r0, #1\nbeq end\n",
    "mpc603e": "addic. 3, 3, -1\nbeq end\n",
}
TEST = {"cortex-m4": "tst.w r1, #{}\n", "arm926ej-s": "tst r1, #{}\n", "mpc603e": "andi. 5, 4, {}\n"}
PIECES = {
    "cortex-m4": ("bne.w l{}", "it ne\nbne.w l{}", "b.w l{}", "it ne\naddne r3, #1", "bl sub", "it ne\nblne sub"),
    "arm926ej-s": ("bne l{}", "b l{}", "addne r3, r3, #1", "bl sub", "blne sub"),
    "mpc603e": ("bne l{}", "b l{}", "addi 6, 6, 1", "bl sub", "bdnz l{}"),
}
SUB = {
    "cortex-m4": "adds r1, #3\ntst.w r1, #8\nbne sub\nbx lr",
    "arm926ej-s": "add r1, r1, #3\ntst r1, #8\nbne sub\nbx lr",
    "mpc603e": "addi 4, 4, 3\nandi. 5, 4, 8\nbne sub\nblr",
}
FRAME = {
    "cortex-m4": ("push {r4, lr}\nmovs r3, #0\n", "end: pop {r4, pc}"),
    "arm926ej-s": ("push {r4, lr}\nmov r3, #0\n", "end: pop {r4, pc}"),
    "mpc603e": (CALLS, f"end: {RETURNS}"),
}


@pytest.mark.covering(0)
@pytest.mark.parametrize("target", TARGETS)
@given(data=st.data())
@settings(max_examples=examples(8, 60))
def test_random_flow_against_the_second_engine(target, data):
    """Blocks that jump anywhere, conditionally or not, call, fall through and skip, until their fuel is spent."""
    size = data.draw(st.integers(1, 8))
    pieces = st.tuples(st.sampled_from(PIECES[target]), st.integers(0, size - 1), st.sampled_from((8, 16, 32, 64)))
    body = ""
    for number in range(size):
        body += f"l{number}: {STEP[target]}{MIX[target]}"
        for piece, to, bit in data.draw(st.lists(pieces, max_size=3)):
            body += TEST[target].format(bit) + piece.format(to) + "\n"
    start, end = FRAME[target]
    used = guest_of(assembler({"f": f"{start}{body}{end}", "sub": SUB[target]}, TARGET[target]), TARGET[target])
    loops = loops_of(used)
    arguments = [(data.draw(st.integers(1, 300)), data.draw(st.integers(0, 255))) for _ in range(2)]
    with watching(used, loops) as machine:
        paths = [call_in_both(used, machine, "f", pair)[0] for pair in arguments]
        counts = machine.loop_counts()
        assert counts == counts_of_paths(used, paths, loops)
        machine.restart_loop_counts()
        for pair in arguments:
            machine.call("f", *pair)
        assert machine.loop_counts() == counts
        pair = arguments[-1]
        machine.measure("f", pair, COLD)
        every = [i.address for i in used.instructions]
        assert machine.executions(every) == tuple(map(Counter(paths[-1]).__getitem__, every))


# ------------------------------------------------------------------------------------------------------------ replays


@cache
def allocator_guest(allocator: str, target: str) -> Guest:
    built = build_image(load_allocator(allocator), TARGET[target], PACKAGED, images_dir())
    return guest_on(built, TARGET[target])


@pytest.mark.covering(0)
@pytest.mark.parametrize("target", TARGETS)
def test_replays_count_the_loops_of_an_allocator_as_the_second_engine_does(target):
    used = allocator_guest("first-fit", target)
    entry = load_allocator("first-fit").entry_points
    loops = tuple(loop for loop in loops_of(used) if not loop.name.startswith("wp_replay"))
    operations = [(0, i, 24 + 40 * (i % 3)) for i in range(12)] + [(1, i, 0) for i in range(0, 12, 2)]
    operations += [(0, 0, 200), (0, 2, 64), (1, 1, 0), (1, 3, 0), (0, 1, 9999)]
    paths, blocks = [], dict.fromkeys(range(12), 0)
    with watching(used, loops) as machine:
        start = (machine.heap.base_address, 4096)
        machine.call(entry["init"], *start)
        machine.restart_loop_counts()
        for kind, slot, size_bytes in operations:
            function, argument = (entry["free"], blocks[slot]) if kind else (entry["malloc"], size_bytes)
            path, result = call_in_both(used, machine, function, (argument,))
            paths.append(path)
            blocks[slot] = 0 if kind else result
        expected = counts_of_paths(used, paths, loops)
    assert max(count.max_header_executions for count in expected) > 3
    for how in ("replay", "replay_counted", "replay_observed"):
        with watching(used, loops) as machine:
            machine.call(entry["init"], *start)
            machine.restart_loop_counts()
            getattr(machine, how)(trace_of(operations))
            assert machine.loop_counts() == expected


def test_what_is_watched_disturbs_no_measurement():
    """Unobserved calls between a warm-up and a measurement leave caches and counts alone, watched or not."""
    used = allocator_guest("first-fit", "arm926ej-s")
    entry = load_allocator("first-fit").entry_points
    seen = []
    for loops in ((), None):
        with watching(used, loops) as machine:
            machine.call(entry["init"], machine.heap.base_address, 4096)
            machine.replay_observed(trace_of([(0, i, 40) for i in range(9)]))
            before = machine.observation()
            machine.call(entry["check"])
            assert machine.observation() == before
            seen.append(machine.measure(entry["malloc"], (40,), WARM))
            assert any(count.entries for count in machine.loop_counts()) == (loops is None)
    assert seen[0] == seen[1]


# ------------------------------------------------------------------------------------------------------------- faults


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("mode", MODES)
def test_a_fault_before_or_at_the_header_counts_nothing_and_one_behind_it_counts_it(target, mode):
    """All in the middle of a translation block; what follows is counted as if nothing had been."""
    loops = tuple(loop for loop in loops_of(guest(target)) if loop.name.startswith("falls_in"))
    with watching(guest(target), loops) as machine:
        heap = machine.heap.base_address
        MODES[mode](machine, "at_entry", (2,))
        for arguments, counted in [
            ((3, STRAY, heap, heap), 0),
            ((3, heap, STRAY, heap), 0),
            ((3, heap, heap, STRAY), 1),
        ]:
            with pytest.raises(EmulationError):
                MODES[mode](machine, "falls_in", arguments)
            (count,) = machine.loop_counts()
            assert (count.max_header_executions, count.header_executions, count.entries) == (counted,) * 3
        MODES[mode](machine, "falls_in", (3, heap, heap, heap))
        (count,) = machine.loop_counts()
        assert (count.max_header_executions, count.header_executions, count.entries) == (3, 4, 2)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("measured", ["falls_in", "stores"])
def test_an_unobserved_fault_leaves_the_last_measurement_alone(target, measured):
    """A fault in the block that the measured call ended in, at a fault of its own or with its return."""
    with watching(guest(target)) as machine:
        heap = machine.heap.base_address
        with pytest.raises(EmulationError) if measured == "falls_in" else nullcontext():
            machine.measure(measured, (1, heap, heap, STRAY), COLD)
        before = machine.observation()
        with pytest.raises(EmulationError):
            machine.call(measured, 1, STRAY, heap, heap)
        assert machine.observation() == before


# --------------------------------------------------------------------------------------------- what cannot be watched


def test_loops_that_cannot_be_watched_are_refused():
    used = guest("cortex-m4")
    (good,) = [loop for loop in loops_of(used) if loop.name.startswith("rotated")]
    inside = next(part.base_address for part in good.body if part.base_address != good.header_address)
    wrong = {
        "lies outside its body": replace(good, body=(MemoryRange(good.header_address + 2, 2),)),
        "lies inside its body": replace(good, entry_addresses=(*good.entry_addresses, inside)),
        "returns to its header": replace(good, entry_addresses=()),
        f"no instruction starts at {good.header_address + 1:#010x}": replace(
            good, header_address=good.header_address + 1
        ),
        "no instruction starts at 0x00000010": replace(good, entry_addresses=(0x10,)),
    }
    for message, loop in wrong.items():
        with pytest.raises(UsageError, match=re.escape(message)):
            watching(used, (good, loop))
    with watching(used, (good,)) as machine, pytest.raises(UsageError, match="no instruction starts"):
        machine.executions((good.header_address + 1,))
