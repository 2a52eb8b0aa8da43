"""Induction over a module: what its memory holds before an operation it holds again behind it, whatever the operation.

The unknowns are the words that operations load, what arrives where paths meet, and the block that one operation returns
and another is given. A loaded word is whatever any store of any operation may have put there, or what the image has
there: stores are kept one by one, and whether a load may see one is asked of both addresses. That is the finest
partition of memory into classes that the addresses allow; no store kills another.

Least solution by the house's engine (`graph.fixpoint`), as a loop with one node whose state are all unknowns; its check
is one pass over all equations.

Source: P. Cousot, R. Cousot, POPL 1977; L. O. Andersen, Program Analysis and Specialization for the C Programming
Language, 1994 (stores and loads as inclusions, without order).

Words: data invariant, inclusion-based analysis, weak update, fixpoint (docs/explanation/glossary.md).

*Soundness:* by induction over the loads of all calls since the first of init: each of them gives a word that an earlier
store put there, of this call or of one before, or that was there from the beginning. What that takes for granted are
the premises and lemmas of `invariants.lemmas`. A store whose address is not known may be to anywhere: then every load
may give anything.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from wcet_probe.analyzer.domains import strided
from wcet_probe.analyzer.domains.strided import StridedInterval
from wcet_probe.analyzer.graph.fixpoint import solve
from wcet_probe.analyzer.graph.flow_order import Arrow, FlowOrder
from wcet_probe.analyzer.invariants.contents import (
    WORD_BITS,
    Contents,
    ContentsLattice,
    Part,
    Region,
    anything,
    contents_of,
    is_anything,
    remainder_of,
)
from wcet_probe.analyzer.invariants.frontier import Area, leads_on
from wcet_probe.analyzer.invariants.obligations import Lemma, by_lemma, is_by_null, of_address
from wcet_probe.analyzer.invariants.operations import Meeting, Moved, Operation
from wcet_probe.analyzer.invariants.questions import Questions
from wcet_probe.analyzer.invariants.static_memory import StaticMemory, number_of_null
from wcet_probe.analyzer.values.states.state import State
from wcet_probe.analyzer.values.symbolic.linear import Linear
from wcet_probe.analyzer.values.symbolic.term_table import Node, Term
from wcet_probe.model.image import Image

_GROWTH_BEFORE_WIDENING = 16
"""So often an unknown grows before it is widened: one that counts grows in each round, another seldom."""
_GROWTH_OF_NUMBERS = 8
"""The same of one that is no address: remainders of addresses are few, and a frontier may come to all of them."""
_WORD_BYTES = 4

Unknown = tuple[int, Term]
"""A symbol of an operation, by the operation's number; what is returned has no symbol, but -1."""
Found = Mapping[Unknown, Contents]
RESULT: Term = -1


@dataclass(frozen=True, slots=True)
class Module:
    """An allocator whose memory is to be known.

    Attributes:
        image: the binary.
        operations: all that the manifest names; any of them may be called at any time.
        arguments: of each operation, what registers hold at entry, by the term of their symbol.
        way_bits: remainders are modulo two to the power of this.
        first: number of the operation that others are called after, once it has returned 0 (premise ``init-first``).
        area: where objects are carved out that words of static data advance over (lemma ``frontier-in-its-area``).
    """

    image: Image
    operations: Sequence[Operation]
    arguments: Sequence[Mapping[Term, Contents]]
    way_bits: int
    first: int | None = None
    area: Area | None = None


@dataclass(frozen=True, slots=True)
class Invariants:
    """What holds whenever an operation begins.

    Attributes:
        module: of which.
        found: contents of each unknown.
        addresses: of each load and store, by operation and its place among `Operation.moved`.
        stored: of each store, what it stores.
        lost: stores whose address is not known, as operation and place; where there is one, nothing is known.
        first_lost: those of them that were the first: what the others rest on.
        unstored: loads of what no operation stores, as operation and place: they may give anything.
        excused: loads and stores of whose address a lemma excludes something, or that go to the arena or to the block
            of the call: of what these read and write more is taken for granted than premises about the caller.
        needed: by lemma, the loads and stores at which it leaves something out, as operation and place; nothing of
            lemmas that are not needed.
        rounds: of the iteration.
    """

    module: Module = field(repr=False)
    found: Found = field(repr=False)
    addresses: Mapping[tuple[int, int], Contents] = field(repr=False)
    stored: Mapping[tuple[int, int], Contents] = field(repr=False)
    lost: tuple[tuple[int, int], ...]
    first_lost: tuple[tuple[int, int], ...]
    unstored: tuple[tuple[int, int], ...]
    excused: frozenset[tuple[int, int]]
    needed: Mapping[Lemma, frozenset[tuple[int, int]]]
    rounds: int


def invariants(module: Module) -> Invariants:
    """The invariants of ``module``'s memory.

    *Soundness:* as said of this file; the engine has checked the result in one pass.
    """
    unstored: frozenset[tuple[int, int]] = frozenset()
    while True:
        equations = _Equations(module, unstored)
        found = solve(FlowOrder([0], [Arrow(0, 0)]), equations, {0: {}}).states[0]
        step = equations.step(found)
        missing = frozenset(place for place in step.empty if place not in unstored)
        if not missing:
            # Where a store was lost, the equations say no more.
            lost = tuple(sorted({*step.lost, *equations.first_lost}))
            rest = lost, equations.first_lost, tuple(sorted(unstored)), frozenset(step.excused)
            needed = equations.needed(step)
            return Invariants(module, found, step.addresses, step.stored, *rest, needed, equations.rounds)
        unstored |= missing


class _Target(NamedTuple):
    """Where a load or a store goes: ``distance`` from the call's block, or else ``address``."""

    distance: int | None
    size_bytes: int
    address: Contents


@dataclass(slots=True)
class _Step:
    """What one pass over all equations gives."""

    found: dict[Unknown, Contents]
    addresses: dict[tuple[int, int], Contents]
    stored: dict[tuple[int, int], Contents]
    lost: tuple[tuple[int, int], ...]
    empty: list[tuple[int, int]]
    excused: list[tuple[int, int]]
    needed: dict[tuple[int, int], set[Lemma]]


class _Equations:
    """The equations of the induction (`fixpoint.Equations`) for the one node; an arrival is what a pass gives."""

    def __init__(self, module: Module, unstored: frozenset[tuple[int, int]]) -> None:
        self._module, self._unstored = module, unstored
        self._lattice = ContentsLattice(module.way_bits)
        self._memory = StaticMemory(module.image, module.way_bits)
        self._loads = [_load_symbols(one) for one in module.operations]
        self._unknown = frozenset(self._unknowns())
        self._questions = Questions(module.operations, module.way_bits, module.area)
        self._seen: dict[object, bool | None] = {}
        self._growth = Counter[Unknown]()
        self.rounds = 0
        self.first_lost: tuple[tuple[int, int], ...] = ()

    # ------------------------------------------------------------------------------------------------------- engine

    def merged(self, node: int, arriving: Sequence[Found], former: Found | None) -> Found:  # noqa: ARG002
        """The join of all that arrives, unknown by unknown."""
        first, *others = arriving
        for other in others:
            first = self._joined(first, other)
        return first

    def resumed(self, node: int, entering: Sequence[Found], former: Found, number: int) -> Found:  # noqa: ARG002
        """The join with what was known."""
        return self._joined(former, self.merged(node, entering, None))

    def widened(self, node: int, former: Found, grown: Found, number: int) -> Found:  # noqa: ARG002
        """The join, unknown by unknown; what has grown too often goes to the next threshold."""
        result = self._joined(former, grown)
        for key, contents in result.items():
            if contents != former.get(key, ()):
                self._growth[key] += 1
                is_address = any(part.region is Region.ARENA for part in contents)
                if self._growth[key] > (_GROWTH_BEFORE_WIDENING if is_address else _GROWTH_OF_NUMBERS):
                    result[key] = self._lattice.widen(former.get(key, ()), contents)
        return result

    def leq(self, one: Found, other: Found) -> bool:
        """Unknown by unknown."""
        return all(self._lattice.leq(contents, other.get(key, ())) for key, contents in one.items())

    def flow(self, node: int, state: Found) -> Iterable[tuple[Arrow, Found]]:
        """What all operations make of it."""
        yield Arrow(node, node), state if self.first_lost else self.step(state).found

    def _joined(self, one: Found, other: Found) -> dict[Unknown, Contents]:
        keys = sorted(one.keys() | other.keys())
        return {key: self._lattice.join(one.get(key, ()), other.get(key, ())) for key in keys}

    def needed(self, step: _Step) -> Mapping[Lemma, frozenset[tuple[int, int]]]:
        """By lemma, the places at which ``step``, which is all that holds, leaves something out by it."""
        needed = {key: set(own) for key, own in step.needed.items()}
        for key, own in needed.items():
            transfer = self._moved(key).transfer
            terms = [term for term in (transfer.pointer, transfer.value) if term is not None]
            if any(self._questions.of(key[0], transfer.state, term).is_cut for term in terms):
                own.add(Lemma.FRONTIER)
        found = by_lemma(needed)
        if self._questions.is_cut and Lemma.FRONTIER not in found:
            found = {**found, Lemma.FRONTIER: frozenset(needed)}  # something else is cut, of which no access tells
        return found

    # ---------------------------------------------------------------------------------------------------- equations

    def step(self, found: Found) -> _Step:
        """All equations once, with ``found`` for what is on their right sides."""
        self.rounds += 1
        step = _Step({}, {}, {}, (), [], [], {})
        for index, one in enumerate(self._module.operations):
            for place, moved in enumerate(one.moved):
                self._go(step, (index, place), moved, found)
        step.lost = tuple(key for key in step.stored if is_anything(step.addresses[key]) and not self._is_own(key))
        self.first_lost = self.first_lost or step.lost
        stores: dict[_Target, Contents] = {}
        for key, contents in step.stored.items():
            if step.addresses[key]:
                target = self._target(key, step)
                stores[target] = self._lattice.join(stores.get(target, ()), contents)
        read: dict[_Target, Contents] = {}
        for index, symbols in enumerate(self._loads):
            for place, symbol in symbols.items():
                step.found[index, symbol] = self._loaded((index, place), stores, read, step)
        for index, one in enumerate(self._module.operations):
            self._meet(step.found, index, one, found)
        return step

    def _go(self, step: _Step, key: tuple[int, int], moved: Moved, found: Found) -> None:
        """Where a load or a store goes, and what it stores."""
        transfer = moved.transfer
        whole = self._value(key[0], transfer.state, transfer.pointer, found)
        inside = self._within(whole, transfer.state.terms.linear(transfer.pointer))
        is_told = self._memory.is_object(inside, transfer.size_bytes)
        step.addresses[key] = inside if is_told else anything(self._module.way_bits)
        if moved.distance is not None or not self._memory.is_static(whole, transfer.size_bytes):
            step.excused.append(key)
        step.needed[key] = set(of_address(whole, moved, self._memory))
        if inside != self._memory.within(_followed(whole), transfer.state.terms.linear(transfer.pointer).constant):
            step.needed[key].add(Lemma.FRONTIER)
        if transfer.value is not None:
            is_word = transfer.size_bytes == _WORD_BYTES
            top = anything(self._module.way_bits)
            step.stored[key] = self._value(key[0], transfer.state, transfer.value, found) if is_word else top

    def _meet(self, new: dict[Unknown, Contents], index: int, one: Operation, found: Found) -> None:
        """What arrives where paths of an operation meet, at its entry and behind it."""
        for meeting in one.meetings:
            new[index, meeting.symbol] = self._met(index, meeting, found)
        result: Contents = ()
        for state, term in one.returned:
            result = self._lattice.join(result, self._value(index, state, term, found))
        new[index, RESULT] = result
        for symbol, contents in self._module.arguments[index].items():
            new[index, symbol] = contents
        if one.roles.given is not None:
            given = number_of_null(self._module.way_bits)
            for other, giving in enumerate(self._module.operations):
                if giving.roles.returned is not None:
                    given = self._lattice.join(given, found.get((other, RESULT), ()))
            new[index, self._symbol_of(one, one.roles.given)] = given

    def _is_own(self, key: tuple[int, int]) -> bool:
        return self._moved(key).distance is not None

    def _target(self, key: tuple[int, int], step: _Step) -> _Target:
        moved = self._moved(key)
        return _Target(moved.distance, moved.transfer.size_bytes, step.addresses[key])

    def _moved(self, key: tuple[int, int]) -> Moved:
        return self._module.operations[key[0]].moved[key[1]]

    @staticmethod
    def _symbol_of(one: Operation, register: str) -> Term:
        return one.values.terms.symbol(("in", one.values.registers[register]), WORD_BITS)

    def _met(self, number: int, meeting: Meeting, found: Found) -> Contents:
        if meeting.arriving is None:
            return anything(self._module.way_bits)
        result: Contents = ()
        for state, term in meeting.arriving:
            result = self._lattice.join(result, self._value(number, state, term, found))
        if meeting.reach is None or is_anything(result):
            return result
        reach, way = meeting.reach, remainder_of(meeting.reach, self._module.way_bits)
        return contents_of(
            (
                Part(
                    part.region,
                    0,
                    strided.apply("INT_ADD", (part.value, reach), WORD_BITS),
                    strided.apply("INT_ADD", (part.way, way), way.bits),
                )
                for part in result
            ),
            self._module.way_bits,
        )

    def _within(self, address: Contents, form: Linear) -> Contents:
        """``address``, computed as ``form``, without what lemmas exclude: null, and behind static data or the area."""
        inside = self._memory.within(_followed(address), form.constant)
        return self._questions.not_at_end(inside) if leads_on(form.coefficients, form.constant) else inside

    def _value(self, number: int, state: State, term: Term, found: Found) -> Contents:
        """What ``term`` may be, evaluated again only where something that it is made of has changed."""
        question = self._questions.of(number, state, term)
        known = tuple(self._known(number, one, found) for one in question.symbols)
        return self._questions.answer(question, known)

    def _known(self, number: int, symbol: Term, found: Found) -> Contents:
        contents = found.get((number, symbol))
        if contents is None:
            is_unknown = (number, symbol) in self._unknown
            contents = () if is_unknown else anything(self._module.way_bits)
        return contents

    def _unknowns(self) -> Iterator[Unknown]:
        for index, one in enumerate(self._module.operations):
            yield from ((index, symbol) for symbol in self._loads[index].values())
            yield from ((index, meeting.symbol) for meeting in one.meetings)
            yield from ((index, symbol) for symbol in self._module.arguments[index])
            if one.roles.given is not None:
                yield index, self._symbol_of(one, one.roles.given)

    # ------------------------------------------------------------------------------------------------------- memory

    def _loaded(
        self,
        key: tuple[int, int],
        stores: Mapping[_Target, Contents],
        read: dict[_Target, Contents],
        step: _Step,
    ) -> Contents:
        """What the load ``key`` may give; ``read`` is what was found for other loads."""
        moved = self._moved(key)
        top, role = anything(self._module.way_bits), self._module.operations[key[0]].roles
        source = self._target(key, step)
        is_payload = role.given is not None and moved.distance is not None and moved.distance >= 0
        if step.lost or key in self._unstored or is_payload or is_anything(source.address):
            return top
        if source.size_bytes != _WORD_BYTES or not source.address:
            return top if source.address else ()
        first = self._module.first
        stored = self._module.operations[first].surely_stored if first not in {None, key[0]} else frozenset()
        if source not in read:
            read[source] = self._stored_at(source, stores)
        found = read[source]
        initial = self._memory.initial(source.address, stored) if source.distance is None else ()
        if self._module.area is not None and _is_link_to_address(source, found):
            if initial:
                step.needed[key].add(Lemma.STORED)
        else:
            found = self._lattice.join(initial, found)
        if not found:
            step.empty.append(key)
        return found

    def _stored_at(self, source: _Target, stores: Mapping[_Target, Contents]) -> Contents:
        """What a load of ``source`` may see of ``stores``."""
        found: Contents = ()
        for target, contents in stores.items():
            pair = source, target
            if pair not in self._seen:
                self._seen[pair] = _sees(*pair)
            seen = self._seen[pair]
            if seen is None or (seen and is_anything(contents)):
                return anything(self._module.way_bits)
            if seen:
                found = self._lattice.join(found, contents)
        return found


def _is_link_to_address(source: _Target, stored: Contents) -> bool:
    """Whether a word that is loaded through a link is one in which addresses alone are stored."""
    is_link = any(part.region is Region.ARENA for part in source.address)
    return is_link and bool(stored) and all(part.region is Region.ARENA for part in stored)


def _followed(address: Contents) -> Contents:
    """``address`` without what the lemma excludes that null is not followed."""
    return tuple(part for part in address if not is_by_null(part))


def _load_symbols(one: Operation) -> Mapping[int, Term]:
    """The symbol of each load that defines one, by its place among `Operation.moved`."""
    terms, names = one.values.terms, {}
    for term in range(len(terms)):
        match terms[term]:
            case Node("symbol", (int(), int(), int()) as name, bits) if bits == WORD_BITS:
                names[name] = term
    return {
        place: names[moved.symbol_name]
        for place, moved in enumerate(one.moved)
        if not moved.transfer.is_store and moved.symbol_name in names
    }


def _sees(load: _Target, store: _Target) -> bool | None:
    """Whether ``load`` may read what ``store`` writes; None where it may read a part of it, or more."""
    if (load.distance is None) != (store.distance is None):
        return False
    sizes = load.size_bytes, store.size_bytes
    if load.distance is not None and store.distance is not None:
        return _overlap(strided.constant(WORD_BITS, (load.distance - store.distance) % (1 << WORD_BITS)), *sizes)
    result: bool | None = False
    for one in load.address:
        for other in store.address:
            if one.region is not other.region:
                continue
            ends = (one.way, other.way) if one.region is Region.ARENA else (one.value, other.value)
            seen = _overlap(strided.apply("INT_SUB", ends, ends[0].bits), *sizes)
            if seen is None:
                return None
            result = result or seen
    return result


def _overlap(distances: StridedInterval, loaded_bytes: int, stored_bytes: int) -> bool | None:
    """Whether words at these distances are the same; None where they may overlap in part."""
    mask = (1 << distances.bits) - 1
    partly = any(one & mask in distances for one in range(1 - loaded_bytes, stored_bytes) if one)
    if partly or (0 in distances and loaded_bytes != stored_bytes):
        return None
    return 0 in distances
