"""What data accesses cost behind a cache: misses that take place each time, misses that a stay shares, write-backs.

An access that always hits costs nothing more. One that is persistent shares its misses with the others to the same
line, or to the few lines that a group lies in: they are events of the flow problem, limited by how often the stay
begins. Everything else misses each time. A miss that fills writes a line back at most, and a line can be written back
only if it was modified before the call, or by a store of it: a further event, limited by both.

*Soundness:* as said of `relational_cache`; the cache may hold anything at entry, all of it modified.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from wcet_probe.analyzer.flow_graph import Limit
from wcet_probe.analyzer.forest import loops_of
from wcet_probe.analyzer.ipet import FlowEvent
from wcet_probe.analyzer.memory_facts import PointerFacts
from wcet_probe.analyzer.relational_cache import LineAccess, analyze
from wcet_probe.analyzer.state import defined_at
from wcet_probe.analyzer.symbolic_lines import Group, Line, Lines
from wcet_probe.analyzer.transfer import Access
from wcet_probe.analyzer.values import Values
from wcet_probe.model import CacheConfig, Target


@dataclass(frozen=True, slots=True)
class DataMisses:
    """Cycles that the core waits for data.

    Attributes:
        points: in each execution of a point.
        events: besides, with their limits.
        lines: names of the lines; None without a cache.
    """

    points: Mapping[int, int]
    events: tuple[FlowEvent, ...]
    limits: tuple[Limit, ...]
    lines: Lines | None


def data_misses(values: Values, target: Target, pointers: PointerFacts) -> DataMisses:
    """What the data accesses of ``values`` cost, whatever the data cache holds at entry.

    Args:
        values: accesses by point.
        target: cache and memory.
        pointers: what flow facts say of addresses of which nothing else is known.

    *Soundness:* as said of the module.
    """
    config = target.dcache
    if config is None:
        single = target.memory.single_cycles
        return DataMisses({point: single * len(found) for point, found in values.accesses.items()}, (), (), None)
    lines = Lines(values, config, pointers)
    named = {point: [_line_access(lines, one, config) for one in values.accesses[point]] for point in values.states}
    analysis = analyze(values, lines, named, config)
    costs = _Costs(values, target, config)
    for point in sorted(values.states):
        for access, one, verdict in zip(values.accesses[point], named[point], analysis.verdicts[point], strict=True):
            is_through = access.is_store and not config.write_back
            if is_through or not (verdict.is_hit or one.fills):
                costs.cycles[point] += target.memory.single_cycles
            if verdict.is_hit or not one.fills:
                continue
            if one.line is None:
                costs.misses[point] += max(1, -(-access.size_bytes // config.line_bytes))
            elif verdict.is_persistent:
                costs.shared.setdefault(one.line, []).append(point)
            elif verdict.is_persistent_in_block:
                costs.local.setdefault((point, one.line.group), set()).add(one.line.granule)
            else:
                costs.misses[point] += 1
    for (point, group), granules in costs.local.items():
        costs.misses[point] += lines.groups[group].most_lines(granules, config.line_bytes)
    return costs.result(lines)


def _line_access(lines: Lines, access: Access, config: CacheConfig) -> LineAccess:
    fills = config.write_allocate or not access.is_store
    return LineAccess(lines.of_access(access), fills, access.is_certain)


@dataclass(slots=True)
class _Costs:
    """What was found of the accesses so far.

    Attributes:
        cycles, misses: by point.
        shared: points of the persistent accesses, by line.
        local: granules of the accesses that are persistent in a block only, by point and group.
    """

    values: Values
    target: Target
    config: CacheConfig
    cycles: Counter[int] = field(default_factory=Counter)
    misses: Counter[int] = field(default_factory=Counter)
    shared: dict[Line, list[int]] = field(default_factory=dict)
    local: dict[tuple[int, int], set[int]] = field(default_factory=dict)

    def result(self, lines: Lines) -> DataMisses:
        """Cycles, events and limits."""
        fill = self.target.memory.line_cycles(self.config.line_bytes)
        repeated = frozenset(node for loop in loops_of(self.values.forest) for node in loop.nodes)
        events: list[FlowEvent] = []
        limits: list[Limit] = []
        by_group: dict[int, dict[int, list[int]]] = {}
        for line, points in sorted(self.shared.items()):
            by_group.setdefault(line.group, {})[line.granule] = points
        for number, granules in by_group.items():
            self._share(lines.groups[number], number, granules, repeated, events, limits, fill)
        misses = tuple((event.name, 1) for event in events)
        if self.config.write_back:
            events.append(FlowEvent("write-backs", fill))
            limits += self._write_back_limits(misses)
        cycles = Counter(self.cycles)
        for point, count in self.misses.items():
            cycles[point] += count * fill
        return DataMisses(cycles, tuple(events), tuple(limits), lines)

    def _share(
        self,
        group: Group,
        number: int,
        granules: Mapping[int, list[int]],
        repeated: frozenset[int],
        events: list[FlowEvent],
        limits: list[Limit],
        fill: int,
    ) -> None:
        """The misses of the persistent accesses of a group.

        *Soundness:* a stay begins where one of the group's leaves is defined. Those that are not in a loop are defined
        once at most, and all of them before the group is accessed.
        """
        starts = sorted(
            {
                point
                for leaf in group.leaves
                if (point := defined_at(self.values.terms[leaf].arguments)) in repeated and point is not None
            }
        )
        most = group.most_lines(granules, self.config.line_bytes)
        names = []
        for granule, points in granules.items():
            alone = len(points) == 1 and (points[0] not in repeated or points == starts)
            if alone and most == len(granules):
                self.misses[points[0]] += 1
                continue
            name = f"miss:{number}.{granule}"
            names.append(name)
            events.append(FlowEvent(name, fill))
            executed = tuple((point, -count) for point, count in sorted(Counter(points).items()))
            limits.append(Limit(f"{name}:executed", executed, events=((name, 1),)))
            limits.append(self._stays(f"{name}:stay", (name,), starts, 1))
        if names and most < len(granules):
            limits.append(self._stays(f"miss:{number}:lines", names, starts, most))

    @staticmethod
    def _stays(name: str, events: Sequence[str], starts: Sequence[int], most: int) -> Limit:
        return Limit(
            name,
            tuple((point, -most) for point in starts),
            events=tuple((event, 1) for event in events),
            constant=0 if starts else most,
        )

    def _write_back_limits(self, misses: tuple[tuple[str, int], ...]) -> Iterator[Limit]:
        """A write-back takes a miss, and a line that was modified."""
        stores = Counter(
            {p: sum(access.is_store for access in self.values.accesses[p]) for p in self.values.states}
        )
        yield Limit(
            "write-backs:misses",
            tuple((point, -count) for point, count in sorted(self.misses.items())),
            events=(("write-backs", 1), *((name, -count) for name, count in misses)),
        )
        yield Limit(
            "write-backs:modified",
            tuple((point, -count) for point, count in sorted(stores.items()) if count),
            events=(("write-backs", 1),),
            constant=self.config.sets * self.config.ways,
        )
