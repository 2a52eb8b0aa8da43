"""The operations of half-fit keep its claims, and what its caller writes does; broken versions do not."""

import pytest

from tests.analyzer.deduction.half_fit_builds import deduced, program
from tests.cache_sets.mutants import changed
from wcet_probe.analyzer.deduction import half_fit_operations
from wcet_probe.cache_sets.half_fit_deduction import deduced as deduce


@pytest.mark.covering(0)
@pytest.mark.parametrize(
    ("operation", "ways", "shown"),
    [("init", 5, 32), ("caller", 0, 13), ("malloc", 6, 89), pytest.param("free", 10, 199, marks=pytest.mark.slow)],
)
def test_an_operation_keeps_all_claims(operation, ways, shown):
    found = deduced(operation)
    assert (found.ways, found.shown, found.open) == (ways, shown, ())


@pytest.mark.parametrize("operation", ["init", "malloc", pytest.param("free", marks=pytest.mark.slow)])
def test_what_is_assumed_at_the_end_of_a_way_is_no_contradiction(operation, monkeypatch):
    found = []

    def ask_claims(self, *_):
        found.append(self.terms.questions.is_possible())

    monkeypatch.setattr(half_fit_operations._Run, "ask_claims", ask_claims)
    deduce(program(), operation)
    assert found == [True] * {"init": 1, "malloc": 4, "free": 9}[operation]


BROKEN = {
    "an arena at odd words": ("init", "half_fit.c", "(uintptr_t)arena % BT_OVERHEAD", "(uintptr_t)arena % BT_WORD"),
    "bytes that are odd words": ("init", "half_fit.c", "bytes % HALF_FIT_ALIGN != 0", "bytes % 4 != 0"),
    "a first block that is too long": (
        "init",
        "half_fit.c",
        "release(half_fit_control.first, bytes - BT_OVERHEAD)",
        "release(half_fit_control.first, bytes - BT_WORD)",
    ),
    "a size with the free bit": (
        "malloc",
        "boundary_tags.h",
        "return block->header & ~BT_FREE_BIT",
        "return block->header",
    ),
    "a block that stays free": (
        "malloc",
        "half_fit.c",
        "bt_set(block, size + spare, 0);",
        "bt_set(block, size + spare, BT_FREE_BIT);",
    ),
    "a rest of 8 bytes, of class -1": ("malloc", "half_fit.c", "spare >= HALF_FIT_SPLIT", "spare >= 8"),
    "a list whose blocks may be too small": (
        "malloc",
        "half_fit.c",
        "return floor_log2((uint32_t)(size - BT_OVERHEAD - 1)) + 1;",
        "return floor_log2((uint32_t)(size - BT_OVERHEAD));",
    ),
    "sizes of odd words": (
        "malloc",
        "half_fit.c",
        "bt_size_for(bytes, HALF_FIT_ALIGN, ",
        "bt_size_for(bytes, 4, ",
    ),
    "blocks that are too small": (
        "malloc",
        "boundary_tags.h",
        "(bytes + BT_OVERHEAD + alignment - 1)",
        "(bytes + BT_WORD + alignment - 1)",
    ),
    "an empty list whose bit stays set": (
        "malloc",
        "half_fit.c",
        "        half_fit_control.bitmap &= ~(1u << class);\n",
        "",
    ),
    "a block without a footer": (
        "malloc",
        "half_fit.c",
        "bt_set(block, size, BT_FREE_BIT);",
        "block->header = size | BT_FREE_BIT;",
    ),
    "a link back that is not set": (
        "init",
        "dlist.h",
        "    place->next->prev = node;\n    place->next = node;",
        "    place->next = node;",
    ),
    "a merged block that stays in its list": ("free", "half_fit.c", "        unfile(next, behind);\n", ""),
    "the bit of another class": ("free", "half_fit.c", "~(1u << class_of(size))", "~(2u << class_of(size))"),
    "a header that one address changes": (
        "free",
        "half_fit.c",
        "    struct bt_block *block = bt_block_of(payload);\n",
        (
            "    struct bt_block *block = bt_block_of(payload);\n    if (((uintptr_t)payload & 0xFFFF0) == 0x77770)\n"
            "        ((volatile size_t *)payload)[24] += 4;\n"
        ),
    ),
    "a counter of calls in static data": (
        "free",
        "half_fit.c",
        "    struct bt_block *block = bt_block_of(payload);\n",
        (
            "    struct bt_block *block = bt_block_of(payload);\n    static unsigned calls;\n"
            "    if (++calls == 1000)\n        ((size_t *)payload)[-1] += 4;\n"
        ),
    ),
    "a link of which a byte is stored": (
        "free",
        "half_fit.c",
        "    dlist_insert_after(&half_fit_control.lists[class], bt_payload(block));\n",
        (
            "    dlist_insert_after(&half_fit_control.lists[class], bt_payload(block));\n"
            "    ((volatile unsigned char *)bt_payload(block))[3] = 4;\n"
        ),
    ),
    "a link back to where no node is, but aligned": (
        "free",
        "dlist.h",
        "    node->next->prev = node->prev;\n}",
        "    node->next->prev = node->prev + (node->prev > node->next ? 8 : 0);\n}",
    ),
    "a size whose bytes are in the opposite order": (
        "free",
        "boundary_tags.h",
        "    block->header = size | free_bit;",
        (
            "    block->header = (size & 0xFFFF00FF) == 0x01000080 ? __builtin_bswap32(size | free_bit)"
            " : (size | free_bit);"
        ),
    ),
    "a bit that is added": (
        "free",
        "half_fit.c",
        "    half_fit_control.bitmap |= 1u << class;\n",
        "    half_fit_control.bitmap += 1u << class;\n",
    ),
    "a block in use that is written to": (
        "free",
        "half_fit.c",
        "    struct bt_block *next = bt_next(block);\n",
        (
            "    struct bt_block *next = bt_next(block);\n    if (!bt_is_free(next))\n"
            "        ((volatile size_t *)next)[1] = 4;\n"
        ),
    ),
    "one list whose first block leads back elsewhere": (
        "malloc",
        "half_fit.c",
        "        node->next->prev = head;\n",
        "        if (class != 12) node->next->prev = head;\n",
    ),
    "one request that is given 8 bytes less": (
        "malloc",
        "half_fit.c",
        "    size_t size = bt_size_for(bytes, HALF_FIT_ALIGN, HALF_FIT_MINIMUM);",
        (
            "    size_t size = bt_size_for(bytes, HALF_FIT_ALIGN, HALF_FIT_MINIMUM);\n    if (bytes == 0xabcd)\n"
            "        size -= 8;\n"
        ),
    ),
    "a fence of large heaps that is none": (
        "init",
        "boundary_tags.h",
        "    upper->header = 0;\n",
        "    upper->header = bytes & 0x8000000 ? 8 : 0;\n",
    ),
}
KEEPING = {
    "a request of nothing, which is given the least block": (
        "bytes - 1 >= HALF_FIT_MAX_HEAP",
        "bytes > HALF_FIT_MAX_HEAP",
    ),
    "a request that is looked for one list later": ("~0u << class_for(size)", "~1u << class_for(size)"),
}
QUICK = frozenset(
    {
        "an arena at odd words",
        "a size with the free bit",
        "a rest of 8 bytes, of class -1",
        "a counter of calls in static data",
        "a link of which a byte is stored",
        "a fence of large heaps that is none",
    }
)


@pytest.mark.covering(0)
@pytest.mark.parametrize(
    "name", [pytest.param(one, marks=[] if one in QUICK else [pytest.mark.slow]) for one in BROKEN]
)
def test_a_version_that_is_broken_leaves_something_open(name):
    operation, file, *change = BROKEN[name]
    assert deduce(changed(file, tuple(change), name="half-fit"), operation).open


@pytest.mark.slow
@pytest.mark.parametrize("name", KEEPING)
def test_a_version_that_gives_other_blocks_keeps_all_claims(name):
    assert not deduce(changed("half_fit.c", KEEPING[name], name="half-fit"), "malloc").open
