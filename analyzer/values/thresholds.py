"""Where values that grow in a loop are likely to stop.

*Soundness:* none is needed: a threshold decides where a widening stops first, and the fixpoint is checked.
"""

from __future__ import annotations

from wcet_probe.analyzer.graph.supergraph import Supergraph


def thresholds(graph: Supergraph) -> tuple[int, ...]:
    """The constants of the code, and their neighbours."""
    found = {0, 1 << 31, (1 << 32) - 1}
    for point in graph.points:
        for instruction in point.block.instructions:
            for op in instruction.ops:
                for varnode in op.inputs:
                    if varnode.space == "const" and varnode.size_bytes == 4:
                        found.update(
                            ((varnode.offset - 1) & 0xFFFFFFFF, varnode.offset, varnode.offset + 1 & 0xFFFFFFFF)
                        )
    return tuple(sorted(found))
