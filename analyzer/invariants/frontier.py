"""Words of static data that operations advance by a constant: how far memory of an area has been given out.

An allocator that carves objects out of an area keeps the address of the first one that was never used, a *frontier*.
That it is advanced only while an object is left is known to it by a count, of which a domain of single words knows
nothing. The lemma ``frontier-in-its-area`` (`heap_words`) says it: what is advanced lies in the area or at its end, and
nothing at the end is followed. Here is told of which terms it speaks.

Words: frontier, lemma (docs/explanation/glossary.md).

*Soundness:* a term is told only if an operation stores it in a word of static data, and it is more, by a constant of a
word at least, than what that word held before in the same call: than what was loaded from it, or stored there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from wcet_probe.analyzer.domains import strided
from wcet_probe.analyzer.invariants.contents import WORD_BITS, Contents, Part, Region, contents_of
from wcet_probe.analyzer.invariants.operations import Operation
from wcet_probe.analyzer.pcode.semantics import signed
from wcet_probe.analyzer.values.states.bases import Base
from wcet_probe.analyzer.values.symbolic.term_table import Node, Term
from wcet_probe.analyzer.values.symbolic.terms import Terms

_WORD_BYTES = 4
_MOST_CHOICES = 8


class Area(NamedTuple):
    """Where objects are carved out: addresses whose remainders modulo a way are ``first`` to below ``end``."""

    first: int
    end: int


class Frontier(NamedTuple):
    """Of one operation, how far terms are advanced, in bytes, ascending; ``step`` is the least advance of any."""

    advances: Mapping[Term, tuple[int, ...]]
    step: int

    def advanced(self, coefficients: Mapping[Term, int], constant: int) -> tuple[int, int] | None:
        """Of a sum that is an advanced frontier, or in the object there: how far it is advanced, and what is added."""
        (term, *others), distance = coefficients, signed(WORD_BITS, constant)
        if others or coefficients[term] != 1 or term not in self.advances:
            return None
        reached = [one for one in self.advances[term] if one <= distance < one + self.step]
        return (reached[-1], distance - reached[-1]) if reached else None


NO_FRONTIER = Frontier({}, 0)
_Sum = tuple[Term, int]
"""A term plus a constant."""


def frontiers(operations: Sequence[Operation]) -> tuple[Frontier, ...]:
    """The frontiers of each of ``operations``; of each none where no word is advanced."""
    found = [_advances(one) for one in operations]
    steps = [step for _, own in found for step in own]
    if not steps:
        return tuple(NO_FRONTIER for _ in operations)
    return tuple(Frontier({term: tuple(sorted(each)) for term, each in own.items()}, min(steps)) for own, _ in found)


def moved_in(part: Part, moved: Part, area: Area, way_bits: int) -> Part:
    """``moved``, to where ``part`` is advanced, without what is behind the area, where ``part`` is in it or at its end.

    *Soundness:* of an address that may be elsewhere the lemma says nothing: all that it may come to is told.
    """
    reachable = strided.between(way_bits, area.first, area.end)
    if part.region is not Region.ARENA or not strided.leq(part.way, reachable):
        return moved
    return moved._replace(way=strided.meet(moved.way, reachable), flags=0)


def without_end(contents: Contents, area: Area, step: int, way_bits: int) -> Contents:
    """``contents`` of an address that is followed: not into the object that would be at the end of the area.

    Nothing is left out of what leads further.
    """
    inside = strided.between(way_bits, area.first, area.end - 1)
    return contents_of(
        (
            part._replace(way=strided.meet(part.way, inside), flags=0)
            if _begins_in(part, area) and area.end <= part.way.unsigned_range()[1] < area.end + step
            else part
            for part in contents
        ),
        way_bits,
    )


def leads_on(coefficients: Mapping[Term, int], constant: int) -> bool:
    """Whether a sum is a link and a place behind it: what is followed, and no word of a table."""
    return list(coefficients.values()) == [1] and signed(WORD_BITS, constant) >= 0


def _begins_in(part: Part, area: Area) -> bool:
    return part.region is Region.ARENA and area.first <= part.way.unsigned_range()[0] < area.end


def _advances(one: Operation) -> tuple[Mapping[Term, set[int]], list[int]]:
    """How far terms are advanced in words of static data, and by how much each time."""
    terms, stores = one.values.terms, _stores(one)
    meetings = {meeting.symbol: [term for _, term in meeting.arriving or ()] for meeting in one.meetings}
    advances: dict[Term, set[int]] = {}
    steps = []
    for address, loaded in _loads(one, stores).items():
        held = {*((symbol, 0) for symbol in loaded), *stores[address]}
        held |= {
            (term, 0) for term, _ in stores[address] if (term, 0) not in held and _is_held(terms, term, held, meetings)
        }
        for term, distance in stores[address]:
            before = [distance - base for other, base in held if other == term and base < distance]
            if before and min(before) >= _WORD_BYTES:
                advances.setdefault(term, set()).add(distance)
                steps.append(min(before))
    return advances, steps


def _is_held(
    terms: Terms, term: Term, held: set[_Sum], meetings: Mapping[Term, Sequence[Term]], left: int = _MOST_CHOICES
) -> bool:
    """Whether ``term`` is one of those that are ``held``, on each way that it may have come."""
    if _sum(terms, term) in held:
        return True
    parts = [one for one in meetings.get(term, ()) if one != term]
    return bool(parts) and left > 0 and all(_is_held(terms, one, held, meetings, left - 1) for one in parts)


def _sums(terms: Terms, term: Term, added: int = 0, left: int = _MOST_CHOICES) -> Iterator[_Sum]:
    """``term`` as a term plus a constant, or each part of it where it is a gamma node."""
    one = _sum(terms, term)
    if one is None:
        return
    if terms[one[0]].opcode != "GAMMA" or not left:
        yield one[0], one[1] + added
        return
    for part in terms.operands(one[0])[1:]:
        yield from _sums(terms, part, one[1] + added, left - 1)


def _sum(terms: Terms, term: Term) -> _Sum | None:
    form = terms.linear(term)
    if list(form.coefficients.values()) != [1]:
        return None
    return next(iter(form.coefficients)), signed(WORD_BITS, form.constant)


def _loads(one: Operation, addresses: Iterable[int]) -> Mapping[int, list[Term]]:
    """The symbols of loads at each of ``addresses``."""
    terms, names = one.values.terms, {}
    for term in range(len(terms)):
        match terms[term]:
            case Node("symbol", (int(), int(), int()) as name, bits) if bits == WORD_BITS:
                names[name] = term
    found: dict[int, list[Term]] = {address: [] for address in sorted(addresses)}
    for moved in one.moved:
        symbol = names.get(moved.symbol_name)
        state, pointer = moved.transfer.state, moved.transfer.pointer
        if not moved.transfer.is_store and symbol is not None and state.base(pointer) is Base.NUMBER:
            address = state.value(pointer)
            if address.is_constant and address.value in found and moved.transfer.size_bytes == _WORD_BYTES:
                found[address.value].append(symbol)
    return found


def _stores(one: Operation) -> Mapping[int, set[_Sum]]:
    """By constant address of a word, the terms plus constants that are stored there."""
    found: dict[int, set[_Sum]] = {}
    for moved in one.moved:
        transfer = moved.transfer
        if transfer.value is None or transfer.state.base(transfer.pointer) is not Base.NUMBER:
            continue
        address = transfer.state.value(transfer.pointer)
        if address.is_constant and transfer.size_bytes == _WORD_BYTES:
            found.setdefault(address.value, set()).update(_sums(one.values.terms, transfer.value))
    return found
