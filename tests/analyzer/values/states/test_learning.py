"""What a state learns holds of all concrete states for which it was learnt."""

import random

import pytest

from tests.analyzer.values.symbolic.test_terms import Dag, evaluated
from wcet_probe.analyzer.domains import strided
from wcet_probe.analyzer.pcode.semantics import signed
from wcet_probe.analyzer.values.states.bases import Base
from wcet_probe.analyzer.values.states.learning import (
    SymbolRange,
    SymbolSteps,
    assume,
    learn,
    learn_ranges,
    learn_round,
    settle_stack_addresses,
)
from wcet_probe.analyzer.values.states.state import State
from wcet_probe.analyzer.values.symbolic.locations import Location
from wcet_probe.analyzer.values.symbolic.terms import Terms

REGISTERS = tuple(Location("register", 4 * number, 4) for number in range(3))


def around(draw, numbers):
    """A set with all of ``numbers`` and some more."""
    low, high = min(numbers), max(numbers)
    return strided.between(32, max(0, low - draw.randrange(4)), min((1 << 32) - 1, high + draw.randrange(4)))


def grown(seed, steps=25):
    """Terms with their values in some runs, and a state that admits the runs."""
    dag, draw = Dag(seed), random.Random(f"state {seed}")
    for _ in range(steps):
        new = dag.grow()
        if new is not None and new[1] is not None:
            new[0].append(new[1:])
    state = State(dag.terms, big_endian=False)
    for symbol in dag.symbols[0]:
        if dag.terms[symbol].bits == 32 and draw.random() < 0.7:
            learn(state, symbol, around(draw, [numbers[symbol] for numbers in dag.symbols]))
    return dag, state


def check_admits(state, runs):
    for numbers in runs:
        for term, value in state.known.items():
            if state.terms.symbols(term) <= numbers.keys():
                assert evaluated(state.terms, term, numbers) in value, state.terms[term]


@pytest.mark.parametrize("part", range(4))
def test_what_is_assumed_is_true_of_all_runs_in_which_it_holds(part):
    refused = 0
    for number in range(15):
        dag, state = grown(f"learning {part} {number}")
        for condition, truths in dag.truths:
            for holds in (True, False):
                side = state.copy()
                own = [run for run, truth in zip(dag.symbols, truths, strict=True) if bool(truth) is holds]
                is_possible = assume(side, condition, holds)
                assert is_possible or not own
                refused += not is_possible
                check_admits(side, own)
                for other, others in dag.truths[::3] if is_possible else ():
                    inside = [
                        run
                        for run, truth, more in zip(dag.symbols, truths, others, strict=True)
                        if bool(truth) is holds and more
                    ]
                    again = side.copy()
                    assert assume(again, other, True) or not inside
                    check_admits(again, inside)
    assert refused > 20


def plain(count=2):
    terms = Terms()
    state = State(terms, big_endian=False)
    symbols = [terms.symbol(("in", register), 32) for register in REGISTERS[:count]]
    for register, symbol in zip(REGISTERS, symbols, strict=False):
        state.set_location(register, symbol)
    return terms, state, symbols


def compared(terms, opcode, one, other):
    return terms.apply(opcode, (one, terms.constant(other, 32)), 8)


def test_what_a_comparison_is_made_of_is_learnt_too():
    terms, state, (x, y) = plain()
    less = terms.apply("INT_ADD", (x, terms.constant(-8, 32)), 32)
    assert assume(state, compared(terms, "INT_LESS", less, 5), True)
    assert state.value(x) == strided.between(32, 8, 12)
    shifted = terms.apply("INT_RIGHT", (y, terms.constant(4, 32)), 32)
    assert assume(state, compared(terms, "INT_EQUAL", shifted, 3), True)
    assert state.value(y) == strided.between(32, 48, 63)
    assert not assume(state.copy(), compared(terms, "INT_EQUAL", y, 64), True)


@pytest.mark.parametrize(("shift", "told", "low", "high"), [(20, 0, 0, 0xFFFFF), (20, 0xFFFFFFFF, -0x100000, -1)])
def test_the_sign_and_the_upper_bits_tell_the_word_that_they_are_of(shift, told, low, high):
    """As ``x >> 20 == 0`` of a signed word tells that the exponent of a double is 0, and so is its sign."""
    terms, state, (x, _) = plain()
    shifted = terms.apply("INT_SRIGHT", (x, terms.constant(shift, 32)), 32)
    assert assume(state, compared(terms, "INT_EQUAL", shifted, told), True)
    assert state.value(x) == strided.between(32, low, high)


@pytest.mark.parametrize("shift", [0, 1, 28, 31])
def test_what_a_shift_that_keeps_the_sign_tells_is_true_of_all_words(shift):
    draw = random.Random(shift)
    for _ in range(60):
        terms, state, (x, _) = plain()
        shifted = terms.apply("INT_SRIGHT", (x, terms.constant(shift, 32)), 32)
        limit, number = draw.getrandbits(32), draw.choice([draw.getrandbits(32), 0, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF])
        limit = (signed(32, limit) >> shift) & 0xFFFFFFFF
        opcode = draw.choice(["INT_LESS", "INT_SLESS", "INT_EQUAL"])
        condition = compared(terms, opcode, shifted, limit)
        holds = bool(evaluated(terms, condition, {x: number}))
        assert assume(state, condition, holds)
        check_admits(state, [{x: number}])


def test_no_upper_bit_is_set_where_a_mask_leaves_nothing():
    terms, state, (x, y) = plain()
    upper = terms.apply("INT_AND", (x, terms.constant(0xFFFFFFE0, 32)), 32)
    middle = terms.apply("INT_AND", (y, terms.constant(0xFFE0, 32)), 32)
    assert assume(state, compared(terms, "INT_EQUAL", upper, 0), True)
    assert assume(state, compared(terms, "INT_EQUAL", middle, 0), True)
    assert state.value(x) == strided.between(32, 0, 31)
    assert state.value(y).is_top


def test_of_a_disjunction_the_part_that_is_left_holds():
    terms, state, (x, y) = plain()
    either = terms.apply("BOOL_OR", (compared(terms, "INT_LESS", x, 5), compared(terms, "INT_LESS", y, 7)), 8)
    assert assume(state, either, True)
    assert state.value(y).is_top
    assert assume(state, compared(terms, "INT_LESS", x, 5), False)
    assert state.value(y) == strided.between(32, 0, 6)
    assert not assume(state, compared(terms, "INT_LESS", y, 9), False)


def test_the_last_part_of_a_disjunction_is_asked_of_what_its_gamma_node_chooses():
    """As an exponent of libgcc's `__muldf3` that predicated instructions read again, where both operands are one."""
    terms, state, (x, y) = plain()
    chosen = terms.apply("GAMMA", (compared(terms, "INT_NOTEQUAL", x, 0), x, y), 32)
    is_five, is_chosen = (
        compared(terms, "INT_EQUAL", terms.apply("INT_XOR", (one, terms.constant(5, 32)), 32), 0) for one in (x, chosen)
    )
    either = terms.apply("BOOL_OR", (compared(terms, "INT_EQUAL", x, 0), is_chosen), 8)
    assert assume(state, is_five, False)
    assert assume(state, either, True)
    assert assume(state.copy(), compared(terms, "INT_EQUAL", x, 0), True)
    assert not assume(state.copy(), compared(terms, "INT_NOTEQUAL", x, 0), True)


def test_a_disjunction_of_which_no_part_is_left_cannot_be():
    terms, state, (x, _) = plain()
    above = terms.apply("INT_LESS", (terms.constant(100, 32), x), 8)
    assert assume(state, terms.apply("BOOL_OR", (compared(terms, "INT_LESS", x, 5), above), 8), True)
    assert assume(state.copy(), compared(terms, "INT_EQUAL", x, 101), True)
    assert not assume(state, compared(terms, "INT_EQUAL", x, 50), True)


def test_where_one_part_of_a_gamma_node_cannot_be_the_other_was_chosen():
    terms, state, (x, y) = plain()
    is_small = compared(terms, "INT_LESS", y, 100)
    chosen = terms.gamma(is_small, x, terms.constant(40, 32))
    assert assume(state, compared(terms, "INT_LESS", chosen, 10), True)
    assert state.value(y) == strided.between(32, 0, 99)
    assert state.value(x) == strided.between(32, 0, 9)


def test_ranges_are_learnt_of_live_symbols_of_their_base():
    terms, state, (x, y) = plain()
    state.set_base(y, Base.ANY)
    gone = ("in", REGISTERS[2])
    ten = strided.between(32, 0, 10)
    learn_ranges(state, [SymbolRange(terms[x].arguments, 32, Base.NUMBER, ten)])
    learn_ranges(state, [SymbolRange(terms[y].arguments, 32, Base.NUMBER, ten)])
    learn_ranges(state, [SymbolRange(gone, 32, Base.NUMBER, ten)])
    assert state.known == {x: ten}
    learn(state, x, strided.constant(32, 30))  # what cannot be is not learnt
    assert state.known == {x: ten}


@pytest.mark.parametrize("part", range(3))
def test_counters_of_a_loop_are_in_the_same_round(part):
    draw, sharper = random.Random(f"rounds {part}"), 0
    for _ in range(80):
        terms = Terms()
        state = State(terms, big_endian=False)
        steps, numbers, turn = [], {}, draw.randrange(40)
        for register in REGISTERS:
            name = ("phi", (7,), register)
            start, amount = draw.choice((0, 100, 1000, 0x20000000)), draw.choice((1, 4, 12, -1, -4))
            steps.append(SymbolSteps(name, 32, Base.NUMBER, start, amount))
            symbol = terms.symbol(name, 32)
            state.set_location(register, symbol)
            numbers[symbol] = start + amount * turn & 0xFFFFFFFF
            if draw.random() < 0.6 and start + amount * turn >= 0:
                learn(state, symbol, around(draw, [numbers[symbol]]))
        if any(one.start + one.amount * turn < 0 for one in steps):
            continue  # wraps around, which steps do not
        before = dict(state.known)
        learn_round(state, steps)
        for symbol, value in numbers.items():
            assert value in state.value(symbol)
        sharper += state.known != before
    assert sharper > 10


def test_counters_of_other_loops_tell_nothing():
    terms = Terms()
    state = State(terms, big_endian=False)
    names = [("phi", (place,), REGISTERS[place]) for place in (0, 1)]
    for name in names:
        state.set_location(name[2], terms.symbol(name, 32))
    learn(state, terms.symbol(names[0], 32), strided.between(32, 8, 16))
    learn_round(state, [SymbolSteps(name, 32, Base.NUMBER, 0, 4) for name in names])
    assert state.value(terms.symbol(names[1], 32)).is_top


def test_a_stack_address_that_is_decided_is_held_as_a_plain_offset():
    terms, state, (x, _) = plain()
    pointer = terms.symbol(("stack pointer",), 32)
    state.set_base(pointer, Base.STACK)
    state.set_known(pointer, strided.constant(32, 0))
    condition = compared(terms, "INT_LESS", x, 5)
    places = [terms.apply("INT_ADD", (pointer, terms.constant(offset, 32)), 32) for offset in (-8, -16)]
    chosen = terms.gamma(condition, *places)
    state.set_location(REGISTERS[2], chosen)
    settle_stack_addresses(state)
    assert state.read(REGISTERS[2]) == chosen
    assert assume(state, condition, False)
    settle_stack_addresses(state)
    assert state.read(REGISTERS[2]) == places[1]
    assert state.read(REGISTERS[0]) == x


def test_bits_that_are_set_are_set_under_each_larger_mask():
    """`tst n, #12` in front of a loop over the words of `n & 15` bytes, as newlib's memset has it."""
    terms, state, (x, y) = plain()

    def masked(symbol, mask):
        return terms.apply("INT_AND", (symbol, terms.constant(mask, 32)), 32)

    larger = masked(x, 15)
    assert assume(state, compared(terms, "INT_EQUAL", masked(x, 12), 0), False)
    assert state.value(larger) == strided.between(32, 4, 15)
    assert state.value(masked(x, 0xFF)) == strided.between(32, 4, 0xFF)
    assert state.value(x).unsigned_range()[0] == 4
    assert state.value(masked(x, 7)).low == state.value(masked(y, 15)).low == 0
    assert not assume(state.copy(), compared(terms, "INT_LESS", larger, 4), True)


def test_bits_of_a_stack_address_tell_nothing_of_its_offset():
    terms, state, (x, _) = plain()
    state.set_base(x, Base.STACK)
    low = terms.apply("INT_AND", (x, terms.constant(4, 32)), 32)
    assert assume(state, compared(terms, "INT_EQUAL", low, 0), False)
    assert state.value(x).is_top


def pointer_and_end(base):
    """A state with something of ``base`` and the stack pointer at entry."""
    terms = Terms()
    state = State(terms, big_endian=False)
    moving, end = terms.symbol(("x",), 32), terms.symbol(("stack pointer",), 32)
    state.set_base(moving, base)
    state.set_base(end, Base.STACK)
    state.set_known(end, strided.constant(32, 0))
    return terms, state, moving, end


def test_of_the_distance_of_two_addresses_of_the_stack_is_learnt_what_they_are():
    terms, state, moving, end = pointer_and_end(Base.STACK)
    learn(state, moving, strided.between(32, -72, -56, 8))
    distance = terms.apply("INT_SUB", (terms.apply("INT_ADD", (moving, terms.constant(8, 32)), 32), end), 32)
    behind = terms.apply("INT_ADD", (distance, terms.constant(48, 32)), 32)
    goes_on = terms.apply("INT_NOTEQUAL", (behind, terms.constant(0, 32)), 8)
    assert assume(state, goes_on, holds=True)
    assert state.value(moving) == strided.between(32, -72, -64, 8)


def test_of_a_distance_that_is_no_number_nothing_is_learnt():
    """Of what may be an address or none the state knows no offset, and so not of its distance from one."""
    terms, state, any_address, end = pointer_and_end(Base.ANY)
    distance = terms.apply("INT_SUB", (any_address, end), 32)
    assert assume(state, terms.apply("INT_LESS", (distance, terms.constant(8, 32)), 8), holds=True)
    assert state.value(any_address).is_top


@pytest.mark.parametrize("zeros", [0, 1, 16, 31, 32])
def test_leading_zeros_tell_where_a_number_is(zeros):
    terms = Terms()
    x = terms.symbol(("x",), 32)
    count = terms.apply("LZCOUNT", (x,), 32)
    state = State(terms, big_endian=False)
    assert assume(state, terms.apply("INT_EQUAL", (count, terms.constant(zeros, 32)), 8), True)
    assert state.value(x).unsigned_range() == ((1 << 31) >> zeros, (1 << 32 - zeros) - 1)
    state = State(terms, big_endian=False)
    assert assume(state, terms.apply("INT_LESS", (count, terms.constant(zeros, 32)), 8), False)
    assert state.value(x).unsigned_range() == (0, (1 << 32 - zeros) - 1)


def test_leading_zeros_of_an_address_tell_nothing_of_its_offset():
    terms = Terms()
    x = terms.symbol(("x",), 32)
    state = State(terms, big_endian=False)
    state.set_base(x, Base.STACK)
    count = terms.apply("LZCOUNT", (x,), 32)
    assert assume(state, terms.apply("INT_EQUAL", (count, terms.constant(3, 32)), 8), True)
    assert state.value(x).is_top


@pytest.mark.parametrize(("opcode", "amount", "bits"), [("INT_LEFT", 30, 2), ("INT_AND", 3, 2)])
def test_low_bits_of_a_stack_address_tell_its_offset_and_what_it_is_made_of(opcode, amount, bits):
    """As where bytes are written until the pointer is aligned, and words then: how many were left is known, too."""
    terms, state, (left, _) = plain()
    stack = terms.symbol(("stack pointer",), 32)
    state.set_base(stack, Base.STACK)
    state.set_known(stack, strided.constant(32, 0))
    learn(state, left, strided.between(32, 4, 4 + (1 << bits) - 1))
    pointer = terms.apply(
        "INT_ADD", (terms.apply("INT_SUB", (stack, left), 32), terms.constant(-50 & 0xFFFFFFFF, 32)), 32
    )
    told = terms.apply(opcode, (pointer, terms.constant(amount & 0xFFFFFFFF, 32)), 32)
    assert assume(state, terms.apply("INT_EQUAL", (told, terms.constant(0, 32)), 8), holds=True)
    (expected,) = (number for number in range(4, 4 + (1 << bits)) if (-50 - number) % (1 << bits) == 0)
    assert state.value(left) == strided.constant(32, expected)
    assert state.value(pointer) == strided.constant(32, -50 - expected)


def test_bits_that_the_alignment_of_the_stack_does_not_tell_are_not_learnt():
    terms, state, (left, _) = plain()
    stack = terms.symbol(("stack pointer",), 32)
    state.set_base(stack, Base.STACK)
    state.set_known(stack, strided.constant(32, 0))
    learn(state, left, strided.between(32, 0, 15))
    pointer = terms.apply("INT_ADD", (stack, left), 32)
    told = terms.apply("INT_AND", (pointer, terms.constant(15, 32)), 32)
    assume(state, terms.apply("INT_EQUAL", (told, terms.constant(0, 32)), 8), holds=True)
    assert state.value(left) == strided.between(32, 0, 15)


def test_a_low_part_that_is_compared_tells_of_the_whole_and_of_what_was_added_to():
    """``(uint16_t)(count - 1) <= 124``, as compilers make it of ``count >= 1 && count <= 125``."""
    terms, state, (left, right) = plain()
    zero, count = terms.constant(0, 32), terms.apply("INT_AND", (left, terms.constant(0xFFFF, 32)), 32)
    less = terms.apply("INT_ADD", (count, terms.constant(-1 & 0xFFFFFFFF, 32)), 32)
    part = terms.apply("INT_ZEXT", (terms.apply("SUBPIECE", (less, zero), 16),), 32)
    assert assume(state, terms.apply("INT_LESSEQUAL", (part, terms.constant(124, 32)), 8), holds=True)
    assert state.value(count) == strided.between(32, 1, 125)
    # Of a sum of two numbers each is known by the other.
    learn(state, right, strided.between(32, 0, 0xFFFF))
    total = terms.apply("INT_ADD", (count, right), 32)
    assert assume(state, terms.apply("INT_SLESS", (total, terms.constant(34, 32)), 8), holds=True)
    assert state.value(count) == strided.between(32, 1, 33)
    assert state.value(right) == strided.between(32, 0, 32)


def test_a_signed_number_of_few_bits_tells_of_the_bits():
    terms, state, (left, _) = plain()
    part = terms.apply("SUBPIECE", (left, terms.constant(0, 32)), 16)
    wide = terms.apply("INT_SEXT", (part,), 32)
    assert assume(state, terms.apply("INT_SLESS", (wide, terms.constant(9, 32)), 8), holds=True)
    assert assume(state, terms.apply("INT_SLESS", (wide, terms.constant(-3 & 0xFFFFFFFF, 32)), 8), holds=False)
    assert state.value(part) == strided.between(16, -3, 8)


def test_a_part_that_no_number_of_the_whole_has_is_impossible():
    terms, state, (left, _) = plain()
    learn(state, left, strided.between(32, 3, 9))
    part = terms.apply("SUBPIECE", (left, terms.constant(0, 32)), 8)
    assert not assume(state, terms.apply("INT_LESS", (part, terms.constant(3, 8)), 8), holds=True)


def test_a_low_part_of_a_stack_address_tells_nothing_of_its_offset():
    terms, state, (left, _) = plain()
    stack = terms.symbol(("stack pointer",), 32)
    state.set_base(stack, Base.STACK)
    state.set_known(stack, strided.constant(32, 0))
    learn(state, left, strided.between(32, 0, 99))
    pointer = terms.apply("INT_ADD", (stack, left), 32)
    part = terms.apply("SUBPIECE", (pointer, terms.constant(0, 32)), 8)
    assert assume(state, terms.apply("INT_LESS", (part, terms.constant(3, 8)), 8), holds=True)
    assert state.value(left) == strided.between(32, 0, 99)
