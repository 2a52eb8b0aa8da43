"""Calls that go on by what stands behind them: the callee makes the address that it goes to out of its return address.

GCC's `-Os` for ARMv6-M has a ``switch`` so: it calls a routine of libgcc, and behind the call stands a table of
distances, of which the routine takes the one of its index. Inline arguments that a callee skips are another such use.

Words: calling convention, control-flow reconstruction (docs/explanation/glossary.md).

*Soundness:* none is claimed: where such a call goes on is what values tell of the address at the callee's end, and
they must tell all of it, whether the callee is one of these or not.
"""

from __future__ import annotations

from enum import IntEnum
from weakref import WeakKeyDictionary

from wcet_probe.analyzer.pcode.lift import Lifter
from wcet_probe.analyzer.pcode.operations import PcodeOp, Varnode
from wcet_probe.errors import DecodeError

_MOST_INSTRUCTIONS = 64
"""Such a routine has about ten."""
_LEAVING = frozenset({"BRANCHIND", "RETURN"})
_OTHER_WAYS = frozenset({"BRANCH", "CBRANCH", "CALL", "CALLIND", "TRAP"})


class _Source(IntEnum):
    """What a register holds: something else, the return address, or what was computed or loaded by it."""

    ELSE = 0
    LINK = 1
    MADE = 2


_Held = dict[tuple[str, int], _Source]
_known: WeakKeyDictionary[Lifter, dict[int, int | None]] = WeakKeyDictionary()


def resuming_end(lifter: Lifter, entry: int) -> int | None:
    """The instruction by which the function at ``entry`` goes where neither its caller is nor a constant says.

    Args:
        lifter: of the image.
        entry: of a function.

    Returns:
        Its address, where the code from ``entry`` on is straight and goes at its end to what it computed or loaded by
        its return address; None for any other function.

    *Soundness:* as said of the module.
    """
    known = _known.setdefault(lifter, {})
    if entry not in known:
        known[entry] = _resuming_end(lifter, entry)
    return known[entry]


def _resuming_end(lifter: Lifter, entry: int) -> int | None:
    held: _Held = {("register", lifter.registers["lr"].offset): _Source.LINK}
    address = entry
    for _ in range(_MOST_INSTRUCTIONS):
        try:
            instruction = lifter.lift(address)
        except DecodeError:
            return None
        for op in instruction.ops:
            if op.opcode in _LEAVING:
                return address if _read(op.inputs[0], held) is _Source.MADE else None
            if op.opcode in _OTHER_WAYS and not _stays_within(op):
                return None
            if op.output is not None:
                held[op.output.space, op.output.offset] = _computed(op, held)
        address += instruction.size_bytes
    return None


def _stays_within(op: PcodeOp) -> bool:
    """Whether a branch leads to an operation of its own instruction, as of what is executed on a condition."""
    return op.opcode in {"BRANCH", "CBRANCH"} and op.inputs[0].space == "const"


def _read(varnode: Varnode, held: _Held) -> _Source:
    return held.get((varnode.space, varnode.offset), _Source.ELSE)


def _computed(op: PcodeOp, held: _Held) -> _Source:
    sources = [_read(one, held) for one in op.inputs]
    if op.opcode == "CALLOTHER" or not any(sources):
        return _Source.ELSE
    keeps = op.opcode == "COPY" or (op.opcode == "INT_AND" and any(one.space == "const" for one in op.inputs))
    return max(sources) if keeps else _Source.MADE
