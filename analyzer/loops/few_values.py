"""Loops that go on by numbers of few values, as the index of a ring buffer: each of the values is followed to the end.

>>> def emptied(ring, read, write):
...     while read != write:
...         ring[read] = 0
...         read = read + 1 & 7

What ``read`` is next hangs on what it is, and on nothing else; of its eight values none comes back before the loop
ends, whatever ``write`` is. So there are at most seven rounds.

Where they are too many, their ranges are followed until few are left (`dwindling`), or the distance of two of them
(`bisection`). What is chosen by a condition of which nothing is known is followed both ways (`choices`).

Words: loop bound, back edges, symbolic variable (docs/explanation/glossary.md).

*Soundness:* a round goes on only if a condition of one of the ways on holds at each block that every round passes, and
one on the edge back. Symbols of the header, what edges back bring for them, and terms that the loop does not change are
evaluated by what p-code computes; a condition that hangs on anything else may hold. All values are tried that the entry
allows or, where these are too many, an edge back, and all edges back whose conditions may hold; if numbers come back
there is no bound.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import reduce
from itertools import product
from math import prod
from typing import NamedTuple
from weakref import WeakKeyDictionary

from wcet_probe.analyzer.domains import strided
from wcet_probe.analyzer.domains.strided import StridedInterval
from wcet_probe.analyzer.graph.supergraph import Edge
from wcet_probe.analyzer.loops.bisection import HALVED, most_rounds_of_bisection
from wcet_probe.analyzer.loops.choices import choices, chosen
from wcet_probe.analyzer.loops.derived_numbers import without_derived
from wcet_probe.analyzer.loops.dwindling import Back, Conditions, Round, Rounds, most_rounds_of_ranges
from wcet_probe.analyzer.loops.moved_bits import Lost
from wcet_probe.analyzer.loops.round_functions import Numbers, function_of, round_function
from wcet_probe.analyzer.pcode.semantics import UndefinedResultError
from wcet_probe.analyzer.values.properties.loop_shapes import LoopShape
from wcet_probe.analyzer.values.result import EdgeValues, Values
from wcet_probe.analyzer.values.states.bases import Base
from wcet_probe.analyzer.values.states.state import State
from wcet_probe.analyzer.values.symbolic.locations import Location
from wcet_probe.analyzer.values.symbolic.term_table import Term
from wcet_probe.analyzer.values.symbolic.terms import Terms

_MOST_VALUES = 1024
"""Of one number, and of all of them together at entry."""
_MOST_STATES = 8192
_FEW, _RANGES, _HALVES = "few values, each followed", "ranges of numbers, followed", HALVED


_Start = list[Numbers] | tuple[list[StridedInterval], list[StridedInterval]]
"""All numbers that a round may begin with, or their ranges: of own ones, and of fixed ones."""
_Tried = tuple[_Start, Rounds]
"""What was followed to no end."""
_TRIED: WeakKeyDictionary[Terms, list[_Tried]] = WeakKeyDictionary()
"""By table: a loop is looked at again in each pass over its function, and terms never change."""


class Known(NamedTuple):
    """What is known of a loop from those around it.

    Attributes:
        is_fixed: whether the loop defines no symbol of a term.
        informed: a state with the ranges of the counters of enclosing loops that terms are made of.
    """

    is_fixed: Callable[[Term], bool]
    informed: Callable[[State, Iterable[Term]], State]


def most_rounds_of_few(
    values: Values, shape: LoopShape, passed: Iterable[Sequence[EdgeValues]], lost: Lost, known: Known
) -> tuple[int, str] | None:
    """Most executions of the header of a loop for each entry, and what tells it: few values, ranges or a distance.

    Args:
        values: what is known of the function.
        shape: the loop.
        passed: the ways on from blocks that every round passes.
        lost: what edges within the loop kill.
        known: what is known of it besides.

    *Soundness:* as said of the module, of `dwindling`, and of `bisection`.
    """
    groups = [ways for ways in (*passed, [values.edges[edge] for edge in shape.back_edges]) if ways]
    for has_choices, kind in ((False, _FEW), (False, _RANGES), (True, _FEW), (True, _HALVES), (True, _RANGES)):
        search = _Search(values, shape, lost, known, kind, has_choices=has_choices)
        together = search.most(groups)
        found = [search.most([ways]) for ways in groups] if together is None else [together]
        most = min((most for most in found if most is not None), default=None)
        if most is not None:
            return most, kind
    return None


class _Search:
    """Looks for the numbers that decide, and follows them: each, or their ranges first."""

    def __init__(
        self,
        values: Values,
        shape: LoopShape,
        lost: Lost,
        known: Known,
        kind: str,
        *,
        has_choices: bool,
    ) -> None:
        self._values, self._shape, self._terms = values, shape, values.terms
        self._is_fixed, self._informed = known
        self._kind, self._has_choices = kind, has_choices
        self._tried = _TRIED.setdefault(values.terms, [])
        self._backs = [values.edges[edge] for edge in shape.back_edges]
        header, own = values.states[shape.loop.header], ("phi", (shape.loop.header,))
        self._own: Mapping[Term, Location] = {
            symbol: location
            for location, symbol in reversed([*header.locations.items()])
            if symbol not in lost
            and self._terms[symbol].opcode == "symbol"
            and self._terms[symbol].arguments[:2] == own
            and header.base(symbol) is Base.NUMBER
        }
        self._leaves: dict[Term, frozenset[Term] | None] = {}

    def most(self, groups: Sequence[Sequence[EdgeValues]]) -> int | None:
        """Most executions of the header where each round that goes on takes one way of each group."""
        ways = [[self._known(one) for one in group] for group in groups]
        rounds = self._rounds([group for group in ways if all(group)])
        if rounds is None:
            return None
        each = [self._from(entry, rounds) for entry in self._shape.entry_edges]
        if None in each or not each or self._shape.loop.header == 0:  # the function begins with it: no edge leads there
            each = [None if most is None else most + 1 for most in (self._again(back, rounds) for back in self._backs)]
        return None if None in each else max((one for one in each if one is not None), default=None)

    def _known(self, edge: EdgeValues) -> Conditions:
        """The conditions of an edge that can be evaluated."""
        return [(term, holds) for term, holds in edge.conditions if self._leaves_of(term, edge.state) is not None]

    def _rounds(self, ways: Sequence[Sequence[Conditions]]) -> Rounds | None:
        """The numbers that conditions hang on, with all that these hang on; None where one hangs on something else."""
        backs = self._backs
        conditions = [self._known(back) if len(backs) > 1 else () for back in backs]
        wanted = [term for one in (*(one for group in ways for one in group), *conditions) for term, _ in one]
        own, fixed = dict[Term, None](), dict[Term, None]()
        brought: dict[Term, list[Term]] = {}
        terms = [*wanted]
        while wanted:
            for leaf in sorted(self._leaves[wanted.pop()] or ()):
                if leaf not in self._own:
                    fixed[leaf] = None
                elif leaf not in own:
                    own[leaf] = None
                    each = [self._brought(back, leaf) for back in backs]
                    brought[leaf] = [term for term in each if term is not None]
                    if len(brought[leaf]) < len(backs):
                        return None
                    wanted += brought[leaf]
                    terms += brought[leaf]
        if not own:
            return None
        back = [Back(conditions[at], tuple(brought[symbol][at] for symbol in own)) for at in range(len(backs))]
        whole = Round(ways, back)
        each_round = [self._chosen(whole, decided) for decided in choices(self._terms, terms, self._is_open)]
        found = [one for one in each_round if one is not None]
        if not found or len(found) < len(each_round):
            return None
        rounds = Rounds(tuple(own), tuple(fixed), found)
        return self._without_derived(rounds) if self._has_choices else rounds

    def _without_derived(self, rounds: Rounds) -> Rounds:
        """``rounds`` without numbers that are functions of others, if it is known what each entry brings."""
        if self._shape.loop.header == 0:  # the function begins with it: no edge leads there
            return rounds
        states = [self._values.edges[edge].state for edge in self._shape.entry_edges]
        each = [{symbol: state.read(self._own[symbol]) for symbol in rounds.own} for state in states]
        known = [{symbol: term for symbol, term in one.items() if term is not None} for one in each]
        return without_derived(self._terms, rounds, known) if known == each else rounds

    def _is_open(self, condition: Term) -> bool:
        return self._kind == _HALVES or (condition in self._leaves and self._leaves[condition] is None)

    def _chosen(self, one: Round, decided: Mapping[Term, bool]) -> Round | None:
        """A round in which open conditions are ``decided`` so; None where a number is no term then."""

        def of(conditions: Conditions) -> Conditions:
            each = [(chosen(self._terms, term, decided), holds) for term, holds in conditions]
            return [(term, holds) for term, holds in each if term is not None]

        backs = [
            (of(each.conditions), [chosen(self._terms, term, decided) for term in each.terms]) for each in one.back
        ]
        if any(None in brought for _, brought in backs):
            return None
        return Round(
            [[of(conditions) for conditions in group] for group in one.ways],
            [Back(conditions, tuple(term for term in brought if term is not None)) for conditions, brought in backs],
        )

    def _brought(self, back: EdgeValues, symbol: Term) -> Term | None:
        """What an edge back brings for a symbol of the header, if that can be evaluated."""
        term = back.state.read(self._own[symbol])
        if term is None or back.state.base(term) is not Base.NUMBER:
            return None
        return None if self._leaves_of(term, back.state) is None else term

    def _leaves_of(self, term: Term, state: State) -> frozenset[Term] | None:
        """The symbols of the header and the fixed terms that ``term`` is made of; None where it has other parts."""
        if term not in self._leaves:
            self._leaves[term] = self._found_leaves(term, state)
        return self._leaves[term]

    def _found_leaves(self, term: Term, state: State) -> frozenset[Term] | None:
        node = self._terms[term]
        if node.opcode == "const":
            return frozenset()
        if term in self._own:
            return frozenset({term})
        if state.base(term) is not Base.NUMBER or not state.bases.keys().isdisjoint(self._terms.symbols(term)):
            return None
        if self._is_fixed(term):
            return frozenset({term})
        operands = self._terms.operands(term)
        if node.opcode == "symbol" or (node.opcode != "GAMMA" and function_of(self._terms, term) is None):
            return None
        parts = [self._leaves_of(one, state) for one in operands]
        if node.opcode == "GAMMA" and self._has_choices and (parts[0] is None or self._kind == _HALVES):
            parts = parts[1:]
        return None if None in parts else frozenset[Term]().union(*(part for part in parts if part is not None))

    # ------------------------------------------------------------------------------------------------------ rounds

    def _from(self, entry: Edge, rounds: Rounds) -> int | None:
        """Most executions of the header if the loop is entered by ``entry``."""
        state = self._values.edges[entry].state
        return self._from_state(state, self._of_entry(entry, rounds), rounds)

    def _again(self, back: EdgeValues, rounds: Rounds) -> int | None:
        """Most executions of the header from the second one on, if ``back`` led to that."""
        named = [(self._brought(back, symbol), at) for at, symbol in enumerate(rounds.own)]
        return self._from_state(back.state, named, rounds)

    def _from_state(self, state: State, own: Sequence[tuple[Term | None, int]], rounds: Rounds) -> int | None:
        """Most executions of the header from one on that begins with ``own`` numbers, as ``state`` knows them."""
        terms = [term for term in (*(term for term, _ in own), *rounds.fixed) if term is not None]
        state = self._informed(state, terms)
        if self._kind == _FEW:
            return self._followed(self._starts(state, own, rounds.fixed), rounds)
        if len(terms) < len(own) + len(rounds.fixed) or any(state.base(term) is not Base.NUMBER for term in terms):
            return None
        each, split = [*map(state.value, terms)], len(own)
        if self._kind == _HALVES:
            return most_rounds_of_bisection(self._terms, rounds, each[:split], [*map(self._going_on, rounds.own)])

        def of_few(numbers: Iterable[Sequence[int]]) -> int | None:
            return self._followed([(tuple(one[:split]), tuple(one[split:])) for one in numbers], rounds)

        start = each[:split], each[split:]
        return self._once(start, rounds, lambda: most_rounds_of_ranges(self._terms, rounds, start, of_few))

    def _going_on(self, symbol: Term) -> StridedInterval:
        """What ``symbol`` may be in a round behind which another one follows."""
        return reduce(strided.join, (back.state.value(symbol) for back in self._backs))

    def _followed(self, starts: list[Numbers] | None, rounds: Rounds) -> int | None:
        if starts is None:
            return None
        return self._once(starts, rounds, lambda: longest(starts, round_function(self._terms, rounds)))

    def _once(self, start: _Start, rounds: Rounds, follow: Callable[[], int | None]) -> int | None:
        """What ``follow`` tells of ``rounds`` from ``start`` on, which is not asked again where it tells nothing."""
        if (start, rounds) in self._tried:
            return None
        with suppress(UndefinedResultError):
            found = follow()
            if found is not None:
                return found
        self._tried.append((start, rounds))
        return None

    def _of_entry(self, entry: Edge, rounds: Rounds) -> list[tuple[Term | None, int]]:
        """What ``entry`` brings for each own number, with -1 where it is what its term is for the loop, too."""
        # What is defined anew on the way in is another number than its term says there.
        killed = self._values.killed.get(entry, frozenset())
        state = self._values.edges[entry].state
        terms = [state.read(self._own[symbol]) for symbol in rounds.own]
        return [
            (term, -1 if term is not None and killed.isdisjoint(self._terms.symbols(term)) else at)
            for at, term in enumerate(terms)
        ]

    @staticmethod
    def _starts(state: State, own: Sequence[tuple[Term | None, int]], fixed: Sequence[Term]) -> list[Numbers] | None:
        """All numbers that a round may begin with: own ones and fixed ones; None if they are too many.

        Those of the same name, a term and a number, are the same.
        """
        names = [(term, at) for term, at in (*own, *((term, -1) for term in fixed)) if term is not None]
        if len(names) < len(own) + len(fixed) or any(state.base(term) is not Base.NUMBER for term, _ in names):
            return None
        distinct = dict.fromkeys(names)
        ranges = [state.value(term) for term, _ in distinct]
        if any(one.size > _MOST_VALUES for one in ranges) or prod(one.size for one in ranges) > _MOST_VALUES:
            return None
        found = []
        for numbers in product(*(one.values() for one in ranges)):
            known = dict(zip(distinct, numbers, strict=True))
            each = tuple(known[name] for name in names)
            found.append((each[: len(own)], each[len(own) :]))
        return found


def longest(starts: Iterable[Numbers], follow: Callable[[Numbers], Sequence[Numbers]]) -> int | None:
    """The most numbers one after another, from one of ``starts`` on; None where one comes back, or they are too many.

    *Soundness:* numbers are counted behind all that follow them; one that follows and is not counted by then, though
    it was met, is one that leads here.
    """
    most: dict[Numbers, int] = {}
    on_the_way: dict[Numbers, Sequence[Numbers]] = {}
    todo = [*starts]
    while todo:
        at = todo[-1]
        if at in most:
            todo.pop()
        elif at in on_the_way:
            most[at] = 1 + max((most[one] for one in on_the_way.pop(at)), default=0)
        else:
            if len(most) + len(on_the_way) >= _MOST_STATES:
                return None
            on_the_way[at] = targets = follow(at)
            if any(one in on_the_way for one in targets):
                return None
            todo += targets
    return max(most.values(), default=0)
