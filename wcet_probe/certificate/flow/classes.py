# SPDX-License-Identifier: 0BSD
"""How often a loop repeats that ends by one bit of a word, whatever the word is: it is followed in each class of words.

A number is shifted until its highest bit comes to a place that is tested, or a pointer steps on until it is aligned.
The words that a register may hold before the loop are split into *classes*: by the highest bit that is set, or by the
remainder modulo 16. In each of them the way to the loop is followed, and then the loop round by round.

*Soundness:* an execution that enters the loop has come through the node where the classes are told, and has not come to
the loop since it did so last. The register held a word of some class then, whose rounds are counted.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import reduce
from itertools import pairwise

from wcet_probe.certificate.flow.walk import Covered, follow
from wcet_probe.certificate.kernel.contexts import context_of
from wcet_probe.certificate.kernel.records import LoopRecord
from wcet_probe.certificate.kernel.shapes import natural_loop, reached
from wcet_probe.certificate.values.numbers import WORD, Value, number, refined, unknown
from wcet_probe.certificate.values.state import Place, State, joined

_MOST_INSTRUCTIONS = 60_000
"""So many are executed at most, each for each state, in all loops of one graph; for each half of what is left."""
_MOST_ROUNDS = 64
"""A loop that may take more of them does not end by a bit of one word, or of two."""
_REMAINDERS = 16


class Classes:
    """Answers about loops of one graph.

    Args:
        covered: the graph.
    """

    def __init__(self, covered: Covered) -> None:
        self._covered, self._left, self._least = covered, _MOST_INSTRUCTIONS, 0

    def limit(self, loop: LoopRecord) -> bool:
        """Whether classes show that the header is executed ``loop.most`` + 1 times at most for each entry."""
        nodes = self._nodes(loop) if loop.most < _MOST_ROUNDS else ()
        self._least = self._left // 2
        return any(self._ends(loop, node, states) for node in nodes for states in self._partitions(node))

    def _nodes(self, loop: LoopRecord) -> list[str]:
        """Where classes may be told: before each entry, and between any two, where functions begin or next to it."""
        graph, taken = self._covered.graph, self._covered.taken
        sources = dict.fromkeys(edge.source for edge in taken.get(loop.header, ()) if edge.name in loop.entering)
        if loop.header == graph.entry or not sources:
            return []
        context = context_of(loop.header)
        begins = {
            edge.target: None
            for edge in graph.edges
            if context_of(edge.source) != context_of(edge.target) and context.startswith(context_of(edge.target))
        }
        nodes = dict.fromkeys((*sources, *reversed(begins), graph.entry))
        return [node for node in nodes if self._is_between(node, loop, sources)]

    def _is_between(self, node: str, loop: LoopRecord, sources: Collection[str]) -> bool:
        """Whether neither from the entry nor from the loop control comes to ``sources`` without passing ``node``."""
        graph, coverage = self._covered.graph, self._covered.coverage

        def following(one: str) -> list[str]:
            targets = [edge.target for edge in graph.leading[one] if edge.name in coverage.taken]
            return [target for target in targets if target != node]

        starts = {graph.entry, loop.header} - {node}
        return node != loop.header and reached(starts, following).isdisjoint({*sources} - {node})

    def _partitions(self, node: str) -> Iterator[Iterator[State]]:
        """What may hold where ``node`` begins, each time in other classes."""
        start = State(dict(self._covered.invariants[node]))
        registers = [one for one in self._covered.code.isa.REGISTERS if _is_open(start.read(one))]
        for one in registers:
            yield _by_highest_bit(start, (one,))
            if start.read(one).size == WORD:
                yield _by_remainder(start, one)
        for pair in pairwise(registers):
            yield _by_highest_bit(start, pair)
            yield _by_highest_bit(start, pair[::-1])

    def _ends(self, loop: LoopRecord, node: str, states: Iterator[State]) -> bool:
        """Whether in none of ``states`` of ``node`` the header is executed more often than it may be."""
        covered = self._covered
        inside = natural_loop(loop.header, loop.back, covered.arriving)
        before = covered.graph.nodes.keys() - inside - {node}
        for state in states:
            if self._left < self._least:
                return False
            machine, count, most = covered.machine(), 0, self._left
            found = follow(covered, machine, node, state, before, covered.invariants, stop=loop.header)
            self._left = most - machine.executed
            while here := [found[name] for name in (loop.back if count else loop.entering) if name in found]:
                count += 1
                if count > loop.most + 1 or self._left < self._least:
                    return False
                now = reduce(joined, here)
                found = follow(covered, machine, loop.header, now, inside, covered.invariants, stop=loop.header)
                self._left = most - machine.executed
            if machine.is_refuted:
                return False
        return self._left >= self._least


def _is_open(value: Value) -> bool:
    return value.is_plain and not value.is_constant


def _by_highest_bit(start: State, places: Sequence[Place]) -> Iterator[State]:
    """``start``, by the sign of what the first place holds and by the highest of its other bits that is set.

    Where none of these is set, by those of the next place.
    """
    place, *others = places
    for first in (0, WORD // 2):
        for one in (*(number(first + (1 << bit), first + (2 << bit) - 1) for bit in range(31)), number(first)):
            known = refined(start.read(place), "==", one, is_signed=False)
            if known is not None:
                state = start.copy()
                state.values[place] = known
                yield from _by_highest_bit(state, others) if others and one.low == one.high == first else (state,)


def _by_remainder(start: State, place: Place) -> Iterator[State]:
    """``start``, in which a place may hold any word, by its remainder."""
    for remainder in range(_REMAINDERS):
        state, base = start.copy(), unknown(start.read(place)).base
        state.values[place] = number(remainder, WORD - 1, _REMAINDERS)._replace(base=base)
        yield state
