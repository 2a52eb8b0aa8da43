"""Operations of CAMA: what is shown that they keep, and that broken versions are not."""

import pytest

from tests.analyzer.deduction.cama_builds import deduced, geometry, mostly_slow, only, open_of_changed
from wcet_probe.analyzer.deduction import cama_operations
from wcet_probe.analyzer.deduction.cama_operations import deduce_caller


@pytest.mark.covering(0)
@pytest.mark.parametrize("operation", ["init", "caller", "malloc-small"])
def test_an_operation_keeps_all_claims(operation):
    found = deduced(operation)
    assert found.open == ()
    assert found.ways == {"init": 11, "caller": 0, "malloc-small": 6}[operation]


def test_init_is_asked_for_each_claim_and_word_where_it_succeeds():
    ways = {way: [one.what for one in deduced("init").obligations if one.way == way] for way in range(1, 12)}
    succeeding = [asked for asked in ways.values() if len(asked) > 1]
    assert len(succeeding) == 4
    for asked in succeeding:
        assert {"numbers", "chain-right", "bits", "stored: left", "apart: a store to a descriptor"} <= set(asked)
    failing = [asked for asked in ways.values() if len(asked) == 1]
    assert failing == [["nothing is changed where it fails"]] * 7


BROKEN_INIT = {
    "a sentinel that leads nowhere": (
        "    cama_control.sentinel.left = &cama_control.sentinel;\n",
        "    cama_control.sentinel.left = NULL;\n",
        {"chain-left"},
    ),
    "one descriptor too many": ("/ CAMA_DESCRIPTOR_BYTES) - 1;", "/ CAMA_DESCRIPTOR_BYTES);", {"available"}),
    "a break within the area": (
        "cama_control.top = top_behind(area);\n    cama_control.available",
        "cama_control.top = area_end(area);\n    cama_control.available",
        {"newest-area"},
    ),
    "an arena of any alignment": (
        "if (begin == 0 || ((begin | bytes) & (CAMA_ALIGNMENT - 1)) != 0 ||",
        "if (begin == 0 || (bytes & (CAMA_ALIGNMENT - 1)) != 0 ||",
        {"followed to its end: an address or word that is not shown to be a multiple of 8"},
    ),
    "a gap that overlaps the area": (
        "skip(begin + CAMA_ALIGNMENT, area);",
        "skip(begin + CAMA_ALIGNMENT, area + CAMA_DESCRIPTOR_BYTES);",
        {"block-and-frontier"},
    ),
}


@pytest.mark.parametrize("name", mostly_slow(BROKEN_INIT))
def test_an_init_that_is_broken_leaves_its_claims_open(name, monkeypatch):
    old, new, expected = BROKEN_INIT[name]
    only(expected, monkeypatch)
    found = open_of_changed("init", (old, new))
    assert expected <= found.keys()
    assert all("cama_init" in place for name in expected for place in found[name])


@pytest.mark.slow
def test_a_caller_that_writes_behind_its_block_keeps_not_all_claims(monkeypatch):
    """A byte more would be that of the next block's header."""
    apart = cama_operations.END_OF_PAYLOAD
    monkeypatch.setattr(cama_operations, "END_OF_PAYLOAD", apart + 1)
    found = {one.what for one in deduce_caller(geometry()).open}
    assert {"held", "small-blocks", "heads-small"} <= found


BROKEN_MALLOC_SMALL = {
    "a bit that stays set": (
        "    if (small->next == NULL)\n        mark_empty(set, class);\n    small",
        "    small",
        {"bits"},
    ),
    "a block that stays free": ("    small->tag &= ~CAMA_SMALL_FREE_BIT;\n", "", {"held", "small-before"}),
    "a list that loses its rest": (
        "    set_first(head, small->next);\n    if (small->next == NULL)\n        mark_empty(set, class);\n",
        "    set_first(head, NULL);\n    mark_empty(set, class);\n",
        {"small-before"},
    ),
    "a block that stays in its list": ("    set_first(head, small->next);\n    if", "    if", {"heads-small"}),
    "a block of a smaller class": (
        "    uint32_t mask = ~(uint32_t)0 << class % 32;\n",
        "    uint32_t mask = ~(uint32_t)0 << class % 32 / 2;\n",
        {"a block that holds what is wanted"},
    ),
    "another block that is written": (
        "    if (small->next == NULL)\n        mark_empty(set, class);\n    small",
        """    if (small->next == NULL)
        mark_empty(set, class);
    else
        ((volatile struct cama_small *)small->next)->tag |= CAMA_SMALL_BIT;
    small""",
        {"of the own block"},
    ),
}


@pytest.mark.parametrize("name", mostly_slow(BROKEN_MALLOC_SMALL))
def test_a_malloc_of_small_blocks_that_is_broken_leaves_its_claims_open(name, monkeypatch):
    old, new, expected = BROKEN_MALLOC_SMALL[name]
    only(expected, monkeypatch)
    found = open_of_changed("malloc-small", (old, new))
    assert expected <= found.keys()
    assert all("cama_malloc" in place for name in expected for place in found[name])


@pytest.mark.parametrize("other", ["set ^ 1", "(set + 1) & (CAMA_SETS - 1)"])
@pytest.mark.slow
def test_a_malloc_that_looks_into_the_lists_of_another_set_is_not_followed(other):
    found = open_of_changed("malloc-small", ("    return find(set, class);\n", f"    return find({other}, class);\n"))
    (stray,) = (name for name in found if name.startswith("followed to its end"))
    assert "multiple of 32" in stray
