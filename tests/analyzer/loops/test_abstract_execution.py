"""Nests that are followed round by round: what is constant decides the counts, and what is not decides nothing."""

import random

import pytest

from tests import random_programs
from tests.analyzer.firmware_code import checked, of, refused
from tests.analyzer.small_functions import small_guest
from tests.following import IN_TESTS, PRODUCT, following
from tests.path_check import attack, proved
from tests.support import TARGETS, guest_of
from wcet_probe.analyzer import entry_run_bound
from wcet_probe.analyzer.bound import prepare
from wcet_probe.analyzer.facts.language import Facts
from wcet_probe.analyzer.initial_data import image_data
from wcet_probe.analyzer.loops import abstract_execution
from wcet_probe.analyzer.loops.nest_limits import ExecutedNest
from wcet_probe.analyzer.request import BoundRequest, InitialData
from wcet_probe.analyzer.values.execution.repeated_blocks import RepeatedExecution
from wcet_probe.analyzer.values.properties.loop_shapes import loop_shapes
from wcet_probe.catalog.lookup import load_target
from wcet_probe.errors import AnalysisError

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
    followed, block = [], RepeatedExecution.block

    def counted(self, instructions, *others):
        followed.append(len(instructions))
        return block(self, instructions, *others)

    monkeypatch.setattr(RepeatedExecution, "block", counted)
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
    followed, block = [], RepeatedExecution.block

    def counted(self, instructions, *others):
        followed.append(instructions[0].address)
        return block(self, instructions, *others)

    monkeypatch.setattr(RepeatedExecution, "block", counted)
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


KNOWN = """typedef unsigned u; volatile u o; u n = 3, lengths[4] = {2, 5, 1, 7}, sorted[6] = {9, 8, 7, 6, 5, 4};
u state = 1;
unsigned char bytes[8] = {1, 0, 2, 0, 3, 0, 1, 0}; u in;
void written(void) { for (u i = 0; i < 4; i++) { for (u j = 0; j < lengths[i]; j++) o = j; lengths[3] -= 2; } }
void by_sorting(void) {
  for (u i = 1; i < 6; i++)
    for (u j = i; j && sorted[j] < sorted[j - 1]; j--) {
      u k = sorted[j];
      sorted[j] = sorted[j - 1];
      sorted[j - 1] = k;
    }
}
void by_state(void) {
  while (state != 9)
    switch (state) { case 1: state = 4; break; case 4: o = 1; o = 2; state = 2; break; default: state = 9; }
}
void by_parts(void) {
  unsigned short half; __builtin_memcpy(&half, bytes + 2, 2);
  u word; bytes[5] = 1; __builtin_memcpy(&word, bytes + 4, 4);
  for (u i = 0; i < (half & 15); i++) o = i;
  for (u i = 0; i < (word & 15); i++) o = i;
}
void chosen(u x) { if (x) n = 8; for (u i = 0; i < n; i++) o = i; n = 2; for (u i = 0; i < n; i++) o = i; }
__attribute__((noinline)) void put(u x) { lengths[x & 3] = n; }
void by_call(void) { put(1); for (u i = 0; i < lengths[1] + lengths[0]; i++) o = i; }
__attribute__((noinline)) void frames(u *where, u much) { for (u i = 0; i < 90; i++) where[i] = much + i; }
void on_stack(void) { u a[90]; frames(a, n); u e = a[7] + a[2]; for (u i = 0; i < e; i++) o = a[i]; }
"""


def knowing(target, source, entry):
    """The proof under what the file says of memory."""
    guest = guest_of(source, load_target(target), ".c")
    return proved(guest, entry, initial=InitialData(image_data(guest.image), "the file says"))


@pytest.mark.covering
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("entry", ["written", "by_sorting", "by_state", "by_parts", "by_call", "on_stack"])
def test_what_memory_holds_at_entry_decides_also_what_is_written_in_the_call(target, entry):
    proof = knowing(target, KNOWN, entry)
    assert checked(proof, ()) == proof.bound.instructions
    assert sum(nest.is_decided for nest in proof.values.executed.values() if isinstance(nest, ExecutedNest)) == 1


@pytest.mark.covering(0)
@pytest.mark.parametrize("target", TARGETS)
def test_what_an_argument_decides_goes_both_ways_and_what_is_stored_behind_it_is_known(target):
    guest = guest_of(KNOWN, load_target(target), ".c")
    assert proved(guest, "chosen").bound.by_type
    proof = knowing(target, KNOWN, "chosen")
    runs = [checked(proof, (number,)) for number in (0, 1)]
    assert runs[0] < runs[1] <= proof.bound.instructions


def test_a_function_that_takes_too_long_to_follow_is_not_tried_twice(monkeypatch):
    tried, whole = [], abstract_execution._Following.function
    monkeypatch.setattr(abstract_execution._Following, "function", lambda own: tried.append(own) or whole(own))
    text = "typedef unsigned u; volatile u o; void f(void) { for (u i = 0; i < 4000; i++) o = i; }"
    guest = guest_of(text, load_target("cortex-m4"), ".c")
    initial = InitialData(image_data(guest.image), "the file says")
    with following(500):
        proof = proved(guest, "f", initial=initial)
    assert proof.stage.request.initial.entry is None
    assert {one._most for one in tried} <= {abstract_execution.WHOLE * 500, abstract_execution.WHOLE * 500 // 8}
    assert sum(one._most == abstract_execution.WHOLE * 500 for one in tried) == 1
    assert checked(proof, ()) <= proof.bound.instructions


RANDOM_HEAD = random_programs.HEAD.replace("u g[16];", "u g[16] = {%s};").replace("u h[16];", "u h[16] = {%s};")


def random_source(seed, functions):
    """Random functions, each called with words of memory, which are written in the call."""
    draw = random.Random(f"memory {seed}")
    words = [", ".join(str(one) for _ in range(6) for one in random_programs.arguments(draw)[:2]) for _ in range(2)]
    bodies = random_programs.source(seed, functions).removeprefix(random_programs.HEAD)
    entries = "".join(f"u e{one}(void) {{ return f{one}(g[1], g[2], h[3]); }}\n" for one in range(functions))
    return RANDOM_HEAD % tuple(words) + bodies + entries


@pytest.mark.covering(0)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("functions", [2, pytest.param(6, marks=pytest.mark.slow)])
def test_runs_of_random_functions_stay_within_what_memory_decides(target, seed, functions, monkeypatch):
    monkeypatch.setattr(entry_run_bound, "MOST_INSTRUCTIONS", 10 * IN_TESTS)  # one of them runs for millions
    guest = guest_of(random_source(seed, functions), load_target(target), ".c")
    initial, draw, decided = InitialData(image_data(guest.image), "the file says"), random.Random(seed), 0
    for name in (f"{kind}{number}" for number in range(functions) for kind in "ef"):
        try:
            proof = proved(guest, name, initial=initial)
        except AnalysisError:
            continue
        arguments = () if name.startswith("e") else random_programs.arguments(draw)
        executed = attack(proof, *arguments)
        decided += executed == proof.bound.instructions
    assert decided
