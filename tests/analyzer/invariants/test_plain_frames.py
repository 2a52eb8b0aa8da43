"""What an operation loads from its stack is no address of the stack, where none was stored that the load could see."""

import pytest

from wcet_probe.analyzer.domains import strided
from wcet_probe.analyzer.invariants.plain_frames import held, require_plain_frames
from wcet_probe.analyzer.values.execution.accesses import WordTransfer
from wcet_probe.analyzer.values.states.bases import Base
from wcet_probe.analyzer.values.states.state import State
from wcet_probe.analyzer.values.symbolic.locations import Location
from wcet_probe.analyzer.values.symbolic.terms import Terms
from wcet_probe.errors import AnalysisError


class Frame:
    """A state with a stack pointer, an index from 0 to 3, and a number."""

    def __init__(self):
        self.terms = Terms()
        self.state = State(self.terms, big_endian=True)
        self.stack = self.terms.symbol(("stack pointer",), 32)
        self.state.set_base(self.stack, Base.STACK)
        self.state.set_known(self.stack, strided.constant(32, 0))
        self.index = self.terms.symbol((0, 0, 1), 32)
        self.state.set_known(self.index, strided.between(32, 0, 12, 4))
        self.number = self.terms.symbol((0, 0, 2), 32)

    def at(self, distance, *, indexed=False):
        place = self.terms.apply("INT_ADD", (self.stack, self.terms.constant(distance % (1 << 32), 32)), 32)
        return self.terms.apply("INT_ADD", (place, self.index), 32) if indexed else place

    def access(self, pointer, value=None):
        return WordTransfer(0, 0x8000, 0, pointer, value, 4, self.state)


def test_numbers_on_the_stack_are_accepted():
    frame = Frame()
    array = frame.at(-32, indexed=True)
    require_plain_frames("malloc", [frame.access(array, frame.number), frame.access(array)])


@pytest.mark.parametrize(
    ("distance", "is_seen"),
    [(-36, False), (-35, True), (-32, True), (-17, True), (-16, False)],
)
def test_an_address_of_the_stack_that_a_load_could_see_is_refused(distance, is_seen):
    frame = Frame()
    accesses = [frame.access(frame.at(distance), frame.stack), frame.access(frame.at(-32, indexed=True))]
    if is_seen:
        with pytest.raises(AnalysisError, match="malloc may load an address of its stack"):
            require_plain_frames("malloc", accesses)
    else:
        require_plain_frames("malloc", accesses)


@pytest.mark.parametrize(("distance", "is_own"), [(-16, True), (-15, False), (0, False)])
def test_a_load_from_the_frame_of_the_caller_is_refused(distance, is_own):
    frame = Frame()
    load = frame.access(frame.at(distance, indexed=True))
    if is_own:
        require_plain_frames("malloc", [load])
    else:
        with pytest.raises(AnalysisError, match="computed place"):
            require_plain_frames("malloc", [load])


def test_what_the_state_knows_of_a_place_may_be_loaded_from_it():
    """Such as the stack pointer that is kept at the bottom of a frame."""
    frame = Frame()
    load = frame.access(frame.at(8))
    assert held(load) is None
    with pytest.raises(AnalysisError):
        require_plain_frames("malloc", [load])
    frame.state.set_location(Location("stack", 8, 4), frame.stack)
    assert held(load) == frame.stack
    require_plain_frames("malloc", [frame.access(frame.at(8), frame.stack), load])
    assert held(frame.access(frame.at(-32, indexed=True))) is None


def test_what_goes_elsewhere_is_not_looked_at():
    frame = Frame()
    require_plain_frames("malloc", [frame.access(frame.number), frame.access(frame.number, frame.stack)])
