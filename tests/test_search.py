"""The search: it is deterministic, finds what is there to find, and never beats the constructed states."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest

from wcet_probe.catalog import allocator_names, load_allocator, load_target
from wcet_probe.errors import UsageError
from wcet_probe.model import Operation, OperationKind
from wcet_probe.search import SearchRequest, search

EVALUATIONS = 300
VALUES = {"quick-fit": {"page-bytes": 256}}  # a page of 4096 bytes and its header do not fit into 4 KiB


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("images")


def request(name: str, kind: OperationKind, cache: Path) -> SearchRequest:
    return SearchRequest(
        allocator=load_allocator(name, VALUES.get(name, {})),
        target=load_target("cortex-m4"),
        kind=kind,
        heap_bytes=4096,
        evaluations=EVALUATIONS,
        seed=1,
        compiler="zig",
        cache_dir=cache,
    )


@pytest.mark.parametrize("kind", OperationKind)
@pytest.mark.parametrize("name", allocator_names())
def test_no_better_state_is_known(name, kind, cache):
    result = search(request(name, kind, cache))
    assert not result.beaten, result


def test_the_same_seed_finds_the_same(cache):
    asked = request("tlsf", OperationKind.FREE, cache)
    assert search(asked) == search(asked)


def test_the_search_reaches_tlsfs_worst_free_by_itself(cache):
    result = search(replace(request("tlsf", OperationKind.FREE, cache), evaluations=2000))
    assert result.found_instructions == result.constructed_instructions


def test_a_weak_construction_is_beaten(cache, monkeypatch):
    monkeypatch.setattr("wcet_probe.search._constructed", lambda _: 50)
    result = search(request("tlsf", OperationKind.MALLOC, cache))
    assert result.beaten
    assert result.sequence[-1].kind is OperationKind.MALLOC


def test_nothing_to_evaluate_is_refused(cache):
    with pytest.raises(UsageError, match="at least 1"):
        search(replace(request("tlsf", OperationKind.FREE, cache), evaluations=0))


def test_sequences_are_valid():
    from wcet_probe.search import _repaired

    draw = random.Random(1)
    operations = [Operation(draw.choice(list(OperationKind)), draw.randrange(4), 8) for _ in range(500)]
    live = set()
    for operation in _repaired(operations):
        if operation.kind is OperationKind.MALLOC:
            assert operation.slot not in live
            live.add(operation.slot)
        else:
            live.remove(operation.slot)
