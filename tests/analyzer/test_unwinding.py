"""Returns that pop the frame of a caller: the ends that the routines of a library share.

A special case is found by a routine that was called after the frame was made; where the answer is clear, it pops that
frame and returns for its caller. Where such a return leads is proved, or it is refused.
"""

import pytest

from tests.analyzer.firmware_code import checked, of, refused
from tests.path_check import interpret
from tests.support import TARGETS, assembler
from wcet_probe.answer.contradiction import check_path
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
