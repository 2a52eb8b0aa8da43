"""The oracle says no: sums, costs, rounds, registers and paths of a run that the proof does not allow.

Tests: answer.witness.contradiction.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.answer.false_claims import (
    AFTER_CALL,
    HEAP_BYTES,
    LOOP,
    TARGET,
    at,
    flow,
    heap,
    loop_name,
    proof,
    register,
    second,
)
from tests.path_check import proved
from tests.support import assembler, guest_of
from wcet_probe.answer.witness.contradiction import (
    check_counts,
    check_flows,
    check_loops,
    check_path,
    refusal,
    register_check,
)
from wcet_probe.errors import ContradictionError
from wcet_probe.model.held_calls import ClaimKind
from wcet_probe.model.proof import Bound, FlowGraph
from wcet_probe.model.scenario import InitialCache

pytestmark = pytest.mark.usefixtures("each_engine")


SUMS = {
    "a block": ({LOOP: 1}, (), 3),
    "a weight": ({LOOP: 2}, (), 6),
    "two blocks": ({LOOP: 1, 0: 5}, (), 8),
    "a negative weight": ({LOOP: 2, 0: -1}, (), 5),
    "entries of a loop": ({}, 7, 7),
    "entries that count against it": ({LOOP: 1}, -1, 2),
}


@pytest.mark.parametrize("sums", SUMS)
@pytest.mark.parametrize("is_false", [False, True])
def test_sums_of_flow_facts(sums, is_false):
    blocks, weight, constant = SUMS[sums]
    entries = ((loop_name(), weight),) if weight else ()
    bound = flow(blocks, entries, constant - is_false)
    guest = proof().guest
    watched = [claim.loop for claim in bound.loop_claims]
    with guest.machine(HEAP_BYTES, watched=watched, bounds=[bound]) as machine:
        machine.measure("f", (heap(),), InitialCache.COLD)
        counts, (calls,) = machine.loop_counts(), machine.held_calls()
        broken = machine.broken_claim()
        assert calls.flow_maxima == (constant,)
        if not is_false:
            assert broken is None
            assert check_flows(bound, counts, machine.executions, "a test") == (constant,)
            return
        assert (broken.kind, broken.value, broken.limit, broken.statement) == (
            ClaimKind.FLOW,
            constant,
            constant - 1,
            "a sum",
        )
        with pytest.raises(ContradictionError, match="the flow fact a fact is false in a test: a sum; the sum was"):
            check_flows(bound, counts, machine.executions, "a test")
        assert f"the sum was {constant:,}, and at most {constant - 1:,}" in str(refusal(broken, guest.image, "a test"))


@pytest.mark.parametrize("unit", ["instructions", "cycles"])
def test_costs_of_a_call(unit):
    guest, bound = proof().guest, proof().bound
    with guest.machine(HEAP_BYTES) as machine:
        seen = machine.measure("f", (heap(),), InitialCache.COLD)
    exact = replace(bound, **{unit: getattr(seen, unit)})
    less = replace(bound, **{unit: getattr(seen, unit) - 1})
    check_counts(exact, seen, "a test")
    with pytest.raises(ContradictionError, match=rf"f took [\d,]+ {unit} in a test"):
        check_counts(less, seen, "a test")
    for claimed, kind in ((exact, None), (less, ClaimKind(unit))):
        with guest.machine(HEAP_BYTES, bounds=[claimed]) as machine:
            machine.measure("f", (heap(),), InitialCache.COLD)
            broken = machine.broken_claim()
            assert (broken and broken.kind) == kind
            if broken:
                assert f"f took {getattr(seen, unit):,} {unit}" in str(refusal(broken, guest.image, "a test"))


def test_a_loop_that_repeats_more_often_than_is_claimed():
    (claim,) = proof().bound.loop_claims
    with proof().guest.machine(HEAP_BYTES, watched=[claim.loop]) as machine:
        machine.measure("f", (heap(),), InitialCache.COLD)
        counts = machine.loop_counts()
    image = proof().guest.image
    check_loops([replace(claim, max_header=3)], counts, image, "a test")
    with pytest.raises(ContradictionError, match="ran its header 3 times for one entry in a test, and at most 2"):
        check_loops([replace(claim, max_header=2)], counts, image, "a test")


# ------------------------------------------------------------------------------------------------- registers and paths


@pytest.mark.parametrize(
    ("ranges", "value", "is_refused"),
    [
        ([register(7)], 7, False),
        ([register(7)], 8, True),
        ([register(0, stride=4, steps=2)], 8, False),
        ([register(0, stride=4, steps=2)], 12, True),
        ([register(0, stride=4, steps=2)], 6, True),
        ([register(8, base="stack")], 4096 + 8, False),
        ([register(8, base="stack")], 8, True),
    ],
)
def test_a_register_outside_of_its_range(ranges, value, is_refused):
    bound = replace(proof().bound, registers=tuple(ranges), points=((at(AFTER_CALL), ()),))
    visit = register_check(bound, proof().guest.image, 4096, "a test")
    visit(at(0), lambda _: 99)
    if not is_refused:
        visit(at(AFTER_CALL), lambda _: value)
        return
    with pytest.raises(ContradictionError, match=r"r9 was .* outside of what the value analysis allows there"):
        visit(at(AFTER_CALL), lambda _: value)


def path() -> list[int]:
    """The executed instructions of ``f``."""
    guest = proof().guest
    g = guest.address("g")
    loop = [at(LOOP), at(LOOP + 4), at(LOOP + 8)]
    return [*range(at(0), at(AFTER_CALL), 4), g, g + 4, at(AFTER_CALL), *loop * 3, *range(at(LOOP + 12), at(64), 4)]


def refused(executed: list[int], bound: Bound | None = None) -> str:
    with pytest.raises(ContradictionError) as caught:
        check_path(bound or proof().bound, executed, proof().guest.image, "a test")
    return str(caught.value)


def test_the_path_of_the_call_is_one_of_the_graph():
    assert check_path(proof().bound, path(), proof().guest.image, "a test") == 1
    assert not second(proof().bound, heap(), {})


def test_a_path_that_leaves_the_graph():
    executed = path()
    assert "where the analysed graph has no edge" in refused([*executed[:4], at(LOOP)])
    assert "where the analysed graph has no edge" in refused([*executed[:4], proof().guest.address("g")])
    assert "where the analysed graph has no edge" in refused([*executed[:4], 0x1234])


@pytest.mark.parametrize("kind", ["fall", "jump", "call", "return"])
def test_an_edge_that_the_graph_has_not(kind):
    graph = proof().bound.graph
    edges = tuple(edge for edge in graph.edges if edge.kind != kind)
    assert len(edges) < len(graph.edges)
    bound = replace(proof().bound, graph=FlowGraph(graph.blocks, edges))
    assert "where the analysed graph has no edge" in refused(path(), bound)


def test_a_function_that_returns_elsewhere():
    """Where another call of ``g`` would go on: the graph has the edge, but it is not this caller's."""
    source = assembler({"f": "mflr 8\nbl g\nbl g\nmtlr 8\nblr", "g": "nop\nblr"}, TARGET)
    made = proved(guest_of(source, TARGET), "f")
    f, g = made.guest.address("f"), made.guest.address("g")
    once, rest = [f, f + 4, g, g + 4], [f + 12, f + 16]
    image = made.guest.image
    assert check_path(made.bound, [*once, f + 8, g, g + 4, *rest], image, "a test") == 2
    with pytest.raises(
        ContradictionError, match=r"did not return to its caller .* against the assumption return-address"
    ):
        check_path(made.bound, [*once, *rest], image, "a test")
