"""True certificates changed in what they mean, one thing each: the check whose rule it is refuses, or leaves it open.

Tests: certificate.check, certificate.kernel.coverage, certificate.flow.counters, certificate.caches.misses,
certificate.flow.pairs.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from unittest.mock import patch

import pytest

from tests.certificate.forgeries import sealed, solved_again, without_edges
from tests.certificate.kernel.test_code import document_of
from tests.certificate.specimens import specimen
from tests.support import assembler, guest_of
from wcet_probe.analyzer.ipet.flow_system import Constraint
from wcet_probe.catalog.lookup import load_target
from wcet_probe.certificate.check import check_bound
from wcet_probe.errors import VerificationError

CALLS = """volatile int port;
__attribute__((noinline)) int g(int n) { int s = 0; for (int i = 0; i < 9; i++) s += port * n; return s; }
int f(int n) { int s = g(n); if (n > 3) s += port; return s + g(s); }
"""
TANGLED = """movs r2, #0
 cmp r0, #5
 bge 2f
1: adds r2, #1
 ldr r3, [r1]
2: adds r2, #1
 cmp r2, #20
 blt 1b
 bx lr
"""
FILL = 20
"""Cycles that a node is told to be cheaper by, for a line that is said to be there: less than a fill."""


@cache
def program(name):
    """A document that is checked in full, and its binary."""
    if name == "list":
        return specimen("list", "mpc603e", "f")
    target = load_target("cortex-m4")
    guest = guest_of(CALLS, target, ".c") if name == "calls" else guest_of(assembler({"f": TANGLED}, target), target)
    document, binary = document_of(guest)
    return sealed(document), binary


def cheaper(problem, node, cycles=FILL):
    nodes = (replace(one, cost=max(0, one.cost - cycles)) if one.name == node else one for one in problem.nodes)
    return replace(problem, nodes=tuple(nodes))


def moved_edge(problem, edge, target):
    edges = (replace(one, target=target) if one.name == edge else one for one in problem.edges)
    return replace(problem, edges=tuple(edges))


def named(problem, way, context=None):
    """The first edge that is called so, out of a node of a context."""
    return next(e for e in problem.edges if f":{way}" in e.name and (context is None or e.source.startswith(context)))


def branching(problem):
    """The first edge out of a node that has two, neither of which goes round a loop."""
    back = {edge for loop in problem.loops for edge in loop.back_edges}
    sources = [one.source for one in problem.edges]
    rounds = {one.source for one in problem.edges if one.name in back}
    return next(one for one in problem.edges if sources.count(one.source) == 2 and one.source not in rounds)


def contexts(problem):
    return sorted({one.name.rpartition("/")[0] + "/" for one in problem.nodes if "/" in one.name})


def with_constraint(problem, name, factors, constant):
    return replace(problem, constraints=(*problem.constraints, Constraint(name, factors, "<=", constant)))


def record(lines, kind, fields=""):
    return next(one for one in lines if re.match(rf"{kind} {fields}", one))


def instead(lines, old, new):
    return [new if one == old else one for one in lines]


# ------------------------------------------------------------------------------------------------------------- graphs


def a_callee_left_out(problem, lines):
    call, behind = named(problem, "call"), named(problem, "return").target
    return moved_edge(problem, call.name, behind), lines


def the_return_of_another_context(problem, lines):
    first, second = (named(problem, "return", context) for context in contexts(problem))
    return moved_edge(problem, first.name, second.target), lines


def the_call_of_another_context(problem, lines):
    calls = [one for one in problem.edges if ":call" in one.name]
    return moved_edge(problem, calls[0].name, calls[1].target), lines


def a_copy_left_out(problem, lines):
    copy = next(one.name for one in problem.nodes if one.name.endswith("'"))
    own = copy.rstrip("'")
    kept = without_edges(problem, [one.name for one in problem.edges if one.source == copy])
    edges = tuple(replace(one, target=own) if one.target == copy else one for one in kept.edges)
    return replace(kept, edges=edges), lines


def a_way_out_left_out(problem, lines):
    return without_edges(problem, [branching(problem).name]), lines


def an_earlier_way_out(problem, lines):
    node = next(one.name for one in problem.nodes if one.name not in problem.exits)
    return replace(problem, exits=(node,), exit_costs={node: 0}), lines


def a_later_entry(problem, lines):
    return replace(problem, entry=next(one.target for one in problem.edges if one.source == problem.entry)), lines


# ------------------------------------------------------------------------------------------- values, loops and limits


def a_counter_from_nearer_the_end(problem, lines):
    old = next(line for line in lines if re.fullmatch(r"invariant \S+ r\d+ number \d+ 1 [1-9]", line))
    words = old.split(" ")
    return problem, instead(lines, old, " ".join([*words[:6], str(int(words[6]) - 1)]))


def flags_that_exclude(problem, lines):
    branch = branching(problem)
    said = f"flags {branch.source} nzcv either numbers 0 0 0 1 0 0 !=u"
    return without_edges(problem, [branch.name]), [*lines, said]


def a_saved_word_that_nobody_saved(problem, lines):
    return problem, [*lines, f"invariant {problem.nodes[1].name} saved:-64 number 3 0 0"]


def a_pair_that_is_taken(problem, lines):
    factors = {branching(problem).name: 1, problem.loops[0].back_edges[0]: 1}
    return with_constraint(problem, "conflict:9", factors, 1), lines


def a_node_executed_less_often(problem, lines):
    loop = problem.loops[0]
    factors = {loop.back_edges[0]: 1, **dict.fromkeys(loop.entry_edges, -2)}
    return with_constraint(problem, "executed:9", factors, 0), lines


def a_limit_by_no_rule(problem, lines):
    return with_constraint(problem, "few", {problem.loops[0].back_edges[0]: 1}, 1), lines


# ------------------------------------------------------------------------------------------------------------- caches


def a_line_of_another_set(problem, lines):
    words = (old := record(lines, "must", "data")).split(" ")
    moved = " ".join([*words[:4], str(int(words[4]) + 32), *words[5:]])
    return cheaper(problem, words[2]), instead(lines, old, moved)


def a_line_where_the_call_begins(problem, lines):
    words = record(lines, "must", "fetch").split(" ")
    return cheaper(problem, problem.entry), [*lines, " ".join([*words[:2], problem.entry, *words[3:]])]


def a_larger_granule(problem, lines):
    words = (old := record(lines, "must", "data")).split(" ")
    larger = " ".join([*words[:5], str(2 * int(words[5])), *words[6:]])
    return cheaper(problem, words[2]), instead(lines, old, larger)


def a_modified_line_that_need_not_be_there(problem, lines):
    words = record(lines, "must", "data").split(" ")
    return problem, [*lines, f"modified {problem.nodes[-1].name} {words[3]} {int(words[4]) + 64} {words[5]}"]


def a_name_four_bytes_on(problem, lines):
    words = (old := record(lines, "name")).split(" ")
    return cheaper(problem, words[1]), instead(lines, old, " ".join([*words[:4], str(int(words[4]) + 4)]))


def a_symbol_that_lives_on(problem, lines):
    """It began anew in each round; its name is that of the first one for ever."""
    headers = {next(e.target for e in problem.edges if e.name == loop.back_edges[0]) for loop in problem.loops}
    old = next(one for one in lines if one.startswith("symbol ") and one.split(" ")[3] in headers)
    return problem, instead(lines, old, " ".join([*old.split(" ")[:3], problem.entry, *old.split(" ")[4:]]))


def a_class_that_nobody_told(problem, lines):
    words = (old := record(lines, "symbol")).split(" ")
    return problem, instead(lines, old, " ".join([*words[:4], "64", "0"]))


def a_miss_of_another_access(problem, lines):
    words = (old := record(lines, "miss")).split(" ")
    return problem, instead(lines, old, " ".join([*words[:3], str(int(words[3]) + 7), words[4]]))


def a_cheaper_miss(problem, lines):
    name = record(lines, "miss").split(" ")[4]
    events = (replace(one, cost=one.cost - 1) if one.name == name else one for one in problem.auxiliaries)
    return replace(problem, auxiliaries=tuple(events)), lines


def no_fill_for_a_miss(problem, lines):
    old = record(lines, "miss")
    return problem, [one for one in lines if one != old]


FORGERIES = {
    "calls": {
        a_callee_left_out: "the graph lacks the edge",
        the_return_of_another_context: "the graph lacks the edge",
        the_call_of_another_context: "does not follow from",
        an_earlier_way_out: "lacks the way out",
        a_later_entry: "the entry is not at f",
        a_counter_from_nearer_the_end: "does not follow from",
        a_saved_word_that_nobody_saved: "does not follow from",
        a_limit_by_no_rule: "nothing allows the constraint few",
    },
    "tangled": {
        a_copy_left_out: "a back edge of loop .* enters it",
        a_way_out_left_out: "the graph lacks the edge",
        flags_that_exclude: "the graph lacks the edge",
    },
    "list": {
        a_line_of_another_set: "a line that is said to be in the data cache",
        a_line_where_the_call_begins: "nothing is known of the caches where the call begins",
        a_larger_granule: "a line that is said to be in the data cache",
        a_modified_line_that_need_not_be_there: "may not be there|need not be",
        a_name_four_bytes_on: "is not",
        a_symbol_that_lives_on: "is not",
        a_class_that_nobody_told: "is not known to be 0 modulo 64",
        a_miss_of_another_access: "is of no access that fills a line",
        a_cheaper_miss: "costs at least",
        no_fill_for_a_miss: "with its misses",
    },
}


def forged(name, change):
    document, binary = program(name)
    assert check_bound(document, binary).is_full

    def changed(problem, derivations, followed):
        found, lines = change(problem, followed) if followed and is_about(problem) else (problem, followed)
        if not is_about(problem) and found is problem:
            found = in_both(change, problem)
        return found, derivations, lines

    def is_about(problem):
        return (problem.unit == "cycles") == (name == "list")

    with patch("wcet_probe.analyzer.ipet.flow_system._integer_solution", return_value=None):
        return check_bound(solved_again(document, changed), binary)


def in_both(change, problem):
    """What ``change`` makes of the flow problem of the other unit: the graph is the same, and events are not there."""
    try:
        found = change(problem, [])[0]
    except StopIteration:
        return problem
    return replace(found, auxiliaries=problem.auxiliaries)


@pytest.mark.parametrize(
    ("name", "change", "sentence"),
    [(name, change, sentence) for name, own in FORGERIES.items() for change, sentence in own.items()],
    ids=lambda one: getattr(one, "__name__", None),
)
def test_what_means_something_else_is_refused(name, change, sentence):
    with (
        patch("wcet_probe.certificate.check.check_shown", return_value=""),
        pytest.raises(VerificationError, match=sentence),
    ):
        forged(name, change)


@pytest.mark.parametrize(("name", "change"), [("calls", a_node_executed_less_often), ("tangled", a_pair_that_is_taken)])
def test_what_no_rule_shows_is_not_checked(name, change):
    with patch("wcet_probe.certificate.check.check_shown", return_value=""):
        found = {one.check: one.verdict for one in forged(name, change).findings}
    assert found["constraints in instructions"] == found["constraints in cycles"] == "not checked"
