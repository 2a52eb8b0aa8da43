"""The control-flow graph of every allocator's operations against decoded instructions, which another library gives."""

import pytest

from tests.analyzer.natural_loops import program
from tests.path_check import proved
from tests.support import TARGETS, assembler, guest_of, image_of
from wcet_probe.analyzer.graph.cfg import function_graph
from wcet_probe.analyzer.pcode.lift import Lifter, code_reader
from wcet_probe.catalog.lookup import load_target
from wcet_probe.cli.app import main
from wcet_probe.errors import AnalysisError, ExitCode
from wcet_probe.model.instruction import Control

NAMES = ("tlsf", "dlmalloc28", "avl-best-fit", "buddy-fibonacci")


@pytest.mark.covering
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", NAMES)
def test_blocks_partition_the_code_and_have_the_decoders_successors(name, target):
    of = program(name, target)
    lifter = Lifter(of.target.pcode_language, of.target.isa, code_reader(of.image.segments))
    decoded = {instruction.address: instruction for instruction in of.instructions}
    checked = 0
    for function in of.image.functions:
        try:
            graph = function_graph(of.image, lifter, function, {})
        except AnalysisError:
            continue
        seen = [instruction.address for block in graph.blocks.values() for instruction in block.instructions]
        assert len(seen) == len(set(seen))
        for block in graph.blocks.values():
            for lifted in block.instructions:
                assert decoded[lifted.address].size_bytes == lifted.size_bytes
            for lifted in block.instructions[:-1]:
                assert decoded[lifted.address].control in (Control.NEXT, None), decoded[lifted.address].text
            last = decoded[block.last_address]
            goes_to = {*block.jumps, *block.tail_calls, *block.calls}
            if last.branch_target is not None:
                assert last.branch_target in goes_to | ({block.falls_to} if block.falls else set()), last.text
            if last.control is Control.CONDITIONAL_BRANCH:
                assert block.falls or block.end_address in goes_to, last.text
            checked += 1
    assert checked > 20


def test_one_jump_of_several_tables_of_labels_is_named_with_what_helps():
    """GCC at -O1 and -Os: what is read from either table comes to one `bx`, as a range."""
    body = (
        "and r1, r0, #1\ncmp r0, #8\nbhi 1f\nldr r2, =7f\nldr r3, [r2, r1, lsl #2]\nb 2f\n1: ldr r2, =8f\n"
        "ldr r3, [r2, r1, lsl #2]\n2: orr r3, r3, #1\nbx r3\n3: add.w r0, r0, #1\n4: adds r0, #2\n5: bx lr\n"
        ".pool\n.balign 4\n7: .word 3b, 4b\n8: .word 3b, 5b\n"
    )
    core = load_target("cortex-m4")
    with pytest.raises(AnalysisError, match=r"the indirect branch at f\+0x\w+.* known as a range only.*a jump of each"):
        proved(guest_of(assembler({"f": body}, core), core), "f")


ASTRAY = """
.syntax unified
.thumb
.global entry
.type entry, %function
entry:
 sxtb r0, r0
 lsls r0, r0, #1
 adr r1, 1f
 adds r1, r1, r0
 adds r1, #1
 bx r1
 .balign 4
1:
 adds r2, #1
 adds r2, #2
 bx lr
 .balign 4
.size entry, .-entry
"""


def test_a_jump_that_may_lead_out_of_the_code_is_told_as_that(tmp_path, monkeypatch, capsys):
    """It was told as an instruction that SLEIGH cannot lift, in the middle of another function."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "guest.elf").write_bytes(image_of(ASTRAY, load_target("cortex-m4")).elf)
    facts = '[[argument]]\nfunction = "entry"\nregister = "r0"\nmin = {}\nmax = {}\nbecause = "told"\n'
    command = ["bound", "guest.elf", "--entry", "entry", "--target", "cortex-m4", "-q", "--facts", "facts.toml"]
    (tmp_path / "facts.toml").write_text(facts.format(0, 20), "utf-8")
    assert main(command) == ExitCode.NO_BOUND
    told = capsys.readouterr().err
    assert "are known as a range only" in told
    assert "[[argument]]" in told
    assert "SLEIGH" not in told
    (tmp_path / "facts.toml").write_text(facts.format(0, 2), "utf-8")
    assert main(command) == ExitCode.OK
