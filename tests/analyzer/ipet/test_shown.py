"""What an access has shown of a symbol is told of the nodes behind it."""

import pytest

from tests.analyzer.ipet.hand_made import hand_made
from wcet_probe.analyzer.ipet.shown import with_shown


@pytest.mark.parametrize("divisor", [4, 8])
def test_an_access_shows_its_class_to_all_nodes_behind(divisor):
    made = hand_made(divisor=divisor)
    symbol = made.names.claims["f"]["r0"].symbol
    shown = with_shown(*made.checked, made.names).shown
    assert shown == {node: {symbol: (divisor, 0)} for node in ("one-way", "meeting")}


def test_without_a_fact_nothing_is_shown():
    made = hand_made(divisor=1)
    assert with_shown(*made.checked, made.names).shown == {}
