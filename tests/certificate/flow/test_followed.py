"""Nests that the checker follows round by round: true counts are checked, and not one less than a run reaches."""

from dataclasses import replace
from functools import cache
from unittest.mock import patch

import pytest

from tests.certificate.forgeries import problem_of, sealed, solved_again
from tests.certificate.kernel.test_code import document_of
from tests.support import assembler, guest_of
from wcet_probe.analyzer.ipet.flow_system import FlowLoop
from wcet_probe.catalog.lookup import load_target
from wcet_probe.certificate.check import check_bound
from wcet_probe.certificate.flow.followed import Followed
from wcet_probe.certificate.flow.walk import Covered
from wcet_probe.certificate.kernel.coverage import Code, Said, cover
from wcet_probe.certificate.kernel.records import graph_of, invariants_of, loops_of, read_records
from wcet_probe.errors import VerificationError

NESTS = {
    "an inner loop that doubles": "for (u i = 1; i < 14; i++) for (u j = 1; j <= i; j *= 2) o = j;",
    "an inner counter that goes on": "u j = 0; for (u i = 0; i < 6; i++) { o = i; for (; j < ends[i]; j++) o = j; }",
    "cases": """for (u i = 0; i < 6; i++) switch (i) { case 0: o = x; break; case 1: o = x; o = x * 3; break;
        case 2: for (u k = 0; k < 9; k++) o = k; break; case 4: o = 4; break; default: o = x ^ 5; }""",
}


@cache
def proof(name):
    text = (
        f"typedef unsigned u; volatile u o; const u ends[6] = {{1, 1, 4, 9, 9, 11}};\nvoid f(u x) {{ {NESTS[name]} }}\n"
    )
    return document_of(guest_of(text, load_target("cortex-m4"), ".c"))


def open_checks(name, change=None):
    document, binary = proof(name)
    forged = solved_again(document, change) if change else document
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("wcet_probe.certificate.check.check_shown", lambda *_: "")
        return {one.check for one in check_bound(forged, binary).findings if one.verdict != "ok"}


def limits_of(name):
    """The limits in a proof of executions, and what says whether they hold."""
    document, binary = proof(name)
    text = document["bound"]["certificates"][0]
    problem, records = problem_of(text)[0], read_records(text)
    code = Code(binary.image, {one.address: one for one in binary.instructions})
    graph, invariants = graph_of(records), invariants_of(records)
    followed = Followed(Covered(code, graph, invariants, cover(code, graph, Said(invariants), {})), loops_of(records))
    return [one for one in problem.constraints if one.name.startswith("executed:")], followed, problem


@pytest.mark.parametrize("name", NESTS)
def test_what_is_followed_is_checked_in_full(name):
    assert limits_of(name)[0]
    assert not open_checks(name)


@pytest.mark.parametrize("name", NESTS)
def test_no_limit_holds_that_is_one_less(name):
    limits, followed, _ = limits_of(name)
    for one in limits:
        assert followed.limits(one.coefficients, one.constant)
        assert not followed.limits(one.coefficients, -1)
        less = {edge: factor + (factor < 0) for edge, factor in one.coefficients.items()}
        assert not followed.limits(less, 0)


def test_a_limit_is_of_one_node_and_paid_by_the_entries_of_its_nest():
    limits, followed, problem = limits_of("an inner loop that doubles")
    one = limits[0]
    entry = next(edge for edge, factor in one.coefficients.items() if factor < 0)
    others = [edge.name for edge in problem.edges if edge.name not in one.coefficients]
    for other in (*others, "enter", "leave:f", "event"):
        assert not followed.limits({**one.coefficients, other: 1}, 0)
        moved = {other if edge == entry else edge: factor for edge, factor in one.coefficients.items()}
        assert not followed.limits(moved, 0)


def test_a_loop_is_followed_as_far_as_its_bound_says():
    _, followed, problem = limits_of("an inner loop that doubles")
    targets = {edge.name: edge.target for edge in problem.edges}
    headers = [targets[loop.back_edges[0]] for loop in problem.loops]
    whole = {header: followed.most_executions(header) for header in headers}
    assert sorted(whole.values()) == [4, 13]
    for header, most in whole.items():
        _, cut, _ = limits_of("an inner loop that doubles")
        cut.bounds[header] = most - 1
        assert cut.most_executions(header) == most - 1
    assert followed.most_executions("nowhere") is None


def test_a_loop_is_not_followed_as_far_as_another_with_its_header_says():
    """Rounds of 3 within 100, by one header: what comes back within a round is no bound of all that comes back."""
    again = "movs r0, #0\n movs r1, #0\n1: adds r1, #1\n cmp r1, #3\n blo 1b\n movs r1, #0"
    target = load_target("cortex-m4")
    code = f" {again}\n adds r0, #1\n cmp r0, #100\n blo 1b\n bx lr"
    document, binary = document_of(guest_of(assembler({"f": code}, target), target))
    check_shown = "wcet_probe.certificate.check.check_shown"

    def lent(problem, derivations, followed):
        (whole,) = problem.loops
        (inner,) = (one.name for one in problem.edges if one.source == one.target)
        (outer,) = set(whole.back_edges) - {inner}
        few = replace(whole, max_back_edges=2)
        part = FlowLoop("part", (*whole.entry_edges, outer), (inner,), 2)
        three = replace(derivations[0], max_header=3, initial_low=0, initial_high=2)
        parts = [three, replace(three, loop="part", constraint="loop:part")]
        return replace(problem, loops=(part, few), constraints=()), parts, followed

    (own,) = document["bound"]["loops"]
    loops = [{**own, "name": name, "max": 3} for name in ("part", own["name"])]
    forged = solved_again({**document, "bound": {**document["bound"], "loops": loops}}, lent)
    assert (forged["bound"]["instructions"], document["bound"]["instructions"]) == (24, 1303)
    with (
        patch(check_shown, lambda *_: ""),
        pytest.raises(VerificationError, match="have one header"),
    ):
        check_bound(forged, binary)


def test_a_forged_limit_is_not_taken_for_checked():
    def lower(problem, derivations, followed):
        """Each limit says one execution less for each entry of the nest."""
        less = tuple(
            replace(one, coefficients={edge: factor + (factor < 0) for edge, factor in one.coefficients.items()})
            if one.name.startswith("executed:") else one
            for one in problem.constraints
        )  # fmt: skip
        return replace(problem, constraints=less), derivations, followed

    assert open_checks("an inner loop that doubles", lower) >= {"constraints in instructions", "constraints in cycles"}


HALVED = """int low = 0, up = 14; while (low <= up) { int middle = (low + up) >> 1; o = middle;
    if (keys[middle] > x) up = middle - 1; else low = middle + 1; }"""
"""Two ends of a range that halves: each is known by the other one alone."""


def test_ways_are_followed_apart_where_their_join_tells_too_little():
    text = f"typedef unsigned u; volatile u o; u keys[15];\nvoid f(u x) {{ {HALVED} }}\n"
    document, binary = document_of(guest_of(text, load_target("cortex-m4"), ".c"))
    (loop,) = document["bound"]["loops"]
    assert loop["max"] == 4

    def once_less(problem, derivations, followed):
        (whole,) = problem.loops
        less = [replace(one, max_header=3, initial_low=0, initial_high=2) for one in derivations]
        return replace(problem, loops=(replace(whole, max_back_edges=2),)), less, followed

    forged = {**document, "bound": {**document["bound"], "loops": [{**loop, "max": 3}]}}
    with patch("wcet_probe.certificate.check.check_shown", lambda *_: ""):
        assert check_bound(document, binary).is_full
        found = check_bound(solved_again(forged, once_less), binary).findings
    assert {one.check for one in found if one.verdict != "ok"} == {"loop bounds"}


ON_THE_STACK = """sub sp, #8
 movs r0, #0
 str r0, [sp, #4]
1: mov r3, r2
 cmp r1, #0
 beq 2f
 nop
2: str r1, [r3]
 ldr r0, [sp, #4]
 adds r0, #1
 str r0, [sp, #4]
 cmp r0, #10
 blo 1b
 add sp, #8
 bx lr
"""


def test_what_following_rests_on_is_assumed():
    """The invariants call r3 unknown, so that covering the code assumed nothing of the store by it; following did."""
    target = load_target("cortex-m4")
    document, binary = document_of(guest_of(assembler({"f": ON_THE_STACK}, target), target))

    def change(problem, derivations, followed):
        if problem.unit != "instructions":
            return problem, derivations, followed
        nodes = [one.name for one in problem.nodes if one.name != problem.entry]
        unknown = [f"{node} {place} any 0 1 4294967295" for node in nodes for place in ("r0", "r3", "stack:-4")]
        kept = [line for line in followed if line.split(" ")[2] in {"r13", "r14"}]
        return problem, derivations, [*kept, *(f"invariant {one}" for one in unknown)]

    forged = solved_again(document, change)
    assert {one.verdict for one in check_bound(forged, binary).findings} == {"ok"}
    bound = forged["bound"]
    bound["assumptions"] = [one for one in bound["assumptions"] if one["id"] != "stack-separation"]
    with pytest.raises(VerificationError, match="stack-separation is used and not listed"):
        check_bound(sealed(forged), binary)
