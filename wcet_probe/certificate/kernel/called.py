# SPDX-License-Identifier: 0BSD
"""Calls that are not expanded: what a callee that was checked once by itself makes of the state of each caller.

What is known behind a call is what was known before it, without all that the callee is not shown to keep: registers,
flags, words below the stack pointer, and words that its stores may go to. Its stores are executed once more, as its
caller sees them, with anything for what they store.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import ModuleType

from wcet_probe.certificate.machines.machine import Machine
from wcet_probe.certificate.values.numbers import ANY, TOP, WORD, Value, unknown
from wcet_probe.certificate.values.state import STATIC, State

_STACK_ALIGNMENT_BYTES = 8
"""As *stack-alignment* says of the stack pointer where the analysed function is entered."""
_WHOLE_STACK = Value("stack", -WORD // 2, WORD // 2 - 1, 1)


@dataclass(frozen=True, slots=True)
class Callee:
    """A function that was checked by itself; distances are from its stack pointer at entry.

    Attributes:
        address: of its first instruction.
        bounds: what a call takes at most, by unit.
        unknown: registers that it was checked for whatever they hold at entry; the others hold no stack address then.
        results: what other registers than those that it keeps hold where it returns.
        stores: where it stores besides its own frame, how many bytes, and whether that may be of a stack address.
        holds: whether it may store a stack address in its own frame, or below the stack pointer of its own callees.
        escapes: whether it may store one outside of the stack.
    """

    address: int
    bounds: Mapping[str, int]
    unknown: frozenset[str]
    results: Mapping[str, Value]
    stores: frozenset[tuple[Value, int, bool]]
    holds: bool
    escapes: bool

    def unmet(self, isa: ModuleType, state: State) -> tuple[str, ...]:
        """The registers that may hold in ``state``, at a call, what the callee was not checked for."""
        pointer = state.read(isa.SP)
        is_aligned = _is_known(pointer) and pointer.low % _STACK_ALIGNMENT_BYTES == 0
        others = {register for register in state.values if isinstance(register, str)} - {isa.SP} - self.unknown
        return (
            *(() if is_aligned else (isa.SP,)),
            *sorted(register for register in others if state.read(register).may_be_stack),
        )

    def leave(self, machine: Machine, isa: ModuleType, state: State) -> None:
        """Make of ``state``, at a call, what holds behind it."""
        pointer = state.read(isa.SP)
        for register, value in self.results.items():
            state.write(register, _moved(value, pointer), machine.fresh())
        state.flags.clear()
        state.carry = None
        machine.use_frames(pointer.low if _is_known(pointer) else WORD // 2, ANY if self.holds else TOP, state)
        for address, size_bytes, is_stack in self.stores:
            to, word = _moved(address, pointer), ANY if is_stack else TOP
            machine.store(to, size_bytes, word, machine.fresh(), state)
            place = to.low + (0 if to.base == "stack" else STATIC)
            if place in state.values:  # it may be skipped, or another one come behind it
                state.drop(place)
        machine.found_escape |= self.escapes


def _is_known(pointer: Value) -> bool:
    return pointer.base == "stack" and pointer.is_constant


def _moved(value: Value, pointer: Value) -> Value:
    """What is ``value`` by the callee's stack pointer at entry, which its caller has as ``pointer``."""
    if value.is_plain:
        return value
    if value.base != "stack":
        return unknown(value)
    low, high = value.low + pointer.low, value.high + pointer.low
    is_within = _is_known(pointer) and low >= -WORD // 2 and high < WORD // 2
    return Value("stack", low, high, value.stride) if is_within else _WHOLE_STACK if _is_known(pointer) else ANY
