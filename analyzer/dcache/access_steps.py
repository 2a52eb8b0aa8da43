"""What a block does to the cache of data, access by access, and whether the line of the last one is still in it.

Words: write-allocate (docs/explanation/glossary.md).

*Soundness:* as said of `resident_before`; a step whose line is not known has none.

Two loads and two stores, each of which surely takes place and fills its line; behind the last one it is there.

>>> swap = example('void f(unsigned *p) { unsigned one = p[0]; p[0] = p[1]; p[1] = one; }')
>>> (own,) = swap.named.values()
>>> [("store" if line.modifies else "load", line.is_certain and line.fills) for line in own]
[('load', True), ('load', True), ('store', True), ('store', True)]
>>> stays_resident(AccessStep(own[-1], swap.values.accesses[0][-1]))
True
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from wcet_probe.analyzer.dcache.strided_traversals import StridedTraversals
from wcet_probe.analyzer.dcache.symbolic_blocks import SymbolicBlocks
from wcet_probe.analyzer.dcache.younger_sets import LineAccess
from wcet_probe.analyzer.domains.lattice import Dual, Truths
from wcet_probe.analyzer.graph.fixpoint import least
from wcet_probe.analyzer.icache.fetches import fetched_lines
from wcet_probe.analyzer.pcode.semantics import signed
from wcet_probe.analyzer.values.execution.accesses import Access
from wcet_probe.analyzer.values.result import Values
from wcet_probe.model.target import Target


class AccessStep(NamedTuple):
    """An access to the cache; a fetch has no ``access``, but the number of its line."""

    line: LineAccess
    access: Access | None
    number: int = 0


def is_sure(step: AccessStep) -> bool:
    """Whether the line of ``step`` is in the cache behind it, if its block is executed."""
    return step.line.line is not None and step.line.is_certain and step.line.fills


def stays_resident(step: AccessStep) -> bool:
    """Whether ``step`` is a data access behind which its line surely is in the cache."""
    return step.access is not None and is_sure(step)


def resident_before(values: Values, steps: Mapping[int, Sequence[AccessStep]]) -> Mapping[int, bool]:
    """Of each point, whether the line of the last access before is in the cache, and was that of a data access.

    *Soundness:* on all ways; a greatest fixpoint.
    """

    def behind(point: int, is_resident: bool) -> bool:  # noqa: FBT001  a truth value it is
        return stays_resident(steps[point][-1]) if steps[point] else is_resident

    return dict.fromkeys(steps, True) | dict(least(values.order, Dual(Truths()), {0: False}, behind))


def steps_of(
    values: Values, point: int, lines: SymbolicBlocks, target: Target, traversals: StridedTraversals
) -> Iterator[AccessStep]:
    """The accesses of a block to the data cache, in order."""
    config = target.dcache
    if config is None:
        return
    for instruction in values.graph.points[point].block.instructions:
        if target.unified_cache:
            for number in fetched_lines((instruction,), config.line_bytes):
                yield AccessStep(LineAccess(lines.of_number(number), fills=True, is_certain=True), None, number)
        own = [pieces for pieces in lines.pieces[point] if pieces[0].instruction_address == instruction.address]
        # A load or store of several words goes upwards, whatever order the p-code has.
        own.sort(key=lambda pieces: signed(32, pieces[0].constant))
        for access in chain.from_iterable(own):
            fills = config.write_allocate or not access.is_store
            line, candidates = lines.of_access(access), lines.candidates_of(access)
            traversed = traversals.of(point, line, is_certain=access.is_certain)
            modifies = access.is_store and config.write_back
            accessed = LineAccess(
                line, fills, access.is_certain, candidates, traversed, modifies, is_leaving=access.is_leaving
            )
            yield AccessStep(accessed, access)
