"""What facts tell before the analysis begins: depths of recursion, targets of calls, ranges of arguments."""

from dataclasses import replace

import pytest

from tests.support import image_of
from wcet_probe.analyzer.facts import control
from wcet_probe.analyzer.facts.control import argument_ranges, asserted_targets, recursion_depths
from wcet_probe.analyzer.facts.file import parse_facts
from wcet_probe.analyzer.facts.source_index import index_sources
from wcet_probe.catalog.lookup import load_target
from wcet_probe.errors import UsageError
from wcet_probe.isa.decode import decode
from wcet_probe.model.instruction import Control
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


SWITCH = """\
volatile unsigned sink;
unsigned one(unsigned n) { return n + 1; }
unsigned (*volatile chosen)(unsigned) = one;
#define CHOOSE switch
unsigned f(unsigned n) { switch (n) { case 0: sink = 1; break; case 1: chosen(n); break; case 2: sink = 3; sink = 7; break; case 3: sink = 5; sink = n; break; case 4: sink = 9; break; case 5: sink = n + 2; sink = 1; break; } return sink; }
"""  # noqa: E501


@pytest.mark.parametrize("word", ["switch", "CHOOSE"])
def test_a_fact_about_calls_on_a_line_says_nothing_of_the_jump_of_a_switch(word):
    """It went to the function that the calls may reach, and no other case was seen."""
    text = SWITCH.replace("{ switch", f"{{ {word}")
    image, index = image_of(text, load_target("cortex-m4"), ".c"), index_sources({"guest.c": text})
    digest = index.function("f").sha256
    fact = f'[[calls]]\nfunction = "f"\nline = 5\ntargets = ["one"]\nbecause = "so"\nsha256 = "{digest}"'
    instructions = decode(image)
    asserted = asserted_targets(parse_facts("f.toml", fact), image, instructions, index)
    own = image.symbols["f"]
    inside = [one for one in instructions if 0 <= one.address - own.address < own.size_bytes]
    assert any(one.control is Control.INDIRECT for one in inside)
    assert {one.control for one in inside if one.address in asserted} == {Control.CALL}


ENDS = """\
unsigned one(unsigned n) { return n + 1; }
unsigned (*volatile first)(unsigned) = one;
unsigned (*volatile second)(unsigned) = one;
unsigned dispatch(unsigned n)
{
    n = first(n) + 1;
    return second(n) + 2;
}
"""


@pytest.mark.parametrize(("told", "targets"), [("6", None), ("67", {"one", "dispatch"})])
def test_what_gcc_may_have_made_one_call_of_two_reaches_what_either_does(told, targets, monkeypatch):
    """GCC -Os gives calls that end two ways the line of one: from true facts about both, the other's was left out."""
    image, index = image_of(ENDS, load_target("cortex-m4"), ".c"), index_sources({"guest.c": ENDS})
    digest = index.function("dispatch").sha256
    text = "\n".join(
        f'[[calls]]\nfunction = "dispatch"\nline = {line}\ntargets = ["{name}"]\nbecause = "so"\nsha256 = "{digest}"'
        for line, name in zip(told, ("one", "dispatch"), strict=False)
    )
    facts, instructions = parse_facts("f.toml", text), decode(image)
    assert asserted_targets(facts, image, instructions, index)
    monkeypatch.setattr(control, "functions_of_clang", lambda _: frozenset())
    found = asserted_targets(facts, image, instructions, index)
    wanted = {tuple(sorted(image.symbols[name].address for name in targets))} if targets else set()
    assert set(found.values()) == wanted


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
def test_an_argument_is_in_the_register_of_the_convention(image, isa, register):
    ranges = argument_ranges(facts_of(ARGUMENT.format(1, 2, '"n * 2"')), "dispatch", replace(image, isa=isa), {"n": 5})
    assert {name: (one.low, one.low + one.stride * one.steps) for name, one in ranges.items()} == {register: (2, 10)}


def test_an_argument_by_register_and_of_another_entry(image):
    text = ARGUMENT.replace("index = {}", 'register = "r7"').format(1, 1)
    (name,) = argument_ranges(facts_of(text), "dispatch", image, {})
    assert name == "r7"
    assert argument_ranges(facts_of(text), "one", image, {}) == {}


def test_an_empty_range_is_refused(image):
    with pytest.raises(UsageError, match="the least value, 5, is above the greatest, 4; correct one"):
        argument_ranges(facts_of(ARGUMENT.format(0, 5, 4)), "dispatch", image, {})


@pytest.mark.parametrize(
    ("isa", "index", "place"),
    [(Isa.THUMB, 3, "r3"), (Isa.THUMB, 4, 0), (Isa.ARM, 6, 8), (Isa.POWERPC, 7, "r10"), (Isa.POWERPC, 9, 12)],
)
def test_an_argument_behind_the_registers_is_a_word_of_the_stack(image, isa, index, place):
    ranges = argument_ranges(facts_of(ARGUMENT.format(index, 0, 1)), "dispatch", replace(image, isa=isa), {})
    assert list(ranges) == [place]


POINTER = '[[argument]]\nfunction = "dispatch"\nindex = 0\npoints_to = "{}"'


def test_a_pointer_to_a_function_has_the_bit_that_tells_thumb(image):
    ranges = argument_ranges(facts_of(POINTER.format("one")), "dispatch", image, {})
    assert ranges["r0"].value == image.symbols["one"].address | 1
    ranges = argument_ranges(facts_of(POINTER.format("chosen + 2")), "dispatch", image, {})
    assert ranges["r0"].value == image.symbols["chosen"].address + 2


def test_a_pointer_to_what_is_not_there_is_refused(image):
    with pytest.raises(UsageError, match=r":1: key points_to: unknown symbol of the image 'three'"):
        argument_ranges(facts_of(POINTER.format("three")), "dispatch", image, {})
