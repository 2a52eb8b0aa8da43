"""An array of the sources as the heap: it is linked to where the target has heaps, static or not, and has its size."""

from __future__ import annotations

from collections.abc import Iterator

from wcet_probe.build.elf_file import SHN_UNDEF, read_elf
from wcet_probe.errors import ImageError, UsageError
from wcet_probe.model.allocator import Allocator
from wcet_probe.model.target import Target

_SECTION, _CONTENT = b".wp_heap_array", b".wp_heap_content"
_ARCHIVE = b"!<arch>\n"


def heap_array_lines(allocator: Allocator, target: Target) -> tuple[str, str]:
    """Lines of a linker script that put the array there: among memory regions, and among sections before all data.

    Empty where no array of sources or objects is the heap.
    """
    own = allocator.own
    if own is None or own.elf or not own.heap_symbol:
        return "", ""
    region = f"  wp_heaps : ORIGIN = {target.memory_map.heap_address:#x}, LENGTH = 0x10000000\n"
    name = own.heap_symbol
    # Kept, as references of a global array go to where heaps are, and to it no more.
    inputs = {_SECTION: f".bss.{name}", _CONTENT: f".data.{name} .rodata.{name}"}
    lines = (f"  {at.decode()} (NOLOAD) : {{ KEEP(*({those})) }} > wp_heaps :NONE\n" for at, those in inputs.items())
    return region, "".join(lines)


def check_heap_array(elf: bytes, allocator: Allocator, target: Target, heap_bytes: int) -> None:
    """The array that is the heap is one, lies there, and has ``heap_bytes``; more where its size is compiled.

    Nothing is asked of one that no source and no object has. ``heap_bytes`` is 0 where no heap is asked about.

    Raises:
        UsageError: it is elsewhere, there are several, or it is smaller or larger.
    """
    own = allocator.own
    if own is None or own.elf or not own.heap_symbol:
        return
    file, name, address = read_elf(elf, "the image"), own.heap_symbol, target.memory_map.heap_address
    size, content = (
        sum(one.size_bytes for one in file.sections if file.section_name(one) == part) for part in (_SECTION, _CONTENT)
    )
    static = [(one.value, one.size_bytes) for one in file.symbols if one.name == name.encode() and one.is_local]
    if content or any(one != (address, size) for one in static):
        raise UsageError(
            f"{name} under [heap] is not one array without content of the sources: name an array that is not "
            "initialised and whose name no other one has; of objects, one that is not static."
        )
    # One of objects is elsewhere, and its name means what is there.
    size = size or max((_bytes_of(name.encode(), elf) for _, one in own.objects for elf in _members(one)), default=0)
    if not size or not heap_bytes or size == heap_bytes or (own.heap_macro and size > heap_bytes):
        return
    other = f"let {own.heap_macro} tell its size" if own.heap_macro else "the macro of its size as size_macro"
    raise UsageError(f"the array {name} has {size} bytes, not {heap_bytes}; give --heap {size}, or {other}.")


def _bytes_of(name: bytes, elf: bytes) -> int:
    """What the relocatable object ``elf`` has of that name; 0 where it has nothing, or no symbols."""
    try:
        symbols = read_elf(elf, "an object").symbols
    except ImageError:
        return 0
    return max((one.size_bytes for one in symbols if one.name == name and one.section != SHN_UNDEF), default=0)


def _members(content: bytes) -> Iterator[bytes]:
    """The objects of a static archive (System V's format: a head of 60 bytes each), or ``content`` itself."""
    if not content.startswith(_ARCHIVE):
        yield content
        return
    at = len(_ARCHIVE)
    while (size := content[at + 48 : at + 58].strip()).isdigit():
        yield content[at + 60 : at + 60 + int(size)]
        at += 60 + int(size) + int(size) % 2
