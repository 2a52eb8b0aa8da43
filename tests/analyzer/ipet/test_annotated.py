"""Lines that are in a cache where nodes begin."""

from tests.analyzer.ipet.hand_made import hand_made


def test_a_loaded_line_is_resident_on_both_ways():
    made = hand_made()
    word = made.names.claims["f"]["r0"].symbol, 0, 4
    assert {node: set(lines) for node, lines in made.annotations.must["data"].items()} == {
        "one-way": {word},
        "meeting": {word},
    }


def test_code_that_was_fetched_is_resident():
    made = hand_made()
    start = made.graph.nodes["f"][0]
    line = "number", start & -32, 32
    assert set(made.annotations.must["fetch"]["meeting"]) == {line}
    assert "f" not in made.annotations.must["fetch"]
