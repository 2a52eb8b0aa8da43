"""What states tell of a term: all that is told of its symbols, and of what is told of together with them."""

from wcet_probe.analyzer.domains import strided
from wcet_probe.analyzer.invariants.components import Components
from wcet_probe.analyzer.values.states.bases import Base
from wcet_probe.analyzer.values.states.state import State
from wcet_probe.analyzer.values.symbolic.terms import Terms


def states(count):
    terms = Terms()
    symbols = [terms.symbol((place, 0, 0), 32) for place in range(5)]
    return terms, symbols, [State(terms, big_endian=False) for _ in range(count)]


def test_what_is_told_of_other_symbols_does_not_matter():
    terms, (one, other, *_), (plain, more) = states(2)
    less = terms.apply("INT_LESS", (one, terms.constant(8, 32)), 8)
    for state in (plain, more):
        state.set_known(less, strided.constant(8, 1))
    more.set_known(other, strided.between(32, 0, 9))
    assert Components(plain).of(one) == Components(more).of(one)
    assert Components(plain).of(other) != Components(more).of(other)


def test_symbols_that_are_told_of_together_are_one_component():
    terms, (one, between, other, apart, _), (state,) = states(1)
    for left, right in ((one, between), (other, between), (between, one)):
        state.set_known(terms.apply("INT_LESS", (left, right), 8), strided.constant(8, 1))
    state.set_known(other, strided.between(32, 0, 9))
    state.set_known(apart, strided.between(32, 0, 9))
    found = Components(state)
    assert found.of(one) == found.of(other) == found.of(terms.apply("INT_ADD", (one, between), 32))
    assert found.of(apart) == (frozenset({(apart, strided.between(32, 0, 9))}), frozenset())


def test_what_is_no_number_is_told():
    _, (one, other, *_), (state,) = states(1)
    state.set_base(one, Base.STACK)
    assert Components(state).of(one) == (frozenset(), frozenset({(one, Base.STACK)}))
    assert Components(state).of(other) == (frozenset(), frozenset())
