"""A block that is written as a function leaves what `constant_execution` leaves, from any state."""

from random import Random

import pytest

from tests.analyzer.recursive_programs import source
from tests.support import guest_of
from wcet_probe.analyzer.graph.cfg import instruction_at, outflow_at
from wcet_probe.analyzer.initial_data import image_data
from wcet_probe.analyzer.pcode.lift import image_lifter
from wcet_probe.analyzer.values.execution.compiled_blocks import CompiledExecution
from wcet_probe.analyzer.values.execution.constant_arithmetic import LINK
from wcet_probe.analyzer.values.execution.constant_execution import ConstantExecution
from wcet_probe.analyzer.values.execution.needed_operations import needed_of_block
from wcet_probe.analyzer.values.states.memory import Memory
from wcet_probe.analyzer.values.symbolic.locations import Location
from wcet_probe.build.image import require_symbol
from wcet_probe.catalog.lookup import load_target

TARGETS = ["cortex-m4", "arm926ej-s", "mpc603e"]


def blocks_of(guest, lifter):
    """The code of each function from each start that control may come to."""
    for function in guest.image.functions:
        at, own = function.address, []
        while at < function.address + function.size_bytes:
            instruction, flow = instruction_at(lifter, at), outflow_at(lifter, at)
            own.append(instruction)
            at += instruction.size_bytes
            if not flow.goes_on:
                yield tuple(own)
                own = []


def any_value(random, size_bytes, data):
    """Something that a register may hold: most are numbers, some addresses, flags are 0 or 1."""
    if size_bytes == 1:
        return random.choice([0, 1])
    if size_bytes != 4:
        return random.choice([None, random.randrange(1 << 8 * size_bytes)])
    numbers = random.randrange(1 << 32), random.randrange(64), data + random.randrange(64)
    return random.choice([*numbers, (-4 * random.randrange(16),), LINK, None])


def set_half(random, plain, state, places, data):
    """Let half of ``places`` hold something, or nothing known."""
    for place in random.sample(places, len(places) // 2):
        value = any_value(random, place.size_bytes, data)
        for other in plain.overlapping(place):
            state.registers.pop(other, None)
        if value is not None:
            state.registers[place] = value


def content(state):
    return state.registers, state.memory, state.pages


@pytest.mark.covering(1)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("seed", range(3))
def test_random_blocks_leave_what_is_left_without_it(target, seed):
    random = Random(f"compiled blocks {target} {seed}")
    guest = guest_of(source(("blocks", seed)), load_target(target), ".c", ["-O1", "-O2", "-Os"][seed])
    image = guest.image
    lifter = image_lifter(guest.target.pcode_language, guest.target.isa, image.segments)
    execution = ConstantExecution(Memory(image), lifter, image_data(image))
    plain, compiled = CompiledExecution(execution), CompiledExecution(execution)
    places = sorted({Location("register", one.offset, one.size_bytes) for one in lifter.registers.values()})
    data, compared = image_data(image)[0][0], 0
    for own in blocks_of(guest, lifter):
        needed = needed_of_block(own, lifter)
        block = compiled.compiled(own, needed)
        for _ in range(6):
            state = plain.entered()
            set_half(random, plain, state, places, data)
            leaving = plain.block(own, state.copy(), (), needed)
            compiled.is_forked, compiled.accesses = False, []
            found = compiled.execute(block, state)
            if found is None:
                continue
            compared += 1
            (way,) = leaving
            assert found[:4] == way[:4]
            for one, other in zip(content(found.state), content(way.state), strict=True):
                assert {at: held for at, held in one.items() if other.get(at) != held} == {}
                assert other.keys() == one.keys()
    assert compared > 30


PREDICATED = """\
.text
.global {name}
.type {name}, %function
{name}:
 cmp r0, #5
 {first}
 movgt r1, #7
 ldrgt r2, [r3]
 strgt r1, [r3, #4]
 {second}
 addle r1, r1, #1
 bx lr
.size {name}, . - {name}
"""
"""A part that is predicated, and one that is for the opposite: both read and write the same registers."""


@pytest.mark.parametrize("target", ["cortex-m4", "arm926ej-s"])
@pytest.mark.parametrize("number", [5, 6, None])
def test_predicated_instructions_are_part_of_the_function(target, number):
    is_thumb = target == "cortex-m4"
    own = PREDICATED.format(name="f", first="ittt gt" if is_thumb else "nop", second="it le" if is_thumb else "nop")
    head = ".syntax unified\n" + (".thumb\n.thumb_func\n" if is_thumb else ".arm\n")
    guest = guest_of(head + own, load_target(target), ".s")
    lifter = image_lifter(guest.target.pcode_language, guest.target.isa, guest.image.segments)
    plain = ConstantExecution(Memory(guest.image), lifter)
    compiled = CompiledExecution(plain)
    (code,) = [own for own in blocks_of(guest, lifter) if own[0].address == require_symbol(guest.image, "f").address]
    needed = needed_of_block(code, lifter)
    block = compiled.compiled(code, needed)
    assert len(block.parts) == 1
    assert block.is_varied
    place = {name: Location("register", one.offset, one.size_bytes) for name, one in lifter.registers.items()}
    state = plain.entered()
    state.registers.update({place["r1"]: 3, place["r3"]: 0x20000100})
    if number is not None:
        state.registers[place["r0"]] = number
    leaving = plain.block(code, state.copy(), (), needed)
    found = compiled.execute(block, state)
    if number is None:
        assert found is None
        return
    (way,) = leaving
    assert found[:4] == way[:4]
    assert content(found.state) == content(way.state)
    assert found.state.registers[place["r1"]] == (7 if number > 5 else 4)
    assert len(compiled.accesses) == (2 if number > 5 else 0)


BYTES = """unsigned char bytes[4]; unsigned short half; unsigned word;
unsigned f(unsigned n) { bytes[1] = n; half = n >> 4; word = n; return bytes[1] + half; }
"""


@pytest.mark.parametrize("target", ["cortex-m4", "arm926ej-s", "mpc603e"])
def test_what_is_stored_of_a_part_of_a_register_is_known(target):
    guest = guest_of(BYTES, load_target(target), ".c", "-O1")
    image = guest.image
    lifter = image_lifter(guest.target.pcode_language, guest.target.isa, image.segments)
    execution = ConstantExecution(Memory(image), lifter, image_data(image))
    state = execution.entered()
    argument = lifter.registers["r3" if target == "mpc603e" else "r0"]
    state.registers[Location("register", argument.offset, 4)] = 0x12345678
    at, way = image.symbols["f"].address, None
    while way is None or way.way == "fall":
        instruction = instruction_at(lifter, at)
        (way,) = execution.block((instruction,), state, ())
        state, at = way.state, at + instruction.size_bytes
    assert state.registers[Location("register", argument.offset, 4)] == 0x78 + 0x4567
