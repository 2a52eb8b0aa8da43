"""Binary loops and the source loops that they come from, on images of every target."""

from dataclasses import replace

import pytest

from tests.analyzer.natural_loops import TARGETS, program, sites_of
from tests.path_check import proved
from tests.support import guest_of
from wcet_probe.analyzer.facts.source_index import index_sources
from wcet_probe.analyzer.facts.source_match import LoopSite, match_loop, match_loops
from wcet_probe.catalog.lookup import load_target
from wcet_probe.errors import AnalysisError

EXPECTED = {
    "first-fit": {"first_fit_malloc": ["find:walk"]},
    "buddy-binary": {
        "buddy_binary_init": ["forget_all_lists:0", "make_roots:0", "make_roots:1"],
        "buddy_binary_malloc": [f"buddy_binary_malloc:{name}" for name in ("round", "search", "split")],
        "buddy_binary_free": ["buddy_binary_free:merge"],
    },
    "avl-best-fit": {"release": ["grown:grow", "release:descent"], "take": ["descend:descent", "shrunk:shrink"]},
    "dlmalloc27": {
        "dlmalloc27_init": [f"dlmalloc27_init:{number}" for number in range(3)],
        "consolidate": ["consolidate:chunks", "consolidate:lists"],
        "dlmalloc27_malloc": [f"from_larger_bin:{name}" for name in ("marked", "unmarked", "words")]
        + ["dlmalloc27_malloc:attempts", "from_own_bin:smaller", "sort_unsorted:unsorted", "sorted_place:larger"],
    },
    "btree-best-fit": {
        "btree_best_fit_malloc": ["find:fit", "find:fit", "insert:place", "replace_by_successor:successor"],
    },
}
"""Source loops by binary function, found by hand: a function and its loop's label, or its place among the others."""


@pytest.mark.covering
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("allocator", EXPECTED)
def test_each_binary_loop_has_its_source_loop(allocator, target):
    built = program(allocator, target)
    expected = EXPECTED[allocator]
    sites = sites_of(built.image, built.instructions, frozenset(expected))
    index = index_sources(dict(built.allocator.sources))
    matches = match_loops(sites, index)
    found = {name: [] for name in expected}
    for site in sites:
        loop = matches[site.header_address]
        name = loop and f"{loop.function}:{loop.label or index.loops(loop.function).index(loop)}"
        found[site.function].append(name)
    assert {name: sorted(loops) for name, loops in found.items()} == {n: sorted(loops) for n, loops in expected.items()}


SOURCE = """\
int f(int a) {
  for (;;) {
    a = g(a);
    while (a) {
      a--;
      h(a); }
    if (!a) break; }
}
int g(int a) {
  while (a > 9)
    a /= 2;
  return a;
}
"""
INDEX = index_sources({"a.c": SOURCE})
OUTER, INNER, CALLEE = (loop for source in INDEX.files.values() for loop in source.loops)


def lines(*numbers):
    return tuple(("a.c", number) for number in numbers)


def match(latch, own, claimed=frozenset(), header=0):
    site = LoopSite("f", 0, 0, lines(*latch), lines(*own), header_line=("a.c", header))
    return match_loop(site, INDEX, frozenset(claimed))


def test_a_loop_with_rounds_of_those_inside_is_the_one_around_them():
    """Peeled rounds of an inner loop, whose own binary loop stands inside, may have more lines than the outer loop."""
    assert match([6, 4], [3, 7, 5, 5, 5, 6, 6, 6], [INNER], header=3) == OUTER
    assert match([6, 4], [3, 7, 5, 5, 5, 6, 6, 6], [INNER], header=5) is None
    assert match([6, 4], [3, 5, 5, 5, 6, 6, 6], [INNER], header=3) is None
    assert match([6, 4], [3, 7, 5, 5, 5, 10, 11], [INNER], header=3) is None
    assert match([6, 4], [3, 7, 5, 5, 5, 11, 11], [INNER, CALLEE], header=3) is None


class Inlined:
    """Calls that are inlined, on an image whose lines are its addresses."""

    def __init__(self, *inlined):
        self.inlined, self.image, self.lines = inlined, self, self

    def find(self, address):
        return "a.c", address

    def calls(self, address):
        return lines(*(call for call, first, last in self.inlined if first <= address <= last))

    def seen_from_callers(self, latches, own):  # noqa: ARG002  nothing that decides
        return iter(())


def test_a_loop_that_is_inlined_and_unrolled_is_not_the_one_around_it_for_its_many_lines():
    def found(own, *inlined, claimed=(), latch=99):
        inlining = Inlined(*inlined)
        site = LoopSite("f", 0, 0, lines(latch), lines(*own), latches=(latch,), own=own, inlining=inlining)
        return match_loop(site, INDEX, frozenset(claimed))

    # The callee's loop has most lines, of which one call brings all: the loop is that of the caller.
    assert found((3, 7, 10, 11, 11), (3, 10, 11)) is None
    assert found((3, 7, 11, 10, 10), (3, 10, 11), claimed=[OUTER]) is None
    assert found((3, 7, 7, 10, 11), (3, 10, 11)) == OUTER
    assert found((10, 11, 11), (3, 10, 11)) == CALLEE
    # So it is where the latch is on a line of the callee's loop, and what counts the caller's rounds is here.
    assert found((4, 6, 10, 11), (6, 10, 11), latch=11) is None
    assert found((5, 6, 10, 11), (6, 10, 11), latch=11) == CALLEE


def test_a_loop_with_the_head_of_the_one_around_it_may_have_a_latch_of_that():
    def found(latches, *own):
        outer = LoopSite("f", 8, 8, lines(2), lines(2, 3, 7))
        inner = LoopSite("f", 16, 16, lines(*[4] * latches), lines(*own), outer=8, latches=tuple(range(latches)))
        return match_loops([outer, inner], INDEX)[16]

    assert found(2, 4, 5, 6) == INNER
    assert found(1, 4, 5, 6, 2) == INNER
    assert found(2, 4, 5, 6, 2) is None


def test_a_line_of_the_loop_around_at_a_latch_does_not_make_a_loop_of_it():
    """GCC made the block before a `do` its back edge, and the pragma of the loop around was taken for that loop's.

    Nor does it make one of the loop inside: GCC goes on in rounds of the loop around without a test of it where that is
    known to hold, and of the loop inside, which runs once at most, only its test is left. By that one's pragma two
    rounds were proved, and 190 run.
    """
    index = index_sources({"a.c": DO_INSIDE})
    outer = min((one for source in index.files.values() for one in source.loops), key=lambda one: one.first_line)

    def found(latch, *own, around=(3, 4)):
        tested = lines(3) if latch == 3 else ()
        sites = [LoopSite("f", 8, 8, lines(latch), lines(*own), 0, (8,), header_line=("a.c", 6), test_lines=tested)]
        sites += [LoopSite("f", 0, 0, lines(3), lines(*around), header_line=("a.c", 4))] if around else []
        sites = sites if around else [replace(sites[0], outer=None)]
        matched = match_loops(sites, index)
        assert matched.get(0) in {None, outer}
        return matched[8]

    assert found(4, 4, 6, 7) is None
    assert found(4, 4, 4, 4, 6, 7) is None  # however much of the block before it
    assert found(4, 4, 6, 7, around=()) is None  # the one around may have no test any more
    assert found(4, 4, 6, 7, around=(4, 4)) is None
    assert found(4, 4, 6) is None  # whose test it is, nothing tells
    assert found(4, 4, 6, 6, 3, around=()) is None  # whose loop inside may be unrolled, or have its rounds here
    assert found(3, 4, 6, 7, around=()) == outer


def test_a_loop_with_code_of_the_loop_around_may_be_rounds_of_that():
    """GCC goes on in the loop around without its test where that is known to hold, from out of the loop inside.

    With true pragmas, 200 and 1 inside, 119 instructions were proved, and the loop went round 190 times.
    """
    index = index_sources({"a.c": TEST_INSIDE})
    outer, inner = sorted(
        (one for source in index.files.values() for one in source.loops), key=lambda one: one.first_line
    )

    def found(*own):
        sites = [LoopSite("f", 8, 8, lines(5), lines(*own), outer=0, header_line=("a.c", own[0]))]
        sites += [LoopSite("f", 0, 0, lines(2), lines(2, 3), header_line=("a.c", 2))]
        return match_loops(sites, index)

    assert found(4, 5, 6) == {0: outer, 8: inner}
    assert found(3, 4, 5, 6) == {0: outer, 8: None}
    assert found(3, 5, 6) == {0: outer, 8: None}


TEST_INSIDE = """\
void f(int n) {
  while (n) {
    int m = g(n) & 1;
    for (; m; m--) {
      n = h(n);
      g(m);
    }
  }
}
"""

DO_INSIDE = """\
void f(int n) {
  int m;
  while (n--) {
    m = n & 3;
    do {
      g(m);
    } while (m--);
  }
}
"""


def test_the_latch_decides_where_nothing_contradicts():
    assert match([4], [4, 5, 6]) == INNER
    assert match([2], [3, 7]) == OUTER
    assert match([2], [4, 5, 5, 6]) == OUTER  # the loop inside was unrolled
    assert match([4], [99]) == INNER


def test_the_body_decides_where_the_latch_says_nothing():
    assert match([99], [5, 6, 7]) == INNER
    assert match([], [3, 7, 5]) == OUTER
    assert match([], [3, 5]) is None
    assert match([], []) is None


def test_a_latch_in_an_inlined_callee_is_not_believed_against_the_body():
    assert match([10], [10, 3, 7]) is None
    assert match([10], [10, 3, 7], {CALLEE}) == OUTER
    assert match([10], [10], {CALLEE}) is None


def test_two_nested_loops_may_be_one_source_loop_if_nothing_speaks_against_it():
    assert match([4], [4, 5, 6], {INNER}) == INNER
    assert match([4], [4, 5, 6, 6, 7], {INNER}) is None
    assert match([2], [3, 5], {OUTER}) == OUTER  # with as much of a loop inside
    assert match([2], [3, 5, 5], {OUTER, INNER}) == OUTER
    assert match([2], [5, 5], {OUTER, INNER}) is None
    assert match([2], [3, 5, 11], {OUTER, INNER}) is None


def test_an_ambiguous_line_matches_nothing():
    index = index_sources({"a.c": "int f(int a) { for (;;) while (a) a--; }"})
    assert match_loop(LoopSite("f", 0, 0, lines(1), lines(1, 1)), index) is None


def test_inner_loops_claim_their_source_loops_first():
    sites = [LoopSite("f", 8, 8, lines(10), lines(10, 3, 7)), LoopSite("f", 16, 16, lines(10), lines(10, 11), outer=8)]
    assert match_loops(sites, INDEX) == {8: OUTER, 16: CALLEE}


LEFT_BY_BREAK = """\
volatile int o, g[64];
int f(int x, int k) {
  int i = 0;
  _Pragma("loopbound min 1 max 40")
  for (;;) {
    _Pragma("loopbound min 0 max 2")
    for (int j = 0; j < k; j++) {
      if (g[i] == x) return j;
      if (g[i + 1] == 7) {
        o = 5;
        break;
      }
      i++;
    }
  }
}
"""
SHARED_HEADER = """\
volatile int o, g[64];
int f(int x, int k) {
  int i = 0;
  _Pragma("loopbound min 1 max 40")
  while (1) {
    int j = 0;
    _Pragma("loopbound min 0 max 2")
    while (j < k) {
      int v = g[i++];
      if (v == x)
        return j;
      if (v == 7) {
        o = 5;
        break;
      }
      j++;
    }
  }
}
"""


@pytest.mark.parametrize(("source", "optimisation"), [(LEFT_BY_BREAK, "-O2"), (SHARED_HEADER, "-O1")])
def test_a_loop_around_does_not_take_the_pragma_of_the_one_inside(source, optimisation):
    """No line of the outer loop is left in the binary, or both are one there: the inner count bounds neither."""
    guest = guest_of(source, load_target("cortex-m4"), ".c", optimisation)
    with pytest.raises(AnalysisError, match="no bound for the loop"):
        proved(guest, "f", sources={"guest.c": source})


STRAYED = """\
void f(int n)
{
    for (int i = 0; i < n; i++) {
        g(i);
        while (h(i))
            k(i);
    }
}
"""


@pytest.mark.parametrize(
    ("tests", "is_in_loop", "matched"),
    [([5], True, None), ([3, 5], True, None), ([5], False, None), ([3, 5], False, 3), ([], False, None)],
    ids=["strayed", "strayed with its test", "the loop around is unrolled", "the loop inside is unrolled", "no tests"],
)
def test_a_back_branch_with_the_head_of_the_loop_around_is_that_of_a_loop_with_its_test(tests, is_in_loop, matched):
    """GCC -O3 puts copies of registers, with that line, in front of the back branch of the loop inside."""
    index = index_sources({"a.c": STRAYED})
    outer = 8 if is_in_loop else None
    site = LoopSite("f", 16, 16, lines(3), lines(3, 5, 6), outer, (16,), test_lines=lines(*tests))
    around = [LoopSite("f", 8, 8, lines(3), lines(3, 4), test_lines=lines(3))] if is_in_loop else []
    found = {address: loop and loop.first_line for address, loop in match_loops([site, *around], index).items()}
    assert found == {16: matched} | ({8: 3} if is_in_loop else {})


@pytest.mark.parametrize(("own", "matched"), [([2, 4], None), ([4, 5], 3)])
def test_a_loop_around_a_call_is_not_the_first_loop_of_what_is_called(own, matched):
    """GCC -O3 goes back to the called function's first statements, on the first test of its loop."""
    source = (
        "int f(int n) {\n  int i = 0;\n  while (1) {\n    if (i >= n) break;\n    i += g(i);\n  }\n  return i;\n}\n"
    )
    inner = LoopSite("h", 16, 16, lines(4), lines(4, 5), outer=8)
    around = LoopSite("h", 8, 8, lines(4), lines(*own))
    found = match_loops([inner, around], index_sources({"a.c": source}))
    assert {address: loop and loop.first_line for address, loop in found.items()} == {16: 3, 8: matched}


AGAIN = """\
volatile int sink, left;
__attribute__((noinline)) void g(int x) { sink = x; }
__attribute__((noinline)) int more(void) { int n = left; left = n - 1; return n > 0; }
void f(int n)
{
  FIRST
  _Pragma("loopbound min 0 max 2")
  for (int i = 0; i != n; i++) {
    g(i);
    if (more())
      {
        f(n);
        return;
      }
  }
}
"""


@pytest.mark.parametrize("level", ["-O2", "-Os"])
def test_rounds_of_a_function_that_calls_itself_at_its_end_are_not_those_of_its_loop(level):
    """The call leaves no line: of any number of activations three rounds were taken to be all."""
    source = AGAIN.replace("FIRST", "")
    guest = guest_of(source, load_target("cortex-m4"), ".c", level)
    with pytest.raises(AnalysisError, match="no bound for the loop"):
        proved(guest, "f", sources={"guest.c": source})


@pytest.mark.parametrize(
    ("first", "calls", "own", "is_told"),
    [
        ("", {("guest.c", 12, "f")}, (8, 9, 10), True),
        ("", set(), (8, 9, 10), False),
        ("g(n);", {("guest.c", 6, "g")}, (8, 9, 10), True),
        ("g(n);", {("guest.c", 6, "g")}, (6, 8, 9, 10), False),
    ],
)
def test_a_loop_of_a_function_that_calls_itself_needs_code_that_each_activation_passes(first, calls, own, is_told):
    lines = tuple(("guest.c", line) for line in own)
    site = LoopSite("f", 16, 16, (("guest.c", 8),), lines, calls=dict.fromkeys(calls, (32,)))
    index = index_sources({"guest.c": AGAIN.replace("FIRST", first)})
    assert (match_loops([site], index)[16] is not None) == is_told


INLINED_AGAIN = """\
static int g(int n) {
  if (h(n))
    return g(n + 1);
  return n;
}
void f(int n) {
  for (int i = 0; i < 8; i++) {
    n += g(n);
    h(n);
  }
}
"""


def test_rounds_of_an_inlined_function_that_calls_itself_are_not_those_of_the_loop_around_the_call():
    """Clang gave the only line of a loop to what was added for the argument: 9 rounds were allowed, and 22 run."""
    index = index_sources({"a.c": INLINED_AGAIN})
    (loop,) = index.files["a.c"].loops
    around = LoopSite("f", 7, 7, lines(7), lines(7, 9), header_line=("a.c", 7))
    again = LoopSite("f", 8, 8, lines(2), lines(8, 2, 2), outer=7, header_line=("a.c", 8))
    assert match_loops([around, again], index) == {7: loop, 8: None}
    by_calls = {("a.c", 3, "g"): (9,)}
    assert match_loops([around, replace(again, calls=by_calls)], index)[8] == loop
