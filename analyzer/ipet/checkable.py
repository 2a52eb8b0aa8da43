"""What a certificate says of registers and of the stack: what the checker finds again by executing each block once.

The value analysis knows more than the checker can follow: relations between values. So the invariants of a certificate
are found by the checker's own transfer function (`wcet_probe.certificate`), in a fixpoint over the graph of the flow
problem: joins, at the targets of back edges widened to constants of the code, then rounds that narrow.

Words: certificate, abstract state, fixpoint (docs/explanation/glossary.md).

*Soundness:* none is claimed. The checker tests the result, and lists what it could not show (`excluded`).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from types import MappingProxyType

from wcet_probe.analyzer.ipet.cases import loop_cases
from wcet_probe.analyzer.ipet.decided_flags import Execution, decided_flags
from wcet_probe.analyzer.ipet.equal_places import equal_places
from wcet_probe.analyzer.ipet.flow_system import FlowProblem
from wcet_probe.analyzer.ipet.node_flow import NodeFlow, Way
from wcet_probe.analyzer.ipet.record_lines import case_lines, equality_lines, flag_lines, invariant_lines
from wcet_probe.certificate.kernel.called import Callee
from wcet_probe.certificate.kernel.coverage import (
    Code,
    edges_of,
    edges_taken,
    only_edges,
    outside,
    run_block,
)
from wcet_probe.certificate.kernel.equalities import Cases, Equalities, beginning
from wcet_probe.certificate.kernel.flags import Flags
from wcet_probe.certificate.kernel.records import Edge, Graph, says_nothing
from wcet_probe.certificate.machines.machine import Machine, Outcome
from wcet_probe.certificate.machines.saved_words import saving_stores
from wcet_probe.certificate.values.numbers import ANY, TOP, WORD, Value, number, unknown, within
from wcet_probe.certificate.values.state import Place, State, between_blocks, joined
from wcet_probe.errors import VerificationError
from wcet_probe.model.image import Image
from wcet_probe.model.instruction import Control, Instruction

_ROUNDS_BEFORE_WIDENING = 6
_ROUNDS_WITH_THRESHOLDS = 86
_ROUNDS_WITH_ALL_THRESHOLDS = 512
"""Of all loops together."""
_NARROWING_ROUNDS = 3

Values = dict[Place, Value]
Limits = tuple[Sequence[int], Sequence[int]]
"""Thresholds as numbers without sign and with it, each in order."""
_NO_LIMITS: Limits = ((), ())
_ALWAYS = (0, WORD // 2, WORD - 1)
"""Thresholds of each loop, as their neighbours are: where words and signed words begin and end."""


@dataclass(frozen=True, slots=True)
class Checkable:
    """Invariants by node, and ways out of nodes that the checker cannot exclude and the graph does not have.

    What flags tell and which places are equal is said where it excludes some. ``unmet`` are registers that may hold,
    where a callee is called, what it was not certified for, by its address.
    """

    invariants: Mapping[str, Values]
    excluded: Mapping[str, Sequence[int | None]]
    flags: Flags = field(default_factory=dict)
    equal: Equalities = field(default_factory=dict)
    cases: Cases = field(default_factory=dict)
    unmet: Mapping[int, Collection[str]] = field(default_factory=dict)

    @property
    def besides(self) -> tuple[Flags, Equalities, Cases]:
        """What is said besides values."""
        return self.flags, self.equal, self.cases

    def lines(self) -> Iterable[str]:
        """The records of the certificate."""
        for node, values in self.invariants.items():
            yield from invariant_lines(node, values)
        yield from flag_lines(self.flags)
        yield from equality_lines(self.equal)
        yield from case_lines(self.cases)
        for node, addresses in self.excluded.items():
            yield from (f"excluded {node} {'leave' if one is None else f'{one:#x}'}" for one in addresses)


def checkable(
    problem: FlowProblem,
    image: Image,
    instructions: Sequence[Instruction],
    arguments: Mapping[Place, Value],
    *,
    keeps_saved: bool = False,
    is_separate: bool = True,
    callees: Mapping[int, Callee] = MappingProxyType({}),
    escapes: bool = False,
    apart: Mapping[str, Values] = MappingProxyType({}),
) -> Checkable:
    """What the checker can follow of ``problem``.

    Args:
        problem: the flow problem.
        image: the binary.
        instructions: its code.
        arguments: what facts say of registers at entry.
        keeps_saved: whether registers are assumed to stay where they are saved.
        is_separate: whether *stack-separation* is among the assumptions of the bound, which the checker then takes.
        callees: that are not expanded, by address.
        escapes: whether stack addresses may stand anywhere in memory.
        apart: of copies of nodes what each is there for: what leads to several goes where it lies in that.

    *Soundness:* none is claimed.
    """
    code = Code(image, {one.address: one for one in instructions}, callees)
    graph = flow_graph(problem)
    saving = saving_stores(image, code.instructions) if keeps_saved else {}
    machine = Machine(image, escapes, is_separate=is_separate, saving=saving)
    try:
        while (found := _unrefuted(_Search(code, graph, machine, apart), arguments)) is None:
            machine = machine.again()
    except VerificationError:
        return Checkable({node: {} for node in graph.nodes}, {})
    if not found.excluded:
        return found
    execution = Execution(code, graph, machine.again(), found.invariants)
    flags, excluded = decided_flags(execution)
    equal, excluded = equal_places(execution, flags) if excluded else ({}, excluded)
    return replace(found, flags=flags, excluded=excluded, equal=equal)


def _unrefuted(search: _Search, arguments: Mapping[Place, Value]) -> Checkable | None:
    """What ``search`` finds; None where its machine took something for true that it refutes later."""
    try:
        found = search.run_in_cases(arguments)
    except ValueError:  # of the same state it says more then than before, which need not have a fixpoint
        if not search.machine.is_refuted:
            raise
        return None
    return None if search.machine.is_refuted else replace(found, unmet=search.unmet)


def flow_graph(problem: FlowProblem, excluded: Mapping[str, Iterable[int | None]] = MappingProxyType({})) -> Graph:
    """The graph of ``problem`` as the checker sees it, with ways that are ``excluded`` by node."""
    nodes = {node.name: (node.address, node.cost) for node in problem.nodes}
    edges = tuple(Edge(edge.name, edge.source, edge.target, edge.extra_cost) for edge in problem.edges)
    leading: dict[str, list[Edge]] = {name: [] for name in nodes}
    for edge in edges:
        leading[edge.source].append(edge)
    exits = {name: problem.exit_costs.get(name, 0) for name in problem.exits}
    excluding = {name: set(own) for name, own in excluded.items()}
    return Graph(problem.entry_function, nodes, problem.entry, edges, exits, leading, excluding)


class _Search:
    """A fixpoint over the graph, of these equations (`fixpoint.Equations`)."""

    def __init__(
        self, code: Code, graph: Graph, machine: Machine, apart: Mapping[str, Values] = MappingProxyType({})
    ) -> None:
        self._code, self._graph, self.machine, self._apart = code, graph, machine, apart
        self._nodes = NodeFlow(graph, graph.edges)
        self._order = self._nodes.nodes
        self._thresholds: dict[int, frozenset[int]] = {}
        self._all_constants = frozenset({one for node in graph.nodes for one in self._constants_of(node)} | {*_ALWAYS})
        self._rounds_with_all = _ROUNDS_WITH_ALL_THRESHOLDS
        self._excluded: dict[str, dict[int | None, None]] = {}
        self._cases: Cases = {}
        self._only = only_edges(graph)
        self.unmet: dict[int, set[str]] = {}
        self._entering: dict[str, State] = {}
        """What holds on the only edge into a node, as it was found last."""

    def run_in_cases(self, arguments: Mapping[Place, Value]) -> Checkable:
        """What holds, and in which cases what; cases that do not hold are not told."""
        found = self.run(arguments)
        cases = loop_cases(self._nodes, self._graph, lambda node: self._outcomes(node, found.invariants[node]))
        if not cases:
            return found
        self._cases = cases
        try:
            again = self.run(arguments)
        except VerificationError:
            return found
        leaving = (one for node in self._graph.nodes for one in self._out(node, again.invariants[node]))
        holds = all(any(case.holds(state) for case in cases[target]) for target, state in leaving if target in cases)
        return replace(again, cases=cases) if holds else found

    def run(self, arguments: Mapping[Place, Value]) -> Checkable:
        entry = self._code.isa.entry_state()
        entry.values |= arguments
        self._rounds_with_all = _ROUNDS_WITH_ALL_THRESHOLDS
        states, found = self._nodes.solved(self, dict(entry.values)), None
        for _ in range(_NARROWING_ROUNDS + 1):
            self._excluded.clear()
            new, holds = self._flow(states, entry)
            if not holds:
                break
            names = {node: states.get(node, {}) for node in self._graph.nodes}
            found = Checkable(names, {node: tuple(excluding) for node, excluding in self._excluded.items()})
            if new == states:
                break
            states = new
        if found is None:
            raise VerificationError("the values do not hold.")
        return found

    # ---------------------------------------------------------------------------------------------------- equations

    def merged(self, node: int, arriving: Sequence[Values], former: Values | None) -> Values:  # noqa: ARG002
        """The join of all that arrives."""
        found = arriving[0]
        for values in arriving[1:]:
            found = _joined(found, State(values))
        return found

    def resumed(self, node: int, entering: Sequence[Values], former: Values, number: int) -> Values:
        """With what was known."""
        grown = _joined(former, State(self.merged(node, entering, None)))
        return self._widened(former, grown, _NO_LIMITS) if number else grown

    def widened(self, node: int, former: Values, grown: Values, number: int) -> Values:
        """Joined at first, then to constants of the code, at last to none."""
        grown = _joined(former, State(grown))
        if number <= _ROUNDS_BEFORE_WIDENING:
            return grown
        has_limits = number <= _ROUNDS_WITH_THRESHOLDS
        return self._widened(former, grown, self._limits(node, former, grown) if has_limits else _NO_LIMITS)

    def leq(self, one: Values, other: Values) -> bool:
        """Whether joining adds nothing."""
        return one == other or _joined(other, State(one)) == other

    def flow(self, node: int, state: Values) -> Iterable[tuple[Way, Values]]:
        """What each edge carries that can be taken."""
        name, found = self._nodes.names[node], dict[str, Values]()
        for target, leaving in self._out(name, state):
            found[target] = _joined(found.get(target), leaving)
        return [(way, found[way.edge.target]) for way in self._nodes.order.outgoing[node] if way.edge.target in found]

    def _flow(self, states: Mapping[str, Values], entry: State) -> tuple[dict[str, Values], bool]:
        """What arrives at each node from all sides at once, and whether each part of it lies in ``states``.

        Parts may lie in what their join does not: of two ranges that go around the words it takes one.
        """
        new = {self._graph.entry: dict(entry.values)}
        holds = self._lies(entry, states[self._graph.entry])
        for node in self._order:
            if node in states:
                for target, state in self._out(node, states[node]):
                    holds = holds and target in states and self._lies(state, states[target])
                    new[target] = _joined(new.get(target), state)
        return new, holds

    def _out(self, node: str, values: Values) -> list[tuple[str, State]]:
        found = []
        for outcome in self._outcomes(node, values):
            if outcome.over is not None and outcome.unmet:
                self.unmet.setdefault(outcome.over, set()).update(outcome.unmet)
            if outcome.is_assumed:
                found += [(edge.target, outcome.state) for edge in edges_taken(self._graph, node, outcome)]
            elif outcome.address is None:
                if node not in self._graph.exits:
                    self._excluded.setdefault(node, {})[None] = None
            else:
                edges = edges_of(self._graph, node, outcome)
                fitting = [edge for edge in edges if self._fits(edge, outcome.state)] if len(edges) > 1 else ()
                found += [(edge.target, outcome.state) for edge in fitting or edges]
                if not edges:
                    self._excluded.setdefault(node, {})[outcome.address] = None
        for target in dict.fromkeys(target for target, _ in found if target in self._only):
            self._entering[target] = reduce(joined, (state for other, state in found if other == target))
        return found

    def _fits(self, edge: Edge, state: State) -> bool:
        return edge.target in self._apart and outside(state, self._apart[edge.target]) is None

    def _outcomes(self, node: str, values: Values) -> list[Outcome]:
        # The checker reads no record of what says nothing, and learns nothing of such a place.
        said = {place: value for place, value in values.items() if not says_nothing(place, value)}
        states = [beginning({**said, **case.values}, {}, case.equal) for case in self._cases.get(node, ())]
        if not states:
            states = [between_blocks(self._entering[node]) if node in self._entering else State(said)]
        blocks = (run_block(self._code, self.machine, self._graph, node, one) for one in states)
        return [one for block in blocks for one in block.outcomes]

    def _limits(self, header: int, former: Values, grown: Values) -> Limits:
        """Where values that grow in a loop are likely to stop: constants of its code, and values that do not grow.

        At first constants of other code, too: a value that nothing limits goes from each of them to the next one, in
        each loop, so that the rounds would grow with the square of the program.
        """
        if header not in self._thresholds:
            own = next(loop.nodes for loop in self._nodes.order.loops if loop.header == header)
            found = (one for node in own for one in self._constants_of(self._nodes.names[node]))
            self._thresholds[header] = frozenset({*found, *_ALWAYS})
        self._rounds_with_all -= 1
        constants = self._thresholds[header] if self._rounds_with_all < 0 else self._all_constants
        stable = (value for place, value in grown.items() if value.is_number and value == former.get(place))
        numbers = {*constants, *(end % WORD for one in stable for end in (one.low, one.high))}
        near = {(number + by) % WORD for number in numbers for by in (-1, 0, 1)}
        return sorted(near), sorted(one - WORD if one >= WORD // 2 else one for one in near)

    def _constants_of(self, node: str) -> Iterator[int]:
        """The constants in the code of ``node``."""
        ends = {self._graph.nodes[edge.target][0] for edge in self._graph.leading[node]}
        address = self._graph.nodes[node][0]
        while True:
            instruction = self._code.instructions.get(address)
            if instruction is None:
                return
            yield from _constants(instruction)
            address += instruction.size_bytes
            if instruction.control is not Control.NEXT or address in ends:
                return

    @staticmethod
    def _lies(state: State, said: Values) -> bool:
        return all(within(state.read(place), value) for place, value in said.items()) and all(
            within(value, _read(said, place)) for place, value in state.values.items()
        )

    @staticmethod
    def _widened(old: Values, new: Values, thresholds: Limits) -> Values:
        result: Values = {}
        for place, value in new.items():
            before = _read(old, place)
            if value == before:
                result[place] = value
            elif not (value.is_plain and before.is_plain):
                result[place] = unknown(value, before)
            else:
                result[place] = _outwards(before, value, thresholds)._replace(base=unknown(value, before).base)
        return result


def _outwards(before: Value, value: Value, thresholds: Limits) -> Value:
    """``value`` as far as the next thresholds on the sides that it has grown to since ``before``."""
    is_signed = value.low < 0
    if is_signed != (before.low < 0):
        if thresholds is _NO_LIMITS:
            return _all_around(value)
        before = value  # the rounds to come tell which way it grows
    limits = thresholds[is_signed]
    low, high = value.low, value.high
    least, most = (-WORD // 2, WORD // 2 - 1) if is_signed else (0, WORD - 1)
    if low < before.low:
        place = bisect_right(limits, low)
        low = limits[place - 1] if place else least
    if high > before.high:
        place = bisect_left(limits, high)
        high = limits[place] if place < len(limits) else most
    if (low, high) == (-WORD // 2, WORD // 2 - 1):
        low, high = 0, WORD - 1
    stride = value.stride or 1
    low += (value.low - low) % stride
    return number(low, max(high, low), stride)


def _all_around(value: Value) -> Value:
    """All numbers that differ from ``value`` by its stride, as far as that divides a word's range."""
    stride = (value.stride or 1) & -(value.stride or 1)
    return number(value.low % stride, WORD - stride + value.low % stride, stride)


def _read(values: Mapping[Place, Value], place: Place) -> Value:
    return values.get(place, TOP if isinstance(place, str) else ANY)


def _joined(old: Values | None, state: State) -> Values:
    if old is None:
        return dict(state.values)
    return joined(State(old), state).values


def _constants(instruction: Instruction) -> Iterator[int]:
    """The numbers in the text of ``instruction``, but for where it branches to."""
    if instruction.branch_target is not None:
        return
    for word in instruction.text.replace("#", " ").replace(",", " ").replace("]", " ").split():
        try:
            yield int(word, 0) % WORD
        except ValueError:
            continue
