"""Both sides of every allocator: no worst state and no random workload may contradict what is proved."""

from __future__ import annotations

import io
import random
from collections.abc import Sequence
from functools import cache

import pytest
from rich.console import Console

from tests.support import TARGETS, images_dir, trace_of
from wcet_probe.answer.bounds.proving import prove_operation
from wcet_probe.answer.witness import probe
from wcet_probe.answer.witness.contradiction import check_loops
from wcet_probe.answer.witness.probe import ProbeRequest, observe
from wcet_probe.build.program import Program, load_program
from wcet_probe.build.toolchain import PACKAGED
from wcet_probe.catalog.lookup import allocator_names, load_allocator, load_target
from wcet_probe.emu.machine import Machine
from wcet_probe.errors import HeapTooSmallError
from wcet_probe.model.proof import Bound
from wcet_probe.model.report import Verdict
from wcet_probe.model.scenario import OperationKind
from wcet_probe.reports.screens.terminal import render
from wcet_probe.scenarios.lookup import family

NAMES = allocator_names()
HEAP_BYTES = 4096
DEAR = {(name, target) for name in ("dlmalloc28", "fast-fit") for target in ("arm926ej-s", "mpc603e")}
"""Whose proofs take seconds: of these allocators the ordinary run has the core without caches."""
PARTS = [
    pytest.param(name, target, marks=pytest.mark.slow) if (name, target) in DEAR else (name, target)
    for name in NAMES
    for target in TARGETS
]
REACHED_ON_MPC603E = (
    ("half-fit", "worst-alloc"),
    ("half-fit", "worst-free"),
    ("first-fit", "worst-free"),
    ("best-fit", "worst-free"),
    ("djgpp-sbrk", "worst-free"),
    ("djgpp-carve", "worst-free"),
)
"""States whose cycles are the bound, every cache line that is charged included."""


@cache
def allocator(name: str):
    return load_allocator(name)


@cache
def program(name: str, target: str) -> Program:
    return load_program(allocator(name), load_target(target), PACKAGED, images_dir())


@cache
def bound(name: str, target: str, role: str, heap_bytes: int) -> Bound:
    return prove_operation(program(name, target), role, heap_bytes)


def heap_of(name: str) -> int:
    unit = allocator(name).alignment_bytes
    return -(-max(HEAP_BYTES, allocator(name).minimum_heap_bytes) // unit) * unit


@pytest.fixture
def proved_once(monkeypatch):
    """The bounds of an image are proved once for all scenarios."""

    def proved(of: Program, role: str, heap_bytes: int) -> Bound:
        (name,) = (each for each in NAMES if allocator(each) == of.allocator)
        return bound(name, of.target.name, str(role), heap_bytes)

    monkeypatch.setattr(probe, "prove_anew", proved)


def answer(name: str, target: str, scenario: str):
    heap_bytes = heap_of(name)
    for _ in range(2):
        request = ProbeRequest(
            allocator(name), load_target(target), scenario, heap_bytes, 0, None, PACKAGED, prove=True, cross_check=True,
            cache_dir=images_dir(),
        )  # fmt: skip
        try:
            return observe(request)
        except HeapTooSmallError as error:
            heap_bytes = int(str(error).split("give at least ")[1].split()[0])
    pytest.fail(f"{heap_bytes} bytes were to be enough for {scenario}")


@pytest.mark.usefixtures("proved_once")
@pytest.mark.covering
@pytest.mark.parametrize(("name", "target"), PARTS)
def test_no_scenario_contradicts_the_proof(name, target):
    for scenario in family(name).builders:
        report = answer(name, target, scenario)
        assert report.verdict is Verdict.BOUNDED, (scenario, report.no_bound)
        assert report.measurement.instructions <= report.bound.instructions
        assert report.measurement.cycles <= report.bound.cycles
        assert bool(report.plan.driver) == (report.plan.driver_value is not None)
        render(report, Console(file=io.StringIO()))


@pytest.mark.slow  # the default, 8, is among all scenarios above
@pytest.mark.parametrize("granule", [4, 8, 16, 32])
@pytest.mark.parametrize("name", ["fast-fit", "avl-best-fit"])
def test_no_build_contradicts_the_facts_about_its_pointers(name, granule):
    request = ProbeRequest(
        load_allocator(name, {"granule": granule}), load_target("mpc603e"), "worst-free", 2048, 0, None, PACKAGED,
        prove=True, cross_check=True, cache_dir=images_dir(),
    )  # fmt: skip
    assert observe(request).verdict is Verdict.BOUNDED


@pytest.mark.usefixtures("proved_once")
@pytest.mark.parametrize(("name", "scenario"), REACHED_ON_MPC603E)
def test_the_bound_in_cycles_is_reached(name, scenario):
    report = answer(name, "mpc603e", scenario)
    assert report.measurement.cycles == report.bound.cycles


def workload(name: str, operations: int, heap_bytes: int, seed: int) -> Sequence[tuple[int, int, int]]:
    """Allocations and frees at random; sizes of all magnitudes, some of which are refused."""
    draw, slots = random.Random(f"{name} {seed}"), 64
    rows: list[tuple[int, int, int]] = []
    used: set[int] = set()
    share = 0.5
    while len(rows) < operations:
        if len(rows) % 256 == 0:
            share = draw.choice((0.35, 0.5, 0.65, 0.8))
        slot = draw.randrange(slots)
        if slot in used and (draw.random() > share or len(used) == slots):
            rows.append((1, slot, 0))
            used.discard(slot)
        elif slot not in used and draw.random() < share:
            rows.append((0, slot, 1 + draw.getrandbits(draw.randrange(1, heap_bytes.bit_length()))))
            used.add(slot)
    return rows


def accepted_heap(name: str, target: str) -> int:
    """The first of some sizes that the allocator takes."""
    of, init = program(name, target), allocator(name).entry_points["init"]
    for heap_bytes in (heap_of(name), 16384, 65536):
        with Machine(of.image, of.target, of.instructions, of.costs, heap_bytes) as machine:
            if machine.call(init, machine.heap.base_address, heap_bytes) == 0:
                return heap_bytes
    pytest.fail(f"{name} takes no heap of 64 KiB")


def run_workload(name: str, target: str, operations: int, seed: int) -> None:
    heap_bytes, of = accepted_heap(name, target), program(name, target)
    bounds = {kind: bound(name, target, str(kind), heap_bytes) for kind in OperationKind}
    claims = {}
    for one in bounds.values():
        for claim in one.loop_claims:
            claims.setdefault(claim.loop.name, []).append(claim)
    greatest = [max(group, key=lambda claim: claim.max_header) for group in claims.values()]
    watched = [claim.loop for claim in greatest]
    rows = workload(name, operations, heap_bytes, seed)
    with Machine(of.image, of.target, of.instructions, of.costs, heap_bytes, watched=watched) as machine:
        points = allocator(name).entry_points
        assert machine.call(points["init"], machine.heap.base_address, heap_bytes) == 0
        machine.restart_loop_counts()
        counts = machine.replay_counted(trace_of(rows))
        check_loops(greatest, machine.loop_counts(), of.image, f"a random workload of {name}")
        assert machine.call(points["check"]) == 0
    for row, instructions in zip(rows, counts, strict=True):
        kind = OperationKind.FREE if row[0] else OperationKind.MALLOC
        assert instructions <= bounds[kind].instructions, row


@pytest.mark.covering
@pytest.mark.parametrize(("name", "target"), PARTS)
def test_no_random_workload_contradicts_the_proof(name, target):
    run_workload(name, target, 4000, seed=0)


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", NAMES)
def test_no_long_workload_contradicts_the_proof(name, target):
    run_workload(name, target, 1_000_000, seed=1)
