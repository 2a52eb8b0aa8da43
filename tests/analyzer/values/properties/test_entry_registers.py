"""Registers at entry that take part in what a function does, of functions where that can be seen at once."""

import pytest

from tests.support import assembler, guest_of
from wcet_probe.analyzer.graph.supergraph import build_supergraph
from wcet_probe.analyzer.pcode.lift import Lifter, code_reader
from wcet_probe.analyzer.values.analysis import analyze_values
from wcet_probe.analyzer.values.properties.entry_registers import deciding_registers, register_bytes
from wcet_probe.build.image import require_symbol
from wcet_probe.catalog.lookup import load_target

TARGET = load_target("cortex-m4")
FUNCTIONS = {
    "reads_two": ("adds r0, r0, r1\nbx lr", {"r0", "r1"}),
    "writes_before_reading": ("movs r2, #1\nadds r0, r2, #3\nbx lr", set()),
    "writes_on_one_way": ("cmp r0, #0\nbeq 1f\nmovs r3, #1\n1:\nbx lr", {"r0", "r3"}),
    "writes_on_both_ways": ("cmp r0, #0\nbeq 1f\nmovs r3, #1\nbx lr\n1:\nmovs r3, #2\nbx lr", {"r0"}),
    "reads_on_one_way": ("cmp r0, #0\nbeq 1f\nmovs r3, #1\n1:\nmov r0, r3\nbx lr", {"r0", "r3"}),
    "writes_under_a_condition": ("cmp r0, #0\nit ne\nmovne r3, #1\nbx lr", {"r0", "r3"}),
    "reads_a_part": ("uxtb r0, r2\nbx lr", {"r2"}),
    "saves_and_restores": ("push {r3, lr}\npop {r3, pc}", {"r3"}),
    "reads_in_a_later_round": ("movs r0, #3\n1:\nmov r2, r1\nmov r1, r3\nsubs r0, #1\nbne 1b\nbx lr", {"r1", "r3"}),
}
WATCHED = ("r0", "r1", "r2", "r3", "r12")


def values_of(text):
    guest = guest_of(assembler({"f": text}, TARGET), TARGET)
    lifter = Lifter(TARGET.pcode_language, TARGET.isa, code_reader(guest.image.segments))
    graph = build_supergraph(guest.image, lifter, require_symbol(guest.image, "f"), {}, {})
    return analyze_values(guest.image, lifter, graph, {})


def names(values, found):
    return {name for name in WATCHED if not found.isdisjoint(register_bytes([values.registers[name]]))}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_registers_that_are_read_first_or_written_on_some_ways_only(name):
    text, expected = FUNCTIONS[name]
    values = values_of(text)
    assert names(values, deciding_registers(values, lambda _: ())) == expected


def test_what_a_callee_reads_and_what_it_surely_writes():
    """Of two callees that one call may go to, what both surely write is written."""
    values = values_of("nop\nbx lr")
    register = values.registers.__getitem__

    def called(*calls):
        return names(values, deciding_registers(values, lambda _: calls))

    reading = register_bytes([register("r1")])
    results = [register("r0"), register("r2")]
    assert called((reading, results)) == {"r1"}
    assert called((reading, results), (frozenset(), [register("r2")])) == {"r0", "r1"}
    assert called((register_bytes([register("r2")]), results)) == {"r2"}
