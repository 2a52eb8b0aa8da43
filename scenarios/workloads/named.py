"""Workloads by name, as the command line asks for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from wcet_probe.errors import unknown_name
from wcet_probe.scenarios.workloads.herter import PROGRAMS
from wcet_probe.scenarios.workloads.lee import CONFIGURATIONS, DISTRIBUTIONS, lee_scenario, wandering
from wcet_probe.scenarios.workloads.periodic import Hold, collection_periods, crespo_tasks, masmano_tasks
from wcet_probe.scenarios.workloads.periodic_batches import Length, PeriodicTask, periodic_batches, periodic_rows
from wcet_probe.scenarios.workloads.puaut import mean_model, mpg123_pattern
from wcet_probe.traces.batches import OperationBatch, batches
from wcet_probe.traces.file import read_trace
from wcet_probe.traces.operations import TraceRow, heap_operations

_HOME = Path(__file__).parent / "recorded"
_RECORDED = MappingProxyType(
    {
        "sort": "sort of GNU coreutils 9.1 on 2,500 lines of eight words",
        "grep": "grep of GNU grep 3.8, (ab|cd)+e on the same lines",
        "ls": "ls -lR of GNU coreutils 9.1 on the documentation of a system",
        "perl": "perl 5.36 that counts the words of the same lines",
    }
)
"""Programs of a Linux distribution, recorded by ``wcet-probe record``, without times; 64 bits."""

_HOLDS: Mapping[str, Hold] = MappingProxyType({"": "periods", "-hold-steps": "steps"})
"""How the names of M06's workloads end, and what 30 to 50 are of then."""


@dataclass(frozen=True, slots=True)
class Workload:
    """A workload: where it is from, and ``rows(seed, allocations)``: at least so many, then all that is live is freed.

    ``own_length``: it is as long as it is, whatever number is asked for; what was recorded may leave blocks to the end.
    """

    name: str
    source: str
    rows: Callable[[int, int], Iterator[TraceRow]]
    own_length: bool = False


def _crespo(test: int) -> Callable[[int, int], Iterator[TraceRow]]:
    return lambda seed, most: periodic_rows(crespo_tasks(test, seed), seed, Length(allocations=most))


def _masmano(test: int, hold: Hold) -> Callable[[int, int], Iterator[TraceRow]]:
    return lambda seed, most: periodic_rows(masmano_tasks(test, seed, hold), seed, Length(allocations=most))


def _masmano_collected(period_steps: int) -> Callable[[int, int], Iterator[TraceRow]]:
    return lambda seed, most: periodic_rows(masmano_tasks(3, 0), seed, Length(allocations=most), period_steps or None)


def _lee(distribution: str, configuration: str) -> Callable[[int, int], Iterator[TraceRow]]:
    """L11's scenarios have the length that they have: every object allocated 100 times at most in three rounds."""
    return lambda seed, _: lee_scenario(distribution, CONFIGURATIONS[configuration], seed)


def _recorded(program: str) -> Callable[[int, int], Iterator[TraceRow]]:
    """A recorded trace has the length that it has, and no seed."""
    return lambda _seed, _allocations: read_trace(_HOME / f"{program}.parquet")


WORKLOADS: Mapping[str, Workload] = MappingProxyType(
    {
        workload.name: workload
        for workload in (
            Workload("mean", "P02 §3.3, the MEAN model", mean_model),
            *(
                Workload(f"{name}-{size}", f"H11 §V.A, {name}, {size}", rows, own_length=True)
                for (name, size), rows in PROGRAMS.items()
            ),
            *(
                Workload(f"recorded-{name}", f"recorded of {source}", _recorded(name), own_length=True)
                for name, source in _RECORDED.items()
            ),
            Workload("mpg123", "P02 §3.2, an audio player", mpg123_pattern),
            *(Workload(f"c06-test{n}", f"C06 §5, test {n}", _crespo(n)) for n in (1, 2, 3)),
            *(
                Workload(f"m06-test{n}{ending}", f"M06 §3.2, test {n}, held for 30 to 50 {hold}", _masmano(n, hold))
                for ending, hold in _HOLDS.items()
                for n in (1, 2, 3)
            ),
            *(
                Workload(f"m06-test4-{name}", f"M06 §3.2, test 4, freed {when}", _masmano_collected(period_steps))
                for period_steps in collection_periods()
                for name, when in (
                    (f"every-{period_steps}", f"by a task every {period_steps:,} steps")
                    if period_steps
                    else ("immediate", "at once"),
                )
            ),
            *(
                Workload(f"l11-{kind}-{sizes}", f"L11 §V, {how} over time, {sizes}", _lee(kind, sizes))
                for kind, how in DISTRIBUTIONS.items()
                for sizes in CONFIGURATIONS
            ),
        )
    }
)
"""All workloads; see the modules for what a paper leaves open and how it is chosen here."""


_Periodic = tuple[tuple[PeriodicTask, ...], int, Length, int | None]


def _crespo_steps(test: int) -> Callable[..., _Periodic]:
    return lambda seed, steps: (crespo_tasks(test, seed), seed, Length(steps=steps), None)


def _masmano_test(test: int, hold: Hold) -> Callable[..., _Periodic]:
    return lambda seed, allocations: (masmano_tasks(test, seed, hold), seed, Length(allocations=allocations), None)


def _collected(hold: Hold) -> Callable[..., _Periodic]:
    """M06 §3, test 4: one set of test 3's tasks; a task of a period of its own frees, or of 0 they do so themselves."""
    return lambda seed, allocations, period_steps: (
        masmano_tasks(3, 0, hold),
        seed,
        Length(allocations=allocations),
        period_steps or None,
    )


def _single(allocations: int) -> _Periodic:
    """M06 figure 2's one task: period 15, held for 60 units of time; three blocks of 100 bytes, which is our choice."""
    return (PeriodicTask(15, 3, 100, 0, (60, 60)),), 0, Length(allocations=allocations), None


_PERIODIC: Mapping[str, Callable[..., _Periodic]] = MappingProxyType(
    {
        **{f"c06-test{n}-steps": _crespo_steps(n) for n in (1, 2, 3)},
        **{f"m06-test{n}{ending}": _masmano_test(n, hold) for ending, hold in _HOLDS.items() for n in (1, 2, 3)},
        **{f"m06-test4{ending}": _collected(hold) for ending, hold in _HOLDS.items()},
        "m06-figure2": _single,
    }
)
"""What papers ask for with arguments of their own, or at a length that is generated as columns."""
_OBJECTS, _OVERLAPPED, _WANDERING = "l11-objects", "l11-overlapped", "l11-wandering"


def papers_rows(name: str, arguments: tuple[int, ...]) -> Iterator[TraceRow]:
    """The operations of the workload ``name`` with ``arguments``: seed and number of allocations, or a paper's own."""
    if name in _PERIODIC:
        return periodic_rows(*_PERIODIC[name](*arguments))
    if name == _OBJECTS:
        kind, seed, most, *sizes = arguments
        return lee_scenario(tuple(DISTRIBUTIONS)[kind], tuple(sizes), seed, most)
    if name == _OVERLAPPED:
        seed, apart_steps, *sizes = arguments
        return lee_scenario("o", tuple(sizes), seed, apart_steps=apart_steps)
    if name == _WANDERING:
        seed, *sizes = arguments
        return wandering(tuple(sizes), seed)
    seed, allocations = arguments
    return workload(name).rows(seed, allocations)


def papers_batches(name: str, arguments: tuple[int, ...]) -> Iterator[OperationBatch]:
    """The operations of `papers_rows` as columns."""
    if name in _PERIODIC:
        return periodic_batches(*_PERIODIC[name](*arguments))
    return batches(heap_operations(papers_rows(name, arguments)))


def workload(name: str) -> Workload:
    """The workload ``name``.

    Raises:
        UsageError: there is none.
    """
    if name not in WORKLOADS:
        raise unknown_name("workload", name, WORKLOADS)
    return WORKLOADS[name]
