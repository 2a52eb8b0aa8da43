# SPDX-License-Identifier: 0BSD
"""How often a loop repeats that goes on until two places are equal, of which nobody knows what they hold.

A pointer that goes up to an end, say. On each edge that enters, both are one unknown value and numbers, so that their
difference ``D`` is in a range. Each way round adds the constant ``d`` to one and keeps the other, and a round that
begins with the difference ``v`` does not go back: it is followed, from places of just this difference. In round ``k``
the difference is ``D - k * d``, modulo 2**32; where ``d`` divides ``D - v``, round ``(D - v) // d`` does not go back.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from itertools import islice

from wcet_probe.certificate.flow.counters import base_of, ends_of_rounds
from wcet_probe.certificate.flow.walk import Covered
from wcet_probe.certificate.kernel.records import LoopRecord
from wcet_probe.certificate.values.numbers import TOP, WORD, Value, join, subtract
from wcet_probe.certificate.values.state import Place, State, joined

_MOST_PAIRS = 16
"""So many pairs of places are followed."""


def most_by_difference(covered: Covered, loop: LoopRecord) -> int | None:
    """Most executions of a loop's header for each entry; None where no difference of two places shows one.

    Args:
        covered: the graph.
        loop: one of its loops.
    """
    entering = [edge for edge in loop.entering if edge in covered.coverage.taken]
    if loop.header == covered.graph.entry or not entering:
        return None
    held = unknown_places(covered, loop.header)
    bases = {place: base_of(place, one) for place, one in held.items()}
    ends = ends_of_rounds(covered, loop, bases) or []
    steps = constant_steps(ends, bases)
    staying = [place for place in bases if steps and all(end.read(place) == bases[place] for end in ends)]
    first = [list(_entered(covered, edge)) for edge in entering] if staying else []
    pairs = ((p, q, [_difference(ways, p, q) for ways in first]) for p in steps for q in staying)
    for p, q, differences in islice((one for one in pairs if all(map(_is_known, one[2]))), _MOST_PAIRS):
        base = base_of(p, join(held[p], held[q]))
        found = [
            max(count for count in counts if count is not None)
            for last in (0, steps[p])
            if None not in (counts := [_rounds(one, last, steps[p]) for one in differences])
            and ends_of_rounds(covered, loop, {**bases, p: base, q: base._replace(low=last, high=last)}) == []
        ]
        if found:
            return min(found)
    return None


def unknown_places(covered: Covered, node: str) -> dict[Place, Value]:
    """What places hold where ``node`` begins, but constants and addresses of the stack."""
    known = State(dict(covered.invariants[node]))
    places = dict.fromkeys((*known.values, *covered.code.isa.REGISTERS))
    held = {place: known.read(place) for place in places}
    return {place: one for place, one in held.items() if not one.is_constant and one.base != "stack"}


def constant_steps(ends: Sequence[State], bases: Mapping[Place, Value]) -> dict[Place, int]:
    """The places to which each way round adds one constant other than 0, and it."""
    found = {place: ends[0].read(place).low for place in bases} if ends else {}
    return {
        place: step
        for place, step in found.items()
        if step and all(end.read(place) == bases[place]._replace(low=step, high=step) for end in ends)
    }


def _entered(covered: Covered, name: str) -> Iterator[State]:
    """What holds where an edge is taken, by what one place held where the node began that it leads from; for each."""
    source = next(edge.source for edge in covered.graph.edges if edge.name == name)
    for place, one in unknown_places(covered, source).items():
        machine = covered.machine()
        start = State({**covered.invariants[source], place: base_of(place, one)})
        found = [state for edge, state in covered.leave(machine, source, start) if edge and edge.name == name]
        if found and not machine.is_refuted:
            yield reduce(joined, found)


def _difference(ways: Sequence[State], p: Place, q: Place) -> Value:
    """What ``q`` is more than ``p``, by what is known of it in one of the states."""
    found = [subtract(one.read(q), one.read(p)) for one in ways]
    return min((one for one in found if one.is_plain), key=lambda one: one.high - one.low, default=TOP)


def _is_known(difference: Value) -> bool:
    return difference.high - difference.low + difference.stride < WORD


def _rounds(difference: Value, last: int, step: int) -> int | None:
    """Most executions of the header from a difference on; None where it may miss the ``last`` one."""
    sign = 1 if step > 0 else -1
    low, high = sorted(sign * (end - last) for end in (difference.low, difference.high))
    least, most = low % WORD, low % WORD + high - low
    return most // abs(step) + 1 if most < WORD and least % step == difference.stride % step == 0 else None
