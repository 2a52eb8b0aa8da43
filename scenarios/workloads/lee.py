"""The twenty scenarios of L11 §V: four distributions of objects over time, five configurations of eight sizes.

J. Lee, J. Yi, Improving memory efficiency of dynamic memory allocators for real-time embedded systems, ETRI Journal
33(2), 2011. A task has one object size, and is active in intervals; within one it allocates and frees objects at
random, so that 100 (P_i,max of the paper) are live at the interval's peak, in its middle, and none at its ends.

Open in the paper, and so here: a task allocates 150 objects and frees 50 up to the peak, at random times, each time any
of those that it holds, and the other way round behind it. An interval is 1,000 steps long, and each task has one in
each of three rounds. *td_s*: all tasks have the same intervals and peaks. *td_n*: one task at a time. *td_o*: an
interval begins when a quarter of the one before is over. *td_r*: intervals begin anywhere in their round of 2,000
steps, are of any length from 200 steps on that fits, and have 25 to 100 objects at their peak, in one round 100. Tasks
take turns in random order.

The paper calls td_o's intervals partly overlapped and td_r purely random, and no more. `wandering` is the other reading
of td_r: no intervals; each task goes to one random level of objects after the other, a task drawn at random each time.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from types import MappingProxyType

from wcet_probe.traces.operations import TraceRow

CONFIGURATIONS = MappingProxyType(
    {
        "oc2l": (131072, 65536, 32768, 16384, 8192, 4096, 2048, 1024),
        "oc2s": (1024, 512, 256, 128, 64, 32, 16, 8),
        "ocl": (91936, 80176, 64032, 49472, 35432, 19008, 17424, 5184),
        "ocs": (2952, 1978, 1040, 996, 384, 192, 40, 10),
        "ocmix": (80176, 65536, 32768, 19008, 2952, 1024, 40, 10),
    }
)
"""Table 1: sizes in bytes, falling."""
DISTRIBUTIONS = MappingProxyType(
    {"s": "synchronized", "n": "non-overlapped", "o": "overlapped", "r": "random"},
)
"""Figure 5: td_s, td_n, td_o, td_r."""
MOST_OBJECTS = 100
"""P_i,max of §V."""
_ROUNDS, _INTERVAL_STEPS, _LEVELS = 3, 1000, 10


@dataclass(frozen=True, slots=True)
class _Interval:
    """A task is active from ``start`` to ``end``, in steps; ``objects`` are live at ``peak``."""

    start: int
    peak: int
    end: int
    objects: int


def lee_scenario(
    distribution: str,
    sizes: tuple[int, ...],
    seed: int,
    most_objects: int = MOST_OBJECTS,
    apart_steps: int = _INTERVAL_STEPS // 4,
) -> Iterator[TraceRow]:
    """The operations of a scenario.

    Parameters:
        distribution: ``s``, ``n``, ``o`` or ``r``.
        sizes: of the objects in bytes, one for each task.
        seed: of all that is random.
        most_objects: P_i,max.
        apart_steps: of td_o, from the beginning of an interval to that of the next; an interval has 1,000.
    """
    draw = random.Random(seed)  # noqa: S311  (a workload, no secret)
    events: list[tuple[int, float, int, bool]] = []
    for task, intervals in enumerate(_intervals(distribution, len(sizes), draw, most_objects, apart_steps)):
        for one in intervals:
            climb, descent = _climb(draw, one.objects), [not up for up in reversed(_climb(draw, one.objects))]
            for moves, first, last in ((climb, one.start, one.peak), (descent, one.peak + 1, one.end)):
                times = sorted((draw.randint(first, last), draw.random()) for _ in moves)
                events += [(*time, task, up) for time, up in zip(times, moves, strict=True)]
    yield from _moved(((task, up) for _, _, task, up in sorted(events)), sizes, draw)


def wandering(sizes: tuple[int, ...], seed: int, most_objects: int = MOST_OBJECTS) -> Iterator[TraceRow]:
    """Each task goes to ten random levels, the highest among them, then to none; tasks move in random order."""
    draw = random.Random(seed)  # noqa: S311  (a workload, no secret)
    ways = []
    for _ in sizes:
        levels = [draw.randint(0, most_objects) for _ in range(_LEVELS - 1)] + [most_objects]
        draw.shuffle(levels)
        ways.append([*levels, 0])
    moves: list[list[bool]] = []
    for way in ways:
        steps = [abs(b - a) * [b > a] for a, b in pairwise([0, *way])]
        moves.append([up for part in steps for up in part][::-1])

    def turns() -> Iterator[tuple[int, bool]]:
        going = [task for task, left in enumerate(moves) if left]
        while going:
            task = draw.choice(going)
            yield task, moves[task].pop()
            if not moves[task]:
                going.remove(task)

    yield from _moved(turns(), sizes, draw)


def _moved(turns: Iterable[tuple[int, bool]], sizes: tuple[int, ...], draw: random.Random) -> Iterator[TraceRow]:
    """Allocate an object of the task, or free any of those that it holds."""
    held: list[list[int]] = [[] for _ in sizes]
    block = 0
    for task, up in turns:
        if up:
            block += 1
            held[task].append(block)
            yield TraceRow("malloc", block, sizes[task])
        else:
            yield TraceRow("free", held[task].pop(draw.randrange(len(held[task]))))


def _climb(draw: random.Random, most: int) -> list[bool]:
    """Moves up and down at random, from none to ``most`` and never above: half of them are taken back on the way."""
    ups, downs, level = most + most // 2, most // 2, 0
    moves = []
    while ups + downs:
        up = level == 0 or (level < most and draw.randrange(ups + downs) < ups)
        moves.append(up)
        ups, downs, level = (ups - 1, downs, level + 1) if up else (ups, downs - 1, level - 1)
    return moves


def _intervals(
    distribution: str, tasks: int, draw: random.Random, most: int, apart_steps: int
) -> list[list[_Interval]]:
    """Those of each task, in order."""
    turns = [draw.sample(range(tasks), tasks) for _ in range(_ROUNDS)]
    full = [draw.randrange(_ROUNDS) for _ in range(tasks)]
    length = _INTERVAL_STEPS
    apart = {"s": 0, "n": length + 1, "o": apart_steps, "r": 0}[distribution]
    span = (tasks - 1) * apart + length + 1 if distribution != "r" else 2 * length
    found: list[list[_Interval]] = [[] for _ in range(tasks)]
    for number, order in enumerate(turns):
        for task in range(tasks):
            start = number * span + order.index(task) * apart
            steps, objects = length, most
            if distribution == "r":
                steps = draw.randint(length // 5, span - 2)
                start += draw.randint(0, span - steps - 1)
                objects = most if number == full[task] else draw.randint(max(1, most // 4), most)
            found[task].append(_Interval(start, start + steps // 2, start + steps, objects))
    return found
