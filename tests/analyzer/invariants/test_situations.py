"""What has been followed where a state holds: on all ways, and until it may be another word."""

import pytest

from tests.analyzer.invariants.small_memory import small_module
from wcet_probe.analyzer.invariants.situations import followed_words, situations

BODIES = {
    "both": "cmpwi 3, 0\nbeq 1f\nlwz 5, 8(4)\nb 2f\n1: lwz 5, 8(4)\n2: lwz 6, 0(7)\nblr",
    "one": "cmpwi 3, 0\nbeq 1f\nlwz 5, 8(4)\n1: lwz 6, 0(7)\nblr",
    "other": "cmpwi 3, 0\nbeq 1f\nlwz 5, 8(4)\nb 2f\n1: lwz 5, 4(4)\n2: lwz 6, 0(7)\nblr",
    "again": "mtctr 3\n1: lwz 4, 8(4)\nbdnz 1b\nlwz 6, 0(7)\nblr",
    "sum": "add 5, 4, 3\nlwz 6, 0(5)\nlwz 6, 0(7)\nblr",
}


def at_last(name):
    """What has been followed right before the last access, as registers and constants."""
    guest, found = small_module({"f": BODIES[name]})
    values = found["f"]
    names = {place: register for register, place in values.registers.items()}
    words = followed_words(values)
    last = max(index for index, accesses in values.accesses.items() if accesses)
    situated = situations(values)
    assert situated.accesses[last][-1].followed == words[last][-2]
    assert situated.leaving[last].followed == words[last][-1] >= words[last][-2]
    assert guest.image
    shown = set()
    for symbol, constant in words[last][-2]:
        arguments = values.terms[symbol].arguments
        shown.add((names[arguments[1]] if arguments[0] == "in" else "met", constant))
    return shown


@pytest.mark.parametrize(
    ("name", "followed"),
    [("both", {("r4", 8)}), ("one", set()), ("other", set()), ("again", {("met", 8)}), ("sum", set())],
)
def test_what_was_followed_on_all_ways_is_known_at_the_last_access(name, followed):
    assert at_last(name) == followed


def test_of_a_point_that_cannot_be_reached_nothing_is_told():
    _, found = small_module({"f": "li 3, 0\ncmpwi 3, 0\nbeq 1f\nlwz 5, 8(4)\n1: blr"})
    situated = situations(found["f"])
    assert situated.entering.keys() == found["f"].states.keys()
    for point, one in situated.entering.items():
        assert one.point == point
        assert not one.followed
