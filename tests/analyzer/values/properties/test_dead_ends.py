"""What no return can be reached from, against plain search; and the assumption that names where it is."""

import json
from random import Random
from types import SimpleNamespace

import pytest

from tests.analyzer.small_functions import analysed, small_guest
from tests.support import image_of
from wcet_probe.analyzer.graph.supergraph import EXIT, Edge, Point, Supergraph
from wcet_probe.analyzer.values.properties.dead_ends import dead_end_assumptions, returning_part
from wcet_probe.analyzer.values.result import Values
from wcet_probe.catalog.lookup import load_target
from wcet_probe.cli.app import main
from wcet_probe.errors import ExitCode

TRAPPED = "movs r1, #1\ncmp r0, #0\nbeq 2f\nbx lr\n2: adds r2, r2, #1\ncmp r1, #0\nbne 2b\nbx lr"


def values_of(count, graph_edges, taken, calling=(), unchecked=()):
    points = tuple(
        Point(
            number,
            (),
            SimpleNamespace(name="f"),
            SimpleNamespace(address=4 * number, calls=(64,) * (number in calling)),
        )
        for number in range(count)
    )
    reached, before = {0}, set()
    while reached != before:
        before = set(reached)
        reached |= {edge.target for edge in taken if edge.source in reached and edge.target != EXIT}
    edges = dict.fromkeys(edge for edge in taken if edge.source in reached)
    states = dict.fromkeys(sorted(reached))
    return Values(Supergraph(points, tuple(graph_edges), ()), None, states, edges, {}, {}, unchecked, (), {})


def returns(edges, start):
    seen, todo = set(), [start]
    while todo:
        one = todo.pop()
        if one == EXIT:
            return True
        if one not in seen:
            seen.add(one)
            todo += [edge.target for edge in edges if edge.source == one]
    return False


@pytest.mark.parametrize("part", range(3))
def test_what_stays_is_what_a_return_can_be_reached_from(part):
    shrunk = 0
    for seed in range(80):
        random = Random(f"dead ends {part} {seed}")
        count = random.randint(2, 7)
        pairs = {(random.randrange(count), random.randrange(count)) for _ in range(2 * count)}
        edges = [Edge(a, b, "jump", 4 * b) for a, b in sorted(pairs)] + [
            Edge(random.randrange(count), EXIT, "return", None)
        ]
        taken = [edge for edge in edges if random.random() < 0.9]
        values = values_of(count, edges, taken)
        alive = {one for one in values.states if returns(values.edges, one)}
        if 0 not in alive:
            continue
        found = returning_part(values)
        if alive == values.states.keys():
            assert found is values.graph
            continue
        shrunk += 1
        number = {point.block.address // 4: point.index for point in found.points}
        assert number.keys() == alive
        kept = [edge for edge in edges if edge.source in alive and (edge.target in alive or edge.target == EXIT)]
        assert {(e.source, e.target) for e in found.edges} == {
            (number[e.source], number.get(e.target, EXIT)) for e in kept
        }
        entered = {e.target for e in values.edges if e.source in alive and e.target not in alive} - {EXIT}
        assert set(found.dead_ends) == {4 * one for one in entered}
    assert shrunk > 10


def test_a_call_without_an_edge_stays():
    """That no flow comes behind it is what a fact about recursion says, and no dead end."""
    edges = [Edge(0, 1, "fall", 4), Edge(0, 2, "jump", 8), Edge(2, EXIT, "return", None)]
    assert returning_part(values_of(3, edges, edges)).dead_ends == (4,)
    calling = values_of(3, edges, edges, calling={1})
    assert returning_part(calling) is calling.graph
    before_it = [Edge(0, 3, "fall", 12), Edge(3, 1, "fall", 4), *edges[1:]]
    led_to = values_of(4, before_it, before_it, calling={1})
    assert returning_part(led_to) is led_to.graph


def test_a_call_whose_callee_does_not_return_is_a_dead_end():
    edges = [Edge(0, 1, "fall", 4), Edge(1, 3, "call", 12), Edge(3, 3, "jump", 12), Edge(0, 2, "jump", 8)]
    edges.append(Edge(2, EXIT, "return", None))
    found = returning_part(values_of(4, edges, edges, calling={1}))
    assert found.dead_ends == (4,)
    assert [point.block.address for point in found.points] == [0, 8]


def test_a_return_that_is_not_checked_stays():
    """That it goes to what never returns is assumed, and so the assumption is to be told."""
    edges = [Edge(0, 1, "call", 4), Edge(1, 3, "return", None), Edge(3, 3, "jump", 12), Edge(0, 2, "jump", 8)]
    edges.append(Edge(2, EXIT, "return", None))
    found = returning_part(values_of(4, edges, edges, unchecked=(1,)))
    assert [point.block.address for point in found.points] == [0, 4, 8]
    assert found.dead_ends == (12,)


def test_where_values_trap_control_the_call_is_assumed_to_return():
    guest = small_guest(TRAPPED)
    _, values = analysed(guest.image, guest.target)
    assert not list(dead_end_assumptions(guest.image, values))
    part = returning_part(values)
    (assumed,) = dead_end_assumptions(guest.image, SimpleNamespace(graph=part))
    assert assumed.id == "call-returns"
    assert assumed.statement.endswith(f"at {guest.image.location(guest.address('f') + 8)}")
    assert len(part.points) < len(values.graph.points)


ABSENT = """
static int twice(int x) { return 2 * x; }
static int same(int x) { return x; }
int (*const handlers[4])(int) = {twice, 0, same, 0};
int guarded(unsigned which, int x) { int (*one)(int) = handlers[which & 3]; return one ? one(x) + 1 : -1; }
int blind(unsigned which, int x) { return handlers[which & 3](x) + 1; }
"""


@pytest.mark.parametrize("target", ["cortex-m4", "arm926ej-s"])
def test_a_handler_that_is_absent_from_a_table_ends_no_call(target, tmp_path, monkeypatch, capsys):
    """A null pointer in a constant table: no code is there, and the assumption that the call returns names it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "guest.elf").write_bytes(image_of(ABSENT, load_target(target), ".c").elf)
    for entry, run in (
        ("guarded", "guarded(0, 5); guarded(1, 6); guarded(2, 7)"),
        ("blind", "blind(0, 5); blind(2, 7)"),
    ):
        command = ["bound", "guest.elf", "--entry", entry, "--target", target, "-q", "--json"]
        assert main([*command, "--run", run]) == ExitCode.OK, capsys.readouterr().err
        found = json.loads(capsys.readouterr().out)
        said = {one["id"]: one["statement"] for one in found["bound"]["assumptions"]}
        assert entry == "guarded" or "blind" in said["call-returns"]
        (tmp_path / "found.json").write_text(json.dumps(found), "utf-8")
        assert main(["verify", "found.json", "--image", "guest.elf"]) in (ExitCode.OK, ExitCode.CHECKED_IN_PART)
        capsys.readouterr()
