"""Bounds of functions that copy out of their frames, or store addresses of it there, against runs.

Tests: analyzer.values.analysis.
"""

import pytest

from tests.support import guest_of
from wcet_probe.analyzer.bound import prove
from wcet_probe.analyzer.facts.language import Facts
from wcet_probe.analyzer.request import BoundRequest
from wcet_probe.catalog.lookup import load_target
from wcet_probe.errors import AnalysisError

COMMON = """
typedef unsigned u;
static u g[16], *volatile gp = g;
static __attribute__((noinline)) void words(u *to, const u *from) { for (u i = 0; i < 4; i++) to[i] = from[i]; }
static __attribute__((noinline)) u *kept(u **to, u *p) { *to = p; return *to; }
static __attribute__((noinline)) u fill(u x) {
    u *volatile b[6];
    for (u i = 0; i < 6; i++) b[i] = (u *)&b;
    return b[x & 3] == g;
}
static __attribute__((noinline)) void pick(u x) { volatile u b[6] = {x, 1, 2, 3, 4, x}; g[1] = b[x & 3]; }
"""
COPIES = {
    "an array that is filled by an index": "u b[4]; b[x & 3] = x; words(g, b);",
    "bytes of a structure that are put together": """
        struct { unsigned char c[6]; unsigned short h; } s; s.c[x & 3] = 1; s.h = x; words(g, (u *)&s);""",
    "an array beside an address of the stack": "u b[4], *p; kept(&p, b); b[x & 3] = x; words(g, b);",
    "one of a few words where another call has stored addresses": "fill(x); pick(x);",
}
HELD = {
    "at one of a few places": "u *volatile t[4] = {g, g, &n, g};",
    "at one of a few places, on one way": "u *volatile t[4] = {g, g, g, g}; if (x) t[1] = &n;",
    "in a part of one of a few words": """
        u *volatile t[4] = {g, g, g, g}; volatile unsigned short *h = (void *)&t[1];
        h[(u)g & 1] = (u)&n; h[1 - ((u)g & 1)] = (u)&n >> 16;""",
    "at a few places, one of which nothing is known of": """
        u *volatile t[4]; t[0] = t[1] = t[2] = g; kept((u **)&t[3], &n);""",
    "by an index": "u *t[4] = {g, g, g, g}; t[x & 3] = &n;",
    "by a callee": "u *t[4] = {g, g, g, g}; kept(&t[x & 3], &n);",
    "in a copy of it": "u *s[4] = {g, g, &n, g}, *t[4]; words((u *)t, (u *)s);",
    "in a copy of it in bytes": """
        u *s[4] = {g, g, &n, g}, *t[4]; for (u i = 0; i < 16; i++) ((char *)t)[i] = ((volatile char *)s)[i];""",
    "outside of the stack": "u *s[4] = {g, g, &n, g}; words(g + 8, (u *)s); u **t = (u **)(g + 8);",
}


def proved(body, target):
    core = load_target(target)
    on = guest_of(f"{COMMON}u f(u x, u k) {{ volatile u n = 0; {body} }}", core, ".c", "-O1")
    return prove(BoundRequest(on.image, on.target, on.instructions, on.costs, "f", Facts(), {}, {}))


@pytest.mark.parametrize("target", ["cortex-m4", "mpc603e"])
@pytest.mark.parametrize("case", COPIES)
def test_a_copy_out_of_the_stack_makes_no_address_of_it_of_what_is_loaded_later(case, target):
    """The store through a word that is loaded then was one to the counter of the loop, for all that was known."""
    found = proved(f"{COPIES[case]} for (n = 0; n < 9; n++) *gp = x; return n;", target)
    assert found.instructions < 600
    assert not found.by_type


@pytest.mark.parametrize("target", ["cortex-m4", "mpc603e"])
def test_one_of_a_few_words_of_the_stack_is_among_what_these_hold(target):
    found = proved("volatile u b[4] = {3, 17, 7, 9}; for (u i = 0; i < b[x & 3]; i++) n++; return n;", target)
    assert 17 * 4 < found.instructions < 17 * 12
    assert not found.by_type


@pytest.mark.parametrize("target", ["cortex-m4", "mpc603e"])
@pytest.mark.parametrize("case", HELD)
def test_a_store_through_an_address_that_the_stack_holds_may_be_to_a_counter(case, target):
    """It sets the counter back as often as the caller says."""
    with pytest.raises(AnalysisError, match="no bound for the loop"):
        proved(f"{HELD[case]} for (n = 0; n < 9; n++) if (k && k--) *t[k & 3] = 0; return n;", target)
