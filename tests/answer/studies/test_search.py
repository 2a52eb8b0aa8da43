"""The search: it is deterministic, finds what is there to find, and never beats the constructed states."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support import images_dir
from wcet_probe.answer.studies.search import (
    SearchRequest,
    SearchResult,
    case_text,
    constructed_instructions,
    read_case,
    replay_case,
    search,
)
from wcet_probe.catalog.lookup import allocator_names, load_allocator, load_target
from wcet_probe.errors import UsageError
from wcet_probe.model.scenario import Operation, OperationKind

EVALUATIONS = 60
"""`make soundness` looks further."""
CASES = Path(__file__).parents[2] / "search_cases"
VALUES = {"quick-fit": {"page-bytes": 256}}  # a page of 4096 bytes and its header do not fit into 4 KiB


def request(name: str, kind: OperationKind) -> SearchRequest:
    return SearchRequest(
        allocator=load_allocator(name, VALUES.get(name, {})),
        target=load_target("cortex-m4"),
        kind=kind,
        heap_bytes=4096,
        evaluations=EVALUATIONS,
        seed=1,
        compiler="zig",
        cache_dir=images_dir(),
    )


@pytest.mark.covering(0)
@pytest.mark.parametrize("kind", OperationKind)
@pytest.mark.parametrize("name", allocator_names())
def test_no_better_state_is_known(name, kind):
    result = search(request(name, kind))
    assert not result.beaten, result


@pytest.mark.slow
@pytest.mark.parametrize("kind", OperationKind)
@pytest.mark.parametrize("name", allocator_names())
def test_no_better_state_is_found_by_a_longer_search(name, kind):
    result = search(replace(request(name, kind), evaluations=300))
    assert not result.beaten, result


def test_the_same_seed_finds_the_same():
    asked = request("tlsf", OperationKind.FREE)
    assert search(asked) == search(asked)


def test_the_search_reaches_tlsfs_worst_free_by_itself():
    result = search(replace(request("tlsf", OperationKind.FREE), evaluations=400, seed=2))
    assert result.found_instructions == result.constructed_instructions


def test_a_weak_construction_is_beaten(monkeypatch):
    monkeypatch.setattr("wcet_probe.answer.studies.search.constructed_instructions", lambda _: 50)
    result = search(request("tlsf", OperationKind.MALLOC))
    assert result.beaten
    assert result.sequence[-1].kind is OperationKind.MALLOC


@pytest.mark.parametrize("file", sorted(CASES.glob("*.txt")), ids=lambda file: file.stem)
def test_a_kept_case_is_what_it_was_and_no_worse_than_the_scenario(file):
    case = read_case(file.read_text("utf-8"), "zig", images_dir())
    assert replay_case(case) == case.instructions
    assert case.instructions <= constructed_instructions(case.request)


def test_every_allocator_has_a_kept_case_of_each_operation():
    kept = {file.stem for file in CASES.glob("*.txt")}
    assert kept == {f"{name.replace(':', '-over-')}-{kind}" for name in allocator_names() for kind in OperationKind}


def test_a_case_is_read_as_it_was_written():
    asked = request("cama", OperationKind.MALLOC)
    asked = replace(asked, allocator=load_allocator("quick-fit", {"page-bytes": 256}))
    operations = (
        Operation(OperationKind.MALLOC, 3, 17, 5),
        Operation(OperationKind.FREE, 3),
        *(Operation(OperationKind.MALLOC, slot, 8) for slot in range(12)),
    )
    case = read_case(case_text(SearchResult(asked, 9, 7, operations, 1)), "zig", images_dir())
    assert (case.request, case.instructions, case.sequence) == (asked, 7, operations)


@pytest.mark.parametrize("text", ["", "allocator tlsf\n", "heap\n" * 9])
def test_a_text_that_is_no_case_is_refused(text):
    with pytest.raises(UsageError, match="no case of a search"):
        read_case(text, "zig", images_dir())


def test_a_mutation_never_leaves_nothing():
    from wcet_probe.answer.studies.search import _mutated

    asked = request("tlsf", OperationKind.FREE)
    draw, sequence = random.Random(1), (Operation(OperationKind.MALLOC, 0, 8),)
    assert all(_mutated(draw, sequence, asked) for _ in range(500))


def test_nothing_to_evaluate_is_refused():
    with pytest.raises(UsageError, match="at least 1"):
        search(replace(request("tlsf", OperationKind.FREE), evaluations=0))


def test_sequences_are_valid():
    from wcet_probe.answer.studies.search import repaired

    draw = random.Random(1)
    operations = [Operation(draw.choice(list(OperationKind)), draw.randrange(4), 8) for _ in range(500)]
    live = set()
    for operation in repaired(operations):
        if operation.kind is OperationKind.MALLOC:
            assert operation.slot not in live
            live.add(operation.slot)
        else:
            live.remove(operation.slot)
