"""Chains of free chunks in the tries of dlmalloc28: which designs of a state are dearest, and how they are laid out.

A design says how many nodes each walk of a call meets; built, it is sizes of chunks. How the heap is shared out among
the chains of one call is a small optimisation, done here by counting what a visit of each kind costs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Protocol, TypeVar

from wcet_probe.errors import HeapTooSmallError
from wcet_probe.model.scenario import ScenarioPlan
from wcet_probe.scenarios.dlmalloc28.heap import HEADER_BYTES, MINIMUM_BYTES, Layout, Trie
from wcet_probe.scenarios.families import HeapRequest

SEARCH, LEFTMOST, TO_LEAF, INSERT = 20, 13, 8, 9
_LINE = 60
"""About what a visited node costs: instructions by kind of walk, and, with a cache, cycles of its line. They only rank
designs; what counts is measured."""
DRIVER = "nodes visited on paths down tries"
RING_AT, CHILDREN_AT, PARENT_AT = 8, 16, 24
"""Offsets of members of a chunk."""
FIRST_EXPONENT, LAST_EXPONENT = 8, 23
"""The tries above branch on all bits of a size: no heap is large enough for many nodes of theirs."""

_ALIGNED_FENCE_BYTES = 32
_MOST_TRIALS = 400
_CANDIDATES = 6


@dataclass(frozen=True, slots=True)
class Chains:
    """Free chunks and a call: what a design has become.

    Attributes:
        variant: which design.
        chains: sizes of free chunks, in the order in which they are freed.
        splits: of each chunk the offset of the member that begins a cache line, where nodes lie across two.
        measured: the size that is requested, or the sizes of the three neighbours of a deallocation, the first and
            the last of which are the first two chunks of ``chains``.
        facts: the prediction.
    """

    variant: str
    chains: tuple[int, ...]
    splits: tuple[int, ...]
    measured: tuple[int, ...]
    facts: Mapping[str, int]


class Design(Protocol):
    """How many nodes each walk of a call meets."""

    def worth(self, line: int, across: int) -> int:
        """Estimated cost, if a line costs ``line`` and the words of a node, but for its links, lie ``across`` lines."""


_Design = TypeVar("_Design", bound=Design)


def all_tries() -> Iterator[Trie]:
    """All tries that designs use."""
    return (Trie(e, half) for e in range(FIRST_EXPONENT, LAST_EXPONENT + 1) for half in (0, 1))


def powers(least: int, end: int) -> Iterator[int]:
    """The least value, then powers of two: paths that turn right late, so that sizes stay small."""
    value = least
    while value < end:
        yield value
        value = 1 << value.bit_length()


def inserted_splits(trie: Trie, count: int) -> tuple[int, ...]:
    """Where chunks that an insertion meets are split: each node is asked for its size and for a child.

    Below the end of all bits there is no child: what is inserted joins the ring of a node of its size.
    """
    return (CHILDREN_AT,) * min(count, trie.levels) + (RING_AT,) * (count - trie.levels)


def alignments(request: HeapRequest) -> tuple[int | None, ...]:
    """Bytes of a cache line if each node is to lie across two; None if nodes may lie anywhere."""
    line = request.data_line_bytes
    return (None,) if line is None or line <= MINIMUM_BYTES else (None, line)


def room_and_fence(request: HeapRequest, line: int | None) -> tuple[int, int]:
    """Bytes for chunks, and what the fence of each takes."""
    fence = MINIMUM_BYTES if line is None else _ALIGNED_FENCE_BYTES
    return request.heap_bytes - HEADER_BYTES, fence


def dearest_plans(
    request: HeapRequest,
    designs: Callable[[int, int], Iterator[_Design]],
    build: Callable[[_Design, int | None], Iterator[Chains]],
    plan: Callable[[Chains, Layout, list[int], int | None], ScenarioPlan],
) -> tuple[ScenarioPlan, ...]:
    """The plans of the dearest designs that fit, of each alignment of nodes; a heap without any is refused."""
    plans = [
        plan(*found, line)
        for line in alignments(request)
        for found in _dearest(request, list(designs(*room_and_fence(request, line))), build, line)
    ]
    return at_least_one(request, _numbered(plans))


def _numbered(plans: Sequence[ScenarioPlan]) -> list[ScenarioPlan]:
    """``plans`` with variants that tell them apart: of several of one name those behind the first have a number."""
    named: dict[str, list[ScenarioPlan]] = {}
    found = []
    for plan in plans:
        named.setdefault(plan.variant, []).append(plan)
        number = len(named[plan.variant])
        found.append(plan if number == 1 else replace(plan, variant=f"{plan.variant}, design {number}"))
    return found


def _dearest(
    request: HeapRequest,
    designs: Sequence[_Design],
    build: Callable[[_Design, int | None], Iterator[Chains]],
    line: int | None,
) -> Iterator[tuple[Chains, Layout, list[int]]]:
    """The first designs that fit into the heap, by estimated instructions and, with a cache, by estimated cycles."""
    seen = set[tuple[int, ...]]()
    across = 1 if line is None else 2
    for cycles in (0, _LINE) if request.data_line_bytes else (0,):
        worths = [design.worth(cycles, across) for design in designs]
        ranked = sorted(range(len(designs)), key=worths.__getitem__, reverse=True)
        built = (build(designs[number], line) for number in ranked[:_MOST_TRIALS])
        yield from islice(_that_fit(request, built, line, seen), _CANDIDATES)


def _that_fit(
    request: HeapRequest, built: Iterator[Iterator[Chains]], line: int | None, seen: set[tuple[int, ...]]
) -> Iterator[tuple[Chains, Layout, list[int]]]:
    """Of each design the first that fits, if it is new."""
    for variants in built:
        for chains in variants:
            layout = Layout(request.heap_bytes)
            try:
                slots = lay_out(layout, chains, line)
            except HeapTooSmallError:
                continue
            if chains.chains not in seen:
                seen.add(chains.chains)
                yield chains, layout, slots
            break


def lay_out(layout: Layout, chains: Chains, line: int | None) -> list[int]:
    """Slots of the chains' chunks, and last of the chunk between neighbours where there is one."""
    slots, own = list[int](), list[int]()
    for number, (size, split) in enumerate(zip(chains.chains, chains.splits, strict=True)):
        joined = len(chains.measured) > 1 and number == 1
        if joined:
            own.append(layout.used(chains.measured[1]))
        elif line is not None:
            layout.align(-split, line)
        slots.append(layout.used(size))
        if len(chains.measured) == 1 or number > 0:
            layout.used(MINIMUM_BYTES)
    return slots + own


def at_least_one(request: HeapRequest, plans: list[ScenarioPlan]) -> tuple[ScenarioPlan, ...]:
    """The plans; a heap without any is refused."""
    if not plans:
        message = f"a heap of {request.heap_bytes} bytes cannot hold the scenario's state; give a larger --heap."
        raise HeapTooSmallError(message)
    return tuple(plans)


def variant_name(variant: str, line: int | None) -> str:
    """The variant, with how nodes lie in cache lines where that is prescribed."""
    return variant if line is None else f"{variant}, nodes across two lines"
