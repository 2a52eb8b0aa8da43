# SPDX-License-Identifier: 0BSD
"""Lines of a write-back data cache that surely are modified where a node begins: a store to one modifies none.

A line that was modified stays so for as long as it is in the cache, which *must* says of it.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import NamedTuple

from wcet_probe.certificate.caches.residents import Must, Residents
from wcet_probe.certificate.caches.steps import Spot, Step
from wcet_probe.certificate.names.names import Passage

Modified = AbstractSet[Spot]
"""Some of the lines of a `Must`, by their granules."""


class Content(NamedTuple):
    """The lines that must be in a data cache, and which of them are modified."""

    must: Must
    modified: Modified

    def behind(self, residents: Residents, step: Step) -> Content:
        """What is known behind ``step``."""
        must = residents.touched(self.must, step)
        modified = self.modified
        if step.is_store and step.is_certain and step.spot is not None:
            modified = modified | {step.spot}
        return Content(must, modified & must.keys())

    def along(self, residents: Residents, passage: Passage) -> Content:
        """What is known behind an edge."""
        must = residents.along(self.must, passage)
        moved = {
            other
            for spot in self.modified
            if residents.substituted(spot, self.must[spot], passage) is not None
            for other in residents.moved(spot, passage)
        }
        return Content(must, moved)
