"""Pairs of edges that exclude each other: no run takes both."""

import random
from collections import Counter

import pytest

from tests.analyzer.random_conditions import conditional_functions
from tests.path_check import attack, check_path, edge_counts, interpret, proved
from tests.support import assembler, guest_of
from wcet_probe.analyzer.graph.loop_forest import loops_of
from wcet_probe.analyzer.graph.supergraph import EXIT
from wcet_probe.analyzer.ipet.flow_problem import edge_name, point_name
from wcet_probe.analyzer.loops.infeasible_pairs import infeasible_edge_pairs
from wcet_probe.analyzer.values.states.learning import assume
from wcet_probe.analyzer.values.symbolic.symbol_names import ENTRY, defined_at
from wcet_probe.catalog.lookup import load_target
from wcet_probe.errors import AnalysisError

ONCE = """
    tst r0, #4
    beq 1f
    adds r2, r2, #1
1:  adds r3, r3, #1
    tst r0, #4
    bne 2f
    adds r2, r2, #2
    adds r2, r2, #2
2:  bx lr
"""
IN_A_LOOP = """
    movs r1, #8
1:  tst r0, #1
    beq 2f
    adds r2, r2, #1
    adds r2, r2, #1
2:  adds r3, r3, #1
    tst r0, #1
    bne 3f
    adds r2, r2, #2
    adds r2, r2, #2
3:  lsrs r0, r0, #1
    subs r1, r1, #1
    bne 1b
    bx lr
"""
CHANGED = """
    cmp r0, #10
    bhs 1f
    adds r2, r2, #1
1:  adds r0, r0, #15
    cmp r0, #20
    blo 2f
    adds r2, r2, #2
2:  bx lr
"""


@pytest.mark.covering(0)
@pytest.mark.parametrize("target", ["cortex-m4", "arm926ej-s"])
def test_no_run_takes_both_edges(target):
    bodies = {"once": ONCE, "in_a_loop": IN_A_LOOP, "changed": CHANGED}
    guest, draw = guest_of(assembler(bodies, load_target(target)), load_target(target)), random.Random(1)
    for name in bodies:
        proof = proved(guest, name)
        names = {index: point_name(proof.values.graph.points[index]) for index in proof.values.states}
        infeasible_pairs = infeasible_edge_pairs(proof.values)
        assert infeasible_pairs or name == "changed"
        longest = 0
        for argument in (*range(24), *(draw.getrandbits(32) for _ in range(8))):
            result = interpret(proof, argument)
            counts = edge_counts(proof.values, result.path)
            check_path(proof, result.path)
            for one in infeasible_pairs:
                if one.header is None:
                    assert counts[edge_name(names, one.first)] + counts[edge_name(names, one.second)] <= 1
            longest = max(longest, result.instructions)
        assert longest == proof.bound.instructions


BROUGHT_BACK = """
    cmp r1, #7
    bne 0f
    adds r2, r2, #0
0:  ldr r0, [r3]
    cmp r0, #3
    bne 1f
    cmp r1, #7
    bne 9f
    b 2f
1:  movs r0, #9
    cmp r1, #7
    beq 9f
2:  movs r3, #0
    cmp r2, #1
    beq 3f
    adds r3, r3, #1
    adds r3, r3, #1
    adds r3, r3, #1
    b 9f
3:  adds r3, r3, #1
    adds r3, r3, #1
    adds r3, r3, #1
    adds r3, r3, #1
9:  bx lr
    .ltorg
"""
"""Of the loaded number one side keeps that it is 3, and the other keeps nothing: where they meet, it need not be 3."""


@pytest.mark.parametrize("target", ["cortex-m4", "arm926ej-s"])
def test_a_value_that_a_choice_brings_back_excludes_nothing(target):
    data = "\n.data\n.align 2\n.globl data\n.type data, %object\n.size data, 4\ndata: .word 4\n"
    guest = guest_of(assembler({"f": BROUGHT_BACK}, load_target(target)) + data, load_target(target))
    proof = proved(guest, "f")
    for arguments in ((0, 0, 0), (0, 0, 1), (0, 7, 1)):
        attack(proof, *arguments, guest.address("data"))


def parts_of(values):
    """Header, the points of no inner loop, and all points: of the whole, and of each loop."""
    loops = loops_of(values.forest)
    reached = frozenset(values.states)
    yield None, reached.difference(*(loop.nodes for loop in loops)), reached
    for loop in loops:
        inner = (other.nodes for other in loops if other.nodes < loop.nodes)
        yield loop.header, loop.nodes.difference(*inner) & reached, loop.nodes & reached


def behind(values, first, body, header):
    """The points of ``body`` that ``first`` leads to without the header, and the edges between them, with ``first``."""
    found, edges = {first.target}, {first}
    while True:
        new = {e for e in values.edges if e.source in found and e.target in body and e.target != header} - edges
        if not new:
            return found, edges
        edges |= new
        found |= {edge.target for edge in new}


def pairs_by_definition(values):
    """All pairs, each asked by itself, with the number of questions; no answer is remembered."""
    found, asked, terms = set(), 0, values.terms
    leaving = Counter(edge.source for edge in values.edges if edge.target == EXIT)
    for header, nodes, body in parts_of(values):
        deciding = [
            edge
            for edge, one in values.edges.items()
            if edge.source in nodes and one.conditions and not (edge.target == EXIT and leaving[edge.source] > 1)
        ]
        for first in deciding:
            if first.target not in body or first.target == header:
                continue
            points, edges = behind(values, first, body, header)
            killed = frozenset().union(*(values.killed[edge] for edge in edges))

            def lasts(symbol, points=points, killed=killed):
                place = defined_at(terms[symbol].arguments)
                return place == ENTRY or (place is not None and place not in points and symbol not in killed)

            lasting = [pair for pair in values.edges[first].conditions if all(map(lasts, terms.symbols(pair[0])))]
            for second in (edge for edge in deciding if edge.source in points):
                asked += 1
                state = values.edges[second].state.copy()
                spoken_of = frozenset().union(*map(terms.symbols, state.known))
                conditions = [pair for pair in lasting if not terms.symbols(pair[0]).isdisjoint(spoken_of)]
                if not all(assume(state, term, holds) for term, holds in conditions):
                    found.add((first, second, header))
    return found, asked


def check_pairs(seed, target, functions, runs):
    """Hold the pairs of random functions against their definition, and runs against the bounds that they make."""
    core, draw = load_target(target), random.Random(seed)
    guest, asked, found = guest_of(conditional_functions(seed, functions), core, ".c"), 0, 0
    for number in range(functions):
        try:
            proof = proved(guest, f"f{number}")
        except AnalysisError:  # a loop whose counter the compiler made away with
            continue
        expected, questions = pairs_by_definition(proof.values)
        assert {(one.first, one.second, one.header) for one in infeasible_edge_pairs(proof.values)} == expected
        asked, found = asked + questions, found + len(expected)
        for _ in range(runs):
            attack(proof, *(draw.choice((draw.randrange(12), draw.getrandbits(32))) for _ in range(3)))
    return asked, found


@pytest.mark.covering(0)
@pytest.mark.parametrize("target", ["cortex-m4", "arm926ej-s", "mpc603e"])
def test_pairs_are_those_that_each_question_by_itself_gives(target):
    asked, found = check_pairs(6, target, functions=4, runs=2)
    assert asked > 500
    assert found > 50


@pytest.mark.slow
@pytest.mark.parametrize("target", ["cortex-m4", "arm926ej-s", "mpc603e"])
@pytest.mark.parametrize("seed", range(100, 130))
def test_pairs_of_many_functions_are_those_of_their_definition(seed, target):
    check_pairs(seed, target, functions=6, runs=6)
