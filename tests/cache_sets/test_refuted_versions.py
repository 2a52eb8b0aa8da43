"""Broken versions of CAMA that the lemmas excuse: a run of 2,000 operations refutes each, and names the instruction.

Tests: cache_sets.run, cache_sets.verdict.
"""

import pytest

from tests.cache_sets.mutants import changed
from wcet_probe.cache_sets.run import ROLES, run_operations
from wcet_probe.cache_sets.specification import SetProof, allowed_sets
from wcet_probe.cache_sets.verdict import Status, _requirements

HEAP_BYTES = 1 << 20
KEPT = "        descriptor->right = right;\n        right->left = descriptor;\n        insert("
LAST = "        next->prev = NULL;\n    else\n"
EXCUSED = {
    "an area that counts its header": ("/ CAMA_DESCRIPTOR_BYTES) - 1;", "/ CAMA_DESCRIPTOR_BYTES);"),
    "steps of two descriptors": ("? ++cama_control.fresh :", "? (cama_control.fresh += 2) :"),
    "a descriptor that is taken and not counted": ("    cama_control.available--;\n", ""),
    "a bit that stays": (LAST, LAST.replace("else", "else if (class != 30)")),
    "a link to what was merged": (KEPT, KEPT.replace("        descriptor->right = right;\n", "")),
    "a link back to what was merged": (KEPT, KEPT.replace("        right->left = descriptor;\n", "")),
    "a first block that begins in the area": (
        "    cama_control.top = top_behind(area);\n    cama_control.available = 0;",
        "    cama_control.top = area + 64;\n    cama_control.available = 0;",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", EXCUSED)
def test_what_lemmas_excuse_is_refuted_by_a_run(name):
    program = changed("cama.c", EXCUSED[name])
    allowed = allowed_sets(program)
    run = run_operations(program, allowed, HEAP_BYTES, operations=2000, seed=0)
    assert run.violations.keys() & {"sets", "stray", "invariant"}


def test_an_access_to_no_memory_refutes_and_is_named():
    program = changed("cama.c", EXCUSED["a bit that stays"])
    allowed = allowed_sets(program)
    run = run_operations(program, allowed, HEAP_BYTES, operations=2000, seed=0)
    proofs = {role: SetProof(role, {}, allowed.reserved, 0, (), (), (), {}) for role in ROLES}
    said = next(_requirements(program.allocator, allowed, proofs, run))
    assert said.status is Status.REFUTED
    wrong = run.violations["stray"]
    assert "cama.c:" in wrong.location
    assert wrong.operation == "cama_malloc()"
    assert wrong.address < 256
