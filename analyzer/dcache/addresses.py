"""Where an access may go: its addresses, the lines and sets of the cache, and what flow facts say of them.

The values of the parts of an address tell it, or flow facts about pointers where they do not. Cross-checked runs are
held against it.

Words: strided interval, line, asserted (docs/explanation/glossary.md).

*Soundness:* the stack pointer at entry is a multiple of 8 (assumption ``stack-alignment``), and a number of which
nothing is known and to which others are added to make an address is a multiple of what a flow fact says of pointers.

The index is masked, so that the access is known to be to one line of static memory, of set 0:

>>> table = example('''
... unsigned small[8] __attribute__((aligned(32)));
... unsigned f(unsigned i) { return small[i & 7] + small[i & 3]; }''')
>>> first = next(table.lines.accesses(0))
>>> table.lines.places.place_of(first), sorted(table.lines.places.sets_of(first))
('static', [0])
>>> table.lines.places.span(first, {}).value
'one'
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from wcet_probe.analyzer.dcache.address_classes import AddressClasses
from wcet_probe.analyzer.dcache.asserted_alignment import Asserted, asserted_of
from wcet_probe.analyzer.domains import strided
from wcet_probe.analyzer.domains.congruences import Congruence
from wcet_probe.analyzer.domains.strided import StridedInterval
from wcet_probe.analyzer.facts.language import Visit
from wcet_probe.analyzer.facts.memory import Objects, PointerFacts
from wcet_probe.analyzer.pcode.semantics import signed
from wcet_probe.analyzer.values.execution.accesses import Access
from wcet_probe.analyzer.values.properties.congruences import Congruences
from wcet_probe.analyzer.values.states.bases import Base
from wcet_probe.analyzer.values.states.unknown_numbers import is_unknown
from wcet_probe.model.target import CacheConfig

_MOST_TRIED = 256
"""Most addresses of an access that are looked at one by one."""


class Span(StrEnum):
    """How many lines of the cache an access goes to, each time that it takes place.

    ``ONE``: as many as its bytes need where the first of them begins a line, thus one line if it is not larger.
    ``SEVERAL``: it may go to one more. ``ASSUMED``: it may, unless what its address is computed from is aligned.
    """

    ONE = "one"
    SEVERAL = "several"
    ASSUMED = "assumed"


@dataclass(frozen=True, slots=True)
class Places:
    """Where the accesses of a program may go.

    Attributes:
        residues: classes of the numbers that addresses are sums of, modulo the bytes of a line.
        config: the cache.
        pointers: what flow facts say of addresses of which nothing else is known.
    """

    residues: Congruences
    config: CacheConfig
    pointers: PointerFacts

    @property
    def classes(self) -> AddressClasses:
        """Residue classes of addresses, modulo the bytes of a line at most."""
        return AddressClasses(self.residues, self.pointers, self.config.line_bytes)

    def alignment(self, access: Access, asserted: Asserted, *, is_folded: bool = False) -> Congruence:
        """As `AddressClasses.of_variable_part`."""
        return self.classes.of_variable_part(access, asserted, is_folded=is_folded)

    def span(self, access: Access, asserted: Asserted) -> Span:
        """How many lines ``access`` goes to; ``asserted`` is what facts say.

        *Soundness:* all addresses that it may have are looked at, or their residue class. The assumption ``alignment``
        is made only of a number of which nothing is known, and only where the access is aligned if that number is.
        """
        line_bytes, offset = self.config.line_bytes, access.offset
        size_bytes = min(access.size_bytes, line_bytes)
        unknown = [(term, part) for factor, term, part in access.parts if is_unknown(factor, part)]
        if not unknown and access.base is Base.NUMBER and offset.size <= _MOST_TRIED:
            fitting = line_bytes - size_bytes
            return Span.ONE if all(one % line_bytes <= fitting for one in offset.values()) else Span.SEVERAL
        natural = Congruence(1 << (size_bytes - 1).bit_length(), 0)
        aligned = {
            term: asserted[term] if term in asserted and asserted[term].modulo(natural.modulus).residue else natural
            for term, _ in unknown
            if term is not None
        }
        for classes, span in ((asserted, Span.ONE), (aligned, Span.ASSUMED)):
            modulus, residue = self.alignment(access, classes)
            if (residue + access.constant) % modulus + size_bytes <= modulus:
                return span
        return Span.SEVERAL

    def place_of(self, access: Access) -> str:
        """Where ``access`` goes, as `proof.AccessRange` has it.

        *Soundness:* follows from its parts, or from what a flow fact says where they do not tell its set, or not its
        lines.
        """
        if access.base is Base.STACK:
            return "stack"
        asserted = self.pointers.of_access(access)
        if self._sets_by_parts(access) is not None:
            return "static"
        return "any" if asserted.sets is None and asserted.extent is None else "told"

    def touch_of(self, access: Access) -> Visit | None:
        """What a flow fact says of how often the call has visited the line of ``access``."""
        return self.pointers.of_access(access).visit

    def line_changes_of(self, access: Access) -> tuple[str, int] | None:
        """A flow fact, and how many accesses it lets go to another line than the access before."""
        changes = self.pointers.of_access(access).line_changes
        return None if changes is None else (changes.where, changes.most)

    def objects_of(self, access: Access) -> Objects | None:
        """What a flow fact counts the line of ``access`` among; it speaks of addresses of which nothing else is known.

        *Soundness:* as far as the fact is true.
        """
        asserted = self.pointers.of(access.instruction_address).objects
        if (
            asserted is None
            or access.size_bytes > self.config.line_bytes
            or self.place_of(access) in {"stack", "static"}
        ):
            return None
        return asserted

    def lines_of(self, access: Access) -> tuple[str, int, int] | None:
        """The flow fact that counts the line of ``access``, the most lines, and the most of them in one set."""
        objects = self.objects_of(access)
        return None if objects is None else (objects.where, objects.lines, objects.lines_per_set)

    def fact_of(self, access: Access) -> str:
        """The flow fact that anything said of ``access`` rests on; empty where nothing does."""
        asserted = self.pointers.of(access.instruction_address)
        is_placed = asserted.sets is not None or asserted.extent is not None
        says = asserted.visit or asserted.line_changes or self.objects_of(access) or asserted_of(access, self.pointers)
        if says or (is_placed and access.base is not Base.STACK and self._sets_by_parts(access) is None):
            return asserted.where
        return ""

    def observable(self, access: Access) -> StridedInterval:
        """The addresses that ``access`` may go to, as every run must show them: what flow facts say is part of it.

        *Soundness:* the alignment of the variable part, and the constant, are those that misses are counted by. Of a
        folded address (`symbolic_blocks._Address`) accesses before it show them, as this one does not.
        """
        asserted, aligned = self._asserted_range(access), self.classes.observable(access)
        return aligned if asserted is None else strided.meet(aligned, asserted)

    def sets_of(self, access: Access) -> frozenset[int] | None:
        """The sets that ``access`` may be to; None for any.

        *Soundness:* follows from its parts, or from what a flow fact says where they do not tell it.
        """
        known = self._sets_by_parts(access)
        if known is not None or access.base is Base.STACK:
            return known
        numbers = self.numbers_of(access)
        if numbers is not None:
            return frozenset(number % self.config.sets for number in numbers)
        sets = self.pointers.of_access(access).sets
        if sets is None or self.span(access, asserted_of(access, self.pointers)) is not Span.SEVERAL:
            return sets
        more = range(-(-access.size_bytes // self.config.line_bytes) + 1)
        return frozenset((number + one) % self.config.sets for number in sets for one in more)

    def numbers_of(self, access: Access) -> frozenset[int] | None:
        """The lines that ``access`` may be to, if they are no more than the cache has sets."""
        asserted = self._asserted_range(access)
        if access.base is not Base.NUMBER and asserted is None:
            return None
        low, high = (access.offset if asserted is None else strided.meet(access.offset, asserted)).unsigned_range()
        line_bytes = self.config.line_bytes
        numbers = range(low // line_bytes, (high + access.size_bytes - 1) // line_bytes + 1)
        return frozenset(numbers) if len(numbers) <= self.config.sets else None

    def _asserted_range(self, access: Access) -> StridedInterval | None:
        """The addresses of the object that a flow fact says ``access`` is in, where its parts do not tell the sets.

        None, too, where there is no such address: the fact then says nothing of the access.
        """
        extent = self.pointers.of_access(access).extent
        if extent is None or access.base is Base.STACK or self._sets_by_parts(access) is not None:
            return None
        asserted = strided.between(access.offset.bits, extent.base_address, extent.end_address - access.size_bytes)
        is_possible = not any(
            strided.meet(known, asserted).is_bottom for known in (access.offset, self.classes.observable(access))
        )
        return asserted if is_possible else None

    def _sets_by_parts(self, access: Access) -> frozenset[int] | None:
        """The sets by the values of the parts; a part that is a multiple of all sets' bytes does not change the set."""
        config = self.config
        page_bytes = config.sets * config.line_bytes
        low, extent = access.constant, access.size_bytes
        for factor, _, part in access.parts:
            step = signed(part.bits, factor)
            low += step * part.low
            if step * part.stride % page_bytes:
                low += min(0, step * part.extent)
                extent += abs(step) * part.extent
        if access.base is not Base.NUMBER or extent > page_bytes:
            return None
        lines = range(low // config.line_bytes, (low + extent - 1) // config.line_bytes + 1)
        return frozenset(number % config.sets for number in lines)
