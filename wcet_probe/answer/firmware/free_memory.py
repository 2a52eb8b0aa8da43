"""A memory map on which an image of anybody runs: stack and scratch memory where the image has nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from wcet_probe.emu.layout import RETURN_ADDRESS
from wcet_probe.errors import UsageError
from wcet_probe.model.image import Image
from wcet_probe.model.target import MemoryMap, MemoryRange, Target

SCRATCH_BYTES = 64 << 10
_GRANULE_BYTES = 64 << 10
_PLACES_FROM = 0x70000000


def free_map(image: Image, target: Target) -> MemoryMap:
    """The map of ``target``, with its stack and its heap, which is the scratch memory, where the image has nothing."""
    taken = [MemoryRange(segment.address, segment.size_bytes) for segment in image.segments]
    taken += [target.memory_map.code, target.memory_map.data]
    taken += [one.extent for one in target.memory.regions]
    own = target.memory_map.stack
    segments = taken[: len(image.segments)]
    stack = own if _is_free(own, segments) else _free(own.size_bytes, taken)
    scratch = MemoryRange(target.memory_map.heap_address, SCRATCH_BYTES)
    if not _is_free(scratch, [*segments, stack]):
        scratch = _free(SCRATCH_BYTES, [*taken, stack])
    return replace(target.memory_map, stack=stack, heap_address=scratch.base_address)


def _is_free(one: MemoryRange, taken: Sequence[MemoryRange]) -> bool:
    return all(one.end_address <= other.base_address or other.end_address <= one.base_address for other in taken)


def _free(size_bytes: int, taken: Sequence[MemoryRange]) -> MemoryRange:
    """The first range of that size from `_PLACES_FROM` on that meets none of ``taken``."""
    for address in range(_PLACES_FROM, RETURN_ADDRESS - size_bytes - _GRANULE_BYTES, _GRANULE_BYTES):
        found = MemoryRange(address, size_bytes)
        if _is_free(found, taken):
            return found
    raise UsageError("the image leaves no memory for a stack and scratch memory; link it for fewer addresses.")
