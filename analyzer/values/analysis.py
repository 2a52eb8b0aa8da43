"""Value analysis: a fixpoint of abstract states over the supergraph, with widening at loop headers, then narrowing.

*Soundness:* the result is a post-fixpoint: each state covers what its predecessors make of theirs. The last step of
`analyze_values` checks that in one pass, without trusting the iteration. An edge without state is never taken.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from wcet_probe.analyzer.domains import strided
from wcet_probe.analyzer.domains.strided import StridedInterval
from wcet_probe.analyzer.graph.loop_forest import Loop, loop_forest, loops_of
from wcet_probe.analyzer.graph.supergraph import EXIT, Edge, Supergraph
from wcet_probe.analyzer.pcode.lift import Lifter
from wcet_probe.analyzer.pcode.semantics import operation
from wcet_probe.analyzer.values.joins import covers, join, spoken, widened
from wcet_probe.analyzer.values.state import Base, LeafRange, LeafSteps, Location, State
from wcet_probe.analyzer.values.terms import Term, Terms
from wcet_probe.analyzer.values.transfer import MOST_READ, Access, Flow, Memory, Transfer
from wcet_probe.errors import AnalysisError
from wcet_probe.model.image import Image
from wcet_probe.model.target import Isa

_MOST_ROUNDS = 60
_ROUNDS_BEFORE_WIDENING = 2
_ROUNDS_WITH_THRESHOLDS = 5
_NARROWING_ROUNDS = 2
_WITHOUT_LOW_BITS = (0xFFFF_FFFE, 0xFFFF_FFFC)
"""Masks of what is branched to: the bit of Thumb code, and an instruction's alignment."""


@dataclass(frozen=True, slots=True)
class EdgeValues:
    """What is known where control takes an edge: the state, and the conditions that its block learnt on the way."""

    edge: Edge
    state: State
    conditions: tuple[tuple[Term, bool], ...]


@dataclass(frozen=True, slots=True)
class Values:
    """The result of the value analysis.

    Attributes:
        graph: the analysed graph; only what has a state can be reached.
        terms: the table that the states' terms are of.
        states: at the entry of each reachable point.
        edges: of each edge that can be taken.
        accesses: data accesses by point.
        indirect: targets of the indirect branches and calls that can be reached; none where they could not be found.
        unchecked_returns: points whose return address could not be proved to be the caller's.
        forest: reachable points and their loops.
        registers: the registers' locations by name.
        return_sites: addresses of indirect jumps that go to the return address of their function.
    """

    graph: Supergraph
    terms: Terms
    states: Mapping[int, State]
    edges: Mapping[Edge, EdgeValues]
    accesses: Mapping[int, tuple[Access, ...]]
    indirect: Mapping[int, tuple[int, ...]]
    unchecked_returns: tuple[int, ...]
    forest: tuple[int | Loop, ...]
    registers: Mapping[str, Location]
    return_sites: frozenset[int] = frozenset()


def analyze_values(  # noqa: PLR0917  the binary, its graph, and what is known of both
    image: Image,
    lifter: Lifter,
    graph: Supergraph,
    arguments: Mapping[str, StridedInterval],
    words: Mapping[int, StridedInterval] = MappingProxyType({}),
    ranges: Mapping[int, Sequence[LeafRange]] = MappingProxyType({}),
    rounds: Mapping[tuple[int, int], Sequence[LeafSteps]] = MappingProxyType({}),
) -> Values:
    """Analyse ``graph``.

    Args:
        image: the binary.
        lifter: lifter of the image.
        graph: of the entry function.
        arguments: what the caller guarantees of registers at entry, by name.
        words: what flow facts say of words of memory, by address.
        ranges: what is proved of leaves, by the point at whose entry it holds.
        rounds: the counters of a loop, by source and target of the edges that leave it.

    Raises:
        AnalysisError: an operation that is not known, or no fixpoint.
        IrreducibleError: ``graph`` has an irreducible loop; see `supergraph.reducible`.
    """
    memory = Memory(image, words)
    while True:
        escapes = memory.stack_escapes
        analysis = _Analysis(image, lifter, graph, arguments, memory, ranges, rounds)
        analysis.run()
        if memory.stack_escapes == escapes:
            return analysis.result()


class _Analysis:
    def __init__(  # noqa: PLR0917  as of `analyze_values`
        self,
        image: Image,
        lifter: Lifter,
        graph: Supergraph,
        arguments: Mapping[str, StridedInterval],
        memory: Memory,
        ranges: Mapping[int, Sequence[LeafRange]],
        rounds: Mapping[tuple[int, int], Sequence[LeafSteps]],
    ) -> None:
        self._ranges, self._rounds = ranges, rounds
        self._image, self._lifter, self._graph = image, lifter, graph
        self._terms = Terms()
        self._transfer = Transfer(lifter, self._terms, memory)
        self._memory = memory
        self._incoming: dict[int, dict[Edge, EdgeValues]] = {point.index: {} for point in graph.points}
        self._incoming[EXIT] = {}
        self._successors = graph.successors()
        self._states: dict[int, State] = {}
        self._entry = self._entry_state(arguments)
        self._thresholds = _thresholds(graph)
        self._indirect: dict[int, tuple[int, ...]] = {}
        self._return_sites: set[int] = set()
        self._unchecked: set[int] = set()
        self._accesses: dict[int, list[Access]] = {}
        self._forest = self._loops()

    def run(self) -> None:
        self._iterate(self._forest)

    def result(self) -> Values:
        """The values of one more pass, in which the states of loop headers stay as they are."""
        self._unchecked.clear()
        self._indirect.clear()
        headers = {loop.header for loop in loops_of(self._forest)}
        for index in in_order(self._forest):
            if index not in headers:
                self._visit(index, self._accesses)
            elif self._arriving(index):
                self._flow_out(index, self._accesses)
            else:
                self._drop(index)
        self._check_fixpoint(headers)
        edges = {values.edge: values for group in self._incoming.values() for values in group.values()}
        return Values(
            graph=self._graph,
            terms=self._terms,
            states=self._states,
            edges=edges,
            accesses={index: tuple(found) for index, found in self._accesses.items()},
            indirect=self._indirect,
            return_sites=frozenset(self._return_sites),
            unchecked_returns=tuple(sorted(self._unchecked)),
            forest=self._forest,
            registers={name: self._register(name) for name in sorted(self._lifter.registers)},
        )

    def _check_fixpoint(self, headers: Collection[int]) -> None:
        """The states of loop headers cover what arrives at them; all others were made of what arrives in this pass."""
        for header in sorted(headers):
            arriving = self._arriving(header)
            state = self._states.get(header)
            if arriving and (state is None or not covers(state, self._joined(arriving, header, state))):
                raise self._unsettled(header)

    def _unsettled(self, index: int) -> AnalysisError:
        where = self._image.location(self._graph.points[index].block.address)
        return AnalysisError(f"the values at {where} do not settle; report this with the binary.")

    def _loops(self) -> tuple[int | Loop, ...]:
        successors = {
            index: tuple(edge.target for edge in edges if edge.target != EXIT)
            for index, edges in self._successors.items()
            if index != EXIT
        }
        return loop_forest(successors, 0)

    def _entry_state(self, arguments: Mapping[str, StridedInterval]) -> State:
        state = State(self._terms, big_endian=self._lifter.big_endian)
        for name, value in arguments.items():
            register = self._register(name)
            state.locations[register] = self._terms.leaf(("in", register), 32)
            state.known[state.locations[register]] = value
        pointer = self._register("r1" if self._lifter.isa is Isa.POWERPC else "r13")
        leaf = self._terms.leaf(("stack pointer",), 32)
        state.locations[pointer] = leaf
        state.bases[leaf] = Base.STACK
        state.known[leaf] = strided.constant(32, 0)
        return state

    def _register(self, name: str) -> Location:
        varnode = self._lifter.registers[name]
        return Location("register", varnode.offset, varnode.size_bytes)

    # ---------------------------------------------------------------------------------------------------- iteration

    def _iterate(self, parts: Sequence[int | Loop]) -> None:
        for part in parts:
            if isinstance(part, Loop):
                self._stabilise(part)
            else:
                self._visit(part)

    def _visit(self, index: int, accesses: dict[int, list[Access]] | None = None) -> None:
        arriving = self._arriving(index)
        if arriving:
            self._states[index] = join(arriving, (index,), gated=True)
            self._states[index].learn_ranges(self._ranges.get(index, ()))
            self._flow_out(index, accesses)
        else:
            self._drop(index)

    def _arriving(self, index: int) -> list[State]:
        states = [values.state for _, values in sorted(self._incoming[index].items(), key=lambda item: _order(item[0]))]
        return [self._entry, *states] if index == 0 else states

    def _drop(self, index: int) -> None:
        """The point cannot be reached, or not any more."""
        self._states.pop(index, None)
        for edge in self._successors[index]:
            self._incoming[edge.target].pop(edge, None)

    def _stabilise(self, loop: Loop) -> None:
        header = loop.header
        for node in loop.nodes:  # what an earlier visit left inside must not come in again
            self._drop(node)
        state: State | None = None
        for number in range(_MOST_ROUNDS):
            arriving = self._arriving(header)
            if not arriving:
                return
            new = self._joined(arriving, header, state)
            if state is not None:
                if covers(state, new):
                    break
                if number >= _ROUNDS_BEFORE_WIDENING:
                    new = widened(state, new, self._thresholds if number < _ROUNDS_WITH_THRESHOLDS else ())
                    new.learn_ranges(self._ranges.get(header, ()))
            state = new
            self._round(loop, state)
        else:
            raise self._unsettled(header)
        for _ in range(_NARROWING_ROUNDS):
            new = self._joined(self._arriving(header), header, state)
            if not covers(state, new):
                break
            wider, state = state, new
            self._round(loop, state)
            if not covers(state, self._joined(self._arriving(header), header, state)):
                # Inner loops may settle elsewhere from a narrower state: what held before holds still.
                self._round(loop, wider)
                break

    def _joined(self, arriving: Sequence[State], header: int, former: State | None) -> State:
        """What arrives at a loop's header, without what is proved not to."""
        state = join(arriving, (header,), former)
        state.learn_ranges(self._ranges.get(header, ()))
        return state

    def _round(self, loop: Loop, state: State) -> None:
        self._states[loop.header] = state
        self._flow_out(loop.header)
        self._iterate(loop.parts[1:])

    def _flow_out(self, index: int, accesses: dict[int, list[Access]] | None = None) -> None:
        point = self._graph.points[index]
        found: list[Access] = []
        flows = self._transfer.block(index, point.block.instructions, self._states[index].copy(), found.append)
        if accesses is not None:
            accesses[index] = found
        for edge in self._successors[index]:
            self._incoming[edge.target].pop(edge, None)
        for flow in flows:
            for edge in self._edges_of(index, flow):
                self._add(edge, flow)

    def _add(self, edge: Edge, flow: Flow) -> None:
        flow.state.learn_round(self._rounds.get((edge.source, edge.target), ()))
        earlier = self._incoming[edge.target].get(edge)
        if earlier is None:
            self._incoming[edge.target][edge] = EdgeValues(edge, flow.state, flow.conditions)
        else:
            shared = tuple(condition for condition in flow.conditions if condition in earlier.conditions)
            both = join([earlier.state, flow.state], ("edge", edge.source, edge.target))
            self._incoming[edge.target][edge] = EdgeValues(edge, both, shared)

    def _edges_of(self, index: int, flow: Flow) -> list[Edge]:
        """The edges of the graph that ``flow`` takes."""
        edges = self._successors[index]
        site = self._graph.points[index].block.last_address
        if flow.way == "return" and flow.target is not None:
            self._check_return(index, flow.state, flow.target)
        elif flow.target is not None and flow.way == "jump" and self._is_return_address(index, flow.state, flow.target):
            self._return_sites.add(site)
            return [edge for edge in edges if edge.way == "return"]
        elif flow.target is not None:
            found = self._targets(flow.state, flow.target)
            known = self._indirect.get(site)
            unknown = not found or known == ()  # in this context or in another
            self._indirect[site] = () if unknown else tuple(sorted({*(known or ()), *found}))
            return [edge for edge in edges if edge.way == flow.way]
        return [edge for edge in edges if edge.way == flow.way and edge.address == flow.address]

    def _is_return_address(self, index: int, state: State, target: Term) -> bool:
        """Whether an indirect jump surely goes back to the caller."""
        expected = self._graph.points[index].return_address
        if expected is not None:
            value = state.value(target)
            return state.base(target) is Base.NUMBER and value.is_constant and value.value & ~1 == expected
        link = self._terms.leaf(("in", self._register("lr")), 32)
        node, operands = self._terms[target], self._terms.operands(target)
        masked = node.opcode == "INT_AND" and self._terms.value(operands[1]) in _WITHOUT_LOW_BITS
        return link in (target, operands[0] if masked else None)

    def _check_return(self, index: int, state: State, address: Term) -> None:
        target = state.value(address)
        link = self._terms.leaf(("in", self._register("lr")), 32)
        expected = {
            self._graph.points[edge.target].block.address
            for edge in self._successors[index]
            if edge.way == "return" and edge.target != EXIT
        }
        if expected:
            sure = target.is_constant and target.value & ~1 in expected
        else:
            sure = self._terms.leaves(address) == {link}
        if not sure:
            self._unchecked.add(index)

    def _targets(self, state: State, target: Term) -> tuple[int, ...]:
        """All values of ``target``, where they follow from one leaf with few values and read-only memory."""
        return _enumerated(state, target, self._memory, thumb=self._lifter.isa is Isa.THUMB)


def brought_back(values: Values) -> Mapping[Edge, frozenset[Term]]:
    """The leaves that each edge is silent about while the state that it leads to speaks of them.

    *Soundness:* see `state.spoken`: what is known of such a leaf behind the edge need not be true of the value that it
    had before.
    """
    states = {index: spoken(state) for index, state in values.states.items()}
    return {edge: frozenset(states.get(edge.target, ())) - spoken(found.state) for edge, found in values.edges.items()}


def in_order(parts: Sequence[int | Loop]) -> Iterator[int]:
    """All points, each behind those that control comes from, but for the ends of loops.

    *Soundness:* it decides the time of a fixpoint, not the result.
    """
    for part in parts:
        if isinstance(part, Loop):
            yield from in_order(part.parts)
        else:
            yield part


def _order(edge: Edge) -> tuple[int, int, str, int]:
    return edge.source, edge.target, edge.way, edge.address or 0


def _enumerated(state: State, target: Term, memory: Memory, *, thumb: bool) -> tuple[int, ...]:
    """The values of ``target``, where they follow from the few values of one term that it is made of."""
    terms = state.terms
    mask = ~1 if thumb else ~0
    parts = sorted(_parts(terms, target), key=lambda part: (state.value(part).size, part))
    for part in parts:
        values = state.value(part)
        if state.base(part) is not Base.NUMBER or values.size > MOST_READ or _is_any(terms, part, values):
            continue
        found = {_concrete(terms, target, {part: value}, memory) for value in values.values()}
        if None not in found:
            return tuple(sorted(value & mask for value in found if value is not None))
    return ()


def _is_any(terms: Terms, part: Term, values: StridedInterval) -> bool:
    """Whether ``part`` is made of a loaded byte or half-word of which nothing is known, such as a jump table's offset.

    *Soundness:* to follow it would be sound, but leads to where no code is.
    """
    todo = [part]
    while todo:
        one = todo.pop()
        node = terms[one]
        if node.opcode == "leaf" and node.bits < 32 and values.size >= 1 << node.bits:
            return True
        if node.opcode != "TABLE":
            todo.extend(terms.operands(one))
    return False


def _parts(terms: Terms, term: Term) -> set[Term]:
    """``term`` and all that it is made of."""
    found, todo = set[Term](), [term]
    while todo:
        part = todo.pop()
        if part not in found:
            found.add(part)
            todo.extend(terms.operands(part))
    return found


def _concrete(terms: Terms, term: Term, given: Mapping[Term, int], memory: Memory) -> int | None:
    """The value of ``term`` for given values of terms that it is made of; None where they do not decide it."""
    node = terms[term]
    if term in given:
        return given[term]
    if node.opcode == "leaf":
        return None
    if node.opcode == "const":
        return terms.value(term)
    operands = terms.operands(term)
    values = [_concrete(terms, operand, given, memory) for operand in operands]
    if None in values:
        return None
    if node.opcode == "TABLE":
        return memory.constant(values[0] or 0, node.bits // 8)
    function = operation(node.opcode, tuple(terms[operand].bits // 8 for operand in operands), node.bits // 8)
    return None if function is None else function(*values)


def _thresholds(graph: Supergraph) -> tuple[int, ...]:
    """Constants of the code: where values that grow are likely to stop."""
    found = {0, 1 << 31, (1 << 32) - 1}
    for point in graph.points:
        for instruction in point.block.instructions:
            for op in instruction.ops:
                for varnode in op.inputs:
                    if varnode.space == "const" and varnode.size_bytes == 4:
                        found.update(
                            ((varnode.offset - 1) & 0xFFFFFFFF, varnode.offset, varnode.offset + 1 & 0xFFFFFFFF)
                        )
    return tuple(sorted(found))
