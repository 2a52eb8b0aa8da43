"""Where loads and stores of an operation go in memory that is told by kinds, and which of them may meet.

Words: kind (docs/explanation/glossary.md).

*Soundness:* two accesses are said not to meet only where regions, addresses or residues keep them apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from wcet_probe.analyzer.invariants.kinds import ALL, MODULUS, WORD_BITS, Kind, residue
from wcet_probe.analyzer.invariants.stored_addresses import Ends

LAST = (1 << WORD_BITS) - 1
"""The last address."""
POINTED = (-1,)
"""In the place of a table: where addresses that are stored somewhere lead to."""


class Target(NamedTuple):
    """Where a load or a store goes: words of a region (`Kind.ARENA`, `STATIC`), or of the operation's stack, ``NULL``.

    Loads go to constant data, too, `Kind.CONSTANT`. ``residues`` are those of the address; ``low`` to ``high`` are
    addresses, or distances on the stack. ``table`` are the constant and the factors of an address in static data of
    which no more is known: accesses of one table.
    """

    region: Kind
    owner: int
    size_bytes: int
    residues: int
    low: int
    high: int
    table: tuple[int, ...] = ()


def sees(load: Target, store: Target) -> bool | None:
    """Whether ``load`` may read what ``store`` writes; None where it may read a part of it, or more.

    *Soundness:* two accesses of one region overlap only if their addresses' distance, which has the residue of the
    difference of theirs, is less than their sizes.
    """
    if (load.region, load.owner) != (store.region, store.owner):
        return False
    if load.low >= store.high + store.size_bytes or store.low >= load.high + load.size_bytes:
        return False
    for distance in range(1 - load.size_bytes, store.size_bytes):
        if (distance or load.size_bytes != store.size_bytes) and _moved(store.residues, distance) & load.residues:
            return None
    return bool(load.residues & store.residues)


def is_same_place(load: Target, store: Target) -> bool:
    """Whether nothing tells that a word of ``load`` is something else than one of ``store``.

    Places that are known, and one table: what is stored there is what is loaded, no lemma speaks of it.
    """
    if load.region is Kind.ARENA:
        return False
    if load.table or store.table:
        return load.table == store.table != POINTED
    return LAST not in {load.high, store.high}


def moved_by(addresses: Sequence[tuple[int, int]], distance: int, size: int, residues: int) -> Iterator[Target]:
    """Where a loaded address leads to that is one of ``addresses``, each from one to another, and a ``distance``."""
    named = () if len(addresses) == 1 and addresses[0][0] == addresses[0][1] else POINTED
    for ends in addresses:
        low, high = (max(0, one + distance) for one in ends)
        own = residues & residue(low) if low == high else residues
        if own:
            yield Target(Kind.STATIC, 0, size, own, low, high, named)


def places_in_data(places: Ends, size: int, residues: int, named: tuple[int, ...]) -> Iterator[Target]:
    """Static data at ``places``."""
    for low, high in places:
        own = residues & residue(low) if low == high else residues
        if own:
            yield Target(Kind.STATIC, 0, size, own, low, high, named)


def _moved(residues: int, distance: int) -> int:
    amount = distance % MODULUS
    return (residues << amount | residues >> MODULUS - amount) & ALL
