"""What caches cost in the one run that memory at entry decides: each access by itself, not all of a point's together.

Where a function is followed from its entry to its end, the order of all fetches and data accesses is known. So the must
analysis needs no join: at each access it is told which lines surely are in the cache then, whatever it held at entry.
The waits of the whole run are a number, in place of what each point, edge and event is charged.

Words: must analysis, replacement policy, write-back (docs/explanation/glossary.md).

*Soundness:* all executions are that run (`loops.followed_run`). At entry the cache may hold anything, all of it
modified. For least-recently-used replacement, and what is reduced to it, the lines touched last are in the set, as many
as `cache_sets.effective_ways` says; a store that may have touched its line makes all others older. For every other
policy any fill may evict any other line of its set, and nothing else does. A fill writes one line back at most, and a
line only if it was modified at entry, as one of the set's ways, or by a store since. A store that may miss without
filling is charged as a single write; if it hit instead, it modified a line, whose write-back costs that much less.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from wcet_probe.analyzer.dcache.misses import DataMisses
from wcet_probe.analyzer.domains.cache_sets import effective_ways
from wcet_probe.analyzer.icache.fetches import FetchMisses
from wcet_probe.analyzer.ipet.flow_problem import LinearConstraint
from wcet_probe.analyzer.ipet.flow_system import AuxiliaryVariable
from wcet_probe.analyzer.loops.followed_run import Step, follow_run
from wcet_probe.analyzer.pcode.operations import LiftedInstruction
from wcet_probe.analyzer.prepared import Bounded
from wcet_probe.analyzer.values.execution.constant_execution import ConstantExecution
from wcet_probe.analyzer.values.result import Values
from wcet_probe.model.target import CacheConfig, Replacement, Target

_WORD = 1 << 32
_AGING = frozenset({Replacement.LRU, Replacement.PLRU})
_PREFIX = "followed:"
_LEAST_SETS = 16
"""Sets from which on the lines of one instruction are in different ones, so that their order is of no matter."""


_Events = tuple[tuple[str, int, int], ...]


@dataclass(frozen=True, slots=True)
class RunWaits:
    """Most events of a run: each is a name, how often it takes place, and what it costs each time.

    None stands for a cache of which that is not known.
    """

    fetches: _Events | None
    data: _Events | None


def followed(stage: Bounded) -> Bounded | None:
    """``stage`` with what caches cost in the run that memory at entry decides; None where that is not known.

    *Soundness:* as said of the module.
    """
    prepared, target = stage.prepared, stage.request.target
    waits = run_waits(prepared.values, prepared.constants, target, prepared.stack_pointer)
    if waits is None or (waits.fetches is None and waits.data is None):
        return None
    fetches, data = prepared.fetches, prepared.data
    if waits.fetches is not None:
        fetches = FetchMisses({}, {}, {limit.name: (limit,) for limit in _limits(waits.fetches)})
    if waits.data is not None:
        variables = tuple(AuxiliaryVariable(name, cycles) for name, _, cycles in waits.data)
        data = DataMisses({}, {}, variables, _limits(waits.data), data.lines)
    return replace(stage, prepared=replace(prepared, fetches=fetches, data=data))


def is_of_run(stage: Bounded) -> bool:
    """Whether the waits for a cache are those of the run that memory at entry decides."""
    prepared = stage.prepared
    names = (*prepared.fetches.auxiliaries, *(one.name for one in prepared.data.auxiliaries))
    return any(name.startswith(_PREFIX) for name in names)


def _limits(events: _Events) -> tuple[LinearConstraint, ...]:
    return tuple(LinearConstraint(name, constant=most, auxiliaries=((name, 1),)) for name, most, _ in events)


def run_waits(
    values: Values, execution: ConstantExecution, target: Target, stack_pointer: int | None
) -> RunWaits | None:
    """What caches cost in the run that memory at entry decides; None where there is none.

    Args:
        values: of the function, all its calls expanded.
        execution: of its code, from what memory holds at entry.
        target: caches and memory.
        stack_pointer: at entry, if it is known.

    *Soundness:* as said of the module. Where the address of an access is not known, or it is not aligned, nothing is
    told of data.
    """
    if target.unified_cache or (target.icache is None and target.dcache is None):
        return None
    code = RunCache(target.icache) if target.icache else None
    data = RunCache(target.dcache) if target.dcache and not target.memory.regions else None
    expected = {index: Counter(one.instruction_address for one in own) for index, own in values.accesses.items()}
    is_told = data is not None

    def take(index: int, steps: Sequence[Step]) -> bool:
        nonlocal is_told
        block = values.graph.points[index].block.instructions
        if [one.address for one in block] != [one.address for one in steps]:
            return False
        if code is not None:
            code.fetch(block)
        if data is not None and is_told:
            is_told = _access(data, steps, expected.get(index, {}), stack_pointer)
        return code is not None or is_told

    if not follow_run(values, execution, take):
        return None
    return RunWaits(
        code.events("fetches", target) if code is not None and code.is_large else None,
        data.events("data", target) if data is not None and is_told and data.is_large else None,
    )


def _access(cache: RunCache, steps: Sequence[Step], expected: Mapping[int, int], stack_pointer: int | None) -> bool:
    """Make the accesses of ``steps``; whether all are known, and of each instruction as many as ``expected``, or none.

    *Soundness:* the order of an instruction's accesses is of no matter: to one line they are all loads, or all stores,
    or a load and then a store; other lines are in other sets.
    """
    for step in steps:
        if step.accesses and len(step.accesses) != expected.get(step.address, 0):
            return False
        for is_store, place, size_bytes in step.accesses:
            line = line_of(place, size_bytes, stack_pointer, cache.config.line_bytes)
            if line is None:
                return False
            cache.touch(line, is_store=is_store)
    return True


def line_of(place: int | tuple[int] | None, size_bytes: int, stack_pointer: int | None, line_bytes: int) -> int | None:
    """The number of the line of an access; None where it is not known, or the access is not aligned by its size."""
    if isinstance(place, tuple):
        place = None if stack_pointer is None else (stack_pointer + place[0]) % _WORD
    if place is None or place % size_bytes or place // line_bytes != (place + size_bytes - 1) // line_bytes:
        return None
    return place // line_bytes


@dataclass(slots=True)
class RunCache:
    """A cache of which is known what it surely holds, access by access, from any content at entry.

    Attributes:
        config: the cache.
        held: of each set, the lines that are in it, the youngest first; None stands for one that may have been touched.
        modified: lines that are modified if they are in the cache, and were stored to since.
        fills: by set, the accesses that may miss and fill.
        singles: the stores that may go to memory alone.
        stored: by set, the stores that surely leave a line modified that may not have been.
        may_store: the same of those that did so only if they hit; each is one of ``singles``.
    """

    config: CacheConfig
    held: dict[int, list[int | None]] = field(default_factory=dict)
    modified: set[int] = field(default_factory=set)
    fills: Counter[int] = field(default_factory=Counter)
    singles: int = 0
    stored: Counter[int] = field(default_factory=Counter)
    may_store: Counter[int] = field(default_factory=Counter)

    @property
    def is_large(self) -> bool:
        """Whether the lines of one instruction are in different sets."""
        return self.config.sets >= _LEAST_SETS

    def fetch(self, block: Sequence[LiftedInstruction]) -> None:
        """Fetch the instructions of a block."""
        line_bytes = self.config.line_bytes
        for one in block:
            for line in range(one.address // line_bytes, (one.address + one.size_bytes - 1) // line_bytes + 1):
                self.touch(line, is_store=False)

    def touch(self, line: int, *, is_store: bool) -> None:
        """One access to a line.

        *Soundness:* as said of the module.
        """
        config, number = self.config, line % self.config.sets
        own = self.held.setdefault(number, [])
        ages, is_held = config.replacement in _AGING, line in own
        fills = not is_held and (config.write_allocate or not is_store)
        if is_store:
            self._store(line, number, is_held=is_held)
        elif not is_held:
            self.modified.discard(line)
        if fills:
            self.fills[number] += 1
        if not ages:
            if fills:
                own[:] = [line]
            return
        if is_held:
            own.remove(line)
        own.insert(0, line if is_held or fills else None)
        del own[effective_ways(config).must :]

    def _store(self, line: int, number: int, *, is_held: bool) -> None:
        config = self.config
        if not config.write_back:
            self.singles += 1
            return
        if not is_held and not config.write_allocate:
            self.singles += 1
            self.may_store[number] += line not in self.modified
        elif not is_held or line not in self.modified:
            self.stored[number] += 1
        self.modified.add(line)

    def events(self, name: str, target: Target) -> tuple[tuple[str, int, int], ...]:
        """Names, numbers and costs of what takes place in the run at most.

        *Soundness:* of the lines of a set, its ways at most were modified at entry.
        """
        fill, single = target.memory.line_cycles(self.config.line_bytes), target.memory.single_cycles
        name = f"{_PREFIX}{name}"
        found = [(name, self.fills.total(), fill), (f"{name}:singles", self.singles, single)]
        if self.config.write_back:
            whole = {
                number: min(count, self.config.ways + self.stored[number]) for number, count in self.fills.items()
            }  # fmt: skip
            rest = sum(min(self.fills[number] - whole[number], self.may_store[number]) for number in whole)
            found += [
                (f"{name}:write-backs", sum(whole.values()), fill),
                (f"{name}:write-backs:singles", rest, max(0, fill - single)),
            ]
        return tuple(found)
