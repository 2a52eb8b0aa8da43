"""The operations of a module as kinds see them: what loaded words are used as, and what is the caller's payload."""

from dataclasses import replace

import pytest

from tests.analyzer.invariants.small_memory import small_module
from tests.analyzer.small_functions import lifter_of
from wcet_probe.analyzer.invariants.image_words import Constants
from wcet_probe.analyzer.invariants.kinds import ANYTHING, NULL
from wcet_probe.analyzer.invariants.situations import NOWHERE
from wcet_probe.analyzer.invariants.typed_operations import Use, typed_operation
from wcet_probe.analyzer.values.properties.own_block import Roles
from wcet_probe.errors import AnalysisError

HEAD = "lis 9, head@ha\naddi 9, 9, head@l\n"
BODIES = {
    "follow": HEAD + "lwz 5, 0(9)\nlwz 6, 4(5)\nstw 6, 0(9)\nblr",
    "index": HEAD + "lwz 5, 4(9)\nslwi 6, 5, 2\nlwzx 7, 9, 6\nblr",
    "mask": HEAD + "lwz 5, 4(9)\nrlwinm 6, 5, 0, 0, 28\nstw 6, 4(9)\nblr",
    "plain": HEAD + "lwz 5, 4(9)\nstw 5, 0(9)\nblr",
    "give": "lwz 5, -4(3)\nlwz 6, 0(3)\nlwz 7, 8(3)\nstw 6, -8(3)\nblr",
    "both": HEAD + "lwz 5, 0(9)\nlwz 6, 4(9)\nlwzx 7, 5, 6\nlwz 8, 0(5)\nrlwinm 8, 5, 0, 29, 31\nblr",
    "count": HEAD + "lwz 5, 4(9)\ncmpwi 5, 7\nbeq 1f\nstw 5, 0(9)\n1: blr",
    "empty": HEAD + "lwz 5, 4(9)\ncmpwi 5, 0\nbeq 1f\nstw 5, 0(9)\n1: blr",
    "scale": HEAD + "lwz 5, 4(9)\nlwz 6, 8(9)\nadd 5, 5, 6\nslwi 5, 5, 4\nstw 5, 0(9)\nblr",
    "apart": HEAD + "lwz 5, 4(9)\nlwz 6, 8(9)\nsubf 5, 5, 6\nslwi 5, 5, 4\nstw 5, 0(9)\nblr",
    "walk": HEAD + "lwz 5, 0(9)\n1: lwz 6, 8(5)\nmr 5, 6\ncmpwi 6, 0\nbne 1b\nblr",
}


@pytest.fixture(scope="module")
def module():
    guest, values = small_module(BODIES)
    return guest, values, lifter_of(guest)


NO_BLOCK = Roles(None, None)


def of(module, name, roles=NO_BLOCK, **changed):
    guest, values, lifter = module
    kind_of = Constants(guest.image).kind_of
    told = replace(values[name], **changed)
    return typed_operation(name, told, guest.image, lifter, roles, {"r4": ANYTHING}, "r3", kind_of)


@pytest.mark.parametrize(
    ("name", "uses"),
    [
        ("follow", [Use.LINK, Use.OPEN]),
        ("index", [Use.INDEX, Use.OPEN]),
        ("mask", [Use.NUMBER]),
        ("plain", [Use.OPEN]),
        ("both", [Use.LINK, Use.NUMBER, Use.OPEN, Use.OPEN]),
        ("walk", [Use.LINK, Use.LINK]),
        ("count", [Use.NUMBER]),  # it is compared with 7
        ("empty", [Use.OPEN]),  # with null
        ("scale", [Use.NUMBER, Use.NUMBER]),  # of a sum that is multiplied
        ("apart", [Use.OPEN, Use.OPEN]),  # the distance of two addresses may be
    ],
)
def test_a_loaded_word_is_used_as_the_addresses_say_that_it_is_in(module, name, uses):
    found = of(module, name)
    loads = [one for one in found.accesses if not one.transfer.is_store]
    assert [one.use for one in loads] == uses
    assert all(one.symbol is not None for one in loads)
    assert all(one.symbol is None for one in found.accesses if one.transfer.is_store)


def test_the_payload_of_the_given_block_begins_at_its_start(module):
    give = of(module, "give", Roles("r3", None))
    assert [one.is_payload for one in give.accesses] == [False, True, True, False]
    assert give.given == give.values.terms.symbol(("in", give.values.registers["r3"]), 32)
    assert not any(one.is_payload for one in of(module, "give").accesses)
    assert give.arguments == {give.values.terms.symbol(("in", give.values.registers["r4"]), 32): ANYTHING}


def test_each_state_of_an_access_and_of_an_edge_has_its_situation(module):
    walk = of(module, "walk")
    for one in walk.accesses:
        assert walk.situation(one.transfer.state).point == one.transfer.place
    for edge, flow in walk.values.edges.items():
        assert walk.situation(flow.state).point == edge.source
    assert walk.situation(walk.values.states[0].copy()) is NOWHERE


def test_what_meets_is_told_along_each_edge(module):
    walk = of(module, "walk")
    arriving = [one for one in walk.meetings if len(one.arriving) == 2]
    assert arriving
    for one in arriving:
        assert walk.values.terms[one.symbol].arguments[0] == "phi"
        assert all(state.terms is walk.values.terms for state, _ in one.arriving)


def test_an_operation_that_gives_away_its_stack_or_calls_is_refused(module):
    with pytest.raises(AnalysisError, match="follow stores an address of its stack"):
        of(module, "follow", stack_escapes=True)
    values = module[1]["follow"]
    edge, flow = next(iter(values.edges.items()))
    with pytest.raises(AnalysisError, match="calls that are not expanded"):
        of(module, "follow", edges={edge: replace(flow, calls=(NULL,))})
