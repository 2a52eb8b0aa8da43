"""A store to a segment that is not writable contradicts what is read there: no bound, and no certificate of one."""

import pytest

from tests.certificate.forgeries import sealed
from tests.certificate.kernel.test_code import document_of
from tests.support import assembler, guest_of
from wcet_probe.analyzer import bound
from wcet_probe.analyzer.facts.language import Facts
from wcet_probe.analyzer.request import BoundRequest, GivenBound
from wcet_probe.build.image import require_symbol
from wcet_probe.catalog.lookup import load_target
from wcet_probe.certificate.check import check_bound
from wcet_probe.errors import AnalysisError, VerificationError

ROUNDS = {
    "cortex-m4": (
        "movw r3, #:lower16:rounds\n movt r3, #:upper16:rounds\n movs r1, #100\n{store}\n ldr r2, [r3]\n"
        "1: subs r2, #1\n bne 1b\n bx lr\n"
    ),
    "mpc603e": (
        "lis 3, rounds@ha\n addi 3, 3, rounds@l\n li 4, 100\n{store}\n lwz 5, 0(3)\n1: addic. 5, 5, -1\n bne 1b\n blr\n"
    ),
}
CONSTANT = (
    ".pushsection .rodata\n.balign 4\n.globl rounds\n.type rounds, %object\n.size rounds, 8\n"
    "rounds: .word 2, 2\n.popsection\n"
)
STORES = [
    ("cortex-m4", "str r1, [r3]"),
    ("cortex-m4", "strb r1, [r3]"),
    ("cortex-m4", "stmia r3, {r1}"),
    ("cortex-m4", "and r0, r0, #4\n str r1, [r3, r0]"),
    ("mpc603e", "stw 4, 0(3)"),
    ("mpc603e", "sth 4, 2(3)"),
]
"""Each may make 100 rounds of the 2 that stand there, where the segment is put into memory that can be written."""


def guest(core, store):
    target = load_target(core)
    text = assembler({"f": ROUNDS[core].format(store=store)}, target)
    return guest_of(text + CONSTANT.replace("%object", "@object" if core == "mpc603e" else "%object"), target)


@pytest.mark.parametrize(("core", "store"), STORES)
def test_a_store_that_surely_goes_there_leaves_no_bound(core, store):
    with pytest.raises(AnalysisError, match=r"f\+0x[0-9a-f]+ stores to 0x[0-9a-f]+, in a segment that is not writable"):
        document_of(guest(core, store))


@pytest.mark.parametrize(("core", "store"), STORES)
def test_a_certificate_of_a_prover_that_does_not_ask_is_refused(core, store, monkeypatch):
    """It was accepted in full, with two rounds."""
    monkeypatch.setattr(bound, "refuse_constant_stores", lambda *_: None)
    document, binary = document_of(guest(core, store))
    with pytest.raises(VerificationError, match="in a segment that is said not to be written"):
        check_bound(sealed(document), binary)


@pytest.mark.parametrize(
    ("core", "store"), [("cortex-m4", "str r1, [r0]"), ("cortex-m4", "ldr r0, [r3, #4]"), ("mpc603e", "stw 4, 0(6)")]
)
def test_a_store_to_where_nobody_knows_and_a_load_are_not_of_it(core, store):
    document, binary = document_of(guest(core, store))
    check_bound(sealed(document), binary)
    assert document["bound"]["instructions"]


@pytest.mark.parametrize("store", ["str r1, [r3]", "nop"])
def test_a_callee_whose_bound_is_given_does_not_store_there_either(store):
    """Its certificate holds where the constants are what the file says, and the caller reads them too."""
    target = load_target("cortex-m4")
    bodies = {"f": "push {r4, lr}\n bl g\n pop {r4, pc}", "g": ROUNDS["cortex-m4"].format(store=store)}
    made = guest_of(assembler(bodies, target) + CONSTANT, target)
    given = GivenBound("here", "g", {"instructions": 12, "cycles": 90}, ())
    callees = {require_symbol(made.image, "g").address: given}
    code = made.image, target, made.instructions, made.costs
    request = BoundRequest(*code, "f", Facts(), {}, {}, summaries=True, given=callees)
    if store == "nop":
        assert bound.prove(request).instructions == 3 + 12
        return
    with pytest.raises(AnalysisError, match=r"g\+0x[0-9a-f]+ stores to 0x[0-9a-f]+, in a segment that is not writable"):
        bound.prove(request)


def test_a_store_on_a_way_that_ends_in_a_trap_leaves_the_bound():
    """GCC makes one of a null pointer that is surely stored to; where code begins at 0, it is a store to code."""
    target = load_target("cortex-m4")
    body = "cmp r0, #0\n beq 1f\n bx lr\n1: mov.w r3, #0x08000000\n str r3, [r3]\n .inst.n 0xdeff\n"
    document, binary = document_of(guest_of(assembler({"f": body}, target), target))
    assert document["bound"]["instructions"] == 3
    check_bound(sealed(document), binary)
