"""Residue classes of the addresses of accesses, from the numbers that they are sums of and what facts say of those.

Words: congruence, asserted, flow fact (docs/explanation/glossary.md).

*Soundness:* the stack pointer at entry is a multiple of 8 (assumption ``stack-alignment``), and a number of which
nothing is known and to which others are added to make an address is in the class that a flow fact tells of pointers.

The node is a multiple of 8, so that its fields are at 0 and 4 of one:

>>> walk = example('''
... struct node { struct node *next; unsigned key; };
... unsigned f(struct node *n, unsigned count) {
...     unsigned sum = 0;
...     for (; count; count--) { sum += n->key; n = n->next; }
...     return sum;
... }''')
>>> classes = walk.lines.places.classes
>>> [classes.of_address(access, asserted_of(access, walk.pointers)).modulo(8) for access in walk.lines.accesses(3)]
[Congruence(modulus=8, residue=4), Congruence(modulus=8, residue=0)]
"""

from __future__ import annotations

from dataclasses import dataclass

from wcet_probe.analyzer.dcache.asserted_alignment import Asserted, asserted_of
from wcet_probe.analyzer.domains import strided
from wcet_probe.analyzer.domains.congruences import Congruence
from wcet_probe.analyzer.domains.strided import StridedInterval
from wcet_probe.analyzer.facts.memory import PointerFacts
from wcet_probe.analyzer.values.execution.accesses import Access
from wcet_probe.analyzer.values.properties.congruences import Congruences
from wcet_probe.analyzer.values.states.unknown_numbers import is_unknown
from wcet_probe.analyzer.values.symbolic.stack_alignment import STACK_ALIGNMENT_BYTES


@dataclass(frozen=True, slots=True)
class AddressClasses:
    """Classes of the addresses of a program's accesses.

    Attributes:
        residues: classes of the numbers that addresses are sums of.
        pointers: what flow facts say of addresses of which nothing else is known.
        most_bytes: the largest modulus that is asked for, a power of two.
    """

    residues: Congruences
    pointers: PointerFacts
    most_bytes: int

    def of_variable_part(self, access: Access, asserted: Asserted, *, is_folded: bool = False) -> Congruence:
        """A power of two modulo which the variable part is known, and its residue; ``asserted`` is what facts say.

        All of the address that is not constant is variable; if it ``is_folded``, only that of which no range is known.
        """
        known, residue = self.most_bytes, 0
        for factor, term, part in access.parts:
            if is_folded and not is_unknown(factor, part):
                continue
            own = (
                self.residues.of_unknown(term, asserted[term])
                if term is not None and term in asserted
                else self.residues.of_number(part)
            )
            known = min(known, factor * own.modulus & -(factor * own.modulus))
            residue += factor * own.residue
        if access.has_stack_part:
            known = min(known, STACK_ALIGNMENT_BYTES)
        return Congruence(known, residue % known)

    def of_address(self, access: Access, asserted: Asserted) -> Congruence:
        """The class of the address of ``access``; ``asserted`` is what facts say."""
        modulus, residue = self.of_variable_part(access, asserted)
        return Congruence(modulus, (residue + access.constant) % modulus)

    def observable(self, access: Access) -> StridedInterval:
        """The addresses that ``access`` may go to, by its parts and the alignment that facts tell of it."""
        if not any(is_unknown(factor, part) for factor, _, part in access.parts):
            return access.offset
        alignment, residue = self.of_address(access, asserted_of(access, self.pointers))
        return strided.residue_class(access.offset.bits, residue, alignment)

    def fact_of(self, access: Access) -> str:
        """The flow fact that the alignment of ``access`` rests on; empty where it rests on none."""
        is_asserted = asserted_of(access, self.pointers)
        return self.pointers.of(access.instruction_address).where if is_asserted else ""
