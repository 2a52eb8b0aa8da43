"""Status registers and interrupt masks: written without effect, read as anything."""

import json

import pytest

from tests.analyzer.pcode.machines import BASE, lifter_of_v7, powerpc, thumb
from tests.support import image_of
from wcet_probe.analyzer.pcode.interpreter import _Machine
from wcet_probe.analyzer.pcode.operations import SPECIAL_REGISTER
from wcet_probe.analyzer.pcode.status_registers import INTERRUPT_MASK
from wcet_probe.catalog.lookup import load_target
from wcet_probe.cli.app import main
from wcet_probe.errors import DecodeError, ExitCode

WRITTEN = {
    "msr primask, r3": (thumb, (0xF383, 0x8810)),
    "msr basepri, r3": (thumb, (0xF383, 0x8811)),
    "msr basepri_max, r3": (thumb, (0xF383, 0x8812)),
    "msr faultmask, r3": (thumb, (0xF383, 0x8813)),
    "msr msplim, r3": (thumb, (0xF383, 0x880A)),
    "msr psplim, r3": (thumb, (0xF383, 0x880B)),
    "msr psp_ns, r3": (thumb, (0xF383, 0x8889)),
    "msr control_ns, r3": (thumb, (0xF383, 0x8894)),
    "msr primask_ns, r3": (thumb, (0xF383, 0x8890)),
    "msr sp_ns, r3": (thumb, (0xF383, 0x8898)),
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
    "mrs r3, msp": (thumb, (0xF3EF, 0x8308)),
    "mrs r3, psp": (thumb, (0xF3EF, 0x8309)),
    "mrs r3, psplim": (thumb, (0xF3EF, 0x830B)),
    "mrs r3, msp_ns": (thumb, (0xF3EF, 0x8388)),
    "mrs r3, control_ns": (thumb, (0xF3EF, 0x8394)),
    "mrs r3, faultmask_ns": (thumb, (0xF3EF, 0x8393)),
    "mfmsr r3": (powerpc, (0x7C6000A6,)),
}
NO_STATUS = {
    "msr msp, r3": (thumb, (0xF383, 0x8808)),
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


FLAGS = ("ng", "zr", "cy", "ov")


@pytest.mark.parametrize("bits", range(16))
@pytest.mark.parametrize("case", [(thumb, (0xF383, 0x8800)), (lifter_of_v7, (0xE128F003,))])
def test_flags_are_written_as_they_are_in_the_register(case, bits):
    """Set and cleared: SLEIGH only sets them."""
    machine, units = case
    lifter = machine(*units)
    interpreter = _Machine(lifter, {})
    interpreter.write_register("r3", bits << 28 | 0x0123_4567)
    for flag, before in zip(FLAGS, (1, 0, 1, 0), strict=True):
        interpreter.write_register(flag, before)
    interpreter.pc = BASE
    interpreter.compile(lifter.lift(BASE))()
    assert [interpreter.read_register(flag) for flag in FLAGS] == [bits >> place & 1 for place in (3, 2, 1, 0)]


def test_of_flags_and_more_nothing_is_written():
    with pytest.raises(DecodeError, match="writes more than the flags"):
        thumb(0xF383, 0x8C00).lift(BASE)  # msr apsr_nzcvqg, r3
    with pytest.raises(DecodeError, match="writes more than the flags"):
        lifter_of_v7(0xE121F003).lift(BASE)  # msr cpsr_c, r3


OF_THE_OTHER_STACK = """
.syntax unified
.thumb
.global f
.type f, %function
f:
 sub sp, #8
 movs r1, #3
 str r1, [sp]
 mrs r0, msp
 movs r2, #100
 str r2, [r0]
 ldr r1, [sp]
1: subs r1, #1
 bne 1b
 add sp, #8
 bx lr
.size f, .-f
"""


def test_a_store_by_a_stack_pointer_that_is_read_may_hit_the_frame(tmp_path, monkeypatch, capsys):
    """The loop runs 100 rounds, not 3."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "guest.elf").write_bytes(image_of(OF_THE_OTHER_STACK, load_target("cortex-m4")).elf)
    assert main(["bound", "guest.elf", "--entry", "f", "--target", "cortex-m4", "-q"]) == ExitCode.NO_BOUND
    told = capsys.readouterr().out
    assert "BOUNDED_BY_TYPE" in told
    assert "runs up to 4,294,967,296 times" in told


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


@pytest.mark.parametrize("register", ["msp", "control"])
def test_a_stack_that_is_written_is_told_as_that(register, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    source = f'void f(unsigned to) {{ __asm volatile("msr {register}, %0" :: "r"(to)); }}'
    (tmp_path / "guest.elf").write_bytes(image_of(source, load_target("cortex-m4"), ".c").elf)
    assert main(["bound", "guest.elf", "--entry", "f", "--target", "cortex-m4", "-q"]) == ExitCode.NO_BOUND
    told = capsys.readouterr().err
    assert "writes MSP or CONTROL" in told
    assert "bound what stands before and behind it" in told


OF_THE_SECURE_STATE = """
.syntax unified
.thumb
.global entry
.type entry, %function
entry:
 cmp r0, #16
 bhs 2f
 movs r1, #5
1: subs r1, #1
 bne 1b
2: mov ip, lr
 msr apsr_nzcvq, lr
 bxns lr
.size entry, .-entry
"""


def test_a_function_for_the_non_secure_state_is_bounded_checked_and_run(tmp_path, monkeypatch, capsys):
    """As GCC ends it: what is in registers and flags is cleared, then it goes back by ``bxns``."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "guest.elf").write_bytes(image_of(OF_THE_SECURE_STATE, load_target("cortex-m33")).elf)
    command = ["bound", "guest.elf", "--entry", "entry", "--target", "cortex-m33", "-q", "--json"]
    assert main([*command, "--run", "entry(3); entry(20)"]) == ExitCode.OK
    text = capsys.readouterr().out
    assert json.loads(text)["bound"]["instructions"] == 3 + 2 * 5 + 3
    (tmp_path / "found.json").write_text(text, "utf-8")
    assert main(["verify", "found.json", "--image", "guest.elf"]) in (ExitCode.OK, ExitCode.CHECKED_IN_PART)
    told = capsys.readouterr().out
    assert "covers the code of the image" in told
    assert "not checked  where" not in told


OF_BOTH_STATES = """
.syntax unified
.thumb
.global entry
.type entry, %function
entry:
 mrs r1, control_ns
 msr control_ns, r0
 mrs r0, primask_ns
 msr basepri_ns, r0
 bx lr
.size entry, .-entry
"""


def test_what_the_secure_state_does_to_registers_of_the_other_is_bounded(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "guest.elf").write_bytes(image_of(OF_BOTH_STATES, load_target("cortex-m33")).elf)
    assert main(["bound", "guest.elf", "--entry", "entry", "--target", "cortex-m33", "-q", "--json"]) == ExitCode.OK
    found = json.loads(capsys.readouterr().out)
    assert found["bound"]["instructions"] == 5
    (tmp_path / "found.json").write_text(json.dumps(found), "utf-8")
    assert main(["verify", "found.json", "--image", "guest.elf"]) in (ExitCode.OK, ExitCode.CHECKED_IN_PART)
