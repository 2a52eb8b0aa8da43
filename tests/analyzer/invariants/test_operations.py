"""The operations of a module as an induction sees them: accesses, what meets, results, what init surely stores."""

from dataclasses import replace

import pytest

from tests.analyzer.invariants.small_memory import small_module
from tests.analyzer.small_functions import lifter_of
from wcet_probe.analyzer.invariants.operations import operation, require_expanded, returned_words, surely_stored
from wcet_probe.analyzer.values.properties.own_block import Roles
from wcet_probe.analyzer.values.states.bases import Base
from wcet_probe.errors import AnalysisError

HEAD = "lis 9, head@ha\naddi 9, 9, head@l\n"
BODIES = {
    "take": HEAD + "lwz 3, 0(9)\ncmpwi 3, 0\nbeq 1f\nlwz 5, 0(3)\nstw 5, 0(9)\naddi 3, 3, 8\n1: blr",
    "give": HEAD + "lwz 5, 0(9)\nstw 5, -8(3)\naddi 3, 3, -8\nstw 3, 0(9)\nstw 4, -4(1)\nblr",
    "setup": HEAD + "li 5, 0\nstw 5, 4(9)\ncmpwi 4, 0\nbeq 1f\nstw 4, 0(9)\nli 3, 0\nblr\n1: li 3, 1\nblr",
    "unsure": HEAD + "cmpwi 4, 0\nbeq 1f\nstw 4, 0(9)\n1: li 3, 0\nblr",
    "counting": HEAD + "li 5, 4\nmtctr 5\nli 6, 0\n1: stw 6, 0(9)\naddi 6, 6, 4\nbdnz 1b\nli 3, 0\nblr",
}


@pytest.fixture(scope="module")
def module():
    guest, values = small_module(BODIES)
    return guest, values, lifter_of(guest)


NO_BLOCK = Roles(None, None)


def of(module, name, roles=NO_BLOCK):
    guest, values, lifter = module
    return operation(name, values[name], guest.image, lifter, roles, "r3")


def test_all_accesses_but_those_of_the_stack_are_told_in_order(module):
    head = module[0].address("head")
    give = of(module, "give", Roles("r3", None))
    assert [one.transfer.is_store for one in give.moved] == [False, True, True]
    assert [one.distance for one in give.moved] == [None, -8, None]
    assert [one.number for one in give.moved] == [0, 1, 2]
    for one in give.moved:
        state, pointer = one.transfer.state, one.transfer.pointer
        assert state.base(pointer) is Base.NUMBER
        if one.distance is None:
            assert state.value(pointer).value == head
        assert one.symbol_name == (one.transfer.place, one.transfer.instruction_address, one.transfer.operation)


def test_what_is_returned_is_told_on_each_way_out(module):
    take = of(module, "take", Roles(None, "r3"))
    assert {state.terms[term].opcode for state, term in take.returned} <= {"symbol", "INT_ADD", "GAMMA", "const"}
    values = {one for state, term in take.returned for one in (0, 8, 24) if one in state.value(term)}
    assert values == {0, 24}  # null is not taken for a block, 8 bytes before which its link is
    assert not of(module, "take").returned


def test_words_that_are_stored_on_every_way_to_success_are_told(module):
    head = module[0].address("head")
    assert of(module, "setup").surely_stored == {head, head + 4}  # the way without the store returns 1
    assert of(module, "unsure").surely_stored == frozenset()


def test_a_store_that_may_not_happen_is_not_sure(module):
    setup = of(module, "setup")
    result = setup.values.registers["r3"]
    assert set(surely_stored(setup.values, setup.moved, result)) == setup.surely_stored
    unsure = [replace(one, is_certain=False) for one in setup.moved]
    assert not set(surely_stored(setup.values, unsure, result))


def test_a_counter_is_told_by_what_enters_its_loop_and_how_far_it_counts(module):
    counting = of(module, "counting")
    reaches = [one for one in counting.meetings if one.reach is not None and one.reach.stride == 4]
    (counter,) = reaches
    assert counter.reach.unsigned_range() == (0, 12)
    assert [state.value(term).value for state, term in counter.arriving] == [0]


def test_calls_that_are_not_expanded_are_refused(module):
    values = module[1]["take"]
    require_expanded("take", values)
    edge, flow = next(iter(values.edges.items()))
    called = replace(values, edges={**values.edges, edge: replace(flow, calls=(object(),))})
    with pytest.raises(AnalysisError, match="take has calls that are not expanded"):
        require_expanded("take", called)


def test_a_result_that_is_not_known_is_refused(module):
    values = module[1]["take"]
    broken = replace(
        values, registers={**values.registers, "r3": values.registers["r3"]._replace(space="stack", offset=-64)}
    )
    with pytest.raises(AnalysisError, match="what take returns is not known"):
        returned_words("take", broken, Roles(None, "r3"))
