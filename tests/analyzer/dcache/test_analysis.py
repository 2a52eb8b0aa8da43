"""The analysis of lines known by name against runs of tiny random programs; the order of iteration decides nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from random import Random

import pytest

from tests.analyzer.random_relational_programs import (
    random_chase,
    random_copies,
    random_fifo,
    random_index,
    random_null,
    random_program,
    random_renaming,
    random_sweep,
    random_walk,
    told_index,
    told_program,
    visiting_program,
)
from tests.analyzer.relational_attacks import attack, attack_limits, attack_stores
from tests.analyzer.relational_programs import Program
from wcet_probe.analyzer.dcache import analysis as relational_analysis
from wcet_probe.analyzer.dcache import misses as data_misses
from wcet_probe.analyzer.dcache import resident_at_entry as resident_lines
from wcet_probe.analyzer.dcache import younger_sets as relational_cache
from wcet_probe.analyzer.dcache.analysis import analyze
from wcet_probe.analyzer.dcache.scopes import Scopes
from wcet_probe.analyzer.dcache.strided_traversals import StridedTraversal
from wcet_probe.analyzer.dcache.symbolic_blocks import ReferenceGroup
from wcet_probe.analyzer.dcache.younger_sets import RelationalCache
from wcet_probe.analyzer.domains.cache_sets import effective_ways
from wcet_probe.analyzer.ipet.flow_problem import LinearConstraint


def campaign(seed: str, verdicts: int, runs: int, make: Callable[[Random], Program] = random_program) -> Counter[str]:
    counts, number = Counter[str](), 0
    while counts["hit"] + counts["persistent"] + counts["block"] + counts["bound"] < verdicts:
        random = Random(f"{seed} {number}")
        counts += attack(make(random), random, runs)
        number += 1
    return counts


def test_no_run_refutes_a_verdict():
    counts = campaign("quick", 2000, 6)
    assert counts["hit"] > 80
    assert counts["persistent"] > 400


def test_no_run_refutes_what_facts_about_some_accesses_make_of_it():
    counts = campaign("told", 400, 6, told_program)
    assert counts["hit"] > 12
    assert counts["call"] > 60


def test_no_run_refutes_what_facts_about_visits_make_of_write_backs():
    counts = campaign("visits", 400, 6, visiting_program)
    assert counts["bound"] > 40


def test_runs_refute_that_first_visits_make_no_write_backs(monkeypatch):
    right = data_misses._Costs._fills

    def wrong(costs, name, misses, *limits):
        return right(costs, name, {} if name == "write-backs:visits" else misses, *limits)

    monkeypatch.setattr(data_misses._Costs, "_fills", wrong)
    with pytest.raises(AssertionError):
        campaign("visits", 3000, 6, visiting_program)


def limits_campaign(
    seed: str, programs: int, runs: int, make: Callable[[Random], Program] = told_program
) -> Counter[str]:
    counts = Counter[str]()
    for number in range(programs):
        random = Random(f"{seed} {number}")
        counts += attack_limits(make(random), random, runs)
    return counts


def test_no_run_refutes_a_limit_of_shared_misses():
    assert limits_campaign("x", 40, 6)["limits"] > 600


@pytest.mark.slow
def test_no_run_refutes_many_limits_of_shared_misses():
    limits_campaign("slow", 20_000, 6)
    limits_campaign("slow", 20_000, 12, random_sweep)
    limits_campaign("slow", 20_000, 12, random_walk)


_LATER = [random_renaming, random_copies, random_index, random_null, random_fifo]


@pytest.mark.parametrize("make", _LATER)
def test_no_run_refutes_what_is_said_of_new_names_copies_indices_null_pointers_and_fifo(make):
    assert campaign("quick", 150, 6, make)["hit"] > 5
    assert limits_campaign("quick", 18, 6, make)["limits"] > 150


def test_no_run_refutes_what_is_said_of_indices_where_a_fact_is_false():
    assert campaign("quick", 300, 6, told_index)["hit"] > 10


@pytest.mark.slow
@pytest.mark.parametrize("make", [*_LATER, told_index])
def test_no_run_refutes_much_of_what_is_said_of_them(make):
    campaign("slow", 100_000, 12, make)
    limits_campaign("slow", 5000, 12, make)


def _one_more(config):
    ways = effective_ways(config)
    return replace(ways, must=ways.must + 1)


@pytest.mark.parametrize(
    ("of", "name", "wrong"),
    [
        (relational_cache, "effective_ways", _one_more),
        (ReferenceGroup, "may_meet", lambda one, other: False),  # noqa: ARG005
        (relational_cache, "most_in_one_set", lambda group, others: 0),  # noqa: ARG005
        (RelationalCache, "without", lambda cache, state, killed: state),  # noqa: ARG005
    ],
)
def test_runs_refute_what_is_wrong(monkeypatch, of, name, wrong):
    monkeypatch.setattr(of, name, wrong)
    with pytest.raises(AssertionError):
        campaign("wrong", 10_000, 6)


@pytest.mark.parametrize(
    ("of", "name", "wrong", "seed"),
    [
        (RelationalCache, "is_kept", lambda _, __, access: access.line is not None and not access.fills, "s1 387"),
        (Scopes, "is_last", lambda *_: True, "s1 580"),
        (data_misses, "refill_constraint", lambda refills, *_: refills.constraint, "s1 9365"),
    ],
)
def test_a_run_refutes_what_is_wrong_of_first_in_first_out(monkeypatch, of, name, wrong, seed):
    attack(random_fifo(Random(seed)), Random(f"{seed} right"), 8)
    monkeypatch.setattr(of, name, wrong)
    random = Random(seed)
    with pytest.raises(AssertionError):
        attack(random_fifo(random), random, 8)


def traversing(seed: str, programs: int, runs: int) -> Counter[str]:
    """Counts of what is said of programs that traversal, each held against runs."""
    counts = Counter[str]()
    for number in range(programs):
        random = Random(f"{seed} {number}")
        program = random_sweep(random)
        counts += attack(program, random, runs)
        counts["sweep"] += sum(
            v.is_persistent_in_traversal for own in program.view.analysis.verdicts.values() for v in own
        )
    return counts


def test_no_run_refutes_what_is_said_of_sweeps():
    assert traversing("quick", 70, 6)["sweep"] > 15
    assert limits_campaign("sweeps", 40, 6, random_sweep)["limits"] > 250


def test_runs_refute_what_is_wrong_of_sweeps(monkeypatch):
    monkeypatch.setattr(
        StridedTraversal,
        "constraint",
        lambda _, name, auxiliaries, *__: LinearConstraint(name, constant=1, auxiliaries=((auxiliaries[0], 1),)),
    )
    with pytest.raises(AssertionError):
        traversing("wrong", 600, 6)


def test_no_run_refutes_a_limit_of_lines_whose_stay_begins_in_the_cache():
    assert limits_campaign("walks", 80, 6, random_walk)["limits"] > 500


def stores_campaign(seed: str, programs: int, runs: int) -> Counter[str]:
    counts = Counter[str]()
    for number in range(programs):
        random = Random(f"{seed} {number}")
        counts += attack_stores(random_chase(random), random, runs)
    return counts


@pytest.mark.slow
def test_no_run_refutes_what_is_said_of_stores_to_where_they_were():
    counts = stores_campaign("d", 80, 20)
    assert counts["filled"] > 10
    assert counts["limits"] > 100
    assert campaign("chase", 1000, 6, random_chase)["bound"] > 50


@pytest.mark.slow
def test_no_run_refutes_what_is_said_of_many_stores_to_where_they_were():
    stores_campaign("slow", 3000, 500)


def test_runs_refute_that_such_lines_are_never_evicted(monkeypatch):
    monkeypatch.setattr(resident_lines, "_touched", lambda resident, *_, **__: resident)
    with pytest.raises(AssertionError):
        limits_campaign("z", 100, 12, random_walk)


@pytest.mark.slow
def test_no_run_refutes_what_is_said_of_many_sweeps():
    traversing("slow", 30_000, 12)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(2))
def test_no_run_refutes_half_a_million_verdicts(part):
    campaign(f"slow {part}", 500_000, 12)


def in_any_order(seed):
    """A plain fixpoint that visits points in an order drawn from ``seed``."""

    def least(order, lattice, starts, behind, along):
        points = sorted(order.outgoing)
        Random(seed).shuffle(points)
        states, before = dict(starts), None
        while states != before:
            before = dict(states)
            for point in points:
                for edge in order.outgoing[point]:
                    if point in states:
                        arriving = along(edge, behind(point, states[point]))
                        known = states.get(edge.target)
                        states[edge.target] = arriving if known is None else lattice.join(known, arriving)
        return states

    return least


def test_the_order_of_iteration_decides_nothing(monkeypatch):
    """Of verdicts; what is known of ages where paths meet is not always the same."""
    for seed in range(60):
        program = random_program(Random(seed))
        expected = program.view.analysis
        for shuffle in range(3):
            with monkeypatch.context() as patch:
                patch.setattr(relational_analysis, "least", in_any_order(shuffle))
                view = program.view
                found = analyze(view.values, view.lines, view.named, program.config, view.traversals.found)
                assert found.verdicts == expected.verdicts
