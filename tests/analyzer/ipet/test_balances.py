"""What is left of a constraint on misses where nodes begin is what the checker accepts."""

from dataclasses import replace

import pytest

from tests.analyzer.ipet.hand_made import at_most, hand_made
from wcet_probe.analyzer.ipet.balances import left_of

FIRST, SAME_WORD, NEXT_WORD = ("f", 0), ("meeting", 0), ("meeting", 1)


@pytest.mark.parametrize(
    ("places", "least"),
    [((FIRST,), 1), ((FIRST, SAME_WORD), 1), ((FIRST, NEXT_WORD), 2), ((NEXT_WORD,), 1)],
)
def test_so_many_misses_as_words_may_be_missed_are_accepted_and_no_less(places, least):
    """The word that is loaded first is in the cache where it is stored to, and the next one may be in another line."""
    made = hand_made()
    annotations = made.counting(*places)
    for count in range(3):
        constraint = at_most(count)
        left = left_of(made.caches, constraint, annotations, made.flow)
        assert made.caches.is_limited(constraint, replace(annotations, held={"c": left})) == (count >= least)


def test_nothing_is_said_behind_the_last_miss():
    made = hand_made()
    assert set(left_of(made.caches, at_most(1), made.counting(FIRST), made.flow)) <= {"f"}
