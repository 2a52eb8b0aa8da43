"""Loop bounds from values: how often a counting loop repeats, also where the inner count depends on the outer counter.

A condition that each iteration must meet to go on, between counters (`counters`) and values that the loop does not
change, ends the loop.

Words: loop bound, induction variable, predicate (docs/explanation/glossary.md).

*Soundness:* the formulas hold modulo 2**n; where an order comparison could be passed by wrapping around, there is no
bound. A condition counts only at a block that every iteration passes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from wcet_probe.analyzer.domains import strided
from wcet_probe.analyzer.domains.strided import StridedInterval
from wcet_probe.analyzer.graph.loop_forest import Loop
from wcet_probe.analyzer.graph.supergraph import Edge
from wcet_probe.analyzer.loops.advances import most_advances
from wcet_probe.analyzer.loops.bisection_nests import halved_nest
from wcet_probe.analyzer.loops.counters import Step, arriving, counters_of
from wcet_probe.analyzer.loops.counts import Count, Together, followed_rounds
from wcet_probe.analyzer.loops.ends_in_turn import ends_of, first_met
from wcet_probe.analyzer.loops.few_values import Known, most_rounds_of_few
from wcet_probe.analyzer.loops.iterations import lost_symbols, only_at_first, passed_in_each
from wcet_probe.analyzer.loops.known_sums import value_of_sum
from wcet_probe.analyzer.loops.lost_bits import most_until_lost
from wcet_probe.analyzer.loops.moved_bits import Lost, most_rounds
from wcet_probe.analyzer.loops.moving_sides import cannot_wrap, lasting, most_apart
from wcet_probe.analyzer.loops.phases import most_in_phases
from wcet_probe.analyzer.loops.shared_counters import SharedCounter, shared_counters
from wcet_probe.analyzer.loops.triangular import MOST_SUMMED, summed
from wcet_probe.analyzer.loops.wide_counters import most_rounds_of_wide
from wcet_probe.analyzer.pcode.semantics import signed
from wcet_probe.analyzer.values.properties.loop_shapes import LoopShape
from wcet_probe.analyzer.values.result import EdgeValues, Values
from wcet_probe.analyzer.values.states.bases import Base
from wcet_probe.analyzer.values.states.learning import learn
from wcet_probe.analyzer.values.states.state import State
from wcet_probe.analyzer.values.symbolic.conditions import relations, repetitions
from wcet_probe.analyzer.values.symbolic.linear import Linear, combined
from wcet_probe.analyzer.values.symbolic.locations import Location
from wcet_probe.analyzer.values.symbolic.symbol_names import defined_at
from wcet_probe.analyzer.values.symbolic.term_table import Term

_FOREVER = 1 << 64
_BITS_OF_WORD = 32
"""Where a loop has no more rounds by other ways, it is not worth while to follow the bits that it moves."""


class CountedLoops(NamedTuple):
    """The proved counts of loops by header, and the numbers that loops in and beside each other move on together."""

    counts: Mapping[int, Count]
    shared: Sequence[tuple[LoopShape, Together]]


def count_loops(values: Values, shapes: tuple[LoopShape, ...]) -> Mapping[int, Count]:
    """The proved counts of ``shapes``, by header, for those that have one.

    *Soundness:* as said of the module.
    """
    return counted_loops(values, shapes).counts


def counted_loops(values: Values, shapes: tuple[LoopShape, ...]) -> CountedLoops:
    """The proved counts of ``shapes``, and what several of them do together.

    *Soundness:* as said of the module; outer loops are counted first, for their counts enter the sums of inner ones.
    What is counted is a number, also where it may be an address for all that is known (`Values.as_words`).
    """
    values = values.as_words
    counts: dict[int, Count] = {}
    shared: list[tuple[LoopShape, Together]] = []
    counters: dict[int, Mapping[Term, Step]] = {}
    ranges: dict[Term, StridedInterval] = {}
    killed = values.killed
    for shape in shapes:
        counters[shape.loop.header] = counters_of(values, shape)
        loop = _Counter(values, shape, counters, counts, ranges, killed)
        own, together = loop.best(), list(loop.shared())
        shared += [(shape, Together(one.taken, one.most)) for one in together]
        is_open = not (together or own or shape.loop.header in counts)
        halved = halved_nest(values, shape, killed, loop.informed) if is_open else None
        if halved is not None:
            counts |= halved.counts
            shared.append((shape, halved.together))
        found = min(
            (one for one in (own, counts.get(shape.loop.header), *map(loop.of_shared, together)) if one),
            key=_rank,
            default=None,
        )
        for header, count in ((header, loop.of_shared(one, header)) for one in together for header in one.most_rounds):
            known = counts.get(header)
            if count is not None and (known is None or _rank(count) < _rank(known)):
                counts[header] = count
        if found is not None:
            counts[shape.loop.header] = found
            ranges |= loop.ranges(found)
    return CountedLoops(counts, shared)


class _Counter:
    """Looks for the bounds of one loop."""

    def __init__(
        self,
        values: Values,
        shape: LoopShape,
        counters: Mapping[int, Mapping[Term, Step]],
        counts: Mapping[int, Count],
        known: Mapping[Term, StridedInterval],
        killed: Mapping[Edge, frozenset[Term]],
    ) -> None:
        self._known = known
        self._killed = killed
        self._values, self._shape, self._terms = values, shape, values.terms
        self._counters = counters
        self._own = counters[shape.loop.header]
        self._counts = counts
        self._lost: Lost = lost_symbols(values, shape.loop, killed)
        self._passed = passed_in_each(values, shape)

    def best(self) -> Count | None:
        """The least bound of all blocks that every iteration passes."""
        found: list[Count] = self._within_ranges()
        for node in self._passed:
            going_on = self._going_on(node)
            if going_on and all(only_at_first(self._values, self._shape, edge, self._lost) for edge in going_on):
                found.append(Count("==", 1, 0, 0, 2, None, ""))
            found += self._of_one_of(going_on)
        found += self._of_one_of([self._values.edges[edge] for edge in self._shape.back_edges])
        if all(count.max_header > _BITS_OF_WORD for count in found):
            found += self._of_moved_bits()
            found += self._of_ends_in_turn()
        ways = () if found else [self._going_on(node) for node in self._passed]
        known = Known(self._invariant, self.informed)
        few = None if found else most_rounds_of_few(self._values, self._shape, ways, self._lost, known)
        found += [] if few is None else [followed_rounds(*few)]
        groups = (*ways, [self._values.edges[edge] for edge in self._shape.back_edges])
        lasting = self._lost, self._invariant, self._range
        wide = None if found else most_rounds_of_wide(self._values, self._shape, self._own, groups, lasting)
        found += [] if wide is None else [followed_rounds(wide, "two words that count as one")]
        most = None if found else most_in_phases(self._values, self._shape, self._lost, self._most_of)
        if not found and most is None:
            most = most_advances(self._values, self._shape, self._killed)
        found += [] if most is None else [followed_rounds(most, "a number that always moves on")]
        best = min(found, key=_rank, default=None)
        totals = [count.total for count in found if count.total is not None]
        return replace(best, total=min(totals)) if best is not None and totals else best

    def shared(self) -> Iterator[SharedCounter]:
        """The numbers that this loop and those in it move on together."""
        has_inner = any(isinstance(part, Loop) for part in self._shape.loop.parts)
        if has_inner:
            yield from shared_counters(self._values, self._shape, self._killed, self._linear_value)

    def of_shared(self, one: SharedCounter, header: int | None = None) -> Count | None:
        """The bound of this loop, or of that with ``header``, that ``one`` tells.

        Where one in it is entered the number may be at its end already, or as far from it as at entry of this loop.
        """
        most = one.most_rounds.get(self._shape.loop.header if header is None else header)
        if most is None:
            return None
        low = min(one.distance.unsigned_range()[0], most - 1) if header in {None, self._shape.loop.header} else 0
        return Count("<", 1, low, most - 1, most, None, self._name(one.location), one.form)

    def _most_of(self, shape: LoopShape) -> int | None:
        """Most executions of the header of this loop with other entries, or fewer ways back."""
        own = {**self._counters, shape.loop.header: counters_of(self._values, shape)}
        best = _Counter(self._values, shape, own, self._counts, self._known, self._killed).best()
        return None if best is None else best.max_header

    def _of_moved_bits(self) -> Iterator[Count]:
        """Bounds of a loop that moves bits until one comes to a place that is tested."""
        if not any(step.shifts for step in self._own.values()):
            return
        going = [[self._values.edges[edge] for edge in self._shape.back_edges]]
        going += [self._going_on(at) for at in self._passed]
        for edges in going:
            for moved in (most_rounds, most_until_lost):
                most = moved(self._values, self._shape, edges, self._lost)
                if most is not None:
                    yield Count("<<", 1, 0, (1 << most - 1) - 1, most, None, "bits of words")

    def _of_one_of(self, edges: Sequence[EdgeValues]) -> list[Count]:
        """Bounds where each iteration takes one of ``edges``: of a condition that all have, or of several that end.

        *Soundness:* where the conditions differ, one that is broken must stay so while another lets the loop go on.
        """
        each = [list(self._of_edge(edge)) for edge in edges]
        if not each or not all(each):
            return []
        found = [count for count in each[0] if all(count in others for others in each)]
        ending = [[count for count in counts if count.lasts] for counts in each]
        if all(ending):
            most = [min(counts, key=_rank) for counts in ending]
            last = max(most, key=_rank)
            if all(count.lasts >= last.max_header for count in most):
                found.append(last)
        return found

    def _of_ends_in_turn(self) -> Iterator[Count]:
        """Bounds of tests of which each alone may never be met, and that meet every distance together."""
        back = [self._values.edges[edge] for edge in self._shape.back_edges]
        ends = ends_of(self._terms, (*map(self._going_on, self._passed), back), self._rate, self._at_entry)
        for end, met in first_met(ends, self._range):
            low, high = met.unsigned_range()
            yield self._count("!=", end.step, low, high, high // end.step + 1, end.gap, 0)

    def _within_ranges(self) -> list[Count]:
        """Bounds from what the counters can be where the loop is repeated: a counter symbols that range in the end.

        *Soundness:* measured from the range's end that it moves away from, the counter is at most ``span`` where the
        loop is repeated, and changes by ``step`` each time. The first value beyond either end is outside of the range,
        for the rest of the numbers is at least ``step`` wide; so it cannot be jumped over.
        """
        found: list[Count] = []
        for symbol, step in self._own.items():
            start = None if step.shifts else self._initial(step.location)
            states = [self._values.edges[edge].state for edge in self._shape.back_edges]
            if start is None or any(state.base(symbol) is not Base.NUMBER for state in states):
                continue
            allowed = strided.bottom(start.bits)
            for state in states:
                allowed = strided.join(allowed, state.value(symbol))
            span, amount = allowed.stride * allowed.steps, abs(step.amount)
            if allowed.is_bottom or span + amount >= 1 << start.bits:
                continue
            low, high = strided.apply(
                "INT_SUB", (start, strided.constant(start.bits, allowed.low)), start.bits
            ).unsigned_range()
            left = min(span, high) if step.amount < 0 else max(0, span - low)
            first = self._at_entry(Linear({symbol: 1}, 0, start.bits)) or Linear({}, 0, start.bits)
            form = tuple(first.coefficients.items()), first.constant
            counted = Count("<=", amount, 0, left, left // amount + 2, None, self._name(step.location), form)
            found.append(replace(counted, is_exact=start.is_constant))
        return found

    def _name(self, location: Location) -> str:
        return self._values.register_names.get(location) or f"{location.space}{location.offset:+#x}"

    def ranges(self, count: Count) -> dict[Term, StridedInterval]:
        """What the counters can be while the loop runs as often as it may."""
        found: dict[Term, StridedInterval] = {}
        for symbol, step in self._own.items():
            start = None if step.shifts else self._initial(step.location)
            moved = step.amount * (count.max_header - 1)
            bits = self._terms[symbol].bits
            if start is not None and abs(moved) < 1 << bits - 1:
                reach = strided.between(bits, min(0, moved), max(0, moved), abs(step.amount))
                found[symbol] = strided.apply("INT_ADD", (start, reach), bits)
        return found

    def _going_on(self, node: int) -> list[EdgeValues]:
        """The edges from ``node`` that stay in the loop."""
        values, nodes = self._values, self._shape.loop.nodes
        return [values.edges[edge] for edge in values.leaving.get(node, ()) if edge.target in nodes]

    def _of_edge(self, edge: EdgeValues) -> Iterator[Count]:
        """The bounds that follow from each condition of an edge that goes on."""
        for condition, holds in edge.conditions:
            for relation, order_signed, first, second in relations(self._terms, condition, holds=holds):
                count = self._of_relation(relation, order_signed, first, second)
                if count is not None:
                    yield count

    def _of_relation(self, relation: str, order_signed: bool, first: Term, second: Term) -> Count | None:  # noqa: FBT001
        shifted = self._shifted(relation, order_signed, first, second)
        if shifted is not None:
            return shifted
        one, other = (self._rate(self._terms.linear(side)) for side in (first, second))
        if one is None or other is None or one == other:
            return None
        distance = self._at_entry(self._terms.difference(second, first))
        if distance is None:
            return None
        bits = self._terms[first].bits
        if relation == "==":
            form = tuple(distance.coefficients.items()), distance.constant
            return Count("==", one - other, 0, 0, 2, None, "", form)
        turned = signed(bits, other - one & (1 << bits) - 1)
        if relation == "!=":
            return self._until_equal(distance, turned, bits)
        step = one - other
        if step > 0 and not (one and other):
            rising, sides = other == 0, [self._side_at_entry(side, order_signed) for side in (first, second)]
            fixed, moving = sides[::-1] if rising else sides
            if cannot_wrap(fixed, relation, step, bits, order_signed=order_signed, rising=rising):
                lasts = lasting(moving, step, bits, order_signed=order_signed, rising=rising)
                count = self._make(relation, step, distance, most_apart(*sides), lasts)
                if count is not None:
                    return count
        # What is less is not equal: where an end that may wrap around is met exactly, the loop ends there.
        return self._until_equal(distance, turned, bits) if relation == "<" else None

    def _rate(self, form: Linear) -> int | None:
        """By how much an iteration changes a linear combination; None where that is not constant."""
        rate = 0
        for term, coefficient in form.coefficients.items():
            if term in self._own and not self._own[term].shifts:
                rate += signed(form.bits, coefficient) * self._own[term].amount
            elif not self._invariant(term):
                return None
        return signed(form.bits, rate & (1 << form.bits) - 1)

    def _invariant(self, term: Term) -> bool:
        """Whether the loop does not define any symbol of ``term``."""
        return not any(self._defined_inside(symbol) for symbol in self._terms.symbols(term))

    def _defined_inside(self, symbol: Term) -> bool:
        place = defined_at(self._terms[symbol].arguments)
        return place is None or place in self._shape.loop.nodes

    def _at_entry(self, form: Linear) -> Linear | None:
        """``form`` with the counters replaced by what they are when the loop is entered, where all entries agree."""
        results = set()
        for edge in self._shape.entry_edges:
            state = self._values.edges[edge].state
            total = Linear({}, form.constant, form.bits)
            for term, coefficient in form.coefficients.items():
                initial = state.read(self._own[term].location) if term in self._own else term
                if initial is None:
                    return None
                total = combined(total, self._terms.linear(initial), coefficient)
            results.add((tuple(total.coefficients.items()), total.constant))
        if len(results) == 1:
            ((coefficients, constant),) = results
            return Linear(dict(coefficients), constant, form.bits)
        return None

    def _range(self, form: Linear) -> StridedInterval | None:
        """The numbers that ``form`` may be when the loop is entered."""
        result: StridedInterval | None = None
        for edge in self._shape.entry_edges:
            state = self._values.edges[edge].state
            part = self._linear_value(state, form)
            result = part if result is None else strided.join(result, part)
        return None if result is None or result.is_bottom else result

    def _linear_value(self, state: State, form: Linear) -> StridedInterval:
        """The numbers that ``form`` may be in ``state``, the counters of enclosing loops in their ranges."""
        return value_of_sum(self.informed(state, form.coefficients), form)

    def informed(self, state: State, of: Iterable[Term]) -> State:
        """``state`` with the counters of enclosing loops that ``of`` are made of in their ranges."""
        informed = state.copy()
        for symbol in {symbol for term in of for symbol in self._terms.symbols(term)} & self._known.keys():
            learn(informed, symbol, self._known[symbol])
        return informed

    def _until_equal(self, distance: Linear, rate: int, bits: int) -> Count | None:
        """While first != second: the distance is met exactly, or the loop goes round."""
        # In iteration t, second - first is distance + rate * t; it is 0 in the end.
        gap = distance if rate < 0 else combined(Linear({}, 0, bits), distance, -1)
        step = abs(rate)
        met = self._range(gap)
        if met is None or step == 0:
            return None
        if step > 1 and any(number % step for number in (met.low, met.stride if met.steps else 0)):
            return None
        if step & (step - 1) and met.low + met.stride * met.steps >= 1 << bits:
            return None
        low, high = met.unsigned_range()
        if high == (1 << bits) - 1:
            return None
        return self._count("!=", step, low, high, high // step + 1, gap, 0)

    def _make(self, relation: str, step: int, distance: Linear, apart: int | None, lasts: int) -> Count | None:
        """While first relation second: the distance at entry, or ``apart`` where it may be below 0."""
        met = self._range(distance)
        if met is None:
            return None
        low, high = met.unsigned_range()
        is_below = high == (1 << distance.bits) - 1
        if is_below and (apart is None or apart >= high):
            return None
        low, high = (0, apart) if is_below and apart is not None else (low, high)
        count = self._count(relation, step, low, high, repetitions(relation, step, high) + 1, distance, lasts)
        return replace(count, is_exact=False, total=None) if is_below else count

    def _count(self, relation: str, step: int, low: int, high: int, header: int, distance: Linear, lasts: int) -> Count:
        total = self._total(relation, step, distance, header)
        counters = ", ".join(sorted(self._name(self._own[t].location) for t in self._own))
        form = tuple(distance.coefficients.items()), distance.constant
        return Count(relation, step, low, high, header, total, counters, form, lasts, is_exact=low == high)

    def _side_at_entry(self, term: Term, order_signed: bool) -> tuple[int, int] | None:  # noqa: FBT001
        """The hull of what a side of a comparison is in the first iteration."""
        form = self._at_entry(self._terms.linear(term))
        value = self._range(form) if form is not None else None
        if value is None:
            return None
        return value.signed_range() if order_signed else value.unsigned_range()

    def _shifted(self, relation: str, order_signed: bool, first: Term, second: Term) -> Count | None:  # noqa: FBT001
        """While a value that is shifted right each time is not 0."""
        for one, other in ((first, second), (second, first)):
            symbol = next((symbol for symbol, step in self._own.items() if one in (symbol, step.after)), None)
            own = self._own[symbol] if symbol is not None else None
            least = self._terms.value(other)
            positive = relation == "!=" and least == 0
            if relation == "<" and one == second:
                positive = not order_signed or (least is not None and signed(self._terms[other].bits, least) >= 0)
            if own is not None and own.grows:
                count = self._doubled(relation, first, second, own) if one == first and not order_signed else None
                if count is not None:
                    return count
                continue
            if own is None or not own.shifts or not positive:
                continue
            initial = self._initial(own.location)
            if initial is None:
                continue
            high = initial.unsigned_range()[1] >> (own.amount if one == own.after else 0)
            header = -(-high.bit_length() // own.amount) + 1
            return Count(">> != 0", own.amount, 0, high, header, None, self._name(own.location), lasts=_FOREVER)
        return None

    def _doubled(self, relation: str, first: Term, second: Term, own: Step) -> Count | None:
        """While a value that is shifted left each time, and is not 0, is below a limit.

        *Soundness:* below the limit no bit is lost, so in iteration t it is its first value times 2**(amount * t).
        """
        start = self._initial(own.location)
        limit = self._side_at_entry(second, False) if self._invariant(second) else None
        if relation not in {"<", "<="} or limit is None or start is None:
            return None
        most, numbers = limit[1] - (relation == "<"), 1 << self._terms[first].bits
        low, high = (end << (own.amount if first == own.after else 0) for end in start.unsigned_range())
        if not 1 <= low <= most or high >= numbers or most << own.amount >= numbers:
            return None
        left = most // low
        header = -(-left.bit_length() // own.amount) + 1
        return Count("<<", own.amount, 0, left, header, None, self._name(own.location))

    def _initial(self, location: Location) -> StridedInterval | None:
        return arriving(self._values, self._shape.entry_edges, location)

    def _total(self, relation: str, step: int, distance: Linear, header: int) -> int | None:
        """The sum over the iterations of the enclosing loop, whose counter the distance depends on."""
        parent = self._shape.parent
        if parent is None or parent.header not in self._counts:
            return None
        outer = self._counts[parent.header].max_header
        own = {t: s for t, s in self._counters[parent.header].items() if not s.shifts and t in distance.coefficients}
        if len(own) != 1 or outer > MOST_SUMMED:
            return None
        ((symbol, counter),) = own.items()
        coefficient = signed(distance.bits, distance.coefficients[symbol])
        rest = Linear({t: c for t, c in distance.coefficients.items() if t != symbol}, distance.constant, distance.bits)
        entering = (e for e in self._values.arriving[parent.header] if e.source not in parent.nodes)
        start = arriving(self._values, entering, counter.location)
        rest_value = self._range(rest)
        if start is None or rest_value is None:
            return None
        (rest_low, rest_high), (start_low, start_high) = rest_value.signed_range(), start.signed_range()
        ends = (coefficient * start_low, coefficient * start_high)
        return summed(
            relation,
            step,
            range(rest_low + min(ends), rest_high + max(ends) + 1),
            rate=coefficient * counter.amount,
            outer=outer,
            header=header,
            bits=distance.bits,
        )


def _rank(count: Count) -> tuple[int, int]:
    return count.max_header, count.max_header if count.total is None else count.total
