"""What a value is as a plain number, whatever it may be measured from: from comparisons that are known to hold.

Where stack addresses are stored in memory, each loaded word may be one, and nothing is said of its value. A program
that compares it with a constant compares the number that it is: a checked index is in its range, be it what it may.

Words: strided interval, predicate, base (docs/explanation/glossary.md).

*Soundness:* a truth value that a state knows of a comparison is that of the numbers which its sides are. What is found
is true of the number alone: it says nothing of where a store through it goes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from wcet_probe.analyzer.domains import strided
from wcet_probe.analyzer.domains.strided import StridedInterval
from wcet_probe.analyzer.pcode.truths import RELATIONS, TRUTHS
from wcet_probe.analyzer.values.states.bases import Base
from wcet_probe.analyzer.values.states.learning import assume
from wcet_probe.analyzer.values.states.state import State
from wcet_probe.analyzer.values.symbolic.linear import Linear
from wcet_probe.analyzer.values.symbolic.term_table import Term
from wcet_probe.analyzer.values.symbolic.terms import Terms


def as_words(state: State) -> State:
    """``state`` with each symbol that may be an address, for all that is known, as the number that the word is.

    *Soundness:* of such a symbol only truth values are taken over, and what follows from them. What is found is true of
    the words alone, as said of the module. Where it cannot be, ``state`` itself is returned.
    """
    terms, either = state.terms, {symbol for symbol, base in state.bases.items() if base is Base.ANY}
    if not either:
        return state
    words = state.copy()
    told = [(term, value) for term, value in state.known.items() if not either.isdisjoint(terms.symbols(term))]
    for term, _ in told:
        words.set_known(term, None)
    for symbol in either:
        words.set_base(symbol, Base.NUMBER)
    truths = [(term, bool(value.value)) for term, value in told if terms[term].opcode in TRUTHS and value.is_constant]
    return words if all(assume(words, term, holds) for term, holds in truths) else state


def plain_number(state: State, term: Term) -> StridedInterval:
    """The numbers that ``term`` may be; its value where that is measured from 0.

    *Soundness:* as said of the module; what is compared is ``term`` less a constant, or a part of it as a factor tells.
    """
    if state.base(term) is Base.NUMBER:
        return state.value(term)
    return _number(state, term, dict(_compared(state)))


def _number(state: State, term: Term, compared: Mapping[Term, StridedInterval]) -> StridedInterval:
    """As `plain_number`, of what is ``compared``."""
    if state.base(term) is Base.NUMBER:
        return state.value(term)
    terms, form = state.terms, state.terms.linear(term)
    known = [(terms.linear(side), value) for side, value in compared.items()]
    if len(form.coefficients) == 1:
        (part,) = form.coefficients
        known.append((terms.linear(part), _made(state, part, compared)))
    found = strided.top(form.bits)
    for other, value in known:
        factor = _factor(form, other)
        if factor is not None:
            moved = form.constant - factor * other.constant & (1 << form.bits) - 1
            multiple = strided.apply("INT_MULT", (value, strided.constant(form.bits, factor)), form.bits)
            number = strided.apply("INT_ADD", (multiple, strided.constant(form.bits, moved)), form.bits)
            # Of both the smaller is taken: each is true by itself.
            found = min(found, number, key=lambda one: one.size)
    return found


def _made(state: State, term: Term, compared: Mapping[Term, StridedInterval]) -> StridedInterval:
    """What an extended or masked number is by how it is made."""
    node, operands = state.terms[term], state.terms.operands(term)
    match node.opcode:
        case "INT_ZEXT" | "INT_SEXT":
            return strided.apply(node.opcode, (_low_part(state, operands[0], compared),), node.bits)
        case "INT_AND":
            numbers = tuple(_number(state, one, compared) for one in operands)
            return strided.apply("INT_AND", numbers, node.bits)
    return strided.top(node.bits)


def _low_part(state: State, part: Term, compared: Mapping[Term, StridedInterval]) -> StridedInterval:
    """The numbers that ``part`` may be, which is compared as it is extended, or is the low part of what is compared."""
    terms, node, zero = state.terms, state.terms[part], strided.constant(32, 0)
    if state.base(part) is Base.NUMBER:
        return state.value(part)
    whole = [value for side, value in compared.items() if _extends(terms, side, part)]
    if node.opcode == "SUBPIECE":
        of, skipped = terms.operands(part)
        if terms[skipped].opcode == "const" and not terms.value(skipped):
            whole.append(_number(state, of, compared))
    parts = [strided.apply("SUBPIECE", (value, zero), node.bits) for value in whole]
    return min((strided.top(node.bits), *parts), key=lambda one: one.size)


def _extends(terms: Terms, term: Term, part: Term) -> bool:
    return terms[term].opcode in {"INT_ZEXT", "INT_SEXT"} and terms.operands(term) == (part,)


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
