"""What flow facts say of the alignment of pointers, proved from what the operations of an allocator store.

*Soundness:* premises and lemmas of `analyzer.invariants.typed_memory`; all entry points that the manifest names are
analysed, but for the check of the heap, which is there for tests. Facts about words and arguments, where there are any,
are assumed besides, as they are by every bound.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from wcet_probe.analyzer.assumptions import assumptions
from wcet_probe.analyzer.bound import prepare
from wcet_probe.analyzer.dcache.addresses import Places
from wcet_probe.analyzer.facts.control import other_assumptions
from wcet_probe.analyzer.facts.language import Facts
from wcet_probe.analyzer.frame_values import frame_values
from wcet_probe.analyzer.invariants.image_words import Constants
from wcet_probe.analyzer.invariants.kinds import ALL, Kind, Part, Word
from wcet_probe.analyzer.invariants.typed_memory import Evaluator, TypedMemory, typed_memory
from wcet_probe.analyzer.invariants.typed_operations import TypedOperation, typed_operation
from wcet_probe.analyzer.pcode.lift import image_lifter
from wcet_probe.analyzer.prepared import Prepared
from wcet_probe.analyzer.proved_alignment import AlignmentClaim, alignment_claims
from wcet_probe.analyzer.values.properties.own_block import Roles
from wcet_probe.analyzer.values.result import Values
from wcet_probe.answer.bounds.proving import operation_request
from wcet_probe.build.program import Program
from wcet_probe.errors import AnalysisError
from wcet_probe.model.induction import LEMMAS, PREMISE_CHECK, PREMISES
from wcet_probe.model.proof import Assumption
from wcet_probe.model.target import Isa

ROLES = "init", "malloc", "free"
"""The operations that an induction is over."""
_MOST_SITES = 3
_OF_VALUES = "stack-separation", "stack-stores", "stack-alignment", "call-returns", "return-address"


@dataclass(frozen=True, slots=True)
class ProvedFacts:
    """What is proved of the facts about the alignment of pointers, and about their cache sets.

    Attributes:
        claims: by fact.
        why_not: why nothing is proved, or empty.
        assumed: what the values of the operations rest on, besides the induction's lemmas.
        sets: of facts that name cache sets, whether those are proved; empty where that was not tried.
        by: ``induction`` or ``deduction``.
        how: what the proof is, in words.
        lemmas: what it takes for granted of the allocator, by id.
        premises: what it takes for granted of the caller.
    """

    claims: tuple[AlignmentClaim, ...]
    why_not: str = ""
    assumed: tuple[Assumption, ...] = ()
    sets: tuple[AlignmentClaim, ...] = ()
    by: str = "induction"
    how: str = "under the lemmas below"
    lemmas: Mapping[str, str] = field(default_factory=lambda: LEMMAS)
    premises: tuple[Assumption, ...] = field(default_factory=lambda: premises_of(PREMISES))

    @property
    def rests_on(self) -> tuple[str, ...]:
        """Ids of the lemmas and premises."""
        return (*self.lemmas, *(one.id for one in self.premises))


def premises_of(statements: Mapping[str, str]) -> tuple[Assumption, ...]:
    """Premises about the caller, from their ``statements`` by id."""
    return tuple(Assumption(name, text, PREMISE_CHECK) for name, text in statements.items())


def proved_facts(program: Program, heap_bytes: int) -> ProvedFacts:
    """What is proved of the alignment facts of ``program`` on a heap of ``heap_bytes``.

    Raises:
        UsageError: a file of facts is not valid.
    """
    if program.target.dcache is None:
        return ProvedFacts((), "without a data cache they are not tried")
    others = sorted(set(program.allocator.entry_points) - {*ROLES, "check"})
    if others:
        return ProvedFacts((), f"{', '.join(others)} would have to be analysed, too")
    try:
        module = typed_module(program, heap_bytes)
    except AnalysisError as error:
        return ProvedFacts((), str(error))
    operations, memory = module.operations, module.memory
    why_not = ""
    if memory.lost:
        index, place = memory.lost[0]
        address = operations[index].accesses[place].transfer.instruction_address
        why_not = f"where the store at {program.image.location(address)} goes is not known"
    claims = alignment_claims(operations, module.places, memory, module.evaluator, module.asked)
    return ProvedFacts(claims, why_not, module.assumed)


@dataclass(frozen=True, slots=True)
class TypedModule:
    """An allocator's operations, init, malloc and free, and what is known of their words.

    Attributes:
        operations: in this order.
        places: of each, what facts say of its accesses.
        memory: what the words are.
        evaluator: of terms.
        assumed: what the values of the operations rest on.
        asked: of each, the values that a bound rests on; they know less of what is on the stack.
    """

    operations: tuple[TypedOperation, ...]
    places: tuple[Places, ...]
    memory: TypedMemory
    evaluator: Evaluator
    assumed: tuple[Assumption, ...]
    asked: tuple[Values, ...]


def typed_module(program: Program, heap_bytes: int) -> TypedModule:
    """What the operations of ``program`` store and load, on a target with a data cache.

    Raises:
        AnalysisError: an operation is not analysed, or malloc may return what is no block.
        UsageError: a file of facts is not valid.
    """
    prepared = prepared_operations(program, heap_bytes)
    again = {role: frame_values(one) for role, one in prepared.items() if one.values.stack_escapes}
    values = {role: again[role][0] if role in again else one.values for role, one in prepared.items()}
    operations = tuple(_operation(program, role, one) for role, one in values.items())
    evaluator = Evaluator(program.image, operations)
    places = tuple(one.data.lines.places for one in prepared.values() if one.data.lines is not None)
    memory = typed_memory(program.image, operations, evaluator)
    facts = (each for _, assumed in again.values() for each in assumed)
    assumed = tuple(dict.fromkeys((*rests_on(program, prepared), *facts)))
    asked = tuple(one.values for one in prepared.values())
    return TypedModule(operations, places, memory, evaluator, assumed, asked)


def prepared_operations(program: Program, heap_bytes: int) -> Mapping[str, Prepared]:
    """Of each of the operations of ``program``, by role, what a bound is proved from.

    Raises:
        AnalysisError: an operation is not analysed.
        UsageError: a file of facts is not valid.
    """
    return {role: prepare(operation_request(program, role, heap_bytes)) for role in ROLES}


def rests_on(program: Program, prepared: Mapping[str, Prepared]) -> tuple[Assumption, ...]:
    """What the values of all operations rest on, each once.

    Args:
        program: the allocator's image.
        prepared: its operations, by role.
    """
    return tuple(dict.fromkeys(each for one in prepared.values() for each in _assumed(program, one)))


def _assumed(program: Program, prepared: Prepared) -> Iterable[Assumption]:
    """What the values of an operation rest on: of the stack, of where control goes, and the facts that tell of them."""
    found = assumptions(Facts(), program.image, program.target, prepared.values, prepared.data.lines)
    yield from (one for one in found if one.id in _OF_VALUES)
    yield from other_assumptions(prepared.request.facts, prepared.request.entry, prepared.analysed)


def proved_facts_text(program: Program, found: ProvedFacts) -> str:
    """What ``found`` of ``program`` says, in lines.

    Args:
        program: the allocator's image.
        found: what is proved of its facts.
    """
    if not found.claims:
        return f"nothing is proved: {found.why_not or 'no fact asserts an alignment that anything rests on'}\n"
    lines = []
    told = [
        (claim.where, kind, claim) for kind, of in (("alignment", found.claims), ("sets", found.sets)) for claim in of
    ]
    for where, kind, claim in sorted(told, key=lambda one: one[:2]):
        said = f"proved, {found.how}" if claim.is_proved else "lemma"
        lines.append(f"{where}: {kind} at {claim.accesses} accesses: {said}")
        lines += [f"    invariant: {claim.invariant}"] if claim.invariant else []
        sites = {program.image.location(address): why for address, why in claim.open_accesses}
        lines += [f"    open at {place}: {why}" for place, why in list(sites.items())[:_MOST_SITES]]
        if len(sites) > _MOST_SITES:
            lines.append(f"    and at {len(sites) - _MOST_SITES} more")
    if found.why_not:
        lines.append(f"nothing is proved: {found.why_not}")
    if any(claim.is_proved for claim in (*found.claims, *found.sets)):
        lines += ["", *(f"lemma {name}: {statement}" for name, statement in found.lemmas.items())]
        premises = ", ".join(one.id for one in found.premises)
        lines.append(f"premises: {premises}; not checked by the certificate's checker")
    return "\n".join(lines) + "\n"


def _operation(program: Program, role: str, values: Values) -> TypedOperation:
    first, second = ("r3", "r4") if program.target.isa is Isa.POWERPC else ("r0", "r1")
    lifter = image_lifter(program.target.pcode_language, program.target.isa, program.image.segments)
    roles = Roles(first if role == "free" else None, first if role == "malloc" else None)
    number: Word = (Part(Kind.NUMBER, False, ALL),)
    arguments: Mapping[str, Word] = {}
    if role == "init":
        arguments = {first: (Part(Kind.ARENA, False, ALL),), second: number}
    elif role == "malloc":
        arguments = {first: number, second: number}
    kind_of = Constants(program.image).kind_of
    return typed_operation(role, values, program.image, lifter, roles, arguments, first, kind_of)
