"""Symbols for values where nodes begin: the same value has one symbol, wherever it lies."""

from tests.analyzer.ipet.hand_made import STORED_FIRST, hand_made


def test_a_register_that_holds_another_and_some_bytes_has_its_symbol():
    names = hand_made().names
    for node in ("one-way", "meeting"):
        first, second = names.claims[node]["r0"], names.claims[node]["r1"]
        assert (first.offset, second) == (0, first._replace(offset=4))
        assert first == names.claims["f"]["r0"]
    assert names.homes[first.symbol][:2] == ("at", "f")


def test_a_loaded_value_has_a_symbol_of_its_own_that_begins_behind_the_load():
    loaded, names = hand_made().names.claims["meeting"]["r2"], hand_made().names
    assert loaded.symbol != names.claims["meeting"]["r0"].symbol
    assert names.homes[loaded.symbol][:2] == ("behind", "f")
    kept = hand_made(STORED_FIRST).names
    assert kept.homes[kept.claims["meeting"]["r2"].symbol][:2] == ("at", "f")


def test_symbols_are_as_much_as_facts_say():
    for divisor in (1, 4, 8):
        names = hand_made(divisor=divisor).names
        assert names.homes[names.claims["f"]["r0"].symbol][2] == (divisor, 0)
