# SPDX-License-Identifier: 0BSD
"""Code from which no execution returns: panics, traps and endless loops.

From an address on, all instructions are looked at that control may come to, whatever registers and memory hold. Where
each of them goes on to others of them, or is trapped, and none returns, jumps to where a register says, or asks a
handler that may, control never leaves them; an execution that comes there does not return. So a certificate may leave
the way there out, under the assumption *call-returns*.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import ModuleType

from wcet_probe.certificate.machines.arm_text import PC
from wcet_probe.certificate.machines.machine import Machine
from wcet_probe.certificate.values.state import State
from wcet_probe.model.image import Image
from wcet_probe.model.instruction import Control, Instruction
from wcet_probe.model.target import Isa

_MOST_INSTRUCTIONS = 2_000
_ALWAYS = 14
"""The condition of ARM instructions that are always executed."""
_ALL_RELATIONS = 31
"""The field of a trap of PowerPC that compares for less, greater and equal, signed and not."""
_TRAPS = frozenset({"udf", "bkpt", "trap"})
_LEADING_ELSEWHERE = frozenset(
    {"supervisor_call", "system", "coprocessor", "status_write", "move_to_machine_state", "unknown"}
)
"""Timing classes of what asks a handler, returns from one, or may change how code is read."""


def never_returns(image: Image, isa: ModuleType, address: int, at: Mapping[int, Instruction]) -> bool:
    """Whether no execution that comes to ``address`` (in bytes) leaves the code that it may come to from there.

    Args:
        image: the binary.
        isa: the module that knows what its instructions do.
        address: where control comes to, by a branch or a call or from the instruction before.
        at: the instructions of the image by address, as they are executed.
    """
    reached, waiting = {address}, [address]
    while waiting:
        instruction = at.get(waiting.pop())
        if instruction is None or len(reached) > _MOST_INSTRUCTIONS:
            return False
        if _is_trap(image, instruction):
            continue
        if _may_lead_elsewhere(image, instruction):
            return False
        following = dict.fromkeys(_following(image, isa, instruction))
        if None in following:
            return False
        new = [one for one in following if one is not None and one not in reached]
        reached.update(new)
        waiting += new
    return True


def _may_lead_elsewhere(image: Image, instruction: Instruction) -> bool:
    """Whether it goes where a register says, or asks who may; or changes how the code behind it is read."""
    is_next = instruction.control is Control.NEXT
    writes_counter = is_next and image.isa is not Isa.POWERPC and PC in instruction.writes
    changes_set = instruction.text.startswith("blx")
    changes_unknown = instruction.timing_class == "move_to_special" and instruction.problem is not None
    is_direct = is_next or instruction.branch_target is not None
    is_otherwise = writes_counter or changes_set or changes_unknown
    return not is_direct or is_otherwise or instruction.timing_class in _LEADING_ELSEWHERE


def _is_trap(image: Image, instruction: Instruction) -> bool:
    """Whether it surely traps; of PowerPC, where it compares, whatever it finds."""
    if image.isa is Isa.POWERPC:
        word = Machine(image, escapes=True).encoding(instruction.address)
        return instruction.timing_class == "trap" and word is not None and word >> 21 & 31 == _ALL_RELATIONS
    is_always = instruction.condition == _ALWAYS and not instruction.in_it_block
    return is_always and instruction.text.split(" ", 1)[0] in _TRAPS


def _following(image: Image, isa: ModuleType, instruction: Instruction) -> Iterator[int | None]:
    """Where control may go, of an instruction that is executed on unknown words; None: where nobody knows."""
    for outcome in isa.outcomes_of(Machine(image, escapes=True), instruction, State({})):
        yield None if outcome.is_assumed else outcome.address
