"""Terms evaluated on contents of words contain what the operations give for words that the contents stand for."""

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.analyzer.invariants.test_contents import FULL, WAY_BITS, intervals, stands_for
from tests.examples import examples
from wcet_probe.analyzer.domains import strided
from wcet_probe.analyzer.invariants.contents import Region, anything, in_arena, is_anything, number
from wcet_probe.analyzer.invariants.evaluation import Evaluation
from wcet_probe.analyzer.pcode.semantics import operation
from wcet_probe.analyzer.values.states.state import State
from wcet_probe.analyzer.values.symbolic.terms import Terms

BINARY = ("INT_ADD", "INT_SUB", "INT_MULT", "INT_AND", "INT_OR", "INT_XOR", "INT_LEFT", "INT_RIGHT")
UNARY = ("INT_NEGATE", "INT_2COMP", "LZCOUNT")
CONSTANTS = (0, 1, 2, 3, 4, 7, 8, 31, 32, 255, 4095, FULL, FULL & ~31, 1 << 31)


@st.composite
def computations(draw, depth=3):
    """A constant, the number of a symbol, or an operation on computations."""
    kind = draw(st.integers(0, 3 if depth else 1))
    if kind == 0:
        return "const", draw(st.sampled_from(CONSTANTS))
    if kind == 1:
        return "symbol", draw(st.integers(0, 1))
    if kind == 2:
        return draw(st.sampled_from(UNARY)), draw(computations(depth - 1))
    return draw(st.sampled_from(BINARY)), draw(computations(depth - 1)), draw(computations(depth - 1))


def term_of(terms, symbols, tree):
    if tree[0] == "const":
        return terms.constant(tree[1], 32)
    if tree[0] == "symbol":
        return symbols[tree[1]]
    return terms.apply(tree[0], tuple(term_of(terms, symbols, one) for one in tree[1:]), 32)


def word_of(words, tree):
    if tree[0] == "const":
        return tree[1]
    if tree[0] == "symbol":
        return words[tree[1]]
    operands = [word_of(words, one) for one in tree[1:]]
    return operation(tree[0], (4,) * len(operands), 4)(*operands)


def evaluated(terms, known, term):
    lookup = Evaluation(WAY_BITS, lambda symbol: known.get(symbol, anything(WAY_BITS)))
    return lookup.contents(State(terms, big_endian=False), term)


@settings(max_examples=examples(50))
@given(computations(), intervals(), intervals(), st.data())
def test_what_is_computed_is_among_the_contents(tree, one, other, data):
    words = [(part.low + part.stride * data.draw(st.integers(0, part.steps))) & FULL for part in (one, other)]
    terms = Terms()
    symbols = [terms.symbol((place, 0, 0), 32) for place in range(2)]
    known = {symbol: number(part, WAY_BITS) for symbol, part in zip(symbols, (one, other), strict=True)}
    assert stands_for(evaluated(terms, known, term_of(terms, symbols, tree)), word_of(words, tree))


def test_an_arena_address_plus_a_number_is_in_the_arena_and_less_another_a_number():
    terms = Terms()
    base, index, block = (terms.symbol((place, 0, 0), 32) for place in range(3))
    known = {
        base: in_arena(strided.residue_class(WAY_BITS, 0, 8)),
        index: number(strided.between(32, 0, 640, 64), WAY_BITS),
        block: in_arena(strided.residue_class(WAY_BITS, 4, 8)),
    }
    (moved,) = evaluated(terms, known, terms.apply("INT_ADD", (base, index), 32))
    assert (moved.region, moved.way) == (Region.ARENA, strided.residue_class(WAY_BITS, 0, 8))
    apart = evaluated(terms, known, terms.apply("INT_SUB", (block, base), 32))
    assert {part.region for part in apart} == {Region.NUMBER}
    assert all(part.way.low % 8 == 4 for part in apart)
    assert is_anything(evaluated(terms, known, terms.apply("INT_ADD", (block, base), 32)))


def test_a_class_by_the_leading_zeros_of_a_size_is_computed_case_by_case():
    """``size >> (floor(log2(size)) - 2)`` is 4 to 7, which no product of intervals tells."""
    terms = Terms()
    size = terms.symbol((0, 0, 0), 32)
    row = terms.apply("INT_SUB", (terms.constant(29, 32), terms.apply("LZCOUNT", (size,), 32)), 32)
    shifted = terms.apply("INT_RIGHT", (size, row), 32)
    found = evaluated(terms, {size: number(strided.between(32, 16, 1 << 20), WAY_BITS)}, shifted)
    assert {value for part in found for value in part.value.values()} == {4, 5, 6, 7}
