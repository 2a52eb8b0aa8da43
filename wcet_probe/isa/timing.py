"""Charging instructions by a target's timing table. One table, two readers: observer and analyzer ask here.

An instruction costs its row's cycles and, if it is executed, the longest wait of one that follows it for its result
(:mod:`wcet_probe.isa.stalls`): the same number wherever control goes.

Charging is lazy about instructions that cannot be charged, for they may never be executed:
:func:`with_timing_problems` marks them once per image, :func:`costs` gives a marked instruction no cycles, and who
meets one executed (or reachable) raises an error with its ``problem``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from wcet_probe.errors import DecodeError
from wcet_probe.isa.stalls import waits_behind
from wcet_probe.model.instruction import Instruction, InstructionCost
from wcet_probe.model.target import Target

_UNCHARGED = InstructionCost(0, 0, 0)


def costs(instructions: Sequence[Instruction], target: Target) -> tuple[InstructionCost, ...]:
    """The cost of each of ``instructions``, memory stalls apart; zero cycles for one that has a problem.

    Parameters:
        instructions: the whole code, in address order.
        target: the core with its timing table.

    Raises:
        DecodeError: an instruction without problem has no row in the timing table; mark them with
            :func:`with_timing_problems` first.
    """
    waits = waits_behind(instructions, target)
    return tuple(
        _UNCHARGED if one.problem else _cost(one, executed_cycles(one, target) + wait, target)
        for one, wait in zip(instructions, waits, strict=True)
    )


def _cost(instruction: Instruction, cycles: int, target: Target) -> InstructionCost:
    """Behind a branch to the next instruction nobody sees whether it was taken: it is charged as taken."""
    taken, skipped = target.timing[instruction.timing_class].taken_cycles, target.condition_failed.cycles
    if instruction.branch_target == instruction.address + instruction.size_bytes:
        return InstructionCost(cycles + taken, skipped, 0)
    return InstructionCost(cycles, skipped, taken)


def executed_cycles(instruction: Instruction, target: Target) -> int:
    """Cycles of ``instruction`` when it is executed, whatever its neighbours are.

    Raises:
        DecodeError: the instruction has a problem, or the table has no row for its timing class.
    """
    problem = instruction.problem or _timing_problem(instruction, target)
    if problem:
        raise DecodeError(problem)
    timing = target.timing[instruction.timing_class]
    literal = timing.literal_cycles if instruction.literal else 0
    return timing.cycles + timing.per_register_cycles * instruction.registers + literal


def with_timing_problems(instructions: Sequence[Instruction], target: Target) -> tuple[Instruction, ...]:
    """``instructions``, with ``problem`` set on those that ``target`` cannot charge.

    They have no timing class there, or ask for a line of a cache, which is not modelled: it may evict another one.
    """
    return tuple(
        one if one.problem else replace(one, problem=problem) if (problem := _timing_problem(one, target)) else one
        for one in instructions
    )


_PRELOADS = ("pld", "pli", "dcbt")
"""What the names of instructions begin with that ask for a line of a cache."""


_APART = (
    "bound what stands before and behind it as functions of their own, or tell by an [[infeasible]] fact, with offset, "
    "that the call does not come here."
)
_ENDLESS = {
    "wait": f"it waits until an interrupt or an event comes, and no table tells when that is: {_APART}",
    "supervisor_call": "control goes to the handler of the exception, which is not followed: bound the handler as a "
    f"function of its own; of the caller, {_APART}",
}
"""By timing class: what takes as long as something else than the core decides, and what to do about it."""


def _timing_problem(instruction: Instruction, target: Target) -> str | None:
    if (target.icache or target.dcache) and instruction.text.startswith(_PRELOADS):
        where = f"{instruction.address:#010x}: {instruction.text}"
        return f"{where}: not supported: its effect on the caches is not modelled; leave it out."
    if instruction.timing_class in target.timing:
        return None
    if instruction.timing_class in _ENDLESS:
        return f"{instruction.address:#010x}: {instruction.text}: {_ENDLESS[instruction.timing_class]}"
    return (
        f"{instruction.address:#010x}: {instruction.text}: {target.name} has no timing class "
        f"{instruction.timing_class!r}; add [timing.{instruction.timing_class}] to targets/{target.name}.toml."
    )
