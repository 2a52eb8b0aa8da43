"""Bytes of memory that are known, by pages: what stores leave of what memory held when execution began.

Words: constant propagation (docs/explanation/glossary.md).

*Soundness:* a byte is known where its last store, or else what memory held at the beginning, is known on every way that
led here. What is joined is known where both sides know the same.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, TypeVar

PAGE_BYTES = 1024
"""A store makes a new page, so that states share the others."""

WIDEST_BYTES = 8
"""Of a cell, which holds what is no number of known bytes, as an address of the stack is."""
_Value = TypeVar("_Value")


class Page(NamedTuple):
    """The bytes of a page; bit ``n`` of ``known`` tells whether the byte at ``n`` is known, and it is 0 if not."""

    data: bytes
    known: int


Pages = dict[int, Page]
"""Pages by number: address, or offset in the stack, divided by `PAGE_BYTES`. Of what is in no page nothing is known."""

_NOTHING = Page(bytes(PAGE_BYTES), 0)


def pages_of(content: Iterable[tuple[int, bytes]]) -> Pages:
    """The pages of memory that holds ``content``, by address.

    *Soundness:* the bytes of a page that are not in ``content`` are not known.
    """
    pages: Pages = {}
    for address, data in content:
        store(pages, address, data)
    return pages


def load(pages: Pages, address: int, size_bytes: int) -> bytes | None:
    """The bytes from ``address`` on; None where one of them is not known."""
    number, place = divmod(address, PAGE_BYTES)
    if place + size_bytes > PAGE_BYTES:
        first = PAGE_BYTES - place
        low, high = load(pages, address, first), load(pages, address + first, size_bytes - first)
        return None if low is None or high is None else low + high
    page, bits = pages.get(number, _NOTHING), (1 << size_bytes) - 1
    return page.data[place : place + size_bytes] if page.known >> place & bits == bits else None


def store(pages: Pages, address: int, data: bytes) -> None:
    """Note that ``data`` was stored at ``address``."""
    while data:
        number, place = divmod(address, PAGE_BYTES)
        part, page = data[: PAGE_BYTES - place], pages.get(number, _NOTHING)
        end = place + len(part)
        known = page.known | (1 << len(part)) - 1 << place
        pages[number] = Page(page.data[:place] + part + page.data[end:], known)
        address, data = address + len(part), data[len(part) :]


def forget(pages: Pages, low: int, high: int) -> None:
    """Forget the bytes from ``low`` to ``high``."""
    first, last = low // PAGE_BYTES, high // PAGE_BYTES
    numbers = range(first, last + 1) if last - first < len(pages) else [n for n in pages if first <= n <= last]
    for number in numbers:
        page = pages.get(number)
        if page is None or not page.known:
            continue
        begin = max(0, low - number * PAGE_BYTES)
        end = min(PAGE_BYTES, high + 1 - number * PAGE_BYTES)
        known = page.known & ~((1 << end - begin) - 1 << begin)
        if known != page.known:
            pages[number] = Page(page.data[:begin] + bytes(end - begin) + page.data[end:], known)


def joined(pages: Pages, other: Pages) -> Pages:
    """What both know."""
    if pages is other:
        return pages
    found = {}
    for number, one in pages.items():
        page = other.get(number)
        if page is not None:
            found[number] = one if page is one or page == one else _both(one, page)
    return found


def _both(one: Page, other: Page) -> Page:
    known = one.known & other.known
    different = int.from_bytes(one.data, "little") ^ int.from_bytes(other.data, "little")
    place = 0
    while different:
        # The lowest byte that differs.
        place = (different & -different).bit_length() - 1 >> 3
        known &= ~(1 << place)
        different &= ~(0xFF << 8 * place)
    if not known:
        return _NOTHING
    data = bytearray(one.data)
    for place in range(PAGE_BYTES):
        if not known >> place & 1:
            data[place] = 0
    return Page(bytes(data), known)


def forget_cells(cells: dict[tuple[str, int], tuple[int, _Value]], space: str, low: int, high: int) -> None:
    """Hold no cell of ``space`` any more with a byte from ``low`` to ``high``; a cell has a size in bytes and a value.

    *Soundness:* no cell is wider than `WIDEST_BYTES`.
    """
    if not cells:
        return
    if high - low < WIDEST_BYTES * 2:
        for offset in range(low - WIDEST_BYTES + 1, high + 1):
            held = cells.get((space, offset))
            if held is not None and offset + held[0] > low:
                del cells[space, offset]
        return
    for cell in [c for c, held in cells.items() if c[0] == space and c[1] <= high and c[1] + held[0] > low]:
        del cells[cell]
