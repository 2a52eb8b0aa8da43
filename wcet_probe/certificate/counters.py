# SPDX-License-Identifier: 0BSD
"""How often a loop repeats, from what the invariants say of a counter and how each round changes it.

A round is followed from the header to the back edges with the counter as a symbol. If each way round adds between ``a``
and ``b`` to it, both positive, and the header's invariant holds it between ``low`` and ``high`` so that it cannot wrap
around into that range, then the header is executed at most ``(high - first) // a + 1`` times for each entry, ``first``
being the least that is brought in. Likewise downwards; and where each way round shifts a counter that is not 0 to the
right by ``k`` bits, at most ``floor(log2(first)) // k + 1`` times. If it is on the back edges that the counter is held
in such a range, these are taken at most ``(high - low) // a + 1`` times, and the header is executed once more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce

from wcet_probe.certificate.numbers import ANY, TAINTED, TOP, WORD, Value, join
from wcet_probe.certificate.records import LoopRecord
from wcet_probe.certificate.shapes import natural_loop
from wcet_probe.certificate.state import Place, State
from wcet_probe.certificate.walk import Covered, follow


def most_executions(covered: Covered, loop: LoopRecord) -> int | None:
    """Most executions of a loop's header for each entry; None where no counter shows one.

    Args:
        covered: the graph.
        loop: one of its loops.
    """
    header, taken, invariants = loop.header, covered.coverage.taken, covered.invariants
    known = invariants[header]
    going_back = [taken[name] for name in loop.back if name in taken]
    limits = {
        place: reduce(join, (state.read(place) for state in going_back))
        for place in (dict.fromkeys((*known, *covered.code.isa.REGISTERS)) if going_back else ())
        if _at(known, place).is_plain and not _at(known, place).is_constant
    }
    counters = {place: _at(known, place) for place, value in limits.items() if _is_limited(value)}
    counters |= {place: value for place, value in known.items() if _is_limited(value) and not value.is_constant}
    if going_back and not counters:
        return None
    inside = natural_loop(header, loop.back, covered.arriving)
    bases = {
        node: {place: value for place, value in invariants[node].items() if value.base == "stack"} for node in inside
    }

    def ends_of(counters: Mapping[Place, Value]) -> list[State] | None:
        """What holds where a round ends, with what ``counters`` held where it began as bases."""
        start = {**known, **{place: Value(_name(place, value), 0, 0, 0) for place, value in counters.items()}}
        machine = covered.machine()
        found = follow(covered, machine, header, State(start), inside, bases, stop=header)
        is_followed = machine.found_escape <= covered.coverage.escapes
        return [found[name] for name in loop.back if name in found] if is_followed else None

    first = [taken[name] for name in loop.entering if name in taken]
    is_first = header == covered.graph.entry or not first

    def count_of(counters: Mapping[Place, Value], ends: Sequence[State]) -> int | None:
        counts = []
        for place, value in counters.items():
            initial = value if is_first else reduce(join, (state.read(place) for state in first))
            counts.append(_rounds(place, value, _moved_into(initial, value), ends))
            counts.append(_times_back(place, value, limits.get(place, TOP), ends))
        return min((count for count in counts if count is not None), default=None)

    ends = ends_of(counters)
    if not ends:
        return None if ends is None else 1
    count = count_of(counters, ends)
    changed = {
        place: value
        for place, value in counters.items()
        if any(state.read(place) != Value(_name(place, value), 0, 0, 0) for state in ends)
    }
    if count is not None or len(changed) == len(counters):
        return count
    # A step that no round changes is a number of its range rather than a base that nothing can be added to.
    again = ends_of(changed)
    return count_of(changed, again) if again else None


def _at(known: Mapping[Place, Value], place: Place) -> Value:
    return known.get(place, TOP if isinstance(place, str) else ANY)


def _is_limited(value: Value) -> bool:
    return value.is_plain and value not in {ANY, TOP}


def _name(place: Place, value: Value) -> str:
    """The base that stands for what ``place`` held where a round began: ``value``."""
    return f"{TAINTED if value.may_be_stack else '@'}{place}"


def _moved_into(initial: Value, at_header: Value) -> Value:
    """What a counter begins with, by the numbers that it is known by at the header."""
    for by in (0, WORD, -WORD) if initial.is_plain else ():
        low, high = initial.low + by, initial.high + by
        if at_header.low <= low and high <= at_header.high:
            return Value(initial.base, low, high, initial.stride)
    return at_header


def _times_back(place: Place, at_header: Value, going_back: Value, ends: Sequence[State]) -> int | None:
    """Most executions of the header where the counter is held in a range on each back edge."""
    values = [state.read(place) for state in ends]
    if not going_back.is_plain or not all(value.base == _name(place, at_header) for value in values):
        return None
    least, most = min(value.low for value in values), max(value.high for value in values)
    low, high = going_back.low, going_back.high
    if least >= 1 and high + most - WORD < low:
        return (high - low) // least + 2
    if most <= -1 and low + least + WORD > high:
        return (high - low) // -most + 2
    return None


def _rounds(place: Place, at_header: Value, initial: Value, ends: Sequence[State]) -> int | None:
    values = [state.read(place) for state in ends]
    name = _name(place, at_header)
    low, high = at_header.low, at_header.high
    if all(value.base == name for value in values):
        least, most = min(value.low for value in values), max(value.high for value in values)
        if least >= 1 and high + most - WORD < low:
            return max(0, high - max(low, initial.low)) // least + 1
        if most <= -1 and low + least + WORD > high:
            return max(0, min(high, initial.high) - low) // -most + 1
        return None
    if low >= 1 and all(value.base.startswith(f"{name}>") for value in values):
        bits = min(int(value.base.rpartition(">")[2]) for value in values)
        return (min(high, initial.high).bit_length() - 1) // bits + 1
    return None
