"""Ways that the checker cannot exclude: added as another copy of the block has them, if the bound stays what it is."""

from dataclasses import replace

import pytest

from wcet_probe.analyzer.ipet.added_ways import solved_with_ways, with_ways
from wcet_probe.analyzer.ipet.flow_system import (
    Constraint,
    FlowEdge,
    FlowLoop,
    FlowNode,
    FlowProblem,
    flow_system,
    solve,
)

NODES = (("a", 0, 1), ("b", 4, 1), ("b'", 4, 1), ("c", 8, 1), ("d", 12, 9), ("0x8/b", 4, 1))
EDGES = (
    ("a>b:fall:0x4", "a", "b"), ("a>b':jump:0x4", "a", "b'"), ("b>c:fall:0x8", "b", "c"), ("b>d:jump:0xc", "b", "d"),
    ("b'>d:jump:0xc", "b'", "d"), ("d>a:jump:0x0", "d", "a"), ("0x8/b>c:return", "0x8/b", "c"),
)  # fmt: skip
WAY = "b'>c:fall:0x8"


def problem(*, of_c=1, limit=1):
    """A loop over copies of a block, of which one leads back only; c is left, where the limited edges lead."""
    return FlowProblem(
        image_sha256="0" * 64,
        entry_function="f",
        target="cortex-m4",
        unit="instructions",
        nodes=tuple(FlowNode(name, at, of_c if name == "c" else cost) for name, at, cost in NODES),
        edges=tuple(FlowEdge(name, source, target, 2 * (":jump:0xc" in name)) for name, source, target in EDGES),
        entry="a",
        exits=("c",),
        loops=(FlowLoop("a", ("enter",), ("d>a:jump:0x0",), 3),),
        constraints=(Constraint("flow:0.0", {"b>c:fall:0x8": 1, "a>b':jump:0x4": 0}, "<=", limit),),
    )


def test_a_way_is_that_of_another_copy_with_its_costs_and_limits():
    more = with_ways(problem(), {"b'": [8]})
    assert more.edges == (*problem().edges, FlowEdge(WAY, "b'", "c", 0))
    assert dict(more.constraints[0].coefficients) == {"b>c:fall:0x8": 1, WAY: 1, "a>b':jump:0x4": 0}
    looped = replace(problem(), loops=(FlowLoop("c", ("b>c:fall:0x8",), ("0x8/b>c:return",), 1),))
    assert with_ways(looped, {"b'": [8]}).loops[0].entry_edges == ("b>c:fall:0x8", WAY)


@pytest.mark.parametrize("ways", [{"b'": [None]}, {"b'": [16]}, {"c": [0]}, {"0x8/b": [12]}, {"b'": [8, 0]}])
def test_a_way_that_no_copy_in_the_context_has_is_not_added(ways):
    assert with_ways(problem(), ways) is None


def test_no_way_is_added_that_enters_a_loop_past_its_header():
    """It was, and the checker refused the certificate of a true bound: a back edge was reached without the header."""
    nodes = tuple(FlowNode(name, at, 1) for name, at in (("e", 16), ("f", 4), ("h", 0), ("f'", 4), ("g", 8), ("g'", 8)))
    ways = (("e", "f"), ("f", "h"), ("h", "f'"), ("f'", "g"), ("g", "h"), ("h", "g'"))
    edges = tuple(FlowEdge(f"{one}>{other}", one, other, 0) for one, other in ways)
    loop = FlowLoop("h", ("f>h",), ("g>h",), 3)
    looped = replace(problem(), nodes=nodes, edges=edges, entry="e", exits=("g'",), loops=(loop,), constraints=())
    assert with_ways(looped, {"f": [8]}) is None
    more = with_ways(replace(looped, edges=(FlowEdge("f'>g'", "f'", "g'", 0), *edges)), {"f": [8]})
    assert more.edges[-1] == FlowEdge("f>g'", "f", "g'", 0)
    again = with_ways(replace(looped, edges=(*edges, FlowEdge("f'>h", "f'", "h", 0))), {"g'": [0]})
    assert again is None


def test_the_bound_stays_or_nothing_is_told():
    one = problem()
    solution = solve(flow_system(one))
    more, again = solved_with_ways(one, solution, {"b'": [8]})
    assert (again.certified, again.counts, len(more.edges)) == (solution.certified, solution.counts, len(EDGES) + 1)
    dear = replace(
        problem(), edges=tuple(replace(e, extra_cost=7) if e.name == "a>b':jump:0x4" else e for e in problem().edges)
    )
    assert solved_with_ways(dear, solve(flow_system(dear)), {"b'": [8]}) is None
