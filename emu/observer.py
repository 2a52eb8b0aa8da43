"""One observer of the native core: its tables kept alive, its counts and marks read out as plain values."""

from __future__ import annotations

import ctypes
import re
import sys
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from wcet_probe.emu import claim_layouts as claims
from wcet_probe.emu import native
from wcet_probe.emu.engine import register_id, register_read_address, stop_address
from wcet_probe.emu.guest_registers import result_register
from wcet_probe.emu.loops import LoopTable, loop_setup
from wcet_probe.emu.memory import Region, zeroed
from wcet_probe.emu.tables import CodeTable
from wcet_probe.errors import UsageError, WcetProbeError
from wcet_probe.model.measurement import CacheCounts
from wcet_probe.model.scenario import InitialCache
from wcet_probe.model.target import CacheConfig, Isa, MemoryRange, Target, Victims

if TYPE_CHECKING:
    from wcet_probe.emu.operations import OperationColumns

PATH_CAPACITY = 1 << 16
"""Blocks of an executed path that are kept in order; counts are never cut."""

_NO_PATH = 1 << 63
"""Length of a path of which nothing is kept: ``WP_NO_PATH``."""

_WORD_BYTES = 4
_WORD_BITS = 32
_BITS = tuple(tuple(bit for bit in range(8) if byte >> bit & 1) for byte in range(256))
"""The numbers of the bits that are set in each byte."""
_TOUCHED = re.compile(rb"[^\0]", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Observation:
    """What the native core counted, as plain values.

    Attributes:
        instructions, cycles, loads, stores: as in ``Measurement``; ``cycles`` are instruction cycles only.
        icache, dcache: counts of the caches; of a unified one those of its fetches, and of its data accesses.
        region_accesses, region_cycles: data accesses to uncached regions, and what they cost.
        lowest_stack_pointer: lowest value of the stack pointer behind an instruction that wrote it, or None.
        entered, left: how often a block started at, and ended before, each row of the code table.
        path: executed blocks as pairs of rows, first and behind, in order.
        path_complete: False where ``path`` was cut.
        touched: accessed words, by region name.
    """

    instructions: int
    cycles: int
    loads: int
    stores: int
    icache: CacheCounts
    dcache: CacheCounts
    region_accesses: int
    region_cycles: int
    lowest_stack_pointer: int | None
    entered: tuple[int, ...]
    left: tuple[int, ...]
    path: tuple[tuple[int, int], ...]
    path_complete: bool
    touched: dict[str, tuple[int, ...]]


class Observer:
    """A native observer for one guest. ``close`` it, or use the machine's context manager."""

    def __init__(
        self, table: CodeTable, regions: Iterable[Region], target: Target, harness: MemoryRange, loops: LoopTable
    ) -> None:
        self._library = native.load()
        self._regions = tuple(regions)
        self._target, self._table, self._loops = target, table, loops
        self._ranges, words = self._layout()
        self._touched = (ctypes.c_uint32 * words)()
        self._entered = (ctypes.c_uint32 * table.row_count)()
        self._left = (ctypes.c_uint32 * table.row_count)()
        # Most calls fill little of it, so no page of it is touched before.
        self._path = (ctypes.c_uint32 * (2 * PATH_CAPACITY)).from_buffer(zeroed(2 * PATH_CAPACITY * _WORD_BYTES))
        self._operations = (native.OperationCountsLayout * 0)()
        self._result_register = register_id(target.isa, result_register(target.isa))
        stack_pointer = "r1" if target.isa is Isa.POWERPC else "r13"
        self._uncached = native.uncached_layout(target.memory.regions)
        setup = native.SetupLayout(
            read_register=register_read_address(),
            stop_engine=stop_address(),
            instructions=table.rows,
            quiet=table.quiet,
            accesses=table.accesses,
            ranges=self._ranges,
            touched=self._touched,
            entered=self._entered,
            left=self._left,
            path=self._path,
            uncached=self._uncached,
            loops=loop_setup(loops),
            code_base=table.base_address,
            code_bytes=table.size_bytes,
            range_count=len(self._regions),
            path_capacity=PATH_CAPACITY,
            harness_base=harness.base_address,
            harness_bytes=harness.size_bytes,
            stack_pointer=register_id(target.isa, stack_pointer),
            flags_register=register_id(target.isa, "cpsr") if target.isa is Isa.ARM else 0,
            uncached_count=len(target.memory.regions),
            unified_cache=target.unified_cache,
            single_cycles=target.memory.single_cycles,
        )
        icache = None if target.unified_cache else _never_written(target.icache)
        self._handle: int | None = self._library.wp_observer_open(
            ctypes.byref(setup), native.cache_layout(icache), native.cache_layout(target.dcache)
        )
        if not self._handle:
            message = "the native core ran out of memory; choose smaller caches."
            raise WcetProbeError(message)

    @property
    def handle(self) -> int:
        """The native observer."""
        if self._handle is None:
            message = "the machine is closed; use it inside its with block."
            raise UsageError(message)
        return self._handle

    def callback(self, name: str) -> int:
        """Address of the engine callback ``name`` (``block``, ``instruction``, ``watch``, ``tlb_fill``)."""
        return ctypes.cast(getattr(self._library, f"wp_observer_{name}"), ctypes.c_void_p).value or 0

    def seed(self, victims: Victims) -> None:
        """Let replacement choose ``victims`` from the next restart on that fills the caches."""
        chosen = (victims.icache_seed, victims.dcache_seed)
        own = (cache.seed if cache else 0 for cache in (self._target.icache, self._target.dcache))
        seeds = (seed if one is None else one for one, seed in zip(chosen, own, strict=True))
        self._library.wp_observer_seed_caches(self.handle, *seeds)

    def restart(self, initial: InitialCache, operations: int = 0) -> None:
        """Forget all counts; fill the caches as ``initial`` says; record ``operations`` operations of a replay."""
        self._operations = (native.OperationCountsLayout * operations)()
        self._library.wp_observer_record_operations(self.handle, self._operations, operations, self._result_register)
        if initial is not InitialCache.WARM:
            self._library.wp_observer_fill_caches(self.handle, native.CONTENT[initial])
        self._library.wp_observer_restart(self.handle)

    def record_sets(self, setup: native.SetSetupLayout | None) -> None:
        """From the next restart on have the tables of ``setup`` filled as well; None: no more."""
        self._library.wp_observer_record_sets(self.handle, ctypes.byref(setup) if setup else None)

    def hold_claims(self, setup: claims.ClaimSetupLayout | None) -> None:
        """From now on hold each observed call against the claims of ``setup``; None: against none."""
        self._library.wp_observer_hold_claims(self.handle, ctypes.byref(setup) if setup else None)

    def broken_claim(self) -> claims.BrokenClaimLayout:
        """The first claim that was violated since ``hold_claims``."""
        broken = claims.BrokenClaimLayout()
        self._library.wp_observer_broken_claim(self.handle, ctypes.byref(broken))
        return broken

    def settle(self, program_counter: int) -> None:
        """The engine left a block in the middle: take back what was counted of it from ``program_counter`` on.

        Where nothing was observed there is nothing to take back, but the watched loops are told.
        """
        self._library.wp_observer_settle(self.handle, program_counter)

    def finish(self) -> None:
        """The call has returned, observed or not."""
        self._library.wp_observer_finish(self.handle)

    def limit(self, instructions: int) -> None:
        """Stop the engine once all runs together have taken more than ``instructions`` from now on."""
        self._library.wp_observer_limit(self.handle, instructions)

    def operation_instructions(self) -> tuple[int, ...]:
        """Instructions of each operation of the replay that ``restart`` announced."""
        names = [name for name, *_ in native.OperationCountsLayout._fields_]
        words = memoryview(bytes(self._operations)).cast("Q")
        return tuple(words[names.index("instructions") :: len(names)].tolist())

    def operation_columns(self) -> OperationColumns:
        """What each operation of the replay counted that ``restart`` announced."""
        # Workloads want columns; a first answer does not, and NumPy takes a tenth of its time.
        from wcet_probe.emu.operations import operation_columns  # noqa: PLC0415

        return operation_columns(self._operations, self._target)

    def costs(self) -> Observation:
        """What was counted since the last restart, but no blocks and no words: for who wants a call's cost only."""
        return self._observation(all_of_it=False)

    def observation(self) -> Observation:
        """All that was counted since the last restart."""
        return self._observation(all_of_it=True)

    def _observation(self, *, all_of_it: bool) -> Observation:
        counts = native.CountsLayout()
        icache, dcache = native.CacheCountsLayout(), native.CacheCountsLayout()
        self._library.wp_observer_counts(self.handle, counts, icache, dcache)
        keeps_path = all_of_it and counts.path_length < _NO_PATH
        blocks = min(counts.path_length, PATH_CAPACITY) if keeps_path else 0
        rows = iter(self._path[: 2 * blocks])
        lowest = counts.lowest_stack_pointer
        return Observation(
            instructions=counts.instructions,
            cycles=counts.cycles,
            loads=counts.loads,
            stores=counts.stores,
            icache=_counts(icache, self._target.icache),
            dcache=_counts(dcache, self._target.dcache),
            region_accesses=counts.region_accesses,
            region_cycles=counts.region_cycles,
            lowest_stack_pointer=None if lowest == 0xFFFFFFFF else lowest,
            entered=tuple(self._entered) if all_of_it else (),
            left=tuple(self._left) if all_of_it else (),
            path=tuple(zip(rows, rows, strict=True)),
            path_complete=counts.path_length <= PATH_CAPACITY,
            touched={
                region.name: tuple(self._touched_words(region, row))
                for region, row in zip(self._regions, self._ranges, strict=True)
                if all_of_it and not region.harness
            },
        )

    def stopped(self) -> tuple[int, int, int]:
        """Why the core stopped the engine (``native.RUNNING`` where it did not), at which pc, for which address."""
        counts = native.CountsLayout()
        self._library.wp_observer_counts(self.handle, counts, native.CacheCountsLayout(), native.CacheCountsLayout())
        return counts.stop, counts.stop_pc, counts.stop_address

    def close(self) -> None:
        """Give the native observer back."""
        if self._handle:
            self._library.wp_observer_close(self._handle)
            self._handle = None

    def _layout(self) -> tuple[ctypes.Array[native.RangeLayout], int]:
        """The regions for the native core, and how many 32-bit words their touched bits take."""
        rows, words = [], 0
        for region in self._regions:
            extent = region.extent
            rows.append(native.RangeLayout(extent.base_address, extent.size_bytes, region.writable, words))
            words += extent.size_bytes // _WORD_BYTES // _WORD_BITS + 1
        return (native.RangeLayout * len(rows))(*rows), words

    def _touched_words(self, region: Region, row: native.RangeLayout) -> Iterator[int]:
        count = region.extent.size_bytes // _WORD_BYTES // _WORD_BITS + 1
        bits = array("I", memoryview(self._touched)[row.touched_word : row.touched_word + count].tobytes())
        if sys.byteorder == "big":
            bits.byteswap()
        base = region.extent.base_address
        # Most of a large heap was not touched: bytes without a bit are passed over by the search.
        for found in _TOUCHED.finditer(bits.tobytes()):
            first = base + _WORD_BYTES * 8 * found.start()
            yield from (first + _WORD_BYTES * bit for bit in _BITS[found[0][0]])


def _never_written(icache: CacheConfig | None) -> CacheConfig | None:
    """An instruction cache has nothing to write back, whatever its configuration says."""
    return replace(icache, write_back=False) if icache else None


def _counts(layout: native.CacheCountsLayout, config: CacheConfig | None) -> CacheCounts:
    return CacheCounts(
        present=config is not None,
        read_hits=layout.read_hits,
        read_misses=layout.read_misses,
        write_hits=layout.write_hits,
        write_misses=layout.write_misses,
        writebacks=layout.writebacks,
        memory_writes=layout.memory_writes,
    )
