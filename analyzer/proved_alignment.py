"""Which alignments that flow facts assert of pointers follow from what is known of the allocator's words.

A fact gives its class to terms of an address of which nothing else is known (`asserted_alignment`). It is proved where
each of them has residues of that class alone, in every operation, for every way in which the address may be one.
Where a solver showed where each access goes (`deduction`), it is asked of the addresses instead, and so are the cache
sets that a fact names.

Words: data invariant, asserted, congruence (docs/explanation/glossary.md).

*Soundness:* the accesses and terms are those that a bound gives the fact's class to, by the same function, and the
class is what the bound takes it for: that of what the term comes from (`values.congruences`). Residues are those of
`invariants.typed_memory`, under its lemmas and premises; or an address is the term and a constant, and the classes of
all addresses that the instruction accesses on any way of the operation, by the solver, tell the term's. Of an
instruction that accesses several words behind one term, each is among these addresses, so that all fit the term. What
was proved of the term at accesses before holds as well. Of a sum of several terms one is the address less the others,
where it was proved of those at accesses before, or itself was proved there. Where the module's values are others than a
bound's (`frame_values`), the term is the address less what else it is the sum of.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import product

from wcet_probe.analyzer.dcache.addresses import Places
from wcet_probe.analyzer.dcache.asserted_alignment import Asserted, AssertedOf, asserted_alignments, asserted_of
from wcet_probe.analyzer.domains.congruences import Congruence, joined
from wcet_probe.analyzer.invariants.kinds import (
    MODULUS,
    Kind,
    Part,
    added,
    members,
    residue,
    residues_of,
    scaled,
)
from wcet_probe.analyzer.invariants.plain_frames import held
from wcet_probe.analyzer.invariants.typed_memory import Evaluator, TypedMemory, followed
from wcet_probe.analyzer.invariants.typed_operations import TypedAccess, TypedOperation
from wcet_probe.analyzer.values.execution.accesses import Access
from wcet_probe.analyzer.values.result import Values
from wcet_probe.analyzer.values.states.bases import Base
from wcet_probe.analyzer.values.symbolic.linear import Linear
from wcet_probe.analyzer.values.symbolic.locations import Location
from wcet_probe.analyzer.values.symbolic.symbol_names import ENTRY, defined_at
from wcet_probe.analyzer.values.symbolic.term_table import SymbolName, Term
from wcet_probe.analyzer.values.symbolic.terms import Terms

_SIGNS = 1, (1 << 32) - 1
"""Factors of a term that can be taken from a sum."""


@dataclass(frozen=True, slots=True)
class AlignmentClaim:
    """What a fact asserts of the alignment of addresses, or of their sets, and whether it is proved.

    Attributes:
        where: the fact.
        accesses: how many accesses, by call path, rest on it.
        open_accesses: those of which it is not proved: the instruction's address, with what was found, in words.
        invariant: what was found of all of them, in words: the data invariant that proves it, or is too weak.
    """

    where: str
    accesses: int
    open_accesses: tuple[tuple[int, str], ...] = field(default=())
    invariant: str = field(default="", compare=False)

    @property
    def is_proved(self) -> bool:
        """Whether it holds of all of them, and there are any."""
        return self.accesses > 0 and not self.open_accesses


def alignment_claims(
    operations: Sequence[TypedOperation],
    places: Sequence[Places],
    memory: TypedMemory,
    evaluator: Evaluator,
    asked: Sequence[Values] | None = None,
) -> tuple[AlignmentClaim, ...]:
    """What is proved of each fact about pointers, in the order of the facts' places.

    Args:
        operations: of the module.
        places: what facts say of each of them, and what follows from it.
        memory: what is known of its words.
        evaluator: of terms.
        asked: of each of them, the values that a bound takes the facts' classes for; None: those of the operations.

    *Soundness:* as said of the module; where a store is lost, nothing is proved.
    """
    counts: dict[str, int] = {}
    left: dict[str, list[tuple[int, str]]] = {}
    seen: dict[str, dict[Kind, int]] = {}
    for index, (one, told) in enumerate(zip(operations, places, strict=True)):
        sames = _Sames(None if asked is None else asked[index], one, index, memory, evaluator)
        for access, typed in _paired(one, sames.asked):
            asserted = asserted_of(access, told.pointers)
            where = told.pointers.of(access.instruction_address).where
            if not asserted or not where:
                continue
            counts[where] = counts.get(where, 0) + 1
            found = "the address of a store is not known" if memory.lost else ""
            if typed is None:
                found = found or "where the loops end as facts tell, it is not executed"
            elif typed.access.base is not Base.NUMBER:
                found = found or "its address may be on the stack, of which words are not told by residues"
            for term, own in asserted.items():
                allowed = told.residues.of_unknown(term, own)
                parts = None
                if typed is not None and not found:
                    parts = sames.followed(access, typed, term)
                found = found or _outside(parts, allowed)
                own_parts = seen.setdefault(where, {})
                for part in parts or ():
                    own_parts[part.kind] = own_parts.get(part.kind, 0) | part.residues
            if found:
                left.setdefault(where, []).append((access.instruction_address, found))
    return tuple(
        AlignmentClaim(
            where, counts[where], tuple(dict.fromkeys(left.get(where, ()))), "" if memory.lost else _told(seen[where])
        )
        for where in sorted(counts)
    )


def _paired(one: TypedOperation, asked: Values | None) -> Iterator[tuple[Access, TypedAccess | None]]:
    """The accesses of the values that are ``asked``, each as ``one`` has it; None where it is not executed.

    *Soundness:* both are of one graph, and each access of a point is one of its block's operations, in their order.
    """
    if asked is None or asked is one.values:
        yield from ((typed.access, typed) for typed in one.accesses)
        return
    found: dict[tuple[int, int, bool], list[TypedAccess]] = {}
    for typed in one.accesses:
        found.setdefault(_name(typed.transfer.place, typed.access), []).append(typed)
    for index in sorted(asked.states):
        names = [_name(index, access) for access in asked.accesses[index]]
        for number, (name, access) in enumerate(zip(names, asked.accesses[index], strict=True)):
            own = found.get(name, [])
            yield access, own[names[:number].count(name)] if len(own) == names.count(name) else None


def _name(point: int, access: Access) -> tuple[int, int, bool]:
    return point, access.instruction_address, access.is_store


@dataclass(frozen=True, slots=True)
class _Sames:
    """What terms of the values of a bound may be, by other values of the same graph that the module's operation has.

    *Soundness:* symbols of one name are the value of the same definition's latest execution, whatever is known of it.
    What else is held against what there is, is made of what the call began with, which does not change: what a
    location held where paths met, or a word of the stack that was loaded.
    """

    asked: Values | None
    operation: TypedOperation
    index: int
    memory: TypedMemory
    evaluator: Evaluator

    def followed(self, access: Access, typed: TypedAccess, term: Term) -> list[Part] | None:
        """What ``term`` of the address of ``access`` may be, which is that of ``typed``; None: not known.

        *Soundness:* it is a term there, or the address less what else it is the sum of. Of what is not known to be in
        both, the values of ``access`` hold.
        """
        if typed.access is access:
            return _followed(self.index, typed, term, self.memory, self.evaluator)
        matched, state = self._matched(access, typed), typed.transfer.state
        if term in matched:
            return _followed(self.index, typed, matched[term], self.memory, self.evaluator)
        form = state.terms.linear(typed.transfer.pointer)
        asked = None if self.asked is None or access.pointer is None else self.asked.terms.linear(access.pointer)
        if asked is None or asked.coefficients.get(term) != 1:
            return None
        less = residue(-asked.constant)
        for (other, factor), (_, _, value) in zip(asked.coefficients.items(), access.parts, strict=True):
            if other != term and other not in matched:
                less = added(less, scaled(residues_of(value), -factor % MODULUS))
        words = {one: self.evaluator.word(self.index, state, one, self.memory.found) for one in form.coefficients}
        found: list[Part] = []
        for chosen in product(*words.values()):
            parts = {one: (form.coefficients[one], (part,)) for one, part in zip(words, chosen, strict=True)}
            if followed(self.evaluator.sum([*parts.values()], form.constant)):
                rest = [part for one, part in parts.items() if one not in matched.values()]
                sums = self.evaluator.sum(rest, form.constant)
                found += [part._replace(residues=added(part.residues, less)) for part in sums]
        return found

    def _matched(self, access: Access, typed: TypedAccess) -> dict[Term, Term]:
        """The terms of the address of ``access`` that are one of that of ``typed``, with the same factor."""
        if self.asked is None or access.pointer is None:
            return {}
        own = self.operation.values.terms.linear(typed.transfer.pointer).coefficients
        found: dict[Term, Term] = {}
        for term, factor in self.asked.terms.linear(access.pointer).coefficients.items():
            free = [one for one in own if own[one] == factor and one not in found.values()]
            same = [one for one in free if self._is_same(self.asked.terms, term, one)]
            if same:
                found[term] = same[0]
        return found

    def _is_same(self, terms: Terms, term: Term, its_term: Term) -> bool:
        its_terms = self.operation.values.terms
        node, its_node = terms[term], its_terms[its_term]
        symbols = its_terms.symbols(its_term)
        if node.opcode == "symbol" and all(defined_at(its_terms[one].arguments) == ENTRY for one in symbols):
            return its_node.arguments == node.arguments or self._held(node.arguments) == its_term
        if (node.opcode, node.bits, len(node.arguments)) != (its_node.opcode, its_node.bits, len(its_node.arguments)):
            return False
        if node.opcode in {"symbol", "const"}:
            return node.arguments == its_node.arguments and node.arguments[:1] != ("was",)
        pairs = zip(terms.operands(term), its_terms.operands(its_term), strict=True)
        return all(self._is_same(terms, one, its) for one, its in pairs)

    def _held(self, name: SymbolName) -> Term | None:
        """What the operation knows of a symbol of this name: of where paths meet, or loaded from the stack."""
        match name:
            case ("phi", (int(point),), Location() as location) if point in self.operation.values.states:
                return self.operation.values.states[point].read(location)
        for one in self.operation.accesses:
            if (one.transfer.place, one.transfer.instruction_address, one.transfer.operation) == name:
                return held(one.transfer)
        return None


def _followed(
    index: int, access: TypedAccess, term: Term, memory: TypedMemory, evaluator: Evaluator
) -> list[Part] | None:
    """What ``term`` may be where the address that it is in is followed; None where it is in none."""
    state, pointer = access.transfer.state, access.transfer.pointer
    form = state.terms.linear(pointer)
    if term not in form.coefficients:
        return None
    words = [evaluator.word(index, state, one, memory.found) for one in form.coefficients]
    factors, place = list(form.coefficients.values()), list(form.coefficients).index(term)
    return [
        chosen[place]
        for chosen in product(*words)
        if followed(evaluator.sum([(f, (part,)) for f, part in zip(factors, chosen, strict=True)], form.constant))
    ]


def _outside(parts: Sequence[Part] | None, allowed: Congruence) -> str:
    """What a term that is ``parts`` may be that is not ``allowed``, in words; empty: nothing."""
    if allowed.modulus > MODULUS:
        return f"residues are known modulo {MODULUS} only"
    if parts is None:
        return "the address is made of something else here"
    for part in parts:
        bad = [one for one in members(part.residues) if one % allowed.modulus != allowed.residue]
        if bad:
            return _said(part, bad)
    return ""


def _told(found: Mapping[Kind, int]) -> str:
    """What terms may be that are followed, by kind, in words."""
    classes = {
        kind: reduce(joined, (Congruence(MODULUS, one) for one in members(residues)))
        for kind, residues in sorted(found.items())
    }
    texts = (
        _KINDS[kind.name] if kind is Kind.NULL else f"{_KINDS[kind.name].rstrip(',')} that is {_class(one)}"
        for kind, one in classes.items()
    )
    return f"what is followed is {' or '.join(texts) or 'nothing'}"


def _class(one: Congruence) -> str:
    return f"{one.residue} modulo {one.modulus}" if one.modulus > 1 else "anything"


@dataclass(frozen=True, slots=True)
class Shown:
    """What a solver showed of all accesses of an operation.

    Attributes:
        aligned: of each instruction that accesses data on a way, the classes of its addresses.
        sets: of instructions that access neither a block nor the stack, the sets of the allocator's cache.
        cache: the sets and the bytes of a line of that cache.
    """

    aligned: Mapping[int, frozenset[Congruence]]
    sets: Mapping[int, frozenset[int]]
    cache: tuple[int, int]


def shown_alignments(
    values: Sequence[Values], places: Sequence[Places], shown: Sequence[Shown]
) -> tuple[AlignmentClaim, ...]:
    """Of each fact about pointers whether what a solver showed implies its alignment, by the facts' places.

    Args:
        values: of each operation of the module.
        places: what facts say of each of them, and what follows from it.
        shown: of each of them.

    *Soundness:* as said of the module. An instruction of which nothing is shown is on no way, and not executed.
    """
    return _collected(_of_alignment(*each) for each in zip(values, places, shown, strict=True))


def shown_sets(
    values: Sequence[Values], places: Sequence[Places], shown: Sequence[Shown]
) -> tuple[AlignmentClaim, ...]:
    """Of each fact that names cache sets whether what a solver showed implies them; as `shown_alignments`.

    *Soundness:* sets of the allocator's cache are those of the target where both have as many, of lines as long.
    """
    return _collected(_of_sets(*each) for each in zip(values, places, shown, strict=True))


_Found = Iterator[tuple[str, int, str, Iterable[Congruence | int]]]


def _collected(operations: Iterator[_Found]) -> tuple[AlignmentClaim, ...]:
    """The claims of accesses that are told by fact, instruction, why it is open, or empty, and the classes or sets."""
    counts: dict[str, int] = {}
    left: dict[str, list[tuple[int, str]]] = {}
    seen: dict[str, set[Congruence | int]] = {}
    for where, address, why, found in (one for each in operations for one in each):
        counts[where] = counts.get(where, 0) + 1
        seen.setdefault(where, set()).update(found)
        if why:
            left.setdefault(where, []).append((address, why))
    return tuple(
        AlignmentClaim(where, counts[where], tuple(dict.fromkeys(left.get(where, ()))), _shown_of(seen[where]))
        for where in sorted(counts)
    )


def _shown_of(found: Collection[Congruence | int]) -> str:
    sets = [one for one in found if isinstance(one, int)]
    classes = [one for one in found if not isinstance(one, int)]
    if sets:
        return f"the accesses are to {len(sets)} sets, {min(sets)} to {max(sets)}"
    return f"what is followed is {_class(reduce(joined, classes))}" if classes else "none is on any way"


def _of_alignment(values: Values, told: Places, shown: Shown) -> _Found:
    alignments = _alignments(values, told)
    for index in sorted(values.states):
        accesses = values.accesses[index]
        joint = _joint(values, index)
        for number, access in enumerate(accesses):
            asserted = asserted_of(access, told.pointers)
            before = alignments[index][number].shown if alignments else {}
            address = access.instruction_address
            where = told.pointers.of(address).where
            if not asserted or not where:
                continue
            form = None if access.pointer is None else values.terms.linear(access.pointer)
            known = shown.aligned.get(address, frozenset())
            most = max((one.modulus for one in known), default=1)
            found, classes = "", set[Congruence]()
            for term, own in asserted.items():
                if form is None or form.coefficients != {term: 1}:
                    allowed = told.residues.of_unknown(term, own)
                    rest = _rest(form, term, before, known, most)
                    if rest is None:
                        found = "the address is no sum of one unknown and a constant, nor of what was shown before"
                        continue
                    found = found or _not_shown(rest, most, allowed)
                    classes.update(Congruence(most, one) for one in rest)
                    continue
                constants = {form.constant, *_constants(values, accesses, address, term)} if address in joint else None
                residues = _residues(known, most, constants or {form.constant}) & _before(before, term, most)
                found = found or _not_shown(residues, most, told.residues.of_unknown(term, own))
                classes.update(Congruence(most, one) for one in residues)
            yield where, address, found, classes


def _alignments(values: Values, told: Places) -> Mapping[int, tuple[AssertedOf, ...]]:
    """What accesses before each one show of terms; nothing where more than one fact speaks of them.

    *Soundness:* each of them is to be proved, by those before it alone: so none is false where one is, but if it was
    the first. What another fact asserts may not be proved.
    """
    every = {told.pointers.of(one.instruction_address).where for each in values.states for one in values.accesses[each]}
    return asserted_alignments(values, told.pointers, told.residues.of_unknown) if len(every - {""}) == 1 else {}


def _before(before: Asserted, term: Term, most: int) -> frozenset[int]:
    """What ``term`` may be modulo ``most`` by what accesses ``before`` show."""
    own = before.get(term, Congruence(1, 0)).modulo(most)
    return frozenset(range(own.residue, most, own.modulus))


def _rest(
    form: Linear | None, term: Term, before: Asserted, known: Collection[Congruence], most: int
) -> frozenset[int] | None:
    """What ``term`` may be modulo ``most``: as accesses before show, or an address less all else; None: not known."""
    if not known:  # the instruction is on no way
        return frozenset()
    if term in before and before[term].modulus % most == 0:
        return frozenset({before[term].residue % most})
    if form is None or form.coefficients.get(term) not in _SIGNS:
        return None
    sign, less = form.coefficients[term], form.constant
    for other, factor in form.coefficients.items():
        if other != term:
            if other not in before or before[other].modulus % most:
                return None
            less += factor * before[other].residue
    addresses = {one for each in known for one in range(each.residue, most, each.modulus)}
    return frozenset(sign * (one - less) % most for one in addresses)


def _joint(values: Values, index: int) -> frozenset[int]:
    """Instructions of a block whose accesses all take place where one does: none of them jumps in between."""
    found = set()
    for one in values.graph.points[index].block.instructions:
        places = [number for number, op in enumerate(one.ops) if op.opcode in {"LOAD", "STORE"}]
        if places and not any("BRANCH" in op.opcode for op in one.ops[places[0] : places[-1]]):
            found.add(one.address)
    return frozenset(found)


def _constants(values: Values, accesses: Iterable[Access], address: int, term: Term) -> Iterator[int]:
    """What the instruction at ``address`` adds to ``term`` to make addresses."""
    for one in accesses:
        if one.instruction_address == address and one.pointer is not None:
            form = values.terms.linear(one.pointer)
            if form.coefficients == {term: 1}:
                yield form.constant


def _residues(known: Iterable[Congruence], most: int, constants: Iterable[int]) -> frozenset[int]:
    """What a term may be modulo ``most`` whose sums with each of ``constants`` are addresses that are ``known``."""
    addresses = {one for each in known for one in range(each.residue, most, each.modulus)}
    return frozenset(one for one in range(most) if all((one + constant) % most in addresses for constant in constants))


def _not_shown(residues: Iterable[int], most: int, allowed: Congruence) -> str:
    """Why a term that is one of ``residues`` modulo ``most`` is not shown to be ``allowed``; empty where it is."""
    bad = sorted(one for one in residues if most % allowed.modulus or one % allowed.modulus != allowed.residue)
    if not bad:
        return ""
    few = ", ".join(str(one) for one in bad[:4]) + (", …" if len(bad) > 4 else "")
    return f"what is followed may be {few} modulo {most}" if most > 1 else "nothing is shown of what is followed"


def _of_sets(values: Values, told: Places, shown: Shown) -> _Found:
    every = frozenset(range(told.config.sets))
    is_same_cache = shown.cache == (told.config.sets, told.config.line_bytes)
    for access in (one for index in sorted(values.states) for one in values.accesses[index]):
        asserted = told.pointers.of_access(access)
        if asserted.sets is None or not asserted.where or told.place_of(access) != "told":
            continue
        address = access.instruction_address
        reached = shown.sets.get(address, frozenset() if address not in shown.aligned else None)
        found = ""
        if asserted.sets != every:
            if not is_same_cache:
                found = "the allocator is built for another cache"
            elif reached is None:
                found = "it may be to a block, or to the stack"
            elif not reached <= asserted.sets:
                found = f"it may be to set {min(reached - asserted.sets)}"
        yield asserted.where, address, found, reached or ()


def _said(part: Part, bad: Sequence[int]) -> str:
    shown = ", ".join(str(one) for one in bad[:4]) + (", …" if len(bad) > 4 else "")
    return f"it may be {_KINDS[part.kind.name]} that is {shown} modulo {MODULUS}"


_KINDS = {
    "NULL": "null",
    "NEAR": "null and a number more",
    "NUMBER": "a number",
    "INDEX": "an index",
    "ARENA": "an address in the arena",
    "STATIC": "an address in static data",
    "CONSTANT": "an address in constant data",
    "MIXED": "something made of addresses",
    "ANY": "a word of which nothing is known,",
}
