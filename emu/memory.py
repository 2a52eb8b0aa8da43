"""The guest's memory: exact ranges, shared with the engine, read and written by address."""

from __future__ import annotations

import mmap
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from wcet_probe.errors import EmulationError
from wcet_probe.model.target import MemoryRange

PAGE_BYTES = 4096
"""Granularity at which the engine maps memory."""

_LARGE_PAGE_BYTES = 2 << 20
"""Of the hosts that have large pages."""

_MAP_NORESERVE = getattr(mmap, "MAP_NORESERVE", 0x40 if sys.platform == "darwin" else 0x4000)
"""Python names it from 3.13 on."""


@dataclass(frozen=True, slots=True)
class Region:
    """A range of guest memory with one purpose.

    Attributes:
        name: purpose: ``code``, ``static``, ``stack``, ``heap``; or what of the harness it is.
        extent: the bytes that the guest may use.
        writable: whether the guest may write; what it may not write it may execute.
        harness: whether it serves the observer and not the guest's program.
        pages: the pages around ``extent``, and those that others have who share one of these with it.
        buffer: memory with the bytes of ``pages``, shared with the engine.
        origin: address of the first byte of ``buffer``.
    """

    name: str
    extent: MemoryRange
    writable: bool
    harness: bool
    pages: MemoryRange
    buffer: mmap.mmap = field(repr=False, compare=False)
    origin: int


@dataclass(frozen=True, slots=True)
class Use:
    """What a region is to be: as of `Region`, without its memory."""

    name: str
    extent: MemoryRange
    writable: bool
    harness: bool = False


def regions(uses: Iterable[Use]) -> tuple[Region, ...]:
    """Zero-filled regions for ``uses``, in their order; those that lie in one page share its memory."""
    uses = tuple(uses)
    groups: list[MemoryRange] = []
    for pages in sorted((_pages(use.extent) for use in uses), key=lambda one: one.base_address):
        if groups and pages.base_address < groups[-1].end_address:
            end = max(pages.end_address, groups[-1].end_address)
            groups[-1] = MemoryRange(groups[-1].base_address, end - groups[-1].base_address)
        else:
            groups.append(pages)
    lowest = groups[0].base_address
    origin = lowest - lowest % _LARGE_PAGE_BYTES  # the memory is aligned as its addresses are
    try:
        whole = reserved(groups[-1].end_address - origin)
    except OSError:
        whole = None
    held = [(group, whole or zeroed(group.size_bytes), origin if whole else group.base_address) for group in groups]
    for group, buffer, first in held:
        if not any(
            use.harness for use in uses if use.extent.base_address in group
        ):  # of whose tables most runs use little
            advise_large_pages(buffer, group.base_address - first, group.end_address - first)
    return tuple(
        Region(use.name, use.extent, use.writable, use.harness, group, buffer, first)
        for use in uses
        for group, buffer, first in held
        if use.extent.base_address in group
    )


def zeroed(size_bytes: int) -> mmap.mmap:
    """Zero-filled memory of this process alone: where nothing is said, ``mmap`` shares it, which costs more."""
    return mmap.mmap(-1, size_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)


def reserved(size_bytes: int) -> mmap.mmap:
    """The same for what is used here and there: no more memory is taken than is touched.

    A guest's regions lie gigabytes apart. In one such range translated code finds each by its address alone.

    Raises:
        OSError: the host has not so many addresses left, or allows no more.
    """
    try:
        found = mmap.mmap(-1, size_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_NORESERVE)
    except (ValueError, OverflowError) as error:  # a host of 32 bits
        raise OSError(str(error)) from error
    with suppress(AttributeError, OSError):
        found.madvise(mmap.MADV_NOHUGEPAGE)
    return found


def advise_large_pages(memory: mmap.mmap, first: int, behind: int) -> None:
    """Ask the host for large pages in ``memory`` from byte ``first`` to below ``behind``; a host that has none goes on.

    The first touch of a small page costs microseconds on a virtual machine: with them a table of operations takes as
    long to be written as its operations to be executed.
    """
    start = -(-first // PAGE_BYTES) * PAGE_BYTES
    if behind - start >= _LARGE_PAGE_BYTES:
        with suppress(AttributeError, OSError):
            memory.madvise(mmap.MADV_HUGEPAGE, start, behind - start)


def _pages(extent: MemoryRange) -> MemoryRange:
    first = extent.base_address // PAGE_BYTES * PAGE_BYTES
    behind = -(-extent.end_address // PAGE_BYTES) * PAGE_BYTES
    return MemoryRange(first, behind - first)


@dataclass(frozen=True, slots=True)
class GuestMemory:
    """All regions of a guest, by name."""

    regions: Mapping[str, Region]
    big_endian: bool

    @property
    def is_flat(self) -> bool:
        """Whether all regions lie in one buffer, each byte as far from its origin as its address is."""
        return len({id(region.buffer) for region in self.regions.values()}) == 1

    def read(self, address: int, size_bytes: int) -> bytes:
        """The ``size_bytes`` bytes at ``address``.

        Raises:
            EmulationError: they are not all in one region.
        """
        found, start = self._find(address, size_bytes)
        return found.buffer[start : start + size_bytes]

    def write(self, address: int, data: bytes) -> None:
        """Put ``data`` at ``address``.

        Code and what else the guest may not write stays what it is: both engines translate it once.

        Raises:
            EmulationError: it does not fit into one region, or the region is read-only.
        """
        found, start = self._find(address, len(data))
        self._require_writable(found, address)
        found.buffer[start : start + len(data)] = data

    def load(self, address: int, data: bytes) -> None:
        """Put ``data``, a part of the image, at ``address``, before anything runs; also where the guest may not write.

        Raises:
            EmulationError: it does not fit into one region.
        """
        found, start = self._find(address, len(data))
        found.buffer[start : start + len(data)] = data

    def window(self, address: int, size_bytes: int) -> memoryview:
        """The ``size_bytes`` bytes at ``address`` themselves, to write many; let go of it before the guest ends.

        Raises:
            EmulationError: they are not all in one region, or the region is read-only.
        """
        found, start = self._find(address, size_bytes)
        self._require_writable(found, address)
        return memoryview(found.buffer)[start : start + size_bytes]

    def advise_large_pages(self, address: int) -> None:
        """Ask the host for large pages in the region of ``address``, of which much is about to be touched.

        Raises:
            EmulationError: no region holds it.
        """
        found, _ = self._find(address, 1)
        pages = found.pages
        advise_large_pages(found.buffer, pages.base_address - found.origin, pages.end_address - found.origin)

    def read_word(self, address: int) -> int:
        """The 32-bit word at ``address`` in the guest's byte order."""
        return int.from_bytes(self.read(address, 4), "big" if self.big_endian else "little")

    def allows(self, address: int, size_bytes: int, *, is_write: bool) -> bool:
        """Whether the guest may read, or write, ``size_bytes`` bytes at ``address``."""
        return any(
            region.extent.base_address <= address
            and address + size_bytes <= region.extent.end_address
            and (region.writable or not is_write)
            for region in self.regions.values()
        )

    def snapshot(self) -> dict[int, bytes | bytearray]:
        """A copy of what the guest's program can see, by base address; ``bytes`` are read-only."""
        copies: dict[int, bytes | bytearray] = {}
        for region in self.regions.values():
            if not region.harness:
                content = self.read(region.extent.base_address, region.extent.size_bytes)
                copies[region.extent.base_address] = bytearray(content) if region.writable else content
        return copies

    def restore(self, snapshot: Mapping[int, bytes | bytearray]) -> None:
        """Write back what the guest may have changed since ``snapshot`` was taken."""
        for address, content in snapshot.items():
            if isinstance(content, bytearray):
                self.write(address, bytes(content))

    @staticmethod
    def _require_writable(region: Region, address: int) -> None:
        if not region.writable:
            what = f"{address:#010x} is {region.name} of the guest"
            message = f"{what}, which nothing changes; change the image and load it anew."
            raise EmulationError(message)

    def _find(self, address: int, size_bytes: int) -> tuple[Region, int]:
        for candidate in self.regions.values():
            extent = candidate.extent
            if extent.base_address <= address and address + size_bytes <= extent.end_address:
                return candidate, address - candidate.origin
        message = f"no memory of the guest holds {size_bytes} bytes at {address:#010x}; check addresses and heap size."
        raise EmulationError(message)
