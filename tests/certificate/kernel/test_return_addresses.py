"""Returns that are none: code that jumps by the form of a return, or that is called its caller's. Each was accepted."""

import re
from dataclasses import replace
from types import SimpleNamespace
from unittest.mock import patch

import pytest

from tests.certificate.forgeries import graph_instead, sealed, solved_again
from tests.certificate.kernel.test_code import document_of
from tests.certificate.kernel.test_contexts import stack
from tests.support import assembler, guest_of
from wcet_probe.analyzer.ipet.flow_system import FlowEdge, FlowNode
from wcet_probe.catalog.lookup import load_target
from wcet_probe.certificate.check import check_bound
from wcet_probe.certificate.kernel.return_addresses import SparingMachine, _moved
from wcet_probe.certificate.values.numbers import ANY, TOP
from wcet_probe.certificate.values.state import State
from wcet_probe.errors import VerificationError

LISTED = {
    "id": "return-address",
    "statement": "functions return to their callers",
    "check": "every call that the second engine repeats",
    "executions": None,
}


ASSUMED = frozenset({LISTED["id"], "stack-alignment", "stack-separation"})


def forged(functions, change, target="cortex-m4", assumed=ASSUMED):
    """What the checker says of a forged proof of ``f`` that lists what is ``assumed``, and the bound that it claims."""
    core = load_target(target)
    guest = guest_of(assembler(functions, core), core)
    document, binary = document_of(guest)
    document = solved_again(document, lambda *one: change(guest, *one))
    text = document["bound"]["certificates"][0]
    document["bound"]["entry"] = re.findall(r"^entry-function (\S+)", text, re.MULTILINE)[0]
    listed = document["bound"]["assumptions"]
    missing = assumed - {one["id"] for one in listed}
    document["bound"]["assumptions"] = [*listed, *({**LISTED, "id": one} for one in sorted(missing))]
    with patch("wcet_probe.certificate.check.check_shown", return_value="nothing"):
        return check_bound(sealed(document), binary), document["bound"]


def forged_where_ways_meet(functions, change):
    """The same, as if there were more ways to each node: of a single one the checker needs no record.

    It is refused else, by what it knows of that way, or not checked.
    """
    try:
        found, _ = forged(functions, change)
        assert [one.check for one in found.findings if one.verdict != "ok"] == ["graph"]
    except VerificationError as error:
        assert "the graph lacks the edge" in str(error)  # noqa: PT017  (one of two ways to see it)
    with patch("wcet_probe.certificate.kernel.coverage.only_edges", return_value={}):
        return forged(functions, change)


CALLEE = {
    "f": "mov r4, lr\n bl g\n" + "add r0, r0, #1\n" * 4 + "bx r4\n",
    "g": "b 1f\n nop\n 1: bx lr\n",
}


def test_code_of_a_function_is_not_called_that_of_its_caller():
    """Its return was the caller's then, and what stands behind the call was executed by nobody."""

    def change(_, problem, derivations, followed):
        of_g, behind, called = "0x8000002/g+0x4", "f+0x6", "g+0x4"
        nodes = tuple(replace(one, name=one.name.replace(of_g, called)) for one in problem.nodes if one.name != behind)
        edges = tuple(
            replace(one, source=one.source.replace(of_g, called), target=one.target.replace(of_g, called))
            for one in problem.edges
            if one.target != behind
        )
        said = [line.replace(of_g, called) for line in followed if not line.startswith(f"invariant {behind} ")]
        said = [re.sub(rf"^(invariant {re.escape(called)} r14) .*", r"\1 any 0 1 4294967295", line) for line in said]
        changed = replace(problem, nodes=nodes, edges=edges, exits=(called,), exit_costs={called: 0})
        return changed, derivations, said

    found, bound = forged_where_ways_meet(CALLEE, change)
    assert bound["instructions"] == 4
    assert [one.check for one in found.findings if one.verdict != "ok"] == ["graph"]


TWICE = {
    "f": "mov r4, lr\n bl g\n" + "add r0, r0, #1\n" * 4 + "bl g\n bx r4\n",
    "g": "b 1f\n nop\n 1: bx lr\n",
}


def test_code_of_another_context_is_not_jumped_to():
    """What the first call jumps to returned from the second one then; what is between them was executed by nobody."""

    def change(_, problem, derivations, followed):
        first, second = sorted({f"{one.name.rpartition('/')[0]}/" for one in problem.nodes if "/" in one.name})
        jump = next(edge for edge in problem.edges if edge.source == f"{first}g+0x0")
        gone = f"{first}g+0x4"
        edges = [edge for edge in problem.edges if gone not in {edge.source, edge.target}]
        edges.append(replace(jump, target=f"{second}g+0x4"))
        unknown = rf"^(invariant (?:{re.escape(second)}g\+0x4|f\+0x1a) r14) .*"
        said = [re.sub(unknown, r"\1 any 0 1 4294967295", line) for line in followed if line.split(" ")[1] != gone]
        nodes = tuple(one for one in problem.nodes if one.name != gone)
        return replace(problem, nodes=nodes, edges=tuple(edges)), derivations, said

    found, bound = forged(TWICE, change)
    assert bound["instructions"] == 5
    assert [one.check for one in found.findings if one.verdict != "ok"] == ["graph"]


JUMPS = {
    "by a register": ("mov r4, lr\n ldr r14, =h\n bx r12\n", "bx lr"),
    "by a word of the stack": ("push {r4, lr}\n ldr r3, =h\n str r3, [sp, #4]\n bx r12\n", "pop {r4, pc}"),
    "by a byte of one": ("push {r4, lr}\n mov r3, #9\n strb r3, [sp, #5]\n bx r12\n", "pop {r4, pc}"),
}


@pytest.mark.parametrize("name", JUMPS)
def test_what_is_said_to_be_unknown_is_no_return_address(name):
    """A certificate need not say that code has put a number where the address to return to was."""
    before, jump = JUMPS[name]
    body = before.replace("bx r12", jump)
    functions = {"f": "bx lr\n", "g": body, "h": "add r0, r0, #1\n" * 4 + "bx r4\n"}

    def change(guest, problem, derivations, followed):
        start = guest.image.symbols["g"].address
        last = next(one for one in guest.instructions if one.address >= start and one.text == jump)
        count = sum(start <= one.address < last.address for one in guest.instructions)
        many = 1 if problem.unit == "instructions" else 20
        nodes = FlowNode("g+0x0", start, many * count), FlowNode("g+0x1", last.address, many)
        stack = "invariant g+0x1 r13 stack " + ("4294967288 0 0" if "push" in before else "0 0 0")
        said = ["invariant g+0x0 r13 stack 0 0 0", "invariant g+0x0 r14 link 0 0 0", stack]
        said += ["invariant g+0x1 r14 any 0 1 4294967295", "invariant g+0x1 r4 any 0 1 4294967295"]
        changed = replace(
            problem,
            entry_function="g",
            entry="g+0x0",
            nodes=nodes,
            edges=(FlowEdge("x:fall:1", "g+0x0", "g+0x1", 0),),
            exits=("g+0x1",),
            exit_costs={"g+0x1": 0},
        )
        return changed, derivations, said if followed else []

    found, bound = forged_where_ways_meet(functions, change)
    assert bound["instructions"] < 8
    assert [one.check for one in found.findings if one.verdict != "ok"] == ["graph"]


LONG = "add r0, r0, #1\n" * 6


def kept_at(*nodes, places="r13 stack 0 0 0|r14 link 0 0 0"):
    """Records of what holds where ``nodes`` begin."""
    return [f"invariant {node} {place}" for node in nodes for place in places.split("|")]


UNKNOWN = "any 0 1 4294967295"
REACHED = {
    "by a number out of a table": ("ldr r3, =x\n bx r3\n", []),
    "by a number that was pushed": ("ldr r3, =x\n push {r3}\n pop {pc}\n", []),
}


@pytest.mark.parametrize("name", REACHED)
def test_what_comes_by_a_jump_with_the_form_of_a_return_is_followed_too(name):
    """The places of the address to return to were not followed along it: where it leads they seemed as they were."""
    jump, _ = REACHED[name]
    body = f"mov r4, lr\n cmp r0, #0\n beq 1f\n ldr r4, =h\n {jump} .globl x\n .thumb_func\n x: 1: mov lr, r4\n bx lr\n"
    functions = {"f": "bx lr\n", "g": body, "h": LONG + "bx lr\n"}

    def change(guest, problem, derivations, followed):
        nodes = {"g": ("g", 0, 3), "g+6": ("g", 6, jump.count("\n") + 1), "x": ("x", 0, 2)}
        edges = {"a:jump": ("g", "x"), "a:fall": ("g", "g+6"), "b:return": ("g+6", "x")}
        said = [*kept_at("g", "g+6"), f"invariant g+6 r4 {UNKNOWN}"]
        said += kept_at("x", places=f"r13 stack 0 0 0|r14 {UNKNOWN}|r4 {UNKNOWN}")
        return graph_instead(problem, guest, nodes, edges, ["x"]), derivations, said if followed else []

    found, bound = forged(functions, change)
    assert bound["instructions"] < 14
    assert [one.check for one in found.findings if one.verdict != "ok"] == ["graph"]


HIDDEN = {
    "in a register": "add r1, sp, #4\n ldr r3, =h\n b 1f\n 1: str r3, [r1]\n",
    "in a word of the stack": "add r1, sp, #4\n str r1, [sp, #-4]\n ldr r3, =h\n b 1f\n"
    " 1: ldr r1, [sp, #-4]\n str r3, [r1]\n",
}


@pytest.mark.parametrize("name", HIDDEN)
def test_a_store_by_a_stack_pointer_that_is_called_unknown_is_to_its_place(name):
    """A certificate need not say that a register, or a word, points to where the address to return to is."""
    functions = {"f": "bx lr\n", "g": f"push {{r4, lr}}\n {HIDDEN[name]} pop {{r4, pc}}\n", "h": LONG + "bx r4\n"}

    def change(guest, problem, derivations, followed):
        start = guest.image.symbols["g"].address
        own = [one for one in guest.instructions if start <= one.address < guest.image.symbols["h"].address]
        at, last = (next(i for i, one in enumerate(own) if one.text.startswith(text)) for text in ("b #", "pop"))
        nodes = {"g": ("g", 0, at + 1), "g+8": ("g", own[at + 1].address - start, last - at)}
        said = kept_at("g") + kept_at("g+8", places=f"r13 stack 4294967288 0 0|r1 {UNKNOWN}")
        changed = graph_instead(problem, guest, nodes, {"a:jump": ("g", "g+8")}, ["g+8"])
        return changed, derivations, said if followed else []

    found, bound = forged_where_ways_meet(functions, change)
    assert bound["instructions"] < 12
    assert [one.check for one in found.findings if one.verdict != "ok"] == ["graph"]


@pytest.mark.parametrize(("at", "size"), [(-4, 4), (-3, 1), (-6, 4), (-5, 2)])
def test_a_word_that_is_stored_over_in_part_holds_no_return_address(at, size):
    state, machine = State({"r13": stack(-8)}), SparingMachine(SimpleNamespace(segments=()))
    machine.store(stack(at), size, TOP, None, state)
    assert -4 not in _moved({-4, "r4"}, state)
    assert "r4" in _moved({-4, "r4"}, state)
    machine.store(ANY, size, TOP, None, state)
    assert 12 in _moved({12}, state)


LEFT = """
 push {r4, lr}
 and r2, r1, #12
 str r0, [sp, r2]
 cmp r0, #0
 popeq {r4, pc}
 add r0, r0, #1
 pop {r4, pc}
"""


def test_a_return_that_is_called_falling_through_is_charged_as_a_return():
    """What it loads may miss the cache, which leaving the node pays for."""
    functions = {"f": "push {r4, lr}\n bl g\n pop {r4, pc}\n", "g": LEFT}

    def change(guest, problem, derivations, followed):
        own = next(cost for one, cost in zip(guest.instructions, guest.costs, strict=True) if "popeq" in one.text)
        cheap = (own.executed_cycles - own.skipped_cycles) * (problem.unit == "cycles")
        victim = next(one for one in problem.edges if re.search(r"/g\+0x0>.*:return$", one.name))
        called = f"{victim.name}:fall"
        edges = tuple(replace(one, name=called, extra_cost=cheap) if one is victim else one for one in problem.edges)
        constraints = tuple(
            replace(one, coefficients={called if k == victim.name else k: v for k, v in one.coefficients.items()})
            for one in problem.constraints
        )
        counted = f"miss {victim.source} "
        said = [line.replace(f" {victim.name}", f" {called}") for line in followed if not line.startswith(counted)]
        return replace(problem, edges=edges, constraints=constraints), derivations, said

    with pytest.raises(VerificationError, match="costs at least"):
        forged(functions, change, "arm926ej-s")
