# SPDX-License-Identifier: 0BSD
"""How often a loop repeats that goes on until two places are equal, of which nobody knows what they hold.

A pointer that goes up to an end, say. Where the loop is entered both are one unknown value and a constant, so that
their difference is known (but of values that were shifted, ``>`` in a name). Each way round adds the constant ``d`` to
one and keeps the other, and goes back only if the two, and constants, are found to be different: if the difference at
the header is not ``v``. It begins with ``D`` and is ``D - k * d`` in round ``k``, modulo 2**32; so where ``d`` divides
``D - v``, round ``(D - v) // d`` does not go back.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce

from wcet_probe.certificate.flow.counters import base_of, ends_of_rounds
from wcet_probe.certificate.flow.walk import Covered
from wcet_probe.certificate.kernel.records import LoopRecord
from wcet_probe.certificate.values.numbers import WORD, Value
from wcet_probe.certificate.values.state import Place, State, joined

_DIFFERENT = frozenset({"!=", "<", ">"})
_Tested = tuple[Place, Place, int]
"""Two places, and a difference of the second one less the first with which the loop does not go back."""


def most_by_difference(covered: Covered, loop: LoopRecord) -> int | None:
    """Most executions of a loop's header for each entry; None where no difference of two places shows one.

    Args:
        covered: the graph.
        loop: one of its loops.
    """
    if loop.header == covered.graph.entry:
        return None
    bases = _bases(covered, loop.header)
    ends = ends_of_rounds(covered, loop, bases)
    entered = [_entered(covered, edge) for edge in loop.entering if edge in covered.coverage.taken]
    first = [state for state in entered if state is not None]
    if not ends or not first or len(first) < len(entered):
        return None
    tested = set.intersection(*({*_tested(state, bases)} for state in ends))
    counts = [_rounds(one, first, ends, bases) for one in sorted(tested, key=str)]
    return min((count for count in counts if count is not None), default=None)


def _bases(covered: Covered, node: str) -> dict[Place, Value]:
    """Places of which nobody knows what they hold where ``node`` begins, and that it is no address of the stack."""
    known = State(dict(covered.invariants[node]))
    places = dict.fromkeys((*known.values, *covered.code.isa.REGISTERS))
    held = {place: known.read(place) for place in places}
    return {place: one for place, one in held.items() if not one.is_constant and one.base != "stack"}


def _entered(covered: Covered, name: str) -> State | None:
    """What holds where an edge is taken, by what places held where the node began that it leads from."""
    source = next(edge.source for edge in covered.graph.edges if edge.name == name)
    bases = _bases(covered, source)
    start = {**covered.invariants[source], **{place: base_of(place, one) for place, one in bases.items()}}
    machine = covered.machine()
    found = [state for edge, state in covered.leave(machine, source, State(start)) if edge and edge.name == name]
    return reduce(joined, found) if found and machine.found_escape <= covered.coverage.escapes else None


def _tested(state: State, bases: Mapping[Place, Value]) -> Iterator[_Tested]:
    """What flags say at the end of a round: of which places, by what they held where it began."""
    places = {base_of(place, one).base: place for place, one in bases.items()}
    for flags in state.flags.values():
        left, right = flags.left_value, flags.right_value
        one, other = places.get(left.base), places.get(right.base)
        is_told = any(relation in _DIFFERENT for relation, _ in flags.holding) and not flags.is_result
        if is_told and one is not None and other is not None and left.is_constant and right.is_constant:
            yield one, other, (left.low - right.low) % WORD
            yield other, one, (right.low - left.low) % WORD


def _rounds(tested: _Tested, first: Sequence[State], ends: Sequence[State], bases: Mapping[Place, Value]) -> int | None:
    """Most executions of the header where the first of two places moves by a constant and the second one stays."""
    moving, staying, last = tested
    steps, stayed = [state.read(moving) for state in ends], base_of(staying, bases[staying])
    step = steps[0].low
    is_moved = all(one == base_of(moving, bases[moving])._replace(low=step, high=step) for one in steps)
    if not is_moved or not step or any(state.read(staying) != stayed for state in ends):
        return None
    most = 0
    for state in first:
        begin, end = state.read(moving), state.read(staying)
        is_known = begin.base == end.base and begin.is_constant and end.is_constant and ">" not in begin.base
        left = (end.low - begin.low - last) * (1 if step > 0 else -1) % WORD
        if not is_known or left % abs(step):
            return None
        most = max(most, left // abs(step) + 1)
    return most
