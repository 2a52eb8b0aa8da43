"""Sizes in bytes as people write them: ``4096``, ``4K``, ``4KiB``, ``4 MiB``. Units are powers of 1024."""

from __future__ import annotations

import re

from wcet_probe.errors import UsageError

_SHIFTS = {"": 0, "b": 0, "k": 10, "kib": 10, "m": 20, "mib": 20, "g": 30, "gib": 30}
_SIZE = re.compile(r"(0|[1-9][0-9]{0,9}) ?([a-z]*)", re.ASCII)
_ADDRESS_SPACE_BYTES = 1 << 32


def parse_size(text: str) -> int:
    """Bytes that ``text`` names, 1 up to 2³²-1; letter case is ignored.

    Raises:
        UsageError: ``text`` is no size, or does not fit into a 32-bit address space.
    """
    match = _SIZE.fullmatch(text.strip().lower())
    if match is None or match[2] not in _SHIFTS:
        raise UsageError(f"{text!r} is no size in bytes: write it like 4096, 4K, 4KiB or 4MiB.")
    size_bytes = int(match[1]) << _SHIFTS[match[2]]
    if not size_bytes:
        raise UsageError(f"a size of {text.strip()} holds nothing: give one like 4096, 4K, 4KiB or 4MiB.")
    if size_bytes >= _ADDRESS_SPACE_BYTES:
        raise UsageError(f"size {text!r} does not fit into 32-bit addresses: it must be below 4 GiB.")
    return size_bytes


def format_size(size_bytes: int) -> str:
    """``size_bytes`` in the largest unit that divides it: ``4 MiB``, ``20 KiB``, ``4097 B``."""
    for unit, shift in (("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if size_bytes and size_bytes % (1 << shift) == 0:
            return f"{size_bytes >> shift} {unit}"
    return f"{size_bytes} B"
