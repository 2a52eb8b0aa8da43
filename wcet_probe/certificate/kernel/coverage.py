# SPDX-License-Identifier: 0BSD
"""Does the graph of a certificate cover the code: each block executed once, from what is said to hold where it begins.

A node is the code from its address on, up to an instruction that may go elsewhere than to the next one, or to where an
edge leads by falling through. For each way out that the last instruction allows there must be an edge to a node at that
address, in which what then holds lies in what is said of that node; so by induction every execution is a path of the
graph. Of a node that one edge alone leads to, all that holds on it is known. A way is left out only where the
invariants leave no value for it, or nothing returns from where it leads (`dead_ends`), and so is what holds behind a
node that no way leads to. Calls and returns are no exception: a call puts an address into the link register, a return
goes to the address that it finds.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from types import MappingProxyType, ModuleType
from typing import NamedTuple

from wcet_probe.certificate.kernel.called import Callee
from wcet_probe.certificate.kernel.contexts import Returns, context_of
from wcet_probe.certificate.kernel.dead_ends import never_returns
from wcet_probe.certificate.kernel.equalities import (
    Cases,
    Equalities,
    beginning,
    cases_of,
    differing,
    equalities_of,
    told_of_both,
)
from wcet_probe.certificate.kernel.flags import Flags, both, flags_of, lacking
from wcet_probe.certificate.kernel.records import Edge, Graph, Records, demand, existing, invariants_of
from wcet_probe.certificate.kernel.return_addresses import SparingMachine, returning_to_caller
from wcet_probe.certificate.machines import arm, powerpc
from wcet_probe.certificate.machines.machine import Machine, Outcome
from wcet_probe.certificate.machines.saved_words import Saving
from wcet_probe.certificate.values.held import HeldWords
from wcet_probe.certificate.values.numbers import TOP, Value, within
from wcet_probe.certificate.values.state import Place, State, between_blocks, joined
from wcet_probe.model.image import Image
from wcet_probe.model.instruction import Control, Instruction
from wcet_probe.model.target import Isa

Told = Mapping[int, tuple[tuple[int, ...], tuple[str, ...], tuple[str, ...]]]
"""Where facts say that branches and calls go: addresses, the assumptions that say so, and what is open of them."""
_IT = re.compile("it[te]{0,3}")
_LONGEST_BLOCK = 100_000
MOST_STATES = 4
"""Ways through the conditional instructions of a block that are followed apart."""


@dataclass(frozen=True, slots=True)
class Code:
    """An image and its instructions by address, decoded again, and the callees that were checked by themselves."""

    image: Image
    instructions: Mapping[int, Instruction]
    callees: Mapping[int, Callee] = field(default_factory=dict)

    @property
    def isa(self) -> ModuleType:
        """The module that knows what the instructions do."""
        return powerpc if self.image.isa is Isa.POWERPC else arm

    def at(self, address: int) -> Instruction:
        """The instruction at ``address``.

        Raises:
            VerificationError: there is none, or one that cannot be charged.
        """
        found = existing(self.instructions.get(address), f"there is no instruction of the image at {address:#x}")
        if found.problem:
            demand(False, f"{self.image.location(address)} cannot be charged: {found.problem}")
        return found


def code_of(image: Image, instructions: Sequence[Instruction]) -> Code:
    """The code of ``image``, without instructions whose conditions were read otherwise than the core would.

    Code ranges may begin within an IT block, or overlap: its instructions are those that are executed behind it.
    """
    found = {one.address: one for one in instructions}
    conditional = set[int]()
    for one in found.values():
        name, address = one.text.split(" ", 1)[0], one.address + one.size_bytes
        for _ in range(len(name) - 1 if _IT.fullmatch(name) else 0):
            conditional.add(address)
            address += found[address].size_bytes if address in found else 0
    wrong = {address for address, one in found.items() if one.in_it_block != (address in conditional)}
    return Code(image, {address: one for address, one in found.items() if address not in wrong})


@dataclass(frozen=True, slots=True)
class Block:
    """What one execution of a node is: its instructions, and the ways out of it."""

    instructions: tuple[Instruction, ...]
    outcomes: tuple[Outcome, ...]


class Said(NamedTuple):
    """What is said to hold where nodes begin: of values, of flags, which places are equal, and what in each case."""

    invariants: Mapping[str, Mapping[Place, Value]]
    flags: Flags = MappingProxyType({})
    equal: Equalities = MappingProxyType({})
    cases: Cases = MappingProxyType({})

    def states(self, node: str) -> list[State]:
        """What holds where ``node`` begins, in each case; equal are then those places that the case says."""
        values, flags = self.invariants[node], self.flags.get(node, {})
        found = [beginning({**values, **case.values}, flags, case.equal) for case in self.cases.get(node, ())]
        return found or [beginning(values, flags, self.equal.get(node, {}))]


def said_of(records: Records) -> Said:
    """What is said in ``records``.

    Raises:
        VerificationError: it is of no value, or says of a place what cannot be.
    """
    return Said(invariants_of(records), flags_of(records), equalities_of(records), cases_of(records))


@dataclass(slots=True)
class Coverage:
    """What was found.

    Attributes:
        instructions: of each node.
        taken: what holds where each edge is taken; an edge that is not in it is never taken.
        gone: edges that are taken by going there, and not only by falling through.
        assumptions: rules that were used and rest on an assumption.
        open: ways out that nobody showed to lead where the graph says, for people.
        escapes: whether a stack address may stand anywhere in memory.
        on_stack: where on the stack one may stand.
        saving: the instructions that save registers, where these are assumed to stay, see `saved_words`.
        returning: by node, ways out to addresses that are not followed, and what is open if nothing else tells them.
        excluded: by address, ways there that the certificate leaves out, for people.
        arguments: what facts tell of places at the entry.
        over: by edge, the callees that are called and have returned where it is taken.
    """

    instructions: dict[str, tuple[Instruction, ...]] = field(default_factory=dict)
    taken: dict[str, State] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    assumptions: set[str] = field(default_factory=set)
    open: list[str] = field(default_factory=list)
    escapes: bool = False
    on_stack: HeldWords = field(default_factory=HeldWords)
    saving: Saving = field(default_factory=dict)
    returning: dict[str, list[tuple[Outcome, str]]] = field(default_factory=dict)
    excluded: dict[int, list[str]] = field(default_factory=dict)
    arguments: Mapping[Place, Value] = field(default_factory=dict)
    over: dict[str, set[int]] = field(default_factory=dict)

    def machine(self, code: Code) -> Machine:
        """A machine for what is executed once more; what it assumes is assumed as well."""
        return Machine(
            code.image, self.escapes, on_stack=self.on_stack.again(), used=self.assumptions, saving=self.saving
        )


def run_block(code: Code, machine: Machine, graph: Graph, node: str, state: State) -> Block:
    """Execute ``node`` on ``state``, which is used up; what conditional instructions do is followed apart for a while.

    Raises:
        VerificationError: there is no code.
    """
    ends = {graph.nodes[edge.target][0] for edge in graph.leading[node]}
    address, _ = graph.nodes[node]
    instructions: list[Instruction] = []
    states = [state]
    while True:
        instruction = code.at(address)
        instructions.append(instruction)
        demand(len(instructions) <= _LONGEST_BLOCK, f"{node} does not end")
        outcomes: list[Outcome] = [way for one in states for way in code.isa.outcomes_of(machine, instruction, one)]
        following = address + instruction.size_bytes
        goes_on = _falls(instruction, following) and following not in ends
        if not goes_on or {outcome.address for outcome in outcomes} != {following}:
            return Block(
                tuple(instructions), tuple(over(code, machine, graph, node, one, following) for one in outcomes)
            )
        states, address = [outcome.state for outcome in outcomes], following
        if len(states) > MOST_STATES:
            states = _fewer(states)


def over(code: Code, machine: Machine, graph: Graph, node: str, outcome: Outcome, following: int) -> Outcome:
    """``outcome`` of a ``node``, or where it calls a callee that has no node behind it, what holds at ``following``."""
    callee = code.callees.get(outcome.address) if outcome.address is not None and outcome.way == "call" else None
    if callee is None or any(graph.nodes[edge.target][0] == callee.address for edge in graph.leading[node]):
        return outcome
    unmet = callee.unmet(code.isa, outcome.state)
    callee.leave(machine, code.isa, outcome.state)
    return outcome._replace(address=following, over=callee.address, unmet=unmet)


def _fewer(states: Sequence[State]) -> list[State]:
    """The join of ``states``: of those each in which the same was found of flags, or of all if these are too many."""
    alike: dict[frozenset[object], State] = {}
    for state in states:
        found = frozenset((name, one.holding) for name, one in state.flags.items())
        alike[found] = joined(alike[found], state) if found in alike else state
    return list(alike.values()) if len(alike) <= MOST_STATES else [reduce(joined, states)]


def _falls(instruction: Instruction, following: int) -> bool:
    """Whether it goes on with the next instruction; a direct branch to that one does, whatever its condition."""
    is_branch = instruction.control in {Control.BRANCH, Control.CONDITIONAL_BRANCH}
    return instruction.control is Control.NEXT or (is_branch and instruction.branch_target == following)


def cover(
    code: Code,
    graph: Graph,
    said: Said,
    arguments: Mapping[Place, Value],
    *,
    is_separate: bool = True,
    saving: Saving = MappingProxyType({}),
    told: Told = MappingProxyType({}),
    ends: str = "",
    escapes: bool = False,
) -> Coverage:
    """Check that ``graph`` covers the code and that what is ``said`` holds where nodes begin.

    It is told whether *stack-separation* is assumed, what saves registers if *saved-registers* is, where facts say
    that branches and calls go, by their addresses, and the statement of *call-returns*, which names dead ends; of a
    callee, that memory holds stack addresses of its caller wherever they may stand.

    Raises:
        VerificationError: one of them does not.
    """
    symbol = code.image.symbols.get(graph.entry_function)
    demand(symbol and symbol.is_function, f"the image has no function {graph.entry_function}")
    demand(symbol and graph.nodes[graph.entry][0] == symbol.address, f"the entry is not at {graph.entry_function}")
    machine = Machine(code.image, escapes, is_separate=is_separate, saving=saving)
    found = _covered(code, machine, graph, said, told, ends)
    while machine.is_refuted:
        machine = machine.again()
        found = _covered(code, machine, graph, said, told, ends)
    for node in (graph.entry, *(edge.target for edge in graph.edges if edge.name in found.gone)):
        demand(not found.instructions[node][0].in_it_block, f"control comes into the IT block at {node} by a branch")
    found.assumptions |= machine.used
    found.escapes, found.on_stack, found.saving, found.arguments = machine.escapes, machine.on_stack, saving, arguments
    state = code.isa.entry_state()
    state.values |= arguments
    asserted = outside(state, said.invariants[graph.entry])
    demand(asserted is None, f"what is said of {asserted} at the entry is not known of the caller")
    for what, besides in (("flags", said.flags), ("equal places", said.equal), ("cases", said.cases)):
        demand(not besides.get(graph.entry), f"what is said of {what} at the entry is not known of the caller")
    return found


def _covered(code: Code, machine: Machine, graph: Graph, said: Said, told: Told, ends: str) -> Coverage:
    found, reached, waiting, only = Coverage(), {graph.entry}, [graph.entry], only_edges(graph)
    while waiting and not machine.is_refuted:  # then all over again: it may be what is loaded
        node = waiting.pop()
        states = said.states(node)
        if node in only and node not in said.cases:
            equal = said.equal.get(node, {})
            known = told_of_both(between_blocks(found.taken[only[node]], equal), equal)
            known.flags |= {name: both(known.flags.get(name), one) for name, one in states[0].flags.items()}
            states = [known]
        blocks = [run_block(code, machine, graph, node, state) for state in states]
        # A case that nothing is known to contradict may be none all the same, and not be followed to the end.
        found.instructions[node] = max((block.instructions for block in blocks), key=len)
        constant = machine.constant_store
        demand(constant is None, f"{node} stores to {constant or 0:#x}, in a segment that is said not to be written")
        at = told.get(found.instructions[node][-1].address)
        for outcome in (one for block in blocks for one in block.outcomes):
            if at is None or not outcome.is_assumed:
                _follow(code, graph, said, node, outcome, found)
                continue
            addresses, assumptions, is_open = at
            found.assumptions.update(assumptions)
            found.open += [text for text in is_open if text not in found.open]
            for address in addresses:
                _follow(code, graph, said, node, Outcome(outcome.way, address, outcome.state.copy()), found)
        targets = [edge.target for edge in graph.leading[node] if edge.name in found.taken]
        waiting += [target for target in dict.fromkeys(targets) if target not in reached]
        reached.update(targets)
    # Nodes that nobody reaches are charged, and nothing needs to hold behind them.
    found.instructions = decoded(code, graph, found.instructions).instructions
    if found.returning:
        _assume_returns(code, graph, said.invariants, found)
    for address, ways in found.excluded.items():
        # The analysis may know that control does not come there, which is not followed here, and assume nothing.
        is_named = f" {code.image.location(address)}," in f"{ends},"
        if is_named and never_returns(code.image, code.isa, address, code.instructions):
            found.assumptions.add("call-returns")
        else:
            found.open += ways
    return found


def only_edges(graph: Graph) -> dict[str, str]:
    """By node, the edge that it is entered by, of those that nothing else enters.

    *Soundness:* what holds on it holds where the node begins, flags too, and lies in what is said there.
    """
    into: dict[str, list[str]] = {}
    for edge in graph.edges:
        into.setdefault(edge.target, []).append(edge.name)
    return {node: edges[0] for node, edges in into.items() if len(edges) == 1 and node != graph.entry}


def _assume_returns(
    code: Code, graph: Graph, invariants: Mapping[str, Mapping[Place, Value]], found: Coverage
) -> None:  # fmt: skip
    """Of returns whose addresses are not followed, those that the assumption tells; the others are open."""
    pointer = code.isa.SP

    def ways(node: str, pointers: Mapping[Place, Value]) -> Iterator[tuple[Outcome, list[Edge]]]:
        machine, known = SparingMachine(code.image, escapes=True), invariants[node].items()
        told: dict[Place, Value] = {p: one for p, one in known if isinstance(p, str) and one.base == "stack"}
        for one in run_block(code, machine, graph, node, State({**told, **pointers})).outcomes:
            yield one, [edge for edge in edges_taken(graph, node, one, found.gone) if edge.name in found.taken]

    returns = Returns(graph, found.instructions, invariants, code.image, pointer, over=found.over)
    to_caller = returning_to_caller(graph, found.instructions, ways, code.isa.LR, pointer)
    for node, outcomes in found.returning.items():
        kinds = {outcome.way for outcome, _ in outcomes}
        pointers = [outcome.state.read(pointer) for outcome, _ in outcomes]
        if kinds == {"return"} and node in to_caller and returns.go_to_caller(node, pointers):
            found.assumptions.add("return-address")
        else:
            found.open += [text for _, text in outcomes]


def decoded(code: Code, graph: Graph, known: Mapping[str, tuple[Instruction, ...]] = MappingProxyType({})) -> Coverage:
    """The instructions of each node, of those that are ``known`` as they are; no way is followed.

    Raises:
        VerificationError: there is no code.
    """
    machine = Machine(code.image, escapes=True)
    unknown = {node: run_block(code, machine, graph, node, State({})) for node in graph.nodes if node not in known}
    return Coverage({node: known[node] if node in known else unknown[node].instructions for node in graph.nodes})


def _follow(
    code: Code,
    graph: Graph,
    said: Said,
    node: str,
    outcome: Outcome,
    found: Coverage,
) -> None:
    def reason_against(edge: Edge) -> Place | None:
        state, target = outcome.state, edge.target
        reasons = (
            outside(state, said.invariants[target]),
            lacking(state, said.flags.get(target, {})),
            differing(state, said.equal.get(target, {})),
        )
        is_case = target not in said.cases or any(case.holds(state) for case in said.cases[target])
        return next((one for one in reasons if one is not None), None if is_case else "cases")

    place = code.image.location(found.instructions[node][-1].address)
    if outcome.is_assumed:
        found.returning.setdefault(node, []).append((outcome, f"where the {outcome.way} at {place} goes"))
        for edge in edges_taken(graph, node, outcome):
            asserted = reason_against(edge)
            demand(asserted is None, f"what is said of {asserted} at {edge.target} does not follow from {node}")
            _take(found, edge, outcome)
        return
    if outcome.address is None:
        if node not in graph.exits and None in graph.excluded.get(node, ()):
            found.open.append(f"that the function is not left at {place}")
            return
        demand(node in graph.exits, f"the graph lacks the way out of the function at {place}")
        return
    edges = edges_of(graph, node, outcome)
    demand(not outcome.unmet, f"what is called at {place} is not checked for what {', '.join(outcome.unmet)} may hold")
    if not edges and outcome.address in graph.excluded.get(node, ()):
        text = f"that control does not go from {place} to {outcome.address:#x}"
        found.excluded.setdefault(outcome.address, []).append(text)
        return
    demand(edges, f"the graph lacks the edge from {place} to {outcome.address:#x}")
    reasons = [reason_against(edge) for edge in edges]
    demand(
        None in reasons, f"what is said of {reasons[0]} at {edges[0].target} does not follow from the edge from {node}"
    )
    for edge, reason in zip(edges, reasons, strict=True):
        if reason is None:
            _take(found, edge, outcome)


def edges_of(graph: Graph, node: str, outcome: Outcome) -> list[Edge]:
    """The edges that lead to where ``outcome`` goes; of several, those whose names tell the same way."""
    edges = [edge for edge in graph.leading[node] if graph.nodes[edge.target][0] == outcome.address]
    callee = "" if outcome.over is None else f":{outcome.over:#x}"
    same = [edge for edge in edges if f":{outcome.way}{callee}" in edge.name]
    others = [edge for edge in edges if outcome.way != "fall" and ":fall" not in edge.name]
    return same or others or edges


def edges_taken(graph: Graph, node: str, outcome: Outcome, gone: Collection[str] = frozenset()) -> Sequence[Edge]:
    """The edges that ``outcome`` may take: a return to where nobody knows leads out of the function it is in.

    Or it takes one of those that were ``gone``: a fact may tell so, or who knew more may have seen a jump.
    """
    if outcome.is_assumed:
        own = context_of(node) if outcome.way in {"return", "call"} else None
        return [e for e in graph.leading[node] if context_of(e.target) != own or e.name in gone]
    return () if outcome.address is None else edges_of(graph, node, outcome)


def _take(found: Coverage, edge: Edge, outcome: Outcome) -> None:
    if outcome.over is not None:
        found.over.setdefault(edge.name, set()).add(outcome.over)
    earlier = found.taken.get(edge.name)
    found.taken[edge.name] = outcome.state if earlier is None else joined(earlier, outcome.state)
    # A jump to where nobody knows may seem to take any edge; a return falls through by none, however that is called.
    is_perhaps = outcome.is_assumed and outcome.way != "return" and ":fall" in edge.name
    if outcome.way != "fall" and not is_perhaps:
        found.gone.add(edge.name)


def outside(state: State, said: Mapping[Place, Value]) -> Place | None:
    """A place that holds something else in ``state`` than is ``said``; where nothing is said, a register a number."""
    for place, value in said.items():
        if not within(state.read(place), value):
            return place
    for place, value in state.values.items():
        if isinstance(place, str) and place not in said and value.may_be_stack and not within(value, TOP):
            return place
    return None
