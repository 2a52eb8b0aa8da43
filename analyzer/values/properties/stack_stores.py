"""Stores by the stack pointer that may go outside of the call's frames: by an index, or to what a caller gave.

Words: base, assumption, stack stores, stack separation (docs/explanation/glossary.md).

*Soundness:* what lies between the stack pointer at entry and the lowest one that is known is in frames of the call. A
store that is derived from the stack pointer is taken to be to the stack, wherever it goes: that those which may go
elsewhere hit no static data is assumption ``stack-stores``.
"""

from __future__ import annotations

from collections.abc import Iterator

from wcet_probe.analyzer.pcode.operations import LiftedInstruction, Varnode
from wcet_probe.analyzer.pcode.semantics import signed
from wcet_probe.analyzer.values.result import Values
from wcet_probe.analyzer.values.states.bases import Base

_BRANCHES = frozenset({"BRANCH", "CBRANCH", "CALL", "CALLIND", "BRANCHIND", "RETURN", "TRAP"})
_SUMS = {"INT_ADD": 1, "INT_SUB": -1}
_Place = tuple[int, int]
"""How often the stack pointer at entry counts, and the number that is added."""


def may_leave_frames(values: Values) -> bool:
    """Whether a store that is derived from the stack pointer may be outside of the call's frames.

    *Soundness:* as said of the module.
    """
    lowest = min(_lowest(values), default=0)
    return any(
        low < lowest or high + access.size_bytes > 0
        for own in values.accesses.values()
        for access in own
        if access.is_store and access.base is Base.STACK
        for low, high in (access.offset.signed_range(),)
    )


def _lowest(values: Values) -> Iterator[int]:
    """Offsets of the stack pointer from the one at entry, where each block begins and behind each change in it.

    *Soundness:* of a block only what surely is executed: where it goes its own ways, or the stack pointer is not known,
    what follows is left out. Where a known access goes tells nothing: it may be far from all frames.
    """
    location = values.registers.get("sp", values.registers["r1"])
    for index, state in values.states.items():
        term = state.read(location)
        if term is None or state.base(term) is not Base.STACK or not state.value(term).is_constant:
            continue
        offset = state.value(term).signed_range()[0]
        yield offset
        pointer = Varnode(location.space, location.offset, location.size_bytes)
        for instruction in values.graph.points[index].block.instructions:
            known = {pointer: (1, offset)}
            if not _follow(instruction, known, pointer):
                break
            offset = known[pointer][1]
            yield offset


def _follow(instruction: LiftedInstruction, known: dict[Varnode, _Place], pointer: Varnode) -> bool:
    """Whether it is told what ``instruction`` leaves in ``pointer``."""
    for op in instruction.ops:
        if op.opcode in _BRANCHES:
            return False
        if op.output is None:
            continue
        places = [_number(one) if one.space == "const" else known.get(one) for one in op.inputs]
        found = None
        if op.opcode == "COPY":
            found = places[0]
        elif op.opcode in _SUMS and None not in places:
            (times, number), (other_times, other) = places  # type: ignore[misc]
            sign = _SUMS[op.opcode]
            found = times + sign * other_times, number + sign * other
        known.pop(op.output, None)
        if found is not None:
            known[op.output] = found
    return pointer in known and known[pointer][0] == 1


def _number(constant: Varnode) -> _Place:
    return 0, signed(8 * constant.size_bytes, constant.offset)
