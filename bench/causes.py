"""What the pages of the papers give as causes of claims that do not hold, measured again: one thing changed each time.

``python -m bench.causes`` names them; ``python -m bench.causes bands --target mpc603e`` measures one of them on a core
without its caches (``placement`` with them). ``tests/bench/test_causes.py`` runs the short ones.
"""

from __future__ import annotations

import argparse
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from types import MappingProxyType

from wcet_probe.answer.papers.exhibit import rounded
from wcet_probe.answer.papers.laboratory import Laboratory
from wcet_probe.answer.papers.measuring import measure
from wcet_probe.answer.papers.points import Point, Settings, allocator_of
from wcet_probe.answer.papers.store import ResultStore
from wcet_probe.answer.workloads.budgeting import greedy, profile
from wcet_probe.answer.workloads.workload_run import Placement, WorkloadRequest, run_batches, run_workload
from wcet_probe.build.program import load_program
from wcet_probe.catalog.lookup import load_target, target_names
from wcet_probe.cli.run import DEFAULT_COMPILER
from wcet_probe.config import cache_dir, load_config
from wcet_probe.emu.machine import Machine
from wcet_probe.model.allocator import Allocator
from wcet_probe.model.scenario import InitialCache, Trace
from wcet_probe.model.target import without_caches
from wcet_probe.scenarios.workloads.lee import CONFIGURATIONS, MOST_OBJECTS
from wcet_probe.scenarios.workloads.named import papers_batches, papers_rows
from wcet_probe.scenarios.workloads.periodic_batches import Length, PeriodicTask, periodic_batches
from wcet_probe.traces.operations import HeapOperation

_MIB = 1 << 20
Lines = Iterator[str]


def _allocator(name: str, paper: str, *values: tuple[str, int]) -> Allocator:
    return allocator_of(Point("run", name, paper, values, 0, ""))


def states(settings: Settings) -> Lines:
    """P02: worst calls of buddies by the child that is followed; of fast-fit and quick-fit in dearest states too."""
    for role, kind, name, values in (
        ("alloc", "worst", "buddy-binary", ()),
        ("alloc", "worst", "buddy-fibonacci", ()),
        ("alloc", "worst", "buddy-fibonacci", (("follow", 1),)),
        ("alloc", "worst", "quick-fit", ()),
        ("alloc", "dearest", "quick-fit", ()),
        ("alloc", "worst", "fast-fit", ()),
        ("alloc", "dearest", "fast-fit", ()),
        ("free", "worst", "fast-fit", ()),
        ("free", "dearest", "fast-fit", ()),
        ("free", "worst", "btree-best-fit", ()),
    ):
        found = measure(Point(kind, name, "p02", values, 4 * _MIB, role), settings)
        what = " ".join([name, *(f"{key}={value}" for key, value in values)])
        state = "the paper's state, or the dearest" if kind == "worst" else "the dearest state"
        yield f"{role} of {what}, {state}: {found['instructions']:,} instructions, {found['cycles']:,} cycles"


def base(settings: Settings) -> Lines:
    """P02: observed worst over mean malloc of first-fit and best-fit, and with 6,000 cycles more in each call."""
    laboratory = Laboratory("p02", quick=False, store=ResultStore(settings.cache_dir / "papers", settings))
    for name in ("first-fit", "best-fit"):
        for workload in ("mpg123", "mean"):
            found = laboratory.run(name, workload, (0, 100_000)).distributions["malloc", "cycles"]
            ratios = (Fraction(found.most + more) / (found.mean + more) for more in (0, 6000))
            yield f"{name}, {workload}: worst / mean " + ", with 6,000 cycles more ".join(rounded(r, 2) for r in ratios)


def small_blocks(settings: Settings, allocations: int = 5000) -> Lines:
    """M06: mean free of blocks of 20 to 50 bytes only, which wait in dlmalloc27's fast bins."""
    periods = range(10, 88, 13)
    tasks = tuple(
        PeriodicTask(period, 3, 20 + 6 * number, 2.0, (30 * period, 50 * period))
        for number, period in enumerate(periods)
    )
    for name in ("first-fit", "best-fit", "buddy-binary", "dlmalloc27", "half-fit", "tlsf"):
        request = WorkloadRequest(
            _allocator(name, "m06"), settings.target, 64 * _MIB, settings.compiler, settings.cache_dir
        )
        found = run_batches(request, periodic_batches(tasks, 0, Length(allocations=allocations))).distributions
        yield f"{name}: mean free {rounded(found['free', 'instructions'].mean)} instructions"


def bands(settings: Settings, allocations: int = 6000) -> Lines:
    """M06: instructions of TLSF's malloc in test 2 by what the heap shows of each call: split or not, small or not."""
    allocator = _allocator("tlsf", "m06")
    program = load_program(allocator, settings.target, settings.compiler, settings.cache_dir, 64 * _MIB)
    kinds: dict[tuple[str, str], Counter[int]] = defaultdict(Counter)
    with Machine(program.image, settings.target, program.instructions, program.costs, 64 * _MIB) as machine:
        machine.call(allocator.entry_points["init"], machine.heap.base_address, 64 * _MIB)
        batch = next(papers_batches("m06-test2", (0, allocations)))
        rows = zip(batch.frees.tolist(), batch.slots.tolist(), batch.sizes_bytes.tolist(), strict=True)
        for is_free, slot, size in rows:
            one = Trace((int(is_free),), (slot,), (size,), (0,), slot + 1)
            columns = machine.replay_operations(one, InitialCache.COLD)
            if not is_free:
                split = _is_free_behind(machine, int(columns.results[0]))
                key = ("split" if split else "whole", "small" if size <= 128 else "large")
                kinds[key][int(columns.instructions[0])] += 1
    for (cut, large), calls in sorted(kinds.items()):
        values = ", ".join(f"{count} times {value}" for value, count in sorted(calls.items()))
        yield f"{large}, {cut}: {calls.total():,} calls, {min(calls)} to {max(calls)} instructions: {values}"


def _is_free_behind(machine: Machine, payload: int) -> bool:
    """Whether the block behind is free: then this one was cut from it, as two free ones are never neighbours."""
    word_bytes, flags, free_bit = 4, 3, 1
    size_bytes = machine.memory.read_word(payload - word_bytes) & ~flags
    return bool(machine.memory.read_word(payload + size_bytes + word_bytes) & free_bit)


def placement(settings: Settings) -> Lines:
    """H11: CAMA's memory for patricia-small under other readings of §V.A's placement, and per small block."""
    target = load_target(settings.target.name)
    own = Settings(target, settings.compiler, settings.cache_dir)
    first: Placement = "first"
    readings: tuple[tuple[str, int | None, Placement], ...] = (
        ("tlsf", None, first),
        *(("cama", line, how) for line in (64, 32) for how in ("in-turn", "consecutive")),
    )
    for name, line, how in readings:
        values = (("line-bytes", line),) if line else ()
        found = measure(Point("run", name, "h11", values, 16 * _MIB, "patricia-small", (0, 0), how), own)
        what = f"cama, lines of {line} bytes, {how}" if line else name
        needed, taken = found["peak_live_bytes"], found["peak_reached_bytes"]
        yield f"patricia-small, {what}: {needed:,} bytes needed, {taken:,} taken"
    for line in (32, 64):
        for size in (16, 20, 32):
            request = WorkloadRequest(
                *(_allocator("cama", "h11", ("line-bytes", line)), target, 16 * _MIB, settings.compiler),
                *(settings.cache_dir, "consecutive"),
            )
            blocks = [HeapOperation(is_free=False, slot=at, size_bytes=size, row=at) for at in range(3000)]
            reached = run_workload(request, blocks).peak_reached_bytes
            yield f"3,000 blocks of {size} bytes, lines of {line}: {rounded(Fraction(reached, 3000))} bytes a block"


def headers(settings: Settings) -> Lines:
    """L11: what buckets save under td_s with two DJGPP allocators, by where their headers lie."""
    for sizes in ("oc2l", "oc2s"):
        arguments = (0, 0, MOST_OBJECTS, *CONFIGURATIONS[sizes])
        chosen = greedy(profile(lambda: papers_rows("l11-objects", arguments)))  # noqa: B023  (called at once)
        values = tuple(sorted(chosen.parameters.items()))
        for name in ("djgpp-sbrk", "djgpp-quarters"):
            for apart, where in enumerate(("in 2^b", "apart")):
                place = (("header-apart", apart),)
                plain, budgeted = (
                    measure(Point("run", who, "l11", own, 128 * _MIB, "l11-objects", arguments), settings)
                    for who, own in ((name, place), (f"budgeted:{name}", (*values, *place)))
                )
                ratio = Fraction(budgeted["peak_reached_bytes"], plain["peak_reached_bytes"])
                yield f"{sizes}, {name}, headers {where}: {rounded(100 * (1 - ratio), 2)} %"


CAUSES: MappingProxyType[str, Callable[[Settings], Lines]] = MappingProxyType(
    {
        "states": states,
        "base": base,
        "small-blocks": small_blocks,
        "bands": bands,
        "placement": placement,
        "headers": headers,
    }
)


def main() -> None:
    """Measure one cause, or name them all."""
    parser = argparse.ArgumentParser(prog="python -m bench.causes", description=__doc__)
    parser.add_argument("cause", nargs="?", choices=[*CAUSES])
    parser.add_argument("--target", default="cortex-m4", choices=[*target_names()])
    asked = parser.parse_args()
    if asked.cause is None:
        print("\n".join(f"{name:14}{cause.__doc__}" for name, cause in CAUSES.items()))
        return
    home = cache_dir(load_config(Path.cwd()))
    settings = Settings(without_caches(load_target(asked.target)), DEFAULT_COMPILER, home)
    for line in CAUSES[asked.cause](settings):
        print(line, flush=True)


if __name__ == "__main__":
    main()
