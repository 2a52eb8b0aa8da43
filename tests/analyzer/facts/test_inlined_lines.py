"""Pragmas of loops whose bodies are inlined functions, or lines of loops inside, on code of the packaged Clang."""

import pytest

from tests.path_check import attack, check_emulated, proved
from tests.support import TARGETS, guest_of
from wcet_probe.catalog.lookup import load_target
from wcet_probe.errors import AnalysisError

HEAD = """typedef unsigned u; volatile u port, sink; u words[64];
static inline void line(u *q) {
#pragma clang loop unroll(full)
  for (u i = 0; i < 6; i++)
    q[i] = port ^ i;
}
static inline u bit(void) {
  if (sink == 0) { sink = 7; return port & 1; }
  sink--;
  return words[sink & 7];
}
static inline u bits(u n) {
  u r = 0;
  _Pragma("loopbound min 0 max 4")
  while (n) {
    if (port < n) { r = (r << 1) + port; n -= port; }
    else { r = (r << 2) + sink; n = 0; }
    if (n > port + 3) n = 3;
  }
  return r;
}
"""
BODIES = {
    "a loop inside that is unrolled as a whole": "while (port != n) { line(words + (n & 7)); n++; }",
    "a body that is a call": "for (u i = 0; i != port; i++) words[i & 7] = bit();",
    "a call with a loop": "while (n) { words[bits(5) & 7] = 1; n--; }",
}
"""Loops that only their pragmas bound."""


@pytest.mark.covering(1)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("body", BODIES)
def test_a_loop_around_inlined_calls_has_its_own_pragma(target, body):
    pragma = '_Pragma("loopbound min 0 max 9")'
    source = f"{HEAD}u f(u n) {{\n  {pragma}\n  {BODIES[body]}\n  return sink;\n}}\n"
    proof = proved(guest_of(source, load_target(target), ".c"), "f", sources={"guest.c": source})
    own = {one.where for one in proof.bound.loops}
    assert f"guest.c:{2 + HEAD.count(chr(10))}" in own
    assert attack(proof, 0) <= proof.bound.instructions
    check_emulated(proof, 0)


@pytest.mark.parametrize("target", TARGETS)
def test_a_loop_of_a_callee_does_not_take_the_pragma_of_the_loop_around_its_call(target):
    """The callee's loop has none: that of the caller's loop, in which nothing else stands, must not become its."""
    source = """typedef unsigned u; volatile u port, sink;
static inline void wait(void) { while (port & 1) { if (port & 2) sink = 1; if (port & 4) continue; sink = 2; } }
u f(u n) {
  _Pragma("loopbound min 0 max 3")
  for (u i = 0; i < 3; i++) wait();
  return n;
}
"""
    with pytest.raises(AnalysisError, match="no bound for the loop"):
        proved(guest_of(source, load_target(target), ".c"), "f", sources={"guest.c": source})


RECURSION = """typedef unsigned u; volatile u port, sink;
static u fac(u n) { if (n == port) return 1; return n * fac(STEP); }
u f(u n) {
  _Pragma("loopbound min 0 max 3")
  for (u i = 0; i < 3; i++) sink += fac(i + 9);
  return n;
}
"""


@pytest.mark.parametrize("target", TARGETS)
def test_a_loop_that_is_a_recursion_does_not_take_the_pragma_of_the_loop_around_its_call(target):
    source = RECURSION.replace("STEP", "n * port")
    with pytest.raises(AnalysisError, match=r"no bound for the loop|recursively"):
        proved(guest_of(source, load_target(target), ".c"), "f", sources={"guest.c": source})


@pytest.mark.parametrize("target", ["cortex-m4", "arm926ej-s"])
def test_a_recursion_that_its_counter_ends_is_bounded_by_type_and_not_by_the_pragma(target):
    """Nobody stores to the word that the counter is compared with, so that it is met once the counter wraps around."""
    source = RECURSION.replace("STEP", "n - 1")
    bound = proved(guest_of(source, load_target(target), ".c"), "f", sources={"guest.c": source}).bound
    assert bound.by_type
    assert sorted(loop.max for loop in bound.loops) == [3, (1 << 32) - 1]


HIDDEN = """typedef unsigned u; volatile u port, sink;
#define AGAIN goto again
#define DEEPER down(n - 1)
static inline void jump(u n) {
again:
  sink = n;
  if (--n) AGAIN;
}
static inline void down(u n) {
  sink = n;
  if (n) DEEPER;
}
static inline void spin(u n) {
  __asm__ volatile("1: subs %0, %0, #1\\n" "bne 1b" : "+r"(n));
}
struct many { u words[100]; } many;
__attribute__((noinline)) u pick(struct many held, u n) { return held.words[n & 63]; }
static inline void copy(u n) {
  sink = pick(many, n);
}
u f(u n) {
  _Pragma("loopbound min 0 max 3")
  BODY
  return n;
}
"""


@pytest.mark.parametrize(
    "body",
    ["\n    jump(n);", "\n    down(n);", "\n    spin(n);", "\n    copy(n);", "\n    pick(many, n);", " pick(many, n);"],
)
def test_a_loop_that_no_statement_of_the_source_is_does_not_take_the_pragma_around_it(body):
    """Jumps and calls of macros, assembler code, and copies of structures: all in a loop of few iterations."""
    source = HIDDEN.replace("BODY", f"for (u i = 0; i != 3; i++){body}")
    proof = proved(guest_of(source, load_target("cortex-m4"), ".c"), "f", sources={"guest.c": source})
    assert attack(proof, 50) <= proof.bound.instructions
