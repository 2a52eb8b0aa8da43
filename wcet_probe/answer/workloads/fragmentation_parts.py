"""The two parts of fragmentation (C06 §5): what blocks take beyond what was asked for, and what lies between blocks.

What a block of a size takes (header, rounding, alignment) is measured: a few such blocks, one behind the other in a
fresh heap, and the usual distance between neighbours. So it needs to know nothing of the allocator's layout. A rest
that was too small to be split off counts as lying between blocks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from statistics import median_low

from wcet_probe.build.program import Program
from wcet_probe.emu.machine import Machine
from wcet_probe.errors import UsageError
from wcet_probe.model.scenario import InitialCache, Trace

BLOCKS_OF_A_SIZE = 9
"""That are put one behind the other to see what one of them takes."""


@dataclass(frozen=True, slots=True)
class FragmentationParts:
    """At the moment at which most bytes were live.

    Attributes:
        live_bytes: as they were asked for.
        internal_bytes: what their blocks take beyond that.
        external_bytes: the rest of what was reached until then: free blocks, and rests that were not split off.
    """

    live_bytes: int
    internal_bytes: int
    external_bytes: int

    @property
    def internal(self) -> Fraction:
        """Over the live bytes."""
        return Fraction(self.internal_bytes, max(1, self.live_bytes))

    @property
    def external(self) -> Fraction:
        """Over the live bytes."""
        return Fraction(self.external_bytes, max(1, self.live_bytes))


def fragmentation_parts(
    taken_bytes: Mapping[int, int], live: Mapping[int, int], reached_bytes: int
) -> FragmentationParts:
    """The parts of what ``reached_bytes`` are more than the live bytes.

    Parameters:
        taken_bytes: what a block takes in bytes, by the size that was asked for, in bytes.
        live: how many blocks of a size are live.
        reached_bytes: the end of the highest block so far, from the start of the heap. Where blocks need less room than
            in a fresh heap, the internal part is all that there is.
    """
    asked = sum(size * count for size, count in live.items())
    taken = sum(taken_bytes[size] * count for size, count in live.items())
    wasted = max(0, reached_bytes - asked)
    internal = min(wasted, max(0, taken - asked))
    return FragmentationParts(asked, internal, wasted - internal)


def block_bytes(program: Program, heap_bytes: int, sizes: Mapping[int, tuple[int, ...]]) -> dict[int, int]:
    """What a block of each of ``sizes`` takes; its size where the heap has no room for two.

    Parameters:
        program: with the allocator.
        heap_bytes: of the heap.
        sizes: in bytes, each with the cache sets that its blocks are asked for, one behind the other.

    Raises:
        UsageError: the allocator refuses the heap.
        EmulationError: the guest went astray.
    """
    init = program.allocator.entry_points["init"]
    with Machine(program.image, program.target, program.instructions, program.costs, heap_bytes) as machine:

        def addresses(size_bytes: int, sets: tuple[int, ...]) -> Iterator[int]:
            if machine.call(init, machine.heap.base_address, heap_bytes):
                raise UsageError(
                    f"{program.allocator.name} refused a heap of {heap_bytes} bytes; choose another --heap."
                )
            count = len(sets)
            trace = Trace((0,) * count, tuple(range(count)), (size_bytes,) * count, sets, count)
            yield from (
                place for place in machine.replay_operations(trace, InitialCache.COLD).results.tolist() if place
            )

        def taken(size_bytes: int, sets: tuple[int, ...]) -> int:
            distances = [b - a for a, b in pairwise(sorted(addresses(size_bytes, sets)))]
            return max(size_bytes, median_low(distances)) if distances else size_bytes

        return {size_bytes: taken(size_bytes, sets) for size_bytes, sets in sizes.items()}
