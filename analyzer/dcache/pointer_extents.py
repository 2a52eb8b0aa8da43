"""How far pointers move that loops step on: where they begin, and what is added to them as often as loops allow.

The values of a pointer that goes round a loop have no range where no condition speaks of it: the loop's bound is found
from its counter, afterwards. With the bounds of the loops each such pointer stays within what it begins with and all
that is added to it.

Words: induction variable, loop bound, footprint (docs/explanation/glossary.md).

*Soundness:* a symbol that is defined where paths meet stands for what the edge brought by which control arrived there
last: a number of which the edge's state knows the range, or another such symbol, or the same, and a number of known
range. So its value is one of the former and a sum of the latter, each for one execution of an edge, all of different
executions, since each symbol was defined before. All these edges lie in one loop, or nowhere but in the function; the
place that defines the symbol which an edge adds to is passed, since the loop was entered, wherever the edge is taken:
it dominates the edge, and the header of the loop dominates the place. So the sum is one of executions since the loop
was entered, and an edge is executed no more often than the bounds of the loops around it, up to that one, allow. Sums
that leave the numbers of 32 bits are given up, so that nothing wraps around.

The pointer begins at the table and moves by 8 bytes in each of 4 rounds; it is read up to 28 bytes behind the table's
start.

>>> walk = example('''
... unsigned table[8];
... unsigned f(void) {
...     unsigned sum = 0;
...     for (unsigned i = 0; i < 4; i++) sum = sum * 5 + table[2 * i] - table[2 * i + 1];
...     return sum;
... }''')
>>> extents = PointerExtents(walk.values, {one.loop.header: 4 for one in loop_shapes(walk.values)})
>>> found = {extents.of(access) for own in walk.values.accesses.values() for access in own if not access.is_store}
>>> max(one.high for one in found if one) - min(one.low for one in found if one)
28
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from wcet_probe.analyzer.graph.loop_forest import dominators
from wcet_probe.analyzer.graph.supergraph import EXIT, Edge
from wcet_probe.analyzer.pcode.semantics import signed
from wcet_probe.analyzer.values.execution.accesses import Access
from wcet_probe.analyzer.values.properties.loop_shapes import LoopShape, loop_shapes
from wcet_probe.analyzer.values.result import Values
from wcet_probe.analyzer.values.states.bases import Base
from wcet_probe.analyzer.values.symbolic.locations import Location
from wcet_probe.analyzer.values.symbolic.term_table import Term

_MOST_SYMBOLS = 64
_NARROW = 1 << 20
"""What is in a range of no more bytes needs no loop."""


class Extent(NamedTuple):
    """From the least to the greatest of some numbers, or of distances from the stack pointer at entry.

    Of a number some integer in between is the remainder modulo 2**32.
    """

    base: Base
    low: int
    high: int

    def plus(self, other: Extent, times: int = 1) -> Extent | None:
        """The sum with ``times`` the other; None of two stack addresses, or of several times one."""
        if other.base is Base.STACK and (times != 1 or self.base is Base.STACK):
            return None
        base = Base.STACK if Base.STACK in {self.base, other.base} else Base.NUMBER
        ends = times * other.low, times * other.high
        return Extent(base, self.low + min(ends), self.high + max(ends))


@dataclass(frozen=True, slots=True)
class _Arrival:
    """What an edge brings: ``constant`` and so many times each of some symbols, narrow terms of known range apart."""

    edge: Edge
    known: Extent
    symbols: tuple[tuple[Term, int], ...]


class PointerExtents:
    """The extents of the pointers of ``values``, where headers are executed ``most`` times for each entry."""

    def __init__(self, values: Values, most: Mapping[int, int]) -> None:
        self._values, self._most = values, most
        self._shapes = loop_shapes(values)
        successors = {
            point: [edge.target for edge in edges if edge.target != EXIT] for point, edges in values.leaving.items()
        }
        self._above = dominators(successors, 0)
        self._arrivals: dict[Term, tuple[_Arrival, ...] | None] = {}
        self._reached: dict[Term, frozenset[Term] | None] = {}
        self._known: dict[Term, Extent | None] = {}

    def of(self, access: Access) -> Extent | None:
        """The addresses of the first byte of ``access``; None where they are not known."""
        found: Extent | None = Extent(Base.NUMBER, signed(32, access.constant), signed(32, access.constant))
        terms = self._values.terms
        for factor, term, part in access.parts:
            if part.bits != 32 or found is None:
                return None
            own: Extent | None = None
            if term is not None and terms[term].arguments == ("stack pointer",):
                own = Extent(Base.STACK, 0, 0)
            elif part.extent <= _NARROW:
                own = Extent(Base.NUMBER, signed(32, part.low), signed(32, part.low) + part.extent)
            elif term is not None:
                own = self.of_symbol(term)
            found = None if own is None else found.plus(own, signed(32, factor))
        # A narrow part may be a stack address as well.
        is_told = (
            found is not None and found.base is access.base and (found.base is Base.STACK) == access.has_stack_part
        )
        return _checked(found) if found is not None and is_told else None

    def of_symbol(self, symbol: Term) -> Extent | None:
        """What ``symbol`` may be; None where that is not known."""
        if symbol not in self._known:
            self._known[symbol] = None  # asked for again on the way, it is not known
            self._known[symbol] = self._found(symbol)
        return self._known[symbol]

    def _found(self, symbol: Term) -> Extent | None:
        reached = self._reach(symbol)
        if reached is None:
            return None
        web = {symbol} | {one for one in reached if symbol in (self._reach(one) or ())}
        begun: list[Extent] = []
        moving: list[tuple[Edge, Extent]] = []
        for arrival in (one for member in sorted(web) for one in self._arriving(member) or ()):
            own, found = self._split(arrival, web)
            if found is None or len(own) > 1:
                return None
            if not own:
                begun.append(found)
            elif own[0][1] == 1 and found.base is Base.NUMBER and self._is_passed(arrival.edge, own[0][0]):
                moving.append((arrival.edge, found))
            else:
                return None
        if not begun or len({one.base for one in begun}) > 1:
            return None
        low, high = min(one.low for one in begun), max(one.high for one in begun)
        points = {edge.source for edge, _ in moving} | {self._place(one) for one in web}
        around = [shape for shape in self._shapes if points <= shape.loop.nodes]
        inside = min(around, key=lambda shape: len(shape.loop.nodes), default=None)
        for edge, found in moving:
            count = self._executions(edge, inside)
            if count is None:
                return None
            low, high = low + count * min(0, found.low), high + count * max(0, found.high)
        return Extent(begun[0].base, low, high)

    def _split(self, arrival: _Arrival, web: Collection[Term]) -> tuple[list[tuple[Term, int]], Extent | None]:
        """What an edge brings: how often which of the symbols of ``web``, and the range of the rest."""
        found: Extent | None = arrival.known
        for one, times in arrival.symbols:
            if found is not None and one not in web:
                other = self.of_symbol(one)
                found = other and found.plus(other, times)
        return [(one, times) for one, times in arrival.symbols if one in web], found

    def _reach(self, symbol: Term) -> frozenset[Term] | None:
        """The symbols that the value of ``symbol`` may be computed from; None where that is not known of one."""
        if symbol not in self._reached:
            seen, waiting = set[Term](), [symbol]
            while waiting:
                own = self._arriving(waiting.pop())
                if own is None or len(seen) > _MOST_SYMBOLS:
                    self._reached[symbol] = None
                    return None
                new = {one for arrival in own for one, _ in arrival.symbols} - seen
                seen |= new
                waiting += new
            self._reached[symbol] = frozenset(seen)
        return self._reached[symbol]

    def _place(self, symbol: Term) -> int | None:
        """The point that defines a symbol where paths meet; None of other terms."""
        node = self._values.terms[symbol]
        if node.opcode == "symbol" and node.bits == 32:
            match node.arguments:
                case ("phi", (int(place),), _) if place != 0:
                    return place
        return None

    def _arriving(self, symbol: Term) -> tuple[_Arrival, ...] | None:
        """What the edges bring to where ``symbol`` is defined; None where one of them is not understood."""
        if symbol not in self._arrivals:
            self._arrivals[symbol] = self._all_arriving(symbol)
        return self._arrivals[symbol]

    def _all_arriving(self, symbol: Term) -> tuple[_Arrival, ...] | None:
        place = self._place(symbol)
        if place is None:
            return None
        location: Location = self._values.terms[symbol].arguments[2]  # type: ignore[assignment]
        found = []
        for edge in self._values.arriving.get(place, ()):
            one = self._brought(edge, location)
            if one is None:
                return None
            found.append(one)
        return tuple(found)

    def _brought(self, edge: Edge, location: Location) -> _Arrival | None:
        state, terms = self._values.edges[edge].state, self._values.terms
        term = state.read(location)
        if term is None or terms[term].bits != 32:
            return None
        value, base = state.value(term), state.base(term)
        if value.extent <= _NARROW and base is not Base.ANY:
            low = signed(32, value.low)
            return _Arrival(edge, Extent(base, low, low + value.extent), ())
        form = terms.linear(term)
        known: Extent | None = Extent(Base.NUMBER, signed(32, form.constant), signed(32, form.constant))
        symbols: list[tuple[Term, int]] = []
        for one, factor in form.coefficients.items():
            own, times = state.value(one), signed(32, factor)
            if state.base(one) is Base.ANY and self._place(one) is None:
                return None
            if own.extent <= _NARROW and state.base(one) is not Base.ANY:
                low = signed(32, own.low)
                known = known and known.plus(Extent(state.base(one), low, low + own.extent), times)
            elif self._place(one) is not None:
                symbols.append((one, times))
            else:
                return None
        return None if known is None else _Arrival(edge, known, tuple(symbols))

    def _is_passed(self, edge: Edge, symbol: Term) -> bool:
        """Whether control comes to an edge only by the place that defines the symbol that the edge adds to."""
        place, point = self._place(symbol), edge.source
        while point not in {place, self._above[point]}:
            point = self._above[point]
        return point == place

    def _executions(self, edge: Edge, inside: LoopShape | None) -> int | None:
        """How often an edge is taken, for each time that the loop around it that it lies ``inside`` is entered."""
        count = 1
        for shape in self._shapes:
            nodes = shape.loop.nodes
            if edge.source not in nodes or (inside is not None and not nodes <= inside.loop.nodes):
                continue
            most = self._most.get(shape.loop.header)
            if most is None:
                return None
            count *= max(0, most - (edge in shape.back_edges))
        return count


def _checked(extent: Extent) -> Extent | None:
    """``extent``, if no number of it wraps around."""
    least, most = (0, (1 << 32) - 1) if extent.base is Base.NUMBER else (-(1 << 31), (1 << 31) - 1)
    return extent if least <= extent.low and extent.high <= most else None
