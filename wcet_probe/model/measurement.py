"""What the machine counts of one call: instructions, cycles, caches, touched sets, the executed path."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from wcet_probe.model.target import OWN_VICTIMS, Victims


@dataclass(frozen=True, slots=True)
class CacheCounts:
    """Counts of one cache during the measured call; one access per line touched by a fetch, load or store.

    ``present`` is False for a core without the cache: its counts are then 0 and its accesses go to memory.
    """

    present: bool
    read_hits: int
    read_misses: int
    write_hits: int
    write_misses: int
    writebacks: int
    memory_writes: int
    """Single writes to memory: write-through stores and stores that miss without allocating."""

    @property
    def hits(self) -> int:
        """Reads and writes served by the cache."""
        return self.read_hits + self.write_hits

    @property
    def misses(self) -> int:
        """Reads and writes not served by the cache."""
        return self.read_misses + self.write_misses


@dataclass(frozen=True, slots=True)
class Run:
    """A stretch of instructions executed one after another, entered at ``address``, with how often it was entered."""

    address: int
    instructions: int
    executions: int


@dataclass(frozen=True, slots=True)
class CallCost:
    """What one call costs, and nothing else of it; ``cycles`` with those that it waits for memory."""

    instructions: int
    cycles: int
    icache: CacheCounts


@dataclass(frozen=True, slots=True)
class Measurement:
    """Counts of one call: a witness, a lower bound of the WCET that anybody can replay.

    Attributes:
        instructions: instructions from entry to return, an instruction whose condition fails included.
        cycles: instruction cycles and memory stalls together.
        instruction_cycles: of these, cycles by the timing table.
        stall_cycles: of these, cycles of fills, write-backs and single accesses to memory.
        loads, stores: data accesses (an access that straddles a line touches two lines and counts once here).
        icache, dcache: counts of the caches; of a unified one those of its fetches, and of its data accesses.
        touched_instruction_sets: indices of the I-cache sets of executed instructions; empty without I-cache.
        touched_data_sets: indices of D-cache sets of all data accesses; empty without D-cache.
        touched_sets_by_region: D-cache sets by memory region.
        touched_bytes_by_region: bytes of the words that were accessed, by memory region.
        stack_bytes: deepest extent of the stack below the stack pointer at entry.
        runs: what was executed, in order of first execution.
        path: the executed path, as indices into ``runs``, in order.
        path_complete: False where ``path`` was cut at its limit; counts are never cut.
        result: the call's return value.
        victims: what replacement evicted, where that is no function of the accesses alone.
    """

    instructions: int
    cycles: int
    instruction_cycles: int
    stall_cycles: int
    loads: int
    stores: int
    icache: CacheCounts
    dcache: CacheCounts
    touched_instruction_sets: tuple[int, ...]
    touched_data_sets: tuple[int, ...]
    touched_sets_by_region: Mapping[str, tuple[int, ...]]
    touched_bytes_by_region: Mapping[str, int]
    stack_bytes: int
    runs: tuple[Run, ...]
    path: tuple[int, ...]
    path_complete: bool
    result: int
    victims: Victims = OWN_VICTIMS
