"""The argument by hand for what CAMA's lemmas take for granted speaks of each of its stores, and of these sources.

Tests: cache_sets.specification, cache_sets.verdict.
"""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support import images_dir
from wcet_probe.build.program import load_program
from wcet_probe.cache_sets.heap_words import LEMMAS
from wcet_probe.cache_sets.preparations import preparations
from wcet_probe.cache_sets.specification import allowed_sets
from wcet_probe.cache_sets.static_words import module_operations
from wcet_probe.cache_sets.verdict import SetReport, SetRequest
from wcet_probe.catalog.lookup import load_allocator, load_target
from wcet_probe.reports.screens.verify_sets import sets_document

ROOT = Path(__file__).parents[2]
CAMA = load_allocator("cama")
SOURCES = dict(CAMA.sources)
FUNCTION = re.compile(r"^(?:__attribute__\(\(\w+\)\) )?(?:static )?(?:inline )?[\w ]+?[ *](\w+)\([^;]*$")
STORE = re.compile(
    r"\s+((?:\*\w+|[a-z_]\w*(?:\([^=]*\))?)(?:\([\w, ]*\))?(?:(?:->|\.)\w+)* [-|&+]?= .*"  # through a pointer, or not
    r"|\w+(?:\.|->)\w+(?:\+\+|--)"
    r"|(?:set_first|mark_filled|mark_empty)\(.*\));$"
)


def stores_of_the_source():
    """All assignments that go to memory, with their functions; a local variable is told by its name alone."""
    function = ""
    for line in SOURCES["cama.c"].splitlines():
        if found := FUNCTION.match(line):
            function = found[1]
        found = STORE.match(line)
        if found and not re.match(r"\w+ [-|&+]?= ", found[1]):
            yield function, found[1]


def table_rows(section):
    return [
        [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        for line in section.splitlines()
        if line.startswith("| `")
    ]


def section():
    document, _, anchor = CAMA.promise.argument.partition("#")
    for part in (ROOT / document).read_text("utf-8").split("\n## ")[1:]:
        title = part.splitlines()[0]
        if re.sub(r"[^a-z -]", "", title.lower()).replace(" ", "-") == anchor:
            return part
    raise AssertionError(anchor)


def test_each_store_has_its_argument():
    told = [(function.strip("`"), store.strip("`")) for function, store, _ in table_rows(section())]
    found = list(stores_of_the_source())
    assert len(found) > 55
    assert sorted(told) == sorted(found)


def test_the_clauses_name_what_is_looked_at_in_runs():
    clauses = [line.split("|") for line in section().splitlines() if "| `CAMA_BAD" in line]
    assert len(clauses) > 8
    for cells in clauses:
        for name in re.findall(r"`(CAMA_BAD\w+)`", cells[-2]):
            assert name in SOURCES["cama_check.c"], name
            assert name in SOURCES["cama.h"], name


def test_each_lemma_follows():
    assert all(f"`{lemma}`" in section() for lemma in LEMMAS)


@pytest.mark.slow
@pytest.mark.parametrize("target", ["mpc603e", "arm926ej-s", "cortex-m7"])
def test_each_store_of_the_binary_is_one_of_them(target):
    """What the compiler stores but to the stack is at a line that has its argument, or in a function that stores it."""
    program = load_program(CAMA, load_target(target), "zig", images_dir())
    text = SOURCES["cama.c"].splitlines()
    told = {store for _, store in stores_of_the_source()}
    operations = module_operations(program, 1 << 20, preparations(program))
    lines = {
        int(re.search(r"cama\.c:(\d+)\)", program.image.location(moved.transfer.instruction_address))[1])
        for one in operations
        for moved in one.moved
        if moved.transfer.is_store
    }
    assert len(lines) > 30
    assert {text[line - 1].strip().removesuffix(";") for line in lines} - told <= {
        "for (size_t set = 0; set < CAMA_SETS; set++)",
    }


def test_the_answer_tells_whose_sources_the_argument_is_of():
    program = load_program(CAMA, load_target("mpc603e"), "zig", images_dir())
    other = replace(CAMA, sources=tuple((name, f"{text}\n") for name, text in CAMA.sources))
    for allocator, is_of_these in ((CAMA, True), (other, False)):
        request = SetRequest(allocator, program.target, 1 << 20, None, 0, "zig", images_dir())
        report = SetReport(request, program.image, allowed_sets(program), {}, None, ())
        assert sets_document(report)["argument"] == {
            "document": CAMA.promise.argument,
            "is_of_these_sources": is_of_these,
        }
