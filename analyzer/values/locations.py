"""Places that hold values: registers, temporaries, stack slots, static words; and which of them share bytes."""

from __future__ import annotations

from typing import NamedTuple


class Location(NamedTuple):
    """``size_bytes`` bytes at ``offset`` of ``space``: ``register``, ``unique``, ``stack`` or ``static``."""

    space: str
    offset: int
    size_bytes: int

    def overlaps(self, other: Location) -> bool:
        """Whether the two share a byte."""
        return (
            self.space == other.space
            and self.offset < other.offset + other.size_bytes
            and other.offset < self.offset + self.size_bytes
        )


_PAGE_BYTES = 16


class Overlaps:
    """Which of the locations that were ever added share a byte; each is compared once with those near it.

    *Soundness:* locations that share a byte share a page.
    """

    def __init__(self) -> None:
        self._of: dict[Location, list[Location]] = {}
        self._pages: dict[tuple[str, int], list[Location]] = {}

    def add(self, location: Location) -> list[Location]:
        """Those that overlap ``location``, itself among them; the list grows with what is added later."""
        found = self._of.get(location)
        if found is None:
            first, last = location.offset // _PAGE_BYTES, (location.offset + location.size_bytes - 1) // _PAGE_BYTES
            pages = [self._pages.setdefault((location.space, page), []) for page in range(first, last + 1)]
            found = self._of[location] = [location]
            for other in dict.fromkeys(other for page in pages for other in page):
                if location.overlaps(other):
                    found.append(other)
                    self._of[other].append(location)
            for page in pages:
                page.append(location)
        return found
