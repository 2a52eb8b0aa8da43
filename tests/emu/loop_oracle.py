"""Loops of a guest's functions, and how often a path iterates them, both from the definitions and without the emulator.

A natural loop is found on single instructions: all that reaches the source of a back edge without passing its target,
which dominates it. Iterations are counted with the stack of calls under way: a header's execution enters the loop where
the instruction before it in the same activation lies outside.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tests.support import Guest
from wcet_probe.model.image import Symbol
from wcet_probe.model.instruction import Control, Instruction
from wcet_probe.model.target import MemoryRange
from wcet_probe.model.watched_loop import LoopCount, WatchedLoop

Graph = Mapping[int, set[int]]


def loops_of(guest: Guest) -> tuple[WatchedLoop, ...]:
    """The natural loops of all functions, named after function and header."""
    return tuple(loop for function in guest.image.functions for loop in _loops_in(guest, function))


def counts_of_paths(
    guest: Guest, paths: Iterable[Sequence[int]], loops: Sequence[WatchedLoop]
) -> tuple[LoopCount, ...]:
    """What the calls that executed ``paths`` must count of ``loops``."""
    runs: dict[str, list[int]] = {loop.name: [] for loop in loops}
    heads: dict[int, list[WatchedLoop]] = {}
    for loop in loops:
        heads.setdefault(loop.header_address, []).append(loop)
    for path in paths:
        for address, before in _with_predecessor_in_activation(guest, path):
            for loop in heads.get(address, ()):
                if before is None or not any(before in part for part in loop.body):
                    runs[loop.name].append(0)
                runs[loop.name][-1] += 1
    return tuple(LoopCount(name, max(run, default=0), sum(run), len(run)) for name, run in runs.items())


def _with_predecessor_in_activation(guest: Guest, path: Sequence[int]) -> Iterable[tuple[int, int | None]]:
    by_address = {i.address: i for i in guest.instructions}
    activations: list[tuple[int | None, int | None]] = []
    return_address: int | None = None
    before: int | None = None
    last: Instruction | None = None
    for address in path:
        behind = last.address + last.size_bytes if last else None
        if last and last.control is Control.CALL and address != behind:
            activations.append((return_address, before))
            return_address, before = behind, None
        elif activations and address == return_address:
            return_address, before = activations.pop()
        yield address, before
        before, last = address, by_address[address]


def _loops_in(guest: Guest, function: Symbol) -> Iterable[WatchedLoop]:
    code = MemoryRange(function.address, function.size_bytes)
    inside = {i.address: i for i in guest.instructions if i.address in code}
    forward = _reachable(inside, function.address)
    backward: dict[int, set[int]] = {address: set() for address in forward}
    for source, targets in forward.items():
        for target in targets:
            backward[target].add(source)
    dominators = _dominators(forward, backward, function.address)
    for header in sorted(forward):
        latches = {source for source in backward[header] if header in dominators[source]}
        if latches:
            body = {header}
            work = list(latches)
            while work:
                node = work.pop()
                if node not in body:
                    body.add(node)
                    work.extend(backward[node])
            yield WatchedLoop(
                f"{function.name}+{header - function.address:#x}",
                header,
                tuple(sorted(backward[header] - body)),
                tuple(MemoryRange(address, inside[address].size_bytes) for address in sorted(body)),
            )


def _reachable(inside: Mapping[int, Instruction], entry: int) -> dict[int, set[int]]:
    """Successors of each instruction that can be reached; calls return, and indirect jumps leave the function."""
    forward: dict[int, set[int]] = {}
    work = [entry]
    while work:
        address = work.pop()
        if address in forward:
            continue
        instruction = inside[address]
        goes_on = instruction.control not in {Control.BRANCH, Control.INDIRECT}
        goes_on |= instruction.in_it_block or instruction.condition != 14
        following = {address + instruction.size_bytes} if goes_on else set()
        if instruction.control in {Control.BRANCH, Control.CONDITIONAL_BRANCH}:
            following.add(instruction.branch_target or 0)
        forward[address] = following & inside.keys()
        work.extend(forward[address])
    return forward


def _dominators(forward: Graph, backward: Graph, entry: int) -> dict[int, set[int]]:
    dominators = {address: set(forward) for address in forward} | {entry: {entry}}
    changed = True
    while changed:
        changed = False
        for address in sorted(forward.keys() - {entry}):
            found = {address}.union(set.intersection(*(dominators[source] for source in backward[address])))
            changed |= found != dominators[address]
            dominators[address] = found
    return dominators
