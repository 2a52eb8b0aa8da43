"""Simplified terms against the operations of p-code, on random values of their symbols."""

import random
from itertools import product

import pytest

from wcet_probe.analyzer.pcode.semantics import operation
from wcet_probe.analyzer.values.symbolic.terms import Terms

ARITHMETIC = ("INT_ADD", "INT_SUB", "INT_MULT", "INT_AND", "INT_OR", "INT_XOR", "INT_LEFT", "INT_RIGHT", "INT_SRIGHT")
COMPARISONS = (
    *("INT_EQUAL", "INT_NOTEQUAL", "INT_LESS", "INT_LESSEQUAL", "INT_SLESS", "INT_SLESSEQUAL"),
    *("INT_CARRY", "INT_SCARRY", "INT_SBORROW"),
)
LOGICAL = ("BOOL_AND", "BOOL_OR", "BOOL_XOR", "INT_EQUAL", "INT_NOTEQUAL")
CORNERS = (0, 1, 2, 3, 4, 5, 31, 32, 0x7F, 0x80, 0xFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0xFFFFFFFE)
SHIFTS = (0, 1, 2, 3, 28, 29, 31, 32, 33)
RUNS = 6


def evaluated(terms, term, symbols):
    node = terms[term]
    if node.opcode == "symbol":
        return symbols[term]
    if node.opcode == "const":
        return node.arguments[0]
    operands = terms.operands(term)
    values = [evaluated(terms, operand, symbols) for operand in operands]
    if node.opcode == "GAMMA":
        return values[1] if values[0] else values[2]
    return operation(node.opcode, tuple(terms[operand].bits // 8 for operand in operands), node.bits // 8)(*values)


class Dag:
    """Terms, each with what it must be for some values of the symbols."""

    def __init__(self, seed):
        self.draw, self.terms = random.Random(seed), Terms()
        self.symbols = [{} for _ in range(RUNS)]
        self.words, self.truths = [], []
        for number in range(self.draw.randint(1, 3)):
            self.symbol(self.words, ("x", number), 32, self.number)
        for number in range(self.draw.randint(0, 2)):
            self.symbol(self.truths, ("t", number), 8, lambda: self.draw.getrandbits(1))
        for constant in (0, 1):
            self.truths.append((self.terms.constant(constant, 8), [constant] * RUNS))
        for _ in range(3):
            self.words.append(self.constant(self.number()))

    def number(self):
        return self.draw.choice(CORNERS) if self.draw.random() < 0.8 else self.draw.getrandbits(32)

    def constant(self, value):
        return self.terms.constant(value, 32), [value] * RUNS

    def symbol(self, kind, name, bits, value):
        term = self.terms.symbol(name, bits)
        values = [value() for _ in range(RUNS)]
        for symbols, one in zip(self.symbols, values, strict=True):
            symbols[term] = one
        kind.append((term, values))

    def grow(self):  # noqa: PLR0911  one for each kind
        """One more term of a random kind; None where it would be too deep."""
        draw, terms = self.draw, self.terms
        word, other = draw.choice(self.words), draw.choice(self.words)
        truth, second = draw.choice(self.truths), draw.choice(self.truths)
        match draw.choice(
            ("arithmetic", "arithmetic", "compare", "compare", "logical", "not", "zext", "bit", "choice", "packed")
        ):
            case "arithmetic":
                opcode = draw.choice(ARITHMETIC)
                if opcode in ARITHMETIC[-3:] and draw.random() < 0.7:
                    other = self.constant(draw.choice(SHIFTS))
                return self.applied(opcode, 32, self.words, word, other)
            case "compare":
                return self.applied(draw.choice(COMPARISONS), 8, self.truths, word, other)
            case "logical":
                return self.applied(draw.choice(LOGICAL), 8, self.truths, truth, second)
            case "not":
                return self.truths, terms.negated(truth[0]), [1 - value for value in truth[1]]
            case "zext":
                return self.applied("INT_ZEXT", 32, self.words, truth)
            case "bit":
                low = terms.apply("INT_AND", (word[0], terms.constant(1, 32)), 32)
                if low is None:
                    return None
                return self.truths, terms.apply("SUBPIECE", (low, terms.constant(0, 32)), 8), [v & 1 for v in word[1]]
            case "choice":
                kind = draw.choice((self.words, self.words, self.truths))
                one, two = draw.choice(kind), draw.choice(kind)
                values = [a if t else b for t, a, b in zip(truth[1], one[1], two[1], strict=True)]
                return kind, terms.gamma(truth[0], one[0], two[0]), values
        return self.packed()

    def applied(self, opcode, bits, kind, *operands):
        terms = self.terms
        function = operation(opcode, tuple(terms[term].bits // 8 for term, _ in operands), bits // 8)
        values = [function(*row) for row in zip(*(values for _, values in operands), strict=True)]
        return kind, terms.apply(opcode, tuple(term for term, _ in operands), bits), values

    def packed(self):
        """A bit of a condition register that is packed of truth values, as PowerPC does."""
        bits = [self.draw.choice(self.truths) for _ in range(4)]
        position = self.draw.randrange(4)
        register = None
        for place, (bit, _) in enumerate(bits):
            shifted = self.terms.apply("INT_LEFT", (bit, self.terms.constant(3 - place, 32)), 8)
            parts = [part for part in (register, shifted) if part is not None]
            register = parts[0] if len(parts) == 1 else self.terms.apply("INT_OR", tuple(parts), 8)
        shifted = self.terms.apply("INT_RIGHT", (register, self.terms.constant(position, 32)), 8)
        found = None if shifted is None else self.terms.apply("INT_AND", (shifted, self.terms.constant(1, 8)), 8)
        return self.truths, found, bits[3 - position][1]


def check(seed, steps=25):
    dag = Dag(seed)
    for _ in range(steps):
        grown = dag.grow()
        if grown is None or grown[1] is None:
            continue
        kind, term, values = grown
        assert dag.terms[term].bits == (32 if kind is dag.words else 8)
        assert [evaluated(dag.terms, term, symbols) for symbols in dag.symbols] == values
        form = dag.terms.linear(term)
        for symbols, value in zip(dag.symbols, values, strict=True):
            total = sum(c * evaluated(dag.terms, part, symbols) for part, c in form.coefficients.items())
            assert (total + form.constant) % (1 << form.bits) == value
        kind.append((term, values))


@pytest.mark.parametrize("seed", range(20))
def test_a_simplified_term_has_the_value_of_its_operations(seed):
    for number in range(20):
        check(f"{seed} {number}")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_many_simplified_terms_have_the_value_of_their_operations(seed):
    for number in range(1500):
        check(f"long {seed} {number}")


@pytest.mark.parametrize("seed", range(20))
def test_a_distance_is_a_difference_without_symbols(seed):
    dag, told = Dag(f"distance {seed}"), 0
    for _ in range(40):
        grown = dag.grow()
        if grown and grown[1] is not None and grown[0] is dag.words:
            dag.words.append(grown[1:])
    for (one, values), (other, others) in product(dag.words, dag.words):
        distance, form = dag.terms.distance(one, other), dag.terms.difference(one, other)
        assert (distance is None) is bool(form.coefficients)
        if distance is not None:
            told += one != other
            assert -(1 << 31) <= distance < 1 << 31
            assert {(a - b - distance) % (1 << 32) for a, b in zip(values, others, strict=True)} == {0}
    assert told


def test_a_choice_of_words_is_a_word():
    terms = Terms()
    condition = terms.apply("INT_LESS", (terms.symbol(("x",), 32), terms.constant(5, 32)), 8)
    chosen = terms.gamma(condition, terms.constant(1, 32), terms.constant(0, 32))
    assert terms[chosen].bits == 32


@pytest.mark.parametrize("constant", [1, 5, 0x7FFFFFFF, 0xFFFFFFFF])
def test_flags_of_a_comparison_become_an_order(constant):
    """N != V after ``cmp`` is one signed comparison, also where the compiler turned it to ``cmn``."""
    terms = Terms()
    word, zero = terms.symbol(("x",), 32), terms.constant(0, 32)
    constraint, addend = terms.constant(constant, 32), terms.constant(-constant, 32)
    for opcode, overflow, second in (("INT_SUB", "INT_SBORROW", constraint), ("INT_ADD", "INT_SCARRY", addend)):
        difference = terms.apply(opcode, (word, second), 32)
        flags = terms.apply("INT_SLESS", (difference, zero), 8), terms.apply(overflow, (word, second), 8)
        less = terms.apply("INT_NOTEQUAL", flags, 8)
        assert terms[less].opcode == "INT_SLESS"
        assert terms.operands(less) == (word, constraint)
        assert terms.apply("INT_EQUAL", flags, 8) == terms.negated(less)


def test_the_least_number_has_no_negative_to_compare_with():
    terms = Terms()
    word, least = terms.symbol(("x",), 32), terms.constant(1 << 31, 32)
    total = terms.apply("INT_ADD", (word, least), 32)
    flags = terms.apply("INT_SLESS", (total, terms.constant(0, 32)), 8), terms.apply("INT_SCARRY", (word, least), 8)
    for value in CORNERS:
        found = evaluated(terms, terms.apply("INT_NOTEQUAL", flags, 8), {word: value})
        assert found == (evaluated(terms, flags[0], {word: value}) != evaluated(terms, flags[1], {word: value}))


@pytest.mark.parametrize("strict", [True, False])
def test_a_range_check_of_a_difference_is_one_comparison(strict):
    """ARM tells ``x - 1 > 3`` by a carry and by a flag that ``x`` is 4: together they are one order of ``x - 1``."""
    terms = Terms()
    x = terms.symbol(("x",), 32)
    less = terms.apply("INT_SUB", (x, terms.constant(1, 32)), 32)
    three = terms.constant(3, 32)
    carry = terms.apply("INT_LESSEQUAL", (three, less), 8)
    same = terms.apply("INT_EQUAL", (terms.apply("INT_SUB", (less, three), 32), terms.constant(0, 32)), 8)
    if strict:
        asserted = terms.apply("BOOL_AND", (carry, terms.negated(same)), 8)
        assert asserted == terms.apply("INT_LESS", (three, less), 8)
    else:
        asserted = terms.apply("BOOL_OR", (terms.negated(carry), same), 8)
        assert asserted == terms.apply("INT_LESSEQUAL", (less, three), 8)
    for value in (*range(7), (1 << 32) - 1):
        expected = ((value - 1) % (1 << 32) > 3) == strict
        assert evaluated(terms, asserted, {x: value}) == expected


def test_comparisons_of_other_distances_stay_apart():
    terms = Terms()
    x, y = terms.symbol(("x",), 32), terms.symbol(("y",), 32)
    less = terms.apply("INT_LESSEQUAL", (x, y), 8)
    other = terms.apply("INT_NOTEQUAL", (x, terms.apply("INT_ADD", (y, terms.constant(1, 32)), 32)), 8)
    both = terms.apply("BOOL_AND", (less, other), 8)
    assert terms[both].opcode == "BOOL_AND"


def test_choices_by_one_condition_and_its_opposite_are_one_choice():
    """As two predicated instructions write a register."""
    terms = Terms()
    x, old = terms.symbol(("x",), 32), terms.symbol(("old",), 32)
    less = terms.apply("INT_LESS", (x, terms.constant(64, 32)), 8)
    first = terms.gamma(less, x, old)
    assert terms.gamma(terms.negated(less), terms.constant(64, 32), first) == terms.gamma(
        terms.negated(less), terms.constant(64, 32), x
    )
    assert terms.gamma(less, first, old) == first


def test_a_choice_beside_a_comparison_is_no_comparison():
    terms = Terms()
    x, y = terms.symbol(("x",), 32), terms.symbol(("y",), 32)
    less = terms.apply("INT_LESS", (x, y), 8)
    truths = [terms.apply("INT_EQUAL", (terms.symbol(("z", number), 32), y), 8) for number in range(2)]
    choice = terms.gamma(less, *truths)
    assert terms[terms.apply("BOOL_AND", (less, choice), 8)].opcode == "BOOL_AND"


@pytest.mark.parametrize("opcode", ["DEFINED_DIV", "DEFINED_SDIV"])
def test_a_quotient_that_may_be_undefined_is_no_term(opcode):
    """By zero, by -1 or by what is not constant, two of the same operands need not be equal."""
    terms = Terms()
    one, other = terms.symbol("one", 32), terms.symbol("other", 32)
    divisors = [other, terms.constant(0, 32), terms.constant(0xFFFFFFFF, 32)]
    assert [terms.apply(opcode, (one, divisor), 32) for divisor in divisors] == [None] * 3
    assert terms.apply(opcode, (one, terms.constant(10, 32)), 32) is not None
    assert terms.apply(opcode, (terms.constant(70, 32), terms.constant(10, 32)), 32) == terms.constant(7, 32)
