"""Charging instructions by a target's timing table. One table, two readers: observer and analyzer ask here.

Charging is lazy about instructions that cannot be charged, for they may never be executed:
:func:`with_timing_problems` marks them once per image, :func:`costs` gives a marked instruction no cycles, and who
meets one executed (or reachable) raises an error with its ``problem``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import zip_longest

from wcet_probe.errors import DecodeError
from wcet_probe.model.instruction import Instruction, InstructionCost
from wcet_probe.model.target import Target

_UNCHARGED = InstructionCost(0, 0, 0)


def cost(instruction: Instruction, following: Instruction | None, target: Target) -> InstructionCost:
    """Cycles of ``instruction`` on ``target``, memory stalls apart.

    Parameters:
        instruction: the instruction.
        following: the next instruction in address order, or None; a load-use stall is charged where it starts right
            behind ``instruction`` and reads what that loads, whether or not control then goes there.
        target: the core with its timing table.

    Raises:
        DecodeError: the instruction has a problem, or the table has no row for its timing class.
    """
    problem = instruction.problem or _timing_problem(instruction, target)
    if problem:
        raise DecodeError(problem)
    timing = target.timing[instruction.timing_class]
    executed = timing.cycles + timing.per_register_cycles * instruction.registers
    if following and following.address == instruction.address + instruction.size_bytes:
        executed += timing.load_use_cycles if following.reads & instruction.loaded else 0
    return InstructionCost(executed, target.condition_failed.cycles, timing.taken_cycles)


def costs(instructions: Sequence[Instruction], target: Target) -> tuple[InstructionCost, ...]:
    """The cost of each of ``instructions``, which are in address order; zero cycles for one that has a problem.

    Raises:
        DecodeError: an instruction without problem has no row in the timing table; mark them with
            :func:`with_timing_problems` first.
    """
    pairs = zip_longest(instructions, instructions[1:])
    return tuple(_UNCHARGED if one.problem else cost(one, following, target) for one, following in pairs)


def with_timing_problems(instructions: Sequence[Instruction], target: Target) -> tuple[Instruction, ...]:
    """``instructions``, with ``problem`` set on those whose timing class ``target`` cannot charge."""
    return tuple(
        one if one.problem else replace(one, problem=problem) if (problem := _timing_problem(one, target)) else one
        for one in instructions
    )


def _timing_problem(instruction: Instruction, target: Target) -> str | None:
    if instruction.timing_class in target.timing:
        return None
    return (
        f"{instruction.address:#010x}: {instruction.text}: {target.name} has no timing class "
        f"{instruction.timing_class!r}; add [timing.{instruction.timing_class}] to targets/{target.name}.toml."
    )
