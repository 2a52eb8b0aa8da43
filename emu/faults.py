"""What stopped a guest, as one sentence with the place in its source."""

from __future__ import annotations

from wcet_probe.emu.native import BUDGET_SPENT, OUTSIDE_CODE, PROBLEM_EXECUTED
from wcet_probe.emu.tables import CodeTable
from wcet_probe.errors import EmulationError
from wcet_probe.model.image import Image


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
    if why == BUDGET_SPENT:
        return EmulationError(
            f"the guest takes more than {most_instructions} instructions, it is in "
            f"{image.location(pc)}: look for an endless loop, or give it a larger budget."
        )
    if why == OUTSIDE_CODE:
        return outside(address)
    return stray(image, pc, address, "outside the guest's memory")


def outside(address: int) -> EmulationError:
    """Control went to ``address``."""
    return EmulationError(
        f"the guest jumped to {address:#010x}, outside the image's code; check its function pointers and stack."
    )


def stray(image: Image, pc: int, address: int | None, reason: str) -> EmulationError:
    """The instruction at ``pc`` accessed ``address``, or faulted otherwise."""
    what = f"stray access to {address:#010x}" if address is not None else "fault"
    return EmulationError(
        f"{what} at pc {pc:#010x} in {image.location(pc)}: {reason}; check the call's arguments and the heap."
    )
