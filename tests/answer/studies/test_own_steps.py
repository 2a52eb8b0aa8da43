"""Allocators of one's own that are broken, and how the check of a manifest notices it."""

from __future__ import annotations

import pytest

from tests.catalog.test_own_allocator import request, steps
from wcet_probe.answer.witness.probe import observe
from wcet_probe.errors import ExitCode, NoSuchStateError

# Bumps, with a list of what came back that looks at the first block alone.
HEADER = """
name = "bump"
title = "bump"
sources = ["bump.c"]
alignment_bytes = 8
minimum_heap_bytes = 64
overhead_bytes = 8
minimum_block_bytes = 16
[call]
declarations = "void set(void *, size_t); void *take(size_t); void give(void *);"
init = "set(arena, bytes)"
malloc = "take(size)"
free = "give(pointer)"
"""
BUMP = """
#include <stddef.h>
static unsigned char *next, *end;
struct block { size_t bytes; struct block *other; };
static struct block *list;
void set(void *arena, size_t bytes) { next = arena; end = next + bytes; list = 0; }
void *take(size_t bytes)
{
    size_t const whole = 8 + (bytes + 7) / 8 * 8;
    for (struct block **one = &list; *one; one = &(*one)->other)
        if ((*one)->bytes == whole) { struct block *found = *one; *one = found->other; return (char *)found + 8; }
    if ((size_t)(end - next) < whole) return 0;
    ((struct block *)next)->bytes = whole;
    next += whole;
    return next - whole + 8;
}
void give(void *p) { struct block *b = (void *)((char *)p - 8); b->other = list; list = b; }
"""
BROKEN = {
    "a block that is too small for the size is given again": ("(*one)->bytes == whole", "1"),
    "malloc clears more than the block": (
        "return (char *)found + 8;",
        "for (size_t i = 8; i < whole + 16; i++) ((volatile char *)found)[i] = 0; return (char *)found + 8;",
    ),
    "free writes behind the block": ("list = b; }", "list = b; b->bytes ? ((char *)b)[b->bytes + 8 + 7] = 1 : 0; }"),
}


def last(at, source, head=HEADER, heap_bytes=4096):
    (at / "bump.c").write_text(source, "utf-8")
    (at / "manifest.toml").write_text(head, "utf-8")
    return [step for step in steps(at, heap_bytes) if not step.name.startswith("bound")][-1]


def test_as_it_is_nothing_is_found(tmp_path):
    assert last(tmp_path, BUMP).code is ExitCode.OK


@pytest.mark.parametrize("fault", BROKEN)
def test_blocks_that_other_calls_write_into_are_noticed(fault, tmp_path):
    old, new = BROKEN[fault]
    assert old in BUMP
    found = last(tmp_path, BUMP.replace(old, new))
    assert found.code is ExitCode.USAGE
    assert "changes the content of a block of" in found.found


def test_a_table_of_descriptors_that_is_full_before_the_heap_is_said_by_a_key(tmp_path):
    bounded = BUMP.replace("if ((size_t)(end", "static int used; if (used == 20 || (size_t)(end").replace(
        "next += whole;", "next += whole; used++;"
    )
    found = last(tmp_path, bounded, heap_bytes=16384)
    assert found.code is ExitCode.USAGE
    assert "or say most_blocks" in found.found
    found = last(tmp_path, bounded, HEADER.replace("[call]", "most_blocks = 20\n[call]"), 16384)
    assert found.code is ExitCode.OK, found


def test_a_bound_by_the_width_of_a_type_is_no_step_that_holds(tmp_path):
    """The answer's exit code is 4 then, and what to add is told here, too."""
    counted = BUMP.replace(
        "list = b; }", "list = b; for (unsigned char i = 0; i < b->bytes % 256; i++) b->bytes += 0; }"
    )
    counted = counted.replace("struct block { size_t bytes;", "struct block { volatile size_t bytes;")
    (tmp_path / "bump.c").write_text(counted, "utf-8")
    (tmp_path / "manifest.toml").write_text(HEADER, "utf-8")
    last = steps(tmp_path)[-1]
    assert last.code is ExitCode.NO_BOUND
    assert "by the width of a type at " in last.found
    assert "[[loop]]" in last.found


@pytest.mark.parametrize("end", ["__assert_fail(0, 0, 0, 0)", "*(volatile int *)0xfffffff0"], ids=["assert", "fault"])
def test_one_that_does_not_refuse_is_measured_in_the_states_that_it_comes_back_from(end, tmp_path):
    """An assertion that nothing passes when the heap is full is part of no bound, and no state."""
    says = "void __assert_fail(const char *, const char *, int, const char *);\n"
    source = says + BUMP.replace("< whole) return 0;", f"< whole) {end};")
    full = last(tmp_path, source)
    assert full.code is ExitCode.OK
    assert "served, then malloc does not come back" in full.found
    report = observe(request(f"{tmp_path}/", "worst-alloc"))
    assert report.candidates
    assert report.left_out
    failing = request(f"{tmp_path}/", "worst-failing-alloc")
    with pytest.raises(NoSuchStateError, match="is no state of bump"):
        observe(failing)
