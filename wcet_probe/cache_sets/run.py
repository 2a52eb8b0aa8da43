"""What operations touch when they are run: worst states, guided and random workloads, each held to the requirements.

An operation may touch the allowed sets, the stack, constants in the code, and the sets of its own block's first word
and of the word before it. Besides, malloc's block starts in the set that was asked for. The most accesses of an
operation are kept, to be held against what is proved.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import compress
from typing import NamedTuple

from wcet_probe.build.program import Program
from wcet_probe.cache_sets.guided import GUIDED, Place
from wcet_probe.cache_sets.specification import AllowedSets
from wcet_probe.emu.compiled import Translations
from wcet_probe.emu.machine import Machine
from wcet_probe.emu.set_watch import OperationSets
from wcet_probe.errors import StateError, StrayAccessError, UsageError
from wcet_probe.model.scenario import Operation, OperationKind, Trace
from wcet_probe.progress import Progress, silent
from wcet_probe.scenarios.families import HeapRequest
from wcet_probe.scenarios.lookup import family_of
from wcet_probe.scenarios.traces import trace_of

ROLES = tuple(kind.value for kind in OperationKind)
_WORST = ("worst-alloc", "worst-failing-alloc", "worst-free")
_OPERATIONS_AT_ONCE = 1 << 15
_MOST_LIVE_BLOCKS = 1024
_SHARE_OF_FREES = 0.4
_SHARE_OF_A_GUIDED = 5
"""A guided workload but the last may take one of so many shares of what is left for them."""


@dataclass(frozen=True, slots=True)
class Workload:
    """A random workload.

    Attributes:
        name: what it is.
        filling_percent: of the heap, by requested bytes; above 100, allocations are refused.
        largest_share: the largest request is the heap's bytes divided by this.
        cache_sets: how many sets blocks are asked for in; 0: all.
        in_waves: whether all blocks are freed once the heap is filled, and then it is filled again.
    """

    name: str
    filling_percent: int
    largest_share: int
    cache_sets: int = 0
    in_waves: bool = False


WORKLOADS = (
    Workload("all sizes, a quarter filled", 25, 64),
    Workload("small blocks", 25, 1 << 15),
    Workload("all sizes, filled until it refuses", 150, 64),
    Workload("filled and emptied, in waves", 90, 64, in_waves=True),
    Workload("blocks in three sets only", 150, 128, cache_sets=3),
)


@dataclass(frozen=True, slots=True)
class Violation:
    """An operation that broke a requirement.

    Attributes:
        requirement: ``sets`` or ``start``; ``lemma``: an instruction went to the own block, which is proved not to;
            ``alignment``: the block is not aligned as the manifest says; ``invariant``: the allocator's own check
            found an invariant of the heap broken; ``stray``: an instruction accessed what is no memory of the guest.
        where: the state or workload, and the number of the operation in it, from 0 on.
        operation: what was called.
        block: what it returned, or was given.
        set_index: of the data cache: where it was, and was not to be.
        location: function, offset and source line of the instruction; empty for the start of a block.
        address: that was accessed.
    """

    requirement: str
    where: str
    operation: str
    block: int
    set_index: int
    location: str
    address: int


@dataclass(slots=True)
class SetRun:
    """What was seen.

    Attributes:
        guided: how many of the operations were guided.
        worst_states: how many candidate states of the worst scenarios were run.
        operations: by role, how many operations were watched.
        refused, misplaced: how many allocations were refused, and served in another set than was asked for.
        checks: how often the allocator's own check of its invariants was called, and found nothing.
        outside: by role, how many operations touched a set that is not allowed, or their own block in another way than
            it is proved.
        touched: accessed sets by role and region of memory.
        most_accesses, most_in_set: of one operation, by role.
        violations: the first one of each requirement.
    """

    worst_states: int = 0
    guided: int = 0
    refused: int = 0
    misplaced: int = 0
    checks: int = 0
    operations: dict[str, int] = field(default_factory=lambda: dict.fromkeys(ROLES, 0))
    outside: dict[str, int] = field(default_factory=lambda: dict.fromkeys(ROLES, 0))
    touched: dict[str, dict[str, frozenset[int]]] = field(default_factory=lambda: {role: {} for role in ROLES})
    most_accesses: dict[str, int] = field(default_factory=lambda: dict.fromkeys(ROLES, 0))
    most_in_set: dict[str, int] = field(default_factory=lambda: dict.fromkeys(ROLES, 0))
    violations: dict[str, Violation] = field(default_factory=dict)


def run_operations(
    program: Program,
    allowed: AllowedSets,
    heap_bytes: int,
    *,
    operations: int,
    seed: int,
    own_block_code: Collection[int] | None = None,
    progress: Progress = silent,
    translations: Translations | None = None,
) -> SetRun:
    """Run the worst states and ``operations`` guided and random operations, and hold each to ``allowed``.

    Parameters:
        program: the allocator's image.
        allowed: which sets may be touched.
        heap_bytes: size of the heap.
        operations: how many operations besides; at most half of them are guided, over all such workloads, and the
            rest is random, over all of those.
        seed: of the random workloads.
        own_block_code: addresses of the instructions that may access the own block outside of the allowed sets; None:
            all.
        progress: is told in words what is being done.
        translations: translated code for long runs; without it the engine does all of it.

    Raises:
        UsageError: the heap cannot hold a worst state.
        EmulationError: the guest went astray, of an allocator that specifies no sets, or not in an operation's code.
        StateError: an invariant of the heap was broken, of an allocator that specifies no sets.
    """
    every = frozenset(range(allowed.sets))
    with Machine(
        program.image, program.target, program.instructions, program.costs, heap_bytes, translations=translations
    ) as machine:
        regions = machine.memory.regions
        free = ("stack", "code", *(["static"] if allowed.static_anywhere else []))
        expected = {name: every if name.startswith(free) else allowed.reserved for name in regions}
        bench = _Bench(program, allowed, heap_bytes, machine, expected, own_block_code, SetRun())
        try:
            _run_worst_states(bench, progress)
            operations -= _run_guided(bench, operations // 2, progress)
            _run_random(bench, operations, seed, progress)
        except StrayAccessError as error:
            _keep_stray(bench, error)
    return bench.seen


@dataclass(frozen=True, slots=True)
class _Bench:
    program: Program
    allowed: AllowedSets
    heap_bytes: int
    machine: Machine
    expected: Mapping[str, frozenset[int]]
    own_block_code: Collection[int] | None
    seen: SetRun


def _run_worst_states(bench: _Bench, progress: Progress) -> None:
    allocator = bench.program.allocator
    builders = family_of(allocator).builders
    asked = HeapRequest(allocator, bench.heap_bytes, bench.allowed.line_bytes, 0)
    for scenario in _WORST:
        for plan in builders[scenario](asked) if scenario in builders else ():
            progress(f"running {scenario}: {plan.variant}")
            _initialise(bench)
            if bench.machine.replay(plan.trace) and not plan.set_up_may_refuse:
                if "invariant" in bench.seen.violations:
                    continue  # what the state was to be is not to be had of a heap that is broken
                message = f"the heap refused allocations of the set-up of {scenario}; give a larger --heap."
                raise StateError(message)
            _watch(bench, trace_of([plan.measured], plan.trace.slot_count), f"{scenario} ({plan.variant})", 0)
            _check(bench, scenario)
            bench.seen.worst_states += 1


def _run_guided(bench: _Bench, most: int, progress: Progress) -> int:
    """Run the guided workloads, ``most`` operations at most; how many were run."""
    place = Place(bench.heap_bytes, bench.allowed.sets, bench.allowed.line_bytes)
    done = 0
    for number, (name, workload) in enumerate(GUIDED):
        left = most if number == len(GUIDED) - 1 else done + (most - done) // _SHARE_OF_A_GUIDED
        _initialise(bench)
        pieces, at = workload(place), 0
        trace = next(pieces, None)
        while trace is not None and done + len(trace) <= left:
            progress(f"running guided operations: {name}", done, most)
            blocks = _watch(bench, trace, f"guided workload {number + 1} ({name})", at)
            at += len(trace)
            done += len(trace)
            try:
                trace = pieces.send(blocks)
            except StopIteration:
                trace = None
        _check(bench, name)
    bench.seen.guided = done
    return done


def _run_random(bench: _Bench, operations: int, seed: int, progress: Progress) -> None:
    shares = [operations // len(WORKLOADS)] * len(WORKLOADS)
    shares[0] += operations - sum(shares)
    done = 0
    for number, (workload, share) in enumerate(zip(WORKLOADS, shares, strict=True)):
        draw = random.Random(f"{seed}:{number}")  # noqa: S311  (a workload, no secret)
        _initialise(bench)
        at = 0
        for trace in traces(workload, share, bench.heap_bytes, bench.allowed.sets, draw):
            progress(f"running random operations: {workload.name}", done, operations)
            _watch(bench, trace, f"seed {seed}, workload {number + 1} ({workload.name})", at)
            at += len(trace)
            done += len(trace)
            _check(bench, workload.name)


def _initialise(bench: _Bench) -> None:
    """Begin with a heap whose allocator was never called: its init may rely on static data that is zero."""
    allocator, machine = bench.program.allocator, bench.machine
    machine.restart()
    if machine.call(allocator.entry_points["init"], machine.heap.base_address, bench.heap_bytes):
        message = f"{allocator.name} refused a heap of {bench.heap_bytes} bytes; choose another --heap."
        raise UsageError(message)


def _check(bench: _Bench, after: str) -> None:
    allocator = bench.program.allocator
    violated = bench.machine.call(allocator.entry_points["check"])
    if violated and bench.allowed.is_specified:
        called = f"{allocator.entry_points['check']}() is {violated}"
        bench.seen.violations.setdefault("invariant", Violation("invariant", after, called, 0, 0, "", 0))
        return
    if violated:
        message = f"{allocator.name} broke heap invariant {violated} in {after}; report this with the command line."
        raise StateError(message)
    bench.seen.checks += 1


# ------------------------------------------------------------------------------------------------------------ workloads


def traces(workload: Workload, operations: int, heap_bytes: int, sets: int, draw: random.Random) -> Iterator[Trace]:
    """``operations`` operations of ``workload`` in pieces, which go on with the blocks of the pieces before.

    Parameters:
        workload: what is asked for.
        operations: how many.
        heap_bytes: size of the heap.
        sets: of the data cache.
        draw: source of randomness.
    """
    bits = max(5, (heap_bytes // workload.largest_share).bit_length())
    limit = heap_bytes * workload.filling_percent // 100
    chosen = [draw.randrange(sets) for _ in range(workload.cache_sets)] or range(sets)
    live: list[tuple[int, int]] = []
    unused = list(range(_MOST_LIVE_BLOCKS))
    live_bytes, emptying = 0, False
    for start in range(0, operations, _OPERATIONS_AT_ONCE):
        found: list[tuple[int, int, int, int]] = []
        for _ in range(min(_OPERATIONS_AT_ONCE, operations - start)):
            is_full = live_bytes >= limit or not unused
            if workload.in_waves:
                emptying = bool(live) if emptying else is_full
                frees = emptying
            else:
                frees = is_full or (bool(live) and draw.random() < _SHARE_OF_FREES)
            if frees:
                at = draw.randrange(len(live))
                slot, size = live[at]
                live[at] = live[-1]
                live.pop()
                unused.append(slot)
                live_bytes -= size
                found.append((1, slot, 0, 0))
            else:
                size = 1 + draw.getrandbits(1 + draw.randrange(bits))
                slot = unused.pop()
                live.append((slot, size))
                live_bytes += size
                found.append((0, slot, size, draw.choice(chosen)))
        kinds, slots, sizes, wanted = zip(*found, strict=True)
        yield Trace(kinds, slots, sizes, wanted, _MOST_LIVE_BLOCKS)


# ------------------------------------------------------------------------------------------------------------ judgement


def _watch(bench: _Bench, trace: Trace, where: str, first: int) -> tuple[int, ...]:
    """Run ``trace``, and add what it touches to what was seen; the blocks of its operations."""
    seen, found = bench.seen, bench.machine.replay_sets(trace, bench.expected)
    for kind, role in enumerate(ROLES):
        chosen = [each == kind for each in trace.kinds]
        seen.operations[role] += sum(chosen)
        seen.most_accesses[role] = max(seen.most_accesses[role], *compress(found.accesses, chosen), 0)
        seen.most_in_set[role] = max(seen.most_in_set[role], *compress(found.most_in_set, chosen), 0)
        for region, sets in found.touched[kind].items():
            seen.touched[role][region] = seen.touched[role].get(region, frozenset()) | sets
    blocks = tuple(_blocks(trace.kinds, found))
    _judge(bench, trace, found, blocks, (where, first))
    return blocks


class _Called(NamedTuple):
    where: str
    operation: Operation
    block: int


def _judge(bench: _Bench, trace: Trace, found: OperationSets, blocks: Sequence[int], place: tuple[str, int]) -> None:
    """Hold the operations of ``trace`` to all; ``place`` names it, and tells the number of its first one."""
    seen, allowed, (where, first) = bench.seen, bench.allowed, place
    allocator = bench.program.allocator
    takes_set = allocator.takes_cache_set
    for number, (kind, block, unexpected) in enumerate(zip(trace.kinds, blocks, found.unexpected, strict=True)):
        if kind == 0:
            seen.refused += not block
            if block % allocator.alignment_bytes:
                called = _Called(f"{where}, operation {first + number}", trace[number], block)
                _keep(bench, "alignment", called, 0, block)
            if takes_set and block and allowed.set_of(block) != trace.cache_sets[number]:
                seen.misplaced += 1
                _keep(bench, "start", _Called(f"{where}, operation {first + number}", trace[number], block), 0, block)
        if not unexpected:
            continue
        own = allowed.own(block)
        for pc, address in found.first_accesses(number):
            is_own = allowed.set_of(address) in own
            if not is_own or (bench.own_block_code is not None and pc not in bench.own_block_code):
                seen.outside[ROLES[kind]] += 1
                called = _Called(f"{where}, operation {first + number}", trace[number], block)
                _keep(bench, "lemma" if is_own else "sets", called, pc, address)
                break


def _keep(bench: _Bench, requirement: str, called: _Called, pc: int, address: int) -> None:
    """Keep a violation, if it is the first one of its requirement."""
    if requirement not in bench.seen.violations:
        bench.seen.violations[requirement] = Violation(
            requirement=requirement,
            where=called.where,
            operation=_call(called.operation),
            block=called.block,
            set_index=bench.allowed.set_of(address),
            location=bench.program.image.location(pc) if pc else "",
            address=address,
        )


def _keep_stray(bench: _Bench, error: StrayAccessError) -> None:
    """Keep that code of an operation accessed memory that is none of the guest's: no operation is run behind that.

    Raises:
        StrayAccessError: it did so elsewhere, or nothing is specified.
    """
    image = bench.program.image
    function = image.function_at(error.pc)
    if not bench.allowed.is_specified or function is None or function.name.startswith("wp_replay"):
        raise error
    place, at = image.location(error.pc), bench.allowed.set_of(error.address)
    bench.seen.violations["stray"] = Violation("stray", "", f"{function.name}()", 0, at, place, error.address)


def _blocks(kinds: Sequence[int], found: OperationSets) -> Iterator[int]:
    """Of each operation the block: malloc returns it, free is given it."""
    for kind, argument, result in zip(kinds, found.arguments, found.results, strict=True):
        yield argument if kind else result


def _call(operation: Operation) -> str:
    if operation.kind is OperationKind.FREE:
        return f"free(slot {operation.slot})"
    return f"malloc({operation.size_bytes}, set {operation.cache_set})"
