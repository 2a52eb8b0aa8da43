"""The native core (``emu/native/``) through ctypes: its layouts, and nothing of its meaning."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from ctypes import POINTER, Structure, c_bool, c_int32, c_uint8, c_uint16, c_uint32, c_uint64, c_void_p
from functools import cache

from wcet_probe.model.scenario import InitialCache
from wcet_probe.model.target import CacheConfig, Replacement, UncachedRegion
from wcet_probe.native_library import native_library

_ABI_VERSION = 14

REPLACEMENT = {
    Replacement.LRU: 0,
    Replacement.FIFO: 1,
    Replacement.PLRU: 2,
    Replacement.RANDOM: 3,
    Replacement.ROUND_ROBIN: 4,
}
CONTENT = {InitialCache.COLD: 0, InitialCache.DIRTY: 1}

CONDITIONAL_BRANCH, IN_IT_BLOCK, WRITES_STACK_POINTER, PROBLEM = 1, 2, 4, 8
CLEARS_STACK_POINTER, JUMPS_TO_ITSELF = 16, 32
LOAD, STORE = 1, 2
RUNNING, STRAY_ACCESS, PROBLEM_EXECUTED, OUTSIDE_CODE, BUDGET_SPENT, UNALIGNED_STACK, ENDLESS_LOOP = range(7)
UNEXPECTED_KEPT = 4
SET_RECORD_HEAD = 5
SET_RECORD_WORDS = SET_RECORD_HEAD + 2 * UNEXPECTED_KEPT
"""32-bit words of ``struct wp_operation_sets``: single numbers, then pairs."""


class CacheLayout(Structure):
    """``struct wp_cache_config``."""

    _fields_ = [
        (name, c_uint32)
        for name in ("sets", "ways", "line_bytes", "replacement", "write_back", "write_allocate", "seed")
    ]


class CacheCountsLayout(Structure):
    """``struct wp_cache_counts``."""

    _fields_ = [
        (name, c_uint64)
        for name in ("read_hits", "read_misses", "write_hits", "write_misses", "writebacks", "memory_writes")
    ]


class AccessLayout(Structure):
    """``struct wp_access``."""

    _fields_ = [
        ("displacement", c_uint32),
        ("align_mask", c_uint32),
        ("base", c_int32),
        ("index", c_int32),
        ("count", c_uint16),
        ("kind", c_uint8),
        ("bytes_each", c_uint8),
        ("subtract_index", c_uint8),
        ("shift", c_uint8),
        ("shift_bits", c_uint8),
        ("unaligned_cycles", c_uint8 * 3),
    ]


class InstructionLayout(Structure):
    """``struct wp_instruction``."""

    _fields_ = [
        ("instructions_before", c_uint32),
        ("cycles_before", c_uint32),
        ("executed_cycles", c_uint32),
        ("skipped_cycles", c_uint32),
        ("taken_cycles", c_uint32),
        ("first_access", c_uint32),
        ("size_bytes", c_uint8),
        ("flags", c_uint8),
        ("condition", c_uint8),
        ("access_count", c_uint8),
        ("previous_bytes", c_uint8),
        ("unused", c_uint8 * 3),
    ]


class RangeLayout(Structure):
    """``struct wp_range``."""

    _fields_ = [(name, c_uint32) for name in ("base", "bytes", "writable", "touched_word")]


class UncachedLayout(Structure):
    """``struct wp_uncached``."""

    _fields_ = [(name, c_uint32) for name in ("base", "bytes", "read_cycles", "write_cycles")]


class LoopEventLayout(Structure):
    """``struct wp_loop_event``."""

    _fields_ = [(name, c_uint32) for name in ("row", "loop", "is_header")]


class LoopRangeLayout(Structure):
    """``struct wp_loop_range``."""

    _fields_ = [(name, c_uint32) for name in ("first", "behind")]


class LoopCountLayout(Structure):
    """``struct wp_loop_count``."""

    _fields_ = [(name, c_uint64) for name in ("running", "max_header_executions", "header_executions", "entries")]


class LoopSetupLayout(Structure):
    """``struct wp_loop_setup``; all pointers are null where no loop is watched."""

    _fields_ = [
        ("events_before", POINTER(c_uint32)),
        ("events", POINTER(LoopEventLayout)),
        ("ranges", POINTER(LoopRangeLayout)),
        ("first_range", POINTER(c_uint32)),
        ("counts", POINTER(LoopCountLayout)),
    ]


class SetupLayout(Structure):
    """``struct wp_setup``."""

    _fields_ = [
        ("read_register", c_void_p),
        ("stop_engine", c_void_p),
        ("instructions", POINTER(InstructionLayout)),
        ("quiet", POINTER(c_uint8)),
        ("accesses", POINTER(AccessLayout)),
        ("ranges", POINTER(RangeLayout)),
        ("touched", POINTER(c_uint32)),
        ("entered", POINTER(c_uint32)),
        ("left", POINTER(c_uint32)),
        ("path", POINTER(c_uint32)),
        ("uncached", POINTER(UncachedLayout)),
        ("loops", LoopSetupLayout),
        ("code_base", c_uint32),
        ("code_bytes", c_uint32),
        ("range_count", c_uint32),
        ("path_capacity", c_uint32),
        ("harness_base", c_uint32),
        ("harness_bytes", c_uint32),
        ("stack_pointer", c_int32),
        ("flags_register", c_int32),
        ("uncached_count", c_uint32),
        ("unified_cache", c_uint32),
        ("single_cycles", c_uint32),
    ]


class OperationCountsLayout(Structure):
    """``struct wp_operation_counts``."""

    _fields_ = [
        (name, c_uint64)
        for name in (
            *("instructions", "cycles", "accesses", "region_accesses", "region_cycles"),
            *("fetch_misses", "fetch_writebacks", "read_misses", "write_misses", "writebacks", "memory_writes"),
            "result",
        )
    ]


class SetSetupLayout(Structure):
    """``struct wp_set_setup``."""

    _fields_ = [
        ("operations", POINTER(c_uint32)),
        ("kinds", POINTER(c_uint8)),
        ("expected", POINTER(c_uint8)),
        ("touched", POINTER(c_uint8)),
        ("counts", POINTER(c_uint32)),
        ("is_counted", POINTER(c_uint8)),
        ("capacity", c_uint32),
        ("range_count", c_uint32),
        ("sets", c_uint32),
        ("first_register", c_int32),
    ]


class CountsLayout(Structure):
    """``struct wp_counts``."""

    _fields_ = [
        ("instructions", c_uint64),
        ("cycles", c_uint64),
        ("loads", c_uint64),
        ("stores", c_uint64),
        ("path_length", c_uint64),
        ("operations", c_uint64),
        ("region_accesses", c_uint64),
        ("region_cycles", c_uint64),
        ("lowest_stack_pointer", c_uint32),
        ("stop", c_uint32),
        ("stop_pc", c_uint32),
        ("stop_address", c_uint32),
    ]


@cache
def load() -> ctypes.CDLL:
    """The native core.

    Raises:
        WcetProbeError: it was not built, or is of another version than this package.
    """
    library = native_library("wcet_probe.emu", "_native.so", "wp_abi_version", _ABI_VERSION)
    library.wp_observer_open.restype = c_void_p
    library.wp_cache_replay.restype = c_bool
    library.wp_largest.restype = c_uint32
    for name, arguments in {
        "wp_observer_open": [POINTER(SetupLayout), POINTER(CacheLayout), POINTER(CacheLayout)],
        "wp_observer_close": [c_void_p],
        "wp_observer_fill_caches": [c_void_p, c_uint32],
        "wp_observer_seed_caches": [c_void_p, c_uint32, c_uint32],
        "wp_observer_restart": [c_void_p],
        "wp_observer_record_operations": [c_void_p, POINTER(OperationCountsLayout), c_uint32, c_int32],
        "wp_observer_record_sets": [c_void_p, POINTER(SetSetupLayout)],
        "wp_observer_hold_claims": [c_void_p, c_void_p],
        "wp_observer_broken_claim": [c_void_p, c_void_p],
        "wp_observer_settle": [c_void_p, c_uint32],
        "wp_observer_finish": [c_void_p],
        "wp_observer_limit": [c_void_p, c_uint64],
        "wp_observer_counts": [c_void_p, *map(POINTER, (CountsLayout, CacheCountsLayout, CacheCountsLayout))],
        "wp_largest": [c_void_p, c_uint64],
        "wp_write_operations": [c_void_p, POINTER(c_void_p), c_uint64, c_bool],
        "wp_cache_replay": [
            POINTER(CacheLayout),
            c_uint32,
            POINTER(c_uint32),
            POINTER(c_uint8),
            c_uint64,
            POINTER(c_uint8),
            POINTER(CacheCountsLayout),
        ],
    }.items():
        getattr(library, name).argtypes = arguments
    return library


def cache_layout(config: CacheConfig | None) -> CacheLayout | None:
    """``config`` as the native core takes it; None stays None."""
    if config is None:
        return None
    return CacheLayout(
        config.sets,
        config.ways,
        config.line_bytes,
        REPLACEMENT[config.replacement],
        config.write_back,
        config.write_allocate,
        config.seed,
    )


def uncached_layout(regions: Sequence[UncachedRegion]) -> ctypes.Array[UncachedLayout]:
    """``regions`` as the native core takes them."""
    rows = [
        UncachedLayout(
            region.extent.base_address, region.extent.size_bytes, region.read_cycles.value, region.write_cycles.value
        )
        for region in regions
    ]
    return (UncachedLayout * len(rows))(*rows)
