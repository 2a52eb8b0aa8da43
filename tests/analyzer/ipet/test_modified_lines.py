"""Lines of which a certificate says that they are modified: where a store surely was before, and a store is behind."""

from tests.analyzer.ipet.hand_made import LOADED_FIRST, STORED_FIRST, hand_made
from wcet_probe.analyzer.ipet.modified_lines import modified_lines


def found(text):
    made = hand_made(text)
    return modified_lines(made.caches, made.annotations, made.flow), made.names.claims["f"]["r0"].symbol


def test_a_line_that_was_stored_to_is_modified_where_the_next_store_is():
    lines, symbol = found(STORED_FIRST)
    assert lines == {node: {(symbol, 0, 4)} for node in ("one-way", "meeting")}


def test_a_store_on_one_of_two_ways_says_nothing_where_they_meet():
    lines, _ = found(LOADED_FIRST)
    assert lines == {}
