"""A function that calls itself at its end, and was inlined into a loop: whose rounds are whose."""

import pytest

from tests.analyzer.facts.test_round_lines import Inlined, ways
from tests.path_check import attack, check_emulated, proved
from tests.support import TARGETS, guest_of
from wcet_probe.analyzer.facts.inlined_recursion import ends_each_round, has_loop_of_its_own
from wcet_probe.analyzer.facts.source_index import index_sources
from wcet_probe.catalog.lookup import load_target
from wcet_probe.errors import AnalysisError

SOURCE = """\
int g(int n) {
  if (n == 0)
    return 1;
  return n * g(n - 1);
}
int f(int most) {
  int sum = 0;
  for (int i = 0; i <= most; i++)
    sum += g(i);
  return sum;
}
int twice(int n) {
  if (n & 1) return twice(n - 1);
  if (n) return twice(n / 2);
  return 0;
}
int other(int n) { return n ? there(n - 1) : 0; }
int there(int n) { return n ? other(n - 1) : 1; }
int rounds(int n) {
  while (n & 6)
    n--;
  return n ? rounds(n - 1) : 0;
}
"""
INDEX = index_sources({"a.c": SOURCE})
FUNCTIONS = {one.name: one for one in INDEX.files["a.c"].functions}
(LOOP,) = INDEX.loops("f", "a.c")


class Called(Inlined):
    """With the names of the functions that were inlined: those of which the lines are."""

    def find(self, address):
        return super().find(address) if address >= 10 else None

    def callees(self, address):
        line = address // 10
        inside = [name for name, one in FUNCTIONS.items() if one.first_line <= line <= one.last_line]
        return [(*inside, call) for call in self.calls(address)]


def is_its_own(name, *inside, inlined=((9, range(10, 60)),)):
    return has_loop_of_its_own(FUNCTIONS[name], inside, Called(*inlined), INDEX)


def test_all_code_of_a_loop_inside_is_of_the_function_that_calls_itself():
    assert is_its_own("g", {20, 40})
    assert is_its_own("g", {20, 40}, {90, 80})
    assert is_its_own("g", {20, 40, 5}), "code without a line tells nothing"
    assert not is_its_own("g"), "the rounds may be those of the loop around"
    assert not is_its_own("g", {20, 40, 90}), "and code of the loop around may be in it"
    assert is_its_own("g", {20, 40}, {21, 41}), "what is left of an unrolled one has a loop, too"
    assert not is_its_own("g", {20, 40}, {21, 41, 90})
    assert not is_its_own("g", {20, 40}, inlined=()), "it is the function itself"


def test_a_function_that_calls_itself_at_several_places_or_has_loops_is_not_told_apart():
    assert not is_its_own("twice", {130, 131}, inlined=((9, range(130, 160)),))
    assert not is_its_own("other", {180, 181}, inlined=((9, range(180, 190)),))
    assert not is_its_own("rounds", {230, 231}, inlined=((9, range(200, 240)),))


INLINED = Called((9, range(10, 60)))


def test_each_round_passes_a_test_that_ends_the_source_loop():
    last = ((80, 81), (20,))
    each = ways(((20,), (40, 80)), ((40,), (80,)), last, tests={20, 81})
    assert ends_each_round(LOOP, each, {20, 40, 80, 81}, INLINED)
    # From the function back to where it begins, past the test.
    back = ways(((20,), (40, 80)), ((40,), (20,)), last, tests={20, 81})
    assert not ends_each_round(LOOP, back, {20, 40, 80, 81}, INLINED)
    # It is no test, or stays in the loop on both ways, is of a loop inside, or was brought by a call.
    assert not ends_each_round(LOOP, ways(((20,), (80,)), last, tests={20}), {20, 80, 81}, INLINED)
    stays = ways(((20,), (80,)), ((80, 81), (20, 40)), ((40,), (20,)), tests={81})
    assert not ends_each_round(LOOP, stays, {20, 40, 80, 81}, INLINED)
    assert not ends_each_round(LOOP, ways(((20,), (80,)), last, tests={81}), {20}, INLINED)
    brought = Called((9, range(10, 60)), (9, (81,)))
    assert not ends_each_round(LOOP, ways(((20,), (80,)), last, tests={81}), {20, 80, 81}, brought)


PRAGMA = """\
volatile int limit = 5;
int sum;
static int g(int n)
{
  if (n == 0)
    return 1;
  else
    return n * g(n - 1);
}
void f(void)
{
  int i;
  _Pragma("loopbound min 6 max 6")
  for (i = 0; i <= limit; i++) {
    sum += g(i);
  }
}
"""


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("level", ["-O2", "-Os"])
def test_a_loop_around_a_function_that_has_become_a_loop_has_its_pragma(target, level):
    guest = guest_of(PRAGMA, load_target(target), ".c", level)
    proof = proved(guest, "f", sources={"guest.c": PRAGMA})
    assert proof.bound.instructions < 1000, "it is that of a type"
    assert 0 < attack(proof) <= proof.bound.instructions
    check_emulated(proof)


SHARED = """\
volatile int data[2] = {1, 1};
static int g(int n) {
  n -= data[n & 1];
  if (n > 0)
    return g(n);
  return n;
}
int f(int n) {
  _Pragma("loopbound min 1 max 1")
  do {
    n = g(n);
  } while (n > 0);
  return n;
}
"""


@pytest.mark.parametrize("level", ["-O1", "-O2", "-Os"])
def test_activations_are_no_rounds_of_a_loop_that_is_executed_once(level):
    """The test of the loop is false whenever that of the function is: any number of activations, and one round."""
    guest = guest_of(SHARED, load_target("cortex-m4"), ".c", level)
    with pytest.raises(AnalysisError, match=r"no bound for the loop|calls g recursively"):
        proved(guest, "f", sources={"guest.c": SHARED})
