"""Which states of best fit over an AVL tree are candidates for the worst: kinds of paths, and spacings of nodes."""

from __future__ import annotations

from collections.abc import Collection, Sequence
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
_LEAST_PLACES, _MOST_PLACES = 16, 160
"""How many the heap has for nodes of a spacing that doubles: with fewer trees are low, with more little is evicted."""
_HALVINGS = 7
"""How often a way is halved until nodes merely lie in two lines each, for which the highest trees have room."""
_MOST_BYTES_FOR_ALL_KINDS = 1 << 20
"""Up to this heap single rotations are tried too: from 1 to 256 KiB they are never dearer."""


def other_kinds(request: HeapRequest) -> tuple[str, ...]:
    """Kinds of paths that are tried beside the one of double rotations."""
    return ("long", "single") if request.heap_bytes <= _MOST_BYTES_FOR_ALL_KINDS else ("long",)


class Spacing(NamedTuple):
    """Nodes multiples of ``modulus`` bytes apart, also from what lies ``stack_bytes`` from the end of the stack.

    With an order ``first`` the room that is left brings some of them, in that order, multiples of twice as much apart:
    into half of the sets, where what a call comes back to has been evicted more often.
    """

    modulus: int = 1
    stack_bytes: int = _WAY_DOWN_BYTES
    first: str = ""

    @property
    def variant(self) -> str:
        """What the name of a variant ends with."""
        wider = f", {2 * self.modulus} while there is room, {self.first} first" if self.first else ""
        return self.text.replace(", ", ", nodes ", 1) + wider

    @property
    def doubled(self) -> Spacing:
        """That of the nodes which come first."""
        return Spacing(2 * self.modulus, self.stack_bytes)

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
    halvings = range(_HALVINGS + 1 if request.heap_bytes <= _MOST_BYTES_FOR_ALL_KINDS else 1)
    found = [(kind, Spacing(way >> halving)) for kind in ("double", "long") for halving in halvings]
    return (*found, *(("double", Spacing(way >> halving, _SAVED_BYTES)) for halving in (0, 1)))


_LOW, _HIGH, _TOP, _BOTTOM = "low addresses", "high addresses", "top of the tree", "bottom of the tree"


def wider_spacings(request: HeapRequest) -> tuple[Spacing, ...]:
    """Spacings that double while there is room; none without a cache, or where one set can hold all nodes."""
    way = way_bytes(request)
    if way is None:
        return ()
    halves = (way >> halving for halving in range(1, _HALVINGS + 1))
    found = [modulus for modulus in halves if _LEAST_PLACES <= request.heap_bytes // modulus <= _MOST_PLACES]
    beside = [(modulus, _WAY_DOWN_BYTES) for modulus in found]
    beside += [(modulus, _SAVED_BYTES) for modulus in found if modulus == way // 2]
    return tuple(Spacing(*where, first) for where in beside for first in (_LOW, _HIGH, _TOP, _BOTTOM))


def in_order(first: str, moved: Collection[int], levels: Sequence[int]) -> list[int]:
    """The blocks ``moved`` but the first of the heap, which stays, in the order ``first``.

    ``levels`` has all blocks, those of each level of the tree behind those of the one above.
    """
    if first in {_LOW, _HIGH}:
        return sorted(set(moved) - {0}, reverse=first == _HIGH)
    found = [block for block in levels if block in moved and block]
    return found if first == _TOP else found[::-1]
