"""Calls that go on as a table behind them says, as GCC makes a ``switch`` for ARMv6-M, and what only looks like one.

Tests: analyzer.graph.inline_tables, analyzer.graph.cfg, analyzer.graph.returning, analyzer.graph.supergraph.
"""

import shutil

import pytest

from tests.analyzer.firmware_code import ARM, THUMB, arm, checked, of, refused, thumb
from tests.certificate.kernel.test_code import document_of, not_checked
from tests.path_check import interpret, proved
from tests.support import guest_of, guest_on
from wcet_probe.analyzer.graph.inline_tables import resuming_end
from wcet_probe.analyzer.pcode.lift import Lifter, code_reader
from wcet_probe.answer.witness.contradiction import check_path
from wcet_probe.build.compilation import _call as call
from wcet_probe.build.image import read_image
from wcet_probe.catalog.lookup import load_target
from wcet_probe.certificate.check import check_bound
from wcet_probe.errors import ContradictionError, VerificationError

BYTES = "push {r3}\n mov r3, lr\n subs r3, #1\n ldrb r3, [r3, r0]\n adds r3, r3, r3\n add lr, r3\n pop {r3}\n bx lr"
SIGNED_HALVES = (
    "push {r0, r3}\n mov r3, lr\n lsrs r3, r3, #1\n lsls r0, r0, #1\n lsls r3, r3, #1\n ldrsh r3, [r3, r0]\n"
    "lsls r3, r3, #1\n add lr, r3\n pop {r0, r3}\n bx lr"
)
ADDRESSES = (
    "push {r3}\n mov r3, lr\n lsls r0, r0, #2\n subs r3, #1\n ldr r3, [r3, r0]\n mov lr, r3\n pop {r3}\n mov pc, lr"
)
CASES = "1: adds r1, #3\n muls r1, r1, r1\n2: adds r1, #1\n3: adds r1, #5\n9: movs r0, r1\n pop {r4, pc}"
THUMB_KINDS = {
    "bytes": (BYTES, "0: .byte (1f-0b)/2, (2f-0b)/2, (3f-0b)/2, (2f-0b)/2"),
    "signed half-words": (SIGNED_HALVES, "0: .short (1f-0b)/2, (8b-0b)/2, (3f-0b)/2, (2f-0b)/2"),
    "addresses": (ADDRESSES, "0: .word 1f, 2f, 3f, 2f"),
}


def switching(kind, most=3):
    helper, table = THUMB_KINDS[kind]
    body = "push {r4, lr}\n b 7f\n.balign 4\n8: movs r1, #2\n b 9f\n"
    body += f"7: cmp r0, #{most}\n bhi 9f\n.balign 4\n bl helper\n"
    return THUMB + thumb("f", f"{body}{table}\n{CASES}") + thumb("helper", helper)


@pytest.mark.parametrize("target", ["cortex-m0plus", "cortex-m4"])
@pytest.mark.parametrize("kind", THUMB_KINDS)
def test_each_case_of_a_table_behind_a_call_is_followed(kind, target):
    proof = of(target, switching(kind))
    most = [checked(proof, (index, 4)) for index in (0, 1, 2, 3, 4, 0xFFFFFFFF)]
    assert max(most) == proof.bound.instructions
    assert not proof.bound.assumptions or all(one.id != "return-address" for one in proof.bound.assumptions)
    assert not_checked(proof.guest) == set()


OTHER_CORES = {
    "arm926ej-s": ARM
    + arm("f", "push {r4, lr}\n cmp r0, #2\n bhi 9f\n bl helper\n0: .word 1f-0b, 2f-0b, 3f-0b\n"
          "1: add r1, r1, #3\n2: add r1, r1, #1\n3: add r1, r1, #5\n9: mov r0, r1\n pop {r4, pc}")
    + arm("helper", "ldr r12, [lr, r0, lsl #2]\n add r12, lr, r12\n bx r12"),
    "mpc603e": ".text\n"
    + arm("f", "mflr 5\n cmplwi 3, 2\n bgt 9f\n bl helper\n0: .long 1f-0b, 2f-0b, 3f-0b\n"
          "1: addi 4, 4, 3\n2: addi 4, 4, 1\n3: addi 4, 4, 5\n9: mr 3, 4\n mtlr 5\n blr")
    + arm("helper", "mflr 11\n slwi 12, 3, 2\n lwzx 12, 11, 12\n add 11, 11, 12\n mtctr 11\n bctr"),
}  # fmt: skip


@pytest.mark.parametrize("target", OTHER_CORES)
def test_other_instruction_sets_and_jumps_by_other_registers(target):
    proof = of(target, OTHER_CORES[target])
    assert max(checked(proof, (index, 4)) for index in range(4)) == proof.bound.instructions
    assert not_checked(proof.guest) == set()


def test_each_call_has_its_own_table_and_arguments_are_skipped():
    """What the helper returns to for one call is no way for another; ``skip`` has one word behind its call."""
    body = """push {r4, lr}
    cmp r0, #1
    bhi 9f
    bl helper
    0: .byte (1f-0b)/2, (2f-0b)/2
    1: adds r1, #1
    2: cmp r1, #1
    bhi 9f
    movs r0, r1
    bl helper
    0: .byte (3f-0b)/2, (9f-0b)/2
    3: bl skip
    .word 0xffffffff
    adds r1, #1
    9: pop {r4, pc}"""
    skip = "mov r3, lr\n adds r3, #4\n mov lr, r3\n bx lr"
    proof = of("cortex-m0plus", THUMB + thumb("f", body) + thumb("helper", BYTES) + thumb("skip", skip))
    runs = [(index, value) for index in range(3) for value in range(3)]
    assert max(checked(proof, run) for run in runs) <= proof.bound.instructions
    assert not_checked(proof.guest) == set()


def test_a_case_that_never_returns_is_left_out():
    source = switching("bytes").replace("3: adds r1, #5", "b 9f\n3: bl stop\n .hword 0xffff") + thumb("stop", "b .")
    proof = of("cortex-m0plus", source)
    assert checked(proof, (0, 4), (1, 4), (3, 4)) == proof.bound.instructions
    assert any(one.id == "call-returns" for one in proof.bound.assumptions)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (("cmp r0, #3\n bhi 9f\n", "nop\n"), "branch or call at f+0x"),  # any index
        (("pop {r3}\n bx lr", "pop {r3}\n add lr, r1\n bx lr"), "branch or call at f+0x"),  # a way that nobody bounds
        ((" bl helper\n", " ldr r2, 5f\n blx r2\n"), "makes return addresses"),
    ],
)
def test_what_is_not_known_is_refused(change, told):
    source = switching("bytes").replace(*change).replace("pop {r4, pc}", "pop {r4, pc}\n.balign 4\n5: .word helper")
    assert told in refused("cortex-m0plus", source)


def test_an_index_behind_the_table_leads_where_the_bytes_there_say():
    """As the core does: they are code, read as distances, and what they lead to is followed or refused."""
    source = switching("bytes", most=4).replace("1: adds r1, #3", "1: adds r1, #4")  # the byte 4, of its encoding
    proof = of("cortex-m0plus", source)
    assert max(checked(proof, (index, 4)) for index in range(6)) <= proof.bound.instructions


def test_a_run_that_goes_on_elsewhere_is_refused():
    proof = of("cortex-m0plus", switching("bytes"))
    path = list(interpret(proof, 0, 4).path)
    check_path(proof.bound, path, proof.guest.image, "a test")
    helper = proof.guest.image.symbols["helper"].address
    first = next(at for at, one in enumerate(path) if one > helper + 12 and path[at + 1] < helper) + 1
    with pytest.raises(ContradictionError):
        check_path(proof.bound, [*path[:first], *path[first + 1 :]], proof.guest.image, "a test")


def test_a_certificate_that_leaves_a_case_out_is_refused():
    document, binary = document_of(of("cortex-m0plus", switching("bytes")).guest)
    text = document["bound"]["certificates"][0]
    line = next(one for one in text.splitlines() if one.startswith("edge ") and ":return" in one)
    name = line.split()[1]
    kept = [one for one in text.splitlines() if name not in one]
    document["bound"]["certificates"] = ["\n".join(kept) + "\n", *document["bound"]["certificates"][1:]]
    with pytest.raises(VerificationError):
        check_bound(document, binary)


def test_only_straight_code_that_leaves_by_its_return_address_is_such_a_callee():
    others = {
        "plain": "bx lr",
        "masked": "mov r3, lr\n movs r2, #1\n bx r3",
        "saved": "push {r4, lr}\n adds r0, #1\n pop {r4, pc}",
        "branches": "cmp r0, #1\n beq 1f\n add lr, r0\n1: bx lr",
        "pointer": "ldr r3, [r0]\n bx r3",
    }
    source = THUMB + "".join(thumb(name, body) for name, body in {**others, "helper": BYTES}.items())
    image = guest_of(source, load_target("cortex-m4")).image
    lifter = Lifter(load_target("cortex-m4").pcode_language, image.isa, code_reader(image.segments))
    found = {name: resuming_end(lifter, image.symbols[name].address) for name in (*others, "helper")}
    assert found.pop("helper") == image.symbols["helper"].address + 14
    assert set(found.values()) == {None}


PROGRAM = """
extern volatile int v; volatile int v;
__attribute__((noinline)) int chosen(unsigned k) {
  switch (k) { case 0: return 5; case 1: return v; case 2: return 9 * v; case 3: return 100; case 4: return v + 4;
    case 5: v = 1; return 4; default: return 0; } }
int summed(unsigned k) {
  int r = 0;
  for (int i = 0; i < 8; i++)
    switch (k + i) { case 0: r += 5; break; case 1: r += v; break; case 2: r = 9 * v; break; case 3: r ^= 100; break;
      case 4: r += v + 4; continue; case 5: v = 1; r = 4; break; default: v = 7; }
  return r; }
int f(unsigned a) { return chosen(a) + chosen(a + 1) + summed(a); }
"""


def test_switches_as_gcc_makes_them(tmp_path):
    if shutil.which("arm-none-eabi-gcc") is None:
        pytest.skip("arm-none-eabi-gcc is not installed")
    target = load_target("cortex-m0plus")
    (tmp_path / "a.c").write_text(PROGRAM)
    (tmp_path / "a.ld").write_text(
        f"SECTIONS {{ .text {target.memory_map.code.base_address:#x} : {{ *(.text*) *(.rodata*) }}\n"
        f".bss {target.memory_map.data.base_address:#x} : {{ *(.data*) *(.bss*) *(COMMON) }} }}"
    )
    flags = ["-mcpu=cortex-m0plus", "-mthumb", "-Os", "-ffreestanding", "-nostartfiles", "-Wl,-e,f", "-T", "a.ld"]
    call(["arm-none-eabi-gcc", *flags, "a.c", "-o", "a.elf"], tmp_path)
    guest = guest_on(read_image((tmp_path / "a.elf").read_bytes(), target.isa, "gcc"), target)
    assert any(name.startswith("__gnu_thumb1_case") for name in guest.image.symbols)
    proof = proved(guest, "f")
    assert max(checked(proof, (index,)) for index in range(8)) <= proof.bound.instructions
    assert not_checked(guest) == set()
