"""What words operations store and load, by kinds: which accesses overlap, and the induction over small modules."""

from itertools import product
from random import Random

import pytest

from tests.analyzer.invariants.small_memory import small_module
from tests.analyzer.small_functions import lifter_of
from wcet_probe.analyzer.invariants.image_words import Constants
from wcet_probe.analyzer.invariants.kinds import MODULUS, NULL, Kind, Part, members, residue
from wcet_probe.analyzer.invariants.typed_memory import RESULT, Evaluator, Target, followed, sees, typed_memory
from wcet_probe.analyzer.invariants.typed_operations import Use, typed_operation
from wcet_probe.analyzer.values.properties.own_block import Roles
from wcet_probe.errors import AnalysisError


def random_target(random, base):
    low = base + random.randrange(12)
    high = low + random.randrange(0, 24)
    residues = 0
    for _ in range(random.randint(1, 3)):
        residues |= residue(random.randint(low, high))
    return Target(Kind.STATIC, 0, random.choice((1, 2, 4)), residues, low, high)


def places(target):
    return [one for one in range(target.low, target.high + 1) if target.residues >> one % MODULUS & 1]


@pytest.mark.parametrize("part", range(3))
def test_a_load_sees_the_stores_that_may_be_to_its_place_whole_or_in_part(part):
    random, told = Random(f"sees {part}"), set()
    for _ in range(600):
        load, store = (random_target(random, 0x200000) for _ in range(2))
        overlapping = [
            (one, other)
            for one, other in product(places(load), places(store))
            if one < other + store.size_bytes and other < one + load.size_bytes
        ]
        in_part = any(one != other or load.size_bytes != store.size_bytes for one, other in overlapping)
        found = sees(load, store)
        told.add(found)
        if in_part:
            assert found is None
        elif overlapping:
            assert found is not False
    assert told == {None, False, True}


def test_accesses_of_other_regions_and_stacks_see_nothing_of_each_other():
    arena = Target(Kind.ARENA, 0, 4, residue(0), 0, 100)
    stack = Target(Kind.NULL, 0, 4, residue(0), -8, -8)
    assert sees(arena, arena)
    assert sees(arena, arena._replace(region=Kind.STATIC)) is False
    assert sees(stack, stack._replace(owner=1)) is False
    assert sees(stack, stack._replace(low=-16, high=-12)) is False
    assert sees(stack, stack._replace(size_bytes=2)) is None


def test_what_is_followed_is_no_null_and_no_number_from_the_arena():
    link, number = Part(Kind.ARENA, True, 1), Part(Kind.NUMBER, True, 1)
    plain, index = Part(Kind.NUMBER, False, 1), Part(Kind.INDEX, True, 1)
    assert followed((*NULL, number, link, plain, index, Part(Kind.MIXED, True, 1))) == (link, plain)


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


KEEP = GIVE.replace("1: blr", "rlwinm 6, 4, 0, 30, 31\nori 6, 6, 3\nslwi 7, 6, 2\nlwzx 8, 9, 7\nstw 6, 4(3)\n1: blr")
SIZE = TAKE.replace("1: blr", "lwz 6, 4(3)\nrlwinm 6, 6, 0, 0, 28\nstw 5, 8(3)\n1: blr")
INDEX = TAKE.replace("1: blr", "lwz 6, 4(3)\nslwi 7, 6, 2\nlwzx 8, 9, 7\n1: blr")


@pytest.mark.parametrize(
    ("take", "give", "kinds"),
    [
        (INDEX, KEEP, {Kind.INDEX}),
        (SIZE, KEEP, set()),  # by the lemma: what is masked is no index
        (SIZE, KEEP.replace("1: blr", "slwi 8, 6, 2\nstwx 6, 3, 8\n1: blr"), {Kind.NUMBER}),  # it is an offset as well
    ],
)
def test_a_stored_index_is_loaded_as_one_only(take, give, kinds):
    operations, found, _ = module_of(take=take, give=give)
    symbol = next(one.symbol for one in operations[1].accesses if one.use in {Use.INDEX, Use.NUMBER})
    told = found.found[1, symbol]
    assert {part.kind for part in told if part.residues == residue(3) and part.is_loaded} == kinds


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
