"""What a value is measured from: the abstraction that tells addresses of the stack and numbers apart.

Words: base, abstract location (docs/explanation/glossary.md).

*Soundness:* ``Base.ANY`` claims nothing; of an operation on addresses only what does not depend on where the stack lies
is computed from offsets.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum


class Base(IntEnum):
    """What a value is measured from: 0, the stack pointer at entry, or one of the two."""

    NUMBER = 0
    STACK = 1
    ANY = 2


def is_computable(opcode: str, bases: Sequence[Base]) -> bool:
    """Whether the operation on offsets gives the offset, difference or truth value of the addresses."""
    if Base.ANY in bases:
        return False
    if opcode in ("INT_EQUAL", "INT_NOTEQUAL"):
        return bases[0] == bases[1]
    if opcode == "INT_SUB":
        return bases[1] is Base.NUMBER or bases[0] is bases[1]
    return opcode == "INT_ADD" and Base.NUMBER in bases
