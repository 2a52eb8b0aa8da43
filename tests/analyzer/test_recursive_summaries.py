"""What calls of itself do within a function is supposed, and grows until the function does no more than that."""

from types import SimpleNamespace

import pytest

from wcet_probe.analyzer.call_summaries import WiderKeyError
from wcet_probe.analyzer.domains import strided
from wcet_probe.analyzer.recursive_summaries import _settled
from wcet_probe.analyzer.values.execution.call_effects import CallKey, Effect, Result, Written, covers, supposed
from wcet_probe.analyzer.values.states.bases import Base
from wcet_probe.analyzer.values.symbolic.locations import Location
from wcet_probe.errors import AnalysisError

REGISTER, OTHER = Location("register", 32, 4), Location("register", 36, 4)
KEY = CallKey(0x8000, frozenset(), escapes=False, is_aligned=True, below=frozenset())


def written(low, high=-1):
    return Effect((), (Written(Base.STACK, low, high),), escapes=False)


class Function:
    """Does what its calls of itself do, and something more; it keeps what it was analysed for."""

    def __init__(self, does, wider=(), calls=()):
        self.does, self.wider, self.calls = does, list(wider), calls
        self.summaries = SimpleNamespace(supposed={}, counted={0x8000, 0x9000})
        self.keys = []

    def analysed(self, key):
        self.keys.append(key)
        if self.wider:
            raise WiderKeyError(self.wider.pop(0))
        calls = [SimpleNamespace(key=KEY._replace(target=one)) for one in self.calls]
        values = SimpleNamespace(edges={0: SimpleNamespace(calls=calls)})
        return SimpleNamespace(values=values)

    def effect(self, _):
        _, summary = self.summaries.supposed[KEY.target]
        return self.does(summary.effect)

    def settled(self):
        return _settled(self.summaries, KEY, frozenset(), self.analysed, self.effect)[1]


def test_a_function_that_does_nothing_is_settled_at_once():
    function = Function(lambda inner: inner)
    assert function.settled() == supposed(KEY)
    assert function.keys == [KEY]


def test_what_it_does_itself_is_supposed_of_its_calls_and_found_again():
    own = Effect((Result(REGISTER, Base.NUMBER, strided.constant(32, 3)),), (), escapes=False)
    function = Function(lambda _: own)
    assert covers(function.settled(), own)
    assert len(function.keys) == 2


def test_frames_of_calls_within_calls_are_all_below():
    """Each call writes its own 16 bytes below what its callee writes: only all below covers that."""

    def does(inner):
        low = min((one.low for one in inner.written), default=0)
        return written(max(low - 16, -(1 << 31)))

    function = Function(does)
    assert function.settled().written == (Written(Base.STACK, -(1 << 31), -1),)
    assert len(function.keys) < 5


def test_values_that_grow_are_given_up_after_some_rounds():
    def does(inner):
        number = inner.results[0].value.unsigned_range()[1] + 1 if inner.results else 0
        value = strided.between(32, 0, number) if number < 1 << 32 else strided.top(32)
        return Effect((Result(REGISTER, Base.NUMBER, value),), (), escapes=False)

    assert Function(does).settled().results[0].value.is_top

    numbers = iter(range(100))

    def goes_on(_):
        at = Location("register", 100 + 4 * next(numbers), 4)
        return Effect((Result(at, Base.NUMBER, strided.constant(32, 0)),), (), escapes=False)

    with pytest.raises(AnalysisError, match="what its calls of itself do to its state is not found"):
        Function(goes_on).settled()


def test_calls_for_which_less_is_known_widen_the_key_and_begin_anew():
    wider = KEY._replace(pointers=frozenset({OTHER}), escapes=True)
    function = Function(lambda inner: inner, wider=[wider])
    assert function.settled() == supposed(wider)
    assert function.keys == [KEY, wider._replace(below=wider.pointers)]  # distances of calls within calls add up


@pytest.mark.parametrize("wider", [KEY._replace(is_aligned=False), KEY._replace(target=0x9000)])
def test_a_stack_pointer_that_is_not_aligned_within_itself_is_refused(wider):
    with pytest.raises(AnalysisError, match="aligned stack pointer within itself"):
        Function(lambda inner: inner, wider=[wider]).settled()


def test_another_function_that_calls_itself_is_refused():
    with pytest.raises(AnalysisError, match="it calls another function that calls itself"):
        Function(lambda inner: inner, calls=[0x9000]).settled()
    assert Function(lambda inner: inner, calls=[0x8000, 0xA000]).settled() == supposed(KEY)
