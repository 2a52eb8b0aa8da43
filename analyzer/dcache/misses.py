"""What data accesses cost behind a cache: misses that take place each time, misses that a scope shares, write-backs.

An access that always hits costs nothing more. One that is persistent shares its misses with the others to the same
line, or to the few lines that a group lies in: they are auxiliary variables of the flow problem, limited by how often
the scope begins. Accesses to objects that facts count miss once for each line (`object_lines`); where a fact counts how
often accesses go to another line than the access before, these are their misses. Code that data evicts from a unified
cache misses as often as data is filled (`refetches`). Everything else misses each time.

Where a store that misses is a single write, and first-in first-out, the store misses only if no access in the scope
filled the line (`RelationalCache.is_kept`): such writes are auxiliary variables that share the limit of the line's
misses. A miss that fills writes a line back at most, and a line can be written back only if it was modified before the
call, or by a store of it that did not find it modified: a further auxiliary variable, limited by both.

Reuse of a line, as it was on its first touch, writes nothing back. A line that is missed then was evicted since the
first touch. If it was not modified, nothing was written back for the fill that evicted it; these are different fills
for different misses. If it was, then the first touch found it in the cache, for what is filled is not modified; of
several misses after one first touch that is so of the first alone. So there are no more write-backs than fills,
without those of reuse, and with each first touch counted as a fill.

Words: write-back, linear constraint, scope (docs/explanation/glossary.md).

*Soundness:* as said of `younger_sets`; the cache may hold anything at entry, all of it modified. What a first touch is
is asserted by flow facts.

The loop's node is new in each round (point 3): a fill of 209 cycles each time. The other accesses hit.

>>> walk = example('''
... struct node { struct node *next; unsigned key, size; };
... unsigned f(struct node *n, unsigned count) {
...     unsigned sum = 0;
...     for (; count; count--) { sum += n->key; if (sum & 1) n->size = sum; n = n->next; }
...     return sum;
... }''')
>>> dict(walk.data.points)
{3: 209, 4: 0, 5: 0}
>>> [(one.name, one.cost) for one in walk.data.auxiliaries]
[('write-backs', 209), ('write-backs:singles', 9)]
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from wcet_probe.analyzer.dcache.access_steps import AccessStep, is_sure, resident_before, stays_resident, steps_of
from wcet_probe.analyzer.dcache.address_classes import AddressClasses
from wcet_probe.analyzer.dcache.allocated_before import Allocated, allocated_lines
from wcet_probe.analyzer.dcache.analysis import analyze
from wcet_probe.analyzer.dcache.charges import Charge, KeptCall, fills, kept_constraints, refill_constraint
from wcet_probe.analyzer.dcache.footprints import evicts
from wcet_probe.analyzer.dcache.kept_accesses import Evicting, Steps, kept_steps
from wcet_probe.analyzer.dcache.kept_parts import KeptPart
from wcet_probe.analyzer.dcache.memory_waits import block_waiting_cycles, region_cycles
from wcet_probe.analyzer.dcache.miss_constraints import Shared, shared_misses, touch_variable, variable_names
from wcet_probe.analyzer.dcache.object_lines import counted_constraints, counted_objects, object_constraints
from wcet_probe.analyzer.dcache.refetches import EVICTIONS, Refetched, Refetches
from wcet_probe.analyzer.dcache.resident_at_entry import resident_lines
from wcet_probe.analyzer.dcache.scopes import Scopes
from wcet_probe.analyzer.dcache.strided_traversals import MOST_COUNTED_LINES, StridedTraversals
from wcet_probe.analyzer.dcache.symbolic_blocks import SymbolicBlock, SymbolicBlocks
from wcet_probe.analyzer.dcache.younger_sets import LineAccess, Verdict
from wcet_probe.analyzer.domains.cache_sets import effective_ways
from wcet_probe.analyzer.facts.memory import LineChanges, Objects, PointerFacts
from wcet_probe.analyzer.graph.supergraph import Edge
from wcet_probe.analyzer.ipet.flow_problem import LinearConstraint
from wcet_probe.analyzer.ipet.flow_system import AuxiliaryVariable
from wcet_probe.analyzer.values.execution.accesses import Access
from wcet_probe.analyzer.values.result import Values
from wcet_probe.model.target import CacheConfig, Replacement, Target


@dataclass(frozen=True, slots=True)
class DataMisses:
    """Cycles that the core waits for data.

    Attributes:
        points: in each execution of a point.
        leaving: where a point is left for another than the next instruction.
        auxiliaries: besides, with their constraints.
        lines: names of the lines; None without a cache.
        counted: of each access of a point, in order, the address of its instruction (None: a fetch), and the auxiliary
            variable that its misses are counted by; None where each is charged.
        classes: of addresses, where there is no cache and it costs that an access is unaligned; else None.
        counting: the same where it is known of parts of the call, or of all of it, that some lines are not evicted once
            they were accessed, but by strays (`kept_parts`), and the sets that strays may go to, if that is known
            (`crowded_sets`); None where that changes nothing.
    """

    points: Mapping[int, int]
    leaving: Mapping[int, int]
    auxiliaries: tuple[AuxiliaryVariable, ...]
    constraints: tuple[LinearConstraint, ...]
    lines: SymbolicBlocks | None
    counted: Mapping[int, tuple[tuple[int | None, str | None], ...]] = field(default_factory=dict)
    classes: AddressClasses | None = None
    counting: Callable[[Sequence[KeptPart], Evicting], DataMisses] | None = field(
        default=None, compare=False, repr=False
    )


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
        waiting = {at: block_waiting_cycles(values, at, memory) for at in values.states}
        return DataMisses(waiting, {}, (), (), None)
    lines = SymbolicBlocks(values, config, pointers)
    traversals = StridedTraversals(values, lines, config)
    steps = {point: tuple(steps_of(values, point, lines, target, traversals)) for point in sorted(values.states)}
    named = {point: [step.line for step in own] for point, own in steps.items()}
    analysis = analyze(values, lines, named, config, traversals.found)
    sure = {point: {one.line.line for one in own if is_sure(one)} for point, own in steps.items()}
    resident = resident_lines(values, named, analysis)
    scopes = Scopes(values, sure, resident)
    accesses = [(step.line.line, step.access) for own in steps.values() for step in own]
    objects = counted_objects(accesses, lines, config, scopes.is_one_address)
    allocated = allocated_lines(values, named, analysis)

    def charged(steps: Steps, verdicts: Mapping[int, Sequence[Verdict]], scopes: Scopes) -> _Charged:
        refetches = Refetches(config.sets, config.line_bytes)
        costs = _Costs(values, target, config, scopes, traversals, objects, pointers, allocated, refetches)
        return _charged(costs, steps, verdicts, resident_before(values, steps))

    own = charged(steps, analysis.verdicts, scopes)

    def counting(parts: Sequence[KeptPart], reach: Evicting) -> DataMisses:
        whole = next((one for one in parts if one.nodes is None), None)
        is_followed = not config.write_allocate and config.write_back
        if whole is None or not is_followed or whole.lines.in_a_set > effective_ways(config).must:
            return own.result(lines, parts)
        # Of what a store that misses does not fill, all lines of the call tell no number: it is followed once more.
        stack_pointer = whole.lines.stack_pointer if config.replacement is not Replacement.FIFO else None
        everywhere = frozenset(range(config.sets))
        loading = {
            (point, one.instruction_address) for point in steps for one in lines.accesses(point) if evicts(one, config)
        }
        evicting = {one: reach.get(one, everywhere) for one in whole.strays & loading}
        again = kept_steps(steps, lines, values, evicting, stack_pointer)
        wide = analyze(values, lines, again.named(), config, traversals.found, keeps_all=True, at=again.at)
        verdicts = again.verdicts(analysis.verdicts, wide.verdicts, whole.strays | whole.crowding)
        scoped = Scopes(values, again.sure(), resident, again.departing())
        return charged(again.charged, verdicts, scoped).result(lines, parts)

    return replace(own.result(lines), counting=None if target.unified_cache or own.costs.is_visited else counting)


def _charged(
    costs: _Costs,
    steps: Mapping[int, Sequence[AccessStep]],
    verdicts: Mapping[int, Sequence[Verdict]],
    left: Mapping[int, bool],
) -> _Charged:
    """What all accesses cost by their ``verdicts``; ``left`` as of `access_steps.resident_before`."""
    sharing: dict[int, list[_Found]] = {}
    for point, own in steps.items():
        is_resident = left[point]
        for step, verdict in zip(own, verdicts[point], strict=True):
            if step.access is None:
                found = costs.add_fetch(point, step, verdict)
            else:
                found = costs.add(point, step.line, step.access, verdict, is_resident=is_resident)
            address = step.access.instruction_address if step.access else None
            is_charged = found is None and address is not None and step.line.fills and not verdict.is_hit
            sharing.setdefault(point, []).append(_Found(address, found, is_charged))
            is_resident = stays_resident(step)
    lines = costs.traversals.lines
    for place in (costs.inside, costs.leaving):
        for (point, group), granules in place.local.items():
            most = lines.groups[group].most_lines({granule for granule, _ in granules}, costs.config.line_bytes)
            place.add(point, {address for _, address in granules}, most)
    return _Charged(costs, sharing, tuple(steps))


_Counted = Shared | Objects | LineChanges | Refetched
"""What misses are counted with: those of a line, what a fact counts, or fills that evict."""


class _Found(NamedTuple):
    """What was found of an access, by its instruction, none of a fetch: what counts it, or whether each miss costs."""

    address: int | None
    counted: _Counted | None
    is_charged: bool


@dataclass(frozen=True, slots=True)
class _Charged:
    """What was found of all accesses: what they cost, of each of a point what counts it, and all points."""

    costs: _Costs
    sharing: Mapping[int, Sequence[_Found]]
    points: Sequence[int]

    def result(self, lines: SymbolicBlocks, parts: Sequence[KeptPart] = ()) -> DataMisses:
        """Cycles, variables and constraints; where ``parts`` keep lines, misses on these are counted for each part.

        *Soundness:* as said of `charges`; a variable that counts misses of others as well is not limited.
        """
        names = self.costs.variable_names()
        passing = Counter(
            (point, access.instruction_address)
            for point in self.points
            for access in lines.accesses(point)
            if evicts(access, self.costs.config)
        )
        told = (
            (names.get(one.counted) if one.counted is not None else None, point, one.address)
            for point, each in self.sharing.items()
            for one in each
        )
        bounds = KeptCall.of(parts, told, passing) if parts else None
        charged = {} if bounds is None else bounds.variables(self.costs.inside, self.costs.leaving)

        def variable(point: int, one: _Found) -> str | None:
            return names.get(one.counted) if one.counted is not None else charged.get((point, one.address))

        counted = {
            point: tuple((one.address, variable(point, one)) for one in each) for point, each in self.sharing.items()
        }
        return replace(self.costs.with_kept(bounds).result(lines), counted=counted)


@dataclass(slots=True)
class _Costs:
    """What was found of the accesses so far.

    Attributes:
        scopes: of the groups.
        traversals: of the groups.
        objects: whose lines miss once each, by the accesses to them.
        pointers: what flow facts say.
        allocated: as `allocated_before` has it.
        refetches: fetches that may miss each time.
        kept: the lines that are not evicted once they were accessed, but by strays (`kept_parts`); None for none.
        inside: of each execution of a point.
        leaving: of those by which control goes elsewhere than to the next instruction.
        first_touches: how many there are in each execution of a point.
        asserted: of ``inside``, the misses of first touches and of reuse.
        shared: points of persistent accesses, by what they share; ``departing``: line and point of leaving ones.
        writes: single writes of stores that miss only if their line was not filled in the scope, by line and point.
        counted: accesses to them that may miss, by point.
        changing: accesses that miss only in another line than that of the access before, by point.
        stores: those that may modify a line that was not modified, by point; of them ``single_stores`` are charged as
            single writes each time.
    """

    values: Values
    target: Target
    config: CacheConfig
    scopes: Scopes
    traversals: StridedTraversals
    objects: Mapping[Access, Objects]
    pointers: PointerFacts
    allocated: Mapping[SymbolicBlock, Mapping[Edge, Allocated]]
    refetches: Refetches
    kept: KeptCall | None = None
    inside: Charge = field(default_factory=Charge)
    leaving: Charge = field(default_factory=Charge)
    first_touches: Counter[int] = field(default_factory=Counter)
    asserted: Counter[int] = field(default_factory=Counter)
    shared: dict[Shared, list[int]] = field(default_factory=dict)
    departing: set[tuple[SymbolicBlock, int]] = field(default_factory=set)
    writes: dict[SymbolicBlock, Counter[int]] = field(default_factory=dict)
    counted: dict[Objects, Counter[int]] = field(default_factory=dict)
    changing: dict[LineChanges, Counter[int]] = field(default_factory=dict)
    stores: Counter[int] = field(default_factory=Counter)
    single_stores: Counter[int] = field(default_factory=Counter)

    def add(
        self, point: int, accessed: LineAccess, access: Access, verdict: Verdict, *, is_resident: bool
    ) -> _Counted | None:
        """Count an access; ``is_resident`` tells whether the last data access before has left its line in the cache.

        Returns what its misses are counted with, if they are.

        *Soundness:* as said of the module; a store that is written through costs a single write in any case.
        """
        line, fills, _, candidates, traversed, *_ = accessed
        charge = self.leaving if access.is_leaving else self.inside
        self._add_single_write(point, accessed, access, verdict)
        charge.cycles[point] += 0 if access.skipped_bytes else region_cycles(access, self.target.memory)
        touch = self.pointers.of_access(access).visit
        self.first_touches[point] += touch == "first"
        if access.is_leaving or access.is_store:
            touch = None
        if verdict.is_hit or not fills:
            return None
        asserted = self._counted_by(point, access, is_resident=is_resident and line is not None and not touch)
        if asserted is not None:
            return asserted
        if access.is_leaving and line is not None and verdict.is_persistent:
            self.departing.add((line, point))
        if verdict.is_persistent_in_call:
            return self._share(point, Shared(line if verdict.is_persistent else None, frozenset(candidates)))
        if verdict.is_persistent_in_traversal and traversed and self._is_bounded(traversed, access):
            objects = self._counted_in(access)
            return self._share(
                point, Shared(line if verdict.is_persistent else None, traversed=traversed, objects=objects)
            )
        if line is None:
            charge.add(point, (access.instruction_address,))
        elif verdict.is_persistent:
            is_refilled = traversed is not None and self._is_refilled(traversed) and not touch
            shared = Shared(line, traversed=traversed if is_refilled else None, touch=touch, is_refilled=is_refilled)
            return self._share(point, shared)
        elif verdict.is_persistent_in_block and not touch:
            charge.local.setdefault((point, line.group), set()).add((line.granule, access.instruction_address))
        else:
            charge.add(point, (access.instruction_address,))
            self.asserted[point] += touch is not None
        return None

    def add_fetch(self, point: int, step: AccessStep, verdict: Verdict) -> _Counted | None:
        """Count a fetch from a unified cache, as `add` does."""
        if verdict.is_hit:
            return None
        if verdict.is_persistent_in_call or verdict.is_persistent:
            return self._share(point, Shared(step.line.line if verdict.is_persistent else None))
        return self.refetches.add(point, step.number, is_local=verdict.is_persistent_in_block)

    def _add_single_write(self, point: int, accessed: LineAccess, access: Access, verdict: Verdict) -> None:
        """Count the single write of an access, or else that it modifies a line, if it may be one."""
        is_through = access.is_store and not self.config.write_back
        if not is_through and (verdict.is_hit or accessed.fills):
            self.stores[point] += access.is_store and not verdict.is_modified
        elif accessed.line is not None and verdict.is_kept and not is_through and not access.is_leaving:
            self.writes.setdefault(accessed.line, Counter())[point] += 1
        else:
            charge = self.leaving if access.is_leaving else self.inside
            charge.cycles[point] += self.target.memory.single_cycles
            (self.stores if access.is_leaving else self.single_stores)[point] += 1

    def _share(self, point: int, shared: Shared) -> Shared:
        """Count an access among those that share misses; stores of its line before it in the block are charged.

        That is for first-in first-out, of which it counts whether the access missed.
        """
        self.shared.setdefault(shared, []).append(point)
        if shared.line in self.writes and self.config.replacement is Replacement.FIFO:
            stores = self.writes[shared.line].pop(point, 0)
            self.inside.cycles[point] += self.target.memory.single_cycles * stores
            self.single_stores[point] += stores
        return shared

    def _counted_by(self, point: int, access: Access, *, is_resident: bool) -> Objects | LineChanges | None:
        """The fact that counts the misses of ``access``: those to another line than before, or those to objects.

        *Soundness:* if the access before left its line in the cache, this one misses at most as often as it is to
        another one. What else goes to the line may miss besides.
        """
        changes = self.pointers.of_access(access).line_changes
        if changes is not None and is_resident and not access.is_leaving:
            self.changing.setdefault(changes, Counter())[point] += 1
            return changes
        objects = self.objects.get(access)
        if objects is not None:
            self.counted.setdefault(objects, Counter())[point] += 1
        return objects

    def _is_bounded(self, traversed: SymbolicBlock, access: Access | None) -> bool:
        """Whether it is known how many lines a traversal comes to."""
        return self.traversals.by_name[traversed.group].step_bytes > 0 or self._counted_in(access) is not None

    def _is_refilled(self, traversed: SymbolicBlock) -> bool:
        """Whether it is known how many lines a traversal comes to, and how many fills evict one of them."""
        return self.traversals.by_name[traversed.group].step_bytes > 0 and self.config.replacement is Replacement.FIFO

    def _counted_in(self, access: Access | None) -> Objects | None:
        """What a fact counts the lines of a traversal's ``access`` among, if they are not too many."""
        asserted = self.traversals.lines.places.objects_of(access) if access else None
        return asserted if asserted and asserted.lines < MOST_COUNTED_LINES else None

    def variable_names(self) -> Mapping[_Counted, str]:
        """The names of the auxiliary variables that misses are counted by."""
        names: dict[_Counted, str] = {}
        names.update(variable_names(self.shared).items())
        names.update(self.refetches.names().items())
        objects = sorted(self.counted, key=lambda one: one.where)
        names |= {one: f"miss:objects:{number}" for number, one in enumerate(objects)}
        return names | {one: f"miss:changes:{number}" for number, one in enumerate(self.changing)}

    def result(self, lines: SymbolicBlocks) -> DataMisses:
        """Cycles, auxiliary variables and constraints."""
        fill = self.target.memory.line_cycles(self.config.line_bytes)
        shared = shared_misses(
            self.shared,
            self.scopes,
            self.traversals.by_name,
            lines.groups,
            self.config.line_bytes,
            writes=self.writes,
            allocated=self.allocated,
            # With first-in first-out what hit may be evicted; else only where lines are kept there are such writes.
            touched_stay=self.config.replacement is not Replacement.FIFO,
            counts_all=self.kept is not None,
            departing=self.departing,
        )
        self.stores.update(shared.stores)
        self.inside.misses.update(shared.misses)
        self.leaving.misses.update(shared.leaving)
        for left in self.refetches.left():
            self.inside.misses.update(left)
        single_cycles = self.target.memory.single_cycles
        for point, count in shared.writes.items():
            self.inside.cycles[point] += count * single_cycles
        self.single_stores.update(shared.writes)
        constraints = [*shared.constraints, *object_constraints(self.counted)]
        for number, (changes, points) in enumerate(self.changing.items()):
            constraints += counted_constraints(f"miss:changes:{number}", points, changes.most)
        apart = shared.written.keys() | set(shared.modified)
        names = sorted({name for constraint in constraints for name, _ in constraint.auxiliaries} - apart)
        if self.kept is not None:
            counted = [*kept_constraints(self.inside, self.leaving, self.values.edges, names, self.kept)]
            constraints += counted
            names += sorted({name for one in counted for name, _ in one.auxiliaries} - set(names))
        refetched = list(self.refetches.names().values())
        evicting = [*names, *refetched]
        for one in shared.refills:
            others = [name for name in evicting if one.may_be_evicted_by(shared.accesses.get(name))]
            constraints += [refill_constraint(one, self.config, (self.inside, self.leaving), self.values.edges, others)]
        if refetched:
            constraints += self.refetches.constraints()
            constraints.append(self._fills(EVICTIONS, self.inside.misses, names, self.refetches.limited()))
        first = self.refetches.first_names().values()
        names += refetched
        auxiliaries = [AuxiliaryVariable(name, fill) for name in names]
        auxiliaries += (
            AuxiliaryVariable(name, count * single_cycles) for name, count in sorted(shared.written.items())
        )
        if self.config.write_back:
            auxiliaries += (
                AuxiliaryVariable("write-backs", fill),
                AuxiliaryVariable("write-backs:singles", max(0, fill - single_cycles)),
            )
            constraints += self._write_back_constraints(names, shared.modified)
        auxiliaries += (AuxiliaryVariable(name, 0) for name in (*shared.modified, *first))
        return DataMisses(
            self.inside.total(fill), self.leaving.total(fill), tuple(auxiliaries), tuple(constraints), lines
        )

    @property
    def is_visited(self) -> bool:
        """Whether facts tell which accesses find lines as they were."""
        return bool(+self.asserted) or any(key.touch for key in self.shared)

    def with_kept(self, kept: KeptCall | None) -> _Costs:
        """A copy, in which some lines may be accessed and none of them is evicted then."""
        return replace(
            self,
            kept=kept,
            inside=self.inside.copied(),
            leaving=self.leaving.copied(),
            stores=Counter(self.stores),
            single_stores=Counter(self.single_stores),
        )

    def _write_back_constraints(self, names: Sequence[str], modified: Sequence[str]) -> Iterator[LinearConstraint]:
        """A write-back takes a miss, other than of reuse, and a line that was modified.

        *Soundness:* each line that is written back was modified at entry, or first by a store since it was filled. If
        that is charged as a single write, it was none: what the write-back costs more is charged.
        """
        touches = {touch_variable(key) for key in self.shared if key.touch}
        others = Counter(self.inside.misses)
        others.subtract(self.asserted)
        others.update(self.first_touches)
        limited = (("write-backs", 1), ("write-backs:singles", 1))
        yield self._fills("write-backs:misses", self.inside.misses, names, limited)
        if touches or +self.asserted:
            yield self._fills("write-backs:visits", others, [name for name in names if name not in touches], limited)
        yield LinearConstraint(
            "write-backs:modified",
            tuple((point, -count) for point, count in sorted(self.stores.items())),
            auxiliaries=(("write-backs", 1), *((auxiliary, -1) for auxiliary in modified)),
            constant=self.config.sets * self.config.ways,
        )
        yield LinearConstraint(
            "write-backs:single",
            tuple((point, -count) for point, count in sorted(self.single_stores.items())),
            auxiliaries=(("write-backs:singles", 1),),
        )

    def _fills(
        self, name: str, misses: Mapping[int, int], auxiliaries: Iterable[str], limited: Iterable[tuple[str, int]]
    ) -> LinearConstraint:
        """What is ``limited`` is no more than ``misses`` at points, where points are left, and ``auxiliaries``."""
        return fills(
            name, misses, self.leaving.misses, self.values.edges, (*limited, *((one, -1) for one in auxiliaries))
        )
