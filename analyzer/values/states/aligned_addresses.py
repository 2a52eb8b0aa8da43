"""Stack addresses that code aligns, as a library's routines for copying and filling memory do.

Words: calling convention, congruence (docs/explanation/glossary.md).

*Soundness:* what the lowest bits of a stack address are is known by assumption ``stack-alignment`` alone.
"""

from __future__ import annotations

from wcet_probe.analyzer.values.states.bases import Base
from wcet_probe.analyzer.values.states.state import State
from wcet_probe.analyzer.values.symbolic.stack_alignment import STACK_ALIGNMENT_BYTES
from wcet_probe.analyzer.values.symbolic.term_table import Term


def aligned_address(state: State, term: Term) -> Term:
    """``term``; or, if it is ``address & ~7`` or the like of a stack address, the address less its lowest bits.

    *Soundness:* the term of the lowest bits, which is made here, brings the assumption along
    (`stack_alignment.tells_stack_alignment`).
    """
    terms = state.terms
    node, operands = terms[term], terms.operands(term)
    mask = terms.value(operands[1]) if node.opcode == "INT_AND" else None
    low = 0 if mask is None else ~mask & (1 << node.bits) - 1
    if not low or low >= STACK_ALIGNMENT_BYTES or low & low + 1 or state.base(operands[0]) is not Base.STACK:
        return term
    rest = terms.apply("INT_AND", (operands[0], terms.constant(low, node.bits)), node.bits)
    known = None if rest is None else state.value(rest)
    if known is None or not known.is_constant:
        return term
    aligned = terms.apply("INT_SUB", (operands[0], terms.constant(known.value, node.bits)), node.bits)
    return term if aligned is None else aligned
