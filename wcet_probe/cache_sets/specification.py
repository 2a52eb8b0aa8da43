"""What is proved of the cache sets that malloc and free touch, whatever the state of the heap.

The specification of a cache-aware allocator (H11 section IV): a call touches the reserved sets, where descriptors and
static data lie, the header and the first word of the block that it returns or is given, and the stack. Besides, code
may hold constants, which are loaded like data. An allocator that specifies nothing is judged by the sets of its static
data.

Each access of each call path is judged by the value analysis; what that does not know, an induction over all operations
may tell, under lemmas about the heap (`heap_words`). No flow fact about pointers is believed. Where a solver showed of
all operations what their accesses are to, that is believed instead of an induction, and without lemmas.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from wcet_probe.analyzer.access_bound import AccessBound, most_accesses_of
from wcet_probe.analyzer.bound import prove_prepared
from wcet_probe.analyzer.invariants.contents import Contents
from wcet_probe.analyzer.invariants.frontier import Area
from wcet_probe.analyzer.values.properties.own_block import Roles, distances
from wcet_probe.analyzer.values.properties.reach import Reach, reaches
from wcet_probe.build.program import Program
from wcet_probe.cache_sets import static_words
from wcet_probe.cache_sets.deduction import ShownAccesses
from wcet_probe.cache_sets.heap_words import LEMMAS, HeapWords, heap_words
from wcet_probe.cache_sets.preparations import Preparations, preparations
from wcet_probe.errors import AnalysisError, UsageError
from wcet_probe.model.proof import AccessRange, Bound
from wcet_probe.model.target import CacheConfig, Isa

WORD_BYTES = 4
_MOST_REMAINDERS = 1 << 12
ARENA_APART = "arena-apart"
"""Premise: the arena that init is given overlaps no static data."""
FACT = "fact "
"""What the ids of assumptions begin with that are flow facts."""


class Justification(StrEnum):
    """Why an access keeps to the allowed sets; ``OUTSIDE``: it is not known to. The weaker, the later."""

    CONSTANT = "a constant in the code"
    STACK = "the stack"
    PROVED = "static data, by its address"
    OWN = "the call's own block, by its distance"
    COMPUTED = "an address whose remainder is known"
    INDUCED = "behind a loaded word, by induction"
    DEDUCED = "by a solver, which shows it of all operations"
    OUTSIDE = "not known"


@dataclass(frozen=True, slots=True)
class AllowedSets:
    """The cache, and the sets of it that a call may touch besides those of its own block and of the stack.

    Attributes:
        sets, line_bytes: of the data cache.
        reserved: the allowed sets.
        is_specified: whether the allocator specifies them.
        static_anywhere: whether static data may be accessed in any set, as it specifies.
    """

    sets: int
    line_bytes: int
    reserved: frozenset[int]
    is_specified: bool
    static_anywhere: bool = False

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
    """What an induction takes for granted of a heap: ``id``, what is assumed, why it holds, how it is checked."""

    id: str
    statement: str
    because: str
    check: str


@dataclass(frozen=True, slots=True)
class LemmaSite:
    """An instruction at which a lemma is taken for granted, so that others keep to the allowed sets.

    Attributes:
        address, text: of the instruction.
        location: function, offset and source line.
        is_store: whether it writes.
        lemma: its id.
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
        lemmas: what is assumed of where links lead.
        sites: the instructions of the operation and of init at which they are taken for granted.
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
    """The sets that calls of ``program`` may touch: those that it specifies, or those of its static data.

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
    built_for = said.cache(allocator.values)
    if built_for != (cache.sets, cache.line_bytes):
        wanted = ((said.cache_sets, cache.sets), (said.line_bytes, cache.line_bytes))
        values = " ".join(f"--param {name}={value}" for name, value in wanted if isinstance(name, str))
        message = (
            f"{allocator.name} is built for {built_for[0]} sets of lines of {built_for[1]} bytes, and {target.name} "
            f"has {cache.sets} of {cache.line_bytes}; give {f'{values}, or ' if values else ''}another --cache."
        )
        raise UsageError(message)
    return AllowedSets(
        cache.sets,
        cache.line_bytes,
        frozenset(said.reserved(allocator.values)),
        is_specified=True,
        static_anywhere=said.static_anywhere,
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


def prove_sets(  # noqa: PLR0917  what is proved, and what others know of it
    program: Program,
    role: str,
    heaps_bytes: Iterable[int],
    allowed: AllowedSets,
    progress: Callable[[str], None] = lambda _: None,
    words: Callable[[], HeapWords] | None = None,
    prepared: Preparations | None = None,
    shown: ShownAccesses | None = None,
) -> SetProof:
    """What can be proved of the sets that the operation ``role`` of ``program`` touches.

    Parameters:
        program: the allocator's image.
        role: ``malloc`` or ``free``.
        heaps_bytes: sizes of the heap; accesses are counted for each, and all else is proved for the first.
        allowed: what is to be proved.
        progress: is told in words what is being done.
        words: where the words lead that operations load, where another proof wants to know it, too.
        prepared: the operations, where other proofs prepare them, too.
        shown: where a solver showed the operation's accesses to go; what values do not tell is taken from it, and
            nothing is induced.

    Raises:
        UsageError: a flow fact is wrong.
    """
    sizes = tuple(dict.fromkeys(heaps_bytes))
    register = "r3" if program.target.isa is Isa.POWERPC else "r0"
    roles = Roles(None, register) if role == "malloc" else Roles(register, None)
    progress(f"proving which sets {role} touches")
    try:
        preparing = prepared or preparations(program)
        own_prepared = preparing(role, sizes[0])
        bound = prove_prepared(own_prepared)
        counts = {}
        for size in sizes:
            progress(f"counting accesses of {role}, heap of {size} bytes")
            counts[size] = most_accesses_of(preparing(role, size), shown=None if shown is None else shown.sets)
    except AnalysisError as error:
        return SetProof(role, {}, frozenset(range(allowed.sets)), 0, (), (), (), {}, str(error))
    own = tuple(distances(own_prepared.values, roles))
    found = tuple(reaches(own_prepared.values, allowed.sets * allowed.line_bytes))
    taken: Mapping[str, Collection[tuple[str, int, bool]]] = {}
    judged = list(_judged(program, bound, allowed, zip(own, found, strict=True)))
    if shown is not None:
        judged = [_deduced(one, distance, shown, allowed) for one, distance in zip(judged, own, strict=True)]
    elif any(justification is Justification.OUTSIDE for _, justification, _ in judged):
        induced = words() if words is not None else words_of(program, sizes[0], allowed, progress, preparing)
        addresses, taken = induced.addresses.get(role, {}), induced.sites
        judged = [
            _induced(one, known, addresses.get(number), allowed, induced.rests_on)
            for number, (one, known) in enumerate(zip(judged, own, strict=True))
        ]
    justifications: dict[int, Justification] = {}
    for access, justification, _ in judged:
        justifications[access.address] = max(
            justification, justifications.get(access.address, justification), key=tuple(Justification).index
        )
    premises = _premises(judged) if shown is None else (*static_words.PREMISES, ARENA_APART)
    return SetProof(
        role=role,
        justifications=justifications,
        may_touch=frozenset().union(
            *(_may_touch(access, justification, allowed) for access, justification, _ in judged)
        ),
        stack_bytes=_stack_bytes(bound),
        possible_violations=tuple(_possible_violations(program, judged, allowed)),
        lemmas=tuple(_lemmas({lemma for _, _, lemmas in judged for lemma in lemmas})),
        assumptions=tuple(dict.fromkeys((*(assumption.id for assumption in bound.assumptions), *premises))),
        counts=counts,
        sites=tuple(_sites(program, role, judged, taken)),
    )


# ------------------------------------------------------------------------------------------------------------ judgement


Known = tuple[int | None, tuple[Reach, ...]]
"""Of an access, its distance from the call's block, where that is known, and the alternatives of its address."""
Judged = tuple[AccessRange, Justification, tuple[str, ...]]
"""An access, why it keeps to the allowed sets, and the lemmas that this rests on."""


def words_of(
    program: Program,
    heap_bytes: int,
    allowed: AllowedSets,
    progress: Callable[[str], None] = lambda _: None,
    prepared: Preparations | None = None,
) -> HeapWords:
    """Where the words lead that the operations of ``program`` load, which reserves the allowed sets for itself."""
    reserved = allowed.reserved
    first, end = min(reserved, default=0), max(reserved, default=0) + 1
    is_range = allowed.is_specified and reserved == frozenset(range(first, end)) and end < allowed.sets
    area = Area(first * allowed.line_bytes, end * allowed.line_bytes) if is_range else None
    return heap_words(program, heap_bytes, area, progress, prepared)


def _judged(program: Program, bound: Bound, allowed: AllowedSets, known: Iterable[Known]) -> Iterator[Judged]:
    """Each access of ``bound``; ``known`` tells of its address."""
    for access, (distance, alternatives) in zip(bound.accesses, known, strict=True):
        yield access, _justification(program, access, allowed, (distance, alternatives)), ()


def _premises(judged: Iterable[Judged]) -> tuple[str, ...]:
    """What an induction over the operations takes for granted of the caller."""
    is_induced = any(justification is Justification.INDUCED for _, justification, _ in judged)
    return static_words.PREMISES if is_induced else ()


def _induced(
    judged: Judged, distance: int | None, address: Contents | None, allowed: AllowedSets, lemmas: tuple[str, ...]
) -> Judged:
    """``judged``, or by induction where its address then is in the allowed sets.

    An access at a distance from the call's own block is judged by that alone: an address that nothing comes to is not
    known to be in any set.
    """
    access, justification, _ = judged
    if justification is not Justification.OUTSIDE or not address or distance is not None:
        return judged
    is_inside = all(_is_reserved(Reach(remainders=part.way), access, allowed) for part in address)
    return (access, Justification.INDUCED, lemmas) if is_inside else judged


def _deduced(judged: Judged, distance: int | None, shown: ShownAccesses, allowed: AllowedSets) -> Judged:
    """``judged``, or as a solver shows it of all ways; a distance from the call's own block is judged by that alone.

    What is on no way keeps to all sets. So that a run can be held to it, an access to the own block is told as one.
    """
    access, justification, _ = judged
    if justification is not Justification.OUTSIDE or distance is not None or access.address in shown.mixed:
        return judged
    if access.address in shown.own:
        return access, Justification.OWN, ()
    is_inside = shown.sets.get(access.address, frozenset()) <= allowed.reserved
    return (access, Justification.DEDUCED, ()) if is_inside else judged


def _justification(program: Program, access: AccessRange, allowed: AllowedSets, known: Known) -> Justification:
    """Why ``access`` keeps to the allowed sets; ``known`` is what the values tell of its address.

    An access at a known distance from the call's block is to its header or its first word, or it is outside. What a
    flow fact about pointers says of it is not believed.
    """
    if access.place == "stack":
        return Justification.STACK
    distance, alternatives = known
    if distance is not None:
        is_own = -WORD_BYTES <= distance <= WORD_BYTES - access.size_bytes
        return Justification.OWN if is_own else Justification.OUTSIDE
    if access.place == "static" and access.steps == 0 and _is_code(program, access.low):
        return Justification.CONSTANT
    is_kept = access.sets is not None and access.sets <= allowed.reserved and access.place != "told"
    if is_kept or (allowed.static_anywhere and _is_static(program, access)):
        return Justification.PROVED
    is_computed = bool(alternatives) and all(_is_reserved(one, access, allowed) for one in alternatives)
    return Justification.COMPUTED if is_computed else Justification.OUTSIDE


def _is_reserved(reach: Reach, access: AccessRange, allowed: AllowedSets) -> bool:
    """Whether an address with these remainders is in an allowed set, to its last byte."""
    if reach.remainders is None or reach.remainders.size > _MOST_REMAINDERS:
        return False
    last = access.size_bytes - 1
    return all(
        {allowed.set_of(one), allowed.set_of(one + last)} <= allowed.reserved for one in reach.remainders.values()
    )


def _is_static(program: Program, access: AccessRange) -> bool:
    """Whether all that it may go to is static data, by the numbers that its address may be."""
    behind = access.low + access.stride * access.steps + access.size_bytes
    return access.place == "static" and any(
        not segment.executable and segment.address <= access.low and behind <= segment.address + segment.size_bytes
        for segment in program.image.segments
    )


def _is_code(program: Program, address: int) -> bool:
    return any(
        segment.executable and segment.address <= address < segment.address + segment.size_bytes
        for segment in program.image.segments
    )


def _may_touch(access: AccessRange, justification: Justification, allowed: AllowedSets) -> frozenset[int]:
    if justification in {Justification.STACK, Justification.OWN}:
        return frozenset()
    if justification in {Justification.COMPUTED, Justification.INDUCED, Justification.DEDUCED}:
        return allowed.reserved
    if justification is Justification.OUTSIDE and access.place == "told":
        return frozenset(range(allowed.sets))
    return access.sets if access.sets is not None else frozenset(range(allowed.sets))


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


def _sites(
    program: Program, role: str, judged: Iterable[Judged], taken: Mapping[str, Collection[tuple[str, int, bool]]]
) -> Iterator[LemmaSite]:
    """The instructions at which lemmas are ``taken`` for granted, by address.

    Of a lemma of which nothing is told, those that rest on it.
    """
    texts = {instruction.address: instruction.text for instruction in program.instructions}
    resting = {(access.address, access.is_store, lemma) for access, _, lemmas in judged for lemma in lemmas}
    found = {one for one in resting if one[-1] not in taken}
    for lemma in sorted({lemma for *_, lemma in resting} & taken.keys()):
        found |= {(address, is_store, lemma) for of, address, is_store in taken[lemma] if of in {role, "init"}}
    for address, is_store, lemma in sorted(found):
        yield LemmaSite(address, texts[address], program.image.location(address), is_store, lemma)


def _lemmas(used: Collection[str]) -> Iterator[Lemma]:
    """What accesses rest on, in the order of the lemmas."""
    for name, (statement, because) in {**LEMMAS, **static_words.LEMMAS}.items():
        if name in used:
            yield Lemma(name, statement, because, "no run checks it")
