"""Why targets are not known, in words with the remedy; and which targets were not known before."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from tests.analyzer.small_functions import analysed, small_guest
from tests.support import image_of
from wcet_probe.analyzer.graph.supergraph import EXIT
from wcet_probe.analyzer.values.properties.unknown_targets import check_resolved, grown_targets, have_one_each
from wcet_probe.catalog.lookup import load_target
from wcet_probe.cli.app import main
from wcet_probe.errors import AnalysisError, ExitCode

HEAD = "push {r4, lr}\n"
DATA = ".pushsection .data\n.globl place\n.type place, %object\nplace: .word 0, 0\n.size place, 8\n.popsection\n"
WORD = HEAD + "ldr r1, =place\nldr r1, [r1]\nblx r1\npop {r4, pc}\n.ltorg\n" + DATA
TABLE = HEAD + "ldr r1, =place\nldr r1, [r1, r0, lsl #2]\nblx r1\npop {r4, pc}\n.ltorg\n" + DATA
CONSTANT = HEAD + "adr r1, 1f\nldr r1, [r1, r0, lsl #2]\nblx r1\npop {r4, pc}\n.balign 4\n1: .word 0, 0\n"
ARGUMENT = HEAD + "blx r0\npop {r4, pc}\n"
BOTH = (
    HEAD + "cmp r2, #0\nbeq 1f\nblx r0\npop {r4, pc}\n1: ldr r1, =place\nldr r1, [r1]\nblx r1\n"
    "pop {r4, pc}\n.ltorg\n" + DATA
)


def refusal(text, asserted=()):
    guest = small_guest(text)
    _, values = analysed(guest.image, guest.target)
    graph = replace(values.graph, unresolved=()) if asserted else values.graph  # a fact gives the graph its targets
    with pytest.raises(AnalysisError) as caught:
        check_resolved(guest.image, graph, values, asserted)
    return guest, str(caught.value), caught.value.sites


def test_a_word_that_can_change_is_named():
    guest, said, sites = refusal(WORD)
    assert "they are read from place at 0x" in said
    assert "which is in writable memory; make it const, or assume what it holds at entry (--initial-data, " in said
    assert "--after), or name them by a flow fact, [[calls]]" in said
    assert sites == (guest.address("f") + 6,)


def test_a_word_without_a_name_is_a_word_at_its_address():
    without = DATA.replace(".size place, 8\n", "").replace(".type place, %object\n", "")  # as ``__init_array_start``
    assert "they are read from the word at 0x" in refusal(WORD.replace(DATA, without))[1]


def test_a_table_that_can_change_is_named():
    assert "they are read from the table place at 0x" in refusal(TABLE)[1]


def test_an_index_without_a_range_is_named_with_its_range():
    said = refusal(CONSTANT)[1]
    assert "with an index from 0 to 4,294,967,295 (steps of 4 bytes), more than the 1,024 that are followed" in said
    assert "let the code check the range of the index" in said


def test_where_no_reason_is_known_the_fact_is_the_remedy():
    guest, said, _ = refusal(ARGUMENT)
    assert said == (
        f"the targets of the indirect branch or call at {guest.image.location(guest.address('f') + 2)} are not known: "
        "name them by a flow fact, [[calls]] function = …, offset = …, targets = […]."
    )


SAVED = (
    "push {r4, r5, lr}\nsub sp, #12\nldr r4, =helper\nmov r5, sp\nadds r5, r5, r0\nstrb r1, [r5]\nbl other\nblx r4\n"
    "add sp, #12\npop {r4, r5, pc}\n.ltorg\n.thumb_func\nother: push {r4, lr}\nmovs r4, #3\n"
    "adds r5, r5, r0\nstrb r1, [r5]\npop {r4, pc}\n.thumb_func\nhelper: bx lr\n"
)


def test_where_a_store_may_have_changed_what_a_callee_saved_the_assumption_that_none_does_is_a_remedy():
    said = refusal(SAVED)[1]
    assert said.endswith(
        "targets = […], or, where a store by an index without a bound may go to where a function saved its registers, "
        "let bound take it that none does: --assume saved-registers."
    )
    assert "--assume" not in refusal(ARGUMENT)[1]


def test_several_are_named_together():
    guest, said, sites = refusal(BOTH)
    assert said.startswith("the targets of 2 indirect branches or calls are not known: of the one at ")
    assert len(sites) == 2
    assert refusal(BOTH, asserted=sites[:1])[2] == sites[1:]
    assert guest.image.location(sites[0]) in said


def settled():
    guest = small_guest("movs r0, #1\nbx lr")
    _, values = analysed(guest.image, guest.target)
    check_resolved(guest.image, values.graph, values, ())
    return guest.image, values


def test_a_branch_that_is_unresolved_where_control_does_not_come_is_no_error():
    image, values = settled()
    check_resolved(image, replace(values.graph, unresolved=(0x1234,)), values, ())
    last = values.graph.points[0].block.last_address
    with pytest.raises(AnalysisError, match="are not known"):
        check_resolved(image, replace(values.graph, unresolved=(last,)), values, ())


def test_returns_that_go_astray_or_unwind_are_refused():
    image, values = settled()
    last = image.location(values.graph.points[0].block.last_address)
    with pytest.raises(AnalysisError) as caught:
        check_resolved(image, values.graph, replace(values, strays={0: (0x8000, 0x8004, 0x8008)}), ())
    assert f"the return at {last} goes to " in str(caught.value)
    assert " or elsewhere, and not to its caller" in str(caught.value)
    with pytest.raises(AnalysisError, match="not known to be one of its function"):
        check_resolved(image, values.graph, replace(values, unwinding=(0,)), ())


def test_a_function_without_a_way_to_its_end_never_returns():
    image, values = settled()
    edges = {edge: one for edge, one in values.edges.items() if edge.target != EXIT}
    with pytest.raises(AnalysisError, match="f never returns"):
        check_resolved(image, values.graph, replace(values, edges=edges), ())


def test_targets_grow_where_some_are_new_and_no_fact_names_them():
    values = SimpleNamespace(indirect={8: (1, 2), 16: (3,), 24: (), 32: (5,)})
    found = grown_targets(values, {8: (1,), 16: (3,), 24: (4,)}, asserted={32})
    assert found == {8: {1, 2}}
    assert grown_targets(values, {}, asserted=()) == {8: {1, 2}, 16: {3}, 32: {5}}


def test_the_graph_is_made_anew_at_once_where_each_has_one_target():
    assert have_one_each({8: {1}, 16: {3}})
    assert not have_one_each({8: {1}, 16: {3, 4}})
    assert not have_one_each({})


SWITCHED = """
.syntax unified
.thumb
.global entry
.type entry, %function
entry:
 push {r4, lr}
 mov r4, r0
 bl change
 bl count
 pop {r4, pc}
.size entry, .-entry
.type change, %function
change:
 push {r4, lr}
 str sp, [r0]
 ldr r3, [r0, #4]
 mov sp, r3
 pop {r4, pc}
.size change, .-change
.type count, %function
count:
 push {r4, lr}
 adds r4, r4, #1
 bl leaf
 pop {r4, pc}
.size count, .-count
.type leaf, %function
leaf:
 bx lr
.size leaf, .-leaf
"""


def test_a_switch_of_contexts_is_named_and_not_what_comes_after_it(tmp_path, monkeypatch, capsys):
    """Of ChibiOS the return of a function was named that had not lost the stack, but was called with a lost one."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "guest.elf").write_bytes(image_of(SWITCHED, load_target("cortex-m4")).elf)
    assert main(["bound", "guest.elf", "--entry", "entry", "--target", "cortex-m4", "-q"]) == ExitCode.NO_BOUND
    told = capsys.readouterr().err
    assert "the return at change+0x" in told
    assert "of a switch of contexts link one that just returns in its place" in told
