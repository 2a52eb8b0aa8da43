"""The error where control goes a way that the graph has not: what it says, and that it is raised."""

import pytest

from tests.analyzer.small_functions import lifter_of, small_guest
from wcet_probe.analyzer.values.execution.lost_flow import LostFlowError
from wcet_probe.analyzer.values.execution.transfer import Transfer
from wcet_probe.analyzer.values.states.memory import Memory
from wcet_probe.analyzer.values.states.state import State
from wcet_probe.analyzer.values.symbolic.terms import Terms


def test_it_names_the_place_the_way_and_where_to():
    assert str(LostFlowError("f+0x4", "jump", 0x8000)) == (
        "control leaves f+0x4 by a jump to 0x00008000, for which the graph has no edge"
    )
    assert str(LostFlowError("f+0x4", "return", None)) == (
        "control leaves f+0x4 by a return, for which the graph has no edge"
    )


def test_a_block_with_a_branch_in_its_middle_is_a_bug_that_ends_the_proof():
    guest = small_guest("cmp r0, #0\nbeq 1f\nmovs r0, #1\n1: bx lr")
    lifter, terms, address = lifter_of(guest), Terms(), guest.address("f")
    instructions = tuple(lifter.lift(address + 2 * number) for number in range(4))
    transfer = Transfer(lifter, terms, Memory(guest.image))
    with pytest.raises(LostFlowError, match=r"by a jump to 0x"):
        transfer.block(0, instructions, State(terms, big_endian=False))
    assert len(transfer.block(0, instructions[:2], State(terms, big_endian=False))) == 2
