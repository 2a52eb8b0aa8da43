"""Targets that follow from the few values of one term, against the target for each of these values."""

import random
from types import SimpleNamespace

import pytest

from tests.analyzer.values.symbolic.test_terms import evaluated
from wcet_probe.analyzer.domains import strided
from wcet_probe.analyzer.values.execution.enumeration import enumerated
from wcet_probe.analyzer.values.states.bases import Base
from wcet_probe.analyzer.values.states.memory import MOST_READ, Memory
from wcet_probe.analyzer.values.states.state import State
from wcet_probe.analyzer.values.symbolic.terms import Terms
from wcet_probe.model.image import Segment
from wcet_probe.model.target import Isa

TABLE = 0x9000
OFFSETS = (12, 4, 40, 4)


def setting(offsets=OFFSETS):
    terms = Terms()
    data = b"".join(one.to_bytes(2, "little") for one in offsets)
    segment = Segment(TABLE, data, len(data), writable=False, executable=False)
    return (
        terms,
        State(terms, big_endian=False),
        Memory(SimpleNamespace(segments=(segment,), big_endian=False, isa=Isa.THUMB)),
    )


def plus(terms, one, other, opcode="INT_ADD"):
    return terms.apply(opcode, (one, terms.constant(other, 32)), 32)


@pytest.mark.parametrize("part", range(3))
def test_the_targets_are_those_of_each_value(part):
    draw = random.Random(f"enumeration {part}")
    resolved = 0
    for _ in range(60):
        terms, state, memory = setting()
        index = state.define((0, 0, 0), 32, strided.between(32, low := draw.randrange(9), low + draw.randrange(6)))
        term = index
        for _ in range(draw.randint(1, 4)):
            opcode = draw.choice(("INT_ADD", "INT_MULT", "INT_AND", "INT_LEFT", "INT_RIGHT", "INT_SUB", "INT_XOR"))
            term = plus(terms, term, draw.choice((1, 2, 3, 7, 0x8000)), opcode)
        thumb = draw.random() < 0.5
        expected = {evaluated(terms, term, {index: value}) & ~int(thumb) for value in state.value(index).values()}
        found = enumerated(state, term, memory, thumb=thumb)
        if terms.symbols(term):
            assert set(found) >= expected
            assert list(found) == sorted(found)
            resolved += 1
    assert resolved > 20


def test_a_table_is_read_at_each_index():
    """``pc = base + 2 * table[index]``, as of ``tbh``: exactly the entries, and nothing between them."""
    terms, state, memory = setting()
    index = state.define((0, 0, 0), 32, strided.between(32, 0, 3))
    entry = terms.apply("TABLE", (plus(terms, plus(terms, index, 2, "INT_MULT"), TABLE),), 16)
    wide = terms.apply("INT_ZEXT", (entry,), 32)
    target = plus(terms, plus(terms, wide, 2, "INT_MULT"), 0x8001)
    assert enumerated(state, target, memory, thumb=True) == tuple(sorted({0x8000 + 2 * one for one in OFFSETS}))
    state.set_known(index, strided.between(32, 0, 4))  # behind the table's end
    assert enumerated(state, target, memory, thumb=True) == ()


def test_nothing_is_said_of_what_has_too_many_values_or_another_part():
    terms, state, memory = setting()
    index = state.define((0, 0, 0), 32, strided.between(32, 0, MOST_READ))
    other = state.define((0, 4, 0), 32)
    target = plus(terms, index, 0x8000)
    assert enumerated(state, target, memory, thumb=False) == ()
    state.set_known(index, strided.between(32, 0, MOST_READ - 1))
    assert len(enumerated(state, target, memory, thumb=False)) == MOST_READ
    both = terms.apply("INT_ADD", (index, other), 32)
    assert enumerated(state, both, memory, thumb=False) == ()


def test_a_loaded_byte_of_which_nothing_is_known_is_not_followed():
    terms, state, memory = setting()
    byte = state.define((0, 0, 0), 8)
    target = plus(terms, terms.apply("INT_ZEXT", (byte,), 32), 0x8000)
    assert enumerated(state, target, memory, thumb=False) == ()
    state.set_known(byte, strided.between(8, 0, 3))
    assert enumerated(state, target, memory, thumb=False) == (0x8000, 0x8001, 0x8002, 0x8003)


def test_the_place_of_the_stack_is_no_number():
    terms, state, memory = setting()
    pointer = state.define(("stack pointer",), 32, strided.constant(32, 0), Base.STACK)
    assert enumerated(state, plus(terms, pointer, 8), memory, thumb=False) == ()


def test_a_table_with_most_entries_alike_is_read_at_each_index_too():
    """Its entries span four values, and six indices read but three of them."""
    offsets = (1, 1, 2, 1, 4, 1)
    terms, state, memory = setting(offsets)
    index = state.define((0, 0, 0), 32, strided.between(32, 0, len(offsets) - 1))
    entry = terms.apply("TABLE", (plus(terms, plus(terms, index, 2, "INT_MULT"), TABLE),), 16)
    state.set_known(entry, strided.between(16, min(offsets), max(offsets)))
    target = plus(terms, plus(terms, terms.apply("INT_ZEXT", (entry,), 32), 2, "INT_MULT"), 0x8000)
    assert enumerated(state, target, memory, thumb=True) == (0x8002, 0x8004, 0x8008)
