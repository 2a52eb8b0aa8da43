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
    written = {operands[0]} if name != "bx" else set()
    return Instruction(address, 4, text, "alu", control=control, reads=frozenset(read), writes=frozenset(written))


def stepped(texts, edges, returns=()):
    """Of blocks of one instruction each, by number."""
    blocks = {
        str(number): (instruction(4 * number, text, Control.INDIRECT if number in returns else Control.NEXT),)
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
    """From block 0 to the function, block 3, back to 1, to it again, and back to 2."""
    edges = [(0, 3), (3, 1), (1, 3), (3, 2)]
    assert not any(stepped(["mov r1, r0", STEP, "mov r2, r1", "bx lr"], edges, returns={3}).values())
    assert stepped(["mov r1, r0", STEP, "mov r2, r1", "bx lr"], edges)[1] == {"r1"}
