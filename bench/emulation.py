"""Speed of the observing machine: guest instructions per second, as ratios to the bare engine in the same run.

One fixed workload per target: a seeded replay of malloc and free on TLSF, at least 10^8 guest instructions. All modes
of a target run in turn, round after round, on the same machine object or its twin; the median of the rounds counts.

Run it with ``make bench``; options: ``--target``, ``--rounds``, ``--operations``.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.table import Table

from wcet_probe.build.compilation import build_image
from wcet_probe.catalog.lookup import load_allocator, load_target, target_names
from wcet_probe.config import cache_dir, load_config
from wcet_probe.emu.machine import Machine
from wcet_probe.isa.decode import decode
from wcet_probe.isa.timing import costs, with_timing_problems
from wcet_probe.model.instruction import Control, Instruction
from wcet_probe.model.scenario import Trace
from wcet_probe.model.target import CacheConfig, MemoryRange, Target, without_caches
from wcet_probe.model.watched_loop import WatchedLoop

HEAP_BYTES = 4 << 20
LIVE_BLOCKS = 512
LARGEST_BYTES = 2048
SEED = 1


def workload(operations: int) -> Trace:
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
            sizes.append(draw.randrange(1, LARGEST_BYTES))
        else:
            slot = live.pop(draw.randrange(len(live)))
            spare.append(slot)
            kinds.append(1)
            sizes.append(0)
        slots.append(slot)
    return Trace(tuple(kinds), tuple(slots), tuple(sizes), (0,) * operations, LIVE_BLOCKS)


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


def measure(target: Target, trace: Trace, rounds: int) -> tuple[int, dict[str, list[float]]]:
    """Guest instructions of one replay, and the seconds of each round by mode."""
    allocator = load_allocator("tlsf")
    image = build_image(allocator, target, "zig", cache_dir(load_config(Path.cwd())))
    instructions = with_timing_problems(decode(image), target)
    cached, bare = with_caches(target), without_caches(target)
    init = allocator.entry_points["init"]
    loops = backward_branches(instructions)
    modes: dict[str, tuple[Target, Sequence[WatchedLoop], Callable[[Machine], object]]] = {
        "bare engine": (bare, (), lambda machine: machine.replay(trace)),
        "loops": (bare, loops, lambda machine: machine.replay(trace)),
        "instructions": (bare, (), lambda machine: machine.replay_observed(trace, data=False)),
        "instructions, loops": (bare, loops, lambda machine: machine.replay_observed(trace, data=False)),
        "instructions of each operation": (bare, (), lambda machine: machine.replay_counted(trace)),
        "instructions, I-cache": (cached, (), lambda machine: machine.replay_observed(trace, data=False)),
        "instructions, I- and D-cache": (cached, (), lambda machine: machine.replay_observed(trace)),
        "instructions, I- and D-cache, loops": (cached, loops, lambda machine: machine.replay_observed(trace)),
    }
    seconds: dict[str, list[float]] = {mode: [] for mode in modes}
    executed = 0
    for _ in range(rounds):
        for mode, (core, watched, run) in modes.items():
            charged = costs(instructions, core)
            with Machine(image, core, instructions, charged, HEAP_BYTES, watched=watched) as machine:
                machine.call(init, machine.heap.base_address, HEAP_BYTES)
                start = time.process_time()
                run(machine)
                seconds[mode].append(time.process_time() - start)
                executed = max(executed, machine.observation().instructions)
    return executed, seconds


def main() -> None:
    """Print the table of each target."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--target", action="append", choices=target_names())
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--operations", type=int, default=1_300_000)
    options = parser.parse_args()
    trace = workload(options.operations)
    console = Console(width=100)
    for name in options.target or target_names():
        executed, seconds = measure(load_target(name), trace, options.rounds)
        medians = {mode: statistics.median(values) for mode, values in seconds.items()}
        table = Table(title=f"{name}: {executed:,} instructions, {options.operations:,} operations")
        for column in ("mode", "10⁶ instructions/s", "ratio to bare", "10⁶ operations/s"):
            table.add_column(column, justify="left" if column == "mode" else "right")
        for mode, median in medians.items():
            table.add_row(
                mode,
                f"{executed / median / 1e6:.0f}",
                f"{medians['bare engine'] / median:.2f}",
                f"{options.operations / median / 1e6:.2f}",
            )
        console.print(table)


if __name__ == "__main__":
    main()
