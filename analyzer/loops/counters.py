"""What a loop counts: locations whose values each back edge changes by the same constant, or shifts by one.

Words: induction variable, back edges (docs/explanation/glossary.md).

*Soundness:* as said of the functions; where an edge brings what is not known, nothing is said.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from wcet_probe.analyzer.domains import strided
from wcet_probe.analyzer.domains.strided import StridedInterval
from wcet_probe.analyzer.graph.supergraph import Edge
from wcet_probe.analyzer.pcode.semantics import signed
from wcet_probe.analyzer.values.properties.loop_shapes import LoopShape
from wcet_probe.analyzer.values.result import Values
from wcet_probe.analyzer.values.states.bases import Base
from wcet_probe.analyzer.values.states.state import State
from wcet_probe.analyzer.values.symbolic.linear import Linear, combined
from wcet_probe.analyzer.values.symbolic.locations import Location
from wcet_probe.analyzer.values.symbolic.term_table import Term
from wcet_probe.analyzer.values.symbolic.terms import Terms


@dataclass(frozen=True, slots=True)
class Step:
    """How an iteration changes a symbol of the header: by ``+ amount``, or by taking off at least ``amount`` bits.

    ``after`` is the term of the changed value where all back edges agree on it. What ``grows`` is shifted left by
    ``amount`` bits instead.
    """

    location: Location
    amount: int
    shifts: bool
    after: Term | None
    grows: bool = False


def counters_of(values: Values, shape: LoopShape) -> dict[Term, Step]:
    """The symbols of the header that each back edge changes in the same way.

    *Soundness:* a change is read off the terms; of back edges that differ nothing is said.
    """
    terms, state = values.terms, values.states[shape.loop.header]
    found: dict[Term, Step] = {}
    for location, symbol in state.locations.items():
        node = terms[symbol]
        if node.opcode != "symbol" or node.arguments[:2] != ("phi", (shape.loop.header,)) or symbol in found:
            continue
        states = [values.edges[edge].state for edge in shape.back_edges]
        ends = {settled(state, after) for state in states for after in (state.read(location),)}
        steps = {_step(terms, symbol, after) for after in ends}
        step = steps.pop()
        if not steps and step is not None and step[0]:
            amount, shifts, grows = step
            found[symbol] = Step(location, amount, shifts, ends.pop() if len(ends) == 1 else None, grows)
    return found


def settled(state: State, term: Term | None) -> Term | None:
    """``term`` with the choices that ``state`` decides: a predicated instruction, where it is executed or skipped."""
    terms = state.terms
    while term is not None:
        form = terms.linear(term)
        part, factor = next(iter(form.coefficients.items()), (term, 0))
        if len(form.coefficients) != 1 or factor != 1 or terms[part].opcode != "GAMMA":
            break
        condition, one, other = terms.operands(part)
        decided = state.value(condition)
        if not decided.is_constant:
            break
        chosen = one if decided.value else other
        if form.constant:
            chosen = terms.apply("INT_ADD", (chosen, terms.constant(form.constant, form.bits)), form.bits) or part
        if chosen == part:
            break
        term = chosen
    return term


def _step(terms: Terms, symbol: Term, after: Term | None) -> tuple[int, bool, bool] | None:
    if after is None:
        return None
    form = terms.difference(after, symbol)
    if not form.coefficients:
        return signed(form.bits, form.constant), False, False
    factor = form.coefficients.get(symbol, 0) + 1
    if form == Linear({symbol: factor - 1}, 0, form.bits) and factor & factor - 1 == 0:
        return factor.bit_length() - 1, True, True
    node, operands = terms[after], terms.operands(after)
    if node.opcode == "INT_RIGHT" and operands[0] == symbol:
        bits = terms.value(operands[1])
        return (bits, True, False) if bits else None
    bits = _lowest_bits_taken(terms, symbol, after)
    return (bits, True, False) if bits else None


def _lowest_bits_taken(terms: Terms, symbol: Term, after: Term) -> int:
    """How often the lowest bit that is set was taken from ``symbol``; 0 where anything else was done."""
    taken = 0
    while after != symbol:
        before = _with_lowest_bit(terms, after)
        if before is None:
            return 0
        after, taken = before, taken + 1
    return taken


def _with_lowest_bit(terms: Terms, after: Term) -> Term | None:
    """The x of ``x & (x - 1)``, of ``x ^ (x & -x)`` and of ``x - (x & -x)``."""
    opcode, operands = terms[after].opcode, terms.operands(after)
    if opcode == "INT_AND" and abs(terms.distance(*operands) or 0) == 1:
        return operands[0] if terms.distance(*operands) == 1 else operands[1]
    for one, other in {"INT_XOR": (operands, operands[::-1]), "INT_SUB": (operands,)}.get(opcode, ()):
        masked = terms.operands(other) if terms[other].opcode == "INT_AND" else ()
        rest = [part for part in masked if part != one]
        if (
            one in masked
            and rest
            and combined(terms.linear(one), terms.linear(rest[0]), 1) == Linear({}, 0, terms[one].bits)
        ):
            return one
    return None


def arriving(values: Values, edges: Iterable[Edge], location: Location) -> StridedInterval | None:
    """The numbers that ``location`` may hold behind ``edges``; None where it may be no number.

    *Soundness:* the union over all edges.
    """
    result: StridedInterval | None = None
    for edge in edges:
        state = values.edges[edge].state
        term = state.read(location)
        if term is None or state.base(term) is not Base.NUMBER:
            return None
        result = state.value(term) if result is None else strided.join(result, state.value(term))
    return None if result is None or result.is_bottom else result
