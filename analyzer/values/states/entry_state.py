"""What holds where the analysed function is entered.

Words: abstract state, symbolic variable, base (docs/explanation/glossary.md).

*Soundness:* a register or word of which nothing is said is a symbol of its own, which may be anything; the stack
pointer is what offsets are measured from. Of a callee that is analysed by itself, pointers may be to the stack.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from wcet_probe.analyzer.domains import strided
from wcet_probe.analyzer.domains.strided import StridedInterval
from wcet_probe.analyzer.pcode.lift import Lifter
from wcet_probe.analyzer.values.states.bases import Base
from wcet_probe.analyzer.values.states.state import State
from wcet_probe.analyzer.values.symbolic.locations import Location, register_locations, words_at_entry
from wcet_probe.analyzer.values.symbolic.terms import Terms


def entry_state(
    terms: Terms,
    lifter: Lifter,
    arguments: Mapping[str | int, StridedInterval],
    pointers: Iterable[Location],
    *,
    is_called: bool,
) -> State:
    """The state at entry, frozen.

    Args:
        terms: of the analysis.
        lifter: of the image.
        arguments: what the caller guarantees of registers, by name, and of words of the stack, by offset.
        pointers: registers that may hold addresses of the stack.
        is_called: whether it is that of a callee which is analysed by itself.

    *Soundness:* as said of the module.
    """
    state = State(terms, big_endian=lifter.big_endian)
    registers = register_locations(lifter)
    for register in pointers:
        symbol = terms.symbol(("in", register), 8 * register.size_bytes)
        state.set_location(register, symbol)
        state.set_base(symbol, Base.ANY)
    # What stands above the stack pointer at entry was put there before, as what is in registers was.
    for place in () if is_called else words_at_entry(lifter.isa):
        state.set_location(place, terms.symbol(("in", place), 32))
    for name, value in arguments.items():
        place = Location("stack", name, 4) if isinstance(name, int) else registers[name]
        symbol = terms.symbol(("in", place), 32)
        state.set_location(place, symbol)
        state.set_known(symbol, value)
    symbol = terms.symbol(("stack pointer",), 32)
    state.set_location(registers[lifter.isa.stack_pointer], symbol)
    state.set_base(symbol, Base.STACK)
    state.set_known(symbol, strided.constant(32, 0))
    return state.freeze()
