"""Accesses of one instruction that lie side by side: checked once, where the first of them is made.

*Soundness:* an offset is known only where the p-code itself adds constants to the first address; all accesses then lie
in the bytes that are checked. What is not known is checked access by access.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from wcet_probe.analyzer.pcode.operations import PcodeOp, Varnode

_ADDRESS_BYTES = 4
_SPACE_BYTES = 1 << 8 * _ADDRESS_BYTES
_MOST_BYTES = 128
"""Of all registers that an instruction can move."""


@dataclass(frozen=True, slots=True)
class Span:
    """Adjacent bytes of which each is accessed once.

    Attributes:
        first: index of the operation that accesses first.
        below: how far the span begins below the address of that access, in bytes.
        size_bytes: of all accesses.
        offsets: of each access from where the span begins, in bytes, by index of its operation.
    """

    first: int
    below: int
    size_bytes: int
    offsets: Mapping[int, int]


def span_of(ops: Sequence[PcodeOp], labels: frozenset[int]) -> Span | None:
    """The span of the loads, or of the stores, of an instruction with ``ops``; None: not all of them make one.

    Parameters:
        ops: its p-code.
        labels: indices to which branches inside the instruction go.
    """
    accesses = [k for k, op in enumerate(ops) if op.opcode in ("LOAD", "STORE")]
    if len(accesses) < 2 or len({ops[k].opcode for k in accesses}) > 1:
        return None
    first, last = accesses[0], accesses[-1]
    between = ops[first : last + 1]
    if any(first < label <= last for label in labels) or any("BRANCH" in op.opcode for op in between):
        return None
    addresses = _addresses(between)
    start = addresses[0]
    if any(each.root is not start.root for each in addresses):
        return None
    signed = [(each.plus + _SPACE_BYTES // 2) % _SPACE_BYTES - _SPACE_BYTES // 2 for each in addresses]
    rows = sorted(zip(signed, (_size(ops[k]) for k in accesses), accesses, strict=True))
    low = behind = rows[0][0]
    for offset, size_bytes, _ in rows:
        if offset != behind:
            return None
        behind = offset + size_bytes
    if behind - low > _MOST_BYTES:
        return None
    return Span(first, -low, behind - low, {k: offset - low for offset, _, k in rows})


@dataclass(frozen=True, slots=True, eq=False)
class _Root:
    """A value that nothing is known of, but that it is one and the same."""


@dataclass(frozen=True, slots=True)
class _Sum:
    root: _Root
    plus: int


def _addresses(ops: Sequence[PcodeOp]) -> list[_Sum]:
    """The address of each load and store of ``ops``, which are executed one after the other; the first adds nothing."""
    constants, known, found = _Root(), dict[Varnode, _Sum](), list[_Sum]()

    def value(varnode: Varnode) -> _Sum:
        if varnode.space == "const":
            return _Sum(constants, varnode.offset)
        return known.setdefault(varnode, _Sum(_Root(), 0))

    for op in ops:
        result = _result(op, value)
        if op.opcode in ("LOAD", "STORE"):
            found.append(value(op.inputs[0]))
        if op.output is not None:
            for varnode in [each for each in known if _overlap(each, op.output)]:
                del known[varnode]
            known[op.output] = result
    return [_Sum(each.root, each.plus - found[0].plus) for each in found]


def _result(op: PcodeOp, value: Callable[[Varnode], _Sum]) -> _Sum:
    """The value of an operation, as far as it is a sum with a constant."""
    if op.output is None or op.output.size_bytes != _ADDRESS_BYTES:
        return _Sum(_Root(), 0)
    if op.opcode == "COPY":
        return value(op.inputs[0])
    if op.opcode in ("INT_ADD", "INT_SUB") and op.inputs[1].space == "const":
        before, sign = value(op.inputs[0]), 1 if op.opcode == "INT_ADD" else -1
        return _Sum(before.root, before.plus + sign * op.inputs[1].offset)
    return _Sum(_Root(), 0)


def _overlap(one: Varnode, other: Varnode) -> bool:
    return (
        one.space == other.space
        and one.offset < other.offset + other.size_bytes
        and other.offset < one.offset + one.size_bytes
    )


def _size(op: PcodeOp) -> int:
    return op.inputs[1].size_bytes if op.opcode == "STORE" or op.output is None else op.output.size_bytes
