"""Cells of module certificates are held against calls of the second engine, whose caller scribbles on its blocks.

What an operation loads from its memory must be among what the cell tells, whatever the lemmas leave out: but for the
block that free is given, which is the caller's.
"""

import pytest

from tests.end_to_end.test_proved_facts_in_runs import HEAP_BYTES, Caller
from tests.support import images_dir
from wcet_probe.answer.bounds.module_certificate import module_certificate
from wcet_probe.build.program import load_program
from wcet_probe.catalog.lookup import load_allocator, load_target
from wcet_probe.certificate.kernel.records import demand
from wcet_probe.certificate.modules.module import cell_of
from wcet_probe.certificate.values.kinds import word_of
from wcet_probe.certificate.values.residues import MODULUS

KINDS = {"arena": {"arena", "number", "any"}, "static": {"static", "number", "any"}}
NUMBERS = {"null", "near", "number", "mixed", "any"}


def is_among(value, where, parts):
    kinds = KINDS.get(where, NUMBERS)
    return any(part.kind in kinds and part.value >> value % MODULUS & 1 for part in parts)


def hold(caller, done, cells, payload=range(0)):
    held = 0
    for one in done.accesses:
        where = caller.where(one.address)
        if one.is_store or one.size_bytes != 4 or one.value is None or where == "number" or one.address in payload:
            continue
        name = f"arena:{one.address % MODULUS}" if where == "arena" else cell_of(cells, one.address)
        place = caller.program.image.location(one.instruction_address)
        assert is_among(one.value, caller.where(one.value), cells[name]), (place, name, hex(one.value))
        held += 1
    return held


@pytest.mark.parametrize(
    ("name", "target"),
    [
        pytest.param(name, target, marks=() if name == "first-fit" and target == "mpc603e" else pytest.mark.slow)
        for name in ("first-fit", "best-fit", "kingsley", "tlsf", "djgpp-sbrk", "djgpp-carve")
        for target in ("mpc603e", "cortex-m7")
    ],
)
def test_what_operations_load_is_what_the_cells_tell(name, target):
    program = load_program(load_allocator(name), load_target(target), "zig", images_dir())
    document = module_certificate(program, HEAP_BYTES)
    cells = {cell: word_of(text, demand) for cell, text in document["cells"].items()}
    block = word_of(document["block"], demand)
    caller, blocks = Caller(program, seed=2), {}
    start = caller.call("init", caller.heap, HEAP_BYTES // 16 * 16)
    assert start.result == 0
    held = hold(caller, start, cells)
    for _ in range(150):
        if blocks and caller.random.random() < 0.45:
            given = caller.random.choice(sorted(blocks))
            size_bytes = blocks.pop(given)
            caller.scribble(given, size_bytes)
            held += hold(caller, caller.call("free", given), cells, range(given, given + size_bytes))
            continue
        size_bytes = caller.random.choice((1, 7, 12, 24, 40, 100, 300, 900))
        done = caller.call("malloc", size_bytes)
        held += hold(caller, done, cells)
        assert is_among(done.result, caller.where(done.result), block)
        if done.result:
            blocks[done.result] = size_bytes
            caller.scribble(done.result, size_bytes)
    assert held > 300
