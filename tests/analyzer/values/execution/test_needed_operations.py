"""Operations that are left out change nothing that somebody reads; predicated instructions meet behind their run."""

from pathlib import Path

import pytest
from platformdirs import user_cache_dir

from tests.analyzer.small_functions import analysed, of_text, small_guest
from wcet_probe.analyzer.values.execution.needed_operations import flag_bytes, needed_operations
from wcet_probe.analyzer.values.execution.transfer import Transfer
from wcet_probe.analyzer.values.states.memory import Memory
from wcet_probe.analyzer.values.symbolic.locations import Location
from wcet_probe.build.program import load_program
from wcet_probe.catalog.lookup import load_allocator, load_target


def computed(lifter, values):
    """Of each instruction, which flags are computed for somebody."""
    names = {varnode: name for name, varnode in lifter.registers.items() if name in {"ng", "zr", "cy", "ov"}}
    needed = needed_operations(values.graph, lifter)
    return [
        {names[one.ops[index].output] for index in operations if one.ops[index].output in names}
        for point in sorted(values.graph.points, key=lambda one: one.block.address)
        for one, operations in zip(point.block.instructions, needed[point.index].operations, strict=True)
    ]


def test_flags_are_computed_for_who_reads_them_and_for_the_caller():
    lifter, values = of_text("adds r0, r0, r1\nadds r0, r0, r2\nbeq 1f\nadds r0, r0, r3\n1:\nmovs r1, #1\nbx lr")
    assert computed(lifter, values) == [set(), {"zr", "cy", "ov"}, set(), {"cy", "ov"}, {"ng", "zr"}, set()]


def test_a_flag_that_is_read_in_a_later_round_is_computed():
    lifter, values = of_text("movs r2, #3\nadds r0, r0, r1\n1:\nadc r0, r0, r1\nsubs r2, #1\nbne 1b\ncmp r0, #0\nbx lr")
    assert computed(lifter, values)[1] == {"cy"}
    assert {"zr", "cy"} <= computed(lifter, values)[3]


@pytest.mark.parametrize("target", ["cortex-m4", "arm926ej-s", "mpc603e"])
def test_what_is_left_out_makes_no_difference_to_what_is_read(target):
    """Block by block: ways, conditions, targets, and all that is held but for flags that nobody reads."""
    core = load_target(target)
    program = load_program(load_allocator("half-fit"), core, "zig", Path(user_cache_dir("wcet-probe")))
    lifter, values = analysed(program.image, core, program.allocator.entry_points["malloc"])
    needed, flags = needed_operations(values.graph, lifter), flag_bytes(lifter)
    memory = Memory(program.image, stack_escapes=values.stack_escapes)
    whole, part = (Transfer(lifter, values.terms, memory, needed=one) for one in ({}, needed))
    left_out = 0
    for index, state in values.states.items():
        instructions = values.graph.points[index].block.instructions
        left_out += sum(len(one.ops) for one in instructions) - sum(map(len, needed[index].operations))
        flows = [each.block(index, instructions, state.copy()) for each in (whole, part)]
        assert [(one.way, one.address, one.target) for one in flows[0]] == [
            (one.way, one.address, one.target) for one in flows[1]
        ]
        for one, other in zip(*flows, strict=True):
            assert one.conditions == other.conditions
            for location, term in one.state.locations.items():
                if location not in needed[index].dead:
                    assert other.state.locations[location] == term
                else:
                    assert location not in other.state.locations
            for location in other.state.locations.keys() - one.state.locations.keys():
                assert location.offset in flags
    assert left_out


def meetings(text):
    """How often ways meet in the first block of ``text``, and what a register can be at its end."""
    lifter, values = of_text(text)
    found = []
    memory = Memory(small_guest(text).image)
    transfer = Transfer(lifter, values.terms, memory, lambda *one: found.append(one))
    (flow,) = transfer.block(0, values.graph.points[0].block.instructions, values.states[0].copy())

    def values_of(name):
        varnode = lifter.registers[name]
        return set(flow.state.value(flow.state.read(Location("register", varnode.offset, 4))).values())

    return len(found), values_of


def test_instructions_under_one_condition_and_its_opposite_meet_once():
    number, values_of = meetings("movs r2, #9\ncmp r0, #0\nitee eq\nmoveq r1, #1\nmovne r1, #2\nmovne r2, #3\nbx lr")
    assert (number, values_of("r1"), values_of("r2")) == (1, {1, 2}, {3, 9})


def test_a_condition_that_is_changed_within_its_run_ends_it():
    number, values_of = meetings("movs r2, #9\ncmp r0, #0\nitt eq\ncmpeq r1, #0\nmoveq r2, #1\nbx lr")
    assert (number, values_of("r2")) == (2, {1, 9})
