"""Malloc of CAMA where no list has a block: what is shown of it, and what is open."""

import pytest

from tests.analyzer.deduction.cama_builds import deduced, open_of_changed, program
from wcet_probe.analyzer.deduction.cama_grow import (
    NOTHING_CHANGED,
    ONE_BEGIN,
    RETURNED,
    SIZE,
    _Entry,
)
from wcet_probe.analyzer.deduction.cama_joins import Join
from wcet_probe.cache_sets.deduction import deduce


@pytest.mark.slow
def test_malloc_where_no_list_has_a_block_is_open_where_the_gap_before_it_is_described():
    """The register with the gap's start is lost at the join: not whole, and the last part is not followed."""
    found = deduced("malloc-grow")
    (stray,) = found.open_by_name
    assert (found.ways, "multiple of 8" in stray) == (52, True)
    assert {SIZE, NOTHING_CHANGED, "blocks"} <= {one.what for one in found.obligations}
    assert RETURNED not in {one.what for one in found.obligations}


@pytest.mark.parametrize(
    "joins",
    [
        (Join(0x100000, {}, 0, frozenset()), Join(0x100004, {}, 0, frozenset())),
        (Join(program().image.symbols["cama_malloc"].address, {}, 0, frozenset()),),
    ],
    ids=["two instructions", "an instruction that stores"],
)
def test_parts_that_do_not_begin_at_one_instruction_are_open(joins, monkeypatch):
    monkeypatch.setattr(_Entry, "follow", lambda *_: joins)
    found = deduce(program(), ("malloc-grow",))[0]
    assert found.open_by_name == {ONE_BEGIN: (joins[0].address,)}


@pytest.mark.slow
def test_a_size_without_the_header_is_open_where_the_heap_would_grow():
    old = "    size_t size = round_up(bytes + CAMA_HEADER_BYTES, CAMA_ALIGNMENT);"
    found = open_of_changed("malloc-grow", (old, old.replace(" + CAMA_HEADER_BYTES", "")))
    assert found.keys() == {SIZE}
    assert all("cama_malloc" in place for place in found[SIZE])
