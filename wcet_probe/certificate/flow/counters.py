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

from wcet_probe.certificate.flow.walk import Covered, follow
from wcet_probe.certificate.kernel.records import LoopRecord
from wcet_probe.certificate.kernel.shapes import natural_loop
from wcet_probe.certificate.values.numbers import ANY, TAINTED, TOP, WORD, Value, join
from wcet_probe.certificate.values.state import Place, State


def most_executions(covered: Covered, loop: LoopRecord) -> int | None:
    """Most executions of a loop's header for each entry; None where no counter shows one.

    Args:
        covered: the graph.
        loop: one of its loops.
    """
    taken, known = covered.coverage.taken, State(dict(covered.invariants[loop.header]))
    going_back = [taken[name] for name in loop.back if name in taken]
    first = [taken[name] for name in loop.entering if name in taken]
    if not going_back:
        return 1
    limits = {
        place: reduce(join, (state.read(place) for state in going_back))
        for place in dict.fromkeys((*known.values, *covered.code.isa.REGISTERS))
    }
    here = {place: known.read(place) for place in limits}
    counters = {
        place: value
        for place, value in here.items()
        if value.is_plain and not value.is_constant and (_is_limited(value) or _is_limited(limits[place]))
    }
    while counters:
        bases = {place: base_of(place, value) for place, value in counters.items()}
        ends = ends_of_rounds(covered, loop, bases)
        if not ends:
            return None if ends is None else 1
        counts: list[int | None] = []
        for place, value in counters.items():
            is_first = loop.header == covered.graph.entry or not first
            initial = value if is_first else reduce(join, (state.read(place) for state in first))
            counts.append(_executions(place, value, _moved_into(initial, value), limits[place], ends))
        if any(count is not None for count in counts):
            return min(count for count in counts if count is not None)
        # A step that no round changes is a number of its range rather than a base that nothing can be added to.
        changed = {p: one for p, one in counters.items() if any(state.read(p) != bases[p] for state in ends)}
        counters = changed if len(changed) < len(counters) else {}
    return None


def ends_of_rounds(covered: Covered, loop: LoopRecord, first: Mapping[Place, Value]) -> list[State] | None:
    """What holds where a round ends in whose beginning ``first`` holds besides; None where nobody knows."""
    inside, machine = natural_loop(loop.header, loop.back, covered.arriving), covered.machine()
    bases = {
        node: {place: value for place, value in covered.invariants[node].items() if value.base == "stack"}
        for node in inside
    }
    start = State({**covered.invariants[loop.header], **first})
    found = follow(covered, machine, loop.header, start, inside, bases, stop=loop.header)
    if machine.is_refuted:
        return None
    return [found[name] for name in loop.back if name in found]


def _is_limited(value: Value) -> bool:
    return value.is_plain and value not in {ANY, TOP}


def base_of(place: Place, value: Value) -> Value:
    """What stands for what ``place`` held where a round began: ``value``."""
    return Value(f"{TAINTED if value.may_be_stack else '@'}{place}", 0, 0, 0)


def _moved_into(initial: Value, at_header: Value) -> Value:
    """What a counter begins with, by the numbers that it is known by at the header."""
    for by in (0, WORD, -WORD) if initial.is_plain else ():
        low, high = initial.low + by, initial.high + by
        if at_header.low <= low and high <= at_header.high:
            return Value(initial.base, low, high, initial.stride)
    return at_header


def _executions(place: Place, at_header: Value, initial: Value, going_back: Value, ends: Sequence[State]) -> int | None:
    """Most executions of the header by a counter; None where it shows none.

    Args:
        place: of the counter.
        at_header: what it is known to be there.
        initial: what it begins with.
        going_back: what it is known to be on back edges.
        ends: what holds where a round ends.
    """
    values = [state.read(place) for state in ends]
    name = base_of(place, at_header).base
    if all(value.base == name for value in values):
        least, most = min(value.low for value in values), max(value.high for value in values)
        # On the back edges it may be in a range that it does not begin in: then the header is executed once before.
        steps = _steps(at_header, initial, least, most), _steps(going_back, going_back, least, most)
        return min((more + count for more, count in enumerate(steps, 1) if count is not None), default=None)
    if at_header.low >= 1 and all(value.base.startswith(f"{name}>") for value in values):
        bits = min(int(value.base.rpartition(">")[2]) for value in values)
        return (min(at_header.high, initial.high).bit_length() - 1) // bits + 1
    return None


def _steps(within: Value, first: Value, least: int, most: int) -> int | None:
    """How often a number moves by ``least`` to ``most`` in a range, from ``first`` on; None where nothing tells."""
    low, high = within.low, within.high
    if within.is_plain and least >= 1 and high + most - WORD < low:
        return max(0, high - max(low, first.low)) // least
    if within.is_plain and most <= -1 and low + least + WORD > high:
        return max(0, min(high, first.high) - low) // -most
    return None
