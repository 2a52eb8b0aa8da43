"""Status flags that an exit of translated code hands over: those that code may still read.

Flags are computed beside nearly each instruction of some cores and read beside few. A compiler drops what nobody reads,
but each access is an exit to the engine, which takes all registers along. So an exit hands over zero for a flag that
every way from there writes before it reads it: by live variable analysis (Aho, Lam, Sethi, Ullman, Compilers, §9.2.5).

*Soundness:* what is not known keeps all flags: returns, indirect branches and calls, instructions that are not
translated. An instruction that skips a part of itself, or all, writes no flag for certain.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from wcet_probe.analyzer.pcode.operations import LiftedInstruction, Varnode
from wcet_probe.compiled.blocks import Block, Flow, direct_targets

_LEAVES = frozenset({"BRANCH", "CALL", "RETURN", "BRANCHIND", "CALLIND"})
_INDIRECT = frozenset({"RETURN", "BRANCHIND", "CALLIND"})


@dataclass(frozen=True, slots=True)
class Registers:
    """How the variables of translated code hold the guest's registers.

    Attributes:
        container: of a register.
        kept: containers that an exit hands over; the others are temporaries, which no instruction leaves to the next.
        flags: those of ``kept`` that are status flags, each written as a whole.
    """

    container: Callable[[Varnode], int]
    kept: frozenset[int]
    flags: frozenset[int]


def live_flags(flow: Flow, registers: Registers) -> Mapping[int, frozenset[int]]:
    """The flags of which somebody may read what they hold before each instruction of ``flow``, by its address."""
    at_entry = {block.address: frozenset[int]() for block in flow.blocks}
    live: dict[int, frozenset[int]] = {}
    before = None
    while before != at_entry:
        before = dict(at_entry)
        for block in reversed(flow.blocks):
            now = _behind(block, at_entry, registers.flags)
            for one in reversed(block.instructions):
                live[one.address] = now = _before(one, now, registers)
            at_entry[block.address] = now
    return live


def _behind(block: Block, at_entry: Mapping[int, frozenset[int]], flags: frozenset[int]) -> frozenset[int]:
    """What is live behind a block."""
    last = block.instructions[-1]
    if any(op.opcode in _INDIRECT for op in last.ops):
        return flags
    targets = [*direct_targets(block)]
    if not last.ops or last.ops[-1].opcode not in _LEAVES or _skips(last):
        targets.append(block.end_address)
    return frozenset[int]().union(*(at_entry.get(target, flags) for target in targets))


def _before(one: LiftedInstruction, behind: frozenset[int], registers: Registers) -> frozenset[int]:
    """The flags that are live before an instruction, of those ``behind`` it.

    An operation reads nothing whose result is a flag or a temporary that nobody reads: SLEIGH copies the carry beside
    each operand that might be shifted.
    """
    skips, live, temporaries = _skips(one), set(behind), set[tuple[str, int]]()
    for op in reversed(one.ops):
        written = op.output
        if written is not None and written.space == "register" and registers.container(written) in registers.flags:
            low = registers.container(written)
            if low not in live:
                continue
            if not skips:
                live.discard(low)
        elif written is not None and not _is_kept(written, registers) and temporaries.isdisjoint(_bytes(written)):
            continue
        for varnode in op.inputs:
            if varnode.space == "register" and registers.container(varnode) in registers.flags:
                live.add(registers.container(varnode))
            elif not _is_kept(varnode, registers):
                temporaries |= _bytes(varnode)
    return frozenset(live)


def _is_kept(varnode: Varnode, registers: Registers) -> bool:
    """Whether ``varnode`` lasts longer than its instruction."""
    if varnode.space == "register":
        return registers.container(varnode) in registers.kept
    return varnode.space != "unique"


def _bytes(varnode: Varnode) -> set[tuple[str, int]]:
    return {(varnode.space, varnode.offset + byte) for byte in range(varnode.size_bytes)}


def _skips(one: LiftedInstruction) -> bool:
    """Whether a part of the instruction, or all of it, may be skipped."""
    return any(op.opcode == "CBRANCH" or (op.opcode == "BRANCH" and op.inputs[0].space == "const") for op in one.ops)
