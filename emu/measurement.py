"""The native core's counts as a :class:`~wcet_probe.model.measurement.Measurement`: cycles, sets, executed path."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, chain, pairwise

from wcet_probe.emu.observer import Observation
from wcet_probe.emu.tables import CodeTable
from wcet_probe.model.instruction import Control
from wcet_probe.model.measurement import Measurement, Run
from wcet_probe.model.target import OWN_VICTIMS, CacheConfig, MemoryRange, Target, Victims

_WORD_BYTES = 4


def measurement(
    observation: Observation,
    table: CodeTable,
    target: Target,
    *,
    stack_pointer: int,
    heap: MemoryRange,
    result: int,
    heap_metadata: Iterable[int] = (),
    victims: Victims = OWN_VICTIMS,
) -> Measurement:
    """The measurement behind ``observation``.

    Parameters:
        observation: counts and marks of one call.
        table: the code that was run.
        target: whose memory timing is charged.
        stack_pointer: its value at entry.
        heap: its addresses, which may be static memory of the image.
        result: the call's return value.
        heap_metadata: addresses of the words of the heap's headers, which are told apart from the rest of the heap.
        victims: what replacement evicted.
    """
    touched = dict(_split_heap(_heap_apart(observation.touched, heap), heap_metadata))
    stalls = stall_cycles(observation, target)
    runs, path = executed_path(observation, table)
    cached = {name: [word for word in words if not target.memory.region_at(word)] for name, words in touched.items()}
    data = {name: _sets(words, target.dcache) for name, words in cached.items()}
    return Measurement(
        instructions=observation.instructions,
        cycles=observation.cycles + stalls,
        instruction_cycles=observation.cycles,
        stall_cycles=stalls,
        loads=observation.loads,
        stores=observation.stores,
        icache=observation.icache,
        dcache=observation.dcache,
        touched_instruction_sets=_sets(_executed_bytes(runs, table), target.icache),
        touched_data_sets=tuple(sorted(set().union(*data.values()))),
        touched_sets_by_region=data,
        touched_bytes_by_region={name: _WORD_BYTES * len(words) for name, words in touched.items()},
        stack_bytes=_stack_bytes(observation, stack_pointer),
        runs=runs,
        path=path,
        path_complete=observation.path_complete,
        result=result,
        victims=victims,
    )


def stall_cycles(observation: Observation, target: Target) -> int:
    """Cycles that the core waits for memory: line fills, write-backs, single accesses.

    Without a D-cache every load and store is a single access; without an I-cache fetches are part of the instruction
    timing. Accesses to an uncached region have their own cycles. A fetch writes a line back where it evicts data from a
    unified cache.
    """
    memory = target.memory
    cycles = observation.region_cycles
    if target.icache:
        fetches = observation.icache
        cycles += (fetches.misses + fetches.writebacks) * memory.line_cycles(target.icache.line_bytes)
    if target.dcache:
        counts = observation.dcache
        fills = counts.read_misses + (counts.write_misses if target.dcache.write_allocate else 0)
        cycles += (fills + counts.writebacks) * memory.line_cycles(target.dcache.line_bytes)
        cycles += counts.memory_writes * memory.single_cycles
    else:
        cycles += (observation.loads + observation.stores - observation.region_accesses) * memory.single_cycles
    return cycles


def executed_path(observation: Observation, table: CodeTable) -> tuple[tuple[Run, ...], tuple[int, ...]]:
    """Runs in order of first execution, and the path through them.

    A run is cut where control came in from elsewhere or went out, not where the engine happened to end a translation.
    """
    starts = _run_starts(observation, table)
    executed = _row_executions(observation)
    behind = dict(pairwise(starts))
    order: dict[int, int] = {}
    # In the order in which they are first met; a block that is met again has the same runs.
    runs_of = {
        block: [order.setdefault(start, len(order)) for start in _starts_between(*block, behind)]
        for block in dict.fromkeys(observation.path)
    }
    path = tuple(chain.from_iterable(map(runs_of.__getitem__, observation.path)))
    for start in starts[:-1]:
        if executed[start] and not observation.path_complete:
            order.setdefault(start, len(order))
    runs = tuple(
        Run(
            address=table.address(start),
            instructions=sum(row in table.instructions for row in range(start, behind[start])),
            executions=executed[start],
        )
        for start in order
    )
    return runs, path


def executions(observation: Observation, table: CodeTable, addresses: Sequence[int]) -> tuple[int, ...]:
    """How often the instruction at each of ``addresses`` was executed.

    Raises:
        UsageError: no instruction starts at one of them.
    """
    executed = _row_executions(observation)
    return tuple(executed[table.row(address)] for address in addresses)


def _row_executions(observation: Observation) -> list[int]:
    """Executions of each row's halfword: of the blocks that started at or below it, those that did not end."""
    return list(accumulate(e - x for e, x in zip(observation.entered, observation.left, strict=True)))


def _run_starts(observation: Observation, table: CodeTable) -> list[int]:
    starts = []
    ends_here = {row + i.size_bytes // 2: i for row, i in table.instructions.items()}
    for row, (entered, left) in enumerate(zip(observation.entered, observation.left, strict=True)):
        if not entered and not left:
            continue
        before = ends_here.get(row)
        flows_through = entered == left and before is not None and before.control is Control.NEXT
        if not flows_through:
            starts.append(row)
    return starts


def _starts_between(first: int, end: int, behind: Mapping[int, int]) -> tuple[int, ...]:
    """The runs that start in ``[first, end)``; a block that only continues a run contributes none."""
    return tuple(start for start in behind if first <= start < end)


def _executed_bytes(runs: Sequence[Run], table: CodeTable) -> Iterable[int]:
    """Halfword addresses of all executed instructions."""
    for run in runs:
        row, left = (run.address - table.base_address) // 2, run.instructions
        while left:
            instruction = table.instructions[row]
            yield from range(instruction.address, instruction.address + instruction.size_bytes, 2)
            row += instruction.size_bytes // 2
            left -= 1


def _sets(addresses: Iterable[int], cache: CacheConfig | None) -> tuple[int, ...]:
    if cache is None:
        return ()
    return tuple(sorted({address // cache.line_bytes % cache.sets for address in addresses}))


def _heap_apart(touched: Mapping[str, Sequence[int]], heap: MemoryRange) -> Mapping[str, Sequence[int]]:
    """``touched`` with the words of a heap that lies in another region under a name of their own."""
    if "heap" in touched:
        return touched
    rest = {name: tuple(word for word in words if word not in heap) for name, words in touched.items()}
    return rest | {"heap": tuple(word for words in touched.values() for word in words if word in heap)}


def _split_heap(
    touched: Mapping[str, Sequence[int]], heap_metadata: Iterable[int]
) -> Iterable[tuple[str, Sequence[int]]]:
    for name, words in touched.items():
        if name == "heap":
            headers = set(words).intersection(heap_metadata)  # A heap may have millions, of which few are touched.
            yield "heap_metadata", [word for word in words if word in headers]
            yield "heap_blocks", [word for word in words if word not in headers]
        else:
            yield name, words


def _stack_bytes(observation: Observation, stack_pointer: int) -> int:
    touched = [word for word in observation.touched["stack"] if word < stack_pointer]
    lowest = min([stack_pointer, *touched[:1], *([observation.lowest_stack_pointer or stack_pointer])])
    return stack_pointer - lowest
