"""Loops of the binary that are several of the source: all of their iterations together, and never one's alone."""

from dataclasses import replace

import pytest

from tests.path_check import attack, proved
from tests.support import TARGETS, guest_of
from wcet_probe.analyzer.facts.joined_loops import joined_loops
from wcet_probe.analyzer.facts.source_index import index_sources
from wcet_probe.analyzer.facts.source_match import LoopSite, match_loops
from wcet_probe.catalog.lookup import load_target
from wcet_probe.errors import AnalysisError

SOURCE = """\
#define TEN 200, 100, 100, 100, 100, 100, 100, 100, 100, 100
unsigned char data[] = {TEN, TEN, TEN, TEN, TEN, TEN, TEN, TEN, TEN, TEN, 0};
volatile int swaps, comparisons;
__attribute__((noinline)) int compare(unsigned char *x, unsigned char *y) { comparisons++; return *x - *y; }
__attribute__((noinline)) void swap(unsigned char *x, unsigned char *y) {
  unsigned char t = *x; *x = *y; *y = t; swaps++;
}
void partition(unsigned char *a, unsigned n, unsigned size) {
  unsigned char *i = a, *end = a + n * size, *j = end;
  _Pragma("loopbound min 0 max 10")
  while (1) {
    _Pragma("loopbound min 1 max 10")
    do
      i += size;
    while (i < end && compare(i, a) < 0);
    SECOND
      j -= size;
    WHILE
    if (j < i)
      break;
    swap(i, j);
  }
}
void both(unsigned char *a, unsigned n, unsigned size) {
  unsigned char *i = a, *end = a + n * size;
  _Pragma("loopbound min 0 max 10")
  do {
    _Pragma("loopbound min 1 max 10")
    do
      i += size;
    while (i < end && compare(i, a) < 0);
  } while (i < end);
}
static inline __attribute__((always_inline)) unsigned char *
step(unsigned char *i, unsigned char *a, unsigned char *end, unsigned size) {
  _Pragma("loopbound min 1 max 10")
  do
    i += size;
  while (i < end && compare(i, a) < 0);
  return i;
}
void called(unsigned char *a, unsigned n, unsigned size) {
  unsigned char *i = a, *end = a + n * size;
  _Pragma("loopbound min 0 max 10")
  do
    i = step(i, a, end, size);
  while (i < end);
}
"""
TWO = {"SECOND": '_Pragma("loopbound min 1 max 10")\n    do', "WHILE": "while (j > a && compare(j, a) > 0);"}
ONE = {"SECOND": "", "WHILE": ""}


def source_of(parts):
    return SOURCE.replace("SECOND", parts["SECOND"]).replace("WHILE", parts["WHILE"])


@pytest.mark.parametrize("level", ["-O1", "-O2", "-Os"])
@pytest.mark.parametrize(("parts", "entry"), [(TWO, "partition"), (ONE, "partition"), (ONE, "both"), (ONE, "called")])
def test_no_run_is_above_a_bound_by_true_pragmas(parts, entry, level):
    """Of `both` nothing but one back branch is left, which is taken 99 times: of the pragma inside 10 were proved."""
    source = source_of(parts)
    guest = guest_of(source, load_target("cortex-m4"), ".c", level)
    if entry == "called":
        with pytest.raises(AnalysisError, match="no bound for the loop"):
            proved(guest, entry, sources={"guest.c": source})
        return
    proof = proved(guest, entry, sources={"guest.c": source})
    assert attack(proof, guest.image.symbols["data"].address, 100, 1) > 800


FILE = """\
void f(char *a, char *n, int es) {
  char *i = a, *j = n;
  _Pragma("loopbound min 0 max 9")
  while (1) {
    _Pragma("loopbound min 1 max 5")
    do
      i += es;
    while (i < n);
    if (j < i)
      break;
    swap(i, j);
  }
}
"""


def lines(*numbers):
    return tuple(("a.c", number) for number in numbers)


def site(address, latch, own, outer=None, header=None):
    shape = (lines(latch), lines(*own), outer, (address,), tuple(range(len(own))))
    return LoopSite("f", address, address, *shape, header_line=("a.c", header or own[0]))


def told(*sites, text=FILE):
    index = index_sources({"a.c": text})
    matches = match_loops(sites, index)
    joined = joined_loops(sites, index, matches)
    names = {one.header_address: found and found.first_line for one, found in zip(sites, matches.values(), strict=True)}
    return {
        address: (one.most, one.within) if (one := joined.get(address)) else found for address, found in names.items()
    }


ALL = 10 + 10 * 5
"""Iterations that begin: those of the loop around, with one that a `break` ends, and of the loop inside."""


def test_a_loop_around_in_a_loop_inside_makes_both_one():
    """GCC -O2: the first round of the loop inside stands at the end of the loop around, in the binary loop inside.

    Its own pragma allowed the outermost binary loop 10 rounds, in which 82 were run.
    """
    rotated = site(16, 8, (7, 8)), site(34, 8, (8, 9, 11), outer=16), site(44, 9, (7, 8, 9, 11), outer=34)
    assert told(*rotated) == {16: (ALL, 16), 34: 4, 44: (ALL, 16)}


def test_a_loop_around_that_has_left_nothing_may_be_in_the_loop_inside():
    assert told(site(16, 8, (7, 8))) == {16: (ALL, 16)}
    assert told(site(16, 8, (7, 8), outer=8), site(8, 11, (4, 9, 11))) == {16: 6, 8: 4}


def test_both_loops_with_one_header_have_the_iterations_of_both():
    assert told(site(16, 9, (7, 8, 9, 11))) == {16: (ALL, 16)}


INSIDE = """\
void f(void) {
  _Pragma("loopbound min 1 max 7")
  for (a = 5; a < 15; a += 1.5f) {
    _Pragma("loopbound min 1 max 5")
    for (d = -1; d > -11; d -= 2) {
      work(a, d);
      sum();
    }
  }
}
"""


@pytest.mark.parametrize(("text", "within"), [(INSIDE, 16), (INSIDE.replace("sum()", "f()"), 28)])
def test_rounds_of_a_loop_around_that_has_a_binary_loop_are_counted_for_each_entry_of_that(text, within):
    """GCC puts a load with the line of the loop around into the loop inside (TACLeBench's cubic, -O2 on mpc603e).

    Its rounds were counted for each round of the loop around: 448 for 56.
    """
    calls = {("a.c", 7, "f"): (28,)}
    inner = replace(site(28, 3, (6, 3, 6, 7, 5, 7, 5, 5), outer=16), test_lines=lines(5), calls=calls)
    outer = replace(site(16, 6, (5, 5, 3, 3, 3, 6, 6)), test_lines=lines(3), calls=calls)
    assert told(inner, outer, text=text) == {28: (7 + 1 + (7 + 1) * (5 + 1), within), 16: 3}


@pytest.mark.parametrize(
    ("text", "own"),
    [
        (FILE.replace('    _Pragma("loopbound min 1 max 5")\n', "\n"), (7, 8)),
        (FILE, (1, 7, 8, 9)),
        (FILE, (7, 7)),
        (FILE + FILE, (7, 8)),
        (FILE.replace("i += es;", "again: i += es;").replace("swap(i, j)", "goto again"), (7, 8)),
    ],
    ids=["no pragma", "code in front", "no head", "two functions", "a jump back"],
)
def test_what_is_not_clearly_within_loops_with_pragmas_is_not_told(text, own):
    assert told(site(16, 8, own) if own != (7, 7) else site(16, 7, own), text=text) in ({16: None}, {16: 4})


UNROLLED = """\
void f(char *a, int n) {
  _Pragma("loopbound min 1 max 30")
  while (1) {
    n = next(a);
    if (n != 16)
      break;
    _Pragma("loopbound min 16 max 16")
    for (int i = 0; i < 16; i++)
      a[i] ^= n;
  }
}
"""


def test_rounds_of_a_loop_that_is_unrolled_as_a_whole_are_no_rounds_of_the_binary_loop():
    """rijndael_dec of TACLeBench by Clang; where a line is not known, or of the head, they may be."""
    loop = replace(site(16, 5, (4, 5, *[9] * 16)), has_calls=True)
    assert told(loop, text=UNROLLED) == {16: (31, 16)}
    assert told(replace(loop, own_lines=lines(4, 5, 9, 8)), text=UNROLLED) == {16: (31 + 31 * 17, 16)}
    assert told(replace(loop, own_lines=lines(4, 5, 9, 0)), text=UNROLLED) == {16: (31 + 31 * 17, 16)}
    assert told(replace(loop, own=(1, 2)), text=UNROLLED) == {16: (31 + 31 * 17, 16)}
    assert told(replace(loop, has_calls=False), text=UNROLLED) == {16: None}
    moved = UNROLLED.replace("i < 16; i++", "i < 16;").replace("a[i]", "a[i++]")
    assert told(loop, text=moved) == {16: (31 + 31 * 17, 16)}


SORT = """\
int words[10] = {9, 8, 7, 6, 5, 4, 3, 2, 1, 0};
static void sort(int *a) {
  int sorted, t, i, j;
  _Pragma("loopbound min 9 max 9")
  for (i = 0; i < 9; i++) {
    sorted = 1;
    _Pragma("loopbound min 1 max 9")
    for (j = 0; j < 9; j++) {
      if (j > 10 - i)
        break;
      if (a[j] > a[j + 1]) {
        t = a[j]; a[j] = a[j + 1]; a[j + 1] = t;
        sorted = 0;
      }
    }
    if (sorted)
      break;
  }
}
void f(void) { sort(words); }
"""


@pytest.mark.parametrize("target", TARGETS)
def test_a_loop_in_an_inlined_function_that_has_become_several_is_bounded_by_its_pragma(target):
    """On PowerPC Clang makes two loops, one in the other, of the loop inside, both within a third one of its head."""
    guest = guest_of(SORT, load_target(target), ".c", "-O2")
    proof = proved(guest, "f", sources={"guest.c": SORT})
    assert not proof.bound.by_type
    assert attack(proof) > 300
    assert max(loop.max for loop in proof.bound.loops) <= 10


CALLS_ITSELF = """\
void f(int n) {
  _Pragma("loopbound min 1 max 5")
  while (1) {
    n = next(n);
    if (n == 3)
      f(n);
    _Pragma("loopbound min 1 max 5")
    do
      n--;
    while (n > other(n));
  }
}
"""


def test_a_call_of_itself_may_be_a_round_of_the_loop():
    loop = replace(site(16, 10, (4, 5, 6, 9, 10)), has_calls=True)
    assert told(loop, text=CALLS_ITSELF) == {16: None}
    assert told(loop, text=CALLS_ITSELF.replace("f(n);", "g(n);")) == {16: (6 + 6 * 5, 16)}


INSIDE = """\
void f(char *p, char *end) {
  _Pragma("loopbound min 0 max 3")
  while (1) {
    _Pragma("loopbound min 0 max 20")
    for (;;) {
      p += 2;
      if (!(p < end))
        break;
      p += 1;
    }
    if (next() % 5 == 0)
      break;
  }
}
"""


def test_rounds_of_a_loop_inside_may_be_rounds_of_the_loop_around():
    """GCC -O2, random programs with true pragmas: by that of the loop around 31 were proved of 1,533."""
    loop = replace(site(16, 9, (6, 7, 11, 12)), has_calls=True)
    assert told(loop, text=INSIDE) == {16: (4 + 4 * 21, 16)}
    assert told(replace(loop, own_lines=lines(6, 7, 11, 12, 1)), text=INSIDE) == {16: None}
    counted = INSIDE.replace("for (;;)", "for (int i = 0; i < 20; i++)")
    assert told(replace(loop, latch_lines=lines(11)), text=counted) == {16: (4, 16)}
