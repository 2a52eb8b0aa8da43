"""The graph of all calls: each call path has its own blocks; what is left out or restricted loses no path."""

from random import Random

import pytest

from tests.analyzer.graph.hand_made import made_by_hand, traces
from tests.analyzer.graph.random_calls import assembled, plainly, random_bodies
from tests.analyzer.small_functions import lifter_of, small_graph, small_guest
from wcet_probe.analyzer.graph.supergraph import EXIT, build_supergraph, restricted
from wcet_probe.build.image import require_symbol
from wcet_probe.errors import AnalysisError


def call_paths(bodies, function=0):
    """The functions that are called, once for each path of calls and jumps, if each line is reached and returns."""
    yield function
    for kind, to in bodies[function]:
        if kind in {"call", "tail"}:
            yield from call_paths(bodies, to)


@pytest.mark.parametrize("part", range(6))
def test_each_path_of_calls_has_its_own_points(part):
    bodies = random_bodies(Random(f"supergraph {part}"), 6, recursive=False)
    guest = assembled(bodies)
    graph = small_graph(guest, "f0")
    names = [f"f{one}" for one in call_paths(bodies)]
    assert plainly(bodies, 0)[0] == {int(name[1:]) for name in names}
    contexts = {(point.context, point.function.name) for point in graph.points}
    assert sorted(name for _, name in contexts) == sorted(names)
    blocks = {(point.context, point.block.address) for point in graph.points}
    assert len(blocks) == len(graph.points)
    number = {context: len(context) for context, _ in contexts}
    for edge in graph.edges:
        if edge.target == EXIT:
            assert number[graph.points[edge.source].context] == 0
            continue
        source, target = graph.points[edge.source], graph.points[edge.target]
        if edge.way == "call":
            assert target.context == (*source.context, source.block.last_address)
            assert target.return_address == source.block.end_address
        elif edge.way == "return":
            assert target.context == source.context[:-1]
            assert target.block.address == source.return_address
        else:
            assert target.context == source.context
    reached, todo = set(), [0]
    while todo:
        one = todo.pop()
        if one not in reached:
            reached.add(one)
            todo += [edge.target for edge in graph.successors()[one] if edge.target != EXIT]
    assert reached == set(range(len(graph.points)))


RECURSIVE = {"f": "push {r4, lr}\ncmp r0, #0\nbeq 1f\nsubs r0, #1\nbl f\n1: pop {r4, pc}"}


@pytest.mark.parametrize("depth", [1, 2, 4])
def test_recursion_is_followed_so_far_and_the_next_call_is_a_cut(depth):
    guest = small_guest(RECURSIVE)
    entry = require_symbol(guest.image, "f")
    site = entry.address + 8
    graph = build_supergraph(guest.image, lifter_of(guest), entry, {}, {}, depth=depth)
    (cut,) = graph.cuts
    assert (cut.context, cut.site, cut.function) == ((site,) * (depth - 1), site, "f")
    assert {point.context for point in graph.points} == {(site,) * number for number in range(depth)}
    told = build_supergraph(guest.image, lifter_of(guest), entry, {}, {"f": depth})
    assert not told.cuts  # a fact says that it goes no deeper
    assert len(told.points) == len(graph.points)


def test_a_function_that_is_summarised_is_one_edge():
    guest = small_guest({"f": "push {r4, lr}\nbl g\nbl g\npop {r4, pc}", "g": "adds r0, #1\nbx lr"})
    target = guest.address("g")
    graph = small_graph(guest, whole=frozenset(), given={target: None})
    assert graph.summarised == {target}
    calls = [edge for edge in graph.edges if graph.is_summary(edge)]
    assert len(calls) == 2
    for edge in calls:
        assert graph.points[edge.target].block.address == graph.points[edge.source].block.end_address
    assert {point.function.name for point in graph.points} == {"f"}
    assert not any(map(small_graph(guest).is_summary, small_graph(guest).edges))


def test_a_function_that_never_returns_is_refused_and_ways_that_do_not_are_left_out():
    trap = small_guest({"f": "push {r4, lr}\ncmp r0, #0\nbeq 1f\nbl g\n1: pop {r4, pc}", "g": "1: b 1b"})
    graph = small_graph(trap)
    assert {point.function.name for point in graph.points} == {"f"}
    assert graph.dead_ends == (trap.address("f") + 6,)
    assert any(point.left_out for point in graph.points)
    with pytest.raises(AnalysisError, match="g never returns"):
        small_graph(trap, "g")


@pytest.mark.parametrize("part", range(2))
def test_a_restricted_graph_has_the_paths_through_what_is_kept(part):
    random = Random(f"restricted {part}")
    for _ in range(40):
        count = random.randint(3, 6)
        edges = sorted({(random.randrange(count), random.randrange(count)) for _ in range(2 * count)})
        graph = made_by_hand([*edges, (0, count - 1), (count - 1, EXIT)])
        kept = {0} | {number for number in range(count) if random.random() < 0.7}
        found = restricted(graph, kept, {64})
        addresses = {4 * number for number in kept} | {EXIT}
        assert traces(found, 6) == {trace for trace in traces(graph, 6) if set(trace) <= addresses}
        assert found.dead_ends == (64,)
        for point in found.points:
            gone = [b for a, b in edges if 4 * a == point.block.address and b not in kept]
            if 4 * (count - 1) not in addresses and point.block.address == 0:
                gone.append(count - 1)
            assert {address for _, address in point.left_out} == {4 * one for one in gone}
