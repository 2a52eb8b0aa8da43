"""Scenarios of the binary buddy system, P02 §3.1: states in ``buddy_scenarios``, sizes and buddies here."""

from __future__ import annotations

from wcet_probe.scenarios.buddy.heap import Buddies
from wcet_probe.scenarios.buddy.states import buddy_family


class Binary(Buddies):
    """Class k has 2^k minimum blocks; a tag is ``2 * k``."""

    control = "buddy_binary_control"
    step = 1
    tag_shift = 1
    leaf_first = True
    least_requests = (0, 1)
    merges_form = "merges = floor(log2(H / M)){drop}"

    def size(self, class_: int) -> int:
        """Bytes of a block, header included."""
        return self.minimum_bytes << class_

    def splits(self, found: int, wanted: int) -> int:
        """One for every class between."""
        return found - wanted

    def splits_form(self, wanted: int) -> str:
        """As the merges."""
        return "splits = floor(log2(H / M))" + (f" - {wanted}" if wanted else "")

    def buddy(self, offset: int, tag: int) -> tuple[int, int]:
        """Where the offset has the bit of the size inverted."""
        class_ = tag >> self.tag_shift
        return offset ^ self.size(class_), class_

    def parent(self, tag: int, buddy_tag: int) -> int:
        """The next class."""
        del buddy_tag
        return tag + (1 << self.tag_shift)


FAMILY = buddy_family(Binary)
