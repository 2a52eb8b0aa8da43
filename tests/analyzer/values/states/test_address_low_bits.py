"""A few low bits of a value that may be an address are a number, and index tables.

Tests: analyzer.values.states.bases, analyzer.values.symbolic.terms.
"""

import pytest

from tests.analyzer.loops.one_loop import refuse_or_bound_by_width
from tests.path_check import attack, proved
from tests.support import TARGETS, assembler, guest_of
from wcet_probe.analyzer.bound import prove
from wcet_probe.analyzer.domains import strided
from wcet_probe.analyzer.facts.language import Facts
from wcet_probe.analyzer.graph import supergraph
from wcet_probe.analyzer.request import BoundRequest
from wcet_probe.analyzer.values.states.bases import Base
from wcet_probe.analyzer.values.states.state import State
from wcet_probe.analyzer.values.symbolic.terms import Terms
from wcet_probe.build.image import require_symbol
from wcet_probe.catalog.lookup import load_target


@pytest.mark.parametrize(("mask", "base"), [(3, Base.NUMBER), (255, Base.NUMBER), (256, Base.ANY), (~3, Base.ANY)])
def test_only_a_number_that_is_no_address_of_a_frame_loses_its_base(mask, base):
    terms = Terms()
    state = State(terms, big_endian=False)
    symbol = state.define((0, 0, 0), 32, base=Base.ANY)
    part = terms.apply("INT_AND", (symbol, terms.constant(mask, 32)), 32)
    assert state.base(part) is base
    assert state.value(part).unsigned_range() == ((0, mask) if base is Base.NUMBER else (0, (1 << 32) - 1))


def test_an_address_that_is_put_together_from_its_bytes_is_no_number():
    terms = Terms()
    state = State(terms, big_endian=False)
    symbols = [state.define((0, 0, number), 32, base=Base.ANY) for number in range(2)]
    low, high = (terms.apply("INT_AND", (symbol, terms.constant(255, 32)), 32) for symbol in symbols)
    shifted = terms.apply("INT_LEFT", (high, terms.constant(8, 32)), 32)
    assert state.base(shifted) is Base.NUMBER  # as in the address of an entry of a table
    both = terms.apply("INT_OR", (low, shifted), 32)
    assert state.base(both) is Base.ANY
    state.set_known(high, strided.between(32, 0, 0))
    assert state.base(both) is Base.NUMBER
    state.set_known(high, None)
    assert state.base(both) is Base.ANY


CALLER = "push {r4, r5, r6, lr}\n sub sp, #8\n movs r0, #2\n str r0, [sp]\n mov r0, sp\n bl g\n"
LOOP = " ldr r2, [sp]\n1: subs r2, #1\n bne 1b\n add sp, #8\n pop {r4, r5, r6, pc}"
PUT_TOGETHER = {
    "in a loop": {
        "f": CALLER + LOOP,
        "g": "movs r1, #0\n movs r3, #4\n2: lsls r1, r1, #8\n and r2, r0, #255\n orrs r1, r2\n ror r0, r0, #8\n"
        " subs r3, #1\n bne 2b\n rev r1, r1\n movs r0, #100\n str r0, [r1]\n bx lr",
    },
    "of results": {
        "f": CALLER
        + " mov r4, r0\n"
        + "".join(f" mov r0, sp\n ror r0, r0, #{n}\n bl g\n orr r4, r4, r0, lsl #{n}\n" for n in (8, 16, 24))
        + " movs r0, #100\n str r0, [r4]\n"
        + LOOP,
        "g": "and r0, r0, #255\n bx lr",
    },
}


@pytest.mark.parametrize("bodies", PUT_TOGETHER.values(), ids=PUT_TOGETHER.keys())
def test_a_store_to_an_address_that_was_put_together_may_go_to_the_stack(monkeypatch, bodies):
    """The callee is not expanded; the store is to how often the caller's loop runs."""
    target = load_target("cortex-m4")
    guest = guest_of(assembler(bodies, target), target)
    callee = frozenset({require_symbol(guest.image, "g").address})
    monkeypatch.setattr(supergraph, "to_summarise", lambda *asked: callee - {asked[1], *asked[2]})
    asked = (guest.image, guest.target, guest.instructions, guest.costs, "f", Facts(), {}, {})
    refuse_or_bound_by_width(lambda: prove(BoundRequest(*asked, summaries=True)), "f+0x")


@pytest.mark.parametrize("target", TARGETS)
def test_a_switch_over_low_bits_of_what_may_be_an_address_is_resolved(target):
    """What a call through a pointer to the stack gives back may be an address, as far as the analysis knows."""
    text = (
        "typedef unsigned u; volatile u sink; __attribute__((noinline)) u g(u *p) { u k = *p; *p = sink; return k; }\n"
        "u f(u x) { u y[2] = {x, x}; switch (g(y) & 3) {"
        " case 0: return sink; case 1: sink = x; return 7; case 2: sink = sink + x; return sink * 3;"
        " default: sink = 4; return sink / 5; } }\n"
    )
    proof = proved(guest_of(text, load_target(target), ".c"), "f")
    assert max(attack(proof, value) for value in range(4)) <= proof.bound.instructions
