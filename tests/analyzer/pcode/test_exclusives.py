"""Exclusive stores store or do not, ordered accesses are accesses, and loops that try again want a fact."""

import pytest

from tests.analyzer.pcode.machines import BASE, lifter_of_v7, powerpc, thumb
from tests.support import image_of
from wcet_probe.analyzer.pcode.interpreter import _Machine
from wcet_probe.analyzer.pcode.operations import SPECIAL_REGISTER
from wcet_probe.catalog.lookup import load_target
from wcet_probe.cli.app import main
from wcet_probe.errors import DecodeError, ExitCode

EXCLUSIVE = {
    "strex r1, r0, [r2, #4]": (thumb, (0xE842, 0x0101)),
    "strexb r1, r0, [r2]": (thumb, (0xE8C2, 0x0F41)),
    "stlex r1, r0, [r2]": (thumb, (0xE8C2, 0x0FE1)),
    "stlexh r1, r0, [r2]": (thumb, (0xE8C2, 0x0FD1)),
    "strex r1, r0, [r2] of A32": (lifter_of_v7, (0xE1821F90,)),
    "stwcx. r5, 0, r4": (powerpc, (0x7CA0212D,)),
}
DATA = 0x2000_0000
ORDERED = {
    "lda r0, [r2]": ((0xE8D2, 0x0FAF), 0x8182_8384, None),
    "ldab r0, [r2]": ((0xE8D2, 0x0F8F), 0x84, None),
    "ldah r0, [r2]": ((0xE8D2, 0x0F9F), 0x8384, None),
    "ldaex r0, [r2]": ((0xE8D2, 0x0FEF), 0x8182_8384, None),
    "ldaexb r0, [r2]": ((0xE8D2, 0x0FCF), 0x84, None),
    "stl r0, [r2]": ((0xE8C2, 0x0FAF), None, "d4c3b2a1"),
    "stlb r0, [r2]": ((0xE8C2, 0x0F8F), None, "d4838281"),
    "stlh r0, [r2]": ((0xE8C2, 0x0F9F), None, "d4c38281"),
}


@pytest.mark.parametrize("name", EXCLUSIVE)
def test_an_exclusive_store_is_left_open(name):
    """A bit that nobody knows decides whether control goes past the one store."""
    machine, units = EXCLUSIVE[name]
    ops = machine(*units).lift(BASE).ops
    opcodes = [op.opcode for op in ops]
    assert [(op.user_op, op.output.size_bytes) for op in ops if op.user_op] == [(SPECIAL_REGISTER, 1)]
    jump, store = opcodes.index("CBRANCH"), opcodes.index("STORE")
    assert opcodes.count("STORE") == 1
    assert jump < store
    assert ops[jump].inputs[0].offset == BASE + 4


@pytest.mark.parametrize("word", [0xE1821F90, 0x11821F90])
def test_the_condition_of_an_exclusive_store_stays(word):
    opcodes = [op.opcode for op in lifter_of_v7(word).lift(BASE).ops]
    assert opcodes.count("CBRANCH") == 1 + (word >> 28 != 14)


def test_an_exclusive_store_in_an_it_block_has_both_conditions():
    lifter = thumb(0xBF08, 0xE842, 0x0100)  # it eq; strexeq r1, r0, [r2]
    lifter.lift(BASE)
    assert [op.opcode for op in lifter.lift(BASE + 2).ops].count("CBRANCH") == 2


@pytest.mark.parametrize("name", ORDERED)
def test_an_ordered_access_is_an_access(name):
    units, loaded, stored = ORDERED[name]
    lifter = thumb(*units)
    machine = _Machine(lifter, {DATA: bytearray.fromhex("84838281")})
    machine.write_register("r0", 0xA1B2_C3D4)
    machine.write_register("r2", DATA)
    machine.pc = BASE
    machine.compile(lifter.lift(BASE))()
    ((_, memory),) = machine.regions
    assert machine.read_register("r0") == (0xA1B2_C3D4 if loaded is None else loaded)
    assert memory == bytes.fromhex(stored or "84838281")


@pytest.mark.parametrize("halves", [(0xE8CF, 0x0FAF), (0xE8C2, 0x0FE2), (0xE8C2, 0x0FE0), (0xE8D2, 0x0FA1)])
def test_an_unpredictable_access_is_refused(halves):
    with pytest.raises(DecodeError):
        thumb(*halves).lift(BASE)


SOURCE = """
#include <stdatomic.h>
_Atomic int word;
_Atomic short half;
_Atomic unsigned char byte;
int add(int n) { return atomic_fetch_add(&word, n); }
int look(void) { return atomic_load(&word) + atomic_load(&half) + atomic_load(&byte); }
void put(int n) { atomic_store(&word, n); atomic_store(&half, n); atomic_store(&byte, n); }
int swap(int n) {
    int old = 3;
    return atomic_compare_exchange_weak_explicit(&word, &old, n, memory_order_relaxed, memory_order_relaxed);
}
"""


@pytest.mark.covering(0)
@pytest.mark.parametrize("target", ["cortex-m33", "cortex-m4", "cortex-r5", "mpc603e"])
def test_atomic_accesses_of_c_are_bounded_run_and_checked(target, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "guest.elf").write_bytes(image_of(SOURCE, load_target(target), ".c").elf)
    common = ["guest.elf", "--target", target, "-q", "--entry"]
    assert main(["facts", *common, "add"]) == ExitCode.OK
    asked = capsys.readouterr().out
    assert asked.count("[[loop]]") == 1
    facts = asked.replace('max = "?"', "max = 1").replace('because = "?"', 'because = "nothing interferes"')
    (tmp_path / "f.toml").write_text(facts, "utf-8")
    assert main(["bound", *common, "add"]) == ExitCode.NO_BOUND
    for entry in ("add", "look", "put", "swap"):
        told = ["--facts", "f.toml"] if entry == "add" else []
        capsys.readouterr()
        run = ["--run", f"u32[&word] = 3; {entry}(7); {entry}(9)"]
        assert main(["bound", *common, entry, *told, "--json", *run]) == ExitCode.OK
        (tmp_path / "found.json").write_text(capsys.readouterr().out, "utf-8")
        assert main(["verify", "found.json", "--image", "guest.elf", *told]) in (ExitCode.OK, ExitCode.CHECKED_IN_PART)
        assert "covers the code of the image" in capsys.readouterr().out
