"""The distance between bound and witness, block by block: what only the worst path executes, or more often."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from wcet_probe.model.image import Image
from wcet_probe.model.instruction import Instruction
from wcet_probe.model.measurement import Measurement
from wcet_probe.model.proof import Bound, FactCandidate, FactEffects, Formula


class Cause(StrEnum):
    """Why a block's executions differ."""

    MORE_OFTEN = "more often on the worst path"
    """More iterations, or more calls, than were observed."""
    OTHER_PATH = "only on the worst path"
    LESS_OFTEN = "less often on the worst path"
    NOT_ON_PATH = "only observed"
    SAME = "same"


@dataclass(frozen=True, slots=True)
class BlockGap:
    """A stretch of code: its instructions, executions on the worst path and observed, and what that makes.

    ``difference`` is in instructions; over all blocks it sums up to the worst path minus the witness. What is proved
    above the worst path, where the bound is not attained, is in no block.
    """

    address: int
    location: str
    instructions: tuple[Instruction, ...]
    bound_executions: int
    observed_executions: int
    cause: Cause

    @property
    def difference(self) -> int:
        """Instructions that the worst path executes more than were observed."""
        return (self.bound_executions - self.observed_executions) * len(self.instructions)


@dataclass(frozen=True, slots=True)
class Account:
    """What the long account of a bound tells beside the bound.

    Attributes:
        gaps: blocks of the worst path and of the dearest call in instructions.
        observed_instructions: of that call.
        formula: of the bound, if there is one.
        effects: of the facts on the bound, if they were asked for.
        candidates: facts about pointers that would make the bound in cycles smaller.
    """

    gaps: tuple[BlockGap, ...]
    observed_instructions: int
    formula: Formula | None = None
    effects: FactEffects | None = None
    candidates: tuple[FactCandidate, ...] = ()


def block_gaps(
    bound: Bound, measurement: Measurement | None, image: Image, instructions: Sequence[Instruction]
) -> tuple[BlockGap, ...]:
    """Bound and observation block by block, in order of addresses; call contexts are put together.

    Parameters:
        bound: with its worst path.
        measurement: the witness, or None: nothing was observed.
        image: the binary of both.
        instructions: its code in order of addresses.
    """
    planned: dict[int, int] = {}
    for block in bound.worst_path:
        for instruction in instructions:
            if block.address <= instruction.address < block.end_address:
                planned[instruction.address] = planned.get(instruction.address, 0) + block.executions
    observed = observed_executions(measurement, instructions) if measurement else {}
    starts = {block.address for block in bound.worst_path}
    gaps: list[BlockGap] = []
    group: list[Instruction] = []

    def close() -> None:
        if group:
            first = group[0].address
            gaps.append(_gap(image, tuple(group), planned.get(first, 0), observed.get(first, 0)))
            group.clear()

    for instruction in instructions:
        address = instruction.address
        pair = planned.get(address, 0), observed.get(address, 0)
        if group:
            last = group[-1]
            joined = address == last.address + last.size_bytes and address not in starts
            if not joined or pair != (planned.get(last.address, 0), observed.get(last.address, 0)):
                close()
        if any(pair):
            group.append(instruction)
    close()
    return tuple(gaps)


def observed_executions(measurement: Measurement, instructions: Sequence[Instruction]) -> Mapping[int, int]:
    """How often each instruction was executed, by address."""
    position = {instruction.address: index for index, instruction in enumerate(instructions)}
    executed: dict[int, int] = {}
    for run in measurement.runs:
        first = position[run.address]
        for instruction in instructions[first : first + run.instructions]:
            executed[instruction.address] = executed.get(instruction.address, 0) + run.executions
    return executed


def _gap(image: Image, group: tuple[Instruction, ...], planned: int, observed: int) -> BlockGap:
    cause = Cause.SAME
    if planned > observed:
        cause = Cause.MORE_OFTEN if observed else Cause.OTHER_PATH
    elif observed > planned:
        cause = Cause.LESS_OFTEN if planned else Cause.NOT_ON_PATH
    return BlockGap(group[0].address, image.location(group[0].address), group, planned, observed, cause)
