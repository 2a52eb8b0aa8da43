"""Which states of best fit over an AVL tree are candidates for the worst: kinds of paths, and distances of nodes."""

from __future__ import annotations

from wcet_probe.scenarios.cache_sets import way_bytes
from wcet_probe.scenarios.families import HeapRequest

DRIVER = "tree height = largest h with 2M(F(h + 2) - 1) + c <= H, F Fibonacci's numbers, c what the larger blocks add"
DRIVER_APART = f"{DRIVER}, and the fences that keep nodes apart"
MODULI = tuple(1 << bits for bits in range(4, 14))
"""Distances of nodes in bytes that states are looked at for."""
LEVELS_FOR_ROOM = 6
"""How much lower a tree is tried whose nodes are moved apart."""
_MOST_BYTES_FOR_ALL_KINDS = 1 << 20
"""Up to this heap single rotations are tried too: from 1 to 256 KiB they are never dearer."""


def other_kinds(request: HeapRequest) -> tuple[str, ...]:
    """Kinds of paths that are tried beside the one of double rotations."""
    return ("long", "single") if request.heap_bytes <= _MOST_BYTES_FOR_ALL_KINDS else ("long",)


def moduli(request: HeapRequest) -> tuple[int, ...]:
    """Distances of nodes in bytes: of one set and, where the heap is small and room is dear, of ever more sets."""
    way = way_bytes(request)
    if way is None:
        return ()
    return tuple(way >> halvings for halvings in range(7 if request.heap_bytes <= _MOST_BYTES_FOR_ALL_KINDS else 1))


def apart(modulus: int) -> str:
    """What the name of a variant ends with."""
    return f", nodes {modulus} bytes apart" if modulus > 1 else ""
