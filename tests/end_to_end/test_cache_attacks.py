"""Functions whose bound in cycles was wrong once, or looked as if it could be: no run of them exceeds it.

Tests: analyzer.dcache.misses, analyzer.bound.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from tests.end_to_end.test_cache_soundness import POLICIES, analysed, with_cache
from tests.support import assembler, guest_of
from wcet_probe.analyzer.facts.file import parse_facts
from wcet_probe.analyzer.facts.language import Facts
from wcet_probe.analyzer.facts.memory import PointerFacts, Pointers
from wcet_probe.catalog.lookup import load_target
from wcet_probe.model.scenario import InitialCache


@dataclass(frozen=True)
class Attack:
    """A function ``f`` in assembler whose bound was wrong once, or looked as if it could be.

    ``words`` gives its arguments from the address of ``buf``; ``moved_bytes`` is added to the stack pointer.
    """

    name: str
    target: str
    spec: str
    body: str
    words: Callable[[int], tuple[int, ...]] = lambda _: ()
    facts: str = ""
    moved_bytes: int = 0
    buf: str = ".space 16384"


def _evict(number: int) -> str:
    return f"lwz 7, {64 * number}(12)\n lwz 7, {64 * number + 16}(12)\n"


_BUF = "lis 10, buf@ha\n addi 10, 10, buf@l\n"
ATTACKS = (
    Attack(
        "a choice whose loaded part is never loaded",
        "mpc603e",
        "d:sets=2,ways=1,line=16,write=through",
        "li 9, 20\n0: cmpwi 3, 0\n beq 1f\n lwz 6, 0(4)\n b 2f\n1: mr 6, 5\n"
        + "nop\n" * 500
        + "2: lwz 7, 0(6)\n addi 9, 9, -1\n cmpwi 9, 0\n bne 0b\n blr",
        lambda buf: (0, buf + 64, buf + 128),
    ),
    Attack(
        "granules of one line, with others in between",
        "mpc603e",
        "d:sets=4,ways=1,line=16",
        f"{_BUF} addi 11, 10, 256\n addi 12, 10, 1024\n li 9, 20\n0: lwz 7, 0(11)\n {_evict(0)} lwz 7, 8(11)\n "
        f"{_evict(1)} lwz 7, 16(11)\n {_evict(2)} addi 11, 11, 8\n addi 12, 12, 200\n addi 9, 9, -1\n cmpwi 9, 0\n"
        " bne 0b\n blr",
    ),
    Attack(
        "a local array and a stack pointer that is no multiple of a line",
        "mpc603e",
        "d:sets=4,ways=1,line=16,write=through",
        "stwu 1, -512(1)\n li 9, 20\n addi 11, 1, 16\n0: lwz 7, 0(11)\n lwz 7, 8(11)\n addi 11, 11, 16\n"
        " addi 9, 9, -1\n cmpwi 9, 0\n bne 0b\n addi 1, 1, 512\n blr",
        moved_bytes=-8,
    ),
    Attack(
        "a load-multiple that descends through more lines than there are sets",
        "arm926ej-s",
        "d:sets=2,ways=1,line=16",
        "push {r4-r11, lr}\n ldr r12, =buf\n mov r1, #20\n0: add r3, r12, #64\n ldmdb r3, {r4-r10, r11, r14}\n"
        " ldr r0, [r12, #16]\n ldr r0, [r12, #80]\n subs r1, r1, #1\n bne 0b\n pop {r4-r11, pc}\n.ltorg",
    ),
    Attack(
        "an argument that enters a loop where the function begins",
        "mpc603e",
        "d:sets=4,ways=1,line=16,write=through",
        "0: lwz 7, 8(3)\n lwz 8, 16(3)\n lwz 3, 0(5)\n addi 3, 3, 8\n addi 5, 5, 64\n addi 4, 4, -1\n cmpwi 4, 0\n"
        " bne 0b\n blr",
        lambda buf: (buf, 2, buf + 64),
        '[[argument]]\nfunction = "f"\nindex = 1\nmin = 1\nmax = 2\nbecause = "the test"\n'
        '[[pointer]]\nmultiple_of = 16\nbecause = "the test"\n',
        buf=".space 64\n .long buf + 0x1000, 0\n .space 16384",
    ),
    Attack(
        "a choice that is made anew in a loop whose states do not speak of its condition",
        "mpc603e",
        "d:sets=2,ways=1,line=16,write=through",
        f"{_BUF} addi 11, 10, 64\n cmpwi 3, 0\n mr 6, 10\n bne 1f\n mr 6, 11\n1: li 3, 0\n li 9, 20\n cmpwi 9, 0\n"
        "0: lwz 7, 0(6)\n lwz 7, 128(10)\n cmpw 6, 10\n bne 2f\n mr 6, 10\n cmpwi 9, 0\n b 3f\n"
        "2: mr 6, 11\n cmpwi 9, 0\n3: addi 9, 9, -1\n cmpwi 9, 0\n bne 0b\n blr",
        lambda _: (1,),
    ),
    Attack(
        "a list that is walked, each node of two lines",
        "mpc603e",
        "d:sets=4,ways=2,line=16",
        "li 9, 12\n0: lwz 7, 4(3)\n lwz 8, 20(3)\n stw 8, 24(3)\n lwz 3, 0(3)\n addi 9, 9, -1\n cmpwi 9, 0\n"
        " bne 0b\n blr",
        lambda buf: (buf,),
        buf="\n".join(f".long buf + {40 * (number + 1)}, 0, 0, 0, 0, 0, 0, 0, 0, 0" for number in range(16)),
    ),
    Attack(
        "predicated loads and stores",
        "arm926ej-s",
        "d:sets=2,ways=2,line=16,allocate=yes",
        "push {r4, lr}\n ldr r12, =buf\n mov r1, #20\n0: tst r1, #1\n ldrne r2, [r12, #64]\n addne r2, r12, #32\n"
        " ldreq r2, [r12]\n moveq r2, r12\n ldr r3, [r2, #4]\n streq r3, [r2, #8]\n ldrne r3, [r12, #128]\n"
        " ldr r3, [r2, #8]\n subs r1, r1, #1\n bne 0b\n pop {r4, pc}\n.ltorg",
    ),
    Attack(
        "lines that follow each other by the bytes of all sets",
        "mpc603e",
        "d:sets=4,ways=1,line=16",
        f"{_BUF} addi 3, 10, 512\n li 9, 12\n0: lwz 7, 0(3)\n addi 5, 3, 0\n addi 3, 3, 64\n li 8, 3\n"
        "1: lwz 7, 0(5)\n lwz 7, 0(3)\n mr 6, 5\n addi 5, 3, 0\n addi 8, 8, -1\n cmpwi 8, 0\n bne 1b\n"
        " lwz 7, 0(6)\n addi 9, 9, -1\n cmpwi 9, 0\n bne 0b\n blr",
    ),
    Attack(
        "store-multiple onto a stack of two sets",
        "arm926ej-s",
        "d:sets=2,ways=2,line=16,allocate=yes,write=back",
        "push {r4-r11, lr}\n mov r1, #8\n0: push {r0-r9}\n pop {r2-r11}\n subs r1, r1, #1\n bne 0b\n pop {r4-r11, pc}",
    ),
)


@pytest.mark.covering
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name.replace(" ", "-"))
def test_no_attack_succeeds(attack, policy):
    target = load_target(attack.target)
    guest = guest_of(
        assembler({"f": attack.body}, target) + f".data\n.balign 64\n.globl buf\nbuf: {attack.buf}\n", target
    )
    facts = parse_facts("f.toml", attack.facts) if attack.facts else Facts()
    one, tiny = analysed(guest, "f", facts), with_cache(target, f"{attack.spec},policy={policy}")
    asserted = 16 if "multiple_of" in attack.facts else 1
    bound = one.bound(tiny, PointerFacts(Pointers(asserted), {}))
    for start in (*InitialCache, InitialCache.WARM):
        with one.machine(tiny) as machine:
            machine._stack_pointer += attack.moved_bytes
            if start is InitialCache.WARM:
                machine.measure("f", attack.words(guest.address("buf")), InitialCache.DIRTY)
            found = machine.measure("f", attack.words(guest.address("buf")), start)
        assert found.cycles <= bound, (start, found.dcache)


@pytest.mark.parametrize(
    "code",
    [
        (
            "mov r3,#0\n cmp r3,#1\n beq 1f\n ldr r2,[r0]\n bx lr\n"
            "1: mov r4,#9\n0: ldr r0,[r0]\n subs r4,r4,#1\n bne 0b\n bx lr"
        ),
        "ldr r2,[r0]\n mov r3,#0\n cmp r3,#1\n beq f\n bx lr",
    ],
    ids=["header", "way-round"],
)
def test_a_loop_that_is_never_entered_or_never_goes_round_has_a_bound(code):
    target = load_target("arm926ej-s")
    guest = guest_of(assembler({"f": code}, target) + ".data\n.balign 64\nbuf: .space 4096\n", target)
    assert analysed(guest, "f").bound(target) > 0
