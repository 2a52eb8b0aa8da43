"""Nests that are followed past loops of constant count, and along words of which only distances are known.

Tests: analyzer.loops.abstract_execution.
"""

import random

import pytest

from tests import random_programs
from tests.analyzer.firmware_code import THUMB, checked, of, thumb
from tests.following import following
from tests.path_check import attack, proved
from tests.support import TARGETS, guest_of
from wcet_probe.analyzer.loops import abstract_execution
from wcet_probe.catalog.lookup import load_target
from wcet_probe.errors import AnalysisError

FROM_A_WORD = """
 mov r1, r0
 adds r2, r0, #1
 add.w ip, r0, #{end}
 b 2f
1: {step}
 adds r2, #1
 cmp r2, ip
 beq 3f
2: subs r3, r2, r1
 cmp r3, #{limit}
 ble 1b
 nop
 nop
 nop
 b 1b
3: bx lr
"""


def from_a_word(step, end, limit):
    return of("cortex-m4", THUMB + thumb("f", FROM_A_WORD.format(step=step, end=end, limit=limit)))


@pytest.mark.parametrize("limit", [0, 5, 17, 18, 40])
def test_choices_by_the_distance_from_a_word_are_counted(limit):
    """A counter that begins at an argument, as GCC makes of ``switch (i)`` in a loop that adds to the argument."""
    proof = from_a_word("mov r0, r2", 19, limit)
    runs = [(0,), (7,), (0xFFFF_FFF8,), (0x7FFF_FFF8,)]
    assert checked(proof, *runs) == proof.bound.instructions


def test_a_word_that_changes_on_the_way_decides_nothing():
    proof = from_a_word("add r1, r1, r0", 19, 5)
    plain = from_a_word("mov r0, r2", 19, 5)
    assert checked(proof, (0,), (0xFFFF_FFF6,), (0x8000_0000,)) > plain.bound.instructions
    assert proof.bound.instructions > plain.bound.instructions


PASSED = """typedef unsigned u; volatile u o; u n, m, w[64]; u *const where[2] = {&n, &m};
#define LOOP(end) { u e = (end) & 15; for (u j = 0; j < e; j++) o = j; }
void kept(void) {
  for (u i = 1; i < 200; i *= 3) { for (u j = 0; j < i; j++) o = j; for (u k = 0; k < 64; k++) w[k] ^= o; }
}
void summed(u x) { u s = 1; for (u i = 0; i < 6; i++) { for (u k = 0; k < 50; k++) s = (s ^ k) * x; LOOP(s) } }
void stored(u x) {
  n = 1;
  for (u i = 0; i < 6; i++) { for (u k = 0; k < 50; k++) *where[x >> (k & 7) & 1] = 9 + k; LOOP(n) }
}
"""


def passing(target, entry, most):
    """The proof where no more than so many instructions are followed, and the loops that were passed, by nest."""
    made, told = [], abstract_execution._to_pass
    with pytest.MonkeyPatch.context() as patch, following(most):
        patch.setattr(abstract_execution, "_to_pass", lambda *given: made.append(told(*given)) or made[-1])
        return of(target, PASSED, entry, ".c"), made


@pytest.mark.covering(1)
@pytest.mark.parametrize("target", TARGETS)
def test_a_nest_that_is_too_long_is_followed_past_the_loops_that_choose_nothing(target):
    proof = of(target, PASSED, "kept", ".c")
    executed = checked(proof, ())
    assert executed == proof.bound.instructions
    again, made = passing(target, "kept", executed // 2)
    assert again.bound.instructions == executed
    assert any(made)


@pytest.mark.covering(1)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("entry", ["summed", "stored"])
def test_what_a_passed_loop_changes_is_not_known_behind_it(target, entry):
    proof, made = passing(target, entry, 700)
    assert any(made)
    runs = [checked(proof, (number,)) for number in (0, 1, 5, 0x100, 0xFFFF)]
    assert min(runs) < max(runs) <= proof.bound.instructions


@pytest.mark.covering(0)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("seed", range(4))
def test_runs_of_random_functions_stay_within_what_was_found_past_loops(target, seed, monkeypatch):
    passed, told = [], abstract_execution._to_pass
    monkeypatch.setattr(abstract_execution, "_FEW_ROUNDS", 1)
    monkeypatch.setattr(abstract_execution, "_to_pass", lambda *given: passed.append(told(*given)) or passed[-1])
    guest, draw = guest_of(random_programs.source(seed, 6), load_target(target), ".c"), random.Random(seed)
    for number in range(6):
        with following(300):
            try:
                proof = proved(guest, f"f{number}")
            except AnalysisError:
                continue
        for _ in range(3):
            attack(proof, *random_programs.arguments(draw))
