"""Which p-code operations somebody needs: an instruction's flags are seldom read, and its temporaries only by itself.

Most instructions compute the carry, the overflow and more, which the next one computes anew. What is computed into a
flag or a temporary that nobody reads before it is written again is not computed, and where a block ends nothing is held
of the flags that nobody reads behind it.

Words: liveness, P-code (docs/explanation/glossary.md).

*Soundness:* liveness of bytes, backwards over all edges of the graph: an operation is left out if it has no effect but
its output, and each byte of the output is written again on each way before a needed operation reads it. Whoever
returns, calls what is not expanded, or goes where no edge leads may read every flag. Flags that are dead are no part of
a state: what `state.State.read` says of them there is read by needless operations only.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple
from weakref import WeakKeyDictionary

from wcet_probe.analyzer.domains.lattice import Bits
from wcet_probe.analyzer.graph.fixpoint import least
from wcet_probe.analyzer.graph.flow_order import Arrow, FlowOrder
from wcet_probe.analyzer.graph.supergraph import EXIT, Supergraph
from wcet_probe.analyzer.pcode.lift import Lifter
from wcet_probe.analyzer.pcode.operations import LiftedInstruction, PcodeOp, Varnode
from wcet_probe.analyzer.pcode.semantics import is_operation, signed
from wcet_probe.analyzer.values.symbolic.locations import Location
from wcet_probe.identity import Same

_BRANCHES = frozenset({"BRANCH", "CBRANCH"})
_LEAVING = frozenset({"BRANCHIND", "RETURN", "TRAP"})
_HELD = frozenset({"const", "register", "unique"})
_CORES = 16
_Flags = tuple[Mapping[int, int], tuple[tuple[Location, int], ...]]
_found: WeakKeyDictionary[Lifter, _Liveness] = WeakKeyDictionary()


class Needed(NamedTuple):
    """What is needed of a block.

    Attributes:
        operations: of each instruction, the numbers of the operations that are.
        dead: the flags that nobody reads behind the block.
    """

    operations: tuple[tuple[int, ...], ...]
    dead: tuple[Location, ...]


def needed_operations(graph: Supergraph, lifter: Lifter) -> Mapping[int, Needed]:
    """What is needed of the block of each point.

    *Soundness:* as said of the module.
    """
    return _liveness(lifter).needed(graph)


def needed_of_block(instructions: tuple[LiftedInstruction, ...], lifter: Lifter) -> Needed:
    """What is needed of one block where every flag may be read behind it.

    *Soundness:* as said of the module.
    """
    return _liveness(lifter).of_block(instructions)


def _liveness(lifter: Lifter) -> _Liveness:
    known = _found.get(lifter)
    if known is None:
        known = _found[lifter] = _Liveness(lifter)
    return known


class _Liveness:
    """Sets of live flags, as bits; what is told of an instruction is told once for all graphs of its image."""

    def __init__(self, lifter: Lifter) -> None:
        self._bits, self._flags = _flags(Same(lifter.registers), lifter.float_status)
        self._every = (1 << len(self._bits)) - 1
        self._before: dict[tuple[Same[tuple[PcodeOp, ...]], int], tuple[int, tuple[int, ...]]] = {}
        self._blocks: dict[tuple[int, int, int], tuple[tuple[LiftedInstruction, ...], int, Needed]] = {}
        self._dead: dict[int, tuple[Location, ...]] = {}

    def needed(self, graph: Supergraph) -> Mapping[int, Needed]:
        """What is needed of the block of each point of ``graph``."""
        points, successors = graph.points, graph.successors()
        own = dict.fromkeys(range(len(points)), 0)
        for index in own:
            if not successors[index] or any(e.target == EXIT or graph.is_summary(e) for e in successors[index]):
                own[index] = self._every
        back = dict.fromkeys(Arrow(edge.target, edge.source) for edge in graph.edges if edge.target != EXIT)
        order = FlowOrder((EXIT, *own), (*(Arrow(EXIT, index) for index in own), *back), EXIT)

        def before(index: int, live: int) -> int:
            return live if index == EXIT else self._block(points[index].block.instructions, live)[0]

        def along(edge: Arrow, live: int) -> int:
            return own[edge.target] if edge.source == EXIT else live

        behind = least(order, Bits(len(self._bits)), {EXIT: 0}, before, along)
        return {index: self._block(points[index].block.instructions, behind[index])[1] for index in own}

    def of_block(self, instructions: tuple[LiftedInstruction, ...]) -> Needed:
        """What is needed of a block behind which every flag is live."""
        return self._block(instructions, self._every)[1]

    def _block(self, instructions: tuple[LiftedInstruction, ...], live: int) -> tuple[int, Needed]:
        """The flags that are live before a block where ``live`` are behind it, and what is needed of it."""
        key = instructions[0].address, len(instructions), live
        known = self._blocks.get(key)
        if known is None or known[0] is not instructions:
            known = self._blocks[key] = (instructions, *self._followed_back(instructions, live))
        return known[1:]

    def _followed_back(self, instructions: Sequence[LiftedInstruction], live: int) -> tuple[int, Needed]:
        dead = self._dead.get(live)
        if dead is None:
            dead = self._dead[live] = tuple(place for place, bits in self._flags if not bits & live)
        found = []
        for instruction in reversed(instructions):
            live, operations = self._before_instruction(instruction, live)
            found.append(operations)
        return live, Needed(tuple(reversed(found)), dead)

    def _before_instruction(self, instruction: LiftedInstruction, live: int) -> tuple[int, tuple[int, ...]]:
        """The flags that are live before ``instruction`` where ``live`` are behind it, and its needed operations."""
        key = Same(instruction.ops), live
        found = self._before.get(key)
        if found is None:
            found = self._before[key] = self._followed(instruction.ops, live)
        return found

    def _followed(self, ops: Sequence[PcodeOp], live: int) -> tuple[int, tuple[int, ...]]:
        temporaries = dict[int, int]()
        before = [live] * (len(ops) + 1)
        needed = []
        for index in range(len(ops) - 1, -1, -1):
            op, behind = ops[index], before[index + 1]
            if op.opcode in _BRANCHES:
                target = _within(op, index)
                if target is not None and not index < target <= len(ops):
                    return self._every, tuple(range(len(ops)))
                there = live if target is None else before[target]
                behind = there if op.opcode == "BRANCH" else behind | there
            elif op.opcode in _LEAVING:
                behind = live
            written = self._mask(op.output, temporaries)
            if _is_pure(op) and written is not None and not written & behind:
                before[index] = behind
                continue
            needed.append(index)
            behind &= ~(written or 0)
            for varnode in op.inputs:
                behind |= self._read(varnode, temporaries)
            before[index] = behind
        return before[0] & self._every, tuple(reversed(needed))

    def _bit(self, space: str, at: int, temporaries: dict[int, int]) -> int:
        """The bit of a byte; of registers that are no flags none."""
        if space == "register":
            return self._bits.get(at, 0)
        return temporaries.setdefault(at, self._every + 1 << len(temporaries))

    def _mask(self, varnode: Varnode | None, temporaries: dict[int, int]) -> int | None:
        """The bytes of ``varnode`` if all of them are of flags or temporaries, else None."""
        if varnode is None or varnode.space not in {"register", "unique"}:
            return None
        found = 0
        for at in range(varnode.offset, varnode.offset + varnode.size_bytes):
            bit = self._bit(varnode.space, at, temporaries)
            if not bit:
                return None
            found |= bit
        return found

    def _read(self, varnode: Varnode, temporaries: dict[int, int]) -> int:
        if varnode.space not in {"register", "unique"}:
            return 0
        found = 0
        for at in range(varnode.offset, varnode.offset + varnode.size_bytes):
            found |= self._bit(varnode.space, at, temporaries)
        return found


def _within(op: PcodeOp, index: int) -> int | None:
    """The operation of its instruction that a branch goes to; None where it leaves the instruction."""
    target = op.inputs[0]
    return index + signed(8 * target.size_bytes, target.offset) if target.space == "const" else None


def _is_pure(op: PcodeOp) -> bool:
    """Whether ``op`` has no effect but its output."""
    if op.output is None or op.opcode in _BRANCHES or any(one.space not in _HELD for one in op.inputs):
        return False
    return is_operation(op.user_op or op.opcode)


def flag_bytes(lifter: Lifter) -> frozenset[int]:
    """The offsets of registers of one byte that are no part of a wider one, but for one that is made of such."""
    return frozenset(_flags(Same(lifter.registers), lifter.float_status)[0])


@lru_cache(_CORES)
def _flags(registers: Same[Mapping[str, Varnode]], float_status: frozenset[int]) -> _Flags:
    """The bits of bytes of flags, and those of each register that is made of such; found once for a language."""
    bits = {at: 1 << number for number, at in enumerate(sorted(_flag_bytes(registers.value.values(), float_status)))}
    places = {Location("register", one.offset, one.size_bytes) for one in registers.value.values()}
    return bits, tuple(
        (place, sum(bits[at] for at in range(place.offset, place.offset + place.size_bytes)))
        for place in sorted(places)
        if all(at in bits for at in range(place.offset, place.offset + place.size_bytes))
    )


def _flag_bytes(registers: Collection[Varnode], float_status: frozenset[int]) -> frozenset[int]:
    own = {one.offset for one in registers if one.size_bytes == 1} - float_status
    while True:
        wider = [set(range(one.offset, one.offset + one.size_bytes)) for one in registers if one.size_bytes > 1]
        parts = set[int]().union(*(each & own for each in wider if not each <= own))
        if not parts:
            return frozenset(own)
        own -= parts
