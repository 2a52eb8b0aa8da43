"""The natural loops of an image's functions, found the plainest way, for tests of what is said about loops."""

from __future__ import annotations

from bisect import bisect_left
from functools import cache

from tests.support import TARGETS, images_dir
from wcet_probe.analyzer.facts.source_match import LoopSite
from wcet_probe.build.program import Program, load_program
from wcet_probe.build.toolchain import PACKAGED
from wcet_probe.catalog.lookup import load_allocator, load_target
from wcet_probe.model.image import Image, Symbol
from wcet_probe.model.instruction import Control, Instruction

__all__ = ["TARGETS", "program", "sites_of"]


@cache
def program(allocator: str, target: str) -> Program:
    return load_program(load_allocator(allocator), load_target(target), PACKAGED, images_dir())


def sites_of(image: Image, instructions: tuple[Instruction, ...], functions: frozenset[str] | None = None):
    """The loops of all functions, or of those named."""
    addresses = [instruction.address for instruction in instructions]
    sites = []
    for function in image.functions:
        if functions is None or function.name in functions:
            first = bisect_left(addresses, function.address)
            last = bisect_left(addresses, function.address + function.size_bytes)
            sites += _sites(image, function, {each.address: each for each in instructions[first:last]})
    return sites


def _sites(image: Image, function: Symbol, code: dict[int, Instruction]) -> list[LoopSite]:
    """Loops by back edges: to a node that dominates the jump; every instruction is a node of its own."""
    edges = {address: _successors(code[address], code) for address in code}
    before: dict[int, set[int]] = {address: set() for address in code}
    for address, following in edges.items():
        for successor in following:
            before[successor].add(address)
    dominators = _dominators(function.address, edges, before)
    bodies: dict[int, set[int]] = {}
    latches: dict[int, set[int]] = {}
    for address in dominators:
        for header in edges[address] & dominators[address]:
            body, todo = {header}, [address]
            while todo:
                node = todo.pop()
                if node not in body:
                    body.add(node)
                    todo += [each for each in before[node] if each in dominators]
            bodies.setdefault(header, set()).update(body)
            latches.setdefault(header, set()).add(address)
    sites = []
    for header, body in bodies.items():
        outers = [each for each in bodies if each != header and header in bodies[each]]
        inner = set().union(*(bodies[each] for each in bodies if each != header and each in body))
        sites.append(
            LoopSite(
                function=function.name,
                header_address=header,
                offset=header - function.address,
                latch_lines=_lines(image, latches[header]),
                own_lines=_lines(image, body - inner),
                outer=min(outers, key=lambda each: len(bodies[each]), default=None),
            )
        )
    return sites


def _successors(instruction: Instruction, code: dict[int, Instruction]) -> set[int]:
    following = instruction.address + instruction.size_bytes
    conditional = instruction.in_it_block or instruction.condition != 14
    ends = instruction.control in (Control.BRANCH, Control.INDIRECT) and not conditional
    found = set() if ends else {following}
    if instruction.control in (Control.BRANCH, Control.CONDITIONAL_BRANCH):
        found.add(instruction.branch_target)
    return found & code.keys()


def _dominators(entry: int, edges: dict[int, set[int]], before: dict[int, set[int]]) -> dict[int, set[int]]:
    order, seen, todo = [], {entry}, [entry]
    while todo:
        node = todo.pop()
        order.append(node)
        fresh = edges[node] - seen
        seen |= fresh
        todo += sorted(fresh)
    found = {node: set(order) for node in order} | {entry: {entry}}
    changed = True
    while changed:
        changed = False
        for node in order[1:]:
            reached = [found[each] for each in before[node] if each in found]
            wider = {node} | set.intersection(*reached)
            changed |= wider != found[node]
            found[node] = wider
    return found


def _lines(image: Image, addresses: set[int]) -> tuple[tuple[str, int], ...]:
    return tuple(line for address in sorted(addresses) if (line := image.lines.find(address)) is not None)
