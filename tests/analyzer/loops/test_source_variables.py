"""Variables of the source as sums of registers: how far a round moves them, and when their names are not believed."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.path_check import attack, proved
from tests.support import guest_of
from wcet_probe.analyzer.loops import source_rounds
from wcet_probe.analyzer.loops.source_variables import change_of
from wcet_probe.catalog.lookup import load_target
from wcet_probe.model.image import VariableLocation

PARTS = frozenset({(3, Fraction(1, 4)), (5, Fraction(-1))})


@given(st.integers(-(1 << 40), 1 << 40), st.integers(-(1 << 31), (1 << 31) - 1))
def test_a_change_is_a_number_of_a_word(first, change):
    assert change_of((PARTS, Fraction(first)), (PARTS, Fraction(first + change))) == change
    assert change_of((PARTS, Fraction(first)), (PARTS, Fraction(first + change + (1 << 32)))) == change


@pytest.mark.parametrize(
    "after",
    [None, (frozenset({(3, Fraction(1, 4))}), Fraction(8)), (PARTS, Fraction(9, 2)), (frozenset(), Fraction(0))],
)
def test_of_other_registers_or_parts_of_a_step_no_change_is_known(after):
    assert change_of((PARTS, Fraction(4)), after) is None


def test_a_register_that_moves_by_a_whole_round_at_once_is_no_counter(monkeypatch):
    # One iteration each round: r5 is four times the counter, and the debug information calls it that.
    source = """\
unsigned words[256]; volatile unsigned sink;
unsigned f(unsigned n, unsigned key)
{
    unsigned s = 0;
    _Pragma("loopbound min 0 max 100")
    _Pragma("clang loop unroll(disable)")
    for (unsigned i = 0; i != n; i++) {
        if (words[i] == key)
            sink = s;
        s = s * 3 + words[i];
    }
    return s;
}
"""
    own = guest_of(source, load_target("mpc603e"), ".c")
    (loop,) = proved(own, "f", sources={"guest.c": source}).bound.loops
    place = (loop.address, loop.address + 64)
    for register in (4, 5, 6):
        told = VariableLocation("f", "i", 7, 1, *place, ((register, Fraction(1)),), Fraction(0))
        monkeypatch.setattr(source_rounds, "variable_locations", lambda *_, told=told: (told,))
        proof_of = proved(own, "f", sources={"guest.c": source})
        assert attack(proof_of, 100, 5) <= proof_of.bound.instructions
