"""CAMA broken in one place, with all its flow facts accepted for the change: never PROVEN, and the place is named.

Tests: cache_sets.specification, cache_sets.run.
"""

import pytest

from tests.cache_sets.mutants import changed
from wcet_probe.cache_sets.heap_words import HeapWords
from wcet_probe.cache_sets.run import run_operations
from wcet_probe.cache_sets.specification import allowed_sets, prove_sets

HEAP_BYTES = 1 << 20
SMALL = "    if ((word & CAMA_SMALL_BIT) != 0)\n"
FIND = "    unsigned class = find_fitting(size, set);\n    if (class < FIRST_LARGE)"
WORD = "return &cama_tables[number / CAMA_PAGE_WORDS][CAMA_SKIPPED_WORDS + number % CAMA_PAGE_WORDS];"
WALK = "(void)HERE(cama_control.end)[-64 * bytes];"

ONE_ADDRESS = SMALL, f"    if (((uintptr_t)block & 0xFFFF0) == 0x77770)\n        HERE(block)[96]++;\n{SMALL}"
IN_FREE = {
    "a store behind the block that one address takes": ONE_ADDRESS,
    "a load behind the block in the 900,000,000th call": (
        SMALL,
        f"    static unsigned calls;\n    if (++calls == 900000000)\n        (void)HERE(block)[96];\n{SMALL}",
    ),
    "a store behind a small block of one class": (
        "    small->tag |= CAMA_SMALL_FREE_BIT;",
        "    small->tag |= CAMA_SMALL_FREE_BIT;\n    if (class == 7)\n        HERE(small)[64] = 0;",
    ),
    "a store to the start of a block that is merged": (
        "    descriptor->left = cama_control.spare;\n    cama",
        "    descriptor->left = cama_control.spare;\n    HERE(descriptor->start)[0] = 0;\n    cama",
    ),
    "a store two descriptors further": (
        "        next->prev = NULL;\n",
        "        HERE(&next[2].prev)[0] = 0;\n",
    ),
    "a link that is a start": (
        "        left->right = right;\n",
        "        HERE(left->start)[4] = 0;\n        left->right = right;\n",
    ),
}
IN_MALLOC = {
    "a store a line behind the start": (
        "    *word_before(start) = word;",
        "    *word_before(start) = word;\n    HERE(start + CAMA_LINE_BYTES)[0] = 0;",
    ),
    "a word at the end of a block": (
        "    cama_control.top = start + size;\n",
        "    cama_control.top = start + size;\n    HERE(start + size)[0] = 0;\n",
    ),
    "a walk from the start of the arena for one size": (
        FIND,
        FIND.replace("    if", f"    if (bytes == 12345)\n{' ' * 8}{WALK}\n    if", 1),
    ),
    "tables as wide as two pages": (WORD, WORD.replace("% CAMA_PAGE_WORDS", "% (2 * CAMA_PAGE_WORDS)")),
    "an area where no place is left for it": (
        "return offset <= CAMA_RESERVED_BYTES - 4 * CAMA_DESCRIPTOR_BYTES ? begin",
        "return offset <= CAMA_RESERVED_BYTES ? begin",
    ),
}
HERE = "((volatile unsigned char *)("
NAMED_ELSEWHERE = {"tables as wide as two pages": "cama.c:83", "an area where no place is left for it": "cama.c:140"}


def broken(change):
    old, new = change
    file = "cama.h" if old == WORD else "cama.c"
    text = new
    while "HERE(" in text:
        head, tail = text.split("HERE(", 1)
        depth, end = 1, 0
        while depth:
            depth += {"(": 1, ")": -1}.get(tail[end], 0)
            end += 1
        text = f"{head}{HERE}{tail[:end]}){tail[end:]}"
    return changed(file, (old, text))


def line_of(program):
    source = dict(program.allocator.sources)["cama.c"].splitlines()
    return f"cama.c:{next(number for number, line in enumerate(source, 1) if HERE in line)})"


def check(name, change, role, words=None):
    program = broken(change)
    proof = prove_sets(program, role, (HEAP_BYTES,), allowed_sets(program), words=words)
    assert not proof.no_bound
    assert not proof.holds
    place = NAMED_ELSEWHERE.get(name) or line_of(program)
    assert any(place in violation.location for violation in proof.possible_violations)


BY_DISTANCE = [
    "a store behind the block that one address takes",
    "a load behind the block in the 900,000,000th call",
]
"""What is at a distance from the own block is judged by that, whatever an induction finds."""


@pytest.mark.parametrize("name", BY_DISTANCE)
def test_an_access_behind_the_block_is_named(name):
    check(name, IN_FREE[name], "free", lambda: HeapWords({}))


@pytest.mark.slow
@pytest.mark.parametrize("name", IN_FREE)
def test_what_breaks_free_is_named(name):
    check(name, IN_FREE[name], "free")


@pytest.mark.slow
@pytest.mark.parametrize("name", IN_MALLOC)
def test_what_breaks_malloc_is_named(name):
    check(name, IN_MALLOC[name], "malloc")


def test_a_store_that_one_address_takes_is_refuted_by_a_run():
    program = broken(ONE_ADDRESS)
    run = run_operations(program, allowed_sets(program), HEAP_BYTES, operations=400_000, seed=0)
    wrong = run.violations["sets"]
    assert wrong.block & 0xFFFF0 == 0x77770
    assert wrong.address == wrong.block + 96
    assert line_of(program) in wrong.location


def test_an_area_that_is_too_long_by_a_line_is_refuted_by_a_run():
    """The lemma ``frontier-in-its-area`` excuses it: that no link leads behind an area is a matter of counting."""
    end = "(CAMA_PAGE_BYTES - 1)) + CAMA_RESERVED_BYTES;"
    program = changed("cama.c", (end, f"{end[:-1]} + 32;"))
    run = run_operations(program, allowed_sets(program), HEAP_BYTES, operations=60_000, seed=0)
    assert "cama.c:" in run.violations["sets"].location
    assert run.violations["invariant"].operation.startswith("cama_check() is")


def test_blocks_lie_one_behind_the_other_in_the_sweep():
    program = changed("cama.c", (SMALL, SMALL))
    run = run_operations(program, allowed_sets(program), HEAP_BYTES, operations=400_000, seed=0)
    assert not run.violations
    assert run.guided > HEAP_BYTES // 16
