"""What is known where a state holds, beside the state: what has been followed on the way, and in which rounds.

A word that was followed is a link from then on, and no null, as a lemma says of what is followed; where it is stored or
carried on behind that, it is known to be one. Numbers of a loop are known together (`rounds`).

Words: lemma, killed binding (docs/explanation/glossary.md).

*Soundness:* what is known of a symbol holds until it may have another value: where it is defined, and behind an edge
that kills it (`Values.killed`). Where paths meet it must hold on all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from wcet_probe.analyzer.domains import strided
from wcet_probe.analyzer.domains.lattice import Dual, Subsets
from wcet_probe.analyzer.domains.strided import StridedInterval
from wcet_probe.analyzer.graph.fixpoint import least
from wcet_probe.analyzer.graph.supergraph import Edge
from wcet_probe.analyzer.invariants.rounds import Rounds, header_symbols, rounds_of
from wcet_probe.analyzer.values.execution.accesses import Access
from wcet_probe.analyzer.values.result import Values
from wcet_probe.analyzer.values.states.bases import Base
from wcet_probe.analyzer.values.states.state import State
from wcet_probe.analyzer.values.symbolic.symbol_names import defined_at
from wcet_probe.analyzer.values.symbolic.term_table import Term

Token = TypeVar("Token", bound=Hashable)

Followed = frozenset[tuple[Term, int]]
"""Symbols that were an address with a constant, and that constant."""


@dataclass(frozen=True, slots=True)
class Situation:
    """What is known where a state holds.

    Attributes:
        point: where it holds.
        followed: what has been followed.
        bound: symbols of headers that still have the value that they had in the last round.
    """

    point: int
    followed: Followed = frozenset()
    bound: frozenset[Term] = frozenset()


NOWHERE = Situation(-1)
"""Of which nothing is known."""


@dataclass(frozen=True, slots=True)
class Situations:
    """Those of an operation.

    Attributes:
        entering: by point.
        rounds: loops whose rounds are few, by their header.
        accesses: right before each access, in the order of the values' accesses by points.
        leaving: behind the accesses of each point.
    """

    entering: Mapping[int, Situation]
    rounds: Mapping[int, Rounds]
    accesses: Mapping[int, tuple[Situation, ...]]
    leaving: Mapping[int, Situation]

    def value(self, situation: Situation, state: State, term: Term) -> StridedInterval:
        """What ``term`` may be in ``state``, which holds in ``situation``."""
        found = state.value(term)
        if situation.bound and not found.is_constant and state.base(term) is Base.NUMBER:
            own = situation.bound & state.terms.symbols(term)
            for header in sorted({defined_at(state.terms[one].arguments) or 0 for one in own}):
                rounds = self.rounds.get(header)
                if rounds is not None:
                    is_inside = situation.point in rounds.nodes
                    found = strided.meet(found, rounds.value(state, term, situation.bound, is_inside=is_inside))
        return found


def situations(values: Values) -> Situations:
    """Of the points and accesses of ``values``.

    *Soundness:* as said of the module; fixpoints, which are checked in one pass.
    """
    headers = {header: frozenset(places.values()) for header, places in header_symbols(values).items()}

    def defining(point: int, held: frozenset[Term]) -> frozenset[Term]:
        return held | headers.get(point, frozenset[Term]())

    bound = {point: defining(point, held) for point, held in carried(values, defining, int).items()}
    entering, leaving, accesses = dict[int, Situation](), dict[int, Situation](), dict[int, tuple[Situation, ...]]()
    for point, on_the_way in followed_words(values).items():
        held = bound.get(point, frozenset[Term]())
        entering[point] = Situation(point, on_the_way[0], held)
        leaving[point] = Situation(point, on_the_way[-1], held)
        accesses[point] = tuple(Situation(point, one, held) for one in on_the_way[:-1])
    # Where the bounds of loops told what their counters are, rounds tell little more, and cost as much as all else.
    rounds = {} if values.assumes_plain_frames else rounds_of(values, bound)
    return Situations(entering, rounds, accesses, leaving)


def followed_words(values: Values) -> Mapping[int, Sequence[Followed]]:
    """Of each point, what has been followed before each of its accesses, and behind the last.

    *Soundness:* as said of the module; a fixpoint, which is checked in one pass.
    """

    def following(point: int, held: Followed) -> Followed:
        return _following(values, point, held)[-1]

    followed = carried(values, following, _symbol_of)
    return {point: _following(values, point, followed.get(point, frozenset())) for point in values.states}


def _symbol_of(one: tuple[Term, int]) -> Term:
    return one[0]


def _following(values: Values, point: int, held: Followed) -> list[Followed]:
    """What has been followed before each access of ``point``, and behind the last."""
    found = [held]
    for access in values.accesses[point]:
        found.append(found[-1] | _followed(values, access))
    return found


def _followed(values: Values, access: Access) -> Followed:
    """What ``access`` follows, where it surely takes place: a word, with a constant or none."""
    if not access.is_certain or access.pointer is None or access.base is not Base.NUMBER:
        return frozenset()
    form = values.terms.linear(access.pointer)
    if list(form.coefficients.values()) != [1]:
        return frozenset()
    symbol = next(iter(form.coefficients))
    return frozenset({(symbol, form.constant)}) if values.terms[symbol].opcode == "symbol" else frozenset()


def carried(
    values: Values, behind: Callable[[int, frozenset[Token]], frozenset[Token]], symbol: Callable[[Token], Term]
) -> Mapping[int, frozenset[Token]]:
    """What holds where each point is entered, if ``behind`` is what a point makes of it; ``symbol`` is that of each.

    *Soundness:* as said of the module; a fixpoint, which is checked in one pass.
    """
    killed = values.killed

    def along(edge: Edge, held: frozenset[Token]) -> frozenset[Token]:
        names = values.terms
        return frozenset(
            one
            for one in held
            if symbol(one) not in killed[edge] and defined_at(names[symbol(one)].arguments) != edge.target
        )

    return least(values.order, Dual(Subsets[Token](frozenset())), {0: frozenset()}, behind, along)
