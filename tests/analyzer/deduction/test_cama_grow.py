"""Malloc of CAMA where no list has a block: it keeps all claims, and broken versions do not."""

import pytest

from tests.analyzer.deduction.cama_builds import deduced, open_of_changed, possible, program
from wcet_probe.analyzer.deduction import cama_grow
from wcet_probe.analyzer.deduction.cama_grow import (
    AREA,
    DESCRIPTORS,
    NOTHING_CHANGED,
    RETURNED,
    SIZE,
    START,
    _Entry,
    _may_be_repeated,
    _Part,
)
from wcet_probe.analyzer.deduction.cama_joins import ONE_BEGIN, Join
from wcet_probe.analyzer.pcode.lift import Lifter
from wcet_probe.cache_sets.deduction import deduce
from wcet_probe.model.target import Isa


@pytest.mark.slow
def test_malloc_where_no_list_has_a_block_keeps_all_claims():
    found = deduced("malloc-grow")
    assert (found.ways, found.open) == (59, ())
    assert {SIZE, NOTHING_CHANGED, START, DESCRIPTORS, RETURNED, "blocks"} <= {one.what for one in found.obligations}


@pytest.mark.slow
@pytest.mark.parametrize(("operation", "ways"), [("malloc-small", 6), ("malloc-grow", 59)])
def test_what_is_assumed_on_a_way_is_no_contradiction(operation, ways, monkeypatch):
    """Else all would be shown of it."""
    assert possible(operation, monkeypatch) == [True] * ways


def test_a_part_that_begins_with_an_instruction_that_stores_is_open(monkeypatch):
    join = Join(program().image.symbols["cama_malloc"].address, {}, 0, frozenset())
    monkeypatch.setattr(_Entry, "follow", lambda *_: (join,))
    found = deduce(program(), ("malloc-grow",))[0]
    assert found.open_by_name == {ONE_BEGIN: (join.address,)}


def test_a_part_is_followed_from_each_instruction_where_ways_to_it_end(monkeypatch):
    """Compilers copy code that several ways have in common, so that they meet at more than one instruction."""
    entry = program().image.symbols["cama_malloc"].address
    ends = tuple(Join(entry + 4 * one, {}, 0, frozenset()) for one in (3, 2, 3))
    begun = []
    monkeypatch.setattr(cama_grow, "_may_be_repeated", lambda *_: True)
    monkeypatch.setattr(_Entry, "follow", lambda *_: ends)
    monkeypatch.setattr(_Part, "follow", lambda self, *_: begun.append(self.begin_address) or ())
    deduce(program(), ("malloc-grow",))
    assert begun == [entry + 8, entry + 12]


@pytest.mark.slow
def test_a_word_that_is_changed_before_all_branches_is_told_where_it_fails_and_where_the_heap_would_grow():
    old = "    if (bytes - 1 >= CAMA_MAX_HEAP || set >= CAMA_SETS) /*"
    found = open_of_changed("malloc-grow", (old, f"    *(volatile uint32_t *)&cama_control.available -= 1;\n{old}"))
    assert found.keys() == {NOTHING_CHANGED}
    assert len(found[NOTHING_CHANGED]) == 2


@pytest.mark.slow
def test_a_size_without_the_header_is_open_where_the_heap_would_grow():
    old = "    size_t size = round_up(bytes + CAMA_HEADER_BYTES, CAMA_ALIGNMENT);"
    found = open_of_changed("malloc-grow", (old, old.replace(" + CAMA_HEADER_BYTES", "")))
    assert found.keys() == {SIZE}
    assert all("cama_malloc" in place for place in found[SIZE])


@pytest.mark.slow
@pytest.mark.parametrize("target", ["cortex-m7", "arm926ej-s"])
def test_an_area_that_begins_where_no_descriptor_does_is_open_on_arm(target):
    found = open_of_changed("malloc-grow", ("round_up(from, CAMA_DESCRIPTOR_BYTES);", "from;"), target=target)
    assert f"followed to its end: {AREA}" in found


@pytest.mark.slow
def test_a_heap_that_grows_and_writes_into_a_block_is_not_followed():
    old = "    cama_control.top = start + size;\n    if"
    write = "    if ((start & 0xFFFF0) == 0x77770)\n        ((volatile uintptr_t *)start)[24]++;\n    if"
    found = open_of_changed("malloc-grow", (old, old.removesuffix("    if") + write))
    (reason,) = found
    assert reason.startswith("followed to its end")
    assert "multiple of 32" in reason


BROKEN = {
    "a link to the new area behind the former one's header": (
        "    cama_control.newest->newer = area;",
        "    (cama_control.newest + 1)->newer = area;",
        "apart: a store to a descriptor",
    ),
    "a small block with the tag of another class": (
        "    if (size < CAMA_THRESHOLD)\n        return as_used(start, tag_of(class_of(size)));\n\n    struct",
        "    if (size < CAMA_THRESHOLD)\n        return as_used(start, tag_of(class_of(size) + 1));\n\n    struct",
        "small-blocks",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", BROKEN)
def test_a_heap_that_grows_wrongly_leaves_its_claims_open(name):
    old, new, expected = BROKEN[name]
    found = open_of_changed("malloc-grow", (old, new))
    assert found.keys() == {expected}
    assert all("cama_malloc" in place for place in found[expected])


@pytest.mark.parametrize(
    ("words", "may_be"),
    [
        ((0x68B4,), True),  # ldr r4, [r6, #8]
        ((0xE8B6, 0x0180), True),  # ldm r6!, {r7, r8}: its base is written behind the loads
        ((0xE896, 0x0140), False),  # ldm r6, {r6, r8}: its base is loaded first
        ((0xE9D6, 0x7802), True),  # ldrd r7, r8, [r6, #8]
        ((0xE8F6, 0x7802), False),  # ldrd r7, r8, [r6], #8: SLEIGH writes the base before the loads
        ((0xE866, 0x7802), False),  # strd r7, r8, [r6], #-8
    ],
)
def test_a_part_begins_with_an_instruction_only_that_may_be_repeated(words, may_be):
    code = b"".join(word.to_bytes(2, "little") for word in words)
    lifter = Lifter("ARM:LE:32:Cortex", Isa.THUMB, lambda at, size: code[at : at + size])
    assert _may_be_repeated(lifter, 0, 0) == may_be
    assert _may_be_repeated(lifter, 0, 2)
