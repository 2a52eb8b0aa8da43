"""Cache lines by name: which accesses are surely to one line, and which are surely to different sets.

The address of an access is a term (`analyzer.terms`), a sum of a variable part and a constant. Accesses with the same
variable part form a *group*: they are so many bytes apart, whatever its value is. If the variable part is known modulo
the size of a line, it is known which of them share a line; if it is known modulo a smaller power of two, those share a
line that lie in one *granule* of that size. An address that is a number is a group of its own for each line.

After S. Hahn and D. Grund, Relational cache analysis for static timing analysis, ECRTS 2012.

*Soundness:* a group is compared with itself only as long as no leaf of its variable part is given another value; that
is for `analyzer.relational_cache` to see to. The stack pointer at entry is a multiple of 8 (assumption
``stack-alignment``), and a variable part of which nothing is known is a multiple of what a flow fact says of pointers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from wcet_probe.analyzer.state import Base
from wcet_probe.analyzer.terms import Term, Terms
from wcet_probe.analyzer.transfer import Access
from wcet_probe.model import CacheConfig

STACK_ALIGNMENT_BYTES = 8
"""Of the stack pointer where a function is called: Arm AAPCS, section 6.2.1.2; PowerPC Embedded ABI, section 3.2.2."""

_UNKNOWN_BYTES = 1 << 31
"""An address within so many bytes may be anywhere."""


class Line(NamedTuple):
    """A line as far as it is known: granules of a group may share one."""

    group: int
    granule: int


@dataclass(frozen=True, slots=True)
class Group:
    """Accesses whose addresses have the same variable part.

    Attributes:
        leaves: of the variable part; none for a line whose number is known.
        alignment_bytes: power of two up to the bytes of a line, modulo which the variable part is known.
        residue: the variable part modulo ``alignment_bytes``.
        sets: cache sets that its lines may be in; None for any.
        is_short: whether no two of its lines are in one set.
    """

    leaves: frozenset[Term]
    alignment_bytes: int
    residue: int
    sets: frozenset[int] | None
    is_short: bool

    def granule(self, offset: int) -> int:
        """The granule of the byte at ``offset`` from the variable part."""
        return (offset + self.residue) // self.alignment_bytes

    def most_lines(self, granules: Iterable[int], line_bytes: int) -> int:
        """Most lines that ``granules`` lie in, whatever the variable part is.

        *Soundness:* the largest number over all places of the first granule in its line.
        """
        starts = [granule * self.alignment_bytes for granule in granules]
        shifts = range(0, line_bytes, self.alignment_bytes)
        return max(len({(start + shift) // line_bytes for start in starts}) for shift in shifts)

    def may_meet(self, other: Group) -> bool:
        """Whether lines of the two may be in one set.

        *Soundness:* no unless both are known to be in certain sets.
        """
        return self.sets is None or other.sets is None or not self.sets.isdisjoint(other.sets)


class SymbolicAddress(NamedTuple):
    """The variable part of an address, as terms and factors, and the constant added to it, signed."""

    variable: tuple[tuple[Term, int], ...]
    constant: int


def symbolic_address(terms: Terms, pointer: Term) -> SymbolicAddress:
    """The address ``pointer`` as a variable part and a constant.

    *Soundness:* an identity of bit vectors, as said of `terms.Terms.linear`.
    """
    form = terms.linear(pointer)
    half = 1 << (form.bits - 1)
    return SymbolicAddress(tuple(form.coefficients.items()), ((form.constant + half) & (2 * half - 1)) - half)


def is_pointer(access: Access) -> bool:
    """Whether nothing is known of the address, so that flow facts about pointers speak of it."""
    return access.base is Base.ANY or access.offset.extent >= _UNKNOWN_BYTES


class Lines:
    """The groups of all accesses of a program, and the line of each."""

    def __init__(
        self, terms: Terms, accesses: Iterable[Access], config: CacheConfig, pointer_alignment_bytes: int
    ) -> None:
        self._terms, self._config = terms, config
        self._pointer_alignment_bytes = pointer_alignment_bytes
        self._numbers: dict[object, int] = {}
        self.groups: list[Group] = []
        seen: dict[tuple[tuple[Term, int], ...], list[tuple[Access, int]]] = {}
        for access in accesses:
            if self._line_number(access) is None and access.pointer is not None:
                address = symbolic_address(terms, access.pointer)
                seen.setdefault(address.variable, []).append((access, address.constant))
        for variable, found in seen.items():
            self._add(variable, self._group(variable, found))

    def of_number(self, number: int) -> Line:
        """The line of address ``number * line bytes``."""
        known = self._numbers.get(number)
        if known is None:
            sets = frozenset({number % self._config.sets})
            known = self._add(number, Group(frozenset(), self._config.line_bytes, 0, sets, is_short=True))
        return Line(known, 0)

    def of_access(self, access: Access) -> Line | None:
        """The line of ``access``; None where it cannot be named, or where it is not one line."""
        if access.size_bytes > self._config.line_bytes:
            return None
        number = self._line_number(access)
        if number is not None:
            return self.of_number(number)
        return None if access.pointer is None else self.of_address(symbolic_address(self._terms, access.pointer))

    def of_address(self, address: SymbolicAddress) -> Line | None:
        """The line of a symbolic address, if an access has the same variable part."""
        known = self._numbers.get(address.variable)
        if known is None or not self.groups[known].is_short:
            return None
        return Line(known, self.groups[known].granule(address.constant))

    def offset(self, line: Line, variable: tuple[tuple[Term, int], ...]) -> int | None:
        """How far behind ``variable`` a byte of ``line`` is; None where the line's name does not speak of it."""
        if self._numbers.get(variable) != line.group:
            return None
        group = self.groups[line.group]
        return line.granule * group.alignment_bytes - group.residue

    def _line_number(self, access: Access) -> int | None:
        if access.base is Base.NUMBER and access.offset.is_constant:
            return access.offset.value // self._config.line_bytes
        return None

    def _add(self, key: object, group: Group) -> int:
        self._numbers[key] = len(self.groups)
        self.groups.append(group)
        return self._numbers[key]

    def _group(self, variable: Sequence[tuple[Term, int]], found: Sequence[tuple[Access, int]]) -> Group:
        config = self._config
        known = [self._alignment(access, constant) for access, constant in found]
        alignment = min(alignment for alignment, _ in known)
        while len({residue % alignment for _, residue in known}) > 1:
            alignment //= 2
        constants = [constant for _, constant in found]
        span = max(constants) - min(constants) + max(access.size_bytes for access, _ in found)
        leaves = frozenset().union(*(self._terms.leaves(term) for term, _ in variable))
        is_short = span <= (config.sets - 1) * config.line_bytes
        return Group(leaves, alignment, known[0][1] % alignment, self._sets(found), is_short)

    def _alignment(self, access: Access, constant: int) -> tuple[int, int]:
        """A power of two modulo which the variable part is known, and its residue."""
        offset, most = access.offset, self._config.line_bytes
        if is_pointer(access):
            return min(self._pointer_alignment_bytes, most), 0
        most = min(STACK_ALIGNMENT_BYTES, most) if access.base is Base.STACK else most
        alignment = most if offset.is_constant else min(most, offset.stride & -offset.stride)
        return alignment, (offset.low - constant) % alignment

    def _sets(self, found: Sequence[tuple[Access, int]]) -> frozenset[int] | None:
        sets: set[int] = set()
        for access, _ in found:
            low, high = access.offset.unsigned_range()
            numbers = range(low // self._config.line_bytes, (high + access.size_bytes - 1) // self._config.line_bytes + 1)
            if access.base is not Base.NUMBER or len(numbers) >= self._config.sets:
                return None
            sets.update(number % self._config.sets for number in numbers)
        return frozenset(sets)
