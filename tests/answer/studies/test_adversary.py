"""The adversary: deterministic, holds each run against the proof, finds a weak construction, and beats no scenario."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bench.adversary import HEAPS, RANDOM_UNITS, UNITS, attacked, combinations, read_tally
from tests.covering import one_of
from tests.support import images_dir
from wcet_probe.answer.studies import adversary
from wcet_probe.answer.studies.adversary import Unit, attack
from wcet_probe.answer.studies.search import SearchRequest
from wcet_probe.catalog.lookup import allocator_names, load_allocator, load_target
from wcet_probe.errors import ContradictionError, UsageError
from wcet_probe.model.scenario import OperationKind
from wcet_probe.scenarios.families import HeapRequest
from wcet_probe.scenarios.found_states import operations_in
from wcet_probe.scenarios.lookup import family_of

TALLY = read_tally()
MALLOC, FREE = OperationKind.MALLOC, OperationKind.FREE


def request(name: str, kind: OperationKind, target: str = "cortex-m4", evaluations: int = 40, **values: int):
    return SearchRequest(
        load_allocator(name, values), load_target(target), kind, 5008, evaluations, 1, "zig", images_dir()
    )


def test_the_same_seed_finds_the_same():
    asked = request("buddy-binary", FREE, "mpc603e")
    assert attack(asked, Unit.CYCLES, prove=False) == attack(asked, Unit.CYCLES, prove=False)


@pytest.mark.covering(0)
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
    monkeypatch.setattr(
        adversary, "_plans", lambda asked: [p for p in plans(asked) if p.found_by or p == plans(asked)[0]]
    )
    asked = request("buddy-binary", FREE, "mpc603e", evaluations=400)
    found = attack(asked, Unit.CYCLES, prove=False)
    assert found.beaten
    assert found.state.measured.kind is FREE
    # Kept beside the allocator it is a candidate, which the next search begins with.
    kept = replace(asked.allocator, found=((found.file_name, found.text),))
    again = attack(replace(asked, allocator=kept, evaluations=1), Unit.CYCLES, prove=False)
    assert (again.constructed, again.known, again.beaten) == (found.constructed, found.found, False)
    plan = family_of(kept).builders["worst-free"](HeapRequest(kept, 5008, 32, 1))[-1]
    assert (operations_in(plan), plan.measured) == (found.state.operations, found.state.measured)
    constructed = operations_in(plans(asked)[0])
    changed = sum(one not in constructed for one in found.state.operations)
    assert 0 < changed < 8, "only what matters is changed"


def test_nothing_to_evaluate_is_refused():
    with pytest.raises(UsageError, match="at least 1"):
        attack(request("tlsf", FREE, evaluations=0), Unit.CYCLES)


def quick() -> list[object]:
    """What is attacked in the ordinary run: each operation on one of the cores; the others are marked as campaigns."""
    cores: dict[tuple[str, str], list[tuple[str, ...]]] = {}
    for key in TALLY:
        if key[2] == "5008":
            cores.setdefault(key[:2], []).append(key)
    return [
        pytest.param(key, marks=() if number in one_of(keys, " ".join(of)) else pytest.mark.slow)
        for of, keys in cores.items()
        for number, key in enumerate(keys)
    ]


@pytest.mark.covering(0)
@pytest.mark.parametrize("key", quick(), ids=" ".join)
def test_no_quick_attack_finds_more_than_the_tally_knows(key):
    _, known, most = TALLY[key]
    found = attacked(key, 6, 7, prove=False)
    assert found.known == known, "the candidates have changed: run python -m bench.adversary"
    assert found.found <= most


@pytest.mark.slow
@pytest.mark.parametrize("key", sorted(combinations(sorted({key[0] for key in TALLY}))), ids=" ".join)
def test_no_long_attack_finds_more_than_the_tally_knows(key):
    """Each run is held against bound and facts."""
    try:
        found = attacked(key, 100, 11, prove=True)
    except UsageError:
        pytest.skip("the heap is too small for the states, or no multiple of the alignment")
    _, known, most = TALLY.get(key, (0, found.known, found.known))
    assert found.known == known
    assert found.found <= most


KEPT = [(name, file, text) for name in allocator_names() for file, text in load_allocator(name).found]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "file", "text"), KEPT, ids=[f"{name}-{file}" for name, file, _ in KEPT])
def test_a_kept_state_is_as_dear_as_it_says_and_dearer_than_all_constructed_ones(name, file, text):
    """Held against bound and facts."""
    head = dict(line.partition(" ")[::2] for line in text.splitlines() if not line.startswith(("+", "-", "=")))
    values = {key: int(value) for key, _, value in (one.partition("=") for one in head["parameters"].split())}
    kind = FREE if head["scenario"] == "worst-free" else MALLOC
    asked = replace(
        request(name, kind, head["target"], evaluations=1, **values),
        allocator=replace(load_allocator(head["allocator"], values), found=((file, text),)),
        heap_bytes=int(head["heap"]),
    )
    found = attack(asked, Unit(head["unit"]))
    assert found.constructed < found.known == int(head["value"]), "python -m bench.adversary keeps what is dearer now"


def test_the_dearest_state_that_was_found_is_a_candidate():
    units = {(unit.value, target) for unit, target in (*UNITS, *RANDOM_UNITS)}
    assert all(map(load_allocator, {name for name, *_ in TALLY}))
    for (name, operation, heap, unit, target), (evaluations, known, most) in TALLY.items():
        assert (unit, target) in units
        assert int(heap) in HEAPS
        assert OperationKind(operation)
        assert evaluations > 0
        assert most == known, (
            f"{name} {operation} {heap} {unit} {target}: run python -m bench.adversary, which keeps it"
        )
