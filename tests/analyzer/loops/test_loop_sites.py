"""The binary's loops are told as the pragmas of the source are bound to them."""

from tests.analyzer.loops.debug_unit import CODE_OF_F, debug_unit
from tests.analyzer.loops.test_bounds import NESTED
from tests.path_check import check_emulated, proved
from tests.support import assembler, guest_of
from wcet_probe.analyzer.loops.loop_sites import analysed_code
from wcet_probe.catalog.lookup import load_target
from wcet_probe.model.proof import Origin

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
AROUND_CODE = (
    CODE_OF_F
    + """\
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
"""
    + debug_unit("clang version 22.1.8")
)


def test_a_conditional_return_at_the_end_of_a_round_does_not_hide_which_source_loop_it_is():
    proof = proved(guest_of(AROUND_CODE, load_target("cortex-m4")), "f", sources={"guest.c": AROUND})
    (loop,) = proof.bound.loops
    assert (loop.max, loop.origin) == (7, Origin.PRAGMA)
    check_emulated(proof, 0x7F)


def test_each_loop_of_the_binary_is_told_once_with_the_one_around_it():
    target = load_target("cortex-m4")
    twice = "push {lr}\nbl nested\nbl nested\npop {pc}"
    proof = proved(guest_of(assembler({"twice": twice, "nested": NESTED}, target), target), "twice")
    inner, outer = sorted(analysed_code(proof.guest.image, proof.values).sites, key=lambda site: -site.offset)
    assert len(proof.bound.loops) == 4
    assert (inner.function, inner.offset, outer.offset) == ("nested", 4, 2)
    assert (inner.outer, outer.outer) == (outer.header_address, None)
    assert inner.latches == (inner.header_address + 2,)
    assert not set(inner.own) & set(outer.own)


def test_a_loop_that_goes_on_behind_a_call_goes_back_at_the_call():
    """Without optimisation a call stands right before the test: its line, not that of the callee's return, is meant."""
    target = load_target("cortex-m4")
    text = "push {r4, lr}\nmovs r4, #9\nb 2f\n1: subs r4, r4, #1\nbl g\n2: cmp r4, #0\nbne 1b\npop {r4, pc}"
    proof = proved(guest_of(assembler({"f": text, "g": "bx lr"}, target), target), "f")
    (site,) = analysed_code(proof.guest.image, proof.values).sites
    assert (site.offset, site.latches) == (12, (site.header_address - 4,))
    assert [one.max for one in proof.bound.loops] == [10]
