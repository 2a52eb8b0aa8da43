"""Recursion that is bounded by the number of all calls: bounds stay above every run with so many calls.

Tests: analyzer.recursive_calls, analyzer.recursive_summaries.
"""

from contextlib import suppress
from dataclasses import replace

import pytest

from tests.support import TARGETS, guest_of
from wcet_probe.analyzer.bound import prove
from wcet_probe.analyzer.facts.file import parse_facts
from wcet_probe.analyzer.facts.language import Facts
from wcet_probe.analyzer.facts.source_index import index_sources
from wcet_probe.analyzer.request import BoundRequest
from wcet_probe.answer.facts.fact_skeleton import pointer_candidates
from wcet_probe.catalog.lookup import load_target
from wcet_probe.errors import AnalysisError, UsageError
from wcet_probe.model.scenario import InitialCache

SOURCE = """typedef unsigned u; volatile u sink; u text[64];
__attribute__((noinline)) u twice(u n) { if (n < 2) return n; u a = twice(n - 1); sink = a; u b = twice(n - 2);
  sink = b; return a ^ b; }
u of_twice(u n) { return twice(n); }
struct node { const struct node *left, *right; u key; };
#define N(i) {&tree[2 * i + 1], &tree[2 * i + 2], i}
#define L(i) {0, 0, i}
const struct node tree[15] = {
  N(0), N(1), N(2), N(3), N(4), N(5), N(6), L(7), L(8), L(9), L(10), L(11), L(12), L(13), L(14)};
__attribute__((noinline)) void walk(const struct node *p) {
  if (!p) return;
  sink = p->key; walk(p->left); walk(p->right);
}
u of_walk(u n) { walk(&tree[n]); return n; }
__attribute__((noinline)) void sort(u *a, u n) {
  if (n < 2) return;
  u i = 0;
  /* loop: pass */
  for (u j = 1; j < n; j++) if (a[j] < a[0]) { u t = a[++i]; a[i] = a[j]; a[j] = t; }
  u t = a[0]; a[0] = a[i]; a[i] = t;
  sort(a, i);
  sink = i;
  sort(a + i + 1, n - i - 1);
  sink = n;
}
u of_sort(u n) { sort(text, n & 15); sort(text, n & 3); return text[0]; }
u odd(u n);
__attribute__((noinline)) u even(u n) { sink = n; if (n == 0) return 1; return odd(n - 1) + sink; }
__attribute__((noinline)) u odd(u n) { sink = n; if (n == 0) return 0; return even(n - 1) + sink; }
u parity(u n) { return even(n); }
"""
LOOP = """[[loop]]
function = "sort"
label = "pass"
max = 14
because = "a test"
sha256 = "{sort}"
"""


def fact(name, most, source=SOURCE):
    return (
        f'[[recursion]]\nfunction = "{name}"\nmax_calls = {most}\nbecause = "a test"\n'
        f'sha256 = "{index_sources({"guest.c": source}).function(name).sha256}"\n'
    )


def bound_of(target, entry, facts="", source=SOURCE, suffix=".c"):
    guest = guest_of(source, load_target(target), suffix)
    told = parse_facts("facts.toml", facts) if facts else Facts()
    sources = {"guest.c": source} if suffix == ".c" else {}
    parts = guest.image, guest.target, guest.instructions, guest.costs, entry, told, sources, {}
    return guest, prove(BoundRequest(*parts, summaries=True))


def longest(guest, bound, entry, *runs):
    """The most instructions of several runs; of all the cycles are held against the bound."""
    counted = []
    for arguments in runs:
        for initial in (InitialCache.COLD, InitialCache.DIRTY):
            with guest.machine() as machine:
                run = machine.measure(entry, arguments, initial)
            assert run.cycles <= bound.cycles
            counted.append(run.instructions)
    return max(counted)


def calls_of_twice(n):
    return 1 if n < 2 else 1 + calls_of_twice(n - 1) + calls_of_twice(n - 2)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("n", [0, 7])
def test_a_tree_of_calls(target, n):
    guest, bound = bound_of(target, "of_twice", fact("twice", calls_of_twice(n)))
    most = longest(guest, bound, "of_twice", (n,))
    assert most <= bound.instructions <= most + 4 * (n + 1)
    assert any("is called at most" in one.statement for one in bound.assumptions)


@pytest.mark.covering(0)
@pytest.mark.parametrize("target", TARGETS)
def test_the_number_of_calls_is_that_of_all_calls_from_outside(target):
    facts = fact("sort", 31 + 7) + LOOP.format(sort=index_sources({"guest.c": SOURCE}).function("sort").sha256)
    guest, bound = bound_of(target, "of_sort", facts)
    assert longest(guest, bound, "of_sort", (15,), (3,), (0,)) <= bound.instructions
    (claim,) = [one for one in bound.flow_claims if "is called at most" in one.statement]
    assert claim.blocks == ((guest.address("sort") & ~1, 1),)
    assert claim.constant == 38


@pytest.mark.covering(1)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("root", [0, 1, 7])
def test_a_call_at_the_end_that_has_become_a_loop_counts(target, root):
    """The calls of the left subtree stay calls, those of the right one are rounds of a loop."""
    calls = {0: 31, 1: 15, 7: 3}[root]
    guest, bound = bound_of(target, "of_walk", fact("walk", calls))
    most = longest(guest, bound, "of_walk", (root,))
    assert most <= bound.instructions <= 3 * most


@pytest.mark.parametrize("target", TARGETS)
def test_functions_that_call_each_other(target):
    guest, bound = bound_of(target, "parity", fact("even", 11))
    assert longest(guest, bound, "parity", (20,), (21,), (1,), (0,)) <= bound.instructions


def test_where_calls_are_expanded_their_number_is_not_enough_and_why_is_told():
    """With a run, or facts about pointers; none is proposed, as the bound could not be proved with it."""
    guest, facts = guest_of(SOURCE, load_target("mpc603e"), ".c"), fact("twice", 5)
    parts = guest.image, guest.target, guest.instructions, guest.costs, "of_twice"
    asked = BoundRequest(*parts, parse_facts("facts.toml", facts), {"guest.c": SOURCE}, {}, summaries=True)
    assert prove(asked).cycles
    assert list(pointer_candidates(asked)) == []
    pointers = parse_facts("facts.toml", facts + '[[pointer]]\nmultiple_of = 4\nbecause = "a test"\n')
    for other in (replace(asked, summaries=False), replace(asked, facts=pointers)):
        with pytest.raises(AnalysisError, match=r"\(the number of all its calls is told, .* or give max_depth\)"):
            prove(other)


def test_more_calls_cost_more():
    bounds = [bound_of("cortex-m4", "of_twice", fact("twice", most))[1].instructions for most in (1, 5, 6, 100)]
    assert bounds == sorted(set(bounds))


PRAGMA = (
    SOURCE
    + """
u marked(u n) {
  _Pragma("marker start")
  sink = twice(n);
  _Pragma("marker again")
  sink = twice(n & 1);
  _Pragma("flowrestriction 1*NAME <= 42*start")
  return n;
}
"""
)


@pytest.mark.parametrize("name", ["twice", "ice"])
def test_a_restriction_of_all_calls(name):
    source = PRAGMA.replace("NAME", name).replace("twice", "guest_ice" if name == "ice" else "twice")
    guest, bound = bound_of("cortex-m4", "marked", source=source)
    assert longest(guest, bound, "marked", (7,)) <= bound.instructions
    (told,) = [one for one in bound.assumptions if one.id.startswith("pragma")]
    assert ("ice is taken for guest_ice" in told.statement) is (name == "ice")


def test_a_restriction_by_a_marker_that_is_not_clear_bounds_nothing():
    source = PRAGMA.replace("NAME", "twice").replace("42*start", "42*elsewhere")
    with pytest.raises(AnalysisError, match=r"calls twice recursively: .*max_calls.*no marker or function 'elsewhere'"):
        bound_of("cortex-m4", "marked", source=source)


def test_a_loop_that_the_width_of_a_type_bounds_is_no_bound_of_all_calls():
    source = SOURCE.replace("if (n < 2) return n; u a", "for (u i = 0; i < n; i++) sink = i; if (n < 2) return n; u a")
    with pytest.raises(AnalysisError, match=r"no bound for the loop|calls twice recursively"):
        bound_of("cortex-m4", "of_twice", fact("twice", 5, source), source)


def test_a_fact_tells_the_depth_or_the_calls():
    with pytest.raises(UsageError, match="exactly one of max_depth, max_calls"):
        parse_facts("facts.toml", fact("twice", 3) + "max_depth = 3\n")


FRAMES = """typedef unsigned u; volatile u sink;
__attribute__((noinline)) void down(u n, u *p) { if (n == 0) return; sink = n; down(n - 1, p); AFTER sink = n; }
u of_down(u n) {
  volatile u mine[2] = {3, 4};
  down(n, (u *)mine);
  u r = 0;
  for (u i = mine[0]; i; i--) r += sink;
  for (u i = mine[1]; i; i--) r += sink;
  return r;
}
"""


@pytest.mark.parametrize("target", TARGETS)
def test_what_no_call_writes_is_kept(target):
    source = FRAMES.replace("AFTER", "")
    guest, bound = bound_of(target, "of_down", fact("down", 9, source), source)
    assert not bound.by_type
    assert longest(guest, bound, "of_down", (8,), (0,)) <= bound.instructions


@pytest.mark.covering(1)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("store", ["*p = 9 * n;", "p[1] = n;", "if (n == 3) *p = 30;"])
def test_what_an_inner_call_writes_is_not(target, store):
    """A store through a pointer that is handed down changes the first caller's frame, in whatever depth it is done."""
    source = FRAMES.replace("AFTER", store)
    with suppress(AnalysisError):
        assert bound_of(target, "of_down", fact("down", 9, source), source)[1].by_type


ROUNDS = """typedef unsigned u; volatile u words[4];
#define AGAIN goto again
__attribute__((noinline)) void jumps(u n) {
  if (n == 0) return;
again:
  words[0] = words[0] - 1;
  if (words[0] & 31) AGAIN;
  jumps(n - 1);
  words[0] = 40;
  jumps(n >> 1);
}
u of_jumps(u n) { words[0] = 40; jumps(n); return 0; }
__attribute__((noinline)) void begins(u n, volatile u *p) {
  u k;
  _Pragma("loopbound min 1 max 16")
  do { k = *p; *p = k - 1; } while (k & 15);
  if (n == 0) return;
  begins(n - 1, p); *p = 1;
  begins(n >> 1, p); *p = 2;
}
void of_begins(u n) { words[0] = 31; begins(n, words); }
"""


@pytest.mark.parametrize(("name", "calls"), [("jumps", 11), ("begins", 1)])
def test_rounds_of_a_loop_are_no_calls(name, calls):
    """Neither those of a loop that a macro makes, nor those of one that the function begins with."""
    told = "no bound for the loop" if name == "jumps" else "it begins with a loop"
    with pytest.raises(AnalysisError, match=rf"calls {name} recursively: .*{told}"):
        bound_of("cortex-m4", f"of_{name}", fact(name, calls, ROUNDS), ROUNDS)


SUMS = """typedef unsigned u; volatile u sink;
__attribute__((noinline)) u fib(u n) { sink = n; if (n < 2) return 1; return fib(n - 1) + fib(n - 2); }
u of_fib(u n) { return fib(n); }
"""


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("n", [1, 9])
def test_a_call_at_the_end_whose_rounds_a_type_bounds_counts(target, n):
    """Its argument is tested by order, so that a type's width bounds the loop: as told by the number of calls, less."""
    guest, bound = bound_of(target, "of_fib", fact("fib", calls_of_twice(n), SUMS), SUMS)
    most = longest(guest, bound, "of_fib", (n,))
    assert not bound.by_type
    assert most <= bound.instructions <= 3 * most


WRAPPED = """typedef unsigned u; volatile u sink; volatile u next[8] = {0, 0, 1, 2, 3, 4, 5, 6};
__attribute__((noinline)) void down(u n) { sink = n; if (n) { down(next[n & 7]); sink = n; } }
static void wrapped(u n) {
  _Pragma("marker start")
  down(n);
  _Pragma("flowrestriction 1*down <= 9*start")
  MORE
}
void of_down(u n) { wrapped(n); }
"""


@pytest.mark.parametrize(
    ("more", "is_bounded"), [("", True), ("down(0);", False), ("sink = n; if (n) down(n);", False)]
)
def test_a_function_that_calls_another_one_once_and_is_gone_is_not_equal_to_it(more, is_bounded, monkeypatch):
    """Of code of GCC: of others that call it, and are gone, it may be what both have become."""
    monkeypatch.setattr("wcet_probe.analyzer.facts.restrictions.functions_of_clang", lambda _: frozenset())
    source = WRAPPED.replace("MORE", more)
    if not is_bounded:
        with pytest.raises(AnalysisError, match="may have become one with another function"):
            bound_of("cortex-m4", "of_down", source=source)
        return
    guest, bound = bound_of("cortex-m4", "of_down", source=source)
    assert longest(guest, bound, "of_down", (7,), (0,)) <= bound.instructions
