"""Where paths meet: what holds on one of them holds behind, and the order of states is told only where it is one.

Of walks over all operations of states see `test_state`.
"""

import random
from itertools import product

import pytest

from tests.analyzer.values.symbolic.test_terms import evaluated
from wcet_probe.analyzer.domains import strided
from wcet_probe.analyzer.values.states.bases import Base
from wcet_probe.analyzer.values.states.joins import join, live_symbols
from wcet_probe.analyzer.values.states.learning import assume, learn
from wcet_probe.analyzer.values.states.state import State
from wcet_probe.analyzer.values.states.widening import resumed, settled, widened
from wcet_probe.analyzer.values.symbolic.locations import Location
from wcet_probe.analyzer.values.symbolic.terms import Terms

REGISTERS = tuple(Location("register", 4 * number, 4) for number in range(4))
FLAG = Location("register", 100, 1)
SLOT = Location("stack", -4, 4)
PLACE = (7,)


class Paths:
    """States over some values at entry, each with runs that it admits: cells, and numbers of symbols."""

    def __init__(self, seed):
        self.draw, self.terms = random.Random(seed), Terms()
        self.entry = {at: self.terms.symbol(("in", at), 32) for at in REGISTERS}

    def path(self):
        draw, terms = self.draw, self.terms
        state = State(terms, big_endian=False)
        ranges = {symbol: (low := draw.randrange(20), low + draw.randrange(5)) for symbol in self.entry.values()}
        for location in (*REGISTERS, SLOT):
            if location != SLOT or draw.random() < 0.7:
                base = draw.choice(list(self.entry.values()))
                term = draw.choice((base, terms.constant(draw.randrange(9), 32)))
                term = terms.apply("INT_ADD", (term, terms.constant(draw.randrange(3), 32)), 32)
                if location == SLOT or draw.random() < 0.7:
                    state.set_location(location, term)
        for symbol, (low, high) in ranges.items():
            if draw.random() < 0.8:
                learn(state, symbol, strided.between(32, low, high))
        runs = []
        for _ in range(6):
            numbers = {symbol: draw.randint(low, high) for symbol, (low, high) in ranges.items()}
            cells = {at: evaluated(terms, state.read(at), numbers) for at in (*REGISTERS, *state.locations)}
            runs.append((cells, numbers))
        return state, runs


def check_admits(state, runs):
    """With the symbols of the place standing for what locations hold."""
    terms = state.terms
    for cells, numbers in runs:
        known = dict(numbers)
        for location, term in state.locations.items():
            if terms[term].opcode == "symbol" and terms[term].arguments[:2] == ("phi", PLACE):
                assert known.setdefault(term, cells[location]) == cells[location]
        for location in {*REGISTERS, *state.locations}:
            term = state.read(location)
            assert evaluated(terms, term, known) == cells[location], location
            assert cells[location] in state.value(term)
        for term, value in state.known.items():
            if terms.symbols(term) <= known.keys():
                assert evaluated(terms, term, known) in value


@pytest.mark.parametrize("related", [False, True])
@pytest.mark.parametrize("part", range(4))
def test_behind_a_join_holds_what_held_on_each_path(part, related):
    for number in range(60):
        paths = Paths(f"join {part} {number}")
        states, runs = zip(*(paths.path() for _ in range(paths.draw.randint(2, 3))), strict=True)
        together = [run for one in runs for run in one]
        merged = join(states, PLACE, related=related)
        check_admits(merged, together)
        again = join([merged, *states], PLACE, merged, related=related)
        check_admits(again, together)
        for in_haste in (False, True):
            check_admits(resumed(states[:1], PLACE, merged, in_haste=in_haste), runs[0])
        check_admits(widened(merged, again, (3, 30), {}), together)
        check_admits(settled(merged, again, PLACE), together)


def test_equal_values_on_each_path_are_one_symbol():
    terms = Terms()
    states = []
    for value in (3, 9):
        state = State(terms, big_endian=False)
        for register in REGISTERS[:2]:
            state.set_location(register, terms.constant(value, 32))
        states.append(state)
    merged = join(states, PLACE)
    assert merged.read(REGISTERS[0]) == merged.read(REGISTERS[1])
    assert merged.value(merged.read(REGISTERS[0])) == strided.between(32, 3, 9, 6)
    assert live_symbols(merged) == {merged.read(REGISTERS[0])}


def test_what_advances_together_differs_by_a_constant():
    terms = Terms()
    pointer, counter, other = REGISTERS[:3]

    def of(*values):
        state = State(terms, big_endian=False)
        for location, value in zip((pointer, counter, other), values, strict=True):
            state.set_location(location, terms.constant(value, 32))
        return state

    merged = join([of(96, 0, 5), of(97, 1, 7)], PLACE, related=True)
    symbol = merged.read(pointer)
    assert terms[symbol].opcode == "symbol"
    assert merged.read(counter) == terms.apply("INT_ADD", (symbol, terms.constant(-96 & 0xFFFFFFFF, 32)), 32)
    assert terms[merged.read(other)].opcode == "symbol"

    def behind(state, amount):
        result = state.copy()
        result.set_location(pointer, terms.apply("INT_ADD", (state.read(pointer), terms.constant(1, 32)), 32))
        result.set_location(counter, terms.apply("INT_ADD", (state.read(counter), terms.constant(amount, 32)), 32))
        return result

    again = join([of(96, 0, 5), behind(merged, 1)], PLACE, merged, related=True)
    assert (again.read(pointer), again.read(counter)) == (symbol, merged.read(counter))
    entered = resumed([of(96, 0, 9)], PLACE, again, in_haste=False)
    assert (entered.read(pointer), entered.read(counter)) == (symbol, merged.read(counter))
    for lost in (
        join([of(96, 0, 5), behind(merged, 2)], PLACE, merged, related=True),
        resumed([of(96, 1, 5)], PLACE, again, in_haste=False),
    ):
        assert lost.read(pointer) == symbol
        assert not terms.linear(lost.read(counter)).coefficients.keys() & {symbol}


def test_no_sum_of_a_symbol_is_kept_that_no_location_holds():
    """The stack pointer was moved in the loop; where it is entered anew, nobody has written it."""
    terms = Terms()
    pointer, other = REGISTERS[:2]
    entry = terms.symbol(("in", pointer), 32)

    def of(**offsets):
        state = State(terms, big_endian=False)
        state.set_base(entry, Base.STACK)
        for name, location in (("pointer", pointer), ("other", other)):
            if name in offsets:
                offset = terms.constant(offsets[name] & 0xFFFF_FFFF, 32)
                state.set_location(location, terms.apply("INT_ADD", (entry, offset), 32))
        return state

    merged = join([of(pointer=-8, other=-4), of(pointer=-16, other=-12)], PLACE, related=True)
    symbol = merged.read(pointer)
    assert terms[symbol].opcode == "symbol"
    assert merged.base(merged.read(other)) is Base.STACK
    assert symbol in terms.symbols(merged.read(other))
    entered = resumed([of(other=4)], PLACE, merged, in_haste=False)
    assert entered.read(pointer) == entry
    assert entered.base(entered.read(other)) is Base.STACK


def test_a_decided_gamma_node_may_be_term_0():
    """Both registers are chosen by one condition; of the older choice the part that it decides is taken."""
    terms = Terms()
    entry = terms.symbol(("in", REGISTERS[0]), 32)
    assert entry == 0
    condition = terms.apply("INT_LESS", (terms.symbol(("in", REGISTERS[1]), 32), terms.constant(5, 32)), 8)
    chosen = terms.gamma(condition, entry, terms.constant(9, 32))
    states = []
    for holds in (True, False):
        state = State(terms, big_endian=False)
        assert assume(state, condition, holds)
        state.set_location(REGISTERS[2], chosen if holds else entry)
        states.append(state)
    assert join(states, PLACE, gated=True).read(REGISTERS[2]) == entry


def test_a_register_that_was_never_written_is_not_silent():
    """One side has saved and restored it, the other has not touched it, and knows of it all the same."""
    terms = Terms()
    register = REGISTERS[0]
    entry = terms.symbol(("in", register), 32)
    restored, untouched = State(terms, big_endian=False), State(terms, big_endian=False)
    restored.set_location(register, entry)
    learn(restored, entry, strided.between(32, 10, 20))
    learn(untouched, entry, strided.constant(32, 3))
    for states in ([restored, untouched], [untouched, restored]):
        assert 3 in join(states, PLACE).value(entry)
        assert 3 in join(states, PLACE, gated=True).value(entry)


def test_a_choice_speaks_of_no_older_value_of_its_own_place():
    """Behind the join, the symbol of its place is the new value, and what was said with the older one must not hold."""
    terms = Terms()
    kept, other = REGISTERS[:2]
    older = terms.symbol(("phi", PLACE, kept), 32)
    condition = terms.apply("INT_LESS", (terms.symbol(("in", FLAG), 32), terms.constant(5, 32)), 8)
    states = []
    for holds in (True, False):
        state = State(terms, big_endian=False)
        state.set_location(kept, terms.constant(1 if holds else 2, 32))
        term = terms.apply("INT_ADD", (older, terms.constant(1, 32)), 32) if holds else terms.constant(9, 32)
        state.set_location(other, term)
        assert assume(state, condition, holds)
        states.append(state)
    merged = join(states, PLACE, gated=True)
    assert older not in terms.symbols(merged.locations[other])


def deep(terms, term, rounds):
    """A term of twice so many operations, of which none is simplified."""
    for number in range(rounds):
        for opcode, constant in (("INT_MULT", 3 + 2 * number), ("INT_XOR", 0x55)):
            term = terms.apply(opcode, (term, terms.constant(constant, 32)), 32)
    return term


@pytest.mark.parametrize(("outer", "inner"), [(1, 1), (8, 2), (2, 8), (8, 8)])
@pytest.mark.parametrize("is_first", [False, True])
def test_what_is_too_deep_for_a_choice_is_still_known_to_be_one(outer, inner, is_first):
    """As where ``orrs r5, r0, r1; it ne; orrsne r5, r2, r3; beq`` tests numbers that are calculated: both are not 0."""
    draw, terms = random.Random(f"choice {outer} {inner} {is_first}"), Terms()
    x, y = (terms.symbol(("in", at), 32) for at in REGISTERS[:2])
    condition = terms.apply("INT_LESS", (deep(terms, x, outer), terms.constant(1 << 31, 32)), 8)
    tested = terms.apply("INT_EQUAL", (deep(terms, y, inner), terms.constant(0x55, 32)), 8)
    states = []
    for holds in (True, False):
        state = State(terms, big_endian=False)
        assert assume(state, condition, holds)
        state.set_location(REGISTERS[0], x)
        state.set_location(REGISTERS[1], y)
        state.set_location(FLAG, tested if holds == is_first else terms.constant(1, 8))
        state.set_location(REGISTERS[2], deep(terms, y, inner) if holds == is_first else terms.constant(1, 32))
        states.append(state)
    merged = join(states, PLACE, gated=True)
    assert (terms[merged.read(FLAG)].opcode == "symbol") == (inner > 2)
    names = {one: ("condition", FLAG).index(terms[one].arguments[2]) for one in range(x, 1000) if is_made(terms, one)}
    for flag in (False, True):
        told = merged.copy()
        assert assume(told, merged.read(FLAG), flag)
        if not flag:
            assert told.value(condition) == strided.constant(8, int(is_first))
            assert told.value(tested) == strided.constant(8, 0)
        for _ in range(40):
            numbers = {x: draw.getrandbits(32), y: draw.choice((0, 0x55, draw.getrandbits(32)))}
            holds = evaluated(terms, condition, numbers)
            value = evaluated(terms, tested, numbers) if holds == is_first else 1
            if value == flag:
                numbers |= {one: value if is_flag else holds for one, is_flag in names.items()}
                for term, known in told.known.items():
                    if terms.symbols(term) <= numbers.keys():
                        assert evaluated(terms, term, numbers) in known


def is_made(terms, term):
    """Whether ``term`` is a symbol of a truth value that was made where the paths meet."""
    try:
        node = terms[term]
    except IndexError:
        return False
    return node.opcode == "symbol" and node.arguments[:2] == ("phi", PLACE) and node.arguments[2] in {"condition", FLAG}


def of_flag(terms, numbers, base=Base.NUMBER):
    """States with numbers of a flag that ways have brought together, each with another number in a register."""
    flag = terms.symbol(("phi", (3,), FLAG), 8)
    for which, number in enumerate(numbers):
        state = State(terms, big_endian=False)
        state.set_location(FLAG, flag)
        state.set_base(flag, base)
        state.set_known(flag, strided.constant(8, number))
        state.set_location(REGISTERS[0], terms.constant(5 * which, 32))
        yield state


def test_a_flag_of_which_no_comparison_is_known_chooses_as_well():
    terms = Terms()
    merged = join([*of_flag(terms, (1, 0))], PLACE, gated=True)
    chosen = merged.read(REGISTERS[0])
    assert terms[chosen].opcode == "GAMMA"
    for number, expected in ((1, 0), (0, 5)):
        state = merged.copy()
        learn(state, merged.read(FLAG), strided.constant(8, number))
        assert state.value(chosen) == strided.constant(32, expected)


@pytest.mark.parametrize(("numbers", "base"), [((2, 0), Base.NUMBER), ((1, 1), Base.NUMBER), ((1, 0), Base.STACK)])
def test_what_is_no_flag_does_not_choose(numbers, base):
    terms = Terms()
    merged = join([*of_flag(terms, numbers, base)], PLACE, gated=True)
    assert terms[merged.read(REGISTERS[0])].opcode == "symbol"


def choice(draw, terms, conditions, leaves, depth=2):
    """A random choice of choices, and the leaf that it is where each condition holds or not."""
    if depth == 0 or draw.random() < 0.2:
        leaf = draw.choice(leaves)
        return leaf, lambda _: leaf
    condition = draw.choice(conditions)
    (one, of_one), (other, of_other) = (choice(draw, terms, conditions, leaves, depth - 1) for _ in range(2))
    term = terms.gamma(condition, one, other)
    return term, lambda truths: (of_one if truths[condition] else of_other)(truths)


def with_choices(seed):
    """A join of two states whose register holds a choice, and of each run the leaf that was chosen."""
    draw, terms = random.Random(seed), Terms()
    x, y, *leaves = (terms.symbol(("in", at), 32) for at in (*REGISTERS, Location("register", 64, 4)))
    conditions = [terms.apply("INT_LESS", (one, terms.constant(5, 32)), 8) for one in (x, y)]
    bases = {leaf: draw.choice([Base.NUMBER, Base.NUMBER, Base.ANY, Base.STACK]) for leaf in leaves}
    states, chosen = [], set()
    for _ in range(2):
        state = State(terms, big_endian=False)
        for leaf, base in bases.items():
            state.set_base(leaf, base)
            if base is Base.NUMBER:
                learn(state, leaf, strided.between(32, 10 * leaf, 10 * leaf + 3))
        term, choose = choice(draw, terms, conditions, leaves)
        state.set_location(REGISTERS[0], term)
        told = {one: draw.choice([True, False, None]) for one in conditions}
        assert all(assume(state, condition, holds) for condition, holds in told.items() if holds is not None)
        for truths in (dict(zip(conditions, each, strict=True)) for each in product((True, False), repeat=2)):
            if all(told[one] in (None, truth) for one, truth in truths.items()):
                chosen.add(choose(truths))
        states.append(state)
    return join(states, PLACE), bases, chosen


def test_of_a_choice_that_is_decided_the_chosen_part_tells_whether_it_is_a_number():
    """Libgcc's `__muldf3` has a register that predicated instructions wrote, which held anything at entry."""
    numbers = 0
    for seed in range(400):
        merged, bases, chosen = with_choices(seed)
        held = merged.read(REGISTERS[0])
        if merged.base(held) is Base.NUMBER:
            numbers += 1
            assert {bases[leaf] for leaf in chosen} == {Base.NUMBER}
            assert all({10 * leaf, 10 * leaf + 3} <= {*merged.value(held).values()} for leaf in chosen)
    assert numbers > 60


def test_a_choice_that_is_not_decided_may_be_an_address():
    terms = Terms()
    x, y, z = (terms.symbol(("in", at), 32) for at in REGISTERS[:3])
    condition = terms.apply("INT_LESS", (x, terms.constant(5, 32)), 8)
    found = []
    for holds in (True, False, None):
        state, other = (State(terms, big_endian=False) for _ in range(2))
        for one in (state, other):
            one.set_base(z, Base.ANY)
        state.set_location(REGISTERS[3], terms.gamma(condition, y, z))
        other.set_location(REGISTERS[3], y)
        assert holds is None or assume(state, condition, holds)
        merged = join([state, other], PLACE)
        found.append(merged.base(merged.read(REGISTERS[3])))
    assert found == [Base.NUMBER, Base.ANY, Base.ANY]
