"""Returns that pop the frame of a caller: the ends that the routines of a library share.

A special case is found by a routine that was called after the frame was made; where the answer is clear, it pops that
frame and returns for its caller. Where such a return leads is proved, or it is refused.

Tests: analyzer.graph.frames.
"""

import pytest

from tests.analyzer.firmware_code import checked, of, refused
from tests.path_check import interpret
from tests.support import TARGETS, assembler
from wcet_probe.analyzer.graph.frames import returning_for_callers
from wcet_probe.analyzer.pcode.lift import Lifter, code_reader
from wcet_probe.answer.witness.contradiction import check_path
from wcet_probe.catalog.lookup import load_target
from wcet_probe.errors import ContradictionError

ARM = {
    "f": "push {r4, lr}\n bl g\n adds r0, #1\n pop {r4, pc}",
    "g": "push {r4, r5, lr}\n movs r5, #9\n cmp r0, #5\n bhi 2f\n bl special\n2: adds r0, #3\n"
    "1: subs r5, #1\n bne 1b\n pop {r4, r5, pc}",
    "special": "cmp r0, #2\n bls 1f\n movs r5, #2\n bx lr\n1: movs r0, #0\n pop {r4, r5, pc}",
}
POWERPC = {
    "f": "stwu 1, -16(1)\n mflr 0\n stw 0, 20(1)\n bl g\n addi 3, 3, 1\n lwz 0, 20(1)\n addi 1, 1, 16\n mtlr 0\n blr",
    "g": "stwu 1, -16(1)\n mflr 0\n stw 0, 20(1)\n li 5, 9\n cmplwi 3, 5\n bgt 2f\n bl special\n2: addi 3, 3, 3\n"
    "1: addic. 5, 5, -1\n bne 1b\n lwz 0, 20(1)\n addi 1, 1, 16\n mtlr 0\n blr",
    "special": "cmplwi 3, 2\n ble 1f\n li 5, 2\n blr\n1: li 3, 0\n lwz 0, 20(1)\n addi 1, 1, 16\n mtlr 0\n blr",
}


def shared_end(target):
    return assembler(POWERPC if target == "mpc603e" else ARM, load_target(target))


@pytest.mark.parametrize("entry", ["f", "g"])
@pytest.mark.parametrize("target", TARGETS)
def test_a_routine_returns_for_its_caller(target, entry):
    """The dearest run goes by the call, or around it; the way through the popped frame is there, and cheaper."""
    proof = of(target, shared_end(target), entry)
    assert checked(proof, (1,), (4,), (7,)) <= proof.bound.instructions
    kinds = {edge.kind for edge in proof.bound.graph.edges}
    assert ("unwind" in kinds) == (entry == "f")


@pytest.mark.parametrize("target", TARGETS)
def test_a_run_that_unwinds_is_held_against_the_callers_that_wait(target):
    proof = of(target, shared_end(target), "f")
    path = interpret(proof, 1).path
    assert check_path(proof.bound, path, proof.guest.image, "a test") == 1
    inner = [address for address in path if proof.guest.image.function_at(address).name != "g"]
    with pytest.raises(ContradictionError):
        check_path(proof.bound, inner, proof.guest.image, "a test")


def test_a_return_that_unwinds_is_proved_or_refused():
    """At first it surely goes to ``f``; what comes round from there may bring any other address."""
    bodies = {
        "f": "push {r4, r6, lr}\n movs r6, #0\n2: bl g\n adds r6, #1\n cmp r6, #2\n bne 2b\n pop {r4, r6, pc}",
        "g": "mov r5, lr\n cmp r6, #0\n it ne\n movne r5, r0\n bl h\n3: cmp r6, #9\n bne 3b\n bx r5",
        "h": "mov lr, r5\n bx lr",
    }
    source = assembler(bodies, load_target("cortex-m4"))
    assert "is not known to be one of its function" in refused("cortex-m4", source)


ARM_BEHIND_NOTHING = {
    "f": "push {r4, lr}\n cmp r0, #5\n bhi 2f\n bl fail\n1: b 1b\n2: movs r0, #1\n pop {r4, pc}",
    "fail": "push {r4, lr}\n bl recover\n1: b 1b",
    "recover": "movs r1, #99\n1: subs r1, #1\n bne 1b\n add sp, #8\n pop {r4, pc}",
    "panic": "push {r4, lr}\n bl g\n1: b 1b",
    "g": "push {r4, lr}\n sub sp, #8\n bl special\n add sp, #8\n pop {r4, pc}",
    "special": "cmp r0, #5\n bhi 1f\n bx lr\n1: add sp, #8\n pop {r4, pc}",
}
POWERPC_BEHIND_NOTHING = {
    "f": "stwu 1, -16(1)\n mflr 0\n stw 0, 20(1)\n cmplwi 3, 5\n bgt 2f\n bl fail\n1: b 1b\n2: li 3, 1\n"
    "lwz 0, 20(1)\n addi 1, 1, 16\n mtlr 0\n blr",
    "fail": "stwu 1, -32(1)\n mflr 0\n stw 0, 36(1)\n bl recover\n1: b 1b",
    "recover": "li 5, 99\n1: addic. 5, 5, -1\n bne 1b\n addi 1, 1, 32\n lwz 0, 20(1)\n addi 1, 1, 16\n mtlr 0\n blr",
    "panic": "stwu 1, -16(1)\n mflr 0\n stw 0, 20(1)\n bl g\n1: b 1b",
    "g": "stwu 1, -16(1)\n mflr 0\n stw 0, 20(1)\n bl special\n lwz 0, 20(1)\n addi 1, 1, 16\n mtlr 0\n blr",
    "special": "cmplwi 3, 5\n bgt 1f\n blr\n1: lwz 0, 20(1)\n addi 1, 1, 16\n mtlr 0\n blr",
}


def behind_nothing(target):
    return assembler(POWERPC_BEHIND_NOTHING if target == "mpc603e" else ARM_BEHIND_NOTHING, load_target(target))


@pytest.mark.parametrize("target", TARGETS)
def test_a_call_behind_which_nothing_returns_may_return_further_out(target):
    """The routine pops the frame of the function that never comes back, and that of its caller."""
    proof = of(target, behind_nothing(target))
    assert checked(proof, (7,), (1,)) == proof.bound.instructions
    assert proof.bound.instructions > 198


@pytest.mark.parametrize("target", TARGETS)
def test_who_pops_a_frame_is_told_by_the_code(target):
    """``special`` returns for ``g``, which then returns as any function does: ``panic`` does not return."""
    guest = of(target, behind_nothing(target)).guest
    machine = guest.target
    lifter = Lifter(machine.pcode_language, machine.isa, code_reader(guest.image.segments))
    addresses = {name: guest.address(name) for name in ARM_BEHIND_NOTHING}
    returning = {addresses[name] for name in ("f", "recover", "g", "special")}
    found = set(returning_for_callers(lifter, addresses["f"], {}, returning))
    assert found == {addresses[name] for name in ("fail", "recover")}
    assert set(returning_for_callers(lifter, addresses["panic"], {}, returning)) == {addresses["special"]}


BYTE_BY_BYTE = {
    "f": "push {r4, lr}\n cmp r0, #5\n bhi 2f\n adr r2, 3f\n bl fail\n1: b 1b\n2: movs r0, #1\n pop {r4, pc}\n"
    " .balign 4\n3: movs r1, #200\n4: subs r1, #1\n bne 4b\n pop {r4, pc}",
    "fail": "push {r4, lr}\n adds r2, #1\n strb r2, [sp, #4]\n lsrs r2, r2, #8\n strb r2, [sp, #5]\n pop {r4, pc}",
}


def test_a_return_address_that_is_overwritten_in_part_is_an_assumption():
    """The routine returns to a third place, and so does the function: 413 instructions, where 5 were proved.

    The call was left out with the loop behind it, and nothing told that this rests on where the routine returns.
    """
    proof = of("cortex-m4", assembler(BYTE_BY_BYTE, load_target("cortex-m4")))
    assert "return-address" in {one.id for one in proof.bound.assumptions}
    with proof.guest.machine() as machine:
        assert machine.count("f", (1,)) > proof.bound.instructions
        assert machine.count("f", (7,)) == proof.bound.instructions


LONGJMP = {
    "f": "push {r4, r5, r6, lr}\n mov r4, r0\n sub sp, #16\n mov r6, sp\n mov r0, sp\n bl set\n cmp r0, #0\n bne 2f\n"
    "cmp r4, #5\n bhi 3f\n bl fail\n3: add sp, #16\n pop {r4, r5, r6, pc}\n2: movs r1, #200\n"
    "1: subs r1, #1\n bne 1b\n b 3b",
    "set": "str r6, [r0]\n mov r1, sp\n str r1, [r0, #4]\n str lr, [r0, #8]\n movs r0, #0\n bx lr",
    "fail": "push {r4, lr}\n mov r0, r6\n bl jump\n1: b 1b",
    "jump": "ldr r1, [r0, #4]\n mov sp, r1\n ldr lr, [r0, #8]\n movs r0, #1\n bx lr",
}


def test_longjmp_in_a_function_that_does_not_return_is_refused():
    """It was left out with what never comes back, and so was the way behind setjmp's second return."""
    source = assembler(LONGJMP, load_target("cortex-m4"))
    assert "the return at jump+" in refused("cortex-m4", source)


@pytest.mark.parametrize("decides", ["it hi\n movhi lr, r6", "bls 1f\n mov lr, r6\n nop\n1:"], ids=["choice", "paths"])
def test_a_return_of_two_ways_is_refused(decides):
    """To go behind the call is one of them; the registers and the stack pointer are the same on both."""
    bodies = {
        "f": "push {r4, lr}\n bl e\n1: subs r0, #1\n bne 1b\n pop {r4, pc}",
        "e": "mov r6, lr\n bl g\n movs r0, #3\n bx r6",
        "g": f"cmp r0, #5\n {decides}\n movs r0, #200\n bx lr",
    }
    for entry in ("f", "e"):
        source = assembler(bodies, load_target("cortex-m4"))
        assert "is not known to be one of its function" in refused("cortex-m4", source, entry)
