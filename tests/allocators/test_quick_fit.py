"""Quick fit: what every allocator must do, the block it must choose, a checker that can fail."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from wcet_probe.catalog.lookup import load_allocator

from .conformance import HEAP, WORD, Conformance, Host, Subject

PAGE = 256
HEAD = 0
"""Pages are counted from 1: the head of the list of free runs stands as page 0."""


class Model:
    """Runs, ring and rover, and lists of fragments, as Python lists."""

    def __init__(self, heap_bytes: int, word_bytes: int, page_bytes: int = PAGE, minimum: int = 8) -> None:
        header, self.page, self.minimum = 4 * word_bytes, page_bytes, minimum * word_bytes // 4
        self.count = (heap_bytes - 2 * header) // (page_bytes + header)
        self.start = heap_bytes - self.count * page_bytes
        self.runs = {HEAD: 0, 1: self.count}
        self.ring = [HEAD, 1]
        self.rover = HEAD
        self.blocks: dict[int, int] = {}
        self.cut: dict[int, int] = {}
        self.lists: dict[int, list[int]] = {1 << k: [] for k in range(3, 12)}

    def malloc(self, size: int) -> int | None:
        if size == 0:
            return None
        if size <= self.page // 2:
            return self._fragment(max(self.minimum, 1 << (size - 1).bit_length()))
        pages = -(-size // self.page)
        first = self._take(pages)
        if first is None:
            return None
        self.blocks[first] = pages
        return self._offset(first)

    def free(self, offset: int) -> None:
        page = (offset - self.start) // self.page + 1
        if page in self.blocks:
            self._release(page, self.blocks.pop(page))
            return
        size = self.cut[page]
        free = self.lists[size]
        mine = [other for other in free if (other - self.start) // self.page + 1 == page]
        if len(mine) + 1 == self.page // size:
            self.lists[size] = [other for other in free if other not in mine]
            del self.cut[page]
            self._release(page, 1)
        else:
            free.insert(free.index(mine[0]) + 1 if mine else 0, offset)

    def _offset(self, page: int) -> int:
        return self.start + (page - 1) * self.page

    def _fragment(self, size: int) -> int | None:
        if not self.lists[size]:
            page = self._take(1)
            if page is None:
                return None
            self.cut[page] = size
            first, *others = range(self._offset(page), self._offset(page) + self.page, size)
            self.lists[size] = others[::-1]
            return first
        return self.lists[size].pop(0)

    def _after(self, run: int) -> int:
        return self.ring[(self.ring.index(run) + 1) % len(self.ring)]

    def _unlink(self, run: int) -> None:
        if self.rover == run:
            self.rover = self._after(run)
        self.ring.remove(run)

    def _take(self, pages: int) -> int | None:
        at = self.ring.index(self.rover)
        fit = next((run for run in self.ring[at:] + self.ring[:at] if self.runs[run] >= pages), None)
        if fit is None:
            return None
        self.rover = fit
        self.runs[fit] -= pages
        first = fit + self.runs[fit]
        if not self.runs[fit]:
            self._unlink(fit)
            del self.runs[fit]
        return first

    def _release(self, first: int, pages: int) -> None:
        if first + pages in self.runs:
            self._unlink(first + pages)
            pages += self.runs.pop(first + pages)
        before = next((run for run, length in self.runs.items() if length and run + length == first), None)
        if before is not None:
            self._unlink(before)
            pages += self.runs.pop(before)
            first = before
        self.runs[first] = pages
        self.ring.insert(self.ring.index(self.rover), first)


class TestQuickFit(Conformance):
    """Small pages, so that small heaps have many."""

    subject = Subject("quick-fit", {"page-bytes": PAGE}, model=Model)


class TestOtherSizes(Conformance):
    subject = Subject(
        "quick-fit",
        {"page-bytes": 512, "minimum-block": 16},
        model=lambda heap, word: Model(heap, word, 512, 16),
    )

    # The manifest's least heap is that of the smallest pages.
    test_least_heap = None  # type: ignore[assignment]


# --------------------------------------------------------------------------------------------- the checker can fail


class Link(ctypes.Structure):
    """struct dlist."""

    _fields_ = (("next", ctypes.c_size_t), ("prev", ctypes.c_size_t))


class Page(ctypes.Structure):
    """struct quick_fit_page."""

    _fields_ = (
        ("next", ctypes.c_size_t),
        ("prev", ctypes.c_size_t),
        ("count", ctypes.c_size_t),
        ("kind", ctypes.c_size_t),
    )


class Control(ctypes.Structure):
    """struct quick_fit_control."""

    _fields_ = (
        ("runs", Page),
        ("rover", ctypes.c_size_t),
        ("first_page", ctypes.c_size_t),
        ("headers", ctypes.c_size_t),
        ("pages", ctypes.c_size_t),
        ("lists", Link * 12),
    )


class Pages:
    """28 pages: the last is cut and has one used fragment, below it one is free, two are used, one is cut in halves."""

    def __init__(self, host: Host) -> None:
        assert host.init(8192) == 0
        self.control = Control.in_dll(host.library, "quick_fit_control")
        assert self.control.pages == 28
        host.malloc(1)
        single = host.malloc(PAGE)
        host.malloc(2 * PAGE)
        host.malloc(PAGE // 2)
        host.free(single)
        self.lower, self.upper, self.cut, self.single, self.used, self.used_end, self.rest, self.inside = (
            self.header(page) for page in (0, 29, 28, 27, 25, 26, 1, 10)
        )
        self.other = self.header(24)
        self.list = self.control.lists[4]
        self.fragment = Link.from_address(self.list.next)

    def header(self, page: int) -> Page:
        return Page.from_address(self.control.headers + page * ctypes.sizeof(Page))


def spoil_adjacent(pages: Pages) -> None:
    pages.used.kind = pages.used_end.kind = 0


def unlink_single(pages: Pages) -> None:
    for ring in (pages.control.runs, pages.rest):
        if ring.next == ctypes.addressof(pages.single):
            ring.next = pages.single.next
        if ring.prev == ctypes.addressof(pages.single):
            ring.prev = pages.single.prev


def replace_single(pages: Pages) -> None:
    """The free page is replaced in the list by one inside the other free run."""
    pages.inside.kind, pages.inside.count = 0, 1
    pages.inside.next, pages.inside.prev = pages.single.next, pages.single.prev
    for ring in (pages.control.runs, pages.rest):
        if ring.next == ctypes.addressof(pages.single):
            ring.next = ctypes.addressof(pages.inside)
        if ring.prev == ctypes.addressof(pages.single):
            ring.prev = ctypes.addressof(pages.inside)


def unlink_last_fragment(pages: Pages) -> None:
    last = Link.from_address(pages.list.prev)
    Link.from_address(last.prev).next, pages.list.prev = last.next, last.prev


def empty_list(pages: Pages) -> None:
    pages.list.next = pages.list.prev = ctypes.addressof(pages.list)


def part_the_row(pages: Pages) -> None:
    """A fragment of another cut page comes to stand behind the first of the row."""
    pages.other.kind, pages.other.count = pages.cut.kind, 1
    alien = pages.control.first_page + PAGE * 23
    pages.other.next = alien
    second = pages.fragment.next
    link = Link.from_address(alien)
    link.prev, link.next = pages.list.next, second
    pages.fragment.next = Link.from_address(second).prev = alien


def set_(name: str, member: str, value: Callable[[Pages], int]) -> Callable[[Pages], None]:
    return lambda pages: setattr(getattr(pages, name), member, value(pages))


SPOILS: list[tuple[int, str, Callable[[Pages], None]]] = [
    (1, "no heap", set_("control", "headers", lambda _: 0)),
    (2, "lower guard", set_("lower", "kind", lambda _: 0)),
    (2, "upper guard", set_("upper", "count", lambda _: 2)),
    (3, "fragments too small", set_("cut", "kind", lambda _: 3)),
    (3, "fragments too large", set_("cut", "kind", lambda _: 8)),
    (3, "no size", set_("cut", "kind", lambda _: 40)),
    (4, "no page", set_("used", "count", lambda _: 0)),
    (4, "too many pages", set_("used", "count", lambda _: 5)),
    (5, "count at the end", set_("used_end", "count", lambda _: 1)),
    (5, "kind at the end", set_("used_end", "kind", lambda _: 0)),
    (6, "free neighbours", spoil_adjacent),
    (7, "all fragments free", set_("cut", "count", lambda _: 16)),
    (8, "next is no header", set_("single", "next", lambda p: p.control.headers + 8)),
    (8, "next is used", set_("single", "next", lambda p: ctypes.addressof(p.used))),
    (8, "previous", set_("single", "prev", lambda p: ctypes.addressof(p.single))),
    (9, "rover", set_("control", "rover", lambda p: ctypes.addressof(p.used))),
    (10, "the head has pages", lambda p: setattr(p.control.runs, "count", 1)),
    (10, "a run is missing", unlink_single),
    (10, "another run", replace_single),
    (11, "no fragment", set_("fragment", "next", lambda p: p.list.next + 4)),
    (11, "a fragment of no page", set_("fragment", "next", lambda p: p.control.headers)),
    (11, "a fragment of another page", set_("fragment", "next", lambda p: p.control.first_page)),
    (12, "a link back", set_("fragment", "prev", lambda _: 0)),
    (13, "another page between", part_the_row),
    (13, "not the first", set_("cut", "next", lambda p: p.fragment.next)),
    (13, "the row is too short", unlink_last_fragment),
    (13, "no free fragment is counted", set_("cut", "count", lambda _: 0)),
    (14, "no fragment is in the list", empty_list),
]


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Host:
    return Host(Subject("quick-fit", {"page-bytes": PAGE}), tmp_path_factory.mktemp("quick-fit"))


@pytest.fixture
def pages(host: Host) -> Iterator[Pages]:
    yield (pages := Pages(host))
    ctypes.memset(ctypes.addressof(pages.control), 0, ctypes.sizeof(pages.control))


def test_before_init(tmp_path: Path) -> None:
    host = Host(Subject("quick-fit", {"bit-search": 1}), tmp_path)
    assert host.check() == 1
    assert host._malloc(1) is None
    assert host._malloc(1 << 20) is None


def test_headers_are_aligned_to_their_size_in_any_arena(tmp_path: Path) -> None:
    host = Host(Subject("quick-fit", {"page-bytes": PAGE}), tmp_path)
    header = ctypes.sizeof(Page)
    assert host.init(HEAP) == 0
    least = PAGE + 3 * header
    for off in range(0, 2 * header, host.alignment):
        skipped = -off % header
        assert host.init_at(host.arena + off, least + skipped - host.alignment) != 0
        assert host.init_at(host.arena + off, least + skipped) == 0
        control = Control.in_dll(host.library, "quick_fit_control")
        assert control.headers == host.arena + off + skipped
        assert control.first_page + control.pages * PAGE == host.arena + off + least + skipped
        assert ctypes.addressof(control) % header == 0
        assert host.malloc(PAGE) == control.first_page - host.arena
        assert host.check() == 0


@pytest.mark.skipif(WORD != 8, reason="the page numbers are those of a 64-bit host")
@pytest.mark.parametrize(("violation", "spoil"), [(v, s) for v, _, s in SPOILS], ids=[name for _, name, _ in SPOILS])
def test_every_violation_is_found(host: Host, pages: Pages, violation: int, spoil: Callable[[Pages], None]) -> None:
    assert host.check() == 0
    spoil(pages)
    assert host.check() == violation


def test_every_violation_is_listed() -> None:
    """The codes above are those of the header, in its order."""
    header = dict(load_allocator("quick-fit").sources)["quick_fit.h"]
    listed = header.split("enum quick_fit_violation {")[1].split("}")[0].count("QUICK_FIT_")
    assert {violation for violation, _, _ in SPOILS} == set(range(1, listed))
