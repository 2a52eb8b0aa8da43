"""Pointers that may lead to the call's own stack or to static memory: what they change is not known any more.

In each function a word that ends a loop is 3, and is set to 40 through such a pointer. A bound that forgets the store
is one of a few rounds; a run that takes more contradicts it.

Tests: analyzer.values.states.bases, analyzer.values.states.memory.
"""

from __future__ import annotations

from functools import cache

import pytest

from tests.path_check import attack, proved
from tests.support import TARGETS, Guest, guest_of
from wcet_probe.catalog.lookup import load_target
from wcet_probe.errors import AnalysisError

HEAD = """typedef unsigned u; typedef volatile u *p; typedef volatile unsigned char *b; typedef void (*call)(p);
u g = 3, out;
p volatile slot, other = (p)&g, bank[8];
static __attribute__((noinline)) void set(p q) { *q = 40; }
static __attribute__((noinline)) void clear(p q) { *q = 2; }
static call calls = clear;
#define EITHER (n & 1 ? &k : (p)&g)
#define HIDDEN(x) __asm__ volatile("" : "+r"(x))
#define TWISTED(x) x = x * 3 ^ n; HIDDEN(x)
#define BACK(x) x = (x ^ n) * 0xaaaaaaabu; HIDDEN(x)
#define FOUR(of, x) of(x); of(x); of(x); of(x)
#define MANY(of, x) FOUR(of, x); FOUR(of, x); FOUR(of, x); FOUR(of, x)
"""
FUNCTIONS = {
    "a_store": ("p q = EITHER; *q = 40;", "k"),
    "a_store_of_bytes": ("b q = (b)EITHER; q[0] = 40; q[3] = 40;", "k & 63"),
    "a_store_to_the_static_word": ("*(p)&g = 3; p q = EITHER; *q = 40;", "*(p)&g"),
    "a_store_beside": ("volatile u z[4]; z[2] = 3; p q = n & 1 ? z : (p)&g - 2; q[2] = 40;", "z[2]"),
    "a_store_by_one_from_an_array": ("p v[2]; v[0] = (p)&g; v[1] = &k; p q = ((p volatile *)v)[n & 1]; *q = 40;", "k"),
    "a_store_by_one_from_static_memory": ("slot = EITHER; p q = slot; *q = 40;", "k"),
    "a_store_by_one_that_escaped": ("bank[n & 7] = &k; p q = bank[n & 7]; *q = 40;", "k"),
    "a_store_by_one_that_may_have_escaped": ("bank[n & 7] = EITHER; p q = bank[n & 7]; *q = 40;", "k"),
    "a_store_by_one_that_escaped_by_one": (
        (
            "p volatile own; p volatile *to = n & 1 ? &bank[n & 7] : &own; HIDDEN(to); *to = &k; k = 3; "
            "HIDDEN(n); if (n & 1) { p q = bank[n & 7]; *q = 40; }"
        ),
        "k",
    ),
    "a_store_by_one_that_was_loaded_by_one": (
        "p volatile held = &k; p volatile *from = n & 1 ? &held : &other; p q = *from; *q = 40;",
        "k",
    ),
    "a_store_in_a_later_round": (
        "p q = (p)&g; u j = 4; do { *q = 40; HIDDEN(j); if (j == 3) q = &k; HIDDEN(q); } while (--j);",
        "k",
    ),
    "a_store_by_a_callee": ("set(EITHER);", "k"),
    "a_call_by_one": (
        "call volatile own = set; call volatile *from = n & 1 ? &own : (call volatile *)&calls; (*from)(&k);",
        "k",
    ),
    "a_difference": ("u far = (u)EITHER - 64; HIDDEN(far); p q = (p)(far + 64); *q = 40;", "k"),
    "a_long_computation": ("u far = (u)EITHER; MANY(TWISTED, far); MANY(BACK, far); p q = (p)far; *q = 40;", "k"),
}
"""Bodies, and the word behind them, in a call with an argument whose bits choose."""
ONE_WORD = {
    "a_store_to_the_stack": ("p q = &k; *q = 2;", "k"),
    "a_store_to_static_memory": ("*(p)&g = 40;", "k"),
}


@cache
def guest(target: str) -> Guest:
    source = HEAD + "".join(
        f"u {name}(u n)\n{{ volatile u k = 3; {body} u sum = 0; for (u i = 0; i < ({word}); i++) sum += i; out = sum; "
        "return sum; }\n"
        for name, (body, word) in (FUNCTIONS | ONE_WORD).items()
    )
    return guest_of(source, load_target(target), ".c")


@pytest.mark.covering
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_may_have_been_stored_is_not_forgotten(name, target):
    try:
        proof = proved(guest(target), name)
    except AnalysisError:
        return
    for argument in (0, 1):
        attack(proof, argument)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", ONE_WORD)
def test_where_the_pointer_is_known_the_word_is(name, target):
    proof = proved(guest(target), name)
    attack(proof, 0)
    attack(proof, 1)
