"""Addresses in static data that are computed from loaded words, by induction over the operations of an allocator.

Used where an allocator keeps all of its words in static data, apart from the blocks: then whatever an operation loads
some operation has stored there, or the image has it.

*Soundness:* premises ``init-first`` (the others are called once init has returned 0), ``free-gets-held-blocks``,
``caller-writes-own-blocks`` and ``no-interference``; lemma ``blocks-in-arena``, see `LEMMA`. All entry points that the
manifest names are analysed, but for the check of the heap, which is there for tests.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from wcet_probe.analyzer.domains import strided
from wcet_probe.analyzer.invariants.contents import WORD_BITS, Contents, Region, in_arena, is_anything, number
from wcet_probe.analyzer.invariants.induction import RESULT, Invariants, Module, invariants
from wcet_probe.analyzer.invariants.operations import Operation, operation
from wcet_probe.analyzer.pcode.lift import image_lifter
from wcet_probe.analyzer.values.properties.own_block import Roles
from wcet_probe.analyzer.values.result import Values
from wcet_probe.analyzer.values.symbolic.term_table import Term
from wcet_probe.answer.bounds.proving import allocator_facts
from wcet_probe.build.program import Program
from wcet_probe.cache_sets.preparations import Preparations, preparations
from wcet_probe.errors import AnalysisError
from wcet_probe.model.target import Isa

LEMMA = "blocks-in-arena"
STATEMENT = (
    "what malloc returns is a block in the arena that was given to init, which holds no static data: then nothing that "
    "the caller writes into its blocks is a word of the allocator"
)
LEMMAS = {LEMMA: (STATEMENT, "a block is that far from the arena's start, and the arena holds as many")}
PREMISES = "init-first", "free-gets-held-blocks", "caller-writes-own-blocks"
_ROLES = "init", "malloc", "free"


def static_addresses(
    program: Program, heap_bytes: int, operations: Sequence[Operation] | None = None
) -> Mapping[str, Mapping[int, Contents]]:
    """By operation, where each of its accesses goes, by its number among the accesses of its values.

    Empty where that is not known of all of them, or one of them is not to static data.

    Args:
        program: the allocator's image.
        heap_bytes: size of the heap that flow facts speak of.
        operations: those of the allocator, where they are known already.
    """
    cache = program.target.dcache
    operations = operations or module_operations(program, heap_bytes, preparations(program))
    if cache is None or operations is None:
        return {}
    way_bits = (cache.sets * cache.line_bytes).bit_length() - 1
    if any(moved.distance is not None for one in operations for moved in one.moved):
        return {}
    arguments = [arguments_of(program, one, way_bits) for one in operations]
    found = invariants(Module(program.image, operations, arguments, way_bits, first=0))
    if found.lost or found.excused or found.unstored or not are_blocks(found, operations):
        return {}
    result: dict[str, dict[int, Contents]] = {one.role: {} for one in operations}
    for (index, place), address in found.addresses.items():
        one = operations[index]
        if not is_anything(address):
            result[one.role][one.moved[place].number] = address
    return result


def module_operations(program: Program, heap_bytes: int, prepared: Preparations) -> Sequence[Operation] | None:
    """What the allocator's entry points do, init, malloc and free, as they are ``prepared`` for this heap.

    None where others are named, apart from a check, where one of them cannot be analysed, and where flow facts tell of
    words, arguments, calls or recursion, on which all would rest.
    """
    entry_points, facts = program.allocator.entry_points, allocator_facts(program.allocator)
    if facts.words or facts.arguments or facts.calls or facts.recursions:
        return None
    if not set(_ROLES) <= set(entry_points) <= {*_ROLES, "check"}:
        return None
    try:
        return [_operation(program, role, prepared(role, heap_bytes).values) for role in _ROLES]
    except AnalysisError:
        return None


def are_blocks(found: Invariants, operations: Sequence[Operation], least: int = 1) -> bool:
    """Whether what operations return as a block is an address in the arena, or a number below ``least``, as null is.

    Of anything else the lemma would be no more than a guess: a block in static data would let the caller write the
    words that the induction is about.
    """
    returning = (index for index, one in enumerate(operations) if one.roles.returned is not None)
    parts = (part for index in returning for part in found.found.get((index, RESULT), ()))
    return all(
        part.region is Region.ARENA or (part.region is Region.NUMBER and part.value.unsigned_range()[1] < least)
        for part in parts
    )


def _registers(program: Program) -> tuple[str, str]:
    """The first two arguments; the first is the result, too."""
    return ("r3", "r4") if program.target.isa is Isa.POWERPC else ("r0", "r1")


def _operation(program: Program, role: str, values: Values) -> Operation:
    first, _ = _registers(program)
    lifter = image_lifter(program.target.pcode_language, program.target.isa, program.image.segments)
    roles = Roles(first if role == "free" else None, first if role == "malloc" else None)
    return operation(role, values, program.image, lifter, roles, first)


def arguments_of(program: Program, one: Operation, way_bits: int) -> Mapping[Term, Contents]:
    """What registers hold at entry: the arena and its size, or the request and the set."""
    first, second = (
        one.values.terms.symbol(("in", one.values.registers[name]), WORD_BITS) for name in _registers(program)
    )
    any_number = number(strided.top(WORD_BITS), way_bits)
    if one.role == "init":
        return {first: in_arena(strided.top(way_bits)), second: any_number}
    return {first: any_number, second: any_number} if one.role == "malloc" else {}
