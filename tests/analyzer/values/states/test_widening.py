"""States of a header: what covers admits all runs, and chains of settled states end; see also the tests of joins."""

import pytest

from tests.analyzer.values.states.test_joins import PLACE, REGISTERS, SLOT, Paths, check_admits
from wcet_probe.analyzer.domains import strided
from wcet_probe.analyzer.values.states.bases import Base
from wcet_probe.analyzer.values.states.joins import join
from wcet_probe.analyzer.values.states.learning import learn
from wcet_probe.analyzer.values.states.state import State
from wcet_probe.analyzer.values.states.widening import covers, settled
from wcet_probe.analyzer.values.symbolic.terms import Terms


@pytest.mark.parametrize("part", range(3))
def test_a_state_that_covers_another_admits_all_its_runs(part):
    told = 0
    for number in range(120):
        paths = Paths(f"covers {part} {number}")
        (one, runs), draw = paths.path(), paths.draw
        other = one.copy()
        for _ in range(draw.randrange(4)):
            match draw.randrange(4):
                case 0 if SLOT in other.locations:
                    other.forget([SLOT])
                case 1 if other.known:
                    other.set_known(draw.choice(list(other.known)), None)
                case 2:
                    symbol = draw.choice(list(paths.entry.values()))
                    other.set_known(symbol, strided.between(32, draw.randrange(12), 12 + draw.randrange(12)))
                case 3:
                    other.set_location(REGISTERS[0], draw.choice([one.read(REGISTERS[0]), paths.terms.constant(4, 32)]))
        if covers(other, one):
            told += 1
            check_admits(other, runs)
    assert told > 40


def test_what_covers_says_no_more_of_locations_values_and_bases():
    terms = Terms()
    x, y = (terms.symbol(("in", register), 32) for register in REGISTERS[:2])
    plain = State(terms, big_endian=False)
    plain.set_location(REGISTERS[0], x)
    plain.set_location(SLOT, y)
    learn(plain, x, strided.between(32, 3, 5))
    assert covers(plain, plain.copy())
    wider, without_slot, other_base, elsewhere = (plain.copy() for _ in range(4))
    wider.set_known(x, strided.between(32, 0, 9))
    without_slot.forget([SLOT])
    other_base.set_base(y, Base.ANY)
    elsewhere.set_location(REGISTERS[0], y)
    for less in (wider, without_slot, other_base):
        assert covers(less, plain)
        assert not covers(plain, less)
    assert not covers(elsewhere, plain)
    assert not covers(plain, elsewhere)


def test_a_chain_of_settled_states_ends():
    """However what comes round changes, each step loses something, and there is not much to lose."""
    for seed in range(8):
        paths = Paths(f"settled {seed}")
        former, changes = paths.path()[0], 0
        for _ in range(60):
            grown = join([former, paths.path()[0]], PLACE, former)
            after = settled(former, grown, PLACE)
            changes += after != former
            assert after.locations.keys() - {*REGISTERS} <= former.locations.keys()
            former = after
        assert changes < 20
