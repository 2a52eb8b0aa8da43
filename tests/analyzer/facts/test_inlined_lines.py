"""Pragmas of loops whose bodies are inlined functions, or lines of loops inside, on code of the packaged Clang."""

import pytest

from tests.path_check import attack, check_emulated, proved
from tests.support import TARGETS, guest_of
from wcet_probe.catalog.lookup import load_target
from wcet_probe.errors import AnalysisError

HEAD = """typedef unsigned u; volatile u port, sink; u left, words[64];
static inline u word(void) { u w = port; if (w & 1) w ^= 5; if (w & 2) w += sink; if (w & 4) w -= left; return w; }
static inline u bit(void) {
  if (left == 0) { u w = word(); sink = w; left = 7; if (w & 8) sink = 1; return w & 1; }
  left--;
  return sink & 1;
}
static inline void swap(u *a, u *b) {
  _Pragma("loopbound min 0 max 6")
  for (u i = sink; i; i >>= port) { u t = *a; *a = *b; *b = t; a++; b++; sink = t; }
}
"""
BODIES = {
    "a body that is a call": """_Pragma("loopbound min 0 max 9")
  while (n) { words[n & 7] = bit(); n = n ? n - port : 0; }""",
    "a test that is a call": """_Pragma("loopbound min 0 max 9")
  while (word() != n) n += 3;""",
    "a loop inside that is a call's": """_Pragma("loopbound min 0 max 9")
  while (n != port) { sink = n; swap(words, words + 8); n++; if (port) words[n & 3] = n; }""",
}
"""Loops that only their pragmas bound."""


@pytest.mark.covering(1)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("body", BODIES)
def test_a_loop_around_inlined_calls_has_its_own_pragma(target, body):
    source = f"{HEAD}u f(u n) {{\n  {BODIES[body]}\n  return sink;\n}}\n"
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
