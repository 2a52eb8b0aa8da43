"""The result of the value analysis: what is known at each point and on each edge that can be taken.

Words: abstract state, killed binding (docs/explanation/glossary.md).

*Soundness:* as of `analyzer.values.analysis`: what is not here is not taken.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Generic, TypeVar

from wcet_probe.analyzer.graph.flow_order import FlowOrder
from wcet_probe.analyzer.graph.loop_forest import Loop
from wcet_probe.analyzer.graph.supergraph import EXIT, Edge, Supergraph, Unwinding
from wcet_probe.analyzer.values.execution.accesses import Access
from wcet_probe.analyzer.values.execution.call_effects import Summarised
from wcet_probe.analyzer.values.meetings import Meetings, no_meetings
from wcet_probe.analyzer.values.states.held_addresses import ANYWHERE, Held
from wcet_probe.analyzer.values.states.joins import live_symbols
from wcet_probe.analyzer.values.states.plain_numbers import as_words
from wcet_probe.analyzer.values.states.state import State
from wcet_probe.analyzer.values.symbolic.locations import Location
from wcet_probe.analyzer.values.symbolic.term_table import Term
from wcet_probe.analyzer.values.symbolic.terms import Terms

_Key = TypeVar("_Key")
_Content = TypeVar("_Content")


@dataclass(frozen=True, slots=True)
class EdgeValues:
    """What is known where control takes an edge: the state, and the conditions that its block learnt on the way.

    ``calls`` are the calls that are not expanded but stand on the edge.
    """

    edge: Edge
    state: State
    conditions: tuple[tuple[Term, bool], ...]
    calls: tuple[Summarised, ...] = ()


@dataclass(frozen=True)
class Values:
    """The result of the value analysis.

    Attributes:
        graph: the analysed graph; only what has a state can be reached.
        terms: the table that the states' terms are of.
        states: at the entry of each reachable point.
        edges: of each edge that can be taken.
        accesses: data accesses by point.
        indirect: targets of the indirect branches and calls that can be reached; none where they could not be found.
        return_sites: addresses of indirect jumps that go to the return address of their function.
        unwound: where the returns lead that surely do not go behind the call but to one address, or to the caller of
            the analysed function, by context and address of their block.
        unchecked_returns: points whose return address could not be proved to be the caller's.
        strays: where the returns lead that surely do not go to the caller, by point.
        unwinding: points whose return is not known to be one of their function: its address could not be proved, and
            the stack pointer is not known to be the one that the function was entered with, or the address is known
            to be another one or may be (`_Analysis.may_go_elsewhere`).
        forest: reachable points and their loops.
        registers: the registers' locations by name.
        stack_escapes: whether a stack address may have been stored outside the stack.
        held: where one may have been stored on the stack.
        assumes_plain_frames: whether what is loaded from the stack was assumed to be no address of it.
        meetings: symbols that are defined where ways meet within the block of a point.
        visits: how often a block was executed to find them.
        saving: the operations that save registers, where that is assumed to stay, see `saved_words`.
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
    unwound: Unwinding = field(default_factory=dict)
    strays: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    unwinding: tuple[int, ...] = ()
    stack_escapes: bool = False
    held: Held = ANYWHERE
    assumes_plain_frames: bool = False
    meetings: Meetings = no_meetings
    visits: int = 0
    saving: Mapping[tuple[int, int], int] = field(default_factory=dict)

    @cached_property
    def order(self) -> FlowOrder[Edge]:
        """The points that can be reached, and the edges between them."""
        return FlowOrder(self.states, (edge for edge in self.edges if edge.target != EXIT))

    @cached_property
    def executed(self) -> dict[object, Any]:
        """What was found by executing nests of these values, for `loops.abstract_execution` to find it again."""
        return {}

    @cached_property
    def leaving(self) -> Mapping[int, tuple[Edge, ...]]:
        """The edges that can be taken out of each point, in their order."""
        found: dict[int, list[Edge]] = {point: [] for point in self.states}
        for edge in self.edges:
            found[edge.source].append(edge)
        return {point: tuple(own) for point, own in found.items()}

    @cached_property
    def arriving(self) -> Mapping[int, tuple[Edge, ...]]:
        """The edges that can be taken to each point, in their order."""
        found: dict[int, list[Edge]] = {point: [] for point in self.states}
        for edge in self.edges:
            found.setdefault(edge.target, []).append(edge)
        return {point: tuple(own) for point, own in found.items()}

    def within(self, nodes: Collection[int]) -> Iterator[Edge]:
        """The edges that can be taken from one of ``nodes`` to another, in their order but by ascending targets."""
        for target in sorted(nodes):
            yield from (edge for edge in self.arriving.get(target, ()) if edge.source in nodes)

    @cached_property
    def conditions(self) -> Mapping[Edge, tuple[tuple[Term, bool], ...]]:
        """The conditions of each edge, for who asks nothing of its state, which `as_words` would have to make."""
        return {edge: found.conditions for edge, found in self.edges.items()}

    @cached_property
    def held_terms(self) -> Mapping[int, Mapping[Location, Term]]:
        """What places hold at each point, likewise."""
        return {point: state.locations for point, state in self.states.items()}

    @cached_property
    def register_names(self) -> Mapping[Location, str]:
        """Of each location of a register its name, the last one where it has several."""
        return {place: name for name, place in self.registers.items()}

    @cached_property
    def killed(self) -> Mapping[Edge, frozenset[Term]]:
        """The bindings that each edge kills: symbols its state does not speak of, while that behind it does.

        *Soundness:* see `joins.live_symbols`: what is known of such a symbol behind the edge need not be true of the
        value that it had before.
        """
        states = {index: frozenset(live_symbols(state)) for index, state in self.states.items()}
        return {
            edge: states.get(edge.target, frozenset()) - live_symbols(found.state) for edge, found in self.edges.items()
        }

    @cached_property
    def as_words(self) -> Values:
        """The same, each word that may be an address or a number told as the number that it is: for what counts.

        *Soundness:* as of `plain_numbers.as_words`, which is true of the words alone: accesses are as they were.
        """
        words = replace(
            self,
            states=_Changed(self.states, as_words),
            edges=_Changed(self.edges, lambda found: replace(found, state=as_words(found.state))),
        )
        same = ("order", "executed", "leaving", "arriving", "register_names", "killed", "conditions", "held_terms")
        vars(words).update({name: getattr(self, name) for name in same}, as_words=words)
        return words


class _Changed(Mapping[_Key, _Content], Generic[_Key, _Content]):
    """A mapping whose contents are changed where they are asked for, each once."""

    def __init__(self, before: Mapping[_Key, _Content], change: Callable[[_Content], _Content]) -> None:
        self._before, self._change = before, change
        self._found: dict[_Key, _Content] = {}

    def __getitem__(self, key: _Key) -> _Content:
        found = self._found.get(key)
        if found is None:
            found = self._found[key] = self._change(self._before[key])
        return found

    def __contains__(self, key: object) -> bool:
        return key in self._before  # that of `Mapping` asks for the content, which is dear

    def __iter__(self) -> Iterator[_Key]:
        return iter(self._before)

    def __len__(self) -> int:
        return len(self._before)
