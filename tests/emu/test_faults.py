"""What the machine says when the guest goes astray, and that nothing of it clings to the next call."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

from tests.emu.guests import FUNCTIONS, guest
from tests.support import TARGETS, assembler, guest_of, tlsf_guest, trace_of
from wcet_probe.catalog.lookup import load_target
from wcet_probe.emu import engine
from wcet_probe.emu.engine import Engine
from wcet_probe.emu.machine import HARNESS_ADDRESS, RETURN_ADDRESS, Machine
from wcet_probe.errors import EmulationError, ImageError, UsageError
from wcet_probe.model.scenario import InitialCache
from wcet_probe.model.target import Isa

pytestmark = pytest.mark.usefixtures("each_engine")

COLD = InitialCache.COLD
OUTSIDE = 0x90000000
ROOT = Path(__file__).parents[2]
THREAD = threading.Thread
MODES: dict[str, Callable[..., object]] = {
    "measured": lambda machine, function, *arguments: machine.measure(function, arguments, COLD),
    "counted": lambda machine, function, *arguments: machine.count(function, arguments),
    "uninstrumented": lambda machine, function, *arguments: machine.call(function, *arguments),
}
OBSERVED = ("measured", "counted")


@pytest.fixture(params=TARGETS)
def target(request):
    return request.param


@pytest.fixture(params=MODES)
def mode(request):
    return request.param


def test_a_stack_pointer_whose_lowest_bits_thumb_would_clear_is_not_run_on():
    """The engine keeps them: the guest read another number than the core has, and ran otherwise than what is proved."""
    bodies = {"f": "mov r3, sp\nsubs r3, #6\nmov r2, sp\nmov sp, r3\nmov r0, sp\nmov sp, r2\nsubs r0, r2, r0\nbx lr"}
    core = load_target("cortex-m4")
    with guest_of(assembler(bodies, core), core).machine() as machine:
        sentence = failing(machine, "measured", "f")
    assert "a core that executes Thumb clears its lowest two bits" in sentence
    assert "in f+0x8" in sentence
    core = load_target("arm926ej-s")  # where no core does
    bodies["f"] = bodies["f"].replace("subs r3, #6", "sub r3, r3, #6")
    with guest_of(assembler(bodies, core), core).machine() as machine:
        assert machine.measure("f", (), COLD).result == 6


def failing(machine: Machine, mode: str, function: str, *arguments: int) -> str:
    """The sentence with which the call fails."""
    with pytest.raises(EmulationError) as caught:
        MODES[mode](machine, function, *arguments)
    sentence = str(caught.value)
    assert sentence.endswith(".")
    assert not sentence.endswith("..")
    assert "\n" not in sentence
    return sentence


def source_line(target: str, sentence: str) -> str:
    """The line of the assembler file that ``sentence`` names."""
    found = re.search(r"\(guest\.s:(\d+)\)", sentence)
    assert found, sentence
    return assembler(FUNCTIONS[target], load_target(target)).splitlines()[int(found[1]) - 1]


@pytest.mark.covering
@pytest.mark.parametrize(("function", "first", "executed"), [
    ("store_pair", False, 3), ("store_pair", True, 1), ("load_pair", False, 3), ("load_pair", True, 1),
])  # fmt: skip
def test_a_stray_access_in_the_middle_of_a_block(target, mode, function, first, executed):
    with guest(target).machine() as machine:
        heap = machine.heap.base_address
        sentence = failing(machine, mode, function, *((OUTSIDE, heap) if first else (heap, OUTSIDE)))
        assert f"stray access to {OUTSIDE:#010x}" in sentence
        assert "of a register of a device, let a section of the program (NOLOAD) lie there" in sentence
        instruction = [i for i in guest(target).instructions if i.address >= guest(target).address(function)][executed]
        assert f"pc {instruction.address:#010x} in {function}+" in sentence
        base = "r1" if not first else "r0"
        base = base if target != "mpc603e" else {"r0": "(3)", "r1": "(4)"}[base]
        assert base in source_line(target, sentence)
        if mode in OBSERVED:
            assert machine.observation().instructions == executed


def test_the_words_before_the_stray_one_are_counted(target):
    """A store multiple that runs out of the heap: what is counted is what was inside."""
    with guest(target).machine() as machine:
        sentence = failing(machine, "measured", "long_store", machine.heap.end_address - 8)
        assert f"{machine.heap.end_address:#010x}" in sentence
        observation = machine.observation()
        pushed = 0 if target == "mpc603e" else 2
        assert (observation.instructions, observation.stores, observation.loads) == (1, pushed + 2, 0)


def test_a_stray_access_behind_the_heap_but_on_its_page(target):
    with guest(target).machine(heap_bytes=4096 - 8) as machine:
        end = machine.heap.end_address
        for address, astray in ((end - 4, False), (end, True), (end - 2, True), (end + 4, True)):
            if astray:
                assert f"stray access to {address:#010x}" in failing(
                    machine, "measured", "store_pair", end - 4, address
                )
                assert machine.observation().instructions == 3
            else:
                machine.measure("store_pair", (end - 4, address), COLD)


def test_a_stray_access_in_an_it_block_ends_the_count_there():
    """The engine runs on to the end of the block at least; nothing of that is counted."""
    with guest("cortex-m4").machine(heap_bytes=4096 - 8) as machine:
        heap, end = machine.heap.base_address, machine.heap.end_address
        for mode, stray in (
            ("measured", end),
            ("measured", OUTSIDE),
            ("counted", OUTSIDE),
            ("uninstrumented", OUTSIDE),
        ):
            assert f"stray access to {stray:#010x} at pc" in failing(machine, mode, "it_stray", heap, stray)
            observation = machine.observation()
            assert (observation.instructions, observation.stores) == (2, 0)


@pytest.mark.covering
@pytest.mark.parametrize("function", ["it_stray", "it_stray_skips"])
def test_predicates_of_a_fault_in_an_it_block_do_not_cling_to_the_next_call(mode, function):
    for stray in (OUTSIDE, 0x60001000):
        with guest("cortex-m4").machine() as machine:
            failing(machine, mode, function, 1, stray)
            assert machine.call("plain", 0) == 7
        with guest("cortex-m4").machine() as machine:
            failing(machine, mode, function, 1, stray)
            assert machine.count("plain", (0,)) == 2
            assert machine.measure("plain", (0,), COLD).result == 7


@pytest.mark.covering
@pytest.mark.parametrize("next_mode", MODES)
def test_a_failure_is_not_the_next_calls(target, mode, next_mode):
    with guest(target).machine() as machine:
        heap = machine.heap.base_address
        fresh = machine.measure("store_pair", (heap, heap), COLD)
        for bad in (("store_pair", heap, OUTSIDE), ("no_class", heap), ("jump", OUTSIDE)):
            if bad[0] != "no_class" or mode == "measured":
                failing(machine, mode, *bad)
            MODES[next_mode](machine, "plain", 0)
            again = machine.measure("store_pair", (heap, heap), COLD)
            assert (again.instructions, again.cycles, again.runs) == (fresh.instructions, fresh.cycles, fresh.runs)


def test_an_uninstrumented_failure_leaves_the_last_observation_alone(target):
    with guest(target).machine() as machine:
        heap = machine.heap.base_address
        machine.measure("store_pair", (heap, heap), COLD)
        before = machine.observation()
        failing(machine, "uninstrumented", "store_pair", heap, OUTSIDE)
        assert machine.observation() == before


@pytest.mark.covering
def test_a_failing_replay_is_not_the_next_ones(target):
    with tlsf_guest(target).machine() as machine:
        machine.call("tlsf_init", machine.heap.base_address, 4096)
        good, bad = trace_of([(0, 0, 8)]), trace_of([(0, 0, 8), (1, 1, 0), (1, 2, 0)])
        slots = HARNESS_ADDRESS + (16 << 20)
        for replay in (machine.replay_observed, machine.replay_counted, machine.replay):
            machine.memory.write(slots + 8, (OUTSIDE + 8).to_bytes(4, "big" if machine.memory.big_endian else "little"))
            with pytest.raises(EmulationError, match="stray access to 0x9000000"):
                replay(bad)
            machine.call("tlsf_init", machine.heap.base_address, 4096)
            assert machine.replay(good) == 0
            assert len(machine.replay_counted(good)) == 1


# ------------------------------------------------------------------------------------------------ code that cannot run


@pytest.mark.covering
@pytest.mark.parametrize("where", ["nowhere", "zero", "heap", "stack", "data behind the code"])
def test_a_jump_outside_of_the_code(target, mode, where):
    with guest(target).machine() as machine:
        layout = load_target(target).memory_map
        code = guest(target).image.code[-1]
        to = {
            "nowhere": OUTSIDE,
            "zero": 0,
            "heap": machine.heap.base_address,
            "stack": layout.stack.base_address,
            "data behind the code": code.end_address + 0x2000,
        }[where]
        sentence = failing(machine, mode, "jump", to | (target == "cortex-m4"))
        assert sentence.startswith(f"the guest jumped to {to:#010x}, outside the image's code")
        if mode in OBSERVED:
            assert machine.observation().instructions == 2


@pytest.mark.covering
def test_a_store_to_code(target, mode):
    with guest(target).machine() as machine:
        code = guest(target).image.segments[0]
        before = machine.memory.read(code.address, len(code.data))
        sentence = failing(machine, mode, "write_code")
        assert f"stray access to {guest(target).address('jump') | (target == 'cortex-m4'):#010x} at pc" in sentence
        assert "write_code+" in sentence
        assert machine.memory.read(code.address, len(code.data)) == before
        if mode in OBSERVED:
            assert machine.observation().instructions == (3 if target == "mpc603e" else 2)


def test_the_host_changes_no_code(target):
    """Both engines translate code once, and translated code takes its literals for constants."""
    with guest(target).machine() as machine:
        code = guest(target).image.segments[0]
        before = machine.memory.read(code.address, len(code.data))
        for change in (
            lambda: machine.memory.write(code.address, bytes(4)),
            lambda: machine.memory.window(code.address, 4),
            lambda: machine.memory.restore({code.address: bytearray(4)}),
        ):
            with pytest.raises(EmulationError, match="is code of the guest, which nothing changes"):
                change()
        assert machine.memory.read(code.address, len(code.data)) == before


@pytest.mark.parametrize("mode", OBSERVED)
@pytest.mark.parametrize("name", ["cortex-m4", "arm926ej-s", "mpc603e"])
def test_an_instruction_that_jumps_to_itself_ends_the_run_at_once(mode, name):
    """As a panic of firmware does: without a budget the run had no end, and within one it took it all."""
    core = load_target(name)
    with guest_of(assembler({"f": "nop\nnop\n0: b 0b"}, core), core).machine() as machine:
        sentence = failing(machine, mode, "f")
        assert "the guest never returns: the instruction at" in sentence
        assert f"in f+{4 if core.isa is Isa.THUMB else 8:#x} (" in sentence
        assert machine.observation().instructions == 2


@pytest.mark.parametrize("function", ["no_class", "system_call", "newer"])
def test_an_instruction_that_cannot_be_charged(target, function):
    with guest(target).machine() as machine:
        sentence = failing(machine, "measured", function, machine.heap.base_address)
        assert "which cannot be charged: " in sentence
        assert f"in {function}+" in sentence
        assert machine.observation().instructions == 1


@pytest.mark.covering
@pytest.mark.parametrize("mode", ["counted", "uninstrumented"])
@pytest.mark.parametrize("function", ["system_call", "newer"])
def test_an_instruction_that_the_core_does_not_execute(target, mode, function):
    """The instruction itself is named, though an exception leaves the program counter behind it.

    ``newer`` is ``tt`` of ARMv8-M, ``udiv`` of ARMv7, an unassigned PowerPC encoding: the CPU model is the target's.
    """
    with guest(target).machine() as machine:
        sentence = failing(machine, mode, function)
        pc = guest(target).address(function) + (2 if target == "cortex-m4" else 4)
        assert f"fault at pc {pc:#010x} in" in sentence
        assert f"{function}+" in sentence
        if mode == "counted":
            assert machine.observation().instructions == 1


def test_floating_point_of_the_powerpc_core_is_on():
    with guest_of(
        assembler({"f": "fmr 1, 2\nblr"}, load_target("mpc603e")), load_target("mpc603e")
    ).machine() as machine:
        machine.call("f")
        assert machine.measure("f", (), COLD).instructions == 2


def test_data_in_the_code_is_no_instruction():
    with guest("arm926ej-s").machine() as machine:
        literal = guest("arm926ej-s").address("literal") + 8
        assert "no instruction was decoded there" in failing(machine, "measured", "jump", literal)


# ------------------------------------------------------------------------------------------------------------- misuse


def test_unknown_and_wrong_symbols(target, mode):
    with guest(target).machine() as machine, pytest.raises(ImageError, match="did you mean 'plain'"):
        MODES[mode](machine, "plian")
    with tlsf_guest(target).machine() as machine, pytest.raises(ImageError, match="is no function of the image"):
        MODES[mode](machine, "tlsf_control")


def test_a_replay_needs_the_harness(target):
    with guest(target).machine() as machine, pytest.raises(ImageError, match="wp_replay"):
        machine.replay(trace_of([(0, 0, 8)]))


def test_too_many_arguments(target, mode):
    with guest(target).machine() as machine, pytest.raises(UsageError, match="at most 4 words, not 5"):
        MODES[mode](machine, "plain", 1, 2, 3, 4, 5)


def test_a_closed_machine_is_not_run(target, mode):
    with guest(target).machine() as machine:
        pass
    with pytest.raises(UsageError, match="closed"):
        MODES[mode](machine, "plain")


def test_host_accesses_outside_of_the_guests_memory(target):
    with guest(target).machine() as machine:
        for address in (OUTSIDE, machine.heap.end_address - 2, machine.heap.base_address - 1):
            with pytest.raises(EmulationError, match="no memory of the guest holds 4 bytes"):
                machine.memory.read_word(address)


@pytest.mark.parametrize("heap_bytes", [0xA0000000, 0xF0000000])
def test_a_heap_that_does_not_fit(target, heap_bytes):
    with pytest.raises(UsageError, match=r"does not fit into the memory of .*; at most \d+ do\."):
        guest(target).machine(heap_bytes)


@pytest.mark.covering
def test_the_largest_heap_of_tlsf_fits(target):
    with tlsf_guest(target).machine(1 << 28) as machine:
        base = machine.heap.base_address
        assert machine.call("tlsf_init", base, 1 << 28) == 0
        block = machine.call("tlsf_malloc", 100 << 20)
        assert block == base + 8
        assert machine.measure("tlsf_free", (block,), COLD).instructions > 0
        assert RETURN_ADDRESS not in machine.heap


def test_an_unknown_cpu_model_is_an_error():
    target = load_target("cortex-m4")
    wrong = replace(target, emulator_model="UC_CPU_NONE")
    with pytest.raises(UsageError, match="no CPU model 'UC_CPU_NONE'; correct emulator_model of cortex-m4"):
        Engine(wrong, (), 0, 0)


HANGING = """
import signal
import sys
from tests.emu.test_faults import MODES
from tests.support import TARGETS, assembler, guest_of
from wcet_probe.catalog.lookup import load_target

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job would ignore it
for target in map(load_target, TARGETS):
    with guest_of(assembler({"f": "1: nop\\nb 1b"}, target), target).machine() as machine:
        for mode in MODES:
            try:
                print("running", flush=True)
                MODES[mode](machine, "f")
            except KeyboardInterrupt:
                print(target.name, mode, flush=True)
"""


def test_calls_run_in_one_thread_after_the_other(monkeypatch):
    target = load_target("cortex-m4")
    begun = []
    monkeypatch.setattr(engine, "_IDLE_THREADS", [])
    monkeypatch.setattr(engine.threading, "Thread", lambda **how: begun.append(how) or THREAD(**how))
    with guest_of(assembler({"f": "bx lr"}, target), target).engine() as machine:
        for _ in range(20):
            machine.call("f")
    assert len(begun) == 1


def test_what_goes_wrong_in_the_thread_of_a_call_is_raised_where_the_call_is_made(monkeypatch):
    target = load_target("cortex-m4")
    with guest_of(assembler({"f": "bx lr"}, target), target).engine() as machine:
        with monkeypatch.context() as broken:
            broken.setattr(engine.Uc, "emu_start", lambda *_: 1 // 0)
            with pytest.raises(ZeroDivisionError):
                machine.call("f")
        machine.call("f")


def test_an_interrupt_ends_a_guest_that_hangs():
    """On each core, in each mode; one process for all, as to start it takes a second."""
    with subprocess.Popen([sys.executable, "-c", HANGING], stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        watch = threading.Timer(90, process.kill)
        watch.start()
        try:
            for target, mode in product(TARGETS, MODES):
                assert process.stdout.readline() == "running\n"
                time.sleep(0.1)
                process.send_signal(signal.SIGINT)
                assert process.stdout.readline() == f"{target} {mode}\n"
            assert process.wait() == 0
        finally:
            watch.cancel()
            process.kill()


@pytest.mark.parametrize("name", ["cortex-m4", "cortex-r5"])
def test_a_yield_is_executed_and_the_run_goes_on(name):
    """The engine stops behind it, as at what it cannot execute."""
    core = load_target(name)
    bodies = {
        "f": "mov r1, #0\n1: yield\nadd r1, r1, #1\ncmp r1, #5\nite eq\nyieldeq\naddne r1, r1, #0\nbne 1b\n"
        "mov r0, r1\nbx lr",
        "g": "b 2f\nyield\n2: udf #0\nbx lr",
        "h": "yield\nudf #0\nbx lr",
    }
    with guest_of(assembler(bodies, core), core).machine() as machine:
        expected = 1 + 5 * (7 if core.isa is Isa.THUMB else 6) + 2
        assert machine.call("f") == 5
        assert machine.count("f", ()) == expected
        assert machine.measure("f", (), COLD).instructions == expected
        for function in ("g", "h"):
            assert "Invalid instruction" in failing(machine, "uninstrumented", function)
