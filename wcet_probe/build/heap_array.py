"""An array of the sources as the heap: it is linked to where the target has heaps, static or not, and has its size."""

from __future__ import annotations

from wcet_probe.build.elf_file import read_elf
from wcet_probe.errors import UsageError
from wcet_probe.model.allocator import Allocator
from wcet_probe.model.target import Target

_SECTION = ".wp_heap_array"


def heap_array_lines(allocator: Allocator, target: Target) -> tuple[str, str]:
    """Lines of a linker script that put the array there: among memory regions, and among sections before all data.

    Empty where no array of sources or objects is the heap.
    """
    own = allocator.own
    if own is None or own.elf or not own.heap_symbol:
        return "", ""
    region = f"  wp_heaps : ORIGIN = {target.memory_map.heap_address:#x}, LENGTH = 0x10000000\n"
    inputs = f"*(.bss.{own.heap_symbol})"
    return region, f"  {_SECTION} (NOLOAD) : {{ {inputs} }} > wp_heaps :NONE\n"


def check_heap_array(elf: bytes, allocator: Allocator, target: Target, heap_bytes: int) -> None:
    """The array that is the heap is one, lies there, and has ``heap_bytes``; more where its size is compiled.

    Nothing is asked of one that no source has. ``heap_bytes`` is 0 where no heap is asked about.

    Raises:
        UsageError: it is elsewhere, there are several, or it is smaller or larger.
    """
    own = allocator.own
    if own is None or own.elf or not own.heap_symbol:
        return
    file, name, address = read_elf(elf, "the image"), own.heap_symbol, target.memory_map.heap_address
    if any(one.name == name.encode() and one.is_local and one.value != address for one in file.symbols):
        raise UsageError(
            f"{name} under [heap] is not one array without content of the sources: name an array that is not "
            "initialised and whose name no other static one has; of objects, one that is not static."
        )
    size = sum(one.size_bytes for one in file.sections if file.section_name(one) == _SECTION.encode())
    if not size or not heap_bytes or size == heap_bytes or (own.heap_macro and size > heap_bytes):
        return
    told = f"the array {name} has {size} bytes, not {heap_bytes}; give --heap {size}, or "
    raise UsageError(
        told + (f"let {own.heap_macro} tell its size." if own.heap_macro else "the macro of its size as size_macro.")
    )
