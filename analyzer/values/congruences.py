"""What numbers are modulo a power of two, if those of which nothing is known are multiples of it.

The value analysis forgets a congruence where a pointer that it knows nothing of meets another one. Here it is followed
back to the words, arguments and other numbers that the meeting values are sums of.

*Soundness:* a residue class of a leaf is above those of all terms that it can stand for, on each edge to where it is
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


class Residue(NamedTuple):
    """The numbers that are ``residue`` modulo ``modulus``, a power of two."""

    modulus: int
    residue: int

    def modulo(self, most: int) -> Residue:
        """The class modulo ``most`` at most, which is a power of two."""
        modulus = min(self.modulus, most)
        return Residue(modulus, self.residue % modulus)


def joined(one: Residue, other: Residue) -> Residue:
    """The least class above two.

    *Soundness:* exact.
    """
    modulus = min(one.modulus, other.modulus)
    while (one.residue - other.residue) % modulus:
        modulus //= 2
    return Residue(modulus, one.residue % modulus)


class Residues:
    """Residue classes of the terms of ``values``; ``most`` is the largest modulus that is asked for."""

    def __init__(self, values: Values, most: int) -> None:
        self._values, self._most = values, most
        self._arriving: dict[int, list[Edge]] = {}
        for edge in values.edges:
            self._arriving.setdefault(edge.target, []).append(edge)
        self._found: dict[tuple[Term, Residue], Residue] = {}

    def of_number(self, number: StridedInterval) -> Residue:
        """The class of a number by its range.

        *Soundness:* the stride's lowest bit divides all distances.
        """
        stride = number.stride or self._most
        modulus = min(self._most, stride & -stride)
        return Residue(modulus, number.low % modulus)

    def of_unknown(self, term: Term, told: Residue) -> Residue:
        """The class of a term of which nothing is known, if what it comes from is in class ``told``.

        Null pointers count as that too: it is not null if 0 is not in the class. If it is a choice, nothing must be
        known of its parts either; see `transfer.Access.parts`.

        *Soundness:* as said of the module.
        """
        told = told.modulo(self._most)
        known = self._found.get((term, told))
        if known is None:
            classes: dict[Term, Residue | None] = {term: None}
            while True:
                before = dict(classes)
                for each in list(classes):
                    classes[each] = self._step(each, told, classes)
                if classes == before:
                    break
            known = self._found[term, told] = classes[term] or Residue(1, 0)
        return known

    def _step(self, term: Term, told: Residue, classes: dict[Term, Residue | None]) -> Residue | None:
        """The class of ``term`` by those that are known so far; None for no number."""
        terms = self._values.terms
        match terms[term].opcode, terms[term].arguments:
            case "CHOICE", _:
                return self._chosen(term, None, told, classes)
            case "leaf", ("phi", (int(point),), location):
                # What is there at entry comes in without an edge.
                parts: list[Residue | None] = [told] if point == 0 else []
                for edge in self._arriving.get(point, ()):
                    state = self._values.edges[edge].state
                    part = state.read(location)  # type: ignore[arg-type]
                    if part is None:
                        return Residue(1, 0)
                    parts.append(self._sum(terms.linear(part), state, told, classes))
                return _joined(parts)
        return told

    def _chosen(
        self, term: Term, state: State | None, told: Residue, classes: dict[Term, Residue | None]
    ) -> Residue | None:
        """The class of a choice: above that of either part, by what ``state`` knows of them."""
        terms = self._values.terms
        return _joined([self._sum(terms.linear(part), state, told, classes) for part in terms.operands(term)[1:]])

    def _sum(
        self, form: Linear, state: State | None, told: Residue, classes: dict[Term, Residue | None]
    ) -> Residue | None:
        if form.constant == 0 and not form.coefficients:
            return told  # a null pointer
        modulus, residue = self._most, form.constant
        for term, factor in form.coefficients.items():
            number = strided.top(form.bits) if state is None else state.value(term)
            by_value = self.of_number(number)
            if not is_unknown(factor, number) or by_value.modulus >= told.modulus:
                own: Residue | None = by_value
            elif state is not None and self._values.terms[term].opcode == "CHOICE":
                own = self._chosen(term, state, told, classes)
            else:
                own = classes.setdefault(term, None)
            if state is not None and state.base(term) is Base.STACK:
                modulus = min(modulus, STACK_ALIGNMENT_BYTES)
            if own is None:
                return None
            modulus = min(modulus, factor * own.modulus & -(factor * own.modulus))
            residue += factor * own.residue
        return Residue(modulus, residue % modulus)


def _joined(parts: Iterable[Residue | None]) -> Residue | None:
    found = None
    for part in parts:
        if part is not None:
            found = part if found is None else joined(found, part)
    return found
