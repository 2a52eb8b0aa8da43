"""Words that init surely stores, links and their null, and constant tables: what buddy systems take to be checked.

Tests: certificate.modules.stored_by_init, certificate.modules.counted_words, certificate.modules.image_words.
"""

import contextlib

import pytest

from tests.answer.facts.test_proved_facts import HEAP_BYTES, program
from tests.support import images_dir
from wcet_probe.answer.bounds import module_certificate as module
from wcet_probe.build.program import load_program
from wcet_probe.catalog.lookup import load_allocator, load_target
from wcet_probe.certificate.facts.findings import OK
from wcet_probe.certificate.modules.instruction_kinds import Uses
from wcet_probe.certificate.modules.module import check_module
from wcet_probe.certificate.values.kinds import ARENA, NULL, NUMBER, Part, added, followed, links_of
from wcet_probe.certificate.values.residues import ALL, residue
from wcet_probe.errors import AnalysisError, VerificationError
from wcet_probe.evidence.checking import allocator_binary

BINARY, FIBONACCI = ("buddy-binary", "buddy_binary.c"), ("buddy-fibonacci", "buddy_fibonacci.c")
BROKEN = {
    "a link stored with an offset": (
        *BINARY,
        "block->next = head;",
        "block->next = head == NULL ? NULL : (void *)((char *)head + 4);",
    ),
    "a header read out of the payload": (*BINARY, "offset &= buddy_offset;", "offset += *(size_t *)payload;"),
    "a block of another size": (*BINARY, "+ bytes_of(found)), found);", "+ bytes_of(found) + 4), found);"),
    "a base that is moved": (*BINARY, "control.base = arena;", "control.base = (unsigned char *)arena + 4;"),
    "a base that is not always stored": (
        *BINARY,
        "buddy_binary_control.base = arena;",
        "if (bytes != 1024)\n        buddy_binary_control.base = arena;",
    ),
    "a base that is stored by a refused init alone": (
        *BINARY,
        "        return -1;\n\n    buddy_binary_control.base = arena;",
        "    {\n        buddy_binary_control.base = arena;\n        return -1;\n    }",
    ),
    "a table with a wrong size": (*FIBONACCI, "377 * M,", "377 * M + 2,"),
    "a child beside its place": (*FIBONACCI, "+ bytes);", "+ bytes + 4);"),
    "a head set from a block that is moved": (
        *FIBONACCI,
        "heads[class] = block;",
        "heads[class] = (void *)((char *)block + 4);",
    ),
}


@pytest.fixture(scope="module", params=["buddy-binary", "buddy-fibonacci"])
def checked(request):
    given = load_program(load_allocator(request.param), load_target("mpc603e"), "zig", images_dir(), HEAP_BYTES)
    return given, module.module_certificate(given, HEAP_BYTES)


def test_each_buddy_system_is_checked(checked):
    given, document = checked
    found = check_module(document, allocator_binary(given, HEAP_BYTES)).findings
    assert len(document["facts"]) == {"buddy-binary": 3, "buddy-fibonacci": 4}[given.allocator.name]
    told = {f"alignment of {one['where']}" for one in document["facts"]}
    assert all(one.verdict == OK for one in found if one.check in told)


@pytest.mark.parametrize("part", ["null*", "arena*"])
def test_what_the_cells_do_not_tell_is_refused(checked, part):
    """Of each third cell a kind of word that is stored there is left out."""
    given, document = checked
    cells = [name for name, text in document["cells"].items() if f"{part}:" in text and " " in text]
    for name in cells[::3]:
        text = " ".join(one for one in document["cells"][name].split() if not one.startswith(f"{part}:"))
        changed = {**document, "cells": {**document["cells"], name: text}}
        with pytest.raises(VerificationError):
            check_module(changed, allocator_binary(given, HEAP_BYTES))


@pytest.mark.parametrize(
    "name", [pytest.param(one, marks=pytest.mark.slow) if n > 1 else one for n, one in enumerate(BROKEN)]
)
def test_a_broken_version_gets_no_certificate_of_its_alignment(name):
    allocator, *change = BROKEN[name]
    with contextlib.suppress(AnalysisError):  # the address of a store is not known
        assert not module.module_certificate(program(allocator, tuple(change)), HEAP_BYTES)["facts"]


@pytest.mark.parametrize("allocator", [pytest.param("buddy-binary", marks=pytest.mark.slow), "buddy-fibonacci"])
def test_the_true_version_gets_one(allocator):
    assert module.module_certificate(program(allocator), HEAP_BYTES)["facts"]


def test_who_says_that_all_words_are_followed_is_refused(monkeypatch):
    given = program("buddy-binary")

    def all_followed(code, operation, _):
        return {node: Uses(links=frozenset(code.instructions)) for node in operation.graph.nodes}

    monkeypatch.setattr(module, "used_as", all_followed)
    with pytest.raises((AnalysisError, VerificationError)):
        check_module(module.module_certificate(given, HEAP_BYTES), allocator_binary(given, HEAP_BYTES))


def test_null_of_a_link_is_in_no_address():
    null, number, link = Part(NULL, False, residue(0)), Part(NUMBER, True, ALL), Part(ARENA, True, ALL)
    loaded = links_of((link, null, number))
    assert {(part.kind, part.is_loaded) for part in loaded} == {(ARENA, True), (NULL, True)}
    (own,) = (part for part in loaded if part.kind == NULL)
    assert not followed(added((Part(ARENA, False, ALL),), (own,)))
    assert followed(added((Part(ARENA, False, ALL),), (null,)))  # a number that is 0
