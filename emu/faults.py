"""What stopped a guest, as one sentence with the place in its source."""

from __future__ import annotations

from collections.abc import Callable

from wcet_probe.emu.memory import GuestMemory
from wcet_probe.emu.native import BUDGET_SPENT, ENDLESS_LOOP, OUTSIDE_CODE, PROBLEM_EXECUTED, UNALIGNED_STACK
from wcet_probe.emu.tables import CodeTable, it_state
from wcet_probe.errors import EmulationError, NoReturnError, StrayAccessError
from wcet_probe.isa.effective_address import evaluate
from wcet_probe.model.image import Image
from wcet_probe.model.instruction import ALWAYS, AccessKind


def stopped(image: Image, table: CodeTable, stop: tuple[int, int, int], most_instructions: int) -> EmulationError:
    """Why the native core stopped the engine.

    Parameters:
        image, table: what was run.
        stop: why, at which pc, for which address.
        most_instructions: how many the guest could take.
    """
    why, pc, address = stop
    if why == PROBLEM_EXECUTED:
        instruction = table.instruction_at(pc)
        problem = instruction.problem if instruction else None
        problem = (problem or "no instruction was decoded there").removesuffix(".")
        return EmulationError(
            f"the guest executed {pc:#010x} in {image.location(pc)}, which cannot be charged: {problem}."
        )
    if why == ENDLESS_LOOP or (why == BUDGET_SPENT and _stays(table, pc)):
        return NoReturnError(
            f"the guest never returns: the instruction at {pc:#010x} in {image.location(pc)} jumps to itself, as "
            "panics do; check the call's arguments and what was to be called before it."
        )
    if why == BUDGET_SPENT:
        return EmulationError(
            f"the guest takes more than {most_instructions} instructions, it is in "
            f"{image.location(pc)}: look for an endless loop, or give it a larger budget."
        )
    if why == OUTSIDE_CODE:
        return outside(address)
    if why == UNALIGNED_STACK:
        return EmulationError(
            f"the stack pointer is {address:#x} in front of {pc:#010x} in {image.location(pc)}: a core that executes "
            "Thumb clears its lowest two bits, the engine of the emulator does not, so such code is bounded and not "
            "run; move it by multiples of 4."
        )
    return stray(image, pc, address, "outside the guest's memory")


def _stays(table: CodeTable, pc: int) -> bool:
    instruction = table.instruction_at(pc)
    return instruction is not None and instruction.jumps_to_itself


def outside(address: int) -> EmulationError:
    """Control went to ``address``."""
    return EmulationError(
        f"the guest jumped to {address:#010x}, outside the image's code; check its function pointers and stack."
    )


def disagreeing(image: Image, pc: int) -> EmulationError:
    """Decoder and lifter tell other things of the instruction at ``pc``, which translated code came to."""
    where = f"{pc:#010x} in {image.location(pc)}"
    return EmulationError(f"decoder and lifter disagree about the instruction at {where}: report this with the image.")


def stray(image: Image, pc: int, address: int | None, reason: str) -> EmulationError:
    """The instruction at ``pc`` accessed ``address``, or faulted otherwise."""
    what = f"stray access to {address:#010x}" if address is not None else "fault"
    remedy = "check the call's arguments and the heap"
    if address is not None:
        remedy += ", or, of a register of a device, let a section of the program (NOLOAD) lie there, as memory"
    message = f"{what} at pc {pc:#010x} in {image.location(pc)}: {reason}; {remedy}."
    return EmulationError(message) if address is None else StrayAccessError(message, pc, address)


def culprit(table: CodeTable, pc: int, inaccessible_at: Callable[[int], int | None], *, is_access: bool) -> int:
    """The instruction that faulted, where the engine stopped at ``pc``.

    An exception leaves the program counter behind the instruction that raised it, and a store that fails inside an
    IT block leaves it behind the block.

    Parameters:
        table: the code that was run.
        pc: where the engine stopped.
        inaccessible_at: as ``inaccessible`` tells of an address of an instruction.
        is_access: whether it was for memory that is not there; an exception is also what the engine makes of an
            access that must be aligned.
    """
    if inaccessible_at(pc) is not None:
        return pc
    behind = table.instruction_at(pc)
    before = table.instruction_before(pc)
    if before and before.problem and not (behind and behind.problem):
        return before.address
    suspects = []
    while is_access and before and before.in_it_block:
        suspects.append(before.address)
        before = table.instruction_before(before.address)
    return next((address for address in reversed(suspects) if inaccessible_at(address) is not None), pc)


def inaccessible(table: CodeTable, memory: GuestMemory, register: Callable[[str], int], pc: int) -> int | None:
    """The address that the instruction at ``pc`` would access and must not, or None where it is another fault."""
    instruction = table.instruction_at(pc)
    state = it_state(table, memory, pc)
    if state and not _holds(state >> 4, register("cpsr")):
        return None
    for access in instruction.accesses if instruction and not instruction.problem else ():
        registers = {name: register(name) for name in (access.base, access.index) if name}
        for address, size_bytes in evaluate(access, registers):
            if not memory.allows(address, size_bytes, is_write=access.kind is not AccessKind.LOAD):
                return address
    return None


def _holds(condition: int, flags: int) -> bool:
    """Whether a condition of ARM holds (ARM ARM DDI 0100I, A3.2)."""
    n, z, c, v = (bool(flags >> bit & 1) for bit in (31, 30, 29, 28))
    holds = (z, c, n, v, c and not z, n == v, n == v and not z, True)[condition >> 1]
    return holds != bool(condition & 1) or condition >= ALWAYS
