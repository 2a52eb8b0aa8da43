"""Operations that were prepared do what their execution step by step does."""

from pathlib import Path

import pytest
from platformdirs import user_cache_dir

from tests.analyzer.small_functions import ARM, POWERPC, THUMB, analysed, lifter_of, small_guest
from wcet_probe.analyzer.values.execution import transfer
from wcet_probe.analyzer.values.execution.computations import Computation, computations, compute
from wcet_probe.analyzer.values.execution.needed_operations import needed_operations
from wcet_probe.analyzer.values.execution.prepared_instruction import PreparedInstruction
from wcet_probe.analyzer.values.execution.transfer import Transfer
from wcet_probe.analyzer.values.states.bases import Base
from wcet_probe.analyzer.values.states.memory import Memory
from wcet_probe.analyzer.values.states.state import State
from wcet_probe.analyzer.values.symbolic.terms import Terms
from wcet_probe.build.program import load_program
from wcet_probe.catalog.lookup import load_allocator, load_target


def prepared(body, target=THUMB):
    """The first instruction of ``body``."""
    guest = small_guest(body, target)
    lifter = lifter_of(guest)
    return PreparedInstruction.of(lifter.lift(guest.image.symbols["f"].address), lifter)


def every(one, terms):
    return computations(one, terms, range(len(one.instruction.ops)))


@pytest.mark.parametrize("target", ["cortex-m4", "arm926ej-s", "mpc603e"])
def test_a_computation_does_what_the_operation_does(target, monkeypatch):
    core = load_target(target)
    program = load_program(load_allocator("half-fit"), core, "zig", Path(user_cache_dir("wcet-probe")))
    lifter, values = analysed(program.image, core, program.allocator.entry_points["malloc"])
    memory, needed = Memory(program.image, stack_escapes=values.stack_escapes), needed_operations(values.graph, lifter)
    found, executed = [], []

    def noted(one, state):
        executed.append(done := compute(one, state))
        return done

    for made in (noted, lambda *_: False):
        monkeypatch.setattr(transfer, "compute", made)
        each = Transfer(lifter, values.terms, memory, needed=needed)
        found.append(
            [
                (flow.way, flow.address, flow.target, flow.conditions, flow.state)
                for index, state in values.states.items()
                for flow in each.block(index, values.graph.points[index].block.instructions, state.copy())
            ]
        )
    assert found[0] == found[1]
    assert sum(executed) > len(values.states)


@pytest.mark.parametrize(
    ("target", "body", "name"),
    [
        (THUMB, "adds r0, r1, r2\nbx lr", "INT_ADD"),
        (ARM, "and r0, r1, #3\nbx lr", "INT_AND"),
        (POWERPC, "addi 3, 3, 4\nblr", "INT_ADD"),
    ],
)
def test_what_reads_and_writes_registers_is_a_computation(target, body, name):
    found = every(prepared(body, target), Terms())
    assert all(isinstance(one, Computation) for one in found)
    assert name in {one.opcode for one in found}


@pytest.mark.parametrize(
    ("body", "opcode"),
    [("ldr r0, [r1]\nbx lr", "LOAD"), ("str r0, [r1]\nbx lr", "STORE"), ("dmb\nbx lr", "CALLOTHER")],
)
def test_what_is_more_than_a_computation_is_told_by_its_number(body, opcode):
    one = prepared(body)
    (index,) = (number for number, op in enumerate(one.instruction.ops) if op.opcode == opcode)
    assert every(one, Terms())[index] == index


def test_what_would_be_too_deep_is_left_to_who_asks():
    terms = Terms()
    state = State(terms, big_endian=False)
    (step,) = (one for one in every(prepared("eors r0, r1\nbx lr"), terms) if one.opcode == "INT_XOR")
    places = [place for place, _ in step.operands]
    for place in places:
        state.set_location(place, state.define(("x", place), 32, base=Base.ANY))
    counted = 0
    while compute(step, state):  # x ^ y, then the same of that and y, and so on
        state.set_location(places[0], state.read(step.output))
        counted += 1
    before = state.copy()
    assert not compute(step, state)
    assert state == before
    assert counted
