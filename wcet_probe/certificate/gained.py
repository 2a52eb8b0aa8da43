# SPDX-License-Identifier: 0BSD
"""Following what is known on a way beyond the invariants, for pairs of edges.

Where the invariants of a node hold anyway, only what is *gained* has to be followed: narrower values of some places,
and what flags tell. A node that reads none of it is not executed again: what holds on its edges was found when the
graph was covered, and what was gained holds behind an edge still if its place has the name there that it had where the
node began. So a way of n nodes is followed in some n steps, most of which execute nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from heapq import heappop, heappush

from wcet_probe.certificate.coverage import Code, Coverage, edges_taken, run_block
from wcet_probe.certificate.numbers import ANY, TOP, Value, within
from wcet_probe.certificate.records import LEAVE, Edge, Graph
from wcet_probe.certificate.state import Comparison, Place, State, joined
from wcet_probe.certificate.walk import between_blocks
from wcet_probe.model.instruction import AccessKind

_MOST_VISITS = 4
_FLAGS = frozenset({"nzcv", *(f"cr{number}" for number in range(8))})
"""What flags are called that may be known from one node to the next."""
_EXECUTION = 30
"""Steps that the execution of a node counts for."""


_Key = tuple[str, frozenset[tuple[Place, Value]], frozenset[tuple[str, Comparison]]]
_Way = tuple[Edge | None, State, State]
"""An edge, or None out of the function; what is gained behind it; and all that holds there."""


@dataclass(frozen=True, slots=True)
class _Node:
    """How a node treats what is gained.

    Attributes:
        reads: registers that it looks at.
        loads: whether it looks at memory.
        stores: whether it writes to memory.
        looks: whether it may look at flags that were set before it.
        kept: by edge, which of these it leaves as they were.
    """

    reads: frozenset[str]
    loads: bool
    stores: bool
    looks: bool
    kept: Mapping[str, frozenset[str]]


class _Walk:
    """What is known at nodes, and those that are still to be followed, in their order."""

    def __init__(
        self,
        inside: Callable[[str], bool],
        stop: str | None,
        order: Mapping[str, int],
        gain: Callable[[str, State], State],
    ) -> None:
        self._inside, self._stop, self._order, self._gain = inside, stop, order, gain
        self._states: dict[str, State] = {}
        self._visits: dict[str, int] = {}
        self._waiting: list[tuple[int, str]] = []
        self._pending: set[str] = set()

    def follows(self, edge: Edge) -> bool:
        """Whether ``edge`` leads on."""
        return edge.target != self._stop and self._inside(edge.target)

    def arrive(self, edge: Edge, state: State) -> None:
        """``state`` is gained where ``edge`` arrives."""
        if not self.follows(edge):
            return
        node, old = edge.target, self._states.get(edge.target)
        if old is not None:
            state = self._gain(node, joined(old, state))
            if state == old:
                return
            self._visits[node] = self._visits.get(node, 0) + 1
            if self._visits[node] > _MOST_VISITS:  # what keeps changing is not followed any more
                state = State({place: value for place, value in state.values.items() if old.values.get(place) == value})
        self._states[node] = state
        if node not in self._pending:
            self._pending.add(node)
            heappush(self._waiting, (self._order[node], node))

    def __iter__(self) -> Iterator[tuple[str, State]]:
        while self._waiting:
            _, node = heappop(self._waiting)
            self._pending.remove(node)
            yield node, self._states[node]


class Gains:
    """Follows what is gained through one graph that is covered.

    Attributes:
        graph: the graph.
        coverage: of it.
    """

    def __init__(
        self, code: Code, graph: Graph, invariants: Mapping[str, Mapping[Place, Value]], coverage: Coverage
    ) -> None:
        """No steps are allowed yet. None of the arguments may change from then on."""
        self.graph, self.coverage = graph, coverage
        self._code, self._invariants = code, invariants
        self._left = 0
        self._nodes: dict[str, _Node] = {}
        self._steps: dict[_Key, tuple[_Way, ...] | None] = {}
        self._counted: set[_Key] = set()

    def allow(self, steps: int) -> None:
        """From here on so many ``steps`` may be made; what needs more is not followed.

        What was executed before is not executed again, but counts as if it were: so what is found does not depend on
        what was followed before.
        """
        self._left = steps
        self._counted.clear()

    @property
    def is_spent(self) -> bool:
        """Whether more steps were asked for than there are: nothing that was found since is to be used."""
        return self._left < 0

    def go(self, steps: int = 1) -> bool:
        """Make so many steps; whether there were as many."""
        self._left -= steps
        return self._left >= 0

    def reached(
        self, first: Edge, inside: Callable[[str], bool], stop: str | None, order: Mapping[str, int]
    ) -> set[str] | None:
        """The edges, and ``leave:NODE``, that an execution may take behind ``first``.

        Args:
            first: the edge, which is taken.
            inside: whether a node is followed.
            stop: a node that is not.
            order: nodes by number; those that lead to others first, but for loops.

        Returns:
            Their names; None if that takes too long, or a stack address is stored that nobody knew of.
        """
        walk = _Walk(inside, stop, order, self._gain)
        found = set[str]()
        walk.arrive(first, self._gain(first.target, between_blocks(self.coverage.taken[first.name])))
        for node, state in walk:
            known = self._looked_at(node, state)
            moves = self._steps_of(node, known)
            if moves is None or not self.go(1 + len(moves)):
                return None
            for edge, own, after in moves:
                found.add(edge.name if edge is not None else f"{LEAVE}{node}")
                if edge is not None and walk.follows(edge):
                    walk.arrive(edge, self._behind(edge, own, after, state, known))
        return found

    def _steps_of(self, node: str, known: State) -> tuple[_Way, ...] | None:
        """What executing ``node`` leads to where ``known`` was gained; None if it stores a stack address anew."""
        key = node, frozenset(known.values.items()), frozenset(known.flags.items())
        if key not in self._counted:
            self._counted.add(key)
            self.go(_EXECUTION)
        if key not in self._steps:
            machine = self.coverage.machine(self._code)
            values = {**self._invariants[node], **known.values}
            block = run_block(self._code, machine, self.graph, node, State(values, {}, dict(known.flags)))
            moves: list[_Way] = []
            for one in block.outcomes:
                if one.address is None or one.is_assumed:
                    moves.append((None, one.state, one.state))
                edges = edges_taken(self.graph, node, one)
                moves += [(edge, self._gain(edge.target, between_blocks(one.state)), one.state) for edge in edges]
            self._steps[key] = None if machine.found_escape > self.coverage.escapes else tuple(moves)
        return self._steps[key]

    def _gain(self, node: str, state: State) -> State:
        """What ``state`` tells where ``node`` begins that the invariants do not."""
        known = self._invariants[node]
        gained = {
            place: value
            for place, value in state.values.items()
            if value != (said := known.get(place, TOP if isinstance(place, str) else ANY)) and within(value, said)
        }
        return State(gained, {}, state.flags)

    def _looked_at(self, node: str, state: State) -> State:
        """That of ``state`` which executing ``node`` may show more by."""
        if node not in self._nodes:
            self._nodes[node] = self._node(node)
        treats, values = self._nodes[node], state.values
        compared = {place for one in state.flags.values() for place in (one.left, one.right, one.difference)}
        words = {place for place in (*values, *compared) if isinstance(place, int)}
        # A store to a word that nobody knows of leaves no trace.
        is_lost = treats.stores and not words <= self._invariants[node].keys()
        flags = state.flags if is_lost or treats.looks or not state.flags.keys() <= _FLAGS else {}
        reads = treats.reads | compared if flags else treats.reads
        has_words = is_lost or treats.loads or bool(flags)
        known = {
            place: one for place, one in values.items() if place in reads or (has_words and isinstance(place, int))
        }
        return State(known, {}, flags)

    def _behind(self, edge: Edge, own: State, after: State, state: State, known: State) -> State:
        """What is gained behind ``edge``: what executing its source shows, and what that leaves as it was.

        Args:
            edge: that is taken.
            own: what was gained by the execution.
            after: all that then holds.
            state: what was gained where the source began.
            known: that of it which was executed.
        """
        kept = self._nodes[edge.source].kept[edge.name]
        flags = {key: one for key, one in state.flags.items() if key in kept and key not in known.flags}
        values = {
            place: value
            for place, value in state.values.items()
            if place not in known.values
            and after.name(place) == place
            and not (place in own.values and within(own.values[place], value))
        }
        if flags:  # they name what they compare by where it stood: it may have been moved
            flags = between_blocks(State(after.values, after.names, flags)).flags
        elif not values:
            return own
        return self._gain(edge.target, State({**own.values, **values}, {}, {**own.flags, **flags}))

    def _node(self, node: str) -> _Node:
        """Execute ``node`` from its invariants, behind comparisons of which nothing is known."""
        looked: list[str] = []

        class Watched(Comparison):
            """Notes that a condition is decided by it."""

            def __getattribute__(self, name: str) -> object:
                if name in {"is_signed", "is_result"}:
                    looked.append(name)
                return object.__getattribute__(self, name)

        unknown = {key: Watched(object(), TOP, object(), TOP) for key in _FLAGS}
        machine = self.coverage.machine(self._code)
        state = State(dict(self._invariants[node]), {}, dict(unknown))
        block = run_block(self._code, machine, self.graph, node, state)
        looks = bool(looked)
        kept = {edge.name: set(_FLAGS) for edge in self.graph.leading[node]}
        for one in block.outcomes:
            for edge in edges_taken(self.graph, node, one):
                kept[edge.name] &= {key for key, own in unknown.items() if one.state.flags.get(key) is own}
        accesses = [access for one in block.instructions for access in one.accesses]
        registers = {part for access in accesses for part in (access.base, access.index) if part}
        registers.update(*(one.reads for one in block.instructions))
        loads = any(access.kind != AccessKind.STORE for access in accesses)
        stores = any(access.kind != AccessKind.LOAD for access in accesses)
        fixed = {name: frozenset(keys) for name, keys in kept.items()}
        return _Node(frozenset(registers), loads, stores, looks, fixed)
