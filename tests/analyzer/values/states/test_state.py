"""Abstract states against concrete ones: whatever is written, assumed, defined and joined, they are still admitted.

Each state is followed by concrete ones with the numbers of their symbols, so that no search for an assignment is
needed. Symbols and meeting places have few names, which come again as they do in loops.
"""

import random
from dataclasses import dataclass, field

import pytest

from tests.analyzer.small_functions import of_text
from tests.analyzer.values.symbolic.test_terms import CORNERS, evaluated
from wcet_probe.analyzer.domains import strided
from wcet_probe.analyzer.values.states.bases import Base
from wcet_probe.analyzer.values.states.joins import _predicate, join, live_symbols
from wcet_probe.analyzer.values.states.learning import assume
from wcet_probe.analyzer.values.states.state import State
from wcet_probe.analyzer.values.states.widening import covers, resumed, settled, widened
from wcet_probe.analyzer.values.symbolic.locations import Location
from wcet_probe.analyzer.values.symbolic.terms import Terms

REGISTERS = tuple(Location("register", 4 * number, 4) for number in range(6))
FLAGS = tuple(Location("register", 100 + number, 1) for number in range(3))
SLOTS = tuple(Location("stack", -4 * number, 4) for number in range(1, 4))
RELATIONS = ("INT_EQUAL", "INT_NOTEQUAL", "INT_LESS", "INT_LESSEQUAL", "INT_SLESS", "INT_SLESSEQUAL")


@dataclass
class Concrete:
    """What locations hold, and the numbers of the symbols that make the state say so."""

    cells: dict = field(default_factory=dict)
    symbols: dict = field(default_factory=dict)

    def copy(self):
        return Concrete(dict(self.cells), dict(self.symbols))


class Walk:
    def __init__(self, seed):
        self.draw, self.terms = random.Random(seed), Terms()
        self.concretes = []
        for _ in range(8):
            one = Concrete()
            for location in (*REGISTERS, *FLAGS):
                value = self.draw.getrandbits(1) if location in FLAGS else self.number()
                one.cells[location] = value
                one.symbols[self.terms.symbol(("in", location), 8 * location.size_bytes)] = value
            self.concretes.append(one)

    def number(self):
        return self.draw.choice((self.draw.randrange(8), self.draw.choice(CORNERS)))

    def check(self, state, concretes):
        for one in concretes:
            for location in {*state.locations, *REGISTERS, *FLAGS}:
                term = state.read(location)
                assert evaluated(self.terms, term, one.symbols) == one.cells[location], location
            for term, value in state.known.items():
                if state.base(term) is Base.NUMBER and self.terms.symbols(term) <= one.symbols.keys():
                    assert evaluated(self.terms, term, one.symbols) in value, self.terms[term]
            for location in state.locations:
                term = state.read(location)
                assert evaluated(self.terms, term, one.symbols) in state.value(term)
        self.check_remembered(state)

    def check_remembered(self, state):
        """What a state has evaluated before is what one finds that says the same and has evaluated nothing."""
        fresh = State(self.terms, big_endian=False)
        for location, term in state.locations.items():
            fresh.set_location(location, term)
        for symbol, base in state.bases.items():
            fresh.set_base(symbol, base)
        for term, value in state.known.items():
            fresh.set_known(term, value)
        assert fresh == state
        for term in {*state.locations.values(), *state.known}:
            assert (state.value(term), state.base(term)) == (fresh.value(term), fresh.base(term)), self.terms[term]

    def operand(self, state):
        if self.draw.random() < 0.3:
            return self.terms.constant(self.number(), 32)
        held = [slot for slot in SLOTS if slot in state.locations]
        return state.read(self.draw.choice((*REGISTERS, *held)))

    def condition(self, state):
        if self.draw.random() < 0.3:
            return state.read(self.draw.choice(FLAGS))
        return self.terms.apply(self.draw.choice(RELATIONS), (self.operand(state), self.operand(state)), 8)

    def write(self, state, concretes, location, term):
        if term is not None:
            state.write(location, term)
            for one in concretes:
                one.cells[location] = evaluated(self.terms, term, one.symbols)

    def step(self, state, concretes):
        draw = self.draw
        match draw.choice(("copy", "compute", "compute", "flag", "spill", "define", "assume", "forget")):
            case "copy":
                self.write(state, concretes, draw.choice(REGISTERS), self.operand(state))
            case "compute":
                opcode = draw.choice(("INT_ADD", "INT_ADD", "INT_SUB", "INT_AND", "INT_RIGHT", "INT_OR"))
                term = self.terms.apply(opcode, (self.operand(state), self.operand(state)), 32)
                self.write(state, concretes, draw.choice(REGISTERS), term)
            case "flag":
                self.write(state, concretes, draw.choice(FLAGS), self.condition(state))
            case "spill":
                self.write(state, concretes, draw.choice(SLOTS), self.operand(state))
            case "define":
                self.define(state, concretes)
            case "assume":
                self.assume(state, concretes)
            case "forget":
                state.forget_range("stack", -4 * draw.randrange(1, 4), 0)

    def define(self, state, concretes):
        """A load: the symbol may have been defined before, then what speaks of it gets another name."""
        low = self.number()
        value = strided.between(32, low, min(low + 9, (1 << 32) - 1)) if self.draw.random() < 0.6 else None
        before = dict(state.locations)
        symbol = state.define((self.draw.randrange(3), 0, 0), 32, value)
        for one in concretes:
            for location, term in state.locations.items():
                if before[location] != term:
                    one.symbols[term] = one.cells[location]
            one.symbols[symbol] = self.number() if value is None else self.draw.choice(list(value.values()))
        self.write(state, concretes, self.draw.choice(REGISTERS), symbol)

    def assume(self, state, concretes):
        """Only where it holds, or holds not, for all."""
        condition = self.condition(state)
        truths = (
            {bool(evaluated(self.terms, condition, one.symbols)) for one in concretes} if condition is not None else ()
        )
        if len(truths) == 1:
            assert assume(state, condition, holds=truths.pop())

    def branch(self, state, concretes, depth):
        condition = self.condition(state)
        if condition is None:
            return state, concretes
        sides = []
        for holds in (True, False):
            side = state.copy()
            own = [one.copy() for one in concretes if bool(evaluated(self.terms, condition, one.symbols)) is holds]
            possible = assume(side, condition, holds)
            assert possible or not own
            if own:
                sides.append(self.run(side, own, depth + 1, self.draw.randrange(4)))
        return self.joined(sides)

    def joined(self, sides):
        self.draw.shuffle(sides)
        place, gated = (self.draw.randrange(100, 102),), self.draw.random() < 0.7
        merged = join([state for state, _ in sides], place, gated=gated)
        predicate = _predicate([state for state, _ in sides], place) if gated else None
        fixed = self.terms.symbols(predicate) if predicate is not None else frozenset()
        together = []
        for number, (state, concretes) in enumerate(sides):
            others = sides[1 - number][1] if len(sides) == 2 else concretes
            said = live_symbols(state)
            for one in concretes:
                for symbol in live_symbols(merged) - said - fixed:
                    name = self.terms[symbol].arguments
                    if name[0] != "in" and len(sides) == 2:
                        one.symbols[symbol] = others[0].symbols.get(symbol, 0)
                for location, term in merged.locations.items():
                    if self.terms[term].opcode == "symbol" and self.terms[term].arguments[:2] == ("phi", place):
                        one.symbols[term] = one.cells[location]
                together.append(one)
        if len(sides) == 2:
            grown = widened(sides[0][0], merged, (0, 5, 100), {})
            self.check(grown, together)
            assert covers(merged, merged)
            entering = [state for state, _ in sides]
            for in_haste in (False, True):
                again = resumed(entering, place, merged, in_haste=in_haste)
                self.check(again, self.substituted(again, place, together))
            last = settled(sides[0][0], merged, place)
            self.check(last, self.substituted(last, place, together))
        return merged, together

    def substituted(self, state, place, concretes):
        """The same, with what the symbols of ``place`` stand for in ``state``."""
        found = [one.copy() for one in concretes]
        for one in found:
            for location, term in state.locations.items():
                if self.terms[term].opcode == "symbol" and self.terms[term].arguments[:2] == ("phi", place):
                    one.symbols[term] = one.cells[location]
        return found

    def run(self, state, concretes, depth, steps):
        for _ in range(steps):
            if depth < 3 and self.draw.random() < 0.35:
                state, concretes = self.branch(state, concretes, depth)
            else:
                self.step(state, concretes)
            self.check(state, concretes)
        return state, concretes


def walk(seed):
    one = Walk(seed)
    one.run(State(one.terms, big_endian=False), one.concretes, 0, 12)


@pytest.mark.parametrize("seed", range(20))
def test_concrete_states_stay_admitted(seed):
    for number in range(5):
        walk(f"{seed} {number}")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_concrete_states_stay_admitted_on_long_walks(seed):
    for number in range(600):
        walk(f"long {seed} {number}")


CHANGES = {
    "a location": lambda state, _: state.set_location(REGISTERS[1], state.terms.constant(1, 32)),
    "a write": lambda state, _: state.write(REGISTERS[0], state.terms.constant(1, 32)),
    "a base": lambda state, symbol: state.set_base(symbol, Base.STACK),
    "knowledge": lambda state, symbol: state.set_known(symbol, strided.constant(32, 1)),
    "a definition": lambda state, _: state.define(("x",), 32, strided.constant(32, 1)),
    "what is forgotten": lambda state, _: state.forget([REGISTERS[0]]),
    "what is left": lambda state, _: state.keep_live(set()),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_frozen_state_does_not_change_and_its_copies_do(change):
    state = State(Terms(), big_endian=False)
    symbol = state.define(("x",), 32, strided.constant(32, 7))
    state.set_location(REGISTERS[0], symbol)
    frozen, changed = state.freeze(), state.copy()
    with pytest.raises(TypeError, match="copy it first"):
        change(frozen, symbol)
    change(changed, symbol)
    assert changed != frozen
    assert frozen.locations == {REGISTERS[0]: symbol}
    assert frozen.value(symbol) == strided.constant(32, 7)


def test_all_states_that_values_show_are_frozen():
    _, values = of_text("movs r2, #0\n1: adds r2, #1\ncmp r2, r0\nbcc 1b\nbx lr")
    shown = [*values.states.values(), *(one.state for one in values.edges.values())]
    for state in shown:
        with pytest.raises(TypeError, match="copy it first"):
            state.set_location(SLOTS[0], state.terms.constant(1, 32))
