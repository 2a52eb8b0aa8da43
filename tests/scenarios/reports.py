"""What the tests of scenarios ask of all allocators."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache

import pytest

from tests.support import guest_on, images_dir, trace_of
from wcet_probe.answer.witness.probe import ProbeRequest, observe
from wcet_probe.build.compilation import build_image
from wcet_probe.build.toolchain import PACKAGED
from wcet_probe.catalog.lookup import load_allocator, load_target
from wcet_probe.errors import UsageError
from wcet_probe.model.report import Report

Values = tuple[tuple[str, int], ...]


@cache
def report(
    name: str, target: str, scenario: str, heap_bytes: int, values: Values = (), *, prove: bool = False, seed: int = 1
) -> Report:
    """What the probe answers of the constructed states; it proves the state on its way."""
    return observe(
        ProbeRequest(
            allocator=replace(load_allocator(name, dict(values)), found=()),
            target=load_target(target),
            scenario=scenario,
            heap_bytes=heap_bytes,
            seed=seed,
            initial_cache=None,
            compiler=PACKAGED,
            cross_check=False,
            cache_dir=images_dir(),
            prove=prove,
        )
    )


def most_instructions(found: Report) -> int:
    """Of all candidates."""
    return max(candidate.instructions for candidate in found.candidates)


def reached(found: Mapping[str, Report]) -> Mapping[str, int]:
    """Cycles by scenario; each state was looked at, and its candidates differ."""
    for each in found.values():
        assert each.checks
        assert len({candidate.variant for candidate in each.candidates}) == len(each.candidates)
    return {scenario: each.measurement.cycles for scenario, each in found.items()}


def check_state(found: Report) -> None:
    """The heap is the predicted one in all that was predicted, and the candidates differ."""
    assert all(check.predicted == check.found for check in found.checks)
    assert {check.fact for check in found.checks} == set(found.plan.prediction)
    assert len({candidate.variant for candidate in found.candidates}) == len(found.candidates)


def random_counts(name: str, target: str, heap_bytes: int) -> Mapping[int, int]:
    """Most instructions of any malloc (0) and free (1) of a random workload of small blocks."""
    draw, rows, live = random.Random(7), list[tuple[int, int, int]](), list[int]()
    for slot in range(1500):
        if live and draw.random() < 0.45:
            rows.append((1, live.pop(draw.randrange(len(live))), 0))
        elif len(live) < 60:
            rows.append((0, slot, draw.randrange(1, 60)))
            live.append(slot)
    allocator, core = load_allocator(name), load_target(target)
    guest = guest_on(build_image(allocator, core, PACKAGED, images_dir()), core)
    with guest.machine(heap_bytes) as machine:
        machine.call(allocator.entry_points["init"], machine.heap.base_address, heap_bytes)
        counts = machine.replay_counted(trace_of(rows))
    return {kind: max(n for n, row in zip(counts, rows, strict=True) if row[0] == kind) for kind in (0, 1)}


def no_random_operation_costs_more(name: str, target: str, of: Callable[[str, str, int], Report]) -> None:
    """None of a random workload is dearer than the worst state of 4 KiB that ``of`` reports."""
    dearest = random_counts(name, target, 1 << 12)
    for kind, scenario in ((0, "worst-alloc"), (1, "worst-free")):
        assert dearest[kind] < most_instructions(of(target, scenario, 1 << 12))


def assert_best_is_below_worst(best: Report, worst: Report, factor: int) -> None:
    """In instructions by a factor, in cycles at all."""
    assert best.measurement.instructions * factor < worst.measurement.instructions
    assert best.measurement.cycles < worst.measurement.cycles


def assert_refused_with_a_heap_that_works(asked: Callable[[int], Report], heap_bytes: int) -> None:
    """A heap is too small for a state, and the least one that is named has it."""
    with pytest.raises(UsageError, match=r"give at least \d+ with --heap") as refused:
        asked(heap_bytes)
    assert asked(int(str(refused.value).split("at least ")[1].split()[0])).checks
