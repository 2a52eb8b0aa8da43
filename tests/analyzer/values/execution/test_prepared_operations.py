"""What is told of an operation without a state: its operands, and whether it is plain arithmetic of numbers."""

import pytest

from tests.support import guest_of
from wcet_probe.analyzer.pcode.lift import image_lifter
from wcet_probe.analyzer.pcode.operations import PcodeOp, Varnode
from wcet_probe.analyzer.values.execution.constant_execution import ConstantExecution
from wcet_probe.analyzer.values.states.memory import Memory
from wcet_probe.analyzer.values.symbolic.locations import Location, part_of
from wcet_probe.catalog.lookup import load_target


@pytest.fixture(scope="module")
def execution():
    guest = guest_of("void f(void) {}", load_target("mpc603e"), ".c")
    lifter = image_lifter(guest.target.pcode_language, guest.target.isa, guest.image.segments)
    return ConstantExecution(Memory(guest.image), lifter)


def prepared(execution, opcode, *inputs, out=None):
    return execution._op(PcodeOp(opcode, out or Varnode("unique", 0, 4), inputs))


def test_operands_are_places_and_numbers_of_their_width(execution):
    one = prepared(execution, "INT_ADD", Varnode("unique", 8, 4), Varnode("const", (1 << 40) + 5, 4))
    assert one.inputs == (Location("unique", 8, 4), 5)
    assert one.operands == one.inputs
    assert one.plain(3, 5) == 8
    assert prepared(execution, "COPY", Varnode("ram", 64, 4)).inputs == (None,)


def test_what_may_be_undefined_or_is_part_of_a_register_is_not_plain(execution):
    own = execution._lifter.registers["r5"]
    low = Varnode("register", own.offset + 3, 1)
    assert part_of(Location(*low), execution._lifter) == (Location(*own), 0)
    assert prepared(execution, "INT_ZEXT", low).plain is None
    assert prepared(execution, "INT_ZEXT", Varnode("unique", 8, 1)).plain is not None
    operands = Varnode("unique", 8, 4), Varnode("unique", 16, 4)
    assert prepared(execution, "DEFINED_DIV", *operands).plain is None
    assert prepared(execution, "FLOAT_ADD", *operands).function is None


def test_a_part_has_the_place_that_the_order_of_bytes_gives_it(execution):
    lifter = execution._lifter
    own = lifter.registers["r5"]
    places = [part_of(Location("register", own.offset + ahead, 1), lifter) for ahead in range(4)]
    assert [shift for _, shift in places] == [24, 16, 8, 0]
    assert part_of(Location("register", own.offset + 2, 2), lifter) == (Location(*own), 0)
    assert part_of(Location(*own), lifter) is None
    assert part_of(Location("unique", own.offset, 1), lifter) is None
    assert part_of(Location("register", own.offset + 3, 2), lifter) is None
