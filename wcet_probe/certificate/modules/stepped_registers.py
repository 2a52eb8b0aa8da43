# SPDX-License-Identifier: 0BSD
"""Registers that a loop steps through a table: what they address is a computed place.

A register is stepped in a loop if all that the loop writes to it are sums of itself and a constant other than 0, one at
least. So the place that it addresses is another one in each round, which is asked of the code alone: loops are those of
instructions, and not of the copies that a graph has of them. Behind a jump to where a register tells, as a return is,
nothing follows, so that two calls of a function make no loop.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from wcet_probe.certificate.kernel.coverage import Coverage
from wcet_probe.certificate.kernel.records import Graph
from wcet_probe.certificate.kernel.shapes import reached
from wcet_probe.certificate.machines.operands import NUMBER as DIGITS
from wcet_probe.certificate.machines.operands import computation, may_be_skipped
from wcet_probe.model.instruction import Control, Instruction

_STEP = re.compile(DIGITS)


def stepped_registers(graph: Graph, coverage: Coverage) -> Mapping[str, frozenset[str]]:
    """The registers that are stepped in the loops around a node, by node of a ``graph``.

    Args:
        graph: of an operation.
        coverage: what was checked of it.
    """
    places = {node: block[0].address for node, block in coverage.instructions.items()}
    following: dict[int, set[int]] = {}
    for edge in graph.edges:
        if edge.name in coverage.taken and coverage.instructions[edge.source][-1].control is not Control.INDIRECT:
            following.setdefault(places[edge.source], set()).add(places[edge.target])
    behind = {place: set(_behind(place, following)) for place in places.values()}
    blocks: dict[int, list[Instruction]] = {}
    for node, block in coverage.instructions.items():
        blocks.setdefault(places[node], []).extend(block)
    found: dict[int, frozenset[str]] = {}
    for place in blocks:
        loop = {one for one in behind[place] if place in behind[one]}
        found[place] = frozenset(_stepped([each for one in loop for each in blocks[one]]))
    return {node: found[place] for node, place in places.items()}


def _behind(place: int, following: Mapping[int, Iterable[int]]) -> Iterable[int]:
    """The blocks that come behind one; itself only in a loop."""
    names = reached(map(str, following.get(place, ())), lambda one: map(str, following.get(int(one), ())))
    return map(int, names)


def _stepped(instructions: Iterable[Instruction]) -> Iterator[str]:
    written: dict[str, list[bool]] = {}
    for one in instructions:
        for register in one.writes | one.loaded:
            written.setdefault(register, []).append(_is_step(one, register))
    return (register for register, steps in written.items() if all(steps))


def _is_step(instruction: Instruction, register: str) -> bool:
    """Whether an instruction adds a constant other than 0 to a register, and does nothing else to it."""
    if may_be_skipped(instruction) or register in instruction.loaded:
        return False
    if instruction.accesses:
        access, *others = instruction.accesses
        if others or access.count > 1 or access.index is not None or register != access.base:
            return False
        behind = instruction.text.partition("], ")[2].removeprefix("#")
        return bool(_STEP.fullmatch(behind) and int(behind, 0)) if behind else access.displacement != 0
    found = computation(instruction, register)
    if found is None or found.bits or found.name not in {"add", "addi", "sub"} or len(found.operands) != 2:
        return False
    own, by = found.operands
    return own == register and _STEP.fullmatch(by) is not None and int(by, 0) != 0
