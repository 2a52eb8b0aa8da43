"""Where widening stops: at what a loop compares with and what is held at its header first, then at every constant."""

from tests.analyzer.small_functions import of_text
from wcet_probe.analyzer.graph.flow_order import FlowOrder
from wcet_probe.analyzer.values.thresholds import Thresholds

LOOPS = (
    "movs r0, #0\nmovw r5, #500\n1: add.w r2, r0, #200\nadds r0, #1\ncmp r0, #77\nbne 1b\n"
    "2: subs r5, #1\ncmp r5, #40\nbhi 2b\nbx lr"
)


def test_the_constants_of_a_loop_come_first():
    _, values = of_text(LOOPS)
    order = FlowOrder(range(len(values.graph.points)), values.graph.edges)
    found = Thresholds(values.graph, order.loops)
    first, second = sorted(order.loops, key=lambda loop: values.graph.points[loop.header].block.address)
    own = set(found.of(first.header, values.states[first.header]))
    assert {0, 76, 77, 78, 499, 500, 501} <= own
    assert own.isdisjoint({200, 39, 40, 41})
    assert {39, 40, 41} <= set(found.of(second.header, values.states[second.header]))
    assert {200, 39, 40, 41, 77} <= set(found.all)
