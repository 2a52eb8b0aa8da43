"""The operations of an instruction that compute a register from others, prepared once for all executions of it.

Most operations are of this kind. What they read and write does not depend on the state, so it is looked up once for
each table of terms; an execution then asks the state for terms, and the table for what they make.

Words: transfer function, P-code, term (docs/explanation/glossary.md).

*Soundness:* `compute` does what `transfer` does for such an operation, or nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from wcet_probe.analyzer.values.execution.prepared_instruction import PreparedInstruction
from wcet_probe.analyzer.values.states.aligned_addresses import aligned_address
from wcet_probe.analyzer.values.states.state import State
from wcet_probe.analyzer.values.symbolic.locations import Location
from wcet_probe.analyzer.values.symbolic.term_table import Term
from wcet_probe.analyzer.values.symbolic.terms import Terms

_OTHERS = frozenset({"LOAD", "STORE", "CALLOTHER"})


class Computation(NamedTuple):
    """An operation that computes ``output`` from locations and constants.

    Attributes:
        number: which operation of the instruction it is.
        opcode: what it computes.
        operands: a location; or None, and the term of a constant.
        output: the location that it writes.
        bits: width of the result.
    """

    number: int
    opcode: str
    operands: tuple[tuple[Location | None, Term], ...]
    output: Location
    bits: int


def computations(prepared: PreparedInstruction, terms: Terms, wanted: Iterable[int]) -> tuple[Computation | int, ...]:
    """The operations ``wanted``, by number: as computations those that are, the others as their numbers."""
    return tuple([_computation(prepared, terms, index) for index in wanted])


def _computation(prepared: PreparedInstruction, terms: Terms, index: int) -> Computation | int:
    op, output, places = prepared.instruction.ops[index], prepared.outputs[index], prepared.inputs[index]
    if op.opcode in _OTHERS or not prepared.is_computed[index] or op.output is None or output is None:
        return index
    operands: list[tuple[Location | None, Term]] = []
    for varnode, place in zip(op.inputs, places, strict=True):
        if place is None and varnode.space != "const":
            return index
        operands.append((place, 0 if place else terms.constant(varnode.offset, 8 * varnode.size_bytes)))
    return Computation(index, op.opcode, tuple(operands), output, 8 * op.output.size_bytes)


def compute(one: Computation, state: State) -> bool:
    """Execute ``one`` on ``state``; False, and the state as it was, where an operand or the result has no term."""
    held, terms, arguments = state.locations, state.terms, []
    for place, constant in one.operands:
        if place is None:
            arguments.append(constant)
            continue
        term = held.get(place)
        if term is None:
            term = state.read(place)
            if term is None:
                return False
        arguments.append(term)
    result = terms.apply(one.opcode, tuple(arguments), one.bits)
    if result is None:
        return False
    state.write(one.output, aligned_address(state, result) if one.opcode == "INT_AND" else result)
    return True
