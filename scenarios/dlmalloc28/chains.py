"""Chains of free chunks in the tries of dlmalloc28: which designs of a state are dearest, and how they are laid out.

A design says how many nodes each walk of a call meets; built, it is sizes of chunks. How the heap is shared out among
the chains of one call is a small optimisation, done here by counting what a visit of each kind costs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Generic, Protocol, TypeVar

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
_CANDIDATES_IN_FEW_BYTES = 7
_BY_INSTRUCTIONS = 2
"""Of nodes across lines, beside those by cycles."""
_FEW_BYTES = 1 << 13
"""Up to this heap a node more or less is some per cent of the cost, and which one is dearest hangs on single lines."""


@dataclass(frozen=True, slots=True)
class Chains:
    """Free chunks and a call: what a design has become.

    Attributes:
        variant: which design.
        chains: sizes of free chunks, in the order in which they are freed.
        splits: of each chunk the offset of the member that begins a cache line, where nodes lie across two; None: it
            may lie anywhere.
        measured: the size that is requested, or the sizes of the three neighbours of a deallocation, the first and
            the last of which are the first two chunks of ``chains``.
        facts: the prediction.
        first: how many of the last chunks are freed before all others.
    """

    variant: str
    chains: tuple[int, ...]
    splits: tuple[int | None, ...]
    measured: tuple[int, ...]
    facts: Mapping[str, int]
    first: int = 0


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


def leaf_splits(length: int, leaves: int = 1) -> tuple[int | None, ...]:
    """Where nodes below one another on the way to a leaf are split, to which the ways of ``leaves`` removals lead.

    The parent of the first one changes, and that of each leaf, which is cut off; of the others children are asked for.
    """
    ends = {0, *range(length - leaves, length)}
    return tuple(PARENT_AT if at in ends else None for at in range(length))


def alignments(request: HeapRequest) -> tuple[int | None, ...]:
    """Bytes of a cache line if each node is to lie across two; None if nodes may lie anywhere."""
    line = request.data_line_bytes
    return (None,) if line is None or line <= MINIMUM_BYTES else (None, line)


def room_and_fence(request: HeapRequest, line: int | None) -> tuple[int, int]:
    """Bytes for chunks, and what the fence of each takes."""
    fence = MINIMUM_BYTES if line is None else _ALIGNED_FENCE_BYTES
    return request.heap_bytes - HEADER_BYTES, fence


@dataclass(frozen=True, slots=True)
class Kind(Generic[_Design]):
    """Designs of one kind.

    Attributes:
        designs: all that may fit, from the bytes for chunks and what the fence of each takes.
        build: what a design becomes where nodes lie in lines of so many bytes, or anywhere: the dearest first.
        candidates: how many of the dearest are built.
    """

    designs: Callable[[int, int], Sequence[_Design]]
    build: Callable[[_Design, int | None], Iterator[Chains]]
    candidates: int


def dearest_plans(
    request: HeapRequest,
    kinds: Sequence[Kind[_Design]],
    plan: Callable[[Chains, Layout, list[int], int | None], ScenarioPlan],
) -> tuple[ScenarioPlan, ...]:
    """The plans of the dearest designs of each kind that fit, of each alignment of nodes.

    Raises:
        HeapTooSmallError: none fits.
    """
    plans = [
        plan(*found, line) for line in alignments(request) for kind in kinds for found in _dearest(request, kind, line)
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


def _dearest(request: HeapRequest, kind: Kind[_Design], line: int | None) -> Iterator[tuple[Chains, Layout, list[int]]]:
    """The first designs that fit into the heap, by estimated instructions and, of nodes across lines, by cycles first.

    On cores that wait less for a line than estimated the designs with most instructions are dearest, across lines, too.
    """
    designs = kind.designs(*room_and_fence(request, line))
    few = line is not None and request.heap_bytes <= _FEW_BYTES
    most = _CANDIDATES_IN_FEW_BYTES if few else kind.candidates
    seen = set[tuple[int, ...]]()
    for cycles, across, count in ((0, 1, most),) if line is None else ((_LINE, 2, most), (0, 2, _BY_INSTRUCTIONS)):
        worths = [design.worth(cycles, across) for design in designs]
        ranked = sorted(range(len(designs)), key=worths.__getitem__, reverse=True)
        built = (kind.build(designs[number], line) for number in ranked[:_MOST_TRIALS])
        yield from islice(_that_fit(request, built, line, seen), count)


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
        elif line is not None and split is not None:
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
