"""Symbolic cache blocks: which accesses are surely to one line, and which are surely to different sets.

The address of an access is a term (`analyzer.terms`), a sum of a variable part and a constant. Accesses with the same
variable part form a *reference group*: they are so many bytes apart, whatever its value is. If the variable part is
known modulo the size of a line, it is known which of them share a line; if it is known modulo a smaller power of two,
those share a line that lie in one *granule* of that size. An address that is a number is a group of its own for each
line.

An access that may go to several lines is cut into pieces, one for each: its first byte, those that are whole lines
further on, and its last byte. Where the last one is in the line of another, it changes nothing in the cache.

After S. Hahn and D. Grund, Relational cache analysis for static timing analysis, ECRTS 2012.

Words: symbolic cache block, reference group, symbolic variable (docs/explanation/glossary.md).

*Soundness:* a group is compared with itself only as long as no symbol of its variable part is given another value; that
is for `younger_sets` to see to. What is known of a variable part, and of where an access may go, is as
said of `addresses`.

All accesses of this loop are by one symbol, the node that is walked: one reference group. The node is asserted to be
a multiple of 16, so that a granule has 16 bytes, and the fields of a node are in one:

>>> walk = example('''
... struct node { struct node *next; unsigned key, size; };
... unsigned f(struct node *n, unsigned count) {
...     unsigned sum = 0;
...     for (; count; count--) { sum += n->key; if (sum & 1) n->size = sum; n = n->next; }
...     return sum;
... }''')
>>> walk.blocks()  # of each access: reference group and granule
[('load', (0, 0)), ('load', (0, 0)), ('store', (0, 0))]
>>> [(group.alignment_bytes, len(group.symbols)) for group in walk.lines.groups]
[(16, 1)]
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import chain
from typing import NamedTuple

from wcet_probe.analyzer.dcache.addresses import Places, Span
from wcet_probe.analyzer.dcache.asserted_alignment import Asserted, AssertedOf, asserted_alignments
from wcet_probe.analyzer.domains import strided
from wcet_probe.analyzer.domains.congruences import Congruence, joined
from wcet_probe.analyzer.facts.memory import PointerFacts
from wcet_probe.analyzer.pcode.semantics import signed
from wcet_probe.analyzer.values.execution.accesses import Access
from wcet_probe.analyzer.values.properties.congruences import Congruences
from wcet_probe.analyzer.values.result import Values
from wcet_probe.analyzer.values.states.bases import Base
from wcet_probe.analyzer.values.states.unknown_numbers import is_unknown
from wcet_probe.analyzer.values.symbolic.linear import Linear, combined
from wcet_probe.analyzer.values.symbolic.term_table import Term
from wcet_probe.model.target import CacheConfig

_MOST_CANDIDATES = 8


class SymbolicBlock(NamedTuple):
    """A line as far as it is known: granules of a group may share one."""

    group: int
    granule: int


class Substituted(NamedTuple):
    """A further name of a line, and which names' classes of the variable part imply the other's."""

    line: SymbolicBlock
    is_implied: bool
    implies_old: bool


class Successor(NamedTuple):
    """Lines of group ``of`` are lines of group ``to`` behind an edge, ``moved`` by so many bytes."""

    of: int
    to: int
    moved: int


@dataclass(frozen=True, slots=True)
class ReferenceGroup:
    """Accesses whose addresses have the same variable part.

    Attributes:
        symbols: of the variable part; none for a line whose number is known.
        deciding: those of them that decide its value wherever it is known (`Terms.deciding`).
        alignment_bytes: power of two up to the bytes of a line, modulo which the variable part is known.
        residue: the variable part modulo ``alignment_bytes``.
        numbers: lines that its lines may be, as address / line bytes; None for any.
        sets: cache sets that its lines may be in; None for any.
        is_short: whether no two of its lines are in one set.
        set_count: sets of the cache.
    """

    symbols: frozenset[Term]
    deciding: frozenset[Term]
    alignment_bytes: int
    residue: int
    numbers: frozenset[int] | None
    sets: frozenset[int] | None
    is_short: bool
    set_count: int

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

    def may_meet(self, other: ReferenceGroup) -> bool:
        """Whether different lines of the two may be in one set.

        *Soundness:* no only if both are known to be in different sets, or to be the same line where they are not.
        """
        if self.numbers is not None and other.numbers is not None:
            both = self.numbers | other.numbers
            return len({number % self.set_count for number in both}) < len(both)
        return self.sets is None or other.sets is None or not self.sets.isdisjoint(other.sets)


def most_in_one_set(group: ReferenceGroup, others: Collection[ReferenceGroup]) -> int:
    """Most lines, one of each of ``others``, that can be in one set with a line of ``group``.

    *Soundness:* the largest number over the sets that the line may be in, counting all that may be in the set. Of
    ``others`` whose lines are known by number, no more can be in a set than there are such numbers. The line itself is
    none of those that are counted, if its number is known.
    """
    unknown = sum(other.sets is None for other in others)
    unnumbered = Counter(one for other in others if other.numbers is None for one in other.sets or ())
    names = Counter(one for other in others if other.numbers is not None for one in other.sets or ())
    numbers = frozenset().union(*(other.numbers or () for other in others))
    if group.numbers is not None and len(group.numbers) == 1:
        numbers -= group.numbers
    lines = Counter(number % group.set_count for number in numbers)
    own = unnumbered.keys() | names.keys() if group.sets is None else group.sets
    return unknown + max((unnumbered[one] + min(names[one], lines[one]) for one in own), default=0)


class _Address(NamedTuple):
    """The variable part of an address, and the rest: ``constant``, or up to ``extent`` bytes more.

    Where it ``is_folded``, what is known of the address to be in a range is no variable part.
    """

    symbolic_part: tuple[tuple[Term, int], ...]
    constant: int
    extent: int = 0
    is_folded: bool = False


class _Seen(NamedTuple):
    """An access, its address, and the class of the variable part."""

    access: Access
    address: _Address
    symbolic_part: Congruence


class SymbolicBlocks:
    """The groups of all accesses of a program, and the line of each; ``places`` tells where each may go.

    ``pieces`` are what each access of a point is cut into, and ``assumed`` the instructions of which it is assumed that
    their accesses do not cross a line.
    """

    def __init__(self, values: Values, config: CacheConfig, pointers: PointerFacts) -> None:
        self._terms, self._config = values.terms, config
        self.places = Places(Congruences(values, config.line_bytes), config, pointers)
        self._numbers: dict[object, int] = {}
        self._symbolic_parts: list[Mapping[Term, int]] = []
        self._granules: list[set[int]] = []
        self._by_part: dict[Term, list[int]] = {}
        self.groups: list[ReferenceGroup] = []
        alignments = asserted_alignments(values, pointers)
        self.pieces: dict[int, tuple[tuple[Access, ...], ...]] = {}
        self.assumed: set[int] = set()
        named: list[tuple[Access, AssertedOf]] = []
        for point in sorted(values.states):
            here = tuple(zip(values.accesses[point], alignments[point], strict=True))
            self.pieces[point] = tuple(self._pieces(access, asserted.terms) for access, asserted in here)
            for pieces, (_, asserted) in zip(self.pieces[point], here, strict=True):
                named += ((piece, asserted) for piece in pieces if self._line_number(piece) is None)
        self._extents: dict[int, tuple[int, int]] = {}
        self._addresses: dict[Access, _Address] = {}
        for access, (_, shown) in named:
            if access.pointer is not None:
                address = self._address(access, access.pointer, shown)
                # What is known on one way only folds nothing on the other.
                if self._addresses.setdefault(access, address) != address:
                    self._addresses[access] = _plain(values.terms.linear(access.pointer), access.skipped_bytes)
        seen: dict[tuple[tuple[Term, int], ...], list[_Seen]] = {}
        for access, (own, shown) in named:
            if access in self._addresses:
                address = self._addresses[access]
                classes = shown if address.is_folded else own
                known = self.places.alignment(access, classes, is_folded=address.is_folded)
                seen.setdefault(address.symbolic_part, []).append(_Seen(access, address, known))
        for symbolic_part, found in seen.items():
            number = self._add(symbolic_part, self._group(symbolic_part, found), dict(symbolic_part))
            self._extents[number] = _extent(found)
            self._granules[number] |= {self.groups[number].granule(one.address.constant) for one in found}

    def _pieces(self, access: Access, asserted: Asserted) -> tuple[Access, ...]:
        """The parts of ``access`` that lie in one line each, upwards; the last may be in the line of the one before.

        *Soundness:* the first and the last byte are accessed wherever the access takes place, and bytes in between are
        no more than a line apart.
        """
        span, size_bytes = self.places.span(access, asserted), access.size_bytes
        if span is Span.ASSUMED:
            self.assumed.add(access.instruction_address)
        skipped = [*range(0, size_bytes, self._config.line_bytes)]
        if span is Span.SEVERAL and skipped[-1] != size_bytes - 1:
            skipped.append(size_bytes - 1)
        if skipped == [0]:
            return (access,)
        return tuple(_piece(access, one) for one in skipped)

    def groups_by_symbol(self) -> Mapping[Term, Sequence[int]]:
        """Of each symbol the groups whose variable part is made of it, in order."""
        found: dict[Term, list[int]] = {}
        for number, group in enumerate(self.groups):
            for symbol in group.symbols:
                found.setdefault(symbol, []).append(number)
        return found

    def accesses(self, point: int) -> Iterator[Access]:
        """The accesses at ``point``, in pieces."""
        return chain.from_iterable(self.pieces[point])

    def of_number(self, number: int) -> SymbolicBlock:
        """The line of address ``number * line bytes``."""
        known = self._numbers.get(number)
        if known is None:
            config, numbers = self._config, frozenset({number})
            sets = frozenset({number % config.sets})
            group = ReferenceGroup(
                frozenset(), frozenset(), config.line_bytes, 0, numbers, sets, is_short=True, set_count=config.sets
            )
            known = self._add(number, group, {})
        return SymbolicBlock(known, 0)

    def candidate(self, number: int) -> SymbolicBlock:
        """The line of address ``number * line bytes``, as one that an access may be to: a name of its own."""
        key = "candidate", number
        if key not in self._numbers:
            exact = self.groups[self.of_number(number).group]
            self._add(key, exact, {})
        return SymbolicBlock(self._numbers[key], 0)

    def symbolic_part(self, number: int) -> Mapping[Term, int]:
        """The variable part of a group."""
        return self._symbolic_parts[number]

    def alias(self, number: int) -> int:
        """A further group of the same lines, whose name is not killed where a symbol gets another value."""
        key = "alias", number
        known = self._numbers.get(key)
        if known is None:
            group = replace(self.groups[number], symbols=frozenset(), deciding=frozenset())
            known = self._add(key, group, {})
        return known

    def is_near(self, number: int, step_bytes: int) -> bool:
        """Whether no two lines of a group are in one set, nor one with those before it moved by ``step_bytes``."""
        group, granules = self.groups[number], self._granules[number]
        if not group.is_short or not granules:
            return False
        span = (max(granules) - min(granules) + 1) * group.alignment_bytes + step_bytes
        return span <= (self._config.sets - 2) * self._config.line_bytes

    def stand_ins(self) -> Mapping[int, frozenset[int]]:
        """The groups of the candidates for the lines of a group, for each group that has few."""
        few = {
            number: group.numbers
            for number, group in enumerate(self.groups)
            if group.symbols and group.numbers is not None and len(group.numbers) <= _MOST_CANDIDATES
        }
        return {
            number: frozenset(self.candidate(one).group for one in sorted(numbers)) for number, numbers in few.items()
        }

    def candidates_of(self, access: Access) -> tuple[SymbolicBlock, ...]:
        """The lines that ``access`` may be to, if their numbers are known; none if they are not, or are too many."""
        numbers = self.places.numbers_of(access)
        if numbers is None or len(numbers) > _MOST_CANDIDATES:
            return ()
        return tuple(self.candidate(number) for number in sorted(numbers))

    def of_access(self, access: Access) -> SymbolicBlock | None:
        """The line of ``access``, a piece of one or all of it; None where it cannot be named."""
        number = self._line_number(access)
        if number is not None:
            return self.of_number(number)
        return self._line_of(self._addresses[access]) if access in self._addresses else None

    def of_address(self, address: Linear) -> SymbolicBlock | None:
        """The line of a symbolic address, if an access has the same variable part."""
        return self._line_of(_plain(address))

    def _line_of(self, address: _Address) -> SymbolicBlock | None:
        known = self._numbers.get(address.symbolic_part)
        if known is None or not self.groups[known].is_short:
            return None
        first, last = (self.groups[known].granule(address.constant + more) for more in (0, address.extent))
        return SymbolicBlock(known, first) if first == last else None

    def _address(self, access: Access, pointer: Term, shown: Asserted) -> _Address:
        """The address of ``access``: what is known of it is no variable part if it does not lead out of one granule.

        *Soundness:* a line is that of each byte of a granule, if the variable part is in its class. Accesses before
        have ``shown`` it, as this one does not.
        """
        plain = _plain(self._terms.linear(pointer), access.skipped_bytes)
        known = [(signed(part.bits, factor), part) for factor, _, part in access.parts if not is_unknown(factor, part)]
        if access.has_stack_part or not 0 < len(known) < len(access.parts):
            return plain  # of the stack pointer only the distance from that at entry is known
        symbolic_part = tuple(
            one
            for one, (factor, _, part) in zip(plain.symbolic_part, access.parts, strict=True)
            if is_unknown(factor, part)
        )
        low = plain.constant + sum(step * part.low + min(0, step * part.extent) for step, part in known)
        folded = _Address(symbolic_part, low, sum(abs(step) * part.extent for step, part in known), is_folded=True)
        modulus, residue = self.places.alignment(access, shown, is_folded=True)
        is_one = (low + residue) // modulus == (low + folded.extent + residue) // modulus
        return folded if is_one else plain

    def substituted(
        self, line: SymbolicBlock, old: Linear, new: Linear, killed: Collection[Term]
    ) -> Substituted | None:
        """The name that ``line`` has by ``new``, where what it speaks of is ``old``; None where it has none.

        *Soundness:* ``old`` and ``new`` are equal, so the address of a byte of the line is the same with ``new`` added
        and ``old`` subtracted as often as it contains ``old``. What is left of it speaks of no symbol among ``killed``,
        which may have other values by now. By its new name the line is one that some access may be to, and it may meet
        whatever it may meet by the old one.
        """
        group = self.groups[line.group]
        offset = line.granule * group.alignment_bytes - group.residue
        address = self._instead(line.group, offset, old, new, killed)
        named = None if address is None else self.of_address(address)
        if address is None or named is None or named.granule not in self._granules[named.group]:
            return None
        other = self.groups[named.group]
        if not _covers(other, group):
            return None
        # The byte is the first of a granule, if the old variable part is in its class.
        alignments = group.alignment_bytes, other.alignment_bytes
        is_same = (signed(address.bits, address.constant) + other.residue) % min(alignments) == 0
        return Substituted(
            named, is_same and alignments[1] <= alignments[0], is_same and alignments[0] <= alignments[1]
        )

    def with_part(self, old: Linear) -> Sequence[int]:
        """The groups, in order, of whose variable part `successor` may find ``old`` to be a summand."""
        term = next(iter(old.coefficients), None)
        return () if term is None else self._by_part.get(term, ())

    def successor(self, number: int, old: Linear, new: Linear, killed: Collection[Term]) -> Successor | None:
        """What the accessed lines of group ``number`` are lines of, where what it speaks of is ``new``, not ``old``.

        *Soundness:* as said of `substituted`; lines of the new group may meet whatever those of the old one may meet.
        """
        address = self._instead(number, 0, old, new, killed)
        known = None if address is None else self._numbers.get(tuple(address.coefficients.items()))
        if address is None or known is None or not _covers(self.groups[known], self.groups[number]):
            return None
        return Successor(number, known, signed(address.bits, address.constant))

    def lasting(self, successors: Iterable[Successor]) -> frozenset[Successor]:
        """Those of ``successors`` behind which still no two lines of a group are in one set.

        *Soundness:* lines that a group has from others are passed on with its own, so extents grow until nothing
        changes; what makes one too long is left out, and the others are tried without it.
        """
        left = {one for one in successors if one.of != one.to or one.moved == 0}
        while True:
            extents, long = dict(self._extents), None
            changed = True
            while changed and long is None:
                changed = False
                for one in sorted(left):
                    (low, end), (own_low, own_end) = extents[one.to], extents[one.of]
                    both = min(low, own_low + one.moved), max(end, own_end + one.moved)
                    if not self._is_short(both[1] - both[0]):
                        long = one
                        break
                    changed |= both != extents[one.to]
                    extents[one.to] = both
            if long is None:
                return frozenset(left)
            left.discard(long)

    def _instead(self, number: int, offset: int, old: Linear, new: Linear, killed: Collection[Term]) -> Linear | None:
        """The variable part of a group and ``offset``, with ``new`` instead of ``old``; None if it cannot be told."""
        symbolic_part = self._symbolic_parts[number]
        term, coefficient = next(iter(old.coefficients.items()), (None, 0))
        if term is None or term not in symbolic_part or coefficient % 2 == 0:
            return None
        times = symbolic_part[term] * pow(coefficient, -1, 1 << old.bits)
        rest = combined(Linear(symbolic_part, offset, old.bits), old, -times)
        if any(not self._terms.symbols(one).isdisjoint(killed) for one in rest.coefficients):
            return None
        return combined(rest, new, times)

    def _line_number(self, access: Access) -> int | None:
        if access.base is Base.NUMBER and access.offset.is_constant:
            return access.offset.value // self._config.line_bytes
        return None

    def _add(self, key: object, group: ReferenceGroup, symbolic_part: Mapping[Term, int]) -> int:
        self._numbers[key] = len(self.groups)
        for term in symbolic_part:
            self._by_part.setdefault(term, []).append(len(self.groups))
        self.groups.append(group)
        self._symbolic_parts.append(symbolic_part)
        self._granules.append(set())
        return self._numbers[key]

    def _group(self, symbolic_part: Sequence[tuple[Term, int]], found: Sequence[_Seen]) -> ReferenceGroup:
        config = self._config
        alignment, residue = reduce(joined, (one.symbolic_part for one in found))
        low, end = _extent(found)
        symbols = frozenset().union(*(self._terms.symbols(term) for term, _ in symbolic_part))
        deciding = frozenset().union(*(self._terms.deciding(term) for term, _ in symbolic_part))
        is_short = self._is_short(end - low)
        numbers = _united(self.places.numbers_of(one.access) for one in found)
        sets = _united(self.places.sets_of(one.access) for one in found)
        return ReferenceGroup(symbols, deciding, alignment, residue, numbers, sets, is_short, config.sets)

    def _is_short(self, span_bytes: int) -> bool:
        """Whether no two lines of so many bytes are in one set."""
        return span_bytes <= (self._config.sets - 1) * self._config.line_bytes


def _piece(access: Access, skipped_bytes: int) -> Access:
    bits = access.offset.bits
    return replace(
        access,
        offset=strided.apply("INT_ADD", (access.offset, strided.constant(bits, skipped_bytes)), bits),
        size_bytes=1,
        constant=(access.constant + skipped_bytes) % (1 << bits),
        skipped_bytes=skipped_bytes,
    )


def _extent(found: Iterable[_Seen]) -> tuple[int, int]:
    """Where the first access begins and the last one ends, beyond the variable part."""
    places = [(one.address.constant, one.address.extent + one.access.size_bytes) for one in found]
    return min(low for low, _ in places), max(low + size for low, size in places)


def _plain(address: Linear, skipped_bytes: int = 0) -> _Address:
    return _Address(tuple(address.coefficients.items()), signed(address.bits, address.constant + skipped_bytes))


def _covers(wide: ReferenceGroup, narrow: ReferenceGroup) -> bool:
    """Whether lines of ``wide`` may be wherever lines of ``narrow`` may be."""
    return all(
        known is None or (other is not None and other <= known)
        for known, other in ((wide.numbers, narrow.numbers), (wide.sets, narrow.sets))
    )


def _united(parts: Iterable[frozenset[int] | None]) -> frozenset[int] | None:
    """The union; None, which stands for everything, if a part is."""
    found: set[int] = set()
    for part in parts:
        if part is None:
            return None
        found |= part
    return frozenset(found)
