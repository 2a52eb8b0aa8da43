"""The manifest that ``wcet-probe new-allocator`` writes: every key with what it means, to be filled in."""

from __future__ import annotations

import re
from pathlib import Path

_PROTOTYPE = re.compile(
    r"^\w[\w\s*]*\b\w*(?:init|create|alloc|free|pool|check|valid|get|put|take|release)\w*\s*\([^;{}]*\)\s*;",
    re.IGNORECASE | re.MULTILINE,
)

TEMPLATE = """\
# The manifest of an allocator of one's own; `wcet-probe new-allocator FOLDER` checks it step by step.
name = "{name}"
title = "{name}"
summary = ""

# C or C++ files, in this folder or below it. What they include is found beside them, here, and by include_dirs,
# of which all headers are taken in; headers has what only a macro names.
sources = {sources}
headers = {headers}
include_dirs = []
# Compiled files for the core that you ask about (*.o, *.a), beside the sources or in place of them.
objects = []
# The C files that they were compiled from (with -g): for facts by label or line, which else need offset.
# object_sources = ["my_malloc.c"]
# In place of sources and objects: a linked program, whose functions are called where they are.
# elf = "firmware.elf"
# Flags behind the tool's own (-O2 -g -ffreestanding ...), such as "-DNDEBUG", "-Os", "-std=gnu11".
flags = []
# Functions that may do nothing and return 0 here: locks, logging. What they cost is left out, which the answer says.
stubs = []

# Of every block that malloc returns.
alignment_bytes = 8
# The least heap that init accepts: what it keeps for itself, and a block.
minimum_heap_bytes = 1024
# What a block takes besides its payload, at most, and what the least block takes: states fill the heap by them.
overhead_bytes = 8
minimum_block_bytes = 16
# The largest size that malloc serves, where that does not depend on the heap, as of a pool of blocks of one size.
# largest_request_bytes = 64
# The most blocks that are in use at once, where a table of descriptors says so and not the heap.
# most_blocks = 256

[heap]
# size_macro = "TOTAL_HEAP_SIZE"   # a macro that says the heap's size in bytes when the allocator is compiled
# symbol = "heap_array"            # the array that is the heap, static or not, where init is not told
# growth = "sbrk"                  # the allocator takes its memory by sbrk, _sbrk or brk
# Of a linked program: symbol, an array of its own, or else from where to where (symbols or addresses).
# start = "_end"
# end = 0x20010000

[call]
# Headers with the prototypes, or the prototypes themselves.
include = {includes}
{prototypes}# declarations = "void *my_malloc(size_t); void my_free(void *);"
# The type of a variable `handle`, if calls need one: "struct pool", "pool_t *".
# handle = "struct pool"
# Statements and expressions of C, or of C++ where sources are. In init: arena (void *), bytes (size_t), end
# (unsigned char *). Without init the first call sets up the heap. ready must hold after init.
init = "{prefix}_init(arena, bytes)"
# ready = "handle != 0"
# In malloc: size (size_t). Where the block is put into a variable: result = "out", and (void *) result in the call.
# An allocator that takes the block's cache set: "my_malloc(size, cache_set)", with [promise] below.
# Of a pool of blocks of one size, which is not told it: "size <= 32 ? pool_take(&handle) : 0".
malloc = "{prefix}_malloc(size)"
# result = "out"
# In free: pointer (void *), and size (size_t) where it is told what malloc was asked for, as "my_free(pointer, size)".
# Without free nothing is ever given back, as of an arena.
free = "{prefix}_free(pointer)"
# 0 where the heap is sound; without it nothing but the blocks' places is checked.
# check = "{prefix}_check()"

# Cache sets that it promises to keep to, for verify-sets: names of [[parameters]], or numbers.
# [promise]
# first_set = 0
# sets = 8
# cache_sets = 128
# line_bytes = 32
# static_anywhere = true   # where its static data may lie in any set
# source = "its manual"

# What the literature or its author claims; growth holds it against the runs.
# [complexity.malloc]
# claim = "O(1)"
# source = "its manual"
"""


def manifest_text(name: str, sources: list[Path], headers: list[Path]) -> str:
    """The text of a manifest for the allocator ``name`` with these files, to be filled in.

    Prototypes in ``headers`` whose names sound like an allocator's stand as comments where calls are written.
    """
    texts = [header.read_text("utf-8", "replace") for header in headers]
    found = [" ".join(one.group().split()) for text in texts for one in _PROTOTYPE.finditer(text)]
    return TEMPLATE.format(
        name=name,
        prefix=name.replace("-", "_"),
        sources=_array([file.name for file in sources]),
        headers=_array([file.name for file in headers]),
        includes=_array([file.name for file in headers]),
        prototypes="".join(f"#   {one}\n" for one in found),
    )


def _array(texts: list[str]) -> str:
    return "[" + ", ".join(f'"{text}"' for text in texts) + "]"
