"""Addresses a little behind what a register held at entry: where a callee stores that is given a pointer.

A callee that is analysed by itself (`call_effects`) does not know what its caller's pointers lead to. But the caller
does, and all that a store needs to tell it is the register and the distance:

>>> def set_pair(pair, value):  # writes 0 to 7 bytes behind its first argument, and nothing else
...     pair[0], pair[1] = value, value

What is given to it may lie on the stack of the caller, above the stack pointer with which the callee is entered. Then
the callee's own frame, with the registers that it saved there, is not written.

Words: calling convention, summary (docs/explanation/glossary.md).

*Soundness:* a symbol of an entry's register is never defined anew. The sum of all other parts is a number whose bounds
are known, and small. No stack has 2**31 bytes, so that what lies above a place of it, and up to 64 KiB
behind what does, is not below; in a recursion, where such distances would add up, no register is told to lie above.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from wcet_probe.analyzer.values.states.bases import Base
from wcet_probe.analyzer.values.states.state import State
from wcet_probe.analyzer.values.symbolic.locations import Location
from wcet_probe.analyzer.values.symbolic.term_table import Term

_MOST_DISTANCE_BYTES = 1 << 16
_MOST_ABOVE_BYTES = 1 << 30
_LOWEST = -(1 << 31)


class Pointed(NamedTuple):
    """An address from ``low`` to ``high`` bytes behind what ``register`` held at entry, which may be no number."""

    register: Location
    low: int
    high: int


class _Distance(Protocol):
    @property
    def register(self) -> Location: ...

    @property
    def low(self) -> int: ...


def pointed_by(state: State, address: Term) -> Pointed | None:
    """Behind which register's value at entry ``address`` lies, and how far; None where it is none or not known.

    *Soundness:* as said of the module.
    """
    form = state.terms.linear(address)
    others = [term for term in form.coefficients if state.base(term) is not Base.NUMBER or state.has_low_part(term)]
    if len(others) != 1 or form.coefficients[others[0]] != 1:
        return None
    match state.terms[others[0]].arguments:
        case ("in", Location() as register) if state.base(others[0]) is Base.ANY:
            numbers = [(term, factor) for term, factor in form.coefficients.items() if term != others[0]]
            low, high = state.linear_value(numbers, form.constant, form.bits).signed_range()
            if low >= -_MOST_DISTANCE_BYTES and high <= _MOST_DISTANCE_BYTES:
                return Pointed(register, low, high)
    return None


def is_above(state: State, address: Term, stack_offset: int | None, above: frozenset[Location]) -> bool:
    """Whether ``address`` is surely none below the stack pointer, which is at ``stack_offset``, if that is known.

    Args:
        state: what is known.
        address: a term of it.
        stack_offset: the stack pointer's offset from its value at entry.
        above: registers that hold no address below the stack pointer at entry.
    """
    if stack_offset is None or state.has_low_part(address):
        return False
    if state.base(address) is Base.STACK:
        low, high = state.value(address).signed_range()
        return stack_offset <= low and high - stack_offset <= _MOST_ABOVE_BYTES
    pointed = pointed_by(state, address)
    return pointed is not None and stack_offset <= 0 and least_on_stack(pointed, above) >= 0


def least_on_stack(written: _Distance, above: frozenset[Location]) -> int:
    """The lowest offset from the stack pointer at entry that ``written`` may have, if it is on the stack at all."""
    return written.low if written.register in above and written.low >= 0 else _LOWEST
