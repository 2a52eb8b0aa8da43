"""Proofs held against single executions: the interpreter's path must solve the flow problem that bounds it.

The path is followed edge by edge through the graph of the value analysis, so that more is checked than the bound: that
no edge was left out, and each constraint (loops, totals, pairs of edges that exclude each other).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Any, NoReturn
from unittest.mock import patch

import pytest

from tests.support import Guest
from wcet_probe.analyzer import bound as bound_module
from wcet_probe.analyzer.bound import prepare, prove
from wcet_probe.analyzer.facts.language import Facts
from wcet_probe.analyzer.graph.supergraph import EXIT
from wcet_probe.analyzer.ipet.exact_lp import FlowSystem
from wcet_probe.analyzer.ipet.flow_problem import edge_name, point_name
from wcet_probe.analyzer.ipet.flow_system import ENTER, flow_system
from wcet_probe.analyzer.pcode.interpreter import interpret_call
from wcet_probe.analyzer.pcode.lift import Lifter, image_lifter
from wcet_probe.analyzer.prepared import Bounded, Prepared
from wcet_probe.analyzer.request import BoundRequest, InitialData
from wcet_probe.analyzer.values.result import Values
from wcet_probe.answer.witness.call_paths import check_call_path
from wcet_probe.answer.witness.contradiction import check_accesses, check_counts, check_loops, register_check
from wcet_probe.emu.machine import RETURN_ADDRESS, Machine
from wcet_probe.errors import AnalysisError, EmulationError
from wcet_probe.model.image import Segment
from wcet_probe.model.proof import Bound
from wcet_probe.model.scenario import InitialCache
from wcet_probe.model.target import Isa, MemoryRange


@dataclass(frozen=True)
class Proved:
    """A function with everything that was proved of it."""

    guest: Guest
    entry: str
    bound: Bound
    stage: Bounded
    system: FlowSystem
    memory: Mapping[int, bytes | bytearray]

    @property
    def values(self) -> Values:
        return self.stage.prepared.values


@lru_cache(maxsize=8)
def lifter_of(language: str, isa: Isa, segments: tuple[Segment, ...]) -> Lifter:
    """One for all functions and runs of a program: to make it takes longer than most of them."""
    return image_lifter(language, isa, segments)


def proved(
    guest: Guest,
    entry: str,
    facts: Facts | None = None,
    sources: Mapping[str, str] = MappingProxyType({}),
    initial: InitialData | None = None,
) -> Proved:
    """Prove ``entry``; AnalysisError where that cannot be done.

    Its values are analysed once, and its loops are bounded once, whatever the proof is asked without.
    """
    told, question = facts or Facts(), (guest.image, guest.target, guest.instructions, guest.costs, entry)
    request = BoundRequest(*question, told, sources, {}, initial=initial)
    prepared = prepare(request)
    bounded, stage = Prepared.bounded, _outcome(lambda: prepared.bounded({}))

    def once(own: Prepared, *asked: Any) -> Bounded:
        return stage() if own is prepared and asked == ({},) else bounded(own, *asked)

    with patch.object(bound_module, "prepare", return_value=prepared), patch.object(Prepared, "bounded", once):
        bound = prove(request)
    with guest.machine() as machine:
        memory = machine.memory.snapshot()
    return Proved(guest, entry, bound, stage(), flow_system(stage().solved("instructions").problem), memory)


def _outcome(ask: Callable[[], Bounded]) -> Callable[[], Bounded]:
    """What ``ask``, which is called here, returns or raises, for whoever asks again."""
    try:
        found = ask()
    except AnalysisError as error:
        raised = error

        def failed() -> NoReturn:
            raise raised

        return failed
    return lambda: found


MOST_INSTRUCTIONS = 1_000_000
"""A run of so many hangs: so many are emulated, as the interpreter would take seconds."""
MOST_STEPS = 5_000
"""Of a run that hangs, what the interpreter holds against the value analysis."""


def interpret(proof: Proved, *arguments: int, step_limit: int | None = None):
    """Run the function in the interpreter, with registers and accesses held against the value analysis.

    A run that takes more instructions than the bound, or than ``step_limit``, fails.
    """
    guest = proof.guest
    with guest.machine() as machine:
        registers = machine.entry_registers(arguments)
    lifter = lifter_of(guest.target.pcode_language, guest.target.isa, guest.image.segments)
    pointer = registers[guest.target.isa.stack_pointer]
    subject = f"{proof.entry}{arguments} on {guest.target.name}"
    result = interpret_call(
        lifter,
        proof.memory,
        registers,
        entry_address=guest.address(proof.entry),
        return_address=RETURN_ADDRESS,
        step_limit=step_limit or proof.bound.instructions,
        visit=register_check(proof.bound, guest.image, pointer, subject),
    )
    frames = MemoryRange(pointer - 4096, 4096)
    check_accesses(proof.bound, result.accesses, guest.image, guest.target, frames=frames, subject=subject)
    check_call_path(
        proof.bound, result.path, result.accesses, guest.image, guest.target, frames=frames, subject=subject
    )
    return result


def edge_counts(values: Values, path: Sequence[int]) -> Counter[str]:
    """How often each edge of the graph is taken on ``path``, under the names of the flow problem."""
    names = {index: point_name(values.graph.points[index]) for index in values.states}
    leaving: dict[int, list] = {index: [] for index in values.states}
    for edge in values.edges:
        leaving[edge.source].append(edge)
    counts = Counter({ENTER: 1})
    point, position = 0, 0
    while True:
        block = values.graph.points[point].block
        executed = [instruction.address for instruction in block.instructions]
        assert list(path[position : position + len(executed)]) == executed, f"the path leaves {names[point]}"
        position += len(executed)
        ends = position == len(path)
        taken = [
            edge
            for edge in leaving[point]
            if (edge.target == EXIT if ends else _starts(values, edge.target, path[position]))
        ]
        assert taken, f"from {names[point]} control went where no edge leads"
        counts[edge_name(names, taken[0])] += 1
        if ends:
            return counts
        point = taken[0].target


def _starts(values: Values, target: int, address: int) -> bool:
    return target != EXIT and values.graph.points[target].block.address == address


def check_path(proof: Proved, path: Sequence[int]) -> None:
    """``path`` solves the flow problem, and its cost is its length."""
    counts = edge_counts(proof.values, path)
    for constraint in proof.system.constraints:
        total = sum(coefficient * counts[name] for name, coefficient in constraint.coefficients.items())
        holds = total <= constraint.constant if constraint.relation == "<=" else total == constraint.constant
        assert holds, f"{constraint.name}: {total} {constraint.relation} {constraint.constant} is false"
    assert sum(coefficient * counts[name] for name, coefficient in proof.system.objective.items()) == len(path)


def check_emulated(proof: Proved, *arguments: int) -> None:
    """Instructions, cycles and loops of an emulated run, with caches that are cold and full of modified lines."""
    guest, subject = proof.guest, f"{proof.entry}{arguments}"
    watched = [claim.loop for claim in proof.bound.loop_claims]
    for initial in (InitialCache.COLD, InitialCache.DIRTY):
        with Machine(guest.image, guest.target, guest.instructions, guest.costs, 4096, watched=watched) as machine:
            check_counts(proof.bound, machine.measure(proof.entry, arguments, initial), subject)
            check_loops(proof.bound.loop_claims, machine.loop_counts(), guest.image, subject)


def check_hangs(guest: Guest, entry: str, arguments: Sequence[int], least_instructions: int = 0) -> None:
    """An emulated call takes more instructions than any that returns, or comes to one that jumps to itself."""
    most = max(MOST_INSTRUCTIONS, least_instructions)
    with (
        guest.machine(most_instructions=most) as machine,
        pytest.raises(EmulationError, match=f"takes more than {most} instructions|jumps to itself"),
    ):
        machine.count(entry, arguments)


def attack(proof: Proved, *arguments: int) -> int:
    """All checks of one run; its instructions, 0 where it hangs, which a bound of calls that return allows."""
    try:
        result = interpret(proof, *arguments)
    except EmulationError as error:
        if "did not return within" not in str(error):
            raise
        assert any(one.id == "call-returns" for one in proof.bound.assumptions)
        if proof.bound.instructions < MOST_STEPS:
            with pytest.raises(EmulationError, match="did not return within"):
                interpret(proof, *arguments, step_limit=MOST_STEPS)
        check_hangs(proof.guest, proof.entry, arguments, 20 * proof.bound.instructions)
        return 0
    check_path(proof, result.path)
    return result.instructions
