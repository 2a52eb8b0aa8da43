"""CAMA broken where its links are made: the induction over its operations sees that they lead elsewhere.

Tests: cache_sets.specification.
"""

import pytest

from tests.cache_sets.mutants import changed
from wcet_probe.cache_sets.specification import allowed_sets, prove_sets, words_of

pytestmark = pytest.mark.slow

HEAP_BYTES = 1 << 20
KEPT = "        descriptor->right = right;\n        right->left = descriptor;\n        insert("
FRESH = "    struct cama_descriptor *fresh = (void *)(begin + CAMA_DESCRIPTOR_BYTES);"
MASK = "uintptr_t offset = (begin - CAMA_RESERVED_OFFSET) & (CAMA_PAGE_BYTES - 1);\n\n    return"
SPARE = "    descriptor->left = cama_control.spare;\n    cama"
TAG = "    unsigned class = (unsigned)(small->tag >> CAMA_SMALL_CLASS_SHIFT);"
USED = "    return as_used(start, (uintptr_t)descriptor);\n}\n\n/* -"
BROKEN = {
    "a link with an offset": (KEPT, KEPT.replace("= right;", "= right + 1;")),
    "a link into the line behind": ("        next->prev = NULL;\n", "        next[1].prev = NULL;\n"),
    "descriptors from the sixth place on": (FRESH, FRESH.replace("+ CAMA", "+ 5 * CAMA")),
    "an area by the wrong mask": (MASK, MASK.replace("BYTES - 1)", "BYTES / 2 - 1)")),
    "a start in the place of a link": (SPARE, SPARE.replace("cama_control.spare;", "(void *)descriptor->start;")),
    "a small block in the list of the next class": (TAG, TAG.replace(";", " + 1;")),
    "a start in the place of a descriptor": (USED, USED.replace("(uintptr_t)descriptor", "start")),
}


COMPARED = {
    "the next block of a list": (
        "    if (next != NULL)\n        next->prev = NULL;\n    else\n",
        "    next->prev = NULL;\n",
    ),
    "the block before in a list": ("    if (prev != NULL) {", "    if (descriptor->next != NULL) {"),
}


@pytest.mark.parametrize("name", COMPARED)
def test_what_is_not_compared_with_null_is_named(name):
    """The lemma excuses it, and tells of the place; where it is compared nothing is told (`test_verify_sets`)."""
    old, new = COMPARED[name]
    line = {"the next block of a list": "next->prev = NULL;", "the block before in a list": "prev->next = next;"}[name]
    program = changed("cama.c", (old, new))
    text = dict(program.allocator.sources)["cama.c"].splitlines()
    places = [f"cama.c:{number})" for number, one in enumerate(text, 1) if one.strip() == line]
    words = words_of(program, HEAP_BYTES, allowed_sets(program))
    null = {address for _, address, _ in words.sites["null-is-not-followed"]}
    assert any(place in program.image.location(address) for address in null for place in places)


@pytest.mark.parametrize("name", BROKEN)
def test_what_a_link_leads_to_is_named(name):
    program = changed("cama.c", BROKEN[name])
    allowed = allowed_sets(program)
    words = words_of(program, HEAP_BYTES, allowed)
    proofs = [prove_sets(program, role, (HEAP_BYTES,), allowed, words=lambda: words) for role in ("malloc", "free")]
    assert not all(proof.holds for proof in proofs)
    violations = [violation for proof in proofs for violation in proof.possible_violations]
    assert violations
    assert all("cama.c:" in violation.location for violation in violations)
