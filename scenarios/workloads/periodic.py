"""Periodic tasks that ask for memory: the tests of C06 §5 and of M06 §3.

Time goes in steps; a task is released at each multiple of its period. C06 gives no periods: harmonic ones are ten times
powers of two up to 320 here, others uniform from 10 to 320. M06's hold, "in the period range of [30..50]", is 30 to 50
periods of the task here, or 30 to 50 steps as another reading (`Hold`); `reproduce M06 --figure F5S` has both.
"""

from __future__ import annotations

import random
from typing import Literal

from wcet_probe.scenarios.workloads.periodic_batches import PeriodicTask

_LEAST_PERIOD, _MOST_PERIOD = 10, 320
_DEVIATION = 0.1
"""Standard deviation of M06's request sizes over their mean; the paper says "a constant factor" and no number."""

Hold = Literal["periods", "steps"]
"""What M06's 30 to 50 are of."""
Draw = random.Random


def _crespo(
    draw: Draw, size: tuple[int, int], memory: tuple[int, int], hold: tuple[int, int], *, harmonic: bool
) -> PeriodicTask:
    period = _LEAST_PERIOD << draw.randrange(6) if harmonic else draw.randint(_LEAST_PERIOD, _MOST_PERIOD)
    size_bytes, most = draw.randint(*size), draw.randint(*memory)
    return PeriodicTask(period, max(1, most // size_bytes), size_bytes, 0, (hold[0] * period, hold[1] * period))


def _masmano(draw: Draw, memory: tuple[int, int], hold: Hold) -> PeriodicTask:
    period, requests, most = draw.randint(10, 150), draw.randint(2, 5), draw.randint(*memory)
    size_bytes, unit_steps = max(1, most // requests), period if hold == "periods" else 1
    return PeriodicTask(period, requests, size_bytes, _DEVIATION * size_bytes, (30 * unit_steps, 50 * unit_steps))


def crespo_tasks(test: int, seed: int) -> tuple[PeriodicTask, ...]:
    """The tasks of test 1, 2 or 3 of C06 §5, drawn with ``seed``."""
    draw = random.Random(seed)  # noqa: S311  (a workload, no secret)
    count, size, memory, hold, harmonic = {
        1: (100, (16, 4096), (8, 2048), (4, 12), True),
        2: (200, (100, 8192), (200, 16384), (4, 6), False),
        3: (50, (1024, 10240), (2048, 20480), (1, 16), False),
    }[test]
    return tuple(_crespo(draw, size, memory, hold, harmonic=harmonic) for _ in range(count))


def masmano_tasks(test: int, seed: int, hold: Hold = "periods") -> tuple[PeriodicTask, ...]:
    """The three to ten tasks of test 1, 2 or 3 of M06 §3.2, drawn with ``seed``; ``hold`` changes nothing else."""
    draw = random.Random(seed)  # noqa: S311  (a workload, no secret)
    memory = {1: (2048, 20480), 2: (8, 1024), 3: (8, 20480)}[test]
    return tuple(_masmano(draw, memory, hold) for _ in range(draw.randint(3, 10)))


def collection_periods() -> tuple[int, ...]:
    """Test 4's periods of the task that frees, in steps: 0 (none), then from the shortest to ten times the longest."""
    periods = sorted(task.period_steps for task in masmano_tasks(3, 0))
    return (0, periods[0], periods[-1], 4 * periods[-1], 10 * periods[-1])
