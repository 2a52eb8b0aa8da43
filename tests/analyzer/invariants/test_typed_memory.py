"""What words operations store and load, by kinds: the induction over small modules."""

import pytest

from tests.analyzer.invariants.small_memory import small_module
from tests.analyzer.small_functions import lifter_of
from wcet_probe.analyzer.invariants.image_words import Constants
from wcet_probe.analyzer.invariants.kinds import NULL, Kind, Part, members, residue
from wcet_probe.analyzer.invariants.typed_memory import RESULT, Evaluator, followed, typed_memory
from wcet_probe.analyzer.invariants.typed_operations import typed_operation
from wcet_probe.analyzer.values.own_block import Roles
from wcet_probe.errors import AnalysisError


def test_what_is_followed_is_no_null_and_no_number_from_the_arena():
    link, number = Part(Kind.ARENA, True, 1), Part(Kind.NUMBER, True, 1)
    plain = Part(Kind.NUMBER, False, 1)
    assert followed((*NULL, number, link, plain, Part(Kind.MIXED, True, 1))) == (link, plain)


HEAD = "lis 9, head@ha\naddi 9, 9, head@l\n"
SETUP = HEAD + "rlwinm 5, 3, 0, 0, 28\nstw 5, 0(9)\nli 5, 0\nstw 5, 0(3)\nli 3, 0\nblr"
TAKE = HEAD + "lwz 3, 0(9)\ncmpwi 3, 0\nbeq 1f\nlwz 5, 0(3)\nstw 5, 0(9)\n1: blr"
GIVE = HEAD + "cmpwi 3, 0\nbeq 1f\nlwz 5, 0(9)\nstw 5, 0(3)\nstw 3, 0(9)\n1: blr"
ARENA = (Part(Kind.ARENA, False, residue(0) | residue(8) | residue(16)),)


def module_of(setup=SETUP, take=TAKE, give=GIVE):
    guest, values = small_module({"setup": setup, "take": take, "give": give})
    lifter, kind_of = lifter_of(guest), Constants(guest.image).kind_of
    operations = [
        typed_operation("init", values["setup"], guest.image, lifter, Roles(None, None), {"r3": ARENA}, "r3", kind_of),
        typed_operation("malloc", values["take"], guest.image, lifter, Roles(None, "r3"), {}, "r3", kind_of),
        typed_operation("free", values["give"], guest.image, lifter, Roles("r3", None), {}, "r3", kind_of),
    ]
    evaluator = Evaluator(guest.image, operations)
    return operations, typed_memory(guest.image, operations, evaluator), evaluator


def test_a_list_of_blocks_gives_aligned_blocks_of_the_arena_or_null():
    """The head is the arena's start or what was given back; the result is a multiple of 8 by induction."""
    operations, found, evaluator = module_of()
    assert not found.lost
    returned = found.found[1, RESULT]
    assert {part.kind for part in returned} == {Kind.ARENA, Kind.NULL}
    assert all(one % 8 == 0 for part in returned for one in members(part.residues))
    assert found.found[2, operations[2].given] == returned
    (load,) = (one for one in operations[2].accesses if one.symbol is not None)
    word = evaluator.word(2, load.transfer.state, load.symbol, found.found)
    assert word == found.found[2, load.symbol]


def test_an_address_that_is_moved_by_four_is_told_with_its_residues():
    moved = TAKE.replace("1: blr", "addi 3, 3, 4\n1: blr")
    _, found, _ = module_of(take=moved)
    blocks = [part for part in found.found[1, RESULT] if part.kind is Kind.ARENA]
    assert {one % 4 for part in blocks for one in members(part.residues)} == {0}
    assert {one % 8 for part in blocks for one in members(part.residues)} == {0, 4}


def test_where_a_store_is_lost_it_is_told():
    _, found, _ = module_of(give="stw 3, 0(4)\nblr")
    assert found.lost == ((2, 0),)


def test_a_store_to_a_low_constant_is_not_lost_and_a_load_from_there_gives_anything():
    """The constant need not be a field behind null, so that it is not known that the load does not take place."""
    _, found, _ = module_of(give="li 9, 16\nstw 3, 0(9)\nblr")
    assert not found.lost
    with pytest.raises(AnalysisError, match="what malloc returns"):
        module_of(take="li 9, 16\nlwz 3, 0(9)\nblr")


def test_an_operation_that_returns_no_block_is_refused():
    with pytest.raises(AnalysisError, match="what malloc returns is not known to be a block of the arena"):
        module_of(take="mr 3, 4\nblr")


SIZED = HEAD + "rlwinm 5, 3, 0, 0, 28\nstw 5, 0(9)\nli 6, 8\nstw 6, 4(5)\nli 3, 0\nblr"
BEHIND = HEAD + "lwz 3, 0(9)\ncmpwi 3, 0\nbeq 1f\nlwz 5, 4(3)\nadd 3, 3, 5\nlwz 6, 0(3)\n1: blr"
KEPT = HEAD + "cmpwi 3, 0\nbeq 1f\nrlwinm 5, 4, 0, 31, 31\nslwi 6, 5, 2\nstwx 3, 9, 6\nstw 5, 4(3)\n1: blr"
UNUSED = KEPT.replace("stwx 3, 9, 6", "stw 3, 0(9)")


def test_a_distance_that_is_loaded_is_no_index_that_was_stored():
    """The lemma speaks of numbers that the storing operation uses as the index of a table, and of no others."""
    _, found, _ = module_of(SIZED, BEHIND, KEPT)
    blocks = [part for part in found.found[1, RESULT] if part.kind is Kind.ARENA]
    assert {one % 8 for part in blocks for one in members(part.residues)} == {0}
    with pytest.raises(AnalysisError, match="what malloc returns"):
        module_of(SIZED, BEHIND, UNUSED)
