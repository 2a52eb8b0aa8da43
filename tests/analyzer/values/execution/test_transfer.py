"""Blocks under abstract execution: which ways lead out of one, and that ways within it meet."""

import pytest

from tests.analyzer.small_functions import lifter_of, small_guest
from wcet_probe.analyzer.domains import strided
from wcet_probe.analyzer.values.execution.transfer import Transfer
from wcet_probe.analyzer.values.states.memory import Memory
from wcet_probe.analyzer.values.states.state import State
from wcet_probe.analyzer.values.symbolic.locations import Location
from wcet_probe.analyzer.values.symbolic.terms import Terms


def block(text, count=None):
    """How control leaves all of ``text``, with the locations of registers by number."""
    guest = small_guest(text)
    lifter, address, instructions = lifter_of(guest), guest.address("f"), []
    for _ in text.splitlines()[:count]:
        instructions.append(lifter.lift(address))
        address += instructions[-1].size_bytes
    terms, meetings = Terms(), []
    transfer = Transfer(lifter, terms, Memory(guest.image), lambda *told: meetings.append(told))
    flows = transfer.block(0, tuple(instructions), State(terms, big_endian=False))
    varnodes = [lifter.registers[f"r{number}"] for number in range(4)]
    return flows, [Location(one.space, one.offset, one.size_bytes) for one in varnodes], meetings


def test_a_branch_on_a_condition_leads_two_ways_each_of_which_knows_it():
    flows, registers, _ = block("cmp r0, #9\nbcc 1f\nnop\n1: bx lr", 2)
    assert {flow.way for flow in flows} == {"fall", "jump"}
    ranges = {flow.way: flow.state.value(flow.state.read(registers[0])).unsigned_range() for flow in flows}
    assert ranges == {"jump": (0, 8), "fall": (9, 0xFFFFFFFF)}


def test_predicated_instructions_under_one_condition_meet_once_behind_the_last():
    flows, registers, meetings = block("cmp r0, #9\nite cc\nmovcc r1, #1\nmovcs r1, #5\nmovs r2, #7")
    (flow,) = flows
    assert len(meetings) == 1
    assert flow.state.value(flow.state.read(registers[1])) == strided.between(32, 1, 5, 4)
    assert flow.state.value(flow.state.read(registers[2])) == strided.constant(32, 7)


@pytest.mark.parametrize(("text", "way"), [("bl .+64", "call"), ("bx lr", "return"), ("b .+8", "jump")])
def test_a_block_ends_as_its_last_instruction_does(text, way):
    flows, *_ = block(f"movs r0, #1\n{text}")
    assert [flow.way for flow in flows] == [way]


def test_a_trap_ends_all_ways():
    assert block("movs r0, #1\nudf #0")[0] == []
