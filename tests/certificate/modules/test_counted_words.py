"""Words that an operation counts in are numbers; those that are links, too, or may be, are not taken for numbers."""

import pytest

from tests.answer.facts.test_proved_facts import HEAP_BYTES, OTHERS, program
from tests.module_certificates import true_certificate
from tests.support import images_dir
from wcet_probe.analyzer.bound import prepare
from wcet_probe.answer.bounds import module_certificate as module
from wcet_probe.answer.bounds.proving import operation_request
from wcet_probe.build.program import load_program
from wcet_probe.catalog.lookup import load_allocator, load_target
from wcet_probe.certificate.facts.findings import OK, OPEN
from wcet_probe.certificate.kernel.coverage import code_of, cover
from wcet_probe.certificate.kernel.records import read_records
from wcet_probe.certificate.modules import counted_words
from wcet_probe.certificate.modules.counted_words import Grade, Held, Load, _joined, _Uses
from wcet_probe.certificate.modules.module import check_module, operation_of, used_in
from wcet_probe.errors import AnalysisError, VerificationError
from wcet_probe.evidence.checking import allocator_binary

TAKEN = "if (--page->count != 0)\n        page->free.first = list->next;\n"
RUN = "    page_t *run = quick_fit_control.rover;\n\n"
PAGES = "    page_t *run = take_pages(pages);\n"
ONCE = (
    "size_t count = page->count;\n    LOOK;\n    page->count = count - 1;\n"
    "    if (count != 1)\n        page->free.first = list->next;\n"
)
"""With one load of the count: of two, each is what it is used as, which the lemma excuses."""
COUNTS = {
    "that is followed": (TAKEN, f"if (*(volatile size_t *)page->count == 7)\n        return NULL;\n    {TAKEN}"),
    "that is followed with an offset": (
        TAKEN,
        f"if (((volatile size_t *)page->count)[3] == 7)\n        return NULL;\n    {TAKEN}",
    ),
    "that is an index into nothing": (
        TAKEN,
        f"if (((volatile unsigned char *)page->count)[log2] == 7)\n        return NULL;\n    {TAKEN}",
    ),
    "that is stored through": (TAKEN, ONCE.replace("LOOK", "*(volatile size_t *)count = 1")),
    "that is followed without a bit": (
        TAKEN,
        f"if (*(volatile size_t *)(page->count & ~(size_t)1) == 7)\n        return NULL;\n    {TAKEN}",
    ),
    "that is a link where paths meet": (
        TAKEN,
        ONCE.replace(
            "LOOK", "if (*(volatile size_t *)(page->kind == 5 ? count : (size_t)list) == 7)\n        return NULL"
        ),
    ),
    "that is followed less another": (
        TAKEN,
        f"if (*(volatile size_t *)(page->count - ((size_t)1 << log2)) == 7)\n        return NULL;\n    {TAKEN}",
    ),
    "that is compared with a link": (TAKEN, f"if (page->count == (size_t)fragment)\n        return NULL;\n    {TAKEN}"),
    "that is compared with a head": (TAKEN, f"if (page->count == (size_t)list)\n        return NULL;\n    {TAKEN}"),
    "that is returned": (TAKEN, f"if (log2 == 6)\n        return (void *)page->count;\n    {TAKEN}"),
}
"""A count of fragments that is used as a link as well: it may be either."""


def counted(given, role):
    """The source lines of what is counted in."""
    problem = module._problem(given, prepare(operation_request(given, role, HEAP_BYTES)))
    operation = operation_of(role, read_records(module._text(given, problem, apart=False)))
    code = code_of(given.image, given.instructions)
    found = used_in(code, operation, cover(code, operation.graph, operation.said, {})).counted
    places = [given.image.lines.find(one) for addresses in found.values() for one in addresses]
    text = dict(given.allocator.sources)["quick_fit.c"].splitlines()
    return {text[line - 1].strip() for file, line in filter(None, places) if file.endswith("quick_fit.c")}


def test_counts_of_pages_and_fragments_are_numbers():
    given = program("quick-fit")
    assert "if (--page->count != 0)" in counted(given, "malloc")
    assert not any(".next" in line for role in module.ROLES for line in counted(given, role))
    assert true_certificate(given, HEAP_BYTES)["facts"]


@pytest.mark.parametrize(
    "name", [pytest.param(one, marks=pytest.mark.slow) if n else one for n, one in enumerate(COUNTS)]
)
def test_with_a_count_that_may_be_a_link_nothing_is_proved(name):
    old, new = COUNTS[name]
    given = program("quick-fit", ("quick_fit.c", f"    {old}", f"    {new}"))
    assert not module_facts(given)


def module_facts(given):
    try:
        return module.module_certificate(given, HEAP_BYTES)["facts"]
    except AnalysisError:  # the address of a store is not known
        return []


def test_quick_fit_is_checked_with_its_own_facts():
    given = load_program(load_allocator("quick-fit"), load_target("mpc603e"), "zig", images_dir(), HEAP_BYTES)
    document = true_certificate(given, HEAP_BYTES)
    found = check_module(document, allocator_binary(given, HEAP_BYTES)).findings
    assert len(document["facts"]) == 3
    assert [one.verdict for one in found if one.verdict != OK] == [OPEN]  # headers at multiples of 16


@pytest.mark.parametrize("name", ["kingsley", pytest.param("quick-fit", marks=pytest.mark.slow)])
def test_who_does_not_see_that_a_word_is_followed_is_refused(name, monkeypatch):
    """Links of blocks or fragments, taken for numbers by who writes, are found by the checker."""
    given = load_program(load_allocator(name), load_target("mpc603e"), "zig", images_dir(), HEAP_BYTES)

    def all_counted(code, operation, coverage):
        counted = {node: frozenset(code.instructions) for node in operation.graph.nodes}
        return used_in(code, operation, coverage)._replace(counted=counted)

    monkeypatch.setattr(module, "used_in", all_counted)
    with pytest.raises((AnalysisError, VerificationError)):
        check_module(module.module_certificate(given, HEAP_BYTES), allocator_binary(given, HEAP_BYTES))


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(one, marks=pytest.mark.slow) if n else one
        for n, one in enumerate(name for name, (of, *_) in OTHERS.items() if of == "quick-fit")
    ],
)
def test_a_broken_quick_fit_gets_no_certificate_of_its_alignment(name):
    allocator, *change = OTHERS[name]
    assert not module_facts(program(allocator, tuple(change)))


def test_what_is_compared_with_a_link_is_one():
    uses = _Uses()
    a, b, c = (Load("n", address) for address in range(3))
    uses.counted, uses.linked, uses.compared = {a, b, c}, {c}, {(a, b), (b, c)}
    assert not uses.numbers()


def test_distances_that_differ_are_forgotten():
    one, other = (Held(Load("n", address), Grade.WHOLE) for address in range(2))
    assert _joined({one: 4}, {one: 4, other: 0}) == {one: 4, other: 0}
    assert _joined({one: 4}, {one: 8}) == {one: None}


@pytest.mark.parametrize(("name", "last", "is_test"), [("slwi", "4", False), ("lsl", "29", True), ("mul", "r3", False)])
def test_bits_that_are_shifted_out_count_nothing(name, last, is_test):
    assert counted_words._is_test(name, last) is is_test
