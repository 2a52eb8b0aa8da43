"""Words that are advanced over an area: which terms are, and what the lemma about them leaves out."""

from wcet_probe.analyzer.domains import strided
from wcet_probe.analyzer.invariants.contents import in_arena
from wcet_probe.analyzer.invariants.frontier import Area, Frontier, leads_on, moved_in, without_end

WAY_BITS = 12
AREA = Area(0, 1024)


def ways(low, high, stride=32):
    return strided.between(WAY_BITS, low, high, stride)


def advanced(way, by):
    (part,), (moved,) = (
        in_arena(way),
        in_arena(strided.apply("INT_ADD", (way, strided.constant(WAY_BITS, by)), WAY_BITS)),
    )
    return moved_in(part, moved, AREA, WAY_BITS).way


def test_what_is_advanced_ends_at_the_end_of_the_area():
    assert advanced(ways(32, 1024), 32) == ways(64, 1024)


def test_what_is_advanced_from_elsewhere_is_told_as_it_is():
    assert advanced(ways(2048, 3968), 32) == ways(2080, 4000)
    assert advanced(ways(512, 2048), 32) == ways(544, 2080)


def test_what_begins_outside_of_the_area_stays_as_it_is():
    outside = in_arena(ways(2048, 4064))
    assert without_end(outside, AREA, 32, WAY_BITS) == outside


def test_the_object_at_the_end_is_not_followed():
    (part,) = without_end(in_arena(ways(48, 1040)), AREA, 32, WAY_BITS)
    assert part.way == ways(48, 1008)


def test_nothing_is_left_out_of_what_leads_further_than_the_end():
    """Such as a link with an offset, or an access two objects behind it."""
    further = in_arena(ways(72, 1064))
    assert without_end(further, AREA, 32, WAY_BITS) == further


def test_a_sum_in_the_object_that_is_reached_is_told_by_how_far_it_is_advanced():
    frontier = Frontier({7: (32, 64)}, 32)
    assert frontier.advanced({7: 1}, 32) == (32, 0)
    assert frontier.advanced({7: 1}, 84) == (64, 20)
    assert frontier.advanced({7: 1}, 0) is None  # what was loaded is no advance
    assert frontier.advanced({7: 1}, 96) is None  # not advanced so far
    assert frontier.advanced({7: 1}, -32 & 0xFFFFFFFF) is None
    assert frontier.advanced({8: 1}, 32) is None
    assert frontier.advanced({7: 2}, 32) is None
    assert frontier.advanced({7: 1, 8: 1}, 32) is None


def test_an_object_is_followed_by_a_link_and_a_place_behind_it():
    assert leads_on({8: 1}, 28)
    assert not leads_on({8: 1}, -4 & 0xFFFFFFFF)
    assert not leads_on({8: 1, 9: 4}, 0)  # a table's
    assert not leads_on({8: 4}, 0)
    assert not leads_on({}, 1024)
