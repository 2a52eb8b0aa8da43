"""Calls that are charged by a certificate of the callee."""

import json
import re

import pytest

from tests.support import image_of
from wcet_probe.catalog.lookup import load_target
from wcet_probe.certificate.kernel.verify import bound_digest
from wcet_probe.cli import main

SOURCE = """\
unsigned table[64];
volatile unsigned sink;
__attribute__((noinline)) unsigned scan(unsigned n)
{
    unsigned s = 0;
    _Pragma("loopbound min 0 max 40")
    for (unsigned i = 0; i < n; i++) {
        s += table[i & 63];
        sink = s;
    }
    return s;
}
unsigned control(unsigned n)
{
    unsigned s = 0;
    for (int i = 0; i < 3; i++)
        s += scan(n + i);
    return s;
}
"""
FACT = '[[calls]]\nfunction = "scan"\nbound_by = "scan.json"\nbecause = "its module has the facts"\n'
ASK = ("bound", "firmware.elf", "--entry", "control", "-q")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The firmware, a document of the callee's bound, and the bound of the caller with the callee expanded."""
    home = tmp_path_factory.mktemp("given")
    (home / "guest.c").write_text(SOURCE)
    (home / "facts.toml").write_text(FACT)
    (home / "firmware.elf").write_bytes(image_of(SOURCE, load_target("cortex-m4"), ".c").elf)
    printed = []
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(home)
        patch.setattr("wcet_probe.cli.streams.print_json", printed.append)
        assert main(["bound", "firmware.elf", "--entry", "scan", "--json", "-q"]) == main([*ASK, "--json"]) == 0
    (home / "scan.json").write_text(json.dumps(printed[0]))
    (home / "guest.c").unlink()  # without its pragma the callee has no bound here
    return home, printed[1]["bound"]


@pytest.fixture
def run(made, capsys, monkeypatch):
    monkeypatch.chdir(made[0])

    def call(*arguments):
        code = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


def test_the_document_bounds_the_callee_as_expanding_it_does_and_its_assumptions_stay(run, made, tmp_path):
    assert run(*ASK)[0] == 4
    code, out, _ = run(*ASK, "--facts", "facts.toml", "--json")
    assert code == 0
    bound = json.loads(out)["bound"]
    assert (bound["instructions"], bound["cycles"]) == (made[1]["instructions"], made[1]["cycles"])
    ids = [one["id"] for one in bound["assumptions"]]
    assert {"given scan", "given scan: pragma guest.c:6"} <= set(ids)
    (tmp_path / "control.json").write_text(out)
    assert "not given here" in run("verify", tmp_path / "control.json")[1]
    code, out, _ = run("verify", tmp_path / "control.json", "scan.json")
    assert (code, "verified here" in out) == (6, True)


def test_a_callee_that_writes_to_its_callers_stack_takes_back_what_was_there(capsys, monkeypatch, tmp_path):
    # put(limits, 4) leaves 200 in the local that bounds the caller's loop, which was 1.
    source = """\
volatile unsigned sink;
__attribute__((noinline)) void put(volatile unsigned *p, unsigned n)
{
    _Pragma("loopbound min 0 max 4")
    for (unsigned i = 0; i < n; i++)
        p[i] = 200;
}
unsigned control(void)
{
    volatile unsigned limits[4] = {1, 1, 1, 1};
    put(limits, 4);
    for (unsigned i = 0; i < limits[0]; i++)
        sink = i;
    return 0;
}
"""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "guest.c").write_text(source)
    (tmp_path / "facts.toml").write_text(FACT.replace("scan", "put"))
    (tmp_path / "firmware.elf").write_bytes(image_of(source, load_target("cortex-m4"), ".c").elf)
    assert main(["bound", "firmware.elf", "--entry", "put", "--json", "-q"]) == 0
    (tmp_path / "put.json").write_text(capsys.readouterr().out)
    assert main([*ASK, "--facts", "facts.toml"]) == 4
    told = capsys.readouterr().out
    assert "BOUNDED_BY_TYPE" in told
    assert "runs up to 4,294,967,29" in told


def test_what_a_callee_takes_for_granted_of_its_stack_is_told_as_its_own(capsys, monkeypatch, tmp_path):
    # A pointer to what is given on the stack, which the caller derives from its stack pointer: a run takes 420, and
    # no assumption about the caller's own pointers says that there is none.
    source = """\
.syntax unified
.thumb
.globl scan
.type scan, %function
.thumb_func
scan:
    ldr r2, [sp]
    cmp r2, #3
    bhi 2f
    movs r3, #200
    str r3, [r0]
    ldr r2, [sp]
    adds r2, #1
1:  subs r2, #1
    bne 1b
2:  bx lr
.size scan, . - scan
.globl control
.type control, %function
.thumb_func
control:
    push {r4, lr}
    sub sp, #8
    movs r1, #3
    str r1, [sp]
    mov r0, sp
    bl scan
    add sp, #8
    pop {r4, pc}
.size control, . - control
"""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "facts.toml").write_text(FACT)
    (tmp_path / "firmware.elf").write_bytes(image_of(source, load_target("cortex-m4")).elf)
    assert main(["bound", "firmware.elf", "--entry", "scan", "--json", "-q"]) == 0
    (tmp_path / "scan.json").write_text(capsys.readouterr().out)
    assert main([*ASK, "--facts", "facts.toml", "--json"]) == 0
    bound = json.loads(capsys.readouterr().out)["bound"]
    assert bound["instructions"] < 30
    assert "given scan: stack-separation" in [one["id"] for one in bound["assumptions"]]


def less(document):
    document["bound"]["instructions"] -= 1
    document["bound"]["digest"] = bound_digest(document["bound"])


def other_image(document):
    document["image"]["sha256"] = "0" * 64
    document["bound"]["certificates"] = [
        re.sub(r"image [0-9a-f]{64}", f"image {'0' * 64}", one) for one in document["bound"]["certificates"]
    ]
    document["bound"]["digest"] = bound_digest(document["bound"])


def other_timing(document):
    document["target_configuration"]["timing"]["alu"]["cycles"] += 1


def known_at_entry(document):
    document["bound"]["assumptions"].append({"id": "initial-data", "statement": "limit is 4", "check": "none"})
    document["bound"]["digest"] = bound_digest(document["bound"])


def stack_known(document):
    told = {"id": "stack-pointer", "statement": "the stack pointer is 0x20000008 at entry", "check": "none"}
    document["bound"]["assumptions"].append(told)
    document["bound"]["digest"] = bound_digest(document["bound"])


def of_a_stack_pointer(document):
    """The certificate says that it rests on one, and the list of assumptions does not."""
    last = document["bound"]["certificates"][-1]
    document["bound"]["certificates"][-1] = last + "constraint miss:kept:stack-pointer:0x20000008 <= 5\n"
    document["bound"]["digest"] = bound_digest(document["bound"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (less, "does not verify"),
        (other_image, "another image"),
        (other_timing, "another target"),
        (known_at_entry, "without --initial-data"),
        (stack_known, "without --stack-pointer"),
        (of_a_stack_pointer, "without --stack-pointer"),
    ],
)
def test_a_document_that_does_not_verify_or_is_about_something_else_is_refused(run, made, change, message, tmp_path):
    document = json.loads((made[0] / "scan.json").read_text())
    change(document)
    (tmp_path / "scan.json").write_text(json.dumps(document))
    (tmp_path / "facts.toml").write_text(FACT)
    code, _, err = run(*ASK, "--facts", tmp_path / "facts.toml")
    assert code == 2
    assert message in err


def test_what_needs_the_blocks_of_the_callee_cannot_stand_beside_a_document(run, tmp_path, made):
    code, _, err = run(*ASK, "--facts", "facts.toml", "--run", "control(3)")
    assert (code, "leave out bound_by" in err) == (2, True)
    (tmp_path / "facts.toml").write_text(FACT.replace('"scan"', '"control"'))
    (tmp_path / "scan.json").write_text((made[0] / "scan.json").read_text())
    code, _, err = run(*ASK, "--facts", tmp_path / "facts.toml")
    assert (code, "is about another function" in err) == (2, True)
