"""Places of a state as values: numbers, offsets in the stack, and distances from one word where several tell of it."""

from tests.analyzer.small_functions import of_text
from wcet_probe.analyzer.values.execution.constant_arithmetic import name_of
from wcet_probe.analyzer.values.execution.known_places import forget_lone, known_value, learn


def values_behind(text, *names):
    """What is known of registers where the function begins its loop."""
    lifter, values = of_text(text)
    state = next(found.state for edge, found in values.edges.items() if edge.source == 0)
    places = {at.offset: at for at in state.locations if at.space == "register" and at.size_bytes == 4}
    return [known_value(state, state.locations[places[lifter.registers[name].offset]]) for name in names]


def test_sums_of_one_word_are_told_from_it_and_products_and_sums_of_two_are_not():
    begin = "mov r1, r0\nadds r2, r0, #1\nadd.w r3, r0, #121\nadds r4, r0, r1\nlsls r5, r0, #1\n"
    text = begin + "1: adds r2, #1\ncmp r2, r3\nbne 1b\nadd r0, r1\nadd r0, r4\nadd r0, r5\nbx lr"
    own, next_to_it, end, both, twice = values_behind(text, "r1", "r2", "r3", "r4", "r5")
    name = name_of(own)
    assert name is not None
    assert (next_to_it, end) == ((1, 0, 0, 1, name), (121, 0, 0, 1, name))
    assert both is twice is None


def test_a_word_from_which_one_place_is_told_is_forgotten():
    other, stack = (4, 0, 0, 1, 9), (-8,)
    registers = {"a": (0, 0, 0, 1, 5), "b": (0, 0, 0, 1, 5), "c": other, "d": 3, "e": stack}
    memory = {("stack", -4): (4, (8, 0, 0, 1, 9)), ("stack", -8): (4, 7), ("static", 0): (4, (1, 0, 0, 1, 6))}
    forget_lone(registers, memory)
    assert registers == {"c": other, "d": 3, "e": stack}
    assert memory == {("stack", -4): (4, (8, 0, 0, 1, 9)), ("stack", -8): (4, 7)}


def test_what_is_learnt_is_no_distance_and_does_not_replace_what_is_known():
    lifter, values = of_text(
        "movs r2, #5\nmov r1, r0\nadds r3, r0, #9\n1: adds r2, #1\ncmp r2, r3\nbne 1b\nadd r0, r1\nbx lr"
    )
    state = next(found.state for edge, found in values.edges.items() if edge.source == 0)
    r2 = next(at for at in state.locations if at[:2] == ("register", lifter.registers["r2"].offset))
    registers = {}
    learn(registers, state, lambda at: [at])
    assert registers[r2] == 5
    assert not any(name_of(value) is not None for value in registers.values())
    registers = {r2._replace(size_bytes=1): 7}
    learn(registers, state, lambda at: [at, *registers] if at == r2 else [at])
    assert 5 not in registers.values()
