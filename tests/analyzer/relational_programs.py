"""Tiny random programs whose accesses are to lines known by name only, and what they do in a cache that is real.

A program has variables, whose values are addresses: arguments, and words that a block loads anew. An access is to a
variable plus a constant, to a known address, to a choice between two variables, or to an address without a name. The
analysis sees such a program as the value analysis would show it; a run draws all values, the initial content of the
cache, the branches, and what the policy leaves open. It ends where a fact is broken.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from random import Random
from types import SimpleNamespace

from tests.analyzer.concrete_caches import ALIEN, EMPTY, contents, touches
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
from wcet_probe.analyzer.ipet.exact_lp import Constraint, FlowSystem
from wcet_probe.analyzer.ipet.flow_problem import LinearConstraint
from wcet_probe.analyzer.ipet.flow_system import solve
from wcet_probe.analyzer.values.analysis import EdgeValues, Values
from wcet_probe.analyzer.values.locations import Location
from wcet_probe.analyzer.values.state import Base, State
from wcet_probe.analyzer.values.terms import Term, Terms
from wcet_probe.analyzer.values.transfer import Access
from wcet_probe.catalog.lookup import load_target
from wcet_probe.model.target import CacheConfig, Replacement, Target

LINE_BYTES = 16
_NOWHERE = 4096


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


@dataclass
class Situation:
    """A moment of a run: values of the variables, sets, lines that were modified."""

    values: list[int]
    sets: list[tuple[int, ...]]
    modified: set[int]


@cache
def _contents(policy: Replacement, ways: int, lines: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    return contents(policy, ways, lines)


def start(program: Program, random: Random, *, is_modified: bool = True) -> Situation:
    """Any values and any content of the cache; all or nothing that it holds ``is_modified``."""
    config, lines = program.config, range(program.line_count)
    sets = []
    for number in range(config.sets):
        own = tuple(line for line in lines if line % config.sets == number)
        if random.random() < 0.5:
            sets.append(random.choice(_contents(config.replacement, config.ways, own)))
        else:  # full of the program's own lines
            kept = random.sample(own, min(len(own), config.ways))
            kept += [ALIEN] * (config.ways - len(kept))
            sets.append(tuple(sorted(kept)) if config.replacement.has_seed else tuple(kept))
    return Situation(
        [random.choice(one.choices) for one in program.variables], sets, set(lines) if is_modified else set()
    )


@dataclass(frozen=True)
class Event:
    """An access of a run: where it stands, its line, and whether it missed; None if it did not take place.

    It ``modifies`` a line in the cache that was not modified; or it is a store that goes past the cache.
    """

    point: int
    index: int
    line: int | None
    miss: bool | None
    modifies: bool = False
    is_single: bool = False


class BrokenFactError(Exception):
    """An access is to an address that a fact excludes."""


class Run:
    """Executes blocks: what each access does, and the cycles that it costs.

    An access to an address that cross-checked runs are not to show raises BrokenFactError.
    """

    def __init__(self, program: Program, random: Random, *, is_modified: bool = True) -> None:
        self.program, self.random = program, random
        self.now = start(program, random, is_modified=is_modified)
        self.cycles = 0
        self.points: Counter[int] = Counter()
        self.taken: Counter[tuple[int, int]] = Counter()
        self.visited: set[int] = set()
        self._fill = program.target.memory.line_cycles(LINE_BYTES)
        self._single = program.target.memory.single_cycles

    def block(self, point: int) -> Iterator[Event]:
        """Execute block ``point``."""
        self.points[point] += 1
        own = [(n, v) for n, v in enumerate(self.program.variables) if v.point == point and not v.sources]
        for index, step in enumerate(self.program.steps[point]):
            self._define(own, index)
            if not step.is_certain and self.random.random() < 0.5:
                yield Event(point, index, None, None)
            else:
                address = self._address(step)
                self._observe(address, self.program.view.accesses[point][index])
                self._visit(step, address // LINE_BYTES, self.program.asserted.get((point, index)))
                yield Event(point, index, *self._access(step, address))
        self._define(own, _NOWHERE)

    def _observe(self, address: int, access: Access) -> None:
        places = self.program.view.lines.places
        sets = places.sets_of(access)
        is_allowed = sets is None or address // LINE_BYTES % self.program.config.sets in sets
        if address not in places.observable(access) or not is_allowed:
            raise BrokenFactError

    def _visit(self, step: Step, line: int, asserted: Pointers | None) -> None:
        if asserted and asserted.visit == "again" and line not in self.visited:
            raise BrokenFactError
        if step.is_store:
            self.visited.discard(line)
        if asserted and asserted.visit == "first":
            self.visited.add(line)

    def leave(self, point: int) -> int | None:
        """Take an edge that can be taken."""
        targets = [e for e in self.program.edges if e[0] == point and self._can(e)]
        if not targets:
            return None
        edge = self.random.choice(targets)
        self.taken[edge] += 1
        before = list(self.now.values)
        for number in self.program.killed.get(edge, ()):
            self.now.values[number] = self.random.choice(self.program.variables[number].choices)
        for number, variable in enumerate(self.program.variables):
            if edge in variable.sources:
                source, constant = variable.sources[edge]
                self.now.values[number] = (0 if source is None else before[source]) + constant
        return edge[1]

    def _can(self, edge: tuple[int, int]) -> bool:
        """Where a state is silent about a part of a choice, it is not the part that is chosen."""
        killed = self.program.killed.get(edge, frozenset())
        for choice in choices_of(self.program):
            if choice.condition not in killed:
                chosen = choice.one if self.now.values[choice.condition] == choice.constant else choice.other
                if chosen in killed:
                    return False
        return True

    def _define(self, own: Sequence[tuple[int, Variable]], index: int) -> None:
        for number, variable in own:
            if variable.place == index or (index == _NOWHERE and variable.place >= len(self._steps_of(variable))):
                self.now.values[number] = self.random.choice(variable.choices)

    def _steps_of(self, variable: Variable) -> tuple[Step, ...]:
        return self.program.steps[variable.point or 0]

    def _address(self, step: Step) -> int:
        values = self.now.values
        if not step.is_named:
            return self.random.randrange(self.program.line_count) * LINE_BYTES
        match step.to:
            case None:
                return step.offset
            case int():
                return values[step.to] + step.offset
            case Sum():
                return values[step.to.one] + values[step.to.other] + step.offset
        chosen = step.to.one if values[step.to.condition] == step.to.constant else step.to.other
        return values[chosen] + step.offset

    def _access(self, step: Step, address: int) -> tuple[int, bool, bool, bool]:
        config, now = self.program.config, self.now
        line = address // LINE_BYTES
        number = line % config.sets
        fills = config.write_allocate or not step.is_store
        old = now.sets[number]
        ways = touches(config.replacement, config.ways, old, line, fills=fills)
        hit, new = ways[0] if len(ways) == 1 else self.random.choice(ways)
        now.sets[number] = new
        through = step.is_store and not config.write_back
        self.cycles += self._single * (through or not (hit or fills))
        if not hit and fills:
            self.cycles += self._fill
            gone = Counter(old) - Counter(new)
            gone.pop(EMPTY, None)
            for victim in gone:
                self.cycles += self._fill * (config.write_back and (victim == ALIEN or victim in now.modified))
                now.modified.discard(victim)
            now.modified.discard(line)
        modifies = step.is_store and config.write_back and (hit or fills) and line not in now.modified
        if modifies:
            now.modified.add(line)
        return line, not hit, modifies, not (hit or fills)


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


def bound_of(data: DataMisses, run: Run) -> int:
    """Most cycles that ``data`` allows for the points and edges that ``run`` executed."""
    auxiliaries = most_events(data.constraints, {auxiliary.name: auxiliary.cost for auxiliary in data.auxiliaries}, run)
    return auxiliaries + cycles_of_points(data, run)


def cycles_of_points(data: DataMisses, run: Run) -> int:
    """The part of `bound_of` that needs no linear program: no event costs less than nothing."""
    return sum(count * data.points.get(point, 0) for point, count in run.points.items())


def most_events(constraints: Sequence[LinearConstraint], costs: Mapping[str, int], run: Run) -> int:
    """Most that events cost for the points and edges that ``run`` executed."""
    names = [constraint.name for constraint in constraints]
    assert len(set(names)) == len(names), names  # duals are by name
    rows = []
    for constraint in constraints:
        room = constraint.constant - sum(factor * run.points[point] for point, factor in constraint.points)
        room -= sum(
            factor * run.taken[edge.source, edge.target] for edge, factor in constraint.edges if edge is not None
        )
        rows.append(Constraint(constraint.name, dict(constraint.auxiliaries), "<=", room))
    return solve(FlowSystem(tuple(costs), costs, tuple(rows))).certified if costs else 0
