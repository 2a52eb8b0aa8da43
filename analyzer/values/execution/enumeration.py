"""Targets of an indirect branch that follow from the few values of one term that its address is made of.

Words: control-flow reconstruction, term (docs/explanation/glossary.md).

*Soundness:* the values of the term are over-approximated, and the target is computed for each of them by the same
semantics as everywhere; where it is not decided by them, nothing is said.
"""

from __future__ import annotations

from collections.abc import Mapping

from wcet_probe.analyzer.domains.strided import StridedInterval
from wcet_probe.analyzer.pcode.semantics import operation
from wcet_probe.analyzer.values.states.bases import Base
from wcet_probe.analyzer.values.states.memory import MOST_READ, Memory
from wcet_probe.analyzer.values.states.plain_numbers import plain_number
from wcet_probe.analyzer.values.states.state import State
from wcet_probe.analyzer.values.symbolic.term_table import Term
from wcet_probe.analyzer.values.symbolic.terms import Terms


def enumerated(state: State, target: Term, memory: Memory, *, thumb: bool) -> tuple[int, ...]:
    """The values of ``target``, where they follow from the few values of one term that it is made of.

    What a table holds is known as a range, which may have fewer values than the index and more than the table, as of a
    ``switch`` over characters with most of them in its default: so both are tried, and the fewer targets taken.
    """
    terms = state.terms
    mask = ~1 if thumb else ~0
    known = {part: plain_number(state, part) for part in _parts(terms, target) if state.base(part) is not Base.STACK}
    best: dict[bool, tuple[int, ...]] = {}
    for part, values in sorted(known.items(), key=lambda one: (one[1].size, one[0])):
        is_read = any(terms[one].opcode == "TABLE" for one in _parts(terms, part))
        if is_read in best or values.size > MOST_READ or _is_any(terms, part, values):
            continue
        found = {_concrete(terms, target, {part: value}, memory) for value in values.values()}
        if None not in found:
            best[is_read] = tuple(sorted({value & mask for value in found if value is not None}))
    return min(best.values(), key=len, default=())


def _parts(terms: Terms, term: Term) -> set[Term]:
    """``term`` and all that it is made of."""
    found, todo = set[Term](), [term]
    while todo:
        part = todo.pop()
        if part not in found:
            found.add(part)
            todo.extend(terms.operands(part))
    return found


def _concrete(terms: Terms, term: Term, given: Mapping[Term, int], memory: Memory) -> int | None:
    """The value of ``term`` for given values of terms that it is made of; None where they do not decide it."""
    node = terms[term]
    if term in given:
        return given[term]
    if node.opcode == "symbol":
        return None
    if node.opcode == "const":
        return terms.value(term)
    operands = terms.operands(term)
    values = [_concrete(terms, operand, given, memory) for operand in operands]
    if None in values:
        return None
    if node.opcode == "TABLE":
        return memory.constant(values[0] or 0, node.bits // 8)
    function = operation(node.opcode, tuple(terms[operand].bits // 8 for operand in operands), node.bits // 8)
    return None if function is None else function(*values)


def _is_any(terms: Terms, part: Term, values: StridedInterval) -> bool:
    """Whether ``part`` is made of a loaded byte or half-word of which nothing is known, such as a jump table's offset.

    *Soundness:* to follow it would be sound, but leads to where no code is.
    """
    todo = [part]
    while todo:
        one = todo.pop()
        node = terms[one]
        if node.opcode == "symbol" and node.bits < 32 and values.size >= 1 << node.bits:
            return True
        if node.opcode != "TABLE":
            todo.extend(terms.operands(one))
    return False
