"""Registers that a loop steps, of which the place that they address is a computed one."""

from types import SimpleNamespace

import pytest

from wcet_probe.certificate.modules.stepped_registers import stepped_registers
from wcet_probe.model.instruction import Control, Instruction

STEP = "add r1, r1, #4"


def instruction(address, text, control=Control.NEXT):
    name, *_ = text.split(" ", 1)
    operands = [one.strip(" ,") for one in text.removeprefix(name).split(",")]
    read = {one for one in operands[1:] if one.startswith("r")} | ({"lr"} if name == "bx" else set())
    written = {operands[0]} if name not in {"bx", "bl"} else set()
    return Instruction(address, 4, text, "alu", control=control, reads=frozenset(read), writes=frozenset(written))


def stepped(texts, edges, returns=(), calls=()):
    """Of blocks of one instruction each, by number."""
    controls = dict.fromkeys(returns, Control.INDIRECT) | dict.fromkeys(calls, Control.CALL)
    blocks = {
        str(number): (instruction(4 * number, text, controls.get(number, Control.NEXT)),)
        for number, text in enumerate(texts)
    }
    graph = SimpleNamespace(
        edges=[SimpleNamespace(name=f"{one}-{other}", source=str(one), target=str(other)) for one, other in edges]
    )
    coverage = SimpleNamespace(instructions=blocks, taken={edge.name for edge in graph.edges})
    return {int(node): set(registers) for node, registers in stepped_registers(graph, coverage).items()}


def test_all_blocks_of_a_loop_know_what_it_steps():
    found = stepped(["mov r1, r0", STEP, "mov r2, r3", "mov r4, r1"], [(0, 1), (1, 2), (2, 1), (2, 3)])
    assert found == {0: set(), 1: {"r1"}, 2: {"r1"}, 3: set()}


@pytest.mark.parametrize(
    "other", ["mov r1, r0", "add r1, r2, #4", "add r1, r1, #0", "add r1, r1, r2", "lsl r1, r1, #1"]
)
def test_a_register_that_a_loop_writes_otherwise_is_not_stepped(other):
    found = stepped([STEP, other], [(0, 1), (1, 0)])
    assert not found[0]
    assert not found[1]


def test_without_a_loop_nothing_is_stepped():
    assert not stepped([STEP, "mov r2, r1"], [(0, 1)])[0]


def test_two_calls_of_a_function_make_no_loop():
    """From block 0 to the function, blocks 3 and 4, back to 1, to it again, and back to 2."""
    texts = ["bl f", "bl f", "mov r2, r1", STEP, "bx lr"]
    edges = [(0, 3), (3, 4), (4, 1), (1, 3), (4, 2)]
    assert not any(stepped(texts, edges, returns={4}, calls={0, 1}).values())
    assert stepped(["mov r1, r0", STEP, "mov r2, r1", "bx lr"], [(0, 3), (3, 1), (1, 3), (3, 2)])[1] == {"r1"}


@pytest.mark.parametrize("back", ["add r1, r1, #-4", "sub r1, r1, #4", "sub r1, r1, #8"])
def test_a_register_that_a_loop_moves_back_is_not_stepped(back):
    """It may address the same place in each round."""
    assert not stepped([STEP, back], [(0, 1), (1, 0)])[1]
    assert stepped([STEP, "add r1, r1, #8"], [(0, 1), (1, 0)])[1] == {"r1"}


def test_a_register_is_stepped_on_each_way_around():
    """From block 0 to 1, which steps, or 2, which does not, and back; a loop behind the step alone is one as well."""
    edges = [(0, 1), (1, 0), (0, 2), (2, 0)]
    found = stepped(["mov r2, r3", STEP, "mov r4, r5"], edges)
    assert found == {0: set(), 1: {"r1"}, 2: set()}
    assert stepped(["mov r2, r3", STEP, STEP], edges)[0] == {"r1"}


def test_what_is_written_behind_a_call_is_written_in_the_loop():
    """Block 0 steps and goes on with itself, or calls block 3, which returns to 2, and back to 0."""
    edges, calls = [(0, 0), (0, 1), (1, 3), (3, 2), (2, 0)], {"returns": {3}, "calls": {1}}
    others = ("mov r4, r5", "bx lr")
    assert not stepped([STEP, "bl f", "mov r1, r0", others[1]], edges, **calls)[0]
    assert stepped([STEP, "bl f", others[0], others[1]], edges, **calls)[0] == {"r1"}


def test_what_a_function_writes_that_a_loop_calls_is_written_in_the_loop():
    edges, calls = [(0, 0), (0, 1), (1, 3), (3, 4), (4, 2), (2, 0)], {"returns": {4}, "calls": {1}}
    texts = [STEP, "bl f", "mov r4, r5", "mov r1, r0", "bx lr"]
    assert not stepped(texts, edges, **calls)[0]
    assert stepped([*texts[:3], "mov r6, r5", texts[4]], edges, **calls)[0] == {"r1"}


def test_what_is_written_behind_a_table_of_jumps_is_written_in_the_loop():
    """Block 0 steps and goes on with itself or with 1, which jumps to 2, and back to 0."""
    edges, ways = [(0, 0), (0, 1), (1, 2), (2, 0)], {"returns": {1}}
    assert not stepped([STEP, "bx r3", "mov r1, r0"], edges, **ways)[0]
