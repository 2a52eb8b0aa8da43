"""Control-flow graphs from machine code: basic blocks of a function, followed from its entry, through p-code.

Control is read off the p-code of each instruction, so the same code serves ARM, Thumb-2 with IT blocks, and PowerPC.
A predicated instruction that neither branches nor returns does not end its block: what it does or does not do is the
value analysis's business.

Words: basic block, control-flow reconstruction, predicated instruction (docs/explanation/glossary.md).

*Soundness:* every successor that the p-code of an instruction allows is an edge; a target that cannot be named is an
error, never left out. What is assumed of the lifter stands in `analyzer.lift`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from weakref import WeakKeyDictionary

from wcet_probe.analyzer.graph.inline_tables import resuming_end
from wcet_probe.analyzer.pcode.lift import Lifter
from wcet_probe.analyzer.pcode.operations import LiftedInstruction, PcodeOp, Varnode
from wcet_probe.analyzer.pcode.semantics import signed
from wcet_probe.errors import AnalysisError, DecodeError
from wcet_probe.model.image import Image, Symbol

IndirectTargets = Mapping[int, tuple[int, ...]]
"""Targets of indirect branches and calls by the address of the instruction, as far as they are known."""

_ENDS = frozenset({"BRANCH", "CALL", "CALLIND", "BRANCHIND", "RETURN", "TRAP"})
_CONTROL = _ENDS | {"CBRANCH"}
"""Operations that the next one in order does not follow."""


@dataclass(frozen=True, slots=True)
class Outflow:
    """How control may leave an instruction.

    Attributes:
        falls: to the next instruction.
        jumps: targets of direct jumps, in the order of the p-code.
        calls: targets of direct calls.
        returns: whether it may return from the function.
        indirect_jump, indirect_call: whether it may go where a register says.
        resumes: whether what it calls goes on where what stands behind the call says, see `inline_tables`.
    """

    falls: bool
    jumps: tuple[int, ...] = ()
    calls: tuple[int, ...] = ()
    returns: bool = False
    indirect_jump: bool = False
    indirect_call: bool = False
    resumes: bool = False

    @property
    def goes_on(self) -> bool:
        """Whether the next instruction is all that can follow."""
        return self.falls and not (self.jumps or self.calls or self.returns or self.indirect_jump or self.indirect_call)


@dataclass(frozen=True, slots=True)
class Block:
    """A basic block.

    Attributes:
        address: of its first instruction.
        instructions: in order; only the last one may leave the block elsewhere than to the next instruction.
        falls_to: address of the block behind it, where control gets there by falling through or back from a call.
        falls: whether it may get there without a call.
        jumps: targets of jumps within the function.
        calls: entry addresses of the functions that it calls at its end.
        tail_calls: entry addresses of functions that it jumps to, which return for it.
        returns: whether it may return.
        resumes: where control goes on when what it calls has ended, if what stands behind the call says it; None for
            any other block.
    """

    address: int
    instructions: tuple[LiftedInstruction, ...] = field(repr=False)
    falls_to: int | None = None
    falls: bool = False
    jumps: tuple[int, ...] = ()
    calls: tuple[int, ...] = ()
    tail_calls: tuple[int, ...] = ()
    returns: bool = False
    resumes: tuple[int, ...] | None = None

    @property
    def end_address(self) -> int:
        """First address behind the block."""
        last = self.instructions[-1]
        return last.address + last.size_bytes

    @property
    def last_address(self) -> int:
        """Address of its last instruction."""
        return self.instructions[-1].address


@dataclass(frozen=True, slots=True)
class FunctionGraph:
    """The basic blocks of a function by address; the entry is the block at the symbol's address.

    ``unresolved`` are the addresses of indirect branches and calls whose targets are not known yet, ``dead_ends`` those
    of blocks that are left out because no return can be reached from them, where control would come to them.
    """

    symbol: Symbol
    blocks: Mapping[int, Block]
    unresolved: tuple[int, ...]
    dead_ends: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Returns:
    """What is known of returns.

    Attributes:
        functions: entry addresses of the functions that may return; None where that is not known.
        sites: addresses of indirect jumps that may go to the return address of their function.
        branching: entry addresses of the functions that may come to an indirect branch or call, as long as their
            targets are looked for; empty where all are known.
        popping: entry addresses of the functions that may return in a caller's stead.
        resuming: entry addresses of those that go on as what stands behind their call says.
    """

    functions: Collection[int] | None = None
    sites: Collection[int] = frozenset()
    branching: Collection[int] = frozenset()
    popping: Collection[int] = frozenset()
    resuming: Collection[int] = frozenset()

    def may_return(self, targets: Iterable[int]) -> bool:
        """Whether one of the functions may return."""
        return self.functions is None or any(target in self.functions for target in targets)

    def may_matter(self, target: int) -> bool:
        """Whether what the function at ``target`` comes to is to be followed."""
        return self.may_return((target,)) or self.goes_elsewhere(target)

    def goes_elsewhere(self, target: int) -> bool:
        """Whether a call of ``target`` is to be followed where nothing behind it returns."""
        return target in self.branching or target in self.popping


_NOTHING_KNOWN = Returns()


def is_return(op: PcodeOp, link: Varnode) -> bool:
    """Whether ``op`` returns: SLEIGH calls PowerPC's ``bdzlr`` and its kin jumps through the link register ``link``.

    *Soundness:* the value analysis checks the address that is returned to, however the return is written.
    """
    return op.opcode == "RETURN" or (op.opcode == "BRANCHIND" and op.inputs[0] == link)


_NOWHERE = LiftedInstruction(0, 4, (PcodeOp("TRAP", None, ()),))
FALLING = Outflow(falls=True, jumps=(), calls=(), returns=False, indirect_jump=False, indirect_call=False)
"""Of an instruction that is no branch, call, return or trap."""
_outflows: WeakKeyDictionary[Lifter, dict[int, Outflow]] = WeakKeyDictionary()


def outflow_at(lifter: Lifter, address: int) -> Outflow:
    """How control may leave the instruction at ``address``; each is looked at once.

    Raises:
        DecodeError: there is no instruction.

    *Soundness:* as of `outflow`.
    """
    known = _outflows.setdefault(lifter, {})
    if address not in known:
        instruction = instruction_at(lifter, address)
        is_straight = not any(op.opcode in _CONTROL for op in instruction.ops)
        flow = FALLING if is_straight else outflow(instruction, lifter.registers["lr"])
        resumes = len(flow.calls) == 1 and resuming_end(lifter, flow.calls[0]) is not None
        known[address] = replace(flow, resumes=True) if resumes else flow
    return known[address]


def instruction_at(lifter: Lifter, address: int) -> LiftedInstruction:
    """The instruction at ``address``; where a null pointer leads and no code is, one that traps.

    Raises:
        DecodeError: there is no instruction.

    *Soundness:* who is taken there by an indirect branch does not come back as far as the code tells, and the
    assumption ``call-returns`` names the place. A direct branch there is an error, see `function_graph`.
    """
    return _NOWHERE if not address and lifter.is_without_code(0) else lifter.lift(address)


def outflow(instruction: LiftedInstruction, link: Varnode) -> Outflow:
    """How control may leave ``instruction``: all paths through its p-code are followed.

    *Soundness:* conditions are not looked at; each way of a conditional branch counts.
    """
    following = instruction.address + instruction.size_bytes
    exits: set[str] = set()
    targets: dict[str, dict[int, None]] = {"jump": {}, "call": {}}
    todo, seen = [0], set[int]()
    while todo:
        index = todo.pop()
        if index in seen:
            continue
        seen.add(index)
        if index >= len(instruction.ops):
            exits.add("fall")
            continue
        op = instruction.ops[index]
        if op.opcode not in _ENDS:
            todo.append(index + 1)
        if op.opcode in ("CALLIND", "BRANCHIND", "RETURN"):
            exits.add("RETURN" if is_return(op, link) else op.opcode)
        elif op.opcode == "CALL":
            targets["call"][op.inputs[0].offset] = None
        elif op.opcode in ("BRANCH", "CBRANCH"):
            target = op.inputs[0]
            if target.space == "const":
                todo.append(index + signed(8 * target.size_bytes, target.offset))
            elif target.offset == following:
                exits.add("fall")
            else:
                targets["jump"][target.offset] = None
    return Outflow(
        falls="fall" in exits,
        jumps=tuple(targets["jump"]),
        calls=tuple(targets["call"]),
        returns="RETURN" in exits,
        indirect_jump="BRANCHIND" in exits,
        indirect_call="CALLIND" in exits,
    )


_Told = tuple[frozenset[tuple[int, tuple[int, ...]]], "Returns"]
_graphs: WeakKeyDictionary[Lifter, tuple[_Told, dict[int, FunctionGraph]]] = WeakKeyDictionary()
"""By address of a function its graph, by the last that was told of targets and returns; a lifter is of one image."""


def known_graphs(lifter: Lifter, indirect: IndirectTargets, known: Returns) -> dict[int, FunctionGraph]:
    """The graphs of `function_graph` by address of the function, as far as they were made where as much was known."""
    told = frozenset(indirect.items()), known
    if lifter not in _graphs or _graphs[lifter][0] != told:
        _graphs[lifter] = told, {}
    return _graphs[lifter][1]


def function_graph(
    image: Image, lifter: Lifter, symbol: Symbol, indirect: IndirectTargets, known: Returns = _NOTHING_KNOWN
) -> FunctionGraph:
    """The basic blocks of ``symbol``.

    Args:
        image: the binary.
        lifter: lifter of the image.
        symbol: the function; it starts at its address. Jumps to where no other function starts stay within it.
        indirect: known targets of indirect branches and calls.
        known: which calls return, and which indirect jumps do.

    Raises:
        AnalysisError: an instruction that is not known, or a jump into the middle of another.

    *Soundness:* blocks are those reachable from the entry through all outflows; indirect branches without known targets
    are listed as unresolved, and whoever uses the graph must not leave them so. Blocks from which no return can be
    reached are left out: who uses the graph speaks of calls that return.
    """
    flows = _reachable(image, lifter, symbol, indirect, known)
    leaders = {symbol.address}
    for address, (instruction, flow) in flows.items():
        targets = inside(image, symbol, (*flow.jumps, *_own_targets(flow, indirect.get(address, ()))))
        leaders.update(targets)
        if not flow.goes_on:
            leaders.add(address + instruction.size_bytes)
    addresses = sorted(flows)
    for first, second in pairwise(addresses):
        if first + flows[first][0].size_bytes > second:
            raise _overlapping(image, flows, indirect, first)
    end = resuming_end(lifter, symbol.address)
    blocks = {
        leader: _block(image, leader, leaders, flows, symbol, indirect, known, end)
        for leader in sorted(leaders)
        if leader in flows
    }
    unresolved = tuple(
        address
        for address, (_, flow) in sorted(flows.items())
        if (flow.indirect_jump or flow.indirect_call or flow.resumes)
        and not indirect.get(address)
        and not (flow.indirect_jump and (address in known.sites or address == end))
    )
    open_ends = {
        address
        for address, (_, flow) in flows.items()
        if flow.indirect_jump or flow.resumes or (flow.indirect_call and not comes_back(flow, address, indirect, known))
    }
    return _returning_part(
        FunctionGraph(symbol, blocks, unresolved), known, open_ends if known.branching else set(unresolved)
    )


def _returning_part(graph: FunctionGraph, known: Returns, open_ends: Collection[int]) -> FunctionGraph:
    """``graph`` without the blocks from which neither a return nor one of the branches ``open_ends`` can be reached.

    *Soundness:* of a branch only some targets may be known yet.
    """
    if known.functions is None:
        return graph
    before: dict[int, list[int]] = {address: [] for address in graph.blocks}
    todo = []
    for address, block in graph.blocks.items():
        for target in _successors(block):
            before[target].append(address)
        symbols = block.returns or (block.tail_calls and known.may_return(block.tail_calls))
        enters = any(known.goes_elsewhere(callee) for callee in (*block.calls, *block.tail_calls))
        if symbols or enters or block.last_address in open_ends:
            todo.append(address)
    kept = set(todo)
    while todo:
        new = [address for address in before[todo.pop()] if address not in kept]
        kept.update(new)
        todo += new
    dead = {target for address in kept for target in _successors(graph.blocks[address]) if target not in kept}
    if graph.symbol.address not in kept:
        dead.add(graph.symbol.address)
    dead |= {block.address for a, block in graph.blocks.items() if a in kept and _may_stay_away(block, known)}
    blocks = {address: block for address, block in graph.blocks.items() if address in kept}
    return FunctionGraph(graph.symbol, blocks, graph.unresolved, tuple(sorted(dead)))


def _successors(block: Block) -> tuple[int, ...]:
    following = block.jumps if block.falls_to is None else (*block.jumps, block.falls_to)
    return (*following, *(block.resumes or ()))


def _may_stay_away(block: Block, known: Returns) -> bool:
    """Whether control goes on behind the block, but also to a function that does not return, or into a trap."""
    callees = (*block.calls, *block.tail_calls)
    traps = any(op.opcode == "TRAP" for instruction in block.instructions for op in instruction.ops)
    return traps or any(not known.may_return((callee,)) for callee in callees)


def _astray(image: Image, symbol: Symbol, address: int, sites: Collection[int], error: DecodeError) -> AnalysisError:
    """The error that there is no instruction at ``address``, and which indirect branches of ``sites`` lead there."""
    if not sites:
        return AnalysisError(f"{symbol.name} cannot be analysed at {image.location(address)}: {error}")
    return AnalysisError(
        f"the targets of the indirect branch at {image.location(min(sites))} are known as a range only, which leads to "
        f"{image.location(address)}, where no instruction is: tell the range of what they are computed from by a flow "
        "fact ([[argument]] with min and max), or name them, [[calls]] function = …, offset = …, targets = […].",
        sites=(min(sites),),
    )


_Flows = Mapping[int, tuple[LiftedInstruction, Outflow]]


def _overlapping(image: Image, flows: _Flows, indirect: IndirectTargets, first: int) -> AnalysisError:
    """The error that a branch leads into the middle of the instruction at ``first``, and by which indirect one."""
    inner = range(first + 1, first + flows[first][0].size_bytes)
    sites = [site for site in flows if any(target in inner for target in indirect.get(site, ()))]
    middle = f"into the middle of the instruction at {image.location(first)}"
    if not sites:
        return AnalysisError(f"a branch leads {middle}: only code without overlapping instructions is analysed.")
    return AnalysisError(
        f"the targets of the indirect branch at {image.location(min(sites))} are known as a range only, which leads "
        f"{middle}: where one jump serves several computed gotos, let the compiler make a jump of each (GCC does at "
        "-O2), or write a switch."
    )


def _reachable(
    image: Image, lifter: Lifter, symbol: Symbol, indirect: IndirectTargets, known: Returns
) -> dict[int, tuple[LiftedInstruction, Outflow]]:
    flows: dict[int, tuple[LiftedInstruction, Outflow]] = {}
    todo = [symbol.address]
    while todo:
        address = todo.pop()
        if address in flows:
            continue
        try:
            instruction = instruction_at(lifter, address)
            flow = outflow_at(lifter, address)
            if 0 in (*flow.calls, *flow.jumps) and lifter.is_without_code(0):
                lifter.lift(0)
        except DecodeError as error:
            sites = [site for site in flows if address in indirect.get(site, ())]
            raise _astray(image, symbol, address, sites, error) from error
        flows[address] = instruction, flow
        # The next instruction last, so that it is taken first: an IT instruction is lifted before what it predicates.
        todo.extend(inside(image, symbol, (*_own_targets(flow, indirect.get(address, ())), *flow.jumps)))
        following = address + instruction.size_bytes
        if comes_back(flow, address, indirect, known) or (flow.falls and not starts_another(image, symbol, following)):
            todo.append(following)
    return flows


def _own_targets(flow: Outflow, targets: tuple[int, ...]) -> tuple[int, ...]:
    """Those of ``targets`` where control goes on without the entry of a called function."""
    return targets if flow.indirect_jump or flow.resumes else ()


def comes_back(flow: Outflow, address: int, indirect: IndirectTargets, known: Returns) -> bool:
    """Whether the instruction at ``address`` calls a function that may return behind it."""
    if flow.resumes:
        return False
    if flow.indirect_call:
        targets = indirect.get(address, ())
        return not targets or known.may_return(targets)
    return bool(flow.calls) and known.may_return(flow.calls)


def starts_another(image: Image, symbol: Symbol, address: int) -> bool:
    """Whether another function starts at ``address``: who falls through to it calls it, and it returns for the caller.

    A compiler's tail call of the function that is laid out next is such a fall.
    """
    other = image.function_at(address)
    return other is not None and other.address == address != symbol.address


def inside(image: Image, symbol: Symbol, targets: Iterable[int]) -> list[int]:
    """Those of ``targets`` that stay within the function; its own entry is one of them (a loop, not a call).

    A jump into the middle of another function does: libraries share the ends of their routines in that way.
    """
    end = symbol.address + max(1, symbol.size_bytes)
    return [target for target in targets if symbol.address <= target < end or not starts_another(image, symbol, target)]


def _block(  # noqa: PLR0917  the parts of a graph
    image: Image,
    leader: int,
    leaders: set[int],
    flows: _Flows,
    symbol: Symbol,
    indirect: IndirectTargets,
    known: Returns,
    end: int | None,
) -> Block:
    instructions: list[LiftedInstruction] = []
    address = leader
    while True:
        instruction, flow = flows[address]
        instructions.append(instruction)
        following = address + instruction.size_bytes
        if not flow.goes_on or following in leaders or following not in flows:
            break
        address = following
    targets = indirect.get(address, ())
    jumps = (*flow.jumps, *(targets if flow.indirect_jump else ()))
    own = tuple(dict.fromkeys(inside(image, symbol, jumps)))
    resumes = tuple(inside(image, symbol, targets)) if flow.resumes else None
    if resumes is not None and len(resumes) < len(targets):
        raise AnalysisError(
            f"the table behind the call at {image.location(address)} leads into another function: such code is not "
            "analysed; let the cases jump there."
        )
    into_next = flow.falls and starts_another(image, symbol, following)
    if into_next:
        jumps = (*jumps, following)
    falls = flow.falls and not into_next
    goes_behind = falls or comes_back(flow, address, indirect, known)
    return Block(
        address=leader,
        instructions=tuple(instructions),
        falls_to=following if goes_behind else None,
        falls=falls,
        jumps=own,
        calls=(*flow.calls, *(targets if flow.indirect_call else ())),
        tail_calls=tuple(dict.fromkeys(target for target in jumps if target not in own)),
        returns=flow.returns or (flow.indirect_jump and (address in known.sites or address == end)),
        resumes=resumes,
    )
