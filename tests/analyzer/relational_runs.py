"""What programs of `relational_programs` do in a cache that is real, and what is allowed for it.

A run draws all values, the initial content of the cache, the branches, and what the policy leaves open. It ends where a
fact is broken.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from random import Random

from tests.analyzer.concrete_caches import ALIEN, EMPTY, contents, touches
from tests.analyzer.relational_programs import (
    LINE_BYTES,
    Program,
    Step,
    Sum,
    Variable,
    choices_of,
)
from wcet_probe.analyzer.dcache.misses import DataMisses
from wcet_probe.analyzer.facts.memory import Pointers
from wcet_probe.analyzer.ipet.exact_lp import Constraint, FlowSystem
from wcet_probe.analyzer.ipet.flow_problem import LinearConstraint
from wcet_probe.analyzer.ipet.flow_system import solve
from wcet_probe.analyzer.values.execution.accesses import Access
from wcet_probe.model.target import Replacement

_NOWHERE = 4096


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
