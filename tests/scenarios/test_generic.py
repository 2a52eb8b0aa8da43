"""States of any allocator, on trees of the package: what knows nothing of them comes to their deep places."""

from __future__ import annotations

import pytest

from tests.answer.studies.test_own_steps import HEADER
from tests.support import images_dir
from wcet_probe.answer.witness.bench import ProbeRequest
from wcet_probe.answer.witness.probe import measure_in_state
from wcet_probe.catalog.lookup import load_allocator, load_target
from wcet_probe.scenarios.families import HeapRequest
from wcet_probe.scenarios.generic import FAMILY

HEAP_BYTES = 16 << 10
MANIFEST = HEADER.replace("bump", "listed")
# A list of what came back, or one for each power of two, sorted by size or not; with MERGES a request first merges the
# first one with what is free behind it.
LISTED = """
#include <stddef.h>
struct chunk { size_t bytes, is_free; struct chunk *other; };
static unsigned char *next, *end;
static struct chunk *lists[32];
static struct chunk **list_of(size_t bytes)
{
#ifdef CLASSES
    return &lists[__builtin_clz((unsigned)bytes)];
#else
    (void)bytes;
    return lists;
#endif
}
void set(void *arena, size_t bytes)
{
    next = arena;
    end = next + bytes;
    for (int i = 0; i < 32; i++) lists[i] = 0;
}
static void drop(struct chunk *c)
{
    struct chunk **one = list_of(c->bytes);
    while (*one != c) one = &(*one)->other;
    *one = c->other;
    c->is_free = 0;
}
void *take(size_t bytes)
{
    size_t const whole = bytes < 8 ? 16 : 8 + (bytes + 7) / 8 * 8;
    struct chunk *c = *list_of(whole);
    if (c && MERGES)
        for (struct chunk *n; (unsigned char *)(n = (void *)((char *)c + c->bytes)) < next && n->is_free;) {
            drop(n);
            c->bytes += n->bytes;
        }
    for (; c; c = c->other)
        if (c->bytes >= whole) { drop(c); return (char *)c + 8; }
    if ((size_t)(end - next) < whole) return 0;
    c = (void *)next;
    next += whole;
    c->bytes = whole;
    c->is_free = 0;
    return (char *)c + 8;
}
void give(void *p)
{
    struct chunk *c = (void *)((char *)p - 8), **one = list_of(c->bytes);
    while (SORTED && *one && (*one)->bytes < c->bytes) one = &(*one)->other;
    c->other = *one;
    c->is_free = 1;
#ifdef CLEARS
    for (size_t i = 8; i < c->bytes; i++) *((volatile char *)c + i) = 0;
#endif
    *one = c;
}
"""


def dearest(name: str, scenario: str, words: str) -> tuple[int, int]:
    """Most instructions of the states of ``scenario`` with ``words`` in their names, and of those without."""
    allocator, target, found = load_allocator(name), load_target("cortex-m4"), {True: 0, False: 0}
    asked = ProbeRequest(allocator, target, scenario, HEAP_BYTES, 0, None, "zig", False, images_dir())
    for plan in FAMILY.builders[scenario](HeapRequest(allocator, HEAP_BYTES, None, 0)):
        measured, refused, _ = measure_in_state(asked, plan)
        assert measured
        assert not (refused and words in plan.variant)
        is_one = words in plan.variant
        found[is_one] = max(found[is_one], measured.instructions)
    return found[True], found[False]


def test_a_hole_at_the_end_of_a_path_in_a_tree_of_sizes_is_dearer_than_between_two():
    path, others = dearest("btree-best-fit", "worst-free", "share leading bits")
    assert path > 1.5 * others


@pytest.mark.parametrize(
    ("macros", "scenario", "words"),
    [
        ("MERGES=0 SORTED=1", "worst-free", "larger block"),
        ("MERGES=1 SORTED=0", "worst-alloc", "from the end on"),
        ("MERGES=0 SORTED=0 CLEARS", "worst-free", "the only one"),
        ("MERGES=0 SORTED=0 CLASSES", "worst-alloc", "a little too small"),
        ("MERGES=0 SORTED=1 CLASSES", "worst-free", "a slightly larger block"),
    ],
)
def test_lists_by_size_late_merges_and_blocks_that_are_cleared_have_their_states(macros, scenario, words, tmp_path):
    flags = ", ".join(f'"-D{one}"' for one in macros.split())
    (tmp_path / "manifest.toml").write_text(MANIFEST.replace("[call]", f"flags = [{flags}]\n[call]"), "utf-8")
    (tmp_path / "listed.c").write_text(LISTED, "utf-8")
    state, others = dearest(f"{tmp_path}/", scenario, words)
    assert state > 3 * others
