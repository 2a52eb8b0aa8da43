"""Scenarios of the Fibonacci buddy system, P02 §3.1: states in ``buddy_scenarios``, sizes and buddies here.

P02 calls "a block of the smallest possible size in a heap in which only this block is allocated" the worst to free.
That does not pin the leaf: malloc, which follows the smaller child, hands out one at half the depth of the deepest.
"""

from __future__ import annotations

from collections.abc import Mapping

from wcet_probe.scenarios.buddy.heap import Buddies
from wcet_probe.scenarios.buddy.states import buddy_family

_RIGHT, _INHERITED = 2, 4
_WHERE = ", k the largest with F(k + 1) <= H / M"


class Fibonacci(Buddies):
    """Class k has F(k + 1) minimum blocks; a tag is ``8 * k`` and the bits of Cranston and Thomas."""

    control = "buddy_fibonacci_control"
    step = 2
    tag_shift = 3
    least_requests = (0, 2, 3)
    merges_form = "merges = k - 1{drop}" + _WHERE

    def __init__(self, values: Mapping[str, int]) -> None:
        super().__init__(values)
        self.leaf_first = bool(values["follow"])
        self._sizes = [self.minimum_bytes, self.minimum_bytes]
        while len(self._sizes) < 40:  # more than the C's table has
            self._sizes.append(sum(self._sizes[-2:]))

    def size(self, class_: int) -> int:
        """Bytes of a block, header included."""
        return self._sizes[class_]

    def splits(self, found: int, wanted: int) -> int:
        """Every split goes down by two classes if the smaller child is followed, and by one at the end if need be."""
        if wanted == 0:
            return max(found - 1, 0) if self.leaf_first else found // 2
        return found - wanted if self.leaf_first else (found - wanted + 1) // 2

    def splits_form(self, wanted: int) -> str:
        """Half as many if the smaller child is followed."""
        if self.leaf_first:
            return f"splits = k - {max(wanted, 1)}{_WHERE}"
        return f"splits = floor((k - {wanted - 1}) / 2){_WHERE}" if wanted else f"splits = floor(k / 2){_WHERE}"

    def buddy(self, offset: int, tag: int) -> tuple[int, int]:
        """Before a right child, behind a left one."""
        class_ = tag >> self.tag_shift
        if tag & _RIGHT:
            return offset - self.size(class_ + 1), class_ + 1
        return offset + self.size(class_), class_ - 1

    def parent(self, tag: int, buddy_tag: int) -> int:
        """Each child holds one bit of the parent."""
        left, right = (buddy_tag, tag) if tag & _RIGHT else (tag, buddy_tag)
        class_ = (left >> self.tag_shift) + 1
        return class_ << self.tag_shift | (left & _INHERITED) >> 1 | right & _INHERITED


FAMILY = buddy_family(Fibonacci)
