"""Where symbols are defined: as their names tell, and as an analysis of predicated code and loops uses them."""

import pytest

from tests.analyzer.small_functions import of_text
from wcet_probe.analyzer.values.symbolic.locations import Location
from wcet_probe.analyzer.values.symbolic.symbol_names import ENTRY, defined_at, is_defined_before

REGISTER = Location("register", 32, 4)


@pytest.mark.parametrize(
    ("name", "place"),
    [
        (("in", REGISTER), ENTRY),
        (("stack pointer",), ENTRY),
        ((7, 0x8000, 3), 7),
        ((7, 0x8000, 1 << 16, REGISTER), 7),
        (("phi", (7,), REGISTER), 7),
        (("phi", (7, 0x8000, 4), REGISTER), 7),
        (("phi", ("edge", 5, 7), REGISTER), 5),
        (("part", REGISTER), None),
        (("was", 7, 0x8000, 3, 0), None),
        (("x", 0), None),
    ],
)
def test_a_name_tells_its_place_or_nothing(name, place):
    assert defined_at(name) == place


NOW = (0x8004, 2)


@pytest.mark.parametrize(
    ("name", "is_before"),
    [
        ((7, 0x8000, 9), True),
        ((7, 0x8004, 1), True),
        ((7, 0x8004, 2), False),  # what the operation itself defines
        ((7, 0x8008, 0), False),
        (("phi", (7,), REGISTER), True),  # at the beginning of the block
        (("phi", (7, 0x8000, 4), REGISTER), True),
        (("phi", (7, 0x8004, 2), REGISTER), True),  # where ways meet that come to the operation
        (("phi", (7, 0x8008, 0), REGISTER), False),
        ((6, 0x8008, 0), True),
        (("in", REGISTER), True),
        (("part", REGISTER), False),
    ],
)
def test_what_is_defined_in_the_block_is_so_before_what_comes_later(name, is_before):
    assert is_defined_before(name, 7, NOW) is is_before


def test_each_symbol_of_an_analysis_is_defined_at_a_point_of_it():
    loop = "1: ldr r1, [r0]\ncmp r1, #0\nitt eq\nldreq r2, [r0, #4]\nmoveq r0, r2\nsubs r3, #1\nbne 1b\n"
    text = f"movs r2, #9\n{loop}ldr r3, [r0]\nbx lr"
    _, values = of_text(text)
    points = set(values.states)
    defined = {
        defined_at(values.terms[symbol].arguments)
        for flow in values.edges.values()
        for term in flow.state.locations.values()
        for symbol in values.terms.symbols(term)
    }
    assert defined <= {ENTRY, *points}
    assert len(defined) > 2
