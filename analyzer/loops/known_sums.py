"""What is known of sums: of the distance of a loop's ends, by what a condition told of another sum of the same terms.

A division in software shifts by ``clz(b) - clz(a)``, which is tested to be below 32, and counts up from its negative:
neither of the two is known, and no sum of what is known of each is below 32. Where ``b`` is a constant one is left, of
which the state knows what the instruction gives, and not what the sum tells.

Words: linear form, predicate (docs/explanation/glossary.md).

*Soundness:* identities of arithmetic modulo 2**bits; what is known of a term holds wherever the state does.
"""

from __future__ import annotations

from wcet_probe.analyzer.domains import strided
from wcet_probe.analyzer.domains.strided import StridedInterval
from wcet_probe.analyzer.values.bases import Base
from wcet_probe.analyzer.values.linear import Linear, combined
from wcet_probe.analyzer.values.state import State


def value_of_sum(state: State, form: Linear) -> StridedInterval:
    """The numbers that ``form`` may be in ``state``; top where a stack address takes part.

    *Soundness:* the meet of what its parts tell and of what is known of ``form`` plus a constant, or of the negative.
    """
    found = state.linear_value(form.coefficients.items(), form.constant, form.bits)
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
