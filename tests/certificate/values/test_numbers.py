"""The checker's strided intervals: what concrete words give lies in what the operations say."""

import operator
import random
from itertools import product

import pytest

from wcet_probe.certificate.values import numbers
from wcet_probe.certificate.values.numbers import ANY, TOP, WORD, Value, join, number, refined, subtract, within

HALF = WORD // 2


def signed(word):
    """A word as a signed number."""
    return (word + HALF) % WORD - HALF


def drawn(draw):
    """Something plain: a constant, a range from 0 on, one from below 0 on, all words of some steps."""
    base, stride = draw.choice(("number", "any")), draw.choice((1, 1, 2, 3, 4, 12))
    size = draw.choice((0, 1, 2, 7, 40, 1 << 20, 1 << 31))
    kind = draw.randrange(4)
    if kind == 0:
        low = draw.choice((0, 1, 7, 31, HALF - 1, HALF, WORD - 1, draw.randrange(WORD)))
        return Value(base, low, low, 0)
    if kind == 1:
        low = min(draw.choice((0, 1, 5, HALF - 3, HALF, WORD - 9, draw.randrange(WORD))), WORD - 1)
        return number(low, min(low + size * stride, WORD - 1), stride)._replace(base=base)
    if kind == 2:
        low = -draw.choice((1, 2, 5, 30, 1 << 20))
        return number(low, min(max(-low, low + size * stride), HALF - 1), stride)._replace(base=base)
    step = draw.choice((1, 4, 8))
    return number(draw.randrange(step), WORD - 1, step)._replace(base=base)


def word_of(draw, value):
    """One of its words."""
    return draw.choice((value.words()[0], value.words()[-1], draw.choice(value.words()))) % WORD


def holds(value, word):
    """Whether a plain value holds a word."""
    return any(one in value.words() for one in (word, word - WORD))


OPERATIONS = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "conjunction": operator.and_,
    "disjunction": operator.or_,
    "exclusive": operator.xor,
    "shift_left": lambda a, b: a << b if b < 64 else 0,
    "shift_right": lambda a, b: a >> b,
    "shift_right_signed": lambda a, b: signed(a) >> b,
    "divide": lambda a, b: a // b if b else None,
}
RELATIONS = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


def pairs(seed, count=1500):
    """Pairs of values, and of words of them."""
    draw = random.Random(seed)
    for _ in range(count):
        a, b = drawn(draw), drawn(draw)
        yield a, b, word_of(draw, a), word_of(draw, b)


@pytest.mark.parametrize("name", OPERATIONS)
def test_an_operation_holds_what_words_give(name):
    for a, b, x, y in pairs(name):
        if name.startswith("shift"):
            b, y = number(y % 40), y % 40  # noqa: PLW2901  (what is shifted by is small)
        found, real = getattr(numbers, name)(a, b), OPERATIONS[name](x, y)
        assert found.may_be_stack >= (a.may_be_stack or b.may_be_stack), (a, b, found)
        assert real is None or holds(found, real % WORD), (a, b, x, y, found)


def test_operations_on_one_word_hold_what_it_gives():
    for a, _, x, _ in pairs("one"):
        assert holds(numbers.complement(a), WORD - 1 - x)
        assert holds(numbers.leading_zeros(a), 32 - x.bit_length())
        assert holds(numbers.unsigned(a), x)
        assert numbers.unsigned(a).low >= 0
        for bits in (8, 16):
            low = x % (1 << bits)
            assert holds(numbers.extended(a, bits, is_signed=False), low), (a, x)
            value = low - (1 << bits) if low >> bits - 1 else low
            assert holds(numbers.extended(a, bits, is_signed=True), value % WORD), (a, x)


def test_a_join_holds_both_and_a_part_is_within():
    for a, b, x, y in pairs("join"):
        both = join(a, b)
        assert holds(both, x)
        assert holds(both, y), (a, b, both)
        assert within(a, both), (a, both)
        assert within(b, both), (b, both)
        assert both.may_be_stack == (a.may_be_stack or b.may_be_stack)
        if within(a, b):
            assert holds(b, x), (a, b, x)
            assert b.may_be_stack >= a.may_be_stack


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("is_signed", [False, True])
def test_a_relation_keeps_the_words_that_it_holds_for(relation, *, is_signed):
    kept = 0
    for a, b, x, y in pairs(f"{relation} {is_signed}"):
        if RELATIONS[relation](*((signed(x), signed(y)) if is_signed else (x, y))):
            found = refined(a, relation, b, is_signed=is_signed)
            assert found is not None, (a, b, x, y)
            assert holds(found, x), (a, b, x, y, found)
            kept += 1
    assert kept > 30


def test_what_is_known_of_numbers_below_zero():
    assert subtract(number(9), number(0, 39)) == Value("number", -30, 9, 1)
    assert refined(TOP, "<", number(10), is_signed=True) == Value("number", -HALF, 9, 1)
    assert refined(Value("number", -30, 9, 1), ">", number(20), is_signed=False) == number(WORD - 30, WORD - 1)
    assert refined(Value("number", -30, 9, 1), "<", number(0), is_signed=True) == number(WORD - 30, WORD - 1)
    assert join(number(WORD - 1), number(4)) == Value("number", -1, 4, 5)
    assert not within(ANY, TOP)
    assert numbers.conjunction(Value("stack", 0, 0, 0), number(31)) == Value("any", 0, 31, 1)


def test_what_is_shifted_left_by_few_bits_keeps_the_steps_of_the_fewest():
    assert numbers.shift_left(number(1), number(4, 11)) == number(16, 2048, 16)
    assert numbers.shift_left(number(0, 6, 3), number(1, 2)) == number(0, 24, 6)
    assert numbers.shift_left(number(1), number(4, 31)) == number(16, 1 << 31, 16)
    assert numbers.shift_left(number(3), number(8, 31)) == number(0, WORD - 256, 256)


def test_the_lowest_bits_of_what_goes_in_steps_are_known():
    each = number(3, WORD - 1, 16)
    assert numbers.shift_left(each, number(30)) == number(3 << 30)
    assert numbers.conjunction(each, number(7)) == number(3)
    assert numbers.conjunction(number(1, 5, 4), number(7)) != number(1)


def test_what_is_computed_of_a_stack_address_is_derived_from_it():
    """But a distance of two; of how many bits are 0 an address can be made that is the same one."""
    stack = Value("stack", 0, 0, 0)
    assert numbers.leading_zeros(stack).may_be_stack
    binary = (numbers.add, numbers.multiply, numbers.divide, numbers.exclusive, numbers.shift_right)
    for compute in (*binary, numbers.shift_left, numbers.conjunction, numbers.disjunction):
        assert compute(stack, number(1, 7)).may_be_stack
        assert compute(number(1, 7), stack).may_be_stack
    assert subtract(stack, stack) == number(0)


def test_the_low_bits_of_a_number_tell_which_of_its_numbers_it_may_be():
    for first, size, low, high in product(range(-9, 10), range(12), range(4), range(4)):
        whole = number(first, first + size)
        own = [one for one in range(first, first + size + 1) if low <= one % 4 <= high]
        if low <= high:
            assert numbers.with_low_bits(whole, 4, number(low, high)) == (number(own[0], own[-1]) if own else None)
