"""What an unaligned access takes longer, by what is known of its address. One table, three readers: all ask here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from wcet_probe.model.target import UnalignedAccess


class Longer(NamedTuple):
    """The least and the most cycles that an access takes longer."""

    least: int
    most: int


def unaligned_cycles(
    rows: Sequence[UnalignedAccess], timing_class: str, size_bytes: int, modulus: int, residue: int
) -> Longer:
    """What ``rows`` say of an access whose address is ``residue`` modulo ``modulus``, waiting for memory apart.

    Parameters:
        rows: of a target.
        timing_class: of the instruction.
        size_bytes: of the access.
        modulus: a power of two.
        residue: of the address, in bytes.
    """
    own = [one for one in rows if one.size_bytes == size_bytes and timing_class in one.timing_classes]
    rest = residue % modulus
    if rest:
        known = sum(one.cycles for one in own if one.alignment_bytes == rest & -rest)
        return Longer(known, known)
    return Longer(0, max((one.cycles for one in own if one.alignment_bytes >= modulus), default=0))
