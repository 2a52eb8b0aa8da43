"""What numbers are modulo a power of two, if those of which nothing is known are multiples of it.

The value analysis forgets a congruence where a pointer that it knows nothing of meets another one. Here it is followed
back to the words, arguments and other numbers that the meeting values are sums of.

*Soundness:* a residue class of a symbol is above those of all terms that it can stand for, on each edge to where it is
defined; loops are iterated until nothing changes. What cannot be followed is in the class of all numbers.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from wcet_probe.analyzer.domains import strided
from wcet_probe.analyzer.domains.strided import StridedInterval
from wcet_probe.analyzer.graph.supergraph import Edge
from wcet_probe.analyzer.values.analysis import Values
from wcet_probe.analyzer.values.stack_alignment import STACK_ALIGNMENT_BYTES
from wcet_probe.analyzer.values.state import Base, State, is_unknown
from wcet_probe.analyzer.values.terms import Linear, Term


class Congruence(NamedTuple):
    """The numbers that are ``residue`` modulo ``modulus``, a power of two."""

    modulus: int
    residue: int

    def modulo(self, most: int) -> Congruence:
        """The class modulo ``most`` at most, which is a power of two."""
        modulus = min(self.modulus, most)
        return Congruence(modulus, self.residue % modulus)


def joined(one: Congruence, other: Congruence) -> Congruence:
    """The least class above two.

    *Soundness:* exact.
    """
    modulus = min(one.modulus, other.modulus)
    while (one.residue - other.residue) % modulus:
        modulus //= 2
    return Congruence(modulus, one.residue % modulus)


class Congruences:
    """Residue classes of the terms of ``values``; ``most`` is the largest modulus that is asked for."""

    def __init__(self, values: Values, most: int) -> None:
        self._values, self._most = values, most
        self._arriving: dict[int, list[Edge]] = {}
        for edge in values.edges:
            self._arriving.setdefault(edge.target, []).append(edge)
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
        known = self._found.get((term, asserted))
        if known is None:
            classes: dict[Term, Congruence | None] = {term: None}
            while True:
                before = dict(classes)
                for each in list(classes):
                    classes[each] = self._step(each, asserted, classes)
                if classes == before:
                    break
            known = self._found[term, asserted] = classes[term] or Congruence(1, 0)
        return known

    def _step(self, term: Term, asserted: Congruence, classes: dict[Term, Congruence | None]) -> Congruence | None:
        """The class of ``term`` by those that are known so far; None for no number."""
        terms = self._values.terms
        match terms[term].opcode, terms[term].arguments:
            case "CHOICE", _:
                return self._chosen(term, None, asserted, classes)
            case "leaf", ("phi", (int(point),), location):
                # What is there at entry comes in without an edge.
                parts: list[Congruence | None] = [asserted] if point == 0 else []
                for edge in self._arriving.get(point, ()):
                    state = self._values.edges[edge].state
                    part = state.read(location)  # type: ignore[arg-type]
                    if part is None:
                        return Congruence(1, 0)
                    parts.append(self._sum(terms.linear(part), state, asserted, classes))
                return _joined(parts)
        return asserted

    def _chosen(
        self, term: Term, state: State | None, asserted: Congruence, classes: dict[Term, Congruence | None]
    ) -> Congruence | None:
        """The class of a gamma node: above that of either part, by what ``state`` knows of them."""
        terms = self._values.terms
        return _joined([self._sum(terms.linear(part), state, asserted, classes) for part in terms.operands(term)[1:]])

    def _sum(
        self, form: Linear, state: State | None, asserted: Congruence, classes: dict[Term, Congruence | None]
    ) -> Congruence | None:
        if form.constant == 0 and not form.coefficients:
            return asserted  # a null pointer
        modulus, residue = self._most, form.constant
        for term, factor in form.coefficients.items():
            number = strided.top(form.bits) if state is None else state.value(term)
            by_value = self.of_number(number)
            if not is_unknown(factor, number) or by_value.modulus >= asserted.modulus:
                own: Congruence | None = by_value
            elif state is not None and self._values.terms[term].opcode == "CHOICE":
                own = self._chosen(term, state, asserted, classes)
            else:
                own = classes.setdefault(term, None)
            if state is not None and state.base(term) is Base.STACK:
                modulus = min(modulus, STACK_ALIGNMENT_BYTES)
            if own is None:
                return None
            modulus = min(modulus, factor * own.modulus & -(factor * own.modulus))
            residue += factor * own.residue
        return Congruence(modulus, residue % modulus)


def _joined(parts: Iterable[Congruence | None]) -> Congruence | None:
    found = None
    for part in parts:
        if part is not None:
            found = part if found is None else joined(found, part)
    return found
