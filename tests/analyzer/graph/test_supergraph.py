"""The graph of all calls: each call path has its own blocks; what is left out, split or restricted loses no path."""

from random import Random
from types import SimpleNamespace

import pytest

from tests.analyzer.graph.random_calls import assembled, plainly, random_bodies
from tests.analyzer.small_functions import lifter_of, small_graph, small_guest
from tests.path_check import attack, proved
from tests.support import assembler, guest_of
from wcet_probe.analyzer.graph.supergraph import (
    EXIT,
    Edge,
    Point,
    Supergraph,
    build_supergraph,
    reducible,
    restricted,
)
from wcet_probe.build.image import require_symbol
from wcet_probe.catalog.lookup import load_target
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


def made_by_hand(edges):
    count = 1 + max(max(edge) for edge in edges)
    points = tuple(
        Point(number, (), SimpleNamespace(name="f"), SimpleNamespace(address=4 * number)) for number in range(count)
    )
    return Supergraph(points, tuple(Edge(a, b, "jump" if b >= 0 else "return", 4 * b) for a, b in edges), ())


def traces(graph, length):
    """The addresses of all paths from the entry, up to a length."""
    following = graph.successors()
    paths, found = [(0,)], set()
    for _ in range(length):
        found |= {tuple(graph.points[one].block.address if one >= 0 else EXIT for one in path) for path in paths}
        paths = [(*path, edge.target) for path in paths for edge in following.get(path[-1], ()) if path[-1] != EXIT]
    return found


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
    with pytest.raises(AnalysisError, match=r"f has an irreducible loop, entered at 0x14, 0x18: rewrite its goto"):
        reducible(made_by_hand([*tangled, (6, EXIT)]), SimpleNamespace(location=hex))


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
