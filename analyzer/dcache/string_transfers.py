"""Load and store string of PowerPC where no cache serves their bytes: refused, for each byte may wait for memory.

SLEIGH has an access for each word of them, and the emulator one for each byte. Where a line is filled before it is
accessed that is of no matter: it waits once, whatever is taken from it. A store does not fill every cache's.

Words: line (docs/explanation/glossary.md).

*Soundness:* what is not refused misses once for each line and hits then, by words as by bytes.

A cache that is written back, and that stores fill, serves both; without a cache neither is served:

>>> from dataclasses import replace
>>> from wcet_probe.catalog.lookup import load_target
>>> target = load_target("mpc603e")
>>> sorted(waiting_by_bytes(target)), sorted(waiting_by_bytes(replace(target, dcache=None)))
([], ['load_string', 'store_string'])
"""

from __future__ import annotations

from wcet_probe.analyzer.ipet.costs import Costs
from wcet_probe.analyzer.values.result import Values
from wcet_probe.errors import AnalysisError
from wcet_probe.model.image import Image
from wcet_probe.model.target import Target


def waiting_by_bytes(target: Target) -> frozenset[str]:
    """Timing classes of string transfers each byte of which may wait for memory.

    *Soundness:* as said of the module; of what is in no cache's regions nothing is served.
    """
    cache = target.dcache
    if cache is None or target.memory.regions:
        return frozenset({"load_string", "store_string"})
    return frozenset() if cache.write_back and cache.write_allocate else frozenset({"store_string"})


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
    refused = waiting_by_bytes(target)
    for index in sorted(values.states):
        for one in values.graph.points[index].block.instructions:
            if costs[one.address][0].timing_class in refused:
                raise AnalysisError(
                    f"{image.location(one.address)} transfers a string of bytes ({costs[one.address][0].text}), each "
                    "of which may wait for memory; transfer words (lmw, stmw, lwz, stw), or bound it for a cache of "
                    "data that is written back and that stores fill."
                )
