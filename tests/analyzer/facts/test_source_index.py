"""What the sources of an image are asked for: functions, loops at a line, who calls whom, and missing headers."""

import pytest

from tests.path_check import attack, proved
from tests.support import guest_of
from wcet_probe.analyzer.facts.source_index import index_sources
from wcet_probe.catalog.lookup import load_target
from wcet_probe.errors import UsageError

SOURCE = """\
#include "own.h"
#include <string.h>
#define AGAIN odd(n)
int even(int n);
int odd(int n) { return even(n - 1); }
int even(int n) { return n ? AGAIN : 1; }
int leaf(int n) { while (n)
  n--; return n; }
int down(int n) { return n ? down(n - 1) : leaf(n); }
int call(int n) { return leaf(n) + unknown(n); }
"""
INDEX = index_sources({"a.c": SOURCE, "b.c": "static int leaf(int n) { return n; }\n", "c.s": "leaf:"})


def test_a_function_that_is_defined_twice_needs_its_file():
    assert INDEX.function("leaf", "b.c").first_line == 1
    with pytest.raises(UsageError, match=r"defined more than once \(a.c:7, b.c:1\)"):
        INDEX.function("leaf")
    with pytest.raises(UsageError, match="down"):
        INDEX.function("dwon")
    with pytest.raises(UsageError, match="no source"):
        index_sources({}).function("leaf")


def test_a_line_is_of_the_loop_with_its_head_there_or_the_innermost_around():
    assert [loop.function for loop in INDEX.loops_at("a.c", 8)] == ["leaf"]
    assert INDEX.loops_at("a.c", 5) == INDEX.loops_at("d.c", 1) == []
    assert INDEX.loops("leaf") == INDEX.loops("leaf", "a.c") != INDEX.loops("leaf", "b.c")


@pytest.mark.parametrize(
    ("function", "itself", "indirectly"), [("odd", True, True), ("down", True, False), ("leaf", False, False)]
)
def test_calls_are_followed_through_macros(function, itself, indirectly):
    assert INDEX.calls_itself(function) == itself
    assert INDEX.calls_itself(function, directly=False) == indirectly


def test_what_calls_what_is_not_known_may_be_called_by_it():
    assert INDEX.may_call_itself("a.c", 10)
    assert not INDEX.may_call_itself("a.c", 7)


def test_headers_of_the_library_are_not_missed():
    assert INDEX.missing == {"own.h"}


RENAMED = """
#define sum prefixed_sum
#define again prefixed_again
#define other third
int sum(int n) { while (n--) step(); return n; }
int again(int n) { return n ? prefixed_again(n - 1) : 0; }
int third(int n) { return n ? other(n - 1) : 0; }
"""


@pytest.mark.parametrize(("function", "itself"), [("sum", False), ("again", True), ("third", True)])
def test_a_macro_with_the_name_of_a_function_is_no_call_of_it(function, itself):
    assert index_sources({"a.c": RENAMED}).calls_itself(function) == itself


RENUMBERED = """\
volatile unsigned v;
unsigned few(unsigned n)
{
  unsigned s = 0;
  _Pragma("loopbound min 0 max 2")
  for (unsigned i = 0; i < (n & 2); i++)
    s += v;
  return s;
}
#line 1 "guest.c"
/* a generator's text */
unsigned many(unsigned n)
{
  unsigned s = 0;

  for (unsigned i = 0; i < (n & 255); i++)
    s += v;
  return s;
}
"""


def test_a_pragma_is_not_that_of_a_loop_which_has_its_line_by_a_directive():
    """21 instructions were proved, and 1,029 run."""
    guest = guest_of(RENUMBERED, load_target("cortex-m4"), ".c", "-Os")
    assert attack(proved(guest, "many", sources={"guest.c": RENUMBERED}), 255) > 1000
    assert index_sources({"guest.c": RENUMBERED}).loops_at("guest.c", 6) == []


def test_what_a_function_may_call_is_followed_once():
    """A proof asks it of each source function, for each loop of each function: in lwIP it was most of the time."""
    index = index_sources({"a.c": "#define G() h()\nvoid h(void) { }\nvoid g(void) { G(); }\nvoid f(void) { g(); }\n"})
    first = index.inside("f")
    assert sorted(one.name for one in first) == ["f", "g", "h"]
    assert index.inside("f") is first
    assert index.loops("f") is index.loops("f")
    assert [one.name for one in index.inside("h")] == ["h"]
