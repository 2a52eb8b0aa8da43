"""``wcet-probe verify-sets``: what is proved of the sets that calls touch, what runs show, mutants that must fail.

Tests: cache_sets.specification, cache_sets.run, cache_sets.verdict, cli.verify_sets.
"""

import io
import json
import os
import random
import re
from collections import Counter
from dataclasses import replace
from functools import cache
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from tests.support import assembler, guest_of, images_dir
from wcet_probe.analyzer.access_bound import most_accesses
from wcet_probe.analyzer.deduction.obligations import Deduced, Obligation, Reached
from wcet_probe.analyzer.facts.language import Facts
from wcet_probe.analyzer.request import BoundRequest
from wcet_probe.build.program import load_program
from wcet_probe.cache_sets import specification, verdict
from wcet_probe.cache_sets.deduction import OPERATIONS, shown_accesses
from wcet_probe.cache_sets.heap_words import LEMMAS, HeapWords
from wcet_probe.cache_sets.preparations import preparations
from wcet_probe.cache_sets.run import WORKLOADS, run_operations, traces
from wcet_probe.cache_sets.specification import ARENA_APART, Justification, allowed_sets, prove_sets, words_of
from wcet_probe.cache_sets.static_words import PREMISES
from wcet_probe.cache_sets.verdict import (
    SetRequest,
    Status,
    _count_requirement,
    _requirements,
    verify_program,
    verify_sets,
)
from wcet_probe.catalog.lookup import load_allocator, load_target
from wcet_probe.cli.app import main
from wcet_probe.errors import ExitCode
from wcet_probe.reports.screens.verify_sets import render_sets, sets_document, sets_picture

GOLDEN = Path(__file__).parents[1] / "golden"
HEAP_BYTES = 1 << 20
SHIFTED = frozenset(range(8, 40))
OWN, INDUCED, DEDUCED = Justification.OWN, Justification.INDUCED, Justification.DEDUCED


@cache
def cama_program(target="mpc603e"):
    return load_program(load_allocator("cama"), load_target(target), "zig", images_dir())


def asked(allocator="cama", operations=1500, target="mpc603e"):
    chosen = load_allocator(allocator), load_target(target), HEAP_BYTES
    return SetRequest(*chosen, operations=operations, seed=0, compiler="zig", cache_dir=images_dir())


@cache
def cama_prepared():
    return preparations(cama_program())


@cache
def bare_prepared():
    """Without flow facts."""
    program = cama_program()
    return preparations(replace(program, allocator=replace(program.allocator, facts=())))


@cache
def cama_words():
    return words_of(cama_program(), HEAP_BYTES, allowed_sets(cama_program()), prepared=cama_prepared())


@cache
def cama_report():
    """As the command makes it; what its operations and words are is asked for once for all tests."""
    known = {"words_of": lambda *_: cama_words(), "preparations": lambda _: cama_prepared()}
    with patch.multiple(verdict, **known):
        return verify_sets(asked())


def mutant(file, *changes):
    """CAMA with texts of a source file replaced."""
    allocator = load_allocator("cama")
    sources = dict(allocator.sources)
    for old, new in changes:
        assert sources[file].count(old) == 1
        sources[file] = sources[file].replace(old, new)
    return load_program(replace(allocator, sources=tuple(sources.items())), load_target("mpc603e"), "zig", images_dir())


def run_of(program, allowed=None, operations=1500):
    return run_operations(program, allowed or allowed_sets(program), HEAP_BYTES, operations=operations, seed=0)


# ----------------------------------------------------------------------------------------------------------- the answer


def screen(report, width=100, encoding="utf-8"):
    """What is printed, but for the hash of the image, which changes with every comment of the sources."""
    stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding, errors="backslashreplace")
    render_sets(report, Console(file=stream, width=width))
    stream.seek(0)
    return re.sub("sha256 [0-9a-f]+", "sha256 0", stream.read())


def test_cama_meets_its_specification(golden):
    report = cama_report()
    assert report.exit_code is ExitCode.UNDER_LEMMAS
    words = ["UNDER LEMMAS", "UNDER LEMMAS", "OBSERVED", "UNDER LEMMAS", "UNDER LEMMAS"]
    assert [requirement.status for requirement in report.requirements] == words
    golden("verify-sets-cama.txt", screen(report))


@pytest.mark.slow
@pytest.mark.parametrize("target", ["mpc755", "e200z6", "arm926ej-s", "cortex-m7"])
def test_cama_keeps_to_its_sets_on_other_targets(target):
    program = cama_program(target)
    allowed = allowed_sets(program)
    words = words_of(program, HEAP_BYTES, allowed)
    for role in ("malloc", "free"):
        assert prove_sets(program, role, (HEAP_BYTES,), allowed, words=lambda: words).holds


def test_cama_fits_on_80_columns(golden):
    assert max(map(len, screen(cama_report(), 80).splitlines())) <= 80
    golden("verify-sets-cama-80.txt", screen(cama_report(), 80, "ascii"))


@pytest.fixture
def golden():
    """Compares a text with a golden file; WCET_PROBE_UPDATE_GOLDEN=1 writes it instead."""

    def compare(name, text):
        if os.environ.get("WCET_PROBE_UPDATE_GOLDEN") == "1":
            (GOLDEN / name).write_text(text, "utf-8")
        assert text == (GOLDEN / name).read_text("utf-8")

    return compare


def test_what_was_seen_is_within_what_is_proved():
    report = cama_report()
    for role, proof in report.proofs.items():
        most = proof.counts[HEAP_BYTES]
        assert report.run.most_accesses[role] <= most.accesses
        assert report.run.most_in_set[role] <= max(most.by_set) <= most.accesses
        assert proof.counts[2 * HEAP_BYTES] == most
        outside = report.run.touched[role]["static"] - proof.may_touch
        assert not outside


def test_the_same_seed_runs_the_same_operations():
    assert run_of(cama_program()) == cama_report().run
    allowed = allowed_sets(cama_program())
    assert run_operations(cama_program(), allowed, HEAP_BYTES, operations=1500, seed=1) != cama_report().run


def test_tlsf_specifies_nothing():
    report = verify_sets(asked("tlsf", operations=500))
    assert report.exit_code is ExitCode.NO_BOUND
    assert len(report.proofs["malloc"].may_touch) == 128
    assert report.run.outside["malloc"]
    assert {requirement.status for requirement in report.requirements} == {Status.NOT_PROVEN, Status.UNDER_LEMMAS}
    assert "Refuted" not in screen(report)
    assert "tlsf.c:" in screen(report)


def test_accesses_of_a_list_walker_grow_with_the_heap():
    program = load_program(load_allocator("first-fit"), load_target("mpc603e"), "zig", images_dir())
    proof = prove_sets(program, "malloc", (HEAP_BYTES, 2 * HEAP_BYTES), allowed_sets(program))
    assert not proof.is_constant
    one, two = proof.counts.values()
    assert two.accesses > 1.9 * one.accesses


# -------------------------------------------------------------------------------------------------------------- mutants


def test_another_specification_than_the_one_that_is_met_is_refuted(monkeypatch):
    # How many accesses there are does not depend on the specification.
    counts = {proof.role: proof.counts for proof in cama_report().proofs.values()}
    roles = {cama_program().allocator.entry_points[role]: role for role in counts}

    def known(prepared, **_):
        request = prepared.request
        return counts[roles[request.entry]][request.parameters["H"]]

    monkeypatch.setattr(specification, "most_accesses_of", known)
    monkeypatch.setattr(verdict, "preparations", lambda _: cama_prepared())
    monkeypatch.setattr(verdict, "words_of", lambda *_: cama_words())
    allowed = replace(allowed_sets(cama_program()), reserved=SHIFTED)
    report = verify_program(asked(), cama_program(), allowed)
    assert report.exit_code is ExitCode.CONTRADICTION
    for role in ("malloc", "free"):
        assert report.proofs[role].possible_violations
        assert report.run.outside[role]
    wrong = report.run.violations["sets"]
    assert wrong.set_index < 8
    assert wrong.location
    assert "Refuted" in screen(report)


def test_a_store_behind_the_header_is_seen():
    """The word in the next line of the own block is the user's, and not to be touched."""
    store = "*word_before(start) = word;"
    run = run_of(mutant("cama.c", (store, f"{store}\n    *(uintptr_t *)(start + CAMA_LINE_BYTES) = 0;")))
    wrong = run.violations["sets"]
    assert "cama.c:" in wrong.location
    assert wrong.address == wrong.block + 32
    assert wrong.operation.startswith("malloc")
    assert run.outside["malloc"] > run.outside["free"] == 0


def test_tables_beside_each_other_are_seen():
    """As the paper's seem to be: they would lie in all sets."""
    dense = "return &cama_tables[number / 1024][number % 1024];"
    sparse = "return &cama_tables[number / CAMA_PAGE_WORDS][CAMA_SKIPPED_WORDS + number % CAMA_PAGE_WORDS];"
    run = run_of(mutant("cama.h", (sparse, dense)))
    assert run.outside["malloc"]
    assert run.outside["free"]
    assert run.touched["malloc"]["static"] > frozenset(range(32))


def test_a_block_in_the_next_set_is_seen():
    start = "start_in_set(from, set);"
    run = run_of(mutant("cama.c", (start, "start_in_set(from, set ^ (size < CAMA_THRESHOLD));")))
    assert run.misplaced
    assert run.violations["start"].set_index ^ 1 == int(run.violations["start"].operation.split()[-1].rstrip(")"))


def test_a_lemma_that_does_not_hold_is_seen():
    """No instruction is proved to go to the own block: then the first one that does is told of."""
    program = cama_program()
    run = run_operations(program, allowed_sets(program), HEAP_BYTES, operations=200, seed=0, own_block_code=())
    wrong = run.violations["lemma"]
    assert wrong.address in {wrong.block, wrong.block - 4}
    assert "cama.c:" in wrong.location
    assert run.violations.keys() == {"lemma"}


def test_more_accesses_than_proved_are_a_contradiction():
    report = cama_report()
    proof = report.proofs["malloc"]
    few = {size: replace(bound, accesses=bound.accesses - 50) for size, bound in proof.counts.items()}
    assert _count_requirement("malloc", replace(proof, counts=few), report.run).status is Status.REFUTED


def test_no_flow_fact_about_pointers_is_believed():
    """The sets behind links are the same without them; of links that nothing is known of, nothing is proved."""
    allocator = load_allocator("cama")
    text = allocator.facts[0][1].split("[[pointer]]")[0]
    program = replace(cama_program(), allocator=replace(allocator, facts=(("cama/facts.toml", text),)))
    told = cama_report().proofs["free"]
    allowed = allowed_sets(program)
    proof = prove_sets(program, "free", (HEAP_BYTES,), allowed, words=cama_words)
    assert proof.holds
    assert proof.justifications == told.justifications
    assert (proof.lemmas, proof.sites) == (told.lemmas, told.sites)
    nothing = prove_sets(
        cama_program(), "free", (HEAP_BYTES,), allowed, words=lambda: HeapWords({}), prepared=cama_prepared()
    )
    induced = {address for address, why in told.justifications.items() if why is Justification.INDUCED}
    assert {one.address for one in nothing.possible_violations} == induced
    assert len(nothing.may_touch) == 128


def test_what_takes_a_lemma_for_granted_is_told_site_by_site():
    """`PROVEN` is said where no lemma is left; until then each instruction at which one is needed is named."""
    report = cama_report()
    for role, proof in report.proofs.items():
        sites = {lemma.id: [site for site in proof.sites if site.lemma == lemma.id] for lemma in proof.lemmas}
        assert all("cama." in site.location for site in proof.sites)
        assert {"load" if not site.is_store else "store" for site in sites["objects-apart"]} == {"load", "store"}
        assert not any(site.is_store for name in ("stored-before-loaded", "blocks-apart") for site in sites[name])
        induced = {address for address, why in proof.justifications.items() if why is Justification.INDUCED}
        for name in ("null-is-not-followed", "frontier-in-its-area"):
            own = [site.address for site in sites[name] if f"cama_{role}" in site.location]
            assert 0 < len(set(own) & induced) < len(induced)
        tested = {"cama.c:190", "cama.c:206", "cama.c:208", "cama.c:178"}  # compared with null right before
        assert not any(line in site.location for site in sites["null-is-not-followed"] for line in tested)
    alone = {role: replace(proof, sites=(), lemmas=(), assumptions=()) for role, proof in report.proofs.items()}
    requirements = tuple(_requirements(load_allocator("cama"), report.allowed, alone, None))
    assert replace(report, proofs=alone, requirements=requirements).exit_code is ExitCode.OK


def deduced_as_induced():
    """Of each part of each operation that all was shown of it, and of accesses what the report has of them."""
    reached = {}
    for role, proof in cama_report().proofs.items():
        what = {Justification.OWN: Reached.BLOCK, Justification.INDUCED: Reached.DESCRIPTOR}
        why = proof.justifications.items()
        reached[role] = {address: frozenset({what[one]}) for address, one in why if one in what}
    shown = (Obligation(1, 0x100, "bits", is_shown=True),)
    return [Deduced(name, 1, shown, ((),), reached.get(name.partition("-")[0], {})) for name in OPERATIONS]


def verified_with(deduced, monkeypatch):
    """The report where this came of the operations; nothing is run."""
    monkeypatch.setattr(verdict, "deduce", lambda *_: tuple(deduced))
    prepared = {True: cama_prepared, False: bare_prepared}
    monkeypatch.setattr(verdict, "preparations", lambda program: prepared[bool(program.allocator.facts)]())
    request = replace(asked(operations=None), deduced=("all",))
    return verify_program(request, cama_program(), allowed_sets(cama_program()))


def test_what_a_solver_shows_of_all_operations_is_proven_without_lemma_and_fact(monkeypatch):
    report = verified_with(deduced_as_induced(), monkeypatch)
    assert (report.status, report.exit_code) == (Status.PROVEN, ExitCode.OK)
    assert {one.status for one in report.requirements} == {Status.PROVEN}
    assert [one.text for one in report.requirements][2] == "malloc's block starts in its set"
    for role, proof in report.proofs.items():
        told = cama_report().proofs[role]
        assert not proof.lemmas
        assert not proof.rests_on_facts
        assert {*PREMISES, ARENA_APART} <= set(proof.assumptions)
        assert proof.may_touch == report.allowed.reserved
        assert [(one.accesses, max(one.by_set)) for one in proof.counts.values()] == [
            (one.accesses, max(one.by_set)) for one in told.counts.values()
        ]
        own, induced = ({at for at, why in told.justifications.items() if why is one} for one in (OWN, INDUCED))
        assert {at for at, why in proof.justifications.items() if why is OWN} == own
        assert {at for at, why in proof.justifications.items() if why is DEDUCED} == induced
    text = " ".join(screen(report).split())
    assert "PROVEN" in text
    assert "the claims always hold, and the verdict rests on it" in text


@pytest.mark.parametrize("number", range(len(OPERATIONS)))
def test_nothing_is_taken_of_a_solver_where_something_of_any_operation_is_open(number):
    deduced = deduced_as_induced()
    assert shown_accesses(cama_program(), deduced).keys() == {"malloc", "free"}
    wrong = Obligation(1, 0x100, "bits", is_shown=False)
    opened = replace(deduced[number], obligations=(*deduced[number].obligations, wrong))
    assert not shown_accesses(cama_program(), [*deduced[:number], opened, *deduced[number + 1 :]])
    assert not shown_accesses(cama_program(), [*deduced[:number], *deduced[number + 1 :]])


def test_accesses_that_a_solver_shows_to_go_elsewhere_than_allowed_are_not_proven_by_it():
    bare = replace(cama_program(), allocator=replace(cama_program().allocator, facts=()))
    shown = shown_accesses(cama_program(), deduced_as_induced())["free"]
    for allowed, others in (
        (replace(allowed_sets(bare), reserved=SHIFTED), shown),
        (allowed_sets(bare), replace(shown, sets={}, mixed=frozenset(shown.sets))),
    ):
        proof = prove_sets(bare, "free", (HEAP_BYTES,), allowed, prepared=bare_prepared(), shown=others)
        assert not proof.holds
        assert {one.address for one in proof.possible_violations} >= shown.sets.keys()


# ---------------------------------------------------------------------------------------------------------- the command


def test_the_document_is_whole():
    document = json.loads(json.dumps(sets_document(cama_report())))
    assert document["format"] == "wcet-probe-sets"
    assert document["verdict"] == "UNDER LEMMAS"
    for proof in document["proofs"].values():
        assert {site["lemma"] for site in proof["rests_on_lemmas"]} == {lemma["id"] for lemma in proof["lemmas"]}
    assert document["allowed_sets"] == list(range(32))
    assert document["observed"]["outside"] == {"malloc": 0, "free": 0}
    assert len(document["proofs"]["malloc"]["most_accesses"][0]["by_set"]) == 128
    assert [lemma["id"] for lemma in document["proofs"]["free"]["lemmas"]] == list(LEMMAS)


def test_the_picture_has_a_row_for_each_strip():
    picture = sets_picture(cama_report())
    assert "malloc: may touch</text>" in picture
    assert "free: did: own blocks</text>" in picture


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--target", "cortex-m4"), "has no data cache"),
        (("--target", "mpc603e", "--cache", "d:sets=64"), "--param cache-sets=64 --param line-bytes=32"),
        (("--target", "mpc603e", "--heap", "64"), "does not suit cama"),
    ],
)
def test_questions_without_an_answer(arguments, message, capsys, monkeypatch):
    monkeypatch.setenv("WCET_PROBE_CACHE_DIR", str(images_dir()))
    assert main(["verify-sets", "cama", "--no-operations", *arguments]) == ExitCode.USAGE
    assert message in capsys.readouterr().err


def test_the_exit_code_and_the_picture_of_the_command(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("WCET_PROBE_CACHE_DIR", str(images_dir()))
    svg = tmp_path / "sets.svg"
    arguments = ["--no-operations", "--json", "--svg", str(svg)]
    assert main(["verify-sets", "half-fit", "--target", "mpc603e", *arguments]) == ExitCode.NO_BOUND
    assert json.loads(capsys.readouterr().out)["observed"] is None
    assert svg.read_text("utf-8").startswith("<svg")


# ------------------------------------------------------------------------------------------------------------ its parts


@given(st.sampled_from(WORKLOADS), st.integers(0, 400), st.integers(0, 1 << 32), st.sampled_from([1 << 12, 1 << 22]))
def test_workloads_free_what_they_have_allocated(workload, count, seed, heap_bytes):
    live = set()
    found = list(traces(workload, count, heap_bytes, 128, random.Random(seed)))
    assert sum(map(len, found)) == count
    for trace in found:
        for number in range(len(trace)):
            operation = trace[number]
            if operation.kind == "free":
                live.remove(operation.slot)
            else:
                assert operation.slot not in live
                assert 1 <= operation.size_bytes <= heap_bytes
                assert 0 <= operation.cache_set < 128
                live.add(operation.slot)


def test_workloads_fill_the_heap_to_different_degrees():
    run = run_of(cama_program(), operations=5000)
    assert sum(run.operations.values()) - run.worst_states == 5000
    assert 0 < run.guided <= 2500
    assert 0 < run.refused < run.operations["malloc"] // 2
    assert run.touched["malloc"]["heap"] == frozenset(range(128))


def test_accesses_are_those_of_the_worst_path_by_set():
    """Worked by hand: one way loads set 1 three times, the other sets 2 and 3; both load set 0 before."""
    target = load_target("mpc603e")
    body = (
        "lis 4, 0x40\nlwz 5, 0(4)\ncmpwi 3, 0\nbeq 1f\nlwz 5, 32(4)\nlwz 5, 36(4)\nlwz 5, 40(4)\nblr\n"
        "1: lwz 5, 64(4)\nstw 5, 96(4)\nblr"
    )
    guest = guest_of(assembler({"two_ways": body}, target), target)
    found = most_accesses(
        BoundRequest(guest.image, target, guest.instructions, guest.costs, "two_ways", Facts(), {}, {})
    )
    assert found.accesses == 4
    assert found.by_set[:5] == (1, 3, 1, 1, 0)
    assert Counter(found.by_set)[0] == 124


def test_premises_hold_of_what_is_induced_without_a_lemma_too():
    assert specification._premises([(None, Justification.INDUCED, ())]) == PREMISES
    assert not specification._premises([(None, Justification.OWN, ())])


def test_grounds_are_told_apart():
    proof = cama_report().proofs["malloc"]
    assert set(proof.instructions) == {
        Justification.STACK,
        Justification.PROVED,
        Justification.OWN,
        Justification.COMPUTED,
        Justification.INDUCED,
    }
    assert [lemma.id for lemma in proof.lemmas] == list(LEMMAS)
    assert set(PREMISES) <= set(proof.assumptions)
    assert proof.stack_bytes > 0
