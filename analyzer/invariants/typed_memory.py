"""Induction over a module by kinds and residues: what words its operations store, they load.

As `induction`, of which this is the coarser sister: it knows no values, and takes for granted that words in the arena
are used as what they were stored as. In exchange it speaks of allocators whose tags and links lie side by side with
the blocks of the caller. Alignments follow from it (`alignment_claims`).

What is taken for granted is `model.induction.LEMMAS`:

* ``stored-before-loaded``: the payload of a block is the caller's while it holds it; that a load is of a word which the
  allocator has stored since is structure of the heap, which this domain does not know. What a call of free loads at a
  constant distance behind the start of its block may be anything all the same; at a computed one, the next may begin.
* ``words-keep-their-kind``: tags and links have the same residues, and a load of one seems to give the other, too. Of
  an address that is followed, those alternatives are left out that are made of a word from the arena and no address.
  Of other words (arguments, words in static data), nothing is left out but null. Of what is loaded from an
  address that is a constant below 65,536 nothing is known: it need not be computed from null. Those
  that the storing operation takes for an index of static data are not loaded as other numbers.
* ``objects-apart``: what is added to an address leads out of no object, and none lies below 65,536, so that a store to
  a constant there changes no word.
* ``heads-are-no-blocks``: what is taken from a list as a block is not the list's head.

What an access follows has been followed behind it, too (`situations`).

Source: as `induction`; on keeping apart what a C program stores by its type, J. Condit, M. Harren, S. McPeak, G. C.
Necula, W. Weimer, CCured in the real world, PLDI 2003 (there it is checked when the program runs).

Words: data invariant, kind, lemma, inclusion-based analysis (docs/explanation/glossary.md).

*Soundness:* by induction over the loads of all calls since the first of init: each gives a word that a store of some
operation put there, or that the image has. What no operation stores may be anything. Where a store goes through an
address of which nothing is known, nothing is known of any word.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from wcet_probe.analyzer.domains.strided import StridedInterval
from wcet_probe.analyzer.graph.fixpoint import solve
from wcet_probe.analyzer.graph.flow_order import Arrow, FlowOrder
from wcet_probe.analyzer.invariants.image_words import Constants
from wcet_probe.analyzer.invariants.kinds import (
    ALL,
    ANYTHING,
    MODULUS,
    NOTHING,
    NULL,
    WORD_BITS,
    Kind,
    Part,
    Word,
    as_index,
    joined,
    residue,
    residues_of,
    word,
)
from wcet_probe.analyzer.invariants.stored_addresses import Looks, is_copy, stored_addresses
from wcet_probe.analyzer.invariants.typed_operations import TypedAccess, TypedOperation, Use
from wcet_probe.analyzer.invariants.ways_taken import Conditions, ways_taken
from wcet_probe.analyzer.invariants.words import Words
from wcet_probe.analyzer.pcode.semantics import signed
from wcet_probe.analyzer.values.execution.accesses import WordTransfer
from wcet_probe.analyzer.values.states.bases import Base
from wcet_probe.analyzer.values.states.state import State
from wcet_probe.analyzer.values.symbolic.term_table import Term
from wcet_probe.errors import AnalysisError
from wcet_probe.model.image import Image, Segment

_WORD_BYTES = 4
_NO_MEMORY = 1 << 16
"""Below this no object lies, by ``objects-apart``."""
_LAST = (1 << WORD_BITS) - 1
_POINTED = (-1,)
"""In the place of a table: where addresses that are stored somewhere lead to."""

Unknown = tuple[int, Term]
Found = Mapping[Unknown, Word]
RESULT: Term = -1


@dataclass(frozen=True, slots=True)
class TypedMemory:
    """What holds whenever an operation begins.

    Attributes:
        found: each symbol, by operation.
        lost: stores of whose address nothing is known, as operation and access; where there is one, nothing is known.
        rounds: of the iteration.
    """

    found: Found
    lost: tuple[tuple[int, int], ...]
    rounds: int


class Target(NamedTuple):
    """Where a load or a store goes: words of a region (`Kind.ARENA`, `STATIC`), or of the operation's stack, ``NULL``.

    Loads go to constant data, too, `Kind.CONSTANT`. ``residues`` are those of the address; ``low`` to ``high`` are
    addresses, or distances on the stack. ``table`` are the constant and the factors of an address in static data of
    which no more is known: accesses of one table.
    """

    region: Kind
    owner: int
    size_bytes: int
    residues: int
    low: int
    high: int
    table: tuple[int, ...] = ()


def typed_memory(image: Image, operations: Sequence[TypedOperation], evaluator: Evaluator) -> TypedMemory:
    """What ``operations`` store and load, whenever any of them is called.

    Raises:
        AnalysisError: malloc may return what is no block of the arena.

    *Soundness:* as said of the module; the engine has checked the result in one pass.
    """
    unstored: frozenset[Unknown] = frozenset()
    while True:
        equations = _Equations(image, operations, evaluator, unstored)
        found = solve(FlowOrder([0], [Arrow(0, 0)]), equations, {0: {}}).states[0]
        equations.step(found)
        if equations.lost or equations.empty <= unstored:
            break
        unstored |= equations.empty
    for index, one in enumerate(operations):
        if one.returned and any(part.kind not in {Kind.ARENA, Kind.NULL} for part in found.get((index, RESULT), ())):
            raise AnalysisError(f"what {one.role} returns is not known to be a block of the arena.")
    return TypedMemory(found, tuple(sorted(equations.lost)), equations.rounds)


def followed(address: Word) -> Word:
    """``address`` without what the lemmas exclude: null, and what is made of a word from the arena and no address."""
    return tuple(
        part
        for part in address
        if part.kind not in {Kind.NULL, Kind.NEAR} and not (part.is_loaded and part.kind in _NEVER[Use.LINK])
    )


_NEVER: Mapping[Use, frozenset[Kind]] = {
    Use.OPEN: frozenset(),
    Use.LINK: frozenset({Kind.NUMBER, Kind.INDEX, Kind.MIXED}),
    Use.NUMBER: frozenset({Kind.ARENA, Kind.STATIC, Kind.INDEX, Kind.MIXED}),
    Use.INDEX: frozenset({Kind.ARENA, Kind.STATIC, Kind.MIXED}),
}
"""What a loaded word is not, by its use."""


class Evaluator:
    """What terms may be; evaluated again only where something that they are made of has changed."""

    def __init__(self, image: Image, operations: Sequence[TypedOperation]) -> None:
        self.constants = Constants(image)
        self.kind_of = self.constants.kind_of
        self._operations = operations
        self._unknown = frozenset(_unknowns(operations))
        self._memo: dict[object, tuple[tuple[Word, ...], Word]] = {}
        self._values: dict[object, tuple[tuple[Word, ...], StridedInterval]] = {}
        self._given: dict[Term, Word] = {}
        self._words = [
            Words(self.kind_of, lambda one: self._given.get(one, ANYTHING), one.situations, _taken_to(one))
            for one in operations
        ]

    def value(self, index: int, state: State, term: Term, found: Found) -> StridedInterval:
        """What number or address ``term`` may be in ``state``, of the operation ``index``."""
        key = index, id(state), term
        symbols = sorted(state.terms.symbols(term))
        known = tuple(self._known(index, one, found) for one in symbols)
        before = self._values.get(key)
        if before is None or before[0] != known:
            self._given = dict(zip(symbols, known, strict=True))
            self._values[key] = before = known, self._words[index].value(state, term)
        return before[1]

    def word(self, index: int, state: State, term: Term, found: Found) -> Word:
        """What ``term`` may be in ``state``, of the operation ``index``."""
        key = index, id(state), term
        symbols = sorted(state.terms.symbols(term))
        known = tuple(self._known(index, one, found) for one in symbols)
        before = self._memo.get(key)
        if before is not None and before[0] == known:
            return before[1]
        situation = self._operations[index].situation(state)
        self._given = dict(zip(symbols, known, strict=True))
        for symbol, constant in situation.followed:
            if symbol in self._given:
                self._given[symbol] = self._as_followed(self._given[symbol], constant)
        parts = self._words[index].of(state, term, situation)
        self._memo[key] = known, parts
        return parts

    def sum(self, parts: Sequence[tuple[int, Word]], constant: int) -> Word:
        """The sum of words, each times its factor, and a constant."""
        return self._words[0].sum(parts, constant)

    def _as_followed(self, parts: Word, constant: int) -> Word:
        """The ``parts`` of a word that has been an address, with a constant added."""
        return tuple(part for part in parts if followed(self.sum([(1, (part,))], constant)))

    def _known(self, index: int, symbol: Term, found: Found) -> Word:
        return found.get((index, symbol), NOTHING) if (index, symbol) in self._unknown else ANYTHING


def _taken_to(one: TypedOperation) -> Callable[[State], Conditions]:
    """What states of an operation tell of the ways that were taken to them."""
    arriving = {meeting.symbol: meeting.arriving for meeting in one.meetings if meeting.arriving}
    return ways_taken(one.values, arriving, lambda state: one.situation(state).point)


class _Equations:
    """The equations of the induction (`fixpoint.Equations`) for the one node, whose state are all unknowns."""

    def __init__(
        self, image: Image, operations: Sequence[TypedOperation], evaluator: Evaluator, unstored: frozenset[Unknown]
    ) -> None:
        self._image, self._operations, self._evaluator, self._unstored = image, operations, evaluator, unstored
        self._seen: dict[tuple[Target, Target], bool | None] = {}
        self.lost: set[tuple[int, int]] = set()
        self.empty: set[Unknown] = set()
        self.rounds = 0
        self._pointed: tuple[tuple[int, int], ...] | None = None

    # ------------------------------------------------------------------------------------------------------- engine

    def merged(self, node: int, arriving: Sequence[Found], former: Found | None) -> Found:  # noqa: ARG002
        """The join of all that arrives, unknown by unknown."""
        first, *others = arriving
        for other in others:
            first = _joined(first, other)
        return first

    def resumed(self, node: int, entering: Sequence[Found], former: Found, number: int) -> Found:  # noqa: ARG002
        """The join with what was known."""
        return _joined(former, self.merged(node, entering, None))

    def widened(self, node: int, former: Found, grown: Found, number: int) -> Found:  # noqa: ARG002
        """The join: the domain is finite."""
        return _joined(former, grown)

    def leq(self, one: Found, other: Found) -> bool:
        """Unknown by unknown."""
        return all(joined(other.get(key, NOTHING), parts) == other.get(key, NOTHING) for key, parts in one.items())

    def flow(self, node: int, state: Found) -> Iterable[tuple[Arrow, Found]]:
        """What all operations make of it; nothing more, once a store is lost."""
        yield Arrow(node, node), state if self.lost else self.step(state)

    # ---------------------------------------------------------------------------------------------------- equations

    def step(self, found: Found) -> Found:
        """All equations once, with ``found`` for what is on their right sides."""
        self.rounds += 1
        evaluator = self._evaluator
        self._pointed = stored_addresses(
            self._operations,
            Looks(
                lambda index, state, term: evaluator.word(index, state, term, found),
                lambda index, state, term: evaluator.value(index, state, term, found),
                evaluator.kind_of,
                evaluator.constants.pointers(),
            ),
        )
        new: dict[Unknown, Word] = {}
        stores: dict[Target, Word] = {}
        loads: list[tuple[Unknown, TypedAccess, tuple[Target, ...] | None]] = []
        for index, one in enumerate(self._operations):
            for place, access in enumerate(one.accesses):
                targets = self._targets(index, access, found)
                if access.transfer.value is None:
                    if access.symbol is not None:
                        loads.append(((index, access.symbol), access, targets))
                    continue
                stored = self._stored(index, access, access.transfer.value, found)
                if targets is None:
                    self.lost.add((index, place))
                for target in targets or ():
                    stores[target] = joined(stores.get(target, NOTHING), stored)
            self._meet(new, index, one, found)
        read: dict[Target, Word] = {}
        self.empty = set()
        for key, access, targets in loads:
            new[key] = ANYTHING if key in self._unstored else self._loaded(key[0], access, targets, stores, read)
            if targets and not new[key]:
                self.empty.add(key)
        return new

    def _meet(self, new: dict[Unknown, Word], index: int, one: TypedOperation, found: Found) -> None:
        """What arrives where paths of an operation meet, at its entry and behind it."""
        for meeting in one.meetings:
            new[index, meeting.symbol] = self._all(index, meeting.arriving, found) if meeting.arriving else ANYTHING
        result = self._all(index, one.returned, found)
        blocks = tuple(part for part in followed(result) if not (part.is_loaded and part.kind is Kind.STATIC))
        new[index, RESULT] = joined(blocks, NULL) if result else NOTHING
        for symbol, parts in one.arguments.items():
            new[index, symbol] = parts
        if one.given is not None:
            given = NULL
            for other, giving in enumerate(self._operations):
                if giving.returned:
                    given = joined(given, found.get((other, RESULT), NOTHING))
            new[index, one.given] = given

    def _all(self, index: int, arriving: Iterable[tuple[State, Term]], found: Found) -> Word:
        result = NOTHING
        for state, term in arriving:
            result = joined(result, self._evaluator.word(index, state, term, found))
        return result

    # ------------------------------------------------------------------------------------------------------- memory

    def _stored(self, index: int, access: TypedAccess, value: Term, found: Found) -> Word:
        """What ``access`` stores."""
        if access.transfer.size_bytes != _WORD_BYTES:
            return ANYTHING
        stored = self._evaluator.word(index, access.transfer.state, value, found)
        return as_index(stored) if access.use is Use.INDEX else stored

    def _targets(self, index: int, access: TypedAccess, found: Found) -> tuple[Target, ...] | None:
        """Where ``access`` goes; None where nothing is known of it."""
        transfer = access.transfer
        state, pointer, size = transfer.state, transfer.pointer, transfer.size_bytes
        base, value = state.base(pointer), self._evaluator.value(index, state, pointer, found)
        if base is Base.ANY or value.is_bottom:
            return None if base is Base.ANY else ()
        if base is Base.STACK:
            return (Target(Kind.NULL, index, size, residues_of(value), *value.signed_range()),)
        low, high = value.unsigned_range()
        segment = _holding(self._image.segments, value, size)
        is_low = high < _NO_MEMORY <= min(one.address for one in self._image.segments)
        if is_low and transfer.value is not None and state.terms[pointer].opcode == "const" and high % size == 0:
            return ()
        if segment is not None and _holding(self._image.segments, state.value(pointer), size) is not None:
            return (Target(Kind.STATIC, 0, size, residues_of(value), low, high),) if segment.writable else None
        if segment is not None and segment.writable:
            table = _table(self._evaluator, state, pointer)
            return (Target(Kind.STATIC, 0, size, residues_of(value), low, high, table),)
        return self._followed(index, transfer, found)

    def _followed(self, index: int, transfer: WordTransfer, found: Found) -> tuple[Target, ...] | None:
        """Where an access goes of whose address no value is known."""
        state, pointer, size = transfer.state, transfer.pointer, transfer.size_bytes
        parts = followed(self._evaluator.word(index, state, pointer, found))
        own = {Kind.ARENA, Kind.STATIC} if transfer.is_store else {Kind.ARENA, Kind.STATIC, Kind.CONSTANT}
        if any(part.kind not in own for part in parts):
            return None
        form, table = state.terms.linear(pointer), _table(self._evaluator, state, pointer)
        targets: list[Target] = []
        for part in parts:
            if part.kind is Kind.STATIC and part.is_loaded and self._pointed and is_copy(state.terms, pointer, form):
                targets += _moved_by(self._pointed, signed(WORD_BITS, form.constant), size, part.residues)
                continue
            named = table if part.kind is Kind.STATIC else ()
            targets.append(Target(part.kind, 0, size, part.residues, 0, _LAST, named))
        return tuple(targets)

    def _loaded(
        self,
        index: int,
        access: TypedAccess,
        targets: tuple[Target, ...] | None,
        stores: Mapping[Target, Word],
        read: dict[Target, Word],
    ) -> Word:
        """What a load gives."""
        if targets is None or access.is_payload:
            return ANYTHING
        found = NOTHING
        for target in targets:
            if target not in read:
                read[target] = self._seen_by(target, stores)
            found = joined(found, read[target])
            if not self._is_stored_by_init(index, target):
                found = joined(found, self._before(target))
        return tuple(part for part in found if not (part.is_loaded and part.kind in _NEVER[access.use]))

    def _seen_by(self, target: Target, stores: Mapping[Target, Word]) -> Word:
        found = NOTHING
        for store, stored in stores.items():
            pair = target, store
            if pair not in self._seen:
                self._seen[pair] = sees(target, store)
            seen = self._seen[pair]
            if seen is None:
                return ANYTHING
            if seen:
                found = joined(found, _loaded(stored, is_told=_is_same_place(target, store)))
        return found

    def _is_stored_by_init(self, index: int, target: Target) -> bool:
        """Whether init has stored there before any other operation is called (premise ``init-first``)."""
        if target.region is not Kind.STATIC or target.low != target.high:
            return False
        return any(
            one.role == "init" and target.low in one.surely_stored
            for other, one in enumerate(self._operations)
            if other != index
        )

    def _before(self, target: Target) -> Word:
        """What is there before anything is stored: on the stack and in the arena nothing, by the lemma."""
        if target.region is Kind.ARENA:
            return NOTHING
        if target.region is Kind.NULL:
            return NOTHING if target.high < 0 else ANYTHING
        if target.region is Kind.CONSTANT:
            return self._evaluator.constants.words(target.residues) if target.size_bytes == _WORD_BYTES else ANYTHING
        if target.size_bytes != _WORD_BYTES:
            return ANYTHING
        found = self._evaluator.constants.initial(target.residues, target.low, target.high)
        return _loaded(found, is_told=True)


def sees(load: Target, store: Target) -> bool | None:
    """Whether ``load`` may read what ``store`` writes; None where it may read a part of it, or more.

    *Soundness:* two accesses of one region overlap only if their addresses' distance, which has the residue of the
    difference of theirs, is less than their sizes.
    """
    if (load.region, load.owner) != (store.region, store.owner):
        return False
    if load.low >= store.high + store.size_bytes or store.low >= load.high + load.size_bytes:
        return False
    for distance in range(1 - load.size_bytes, store.size_bytes):
        if (distance or load.size_bytes != store.size_bytes) and _moved(store.residues, distance) & load.residues:
            return None
    return bool(load.residues & store.residues)


def _holding(segments: Sequence[Segment], addresses: StridedInterval, size: int) -> Segment | None:
    """The segment that ``size`` bytes at each of ``addresses`` are in; None: there is none."""
    low, high = addresses.unsigned_range()
    inside = (one for one in segments if one.address <= low and high + size <= one.address + one.size_bytes)
    return next(inside, None)


def _table(evaluator: Evaluator, state: State, pointer: Term) -> tuple[int, ...]:
    """What an address of static data that is computed from an index is told from others by; nothing: it is none."""
    form = state.terms.linear(pointer)
    return (
        (form.constant, *sorted(form.coefficients.values())) if evaluator.kind_of(form.constant) is Kind.STATIC else ()
    )


def _moved_by(addresses: Sequence[tuple[int, int]], distance: int, size: int, residues: int) -> Iterator[Target]:
    """Where a loaded address leads to that is one of ``addresses``, each from one to another, and a ``distance``."""
    named = () if len(addresses) == 1 and addresses[0][0] == addresses[0][1] else _POINTED
    for ends in addresses:
        low, high = (max(0, one + distance) for one in ends)
        own = residues & residue(low) if low == high else residues
        if own:
            yield Target(Kind.STATIC, 0, size, own, low, high, named)


def _is_same_place(load: Target, store: Target) -> bool:
    """Whether nothing tells that a word of ``load`` is something else than one of ``store``.

    Places that are known, and one table: what is stored there is what is loaded, no lemma speaks of it.
    """
    if load.region is Kind.ARENA:
        return False
    if load.table or store.table:
        return load.table == store.table != _POINTED
    return _LAST not in {load.high, store.high}


def _loaded(stored: Word, *, is_told: bool) -> Word:
    """``stored``, as loaded from a place of which a lemma speaks, unless it ``is_told``; heads of lists always are."""
    return word(
        Part(
            part.kind,
            part.is_loaded or part.kind is Kind.STATIC or (not is_told and part.kind is not Kind.ANY),
            *part[2:],
        )
        for part in stored
    )


def _moved(residues: int, distance: int) -> int:
    amount = distance % MODULUS
    return (residues << amount | residues >> MODULUS - amount) & ALL


def _unknowns(operations: Sequence[TypedOperation]) -> Iterator[Unknown]:
    for index, one in enumerate(operations):
        yield from ((index, access.symbol) for access in one.accesses if access.symbol is not None)
        yield from ((index, meeting.symbol) for meeting in one.meetings)
        yield from ((index, symbol) for symbol in one.arguments)
        if one.given is not None:
            yield index, one.given


def _joined(one: Found, other: Found) -> Found:
    return {key: joined(one.get(key, NOTHING), other.get(key, NOTHING)) for key in sorted(one.keys() | other.keys())}
