"""Low bits of addresses of the stack: what is made of no more of an address is a number.

Words: base, term (docs/explanation/glossary.md).

*Soundness:* assumption ``stack-alignment``. Whoever puts an address together again from parts needs one with the upper
bits, and that has no base but ``ANY``. A number below ``SMALLEST_ADDRESS`` is in no frame, whatever it was made of; for
what is made of several of them see `State.base`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from wcet_probe.analyzer.pcode.truths import TRUTHS
from wcet_probe.analyzer.values.states.bases import Base
from wcet_probe.analyzer.values.symbolic.stack_alignment import tells_low_bits
from wcet_probe.analyzer.values.symbolic.term_table import Term
from wcet_probe.analyzer.values.symbolic.terms import Terms

SMALLEST_ADDRESS = 256
"""No frame of a call lies below this address."""


def is_low_part(terms: Terms, term: Term, bases: Sequence[Base]) -> bool:
    """Whether ``term`` is made of no other bits of a stack address than those that its offset tells.

    ``bases`` are those of its operands.

    *Soundness:* as said of the module.
    """
    if bases[0] is Base.ANY and terms[term].opcode == "INT_AND":
        mask = terms.value(terms.operands(term)[1])
        return mask is not None and mask < SMALLEST_ADDRESS
    return bases[0] is Base.STACK and Base.NUMBER in bases[1:] and tells_low_bits(terms, term)


def has_low_part(terms: Terms, term: Term, bases: Mapping[Term, Base], base_of: Callable[[Term], Base]) -> bool:
    """Whether low bits of what may be an address are in ``term``, other than by a comparison.

    ``bases`` are those of the symbols that may be no numbers, ``base_of`` tells that of any term.

    *Soundness:* as said of the module.
    """
    if not terms.has_low_bits(term) or bases.keys().isdisjoint(terms.symbols(term)):
        return False
    seen, todo = set[Term](), [term]
    while todo:
        one = todo.pop()
        node, operands = terms[one], terms.operands(one)
        is_free = not terms.has_low_bits(one) or bases.keys().isdisjoint(terms.symbols(one))
        if one in seen or is_free or node.opcode in TRUTHS:
            continue
        if node.opcode == "INT_AND" and base_of(operands[0]) is Base.ANY:
            return True
        seen.add(one)
        todo += operands[1:] if node.opcode == "GAMMA" else operands
    return False
