"""Where translated code looks for its budget and for interrupts: also where nothing but returns goes round."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.emu.twins import assert_equal, outcome, twins
from tests.support import TARGETS, Guest, assembler, guest_of
from wcet_probe.analyzer.pcode.lift import Lifter, code_reader
from wcet_probe.catalog.lookup import load_target
from wcet_probe.compiled import blocks
from wcet_probe.compiled.blocks import Flow, flow
from wcet_probe.model.scenario import InitialCache

ROOT = Path(__file__).parents[2]
BUDGET = 300_000
RETURNS_TO_ITSELF = {
    "cortex-m4": {"lost": "bl leaf\nadds r0, #1\nbx lr", "leaf": "bx lr"},
    "arm926ej-s": {"lost": "bl leaf\nadd r0, r0, #1\nbx lr", "leaf": "bx lr"},
    "mpc603e": {"lost": "bl leaf\naddi 3, 3, 1\nblr", "leaf": "blr"},
}
"""Who forgets to save the link register returns behind its last call, again and again."""
NOPS = "nop\n" * 40
_UNWINDS = f"push {{r4, lr}}\ncmp r0, #0\nbeq 1f\nsubs r0, r0, #1\nbl unwinds\n{NOPS}1: pop {{r4, pc}}"
UNWINDS = {
    "cortex-m4": _UNWINDS,
    "arm926ej-s": _UNWINDS,
    "mpc603e": f"""mflr 0\nstw 0, 4(1)\nstwu 1, -8(1)\ncmpwi 3, 0\nbeq 1f\naddi 3, 3, -1\nbl unwinds\n{NOPS}
        1: addi 1, 1, 8\nlwz 0, 4(1)\nmtlr 0\nblr""",
}
"""Returns of 8,000 calls of itself: more instructions than the last of a budget, which are the engine's."""


def guest(target: str) -> Guest:
    functions = RETURNS_TO_ITSELF[target] | {"unwinds": UNWINDS[target]}
    return guest_of(assembler(functions, load_target(target)), load_target(target))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("function", "argument"), [("lost", 0), ("unwinds", 8000)])
def test_a_budget_ends_what_only_returns(target, function, argument):
    for ask in (
        lambda m: m.call(function, argument),
        lambda m: m.count(function, (argument,)),
        lambda m: m.measure(function, (argument,), InitialCache.COLD).result,
    ):
        with twins(guest(target), most_instructions=BUDGET) as (engine, translated):
            assert f"takes more than {BUDGET} instructions, it is in {function}+" in str(outcome(engine, ask))
        with twins(guest(target), most_instructions=BUDGET) as (engine, translated):
            assert_equal(engine, translated, ask, observed=False)
            assert translated.observation().instructions == engine.observation().instructions


def flow_of(used: Guest) -> Flow:
    lifter = Lifter(used.target.pcode_language, used.target.isa, code_reader(used.image.segments))
    return flow(used.image, [lifter.lift(each.address) for each in used.instructions])


def test_only_a_function_that_calls_itself_pauses_behind_its_calls():
    target = load_target("arm926ej-s")
    functions = {
        "recursive": "push {r4, lr}\nbl leaf\ncmp r0, #0\nblne recursive\npop {r4, pc}",
        "plain": "push {r4, lr}\nbl recursive\nbl leaf\npop {r4, pc}",
        "leaf": "sub r0, r0, #1\nbx lr",
    }
    used = guest_of(assembler(functions, target), target)
    found = flow_of(used)
    entries = {used.address(name) for name in functions}
    assert found.pauses - entries == {used.address("recursive") + 16}
    assert found.pauses <= found.dispatched


def test_code_that_is_longer_than_what_a_budget_leaves_to_the_engine_pauses_everywhere(monkeypatch):
    used = guest("arm926ej-s")
    assert flow_of(used).pauses < set(flow_of(used).by_address)
    monkeypatch.setattr(blocks, "_MOST_BETWEEN_PAUSES", len(used.instructions) - 1)
    assert flow_of(used).pauses == flow_of(used).dispatched == set(flow_of(used).by_address)


HANGING = """
import signal
from tests.compiled.test_blocks import guest

signal.signal(signal.SIGINT, signal.default_int_handler)
with guest("cortex-m4").machine(translations=guest("cortex-m4").translated, translates_calls=True) as machine:
    machine.count_from_here("leaf", [(1,)])
    for ask in (
        lambda: machine.call("lost", 0),
        lambda: machine.count_from_here("unwinds", [(500,)] * 1_000_000),
    ):
        try:
            print("running", flush=True)
            ask()
        except KeyboardInterrupt:
            print("interrupted", flush=True)
"""


def test_an_interrupt_ends_what_only_returns_and_a_search():
    with subprocess.Popen([sys.executable, "-c", HANGING], stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        try:
            for _ in range(2):
                assert process.stdout.readline() == "running\n"
                time.sleep(0.3)
                process.send_signal(signal.SIGINT)
                begun = time.monotonic()
                assert process.stdout.readline() == "interrupted\n"
                assert time.monotonic() - begun < 60
            assert process.wait(60) == 0
        finally:
            process.kill()
