"""A number of a fact that is made slightly false is reported by a run, or survives for a reason that is told."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path

import pytest

from tests.end_to_end.falsification import (
    Number,
    cases,
    check_falsifying_states,
    check_least_heaps,
    falsified,
    verdict,
)
from wcet_probe.analyzer.facts.binding import parameter_values
from wcet_probe.analyzer.facts.expressions import evaluate
from wcet_probe.answer.bounds.proving import allocator_facts
from wcet_probe.catalog.lookup import allocator_names, load_allocator

SURVIVORS = Path(__file__).with_name("survivors.toml")
CASES = {f"{name}: {number}": (name, number) for name, number in cases()}
SAMPLE = ("first-fit", "half-fit", "kingsley", "tlsf")
"""Allocators whose numbers are tried in the ordinary run."""
LASTING = ("first-fit: pointer elsewhere: lines", "kingsley: pointer carve: lines")
"""Which of them are not, as to refute them takes seconds."""


@cache
def survivors() -> dict[str, dict[str, str]]:
    """What survives and why, by the case."""
    return tomllib.loads(SURVIVORS.read_text("utf-8"))


QUICK = [
    case for case, (name, _) in CASES.items() if name in SAMPLE and case not in survivors() and case not in LASTING
]
LONG = [case for case in CASES if case not in QUICK]


def check(case: str) -> None:
    found, known = verdict(*CASES[case]), survivors().get(case)
    if known is None:
        assert found.startswith(("reported", "refused")), f"{case}: {found}"
    else:
        assert found.partition(":")[0] == known["verdict"]


def test_every_number_has_a_name_of_its_own():
    assert len(CASES) == sum(1 for _ in cases())
    assert {name for name, _ in CASES.values()} == {name for name in allocator_names() if load_allocator(name).facts}


def test_survivors_are_numbers_that_there_are_and_each_has_a_reason():
    for case, entry in survivors().items():
        assert case in CASES
        assert entry.keys() == {"verdict", "reason"}
        assert entry["verdict"] in {"survived", "idle"}
        assert len(entry["reason"].split()) > 5


@pytest.mark.parametrize("case", [case for case in CASES if case.startswith(("tlsf", "dlmalloc27"))])
def test_one_number_is_made_false_and_nothing_else(case):
    name, number = CASES[case]
    facts = allocator_facts(load_allocator(name))
    changed = falsified(facts, number)
    for kind in ("loops", "flows", "pointers", "words", "lemmas", "infeasible"):
        before, after = getattr(facts, kind), getattr(changed, kind)
        assert [n for n, (a, b) in enumerate(zip(before, after, strict=True)) if a != b] == (
            [number.position] if kind == number.kind else []
        )
    assert isinstance(number, Number)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["fast-fit", "btree-best-fit", "dlmalloc27"])
def test_true_facts_hold_where_their_numbers_are_attained(name):
    assert check_falsifying_states(name) >= 4


@pytest.mark.parametrize("heap_bytes", [24, 64, 120, 128])
def test_the_first_row_of_tlsf_is_marked_on_the_least_heaps(heap_bytes):
    facts = allocator_facts(load_allocator("tlsf"))
    for small_limit in (0, 128, 256):
        for sl_bits in (4, 5):
            told = {"H": heap_bytes, "small_limit": small_limit, "sl_bits": sl_bits, "alignment_bytes": 8}
            assert evaluate(facts.words[0].maximum, parameter_values(facts, told, None)) >= 1


@pytest.mark.covering(0)
@pytest.mark.parametrize("name", SAMPLE)
def test_facts_hold_on_the_least_heaps(name):
    assert check_least_heaps(name, heaps=2)


@pytest.mark.slow
@pytest.mark.parametrize("name", allocator_names())
def test_facts_hold_on_more_of_the_least_heaps(name):
    assert check_least_heaps(name, heaps=35)


@pytest.mark.parametrize("case", QUICK)
def test_a_false_number_is_reported(case):
    check(case)


@pytest.mark.slow
@pytest.mark.parametrize("case", LONG)
def test_a_false_number_of_any_allocator_is_reported(case):
    check(case)
