"""What `constant_execution` knows of operations before it has a state: operands, results, and which of them overlap.

Words: P-code, varnode (docs/explanation/glossary.md).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from wcet_probe.analyzer.pcode.operations import LiftedInstruction, PcodeOp
from wcet_probe.analyzer.values.symbolic.locations import Location

Operand = Location | int | None


class PreparedOp(NamedTuple):
    """An operation as it is executed: operands are locations, numbers, or None for what is never known.

    Attributes:
        overlapping: the locations that overlap ``output``, itself among them; the list grows.
        plain: the function of an operation whose operands are one or two locations or numbers, and whose result goes
            to a location; of two numbers in any case. Else None.
        operands: those of ``plain``.
        tells_in_part: whether something may be known of its result where an operand is not known.
    """

    op: PcodeOp
    function: Callable[..., int] | None
    inputs: tuple[Operand, ...]
    output: Location | None
    overlapping: Sequence[Location]
    plain: Callable[[int, int], int] | None
    operands: tuple[Any, Any]
    tells_in_part: bool = True


class PreparedInstruction(NamedTuple):
    """What is told of an instruction without a state, where so many of its operations are needed.

    Attributes:
        instruction: that it is told of.
        ops: its operations; None for those that are not needed.
        straight: those of them before the first branch.
        branch: the number of the first branch; None where control falls through.
        temporaries: what it writes for itself alone.
    """

    instruction: LiftedInstruction
    ops: tuple[PreparedOp | None, ...]
    straight: tuple[PreparedOp, ...]
    branch: int | None
    temporaries: tuple[Location, ...]
