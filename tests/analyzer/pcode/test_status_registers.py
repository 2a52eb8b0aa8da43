"""Status registers and interrupt masks: written without effect, read as anything."""

import json

import pytest

from tests.analyzer.pcode.machines import BASE, lifter_of_v7, powerpc, thumb
from tests.support import image_of
from wcet_probe.analyzer.pcode.operations import SPECIAL_REGISTER
from wcet_probe.analyzer.pcode.status_registers import INTERRUPT_MASK
from wcet_probe.catalog.lookup import load_target
from wcet_probe.cli.app import main
from wcet_probe.errors import ExitCode

WRITTEN = {
    "msr primask, r3": (thumb, (0xF383, 0x8810)),
    "msr basepri, r3": (thumb, (0xF383, 0x8811)),
    "msr basepri_max, r3": (thumb, (0xF383, 0x8812)),
    "msr faultmask, r3": (thumb, (0xF383, 0x8813)),
    "cpsid i": (thumb, (0xB672,)),
    "cpsie f": (thumb, (0xB661,)),
    "cpsid i of A32": (lifter_of_v7, (0xF10C0080,)),
    "wrteei 0": (powerpc, (0x7C000146,)),
    "wrtee r3": (powerpc, (0x7C600106,)),
}
READ = {
    "mrs r3, ipsr": (thumb, (0xF3EF, 0x8305)),
    "mrs r3, primask": (thumb, (0xF3EF, 0x8310)),
    "mrs r3, basepri": (thumb, (0xF3EF, 0x8311)),
    "mrs r3, faultmask": (thumb, (0xF3EF, 0x8313)),
    "mrs r3, control": (thumb, (0xF3EF, 0x8314)),
    "mfmsr r3": (powerpc, (0x7C6000A6,)),
}
NO_STATUS = {
    "mrs r3, psp": (thumb, (0xF3EF, 0x8309)),
    "msr psp, r3": (thumb, (0xF383, 0x8809)),
    "msr control, r3": (thumb, (0xF383, 0x8814)),
    "cpsid i, #0x12": (lifter_of_v7, (0xF10E0092,)),
}


def user_operations(case):
    machine, units = case
    return [(op.user_op, op.output and op.output.size_bytes) for op in machine(*units).lift(BASE).ops if op.user_op]


@pytest.mark.parametrize("name", WRITTEN)
def test_a_mask_is_written_without_effect(name):
    assert user_operations(WRITTEN[name]) == [(INTERRUPT_MASK, None)]


@pytest.mark.parametrize("name", READ)
def test_of_what_is_read_nothing_is_known(name):
    assert user_operations(READ[name]) == [(SPECIAL_REGISTER, 4)]


@pytest.mark.parametrize("name", NO_STATUS)
def test_stack_pointers_and_modes_are_no_status(name):
    assert {user_op for user_op, _ in user_operations(NO_STATUS[name])} - {INTERRUPT_MASK, SPECIAL_REGISTER}


@pytest.mark.parametrize("halves", [(0xF383, 0x8811), (0xF3EF, 0x8310)])
def test_in_an_it_block_the_condition_stays(halves):
    lifter = thumb(0xBF08, *halves)  # it eq
    lifter.lift(BASE)
    opcodes = [op.opcode for op in lifter.lift(BASE + 2).ops]
    assert opcodes == ["INT_NOTEQUAL", "BOOL_NEGATE", "CBRANCH", "CALLOTHER"]


SOURCE = """
static volatile unsigned taken;
static unsigned lock(void) {
    unsigned before;
    __asm volatile("mrs %0, basepri" : "=r"(before));
    __asm volatile("msr basepri, %0\\n isb\\n dsb" :: "r"(0xbf) : "memory");
    return before;
}
static void unlock(unsigned before) { __asm volatile("msr basepri, %0\\n cpsie i" :: "r"(before) : "memory"); }
int f(int n) {
    unsigned before = lock();
    for (unsigned i = 0; i < (before ? 50u : 3u); i++) taken += n;
    unlock(before);
    return taken;
}
int locked(int n) { __asm volatile("msr basepri, %0" :: "r"(0x40) : "memory"); return f(n); }
"""


@pytest.mark.parametrize("target", ["cortex-m0plus", "cortex-m4", "cortex-m7"])
def test_a_critical_section_is_bounded_checked_and_run(target, tmp_path, monkeypatch, capsys):
    """What a mask decides is any of both: 50 rounds are bounded, whatever a run does."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "guest.elf").write_bytes(
        image_of(
            SOURCE.replace("basepri", "primask") if target == "cortex-m0plus" else SOURCE, load_target(target), ".c"
        ).elf
    )
    found = {}
    for entry in ("f", "locked"):
        command = ["bound", "guest.elf", "--entry", entry, "--target", target, "-q", "--json", "--run", f"{entry}(2)"]
        assert main(command) == ExitCode.OK
        found[entry] = json.loads(capsys.readouterr().out)
        (tmp_path / f"{entry}.json").write_text(json.dumps(found[entry]), "utf-8")
        assert main(["verify", f"{entry}.json", "--image", "guest.elf"]) in (
            ExitCode.OK,
            ExitCode.CHECKED_IN_PART,
        )
        capsys.readouterr()
    assert found["f"]["bound"]["instructions"] > 200


POWERPC_SOURCE = """
static volatile unsigned taken, data[8];
int shared(int n) {
    unsigned before, sum = 0;
    __asm volatile("mfmsr %0\\n wrteei 0" : "=r"(before) :: "memory");
    for (unsigned i = 0; i < (before & 0x8000 ? 8u : 3u); i++) sum += data[i] + n;
    __asm volatile("wrtee %0" :: "r"(before) : "memory");
    return taken = sum;
}
"""


def test_a_critical_section_by_wrtee_is_bounded_on_the_core_that_has_it(tmp_path, monkeypatch, capsys):
    """Its cycles are in the e200z6's table alone: the others do not have the instruction."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "guest.elf").write_bytes(image_of(POWERPC_SOURCE, load_target("e200z6"), ".c").elf)
    command = ["bound", "guest.elf", "--entry", "shared", "-q", "--target"]
    assert main([*command, "mpc603e"]) == ExitCode.NO_BOUND
    assert "no timing class 'write_external_enable'" in capsys.readouterr().err
    assert main([*command, "e200z6", "--json"]) == ExitCode.OK
    found = json.loads(capsys.readouterr().out)
    assert found["bound"]["instructions"] > 8 * 4
    (tmp_path / "found.json").write_text(json.dumps(found), "utf-8")
    assert main(["verify", "found.json", "--image", "guest.elf"]) in (ExitCode.OK, ExitCode.CHECKED_IN_PART)
    assert "covers the code of the image" in capsys.readouterr().out
