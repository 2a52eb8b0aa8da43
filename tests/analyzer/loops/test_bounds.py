"""Of several bounds of a loop the least is taken; what is not used is told, and what is missing is an error."""

import pytest

from tests.path_check import attack, check_emulated, proved
from tests.support import assembler, guest_of
from wcet_probe.analyzer.facts.binding import code_sha256
from wcet_probe.analyzer.facts.file import parse_facts
from wcet_probe.catalog.lookup import load_target
from wcet_probe.errors import AnalysisError
from wcet_probe.model.proof import Origin

COUNTED = """
    movs r1, #9
1:  subs r1, r1, #1
    bne 1b
    bx lr
"""
LOADED = """
1:  ldr r1, [r0]
    cmp r1, #0
    bne 1b
    bx lr
"""
NESTED = """
    movs r2, #4
1:  movs r1, #6
2:  subs r1, r1, #1
    bne 2b
    subs r2, r2, #1
    bne 1b
    bx lr
"""
TWICE = LOADED.replace("    bx lr\n", "") + LOADED.replace("1:", "2:").replace("1b", "2b")


@pytest.fixture(scope="module")
def guest():
    target = load_target("cortex-m4")
    return guest_of(assembler({"counted": COUNTED, "loaded": LOADED, "nested": NESTED, "twice": TWICE}, target), target)


def bound(guest, name, *facts):
    digest = code_sha256(guest.image, name)
    text = "".join(
        f'[[loop]]\nfunction = "{name}"\noffset = {offset}\n{numbers}\nbecause = "so"\nsha256 = "{digest}"\n'
        for offset, numbers in facts
    )
    return proved(guest, name, parse_facts("facts.toml", text))


@pytest.mark.parametrize(
    ("number", "origin", "most"), [(4, Origin.FACT, 4), (9, Origin.PROVED, 9), (20, Origin.PROVED, 9)]
)
def test_the_least_is_taken_and_a_proved_one_where_they_are_equal(guest, number, origin, most):
    found = bound(guest, "counted", (2, f"max = {number}")).bound
    (loop,) = found.loops
    assert (loop.max, loop.origin) == (most, origin)
    assert [one.where for one in found.idle_facts] == ([] if origin is Origin.FACT else ["facts.toml:1"])
    assert any(one.id == "fact facts.toml:1" for one in found.assumptions) is (origin is Origin.FACT)


def test_of_two_facts_the_least(guest):
    (loop,) = bound(guest, "loaded", (0, "max = 7"), (0, "max = 5")).bound.loops
    assert loop.max == 5


def test_a_fact_of_no_round_still_lets_the_header_be_executed(guest):
    (loop,) = bound(guest, "loaded", (0, "max = 0")).bound.loops
    assert loop.max == 1


def test_a_total_limits_paths_whatever_the_loop_has(guest):
    free = bound(guest, "nested").bound
    total = bound(guest, "nested", (4, "total = 11")).bound
    assert {loop.max for loop in free.loops} == {4, 6}
    assert free.instructions - total.instructions == 2 * (24 - 11)
    assert total.flow_claims or total.claims
    assert any(one.id == "fact facts.toml:1" for one in total.assumptions)


def test_without_facts_the_bound_is_the_run(guest):
    proof = bound(guest, "nested")
    assert attack(proof) == proof.bound.instructions


def test_all_loops_without_a_bound_are_named_at_once(guest):
    with pytest.raises(AnalysisError, match=r"no bound for the loops at twice\+0x0.*twice\+0x6.*: say how often"):
        bound(guest, "twice")
    with pytest.raises(AnalysisError, match=r"no bound for the loop at twice\+0x6"):
        bound(guest, "twice", (0, "max = 3"))


AROUND = """\
volatile unsigned o;
static void put(unsigned n)
{
    _Pragma("loopbound min 2 max 2")
    for (unsigned k = 0; k < 2; k++)
        o = n;
}
void f(unsigned n)
{
    _Pragma("loopbound min 0 max 7")
    do {
        put(n);
        n >>= 1;
    } while (n);
}
"""
AROUND_CODE = """
.syntax unified
.thumb
.file 1 "guest.c"
.text
.globl f
.type f, %function
.thumb_func
f: .loc 1 9
ldr r3, =o
b body
latch: .loc 1 14
lsrs r0, r0, #1
.loc 1 15
it eq
bxeq lr
body: .loc 1 6
str r0, [r3]
str r0, [r3]
.loc 1 14
b latch
.ltorg
end: .size f, . - f
.bss
o: .space 4
.section .debug_abbrev
.byte 1, 0x11, 1, 0x25, 8, 0x10, 0x17, 0, 0, 2, 0x2e, 0, 3, 8, 0x11, 1, 0x12, 6, 0, 0, 0
.section .debug_line
lines:
.section .debug_info
.long units - unit
unit: .short 4
.long 0
.byte 4, 1
.asciz "clang version 22.1.8"
.long lines
.byte 2
.asciz "f"
.long f, end - f
.byte 0
units:
"""


def test_a_conditional_return_at_the_end_of_a_round_does_not_hide_which_source_loop_it_is():
    proof = proved(guest_of(AROUND_CODE, load_target("cortex-m4")), "f", sources={"guest.c": AROUND})
    (loop,) = proof.bound.loops
    assert (loop.max, loop.origin) == (7, Origin.PRAGMA)
    check_emulated(proof, 0x7F)


ENTERED_TWICE = """\
    and r3, r0, #15
    cmp r3, #5
    beq .Lfive
.Ltest:
    cmp r3, #1
    bls .Lend
.Lless:
    subs r3, r3, #1
    cmp r3, #5
    bne .Ltest
.Lfive:
    adds r2, r2, #1
    movs r3, #4
    b .Lless
.Lend:
    bx lr"""


@pytest.mark.parametrize("start", [0, 5, 9, 15])
def test_runs_are_held_against_no_loop_whose_copies_they_count(start):
    """As GCC makes of a do loop with an if (-O2): split in two for the proof, one loop to a run."""
    target = load_target("cortex-m4")
    proof = proved(guest_of(assembler({"f": ENTERED_TWICE}, target), target), "f")
    check_emulated(proof, start)
    assert len(proof.bound.loops) > len(proof.bound.loop_claims)
