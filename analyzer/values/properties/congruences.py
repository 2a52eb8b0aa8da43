"""What numbers are modulo a power of two, if those of which nothing is known are multiples of it.

The value analysis forgets a congruence where a pointer that it knows nothing of meets another one. Here it is followed
back to the words, arguments and other numbers that the meeting values are sums of.

Words: congruence, symbolic variable, fixpoint (docs/explanation/glossary.md).

*Soundness:* a class of a symbol is above those of all terms that it can stand for, on each edge to where it is defined;
the classes of terms that depend on each other are a fixpoint (`graph.fixpoint`), which is checked in one pass. What
cannot be followed is in the class of all numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from wcet_probe.analyzer.domains import strided
from wcet_probe.analyzer.domains.congruences import Congruence, CongruenceLattice
from wcet_probe.analyzer.domains.strided import StridedInterval
from wcet_probe.analyzer.graph.fixpoint import solve
from wcet_probe.analyzer.graph.flow_order import Arrow, FlowOrder
from wcet_probe.analyzer.values.result import Values
from wcet_probe.analyzer.values.states.bases import Base
from wcet_probe.analyzer.values.states.state import State
from wcet_probe.analyzer.values.states.unknown_numbers import is_unknown
from wcet_probe.analyzer.values.symbolic.linear import Linear
from wcet_probe.analyzer.values.symbolic.stack_alignment import STACK_ALIGNMENT_BYTES
from wcet_probe.analyzer.values.symbolic.term_table import Term

_LATTICE = CongruenceLattice()
_ALL = Congruence(1, 0)
_SOURCE = -1
"""Where the graph of terms begins: it leads to each of them, so that each is looked at."""

Known = Callable[[Term], Congruence | None]
"""The class of a term so far; None for no number."""


class Congruences:
    """Residue classes of the terms of ``values``; ``most`` is the largest modulus that is asked for."""

    def __init__(self, values: Values, most: int) -> None:
        self._values, self._most = values, most
        self._found: dict[tuple[Term, Congruence], Congruence] = {}

    def of_number(self, number: StridedInterval) -> Congruence:
        """The class of a number by its range.

        *Soundness:* the stride's lowest bit divides all distances.
        """
        stride = number.stride or self._most
        modulus = min(self._most, stride & -stride)
        return Congruence(modulus, number.low % modulus)

    def of_unknown(self, term: Term, asserted: Congruence) -> Congruence:
        """The class of a term of which nothing is known, if what it comes from is in class ``asserted``.

        Null pointers count as that too: it is not null if 0 is not in the class. If it is a gamma node, nothing must be
        known of its parts either; see `transfer.Access.parts`.

        *Soundness:* as said of the module.
        """
        asserted = asserted.modulo(self._most)
        if (term, asserted) not in self._found:
            sources = self._sources(term, asserted)
            edges = [Arrow(_SOURCE, each) for each in sources]
            edges += [Arrow(source, each) for each, own in sources.items() for source in own]
            graph = FlowOrder((_SOURCE, *sources), edges, _SOURCE)
            equations = _Equations(graph, lambda each, known: self._step(each, asserted, known))
            states = solve(graph, equations, {_SOURCE: (_SOURCE, _ALL)}).states
            self._found[term, asserted] = states[term] or _ALL
        return self._found[term, asserted]

    def _sources(self, term: Term, asserted: Congruence) -> Mapping[Term, tuple[Term, ...]]:
        """Of ``term`` and all that it depends on, the terms whose classes are asked for."""
        found: dict[Term, tuple[Term, ...]] = {}
        waiting = [term]
        while waiting:
            each = waiting.pop()
            if each not in found:
                found[each] = self._asked(each, asserted)
                waiting += found[each]
        return found

    def _asked(self, term: Term, asserted: Congruence) -> tuple[Term, ...]:
        asked: dict[Term, None] = {}

        def ask(source: Term) -> None:
            asked[source] = None

        self._step(term, asserted, ask)
        return tuple(asked)

    def _step(self, term: Term, asserted: Congruence, known: Known) -> Congruence | None:
        """The class of ``term`` by those ``known``; what it asks for does not hang on the answers."""
        terms = self._values.terms
        match terms[term].opcode, terms[term].arguments:
            case "GAMMA", _:
                return self._chosen(term, None, asserted, known)
            case "symbol", ("phi", (int(point),), location):
                # What is there at entry comes in without an edge.
                parts: list[Congruence | None] = [asserted] if point == 0 else []
                for edge in self._values.arriving.get(point, ()):
                    state = self._values.edges[edge].state
                    part = state.read(location)  # type: ignore[arg-type]
                    if part is None:
                        return _ALL
                    parts.append(self._sum(terms.linear(part), state, asserted, known))
                return _joined(parts)
        return asserted

    def _chosen(self, term: Term, state: State | None, asserted: Congruence, known: Known) -> Congruence | None:
        """The class of a gamma node: above that of either part, by what ``state`` knows of them."""
        terms = self._values.terms
        return _joined([self._sum(terms.linear(part), state, asserted, known) for part in terms.operands(term)[1:]])

    def _sum(self, form: Linear, state: State | None, asserted: Congruence, known: Known) -> Congruence | None:
        if form.constant == 0 and not form.coefficients:
            return asserted  # a null pointer
        modulus, residue, is_number = self._most, form.constant, True
        for term, factor in form.coefficients.items():
            number = strided.top(form.bits) if state is None else state.value(term)
            by_value = self.of_number(number)
            if not is_unknown(factor, number) or by_value.modulus >= asserted.modulus:
                own: Congruence | None = by_value
            elif state is not None and self._values.terms[term].opcode == "GAMMA":
                own = self._chosen(term, state, asserted, known)
            else:
                own = known(term)
            if own is None:
                is_number = False
                continue
            if state is not None and state.base(term) is Base.STACK:
                modulus = min(modulus, STACK_ALIGNMENT_BYTES)
            modulus = min(modulus, factor * own.modulus & -(factor * own.modulus))
            residue += factor * own.residue
        return Congruence(modulus, residue % modulus) if is_number else None


class _Equations:
    """Each term's class by those of the terms that it depends on; an edge carries a term and its class."""

    def __init__(self, graph: FlowOrder[Arrow], step: Callable[[Term, Known], Congruence | None]) -> None:
        self._graph, self._step = graph, step

    def merged(
        self,
        node: Term,
        arriving: Sequence[tuple[Term, Congruence]],
        former: Congruence | None,  # noqa: ARG002
    ) -> Congruence | None:
        """What the classes that arrive make of ``node``'s."""
        return _ALL if node == _SOURCE else self._step(node, dict(arriving).get)

    def resumed(
        self,
        node: Term,
        entering: Sequence[tuple[Term, Congruence]],
        former: Congruence | None,
        number: int,  # noqa: ARG002
    ) -> Congruence | None:
        """The join with what was there."""
        return _LATTICE.join(former, self.merged(node, entering, None))

    def widened(
        self,
        node: Term,  # noqa: ARG002
        former: Congruence | None,
        grown: Congruence | None,
        number: int,  # noqa: ARG002
    ) -> Congruence | None:
        """The join: all chains are finite."""
        return _LATTICE.join(former, grown)

    def leq(self, one: Congruence | None, other: Congruence | None) -> bool:
        """The lattice's order."""
        return _LATTICE.leq(one, other)

    def flow(self, node: Term, state: Congruence | None) -> Iterator[tuple[Arrow, tuple[Term, Congruence]]]:
        """A term with a class, to all that depend on it."""
        if state is not None:
            for edge in self._graph.outgoing[node]:
                yield edge, (node, state)


def _joined(parts: Iterable[Congruence | None]) -> Congruence | None:
    found = _LATTICE.bottom()
    for part in parts:
        found = _LATTICE.join(found, part)
    return found
