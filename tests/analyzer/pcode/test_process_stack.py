"""A handler that switches contexts writes PSP: bounded, run and checked under the assumption that it runs on MSP.

Tests: analyzer.pcode.status_registers, analyzer.assumptions, certificate.machines.arm, certificate.kernel.coverage.
"""

from __future__ import annotations

import json

import pytest

from tests.resealed import reseal
from tests.support import image_of
from wcet_probe.catalog.lookup import load_target
from wcet_probe.cli.app import main
from wcet_probe.errors import ExitCode

SWITCH = """
.syntax unified
.thumb
.global handler
.type handler, %function
handler:
 mrs r0, psp
 isb
 ldr r3, =current
 ldr r2, [r3]
 stmdb r0!, {r4-r11, lr}
 str r0, [r2]
 push {r0, r3}
 movs r0, #0x50
 msr basepri, r0
 bl next
 movs r0, #0
 msr basepri, r0
 pop {r0, r3}
 ldr r1, [r3]
 ldr r0, [r1]
 ldmia r0!, {r4-r11, lr}
 msr psp, r0
 isb
 bx lr
.size handler, .-handler
.type next, %function
next:
 movs r0, #9
1: subs r0, #1
 bne 1b
 bx lr
.size next, .-next
.global moved
.type moved, %function
moved:
 push {r4, lr}
 msr psp, r0
 mrs r1, psp
 movs r4, #5
1: subs r4, #1
 bne 1b
 pop {r4, pc}
.size moved, .-moved
.global twice
.type twice, %function
twice:
 push {r4, lr}
 bl moved
 bl moved
 pop {r4, pc}
.size twice, .-twice
.data
.align 2
.global current
current: .word task
task: .word 0
"""


def _bound(tmp_path, monkeypatch, capsys, entry: str, *more: str):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "guest.elf").write_bytes(image_of(SWITCH, load_target("cortex-m4")).elf)
    command = ["bound", "guest.elf", "--entry", entry, "--target", "cortex-m4", "-q", "--json", *more]
    assert main(command) == ExitCode.OK
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(
    ("entry", "instructions"), [("handler", 19 + 2 + 2 * 9), ("moved", 6 + 2 * 5 - 1), ("twice", 4 + 2 * 15)]
)
def test_a_write_of_psp_is_bounded_and_checked(entry, instructions, tmp_path, monkeypatch, capsys):
    run = () if entry == "handler" else ("--run", f"{entry}(0x20000800)")
    found = _bound(tmp_path, monkeypatch, capsys, entry, *run)
    assert found["bound"]["instructions"] == instructions
    assumed = {one["id"]: one["statement"] for one in found["bound"]["assumptions"]}
    assert "main stack" in assumed["main-stack"]
    (tmp_path / "found.json").write_text(json.dumps(found), "utf-8")
    assert main(["verify", "found.json", "--image", "guest.elf"]) in (ExitCode.OK, ExitCode.CHECKED_IN_PART)
    told = capsys.readouterr().out
    # Where the handler returns to is read from the stack of another task, which the checker does not follow.
    assert ("covers the code of the image" in told) == (entry != "handler")


def test_the_checker_wants_the_assumption(tmp_path, monkeypatch, capsys):
    found = _bound(tmp_path, monkeypatch, capsys, "moved")
    listed = found["bound"]["assumptions"]
    found["bound"]["assumptions"] = [one for one in listed if one["id"] != "main-stack"]
    reseal(found, tmp_path / "found.json")
    assert main(["verify", "found.json", "--image", "guest.elf"]) == ExitCode.FAILURE
    assert "main-stack is used and not listed" in "".join(capsys.readouterr())


@pytest.mark.parametrize("entry", ["moved", "twice"])
def test_the_assumption_is_listed_where_memory_at_entry_is_known(entry, tmp_path, monkeypatch, capsys):
    found = _bound(tmp_path, monkeypatch, capsys, entry, "--initial-data")
    assert {"initial-data", "main-stack"} <= {one["id"] for one in found["bound"]["assumptions"]}
