"""The operations of a module as `typed_memory` sees them: all loads and stores, and what arrives where paths meet.

Words: data invariant (docs/explanation/glossary.md).

*Soundness:* every load and store of each point that can be reached is told, with the state in which it takes place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from wcet_probe.analyzer.invariants.indices import scaled_to_index, stored_indices
from wcet_probe.analyzer.invariants.kinds import WORD_BITS, Kind, Word
from wcet_probe.analyzer.invariants.operations import (
    Moved,
    held_symbols,
    require_expanded,
    returned_words,
    surely_stored,
)
from wcet_probe.analyzer.invariants.plain_frames import require_plain_frames
from wcet_probe.analyzer.invariants.situations import NOWHERE, Situation, Situations, situations
from wcet_probe.analyzer.pcode.lift import Lifter
from wcet_probe.analyzer.values.execution.accesses import Access, WordTransfer
from wcet_probe.analyzer.values.execution.transfer import Transfer
from wcet_probe.analyzer.values.properties.own_block import Roles, distances
from wcet_probe.analyzer.values.result import Values
from wcet_probe.analyzer.values.states.bases import Base
from wcet_probe.analyzer.values.states.held_addresses import HeldAddresses
from wcet_probe.analyzer.values.states.memory import Memory
from wcet_probe.analyzer.values.states.state import State
from wcet_probe.analyzer.values.symbolic.locations import Location
from wcet_probe.analyzer.values.symbolic.term_table import Term
from wcet_probe.errors import AnalysisError
from wcet_probe.model.image import Image


class Use(Enum):
    """What a word is used as, by the addresses that it is in; ``OPEN``: it is not told; ``INDEX``: of static data."""

    OPEN = "open"
    LINK = "link"
    NUMBER = "number"
    INDEX = "index"


@dataclass(frozen=True, slots=True)
class TypedAccess:
    """A load or a store.

    Attributes:
        access: as the values have it.
        transfer: as it is executed.
        symbol: of a loaded word; None where it defines none.
        use: what the word is used as, by the operation that loads or stores it. Where one load of an address is of an
            index, all loads of it are.
        is_payload: whether it is to the block that the operation is given, and not before its start.
    """

    access: Access
    transfer: WordTransfer
    symbol: Term | None
    use: Use
    is_payload: bool


@dataclass(frozen=True, slots=True)
class Arrival:
    """A symbol of where paths meet: what it is along each edge, as a state and a term; none: not known."""

    symbol: Term
    arriving: tuple[tuple[State, Term], ...]


@dataclass(frozen=True, slots=True)
class TypedOperation:
    """An entry point.

    Attributes:
        role: its name in the manifest, such as ``malloc``.
        values: what its value analysis found.
        accesses: its loads and stores, in the order of the values' accesses by points.
        meetings: symbols of where paths meet.
        arguments: what registers hold at entry, by the term of their symbol.
        given: the symbol of the block that it is given; None where there is none.
        returned: the block that it returns, on each way out; empty where there is none.
        surely_stored: addresses of words that it stores on every way to an end where it may return 0.
        situations: what is known beside the values' states.
        where: the situation of each state of an access or an edge, by its identity.
    """

    role: str
    values: Values
    accesses: tuple[TypedAccess, ...]
    meetings: tuple[Arrival, ...]
    arguments: Mapping[Term, Word]
    given: Term | None
    returned: tuple[tuple[State, Term], ...]
    surely_stored: frozenset[int]
    situations: Situations
    where: Mapping[int, Situation]

    def situation(self, state: State) -> Situation:
        """Where ``state`` holds, if it is one of an access or of an edge."""
        return self.where.get(id(state), NOWHERE)


def typed_operation(  # noqa: PLR0917  the operation and what it is read from
    role: str,
    values: Values,
    image: Image,
    lifter: Lifter,
    roles: Roles,
    arguments: Mapping[str, Word],
    result: str,
    kind_of: Callable[[int], Kind],
) -> TypedOperation:
    """The operation ``role`` with these ``values``; ``arguments`` by the name of their register.

    ``result`` is the register in which functions return; ``kind_of`` tells what a constant is.

    Raises:
        AnalysisError: calls in it are not expanded, or the stack's addresses are stored, or may be loaded unknown.

    *Soundness:* as said of the module.
    """
    require_expanded(role, values)
    if values.stack_escapes:
        raise AnalysisError(f"{role} stores an address of its stack, through which words may be changed.")
    meetings = (*_meetings(values, held_symbols(values)), *_within(values))
    returned = returned_words(role, values, roles)
    accesses = tuple(_accesses(values, image, lifter, roles, meetings, [term for _, term in returned], kind_of))
    if values.assumes_plain_frames:
        require_plain_frames(role, (one.transfer for one in accesses))
    situated = situations(values)
    where = {id(one.state): situated.leaving[edge.source] for edge, one in values.edges.items()}
    before = (each for index in sorted(values.states) for each in situated.accesses[index])
    where |= {id(one.transfer.state): each for one, each in zip(accesses, before, strict=True)}
    return TypedOperation(
        role=role,
        values=values,
        accesses=accesses,
        meetings=meetings,
        arguments={_argument(values, name): parts for name, parts in arguments.items()},
        given=_argument(values, roles.given) if roles.given else None,
        returned=returned,
        surely_stored=_stored(values, accesses, result),
        situations=situated,
        where=where,
    )


def _stored(values: Values, accesses: Iterable[TypedAccess], result: str) -> frozenset[int]:
    moved = (Moved(0, one.transfer, None, one.access.is_certain) for one in accesses)
    outside = (one for one in moved if one.transfer.state.base(one.transfer.pointer) is Base.NUMBER)
    return frozenset(surely_stored(values, outside, values.registers[result]))


def _argument(values: Values, register: str) -> Term:
    return values.terms.symbol(("in", values.registers[register]), WORD_BITS)


@dataclass(frozen=True, slots=True)
class _Uses:
    """What words are used as: symbols that are links, that are numbers, and that may be indices of static data."""

    links: set[Term]
    numbers: set[Term]
    indices: set[Term]

    def of(self, symbol: Term) -> Use:
        """Of a loaded word."""
        if symbol in self.links:
            return Use.LINK
        if symbol in self.numbers:
            return Use.INDEX if symbol in self.indices else Use.NUMBER
        return Use.OPEN


def _accesses(  # noqa: PLR0917  the operation and what it is read from
    values: Values,
    image: Image,
    lifter: Lifter,
    roles: Roles,
    meetings: Sequence[Arrival],
    returned: Sequence[Term],
    kind_of: Callable[[int], Kind],
) -> Iterator[TypedAccess]:
    uses = _uses(values, roles, meetings, kind_of)
    found = distances(values, Roles(roles.given, None))
    moved = list(_transfers(values, image, lifter))
    arriving = [(one.symbol, tuple(term for _, term in one.arriving)) for one in meetings]
    blocks = [*returned, _argument(values, roles.given)] if roles.given else returned
    indices = stored_indices(values, [one for one, _ in moved], arriving, blocks, kind_of)
    loaded = {number: _loaded(values, one) for number, (one, _) in enumerate(moved) if _is_word(one)}
    scaled = frozenset(scaled_to_index(values, kind_of))
    again = {moved[number][0].pointer for number, symbol in loaded.items() if symbol in scaled}
    for number, (one, access) in enumerate(moved):
        distance = next(found)
        symbol, use = loaded.get(number), Use.INDEX if one.value in indices else Use.OPEN
        if symbol is not None:
            use = uses.of(symbol)
            use = Use.INDEX if use is Use.NUMBER and one.pointer in again else use
        is_payload = roles.given is not None and distance is not None and distance >= 0
        yield TypedAccess(access, one, symbol, use, is_payload)


def _is_word(one: WordTransfer) -> bool:
    return not one.is_store and 8 * one.size_bytes == WORD_BITS


def _loaded(values: Values, one: WordTransfer) -> Term:
    """The symbol of what is loaded."""
    return values.terms.symbol((one.place, one.instruction_address, one.operation), WORD_BITS)


def _transfers(values: Values, image: Image, lifter: Lifter) -> Iterator[tuple[WordTransfer, Access]]:
    """The loads and stores as they are executed, and as the values have them."""
    memory = Memory(image, stack_escapes=values.stack_escapes, held=HeldAddresses(values.held))
    memory.assumes_plain_frames = values.assumes_plain_frames
    transfer = Transfer(lifter, values.terms, memory)
    for index in sorted(values.states):
        transfers: list[WordTransfer] = []
        block = values.graph.points[index].block
        transfer.block(index, block.instructions, values.states[index].copy(), transfers=transfers.append)
        yield from zip(transfers, values.accesses[index], strict=True)


def _uses(values: Values, roles: Roles, meetings: Iterable[Arrival], kind_of: Callable[[int], Kind]) -> _Uses:
    """The symbols that are links, and those that are numbers; none is both.

    Links are followed, with bits masked or not, or compared with links, or arrive as one where paths meet. Numbers are
    added to a link or to static data to make an address, or are subtracted, masked, shifted or counted in. What is
    followed is a link in any case; what only seems to be one is not where it is a number, too.
    """
    addresses = [
        values.terms.linear(access.pointer)
        for accesses in values.accesses.values()
        for access in accesses
        if access.pointer is not None and access.base is Base.NUMBER
    ]
    forms = [one.coefficients for one in addresses if kind_of(one.constant) is Kind.NUMBER]
    indices = [one.coefficients for one in addresses if kind_of(one.constant) is not Kind.NUMBER]
    followed = {_argument(values, roles.given)} if roles.given else set[Term]()
    for form in forms:
        if list(form.values()) == [1]:
            followed.update(_unmasked(values, next(iter(form))))
    links = _links(values, followed, meetings, kind_of)
    numbers = _numbers(values, forms, indices, links) | ((_counted(values) | _scaled(values, meetings)) - links)
    numbers |= _arriving_numbers(values, numbers - followed, links, meetings)
    scaled = {symbol for term in scaled_to_index(values, kind_of) for symbol in _summands(values, term)}
    return _Uses(followed | (links - numbers), numbers - followed, _arriving_summands(values, scaled, meetings))


def _links(
    values: Values, followed: set[Term], meetings: Iterable[Arrival], kind_of: Callable[[int], Kind]
) -> set[Term]:
    """``followed``, and what is compared with links or with static data, or arrives as a link where paths meet."""
    terms, links, before = values.terms, set(followed), -1
    compared = [terms.operands(term) for term in range(len(terms)) if terms[term].opcode in _EQUALITIES]
    while before < len(links):
        before = len(links)
        for one, other in (pair for each in compared for pair in (each, each[::-1])):
            if kind_of(terms.linear(other).constant) is Kind.STATIC or _unmasked(values, other) & links:
                links.update(_unmasked(values, one))
        for meeting in meetings:
            if meeting.symbol in links:
                links.update(symbol for _, term in meeting.arriving for symbol in _unmasked(values, term))
    return links


def _numbers(
    values: Values, forms: Iterable[Mapping[Term, int]], indices: Iterable[Mapping[Term, int]], links: set[Term]
) -> set[Term]:
    """What is added to ``links`` in ``forms``, or to static data in ``indices``, or masked, shifted or counted in."""
    terms = values.terms
    found = {symbol for form in indices for term in form for symbol in _unmasked(values, term)}
    for term in range(len(terms)):
        if terms[term].opcode in _OF_NUMBERS:
            found.update(_unmasked(values, terms.operands(term)[0]))
    for form in forms:
        bases = [term for term, factor in form.items() if factor == 1 and _unmasked(values, term) & links]
        for term, factor in form.items():
            if factor != 1 or (bases and term not in bases):
                found.update(_unmasked(values, term))
    return found


def _arriving_numbers(values: Values, numbers: set[Term], links: set[Term], meetings: Iterable[Arrival]) -> set[Term]:
    """What arrives where paths meet as one of ``numbers``, and is itself no link: it is the same word."""
    found, before = numbers - links, -1
    while before < len(found):
        before = len(found)
        for meeting in meetings:
            if meeting.symbol in found:
                arriving = {symbol for _, term in meeting.arriving for symbol in _unmasked(values, term)}
                found.update(arriving - links)
    return found


def _scaled(values: Values, meetings: Iterable[Arrival]) -> set[Term]:
    """What is multiplied or shifted to the left, and each summand of it, also by way of where paths meet."""
    terms, found = values.terms, set[Term]()
    for term in range(len(terms)):
        if terms[term].opcode in _SCALING:
            found.update(_summands(values, terms.operands(term)[0]))
    return _arriving_summands(values, found, meetings)


def _arriving_summands(values: Values, words: Iterable[Term], meetings: Iterable[Arrival]) -> set[Term]:
    """``words``, and what arrives where paths meet as a summand of one of them."""
    found, before = set(words), -1
    while before < len(found):
        before = len(found)
        for meeting in meetings:
            if meeting.symbol in found:
                found.update(symbol for _, term in meeting.arriving for symbol in _summands(values, term))
    return found


def _summands(values: Values, term: Term) -> set[Term]:
    """The symbols that ``term`` is a sum of, their lowest bits apart; none where something is subtracted."""
    if values.terms[term].opcode == "GAMMA":
        return {one for each in values.terms.operands(term)[1:] for one in _summands(values, each)}
    form = values.terms.linear(term).coefficients
    return {one for each in form for one in _unmasked(values, each)} if set(form.values()) == {1} else set()


_SCALING = frozenset({"INT_LEFT", "INT_MULT"})


def _counted(values: Values) -> set[Term]:
    """What is compared, with a constant added or none, with a number, not null, so low that no memory lies there."""
    terms, found = values.terms, set[Term]()
    for term in range(len(terms)):
        if terms[term].opcode not in _COMPARISONS:
            continue
        for one, other in (terms.operands(term), terms.operands(term)[::-1]):
            form, known = terms.linear(one), terms.value(other)
            if known is None or terms[one].bits != WORD_BITS or list(form.coefficients.values()) != [1]:
                continue
            if 0 < (known - form.constant) % (1 << WORD_BITS) < 1 << _LOW_BITS:
                found.update(_unmasked(values, next(iter(form.coefficients))))
    return found


_LOW_BITS = 16
"""No memory lies as low as a number of so many bits."""
_COMPARISONS = frozenset({"INT_EQUAL", "INT_NOTEQUAL", "INT_LESS", "INT_LESSEQUAL", "INT_SLESS", "INT_SLESSEQUAL"})
_OF_NUMBERS = frozenset({"INT_AND", "INT_OR", "INT_XOR", "INT_LEFT", "INT_RIGHT", "INT_MULT", "LZCOUNT"})
_EQUALITIES = frozenset({"INT_EQUAL", "INT_NOTEQUAL"})


def _unmasked(values: Values, term: Term) -> set[Term]:
    """The symbols that ``term`` is, its lowest bits apart."""
    node, operands = values.terms[term], values.terms.operands(term)
    if node.opcode == "symbol":
        return {term}
    if node.opcode == "GAMMA":
        return {one for each in operands[1:] for one in _unmasked(values, each)}
    if node.opcode == "INT_AND" and values.terms.value(operands[1]) is not None:
        return _unmasked(values, operands[0])
    form = values.terms.linear(term)
    if list(form.coefficients.values()) == [1] and term not in form.coefficients:
        return _unmasked(values, next(iter(form.coefficients)))
    return set()


def _meetings(values: Values, symbols: set[Term]) -> Iterator[Arrival]:
    for symbol in sorted(symbols):
        match values.terms[symbol].arguments:
            case ("phi", (int(place),), Location()) if values.terms[symbol].bits == WORD_BITS:
                yield Arrival(symbol, _arriving(values, symbol, place))


def _within(values: Values) -> Iterator[Arrival]:
    """Symbols of where the ways of one predicated instruction meet."""
    for point in sorted(values.states):
        for symbol, held in sorted(values.meetings(point).items()):
            if values.terms[symbol].bits == WORD_BITS:
                yield Arrival(symbol, tuple(held))


def _arriving(values: Values, symbol: Term, place: int) -> tuple[tuple[State, Term], ...]:
    """What ``symbol`` is along each edge to ``place``: what a location held that holds it there."""
    state = values.states.get(place)
    if state is None or place == 0:
        return ()
    for location, term in state.locations.items():
        if term == symbol:
            states = [one.state for edge, one in values.edges.items() if edge.target == place]
            held = [(one, one.read(location)) for one in states]
            if all(content is not None for _, content in held):
                return tuple(held)  # type: ignore[arg-type]
    return ()
