"""A block that was executed often enough to have functions leaves what `constant_execution` leaves, from any state."""

from random import Random

import pytest

from tests.analyzer.recursive_programs import source
from tests.analyzer.values.execution.test_compiled_blocks import TARGETS, blocks_of, content, set_half
from tests.support import guest_of
from wcet_probe.analyzer.domains import strided
from wcet_probe.analyzer.initial_data import image_data
from wcet_probe.analyzer.pcode.lift import image_lifter
from wcet_probe.analyzer.values.execution import repeated_blocks
from wcet_probe.analyzer.values.execution.accesses import Access
from wcet_probe.analyzer.values.execution.constant_execution import ConstantExecution, Constants
from wcet_probe.analyzer.values.execution.needed_operations import needed_of_block
from wcet_probe.analyzer.values.execution.repeated_blocks import RepeatedExecution
from wcet_probe.analyzer.values.states.bases import Base
from wcet_probe.analyzer.values.states.memory import Memory
from wcet_probe.analyzer.values.symbolic.locations import Location
from wcet_probe.catalog.lookup import load_target


def told_of(random, instructions, data):
    """What values may tell of the stores of some of the instructions: a part of the stack, of data, or anywhere."""
    ranges = {
        Base.STACK: strided.between(32, (1 << 32) - 24, (1 << 32) - 8),
        Base.NUMBER: strided.between(32, data, data + 12),
        Base.ANY: strided.top(32),
    }
    for instruction in instructions:
        if random.random() < 0.8:
            base = random.choice(list(ranges))
            yield Access(instruction.address, True, base, ranges[base], 4, None, 0, (), is_certain=False)


def any_state(random, plain, places, data):
    """A state in which half the registers and some cells of memory are known."""
    memory = {("stack", -4 * one): (4, random.choice([one, (-8,)])) for one in range(1, 8)}
    memory |= {("static", data + 4 * one): (4, random.randrange(1 << 32)) for one in range(8)}
    state = Constants({}, memory) if random.random() < 0.5 else plain.entered()
    set_half(random, plain, state, places, data)
    return state


@pytest.mark.parametrize("target", TARGETS)
def test_random_blocks_leave_what_is_left_without_functions(target, monkeypatch):
    monkeypatch.setattr(repeated_blocks, "_REPEATED", 1)
    random = Random(f"repeated blocks {target}")
    guest = guest_of(source(("blocks", TARGETS.index(target))), load_target(target), ".c", "-O2")
    image = guest.image
    lifter = image_lifter(guest.target.pcode_language, guest.target.isa, image.segments)
    plain, repeated = (
        kind(Memory(image), lifter, image_data(image)) for kind in (ConstantExecution, RepeatedExecution)
    )
    places = sorted({Location("register", one.offset, one.size_bytes) for one in lifter.registers.values()})
    for place in places:
        repeated.overlapping(place)
    data, lost = image_data(image)[0][0], 0
    for own in blocks_of(guest, lifter):
        needed = needed_of_block(own, lifter)
        for _ in range(6):
            state, told = any_state(random, plain, places, data), tuple(told_of(random, own, data))
            held = len(state.memory)
            expected = plain.block(own, state.copy(), told, needed)
            found = repeated.block(own, state.copy(), told, needed)
            assert [way[:4] for way in found] == [way[:4] for way in expected]
            assert [content(way.state) for way in found] == [content(way.state) for way in expected]
            lost += any(len(way.state.memory) < held for way in expected)
    assert lost > 10
    assert repeated.tells_alignment == plain.tells_alignment


def test_functions_are_made_of_what_is_repeated_only(monkeypatch):
    guest = guest_of("int f(int a) { return a * 3 + 1; }", load_target("cortex-m4"), ".c", "-O1")
    lifter = image_lifter(guest.target.pcode_language, guest.target.isa, guest.image.segments)
    made = []
    real = repeated_blocks.function_of
    monkeypatch.setattr(repeated_blocks, "function_of", lambda *given: made.append(given) or real(*given))
    repeated = RepeatedExecution(Memory(guest.image), lifter)
    (own,) = blocks_of(guest, lifter)
    needed = needed_of_block(own, lifter)
    for times in range(60):
        (way,) = repeated.block(own, Constants({}, {}), (), needed)
        assert way.is_indirect
        assert len(made) == (times + 1 >= repeated_blocks._REPEATED)
