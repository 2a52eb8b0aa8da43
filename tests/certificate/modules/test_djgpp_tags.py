"""Between which numbers an address of static data lies, and words that init surely stores: what djgpp-tags takes.

Tests: certificate.modules.stored_by_init, certificate.modules.image_words, certificate.values.kinds.
"""

import re

import pytest

from tests.answer.facts.test_proved_facts import HEAP_BYTES, program
from tests.module_certificates import true_certificate
from wcet_probe.answer.bounds import module_certificate as module
from wcet_probe.certificate.facts.findings import OK
from wcet_probe.certificate.modules.module import check_module
from wcet_probe.errors import AnalysisError, VerificationError
from wcet_probe.evidence.checking import allocator_binary

TAGS, BOUNDARY = "djgpp_tags.h", "boundary_tags.h"
PUSHED = "    heap->heads[bucket] = node;\n"
WALKED = "        link = &(*link)->next;\n    *link = node->next;"
MOVED = "heap->brk = (void *)((unsigned char *)block + more);"
TAKEN = "    heap->rest = bt_next(block);\n"
FOUND = "    lower[0].header = 0;\n"
CONTROL = "struct djgpp_tags djgpp_tags_control;\n\nint djgpp_tags_init(void *arena, size_t bytes)\n{\n    return"
WORDS = "{.end = (void *)0x40000000, .rest = (void *)2}"
BROKEN = {
    "a link stored with an offset": (
        TAGS,
        "node->next = heap->heads[bucket];",
        "node->next = (void *)((char *)heap->heads[bucket] + 2);",
    ),
    "a head stored with an offset": (TAGS, PUSHED, PUSHED.replace("= node", "= (void *)((char *)node + 2)")),
    "heads beside their places": (
        TAGS,
        PUSHED,
        "    *(struct djgpp_tags_node **)(void *)((char *)heap->heads + bucket) = node;\n",
    ),
    "a size in front of the heads": (
        TAGS,
        PUSHED,
        f"{PUSHED}    ((size_t *)heap->heads)[(int)bucket - 6] = block->header;\n",
    ),
    "a number before the heads, round by round": (
        TAGS,
        PUSHED,
        f"{PUSHED}    for (volatile size_t *at = (size_t *)&heap->heads[bucket]; *at != 1;)\n        *--at = bucket;\n",
    ),
    "a stray store by the size of the block": (
        TAGS,
        PUSHED,
        f"{PUSHED}    ((size_t *)heap)[bt_size(block) >> 3 & 31] = bucket;\n",
    ),
    "a stray byte": (TAGS, PUSHED, f"{PUSHED}    ((unsigned char *)heap)[bucket] = (unsigned char)bucket;\n"),
    "a walk that steps beside links": (
        TAGS,
        WALKED,
        WALKED.replace("&(*link)->next", "(void *)((char *)&(*link)->next + 2)"),
    ),
    "a walk that ends in front of the heads": (
        TAGS,
        WALKED,
        WALKED.replace("*link = node->next", "link[-4] = (void *)2"),
    ),
    "an address of the stack kept as a head": (
        TAGS,
        PUSHED,
        "    struct djgpp_tags_node own = {node};\n    heap->heads[bucket] = &own;\n",
    ),
    "an address of the stack kept as the rest": (
        TAGS,
        TAKEN,
        f"    volatile size_t own[2] = {{spare, spare}};\n    heap->rest = (void *)&own[1];\n{TAKEN}".replace(
            "heap->rest = bt_next(block)", "if (spare != 64)\n        heap->rest = bt_next(block)"
        ),
    ),
    "a wrong mask": (BOUNDARY, "block->header & ~BT_FREE_BIT;", "block->header & ~(size_t)2;"),
    "sizes that are not rounded": (BOUNDARY, "& ~(alignment - 1);", "& ~(alignment / 4 - 1);"),
    "a header out of the payload": (BOUNDARY, "(struct bt_block *)payload - 1;", "(void *)((char *)payload - 2);"),
    "a break that is moved by more": (TAGS, MOVED, MOVED.replace("+ more", "+ more + 2")),
    "an arena at any address": (TAGS, "(uintptr_t)arena % BT_OVERHEAD != 0 || ", ""),
    "an arena of any size": (TAGS, " || bytes % DJGPP_TAGS_ALIGN != 0", ""),
    "a word that is not always stored": (
        "djgpp_tags.c",
        CONTROL,
        CONTROL.replace(";\n\n", f" = {WORDS};\n\n").replace(
            "    return", "    if (bytes == 1024)\n        return 0;\n    return"
        ),
    ),
    "a word that init reads before it stores it": (
        "djgpp_tags.c",
        CONTROL,
        CONTROL.replace(";\n\n", f" = {WORDS};\n\n").replace(
            "    return",
            "    size_t rest = (size_t)djgpp_tags_control.rest & 2;\n"
            "    (void)*(volatile size_t *)((char *)djgpp_tags_control.first + rest);\n    return",
        ),
    ),
}

ORDINARY = {"a size in front of the heads"}


@pytest.fixture(scope="module")
def given():
    return program("djgpp-tags", target="cortex-m4", multiple_of=4)


@pytest.fixture(scope="module")
def true(given):
    return true_certificate(given, HEAP_BYTES)


def refused(given, document, why):
    with pytest.raises(VerificationError, match=why):
        check_module(document, allocator_binary(given, HEAP_BYTES))


def with_records(document, change):
    """``document`` with the records of what words are made of changed; of each operation."""
    operations = [
        {**one, "certificate": "".join(f"{change(line)}\n" for line in one["certificate"].splitlines())}
        for one in document["operations"]
    ]
    assert operations != document["operations"]
    return {**document, "operations": operations}


def test_djgpp_tags_is_checked(given, true):
    found = check_module(true, allocator_binary(given, HEAP_BYTES)).findings
    assert all(one.verdict == OK for one in found)
    assert len(true["facts"]) == 1
    control = given.image.symbols["djgpp_tags_control"]
    words = range(control.address, control.address + control.size_bytes, 4)
    assert true["stored_by_init"] == [f"{one:#x}" for one in words]


def test_an_address_does_not_reach_less_than_it_does(given, true):
    """Half of the heads, and all but the first."""
    heads = given.image.symbols["djgpp_tags_control"].address + 16
    reaching = re.compile(r"( table@)0x([0-9a-f]+)-0x([0-9a-f]+):")
    told = {one[1:] for each in true["operations"] for one in reaching.findall(each["certificate"])}
    assert (f"{heads:x}", f"{heads + 4 * 31:x}") in told

    def shorter(line):
        return reaching.sub(lambda one: f"{one[1]}0x{one[2]}-{(int(one[2], 16) + int(one[3], 16)) // 2:#x}:", line)

    def later(line):
        return reaching.sub(lambda one: f"{one[1]}{int(one[2], 16) + 4:#x}-0x{one[3]}:", line)

    refused(given, with_records(true, shorter), "does not follow from")
    refused(given, with_records(true, later), "does not follow from")


def test_a_reach_is_told_of_addresses_of_static_data_only(given, true):
    for text in (
        "arena@0x1-0x2:1:0:o0",
        "static*@0x1-0x2:1:0:o0",
        "static@0x2-0x1:1:0:o0",
        "table@0x0-0xfffffffc:1:0:o0",
    ):
        refused(given, {**true, "cells": {**true["cells"], "arena:0": text}}, "is no address of static data between")
    refused(given, {**true, "cells": {**true["cells"], "arena:0": "static@0x01-0x2:1:0:o0"}}, "is no part of a word")


def test_who_says_that_init_stores_more_than_it_does_is_refused(given, true):
    other = f"{given.image.symbols['djgpp_tags_control'].address + 2:#x}"
    refused(given, {**true, "stored_by_init": [other]}, f"init does not store the word at {other}")
    refused(given, {**true, "stored_by_init": ["0x0" + other[2:]]}, "is not written as the address of one")
    refused(given, {**true, "stored_by_init": []}, "the image holds at")


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [one if one in ORDINARY else pytest.param(one, marks=pytest.mark.slow) for one in BROKEN]
)
def test_a_broken_djgpp_tags_gets_no_certificate_of_its_alignment(name):
    broken = program("djgpp-tags", BROKEN[name], "cortex-m4", 4)
    try:
        document = module.module_certificate(broken, HEAP_BYTES)
    except AnalysisError:  # the address of a store is not known
        return
    assert not document["facts"] or any(
        one.verdict != OK for one in check_module(document, allocator_binary(broken, HEAP_BYTES)).findings
    )


@pytest.mark.slow
def test_who_does_not_look_at_what_init_reads_before_it_stores_it_is_refused(monkeypatch):
    """The forger takes each word that init stores to be stored where init begins."""
    broken = program("djgpp-tags", BROKEN["a word that init reads before it stores it"], "cortex-m4", 4)
    monkeypatch.setattr(module, "words_of_image", lambda *_: {})
    document = module.module_certificate(broken, HEAP_BYTES)
    assert document["facts"]
    refused(broken, document, "the fact facts.toml:1 does not hold at djgpp_tags_init")
