"""Ways through binary loops, and which source loops' rounds they may be."""

import pytest

from tests.path_check import attack, check_emulated, proved
from tests.support import guest_of
from wcet_probe.analyzer.facts.round_lines import LoopWays, is_around_each_round, may_be_entered_in_its_test
from wcet_probe.analyzer.facts.source_index import index_sources
from wcet_probe.analyzer.facts.source_match import LoopSite, match_loops
from wcet_probe.catalog.lookup import load_target

SOURCE = """\
void f(int n) {
  while (g(n)) {
    do {
      h(n);
      n++;
    } while (n & 7);
    n += 9;
  }
}
void caller(int n) {
  do {
    f(n);
    n--;
  } while (n);
}
"""
INDEX = index_sources({"a.c": SOURCE})
OUTER, INNER, CALLERS = sorted(
    (one for source in INDEX.files.values() for one in source.loops), key=lambda one: one.first_line
)


class Inlined:
    """Calls that are inlined, as line and the code that they have brought; code is at ten times its line."""

    def __init__(self, *inlined, clang=True):
        self.inlined, self.image, self.lines, self.clang = inlined, self, self, clang

    def is_of_clang(self, address):  # noqa: ARG002  of all code
        return self.clang

    def find(self, address):
        return ("a.c", address // 10)  # line 0 is none

    def calls(self, address):
        return [("a.c", call) for call, code in self.inlined if address in code]


def ways(*blocks, tests=frozenset()):
    """Blocks with what is behind them; the first one is the header."""
    return LoopWays(
        blocks[0][0][0], {at[0]: at for at, _ in blocks}, {at[0]: frozenset(to) for at, to in blocks}, tests
    )


def is_clear(found, way, *inlined):
    return is_around_each_round(found, way, Inlined(*inlined), INDEX)


def test_a_way_round_is_found_past_what_is_barred():
    way = ways(((10, 11), (20, 30)), ((20,), (40,)), ((30,), (40,)), ((40,), (10,)))
    assert way.has_round_without({20})
    assert way.has_round_without({20, 99})
    assert not way.has_round_without({20, 30})
    assert not way.has_round_without({11})
    assert not ways(((10,), (20,)), ((20,), ())).has_round_without(set())


def test_each_way_has_code_of_the_loop():
    assert is_clear(OUTER, ways(((40, 60), (20,)), ((20,), (40,))))
    assert is_clear(OUTER, ways(((40, 60), (20,)), ((20, 60), (40,))))
    # From the test of the loop inside back to the header at once: by the pragma of the loop around 4 rounds, 30 run.
    assert not is_clear(OUTER, ways(((40, 60), (40, 20)), ((20,), (40,))))
    assert is_clear(INNER, ways(((40, 60), (40,))))


def test_of_gcc_only_tests_tell_whose_round_it_is():
    """It has made one of code of a loop inside and of the loop around, with that one's line: 101 for 178 rounds."""
    joined = ((40, 61), (41, 62)), ((41,), (21,)), ((21,), (40,)), ((62,), (20,)), ((20,), (40,))
    tests = frozenset({61, 20})
    told = [
        is_around_each_round(OUTER, ways(*each, tests=tests), Inlined(clang=clang), INDEX)
        for each in (joined, (((40, 61), (20,)), ((20,), (40,))))
        for clang in (True, False)
    ]
    assert told == [True, False, True, True]


def test_code_of_an_inlined_call_is_of_the_loop_that_calls():
    assert not is_clear(CALLERS, ways(((20, 60), (20,))))
    assert not is_clear(CALLERS, ways(((20, 60), (20,))), (12, {20}))  # it is a loop of its own, whoever calls
    assert is_clear(CALLERS, ways(((10, 90), (10,))), (12, {10, 90}))
    assert is_clear(INNER, ways(((40, 130, 60), (40,))), (5, {130}))
    # Of code without a line nothing tells that it is of no loop in what was called: 57 rounds proved, 70 run.
    assert not is_clear(CALLERS, ways(((20, 5, 60), (20,))), (12, {5, 20, 60}))


def test_no_way_is_of_a_loop_around():
    # A constant of the loop around has strayed, or a test of it is one way of several.
    assert is_clear(INNER, ways(((70, 40, 60), (40, 70))))
    assert is_clear(INNER, ways(((40,), (70,)), ((70,), (60,)), ((60,), (40,))))
    assert not is_clear(INNER, ways(((40,), (60, 70)), ((70,), (60,)), ((60,), (40,))))
    assert not is_clear(INNER, ways(((40, 70), (60,)), ((60,), (40,)), tests={70}))
    # So is the loop around the call that has brought the loop, where that is known.
    way = ways(((20, 70), (20, 130)), ((130,), (20,)))
    assert not is_clear(OUTER, way, (12, {20, 70}))


def test_a_loop_that_a_loop_inside_goes_back_to_has_no_source_loop():
    """GCC -O2 -funswitch-loops: a loop inside has a copy of its own, and goes to the header of the loop around, too."""

    def site(address, latches, way, outer=None):
        own = tuple(at for block in way.blocks.values() for at in block)
        told = [tuple(("a.c", at // 10) for at in each) for each in (latches, own)]
        shape = {"outer": outer, "latches": latches, "own": own, "header_line": ("a.c", address // 10)}
        return LoopSite("f", address, address, *told, **shape, inlining=Inlined(), ways=way)

    copy = site(61, (61,), ways(((61, 62), (61,))), outer=40)
    one = ways(((40, 60), (61, 40)), ((61, 62), (61, 20)), ((20, 70), (40,)))
    two = ways(((40, 60), (61, 70)), ((61, 62), (61, 20)), ((20, 70), (40,)))
    assert match_loops([site(40, (20, 60), one), copy], INDEX)[40] is None
    assert match_loops([site(40, (20,), two), copy], INDEX) == {40: OUTER, 61: INNER}


PARTS = """\
volatile unsigned left;
__attribute__((noinline)) unsigned more(void)
{
  unsigned n = left;
  left = n - 1;
  return n;
}
__attribute__((noinline)) unsigned ready(unsigned n)
{
  left = n;
  return n;
}
void f(unsigned n)
{
  unsigned flag = ready(n);
  _Pragma("loopbound min 0 max 5")
  while (flag && more())
    ;
}
"""


@pytest.mark.parametrize("level", ["-O1", "-Os"])
def test_a_part_of_a_test_in_front_of_the_loop_may_be_one_more_execution_of_its_header(level):
    """Both parts have one branch, the first one for the entry only: 65 and 54 instructions proved, 76 and 63 run."""
    proof = proved(guest_of(PARTS, load_target("cortex-m4"), ".c", level), "f", sources={"guest.c": PARTS})
    assert attack(proof, 5) == proof.bound.instructions
    check_emulated(proof, 5)


def test_only_a_way_without_code_of_the_body_may_be_entered_in_the_test():
    text = "void f(int n) {\n  while (n && g(n)) {\n    n++;\n  }\n  while (g(n)) {\n    n++;\n  }\n}\n"
    of_parts, alone = index_sources({"a.c": text + "int g(int n) { return n + 1; }\n"}).files["a.c"].loops
    test, both = ways(((20,), (20,))), ways(((20,), (30,)), ((30,), (20,)))
    assert may_be_entered_in_its_test(of_parts, test, Inlined())
    assert not may_be_entered_in_its_test(of_parts, both, Inlined())
    assert not may_be_entered_in_its_test(alone, ways(((50,), (50,))), Inlined())
