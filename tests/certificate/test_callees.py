"""Calls that are not expanded: callees with certificates of their own are checked in full, and false ones are refused.

Tests: certificate.check, certificate.kernel.verify, certificate.kernel.unfollowed, certificate.caches.charged,
analyzer.certified, analyzer.certified_callees.
"""

import json
from dataclasses import replace
from unittest.mock import patch

import pytest

from tests.certificate.forgeries import problem_of, sealed
from tests.support import assembler, guest_of
from wcet_probe.analyzer.bound import prove
from wcet_probe.analyzer.facts.language import Facts
from wcet_probe.analyzer.graph import expansion, supergraph
from wcet_probe.analyzer.ipet.certificate import certificate
from wcet_probe.analyzer.ipet.flow_system import flow_system, solve
from wcet_probe.analyzer.request import BoundRequest
from wcet_probe.catalog.lookup import load_target
from wcet_probe.certificate.check import check_bound
from wcet_probe.certificate.facts.asserted import Asserted, Fact
from wcet_probe.certificate.facts.findings import Binary
from wcet_probe.certificate.kernel.left_behind import callee_of
from wcet_probe.errors import VerificationError
from wcet_probe.reports.formats.bound_document import bound_section

NEST = {
    "h": "push {r4, lr}\n movs r4, #5\n1: subs r4, #1\n bne 1b\n adds r0, r0, #1\n pop {r4, pc}",
    "g": "push {r4, lr}\n movs r4, #3\n1: bl h\n subs r4, #1\n bne 1b\n pop {r4, pc}",
    "f": "push {r4, r5, r6, lr}\n movs r4, #7\n1: bl g\n bl h\n subs r4, #1\n bne 1b\n pop {r4, r5, r6, pc}",
}
"""Counters in registers that callees save: each loop is bounded only if they give them back."""
C = """typedef unsigned u; volatile u out; u table[8] = {1, 2, 3, 4, 5, 6, 7, 8};
__attribute__((noinline)) u h(u x) { for (u i = 0; i < 5; i++) out = i; return x & 7; }
__attribute__((noinline)) u g(u x) { u s = 0; for (u i = 0; i < 3; i++) s += h(x + i); return s; }
u f(u x) { u s = 0; for (u i = 0; i < 6; i++) s += table[h(x) & 7] + g(x ^ i); return s; }
"""


@pytest.fixture(name="summarised", autouse=True)
def _summarised(monkeypatch):
    """Every function that is called is analysed once."""

    def all_of_them(graph_of, entry, refused, *_others):
        return frozenset(expansion._calls(graph_of, entry).keys() - {entry, *refused})

    monkeypatch.setattr(supergraph, "to_summarise", all_of_them)


def proved(guest):
    request = (guest.image, guest.target, guest.instructions, guest.costs, "f", Facts(), {}, {})
    section = json.loads(json.dumps(bound_section(prove(BoundRequest(*request, summaries=True)))))
    document = {"image": {"sha256": guest.image.sha256}, "target": guest.target.name, "bound": section}
    return document, Binary(guest.image, guest.instructions, guest.costs, guest.target, Asserted(), {})


def of(functions, name="cortex-m4"):
    target = load_target(name)
    return proved(guest_of(assembler(functions, target), target))


def entries(document):
    return [text.split("\n")[2].split()[1] for text, _ in document["bound"]["callees"]]


@pytest.mark.parametrize("name", ["cortex-m4", "cortex-m3", "cortex-m0plus"])
def test_a_bound_whose_callees_are_not_expanded_is_checked_in_full(name):
    document, binary = of(NEST, name)
    checked = check_bound(document, binary)
    assert checked.is_full, checked.findings
    assert document["bound"]["summarised"] == ["g", "h"]
    assert entries(document) == ["h", "g"]
    found = {one.check: one.found for one in checked.findings}
    assert found["callee h"].startswith("at most 14 instructions")


@pytest.mark.parametrize(
    ("name", "missing"), [("cortex-m4", set()), ("mpc603e", {"callee h", "callee g", "costs in cycles"})]
)
def test_where_caches_are_nobody_checks_what_a_callee_leaves_of_them(name, missing):
    document, binary = proved(guest_of(C, load_target(name), ".c"))
    checked = check_bound(document, binary)
    assert {one.check for one in checked.findings if one.verdict != "ok"} == missing
    assert entries(document) == ["h", "g"]


def at_cost(text, change):
    """A certificate of the flow problem with other costs."""
    problem, derivations, said = problem_of(text)
    problem = change(problem)
    return certificate(problem, solve(flow_system(problem)), derivations, said)


def cheaper(problem):
    first, *others = problem.nodes
    return replace(problem, nodes=(replace(first, cost=first.cost - 1), *others))


def cheaper_calls(problem):
    edges = (replace(one, extra_cost=one.extra_cost - (":call:" in one.name)) for one in problem.edges)
    return replace(problem, edges=tuple(edges))


def with_callee(number, texts):
    def change(section):
        section["callees"][number] = texts(section["callees"][number])

    return change


def with_calls_for_less(section):
    section["certificates"] = [at_cost(text, cheaper_calls) for text in section["certificates"]]
    for unit, text in zip(("instructions", "cycles"), section["certificates"], strict=True):
        section[unit] = int(text.split("\nbound ")[1].split("\n")[0])


def without(number):
    def change(section):
        entry = section["callees"].pop(number)[0].split("\n")[2].split()[1]
        section["summarised"].remove(entry)

    return change


def renamed(section):
    """The certificates of h, as if they were of g."""
    section["callees"][1] = [one.replace("entry-function h", "entry-function g") for one in section["callees"][0]]


FORGED = {
    "cheaper callee": (with_callee(0, lambda own: [at_cost(one, cheaper) for one in own]), "costs at least"),
    "calls for less": (with_calls_for_less, "costs at least"),
    "none of h": (without(0), "lacks the edge"),
    "none of g": (without(1), "lacks the edge"),
    "one that is no callee": (lambda section: section["summarised"].remove("g"), "not the functions"),
    "callees of each other": (lambda section: section["callees"].reverse(), "lacks the edge"),
    "another one's": (renamed, "the entry is not at g"),
    "of two functions": (
        with_callee(1, lambda own: [own[0], own[1].replace("entry-function g", "entry-function h")]),
        "different functions",
    ),
    "one unit": (with_callee(0, lambda own: own[:1]), "other units"),
    "another image": (
        with_callee(0, lambda own: [one.replace(one.split("\n")[1], "image " + "0" * 64) for one in own]),
        "another image",
    ),
    "a kept counter": (
        with_callee(0, lambda own: [own[0].replace("r4 number 1 1 4", "r4 number 1 1 3"), own[1]]),
        "what is said of r4",
    ),
    "no loop bound": (
        with_callee(0, lambda own: [one.replace("loop h+0x4 4 ", "loop h+0x4 3 ") for one in own]),
        "not verified",
    ),
}


@pytest.mark.parametrize("name", FORGED)
def test_a_false_certificate_of_a_callee_is_refused(name):
    document, binary = of(NEST)
    change, reason = FORGED[name]
    before = json.dumps(document["bound"])
    change(document["bound"])
    assert json.dumps(document["bound"]) != before
    with (
        patch("wcet_probe.certificate.check.check_shown", return_value="nothing"),
        pytest.raises(VerificationError, match=reason),
    ):
        check_bound(sealed(document), binary)


FRAME = "push {r0, r1, r2, lr}\n movs r0, #3\n str r0, [sp]\n bl g\n ldr r1, [sp]\n"
LEAVE = "b 1f\n1: add sp, #12\n pop {pc}"
LIES = {
    "a register that is not kept": (
        {"g": "movs r4, #9\n bx lr", "f": "push {r4, lr}\n movs r4, #1\n bl g\n movs r0, r4\n b 1f\n1: pop {r4, pc}"},
        lambda callee: replace(callee, results={one: own for one, own in callee.results.items() if one != "r4"}),
        "what is said of r4",
    ),
    "a result": (
        {"g": "lsrs r0, r0, #1\n bx lr", "f": "push {r4, lr}\n bl g\n b 1f\n1: pop {r4, pc}"},
        lambda callee: replace(callee, results={**callee.results, "r0": callee.results["r0"]._replace(high=7)}),
        "what is said of r0",
    ),
    "a store to the frame of the caller": (
        {"g": "str r0, [sp]\n bx lr", "f": FRAME + LEAVE},
        lambda callee: replace(callee, stores=frozenset()),
        "what is said of (stack|r1|-)",
    ),
    "a store by an argument": (
        {
            "g": "str r1, [r0]\n bx lr",
            "f": FRAME.replace("bl g", "mov r0, sp\n bl g") + LEAVE,
        },
        lambda callee: replace(callee, stores=frozenset()),
        "what is said of (stack|r1|-)",
    ),
}


@pytest.mark.parametrize("name", LIES)
def test_what_a_prover_believes_of_a_callee_the_checker_finds_out_by_itself(name):
    functions, lie, reason = LIES[name]
    with patch("wcet_probe.analyzer.certified.callee_of", lambda *given: lie(callee_of(*given))):
        document, binary = of(functions)
    assert document["bound"].get("callees")
    with pytest.raises(VerificationError, match=reason):
        check_bound(document, binary)


def test_the_return_address_that_a_callee_writes_over_is_not_believed_to_stay():
    functions = {"g": "str r0, [sp, #4]\n bx lr", "f": "push {r4, lr}\n bl g\n b 1f\n1: pop {r4, pc}"}
    lie = {"stores": frozenset()}
    with patch("wcet_probe.analyzer.certified.callee_of", lambda *given: replace(callee_of(*given), **lie)):
        document, binary = of(functions)
    with pytest.raises(VerificationError, match="what is said of"):
        check_bound(document, binary)


def test_a_callee_is_not_called_for_more_than_it_is_checked_for():
    functions = {"g": "ldr r0, [r0]\n bx lr", "f": "push {r1, r2, r4, lr}\n mov r0, sp\n bl g\n pop {r1, r2, r4, pc}"}
    document, binary = of(functions)
    assert check_bound(document, binary).is_full
    ((text, of_cycles),) = document["bound"]["callees"]
    (unknown,) = [line for line in text.split("\n") if line.startswith("invariant g+0x0 r0 any")]
    document["bound"]["callees"] = [[text.replace(f"{unknown}\n", ""), of_cycles]]
    with pytest.raises(VerificationError, match="is not checked for what r0 may hold"):
        check_bound(sealed(document), binary)


def test_facts_of_several_functions_leave_the_graph_open():
    document, binary = of(NEST)
    asserted = Asserted((Fact("facts.toml:1", "flow", {}),))
    with (
        patch("wcet_probe.certificate.check.check_hashes", return_value=(0, [])),
        patch("wcet_probe.certificate.check.check_assumptions", return_value=()),
    ):
        found = check_bound(document, replace(binary, asserted=asserted))
    (graph,) = [one for one in found.findings if one.check == "graph"]
    assert graph.verdict == "not checked"
    assert "facts of several functions" in graph.found


def test_without_certificates_of_callees_the_graph_is_open():
    document, binary = of(NEST)
    del document["bound"]["callees"]
    found = {one.check: one.verdict for one in check_bound(sealed(document), binary).findings}
    assert found["graph"] == found["limits of paths"] == "not checked"


def test_there_are_no_certificates_of_callees_that_rest_on_what_the_bound_does_not():
    """The analysis takes what the callee leaves for a stack address, perhaps, and the checker for a number."""
    choose = "ite eq\n moveq r3, r7\n movne r3, #3\n ite eq\n moveq r6, r3\n movne r6, #3"
    functions = {
        "g": f"push {{r7, lr}}\n cmp r0, #1\n {choose}\n pop {{r7, pc}}",
        "f": "push {r4, r5, r6, r7, lr}\n sub sp, #12\n bl g\n str r4, [r6]\n add sp, #12\n pop {r4, r5, r6, r7, pc}",
    }
    document, binary = of(functions)
    assert "stack-separation" not in {one["id"] for one in document["bound"]["assumptions"]}
    assert "callees" not in document["bound"]
    found = {one.check: one.verdict for one in check_bound(document, binary).findings}
    assert found["graph"] == "not checked"
