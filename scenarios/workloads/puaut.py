"""The two workloads of P02: the MEAN model of §3.3, and a pattern after §3.2's description of mpg123.

I. Puaut, Real-time performance of dynamic memory allocation algorithms, publication interne 1429, IRISA, 2002.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from wcet_probe.scenarios.workloads.clock import Releases
from wcet_probe.traces.operations import TraceRow

_MEAN_BYTES = 150
_MEAN_LIFETIME = 150.0
"""In mean times between two allocations: the paper's ratio of lifetime to inter-arrival."""

_SETUP_BYTES = (4096, 2048, 1024, 512, 512, 64, 32, 32)
_PAIR_BYTES = (96, 190)
_FRAME = 1.6
_LIFETIME = 1.5
"""In milliseconds: two allocations a frame are 0.8 ms apart, as the paper has it, and each lives for 1.5 ms."""


def mean_model(seed: int, allocations: int) -> Iterator[TraceRow]:
    """The MEAN model: size, lifetime and time to the next allocation are uniform from zero to twice their mean.

    A size of zero is asked for as one byte. What is live at the end is freed.
    """
    draw, releases, now = random.Random(seed), Releases(), 0.0  # noqa: S311  (a workload, no secret)
    for _ in range(allocations):
        now += draw.uniform(0, 2)
        yield from releases.due(now)
        yield releases.hold(max(1, draw.randint(0, 2 * _MEAN_BYTES)), now + draw.uniform(0, 2 * _MEAN_LIFETIME))
    yield from releases.rest()


def mpg123_pattern(_seed: int, allocations: int) -> Iterator[TraceRow]:
    """An audio player: structures of its own for as long as it runs, and two blocks of fixed size for each frame.

    The paper gives the means only: 143 bytes, 1.5 ms of life, 0.8 ms from one allocation to the next. Which sizes they
    are is this model's choice: 96 and 190 bytes a frame, and eight structures from 32 to 4,096 bytes, none of a size
    near those of a frame, as the paper says of quick-fit that a frame's page is cut and given back each time.
    """
    releases, own = Releases(), len(_SETUP_BYTES)
    yield from (releases.hold(size_bytes, float("inf")) for size_bytes in _SETUP_BYTES)
    for number in range(allocations - own):
        frame, which = divmod(number, len(_PAIR_BYTES))
        now = frame * _FRAME + which * _FRAME / len(_PAIR_BYTES)
        yield from releases.due(now)
        yield releases.hold(_PAIR_BYTES[which], now + _LIFETIME)
    yield from releases.rest()
