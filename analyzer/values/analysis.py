"""Value analysis: a fixpoint of abstract states over the supergraph, by `analyzer.fixpoint`.

Words: abstract state, fixpoint, widening (docs/explanation/glossary.md).

*Soundness:* the result is a post-fixpoint: each state covers what its predecessors make of theirs, which the engine
checks in one pass, without trusting the iteration. An edge without state is never taken.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType

from wcet_probe.analyzer.domains.strided import StridedInterval
from wcet_probe.analyzer.graph.fixpoint import solve
from wcet_probe.analyzer.graph.flow_order import FlowOrder
from wcet_probe.analyzer.graph.supergraph import EXIT, Edge, Supergraph, Unwinding
from wcet_probe.analyzer.pcode.lift import Lifter
from wcet_probe.analyzer.values.execution.accesses import Access
from wcet_probe.analyzer.values.execution.call_effects import (
    Callees,
    CallKey,
    Summarised,
    apply_effect,
    float_registers,
    key_of,
    moved_above,
    note_left,
    saved_registers,
    seen_by_caller,
    stack_offset,
)
from wcet_probe.analyzer.values.execution.enumeration import enumerated
from wcet_probe.analyzer.values.execution.instruction_run import Flow
from wcet_probe.analyzer.values.execution.lost_flow import LostFlowError
from wcet_probe.analyzer.values.execution.needed_operations import needed_operations
from wcet_probe.analyzer.values.execution.saved_words import saving_stores
from wcet_probe.analyzer.values.execution.transfer import Transfer
from wcet_probe.analyzer.values.meetings import meetings
from wcet_probe.analyzer.values.result import EdgeValues, Values
from wcet_probe.analyzer.values.states.bases import Base
from wcet_probe.analyzer.values.states.counted_pointers import tell_pointers
from wcet_probe.analyzer.values.states.entry_state import entry_state
from wcet_probe.analyzer.values.states.held_addresses import ANYWHERE, WHOLE_STACK, Held, HeldAddresses
from wcet_probe.analyzer.values.states.joins import join
from wcet_probe.analyzer.values.states.learning import SymbolRange, SymbolSteps, learn_ranges, learn_round
from wcet_probe.analyzer.values.states.memory import MOST_READ, Memory
from wcet_probe.analyzer.values.states.state import State
from wcet_probe.analyzer.values.states.widening import covers, resumed, settled, widened
from wcet_probe.analyzer.values.symbolic.locations import Location, register_locations
from wcet_probe.analyzer.values.symbolic.term_table import Term
from wcet_probe.analyzer.values.symbolic.terms import Terms
from wcet_probe.analyzer.values.thresholds import Thresholds, counted
from wcet_probe.errors import AnalysisError
from wcet_probe.model.image import Image
from wcet_probe.model.target import Isa

_ROUNDS_WITH_COMPARED = 4
_ROUNDS_WITH_HELD = 5
_ROUNDS_WITH_THRESHOLDS = 6
_ROUNDS_BEFORE_SETTLING = 12
_MOST_TOLD = 4
_WITHOUT_LOW_BITS = (0xFFFF_FFFE, 0xFFFF_FFFC)
"""Masks of what is branched to: the bit of Thumb code, and an instruction's alignment."""


def analyze_values(  # noqa: PLR0917  the binary, its graph, and what is known of both
    image: Image,
    lifter: Lifter,
    graph: Supergraph,
    arguments: Mapping[str | int, StridedInterval],
    words: Mapping[int, StridedInterval] = MappingProxyType({}),
    ranges: Mapping[int, Sequence[SymbolRange]] = MappingProxyType({}),
    rounds: Mapping[tuple[int, int], Sequence[SymbolSteps]] = MappingProxyType({}),
    callees: Callees | None = None,
    called: CallKey | None = None,
    *,
    keeps_saved: bool = False,
    assumes_plain_frames: bool = False,
    most_visits: int | None = None,
) -> Values:
    """Analyse ``graph``.

    Args:
        image: the binary.
        lifter: lifter of the image.
        graph: of the entry function.
        arguments: what the caller guarantees of registers at entry, by name, and of words of the stack, by offset.
        words: what flow facts say of words of memory, by address.
        ranges: what is proved of symbols, by the point at whose entry it holds.
        rounds: the counters of a loop, by source and target of the edges that leave it.
        callees: the effects of calls that are not expanded.
        called: where the function is such a callee, for what it is analysed.
        keeps_saved: whether no store but those that save registers is assumed to change the words these are saved in.
        assumes_plain_frames: whether what is loaded from the stack is assumed to be no address of it. Who assumes it
            checks it of the result.
        most_visits: blocks that may be executed; None is any number.

    Raises:
        AnalysisError: an operation that is not known.
        TooMuchWorkError: more blocks would be executed.
        UnsummarisedError: a callee is to be expanded.
        IrreducibleError: ``graph`` has an irreducible loop; see `supergraph.reducible`.
    """
    above = called.pointers - called.below if called else frozenset[Location]()
    held = HeldAddresses(ANYWHERE if called is not None and called.holds else Held())
    memory = Memory(image, words, stack_escapes=called is not None and called.escapes, held=held, above=above)
    memory.assumes_plain_frames = assumes_plain_frames
    memory.saving = saving_stores(graph, lifter) if keeps_saved else {}
    while True:
        try:
            parts = image, lifter, graph, arguments, memory, ranges, rounds, callees, called
            return _Analysis(*parts, most_visits=most_visits).values()
        except _StackEscapes:
            held.begin()  # it is known from the beginning now


class TooMuchWorkError(Exception):
    """More would be analysed than is worth while for who tries what would help: no error of the program."""


class _StackEscapes(Exception):  # noqa: N818  no error
    """A stack address may be stored where what was analysed so far took it that none is."""


class _Analysis:
    """The equations of the value analysis (`fixpoint.Equations`)."""

    def __init__(  # noqa: PLR0917  as of `analyze_values`
        self,
        image: Image,
        lifter: Lifter,
        graph: Supergraph,
        arguments: Mapping[str | int, StridedInterval],
        memory: Memory,
        ranges: Mapping[int, Sequence[SymbolRange]],
        rounds: Mapping[tuple[int, int], Sequence[SymbolSteps]],
        callees: Callees | None,
        called: CallKey | None,
        *,
        most_visits: int | None,
    ) -> None:
        self._image, self._lifter, self._graph = image, lifter, graph
        self._left = most_visits
        self._ranges, self._rounds = ranges, rounds
        self._terms = Terms()
        self._needed = needed_operations(graph, lifter)
        self._transfer = Transfer(lifter, self._terms, memory, needed=self._needed)
        self._memory, self._stack_escapes = memory, memory.stack_escapes
        self._registers = register_locations(lifter)
        self._stack_pointer = self._registers[lifter.isa.stack_pointer]
        self._order = FlowOrder((point.index for point in graph.points), sorted(graph.edges, key=_order))
        self._headers = frozenset(loop.header for loop in self._order.loops)
        self._callees, self._saved, self._floats = callees, saved_registers(lifter), float_registers(lifter)
        self._is_called = called is not None
        self._entry = entry_state(
            self._terms, lifter, arguments, called.pointers if called else (), is_called=called is not None
        )
        self._thresholds = Thresholds(graph, self._order.loops)
        self._told = Counter[int]()

    def values(self) -> Values:
        """The fixpoint, with the notes of its check."""
        notes = _Notes(self)
        start = EdgeValues(Edge(EXIT, 0, "call", None), self._entry, ())
        solution = solve(self._order, self, {0: start}, notes)
        place = self._order.place
        taken = sorted(
            notes.edges.values(),
            key=lambda one: (one.edge.target == EXIT, one.edge.target, place[one.edge.source], _order(one.edge)),
        )
        return Values(
            graph=self._graph,
            terms=self._terms,
            states=solution.states,
            edges={one.edge: one for one in taken},
            accesses=notes.accesses,
            indirect=notes.indirect,
            return_sites=frozenset(notes.return_sites),
            unwound=self._unwound(notes),
            unchecked_returns=tuple(sorted(notes.unchecked)),
            strays=notes.strays,
            unwinding=self._causes_first(notes, solution.states),
            forest=self._order.forest,
            registers=self._registers,
            stack_escapes=self._memory.stack_escapes,
            held=self._memory.held.held,
            assumes_plain_frames=self._memory.assumes_plain_frames,
            saving=self._memory.saving,
            meetings=meetings(self._lifter, self._terms, self._memory, self._graph, solution.states),
            visits=sum(solution.visits.values()),
        )

    def _unwound(self, notes: _Notes) -> Unwinding:
        """The returns that surely lead to one address that is not behind the call."""
        found = {index: targets[0] for index, targets in notes.strays.items() if len(targets) == 1}
        found |= dict.fromkeys(notes.exits, EXIT)
        points = self._graph.points
        return {(points[index].context, points[index].block.address): found[index] for index in sorted(found)}

    # ---------------------------------------------------------------------------------------------------- equations

    def merged(self, node: int, arriving: Sequence[EdgeValues], former: State | None) -> State:
        """What holds where all that arrives does, without what is proved not to arrive."""
        states = [one.state for one in arriving]
        if len(states) == 1 and former is None:
            return self._within_ranges(node, states[0])
        is_header = node in self._headers
        result = join(states, (node,), former, gated=not is_header, related=is_header)
        if is_header and former is not None and self._told[node] < _MOST_TOLD:
            self._told[node] += 1
            tell_pointers(result, states, (node,), former, self._thresholds.registers(node, self._needed))
        return self._within_ranges(node, result).freeze()

    def _within_ranges(self, node: int, state: State) -> State:
        ranges = self._ranges.get(node, ())
        if not ranges:
            return state
        narrowed = state.copy()
        learn_ranges(narrowed, ranges)
        return narrowed.freeze()

    def resumed(self, node: int, entering: Sequence[EdgeValues], former: State, number: int) -> State:
        """See `widening.resumed`."""
        return resumed([one.state for one in entering], (node,), former, in_haste=number > 0).freeze()

    def widened(self, node: int, former: State, grown: State, number: int) -> State:
        """To constants that the loop compares with; later to those that it holds, to any, to none; then all settles."""
        if number >= _ROUNDS_BEFORE_SETTLING:
            return settled(former, grown, (node,)).freeze()
        stops: tuple[int, ...] = ()
        if number < _ROUNDS_WITH_COMPARED:
            stops = self._thresholds.compared(node, former)
        elif number < _ROUNDS_WITH_HELD:
            stops = self._thresholds.held(node, former)
        elif number < _ROUNDS_WITH_THRESHOLDS:
            stops = self._thresholds.all
        if self._memory.assumes_plain_frames:  # elsewhere nothing was found to rest on it
            counters = {self._terms.symbol(one.name, one.bits) for one in self._ranges.get(node, ())}
            stops = (*stops, *counted(grown, counters))
        return self._within_ranges(node, widened(former, grown, stops, self._thresholds.own(node, former))).freeze()

    def leq(self, one: State, other: State) -> bool:
        """See `widening.covers`."""
        return covers(other, one)

    def flow(self, node: int, state: State) -> Iterable[tuple[Edge, EdgeValues]]:
        """What each edge out of ``node`` carries."""
        return self.taken(node, self.flows_of(node, state)).items()

    def flows_of(self, node: int, state: State, accesses: Callable[[Access], None] | None = None) -> list[Flow]:
        """How control leaves ``node``; ``accesses`` is told of each data access.

        Raises:
            TooMuchWorkError: no blocks are left that may be executed.
        """
        if self._left is not None:
            self._left -= 1
            if self._left < 0:
                raise TooMuchWorkError
        flows = self._transfer.block(node, self._graph.points[node].block.instructions, state.copy(), accesses)
        self._check_stored()
        for flow in flows:
            flow.state.freeze()
        return flows

    def _check_stored(self) -> None:
        if self._memory.held.is_refuted or self._memory.stack_escapes != self._stack_escapes:
            raise _StackEscapes

    def taken(self, node: int, flows: Iterable[Flow]) -> Mapping[Edge, EdgeValues]:
        """The edges that ``flows`` take."""
        found: dict[Edge, EdgeValues] = {}
        for flow in flows:
            for edge in self._edges_of(node, flow):
                state, calls = self._behind_call(edge, flow.state)
                state, earlier = self._in_round(edge, state), found.get(edge)
                if earlier is None:
                    found[edge] = EdgeValues(edge, state, flow.conditions, calls)
                else:
                    shared = tuple(pair for pair in flow.conditions if pair in earlier.conditions)
                    both = join([earlier.state, state], ("edge", edge.source, edge.target)).freeze()
                    found[edge] = EdgeValues(edge, both, shared, tuple(dict.fromkeys((*earlier.calls, *calls))))
        return found

    def _behind_call(self, edge: Edge, state: State) -> tuple[State, tuple[Summarised, ...]]:
        """What holds behind ``edge`` where it is a call that is not expanded, and that call."""
        if self._callees is None or edge.address is None or not self._graph.is_summary(edge):
            return state, ()
        pointer, memory, above = self._stack_pointer, self._memory, self._memory.above
        stored = memory.stack_escapes, memory.held.may_hold(*WHOLE_STACK)
        key = key_of(state, edge.address, pointer, self._saved, above, floats=self._floats, stored=stored)
        effect, offset = self._callees(key), stack_offset(state, pointer)
        note_left(memory, state, effect, offset)
        self._check_stored()
        call = Summarised(key, *seen_by_caller(state, effect, offset), moved_above(effect, offset))
        after = state.copy()
        apply_effect(after, effect, call, (edge.source, self.site(edge.source)), above)
        return after.freeze(), (call,)

    def _edges_of(self, node: int, flow: Flow) -> list[Edge]:
        """The edges of the graph that ``flow`` takes."""
        edges = self._order.outgoing[node]
        if self.goes_back(node, flow) or self.resumes(node, flow):
            return [edge for edge in edges if edge.way == "return"]
        # That all its targets are edges, `unknown_targets.check_resolved` shows.
        if flow.target is not None and flow.way != "return":
            return [edge for edge in edges if edge.way == flow.way]
        if flow.target is not None and self._surely_goes_elsewhere(node, flow.state, flow.target):
            return []  # the notes tell where: without an edge for that there is no result
        found = [edge for edge in edges if edge.way == flow.way and edge.address == flow.address]
        point = self._graph.points[node]
        if not found and (flow.way, flow.address) not in point.left_out:
            raise LostFlowError(self._image.location(point.block.last_address), flow.way, flow.address)
        return found

    def _surely_goes_elsewhere(self, node: int, state: State, target: Term) -> bool:
        """Whether a return does not go behind the call: what it pops is the frame of a caller, or no frame."""
        is_called = self._graph.points[node].return_address is not None
        return bool(self.strays(node, state, target)) or (is_called and self.is_link(target))

    def _in_round(self, edge: Edge, state: State) -> State:
        """``state`` with what follows of counters from all being in one round of the loop that ``edge`` leaves."""
        steps = self._rounds.get((edge.source, edge.target), ())
        if not steps:
            return state
        narrowed = state.copy()
        learn_round(narrowed, steps)
        return narrowed.freeze()

    def goes_back(self, node: int, flow: Flow) -> bool:
        """Whether an indirect jump surely goes back to the caller."""
        if flow.way != "jump" or flow.target is None or self.resumes(node, flow):
            return False
        return self.is_caller(node, flow.state, flow.target)

    def resumes(self, node: int, flow: Flow) -> bool:
        """Whether it goes on where what stands behind a call says: the notes tell where, as of an indirect jump."""
        return flow.target is not None and self._graph.points[node].resumed_by is not None

    def is_link(self, address: Term) -> bool:
        """Whether ``address`` is what the link register held at entry, but for the bits that no address has."""
        link = self._terms.symbol(("in", self._registers["lr"]), 32)
        term, operands = self._terms[address], self._terms.operands(address)
        masked = term.opcode == "INT_AND" and self._terms.value(operands[1]) in _WITHOUT_LOW_BITS
        return link in (address, operands[0] if masked else None)

    def is_caller(self, index: int, state: State, address: Term) -> bool:
        """Whether a return to ``address`` surely leads behind the call."""
        target, expected = state.value(address), self._graph.points[index].return_address
        if expected is not None:
            return state.base(address) is Base.NUMBER and target.is_constant and target.value & ~1 == expected
        return self.is_link(address)

    def _with_another_stack(self, pointers: Mapping[int, set[int | None]], states: Mapping[int, State]) -> set[int]:
        """The points of ``pointers``, the stack pointers of their returns, that are not known to pop their frame."""
        wanted = {self._graph.points[index].frame for index in pointers}
        entered: dict[object, set[int | None]] = {frame: set() for frame in wanted}
        for index, state in states.items():
            point = self._graph.points[index]
            place = point.context, point.block.address
            if place in entered:
                entered[place].add(stack_offset(state, self._stack_pointer))
        return {
            index
            for index, found in pointers.items()
            if None in found or len(found) > 1 or found != entered[self._graph.points[index].frame]
        }

    def _causes_first(self, notes: _Notes, states: Mapping[int, State]) -> tuple[int, ...]:
        """Points of returns not known to be of their function: those last that were entered with a lost stack."""
        found, points = notes.leaving | self._with_another_stack(notes.pointers, states), self._graph.points
        frames = {points[index].frame for index in found}
        entered = {index for index in states if (points[index].context, points[index].block.address) in frames}
        lost = {points[index].frame for index in entered if self.stack_offset(states[index]) is None}
        return tuple(sorted(found, key=lambda one: (points[one].frame in lost, -len(points[one].context), one)))

    def stack_offset(self, state: State) -> int | None:
        """See `call_effects.stack_offset`."""
        return stack_offset(state, self._stack_pointer)

    def may_go_elsewhere(self, index: int, state: State, address: Term) -> bool:
        """Whether a return that is not proved is known to have another way to go than behind the call.

        That is the caller of the first function, from one that it called, or one of a few addresses. A return that
        pops the frame of a caller is proved or else refused.
        """
        point, link = self._graph.points[index], self._terms.symbol(("in", self._registers["lr"]), 32)
        is_one_of_few = state.base(address) is Base.NUMBER and state.value(address).size <= MOST_READ
        is_made_of_link = point.return_address is not None and link in self._terms.symbols(address)
        return point.unwinds or is_one_of_few or is_made_of_link

    def makes_return_address(self, index: int, address: Term) -> bool:
        """Whether a callee that is analysed by itself returns to what it made of its return address, or of a register.

        The caller's blocks are not in its graph, where `strays` would find which of them is returned to; and what a
        register holds at entry may be the return address of a caller, which values tell where the call is expanded.
        """
        link = self._terms.symbol(("in", self._registers["lr"]), 32)
        is_own = self._graph.points[index].return_address is None
        given = {one for one in self._terms.symbols(address) if self._terms[one].arguments[0] == "in"}
        return self._is_called and (bool(given - {link}) or (is_own and link in given))

    def strays(self, index: int, state: State, address: Term) -> tuple[int, ...]:
        """Where a return to ``address`` leads if that surely is not behind the call; empty where it may be."""
        value = state.value(address)
        link = self._terms.symbol(("in", self._registers["lr"]), 32)
        if state.base(address) is not Base.NUMBER or value.size > MOST_READ or link in self._terms.symbols(address):
            return ()
        back, found = self._graph.points[index].return_address, {one & ~1 for one in value.values()}
        return () if back in found else tuple(sorted(found))

    def targets(self, state: State, target: Term) -> tuple[int, ...]:
        """All values of ``target``, where they follow from one symbol with few values and read-only memory."""
        return enumerated(state, target, self._memory, thumb=self._lifter.isa is Isa.THUMB)

    def refuse_made_code(self, node: int, state: State, target: Term) -> None:
        """Raise AnalysisError where control goes to the stack, whatever facts say of the targets there."""
        if state.base(target) is Base.STACK:
            raise AnalysisError(
                f"the branch or call at {self._memory.image.location(self.site(node))} goes to the stack: code that is "
                "made while it runs, such as the trampoline of a nested function, is not analysed; hand the function "
                "what it needs by arguments."
            )

    def site(self, node: int) -> int:
        """The address of the branch or call at the end of ``node``, or of the call whose table tells where it goes."""
        point = self._graph.points[node]
        return point.resumed_by or point.block.last_address


class _Notes:
    """The same equations, with notes of what the one visit of each node shows."""

    def __init__(self, analysis: _Analysis) -> None:
        self._analysis = analysis
        self.merged, self.resumed = analysis.merged, analysis.resumed
        self.widened, self.leq = analysis.widened, analysis.leq
        self.edges: dict[Edge, EdgeValues] = {}
        self.accesses: dict[int, tuple[Access, ...]] = {}
        self.indirect: dict[int, tuple[int, ...]] = {}
        self.return_sites: set[int] = set()
        self.unchecked: set[int] = set()
        self.strays: dict[int, tuple[int, ...]] = {}
        self.pointers: dict[int, set[int | None]] = {}
        self.leaving: set[int] = set()
        self.exits: set[int] = set()
        self._visited: set[int] = set()

    def flow(self, node: int, state: State) -> Iterable[tuple[Edge, EdgeValues]]:
        """What each edge out of ``node`` carries."""
        if node in self._visited:  # a check that found something, and begins anew
            self._forget()
        self._visited.add(node)
        found: list[Access] = []
        flows = self._analysis.flows_of(node, state, found.append)
        self.accesses[node] = tuple(found)
        for flow in flows:
            if flow.target is None:
                continue
            if flow.way == "return" and not self._analysis.resumes(node, flow):
                self._note_return(node, flow.state, flow.target)
            elif self._analysis.goes_back(node, flow):
                self.return_sites.add(self._analysis.site(node))
            else:
                self._analysis.refuse_made_code(node, flow.state, flow.target)
                self._note_targets(self._analysis.site(node), self._analysis.targets(flow.state, flow.target))
        taken = self._analysis.taken(node, flows)
        self.edges.update(taken)
        return taken.items()

    def _note_return(self, node: int, state: State, target: Term) -> None:
        """Where a return leads that is not proved to go to its caller."""
        if self._analysis.is_caller(node, state, target):
            return
        if self._analysis.makes_return_address(node, target):
            raise AnalysisError("it returns to an address that it makes of its return address.")
        self.unchecked.add(node)
        self.pointers.setdefault(node, set()).add(self._analysis.stack_offset(state))
        if self._analysis.may_go_elsewhere(node, state, target):
            self.leaving.add(node)
            if self._analysis.is_link(target):  # it is not that of the first function, which would be proved
                self.exits.add(node)
        strays = self._analysis.strays(node, state, target)
        if strays:
            self.strays[node] = strays

    def _note_targets(self, site: int, found: tuple[int, ...]) -> None:
        known = self.indirect.get(site)
        unknown = not found or known == ()  # in this context or in another
        self.indirect[site] = () if unknown else tuple(sorted({*(known or ()), *found}))

    def _forget(self) -> None:
        fresh = _Notes(self._analysis)
        vars(self).update(vars(fresh))


def _order(edge: Edge) -> tuple[int, int, str, int]:
    return edge.source, edge.target, edge.way, edge.address or 0
