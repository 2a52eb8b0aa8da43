"""Which instructions a condition may leave without any effect: those that the interpreter runs without one."""

import pytest

from tests.analyzer.small_functions import ARM, POWERPC, THUMB, lifter_of, small_guest
from wcet_probe.analyzer.pcode.skipping import may_be_skipped

CASES = {
    "arm": (
        ARM,
        [
            ("moveq r0, r1", True),
            ("streq r0, [r1]", True),
            ("addsne r0, r0, r1", True),
            ("popeq {r4, pc}", True),
            ("mov r0, r1", False),
            ("str r0, [r1]", False),
            ("beq f", False),
            ("bl f", False),
            ("bx lr", False),
        ],
    ),
    "thumb": (THUMB, [("it eq\nmoveq r0, r1", True), ("movs r0, r1", False), ("beq f", False), ("bx lr", False)]),
    "powerpc": (POWERPC, [("addi 3, 3, 1", False), ("beq f", False), ("blr", False), ("stw 3, 0(4)", False)]),
}


@pytest.mark.parametrize("name", CASES)
def test_predicated_instructions_may_be_skipped_and_branches_are_none(name):
    target, cases = CASES[name]
    guest = small_guest("\n".join(text for text, _ in cases), target)
    lifter, found = lifter_of(guest), []
    symbol = guest.image.symbols["f"]
    at = symbol.address
    while at < symbol.address + symbol.size_bytes:
        one = lifter.lift(at)
        found.append(may_be_skipped(one))
        at += one.size_bytes
    if name == "thumb":
        assert not found.pop(0)  # the instruction that tells the condition
    assert found == [is_skipped for _, is_skipped in cases]
