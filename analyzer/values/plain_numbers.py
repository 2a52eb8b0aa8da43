"""What a value is as a plain number, whatever it may be measured from: from comparisons that are known to hold.

Where stack addresses are stored in memory, each loaded word may be one, and nothing is said of its value. A program
that compares it with a constant compares the number that it is: a checked index is in its range, be it what it may.

Words: strided interval, predicate, base (docs/explanation/glossary.md).

*Soundness:* a truth value that a state knows of a comparison is that of the numbers which its sides are. What is found
is true of the number alone: it says nothing of where a store through it goes.
"""

from __future__ import annotations

from collections.abc import Iterator

from wcet_probe.analyzer.domains import strided
from wcet_probe.analyzer.domains.strided import StridedInterval
from wcet_probe.analyzer.pcode.truths import RELATIONS
from wcet_probe.analyzer.values.bases import Base
from wcet_probe.analyzer.values.linear import Linear
from wcet_probe.analyzer.values.state import State
from wcet_probe.analyzer.values.term_table import Term


def plain_number(state: State, term: Term) -> StridedInterval:
    """The numbers that ``term`` may be; its value where that is measured from 0.

    *Soundness:* as said of the module; what is compared is ``term`` less a constant, or a part of it as a factor tells.
    """
    if state.base(term) is Base.NUMBER:
        return state.value(term)
    terms, form = state.terms, state.terms.linear(term)
    found = strided.top(form.bits)
    for side, value in _compared(state):
        other = terms.linear(side)
        factor = _factor(form, other)
        if factor is not None:
            moved = form.constant - factor * other.constant & (1 << form.bits) - 1
            multiple = strided.apply("INT_MULT", (value, strided.constant(form.bits, factor)), form.bits)
            number = strided.apply("INT_ADD", (multiple, strided.constant(form.bits, moved)), form.bits)
            # Of both the smaller is taken: each is true by itself.
            found = min(found, number, key=lambda one: one.size)
    return found


def _factor(form: Linear, other: Linear) -> int | None:
    """How often the terms of ``other`` are in ``form``, if nothing else is."""
    if form.bits != other.bits or form.coefficients.keys() != other.coefficients.keys():
        return None
    mask = (1 << form.bits) - 1
    one, times = next(iter(other.coefficients.items()))
    if times not in {1, mask}:
        return None
    factor = form.coefficients[one] * times & mask
    alike = all(form.coefficients[part] & mask == factor * each & mask for part, each in other.coefficients.items())
    return factor if alike else None


def _compared(state: State) -> Iterator[tuple[Term, StridedInterval]]:
    """The values that are compared with numbers, and what is known of them from that: of each at once."""
    terms, found = state.terms, dict[Term, StridedInterval]()
    for condition, truth in state.known.items():
        node = terms[condition]
        if node.opcode not in RELATIONS or not truth.is_constant:
            continue
        sides = terms.operands(condition)
        unknown = [side for side in sides if state.base(side) is not Base.NUMBER]
        if len(unknown) == 1:
            (side,) = unknown
            before = found.get(side, strided.top(terms[side].bits))
            left, right = (before if one == side else state.value(one) for one in sides)
            found[side] = strided.constrain(node.opcode, left, right, bool(truth.value))[sides.index(side)]
    yield from found.items()
