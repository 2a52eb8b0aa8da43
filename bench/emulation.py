"""Speed of the observing machine: guest instructions per second, as ratios to the bare engine in the same run.

One fixed workload per target: a seeded replay of malloc and free on TLSF, some 5·10^7 guest instructions. All modes
of a target run in turn, round after round, on the same machine object or its twin; the median of the rounds counts.
Beside each mode stands the same one in translated code; what the compiler took is told where it had to be asked. Last
comes the loop of a search: a small heap put back, one malloc, its instructions kept. Below stand other simulators on
the same trace, see `bench.peers`. Without ``--target`` all targets are measured; a table of them in Markdown, each mode
on the engine (before) and in translated code (after), stands at the end.

Run it with ``make bench``; options: ``--target``, ``--mode``, ``--rounds``, ``--operations``, ``--calls``,
``--qemu-plugin``.
"""

from __future__ import annotations

import argparse
import random
import resource
import statistics
import time
from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from bench.peers import Peer, peers
from wcet_probe.build.program import Program, load_program
from wcet_probe.catalog.lookup import load_allocator, load_target, target_names
from wcet_probe.compiled.library import compiled_library
from wcet_probe.config import cache_dir, load_config
from wcet_probe.emu.compiled import Detail
from wcet_probe.emu.machine import Machine
from wcet_probe.isa.timing import costs
from wcet_probe.model.instruction import Control, Instruction
from wcet_probe.model.scenario import Trace
from wcet_probe.model.target import CacheConfig, MemoryRange, Target, without_caches
from wcet_probe.model.watched_loop import WatchedLoop

HEAP_BYTES = 4 << 20
SMALL_HEAP_BYTES = 4096
TRANSLATED = ", translated"
LIVE_BLOCKS = 512
LARGEST_BYTES = 2048
SEED = 1


def workload(operations: int, largest_bytes: int = LARGEST_BYTES) -> Trace:
    """Allocations and deallocations in random order, at most ``LIVE_BLOCKS`` live."""
    draw = random.Random(SEED)  # noqa: S311  (a workload, no secret)
    kinds, slots, sizes = [], [], []
    live: list[int] = []
    spare = list(range(LIVE_BLOCKS))
    for _ in range(operations):
        if spare and (not live or draw.random() < 0.5):
            slot = spare.pop()
            live.append(slot)
            kinds.append(0)
            sizes.append(draw.randrange(1, largest_bytes))
        else:
            slot = live.pop(draw.randrange(len(live)))
            spare.append(slot)
            kinds.append(1)
            sizes.append(0)
        slots.append(slot)
    columns = (array("I", column) for column in (kinds, slots, sizes, bytes(4 * operations)))
    return Trace(*columns, LIVE_BLOCKS)


def with_caches(target: Target) -> Target:
    """``target`` with the caches of an MPC603e where it has none, so that every target simulates caches."""
    donor = load_target("mpc603e")

    def choose(own: CacheConfig | None, other: CacheConfig | None) -> CacheConfig | None:
        return own or other

    return replace(target, icache=choose(target.icache, donor.icache), dcache=choose(target.dcache, donor.dcache))


def backward_branches(instructions: Sequence[Instruction]) -> tuple[WatchedLoop, ...]:
    """Each direct backward branch as a loop that control falls into from above, to have something to watch."""
    return tuple(
        WatchedLoop(f"{branch.address:#x}", start, (above.address,), (MemoryRange(start, branch.address - start + 1),))
        for branch in instructions
        for above in instructions
        if branch.control in {Control.BRANCH, Control.CONDITIONAL_BRANCH}
        and (start := branch.branch_target or 0) == above.address + above.size_bytes
        and start <= branch.address
    )


def measure(
    target: Target, trace: Trace, rounds: int, chosen: Sequence[str] = ()
) -> tuple[int, dict[str, list[float]], dict[str, float]]:
    """Guest instructions of one replay, the seconds of each round by mode, and of the compiler by what was made."""
    folder = cache_dir(load_config(Path.cwd()))
    program = load_program(load_allocator("tlsf"), target, "zig", folder)
    cached, bare = (on(program, core) for core in (with_caches(target), without_caches(target)))
    loops = backward_branches(program.instructions)

    def bare_replay(machine: Machine) -> object:
        return machine.replay(trace)

    def counting(machine: Machine) -> object:
        return machine.replay_observed(trace, data=False)

    def all_of_it(machine: Machine) -> object:
        return machine.replay_observed(trace)

    nothing, fetches, data = Detail.NOTHING, Detail.FETCHES, Detail.DATA
    modes: dict[str, tuple[Program, Sequence[WatchedLoop], Detail, Callable[[Machine], object]]] = {
        "bare engine": (bare, (), nothing, bare_replay),
        "loops": (bare, loops, nothing.told, bare_replay),
        "instructions": (bare, (), fetches, counting),
        "instructions, loops": (bare, loops, fetches.told, counting),
        "instructions of each operation": (bare, (), fetches, lambda machine: machine.replay_counted(trace)),
        "instructions, I-cache": (cached, (), fetches, counting),
        "instructions, I- and D-cache": (cached, (), data, all_of_it),
        "instructions, I- and D-cache, loops": (cached, loops, data, all_of_it),
    }
    modes = {mode: row for mode, row in modes.items() if not chosen or mode in chosen}
    compiler: dict[str, float] = {}
    for ready, _, detail, _ in modes.values():
        title = f"{'without' if ready is bare else 'with'} caches, {detail}"
        start = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        compiled_library(ready, detail, folder)
        compiler[title] = compiler.get(title, 0.0) + resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - start
    seconds: dict[str, list[float]] = {mode + engine: [] for mode in modes for engine in ("", TRANSLATED)}
    executed = 0
    for _ in range(rounds):
        for mode, (ready, watched, _, run) in modes.items():
            for engine in ("", TRANSLATED):
                with machine_of(ready, HEAP_BYTES, folder if engine else None, watched) as machine:
                    start = time.process_time()
                    run(machine)
                    seconds[mode + engine].append(time.process_time() - start)
                    executed = max(executed, machine.observation().instructions)
    return executed, seconds, compiler


def on(program: Program, target: Target) -> Program:
    """``program`` on another core of its kind."""
    return replace(program, target=target, costs=costs(program.instructions, target))


def machine_of(
    program: Program, heap_bytes: int, libraries: Path | None, watched: Sequence[WatchedLoop] = ()
) -> Machine:
    """A machine with an initialised heap, with translated code where there is a folder of ``libraries``."""

    def supply(detail: Detail, _: int) -> Path | None:
        return compiled_library(program, detail, libraries) if libraries else None

    machine = Machine(
        program.image,
        program.target,
        program.instructions,
        program.costs,
        heap_bytes,
        watched=watched,
        translations=supply,
    )
    machine.call(program.allocator.entry_points["init"], machine.heap.base_address, heap_bytes)
    return machine


@dataclass(frozen=True, slots=True)
class Searched:
    """Calls in a second of one malloc on a heap of 4 KiB that is put back before each.

    Attributes:
        native: all in one native loop.
        one_by_one: each asked for from Python, in translated code.
        engine: each asked for from Python, on Unicorn, which runs in a thread of its own to hear interrupts.
    """

    native: float
    one_by_one: float
    engine: float


def search_loop(target: Target, calls: int) -> Searched:
    """The loop of a search, in the three ways that there are."""
    folder = cache_dir(load_config(Path.cwd()))
    program = load_program(load_allocator("tlsf"), without_caches(target), "zig", folder)
    malloc = program.allocator.entry_points["malloc"]
    with machine_of(program, SMALL_HEAP_BYTES, folder) as machine:
        machine.replay(workload(60, largest_bytes=100))
        sizes = 1 + np.arange(calls, dtype=np.uint32).reshape(-1, 1) % 600
        with machine.calls_from_here(malloc) as from_here:
            native = rate_of(calls, lambda: from_here.count(sizes))
            several = sizes[: max(1, calls // 20), 0].tolist()
            one_by_one = rate_of(len(several), lambda: [from_here.count_one(size) for size in several])
        before = machine.memory.snapshot()
        few = sizes[: max(1, calls // 1000), 0].tolist()

        def on_engine() -> None:
            for size in few:
                machine.memory.restore(before)
                machine.count(malloc, (size,))

        return Searched(native, one_by_one, rate_of(len(few), on_engine))


def rate_of(calls: int, run: Callable[[], object]) -> float:
    """Calls in a second of CPU time."""
    start = time.process_time()
    run()
    return calls / (time.process_time() - start)


_COUNTING, _CACHES, _BARE = "instructions", "instructions, I- and D-cache", "bare engine"
_COLUMNS = {
    "bare": (_BARE,),
    "executing": (_BARE + TRANSLATED,),
    "counting, before": (_COUNTING,),
    "after": (_COUNTING + TRANSLATED,),
    "by bare": (_COUNTING + TRANSLATED, _BARE),
    "I+D, before": (_CACHES,),
    "after ": (_CACHES + TRANSLATED,),
    "by before": (_CACHES + TRANSLATED, _CACHES),
}
"""Of the table of all targets: a rate by its mode, or one by another."""


def summary(rates: Mapping[str, Mapping[str, float]], others: Mapping[str, Sequence[Peer]]) -> str:
    """A table in Markdown of all targets, in 10^6 guest instructions a second.

    Parameters:
        rates: by target and mode; a column without all of its modes is empty.
        others: the other simulators on each target, in one order.
    """
    names = [peer.name for peer in next(iter(others.values()), ())]
    lines = ["| 10^6 instructions/s | " + " | ".join([*map(str.strip, _COLUMNS), *names]) + " |"]
    lines.append("|---|" + "--:|" * (len(_COLUMNS) + len(names)))
    for target, found in rates.items():
        cells = []
        for mode, *by in _COLUMNS.values():
            if mode not in found or not found.keys() >= {*by}:
                cells.append("")
            else:
                cells.append(f"{found[mode] / found[by[0]]:.1f}" if by else f"{found[mode]:,.0f}")
        lines.append(f"| {target} | " + " | ".join([*cells, *(peer.rate for peer in others[target])]) + " |")
    return "\n".join(lines)


def main() -> None:
    """Print the table of each target, and one of all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--target", action="append", choices=target_names())
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--mode", action="append", help="measure this row only")
    parser.add_argument("--operations", type=int, default=650_000)
    parser.add_argument("--calls", type=int, default=1_000_000)
    parser.add_argument("--qemu-plugin", type=Path, help="qemu's libcache.so, where it is not in its usual folder")
    options = parser.parse_args()
    trace = workload(options.operations)
    console = Console(width=100)
    rates: dict[str, dict[str, float]] = {}
    others: dict[str, Sequence[Peer]] = {}
    for name in options.target or target_names():
        target = load_target(name)
        executed, seconds, compiler = measure(target, trace, options.rounds, options.mode or ())
        medians = {mode: statistics.median(values) for mode, values in seconds.items()}
        rates[name] = {mode: executed / median / 1e6 for mode, median in medians.items()}
        table = Table(title=f"{name}: {executed:,} instructions, {options.operations:,} operations")
        for column in ("mode", "10⁶ instructions/s", "ratio to bare", "10⁶ operations/s"):
            table.add_column(column, justify="left" if column == "mode" else "right")
        for mode, median in medians.items():
            table.add_row(
                mode,
                f"{executed / median / 1e6:.0f}",
                f"{medians['bare engine'] / median:.2f}" if "bare engine" in medians else "",
                f"{options.operations / median / 1e6:.2f}",
            )
        console.print(table)
        made = ", ".join(f"{what}: {took:.1f} s" for what, took in compiler.items() if took)
        console.print(f"compiled: {made or 'nothing, all of it was there'}")
        searched = search_loop(target, options.calls)
        program = load_program(load_allocator("tlsf"), target, "zig", cache_dir(load_config(Path.cwd())))
        others[name] = peers(on(program, with_caches(target)), trace, executed, options.qemu_plugin)
        for peer in others[name]:
            console.print(f"{peer.name}: {peer.rate}{'' if peer.why_not else ' 10⁶ instructions/s'}")
        console.print(
            f"malloc on a heap put back, calls/s: {searched.native:,.0f} in a native loop, {searched.one_by_one:,.0f} "
            f"one by one from Python, {searched.engine:,.0f} so on Unicorn"
        )
    print(f"\n{summary(rates, others)}")


if __name__ == "__main__":
    main()
