"""Nests that are followed round by round: what is constant decides the counts, and what is not decides nothing."""

import pytest

from tests.analyzer.firmware_code import checked, of, refused
from tests.analyzer.small_functions import small_guest
from tests.following import IN_TESTS, PRODUCT, following
from tests.support import TARGETS
from wcet_probe.analyzer.bound import prepare
from wcet_probe.analyzer.facts.language import Facts
from wcet_probe.analyzer.loops import abstract_execution
from wcet_probe.analyzer.request import BoundRequest
from wcet_probe.analyzer.values.constant_execution import ConstantExecution
from wcet_probe.analyzer.values.loop_shapes import loop_shapes

CONSTANT = """typedef unsigned u; volatile u o; const u ends[6] = {1, 1, 4, 9, 9, 11};
void doubled(void) { for (u i = 1; i < 14; i++) for (u j = 1; j <= i; j *= 2) o = j; }
void kept(void) { u j = 0; for (u i = 0; i < 6; i++) { o = i; for (; j < ends[i]; j++) o = j; } }
void cases(u x) {
  for (u i = 0; i < 6; i++)
    switch (i) {
      case 0: o = x; break;
      case 1: o = x; o = x * 3; break;
      case 2: for (u k = 0; k < 9; k++) o = k; break;
      case 3: o = 7; o = x; o = x; break;
      case 4: o = 4; break;
      default: o = x ^ 5;
    }
}
void outer_is_left(u x) { for (u i = 0; i < 9; i++) { for (u j = i; j < 9; j++) o = j; if (o == x + 77) break; } }
"""


@pytest.mark.covering
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("entry", ["doubled", "kept", "cases", "outer_is_left"])
def test_the_bound_of_constant_rounds_is_attained(target, entry):
    proof = of(target, CONSTANT, entry, ".c")
    assert checked(proof, (5,)) == proof.bound.instructions


OPEN = """typedef unsigned u; volatile u o; u n, m, a[8]; u *const where[2] = {&n, &m};
#define LOOP(end) { u e = (end) & 15; for (u j = 0; j < e; j++) o = j; }
__attribute__((noinline)) void put(u x, u v) { *where[x & 1] = v; }
void by_store(u x) { n = 2; *where[x & 1] = 11; for (u i = 0; i < 3; i++) { o = i; LOOP(n) } }
void by_callee(u x) { n = 2; put(x, 11); for (u i = 0; i < 3; i++) { o = i; LOOP(n) } }
void by_choice(u x) { u k = 2; for (u i = 0; i < 3; i++) { if (x >> i & 1) k += 3; LOOP(k) } }
void by_round(u x) { n = 1; for (u i = 0; i < 3; i++) { LOOP(n) *where[x & 1] = 8; } }
void by_index(u x) { a[3] = 1; for (u i = 0; i < 3; i++) { a[x & 7] = 8; LOOP(a[3]) } }
"""
"""What looks constant may be changed: by a store that may go there, in a callee, in another round, by a choice."""


@pytest.mark.covering(1)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("entry", "worst"), [("by_store", 0), ("by_callee", 0), ("by_choice", 7), ("by_round", 0), ("by_index", 3)]
)
def test_what_may_be_changed_is_not_constant(target, entry, worst):
    proof = of(target, OPEN, entry, ".c")
    runs = [checked(proof, (number,)) for number in (0, 1, 3, 7)]
    assert max(runs) == checked(proof, (worst,)) <= proof.bound.instructions
    assert min(runs) < max(runs)


LONG = """typedef unsigned u; volatile u o;
void f(void) { for (u i = 1; i <= 512; i *= 2) for (u j = 0; j < 512; j += i) o = j; }
"""


def test_a_nest_is_followed_up_to_the_limit():
    proof = of("cortex-m4", LONG, "f", ".c")
    executed = checked(proof, ())
    assert executed == proof.bound.instructions < IN_TESTS < PRODUCT
    with following(executed // 2):
        assert of("cortex-m4", LONG, "f", ".c").bound.instructions > IN_TESTS  # by how far the number moves in a round


DEEP = """typedef unsigned u; volatile u o;
void f(u x) {
  for (u i = 0; i < 9; i++) for (u j = 0; j < 9; j++) for (u k = 0; k < 9; k++) for (u l = 0; l < 9; l++)
    if (o & 1) o = x; else o = l;
}
"""


def test_a_nest_whose_pace_shows_that_its_end_is_out_of_reach_costs_a_part_of_the_budget(monkeypatch):
    followed, block = [], ConstantExecution.block

    def counted(self, instructions, *others):
        followed.append(len(instructions))
        return block(self, instructions, *others)

    monkeypatch.setattr(ConstantExecution, "block", counted)
    budget = 16_000
    with following(budget):
        proof = of("mpc603e", DEEP, "f", ".c")
    whole = 9**4 * 5
    assert whole > 2 * budget
    assert 9**2 < sum(followed) < 2 * budget  # it was followed twice as far, in vain, before all was left alone
    assert checked(proof, (5,)) <= proof.bound.instructions


STRING = """typedef unsigned u; volatile u o;
void f(const char *s) {
  u n = 0; while (*s++) n += 3; o = n;
  for (u i = 1; i < 3000; i *= 2) for (u j = 0; j < i; j++) o = j;
}
"""


def test_a_loop_that_nothing_known_ends_is_soon_left_alone_and_others_are_followed(monkeypatch):
    """Each round of the string's is another one, as its count grows: the whole budget went into it."""
    followed, block = [], ConstantExecution.block

    def counted(self, instructions, *others):
        followed.append(instructions[0].address)
        return block(self, instructions, *others)

    monkeypatch.setattr(ConstantExecution, "block", counted)
    with following(60_000):
        message = refused("cortex-m4", STRING, "f", ".c")
    assert message.count("f+") == 1  # the string's loop alone
    assert 1_000 <= followed.count(followed[2]) < 3_000


def test_a_nest_is_followed_once_for_the_same_bounds_and_effects(monkeypatch):
    guest = small_guest({"f": "push {r4, lr}\nmovs r4, #3\n1: bl g\nsubs r4, #1\nbne 1b\npop {r4, pc}", "g": "bx lr"})
    facts = Facts()
    request = BoundRequest(
        guest.image, guest.target, guest.instructions, guest.costs, "f", facts, {}, {}, summaries=True
    )
    prepared = prepare(request)
    header = next(iter(loop_shapes(prepared.values))).loop.header
    told, followed = abstract_execution._executed_nests, []
    monkeypatch.setattr(abstract_execution, "_executed_nests", lambda *given: followed.append(given) or told(*given))

    def nests(most, **named):
        execution, effect = prepared.constants, prepared.calls.effect
        return abstract_execution.executed_nests(
            prepared.values, {header: most}, (), execution=execution, effect=effect, **named
        )

    first = nests(7)
    assert nests(7) is first
    assert len(followed) == 1
    assert nests(2) != first
    nests(7, share=2)
    assert len(followed) == 3
