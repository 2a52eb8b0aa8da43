"""The native core that follows runs (``analyzer/native/``) through ctypes: its layouts, and nothing of its meaning.

Words: P-code (docs/explanation/glossary.md).
"""

from __future__ import annotations

import ctypes
from ctypes import POINTER, Structure, c_bool, c_int32, c_int64, c_uint8, c_uint32, c_uint64, c_void_p
from functools import cache

from wcet_probe.native_library import native_library

_ABI_VERSION = 3
NUMBER, STACK, LESS_STACK, LINK, BITS, UNKNOWN = range(6)
"""Kinds of values."""
FALLS, JUMPS, CALLS, RETURNS, EXITS = range(5)
"""How control goes from block to block."""
ENDED, NEEDS_BLOCK, PAUSED, UNDECIDED, NO_ROOM = range(5)
"""Why following stops."""
ROW, STACK_ROW = 36, 32
"""Numbers of a row of what unaligned accesses take longer, and where those of the stack begin."""


class OperationLayout(Structure):
    """``struct wp_op``."""

    _fields_ = [
        *((name, c_uint8) for name in ("code", "from_bytes", "to_bytes")),
        *((name, c_int32) for name in ("out", "first", "second")),
        ("place", c_uint32),
    ]


class CodeLayout(Structure):
    """``struct wp_code``."""

    _fields_ = [
        *((name, c_uint32) for name in ("address", "end_address", "instructions", "operations")),
        *((name, c_uint32) for name in ("first_line", "last_line")),
        *((name, c_uint8) for name in ("returns", "is_told")),
    ]


class AccessLayout(Structure):
    """``struct wp_access_setup``."""

    _fields_ = [("range", c_uint32), ("row", c_uint32)]


class RangeLayout(Structure):
    """``struct wp_range``."""

    _fields_ = [
        ("state", c_uint8),
        ("on_stack", c_uint8),
        ("size_bytes", c_uint32),
        ("low", c_int64),
        ("high", c_int64),
        ("stride", c_uint64),
    ]


class CacheLayout(Structure):
    """``struct wp_run_cache_setup``."""

    _fields_ = [
        *((name, c_uint32) for name in ("sets", "ways", "line_bytes")),
        *((name, c_uint8) for name in ("ages", "write_back", "write_allocate")),
    ]


class RegionLayout(Structure):
    """``struct wp_region``."""

    _fields_ = [("address", c_uint32), ("size_bytes", c_uint32), ("is_data", c_uint8)]


class SetupLayout(Structure):
    """``struct wp_run_setup``."""

    _fields_ = [
        ("code", CacheLayout),
        ("data", CacheLayout),
        ("regions", POINTER(RegionLayout)),
        *((name, c_uint32) for name in ("region_count", "entry", "stack_pointer")),
        *((name, c_uint8) for name in ("knows_stack_pointer", "big_endian", "is_thumb", "is_unaligned_charged")),
        ("single_cycles", c_uint64),
    ]


class CountsLayout(Structure):
    """``struct wp_run_counts``."""

    _fields_ = [
        *((name, c_uint64) for name in ("decided", "waiting_cycles", "code_singles", "data_singles")),
        *((name, c_uint32) for name in ("address", "ways", "stack_reach")),
        *((name, c_uint8) for name in ("is_told", "tells_alignment", "tells_stack_pointer")),
        *((name, c_uint8) for name in ("is_far", "is_named_twice")),
    ]


class WayLayout(Structure):
    """``struct wp_run_way``."""

    _fields_ = [*((name, c_uint32) for name in ("source", "target", "kind")), ("count", c_uint64)]


@cache
def load() -> ctypes.CDLL:
    """The native core.

    Raises:
        WcetProbeError: it was not built, or is of another version than this package.
    """
    library = native_library("wcet_probe.analyzer", "native/_run.so", "wp_run_abi_version", _ABI_VERSION)
    for name, result, arguments in (
        ("open", c_void_p, [POINTER(SetupLayout)]),
        ("close", None, [c_void_p]),
        ("content", c_bool, [c_void_p, c_uint32, ctypes.c_char_p, c_uint64]),
        ("slot", c_int32, [c_void_p, c_uint32, c_uint64]),
        ("put", None, [c_void_p, c_int32, c_uint32, c_uint64]),
        ("value", c_uint32, [c_void_p, c_int32, POINTER(c_uint64)]),
        ("overlaps", c_bool, [c_void_p, c_int32, POINTER(c_int32), c_uint32]),
        ("row", c_bool, [c_void_p, POINTER(c_uint32)]),
        ("access", c_bool, [c_void_p, POINTER(AccessLayout)]),
        ("block", c_bool, [c_void_p, POINTER(CodeLayout), POINTER(OperationLayout)]),
        ("follow", ctypes.c_int, [c_void_p, c_uint64]),
        ("counts", None, [c_void_p, POINTER(CountsLayout)]),
        ("ways", None, [c_void_p, POINTER(WayLayout)]),
        ("range", None, [c_void_p, c_uint32, POINTER(RangeLayout)]),
        ("sets", None, [c_void_p, c_bool, POINTER(c_uint64)]),
    ):
        function = getattr(library, f"wp_run_{name}")
        function.restype, function.argtypes = result, arguments
    return library
