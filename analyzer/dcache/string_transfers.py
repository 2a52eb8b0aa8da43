"""Load and store string of PowerPC where no cache serves their bytes: refused, for each byte may wait for memory.

SLEIGH has an access for each word of them, and the emulator one for each byte. Where a line is filled before it is
accessed that is of no matter: it waits once, whatever is taken from it. A store does not fill every cache's.

Words: line (docs/explanation/glossary.md).

*Soundness:* what is not refused misses once for each line and hits then, by words as by bytes.
"""

from __future__ import annotations

from wcet_probe.analyzer.ipet.costs import Costs
from wcet_probe.analyzer.values.result import Values
from wcet_probe.errors import AnalysisError
from wcet_probe.model.image import Image
from wcet_probe.model.target import Target


def refuse_string_transfers(image: Image, values: Values, target: Target, costs: Costs) -> None:
    """Refuse code whose strings may wait for memory byte by byte.

    Args:
        image: for the message.
        values: the points that can be reached.
        target: its data cache and memory.
        costs: instructions by address.

    Raises:
        AnalysisError: there is such an instruction; the message names it and what to do.

    *Soundness:* as said of the module.
    """
    cache, refused = target.dcache, {"load_string", "store_string"}
    if cache is not None and not target.memory.regions:
        refused = set() if cache.write_back and cache.write_allocate else {"store_string"}
    for index in sorted(values.states):
        for one in values.graph.points[index].block.instructions:
            if costs[one.address][0].timing_class in refused:
                raise AnalysisError(
                    f"{image.location(one.address)} transfers a string of bytes ({costs[one.address][0].text}), each "
                    "of which may wait for memory; transfer words (lmw, stmw, lwz, stw), or bound it for a cache of "
                    "data that is written back and that stores fill."
                )
