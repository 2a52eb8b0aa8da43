"""What certificates say of caches is tested: hits, ages, limits of misses, write-backs, and what they rest on.

Tests: certificate.caches.cached, certificate.caches.misses, certificate.caches.residents, certificate.caches.steps.
"""

import copy
import re
from dataclasses import replace
from functools import cache

import pytest

from tests.certificate.forgeries import sealed, solved_again
from tests.support import images_dir
from wcet_probe.analyzer.bound import prove
from wcet_probe.answer.bounds.proving import operation_request
from wcet_probe.build.program import load_program
from wcet_probe.catalog.cache_option import apply_cache_option
from wcet_probe.catalog.lookup import load_allocator, load_target
from wcet_probe.certificate.check import check_bound
from wcet_probe.certificate.kernel.verify import bound_digest
from wcet_probe.errors import VerificationError
from wcet_probe.evidence.checking import allocator_binary
from wcet_probe.reports.formats.bound_document import bound_section

HEAP_BYTES = 5000
FULL_ONES = (
    ("first-fit", "mpc603e", "malloc"),
    ("first-fit", "cortex-m7", "free"),
    ("tlsf", "arm926ej-s", "free"),
    ("tlsf", "mpc603e", "free"),
    ("kingsley", "cortex-m7", "malloc"),
    ("half-fit", "mpc603e", "malloc"),
)


@cache
def program(allocator, target):
    """Facts that count lines are left out: the checker does not follow them, and says so."""
    found = load_allocator(allocator, {})
    facts = tuple((name, re.sub(r"(?m)^lines(_per_set)? = .*\n", "", text)) for name, text in found.facts)
    return load_program(replace(found, facts=facts), load_target(target), "zig", images_dir())


def document_of(bound, image):
    section = bound_section(bound)
    section["digest"] = bound_digest(section)
    return {"image": {"sha256": image.sha256}, "bound": section}


@cache
def proved(allocator, target, role):
    own = program(allocator, target)
    return document_of(prove(operation_request(own, role, HEAP_BYTES)), own.image)


def check(document, allocator, target, binary=None):
    return check_bound(document, binary or allocator_binary(program(allocator, target), HEAP_BYTES))


def rewritten(document, change):
    """``document`` with the lines of the certificate in cycles changed, and sealed."""
    document = copy.deepcopy(document)
    lines = change(document["bound"]["certificates"][1].split("\n"))
    document["bound"]["certificates"][1] = "\n".join(lines)
    return sealed(document)


@pytest.mark.parametrize(("allocator", "target", "role"), FULL_ONES)
def test_cycles_are_checked_in_full(allocator, target, role):
    found = check(proved(allocator, target, role), allocator, target)
    assert found.is_full, [one for one in found.findings if one.verdict != "ok"]


def test_what_is_left_is_named_by_its_lemma():
    own = "tlsf", "mpc603e"
    name, held = "miss:21.0:scope", re.compile("held miss:21.0:scope ")
    document = rewritten(proved(*own, "free"), lambda lines: [line for line in lines if not held.match(line)])
    found = {one.check: one for one in check(document, *own).findings}
    assert f"a line in its scope (1, {name})" in found["limits of misses in cycles"].found

    assert found["limits of misses in cycles"].verdict == "not checked"


def test_that_a_bound_rests_on_a_counter_for_each_set_must_be_listed():
    own = program("kingsley", "arm926ej-s")
    own = replace(own, target=apply_cache_option(own.target, "d:policy=fifo"))
    document = document_of(prove(operation_request(own, "free", HEAP_BYTES)), own.image)
    binary = allocator_binary(own, HEAP_BYTES)
    check(document, "kingsley", "arm926ej-s", binary)
    listed = document["bound"]["assumptions"]
    document["bound"]["assumptions"] = [one for one in listed if one["id"] != "fifo-replacement"]
    with pytest.raises(VerificationError, match="fifo-replacement is used and not listed"):
        check(sealed(document), "kingsley", "arm926ej-s", binary)


# -------------------------------------------------------------------------------------------------------- forgeries


def one_of(lines, pattern):
    return next(number for number, line in enumerate(lines) if re.search(pattern, line))


def dropped(pattern):
    def change(lines):
        number = one_of(lines, pattern)
        return lines[:number] + lines[number + 1 :]

    return change


def edited(pattern, instead):
    def change(lines):
        number = one_of(lines, pattern)
        return [*lines[:number], re.sub(pattern, instead, lines[number]), *lines[number + 1 :]]

    return change


def added(line):
    return lambda lines: [*lines[:-1], line, ""]


FORGERIES = {
    "a hit that is none": (dropped("^miss .* miss:"), "with its misses, not"),
    "a line that nobody loaded": (added("must data first_fit_malloc+0x1c number 4194304 32 0"), "need not be"),
    "a line at the entry": (added("must fetch first_fit_malloc+0x0 number 1048576 32 0"), "where the call begins"),
    "an age lowered": (edited(r"^(must data \S+ \S+ \S+ \S+) 0 \S.*$", r"\1 0"), "need not be"),
    "a balance that is full": (edited(r"^(held \S+:call \S+) (?!full).*$", r"\1 full"), "to be left of"),
    "a balance that nobody filled": (added("held miss:1.-1:scope first_fit_malloc+0x1c full"), "to be left of"),
    "a name of another place": (edited(r"^(name \S+x40 r5 s\d+) 0$", r"\1 4"), "is not s"),
    "a class too fine": (edited(r"^(symbol s\d+ at \S+) [48] 0$", r"\1 64 0"), "is not known to be"),
    "a miss of no access": (added("miss first_fit_malloc+0x0 0x2 100 write-backs"), "is of no access"),
    "a miss counted as a write-back": (edited("^(miss .*) miss:.*$", r"\1 write-backs"), "counted as write-backs"),
    "a miss counted nowhere": (edited("^(miss .*) miss:.*$", r"\1 nowhere"), "counted nowhere"),
    "a granule that is none": (edited(r"^(must data \S+ \S+ \S+) \d+ (.*)$", r"\1 1000000000 \2"), "no granule has"),
    "an edge that pays and does not": (added("paid paid:1 first_fit_malloc+0x2c>"), "is none"),
}


@pytest.mark.parametrize(("forge", "reason"), FORGERIES.values(), ids=FORGERIES)
def test_a_forged_annotation_is_refused(forge, reason):
    document = rewritten(proved("first-fit", "mpc603e", "malloc"), forge)
    with pytest.raises(VerificationError, match=reason):
        check(document, "first-fit", "mpc603e")


def without_balances(lines):
    return [line for line in lines if not line.startswith("held ")]


def test_a_premise_that_is_removed_is_not_checked():
    document = rewritten(proved("first-fit", "mpc603e", "malloc"), without_balances)
    found = {one.check: one.verdict for one in check(document, "first-fit", "mpc603e").findings}
    assert found["limits of misses in cycles"] == "not checked"


def test_a_node_that_is_called_unchecked_is_not_ok():
    node = "unchecked first_fit_malloc+0x34"
    document = rewritten(proved("first-fit", "mpc603e", "malloc"), added(node))
    found = {one.check: one.verdict for one in check(document, "first-fit", "mpc603e").findings}
    assert found["costs in cycles"] == found["limits of misses in cycles"] == "not checked"


def in_cycles(change):
    def both(problem, derivations, followed):
        return (change(problem) if problem.unit == "cycles" else problem), derivations, followed

    return both


def free_write_backs(problem):
    events = tuple(replace(one, cost=0) if one.name == "write-backs" else one for one in problem.auxiliaries)
    return replace(problem, auxiliaries=events)


def free_misses(problem):
    events = tuple(
        replace(one, cost=one.cost - 1) if one.name.startswith("fetch") else one for one in problem.auxiliaries
    )
    return replace(problem, auxiliaries=events)


def cheaper_nodes(problem):
    return replace(problem, nodes=tuple(replace(one, cost=max(0, one.cost - 33)) for one in problem.nodes))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (free_write_backs, "write-backs are not charged"),
        (free_misses, "a miss of fetch:.* costs at least"),
        (cheaper_nodes, "costs at least"),
    ],
)
def test_a_cheaper_problem_is_refused(change, reason):
    document = solved_again(proved("first-fit", "mpc603e", "malloc"), in_cycles(change))
    with pytest.raises(VerificationError, match=reason):
        check(document, "first-fit", "mpc603e")


def tightened(pattern):
    """Fewer credits for what the events of a limit cost: a stay, or an execution, left out."""

    def change(problem):
        constraints = []
        for one in problem.constraints:
            if re.fullmatch(pattern, one.name):
                given = [name for name, factor in one.coefficients.items() if factor < 0]
                kept = {k: v for k, v in one.coefficients.items() if k not in given[:1]}
                constraints.append(replace(one, coefficients=kept, constant=one.constant if given else 0))
            else:
                constraints.append(one)
        return replace(problem, constraints=tuple(constraints))

    return change


@pytest.mark.parametrize("pattern", [r"miss:.*", r"fetch:.*:call", r"write-backs:misses"])
def test_a_limit_with_too_few_credits_is_not_ok(pattern):
    document = solved_again(proved("first-fit", "mpc603e", "malloc"), in_cycles(tightened(pattern)))
    try:
        found = check(document, "first-fit", "mpc603e")
    except VerificationError:
        return
    assert not found.is_full


def fewer_modified(problem):
    constraints = tuple(
        replace(one, constant=one.constant - 1) if one.name == "write-backs:modified" else one
        for one in problem.constraints
    )
    return replace(problem, constraints=constraints)


def test_a_cache_with_fewer_modified_lines_than_lines_is_not_ok():
    own = program("first-fit", "mpc603e")
    document = document_of(prove(operation_request(own, "malloc", 8192)), own.image)
    binary = allocator_binary(own, 8192)
    assert "\ndual write-backs:modified " in document["bound"]["certificates"][1]
    assert check_bound(document, binary).is_full
    forged = check_bound(solved_again(document, in_cycles(fewer_modified)), binary)
    assert [one.check for one in forged.findings if one.verdict != "ok"] == ["limits of misses in cycles"]


@pytest.mark.parametrize(("cache", "sets"), [("icache", 1), ("dcache", 4)])
def test_a_proof_for_more_ways_and_sets_is_refused(cache, sets):
    """Ways and sets raised, as a bug of the analyzer would: what stays in the larger cache is evicted from the real.

    The loops' code fits into an instruction cache of four lines: there the bound is the same, and true.
    """
    own = program("btree-best-fit", "mpc603e")
    config = getattr(own.target, cache)
    small = replace(own.target, **{cache: replace(config, sets=sets, ways=1)})
    binary = replace(allocator_binary(own, HEAP_BYTES), target=small)
    with pytest.raises(VerificationError):
        check_bound(proved("btree-best-fit", "mpc603e", "malloc"), binary)


@cache
def of_unknown_alignment():
    """Free of djgpp-quarters without the fact that its pointers are aligned: the document, and its binary."""
    own = load_program(
        replace(load_allocator("djgpp-quarters", {}), facts=()), load_target("cortex-m7"), "zig", images_dir()
    )
    return document_of(prove(operation_request(own, "free", HEAP_BYTES)), own.image), allocator_binary(own, HEAP_BYTES)


def test_alignment_that_is_assumed_and_not_listed_is_refused():
    document, binary = of_unknown_alignment()
    check_bound(document, binary)
    without = copy.deepcopy(document)
    kept = [one for one in without["bound"]["assumptions"] if one["id"] != "alignment"]
    assert len(kept) < len(without["bound"]["assumptions"])
    without["bound"]["assumptions"] = kept
    with pytest.raises(VerificationError, match="costs at least"):
        check_bound(sealed(without), binary)


def test_alignment_of_another_place_is_refused():
    document, binary = of_unknown_alignment()
    document = copy.deepcopy(document)
    (listed,) = (one for one in document["bound"]["assumptions"] if one["id"] == "alignment")
    listed["statement"] = "no data access crosses a cache line at nowhere+0x0"
    with pytest.raises(VerificationError, match="costs at least"):
        check_bound(sealed(document), binary)


def test_a_fact_about_another_function_is_refused():
    binary = allocator_binary(program("first-fit", "mpc603e"), HEAP_BYTES)
    facts = [
        replace(one, content={**one.content, "sha256": "0" * 64}) if "sha256" in one.content else one
        for one in binary.asserted.facts
    ]
    asserted = replace(binary.asserted, facts=tuple(facts))
    with pytest.raises(VerificationError, match="is another one than the fact"):
        check(proved("first-fit", "mpc603e", "malloc"), "", "", replace(binary, asserted=asserted))
