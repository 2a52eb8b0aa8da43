"""Which alignments that flow facts assert of pointers follow from what is known of the allocator's words.

A fact gives its class to terms of an address of which nothing else is known (`asserted_alignment`). It is proved where
each of them has residues of that class alone, in every operation, for every way in which the address may be one.

Words: data invariant, asserted, congruence (docs/explanation/glossary.md).

*Soundness:* the accesses and terms are those that a bound gives the fact's class to, by the same function, and the
class is what the bound takes it for: that of what the term comes from (`values.congruences`). Residues are those of
`invariants.typed_memory`, under its lemmas and premises.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product

from wcet_probe.analyzer.dcache.addresses import Places
from wcet_probe.analyzer.dcache.asserted_alignment import asserted_of
from wcet_probe.analyzer.domains.congruences import Congruence
from wcet_probe.analyzer.invariants.kinds import MODULUS, Part, members
from wcet_probe.analyzer.invariants.typed_memory import Evaluator, TypedMemory, followed
from wcet_probe.analyzer.invariants.typed_operations import TypedAccess, TypedOperation
from wcet_probe.analyzer.values.bases import Base
from wcet_probe.analyzer.values.term_table import Term


@dataclass(frozen=True, slots=True)
class AlignmentClaim:
    """What a fact asserts of the alignment of addresses, and whether it is proved.

    Attributes:
        where: the fact.
        accesses: how many accesses, by call path, rest on it.
        open_accesses: those of which it is not proved: the instruction's address, with what was found, in words.
    """

    where: str
    accesses: int
    open_accesses: tuple[tuple[int, str], ...] = field(default=())

    @property
    def is_proved(self) -> bool:
        """Whether it holds of all of them, and there are any."""
        return self.accesses > 0 and not self.open_accesses


def alignment_claims(
    operations: Sequence[TypedOperation], places: Sequence[Places], memory: TypedMemory, evaluator: Evaluator
) -> tuple[AlignmentClaim, ...]:
    """What is proved of each fact about pointers, in the order of the facts' places.

    Args:
        operations: of the module.
        places: what facts say of each of them, and what follows from it.
        memory: what is known of its words.
        evaluator: of terms.

    *Soundness:* as said of the module; where a store is lost, nothing is proved.
    """
    counts: dict[str, int] = {}
    left: dict[str, list[tuple[int, str]]] = {}
    for index, (one, told) in enumerate(zip(operations, places, strict=True)):
        for access in one.accesses:
            asserted = asserted_of(access.access, told.pointers)
            if not asserted:
                continue
            where = told.pointers.of(access.access.instruction_address).where
            if not where:
                continue
            counts[where] = counts.get(where, 0) + 1
            found = "the address of a store is not known" if memory.lost else ""
            if access.access.base is not Base.NUMBER:
                found = found or "its address may be on the stack, of which words are not told by residues"
            for term, own in asserted.items():
                allowed = told.residues.of_unknown(term, own)
                found = found or _outside(index, access, term, allowed, memory, evaluator)
            if found:
                left.setdefault(where, []).append((access.access.instruction_address, found))
    return tuple(
        AlignmentClaim(where, counts[where], tuple(dict.fromkeys(left.get(where, ())))) for where in sorted(counts)
    )


def _outside(  # noqa: PLR0917  an access of an operation, what is claimed, what is known
    index: int, access: TypedAccess, term: Term, allowed: Congruence, memory: TypedMemory, evaluator: Evaluator
) -> str:
    """What ``term`` may be that is not ``allowed``, in words; empty: nothing."""
    if allowed.modulus > MODULUS:
        return f"residues are known modulo {MODULUS} only"
    state, pointer = access.transfer.state, access.transfer.pointer
    form = state.terms.linear(pointer)
    if term not in form.coefficients:
        return "the address is made of something else here"
    words = [evaluator.word(index, state, one, memory.found) for one in form.coefficients]
    factors, place = list(form.coefficients.values()), list(form.coefficients).index(term)
    for chosen in product(*words):
        summed = evaluator.sum([(f, (part,)) for f, part in zip(factors, chosen, strict=True)], form.constant)
        bad = [one for one in members(chosen[place].residues) if one % allowed.modulus != allowed.residue]
        if bad and followed(summed):
            return _said(chosen[place], bad)
    return ""


def _said(part: Part, bad: Sequence[int]) -> str:
    shown = ", ".join(str(one) for one in bad[:4]) + (", …" if len(bad) > 4 else "")
    return f"it may be {_KINDS[part.kind.name]} that is {shown} modulo {MODULUS}"


_KINDS = {
    "NULL": "null",
    "NEAR": "null and a number more",
    "NUMBER": "a number",
    "ARENA": "an address in the arena",
    "STATIC": "an address in static data",
    "CONSTANT": "an address in constant data",
    "MIXED": "something made of addresses",
    "ANY": "a word of which nothing is known,",
}
