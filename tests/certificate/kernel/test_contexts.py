"""Returns whose addresses nobody can follow: where they go by the assumption, and what that does not speak of."""

import copy
import json
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

import pytest

from tests.certificate.caches.test_caches import check, proved
from tests.certificate.forgeries import sealed, solved_again
from tests.resealed import reseal
from tests.support import assembler, image_of
from wcet_probe.analyzer.facts.source_index import index_sources
from wcet_probe.catalog.lookup import load_target
from wcet_probe.certificate.check import check_bound
from wcet_probe.certificate.kernel.contexts import Returns, context_of, keeps_contexts
from wcet_probe.certificate.machines.machine import Machine
from wcet_probe.certificate.values.numbers import ANY, LINK, TOP, Value, constant
from wcet_probe.cli import main
from wcet_probe.errors import ExitCode, VerificationError
from wcet_probe.model.instruction import Control

STACKED = ("avl-best-fit", "cortex-m0plus", "malloc")


def test_a_function_that_stores_to_its_stack_returns_by_the_assumption():
    found = check(proved(*STACKED), *STACKED[:2])
    assert all(one.verdict == "ok" for one in found.findings)


def test_where_the_assumption_is_not_listed_the_returns_are_not_checked():
    document = copy.deepcopy(proved(*STACKED))
    listed = document["bound"]["assumptions"]
    document["bound"]["assumptions"] = [one for one in listed if one["id"] != "return-address"]
    assert len(document["bound"]["assumptions"]) == len(listed) - 1
    found = check(sealed(document), *STACKED[:2])
    graph = next(one for one in found.findings if one.check == "graph")
    assert (graph.verdict, graph.found[:20]) == ("not checked", "where the return at ")


def test_what_the_analysis_knows_of_a_return_and_the_checker_does_not_is_not_checked(tmp_path, monkeypatch, capsys):
    """A loop that fills an array up to a pointer behind it, by a result that the caller gave the place of.

    Such results were refused: the assumption that the checker took for the return was not among those of the bound.
    """
    monkeypatch.chdir(tmp_path)
    code = {
        "make": (
            "push {r4, lr}\nsub sp, #48\nmov r3, sp\nadd r2, sp, #48\n1: str r1, [r3], #4\ncmp r3, r2\n"
            "add r1, r1, #1\nbne 1b\nldr r1, [sp, #44]\nstr r1, [r0]\nadd sp, #48\npop {r4, pc}"
        ),
        "f": "push {r4, lr}\nsub sp, #8\nmov r0, sp\nbl make\nldr r0, [sp]\nadd sp, #8\npop {r4, pc}",
    }
    core = load_target("cortex-m4")
    Path("f.elf").write_bytes(image_of(assembler(code, core), core).elf)
    assert main(["bound", "f.elf", "--entry", "f", "--run", "f()", "--json", "-q"]) == ExitCode.OK
    Path("f.json").write_text(capsys.readouterr().out, "utf-8")
    with patch("wcet_probe.certificate.check.refutation", return_value=None):  # trials take seconds, and show nothing
        assert main(["verify", "--image", "f.elf", "f.json"]) == ExitCode.CHECKED_IN_PART
    assert "where the return at " in capsys.readouterr().out


def test_a_stack_pointer_that_is_not_told_is_not_that_of_the_entry():
    def change(problem, derivations, followed):
        starts = "|".join(re.escape(one.name) for one in problem.nodes if one.name.endswith("/take+0x0"))
        moved = [re.sub(rf"^(invariant (?:{starts}) r13 stack) .*", r"\1 0 4 1", line) for line in followed]
        assert moved != followed or not any(line.startswith("invariant ") for line in followed)
        return problem, derivations, moved

    try:
        found = check(sealed(solved_again(proved(*STACKED), change)), *STACKED[:2])
    except VerificationError:
        return  # something else does not follow then
    assert "graph" in {one.check for one in found.findings if one.verdict != "ok"}


# --------------------------------------------------------------------------------------------------- one small graph

SITE, START, BEHIND = 0x100, 0x200, 0x104
IN = f"{SITE:#x}/"


def code_of(text, address, control=Control.INDIRECT):
    return SimpleNamespace(text=text, address=address, size_bytes=4, control=control)


def graph_of(*, back="f+0x4", address=BEHIND, exits=("f+0x4",), call=Control.CALL):
    nodes = {"f+0x0": (SITE, 0), back: (address, 0), f"{IN}g+0x0": (START, 0)}
    edges = [
        SimpleNamespace(source="f+0x0", target=f"{IN}g+0x0"),
        *([SimpleNamespace(source=f"{IN}g+0x0", target=back)] if back else []),
    ]
    leading = {node: [edge for edge in edges if edge.source == node] for node in nodes}
    code = {
        "f+0x0": [code_of("bl #0x200", SITE, call)],
        back: [code_of("bx lr", address)],
        f"{IN}g+0x0": [code_of("pop {r4, pc}", START)],
    }
    ways_out = dict.fromkeys(exits, 0)
    return SimpleNamespace(nodes=nodes, edges=edges, leading=leading, exits=ways_out, entry="f+0x0"), code


def image():
    own = SimpleNamespace(address=START, name="g", is_function=True)
    first = SimpleNamespace(address=SITE, name="f", is_function=True)
    return SimpleNamespace(symbols={"f": first, "g": own}, function_at=lambda at: own if at >= START else first)


def stack(offset):
    return Value("stack", offset, offset, 0)


def goes_back(graph, code, *, entered=-8, left=-8, node=f"{IN}g+0x0"):
    invariants = {one: {"r13": stack(0)} for one in graph.nodes} | {f"{IN}g+0x0": {"r13": stack(entered)}}
    return Returns(graph, code, invariants, image(), "r13").go_to_caller(node, [stack(left)])


def test_a_return_goes_behind_the_call_of_its_context_and_nowhere_else():
    assert context_of(f"{IN}g+0x0") == IN
    assert goes_back(*graph_of())
    assert not goes_back(*graph_of(address=BEHIND + 4))
    assert not goes_back(*graph_of(), left=-4)
    assert not goes_back(*graph_of(back=f"{IN}f+0x4"))
    assert goes_back(*graph_of(), node="f+0x4", left=0)
    assert not goes_back(*graph_of(exits=()), node="f+0x4", left=0)


def renamed(old, new, address):
    """The graph with another node in the place of ``old``."""
    graph, code = graph_of()
    graph.nodes[new], code[new] = (address, 0), code.pop(old)
    del graph.nodes[old]
    for edge in graph.edges:
        edge.source, edge.target = (new if end == old else end for end in (edge.source, edge.target))
    return graph, code


def test_edges_enter_a_context_where_its_function_begins_and_leave_it_behind_the_call():
    def is_kept(graph, code):
        return keeps_contexts(graph, code, image())

    assert is_kept(*graph_of())
    assert not is_kept(*renamed(f"{IN}g+0x0", "g+0x0", START)), "a call that stays in its context"
    assert not is_kept(*renamed(f"{IN}g+0x0", f"{IN}g+0x4", START + 4)), "a context that begins within a function"
    assert not is_kept(*graph_of(address=BEHIND + 4)), "a return to elsewhere in the caller"


def test_each_entry_of_a_function_has_the_stack_pointer_of_its_return():
    graph, code = graph_of()
    graph.nodes[f"{IN}g+0x0'"], graph.leading[f"{IN}g+0x0'"] = (START, 0), []
    code[f"{IN}g+0x0'"] = code[f"{IN}g+0x0"]
    for other, goes in ((-8, True), (-4, False)):
        invariants = {one: {"r13": stack(-8)} for one in graph.nodes} | {f"{IN}g+0x0'": {"r13": stack(other)}}
        returns = Returns(graph, code, invariants, image(), "r13")
        assert returns.go_to_caller(f"{IN}g+0x0", [stack(-8)]) == goes


def test_what_jumped_to_a_function_is_returned_from_with_it():
    """But where the stack pointer is not the one of the function that jumped."""
    jumped = graph_of(back="f+0x4", exits=(f"{IN}g+0x0",), call=Control.BRANCH)
    assert goes_back(*jumped, entered=0, left=0)
    assert not goes_back(*jumped, entered=-8, left=-8)


@pytest.mark.parametrize(("target", "is_kept"), [(None, True), (BEHIND, False)])
def test_a_context_is_left_by_a_conditional_return_and_by_no_branch(target, is_kept):
    graph, code = graph_of()
    last = code_of("beqlr", START, Control.CONDITIONAL_BRANCH)
    last.branch_target = target
    code[f"{IN}g+0x0"] = [last]
    assert keeps_contexts(graph, code, image()) == is_kept


OTHERS = "bx r3", "ldr pc, [r3, #4]", "mov pc, r3", "ldr pc, [sp, #4]", "b #0x300", "popeq {r4}"
FORMS = "bx lr", "bxeq lr", "popls {r4, r5, pc}", "pop.w {r4, pc}", "ldm sp!, {r4, pc}", "ldr pc, [sp], #4", "blr"


@pytest.mark.parametrize("text", OTHERS)
def test_what_is_no_return_is_not_followed(text):
    graph, code = graph_of()
    code[f"{IN}g+0x0"] = [code_of(text, START)]
    assert not goes_back(graph, code)


@pytest.mark.parametrize("text", FORMS)
def test_returns_have_several_forms(text):
    graph, code = graph_of()
    code[f"{IN}g+0x0"] = [code_of(text, START)]
    assert goes_back(graph, code)


def test_a_known_number_in_place_of_the_return_address_is_a_jump():
    assert Machine.way_of("return", constant(8)) == "jump"
    assert Machine.way_of("return", TOP) == "return"  # of which nothing is known: it may be the saved one
    assert Machine.way_of("return", Value("@s1", 0, 0, 0)) == "return"  # so it is if it has a name
    assert Machine.way_of("return", ANY) == "return"
    assert Machine.way_of("call", TOP) == "call"
    assert not LINK.may_be_stack


# ------------------------------------------------------------------------------------------------- facts of each call

CALLED_TWICE = """volatile int port;
__attribute__((noinline)) void g(int n)
{
    /* loop: rounds */
    for (int i = 0; i < n; i++) {
        /* point: round */
        port = i;
    }
}
void f(int n)
{
    port = 1;
    g(n);
    port = 2;
    g(n);
}
"""
OF_EACH_CALL = """[[loop]]
function = "g"
label = "rounds"
max = 50
because = "n is small"
sha256 = "{0}"
[[flow]]
function = "g"
per = "call"
sum = {{ "point round" = 1 }}
max = 3
because = "n is smaller"
sha256 = "{0}"
"""


def test_a_function_that_is_jumped_to_lends_its_calls_no_facts(tmp_path, monkeypatch, capsys):
    """Its code was called that of its caller: what a call before executed was counted to the one that the jump is."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "guest.c").write_text(CALLED_TWICE)
    (tmp_path / "firmware.elf").write_bytes(image_of(CALLED_TWICE, load_target("cortex-m4"), ".c").elf)
    known = index_sources({"guest.c": CALLED_TWICE}).function("g").sha256
    (tmp_path / "facts.toml").write_text(OF_EACH_CALL.format(known))
    assert main(["bound", "firmware.elf", "--entry", "f", "--facts", "facts.toml", "--json", "-q"]) == 0
    document = json.loads(capsys.readouterr().out)
    jump = next(line for line in document["bound"]["certificates"][0].split("\n") if re.match("edge f.*:jump", line))
    site = jump.split(" ")[3].partition("/")[0]

    def as_the_callers(text):
        return text.replace(f"{site}/g+0x", "f+0x1000")

    def change(problem, derivations, followed):
        limits = [one for one in problem.constraints if one.name.startswith("flow:")]
        counted = {name: 1 for one in limits for name, factor in one.coefficients.items() if factor == 1}
        both = {**counted, jump.split(" ")[1]: -3}
        others = [one for one in problem.constraints if one not in limits]
        return replace(problem, constraints=(replace(limits[0], coefficients=both), *others)), derivations, followed

    document["bound"]["entry"] = "f"
    before, cheaper = document["bound"]["instructions"], solved_again(document, change)
    assert cheaper["bound"]["instructions"] < before
    cheaper = json.loads(as_the_callers(json.dumps(cheaper)))
    with (
        patch("wcet_probe.certificate.check.check_shown", return_value="nothing"),
        patch("wcet_probe.evidence.firmware.check_bound") as checked,
    ):
        found = []
        checked.side_effect = lambda *given: found.append(check_bound(*given)) or found[0]
        reseal(cheaper, tmp_path / "f.json")
        main(["verify", "f.json", "--image", "firmware.elf", "--facts", "facts.toml"])
    assert [one.check for one in found[0].findings if one.verdict != "ok"] == [
        "constraints in instructions",
        "constraints in cycles",
    ]
