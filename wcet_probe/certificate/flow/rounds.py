# SPDX-License-Identifier: 0BSD
"""How often loops repeat by counters, and what a place then holds to which each round adds the same.

A pointer that goes through an array up to an end is in no range that one execution of the loop would keep. But in round
``k`` it is what it was where the loop was entered, and ``k`` steps more, and there are so many rounds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import reduce

from wcet_probe.certificate.flow.counters import base_of, ends_of_rounds, most_executions
from wcet_probe.certificate.flow.differences import constant_steps, most_by_difference, unknown_places
from wcet_probe.certificate.flow.walk import Covered
from wcet_probe.certificate.kernel.records import LoopRecord
from wcet_probe.certificate.values.numbers import Value, add, join, number
from wcet_probe.certificate.values.state import Place


def counts(covered: Covered, loop: LoopRecord) -> Iterator[int | None]:
    """Most executions of a loop's header for each entry, by each of the rules; None where one shows none."""
    yield most_executions(covered, loop)
    yield most_by_difference(covered, loop)


def ranges_in_rounds(covered: Covered, loops: Iterable[LoopRecord]) -> dict[str, dict[Place, Value]]:
    """By header, numbers that places are where it is executed, if that is less than what is said of them there.

    Args:
        covered: the graph.
        loops: of it.
    """
    found: dict[str, dict[Place, Value]] = {}
    for loop in loops:
        held = unknown_places(covered, loop.header)
        entered = [covered.coverage.taken[name] for name in loop.entering if name in covered.coverage.taken]
        bases = {place: base_of(place, one) for place, one in held.items()}
        steps = constant_steps(ends_of_rounds(covered, loop, bases) or [], bases) if entered else {}
        most = min((one for one in counts(covered, loop) if one is not None), default=0) if steps else 0
        for place, step in steps.items() if most and loop.header != covered.graph.entry else ():
            first, last = reduce(join, (state.read(place) for state in entered)), step * (most - 1)
            value = add(first, number(min(0, last), max(0, last), abs(step)))
            if value.is_number and value.high - value.low < held[place].high - held[place].low:
                found.setdefault(loop.header, {})[place] = value
    return found
