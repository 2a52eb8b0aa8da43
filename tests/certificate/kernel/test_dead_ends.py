"""Ways that a certificate leaves out as nothing returns from where they lead: panics, traps and endless loops."""

from __future__ import annotations

import pytest

from tests.certificate.forgeries import sealed
from tests.certificate.kernel.test_code import document_of
from tests.support import assembler, guest_of
from wcet_probe.catalog.lookup import load_target
from wcet_probe.certificate.check import check_bound
from wcet_probe.certificate.kernel.coverage import code_of
from wcet_probe.certificate.kernel.dead_ends import never_returns

CORES = ("cortex-m4", "arm926ej-s", "mpc603e", "e200z6")
PANICS = {
    "loop": "static void panic(void) { for (;;) { } }",
    "trap": "static void panic(void) { __builtin_trap(); }",
    "code": "volatile int why; APART void panic(void) { why = 1; for (;;) why++; }",
    "calls": "volatile int why; APART void stop(int n) { while (n | 1) why = n; }\nAPART void panic(void) { stop(3); }",
}
APART = "#define APART __attribute__((noinline)) static\n"
SOURCE = "unsigned table[8];\nunsigned f(unsigned i) { if (i > 7) panic(); return table[i] + 3; }\n"


@pytest.mark.parametrize("core", CORES)
@pytest.mark.parametrize("panic", PANICS)
def test_the_graph_of_what_may_panic_is_checked_under_the_assumption_that_names_where(panic, core):
    document, binary = document_of(guest_of(f"{APART}{PANICS[panic]}\n{SOURCE}", load_target(core), ".c"))
    assumed = document["bound"]["assumptions"]
    assert "call-returns" in {one["id"] for one in assumed}
    found = check_bound(sealed(document), binary).findings
    assert [one.verdict for one in found if one.check == "graph"] == ["ok"]

    # Control may not come there for another reason, that is not followed: nothing is refused.
    others = [one for one in assumed if one["id"] != "call-returns"]
    (listed,) = [one for one in assumed if one["id"] == "call-returns"]
    moved = {**listed, "statement": listed["statement"].replace("f+0x", "f+0x1")}
    for assumptions in (others, [*others, moved]):
        document["bound"]["assumptions"] = assumptions
        found = check_bound(sealed(document), binary).findings
        (one,) = [one for one in found if one.check == "graph"]
        assert one.verdict == "not checked"
        assert "that control does not go from f+0x" in one.found


def test_a_way_to_code_that_returns_stays_open():
    """The certificate says so of both: that the one does not return, and that control does not come to the other."""
    core = load_target("cortex-m4")
    guest = guest_of(assembler({"f": "cmp r0, #7\n bhi 1f\n bx lr\n 1: b 1b", "g": "bx lr"}, core), core)
    document, binary = document_of(guest)
    text = document["bound"]["certificates"][0]
    line = next(line for line in text.splitlines() if line.startswith("excluded "))
    returning = guest.image.symbols["f"].address + 4
    assert int(line.split()[-1], 16) == returning + 2
    code = code_of(guest.image, guest.instructions)
    assert never_returns(guest.image, code.isa, returning + 2, code.instructions)
    assert not never_returns(guest.image, code.isa, returning, code.instructions)
    assert all(one.verdict == "ok" for one in check_bound(sealed(document), binary).findings)


ENDS = {
    "thumb": (
        "b .",
        "udf #1",
        "bkpt #0",
        "1: wfi\n b 1b",
        "cpsid i\n cbz r0, 1f\n nop\n 1: b 1b",
        "bl 1f\n bx lr\n 1: b .",
    ),
    "arm": ("b .", "udf #1", "bkpt #0", "1: beq 1b\n bl 1b\n bx lr", "moveq r0, #1\n addeq r1, r1, r0\n b ."),
    "powerpc": (
        "b .",
        "trap",
        "twi 31, 3, 0",
        "1: bdnz 1b\n b 1b",
        "bl 1f\n blr\n 1: b 1b",
        "1: beq 1b\n trap",
        "li 15, 3\n mtctr 15\n b .",
    ),
}
GOES_ON = {
    "thumb": (
        *(
            "bx lr",
            "nop\n bx lr",
            "pop {r4, pc}",
            "svc #0\n b .",
            "blx r3\n b .",
            "mov pc, r3",
            "bl 1f\n b .\n 1: bx lr",
        ),
        *("cbz r0, 1f\n b .\n 1: bx r1", "it eq\n bxeq lr\n b .", "tbb [pc, r0]\n .byte 1, 1", "1: bne 1b\n bx lr"),
        *("msr control, r0\n b .", "it ne\n popne {pc}\n b ."),
    ),
    "arm": (
        *("bx lr", "movs pc, lr", "ldmfd sp!, {pc}^", "rfeia sp!", "svc #0\n b .", "bxeq lr\n b .", "mov pc, r0"),
        *(
            "msr cpsr_c, r0\n b .",
            "mcr p15, 0, r0, c1, c0, 0\n b .",
            "bl 1f\n b .\n 1: ldr pc, [sp], #4",
            "bxj r0\n b .",
        ),
        *(
            ".inst 0xfa000000\n nop\n b .",
            "1: .inst 0xe6f1f072\n b 1b",
            "1: .inst 0xe5d0f000\n b 1b",
            "1: clz pc, r0\n b 1b",
        ),
    ),
    "powerpc": (
        *("blr", "bctr", "rfi", "sc\n b .", "beqlr\n b .", "bctrl\n b .", "tweq 3, 4\n blr", "twi 4, 3, 0\n blr"),
        *("mtmsr 3\n b .", "bl 1f\n b .\n 1: blr", "bdnzlr\n b .", "mtspr 528, 3\n b .", "mtspr 1008, 3\n b ."),
    ),
}
CORE = {"thumb": "cortex-m4", "arm": "cortex-r5", "powerpc": "mpc603e"}


@pytest.mark.parametrize(
    ("isa", "body", "is_dead"),
    [(isa, one, kind is ENDS) for kind in (ENDS, GOES_ON) for isa, bodies in kind.items() for one in bodies],
)
def test_what_may_be_left_by_any_instruction_is_no_dead_end(isa, body, is_dead):
    core = load_target(CORE[isa])
    guest = guest_of(assembler({"f": "nop\n" + body}, core), core)
    code = code_of(guest.image, guest.instructions)
    address = guest.image.symbols["f"].address
    assert never_returns(guest.image, code.isa, address, code.instructions) is is_dead


def test_code_that_is_longer_than_the_limit_is_no_dead_end():
    core = load_target("cortex-m4")
    guest = guest_of(assembler({"f": "nop\n" * 3000 + "b ."}, core), core)
    code = code_of(guest.image, guest.instructions)
    start = guest.image.symbols["f"].address
    assert not never_returns(guest.image, code.isa, start, code.instructions)
    assert never_returns(guest.image, code.isa, start + 2 * 2500, code.instructions)
