"""A graph whose loops are split has the same paths, and little is copied."""

from random import Random
from types import SimpleNamespace

import pytest

from tests.analyzer.graph.hand_made import made_by_hand, traces
from tests.path_check import attack, proved
from tests.support import assembler, guest_of
from wcet_probe.analyzer.graph.node_splitting import reducible
from wcet_probe.analyzer.graph.supergraph import EXIT
from wcet_probe.catalog.lookup import load_target
from wcet_probe.errors import AnalysisError


@pytest.mark.parametrize("part", range(3))
def test_a_graph_that_is_made_reducible_has_the_same_paths(part):
    random, split_at_all = Random(f"reducible {part}"), 0
    for _ in range(40):
        count = random.randint(3, 6)
        edges = {(number, number + 1) for number in range(count - 1)}
        edges |= {(random.randrange(count), random.randrange(1, count)) for _ in range(random.randint(2, 4))}
        graph = made_by_hand([*sorted(edges), (count - 1, EXIT)])
        try:
            found = reducible(graph, SimpleNamespace(location=hex))
        except AnalysisError:
            continue
        split_at_all += found is not graph
        assert traces(found, 7) == traces(graph, 7)
        places = [(point.block.address, point.copy) for point in found.points]
        assert len(set(places)) == len(places)
    assert split_at_all >= 3


def test_a_loop_that_is_too_tangled_is_named():
    tangled = [(a, b) for a in range(7) for b in range(1, 7) if a != b]
    with pytest.raises(AnalysisError, match=r"f has an irreducible loop, entered at 0x10, 0x14, 0x18: rewrite"):
        reducible(made_by_hand([*tangled, (6, EXIT)]), SimpleNamespace(location=hex))


# ---------------------------------------------------------------- loops that are entered twice, in each of many calls

ENTERED_TWICE = """
    push {r4, r5, lr}
    and r4, r0, #7
    movs r5, #0
    tst r1, #1
    beq 2f
1:  adds r5, r5, #1
    lsls r2, r5, #3
2:  bl leaf
    adds r4, r4, #1
    cmp r4, #12
    blt 1b
    pop {r4, r5, pc}
"""
LEAF = """
    cmp r2, #8
    bhi 1f
    adds r2, r2, #1
1:  bx lr
"""
CALLS = 12


def test_each_call_of_an_irreducible_loop_is_split_with_little_copied():
    caller = "\n".join(["push {r4, lr}", *["adds r0, r0, #1", "bl twice"] * CALLS, "pop {r4, pc}"])
    text = assembler({"f": caller, "twice": ENTERED_TWICE, "leaf": LEAF}, load_target("cortex-m4"))
    proof = proved(guest_of(text, load_target("cortex-m4")), "f")
    points = proof.values.graph.points
    copies = [point for point in points if point.copy]
    assert {len([one for one in copies if one.context == point.context]) for point in copies} == {1}
    assert len({point.context for point in copies}) == CALLS
    for first, second in ((0, 0), (1, 1), (7, 3), (6, 2)):
        attack(proof, first, second)
