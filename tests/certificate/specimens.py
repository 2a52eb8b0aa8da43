"""True bounds whose certificates are checked in full: for mutants and forgeries to begin with."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache

from tests.certificate.forgeries import sealed
from tests.certificate.kernel.test_code import document_of
from tests.support import guest_of, images_dir
from wcet_probe.analyzer.bound import prove
from wcet_probe.answer.bounds.proving import operation_request
from wcet_probe.build.program import load_program
from wcet_probe.catalog.lookup import load_allocator, load_target
from wcet_probe.evidence.checking import allocator_binary
from wcet_probe.reports.formats.bound_document import bound_section

SPECIMENS = (
    ("best-fit", "cortex-m4", "malloc"),
    ("nest", "cortex-m4", "f"),
    ("kingsley", "cortex-m4", "malloc"),
    ("first-fit", "cortex-m4", "malloc"),
    ("buddy-binary", "cortex-m4", "malloc"),
    ("tlsf", "cortex-m4", "malloc"),
    ("quick-fit", "cortex-m4", "malloc"),
    ("first-fit", "mpc603e", "malloc"),
    ("djgpp-quarters", "mpc603e", "free"),
    ("first-fit", "cortex-m7", "free"),
    ("buddy-fibonacci", "cortex-m7", "malloc"),
    ("half-fit", "arm926ej-s", "malloc"),
    ("buddy-binary", "cortex-m7", "malloc"),
    ("list", "mpc603e", "f"),
    ("buddy-binary", "mpc603e", "free"),
    ("best-fit", "cortex-m0plus", "malloc"),
    ("fast-fit", "arm926ej-s", "malloc"),
    ("quick-fit", "mpc603e", "malloc"),
    ("half-fit", "cortex-m4", "malloc"),
    ("tlsf", "mpc603e", "free"),
    ("buddy-binary", "mpc603e", "malloc"),
)
"""Bounds that are checked in full: allocator, or a source that stands here, core, function."""
IDLE = {("tlsf", "mpc603e", "free"): "fact tlsf/facts.toml:9", ("quick-fit", "mpc603e", "malloc"): "stack-stores"}
"""Assumptions that are listed and no rule of the certificate uses: one that lacks it claims no less."""
NEST = """typedef unsigned u; volatile u o; const u ends[6] = {1, 1, 4, 9, 9, 11};
void f(u x) { for (u i = 1; i < 14; i++) for (u j = 1; j <= i; j *= 2) o = j;
u j = 0; for (u i = 0; i < 6; i++) { if (x >> i & 1) o = i; for (; j < ends[i]; j++) o = j; } }
"""
LIST = """struct n { struct n *volatile next; };
unsigned f(struct n *p, volatile unsigned *q, unsigned c) { *q = 1; if (c) *q = 2; if (!p->next) return 0;
for (unsigned i = 0; i < 20; i++) p = p->next; return (unsigned)p; }
"""
"""Its first round hits, and the second store modifies no line; the cache is small, so that lines are written back."""


@cache
def specimen(allocator, target, role, heap_bytes=5000):
    """The document of a true bound, and the binary that it is held against; what is ``IDLE`` is not listed."""
    if allocator == "nest":
        document, binary = document_of(guest_of(NEST, load_target(target), ".c"))
        return sealed(document), binary
    if allocator == "list":
        core = load_target(target)
        small = replace(core, dcache=replace(core.dcache, sets=4))
        document, binary = document_of(guest_of(LIST, small, ".c"))
        return sealed(document), binary
    program = load_program(load_allocator(allocator, {}), load_target(target), "zig", images_dir())
    section = bound_section(prove(operation_request(program, role, heap_bytes)))
    idle = IDLE.get((allocator, target, role))
    section["assumptions"] = [one for one in section["assumptions"] if one["id"] != idle]
    document = json.loads(json.dumps({"image": {"sha256": program.image.sha256}, "bound": section}))
    return sealed(document), allocator_binary(program, heap_bytes)
