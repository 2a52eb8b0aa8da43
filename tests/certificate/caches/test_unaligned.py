"""Bounds that do not charge what unaligned accesses take longer are refused, or not called checked."""

import copy
from dataclasses import replace

import pytest

from tests.certificate.caches.test_caches import check, program, proved, rewritten
from tests.certificate.forgeries import sealed
from tests.certificate.kernel.test_code import document_of
from tests.support import assembler, guest_of
from wcet_probe.catalog.lookup import load_target
from wcet_probe.certificate.check import check_bound
from wcet_probe.certificate.facts.findings import OPEN
from wcet_probe.errors import VerificationError
from wcet_probe.evidence.checking import allocator_binary

OWN = "half-fit", "cortex-m4"
LOW = "movwlo r1, #:lower16:buf\nmovtlo r1, #:upper16:buf"
DATA = ".data\n.balign 64\n.globl buf\nbuf: .space 256\n"
BODIES = {
    "a word at an odd address": ("ldr r1, =buf+5\nldr r0, [r1]", 2),
    "a word at a multiple of 2": ("ldr r1, =buf+6\nstr r0, [r1]", 1),
    "a halfword of the stack": ("ldrh r0, [sp, #3]", 1),
    "a word at an unknown address": ("ldr r0, [r0]", 2),
    "a word of a table of halfwords": ("ldr r1, =buf\nldr r0, [r1, r0, lsl #1]", 1),
    "a word that is aligned": ("ldr r1, =buf\nldr r0, [r1, r0, lsl #2]", 0),
    "one that may be skipped": ("cmp r0, #0\nit ne\nldrne r0, [r0]", 2),
    "one whose address the same condition computes": (f"cmp r0, #7\nittt lo\n{LOW}\nldrlo r0, [r1, r0, lsl #2]", 0),
    "one of a halfword's table": (f"cmp r0, #7\nittt lo\n{LOW}\nldrlo r0, [r1, r0, lsl #1]", 1),
    "one whose address the other condition computes": (
        "cmp r0, #7\nittte lo\nmovwlo r1, #:lower16:buf\nmovtlo r1, #:upper16:buf\nmovlo r2, #0\nldrhs r0, [r1]",
        2,
    ),
    "one on the same condition of other flags": (f"cmp r0, #7\nitt lo\n{LOW}\ncmp r2, #3\nit lo\nldrlo r0, [r1]", 2),
    "one on a condition that is tested on it": (f"cmp r0, #7\nitttt lo\n{LOW}\ncmplo r2, #3\nldrlo r0, [r1]", 0),
    "one behind the block that computes its address": (f"cmp r0, #7\nitt lo\n{LOW}\nit lo\nldrlo r0, [r1]", 0),
}


def guest(body):
    target = load_target(OWN[1])
    return guest_of(assembler({"f": f"{body}\nbx lr\n.ltorg"}, target) + DATA, target)


@pytest.mark.parametrize("waiting", [0, 7])
@pytest.mark.parametrize("case", BODIES)
def test_what_is_not_charged_is_refused(case, waiting):
    body, cycles = BODIES[case]
    own = guest(body)
    first = replace(own.target.memory.first_beat_cycles, value=waiting)
    own = replace(own, target=replace(own.target, memory=replace(own.target.memory, first_beat_cycles=first)))
    document, binary = document_of(own)
    assert check_bound(document, binary).is_full
    blind, _ = document_of(replace(own, target=replace(own.target, unaligned=())))
    assert document["bound"]["cycles"] == blind["bound"]["cycles"] + cycles * (1 + waiting)
    assumptions = {**blind["bound"], "assumptions": document["bound"]["assumptions"]}
    blind = sealed({**blind, "bound": assumptions})
    if cycles:
        with pytest.raises(VerificationError, match="with its unaligned accesses"):
            check_bound(blind, binary)
    else:
        assert check_bound(blind, binary).is_full


def test_what_facts_tell_is_assumed_and_nothing_is_believed_without_them():
    document = proved(*OWN, "malloc")
    assert check(document, *OWN).is_full
    listed = [one["id"] for one in document["bound"]["assumptions"]]
    (fact,) = (one for one in listed if one.startswith("fact "))
    without = copy.deepcopy(document)
    without["bound"]["assumptions"] = [one for one in document["bound"]["assumptions"] if one["id"] != fact]
    with pytest.raises(VerificationError, match=f"the assumption {fact} is used and not listed"):
        check(sealed(without), *OWN)
    binary = allocator_binary(program(*OWN), 5000)
    facts = tuple(one for one in binary.asserted.facts if one.kind != "pointer")
    with pytest.raises(VerificationError):
        check(document, *OWN, replace(binary, asserted=replace(binary.asserted, facts=facts)))


def test_what_the_certificate_calls_unchecked_is_not_checked():
    document = proved(*OWN, "malloc")
    node = next(line for line in document["bound"]["certificates"][1].split("\n") if line.startswith("node ")).split()[
        1
    ]
    found = check(rewritten(document, lambda lines: [*lines[:-1], f"unchecked {node}", lines[-1]]), *OWN)
    (costs,) = (one for one in found.findings if one.check == "costs in cycles")
    assert costs.verdict == OPEN
    assert costs.found == f"instructions are charged; not checked: unaligned accesses of {node}"
