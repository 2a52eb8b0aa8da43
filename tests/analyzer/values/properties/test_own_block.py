"""Distances from the block that a call returns or is given, and what addresses are made of."""

import pytest

from tests.support import assembler, guest_of
from wcet_probe.analyzer.bound import prepare
from wcet_probe.analyzer.facts.language import Facts
from wcet_probe.analyzer.request import BoundRequest
from wcet_probe.analyzer.values.properties.own_block import Roles, distances
from wcet_probe.analyzer.values.properties.reach import reaches
from wcet_probe.catalog.lookup import load_target

WAY_BYTES = 4096
LOADED = "lis 4, 0x40\nlwz 5, 0(4)\n"


def values_of(body):
    target = load_target("mpc603e")
    guest = guest_of(assembler({"operation": body}, target), target)
    asked = BoundRequest(guest.image, target, guest.instructions, guest.costs, "operation", Facts(), {}, {})
    return prepare(asked).values


def asserted(body, roles, *, stores=True):
    values = values_of(body)
    accesses = [access for index in sorted(values.states) for access in values.accesses[index]]
    found = zip(accesses, distances(values, roles), strict=True)
    return [distance for access, distance in found if access.is_store is stores]


RETURNED, GIVEN = Roles(None, "r3"), Roles("r3", None)


def test_an_address_at_a_distance_from_the_argument():
    assert asserted("addi 4, 3, 16\nstw 5, 80(4)\nstw 5, -4(3)\nblr", GIVEN) == [96, -4]


@pytest.mark.parametrize(
    ("returns", "distance"),
    [
        ("mr 3, 5\nblr", -4),
        ("addi 3, 5, -8\nblr", 4),
        ("mr 6, 5\ncmpwi 7, 0\nbeq 1f\nmr 3, 6\nblr\n1: addi 6, 6, 4\naddi 3, 6, -4\nblr", -4),
        ("cmpwi 7, 0\nbeq 1f\nmr 3, 5\nb 2f\n1: addi 3, 5, 0\n2: addi 7, 7, 1\nblr", -4),
        ("cmpwi 7, 0\nbeq 1f\nmr 3, 5\nblr\n1: li 3, 0\nblr", None),
        ("cmpwi 7, 0\nbeq 1f\nmr 3, 5\nb 2f\n1: addi 3, 5, 8\n2: blr", None),
        ("lwz 3, 0(4)\nblr", None),
        ("mr 3, 5\nadd 3, 3, 7\nblr", None),
    ],
)
def test_what_is_returned_is_followed_on_every_way(returns, distance):
    """Another load of the same word may give another value: the store in between may have changed it."""
    assert asserted(f"{LOADED}stw 6, -4(5)\n{returns}", RETURNED) == [distance]


def test_a_way_that_does_not_lead_on_from_the_access_does_not_matter():
    assert asserted(f"{LOADED}cmpwi 7, 0\nbeq 1f\nstw 6, -4(5)\nmr 3, 5\nblr\n1: li 3, 0\nblr", RETURNED) == [-4]


def test_an_address_of_an_earlier_round_is_not_the_one_that_is_returned():
    body = f"{LOADED}li 7, 4\nmtctr 7\n1: stw 6, -4(5)\nlwz 5, 0(5)\nbdnz 1b\nmr 3, 5\nblr"
    assert asserted(body, RETURNED) == [None]


def test_a_mask_and_a_comparison_tell_the_remainder():
    """The place is rounded up to a line, and taken where it is in the first 1024 bytes of a way, else from the next."""
    choose = "rlwinm 6, 5, 0, 20, 26\ncmplwi 6, 896\nbgt 1f\nrlwinm 5, 5, 0, 0, 26\nstw 7, 32(5)\nblr\n"
    values = values_of(f"{LOADED}{choose}1: rlwinm 5, 5, 0, 0, 19\naddi 5, 5, 4096\nstw 7, 36(5)\nblr")
    found = [reach for reach in reaches(values, WAY_BYTES) if reach and reach[0].remainders and not reach[0].link]
    ranges = {(one.remainders.low, one.remainders.size) for (one,) in found}
    assert (32, 29) in ranges
    assert (36, 1) in ranges


def test_what_is_known_of_an_argument_is_kept_where_paths_meet():
    """The argument stays in its register, which no path writes."""
    body = "cmplwi 4, 127\nbgt 2f\ncmpwi 3, 0\nbeq 1f\nli 5, 1\n1: slwi 6, 4, 2\nlis 7, 0x40\nstwx 5, 6, 7\n2: blr"
    values = values_of(body)
    (stored,) = {access.offset for accesses in values.accesses.values() for access in accesses if access.is_store}
    assert stored.unsigned_range() == (0x400000, 0x400000 + 4 * 127)
