"""Worst, best, random states of dlmalloc27, and the states that the literature calls worst.

What malloc and free put off is paid by one call. Two costs add up there. Consolidation is linear: every chunk of a fast
bin is merged with its neighbours. Sorting is quadratic: each merged chunk that goes to a large bin passes all larger
ones there. One malloc pays both, if the merged chunks are as small as a large bin takes them and come in descending order.

Sizes here are those of chunks, in bytes; a request is 4 bytes less. H is the heap without its last chunk, top.

Sources: C06 §2 and table 1, M06 §2; worst states: see the README of the allocator.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from types import MappingProxyType

from wcet_probe.errors import UsageError
from wcet_probe.model import Block, InitialCache, Operation, OperationKind, ScenarioPlan, Trace
from wcet_probe.scenarios.families import Extreme, Family, GuestHeap, HeapRequest
from wcet_probe.scenarios.random_workload import random_plans
from wcet_probe.scenarios.traces import TraceBuilder

_HEADER_BYTES = 8
_OVERHEAD = 4
_LEAST = 16
_MARK = 24
"""Size of the chunk that fixes when its region is merged for the last time: its fast bin is emptied after that of 16."""

_LARGE = 512
_SORTED_SIZES = tuple(range(568, _LARGE, -8))
"""All sizes of the first large bin but the smallest, which the walk ends at: the most chunks a heap can hold in a bin."""

_NEED = 40
"""Chunk of the measured request: served by neither of the fast bins above, by no small bin and by no top below 56."""


def _request_of(chunk_bytes: int) -> int:
    return chunk_bytes - _OVERHEAD
