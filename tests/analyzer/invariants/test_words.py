"""What terms may be as words, against their values: kinds and residues of numbers, addresses and null."""

import pytest

from tests.analyzer.values.symbolic.test_terms import RUNS, Dag
from wcet_probe.analyzer.domains import strided
from wcet_probe.analyzer.invariants.kinds import ALL, ANYTHING, MODULUS, NULL, WORD_BITS, Kind, Part, members, residue
from wcet_probe.analyzer.invariants.situations import NOWHERE, Situations
from wcet_probe.analyzer.invariants.words import Words
from wcet_probe.analyzer.values.states.bases import Base
from wcet_probe.analyzer.values.states.learning import assume, learn
from wcet_probe.analyzer.values.states.state import State
from wcet_probe.analyzer.values.symbolic.terms import Terms

NO_SITUATIONS = Situations({}, {}, {}, {})
STATIC = 0x200000


def kind_of(value):
    return Kind.STATIC if STATIC <= value < STATIC + 4096 else Kind.NUMBER


def words(known):
    return Words(kind_of, lambda symbol: known.get(symbol, ANYTHING), NO_SITUATIONS)


def number_word(values):
    """The numbers, and null apart."""
    mask, bits = 0, [value.bit_length() for value in values if value]
    for value in values:
        mask |= residue(value) if value else 0
    number = (Part(Kind.NUMBER, False, mask, min(bits), max(bits)),) if mask else ()
    return (*(NULL if 0 in values else ()), *number)


def stands_for(parts, value):
    """Whether a number is among ``parts``: null apart, and any word for whatever is not known."""
    bits = value.bit_length()
    return any(
        (value == 0 if part.kind is Kind.NULL else True)
        and part.residues >> value % MODULUS & 1
        and (bits > WORD_BITS or part.least <= bits <= part.most)
        for part in parts
    )


@pytest.mark.parametrize("part", range(4))
def test_each_value_is_among_the_words_of_its_term(part):
    sharp = 0
    for number in range(10):
        dag = Dag(f"words {part} {number}")
        for _ in range(25):
            grown = dag.grow()
            if grown is not None and grown[1] is not None:
                grown[0].append(grown[1:])
        state = State(dag.terms, big_endian=False)
        known = {}
        for symbol in dag.symbols[0]:
            numbers = [run[symbol] for run in dag.symbols]
            known[symbol] = number_word(numbers)
            if max(numbers) - min(numbers) < 64 and dag.terms[symbol].bits == 32:
                learn(state, symbol, strided.between(32, min(numbers), max(numbers)))
        evaluator = words(known)
        for term, values in dag.words:
            found = evaluator.of(state, term, NOWHERE)
            assert all(stands_for(found, value) for value in values), dag.terms[term]
            sharp += sum(part.residues.bit_count() for part in found) < MODULUS
    assert sharp > 10 * RUNS


def setting():
    terms = Terms()
    return terms, State(terms, big_endian=False)


def of(state, term, known):
    return words(known).of(state, term, NOWHERE)


def plus(terms, one, other):
    return terms.apply("INT_ADD", (one, terms.constant(other, 32)), 32)


def test_a_link_and_a_number_is_an_address_and_its_low_bits_are_a_number():
    terms, state = setting()
    link, size = terms.symbol((0, 0, 0), 32), terms.symbol((0, 4, 0), 32)
    known = {link: (Part(Kind.ARENA, True, residue(8)),), size: (Part(Kind.NUMBER, False, residue(16)),)}
    moved = terms.apply("INT_ADD", (plus(terms, link, 4), size), 32)
    assert of(state, moved, known) == (Part(Kind.ARENA, True, residue(28)),)
    low = terms.apply("INT_AND", (link, terms.constant(7, 32)), 32)
    assert {part.kind for part in of(state, low, known)} <= {Kind.NUMBER, Kind.NULL}


def test_a_constant_is_what_the_image_has_there():
    terms, state = setting()
    assert of(state, terms.constant(0, 32), {}) == NULL
    assert of(state, terms.constant(STATIC + 8, 32), {}) == (Part(Kind.STATIC, False, residue(STATIC + 8)),)
    assert of(state, terms.constant(12, 32), {}) == (Part(Kind.NUMBER, False, residue(12), 4, 4),)


def test_a_number_is_shifted_by_each_amount():
    terms, state = setting()
    size = terms.symbol((0, 0, 0), 32)
    amount = state.define((0, 4, 0), 32, strided.between(32, 1, 3))
    shifted = terms.apply("INT_LEFT", (size, amount), 32)
    known = {size: (Part(Kind.NUMBER, False, residue(1)),), amount: ANYTHING}
    (found,) = (part for part in of(state, shifted, known) if part.kind is Kind.NUMBER)
    assert found.residues == residue(2) | residue(4) | residue(8)


def test_null_is_left_out_where_a_comparison_excludes_it():
    terms, state = setting()
    link = terms.symbol((0, 0, 0), 32)
    known = {link: (*NULL, Part(Kind.ARENA, True, residue(8)))}
    assert of(state, link, known) == known[link]
    assert assume(state, terms.apply("INT_NOTEQUAL", (link, terms.constant(0, 32)), 8), True)
    assert of(state, link, known) == known[link][1:]


def test_residues_that_a_condition_rules_out_are_left_out():
    """As a tag's lowest bit, which tells whether the block is free."""
    terms, state = setting()
    tag = terms.symbol((0, 0, 0), 32)
    known = {tag: (Part(Kind.NUMBER, False, residue(8) | residue(9)),)}
    low = terms.apply("INT_AND", (tag, terms.constant(1, 32)), 32)
    for holds, left in ((True, 8), (False, 9)):
        side = state.copy()
        assert assume(side, terms.apply("INT_EQUAL", (low, terms.constant(0, 32)), 8), holds)
        assert of(side, tag, known) == (Part(Kind.NUMBER, False, residue(left), 0 if holds else 1),)


@pytest.mark.parametrize(("amount", "left"), [(29, {0, 8}), (30, {0, 4, 8}), (26, {0})])
def test_residues_whose_low_bits_are_not_null_are_left_out_where_those_are_shifted_up(amount, left):
    """As Thumb asks whether an arena and its size are multiples of 8: of both at once, by a shift."""
    terms, state = setting()
    arena, size = terms.symbol((0, 0, 0), 32), terms.symbol((0, 4, 0), 32)
    either = terms.apply("INT_OR", (arena, size), 32)
    low = terms.apply("INT_LEFT", (either, terms.constant(amount, 32)), 32)
    known = {arena: (Part(Kind.ARENA, False, sum(residue(one) for one in (0, 1, 4, 6, 8))),), size: ANYTHING}
    assert assume(state, terms.apply("INT_EQUAL", (low, terms.constant(0, 32)), 8), True)
    (found,) = of(state, arena, known)
    assert set(members(found.residues)) == left


def test_each_part_of_a_choice_is_told_where_its_condition_lets_it_be():
    terms, state = setting()
    x, y = terms.symbol((0, 0, 0), 32), terms.symbol((0, 4, 0), 32)
    condition = terms.apply("INT_LESS", (x, terms.constant(5, 32)), 8)
    chosen = terms.gamma(condition, y, terms.constant(24, 32))
    known = {x: ANYTHING, y: (Part(Kind.ARENA, False, residue(0)),)}
    assert {part.kind for part in of(state, chosen, known)} == {Kind.ARENA, Kind.NUMBER}
    assert assume(state, condition, False)
    assert of(state, chosen, known) == (Part(Kind.NUMBER, False, residue(24), 5, 5),)


def test_of_the_stack_and_of_unknown_words_nothing_is_told():
    terms, state = setting()
    pointer = state.define(("stack pointer",), 32, strided.constant(32, 0), Base.STACK)
    assert of(state, plus(terms, pointer, -8), {}) == ANYTHING
    assert of(state, terms.symbol((0, 0, 0), 32), {}) == ANYTHING
    narrow = of(state, terms.symbol((0, 8, 0), 8), {})
    assert {part.kind for part in narrow} == {Kind.NUMBER}  # a byte is no address


def test_what_numbers_are_at_most_tells_where_a_table_ends():
    """An index of four bits, eight bytes each: no word before the table or behind its sixteen lines."""
    terms, state = setting()
    index = terms.symbol((0, 0, 0), 32)
    place = plus(terms, terms.apply("INT_LEFT", (index, terms.constant(3, 32)), 32), STATIC)
    told = {index: (*NULL, Part(Kind.NUMBER, False, ALL, 1, 4))}
    assert words(told).value(state, place).unsigned_range() == (STATIC, STATIC + 15 * 8)
    assert words({index: (Part(Kind.NUMBER, False, ALL),)}).value(state, place).unsigned_range()[1] > STATIC + 15 * 8
    assert words({index: (*NULL, Part(Kind.ARENA, False, ALL))}).value(state, place) == state.value(place)


def test_null_and_a_constant_stay_null_and_more():
    """What has been null all the time is no number where it is followed."""
    terms, state = setting()
    link = terms.symbol((0, 0, 0), 32)
    (found,) = of(state, plus(terms, link, 4), {link: NULL})
    assert found.kind is Kind.NEAR
    assert found.residues == residue(4)
    assert (found.least, found.most) == (3, 3)
