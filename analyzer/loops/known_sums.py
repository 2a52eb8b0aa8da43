"""What is known of sums: of the distance of a loop's ends, by what a condition told of another sum of the same terms.

A division in software shifts by ``clz(b) - clz(a)``, which is tested to be below 32, and counts up from its negative:
neither of the two is known, and no sum of what is known of each is below 32. Where ``b`` is a constant one is left, of
which the state knows what the instruction gives, and not what the sum tells.

Or both ends are addresses of the stack, whose distance is that of their offsets.

Or the end is one of two, ``p + n`` where ``n`` is small and else ``p + 64``, as predicated instructions choose: how far
it is from ``p`` is told by each of the two, with what the condition tells of ``n``.

Words: linear form, predicate, gamma node (docs/explanation/glossary.md).

*Soundness:* identities of arithmetic modulo 2**bits; what is known of a term holds wherever the state does. A gamma
node is its first part where its condition holds, and else its second, so that a sum with it is one with either part.
"""

from __future__ import annotations

from collections.abc import Iterator

from wcet_probe.analyzer.domains import strided
from wcet_probe.analyzer.domains.strided import StridedInterval
from wcet_probe.analyzer.values.states.bases import Base
from wcet_probe.analyzer.values.states.learning import assume
from wcet_probe.analyzer.values.states.state import State
from wcet_probe.analyzer.values.symbolic.linear import Linear, combined
from wcet_probe.analyzer.values.symbolic.term_table import Term

_MOST_CHOICES = 3
"""Gamma nodes of a sum that are looked into, one after another."""


def value_of_sum(state: State, form: Linear, choices: int = _MOST_CHOICES) -> StridedInterval:
    """The numbers that ``form`` may be in ``state``; top where it is made of a stack address.

    *Soundness:* the meet of what its parts tell, of what is known of ``form`` plus a constant, or of the negative, and
    of what each of the choices in it tells.
    """
    found = _known_value(state, form)
    of_choice = _of_choice(state, form, choices - 1) if choices else None
    met = found if of_choice is None else strided.meet(found, of_choice)
    return found if met.is_bottom else met


def _of_choice(state: State, form: Linear, choices: int) -> StridedInterval | None:
    """What both parts of a gamma node in ``form`` tell, where one has a term that ``form`` has besides, or may have."""
    for gamma, factor in form.coefficients.items():
        if state.terms[gamma].opcode == "GAMMA":
            condition, *parts = state.terms.operands(gamma)
            rest = combined(form, Linear({gamma: 1}, 0, form.bits), -factor)
            others = rest.coefficients.keys() | _chosen_from(state, rest)
            if not others.isdisjoint(_chosen_from(state, Linear({gamma: 1}, 0, form.bits))):
                sums = [combined(rest, state.terms.linear(part), factor) for part in parts]
                return _joined(_of_sides(state, condition, sums, choices))
    return None


def _chosen_from(state: State, form: Linear) -> set[Term]:
    """The terms that parts of gamma nodes in ``form`` are sums of."""
    gammas = [term for term in form.coefficients if state.terms[term].opcode == "GAMMA"]
    parts = [part for gamma in gammas for part in state.terms.operands(gamma)[1:]]
    return {term for part in parts for term in state.terms.linear(part).coefficients}


def _of_sides(state: State, condition: Term, sums: list[Linear], choices: int) -> Iterator[StridedInterval]:
    for holds, one in zip((True, False), sums, strict=True):
        side = state.copy()
        if assume(side, condition, holds):
            yield value_of_sum(side, one, choices)


def _joined(values: Iterator[StridedInterval]) -> StridedInterval | None:
    result = None
    for value in values:
        result = value if result is None else strided.join(result, value)
    return result


def _of_offsets(state: State, form: Linear) -> StridedInterval:
    """The numbers that ``form`` may be where the addresses of the stack in it are taken from each other.

    *Soundness:* an address is the stack pointer at entry and an offset, which is what the state knows. Where the
    factors of the addresses are 0 together, the stack pointer is taken as often as it is added.
    """
    bases = {part: state.base(part) for part in form.coefficients}
    factors = sum(factor for part, factor in form.coefficients.items() if bases[part] is Base.STACK)
    total = strided.constant(form.bits, form.constant)
    if factors % (1 << form.bits) or Base.ANY in bases.values():
        return strided.top(form.bits)
    for part, factor in form.coefficients.items():
        times = strided.apply("INT_MULT", (state.value(part), strided.constant(form.bits, factor)), form.bits)
        total = strided.apply("INT_ADD", (total, times), form.bits)
    return total


def _known_value(state: State, form: Linear) -> StridedInterval:
    found = state.linear_value(form.coefficients.items(), form.constant, form.bits)
    if found.is_top:
        found = _of_offsets(state, form)
    by_remainders = state.terms.with_remainders(form)
    if by_remainders != form:
        found = strided.meet(
            found, state.linear_value(by_remainders.coefficients.items(), by_remainders.constant, form.bits)
        )
    if not form.coefficients or any(state.base(part) is not Base.NUMBER for part in form.coefficients):
        return found
    for term, value in state.known.items():
        other = state.terms.linear(term)
        if other.bits != form.bits or other.coefficients.keys() != form.coefficients.keys():
            continue
        for factor, opcode in ((1, "INT_ADD"), (-1, "INT_SUB")):
            rest = combined(form, other, -factor)
            if not rest.coefficients:
                met = strided.meet(
                    found, strided.apply(opcode, (strided.constant(form.bits, rest.constant), value), form.bits)
                )
                found = found if met.is_bottom else met
    return found
