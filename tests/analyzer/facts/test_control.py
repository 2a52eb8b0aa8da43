"""What facts tell before the analysis begins: depths of recursion, targets of calls, ranges of arguments."""

import pytest

from tests.support import image_of
from wcet_probe.analyzer.facts.control import argument_ranges, asserted_targets, recursion_depths
from wcet_probe.analyzer.facts.file import parse_facts
from wcet_probe.analyzer.facts.source_match import index_sources
from wcet_probe.catalog.lookup import load_target
from wcet_probe.errors import UsageError
from wcet_probe.isa.decode import decode
from wcet_probe.model.target import Isa

SOURCE = """\
unsigned one(unsigned n) { return n + 1; }
unsigned two(unsigned n) { return n ? two(n >> 1) + 2 : 0; }
unsigned (*volatile chosen)(unsigned) = one;
unsigned dispatch(unsigned n)
{
    unsigned first = chosen(n);
    return first + one(n);
}
"""


def facts_of(text, name="dispatch", index=None):
    digest = index.function(name).sha256 if index else ""
    return parse_facts("facts.toml", f'{text}\nbecause = "so"\n' + (f'sha256 = "{digest}"' if index else ""))


@pytest.fixture(scope="module")
def index():
    return index_sources({"guest.c": SOURCE})


@pytest.fixture(scope="module")
def image():
    return image_of(SOURCE, load_target("cortex-m4"), ".c")


def test_targets_are_those_of_the_indirect_call_on_the_line(image, index):
    facts = facts_of('[[calls]]\nfunction = "dispatch"\nline = 6\ntargets = ["one", "two"]', index=index)
    asserted = asserted_targets(facts, image, decode(image), index)
    addresses = tuple(image.symbols[name].address for name in ("one", "two"))
    assert set(asserted.values()) == {addresses}
    assert {image.lines.find(address) for address in asserted} == {("guest.c", 6)}
    indirect = [one.address for one in decode(image) if one.text.startswith("blx")]
    assert indirect
    assert set(indirect) <= set(asserted)


def test_a_target_that_is_not_there_is_refused(image, index):
    facts = facts_of('[[calls]]\nfunction = "dispatch"\nline = 6\ntargets = ["three"]', index=index)
    with pytest.raises(UsageError, match="'three'"):
        asserted_targets(facts, image, decode(image), index)


def test_a_depth_is_computed_from_the_parameters(image, index):
    text = '[[recursion]]\nfunction = "two"\nmax_depth = "ceil_log2(n) + 1"'
    assert recursion_depths(facts_of(text, "two", index), image, {"n": 9}, index) == {"two": 5}
    calls = text.replace("max_depth", "max_calls")
    assert recursion_depths(facts_of(calls, "two", index), image, {"n": 9}, index) == {}


def test_a_depth_of_a_function_that_has_changed_is_refused(image, index):
    text = '[[recursion]]\nfunction = "two"\nmax_depth = 2'
    with pytest.raises(UsageError, match="has changed since the fact was written"):
        recursion_depths(facts_of(text, "one", index), image, {}, index)


ARGUMENT = '[[argument]]\nfunction = "dispatch"\nindex = {}\nmin = {}\nmax = {}'


@pytest.mark.parametrize(("isa", "register"), [(Isa.POWERPC, "r4"), (Isa.THUMB, "r1"), (Isa.ARM, "r1")])
def test_an_argument_is_in_the_register_of_the_convention(isa, register):
    ranges = argument_ranges(facts_of(ARGUMENT.format(1, 2, '"n * 2"')), "dispatch", isa, {"n": 5})
    assert {name: (one.low, one.low + one.stride * one.steps) for name, one in ranges.items()} == {register: (2, 10)}


def test_an_argument_by_register_and_of_another_entry():
    text = ARGUMENT.replace("index = {}", 'register = "r7"').format(1, 1)
    (name,) = argument_ranges(facts_of(text), "dispatch", Isa.ARM, {})
    assert name == "r7"
    assert argument_ranges(facts_of(text), "one", Isa.ARM, {}) == {}


@pytest.mark.parametrize(
    ("isa", "index", "low", "high", "message"),
    [
        (Isa.THUMB, 4, 0, 1, "argument 4 is on the stack, those up to 3 are in registers; leave"),
        (Isa.POWERPC, 8, 0, 1, "argument 8 is on the stack, those up to 7"),
        (Isa.ARM, 0, 5, 4, "the least value, 5, is above the greatest, 4; correct one"),
    ],
)
def test_what_is_no_range_of_a_register_is_refused(isa, index, low, high, message):
    with pytest.raises(UsageError, match=message):
        argument_ranges(facts_of(ARGUMENT.format(index, low, high)), "dispatch", isa, {})


@pytest.mark.parametrize(("isa", "most"), [(Isa.THUMB, 3), (Isa.POWERPC, 7)])
def test_the_last_register_is_one(isa, most):
    assert len(argument_ranges(facts_of(ARGUMENT.format(most, 0, 1)), "dispatch", isa, {})) == 1
