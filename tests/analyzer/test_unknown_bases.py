"""Pointers that may lead to the call's own stack or to static memory: what they change is not known any more.

In each function a word that ends a loop is 3, and is set to 40 through such a pointer. A bound that forgets the store
is one of a few rounds; a run that takes more contradicts it.
"""

from __future__ import annotations

from functools import cache

import pytest

from tests.path_check import attack, proved
from tests.support import TARGETS, Guest, guest_of
from wcet_probe.catalog import load_target
from wcet_probe.errors import AnalysisError

HEAD = """typedef unsigned u; typedef volatile u *p; typedef void (*call)(p);
u g = 3, out; p slot, other = &g;
static __attribute__((noinline)) void set(p q) { *q = 40; }
static __attribute__((noinline)) void clear(p q) { *q = 2; }
static call calls = clear;
#define ROUNDS(limit) u sum = 0; for (u i = 0; i < (limit); i++) sum += i; out = sum; return sum
"""
PREFIX = "volatile u k = 3; "
FUNCTIONS = {
    "a_store": "p q = n & 1 ? &k : (p)&g; *q = 40; ROUNDS(k);",
    "a_store_of_a_byte": "volatile unsigned char *q = n & 1 ? (volatile unsigned char *)&k : (volatile unsigned char *)&g; "
    "q[0] = 40; q[3] = 40; ROUNDS(k & 0x3f);",
    "a_store_to_the_static_word": "*(p)&g = 3; p q = n & 1 ? &k : (p)&g; *q = 40; ROUNDS(*(p)&g);",
    "a_store_beside_the_choice": "volatile u z[4]; z[2] = 3; p q = n & 1 ? z : (p)&g - 2; q[2] = 40; ROUNDS(z[2]);",
    "a_store_by_a_pointer_from_an_array": "p v[2]; v[0] = &k; v[1] = (p)&g; p q = ((p volatile *)v)[n & 1]; *q = 40; ROUNDS(k);",
    "a_store_by_a_pointer_from_static_memory": "*(p volatile *)&slot = n & 1 ? &k : (p)&g; p q = *(p volatile *)&slot; "
    "*q = 40; ROUNDS(k);",
    "a_store_by_a_pointer_that_was_stored_by_one": "p own = (p)&g; p volatile *to = n & 1 ? (p volatile *)&slot : (p volatile *)&own; "
    "*to = &k; p q = *(p volatile *)&slot; if (n & 1) *q = 40; ROUNDS(k);",
    "a_store_by_a_pointer_that_was_loaded_by_one": "p volatile held = &k; p volatile *from = n & 1 ? &held : (p volatile *)&other; "
    "p q = *from; *q = 40; ROUNDS(k);",
    "a_store_in_the_second_round": "p q = (p)&g; for (u j = 0; j < 2; j++) { *q = 40; q = &k; } ROUNDS(k);",
    "a_store_by_a_callee": "set(n & 1 ? &k : (p)&g); ROUNDS(k);",
    "a_call_by_a_pointer": "call volatile own = set; call volatile *from = n & 1 ? &own : (call volatile *)&calls; "
    "(*from)(&k); ROUNDS(k);",
    "a_difference": "u far = (u)(n & 1 ? &k : (p)&g) - 64; p q = (p)(far + 64); *q = 40; ROUNDS(k);",
}
ONE_WORD = {
    "a_store_to_the_stack": "p q = &k; *q = 2; ROUNDS(k);",
    "a_store_to_static_memory": "*(p)&g = 40; ROUNDS(k);",
}


@cache
def guest(target: str) -> Guest:
    bodies = (FUNCTIONS | ONE_WORD).items()
    source = HEAD + "".join(f"u {name}(u n) {{ {PREFIX}{body} }}\n" for name, body in bodies)
    return guest_of(source, load_target(target), ".c")


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
