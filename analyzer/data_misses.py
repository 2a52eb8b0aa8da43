"""What data accesses cost behind a cache: misses that take place each time, misses that a stay shares, write-backs.

An access that always hits costs nothing more. One that is persistent shares its misses with the others to the same
line, or to the few lines that a group lies in: they are events of the flow problem, limited by how often the stay
begins. Accesses to objects that facts count miss once for each line (`object_lines`). Everything else misses each time.
Where a store that misses is a single write, and first-in first-out, the store misses only if no access in the stay
filled the line (`RelationalCache.is_kept`): such writes are events that share the limit of the line's misses. A miss
that fills writes a line back at most, and a line can be written back only if it was modified before the call, or
by a store of it: a further event, limited by both.

What is visited again, as it was on a first visit, writes nothing back. A line that is missed then was evicted since the
first visit. If it was not modified, nothing was written back for the fill that evicted it; these are different fills
for different misses. If it was, then the first visit found it in the cache, for what is filled is not modified; of
several misses after one first visit that is so of the first alone. So there are no more write-backs than fills,
without those of visits again, and with each first visit counted as a fill.

*Soundness:* as said of `relational_cache`; the cache may hold anything at entry, all of it modified. What a visit is
is told by flow facts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from wcet_probe.analyzer.fetches import fetched_lines
from wcet_probe.analyzer.flow_graph import Limit
from wcet_probe.analyzer.held_lines import held_lines
from wcet_probe.analyzer.ipet import FlowEvent
from wcet_probe.analyzer.memory_facts import Objects, PointerFacts
from wcet_probe.analyzer.object_lines import counted_objects, object_limits, objects_of
from wcet_probe.analyzer.pcode_semantics import signed
from wcet_probe.analyzer.relational_analysis import analyze
from wcet_probe.analyzer.relational_cache import LineAccess, Verdict
from wcet_probe.analyzer.shared_misses import Refills, Shared, Stays, shared_misses, visit_event
from wcet_probe.analyzer.state import Base
from wcet_probe.analyzer.sweeps import MOST_COUNTED_LINES, Sweeps
from wcet_probe.analyzer.symbolic_lines import Line, Lines
from wcet_probe.analyzer.transfer import Access
from wcet_probe.analyzer.values import Values
from wcet_probe.model.target import CacheConfig, MemoryTiming, Replacement, Target


@dataclass(frozen=True, slots=True)
class DataMisses:
    """Cycles that the core waits for data.

    Attributes:
        points: in each execution of a point.
        leaving: where a point is left for another than the next instruction.
        events: besides, with their limits.
        lines: names of the lines; None without a cache.
    """

    points: Mapping[int, int]
    leaving: Mapping[int, int]
    events: tuple[FlowEvent, ...]
    limits: tuple[Limit, ...]
    lines: Lines | None


def data_misses(values: Values, target: Target, pointers: PointerFacts) -> DataMisses:
    """What the accesses to the data cache of ``values`` cost, whatever it holds at entry.

    Args:
        values: accesses by point.
        target: cache and memory; fetches are among the accesses to a unified cache.
        pointers: what flow facts say of addresses of which nothing else is known.

    *Soundness:* as said of the module. An access to an uncached region is taken for one to the cache, which ages lines
    and may miss, and costs what the dearest region that it may be to costs besides.
    """
    config, memory = target.dcache, target.memory
    if config is None:
        waiting = {p: sum(_single_cycles(one, memory) for one in found) for p, found in values.accesses.items()}
        return DataMisses(waiting, {}, (), (), None)
    lines = Lines(values, config, pointers)
    sweeps = Sweeps(values, lines, config)
    steps = {point: tuple(_steps(values, point, lines, target, sweeps)) for point in sorted(values.states)}
    named = {point: [step.line for step in own] for point, own in steps.items()}
    analysis = analyze(values, lines, named, config, sweeps.found)
    sure = {point: {one.line.line for one in own if _is_sure(one)} for point, own in steps.items()}
    stays = Stays(values, sure, held_lines(values, named, analysis))
    accesses = [(step.line.line, step.access) for own in steps.values() for step in own]
    objects = counted_objects(accesses, lines, pointers, config, stays.is_one_address)
    costs = _Costs(values, target, config, stays, sweeps, objects, pointers)
    for point, own in steps.items():
        for step, verdict in zip(own, analysis.verdicts[point], strict=True):
            costs.add(point, step, verdict)
    for place in (costs.inside, costs.leaving):
        for (point, group), granules in place.local.items():
            place.misses[point] += lines.groups[group].most_lines(granules, config.line_bytes)
    return costs.result(lines)


class _Step(NamedTuple):
    """An access to the cache; a fetch has no ``access``."""

    line: LineAccess
    access: Access | None


def _is_sure(step: _Step) -> bool:
    """Whether the line of ``step`` is in the cache behind it, if its block is executed."""
    return step.line.line is not None and step.line.is_certain and step.line.fills


def _steps(values: Values, point: int, lines: Lines, target: Target, sweeps: Sweeps) -> Iterator[_Step]:
    """The accesses of a block to the data cache, in order."""
    config = target.dcache
    if config is None:
        return
    for instruction in values.graph.points[point].block.instructions:
        if target.unified_cache:
            for number in fetched_lines((instruction,), config.line_bytes):
                yield _Step(LineAccess(lines.of_number(number), fills=True, is_certain=True), None)
        own = [access for access in values.accesses[point] if access.instruction_address == instruction.address]
        # A load or store of several words goes upwards, whatever order the p-code has.
        for access in sorted(own, key=lambda one: signed(32, one.constant)):
            fills = config.write_allocate or not access.is_store
            line, candidates = lines.of_access(access), lines.candidates_of(access)
            swept = sweeps.of(point, line, is_certain=access.is_certain)
            yield _Step(LineAccess(line, fills, access.is_certain, candidates, swept), access)


def _single_cycles(access: Access, memory: MemoryTiming) -> int:
    return max(memory.single_cycles, _region_cycles(access, memory))


def _region_cycles(access: Access, memory: MemoryTiming) -> int:
    """Most cycles of the uncached regions that ``access`` may be to; a stack may be in any."""
    cycles = 0
    for region in memory.regions:
        if access.base is Base.NUMBER:
            low, high = access.offset.unsigned_range()
            if high < region.extent.base_address or region.extent.end_address <= low:
                continue
        own = region.write_cycles if access.is_store else region.read_cycles
        cycles = max(cycles, own.value)
    return cycles


@dataclass(slots=True)
class _Charge:
    """Cycles and misses by point, and granules of accesses that are persistent in a block only, by point and group."""

    cycles: Counter[int] = field(default_factory=Counter)
    misses: Counter[int] = field(default_factory=Counter)
    local: dict[tuple[int, int], set[int]] = field(default_factory=dict)

    def total(self, fill_cycles: int) -> Mapping[int, int]:
        """Cycles by point, a miss being a fill."""
        cycles = Counter(self.cycles)
        for point, count in self.misses.items():
            cycles[point] += count * fill_cycles
        return cycles


@dataclass(slots=True)
class _Costs:
    """What was found of the accesses so far.

    Attributes:
        stays: of the groups.
        sweeps: of the groups.
        objects: whose lines miss once each, by the accesses to them.
        pointers: what flow facts say.
        inside: of each execution of a point.
        leaving: of those by which control goes elsewhere than to the next instruction.
        visits: first visits in each execution of a point.
        told: of ``inside``, the misses of first visits and of those that are made again.
        shared: points of the persistent accesses, by what they share.
        writes: single writes of stores that miss only if their line was not filled in the stay, by line and point.
        counted: accesses to them that may miss, by point.
    """

    values: Values
    target: Target
    config: CacheConfig
    stays: Stays
    sweeps: Sweeps
    objects: Mapping[Access, Objects]
    pointers: PointerFacts
    inside: _Charge = field(default_factory=_Charge)
    leaving: _Charge = field(default_factory=_Charge)
    visits: Counter[int] = field(default_factory=Counter)
    told: Counter[int] = field(default_factory=Counter)
    shared: dict[Shared, list[int]] = field(default_factory=dict)
    writes: dict[Line, Counter[int]] = field(default_factory=dict)
    counted: dict[Objects, Counter[int]] = field(default_factory=dict)

    def add(self, point: int, step: _Step, verdict: Verdict) -> None:
        """Count an access.

        *Soundness:* as said of the module; a store that is written through costs a single write in any case.
        """
        access, (line, fills, _, candidates, swept) = step.access, step.line
        charge = self.leaving if access is not None and access.is_leaving else self.inside
        if access is not None:
            self._add_single_write(point, step.line, access, verdict)
            charge.cycles[point] += _region_cycles(access, self.target.memory)
        visit = None if access is None else self.pointers.of(access.instruction_address).visit
        self.visits[point] += visit == "first"
        if access is None or access.is_leaving or access.is_store:
            visit = None
        if verdict.is_hit or not fills:
            return
        if access is not None and access in self.objects:
            self.counted.setdefault(self.objects[access], Counter())[point] += 1
        elif verdict.is_persistent_in_call:
            self._share(point, Shared(line if verdict.is_persistent else None, frozenset(candidates)))
        elif verdict.is_persistent_in_sweep and swept and self._is_limited(swept, access):
            objects = self._counted_in(access)
            self._share(point, Shared(line if verdict.is_persistent else None, swept=swept, objects=objects))
        elif line is None:
            size_bytes = access.size_bytes if access else 1
            charge.misses[point] += max(1, -(-size_bytes // self.config.line_bytes))
        elif verdict.is_persistent:
            is_refilled = swept is not None and self._is_refilled(swept) and not visit
            self._share(point, Shared(line, swept=swept if is_refilled else None, visit=visit, is_refilled=is_refilled))
        elif verdict.is_persistent_in_block and not visit:
            charge.local.setdefault((point, line.group), set()).add(line.granule)
        else:
            charge.misses[point] += 1
            self.told[point] += visit is not None

    def _add_single_write(self, point: int, accessed: LineAccess, access: Access, verdict: Verdict) -> None:
        is_through = access.is_store and not self.config.write_back
        if not is_through and (verdict.is_hit or accessed.fills):
            return
        if accessed.line is not None and verdict.is_kept and not is_through and not access.is_leaving:
            self.writes.setdefault(accessed.line, Counter())[point] += 1
        else:
            charge = self.leaving if access.is_leaving else self.inside
            charge.cycles[point] += self.target.memory.single_cycles

    def _share(self, point: int, shared: Shared) -> None:
        """Count an access among those that share misses; stores of its line before it in the block are charged."""
        self.shared.setdefault(shared, []).append(point)
        if shared.line in self.writes:
            self.inside.cycles[point] += self.target.memory.single_cycles * self.writes[shared.line].pop(point, 0)

    def _is_limited(self, swept: Line, access: Access | None) -> bool:
        """Whether it is known how many lines a sweep comes to."""
        return self.sweeps.by_name[swept.group].step_bytes > 0 or self._counted_in(access) is not None

    def _is_refilled(self, swept: Line) -> bool:
        """Whether it is known how many lines a sweep comes to, and how many fills evict one of them."""
        return self.sweeps.by_name[swept.group].step_bytes > 0 and self.config.replacement is Replacement.FIFO

    def _counted_in(self, access: Access | None) -> Objects | None:
        """What a fact counts the lines of a sweep's ``access`` among, if they are not too many."""
        told = objects_of(access, self.sweeps.lines, self.pointers, self.config) if access else None
        return told if told and told.lines < MOST_COUNTED_LINES else None

    def result(self, lines: Lines) -> DataMisses:
        """Cycles, events and limits."""
        fill = self.target.memory.line_cycles(self.config.line_bytes)
        shared = shared_misses(
            self.shared, self.stays, self.sweeps.by_name, lines.groups, self.config.line_bytes, writes=self.writes
        )
        self.inside.misses.update(shared.misses)
        single_cycles = self.target.memory.single_cycles
        for point, count in shared.writes.items():
            self.inside.cycles[point] += count * single_cycles
        limits = [*shared.limits, *object_limits(self.counted)]
        names = sorted({name for limit in limits for name, _ in limit.events} - shared.written.keys())
        limits += (self._refill_limit(one, shared.accesses, names) for one in shared.refills)
        events = [FlowEvent(name, fill) for name in names]
        events += (FlowEvent(name, count * single_cycles) for name, count in sorted(shared.written.items()))
        if self.config.write_back:
            events.append(FlowEvent("write-backs", fill))
            limits += self._write_back_limits(names)
        return DataMisses(self.inside.total(fill), self.leaving.total(fill), tuple(events), tuple(limits), lines)

    def _refill_limit(
        self, refills: Refills, accesses: Mapping[str, tuple[int | None, frozenset[int]]], names: Iterable[str]
    ) -> Limit:
        """A sweep misses once for each line, and once more for each so many other misses in the loop as there are ways.

        *Soundness:* first-in first-out: between two fills of a line as many other lines of its set are filled as there
        are ways, by other groups, as the lines of the sweep's group that are accessed meanwhile are in other sets. A
        sweep is done with a line before it comes to the next: what is filled between fills of the one is not filled
        between those of another.
        """
        ways, line_bytes, (sweep, limit) = self.config.ways, self.config.line_bytes, refills
        nowhere = None, sweep.nodes
        others = [
            name
            for name in names
            for group, points in (accesses.get(name, nowhere),)
            if group != sweep.group and not points.isdisjoint(sweep.nodes)
        ]
        points = Counter({point: ways * factor for point, factor in limit.points})
        points.subtract({point: line_bytes * self.inside.misses[point] for point in sweep.nodes})
        edges = Counter({edge: ways * factor for edge, factor in limit.edges})
        leaving = (edge for edge in self.values.edges if edge.source in sweep.nodes and edge.way != "fall")
        edges.subtract({edge: line_bytes * self.leaving.misses[edge.source] for edge in leaving})
        return Limit(
            limit.name,
            tuple((point, factor) for point, factor in sorted(points.items()) if factor),
            tuple((edge, factor) for edge, factor in edges.items() if factor),
            events=(*((one, ways * factor) for one, factor in limit.events), *((one, -line_bytes) for one in others)),
        )

    def _write_back_limits(self, names: Sequence[str]) -> Iterator[Limit]:
        """A write-back takes a miss, other than of a visit again, and a line that was modified."""
        stores = Counter({p: sum(access.is_store for access in self.values.accesses[p]) for p in self.values.states})
        visits = {visit_event(key) for key in self.shared if key.visit}
        others = Counter(self.inside.misses)
        others.subtract(self.told)
        others.update(self.visits)
        yield self._fills("write-backs:misses", self.inside.misses, names)
        if visits or +self.told:
            yield self._fills("write-backs:visits", others, [name for name in names if name not in visits])
        yield Limit(
            "write-backs:modified",
            tuple((point, -count) for point, count in sorted(stores.items()) if count),
            events=(("write-backs", 1),),
            constant=self.config.sets * self.config.ways,
        )

    def _fills(self, name: str, misses: Mapping[int, int], events: Iterable[str]) -> Limit:
        """There are no more write-backs than ``misses`` at points, those where points are left, and ``events``."""
        return Limit(
            name,
            tuple((point, -count) for point, count in sorted(misses.items())),
            tuple((edge, -self.leaving.misses[edge.source]) for edge in self.values.edges if edge.way != "fall"),
            events=(("write-backs", 1), *((event, -1) for event in events)),
        )
