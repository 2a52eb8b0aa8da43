"""Buddy systems have module certificates, and broken ones have none of what is false of them.

Tests: certificate.modules.module, certificate.modules.stored_by_init, certificate.modules.counted_words,
certificate.modules.image_words, certificate.modules.stepped_registers.
"""

import contextlib
from dataclasses import replace

import pytest

from tests.answer.facts.test_proved_facts import HEAP_BYTES, program
from tests.module_certificates import true_certificate
from tests.support import images_dir
from wcet_probe.analyzer.bound import prepare
from wcet_probe.answer.bounds import module_certificate as module
from wcet_probe.answer.bounds.proving import operation_request
from wcet_probe.build.program import load_program
from wcet_probe.catalog.lookup import load_allocator, load_target
from wcet_probe.certificate.facts.findings import OK
from wcet_probe.certificate.kernel.coverage import code_of, cover
from wcet_probe.certificate.kernel.records import read_records
from wcet_probe.certificate.machines.operands import Computation
from wcet_probe.certificate.modules.image_words import constant_word
from wcet_probe.certificate.modules.instruction_kinds import leaves_number
from wcet_probe.certificate.modules.module import check_module, operation_of, stored_by_init, used_in
from wcet_probe.certificate.modules.stepped_registers import stepped_registers
from wcet_probe.certificate.values.kinds import (
    ARENA,
    CONSTANT,
    NEAR,
    NULL,
    NUMBER,
    UNKNOWN,
    Part,
    added,
    followed,
    links_of,
)
from wcet_probe.certificate.values.residues import ALL, residue
from wcet_probe.errors import AnalysisError, VerificationError
from wcet_probe.evidence.checking import allocator_binary
from wcet_probe.model.image import Segment, Symbol

BINARY, FIBONACCI = ("buddy-binary", "buddy_binary.c"), ("buddy-fibonacci", "buddy_fibonacci.c")
BESIDE = "(void *)((char *)head + 2);"
BROKEN = {
    f"{of[0]}, {name}": (*of, old, new)
    for of, name, old, new in (
        (
            BINARY,
            "a base that is not always stored",
            "control.base = arena;",
            "control.base = bytes == 1024 ? (void *)2 : arena;",
        ),
        (FIBONACCI, "a table with a wrong size", "377 * M,", "377 * M + 2,"),
        (
            BINARY,
            "a link stored with an offset",
            "block->next = head;",
            f"block->next = head == NULL ? NULL : {BESIDE}",
        ),
        (BINARY, "a header read out of the payload", "offset &= buddy_offset;", "offset += *(size_t *)payload;"),
        (BINARY, "a block of another size", "+ bytes_of(found)), found);", "+ bytes_of(found) + 2), found);"),
        (BINARY, "a base that is moved", "control.base = arena;", "control.base = (unsigned char *)arena + 2;"),
        (
            BINARY,
            "a base from an argument",
            "    size_t order = 0;\n    while (bytes",
            (
                "    if (bytes == 12)\n        buddy_binary_control.base = (void *)bytes;\n"
                "    size_t order = 0;\n    while (bytes"
            ),
        ),
        (
            BINARY,
            "a base stored by a refused init alone",
            "        return -1;\n\n    buddy_binary_control.base = arena;",
            "    {\n        buddy_binary_control.base = arena;\n        return -1;\n    }",
        ),
        (BINARY, "an arena at any address", "(uintptr_t)arena % BUDDY_BINARY_MINIMUM_BLOCK != 0 || ", ""),
        (
            BINARY,
            "a stray store through an argument",
            "    size_t order = 0;\n    while (bytes",
            "    if (bytes == 12)\n        *(volatile size_t *)bytes = 1;\n    size_t order = 0;\n    while (bytes",
        ),
        (
            BINARY,
            "a byte of a link",
            "    block->prev = NULL;",
            "    block->prev = NULL;\n    *(volatile char *)&block->next = 2;",
        ),
        (BINARY, "a head that is moved", "heads[order] = block;", "heads[order] = (void *)((char *)block + 2);"),
        (BINARY, "an order added to the start", "+ bytes_of(found)), found);", "+ bytes_of(found) + found), found);"),
        (
            BINARY,
            "a buddy beside its place",
            "buddy_offset = offset ^ bytes_of(order);",
            "buddy_offset = offset ^ (bytes_of(order) | 2);",
        ),
        (FIBONACCI, "a child beside its place", "block + bytes);", "block + bytes + 2);"),
        (FIBONACCI, "a head that is moved", "heads[class] = block;", "heads[class] = (void *)((char *)block + 2);"),
        (
            FIBONACCI,
            "a link stored with an offset",
            "block->next = head;",
            f"block->next = head == NULL ? NULL : {BESIDE}",
        ),
        (FIBONACCI, "a base that is moved", "control.base = arena;", "control.base = (unsigned char *)arena + 2;"),
        (
            FIBONACCI,
            "a size with bits of the tag",
            "return (void *)((unsigned char *)block + bytes);",
            "return (void *)((unsigned char *)block + (bytes | (block->tag & 2)));",
        ),
        (FIBONACCI, "an arena at any address", "(uintptr_t)arena % BUDDY_FIBONACCI_MINIMUM_BLOCK != 0", "0"),
        (
            FIBONACCI,
            "a stray store through an argument",
            "    size_t class = 0;\n    while",
            "    if (bytes == 12)\n        *(volatile size_t *)bytes = 1;\n    size_t class = 0;\n    while",
        ),
        (
            FIBONACCI,
            "a byte of a link",
            "    block->prev = NULL;",
            "    block->prev = NULL;\n    *(volatile char *)&block->next = 2;",
        ),
        (
            FIBONACCI,
            "a size between two of the table",
            "bytes_of[class_of(tag) - 1]);",
            "*(const size_t *)(const void *)((const char *)&bytes_of[class_of(tag) - 1] + 2));",
        ),
        (FIBONACCI, "a buddy in front of its place", "block - bytes);", "block - bytes - 2);"),
        (
            FIBONACCI,
            "a root beside its place",
            "push((void *)(buddy_fibonacci_control.base + offset)",
            "push((void *)(buddy_fibonacci_control.base + offset + 2)",
        ),
        (FIBONACCI, "a block that is moved", "cut(pop(found), class) +", "cut(pop(found), class) + 2 +"),
    )
}
"""Broken versions, of which every address is to be a multiple of 4 by a fact."""


@pytest.fixture(scope="module", params=["buddy-fibonacci", pytest.param("buddy-binary", marks=pytest.mark.slow)])
def checked(request):
    given = load_program(load_allocator(request.param), load_target("mpc603e"), "zig", images_dir(), HEAP_BYTES)
    return given, true_certificate(given, HEAP_BYTES)


def test_each_buddy_system_is_checked(checked):
    """On mpc603e buddy-binary says of a head's index that it is a multiple of 16: of that nothing is told."""
    given, document = checked
    found = check_module(document, allocator_binary(given, HEAP_BYTES)).findings
    assert len(document["facts"]) == {"buddy-binary": 2, "buddy-fibonacci": 4}[given.allocator.name]
    told = {f"alignment of {one['where']}" for one in document["facts"]}
    assert all(one.verdict == OK for one in found if one.check in told or not one.check.startswith("alignment"))


@pytest.mark.slow
@pytest.mark.parametrize("target", ["mpc755", "e200z6", "cortex-m7", "cortex-m4", "arm926ej-s"])
def test_all_facts_of_buddy_fibonacci_are_checked_on_other_cores(target):
    given = load_program(load_allocator("buddy-fibonacci"), load_target(target), "zig", images_dir(), HEAP_BYTES)
    document = module.module_certificate(given, HEAP_BYTES)
    found = check_module(document, allocator_binary(given, HEAP_BYTES)).findings
    assert len(document["facts"]) == 4
    assert {one.verdict for one in found} == {OK}


@pytest.mark.slow
@pytest.mark.parametrize("target", ["cortex-m7", "cortex-m4"])
def test_all_facts_of_buddy_binary_that_bounds_rest_on_are_checked_on_cortex_m(target):
    """`0x10 << 23` is where the code begins, and init returns by one `pop` whether it takes the arena or not."""
    given = load_program(load_allocator("buddy-binary"), load_target(target), "zig", images_dir(), HEAP_BYTES)
    document = module.module_certificate(given, HEAP_BYTES)
    found = check_module(document, allocator_binary(given, HEAP_BYTES)).findings
    assert len(document["facts"]) == 3
    assert [one.found for one in found if one.verdict != OK] == ["nothing is told of it"]


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
    "name",
    [one if "wrong size" in one else pytest.param(one, marks=pytest.mark.slow) for one in BROKEN],
)
@pytest.mark.parametrize("target", ["mpc603e", pytest.param("cortex-m7", marks=pytest.mark.slow)])
def test_a_broken_version_gets_no_certificate_of_its_alignment(name, target):
    allocator, *change = BROKEN[name]
    with contextlib.suppress(AnalysisError):  # the address of a store is not known
        assert not module.module_certificate(program(allocator, tuple(change), target, 4), HEAP_BYTES)["facts"]


@pytest.mark.slow
@pytest.mark.parametrize("allocator", ["buddy-binary", "buddy-fibonacci"])
def test_the_true_version_gets_one(allocator):
    assert module.module_certificate(program(allocator, multiple_of=4), HEAP_BYTES)["facts"]


@pytest.mark.parametrize(
    ("allocator", "multiple_of"),
    [
        ("kingsley", 16),
        *(
            pytest.param(name, one, marks=pytest.mark.slow)
            for name, one in (("buddy-fibonacci", 16), ("buddy-binary", 8), ("buddy-binary", 16))
        ),
    ],
)
def test_a_fact_that_says_too_much_is_not_told_and_refused_where_it_is(allocator, multiple_of):
    """Of the order of a tag, which has no range as it is doubled, or of a payload."""
    given = program(allocator, multiple_of=multiple_of)
    document = module.module_certificate(given, HEAP_BYTES)
    assert not document["facts"]
    said = true_certificate(program(allocator, multiple_of=4), HEAP_BYTES)["facts"]
    with pytest.raises(VerificationError, match="does not hold at"):
        check_module({**document, "facts": said}, allocator_binary(given, HEAP_BYTES))


@pytest.mark.slow
def test_who_says_that_all_words_are_followed_is_refused(monkeypatch):
    given = program("buddy-fibonacci", multiple_of=4)

    def all_followed(code, operation, coverage):
        each = frozenset((address, 0) for address in code.instructions)
        return used_in(code, operation, coverage)._replace(followed=dict.fromkeys(operation.graph.nodes, each))

    monkeypatch.setattr(module, "used_in", all_followed)
    with pytest.raises((AnalysisError, VerificationError)):
        check_module(module.module_certificate(given, HEAP_BYTES), allocator_binary(given, HEAP_BYTES))


def test_halves_of_an_address_are_put_together_to_one():
    """What a register shifts is a number, also where that is the address of the code, and so is that less a little."""
    for name, operands, is_known, is_number in (
        ("lsl", ["r0", "r1"], False, True),
        ("lsl", ["r0", "8"], True, False),
        ("sub", ["r0", "8"], True, True),
        ("sub", ["r0", "8"], False, False),
        ("addi", ["r5", "0x410"], True, False),
        ("ori", ["r5", "8"], True, False),
        ("add", ["r0", "r1"], True, False),
    ):
        assert leaves_number(Computation(name, operands, "", 0), is_known=is_known) == is_number


def test_null_plus_a_number_is_no_link():
    near, link = Part(NEAR, False, ALL), Part(ARENA, True, ALL)
    assert links_of((link, near)) == (link,)


def test_null_of_a_link_is_in_no_address():
    null, number, link = Part(NULL, False, residue(0)), Part(NUMBER, True, ALL), Part(ARENA, True, ALL)
    loaded = links_of((link, null, number))
    assert {(part.kind, part.is_loaded) for part in loaded} == {(ARENA, True), (NULL, True)}
    (own,) = (part for part in loaded if part.kind == NULL)
    assert not followed(added((Part(ARENA, False, ALL),), (own,)))
    assert followed(added((Part(ARENA, False, ALL),), (null,)))  # a number that is 0


@pytest.mark.slow
def test_who_says_that_init_stores_more_than_it_does_is_refused():
    given = program("buddy-binary", multiple_of=4)
    document, first = module.module_certificate(given, HEAP_BYTES), 0x400000
    told = document["stored_by_init"]
    assert f"{first:#x}" in told
    for words, why in (
        ([*told, "0x3ffffc"], "init does not store the word at 0x3ffffc on each of its ways"),
        ([*told, "0x0400000"], "is not written as the address of one"),
        (
            [one for one in told if one != f"{first:#x}"],
            f"the image holds at {first:#x} what static:{first:#x} does not",
        ),
    ):
        with pytest.raises(VerificationError, match=why):
            check_module({**document, "stored_by_init": words}, allocator_binary(given, HEAP_BYTES))


def stored(name, change=None, target="mpc603e"):
    given = program(name, change, target)
    problem = module._problem(given, prepare(operation_request(given, "init", HEAP_BYTES)))
    operation = operation_of("init", read_records(module._text(given, problem, apart=False)))
    code = code_of(given.image, given.instructions)
    return stored_by_init(code, operation, cover(code, operation.graph, operation.said, {}))


@pytest.mark.covering(0)
@pytest.mark.parametrize(("target", "first"), [("mpc603e", 0x400000), ("cortex-m4", 0x20000000)])
def test_a_word_that_init_does_not_always_store_is_not_told(target, first):
    """On Cortex-M4 refusals join before the node that returns."""
    always = "buddy_binary_control.base = arena;"
    sometimes = "if (bytes != 1024)\n        buddy_binary_control.base = arena;"
    refusing = "        return -1;\n\n    buddy_binary_control.base = arena;"
    refused = "    {\n        buddy_binary_control.base = arena;\n        return -1;\n    }"
    assert first in stored("buddy-binary", target=target).behind
    assert first not in stored("buddy-binary", (BINARY[1], always, sometimes), target).behind
    assert first not in stored("buddy-binary", (BINARY[1], refusing, refused), target).behind


def test_a_refusal_where_init_begins_need_not_store():
    """The compiler makes a conditional return (`bltlr`) of it, so that init is left from the node where it begins."""
    assert len(stored("djgpp-tags").behind) == 4


def test_what_is_beside_a_table_may_be_of_another_without_a_symbol():
    """So are two tables of one name in two files: the image has one symbol of them."""
    words = b"".join(one.to_bytes(4, "big") for one in (16, 32, 3, 5))
    image = replace(
        program("buddy-fibonacci").image,
        segments=(Segment(0x10000, words, len(words), False, False),),
        symbols={"table": Symbol("table", 0x10000, 8, False)},
    )
    kinds = {one: [part.kind for part in constant_word(image, one)] for one in (0xFFFC, 0x10000, 0x10004)}
    assert set(map(tuple, kinds.values())) == {(CONSTANT,)}
    (beside,) = constant_word(image, 0x10008)
    assert beside.kind == UNKNOWN


def test_the_end_of_what_is_beside_a_table_is_none_of_it():
    """Of two words without a symbol the address behind both, with nothing there, or before zeros at their end."""
    table = (16).to_bytes(4, "big")
    for words, at, beside in (
        (table + b"\0\0\0\2", 0x10000, 0x10008),
        (b"\0\0\0\2" + bytes(8) + table, 0x1000C, 0x10004),
    ):
        image = replace(
            program("buddy-fibonacci").image,
            segments=(Segment(0x10000, words, len(words), False, False),),
            symbols={"table": Symbol("table", at, 4, False)},
            code=(),
        )
        assert [part.kind for part in constant_word(image, at)] == [CONSTANT]
        assert [part.kind for part in constant_word(image, beside)] == [UNKNOWN]


def test_a_register_is_stepped_where_a_loop_writes_sums_of_it_and_constants_alone():
    given = program("buddy-fibonacci", target="cortex-m7")
    problem = module._problem(given, prepare(operation_request(given, "malloc", HEAP_BYTES)))
    operation = operation_of("malloc", read_records(module._text(given, problem, apart=False)))
    coverage = cover(code_of(given.image, given.instructions), operation.graph, operation.said, {})
    found = stepped_registers(operation.graph, coverage)
    texts = {node: [one.text for one in coverage.instructions[node]] for node in found}
    search = next(node for node, block in texts.items() if block[0] == "ldr r2, [r1]")
    assert "r1" in found[search]
    assert "r2" not in found[search]
    assert not found[operation.graph.entry]
