"""Which states of best fit over an AVL tree are candidates for the worst: kinds of paths, and spacings of nodes."""

from __future__ import annotations

from typing import NamedTuple

from wcet_probe.scenarios.cache_sets import way_bytes
from wcet_probe.scenarios.families import HeapRequest

DRIVER = "tree height = largest h with 2M(F(h + 2) - 1) + c <= H, F Fibonacci's numbers, c what the larger blocks add"
DRIVER_APART = f"{DRIVER}, and the fences that keep nodes apart"
_WAY_DOWN_BYTES = 192
"""From what a call notes of its way down the tree to the end of the stack, which is a multiple of each distance."""
_SAVED_BYTES = 64
"""From the registers that it saves to there."""
LEVELS_FOR_ROOM = 6
"""How much lower a tree is tried whose nodes are moved apart."""
_MOST_BYTES_FOR_ALL_KINDS = 1 << 20
"""Up to this heap single rotations are tried too: from 1 to 256 KiB they are never dearer."""


def other_kinds(request: HeapRequest) -> tuple[str, ...]:
    """Kinds of paths that are tried beside the one of double rotations."""
    return ("long", "single") if request.heap_bytes <= _MOST_BYTES_FOR_ALL_KINDS else ("long",)


class Spacing(NamedTuple):
    """Nodes multiples of ``modulus`` bytes apart, also from what lies ``stack_bytes`` from the end of the stack."""

    modulus: int = 1
    stack_bytes: int = _WAY_DOWN_BYTES

    @property
    def variant(self) -> str:
        """What the name of a variant ends with."""
        return self.text.replace(", ", ", nodes ", 1)

    @property
    def text(self) -> str:
        """What is said of such nodes, behind what they are; nothing where they may be anywhere."""
        if self.modulus == 1:
            return ""
        beside = " and from saved registers" if self.stack_bytes == _SAVED_BYTES else ""
        return f", {self.modulus} bytes apart{beside}"


ANYWHERE = Spacing()
SPACINGS = (
    *(Spacing(1 << bits) for bits in range(4, 14)),
    *(Spacing(1 << bits, _SAVED_BYTES) for bits in range(8, 14)),
)
"""Those that states are looked at for."""


def spacings(request: HeapRequest) -> tuple[tuple[str, Spacing], ...]:
    """Kinds of paths, and spacings of nodes: in one set and, where the heap is small and room is dear, in ever more."""
    way = way_bytes(request)
    if way is None:
        return ()
    halvings = range(7 if request.heap_bytes <= _MOST_BYTES_FOR_ALL_KINDS else 1)
    found = [(kind, Spacing(way >> halving)) for kind in ("double", "long") for halving in halvings]
    return (*found, ("double", Spacing(way, _SAVED_BYTES)))
