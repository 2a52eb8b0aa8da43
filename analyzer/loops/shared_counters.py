"""Loops in and beside each other that all move one number towards one end: what they do of it together.

A compiler makes two loops out of a loop with an ``if``, in a third one, and the number goes on from where the other
loop left it. The rounds of each of them are bounded then by the distance from the end, and so is their sum, for each
entry of the loop around them.

Words: induction variable, loop bound, linear constraint, symbolic variable (docs/explanation/glossary.md).

*Soundness:* the distance is ``end - number`` modulo 2**n, or its negative, as an unsigned number. A symbol stands for
what arrived where it was defined last, which is in this round of the outer loop: its header speaks of none but those
that it defines. By each edge to a place that defines one arrives the symbol that was defined last on all ways there,
and a constant nearer to the end, 0 or more. Each symbol has a least distance, by induction over the edges that define
it: what the edge's state excludes is none, and where it takes away more than is left, nothing is said. So the distance
never wraps around: it is never above what it was at entry, and what edges take from it is never more than that, in
all. The end is made of what the loop does not define and no edge to the loop's points kills; a symbol of the number is
not killed as long as it was defined last.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from wcet_probe.analyzer.domains import strided
from wcet_probe.analyzer.domains.strided import StridedInterval
from wcet_probe.analyzer.graph.loop_forest import Loop
from wcet_probe.analyzer.graph.supergraph import Edge
from wcet_probe.analyzer.loops.known_sums import value_of_sum
from wcet_probe.analyzer.pcode.semantics import signed
from wcet_probe.analyzer.values.properties.loop_shapes import LoopShape
from wcet_probe.analyzer.values.result import Values
from wcet_probe.analyzer.values.states.bases import Base
from wcet_probe.analyzer.values.states.joins import live_symbols
from wcet_probe.analyzer.values.states.state import State
from wcet_probe.analyzer.values.symbolic.conditions import relations
from wcet_probe.analyzer.values.symbolic.linear import Linear, combined
from wcet_probe.analyzer.values.symbolic.locations import Location
from wcet_probe.analyzer.values.symbolic.symbol_names import defined_at
from wcet_probe.analyzer.values.symbolic.term_table import Term

_MOST_SYMBOLS = 32
_MOST_ENDS = 16
_FURTHER = 2
_MOST_LEAST = 32
"""Of a greater least distance this is told: each one below would have to be excluded."""
_MOST_DISTANCE = 1 << 28
"""Where the distance at entry can be as great, nothing is known of it."""

_Arrivals = Mapping[Term, Sequence[tuple[Edge, Collection[tuple[Term, int]]]]]
"""What arrives where a symbol is defined, by edge: each a symbol and what is added to it."""


@dataclass(frozen=True, slots=True)
class SharedCounter:
    """A number that the loops of a nest move towards an end.

    Attributes:
        location: of the number, where the header begins.
        distance: from the end at entry.
        form: the distance at entry, as coefficients of terms and a constant, where all entries agree on it.
        taken: by how much an edge takes it nearer at least, for those that do.
        most_rounds: most executions of the header for each entry, of each loop that takes it nearer in each round.
    """

    location: Location
    distance: StridedInterval
    form: tuple[tuple[tuple[Term, int], ...], int]
    taken: Mapping[Edge, int]
    most_rounds: Mapping[int, int]

    @property
    def most(self) -> int:
        """The greatest distance at entry."""
        return self.distance.unsigned_range()[1]


def shared_counters(
    values: Values,
    shape: LoopShape,
    killed: Mapping[Edge, frozenset[Term]],
    value_at: Callable[[State, Linear], StridedInterval],
) -> Iterator[SharedCounter]:
    """The numbers that the loop ``shape`` and those in it move towards an end.

    Args:
        values: what is known of the function.
        shape: the loop.
        killed: what each edge kills.
        value_at: the numbers that a sum may be in a state at the loop's entry.

    *Soundness:* as said of the module.
    """
    header, nodes = shape.loop.header, shape.loop.nodes
    into = (edge for node in nodes - {header} for edge in values.arriving.get(node, ()))
    if header == 0 or any(edge.source not in nodes for edge in into):
        return
    web = _Web(values, shape, killed)
    for symbol in dict.fromkeys(values.states[header].locations.values()):
        arrivals = web.arrivals(symbol)
        if arrivals is None or not web.follows_one(arrivals, symbol):
            continue
        for sign in (1, -1):
            for ends in web.ends(arrivals, sign):
                tried = (web.counter(symbol, arrivals, (sign, end), value_at) for end in ends)
                found = next((one for one in tried if one is not None), None)
                if found is not None and not found.taken.keys() <= set(shape.back_edges):  # else it is a plain counter
                    yield found


class _Web:
    """The symbols of one number in a loop."""

    def __init__(self, values: Values, shape: LoopShape, killed: Mapping[Edge, frozenset[Term]]) -> None:
        self._values, self._shape, self._terms, self._killed = values, shape, values.terms, killed
        nodes = self._nodes = shape.loop.nodes
        arriving = [edge for node in sorted(nodes) for edge in values.arriving.get(node, ())]
        self._lost = {symbol for edge in arriving for symbol in killed[edge] if self._defined_at(symbol) != edge.target}
        self._told: dict[tuple[Edge, Term], Sequence[Linear]] = {}
        self._gammas: dict[Term, tuple[int, Location]] = {}
        """Gamma nodes that are taken for symbols: the point where ways meet, and a place that holds one there."""
        self._live = live_symbols(values.states[shape.loop.header])
        self._into: dict[int, list[Edge]] = {}
        self._inside: dict[int, list[Edge]] = {}
        for edge in arriving:
            if edge not in shape.entry_edges:
                self._into.setdefault(edge.target, []).append(edge)
                self._inside.setdefault(edge.source, []).append(edge)

    def _defined_at(self, symbol: Term) -> int | None:
        return defined_at(self._terms[symbol].arguments)

    def arrivals(self, first: Term) -> _Arrivals | None:
        """What arrives where ``first`` is defined, at the header, and the symbols that it is made of; or None."""
        found: dict[Term, Sequence[tuple[Edge, Collection[tuple[Term, int]]]]] = {}
        places: dict[int, Term] = {}
        todo = [first]
        while todo:
            one = todo.pop()
            if one in found:
                continue
            place = self._place(one, first)
            if place is None or places.setdefault(place[0], one) != one or len(found) == _MOST_SYMBOLS:
                return None
            own = []
            for edge in self._into.get(place[0], ()):
                state = self._values.edges[edge].state
                term = state.read(place[1])
                parts = None if term is None or edge.source not in self._nodes else self._parts(edge, state, term)
                if parts is None:
                    return None
                own.append((edge, parts))
                todo += [part for part, _ in parts]
            found[one] = own
        return found

    def _parts(self, edge: Edge, state: State, term: Term) -> Collection[tuple[Term, int]] | None:
        """What ``term`` may be: symbols and what is added to them; None where it may be anything else."""
        terms, todo, found = state.terms, [(term, 0)], set[tuple[Term, int]]()
        while todo:
            one, added = todo.pop()
            form = terms.linear(one)
            part, factor = next(iter(form.coefficients.items()), (one, 0))
            added += signed(form.bits, form.constant)
            if len(form.coefficients) != 1 or factor != 1 or state.base(part) is Base.ANY:
                return None
            if terms[part].opcode == "GAMMA":
                condition, *parts = terms.operands(part)
                decided = state.value(condition)
                if decided.is_constant:
                    todo.append((parts[1 - decided.value], added))
                elif self._meets_before(edge.source, part):
                    found.add((part, added))
                else:
                    todo += [(each, added) for each in parts]
            elif terms[part].opcode == "symbol":
                found.add((part, added))
            else:
                return None
        return found

    def _meets_before(self, point: int, gamma: Term) -> bool:
        """Whether ways meet at ``point``, or at one other point of the loop, that bring a place what ``gamma`` chooses.

        *Soundness:* a place that holds it there holds what each of the ways brings; that it was defined there last is
        asked of all that arrives (`follows_one`).
        """
        if gamma not in self._gammas:
            found = self._meeting(point, gamma)
            if found is None:
                others = [one for at in self._holding.get(gamma, ()) if (one := self._meeting(at, gamma)) is not None]
                found = others[0] if len(others) == 1 else None
            if found is None:
                return False
            self._gammas[gamma] = found
        place = self._meeting(point, gamma)
        return place is None or place == self._gammas[gamma]

    @cached_property
    def _holding(self) -> Mapping[Term, Collection[int]]:
        """The points of the loop that hold each gamma node in some place."""
        found: dict[Term, dict[int, None]] = {}
        for point in sorted(self._into):
            for term in self._values.held_terms.get(point, {}).values():
                if self._terms[term].opcode == "GAMMA":
                    found.setdefault(term, {})[point] = None
        return found

    def _meeting(self, point: int, gamma: Term) -> tuple[int, Location] | None:
        """``point`` and a place that holds ``gamma`` there, if none of the ways there brings it.

        *Soundness:* what ``point`` defines itself may be defined behind its beginning.
        """
        if point == self._shape.loop.header or point not in self._values.states:
            return None
        if any(self._defined_at(symbol) == point for symbol in self._terms.symbols(gamma)):
            return None
        place = next((at for at, term in self._values.held_terms[point].items() if term == gamma), None)
        if place is None:
            return None
        is_brought = any(self._values.edges[edge].state.read(place) == gamma for edge in self._into.get(point, ()))
        return None if is_brought else (point, place)

    def _place(self, symbol: Term, first: Term) -> tuple[int, Location] | None:
        """The point that defines ``symbol``, and where what arrives there is held."""
        node = self._terms[symbol]
        if node.opcode == "GAMMA":
            return self._gammas.get(symbol)
        if node.opcode != "symbol" or (symbol != first and symbol in self._live):
            return None
        match node.arguments:
            case ("phi", (int(point),), Location() as location) if point in self._nodes:
                is_held = self._values.states[point].read(location) == symbol
                is_header = point == self._shape.loop.header
                return (point, location) if is_held and is_header == (symbol == first) else None
        return None

    def follows_one(self, arrivals: _Arrivals, first: Term) -> bool:
        """Whether each arrival is made of the symbol that was defined last, on all ways there, and not killed.

        A worklist of its own: each node is looked at twice at most, which takes less than to order a loop's nodes.

        *Soundness:* a fixpoint; where ways meet that last defined different ones, it is none. What an edge kills
        matters where it is still what was defined last behind it. Of a gamma node that is any symbol of it, which is
        not defined anew, either: so it is the number that it was where its ways met.
        """
        defined = {place[0]: symbol for symbol in arrivals if (place := self._place(symbol, first))}
        latest: dict[int, Term | None] = {self._shape.loop.header: first}
        todo = [self._shape.loop.header]
        while todo:
            point = todo.pop()
            for edge in self._inside.get(point, ()):
                at = edge.target
                new = defined.get(at, latest[point] if latest.get(at, latest[point]) == latest[point] else None)
                if at not in latest or latest[at] != new:
                    latest[at] = new
                    todo.append(at)
        for point, symbol in latest.items():
            own = frozenset() if symbol is None else self._terms.symbols(symbol)
            for edge in self._inside.get(point, ()):
                is_left = latest[edge.target] == symbol != defined.get(edge.target)
                is_new = any(one in self._killed[edge] or self._defined_at(one) == edge.target for one in own)
                if is_left and is_new:
                    return False
        return all(
            part == latest.get(edge.source)
            for own in arrivals.values()
            for edge, parts in own
            if edge.source in latest
            for part, _ in parts
        )

    def ends(self, arrivals: _Arrivals, sign: int) -> Sequence[Sequence[Linear]]:
        """What the number may move to: what it is told to be different from where it is moved on.

        Those that differ by a constant stand together, the nearest first.
        """
        found: dict[object, dict[int, Linear]] = {}
        for edge, parts in (one for own in arrivals.values() for one in own):
            for part, added in parts:
                for form in self._different(edge, part) if sign * added > 0 else ():
                    factor = signed(form.bits, form.coefficients.get(part, 0))
                    if abs(factor) != 1:
                        continue
                    # ``form`` is not 0, and so neither is the end that this makes less ``part``.
                    end = combined(Linear({part: 1}, 0, form.bits), form, -factor)
                    if self._is_kept(end):
                        alike = found.setdefault(tuple(end.coefficients.items()), {})
                        alike[sign * signed(end.bits, end.constant)] = end
        for alike in found.values():
            # A test may come after the number was moved on: what is tried then is an end that lies farther off.
            most = max(alike)
            for further in range(1, _FURTHER + 1):
                form = alike[most]
                alike[most + further] = form._replace(constant=form.constant + sign * further & (1 << form.bits) - 1)
        return [[alike[number] for number in sorted(alike)][:_MOST_ENDS] for alike in found.values()][:_MOST_ENDS]

    def _is_kept(self, end: Linear) -> bool:
        """Whether ``end`` is the same all the time that the loop runs."""
        symbols = {symbol for term in end.coefficients for symbol in self._terms.symbols(term)}
        places = {self._defined_at(symbol) for symbol in symbols}
        return None not in places and places.isdisjoint(self._nodes) and symbols.isdisjoint(self._lost)

    def _different(self, edge: Edge, part: Term) -> Sequence[Linear]:
        """The sums that are not 0 where ``edge`` is taken, of as many bits as ``part``."""
        if (edge, part) not in self._told:
            found, bits = self._values.edges[edge], self._terms[part].bits
            known = ((term, bool(truth.value)) for term, truth in found.state.known.items() if truth.is_constant)
            self._told[edge, part] = [
                self._with_sisters(edge, part, self._terms.difference(one, other))
                for condition, holds in dict.fromkeys((*found.conditions, *known))
                for relation, _, one, other in relations(self._terms, condition, holds=holds)
                if relation in {"!=", "<"} and self._terms[one].bits == bits
            ]
        return self._told[edge, part]

    def _with_sisters(self, edge: Edge, part: Term, form: Linear) -> Linear:
        """``form`` with ``part`` for what is defined where it is, and differs from it by a constant.

        *Soundness:* by each edge there both arrive, in this round; see the module of what is killed. What a gamma node
        is where its point begins, it is on the edges that leave that point.
        """
        for term, factor in form.coefficients.items():
            apart = None if term == part else self._apart(edge, term, part)
            if apart is not None:
                gone = combined(Linear({part: 1}, apart, form.bits), Linear({term: 1}, 0, form.bits), -1)
                form = combined(form, gone, factor)
        return form

    def _apart(self, edge: Edge, sister: Term, part: Term) -> int | None:
        """``sister - part``, where that is the same by each edge to the point that defines both."""
        point = self._gammas[part][0] if part in self._gammas else self._defined_at(part)
        if point is None or point not in self._nodes:
            return None
        places = [self._held_at(edge, point, term) for term in (sister, part)]
        into = self._values.arriving.get(point, ())
        states = [self._values.edges[edge].state for edge in into]
        brought = [[None if place is None else state.read(place) for place in places] for state in states]
        apart = set[int | None]()
        for one, other in brought:
            form = None if one is None or other is None else self._terms.difference(one, other)
            apart.add(None if form is None or form.coefficients else form.constant)
        return apart.pop() if len(apart) == 1 else None

    def _held_at(self, edge: Edge, point: int, term: Term) -> Location | None:
        """Where ``point`` holds ``term`` when it begins, if it is that still where ``edge`` is taken."""
        state, node = self._values.states[point], self._terms[term]
        if node.opcode == "GAMMA":
            held = (at for at, one in state.locations.items() if one == term)
            return next(held, None) if edge.source == point else None
        match node.arguments:
            case ("phi", (int(at),), Location() as place) if at == point and state.read(place) == term:
                is_killed = point != self._shape.loop.header and term in self._live
                return None if node.opcode != "symbol" or is_killed or term in self._lost else place
        return None

    def counter(
        self,
        first: Term,
        arrivals: _Arrivals,
        towards: tuple[int, Linear],
        value_at: Callable[[State, Linear], StridedInterval],
    ) -> SharedCounter | None:
        """The number with its end, if it moves there and never beyond."""
        place = self._place(first, first)
        if place is None:
            return None
        location = place[1]
        distance, form = self._at_entry(location, towards, value_at)
        most = _MOST_DISTANCE if distance is None else distance.unsigned_range()[1]
        if distance is None or most >= _MOST_DISTANCE:
            return None
        if not self._stays_before(first, arrivals, towards, distance.unsigned_range()[0]):
            return None
        taken = {
            edge: least
            for own in arrivals.values()
            for edge, parts in own
            if (least := min(towards[0] * added for _, added in parts))
        }
        steps = {loop.header: self._least_in_round(loop, taken) for loop in self._shape.loop.walk()}
        rounds = {header: most // step + 1 for header, step in steps.items() if step}
        return SharedCounter(location, distance, form, taken, rounds) if rounds else None

    def _stays_before(self, first: Term, arrivals: _Arrivals, towards: tuple[int, Linear], at_entry: int) -> bool:
        """Whether the number never goes beyond its end, nor away from it."""
        sign = towards[0]
        least = dict.fromkeys(arrivals, _MOST_LEAST)
        least[first] = min(_MOST_LEAST, at_entry)
        is_changed = True
        while is_changed:
            is_changed = False
            for symbol, own in arrivals.items():
                for edge, part, added in ((edge, *one) for edge, parts in own for one in parts):
                    left = self._least(edge, part, towards, least[part]) - sign * added
                    if sign * added < 0 or left < 0:
                        return False
                    if left < least[symbol]:
                        least[symbol], is_changed = left, True
        return True

    def _least(self, edge: Edge, part: Term, towards: tuple[int, Linear], least: int) -> int:
        """The least distance that ``part`` may have where ``edge`` is taken, if it is no less than ``least``.

        *Soundness:* a sum that is not 0 excludes a distance.
        """
        (sign, end), state = towards, self._values.edges[edge].state
        distance = combined(Linear({}, 0, end.bits), combined(end, Linear({part: 1}, 0, end.bits), -1), sign)
        excluded = set()
        for form in self._different(edge, part):
            for factor in (1, -1):
                rest = combined(form, distance, -factor)
                if not rest.coefficients:  # ``factor * distance + rest`` is not 0
                    excluded.add(-factor * rest.constant & (1 << end.bits) - 1)
        value = value_of_sum(state, distance)
        if not value.is_bottom:
            least = max(least, min(_MOST_LEAST, value.unsigned_range()[0]))
        while least in excluded:
            least += 1
        return least

    def _at_entry(
        self, location: Location, towards: tuple[int, Linear], value_at: Callable[[State, Linear], StridedInterval]
    ) -> tuple[StridedInterval | None, tuple[tuple[tuple[Term, int], ...], int]]:
        """The distance at entry, None where nothing is known of it, and as a sum where all entries agree."""
        sign, end = towards
        found, forms = list[StridedInterval](), set[tuple[tuple[tuple[Term, int], ...], int]]()
        for edge in self._shape.entry_edges:
            state = self._values.edges[edge].state
            term = state.read(location)
            if term is None:
                return None, ((), 0)
            start = self._terms.linear(term)
            form = combined(Linear({}, 0, end.bits), combined(end, start, -1), sign)
            found.append(value_at(state, form))
            is_number = all(state.base(part) is Base.NUMBER for part in form.coefficients)
            forms.add((tuple(form.coefficients.items()), form.constant) if is_number else ((), 0))
        both = found[0]
        for one in found[1:]:
            both = strided.join(both, one)
        return both, forms.pop() if len(forms) == 1 else ((), 0)

    def _least_in_round(self, loop: Loop, taken: Mapping[Edge, int]) -> int:
        """What a round of ``loop`` takes at least; 0 where that may be nothing."""
        least: dict[int, int] = {}
        queue = [(0, loop.header)]
        while queue:
            so_far, point = heapq.heappop(queue)
            if point == loop.header and so_far:
                return so_far
            for edge in self._inside.get(point, ()):
                at, total = edge.target, so_far + taken.get(edge, 0)
                if at not in loop.nodes or least.get(at, total + 1) <= total:
                    continue
                if at == loop.header and not total:
                    return 0
                least[at] = total
                heapq.heappush(queue, (total, at))
        return 0
