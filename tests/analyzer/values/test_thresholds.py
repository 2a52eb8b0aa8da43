"""Where widening stops: at what a loop compares with and what is held at its header first, then at every constant."""

from tests.analyzer.small_functions import POWERPC, of_text
from wcet_probe.analyzer.graph.flow_order import FlowOrder
from wcet_probe.analyzer.values.execution.needed_operations import needed_operations
from wcet_probe.analyzer.values.thresholds import Thresholds

LOOPS = (
    "movs r0, #0\nmovw r5, #500\n1: add.w r2, r0, #200\nadds r0, #1\ncmp r0, #77\nbne 1b\n"
    "2: subs r5, #1\ncmp r5, #40\nbhi 2b\nmovw r3, #900\n3: adds r0, #1\ncmp r0, r3\nbne 3b\n"
    "4: adds r0, #1\ncmp.w r0, #1000\nbne 4b\nbx lr"
)


def of_one_loop(values):
    """The thresholds of a function with a single loop, and the loop's header."""
    order = FlowOrder(range(len(values.graph.points)), values.graph.edges)
    (header,) = (loop.header for loop in order.loops)
    return Thresholds(values.graph, order.loops), header


def test_the_constants_of_a_loop_come_first():
    _, values = of_text(LOOPS)
    order = FlowOrder(range(len(values.graph.points)), values.graph.edges)
    found = Thresholds(values.graph, order.loops)
    headers = sorted((loop.header for loop in order.loops), key=lambda one: values.graph.points[one].block.address)
    compared = [set(found.compared(one, values.states[one])) for one in headers]
    assert {0, 76, 77, 78} <= compared[0]
    assert compared[0].isdisjoint({39, 40, 41, 500})
    assert {39, 40, 41} <= compared[1]
    assert {899, 900, 901} <= compared[2]  # which a register holds
    assert {999, 1000, 1001} <= compared[3]  # which Thumb copies first
    assert compared[3].isdisjoint({40, 77, 900})
    assert {76, 77, 78, 0, 499, 500, 501} <= set(found.held(headers[0], values.states[headers[0]]))
    assert {200, 39, 40, 41, 77, 1000} <= set(found.all)


def test_a_step_of_a_counter_and_the_place_of_a_condition_are_no_comparisons():
    text = "li 4, 9\nmtctr 4\n1: andi. 5, 3, 64\naddi 6, 6, 1\nbeq 2f\naddi 6, 6, 2\n2: bdnz 1b\nblr"
    _, values = of_text(text, POWERPC)
    thresholds, header = of_one_loop(values)
    found = thresholds.compared(header, values.states[header])
    assert set(found) == {0, 1, (1 << 32) - 1}


def test_a_place_of_the_stack_that_a_register_holds_is_where_a_pointer_is_likely_to_stop():
    """What is written to an array in a frame would else be followed above it, to registers that were saved there."""
    text = (
        "push {r4, r5, r6, lr}\nsub sp, #32\nmov r4, r0\nadd r6, sp, #24\nadd r3, sp, #8\nstr r3, [sp, #28]\n"
        "movs r5, #9\n1: ldr r3, [sp, #28]\n2: ldrb r2, [r4]\nstrd r2, r2, [r3]\nadds r3, #8\ncmp r3, r6\nbne 2b\n"
        "subs r5, #1\nbne 1b\nadd sp, #32\npop {r4, r5, r6, pc}"
    )
    _, values = of_text(text)
    order = FlowOrder(range(len(values.graph.points)), values.graph.edges)
    inner = max(order.loops, key=lambda loop: values.graph.points[loop.header].block.address).header
    assert (1 << 32) - 24 in Thresholds(values.graph, order.loops).compared(inner, values.states[inner])
    stores = [one.offset for one in values.accesses[inner] if one.is_store]
    assert [one.signed_range() for one in stores] == [(-40, -32), (-36, -28)]


def test_a_counter_stops_where_it_is_compared_itself_whatever_else_is_compared():
    """Digits of a number go to a buffer: each is compared with 9, the count of them with the buffer's size."""
    text = (
        "push {r4, lr}\nsub sp, #32\nmov r4, sp\nmovs r1, #0\n1: and r3, r0, #15\ncmp r3, #9\nite ls\n"
        "addls r3, #48\naddhi r3, #87\ncmp r0, #16\nadd.w r1, r1, #1\nstrb r3, [r4], #1\nmov.w r0, r0, lsr #4\n"
        "blo 2f\ncmp r1, #32\nbne 1b\n2: add sp, #32\npop {r4, pc}"
    )
    _, values = of_text(text)
    thresholds, header = of_one_loop(values)
    state = values.states[header]
    counter = state.locations[values.registers["r1"]]
    own = thresholds.own(header, state)
    assert {31, 32, 33} <= set(own[counter])
    assert 9 not in own[counter]
    (store,) = (one.offset for one in values.accesses[header] if one.is_store)
    assert store.signed_range() == (-40, -9)


def test_what_a_pointer_is_told_by_stops_where_the_pointer_does():
    """Two pointers advance together: the one that is compared is held as the other one and a constant."""
    text = (
        "sub sp, #64\nadd r0, sp, #48\nmov r1, sp\nadd r2, sp, #16\n1: ldr r3, [r1], #4\nstr r3, [r2], #4\n"
        "cmp r2, r0\nbne 1b\nadd sp, #64\nbx lr"
    )
    _, values = of_text(text)
    thresholds, header = of_one_loop(values)
    stops = thresholds.compared(header, values.states[header])
    assert {(1 << 32) - 16, (1 << 32) - 32} <= set(stops)
    (store,) = (one.offset for one in values.accesses[header] if one.is_store)
    assert store.signed_range() == (-48, -20)


def test_registers_are_compared_by_flags_that_somebody_reads():
    """``adds`` compares nothing where its carry is not asked for; PowerPC copies what it compares."""
    for text, isa, name in (
        ("movs r0, #0\n1: adds r1, #4\nadds r0, #1\ncmp r0, #77\nbne 1b\nbx lr", None, "r0"),
        ("li 4, 9\n1: addi 4, 4, -1\naddi 5, 5, 4\ncmplwi 4, 7\nbgt 1b\nblr", POWERPC, "r4"),
    ):
        lifter, values = of_text(text, *([isa] if isa else []))
        order = FlowOrder(range(len(values.graph.points)), values.graph.edges)
        (header,) = (loop.header for loop in order.loops)
        needed = needed_operations(values.graph, lifter)
        assert set(Thresholds(values.graph, order.loops).registers(header, needed)) == {values.registers[name]}
