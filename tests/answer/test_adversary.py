"""The adversary: deterministic, holds each run against the proof, finds a weak construction, and beats no scenario."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bench.adversary import HEAPS, RANDOM_UNITS, UNITS, attacked, combinations, read_tally
from tests.support import images_dir
from wcet_probe.answer import adversary
from wcet_probe.answer.adversary import Unit, attack
from wcet_probe.answer.search import SearchRequest
from wcet_probe.catalog.lookup import load_allocator, load_target
from wcet_probe.errors import ContradictionError, UsageError
from wcet_probe.model.scenario import OperationKind

TALLY = read_tally()
MALLOC, FREE = OperationKind.MALLOC, OperationKind.FREE


def request(name: str, kind: OperationKind, target: str = "cortex-m4", evaluations: int = 40, **values: int):
    return SearchRequest(
        load_allocator(name, values), load_target(target), kind, 5008, evaluations, 1, "zig", images_dir()
    )


def test_the_same_seed_finds_the_same():
    asked = request("buddy-binary", FREE, "mpc603e")
    assert attack(asked, Unit.CYCLES, prove=False) == attack(asked, Unit.CYCLES, prove=False)


@pytest.mark.covering
@pytest.mark.parametrize("unit", Unit)
@pytest.mark.parametrize("kind", OperationKind)
@pytest.mark.parametrize("name", ["tlsf", "half-fit", "buddy-binary", "first-fit"])
def test_no_state_exceeds_the_bound_or_contradicts_a_fact(name, kind, unit):
    found = attack(request(name, kind, "mpc603e"), unit)
    assert found.bound is not None
    assert found.constructed <= found.found <= found.bound


def test_a_bound_that_is_too_low_is_a_contradiction(monkeypatch):
    proved = adversary.prove_operation
    monkeypatch.setattr(adversary, "prove_operation", lambda *given: replace(proved(*given), instructions=60))
    with pytest.raises(ContradictionError, match="at most 60 were proved"):
        attack(request("tlsf", FREE), Unit.INSTRUCTIONS)


def test_a_flow_fact_that_is_too_low_is_a_contradiction(monkeypatch):
    proved = adversary.prove_operation

    def too_low(*given):
        bound = proved(*given)
        claims = tuple(replace(claim, max_header=2) for claim in bound.loop_claims)
        return replace(bound, loop_claims=claims)

    monkeypatch.setattr(adversary, "prove_operation", too_low)
    with pytest.raises(ContradictionError, match="at most 2 are claimed"):
        attack(request("buddy-binary", FREE), Unit.INSTRUCTIONS)


def test_an_alignment_that_is_too_fine_is_a_contradiction(monkeypatch):
    """As a false fact about pointers has it: every access through a pointer to a multiple of twice the alignment."""
    proved = adversary.prove_operation

    def too_fine(*given):
        bound = proved(*given)
        elsewhere = [one for one in bound.accesses if one.fact and one.stride == 8]
        assert elsewhere
        return replace(bound, accesses=tuple(replace(one, stride=16, steps=one.steps // 2) for one in elsewhere))

    monkeypatch.setattr(adversary, "prove_operation", too_fine)
    with pytest.raises(ContradictionError, match="accessed"):
        attack(request("tlsf", FREE, "mpc603e"), Unit.CYCLES)


def test_a_weak_construction_is_beaten(monkeypatch):
    """Of buddy-binary's states only those whose buddies are alone in their lists."""
    plans = adversary._plans
    monkeypatch.setattr(adversary, "_plans", lambda asked: plans(asked)[:1])
    found = attack(request("buddy-binary", FREE, "mpc603e", evaluations=400), Unit.CYCLES, prove=False)
    assert found.beaten
    assert found.state.measured.kind is FREE


def test_nothing_to_evaluate_is_refused():
    with pytest.raises(UsageError, match="at least 1"):
        attack(request("tlsf", FREE, evaluations=0), Unit.CYCLES)


@pytest.mark.parametrize("key", [key for key in TALLY if key[2] == "5008"], ids=" ".join)
def test_no_quick_attack_finds_more_than_the_tally_knows(key):
    _, constructed, most = TALLY[key]
    found = attacked(key, 15, 7, prove=False)
    assert found.constructed == constructed, "the constructed state has changed: run python -m bench.adversary"
    assert found.found <= most


@pytest.mark.slow
@pytest.mark.parametrize("key", sorted(combinations(sorted({key[0] for key in TALLY}))), ids=" ".join)
def test_no_long_attack_finds_more_than_the_tally_knows(key):
    """Each run is held against bound and facts."""
    try:
        found = attacked(key, 100, 11, prove=True)
    except UsageError:
        pytest.skip("the heap is too small for the states, or no multiple of the alignment")
    _, constructed, most = TALLY.get(key, (0, found.constructed, found.constructed))
    assert found.constructed == constructed
    assert found.found <= most


def test_the_tally_knows_of_what_was_found_and_no_more():
    units = {(unit.value, target) for unit, target in (*UNITS, *RANDOM_UNITS)}
    assert TALLY
    for (name, operation, heap, unit, target), (evaluations, constructed, most) in TALLY.items():
        assert (unit, target) in units
        assert int(heap) in HEAPS
        assert OperationKind(operation)
        assert load_allocator(name)
        assert evaluations > 0
        assert constructed <= most
        assert most <= 1.03 * constructed, "a scenario that is beaten by as much has to learn"
