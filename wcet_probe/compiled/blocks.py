"""Which instructions begin a block of translated code, where control may come back to, and where a run may pause."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

from wcet_probe.analyzer.pcode.operations import LiftedInstruction
from wcet_probe.model.image import Image

_DIRECT = frozenset({"BRANCH", "CBRANCH", "CALL"})
_MOST_INSTRUCTIONS = 600
_MOST_BETWEEN_PAUSES = 1 << 17
"""``WP_SLACK`` of the core: so many instructions before its end a budget is the engine's."""
_INDIRECT = frozenset({"CALLIND", "BRANCHIND", "RETURN"})


@dataclass(frozen=True, slots=True)
class Block:
    """Instructions that follow each other; control comes in at the first only, and goes out behind the last."""

    number: int
    instructions: tuple[LiftedInstruction, ...]

    @property
    def address(self) -> int:
        """Of the first instruction."""
        return self.instructions[0].address

    @property
    def end_address(self) -> int:
        """Behind the last instruction."""
        return self.instructions[-1].address + self.instructions[-1].size_bytes


@dataclass(frozen=True, slots=True)
class Flow:
    """The blocks of an image.

    Attributes:
        blocks: in order of addresses.
        by_address: each by the address of its first instruction.
        dispatched: where control may come to in another way than by a branch that names the address.
        pauses: where a run looks whether it is to pause: each cycle has one.
        returns: of each function, by its first address: where its callers go on.
        functions: first addresses of functions, in order.
    """

    blocks: tuple[Block, ...]
    by_address: Mapping[int, Block]
    dispatched: frozenset[int]
    pauses: frozenset[int]
    returns: Mapping[int, tuple[int, ...]]
    functions: tuple[int, ...]

    def returns_of(self, address: int) -> tuple[int, ...]:
        """Where the function that holds ``address`` may return to, as far as its calls name it."""
        return self.returns.get(self.function_at(address), ())

    def function_at(self, address: int) -> int:
        """First address of the function that holds ``address``; 0: it lies before all."""
        place = bisect_right(self.functions, address) - 1
        return self.functions[place] if place >= 0 else 0


@dataclass(slots=True)
class _Found:
    """What the branches of an image say."""

    entries: set[int]
    leaders: set[int]
    pauses: set[int]
    sites: dict[int, set[int]] = field(default_factory=dict)
    back: set[int] = field(default_factory=set)
    has_jump_table: bool = False

    def direct(self, opcode: str, one: LiftedInstruction, target: int) -> None:
        """A branch or call of ``one`` to ``target``."""
        following = one.address + one.size_bytes
        if opcode == "CBRANCH" and target == following:
            return  # the guard of a predicated instruction, which ends no block
        self.leaders |= {target, following}
        if opcode == "CALL":
            self.sites.setdefault(target, set()).add(following)
            self.back.add(following)
            self.entries.add(target)
        if target <= one.address or opcode == "CALL":
            self.pauses.add(target)

    def indirect(self, opcode: str, one: LiftedInstruction) -> None:
        """A branch, call or return of ``one`` to what a register says."""
        following = one.address + one.size_bytes
        self.leaders.add(following)
        if opcode == "CALLIND":
            self.back.add(following)
        self.has_jump_table |= opcode == "BRANCHIND"


def flow(image: Image, instructions: Sequence[LiftedInstruction]) -> Flow:
    """The blocks of ``instructions``, which are those of ``image`` that can be translated."""
    entries = {symbol.address for symbol in image.functions}
    found = _Found(entries, set(entries), set(entries))
    for one in instructions:
        for op in one.ops:
            if op.opcode in _DIRECT and op.inputs[0].space != "const":
                found.direct(op.opcode, one, op.inputs[0].offset)
            elif op.opcode in _INDIRECT:
                found.indirect(op.opcode, one)
    groups: list[list[LiftedInstruction]] = []
    for one in instructions:
        last = groups[-1][-1] if groups else None
        if last is None or one.address in found.leaders or last.address + last.size_bytes != one.address:
            groups.append([])
        groups[-1].append(one)
    blocks = tuple(Block(number, tuple(group)) for number, group in enumerate(groups))
    known = {block.address: block for block in blocks}
    every = set(known)
    pauses_everywhere = found.has_jump_table or len(instructions) > _MOST_BETWEEN_PAUSES
    result = Flow(
        blocks=blocks,
        by_address=known,
        dispatched=frozenset(every if pauses_everywhere else (found.entries | found.back | found.pauses) & every),
        pauses=frozenset(every if pauses_everywhere else found.pauses & every),
        returns={entry: tuple(sorted(back_to & every)) for entry, back_to in found.sites.items()},
        functions=tuple(sorted(found.entries)),
    )
    pauses = result.pauses | (_on_cycles_of_returns(result) & found.back)
    return replace(result, pauses=pauses, dispatched=result.dispatched | pauses)


def _on_cycles_of_returns(flow: Flow) -> frozenset[int]:
    """Blocks that may run again without a pause: a function returns to where it, or who it calls, called it."""
    following: dict[int, set[int]] = {}
    for block in flow.blocks:
        returns = any(op.opcode == "RETURN" for op in block.instructions[-1].ops)
        targets = {*direct_targets(block), block.end_address, *(flow.returns_of(block.address) if returns else ())}
        following[block.address] = (targets & flow.by_address.keys()) - flow.pauses
    before: dict[int, set[int]] = {address: set() for address in following}
    for address, targets in following.items():
        for target in targets:
            before[target].add(address)
    left = set(following)
    for edges, order in ((following, sorted(left, reverse=True)), (before, sorted(left))):
        while gone := len(left):
            for address in order:
                if edges[address].isdisjoint(left):
                    left.discard(address)
            if len(left) == gone:
                break
    return frozenset(left)


@dataclass(frozen=True, slots=True)
class Unit:
    """Blocks that are compiled together, and whether a replay runs any of them."""

    blocks: tuple[Block, ...]
    is_replayed: bool


def units(flow: Flow, harness: int | None) -> tuple[Unit, ...]:
    """The blocks in parts that are compiled apart: what the replay loop at ``harness`` calls, and all else.

    A compiler takes more than twice as long for twice the code, so that what is called is cut again between functions
    where it is long. Control that goes from part to part costs as much as ten instructions.
    """
    if harness is None:
        return (Unit(flow.blocks, is_replayed=True),)
    called: dict[int, set[int]] = {}
    for block in flow.blocks:
        for target in direct_targets(block):
            called.setdefault(flow.function_at(block.address), set()).add(flow.function_at(target))
    reached, waiting = set[int](), [flow.function_at(harness)]
    while waiting:
        function = waiting.pop()
        if function not in reached:
            reached.add(function)
            waiting.extend(called.get(function, ()))
    first = tuple(block for block in flow.blocks if flow.function_at(block.address) in reached)
    others = tuple(block for block in flow.blocks if flow.function_at(block.address) not in reached)
    is_closed = not any(op.opcode == "CALLIND" for block in first for one in block.instructions for op in one.ops)
    found = [Unit(part, is_replayed=True) for part in _cut(flow, first)]
    return (*found, *([Unit(others, is_replayed=not is_closed)] if others else ()))


def _cut(flow: Flow, blocks: Sequence[Block]) -> Iterator[tuple[Block, ...]]:
    """The ``blocks`` in parts of whole functions, in order, with up to so many instructions where one has not more."""
    part: list[Block] = []
    for _, group in groupby(blocks, lambda block: flow.function_at(block.address)):
        function = list(group)
        if part and sum(len(block.instructions) for block in (*part, *function)) > _MOST_INSTRUCTIONS:
            yield tuple(part)
            part = []
        part += function
    yield tuple(part)


def direct_targets(block: Block) -> Iterator[int]:
    """Where branches and calls of ``block`` go that name their target."""
    for one in block.instructions:
        for op in one.ops:
            if op.opcode in _DIRECT and op.inputs[0].space != "const":
                yield op.inputs[0].offset
