"""What is proved of the cache sets that malloc and free touch, whatever the state of the heap.

The specification of a cache-aware allocator (H11 section IV): a call touches the reserved sets, where descriptors and
static data lie, the header and the first word of the block that it returns or is given, and the stack. Besides, code
may hold constants, which are loaded like data. An allocator that promises nothing is judged by the sets of its static
data.

Each access of each call path is judged by the value analysis; what that does not know, a flow fact about pointers may
tell, which is a lemma: an assumption that is checked by runs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from wcet_probe.analyzer.access_bound import AccessBound, most_accesses, most_accesses_of
from wcet_probe.analyzer.bound import prepare, prove_prepared
from wcet_probe.analyzer.facts.expressions import evaluate
from wcet_probe.analyzer.invariants.contents import Contents
from wcet_probe.analyzer.values.own_block import Roles, distances
from wcet_probe.analyzer.values.reach import Reach, link_origins, reaches
from wcet_probe.answer.proving import allocator_facts, fact_parameters, operation_request
from wcet_probe.build.program import Program
from wcet_probe.cache_sets import static_words
from wcet_probe.cache_sets.lines import Mate, line_mates
from wcet_probe.cache_sets.static_words import static_addresses
from wcet_probe.errors import AnalysisError, UsageError
from wcet_probe.model.instruction import Instruction
from wcet_probe.model.proof import AccessRange, Bound
from wcet_probe.model.target import CacheConfig, Isa

WORD_BYTES = 4
_MOST_REMAINDERS = 1 << 12
FACT = "fact "
"""What the ids of assumptions begin with that are flow facts."""


class Justification(StrEnum):
    """Why an access keeps to the allowed sets; ``OUTSIDE``: it is not known to. The weaker, the later."""

    CONSTANT = "a constant in the code"
    STACK = "the stack"
    PROVED = "static data, by its address"
    OWN = "the call's own block, by its distance"
    COMPUTED = "an address whose remainder is known"
    INDUCED = "static data, by induction over all operations"
    TOLD = "a descriptor behind a link, by a lemma"
    SAME_LINE = "in the line of a descriptor, by a lemma and the code"
    OUTSIDE = "not known"


@dataclass(frozen=True, slots=True)
class AllowedSets:
    """The cache, and the sets of it that a call may touch besides those of its own block and of the stack.

    Attributes:
        sets, line_bytes: of the data cache.
        reserved: the allowed sets.
        is_specified: whether the allocator promises to keep to them.
    """

    sets: int
    line_bytes: int
    reserved: frozenset[int]
    is_specified: bool

    def set_of(self, address: int) -> int:
        """The set of the byte at ``address``."""
        return address // self.line_bytes % self.sets

    def own(self, block: int) -> frozenset[int]:
        """The sets of the first word of ``block`` and of the word before it; none of no block."""
        return frozenset({self.set_of(block), self.set_of(block - WORD_BYTES)}) if block else frozenset()


@dataclass(frozen=True, slots=True)
class PossibleViolation:
    """An instruction that is not known to keep to the allowed sets.

    Attributes:
        address, text: of the instruction.
        location: function, offset and source line.
        is_store: whether it writes.
        sets: how many sets it may touch.
    """

    address: int
    text: str
    location: str
    is_store: bool
    sets: int


@dataclass(frozen=True, slots=True)
class Lemma:
    """A flow fact about pointers that accesses rest on: ``id``, what is assumed, why it holds, how it is checked."""

    id: str
    statement: str
    because: str
    check: str


@dataclass(frozen=True, slots=True)
class LemmaSite:
    """An instruction that keeps to the allowed sets by a lemma.

    Attributes:
        address, text: of the instruction.
        location: function, offset and source line.
        is_store: whether it writes.
        lemma: id of the flow fact.
    """

    address: int
    text: str
    location: str
    is_store: bool
    lemma: str


@dataclass(frozen=True, slots=True)
class SetProof:
    """What is proved of one operation.

    Attributes:
        role: ``malloc`` or ``free``.
        justifications: of each instruction that accesses data, what it rests on.
        may_touch: sets but those of the own block and of the stack.
        stack_bytes: deepest access below the stack pointer at entry.
        possible_violations: instructions that are not known to keep to the allowed sets.
        lemmas: flow facts that tell where pointers lead.
        sites: the instructions that rest on them.
        assumptions: names of all that the proof rests on, the lemmas included.
        counts: most accesses, by size of the heap in bytes.
        no_bound: why nothing is proved, or empty.
    """

    role: str
    justifications: Mapping[int, Justification] = field(repr=False)
    may_touch: frozenset[int]
    stack_bytes: int
    possible_violations: tuple[PossibleViolation, ...]
    lemmas: tuple[Lemma, ...]
    assumptions: tuple[str, ...]
    counts: Mapping[int, AccessBound]
    no_bound: str = ""
    sites: tuple[LemmaSite, ...] = ()

    @property
    def instructions(self) -> Mapping[Justification, int]:
        """How many instructions with accesses rest on each justification."""
        counts = Counter(self.justifications.values())
        return {justification: counts[justification] for justification in Justification if counts[justification]}

    @property
    def holds(self) -> bool:
        """Whether every access keeps to the allowed sets."""
        return not self.no_bound and not self.possible_violations

    @property
    def rests_on_facts(self) -> bool:
        """Whether anything that is proved, counts included, rests on a flow fact."""
        return any(name.startswith(FACT) for name in self.assumptions)

    @property
    def is_constant(self) -> bool:
        """Whether the number of accesses is bounded, and the same for all sizes of the heap that were tried."""
        return bool(self.counts) and len(set(self.counts.values())) == 1


def allowed_sets(program: Program) -> AllowedSets:
    """The sets that calls of ``program`` may touch: those that it promises, or those of its static data.

    Raises:
        UsageError: the target has no data cache, or another one than the allocator is built for.
    """
    allocator, target = program.allocator, program.target
    cache = target.dcache
    if cache is None:
        message = f"{target.name} has no data cache, and so no sets; choose another target, or add one with --cache."
        raise UsageError(message)
    said = allocator.promise
    if said is None:
        return AllowedSets(cache.sets, cache.line_bytes, _static_sets(program, cache), is_specified=False)
    values = allocator.values
    if (values[said.cache_sets], values[said.line_bytes]) != (cache.sets, cache.line_bytes):
        message = (
            f"{allocator.name} is built for {values[said.cache_sets]} sets of lines of {values[said.line_bytes]} "
            f"bytes, and {target.name} has {cache.sets} of {cache.line_bytes}; give --param "
            f"{said.cache_sets}={cache.sets} --param {said.line_bytes}={cache.line_bytes}, or another --cache."
        )
        raise UsageError(message)
    first = values[said.first_set]
    return AllowedSets(
        cache.sets, cache.line_bytes, frozenset(range(first, first + values[said.sets])), is_specified=True
    )


def _static_sets(program: Program, cache: CacheConfig) -> frozenset[int]:
    segments = (segment for segment in program.image.segments if not segment.executable)
    lines = (
        number
        for segment in segments
        for number in range(
            segment.address // cache.line_bytes, -(-(segment.address + segment.size_bytes) // cache.line_bytes)
        )
    )
    return frozenset(number % cache.sets for number in lines)


def prove_sets(
    program: Program,
    role: str,
    heaps_bytes: Iterable[int],
    allowed: AllowedSets,
    progress: Callable[[str], None] = lambda _: None,
) -> SetProof:
    """What can be proved of the sets that the operation ``role`` of ``program`` touches.

    Parameters:
        program: the allocator's image.
        role: ``malloc`` or ``free``.
        heaps_bytes: sizes of the heap; accesses are counted for each, and all else is proved for the first.
        allowed: what is to be proved.
        progress: is told in words what is being done.

    Raises:
        UsageError: a flow fact is wrong.
    """
    sizes = tuple(dict.fromkeys(heaps_bytes))
    register = "r3" if program.target.isa is Isa.POWERPC else "r0"
    roles = Roles(None, register) if role == "malloc" else Roles(register, None)
    progress(f"proving which sets {role} touches")
    try:
        prepared = prepare(operation_request(program, role, sizes[0]))
        bound = prove_prepared(prepared)
        counts = {}
        for size in sizes:
            progress(f"counting accesses of {role}, heap of {size} bytes")
            counts[size] = (
                most_accesses_of(prepared)
                if size == sizes[0]
                else most_accesses(operation_request(program, role, size))
            )
    except AnalysisError as error:
        return SetProof(role, {}, frozenset(range(allowed.sets)), 0, (), (), (), {}, str(error))
    own = distances(prepared.values, roles)
    found = tuple(reaches(prepared.values, allowed.sets * allowed.line_bytes))
    links = _links(program, sizes[0], link_origins(prepared.values, found))
    judged = list(_judged(program, bound, allowed, zip(own, found, strict=True), links))
    if any(justification is Justification.OUTSIDE for _, justification, _ in judged):
        progress(f"following the words that {role} loads through all operations")
        addresses = static_addresses(program, sizes[0]).get(role, {})
        judged = [_induced(one, addresses.get(number), allowed) for number, one in enumerate(judged)]
    justifications: dict[int, Justification] = {}
    for access, justification, _ in judged:
        justifications[access.address] = max(
            justification, justifications.get(access.address, justification), key=tuple(Justification).index
        )
    return SetProof(
        role=role,
        justifications=justifications,
        may_touch=frozenset().union(
            *(_may_touch(access, justification, allowed) for access, justification, _ in judged)
        ),
        stack_bytes=_stack_bytes(bound),
        possible_violations=tuple(_possible_violations(program, judged, allowed)),
        lemmas=tuple(_lemmas(program, bound, {fact for _, _, fact in judged})),
        assumptions=tuple(dict.fromkeys((*(assumption.id for assumption in bound.assumptions), *_premises(judged)))),
        counts=counts,
        sites=tuple(_sites(program, judged)),
    )


# ------------------------------------------------------------------------------------------------------------ judgement


Known = tuple[int | None, tuple[Reach, ...]]
"""Of an access, its distance from the call's block, where that is known, and the alternatives of its address."""
Judged = tuple[AccessRange, Justification, str]
"""An access, why it keeps to the allowed sets, and the flow fact that this rests on; empty where there is none."""


def _judged(
    program: Program,
    bound: Bound,
    allowed: AllowedSets,
    known: Iterable[Known],
    links: Mapping[str, Links],
) -> Iterator[Judged]:
    """Each access of ``bound``; ``known`` tells of its address, and ``links`` of those that a flow fact speaks of."""
    mates = line_mates(program.instructions, _starts(bound))
    by_place: dict[tuple[int, tuple[int, ...]], list[AccessRange]] = {}
    for access in bound.accesses:
        by_place.setdefault((access.address, access.context), []).append(access)
    by_address = {instruction.address: instruction for instruction in program.instructions}
    for access, (distance, alternatives) in zip(bound.accesses, known, strict=True):
        justification = _justification(program, access, allowed, (distance, alternatives), links.get(access.fact))
        fact = access.fact if justification is Justification.TOLD else ""
        if (
            justification is Justification.OUTSIDE
            and access.place == "any"
            and access.sets is None
            and distance is None
        ):
            extent_bytes = _extent_bytes(by_address[access.address])
            for mate in mates.get(access.address, ()):
                others = by_place.get((mate.address, access.context), ())
                if others and all(_shares_line(other, mate, extent_bytes, allowed) for other in others):
                    justification, fact = Justification.SAME_LINE, others[0].fact
        yield access, justification, fact


def _premises(judged: Iterable[Judged]) -> tuple[str, ...]:
    """What an induction over the operations takes for granted of the caller."""
    return (
        static_words.PREMISES if any(justification is Justification.INDUCED for _, justification, _ in judged) else ()
    )


def _induced(judged: Judged, address: Contents | None, allowed: AllowedSets) -> Judged:
    """``judged``, or by induction where its address then is in the allowed sets."""
    access, justification, _ = judged
    if justification is not Justification.OUTSIDE or address is None:
        return judged
    reaches_to = (Reach(remainders=part.way) for part in address)
    is_inside = bool(address) and all(_is_reserved(one, access, allowed) for one in reaches_to)
    return (access, Justification.INDUCED, static_words.LEMMA) if is_inside else judged


def _starts(bound: Bound) -> frozenset[int]:
    """Blocks that control reaches otherwise than from the block before them alone."""
    ways: dict[int, list[str]] = {}
    for edge in bound.graph.edges:
        ways.setdefault(edge.target, []).append(edge.kind)
    return frozenset(block.address for block in bound.graph.blocks if ways.get(block.address) != ["fall"])


def _justification(  # noqa: PLR0911  a return for each justification
    program: Program, access: AccessRange, allowed: AllowedSets, known: Known, links: Links | None
) -> Justification:
    """Why ``access`` keeps to the allowed sets; ``known`` is what the values tell of its address.

    An access at a known distance from the call's block is to its header or its first word, or it is outside, whatever
    a flow fact says of it. What a fact says of ``links`` holds of what they lead to.
    """
    if access.place == "stack":
        return Justification.STACK
    distance, alternatives = known
    if distance is not None:
        is_own = -WORD_BYTES <= distance <= WORD_BYTES - access.size_bytes
        return Justification.OWN if is_own else Justification.OUTSIDE
    if access.place == "static" and access.steps == 0 and _is_code(program, access.low):
        return Justification.CONSTANT
    if access.sets is None or not access.sets <= allowed.reserved:
        is_computed = bool(alternatives) and all(_is_reserved(one, access, allowed) for one in alternatives)
        return Justification.COMPUTED if is_computed else Justification.OUTSIDE
    if access.place != "told":
        return Justification.PROVED
    if not alternatives or links is None or not all(_is_within(one, access, allowed, links) for one in alternatives):
        return Justification.OUTSIDE
    return Justification.COMPUTED if all(one.offset is None for one in alternatives) else Justification.TOLD


@dataclass(frozen=True, slots=True)
class Links:
    """The links that a flow fact speaks of.

    Attributes:
        unit_bytes, units: links lead to so many objects of so many bytes in a row.
        offsets: of the words in such an object that are links; None for all.
        origins: where links were loaded from.
    """

    unit_bytes: int
    units: int
    offsets: tuple[int, ...] | None
    origins: Mapping[int, tuple[Reach, ...]]

    def speaks_of(self, link: int | None) -> bool:
        """Whether the word ``link`` is one of them: not a word from elsewhere in such an object, nor who knows what."""
        if self.offsets is None or link is None:
            return True
        origins = self.origins.get(link, ())
        return bool(origins) and all(
            origin.offset is None or origin.offset % self.unit_bytes in self.offsets for origin in origins
        )


def _links(program: Program, heap_bytes: int, origins: Mapping[int, tuple[Reach, ...]]) -> Mapping[str, Links]:
    """By flow fact about pointers that tells sets, the links that it speaks of."""
    parameters = fact_parameters(program.allocator, program.target, heap_bytes)
    return {
        fact.where: Links(
            evaluate(fact.multiple_of, parameters),
            1 if fact.units is None else evaluate(fact.units, parameters),
            fact.links,
            origins,
        )
        for fact in allocator_facts(program.allocator).pointers
        if fact.sets is not None
    }


def _is_within(reach: Reach, access: AccessRange, allowed: AllowedSets, links: Links) -> bool:
    """Whether ``access`` is in what its link leads to, as the flow fact says, or to an allowed set."""
    if reach.offset is not None:
        is_inside = 0 <= reach.offset <= links.unit_bytes * links.units - access.size_bytes
        return is_inside and links.speaks_of(reach.link)
    return _is_reserved(reach, access, allowed)


def _is_reserved(reach: Reach, access: AccessRange, allowed: AllowedSets) -> bool:
    """Whether an address with these remainders is in an allowed set, to its last byte."""
    if reach.remainders is None or reach.remainders.size > _MOST_REMAINDERS:
        return False
    last = access.size_bytes - 1
    return all(
        {allowed.set_of(one), allowed.set_of(one + last)} <= allowed.reserved for one in reach.remainders.values()
    )


def _shares_line(other: AccessRange, mate: Mate, extent_bytes: int, allowed: AllowedSets) -> bool:
    """Whether what follows the access ``other`` at a distance lies in the same line, which is in an allowed set."""
    if other.place != "told" or other.sets is None or not other.sets <= allowed.reserved:
        return False
    offset = other.low % allowed.line_bytes + mate.ahead_bytes
    return other.stride % allowed.line_bytes == 0 and 0 <= offset <= allowed.line_bytes - extent_bytes


def _extent_bytes(instruction: Instruction) -> int:
    return sum(access.count * access.bytes_each for access in instruction.accesses)


def _is_code(program: Program, address: int) -> bool:
    return any(
        segment.executable and segment.address <= address < segment.address + segment.size_bytes
        for segment in program.image.segments
    )


def _may_touch(access: AccessRange, justification: Justification, allowed: AllowedSets) -> frozenset[int]:
    if justification in {Justification.STACK, Justification.OWN}:
        return frozenset()
    if justification in {Justification.COMPUTED, Justification.INDUCED}:
        return allowed.reserved
    if justification is Justification.OUTSIDE and access.place in {"told", "block"}:
        return frozenset(range(allowed.sets))
    if access.sets is not None:
        return access.sets
    return allowed.reserved if justification is Justification.SAME_LINE else frozenset(range(allowed.sets))


def _stack_bytes(bound: Bound) -> int:
    depths = (access.low for access in bound.accesses if access.place == "stack")
    return max((-_signed(low) for low in depths), default=0)


def _signed(number: int) -> int:
    return number - (1 << 32) if number >> 31 else number


def _possible_violations(
    program: Program, judged: Iterable[Judged], allowed: AllowedSets
) -> Iterator[PossibleViolation]:
    texts = {instruction.address: instruction.text for instruction in program.instructions}
    found: dict[tuple[int, bool], frozenset[int]] = {}
    for access, justification, _ in judged:
        if justification is Justification.OUTSIDE:
            key = access.address, access.is_store
            found[key] = found.get(key, frozenset()) | _may_touch(access, justification, allowed)
    for (address, is_store), sets in sorted(found.items()):
        yield PossibleViolation(address, texts[address], program.image.location(address), is_store, len(sets))


def _sites(program: Program, judged: Iterable[Judged]) -> Iterator[LemmaSite]:
    """The instructions that rest on a flow fact, each with the fact, by address."""
    texts = {instruction.address: instruction.text for instruction in program.instructions}
    found = {(access.address, access.is_store, fact) for access, _, fact in judged if fact}
    for address, is_store, fact in sorted(found):
        lemma = fact if fact == static_words.LEMMA else f"{FACT}{fact}"
        yield LemmaSite(address, texts[address], program.image.location(address), is_store, lemma)


def _lemmas(program: Program, bound: Bound, used: Collection[str]) -> Iterator[Lemma]:
    """The facts about pointers that accesses rest on."""
    if static_words.LEMMA in used:
        because = "a block is that far from the arena's start, and the arena holds as many"
        yield Lemma(static_words.LEMMA, static_words.STATEMENT, because, "no run checks it")
    told = {assumption.id: assumption for assumption in reversed(bound.assumptions)}
    for fact in allocator_facts(program.allocator).pointers:
        if fact.where in used:
            assumption = told[f"{FACT}{fact.where}"]
            yield Lemma(assumption.id, assumption.statement, fact.because, assumption.check)
