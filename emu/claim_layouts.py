"""The layouts of ``emu/native/claims.h`` and ``call_paths.h``, and nothing of their meaning."""

from __future__ import annotations

from ctypes import POINTER, Structure, c_int64, c_uint8, c_uint32, c_uint64

HOLDS = 0
MAY_BE_FRAME, FIRST_VISIT, ONLY_AGAIN, MAY_CROSS = 1, 2, 4, 8
STORES, ONE_LINE, NO_FRAME = 1, 2, 4


class ClaimRangeLayout(Structure):
    """``struct wp_claim_range``."""

    _fields_ = [(name, c_uint32) for name in ("low", "stride", "steps", "from_stack")]


class AccessClaimLayout(Structure):
    """``struct wp_access_claim``."""

    _fields_ = [
        ("executions", c_uint64),
        *((name, c_uint32) for name in ("first_range", "ranges", "set_row", "changes", "lines", "flags")),
        *((name, c_uint32) for name in ("saves", "unused")),
    ]


class ChangeClaimLayout(Structure):
    """``struct wp_change_claim``."""

    _fields_ = [(name, c_uint64) for name in ("most", "greatest", "count")]


class LineClaimLayout(Structure):
    """``struct wp_line_claim``."""

    _fields_ = [
        *((name, POINTER(c_uint32)) for name in ("line_stamps", "set_stamps", "set_counts")),
        *((name, c_uint32) for name in ("most", "most_of_set", "greatest", "greatest_of_set", "count", "unused")),
    ]


class WordClaimLayout(Structure):
    """``struct wp_word_claim``."""

    _fields_ = [
        ("bytes", POINTER(c_uint8)),
        ("loads", c_uint64),
        *((name, c_uint32) for name in ("address", "low", "high", "big_endian")),
    ]


class FlowClaimLayout(Structure):
    """``struct wp_flow_claim``."""

    _fields_ = [(name, c_int64) for name in ("most", "greatest", "sum")]


class FlowEventLayout(Structure):
    """``struct wp_flow_event``."""

    _fields_ = [("weight", c_int64), ("row", c_uint32), ("flow", c_uint32)]


class FlowEntriesLayout(Structure):
    """``struct wp_flow_entries``."""

    _fields_ = [("weight", c_int64), ("before", c_uint64), ("loop", c_uint32), ("flow", c_uint32)]


class PathAccessLayout(Structure):
    """``struct wp_path_access``."""

    _fields_ = [("range", ClaimRangeLayout), *((name, c_uint32) for name in ("row", "flags", "set_row"))]


class PathPointLayout(Structure):
    """``struct wp_path_point``."""

    _fields_ = [
        *((name, c_uint32) for name in ("first", "behind", "first_next", "next_count", "first_access", "access_count")),
        ("stamp", c_uint64),
        *((name, c_uint32) for name in ("returns", "unused")),
    ]


class PathsLayout(Structure):
    """``struct wp_paths``."""

    _fields_ = [
        ("points", POINTER(PathPointLayout)),
        ("next", POINTER(c_uint32)),
        ("accesses", POINTER(PathAccessLayout)),
        ("sets", POINTER(c_uint8)),
        ("ends", POINTER(c_uint8)),
        ("here", POINTER(c_uint32)),
        ("there", POINTER(c_uint32)),
        ("step", c_uint64),
        *((name, c_uint32) for name in ("point_count", "here_count", "row", "behind", "is_lost", "unused")),
    ]


class EntryClaimsLayout(Structure):
    """``struct wp_entry_claims``."""

    _fields_ = [
        ("claim_of_row", POINTER(c_uint32)),
        ("accesses", POINTER(AccessClaimLayout)),
        ("ranges", POINTER(ClaimRangeLayout)),
        ("sets", POINTER(c_uint8)),
        ("changes", POINTER(ChangeClaimLayout)),
        ("lines", POINTER(LineClaimLayout)),
        ("words", POINTER(WordClaimLayout)),
        ("events_before", POINTER(c_uint32)),
        ("events", POINTER(FlowEventLayout)),
        ("flows", POINTER(FlowClaimLayout)),
        ("entries", POINTER(FlowEntriesLayout)),
        *(
            (name, c_uint64)
            for name in ("most_instructions", "most_cycles", "greatest_instructions", "greatest_cycles", "calls")
        ),
        *(
            (name, c_uint32)
            for name in ("entry_row", "change_count", "line_count", "word_count", "flow_count", "entry_count")
        ),
        ("paths", PathsLayout),
    ]


class ClaimSetupLayout(Structure):
    """``struct wp_claim_setup``."""

    _fields_ = [
        ("entries", POINTER(EntryClaimsLayout)),
        ("first_line", POINTER(c_uint32)),
        ("line_row", POINTER(c_uint32)),
        ("visited", POINTER(c_uint32)),
        ("saved", POINTER(c_uint8)),
        *(
            (name, c_uint32)
            for name in (
                "entry_count",
                "line_bytes",
                "sets",
                "stack_base",
                "stack_words",
                "unused",
                "fetch_line_cycles",
                "data_line_cycles",
                "single_cycles",
                "write_allocate",
            )
        ),
    ]


class BrokenClaimLayout(Structure):
    """``struct wp_broken_claim``."""

    _fields_ = [
        ("value", c_uint64),
        *((name, c_uint32) for name in ("kind", "entry", "index", "pc", "address", "is_store")),
    ]
