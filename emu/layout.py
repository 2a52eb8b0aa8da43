"""Where what lies in the guest's memory: the image, stack and heap, and the tables of a replay."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from wcet_probe.emu.memory import Region, Use, regions
from wcet_probe.errors import ImageError, UsageError
from wcet_probe.model.image import HEAP_SYMBOL, STACK_SYMBOL, Image
from wcet_probe.model.target import MemoryRange, Target

HARNESS_ADDRESS = 0xA0000000
"""Where the operation table, the block slots of a replay and their sizes live, apart from every target's memory."""

RETURN_ADDRESS = 0x9F000100
"""What a call returns to; nothing runs there, and no heap reaches it.

Not the start of a page: with the virtual TLB the engine then misses it.
"""

HARNESS_BYTES = 64 << 20
OPERATION_BYTES = 16
OPERATIONS_AT_ONCE = 1 << 20
SLOTS_ADDRESS = HARNESS_ADDRESS + OPERATION_BYTES * OPERATIONS_AT_ONCE
_FRAME_BYTES = 24
"""Left free above the first frame: the PowerPC ABI saves the link register in its caller's frame.

The stack pointer is at 8 in a cache line: then small frames lie in two lines, the most that they can.
"""
_MOST_SEGMENTS = 200
"""The native core counts regions in a byte."""
MOST_SLOTS = (HARNESS_BYTES - OPERATION_BYTES * OPERATIONS_AT_ONCE) // 8
SIZES_ADDRESS = SLOTS_ADDRESS + 4 * MOST_SLOTS
"""Of the bytes that each slot's block was asked for, as a free that is told them needs."""


def guest_regions(image: Image, target: Target, heap_bytes: int) -> tuple[Region, ...]:
    """The guest's memory: the image's segments, stack, heap, and the harness's tables.

    Raises:
        ImageError: a segment is larger than the target's memory.
        UsageError: the target's memory map has no room for the heap.
    """
    layout, heap, stack = target.memory_map, heap_range(image, target, heap_bytes), stack_range(image, target)
    harness = MemoryRange(HARNESS_ADDRESS, HARNESS_BYTES)
    most = max(layout.code.size_bytes, layout.data.size_bytes)
    for segment in image.segments:
        if segment.size_bytes > most:
            message = (
                f"the segment at {segment.address:#010x} has {segment.size_bytes} bytes, and {target.name} no memory "
                f"of more than {most}; link the image for that target."
            )
            raise ImageError(message)
    if len(image.segments) > _MOST_SEGMENTS:
        message = f"the image has {len(image.segments)} segments, more than {_MOST_SEGMENTS}; link it into fewer."
        raise ImageError(message)
    code = [s for s in image.segments if s.executable]
    static = [s for s in image.segments if not s.executable]
    returning = MemoryRange(RETURN_ADDRESS, 4)
    others = [layout.code, layout.data, stack, returning, harness]
    for other in () if _is_of_image(image) else others:
        if heap.base_address < other.end_address and other.base_address < heap.end_address:
            room = other.base_address - heap.base_address
            message = f"a heap of {heap_bytes} bytes does not fit into the memory of {target.name}; at most {room} do."
            raise UsageError(message)
    named = [("code", code, False), ("static", static, True)]
    uses = [
        Use(name if i == 0 else f"{name}{i}", MemoryRange(s.address, s.size_bytes), writable)
        for name, segments, writable in named
        for i, s in enumerate(segments)
    ]
    uses.append(Use("stack", stack, writable=True))
    uses += [] if _is_of_image(image) else [Use("heap", heap, writable=True)]
    uses.append(Use("operations", harness, writable=True, harness=True))
    uses.append(Use("return", returning, writable=False, harness=True))
    _check_apart(uses)
    return regions(uses)


def _check_apart(uses: Sequence[Use]) -> None:
    """Regions may share a page, but no byte: what one of them holds, the other would hold, too.

    Raises:
        ImageError: two of them do.
    """
    for one, other in pairwise(sorted(uses, key=lambda use: use.extent.base_address)):
        if other.extent.base_address < one.extent.end_address:
            message = (
                f"{one.name} from {one.extent.base_address:#x} to {one.extent.end_address:#x} and {other.name} from "
                f"{other.extent.base_address:#x} have memory in common; link the image to other addresses."
            )
            raise ImageError(message)


def heap_range(image: Image, target: Target, heap_bytes: int) -> MemoryRange:
    """Where a heap of ``heap_bytes`` bytes is: where the image has it, or where the target has it.

    Raises:
        UsageError: the image has a smaller one.
    """
    own = image.placed(HEAP_SYMBOL)
    if own and own.size_bytes and own.size_bytes < heap_bytes:
        raise UsageError(f"the heap of the image has {own.size_bytes} bytes, not {heap_bytes}; give a smaller --heap.")
    return MemoryRange(own.base_address if own else target.memory_map.heap_address, heap_bytes)


def stack_range(image: Image, target: Target) -> MemoryRange:
    """Where calls have their stack."""
    return image.placed(STACK_SYMBOL) or target.memory_map.stack


def first_stack_pointer(image: Image, target: Target) -> int:
    """The stack pointer that calls begin with."""
    return stack_range(image, target).end_address - _FRAME_BYTES


def _is_of_image(image: Image) -> bool:
    """Whether the heap lies in a segment of the image."""
    own = image.placed(HEAP_SYMBOL)
    return own is not None and own.size_bytes > 0
