"""Free of CAMA: it is shown as a whole, small blocks and large ones, and broken versions are not."""

import pytest

from tests.analyzer.deduction.cama_builds import deduced, mostly_slow, only, open_of_changed, possible, program
from tests.cache_sets.mutants import changed
from wcet_probe.analyzer.deduction.cama_free import CHAINED_AND_USED, NOT_HELD, _Part
from wcet_probe.analyzer.deduction.cama_joins import ONE_BEGIN, Join
from wcet_probe.analyzer.deduction.cama_obligations import Deduction
from wcet_probe.analyzer.deduction.formulas import FALSE
from wcet_probe.cache_sets.deduction import deduce


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
def test_a_free_of_small_blocks_that_is_broken_leaves_its_claims_open(name, monkeypatch):
    old, new, expected = BROKEN_SMALL[name]
    only(expected, monkeypatch)
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


@pytest.mark.parametrize("target", ["mpc603e", "cortex-m7", "arm926ej-s"])
@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("((volatile uintptr_t *)__builtin_frame_address(0))[16] = 0;", "a store into the caller's frame"),
        (
            "static const volatile uintptr_t rows[64] = {1};\n    if (rows[(word >> 1 & 1) ? 40 : 3])\n        return;",
            "a load of static data of which nothing is claimed",
        ),
    ],
    ids=["the caller's frame", "a table of constants in any set"],
)
@pytest.mark.slow
def test_an_access_outside_of_heap_and_own_frame_is_named(target, statement, reason):
    old = "    uintptr_t word = *word_before((uintptr_t)block);\n"
    (found,) = deduce(changed("cama.c", (old, f"{old}    {statement}\n"), target=target), ("free-small",))
    assert f"followed to its end: {reason}" in found.open_by_name


@pytest.mark.slow
def test_free_of_a_large_block_keeps_all_claims_on_all_of_its_ways():
    found = deduced("free-large")
    assert (found.ways, found.open) == (17, ())
    assert {CHAINED_AND_USED, NOT_HELD} <= {one.what for one in found.obligations}


@pytest.mark.parametrize(
    ("operation", "ways"), [("free-small", 2), pytest.param("free-large", 17, marks=pytest.mark.slow)]
)
def test_what_is_assumed_on_a_way_is_no_contradiction(operation, ways, monkeypatch):
    """Else all would be shown of it."""
    assert possible(operation, monkeypatch) == [True] * ways


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
    "a link that is not stored": (
        "        right->left = descriptor;\n        insert(",
        "        insert(",
        {"chain-left"},
    ),
}
STRAYING = {
    "a word behind the block, where one address is freed": (
        "    uintptr_t end = end_of(descriptor);\n\n    if (is_free(right)",
        """    uintptr_t end = end_of(descriptor);

    if ((start & 0xFFFF0) == 0x77770)
        ((volatile uintptr_t *)start)[24]++;
    if (is_free(right)""",
        "multiple of 32",
    ),
    "a bit by a wrong mask": (
        "    vector_of(set, class)->lists &= ~((uint32_t)1 << class % 32);",
        "    vector_of(set, class)->lists &= ~((uint32_t)1 << class % 16);",
        "a vector's word",
    ),
}


@pytest.mark.parametrize("name", mostly_slow(BROKEN_LARGE))
def test_a_free_of_large_blocks_that_is_broken_leaves_its_claims_open(name, monkeypatch):
    old, new, expected = BROKEN_LARGE[name]
    only(expected, monkeypatch)
    found = open_of_changed("free-large", (old, new))
    assert expected <= found.keys()
    assert all("cama_free" in place for name in expected for place in found[name])


@pytest.mark.parametrize("name", STRAYING)
@pytest.mark.slow
def test_a_free_of_large_blocks_that_strays_is_not_followed(name):
    old, new, reason = STRAYING[name]
    found = open_of_changed("free-large", (old, new))
    assert found
    assert all(name.startswith("followed to its end") and reason in name for name in found)


@pytest.mark.slow
def test_nothing_is_followed_behind_a_part_that_is_not_whole(monkeypatch):
    monkeypatch.setattr(Deduction, "ask_words", lambda *_: None)
    monkeypatch.setattr(Deduction, "ask_claims", lambda self, _, __, end: self._ask("bits", FALSE, end))
    found = deduce(program(), ("free-large",))[0]
    assert (found.ways, found.open_by_name.keys()) == (7, {"bits"})


def test_neighbours_whose_parts_do_not_begin_at_one_instruction_are_open(monkeypatch):
    ends = (Join(0x100000, {}, 0, frozenset()), Join(0x100004, {}, 0, frozenset()))
    monkeypatch.setattr(_Part, "follow", lambda *_, **__: ends)
    found = deduce(program(), ("free-large",))[0]
    assert found.open_by_name == {ONE_BEGIN: (0x100000, 0x100004)}
