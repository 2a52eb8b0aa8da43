# SPDX-License-Identifier: 0BSD
"""Registers that a loop steps through a table: what they address is a computed place.

A register is stepped in a loop if all that the loop writes to it are sums of itself and a constant, all of one sign,
and no way around the loop is without one. So the place that it addresses is another one in each round, which is asked
of the code alone: loops are those of instructions, and not of the copies that a graph has of them. Behind a call they
go on where it returns to, so that two calls of a function make no loop; what the function writes is written in the
loop.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

from wcet_probe.certificate.kernel.coverage import Coverage
from wcet_probe.certificate.kernel.records import Graph
from wcet_probe.certificate.machines.operands import NUMBER as DIGITS
from wcet_probe.certificate.machines.operands import computation, may_be_skipped
from wcet_probe.certificate.values.numbers import signed
from wcet_probe.model.instruction import Control, Instruction

_STEP = re.compile(DIGITS)


class _Flow(NamedTuple):
    """How blocks of instructions, which are called by their addresses, lead to each other.

    Attributes:
        blocks: their instructions, of all copies.
        following: what is executed next in the same function, or in one that it jumps to.
        called: functions that are called from there.
    """

    blocks: Mapping[int, list[Instruction]]
    following: Mapping[int, set[int]]
    called: Mapping[int, set[int]]


def stepped_registers(graph: Graph, coverage: Coverage) -> Mapping[str, frozenset[str]]:
    """The registers that are stepped in the loops around a node, by node of a ``graph``.

    Args:
        graph: of an operation.
        coverage: what was checked of it.
    """
    flow = _flow(graph, coverage)
    behind = {place: _behind(flow.following[place], flow.following) for place in flow.blocks}
    found: dict[int, frozenset[str]] = {}
    for place in flow.blocks:
        loop = {one for one in behind[place] if place in behind[one]}
        found[place] = frozenset(_stepped(flow, place, loop))
    return {node: found[block[0].address] for node, block in coverage.instructions.items()}


def _flow(graph: Graph, coverage: Coverage) -> _Flow:
    blocks: dict[int, list[Instruction]] = {}
    for block in coverage.instructions.values():
        blocks.setdefault(block[0].address, []).extend(block)
    following: dict[int, set[int]] = {place: set() for place in blocks}
    called: dict[int, set[int]] = {place: set() for place in blocks}
    edges = [one for one in graph.edges if one.name in coverage.taken]
    ends = {node: block[-1] for node, block in coverage.instructions.items()}
    returned_to = {one.address + one.size_bytes for one in ends.values() if one.control is Control.CALL}
    for edge in edges:
        end, source = ends[edge.source], coverage.instructions[edge.source][0].address
        target = coverage.instructions[edge.target][0].address
        behind = end.address + end.size_bytes
        if end.control is Control.CALL and target != behind:
            called[source].add(target)
            following[source].update({behind} & blocks.keys())
        elif end.control is not Control.INDIRECT or target not in returned_to:
            following[source].add(target)
    return _Flow(blocks, following, called)


def _behind(places: Iterable[int], following: Mapping[int, Iterable[int]], without: Collection[int] = ()) -> set[int]:
    """The blocks that come behind some, these among them, on ways that end at those ``without``."""
    found, waiting = set[int](), list(places)
    while waiting:
        place = waiting.pop()
        if place not in found:
            found.add(place)
            waiting += following[place] if place not in without else ()
    return found


def _stepped(flow: _Flow, place: int, loop: set[int]) -> Iterator[str]:
    """The registers that are stepped in a ``loop`` around ``place``."""
    both = {one: flow.following[one] | flow.called[one] for one in flow.blocks}
    executed = loop | _behind((target for one in loop for target in flow.called[one]), both)
    written: dict[str, list[int]] = {}
    for instruction in (each for one in executed for each in flow.blocks[one]):
        for register in instruction.writes | instruction.loaded:
            written.setdefault(register, []).append(_step(instruction, register))
    for register, steps in written.items():
        stepping = {one for one in loop if any(register in each.writes | each.loaded for each in flow.blocks[one])}
        around = set() if place in stepping else _behind(flow.following[place], flow.following, stepping)
        if place not in around and (all(one > 0 for one in steps) or all(one < 0 for one in steps)):
            yield register


def _step(instruction: Instruction, register: str) -> int:
    """The constant that an instruction adds to a register, signed, if it does nothing else to it; else 0."""
    if may_be_skipped(instruction) or register in instruction.loaded:
        return 0
    if instruction.accesses:
        access, *others = instruction.accesses
        if others or access.count > 1 or access.index is not None or register != access.base:
            return 0
        behind = instruction.text.partition("], ")[2].removeprefix("#")
        return (signed(int(behind, 0)) if _STEP.fullmatch(behind) else 0) if behind else signed(access.displacement)
    found = computation(instruction, register)
    if found is None or found.bits or found.name not in {"add", "addi", "sub"} or len(found.operands) != 2:
        return 0
    own, by = found.operands
    is_step = own == register and _STEP.fullmatch(by) is not None
    return signed(int(by, 0)) * (-1 if found.name == "sub" else 1) if is_step else 0
