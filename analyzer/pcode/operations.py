"""P-code operations: what lifting makes of machine code (Ghidra's "P-Code Reference Manual").

Values are unsigned integers of a width in bytes; a varnode is such a value in the space ``const`` (its offset is the
value), ``register``, ``unique`` (temporaries of one instruction) or ``ram``.

Words: P-code, varnode (docs/explanation/glossary.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

FLOAT_OPERATION = "float"
"""User operation of a floating-point instruction without p-code."""
SPECIAL_REGISTER = "special_register"
"""User operation that only writes its output, of which nothing is known: what time or the core may change unseen."""


class Varnode(NamedTuple):
    """A value of ``size_bytes`` bytes at ``offset`` of ``space``; in the space ``const`` the offset is the value."""

    space: str
    offset: int
    size_bytes: int


class PcodeOp(NamedTuple):
    """One p-code operation.

    Attributes:
        opcode: name as in the reference manual (``INT_ADD``), or ``TRAP``: the core takes an exception for good.
        output: where the result goes, or None.
        inputs: operands in the manual's order, without the space of ``LOAD`` and ``STORE`` (always ``ram``) and
            without the operation's number of ``CALLOTHER``.
        user_op: name of the operation of a ``CALLOTHER``, else empty.
    """

    opcode: str
    output: Varnode | None
    inputs: tuple[Varnode, ...]
    user_op: str = ""


@dataclass(frozen=True, slots=True)
class LiftedInstruction:
    """A machine instruction and its p-code. A branch to a ``const`` varnode is relative to its own index in ``ops``.

    Instructions of one lifter with equal ``ops`` have the very same, so that what is told of these is told once.
    """

    address: int
    size_bytes: int
    ops: tuple[PcodeOp, ...]
