"""Which numbers of an address nothing is known of, so that facts about pointers speak of them.

Words: symbolic variable, asserted (docs/explanation/glossary.md).

*Soundness:* a number that is taken for known keeps the range that was computed of it; a fact says nothing more of it.
"""

from __future__ import annotations

from wcet_probe.analyzer.domains.strided import StridedInterval

UNKNOWN_EXTENT = 1 << 31
"""From which distance of its least and greatest value on a number is taken for unknown."""


def is_unknown(factor: int, number: StridedInterval) -> bool:
    """Whether facts about pointers speak of a number: it is added or subtracted once, and no range is known of it."""
    return factor in {1, (1 << number.bits) - 1} and number.extent >= UNKNOWN_EXTENT
