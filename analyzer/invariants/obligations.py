"""Where an induction takes a lemma for granted: the loads and stores at which it leaves something out by it.

A lemma of which nothing is left out is not needed: the induction proves what it says. Of the others each place is told,
which is what there is to prove yet. Null is asked after once on each way: behind an access that followed a word, it is
no null any more.

Words: lemma, obligation (docs/explanation/glossary.md).

*Soundness:* by the first access, in the order of time, at which a lemma is false: all before it is as the induction
tells, and it is at a place that is told of that lemma. What was followed before was no null then, or that access would
have been the first.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import chain

from wcet_probe.analyzer.invariants.contents import NEAR_NULL, WORD_BITS, Contents, Part, Region
from wcet_probe.analyzer.invariants.operations import Moved, Operation
from wcet_probe.analyzer.invariants.situations import Followed, followed_words
from wcet_probe.analyzer.invariants.static_memory import StaticMemory
from wcet_probe.analyzer.values.states.state import State
from wcet_probe.analyzer.values.symbolic.term_table import Term

Place = tuple[int, int]
"""A load or a store: the number of its operation, and its own among `Operation.moved`."""


class Lemma(StrEnum):
    """What is taken for granted of the heap (`heap_words.LEMMAS` has the words)."""

    STORED = "stored-before-loaded"
    BLOCKS = "blocks-apart"
    OBJECTS = "objects-apart"
    NULL = "null-is-not-followed"
    FRONTIER = "frontier-in-its-area"


class FollowedWords:
    """What has been followed in the states of ``operations`` in which words are loaded, stored and carried on."""

    def __init__(self, operations: Sequence[Operation]) -> None:
        self._known: dict[int, tuple[State, Followed]] = {}  # the states are kept alive, as they are known by identity
        for one in operations:
            words = followed_words(one.values)
            before = list(chain.from_iterable(words[point][:-1] for point in sorted(one.values.states)))
            for moved in one.moved:
                self._tell(moved.transfer.state, before[moved.number])
            for edge, flow in one.values.edges.items():
                if edge.source in words:
                    self._tell(flow.state, words[edge.source][-1])

    def _tell(self, state: State, followed: Followed) -> None:
        _, known = self._known.get(id(state), (state, followed))
        self._known[id(state)] = state, known & followed

    def at(self, state: State, symbols: Collection[Term]) -> Followed:
        """Of ``symbols``, those that have been followed where ``state`` holds, each with the constant added to it."""
        _, followed = self._known.get(id(state), (state, frozenset()))
        return frozenset(one for one in followed if one[0] in symbols)


def is_by_null(part: Part, constant: int = 0) -> bool:
    """Whether all words of ``part`` are numbers that are near null, or are so with ``constant`` added."""
    if part.region is not Region.NUMBER:
        return False
    low, high = part.value.unsigned_range()
    moved = low + constant & (1 << WORD_BITS) - 1
    return moved + high - low < NEAR_NULL


def of_address(whole: Contents, moved: Moved, memory: StaticMemory) -> Iterator[Lemma]:
    """The lemmas that are needed of the access ``moved`` to the addresses ``whole``, or to the call's own block.

    One that goes to static data for sure, or to null, needs none but that it does not go to null; one at a distance
    from the block needs it where the block may be null.
    """
    is_own = moved.distance is not None
    followed = tuple(part for part in whole if not is_by_null(part))
    if len(followed) < len(whole) or (is_own and any(part.region is not Region.ARENA for part in whole)):
        yield Lemma.NULL
    if not is_own and memory.is_static(followed, moved.transfer.size_bytes):
        return
    yield Lemma.OBJECTS
    if not moved.transfer.is_store and (is_own or any(part.region is Region.ARENA for part in followed)):
        yield from (Lemma.STORED, Lemma.BLOCKS)


def by_lemma(needed: Mapping[Place, Collection[Lemma]]) -> Mapping[Lemma, frozenset[Place]]:
    """The places at which each lemma is needed; of one that is not needed nothing is told."""
    found = {lemma: frozenset(place for place, own in needed.items() if lemma in own) for lemma in Lemma}
    return {lemma: places for lemma, places in found.items() if places}
