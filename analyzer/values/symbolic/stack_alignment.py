"""What the calling convention says of the stack pointer, and terms that ask for no more of an address.

Words: calling convention, congruence, assumption (docs/explanation/glossary.md).

*Soundness:* assumption ``stack-alignment``.
"""

from __future__ import annotations

from wcet_probe.analyzer.values.symbolic.term_table import Term
from wcet_probe.analyzer.values.symbolic.terms import Terms

STACK_ALIGNMENT_BYTES = 8
"""Of the stack pointer where a function is called: Arm AAPCS, section 6.2.1.2; PowerPC Embedded ABI, section 3.2.2."""


def tells_low_bits(terms: Terms, term: Term) -> bool:
    """Whether ``term`` is a value's lowest bits alone, which are zeros of a multiple of the stack's alignment."""
    node, operands = terms[term], terms.operands(term)
    constant = terms.value(operands[1]) if len(operands) == 2 else None
    if constant is None:
        return False
    if node.opcode == "INT_LEFT":
        return node.bits > constant and 1 << node.bits - constant <= STACK_ALIGNMENT_BYTES
    return node.opcode == "INT_AND" and constant < STACK_ALIGNMENT_BYTES


def tells_stack_alignment(terms: Terms) -> bool:
    """Whether low bits of a stack address are asked for anywhere."""
    pointer = terms.symbol(("stack pointer",), 32)
    return any(pointer in terms.symbols(term) and tells_low_bits(terms, term) for term in range(len(terms)))
