"""Where small operations access static data: no further than it goes, and where the parts of an index lead to."""

import pytest

from tests.analyzer.invariants.small_memory import small_module
from tests.analyzer.small_functions import lifter_of
from wcet_probe.analyzer.invariants.image_words import Constants
from wcet_probe.analyzer.invariants.kinds import ALL, Kind, Part
from wcet_probe.analyzer.invariants.stored_addresses import Looks
from wcet_probe.analyzer.invariants.table_places import TablePlaces
from wcet_probe.analyzer.invariants.typed_memory import Evaluator, typed_memory
from wcet_probe.analyzer.invariants.typed_operations import typed_operation
from wcet_probe.analyzer.values.own_block import Roles

HEAD = "lis 9, head@ha\naddi 9, 9, head@l\n"
NUMBER = (Part(Kind.NUMBER, False, ALL),)
EIGHTHS = HEAD + "rlwinm 5, 3, 0, 0, 28\nstw 5, 4(9)\nblr"
FLAGGED = HEAD + "rlwinm 5, 3, 0, 0, 28\nori 5, 5, 1\nstw 5, 4(9)\nblr"
POINTED = HEAD + "stw 9, 4(9)\nblr"
FEW = HEAD + "rlwinm 5, 3, 0, 31, 31\nstw 5, 4(9)\nblr"
INDEXED = HEAD + "lwz 5, 4(9)\naddi 9, 9, 4\nslwi 6, 5, 2\nlwzx 7, 9, 6\nblr"
ARGUMENT = HEAD + "slwi 6, 3, 2\nlwzx 7, 9, 6\nblr"
TURNS = "1: stw 3, 0(5)\nmr 7, 5\nmr 5, 6\nmr 6, 7\naddi 3, 3, -1\ncmpwi 3, 2\nbne 1b\nblr"
IN_TURN = HEAD + "mr 5, 9\naddi 6, 9, 4\n" + TURNS
STEPPED = HEAD + "1: stw 3, 0(9)\naddi 9, 9, 4\naddi 3, 3, -1\ncmpwi 3, 2\nbne 1b\nblr"
FOLLOWED = HEAD + "lwz 5, 4(9)\nlwz 6, 0(5)\nblr"


def places(first, second):
    guest, values = small_module({"first": first, "second": second})
    lifter, kind_of = lifter_of(guest), Constants(guest.image).kind_of
    operations = [
        typed_operation(role, values[name], guest.image, lifter, Roles(None, None), {"r3": NUMBER}, "r3", kind_of)
        for role, name in (("init", "first"), ("other", "second"))
    ]
    evaluator = Evaluator(guest.image, operations)
    found = typed_memory(guest.image, operations, evaluator).found
    looks = Looks(
        lambda index, state, term: evaluator.word(index, state, term, found),
        lambda index, state, term: evaluator.value(index, state, term, found),
        evaluator.kind_of,
        evaluator.constants.pointers(),
    )
    head = guest.image.symbols["head"].address
    arriving = {one.symbol: one.arriving for one in operations[1].meetings}
    access = operations[1].accesses[-1].transfer
    told = TablePlaces(1, looks, arriving, ((head, head + 7),)).of(access.state, access.pointer, access.size_bytes)
    return None if told is None else [(low - head, high - head) for low, high in told]


@pytest.mark.parametrize(
    ("first", "second", "told"),
    [
        (EIGHTHS, ARGUMENT, [(0, 4)]),  # no further than static data goes
        (EIGHTHS, INDEXED, [(4, 4)]),  # 32 bytes on, and 28 before, there is none
        (FEW, INDEXED, [(4, 4)]),
        (FLAGGED, INDEXED, []),  # four bytes behind the start of the table, and 28 before, is none
        (POINTED, FOLLOWED, None),  # a loaded address is not computed
        (EIGHTHS, STEPPED, None),  # it is carried, and moved each time
    ],
    ids=["ends", "eighths", "few", "flagged", "loaded", "stepped"],
)
def test_an_index_leads_where_its_parts_fit_into_static_data(first, second, told):
    assert places(first, second) == told


def test_where_paths_meet_each_address_that_arrives_is_told():
    assert places(EIGHTHS, IN_TURN) == [(0, 0), (4, 4)]
