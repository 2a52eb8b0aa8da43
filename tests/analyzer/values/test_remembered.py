"""What was analysed is found again where the same is asked, and only there."""

from dataclasses import replace

import pytest

from tests.support import assembler, guest_of
from wcet_probe.analyzer.domains import strided
from wcet_probe.analyzer.graph.supergraph import build_supergraph
from wcet_probe.analyzer.values.analysis import TooMuchWorkError
from wcet_probe.analyzer.values.execution.call_effects import Effect, Result
from wcet_probe.analyzer.values.remembered import remember
from wcet_probe.analyzer.values.states.bases import Base
from wcet_probe.analyzer.values.symbolic.locations import Location
from wcet_probe.build.image import require_symbol
from wcet_probe.catalog.lookup import load_target

TARGET = load_target("cortex-m4")
TEXT = {"f": "push {r4, lr}\nbl g\npop {r4, pc}", "g": "movs r0, #1\nbx lr"}


def asked():
    image = guest_of(assembler(TEXT, TARGET), TARGET).image
    known = remember(image, TARGET)
    target = require_symbol(image, "g").address
    graph = build_supergraph(
        image, known.lifter, require_symbol(image, "f"), {}, {}, whole=frozenset(), given={target: None}
    )
    assert graph.summarised == {target}
    return image, known, graph


def effect(number):
    return Effect((Result(Location("register", 32, 4), Base.NUMBER, strided.constant(32, number)),), (), escapes=False)


def test_values_are_found_by_graph_arguments_and_what_calls_do():
    image, known, graph = asked()

    def values(number, *, graph=graph, arguments=None):
        return known.analyze(image, known.lifter, graph, arguments or {}, callees=lambda _: effect(number))

    first = values(1)
    assert values(1) is first
    assert values(1, graph=replace(graph)) is first
    second = values(2)
    assert second is not first
    (returned,) = (one.state for edge, one in second.edges.items() if edge.target < 0)
    assert returned.value(returned.read(Location("register", 32, 4))).value == 2
    assert (values(1), values(2)) == (first, second)
    assert values(1, arguments={"r1": strided.constant(32, 7)}) is not first


def test_another_image_is_analysed_anew():
    _, known, _ = asked()
    image, other, graph = asked()
    values = [known.analyze(image, other.lifter, graph, {}, callees=lambda _: effect(1)) for _ in range(2)]
    assert values[0] is not values[1]


def test_no_more_is_analysed_than_may_be():
    image, known, graph = asked()

    def values(number):
        return known.analyze(image, known.lifter, graph, {}, callees=lambda _: effect(number))

    known.left = 1
    with pytest.raises(TooMuchWorkError):
        values(1)
    known.left = 100
    first = values(1)
    assert first.visits >= len(first.states)
    known.left = first.visits + len(first.states)  # which the check executes once more
    values(2)
    assert known.left < 0
    with pytest.raises(TooMuchWorkError):
        values(3)
    assert values(1) is first
