"""What a proof takes for granted is told where something rests on it, and only there."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from tests.analyzer.small_functions import ARM, POWERPC, THUMB
from wcet_probe.analyzer.assumptions import assumptions
from wcet_probe.analyzer.domains import strided
from wcet_probe.analyzer.facts.file import parse_facts
from wcet_probe.analyzer.facts.language import Facts
from wcet_probe.analyzer.values.states.bases import Base
from wcet_probe.analyzer.values.symbolic.terms import Terms
from wcet_probe.model.image import Segment
from wcet_probe.model.target import Replacement

SEGMENT = Segment(0x2000, b"", 0x1000, writable=True, executable=False)
IMAGE = SimpleNamespace(place=hex, location=hex, segments=(SEGMENT,))
ALWAYS = {"no-interference", "timing-model"}


def access(base=Base.NUMBER, offset=None, *, is_store=True):
    return SimpleNamespace(base=base, offset=offset or strided.top(32), is_store=is_store)


def told(
    *accesses,
    target=THUMB,
    lines=None,
    terms=None,
    dead_ends=(),
    unchecked=(),
    saving=(),
    holds=(False, False),
    executed=(),
):
    values = SimpleNamespace(
        accesses={0: accesses},
        states={},
        registers={"sp": None, "r1": None},
        held=SimpleNamespace(is_any=holds[0]),
        stack_escapes=holds[1],
        terms=terms or Terms(),
        graph=SimpleNamespace(dead_ends=dead_ends),
        unchecked_returns=unchecked,
        saving=saving,
        executed=executed,
    )
    return {one.id: one.statement for one in assumptions(Facts(), IMAGE, target, values, lines)}


def without_caches(target):
    return replace(target, icache=None, dcache=None, translation="", aligned_accesses="")


def test_nothing_more_is_assumed_of_a_call_without_accesses():
    assert told().keys() == ALWAYS
    assert told(target=replace(THUMB, aligned_accesses="all are")).keys() == ALWAYS | {"aligned-accesses"}
    assert told(target=without_caches(ARM)).keys() == ALWAYS
    assert "targets/cortex-m4.toml" in told()["timing-model"]


def test_what_is_saved_is_assumed_to_stay_where_an_analysis_kept_it():
    assert "saved-registers" not in told()
    assert told(saving={(0x100, 1): 0})["saved-registers"].startswith("no store but those that save registers")


def test_a_load_through_a_pointer_finds_no_stack_address_where_the_stack_holds_one():
    """One that was stored elsewhere as well may be found by any load, and nothing is assumed."""
    load, known = access(is_store=False), access(offset=strided.constant(32, 0x2000), is_store=False)
    assert "stack-separation" in told(load, holds=(True, False))
    for one, holds in ((load, (True, True)), (load, (False, False)), (known, (True, False))):
        assert "stack-separation" not in told(one, holds=holds)


def test_a_store_through_a_pointer_misses_the_stack():
    """But to a word of the image that is known; what is elsewhere may be where the caller put the stack."""
    for one in (access(), access(offset=strided.constant(32, 0x3000))):
        assert "stack-separation" in told(one)
    for one in (
        access(is_store=False),
        access(offset=strided.constant(32, 0x2000)),
        access(Base.STACK),
        access(Base.ANY),
    ):
        assert "stack-separation" not in told(one)


def test_without_a_cache_alignments_are_assumed_where_unaligned_accesses_take_longer():
    fact = "[[pointer]]\nmultiple_of = 4\nlines = 3\nlines_per_set = 3\nbecause = 'nodes are words'\n"
    facts = parse_facts("facts.toml", fact)
    values = SimpleNamespace(
        accesses={0: [access(Base.STACK, is_store=False)]},
        states={},
        registers={"sp": None, "r1": None},
        terms=Terms(),
        graph=SimpleNamespace(dead_ends=()),
        unchecked_returns=False,
        saving=(),
        executed=(),
    )
    for target, expected in ((THUMB, {"fact facts.toml:1", "stack-alignment"}), (replace(THUMB, unaligned=()), set())):
        found = assumptions(facts, IMAGE, target, values, None)
        assert {one.id for one in found} == ALWAYS | expected
        assert not any("lines" in one.statement for one in found)


def test_a_store_by_the_stack_pointer_that_may_go_anywhere_hits_no_static_data():
    assert told(access(Base.STACK))["stack-stores"].endswith("hits no static data")
    assert "stack-stores" not in told(access(Base.STACK, is_store=False), access(Base.ANY))


@pytest.mark.parametrize("base", [Base.STACK, Base.ANY])
def test_the_stack_is_aligned_where_its_lines_or_low_bits_are_asked_for(base):
    assert "stack-alignment" in told(access(base), target=POWERPC)
    assert "stack-alignment" not in told(access(base), target=without_caches(POWERPC))
    assert "stack-alignment" not in told(access(), target=POWERPC)
    # What was followed round by round may ask for low bits of an address that no term is made of.
    assert "stack-alignment" in told(access(), target=without_caches(POWERPC), executed={"aligned": True})
    terms = Terms()
    pointer = terms.symbol(("stack pointer",), 32)
    terms.apply("INT_AND", (pointer, terms.constant(3, 32)), 32)
    assert "stack-alignment" in told(terms=terms)


def test_lines_that_are_not_crossed_are_told_with_their_places():
    assert told(lines=SimpleNamespace(assumed={0x8004, 0x8000}))["alignment"].endswith("at 0x8000, 0x8004")
    assert "alignment" not in told(lines=SimpleNamespace(assumed=frozenset()))


@pytest.mark.parametrize("cache", ["icache", "dcache"])
def test_first_in_first_out_is_told_of_either_cache(cache):
    fifo = replace(getattr(POWERPC, cache), replacement=Replacement.FIFO)
    lru = replace(
        POWERPC,
        icache=replace(POWERPC.icache, replacement=Replacement.LRU),
        dcache=replace(POWERPC.dcache, replacement=Replacement.LRU),
    )
    assert "fifo-replacement" not in told(target=lru)
    assert "fifo-replacement" in told(target=replace(lru, **{cache: fifo}))


def test_translation_returns_and_dead_ends_are_told_where_there_are_some():
    plain = without_caches(POWERPC)
    assert told(target=replace(plain, translation="no page is missed"))["no-translation-misses"] == "no page is missed"
    assert told(target=replace(plain, aligned_accesses="all are"))["aligned-accesses"] == "all are"
    assert "return-address" in told(unchecked=(3,))
    assert told(dead_ends=(0x8000,))["call-returns"].endswith("at 0x8000")
