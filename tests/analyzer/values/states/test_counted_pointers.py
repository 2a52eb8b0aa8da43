"""Pointers to the stack that a loop moves along with a counter: what is kept beside what they write."""

import random

import pytest

from tests.path_check import attack, check_emulated, proved
from tests.support import TARGETS, guest_of
from wcet_probe.analyzer.domains import strided
from wcet_probe.analyzer.values.states.bases import Base
from wcet_probe.analyzer.values.states.counted_pointers import _by, _Counter, tell_pointers
from wcet_probe.analyzer.values.states.joins import join
from wcet_probe.analyzer.values.states.state import State
from wcet_probe.analyzer.values.symbolic.locations import Location
from wcet_probe.analyzer.values.symbolic.terms import Terms
from wcet_probe.catalog.lookup import load_target

POINTER, COUNTER, COPY = (Location("register", 4 * number, 4) for number in range(3))
PLACE = (7,)

CONTEXT = """typedef unsigned u;
struct context { u sums[4]; char block[64]; u used; };
static char message[56];
#define KEEP(x) __asm__ volatile("" : "+r"(x))
__attribute__((noinline)) void copy(char *to, const char *from, u left) {
  while (left >= 8) {
    ((u *)to)[0] = ((const u *)from)[0]; ((u *)to)[1] = ((const u *)from)[1];
    to += 8; from += 8; left -= 8; KEEP(to); KEEP(left);
  }
  while (left) { *to++ = *from++; left--; KEEP(to); KEEP(left); } }
__attribute__((noinline)) void update(struct context *c, const char *from, u bytes) {
  if (c->used) {
    u left = 64 - c->used;
    if (bytes < left) { copy(c->block + c->used, from, bytes); c->used += bytes; return; }
    copy(c->block + c->used, from, left); from += left; bytes -= left; c->sums[0]++; }
  copy(c->block, from, bytes); c->used = bytes; }
u three_times(void) {
  u total = 0;
  for (u round = 0; round < 3; round++) {
    struct context c; c.used = 0; c.sums[0] = 0; update(&c, message, 56); total += c.used; }
  return total; }
"""


@pytest.mark.parametrize("target", TARGETS)
def test_a_context_on_the_stack_that_is_filled_in_a_loop(target):
    """What is copied into it ends before what it holds besides: nothing of the loop around is lost."""
    proof = proved(guest_of(CONTEXT, load_target(target), ".c"), "three_times")
    assert attack(proof) == proof.bound.instructions
    check_emulated(proof)


def code(pointer_step, counter_step, rounds, first, outer):
    """Nested loops whose counter, and what the inner one begins with, are on the stack above what it writes."""
    return f"""
    .syntax unified
    .thumb
    .globl f
    .type f, %function
f:  sub sp, #512
    movs r3, #{outer}
    str r3, [sp, #504]
1:  movs r3, #{rounds * abs(counter_step) if counter_step < 0 else 0}
    str r3, [sp, #508]
    add r0, sp, #{first}
    ldr r1, [sp, #508]
2:  str r2, [r0]
    {"adds" if pointer_step > 0 else "subs"} r0, #{abs(pointer_step)}
    {"subs" if counter_step < 0 else "adds"} r1, r1, #{abs(counter_step)}
    cmp r1, #{0 if counter_step < 0 else rounds * counter_step}
    bne 2b
    ldr r3, [sp, #504]
    subs r3, #1
    str r3, [sp, #504]
    bne 1b
    add sp, #512
    bx lr
    .size f, . - f
"""


@pytest.mark.parametrize("seed", range(12))
def test_whatever_the_steps_of_pointer_and_counter_are(seed):
    draw = random.Random(seed)
    step, counter, rounds = draw.choice((4, 8, 12)), draw.choice((-1, -4, 1, 2, 4)), draw.randint(2, 30)
    if draw.random() < 0.3:
        first, step = 480 - 4 * draw.randint(0, 3), -step
    else:
        first = 4 * draw.randint(0, 6)
    proof = proved(guest_of(code(step, counter, rounds, first, 3), load_target("cortex-m4")), "f")
    assert attack(proof) == proof.bound.instructions


def states(pointer, counter, moved, counted):
    """What enters a loop and what came to its header then, in one round more, with the terms of both."""
    terms = Terms()
    stack = terms.symbol(("stack pointer",), 32)

    def plus(term, amount):
        return terms.apply("INT_ADD", (term, terms.constant(amount & 0xFFFFFFFF, 32)), 32)

    entering = State(terms, big_endian=False)
    entering.set_base(stack, Base.STACK)
    entering.set_known(stack, strided.constant(32, 0))
    for location, term in ((POINTER, plus(stack, pointer)), (COUNTER, terms.constant(counter, 32))):
        entering.set_location(location, term)
    entering.set_location(COPY, entering.read(POINTER))

    def behind(state):
        result = state.copy()
        for location, amount in ((POINTER, moved), (COUNTER, counted)):
            result.set_location(location, plus(state.read(location), amount))
        result.set_location(COPY, result.read(POINTER))
        return result

    former = join([entering, behind(entering)], PLACE, entering, related=True).freeze()
    arriving = [entering, behind(former)]
    return arriving, former, join(arriving, PLACE, former, related=True)


def test_a_pointer_is_told_by_the_counter_wherever_it_is_held():
    arriving, former, result = states(-96, 40, 16, -16)
    tell_pointers(result, arriving, PLACE, former, {COUNTER})
    terms, symbol = result.terms, former.read(COUNTER)
    form = terms.linear(result.read(POINTER))
    assert (form.coefficients[symbol], form.constant) == (0xFFFFFFFF, -96 + 40 & 0xFFFFFFFF)
    assert result.read(COPY) == result.read(POINTER)
    again = join([arriving[0], result], PLACE, result, related=True)
    assert again.read(POINTER) == result.read(POINTER)  # it stays told as long as all that arrives is
    other = result.copy()
    other.set_location(POINTER, terms.apply("INT_ADD", (result.read(POINTER), terms.constant(4, 32)), 32))
    moved = join([arriving[0], other], PLACE, result, related=True)
    assert symbol not in terms.symbols(moved.read(POINTER))


@pytest.mark.parametrize("steps", [(16, -3), (16, 0), (-4, 8)])
def test_steps_of_no_whole_ratio_tell_nothing(steps):
    arriving, former, result = states(-96, 40, *steps)
    before = dict(result.locations)
    tell_pointers(result, arriving, PLACE, former, {COUNTER})
    assert result.locations == before


def test_a_pointer_that_is_compared_itself_stays_what_it_is():
    arriving, former, result = states(-96, 40, 16, -16)
    for compared in ((), {POINTER}, {POINTER, COUNTER}):
        tell_pointers(result, arriving, PLACE, former, compared)
        assert result.read(POINTER) == former.read(POINTER)


@pytest.mark.parametrize("rounds", [(False, False, True), (False, True, False)])
def test_a_counter_that_one_way_back_sets_anew_tells_no_pointer(rounds):
    """The analysis ended in an exception, as the pointer has two steps and the counter one."""
    terms = Terms()
    at = [Location("register", 4 * number, 4) for number in (0, 1)]
    first, second = (terms.symbol(("phi", (1,), one), 32) for one in at)
    start = terms.linear(terms.constant(0, 32))
    pointer = _Counter(at[0], first, (1, 1), (start,), (False, True, True))
    number = _Counter(at[1], second, (1,), (start, start), rounds)
    assert _by(State(terms, big_endian=False), pointer, number) is None
