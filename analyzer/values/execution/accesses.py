"""Data accesses of instructions, as the values tell them: where one may go, and what is known of its address.

Words: abstract location, strided interval (docs/explanation/glossary.md).

*Soundness:* nouns; what makes them (`values.transfer`) says why each field over-approximates.
"""

from __future__ import annotations

from dataclasses import dataclass

from wcet_probe.analyzer.domains.strided import StridedInterval
from wcet_probe.analyzer.values.states.argument_pointers import Pointed
from wcet_probe.analyzer.values.states.bases import Base
from wcet_probe.analyzer.values.states.state import State
from wcet_probe.analyzer.values.symbolic.term_table import Term


@dataclass(frozen=True, slots=True)
class Access:
    """A data access of an instruction: ``size_bytes`` at an address of ``base`` plus ``offset``.

    ``pointer`` is the address as a term that means the same value as long as none of its symbols is defined anew; None
    where one of them may have been in this execution of the block. The address is ``constant`` plus the sum of
    ``parts``: factor, term and value of each (`Terms.linear`), without the term of a gamma node where one of its parts
    is known to be in a range. An access that is not ``is_certain`` may also not take place where its instruction is
    executed. One that ``is_leaving`` takes place only where control then goes elsewhere than to the next instruction.
    Where one ``has_stack_part``, a part of its address is an offset from the stack pointer at entry. ``skipped_bytes``
    of an access that goes to several lines are in the lines before, see `symbolic_blocks.SymbolicBlocks.pieces`.
    ``through`` is of a store of which no more is known behind what register at entry it goes, if it does.
    """

    instruction_address: int
    is_store: bool
    base: Base
    offset: StridedInterval
    size_bytes: int
    pointer: Term | None
    constant: int
    parts: tuple[tuple[int, Term | None, StridedInterval], ...]
    is_certain: bool
    is_leaving: bool = False
    has_stack_part: bool = False
    skipped_bytes: int = 0
    through: Pointed | None = None


@dataclass(frozen=True, slots=True)
class WordTransfer:
    """A load or a store as it is executed: ``pointer`` and ``value`` are terms of ``state``, the state right before it.

    ``place``, ``instruction_address`` and ``operation`` name the symbol of a loaded value; ``value`` is None then.
    """

    place: int
    instruction_address: int
    operation: int
    pointer: Term
    value: Term | None
    size_bytes: int
    state: State

    @property
    def is_store(self) -> bool:
        """Whether it writes."""
        return self.value is not None
