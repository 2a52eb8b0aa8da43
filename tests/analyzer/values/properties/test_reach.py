"""What an address is made of, against its value: one of the alternatives for all numbers of its symbols."""

import random
from types import SimpleNamespace

import pytest

from tests.analyzer.values.symbolic.test_terms import RUNS, Dag, evaluated
from wcet_probe.analyzer.domains import strided
from wcet_probe.analyzer.values.properties.reach import Reach, reaches, remainder
from wcet_probe.analyzer.values.states.bases import Base
from wcet_probe.analyzer.values.states.learning import learn
from wcet_probe.analyzer.values.states.state import State
from wcet_probe.analyzer.values.symbolic.terms import Terms

WAY_BITS, FULL = 10, (1 << 32) - 1


def grown(seed, steps=30):
    """Words with their values in some runs, and a state that admits them."""
    dag, draw = Dag(seed), random.Random(f"reach {seed}")
    for _ in range(steps):
        new = dag.grow()
        if new is not None and new[1] is not None:
            new[0].append(new[1:])
    for word, values in dag.words[:6]:  # what allocators align
        mask = draw.choice((0x7F0, FULL - 511, FULL - 31, FULL - 1023, 0xFFC00, 7))
        masked = dag.terms.apply("INT_AND", (word, dag.terms.constant(mask, 32)), 32)
        if masked is not None:
            dag.words.append((masked, [value & mask for value in values]))
    state = State(dag.terms, big_endian=False)
    for symbol in dag.symbols[0]:
        numbers = [run[symbol] for run in dag.symbols]
        if dag.terms[symbol].bits == 32 and max(numbers) - min(numbers) < 64:
            learn(state, symbol, strided.between(32, min(numbers), max(numbers)))
    return dag, state


@pytest.mark.parametrize("part", range(3))
def test_a_remainder_is_that_of_each_value(part):
    sharp = 0
    for number in range(15):
        dag, state = grown(f"remainder {part} {number}")
        for word, values in dag.words:
            found = remainder(state, word, WAY_BITS)
            sharp += not found.is_top
            assert all(value % (1 << WAY_BITS) in found for value in values), dag.terms[word]
    assert sharp > 30


@pytest.mark.parametrize("part", range(3))
def test_each_address_is_one_of_its_alternatives(part):
    links = 0
    for number in range(15):
        dag, state = grown(f"alternatives {part} {number}")
        accesses = {0: [SimpleNamespace(pointer=word, base=Base.NUMBER) for word, _ in dag.words]}
        values = SimpleNamespace(states={0: state}, terms=dag.terms, accesses=accesses)
        for (_, numbers), alternatives in zip(dag.words, reaches(values, 1 << WAY_BITS), strict=True):
            assert alternatives
            for run, address in zip(dag.symbols, numbers, strict=True):
                assert any(is_reached(dag.terms, one, address, run) for one in alternatives)
            links += any(one.link is not None for one in alternatives)
    assert links >= RUNS


def is_reached(terms, one: Reach, address, run):
    if one.link is not None:
        return (evaluated(terms, one.link, run) + one.offset - address) % (1 << 32) == 0
    return address % (1 << WAY_BITS) in one.remainders


def test_a_mask_keeps_the_remainder_that_a_comparison_bounds():
    terms = Terms()
    state = State(terms, big_endian=False)
    x = state.define((0, 0, 0), 32)
    low = terms.apply("INT_AND", (x, terms.constant(0x3E0, 32)), 32)
    state.set_known(low, strided.between(32, 0, 96, 32))
    aligned = terms.apply("INT_AND", (x, terms.constant(FULL - 31, 32)), 32)
    moved = terms.apply("INT_ADD", (aligned, terms.constant(8, 32)), 32)
    assert remainder(state, moved, WAY_BITS) == strided.between(WAY_BITS, 8, 104, 32)
    none = terms.apply("INT_AND", (x, terms.constant(FULL - 1023, 32)), 32)
    assert remainder(state, terms.apply("INT_ADD", (none, low), 32), WAY_BITS).unsigned_range() == (0, 96)


def test_of_the_stack_no_remainder_is_known():
    terms = Terms()
    state = State(terms, big_endian=False)
    pointer = state.define(("stack pointer",), 32, strided.constant(32, 0), Base.STACK)
    assert remainder(state, pointer, WAY_BITS).is_top


def told(name, value=None, constant=12, base=Base.NUMBER):
    terms = Terms()
    state = State(terms, big_endian=False)
    symbol = state.define(name, 32, value, base)
    pointer = terms.apply("INT_ADD", (symbol, terms.constant(constant, 32)), 32)
    values = SimpleNamespace(
        states={0: state}, terms=terms, accesses={0: [SimpleNamespace(pointer=pointer, base=base)]}
    )
    (found,) = reaches(values, 1 << WAY_BITS)
    return symbol, found


def test_a_loaded_word_is_a_link_and_an_argument_is_none():
    symbol, found = told((3, 0, 0), constant=-4)
    assert found == (Reach(symbol, -4),)
    _, (argument,) = told(("in", 0), strided.between(32, 0x2000, 0x2010, 8))
    assert argument == Reach(remainders=strided.between(WAY_BITS, 12, 28, 8))


def test_what_the_block_defines_itself_is_used_by_its_form_only():
    _, (one,) = told((0, 0, 0), strided.constant(32, 64))
    assert one.link is not None
    terms = Terms()
    state = State(terms, big_endian=False)
    symbol = state.define((0, 0, 0), 32, strided.between(32, 0, 3))
    twice = terms.apply("INT_MULT", (symbol, terms.constant(2, 32)), 32)
    for place, is_known in ((0, False), (1, True)):
        values = SimpleNamespace(
            states={place: state}, terms=terms, accesses={place: [SimpleNamespace(pointer=twice, base=Base.NUMBER)]}
        )
        ((one,),) = reaches(values, 1 << WAY_BITS)
        assert one.remainders.is_top is not is_known


def test_of_what_is_not_known_to_be_a_number_there_are_no_alternatives():
    assert told((3, 0, 0), base=Base.ANY)[1] == ()
