"""A linked program as an allocator: what calls it is linked to its symbols, at addresses that it leaves free.

The program itself is not linked again. Its functions are called where they are; its heap is where the program has it
(an array of its own, or memory from one symbol to another), or where the target's memory map has the heap.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from wcet_probe.build.build_attributes import build_attributes
from wcet_probe.build.core_fit import check_fit
from wcet_probe.build.elf_file import EM_ARM, PF_X, ElfFile, read_elf
from wcet_probe.build.elf_join import joined, named_symbols, symbols_object, uncovered
from wcet_probe.catalog.lookup import load_target, target_names
from wcet_probe.errors import ImageError, UsageError, unknown_name
from wcet_probe.model.allocator import Allocator, OwnBuild
from wcet_probe.model.image import HEAP_SYMBOL, STACK_SYMBOL
from wcet_probe.model.target import Isa, MemoryRange, Target

_GRANULE_BYTES = 64 << 10
_HALF_BYTES = _GRANULE_BYTES // 2
_LAST_ADDRESS = 0x9F000000
"""Above it nothing of a guest's program lies: see `wcet_probe.emu.layout`."""
_STACKS_FROM = 0x70000000
_LARGEST_HEAP_BYTES = 256 << 20
"""Kept free for a heap whose place the program does not tell."""
_OURS = re.compile(rb"wp_(init|check|malloc|free|replay|nothing|handle|heap|stack)")
_SIZED = re.compile(r"\b(bytes|end)\b")


@dataclass(frozen=True, slots=True)
class Beside:
    """Where what is added to a program goes.

    Attributes:
        code, data: where its own code and variables are linked to.
        symbols: an object with the symbols of the program.
        heap: where the program has its heap, or of no bytes: where one begins; None where the target's map has it.
        stack: where calls have their stack; None where the target's map has it.
    """

    code: MemoryRange
    data: MemoryRange
    symbols: bytes
    heap: MemoryRange | None
    stack: MemoryRange | None


def beside(own: OwnBuild, target: Target) -> Beside:
    """Where what calls the program of ``own`` goes on ``target``.

    Raises:
        ImageError: the program is damaged, or leaves no room.
        UsageError: it is of another byte order, made by this tool, or has no such heap.
    """
    name, program = _program(own)
    is_big = program.order == ">"
    if is_big is not target.big_endian or (program.machine == EM_ARM) is (target.isa is Isa.POWERPC):
        message = f"{name} is for another instruction set or byte order than {target.name}; choose a target of its own."
        raise UsageError(message)
    if clash := next((one for one in named_symbols(program) if _OURS.fullmatch(one)), None):
        raise UsageError(
            f"{name} has a function or variable {clash.decode()}, as this tool calls its own; rename it there."
        )
    built_for(name, program.data, target)
    heap, segments = heap_extent(own), [one.extent for one in program.loaded]
    regions = [one.extent for one in target.memory.regions]
    room = heap or MemoryRange(target.memory_map.heap_address, _LARGEST_HEAP_BYTES)
    if not heap and any(_meets(room, one) for one in segments):
        room = _free(name, _LARGEST_HEAP_BYTES, [*segments, *regions, target.memory_map.stack], _GRANULE_BYTES)
        heap = MemoryRange(room.base_address, 0)
    stack = None
    if any(_meets(target.memory_map.stack, one) for one in (*segments, room)):
        stack = _free(name, target.memory_map.stack.size_bytes, [*segments, *regions, room], _STACKS_FROM)
    taken = [*segments, *regions, room, stack or target.memory_map.stack]
    behind = max((one.extent.end_address for one in program.loaded if one.flags & PF_X), default=0)
    ours = _free(name, _GRANULE_BYTES, taken, -(-behind // _GRANULE_BYTES) * _GRANULE_BYTES)
    return Beside(
        code=MemoryRange(ours.base_address, _HALF_BYTES),
        data=MemoryRange(ours.base_address + _HALF_BYTES, _HALF_BYTES),
        symbols=symbols_object(program),
        heap=heap,
        stack=stack,
    )


def with_calls(linked: tuple[str, bytes], place: Beside, calls: bytes) -> bytes:
    """The program ``linked``, by name and content, with what calls it, which was linked to ``place``, as one ELF file.

    Raises:
        ImageError: the program is damaged.
    """
    name, content = linked
    named = ((HEAP_SYMBOL, place.heap), (STACK_SYMBOL, place.stack))
    places = [(symbol.encode(), extent) for symbol, extent in named if extent]
    heap = place.heap if place.heap and place.heap.size_bytes else None
    return joined(read_elf(content, name), read_elf(calls, "what calls it"), heap, places)


def built_for(name: str, elf: bytes, target: Target) -> str | None:
    """What is to be assumed of the program ``elf`` called ``name`` where it is built for another core than ``target``.

    Raises:
        UsageError: ``target`` does not execute what it is built for; the targets that do are named.
    """
    return check_fit(name, build_attributes(elf), target, map(load_target, target_names()))


def holds_program(elf: bytes, allocator: Allocator) -> bool:
    """Whether the image ``elf`` has all of the linked program of ``allocator``, unchanged, where that has one."""
    own = allocator.own
    if own is None or own.elf is None:
        return True
    image, program = read_elf(elf, "the image"), _program(own)[1]
    found = {one.address: one for one in image.loaded}
    return all(
        (there := found.get(one.address)) is not None
        and (there.flags, there.file_bytes) == (one.flags, one.file_bytes)
        and image.loaded_content(there) == program.loaded_content(one)
        for one in program.loaded
    )


def heap_extent(own: OwnBuild) -> MemoryRange | None:
    """Where the linked program of ``own`` has its heap; None where that is told nowhere.

    Raises:
        ImageError: the program is damaged, or its heap is where code or constants are.
        UsageError: a symbol is missing, or has no size.
    """
    if own.elf is None or not (own.heap_symbol or own.heap_start != ""):
        return None
    name, program = _program(own)
    if own.heap_symbol:
        found = _symbol(name, program, own.heap_symbol)
        if not found.size_bytes:
            message = f"{own.heap_symbol} of {name} has no size; give start and end of [heap] in place of symbol."
            raise UsageError(message)
    else:
        start, end = (
            place if isinstance(place, int) else _symbol(name, program, place).base_address
            for place in (own.heap_start, own.heap_end)
        )
        if start >= end:
            raise UsageError(f"the heap of {name} would begin at {start:#x} and end at {end:#x}; correct [heap].")
        found = MemoryRange(start, end - start)
    uncovered(program, found)
    return found


def check_heap_bytes(allocator: Allocator, heap_bytes: int) -> None:
    """A heap that a linked program has is as large as it is; one that ``init`` is told the size of may be smaller.

    Raises:
        ImageError, UsageError: as of ``heap_extent``, or ``heap_bytes`` is another size.
    """
    own = allocator.own
    extent = heap_extent(own) if own else None
    if own is None or own.elf is None or extent is None:
        return
    fixed = fixed_heap_bytes(allocator)
    if heap_bytes > extent.size_bytes or fixed not in {None, heap_bytes}:
        size = "has" if fixed else "has at most"
        raise UsageError(
            f"the heap of {allocator.name} is {_heap_words(own)} of {own.elf[0]} and {size} {extent.size_bytes} bytes, "
            f"as it is linked, not {heap_bytes}; give --heap {extent.size_bytes}, and for other sizes the objects."
        )


def fixed_heap_bytes(allocator: Allocator) -> int | None:
    """The one size in bytes that the heap of ``allocator`` has, as it is linked; None where it may have several.

    Raises:
        ImageError, UsageError: as of ``heap_extent``.
    """
    own = allocator.own
    extent = heap_extent(own) if own else None
    return extent.size_bytes if own and extent and not _SIZED.search(own.calls["init"]) else None


def linked_heap_bytes(allocator: Allocator) -> int | None:
    """The bytes of the heap that ``allocator`` is linked with, where it is; it may be able to take fewer.

    Raises:
        ImageError, UsageError: as of ``heap_extent``.
    """
    extent = heap_extent(allocator.own) if allocator.own else None
    return extent.size_bytes if extent else None


def _heap_words(own: OwnBuild) -> str:
    if own.heap_symbol:
        return own.heap_symbol
    ends = (hex(place) if isinstance(place, int) else place for place in (own.heap_start, own.heap_end))
    return " to ".join(ends)


def _program(own: OwnBuild) -> tuple[str, ElfFile]:
    if own.elf is None:
        raise TypeError(own)
    name, content = own.elf
    return name, read_elf(content, name)


def _symbol(name: str, program: ElfFile, symbol: str) -> MemoryRange:
    known = named_symbols(program)
    if symbol.encode() not in known:
        raise unknown_name(f"symbol of {name}", symbol, (one.decode("utf-8", "replace") for one in known))
    found = known[symbol.encode()]
    return MemoryRange(found.value, found.size_bytes)


def _meets(one: MemoryRange, other: MemoryRange) -> bool:
    return one.base_address < other.end_address and other.base_address < one.end_address


def _free(name: str, size_bytes: int, taken: Sequence[MemoryRange], start: int) -> MemoryRange:
    """The first range of that size from ``start`` on, or from the beginning, that meets none of ``taken``."""
    last = _LAST_ADDRESS - size_bytes
    for address in (*range(start, last, _GRANULE_BYTES), *range(_GRANULE_BYTES, min(start, last), _GRANULE_BYTES)):
        found = MemoryRange(address, size_bytes)
        if not any(_meets(found, other) for other in taken):
            return found
    raise ImageError(f"{name} leaves no memory free for what calls it; link it for fewer addresses.")
