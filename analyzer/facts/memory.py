"""Facts about memory, bound to an image: multiples and cache sets of pointers, ranges of words at known addresses.

Words: flow fact, congruence, asserted (docs/explanation/glossary.md).

*Soundness:* facts are assumptions. What they say of registers and addresses is part of the invariants that every
cross-checked run is held against.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from wcet_probe.analyzer.domains import strided
from wcet_probe.analyzer.domains.congruences import Congruence
from wcet_probe.analyzer.domains.strided import StridedInterval
from wcet_probe.analyzer.facts.binding import Analysed, check_place
from wcet_probe.analyzer.facts.control import address_of
from wcet_probe.analyzer.facts.expressions import Expression, evaluate
from wcet_probe.analyzer.facts.language import Facts, Place, PointerFact, Visit, WordFact
from wcet_probe.analyzer.facts.source_index import SourceIndex
from wcet_probe.analyzer.values.execution.accesses import Access
from wcet_probe.build.debug_types import field_offset
from wcet_probe.build.image import require_symbol
from wcet_probe.certificate.caches.cached import pointers_of, words_of
from wcet_probe.certificate.names.names import Objects as AssertedObjects
from wcet_probe.certificate.names.names import PointerFact as ToldPointer
from wcet_probe.certificate.names.names import Pointers as AssertedPointers
from wcet_probe.certificate.values.numbers import Value, number
from wcet_probe.certificate.values.state import STATIC
from wcet_probe.certificate.values.state import Place as CheckedPlace
from wcet_probe.errors import UsageError
from wcet_probe.model.image import Image, Symbol
from wcet_probe.model.induction import DEDUCED_CHECK, PROVED_CHECK
from wcet_probe.model.proof import Assumption, WordClaim
from wcet_probe.model.target import MemoryRange

_WORD_BYTES = 4
_EVERY_RUN = "every emulated run holds each of these accesses against it"


@dataclass(frozen=True, slots=True)
class Objects:
    """What the accesses of a fact go to in one call, see `object_lines`.

    Attributes:
        where: the fact.
        lines: most different lines.
        lines_per_set: most of them in one cache set.
    """

    where: str
    lines: int
    lines_per_set: int


@dataclass(frozen=True, slots=True)
class LineChanges:
    """How many accesses of a fact are to another line than the data access before, in one call: ``most``."""

    where: str
    most: int


@dataclass(frozen=True, slots=True)
class Pointers:
    """What facts say of an address of which the values say nothing.

    Attributes:
        alignment_bytes: the variable part is ``remainder`` modulo it.
        sets: sets of the data cache that the address may be in; None for any.
        extent: addresses of the object that the address is in; None for any.
        objects: what the addresses are in, where that is counted.
        visit: whether the address is in a line that is visited for the first time, or again, see `facts.PointerFact`.
        line_changes: how often it is in another line than that of the data access before, where that is counted.
        where: the fact; empty where there is none.
    """

    alignment_bytes: int = 1
    sets: frozenset[int] | None = None
    objects: Objects | None = None
    extent: MemoryRange | None = None
    remainder: int = 0
    visit: Visit | None = None
    line_changes: LineChanges | None = None
    where: str = field(default="", compare=False)

    @property
    def variable(self) -> Congruence:
        """The class of the variable part."""
        return Congruence(self.alignment_bytes, self.remainder)


@dataclass(frozen=True, slots=True)
class PointerFacts:
    """What is told of pointers: of the accesses at some addresses, and of all others."""

    others: Pointers
    by_address: Mapping[int, Pointers]

    def of(self, instruction_address: int) -> Pointers:
        """What is told of the accesses of an instruction."""
        return self.by_address.get(instruction_address, self.others)

    def of_access(self, access: Access) -> Pointers:
        """What is told of where ``access`` goes.

        *Soundness:* a fact speaks of the address of an access. Of the rest of it, in another line, it does not tell in
        which set that is, among which lines it is counted, and whether it was visited.
        """
        asserted = self.of(access.instruction_address)
        if access.skipped_bytes:
            return Pointers(asserted.alignment_bytes, remainder=asserted.remainder, extent=asserted.extent)
        return asserted


def pointer_facts(
    facts: Facts, index: SourceIndex, analysed: Analysed, parameters: Mapping[str, int], line_bytes: int | None
) -> PointerFacts:
    """What ``facts`` say of pointers, behind a data cache with lines of ``line_bytes``, or without one.

    Raises:
        UsageError: a function does not exist or has changed, two facts speak of one access, a number is no power of
            two or no remainder, or an object has no size.
        ImageError: there is no such symbol.

    *Soundness:* as said of the module; the line table decides which accesses are a function's.
    """
    others, found = Pointers(), dict[int, Pointers]()
    for fact in facts.pointers:
        alignment = evaluate(fact.multiple_of, parameters)
        if alignment < 1 or alignment & (alignment - 1):
            raise UsageError(f"{fact.where}: [[pointer]] key multiple_of: {alignment} is no power of two; give one.")
        remainder = 0 if fact.remainder is None else evaluate(fact.remainder, parameters)
        if not 0 <= remainder < alignment:
            raise UsageError(
                f"{fact.where}: [[pointer]] key remainder: {remainder} is none of {alignment}; give one from 0 to "
                f"{alignment - 1}."
            )
        sets = _sets(fact.first_set, fact.sets, parameters)
        extent = None if fact.symbol is None else _extent(fact.where, require_symbol(analysed.image, fact.symbol))
        visit = _visit(fact, parameters, line_bytes)
        objects, changes = _objects(fact, parameters), _line_changes(fact, parameters)
        asserted = Pointers(alignment, sets, objects, extent, remainder, visit, changes, fact.where)
        if not fact.functions:
            if others != Pointers():
                raise UsageError(f"{fact.where}: a second [[pointer]] without functions; name those it speaks of.")
            others = asserted
        for function, sha256 in fact.functions.items():
            for code in check_place(fact.where, Place(function), sha256, index, analysed):
                for address in range(code.base_address, code.end_address):
                    if found.setdefault(address, asserted) != asserted:
                        raise UsageError(f"{fact.where}: another [[pointer]] names {function} too; name it once.")
    return PointerFacts(others, found)


def asserted_pointers(
    facts: Facts, parameters: Mapping[str, int], image: Image, sources: Mapping[str, str]
) -> AssertedPointers:
    """What ``facts`` say of addresses, as the checker reads it."""
    found = [
        ToldPointer(
            tuple(fact.functions),
            tuple(evaluate(one, parameters) for one in (fact.multiple_of, fact.remainder) if one is not None),
            fact.symbol,
            None if counted is None else AssertedObjects(counted.where, counted.lines, counted.lines_per_set),
            fact.where,
            (min(sets), len(sets)) if sets else None,
        )
        for fact in facts.pointers
        for sets in (_sets(fact.first_set, fact.sets, parameters),)
        for counted in (_objects(fact, parameters),)
    ]
    words = [
        address
        for fact in facts.words
        for address in words_of(image, fact.symbol, None if fact.field else evaluate(fact.offset, parameters))
    ]
    return pointers_of(found, image, sources, words)


def used_words(facts: Facts, *, has_cache: bool) -> tuple[WordFact, ...]:
    """The facts about words that values rest on: ranges only behind a data cache, what a word points to everywhere.

    *Soundness:* these are the facts that are told as assumptions, and that runs are held against.
    """
    return tuple(fact for fact in facts.words if has_cache or fact.points_to is not None)


def word_ranges(
    words: Sequence[WordFact], image: Image, parameters: Mapping[str, int]
) -> Mapping[int, StridedInterval]:
    """What facts say of words, by address.

    Raises:
        UsageError: there is no such member, two facts speak of one word, or a range is empty.
        ImageError: there is no such symbol.

    *Soundness:* as said of the module.
    """
    return {
        claim.address: strided.between(8 * _WORD_BYTES, claim.low, claim.high)
        for claim in word_claims(words, image, parameters)
    }


def word_claims(words: Sequence[WordFact], image: Image, parameters: Mapping[str, int]) -> tuple[WordClaim, ...]:
    """What facts say of words, for runs.

    Raises:
        UsageError, ImageError: as ``word_ranges``.

    *Soundness:* these are the ranges that the values were analysed with.
    """
    found: dict[int, WordClaim] = {}
    for fact in words:
        address = _word_address(fact, image, parameters)
        if fact.points_to is not None:
            low = high = address_of(fact.points_to, image, fact.where)
        else:
            low, high = evaluate(fact.minimum, parameters), evaluate(fact.maximum, parameters)
        if not 0 <= low <= high < 1 << 8 * _WORD_BYTES:
            raise UsageError(f"{fact.where}: {low} to {high} is no range of a word; correct min or max.")
        if address in found:
            raise UsageError(f"{fact.where}: {found[address].where} speaks of {fact.place} too; leave one of them out.")
        found[address] = WordClaim(fact.where, address, low, high)
    return tuple(found.values())


def followed_words(facts: Facts, image: Image, parameters: Mapping[str, int]) -> dict[CheckedPlace, Value]:
    """What the checker knows of words at entry: what those point to whose place is told by a number.

    *Soundness:* what is said of each load of a word before it is written holds at entry.
    """
    told = [fact for fact in facts.words if fact.points_to is not None and not fact.field]
    return {STATIC + one.address: number(one.low) for one in word_claims(told, image, parameters)}


def _word_address(fact: WordFact, image: Image, parameters: Mapping[str, int]) -> int:
    start = require_symbol(image, fact.symbol).address
    if not fact.field:
        return start + evaluate(fact.offset, parameters)
    try:
        return start + field_offset(image, fact.symbol, fact.field)
    except UsageError as error:
        raise UsageError(f"{fact.where}: [[word]] key field: {error}") from error


def memory_assumptions(facts: Facts) -> Iterator[Assumption]:
    """What the facts about pointers and words take as given.

    *Soundness:* each fact is told.
    """
    for pointer in facts.pointers:
        yield from pointer_assumptions(pointer)
    yield from word_assumptions(used_words(facts, has_cache=True))


def word_assumptions(words: Iterable[WordFact]) -> Iterator[Assumption]:
    """What the facts ``words`` take as given.

    *Soundness:* each fact is told.
    """
    for word in words:
        is_what = f"is {word.minimum} to {word.maximum}" if word.points_to is None else f"points to {word.points_to}"
        text = f"the word at {word.place} {is_what}: {word.because}"
        yield Assumption(f"fact {word.where}", text, "every emulated run holds each load of the word against it")


def alignment_assumptions(facts: Facts) -> Iterator[Assumption]:
    """What of the facts about pointers is taken as given where there is no cache: their alignment.

    *Soundness:* without a cache nothing rests on their places.
    """
    for pointer in facts.pointers:
        yield from pointer_assumptions(
            replace(pointer, first_set=None, sets=None, symbol=None, visit=None, line_changes=None, lines=None)
        )


def pointer_assumptions(
    pointer: PointerFact, proved: str = "", *, sets_proved: bool = False, is_deduced: bool = False
) -> Iterator[Assumption]:
    """What a fact about pointers takes as given; where its alignment is ``proved``, in words, that is of its own kind.

    Args:
        pointer: the fact.
        proved: how its alignment is proved; empty where it is not.
        sets_proved: whether the cache sets are proved with the alignment.
        is_deduced: whether that is by deduction.

    *Soundness:* each part of the fact is told.
    """
    subject = f"in {', '.join(pointer.functions)}" if pointer.functions else "elsewhere"
    more = f"{pointer.remainder} more than " if pointer.remainder else ""
    text, place = f"what addresses {subject} are computed from is {more}a multiple of {pointer.multiple_of}", ""
    if pointer.sets is not None:
        sets = f", and they are in cache sets {pointer.first_set} and up, {pointer.sets} of them"
        text, place = (text + sets, place) if proved and sets_proved else (text, place + sets)
    if pointer.symbol is not None:
        place += f", and they are in {pointer.symbol}"
    if pointer.visit == "again":
        place += ", and they are in lines that the call has loaded from on a first visit, and not stored to since"
    if pointer.line_changes is not None:
        place += f", at most {pointer.line_changes} in another line than the data access before"
    if proved:
        check = DEDUCED_CHECK if is_deduced else PROVED_CHECK
        yield Assumption(f"proved {pointer.where}", f"{text}, {proved}: {pointer.because}", check)
        text = f"the place of addresses {subject} is told"
    if place or pointer.visit or not proved:
        yield Assumption(f"fact {pointer.where}", f"{text}{place}: {pointer.because}", _EVERY_RUN)
    if pointer.lines is not None:
        text = f"addresses {subject} are in at most {pointer.lines} lines, {pointer.lines_per_set} of them in one set"
        yield Assumption(f"fact {pointer.where}", f"{text}: {pointer.because}", _EVERY_RUN)


def _objects(fact: PointerFact, parameters: Mapping[str, int]) -> Objects | None:
    if fact.lines is None or fact.lines_per_set is None:
        return None
    lines, per_set = evaluate(fact.lines, parameters), evaluate(fact.lines_per_set, parameters)
    if not 0 < per_set <= lines:
        raise UsageError(
            f"{fact.where}: [[pointer]] key lines_per_set: {per_set} of {lines} lines in one set cannot be; give at "
            "least 1 and at most the lines."
        )
    return Objects(fact.where, lines, per_set)


def _line_changes(fact: PointerFact, parameters: Mapping[str, int]) -> LineChanges | None:
    if fact.line_changes is None:
        return None
    most = evaluate(fact.line_changes, parameters)
    if most < 0:
        raise UsageError(f"{fact.where}: [[pointer]] key line_changes: {most} accesses cannot be; give 0 or more.")
    return LineChanges(fact.where, most)


def _visit(fact: PointerFact, parameters: Mapping[str, int], line_bytes: int | None) -> Visit | None:
    """What is told of visits to lines of so many bytes; nothing where there are none."""
    if line_bytes is None:
        return None
    most = fact.visit_line_bytes
    return fact.visit if most is None or line_bytes <= evaluate(most, parameters) else None


def _extent(where: str, symbol: Symbol) -> MemoryRange:
    if symbol.size_bytes == 0:
        raise UsageError(f"{where}: [[pointer]] key symbol: {symbol.name} has no size; give its symbol one.")
    return MemoryRange(symbol.address, symbol.size_bytes)


def _sets(first: Expression | None, count: Expression | None, parameters: Mapping[str, int]) -> frozenset[int] | None:
    if first is None or count is None:
        return None
    start = evaluate(first, parameters)
    return frozenset(range(start, start + evaluate(count, parameters)))
