"""Free of CAMA: it is shown as a whole, small blocks and large ones, and broken versions are not."""

import pytest

from tests.analyzer.deduction.cama_builds import deduced, mostly_slow, open_of_changed
from wcet_probe.analyzer.deduction.cama_free import CHAINED_AND_USED, NOT_HELD


def test_free_of_null_or_a_small_block_keeps_all_claims():
    found = deduced("free-small")
    assert (found.ways, found.open) == (2, ())


BROKEN_SMALL = {
    "a list whose bit is not set": ("    mark_filled(set, class);\n}\n\n/* Leaves", "}\n\n/* Leaves", {"bits"}),
    "a block that leads to itself": (
        "    small->next = first_of(head);\n    set_first(head, small);",
        "    small->next = small;\n    set_first(head, small);",
        {"small-next"},
    ),
    "a list that loses its rest": (
        "    small->next = first_of(head);\n    set_first(head, small);",
        "    small->next = NULL;\n    set_first(head, small);",
        {"small-before"},
    ),
    "a block that stays in use": ("    small->tag |= CAMA_SMALL_FREE_BIT;\n", "", {"heads-small"}),
}


@pytest.mark.parametrize("name", mostly_slow(BROKEN_SMALL))
def test_a_free_of_small_blocks_that_is_broken_leaves_its_claims_open(name):
    old, new, expected = BROKEN_SMALL[name]
    found = open_of_changed("free-small", (old, new))
    assert expected <= found.keys()
    assert all("cama_free" in place for name in expected for place in found[name])


@pytest.mark.parametrize(
    ("old", "new", "reason", "line"),
    [
        (
            "    uintptr_t word = *word_before((uintptr_t)block);\n",
            """    uintptr_t word = *word_before((uintptr_t)block);
    if (((uintptr_t)block & 0xFFFF0) == 0x77770)
        ((volatile uintptr_t *)block)[24]++;
""",
            "multiple of 32",
            "cama_free",
        ),
        (
            "    unsigned class = (unsigned)(small->tag >> CAMA_SMALL_CLASS_SHIFT);\n",
            "    unsigned class = (unsigned)(small->tag >> (CAMA_SMALL_CLASS_SHIFT - 1));\n",
            "multiple of 32",
            "cama_free",
        ),
    ],
    ids=["a store behind the block that one address takes", "a class from other bits"],
)
@pytest.mark.slow
def test_an_access_that_strays_is_named(old, new, reason, line):
    """The first: a store behind the block that one address takes, which a million random operations do not meet."""
    found = open_of_changed("free-small", (old, new))
    (stray,) = (name for name in found if name.startswith("followed to its end"))
    assert reason in stray
    assert all(line in place for place in found[stray])


@pytest.mark.slow
def test_free_of_a_large_block_keeps_all_claims_on_all_of_its_ways():
    found = deduced("free-large")
    assert (found.ways, found.open) == (17, ())
    assert {CHAINED_AND_USED, NOT_HELD} <= {one.what for one in found.obligations}


BROKEN_LARGE = {
    "a neighbour that stays in its list": (
        "        make_spare(merged);\n        detach(merged);\n",
        "        make_spare(merged);\n",
        {"heads-large", "list-prev", "list-next"},
    ),
    "a neighbour that is lost": (
        "        make_spare(merged);\n        detach(merged);\n",
        "        detach(merged);\n",
        {"list-prev", "list-next"},
    ),
    "a bit that stays set": (
        "        next->prev = NULL;\n    else\n        mark_empty(set, class);\n",
        "        next->prev = NULL;\n",
        {"bits"},
    ),
    "a link with an offset": (
        "        descriptor->right = right;\n        right->left",
        "        descriptor->right = right + 1;\n        right->left",
        {"chain-right"},
    ),
}


@pytest.mark.parametrize("name", mostly_slow(BROKEN_LARGE))
def test_a_free_of_large_blocks_that_is_broken_leaves_its_claims_open(name):
    old, new, expected = BROKEN_LARGE[name]
    found = open_of_changed("free-large", (old, new))
    assert expected <= found.keys()
    assert all("cama_free" in place for name in expected for place in found[name])
