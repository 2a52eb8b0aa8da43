"""What a call does to its caller's state, against the bytes and registers that a callee can change."""

import random
from types import SimpleNamespace

import pytest

from wcet_probe.analyzer.domains import strided
from wcet_probe.analyzer.values.execution.call_effects import (
    CallKey,
    Effect,
    Result,
    Summarised,
    Written,
    WrittenThrough,
    apply_effect,
    covers,
    effect_of,
    joined,
    key_of,
    seen_by_caller,
    stack_offset,
    supposed,
)
from wcet_probe.analyzer.values.states.bases import Base
from wcet_probe.analyzer.values.states.held_addresses import Held
from wcet_probe.analyzer.values.states.state import State
from wcet_probe.analyzer.values.symbolic.locations import Location
from wcet_probe.analyzer.values.symbolic.terms import Terms
from wcet_probe.errors import AnalysisError

POINTER = Location("register", 52, 4)
REGISTERS = tuple(Location("register", 4 * number, 4) for number in range(4))
FAR = 1 << 31
ANYWHERE = Written(Base.ANY, -FAR, FAR - 1)


def caller(offset=-16, alignment=None):
    """A state with a stack pointer, slots from -40 to -4 and a word at 0x1000."""
    terms = Terms()
    state = State(terms, big_endian=False)
    entry = terms.symbol(("stack pointer",), 32)
    state.set_base(entry, Base.STACK)
    state.set_known(entry, strided.constant(32, 0))
    pointer = terms.apply("INT_ADD", (entry, terms.constant(offset, 32)), 32)
    if alignment is not None:
        moved = state.define((0, 0, 0), 32, alignment)
        pointer = terms.apply("INT_ADD", (pointer, moved), 32)
    state.set_location(POINTER, pointer)
    for slot in range(-40, 0, 4):
        state.set_location(Location("stack", slot, 4), terms.constant(slot, 32))
    for word in range(0x1000, 0x1020, 4):
        state.set_location(Location("static", word, 4), terms.constant(word, 32))
    return terms, state


NONE = frozenset()


def call_of(written, through=()):
    return Summarised(CallKey(0x8000, NONE, escapes=False, is_aligned=True, below=NONE), tuple(written), tuple(through))


def called(state, effect, offset, above=NONE):
    """Make of ``state`` what holds behind a call with this effect."""
    apply_effect(state, effect, call_of(*seen_by_caller(state, effect, offset)), (3, 0x8000), above)


def kept(state, space):
    return {at.offset for at in state.locations if at.space == space}


SLOTS, WORDS = set(range(-40, 0, 4)), set(range(0x1000, 0x1020, 4))


@pytest.mark.parametrize("seed", range(40))
def test_no_slot_or_word_that_a_callee_may_write_is_kept_and_all_others_are(seed):
    draw = random.Random(f"written {seed}")
    written = []
    for _ in range(draw.randint(1, 2)):
        low = draw.randrange(-24, 20)
        written.append(
            draw.choice(
                (
                    Written(Base.STACK, low, low + draw.randrange(9)),
                    Written(Base.NUMBER, 0x1000 + low, 0x1000 + low + draw.randrange(9)),
                )
            )
        )
    offset = draw.choice((-8, -16, -24))
    _, state = caller(offset)
    called(state, Effect((), tuple(written), escapes=False), offset)
    on_stack = {
        one.low + offset + at for one in written if one.base is Base.STACK for at in range(one.high - one.low + 1)
    }
    static = {one.low + at for one in written if one.base is Base.NUMBER for at in range(one.high - one.low + 1)}
    assert kept(state, "stack") == {slot for slot in SLOTS if not on_stack & set(range(slot, slot + 4))}
    assert kept(state, "static") == {word for word in WORDS if not static & set(range(word, word + 4))}


def test_where_the_stack_pointer_is_not_known_nothing_of_the_stack_is_kept():
    for effect, offset in ((Written(Base.STACK, -8, -5), None), (ANYWHERE, -16)):
        _, state = caller()
        called(state, Effect((), (effect,), escapes=False), offset)
        assert not kept(state, "stack")
        assert bool(kept(state, "static")) is (effect.base is Base.STACK)


def test_all_frames_below_are_lost_and_those_above_are_kept():
    _, state = caller()
    called(state, Effect((), (Written(Base.STACK, -FAR, -1),), escapes=False), -16)
    assert kept(state, "stack") == {-16, -12, -8, -4}


def test_results_are_new_values_and_other_registers_stay():
    terms, state = caller()
    symbol = terms.symbol(("x",), 32)
    for register in REGISTERS:
        state.set_location(register, symbol)
    results = (
        Result(REGISTERS[0], Base.NUMBER, strided.between(32, 0, 7)),
        Result(REGISTERS[1], Base.ANY, strided.top(32)),
    )
    called(state, Effect(results, (), escapes=False), -16)
    number, anything, *others = (state.read(register) for register in REGISTERS)
    assert state.value(number) == strided.between(32, 0, 7)
    assert (state.base(number), state.base(anything)) == (Base.NUMBER, Base.ANY)
    assert others == [symbol, symbol]
    assert len({number, anything, symbol}) == 3


def test_a_key_names_what_may_be_no_number_and_whether_the_stack_is_aligned():
    terms, state = caller()
    state.set_location(REGISTERS[0], terms.constant(4, 32))
    state.set_location(REGISTERS[1], state.define((1, 0, 0), 32, base=Base.ANY))
    low = terms.apply("INT_AND", (state.read(REGISTERS[1]), terms.constant(7, 32)), 32)
    state.set_location(REGISTERS[2], low)
    found = key_of(state, 0x8000, POINTER, [REGISTERS[3]], NONE, stored=(True, False))
    anything = frozenset(REGISTERS[1:])
    assert found == CallKey(0x8000, anything, escapes=True, is_aligned=True, below=anything, holds=False)
    assert supposed(found) == Effect((), (), escapes=True, held=Held())


@pytest.mark.parametrize(
    ("offset", "moved", "is_aligned"),
    [
        (-16, None, True),
        (-20, None, False),
        (-16, strided.between(32, 0, 64, 8), True),
        (-16, strided.between(32, 0, 64, 4), False),
        (-12, strided.between(32, 4, 64, 8), True),
        (-16, strided.between(32, 0, 8), False),
    ],
)
def test_a_stack_pointer_is_aligned_where_all_its_values_are(offset, moved, is_aligned):
    _, state = caller(offset, moved)
    assert key_of(state, 0x8000, POINTER, [], NONE, stored=(False, True)).is_aligned is is_aligned
    assert stack_offset(state, POINTER) == (offset if moved is None else None)
    state.set_location(POINTER, state.define((2, 0, 0), 32, base=Base.ANY))
    assert not key_of(state, 0x8000, POINTER, [], NONE, stored=(False, True)).is_aligned
    assert stack_offset(state, POINTER) is None


def access(base, low, high, size, *, is_store=True, at=0x100):
    offset = strided.between(32, low, high)
    return SimpleNamespace(
        instruction_address=at, is_store=is_store, base=base, offset=offset, size_bytes=size, through=None
    )


def returning(terms, value, base=Base.NUMBER):
    state = State(terms, big_endian=False)
    entry = terms.symbol(("stack pointer",), 32)
    state.set_base(entry, Base.STACK)
    state.set_known(entry, strided.constant(32, 0))
    state.set_location(POINTER, entry)
    state.set_location(REGISTERS[0], state.define((9, value, 0), 32, strided.constant(32, value), base))
    state.set_location(REGISTERS[1], terms.symbol(("in", REGISTERS[1]), 32))
    return state


def test_the_effect_of_a_function_is_what_it_and_its_callees_write_and_do_not_give_back():
    terms = Terms()
    states = [returning(terms, 4), returning(terms, 9)]
    accesses = [
        access(Base.STACK, -8, -8, 4),
        access(Base.STACK, -4, -4, 4),
        access(Base.NUMBER, 0x1000, 0x1010, 2),
        access(Base.STACK, -32, -32, 4, is_store=False),
    ]
    inner = Effect((), (Written(Base.STACK, -8, -1), Written(Base.NUMBER, 0x2000, 0x2003)), escapes=False)
    calls = [call_of(*seen_by_caller(states[0], inner, -16))]
    found = effect_of(terms, states, accesses, calls, POINTER, escapes=True)
    assert found.results == (Result(REGISTERS[0], Base.NUMBER, strided.between(32, 4, 9, 5)),)
    assert found.written == (
        Written(Base.NUMBER, 0x1000, 0x1011),
        Written(Base.NUMBER, 0x2000, 0x2003),
        Written(Base.STACK, -24, -17),
        Written(Base.STACK, -8, -1),
    )
    assert found.escapes
    calls = [call_of(*seen_by_caller(states[0], inner, None))]
    lost = effect_of(terms, states, [access(Base.ANY, 0, 0, 4)], calls, POINTER, escapes=False)
    assert lost.written == (ANYWHERE,)
    lost = effect_of(terms, states, [], calls, POINTER, escapes=False)
    assert Written(Base.STACK, -FAR, FAR - 1) in lost.written


def test_what_saves_registers_may_be_in_frames_of_callers_wherever_it_goes():
    """A store to one known place does so anyhow; another one is covered by the assumption, unless it saves."""
    terms = Terms()
    accesses = [
        access(Base.STACK, 4, 4, 4),
        access(Base.STACK, -8, 16, 4, at=0x200),
        access(Base.ANY, 0, 0, 4, at=0x300),
    ]
    known, near, far = Written(Base.STACK, 4, 7), Written(Base.STACK, -8, 19), Written(Base.STACK, -FAR, FAR - 1)
    for saving, above in ((set(), (known,)), ({0x200}, (near,)), ({0x300}, (far,))):
        found = effect_of(terms, [returning(terms, 4)], accesses, [], POINTER, escapes=False, saving=saving)
        assert found.above == above


def test_a_result_that_is_a_number_on_one_way_only_may_be_anything():
    terms = Terms()
    found = effect_of(terms, [returning(terms, 4), returning(terms, 9, Base.ANY)], [], [], POINTER, escapes=False)
    assert found.results == (Result(REGISTERS[0], Base.ANY, strided.top(32)),)


def test_a_register_that_one_way_has_not_written_is_told_with_its_value_at_entry():
    terms = Terms()
    other = returning(terms, 9)
    other.forget([REGISTERS[0]])
    found = effect_of(terms, [returning(terms, 4), other], [], [], POINTER, escapes=False)
    assert found.results == (Result(REGISTERS[0], Base.NUMBER, strided.top(32)),)


@pytest.mark.parametrize("moved", [4, -8])
def test_a_function_that_does_not_give_back_the_stack_pointer_is_refused(moved):
    terms = Terms()
    state = returning(terms, 4)
    pointer = terms.apply("INT_ADD", (state.read(POINTER), terms.constant(moved, 32)), 32)
    state.set_location(POINTER, pointer)
    with pytest.raises(AnalysisError, match="stack pointer is not surely given back"):
        effect_of(terms, [returning(terms, 1), state], [], [], POINTER, escapes=False)


def any_effect(draw):
    written = []
    for _ in range(draw.randrange(3)):
        low = draw.randrange(-64, 8)
        base = draw.choice((Base.STACK, Base.STACK, Base.NUMBER))
        written.append(Written(base, low if base is Base.STACK else abs(low), abs(low) + draw.randrange(8)))
    results = [
        Result(at, base, strided.top(32) if base is Base.ANY else strided.between(32, 0, draw.randrange(9)))
        for at in REGISTERS[:3]
        if draw.random() < 0.6
        for base in (draw.choice((Base.NUMBER, Base.ANY)),)
    ]
    through = [
        WrittenThrough(at, low, low + draw.randrange(8))
        for at in REGISTERS[:2]
        if draw.random() < 0.3
        for low in (draw.randrange(-8, 8),)
    ]
    return Effect(tuple(results), tuple(sorted(written)), draw.random() < 0.3, tuple(through))


def some_bytes(part):
    """The bytes of ``part`` that are near: it may be all of the memory."""
    return set(range(max(part.low, -300), min(part.high, 300) + 1))


def does_no_more(one, other):
    """Whether all that ``one`` does is told by ``other``, part by part."""
    results = {result.location: result for result in other.results}
    within = all(
        result.location in results
        and (
            results[result.location].base is Base.ANY
            or (result.base is Base.NUMBER and strided.leq(result.value, results[result.location].value))
        )
        for result in one.results
    )
    covered = {base: set() for base in Base}
    pointed = {part.register: part for part in other.through}
    is_behind = ANYWHERE in other.written or all(
        part.register in pointed and pointed[part.register].low <= part.low and part.high <= pointed[part.register].high
        for part in one.through
    )
    for part in other.written:
        for base in Base if part.base is Base.ANY else (part.base,):
            covered[base] |= some_bytes(part)
    return (
        within
        and is_behind
        and all(some_bytes(part) <= covered[part.base] for part in one.written)
        and (other.escapes or not one.escapes)
    )


@pytest.mark.parametrize("in_haste", [False, True])
def test_a_join_does_what_either_does_and_no_chain_of_them_goes_on(in_haste):
    draw, changes = random.Random(f"effects {in_haste}"), 0
    for _ in range(30):
        known = any_effect(draw)
        for _ in range(12):
            other = any_effect(draw)
            both = joined(known, other, in_haste=in_haste)
            assert does_no_more(known, both)
            assert does_no_more(other, both)
            assert covers(both, other)
            assert covers(known, other) == does_no_more(other, known)
            changes += both != known
            known = both
    assert changes > 30


def test_what_is_written_behind_a_register_is_where_the_caller_points_with_it():
    terms, state = caller()
    effect = Effect((), (), escapes=False, through=(WrittenThrough(REGISTERS[0], 4, 11),))
    slots, words = kept(state, "stack"), kept(state, "static")
    state.set_location(REGISTERS[0], terms.apply("INT_ADD", (state.read(POINTER), terms.constant(-12, 32)), 32))
    called(state, effect, -16)
    assert slots - kept(state, "stack") == {-24, -20}
    assert kept(state, "static") == words
    state.set_location(REGISTERS[0], terms.constant(0x1000, 32))
    called(state, effect, -16)
    assert words - kept(state, "static") == {0x1004, 0x1008}
    state.set_location(REGISTERS[0], state.define((1, 0, 0), 32, base=Base.ANY))
    called(state, effect, -16)
    assert not kept(state, "stack") | kept(state, "static")


def test_what_a_callee_writes_behind_its_callers_pointer_its_own_caller_knows_where():
    terms, state = caller()
    given = terms.symbol(("in", REGISTERS[1]), 32)
    state.set_base(given, Base.ANY)
    state.set_location(REGISTERS[0], terms.apply("INT_ADD", (given, terms.constant(8, 32)), 32))
    effect = Effect((), (), escapes=False, through=(WrittenThrough(REGISTERS[0], -4, 3),))
    assert seen_by_caller(state, effect, -16) == ((), (WrittenThrough(REGISTERS[1], 4, 11),))
    other = state.copy()
    called(state, effect, -16, above=frozenset({REGISTERS[1]}))
    assert kept(state, "stack") == SLOTS  # the own frame is below what it was given
    called(other, effect, -16)
    assert not kept(other, "stack")


def test_a_pointer_that_moves_on_in_each_inner_call_may_go_anywhere():
    steps = [Effect((), (), escapes=False, through=(WrittenThrough(REGISTERS[0], 0, last),)) for last in (3, 7)]
    assert joined(*steps, in_haste=False) == steps[1]
    hasty = joined(*steps, in_haste=True)
    assert hasty.written == (ANYWHERE,)
    assert covers(hasty, steps[1])
