"""True bounds whose certificates are checked in full: for mutants and forgeries to begin with."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache

from tests.certificate.forgeries import sealed
from tests.certificate.kernel.test_code import document_of
from tests.support import assembler, guest_of, images_dir
from wcet_probe.analyzer.bound import prove
from wcet_probe.analyzer.facts.binding import code_sha256
from wcet_probe.analyzer.facts.file import parse_facts
from wcet_probe.analyzer.request import BoundRequest
from wcet_probe.answer.bounds.proving import operation_request
from wcet_probe.build.program import load_program
from wcet_probe.catalog.lookup import load_allocator, load_target
from wcet_probe.certificate.facts.asserted import read_asserted
from wcet_probe.certificate.facts.findings import Binary
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
    ("panic", "cortex-m4", "f"),
    ("handlers", "cortex-m4", "f"),
    ("ends", "mpc603e", "f"),
    ("ends", "arm926ej-s", "f"),
    ("ranges", "mpc603e", "f"),
    ("halves", "arm926ej-s", "f"),
    ("array", "mpc603e", "f"),
    ("table", "mpc603e", "f"),
    ("cama", "mpc603e", "free"),
    ("cama", "cortex-m7", "malloc"),
)
"""Bounds that are checked in full: allocator, or a source that stands here, core, function."""
IDLE = {
    ("tlsf", "mpc603e", "free"): "fact tlsf/facts.toml:9",
    ("quick-fit", "mpc603e", "malloc"): "stack-stores",
    ("table", "mpc603e", "f"): "stack-stores",
}
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
PANIC = """#define APART __attribute__((noinline)) static
volatile unsigned why, table[8]; APART void stop(unsigned n) { while (n | 1) why = n; }
APART void panic(unsigned n) { table[1] = n; stop(n); }
unsigned f(unsigned i) { unsigned s = 0; if (i > 7) panic(i);
for (unsigned k = 0; k < i; k++) { if (table[k] > 99) __builtin_trap(); s += table[k]; } return s; }
"""
"""Ways to what never returns are left out: rule *dead end*."""
ENDS = {
    "mpc603e": {
        "f": "addi 5, 3, -4\n addi 6, 3, 60\n 1: lwzu 4, 4(5)\n cmplw 5, 6\n bne 1b\n"
        "addi 5, 3, 32\n 2: addi 5, 5, -8\n stw 4, 0(5)\n cmplw 5, 3\n bne 2b\n blr"
    },
    "arm926ej-s": {
        "f": "sub r3, r0, #4\n add r1, r0, #60\n 1: ldr r2, [r3, #4]!\n cmp r3, r1\n bne 1b\n"
        "add r3, r0, #32\n 2: str r2, [r3, #-8]!\n cmp r3, r0\n bne 2b\n bx lr"
    },
}
"""Pointers that go up and down to an end: rule *difference*."""
RANGES = """
 rlwinm 6, 4, 0, 26, 29
 addi 6, 6, 4
 add 6, 3, 6
 mr 5, 3
1: lwz 7, 0(5)
 addi 5, 5, 4
 cmplw 7, 5
 bne 2f
 addi 10, 10, 1
2: cmplw 5, 6
 bne 1b
 blr
"""
"""A pointer up to an end in a range, whose flags another comparison changed before: rule *difference*."""
TABLE = """
 lis 9, table@ha
 addi 9, 9, table@l
 li 6, 40
 mtctr 6
1: rlwinm 7, 3, 2, 24, 29
 lwzx 3, 9, 7
 stw 3, -16(1)
 bdnz 1b
 blr
 .balign 32
table: .space 256
"""
"""A table whose lines are missed once, and a word of the stack: rule *kept*."""
ARRAY = """
 lis 3, array@ha
 addi 3, 3, array@l
 addi 6, 3, 80
 addi 8, 3, 400
1: addi 7, 6, -80
2: lwz 4, 0(7)
 add 5, 5, 4
 addi 7, 7, 4
 cmplw 7, 6
 bne 2b
 addi 6, 6, 80
 cmplw 6, 8
 bne 1b
 mr 3, 5
 blr
 .balign 32
array: .space 320
"""
"""A nest whose inner pointer goes on to where the outer one is: rules *in rounds* and *kept*."""
HALVES = """
 subs r2, r1, #1
 bxeq lr
 bcc 9f
1: cmp r1, #0x40000000
 cmpcc r1, r0
 lslcc r1, r1, #2
 bcc 1b
 mov r3, #0x8000
2: cmp r0, r1
 subcs r0, r0, r1
 cmp r0, r1, lsr #1
 subcs r0, r0, r1, lsr #1
 cmp r0, r1, lsr #2
 subcs r0, r0, r1, lsr #2
 cmp r0, #0
 lsrsne r3, r3, #3
 bne 2b
9: bx lr
"""
"""A number that grows from at least 2, as two branches tell, and one that is shifted out: *one way*, *predicate*."""
HANDLERS = """struct route { int gain; int (*handle)(int value, int gain); };
static struct route routes[4];
int leaf(int value, int gain) { return value * gain; }
int other(int value, int gain) { for (int i = 0; i < 9; i++) routes[i & 3].gain = value; return gain; }
void add(int i, int gain) { routes[i & 3] = (struct route){ gain, i & 4 ? leaf : other }; }
int f(int i, int value) { const struct route *one = &routes[i & 3]; return one->handle(value, one->gain) + 1; }
"""
"""Where a call goes a fact tells by its offset: rule *called*."""


def called(guest):
    """The document of ``HANDLERS`` with its fact, and the binary."""
    image, own, sources = guest.image, guest.image.symbols["f"], {"guest.c": HANDLERS}
    code = [one for one in guest.instructions if own.address <= one.address < own.address + own.size_bytes]
    offset = next(one.address for one in code if one.text.startswith("blx")) - own.address
    text = f'[[calls]]\nfunction = "f"\noffset = {offset}\nsha256 = "{code_sha256(image, "f")}"\n'
    text += 'targets = ["leaf", "other"]\nbecause = "add registers no other"\n'
    facts = parse_facts("facts.toml", text)
    asked = BoundRequest(image, guest.target, guest.instructions, guest.costs, "f", facts, sources, {})
    section = json.loads(json.dumps(bound_section(prove(asked))))
    document = {"image": {"sha256": image.sha256}, "target": guest.target.name, "bound": section}
    asserted = read_asserted([("facts.toml", text)], sources)
    return sealed(document), Binary(image, guest.instructions, guest.costs, guest.target, asserted, {})


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
    functions = {
        "ends": ENDS.get(target, {}),
        "ranges": {"f": RANGES},
        "table": {"f": TABLE},
        "array": {"f": ARRAY},
        "halves": {"f": HALVES},
    }
    if allocator in {"panic", *functions}:
        core = load_target(target)
        is_c = allocator == "panic"
        guest = guest_of(PANIC, core, ".c") if is_c else guest_of(assembler(functions[allocator], core), core)
        document, binary = document_of(guest)
        return sealed(without_idle(document, (allocator, target, role))), binary
    if allocator == "handlers":
        return called(guest_of(HANDLERS, load_target(target), ".c"))
    program = load_program(load_allocator(allocator, {}), load_target(target), "zig", images_dir())
    section = bound_section(prove(operation_request(program, role, heap_bytes)))
    document = json.loads(json.dumps({"image": {"sha256": program.image.sha256}, "bound": section}))
    return sealed(without_idle(document, (allocator, target, role))), allocator_binary(program, heap_bytes)


def without_idle(document, name):
    """``document`` without the assumption that is ``IDLE`` in it."""
    listed = [one for one in document["bound"]["assumptions"] if one["id"] != IDLE.get(name)]
    return {**document, "bound": {**document["bound"], "assumptions": listed}}
