"""Tiny programs whose accesses are to lines known by name only.

A program has variables, whose values are addresses: arguments, and words that a block loads anew. An access is to a
variable plus a constant, to a known address, to a choice between two variables, or to an address without a name. The
analysis sees such a program as the value analysis would show it; `relational_runs` has what it does in a cache.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from types import SimpleNamespace

from wcet_probe.analyzer.dcache.allocated_before import Allocated, allocated_lines
from wcet_probe.analyzer.dcache.analysis import RelationalAnalysis, analyze
from wcet_probe.analyzer.dcache.miss_constraints import Shared, SharedMisses, shared_misses
from wcet_probe.analyzer.dcache.misses import DataMisses, data_misses
from wcet_probe.analyzer.dcache.resident_at_entry import resident_lines
from wcet_probe.analyzer.dcache.scopes import Scopes
from wcet_probe.analyzer.dcache.strided_traversals import StridedTraversals
from wcet_probe.analyzer.dcache.symbolic_blocks import SymbolicBlock, SymbolicBlocks
from wcet_probe.analyzer.dcache.younger_sets import LineAccess
from wcet_probe.analyzer.domains import strided
from wcet_probe.analyzer.domains.strided import StridedInterval
from wcet_probe.analyzer.facts.memory import PointerFacts, Pointers
from wcet_probe.analyzer.graph.loop_forest import loop_forest
from wcet_probe.analyzer.graph.supergraph import EXIT, Edge
from wcet_probe.analyzer.values.execution.accesses import Access
from wcet_probe.analyzer.values.result import EdgeValues, Values
from wcet_probe.analyzer.values.states.bases import Base
from wcet_probe.analyzer.values.states.state import State
from wcet_probe.analyzer.values.symbolic.locations import Location
from wcet_probe.analyzer.values.symbolic.term_table import Term
from wcet_probe.analyzer.values.symbolic.terms import Terms
from wcet_probe.catalog.lookup import load_target
from wcet_probe.model.target import CacheConfig, Target

LINE_BYTES = 16


@cache
def _target() -> Target:
    """A fill, or a write-back, costs 10 cycles, a single access 1."""
    target = load_target("mpc603e")
    old = target.memory
    numbers = {"beat_bytes": 8, "first_beat_cycles": 1, "next_beat_cycles": 9}
    memory = replace(old, **{name: replace(getattr(old, name), value=value) for name, value in numbers.items()})
    return replace(target, memory=memory)


@dataclass(frozen=True)
class Variable:
    """``point`` and ``place`` say which block loads it, before which of its accesses; no point: an argument.

    ``choices`` are the values that it may have. ``range`` is what the analysis is told of them. Where there are
    ``sources``, it is not loaded, but is on each edge to ``point`` another variable, or none, plus a constant.
    """

    point: int | None
    place: int
    choices: tuple[int, ...]
    range: StridedInterval
    sources: Mapping[tuple[int, int], tuple[int | None, int]] = field(default_factory=dict)


@dataclass(frozen=True)
class Choice:
    """Variable ``one`` where ``condition`` is ``constant``, else ``other``."""

    condition: int
    constant: int
    one: int
    other: int


@dataclass(frozen=True)
class Sum:
    """The sum of two variables."""

    one: int
    other: int


Address = int | Choice | Sum | None
"""What an access is to, but for a constant."""


@dataclass(frozen=True)
class Step:
    """An access to a variable (a number), a choice, a sum, or a known address (None), ``offset`` bytes further.

    An access that is not ``is_named`` may be to any address.
    """

    to: Address
    offset: int
    is_store: bool
    is_certain: bool
    is_named: bool


@dataclass(frozen=True)
class Program:
    """Blocks of steps, edges, and the variables that each edge's state is silent about.

    ``asserted`` are facts that speak of single accesses, by block and place.
    """

    steps: tuple[tuple[Step, ...], ...]
    edges: tuple[tuple[int, int], ...]
    variables: tuple[Variable, ...]
    killed: Mapping[tuple[int, int], frozenset[int]]
    config: CacheConfig
    asserted_bytes: int
    line_count: int
    asserted: Mapping[tuple[int, int], Pointers] = field(default_factory=dict)

    @property
    def exits(self) -> frozenset[int]:
        return frozenset(range(len(self.steps))) - {source for source, target in self.edges if source != target}

    @cached_property
    def target(self) -> Target:
        """One with this cache."""
        return replace(_target(), dcache=self.config)

    @cached_property
    def view(self) -> View:
        return View(self)


class View:
    """What the value analysis would show of a program, and what the analysis of the cache makes of it."""

    def __init__(self, program: Program) -> None:
        self.program, self.terms = program, Terms()
        self.symbols = [self._leaf(number, variable) for number, variable in enumerate(program.variables)]
        points = range(len(program.steps))
        state = self._state(frozenset())
        edges = {
            Edge(s, t, "jump", t): self._state(program.killed.get((s, t), frozenset()), (s, t))
            for s, t in program.edges
        }
        edges |= {Edge(point, EXIT, "return", None): state for point in program.exits}
        successors = {p: tuple(t for s, t in program.edges if s == p) for p in points}
        forest = loop_forest(successors, 0)
        self.accesses = {p: tuple(self._access(p, i, s) for i, s in enumerate(program.steps[p])) for p in points}
        blocks = [SimpleNamespace(block=SimpleNamespace(instructions=self._instructions(p))) for p in points]
        self.values = Values(
            graph=SimpleNamespace(points=blocks),  # type: ignore[arg-type]
            terms=self.terms,
            states=dict.fromkeys(points, state),
            edges={edge: EdgeValues(edge, own, ()) for edge, own in edges.items()},
            accesses=self.accesses,
            indirect={},
            unchecked_returns=(),
            forest=forest,
            registers={},
        )
        self.pointers = PointerFacts(
            Pointers(program.asserted_bytes),
            {_address(*place): asserted for place, asserted in program.asserted.items()},
        )

    @cached_property
    def data(self) -> DataMisses:
        return data_misses(self.values, self.program.target, self.pointers)

    @cached_property
    def lines(self) -> SymbolicBlocks:
        return SymbolicBlocks(self.values, self.program.config, self.pointers)

    @cached_property
    def traversals(self) -> StridedTraversals:
        return StridedTraversals(self.values, self.lines, self.program.config)

    @cached_property
    def named(self) -> dict[int, list[LineAccess]]:
        config = self.program.config
        return {
            point: [
                LineAccess(
                    self.lines.of_access(one),
                    config.write_allocate or not one.is_store,
                    one.is_certain,
                    self.lines.candidates_of(one),
                    self.traversals.of(point, self.lines.of_access(one), is_certain=one.is_certain),
                    one.is_store and config.write_back,
                )
                for one in found
            ]
            for point, found in self.accesses.items()
        }

    @cached_property
    def analysis(self) -> RelationalAnalysis:
        return analyze(self.values, self.lines, self.named, self.program.config, self.traversals.found)

    @cached_property
    def scopes(self) -> Scopes:
        sure = {p: {a.line for a in own if a.is_certain and a.fills} for p, own in self.named.items()}
        return Scopes(self.values, sure, resident_lines(self.values, self.named, self.analysis))

    def shared(self, point: int, index: int) -> Shared | None:
        """Whose misses an access shares, if any."""
        access, verdict = self.named[point][index], self.analysis.verdicts[point][index]
        traversed = (
            access.traversed if verdict.is_persistent_in_traversal and not verdict.is_persistent_in_call else None
        )
        traversed = traversed if traversed and self.traversals.by_name[traversed.group].step_bytes else None
        if verdict.is_hit or not (verdict.is_persistent or verdict.is_persistent_in_call or traversed):
            return None
        candidates = frozenset(access.candidates if verdict.is_persistent_in_call else ())
        return Shared(access.line if verdict.is_persistent else None, candidates, traversed)

    @cached_property
    def allocated(self) -> Mapping[SymbolicBlock, Mapping[Edge, Allocated]]:
        return allocated_lines(self.values, self.named, self.analysis)

    @cached_property
    def stores(self) -> dict[SymbolicBlock, set[tuple[int, int]]]:
        """Places of the stores, by line, that are single writes only if no access by that name filled it before."""
        found: dict[SymbolicBlock, set[tuple[int, int]]] = {}
        for point, own in self.named.items():
            for index, (access, verdict) in enumerate(zip(own, self.analysis.verdicts[point], strict=True)):
                key = self.shared(point, index)
                if key and key.line:
                    found[key.line] = {place for place in found.get(key.line, ()) if place[0] != point}
                elif access.line and access.modifies and verdict.is_kept and not (verdict.is_hit or access.fills):
                    found.setdefault(access.line, set()).add((point, index))
        return found

    def shared_misses(self, keys: frozenset[Shared], stored: frozenset[SymbolicBlock] = frozenset()) -> SharedMisses:
        """What is said of the misses of the accesses that share those of ``keys``, as if there were no others.

        And of the ``stores`` to the lines that are ``stored``.
        """
        found: dict[Shared, list[int]] = {}
        for point, own in self.named.items():
            for index in range(len(own)):
                key = self.shared(point, index)
                if key in keys:
                    found.setdefault(key, []).append(point)
        writes = {line: Counter(point for point, _ in sorted(self.stores[line])) for line in sorted(stored)}
        traversals, groups = self.traversals.by_name, self.lines.groups
        return shared_misses(
            found, self.scopes, traversals, groups, LINE_BYTES, writes=writes, allocated=self.allocated
        )

    def _instructions(self, point: int) -> tuple[SimpleNamespace, ...]:
        return tuple(SimpleNamespace(address=_address(point, index)) for index in range(len(self.program.steps[point])))

    def _leaf(self, number: int, variable: Variable) -> Term:
        location = Location("register", 4 * number, 4)
        name = ("in", location) if variable.point is None else (variable.point, number, 0)
        name = ("phi", (variable.point,), location) if variable.sources else name
        return self.terms.symbol(name, 32)

    def _state(self, killed: frozenset[int], edge: tuple[int, int] | None = None) -> State:
        """At the entry of a block, or on an edge."""
        state = State(self.terms, big_endian=True)
        for number, symbol in enumerate(self.symbols):
            location = Location("register", 4 * number, 4)
            state.set_location(location, self.terms.constant(0, 32) if number in killed else symbol)
            if edge in (sources := self.program.variables[number].sources):
                source, constant = sources[edge]
                resident = self.terms.constant(0, 32) if source is None else self.symbols[source]
                term = self.terms.apply("INT_ADD", (resident, self.terms.constant(constant, 32)), 32)
                state.set_location(location, self.terms.constant(0, 32) if term is None else term)
            if number not in killed and not self.program.variables[number].range.is_top:
                state.set_known(symbol, self.program.variables[number].range)
        return state

    def _term(self, to: Address) -> Term:
        match to:
            case None:
                return self.terms.constant(0, 32)
            case int():
                return self.symbols[to]
            case Sum():
                total = self.terms.apply("INT_ADD", (self.symbols[to.one], self.symbols[to.other]), 32)
                assert total is not None
                return total
        left, right = self.symbols[to.condition], self.terms.constant(to.constant, 32)
        condition = self.terms.apply("INT_EQUAL", (left, right), 8)
        chosen = (
            None if condition is None else self.terms.gamma(condition, self.symbols[to.one], self.symbols[to.other])
        )
        assert chosen is not None
        return chosen

    def _access(self, point: int, index: int, step: Step) -> Access:
        terms = self.terms
        pointer = terms.apply("INT_ADD", (self._term(step.to), terms.constant(step.offset, 32)), 32)
        assert pointer is not None
        form, state = terms.linear(pointer), self._state(frozenset())
        parts = tuple((factor, term, state.value(term)) for term, factor in form.coefficients.items())
        used = variables_of(step.to)
        old = any((v := self.program.variables[u]).point == point and v.place > index for u in used)
        known = step.is_named and not old
        return Access(
            instruction_address=_address(point, index),
            is_store=step.is_store,
            base=Base.NUMBER,
            offset=state.value(pointer) if step.is_named else strided.top(32),
            size_bytes=4,
            pointer=pointer if known else None,
            constant=form.constant if step.is_named else 0,
            parts=parts if step.is_named else ((1, terms.symbol(("was", point, index), 32), strided.top(32)),),
            is_certain=step.is_certain,
        )


def _address(point: int, index: int) -> int:
    return 0x1000 * (point + 1) + 4 * index


def variables_of(to: Address) -> frozenset[int]:
    """The variables that an address is made of."""
    match to:
        case None:
            return frozenset()
        case int():
            return frozenset({to})
        case Sum():
            return frozenset({to.one, to.other})
    return frozenset({to.condition, to.one, to.other})


def choices_of(program: Program) -> frozenset[Choice]:
    """The choices that accesses of ``program`` go to."""
    return frozenset(step.to for block in program.steps for step in block if isinstance(step.to, Choice))
