"""One question asked many times: over heap sizes (growth), over allocators in each other's states (the matrix)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from wcet_probe.answer.studies.growth import Growth, Sample, growth
from wcet_probe.answer.witness.bench import ProbeRequest
from wcet_probe.answer.witness.probe import measure_in_state, observe
from wcet_probe.errors import UsageError
from wcet_probe.model.report import Witness
from wcet_probe.model.scenario import OperationKind

DEFAULT_HEAPS_BYTES = tuple(1 << bits for bits in (14, 15, 16, 17, 18, 19, 20, 21, 22))
"""Heaps of a growth study: 16 KiB to 4 MiB, each twice the one before."""

_LEAST_SAMPLES = 3


@dataclass(frozen=True, slots=True)
class Cell:
    """An allocator measured in the state that was built for another one, or for itself.

    Attributes:
        allocator: who was measured.
        state_of: for whom the state was built.
        instructions, cycles: of the measured operation, each in the state that is dearest in it; None where it could
            not be made.
        refused: allocations of the set-up that this allocator refused; of two set-ups the most.
        note: why there is no number, or empty.
    """

    allocator: str
    state_of: str
    instructions: int | None
    cycles: int | None
    refused: int
    note: str = ""


def grow(request: ProbeRequest, heaps_bytes: Sequence[int], progress: Callable[[str], None] = lambda _: None) -> Growth:
    """The worst state of ``request`` on each of ``heaps_bytes``, fitted and held against the manifest's claim.

    The most instructions of any constructed state count, for a claim speaks of steps, not of caches; a state that a
    search found is of one heap and no point of a law.

    Raises:
        UsageError: fewer than three heaps.
        WcetProbeError: as ``observe``.
    """
    sizes = sorted(set(heaps_bytes))
    if len(sizes) < _LEAST_SAMPLES:
        message = f"{len(sizes)} heap sizes show no growth; give at least {_LEAST_SAMPLES} with --heap."
        raise UsageError(message)
    constructed = replace(request.allocator, found=())
    samples, driver, kind = [], "", OperationKind.MALLOC
    for heap_bytes in sizes:
        progress(f"heap of {heap_bytes} bytes")
        report = observe(replace(request, allocator=constructed, heap_bytes=heap_bytes))
        most = max(candidate.instructions for candidate in report.candidates)
        samples.append(Sample(heap_bytes, most, report.plan.driver_value))
        driver, kind = report.plan.driver, report.plan.measured.kind
    claimed = request.allocator.complexity.get(kind)
    return growth(samples, driver, claimed.claim if claimed else "")


def matrix(requests: Sequence[ProbeRequest], progress: Callable[[str], None] = lambda _: None) -> tuple[Cell, ...]:
    """Each allocator of ``requests`` in the worst state of each: row by row, allocators in the given order.

    Raises:
        WcetProbeError: an allocator fails in its own state; elsewhere a failure is a note in the cell.
    """
    states: list[Mapping[str, Witness]] = []
    for request in requests:
        progress(f"the worst state of {request.allocator.name}")
        states.append(observe(request).witnesses)
    cells = []
    for request in requests:
        for other, witnesses in zip(requests, states, strict=True):
            name, state_of = request.allocator.name, other.allocator.name
            if name == state_of:
                found = {unit: witness.value(unit) for unit, witness in witnesses.items()}
                cells.append(Cell(name, name, found["instructions"], found["cycles"], 0))
                continue
            progress(f"{name} in the state of {state_of}")
            cells.append(_cell(request, state_of, witnesses))
    return tuple(cells)


def _cell(request: ProbeRequest, state_of: str, witnesses: Mapping[str, Witness]) -> Cell:
    """Instructions in the state that is dearest in instructions, cycles in the one that is dearest in cycles."""
    name, one, other = request.allocator.name, witnesses["instructions"].plan, witnesses["cycles"].plan
    slower, refused, note = measure_in_state(request, other)
    longer, also_refused, reason = (slower, refused, note) if one == other else measure_in_state(request, one)
    if slower is None or longer is None:
        return Cell(name, state_of, None, None, refused, note or reason)
    return Cell(name, state_of, longer.instructions, slower.cycles, max(refused, also_refused), note or reason)
