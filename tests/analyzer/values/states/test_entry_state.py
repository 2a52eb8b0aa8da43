"""What is known where a function is entered."""

from tests.analyzer.small_functions import of_text
from wcet_probe.analyzer.domains import strided
from wcet_probe.analyzer.values.states.bases import Base
from wcet_probe.analyzer.values.states.entry_state import entry_state
from wcet_probe.analyzer.values.symbolic.locations import Location, register_locations, words_at_entry
from wcet_probe.analyzer.values.symbolic.terms import Terms


def test_arguments_have_their_ranges_and_the_stack_pointer_is_what_offsets_are_measured_from():
    lifter, values = of_text("bx lr")
    registers = register_locations(lifter)
    given = {"r0": strided.between(32, 1, 9), 4: strided.constant(32, 7)}
    state = entry_state(Terms(), lifter, given, (), is_called=False)
    assert values.states[0].locations.keys() >= {registers["sp"]}
    assert state.value(state.read(registers["r0"])) == given["r0"]
    assert state.value(state.read(Location("stack", 4, 4))) == given[4]
    pointer = state.read(registers["sp"])
    assert (state.base(pointer), state.value(pointer)) == (Base.STACK, strided.constant(32, 0))
    assert state.locations.keys() >= set(words_at_entry(lifter.isa))


def test_of_a_callee_a_pointer_may_be_to_the_stack_and_nothing_is_told_of_words_above():
    lifter, _ = of_text("bx lr")
    register = register_locations(lifter)["r1"]
    state = entry_state(Terms(), lifter, {}, (register,), is_called=True)
    assert state.base(state.read(register)) is Base.ANY
    assert state.locations.keys() == {register, register_locations(lifter)["sp"]}
