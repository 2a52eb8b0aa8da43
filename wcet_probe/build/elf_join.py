"""A linked program with a second one put beside it, as one ELF file: no byte of the first changes, nor an address.

The second one was linked to addresses that the first leaves free. Sections, line tables and debug information of the
first stay where they are in the file; segments, sections and symbols of the second come behind them.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence

from wcet_probe.build.elf_file import (
    HEADER,
    PF_W,
    PF_X,
    PROGRAM,
    PT_LOAD,
    SECTION,
    SHF_ALLOC,
    SHF_WRITE,
    SHN_ABS,
    SHN_UNDEF,
    SHT_NOBITS,
    SHT_NULL,
    SHT_PROGBITS,
    SHT_REL,
    SHT_RELA,
    STT_FUNC,
    STT_NOTYPE,
    STT_OBJECT,
    SYMBOL,
    ElfFile,
    Entry,
    Section,
    Segment,
)
from wcet_probe.errors import ImageError
from wcet_probe.model.target import MemoryRange

_KINDS = {STT_NOTYPE, STT_OBJECT, STT_FUNC}
_GLOBAL, _WEAK = 1 << 4, 2 << 4
_ET_REL, _EABI_VERSION = 1, 0xFF000000
_ALIGN, _PAGE_BYTES = 16, 4096
_SYMBOL_BYTES = struct.calcsize(SYMBOL)
_PREFIX = b".wp"


def named_symbols(program: ElfFile) -> dict[bytes, Entry]:
    """The functions and objects of ``program`` by name; of what several files call alike, what all of it calls so."""
    found: dict[bytes, Entry] = {}
    ambiguous: set[bytes] = set()
    for one in sorted(_defined(program), key=lambda entry: entry.is_local):
        other = found.setdefault(one.name, one)
        if other.is_local and other.value != one.value:
            ambiguous.add(one.name)
    return {name: one for name, one in found.items() if name not in ambiguous}


def _defined(program: ElfFile) -> Iterable[Entry]:
    return (
        one
        for one in program.symbols
        if one.name and one.name[:1] != b"$" and one.kind in _KINDS and one.section != SHN_UNDEF
    )


def symbols_object(program: ElfFile, left_out: Iterable[bytes] = ()) -> bytes:
    """A relocatable object that has nothing but the symbols of ``program``, at their addresses.

    They are weak: who has a function of that name keeps its own.
    """
    wanted = {name: one for name, one in named_symbols(program).items() if name not in set(left_out)}
    texts, rows = _Texts(b"\0"), [struct.pack(program.order + SYMBOL, 0, 0, 0, 0, 0, 0)]
    for name, one in sorted(wanted.items()):
        info = _WEAK | one.kind
        rows.append(struct.pack(program.order + SYMBOL, texts.add(name), one.value, one.size_bytes, info, 0, SHN_ABS))
    names = b"\0.symtab\0.strtab\0.shstrtab\0"
    start = struct.calcsize(HEADER)
    contents = (b"".join(rows), texts.content, names)
    offsets = [start + sum(map(len, contents[:number])) for number in range(3)]
    head = (program.header[0], _ET_REL, program.machine, 1, 0, 0, start + sum(map(len, contents)))
    header = (*head, program.flags & _EABI_VERSION, start, 0, 0, struct.calcsize(SECTION), 4, 3)
    sections = (
        (0,) * 10,
        (1, 2, 0, 0, offsets[0], len(contents[0]), 2, 1, 4, _SYMBOL_BYTES),
        (9, 3, 0, 0, offsets[1], len(contents[1]), 0, 0, 1, 0),
        (17, 3, 0, 0, offsets[2], len(contents[2]), 0, 0, 1, 0),
    )
    rest = b"".join(struct.pack(program.order + SECTION, *one) for one in sections)
    return struct.pack(program.order + HEADER, *header) + b"".join(contents) + rest


def joined(
    program: ElfFile, added: ElfFile, heap: MemoryRange | None = None, places: Sequence[tuple[bytes, MemoryRange]] = ()
) -> bytes:
    """``program`` with ``added`` beside it.

    Parameters:
        program: linked; everything of it stays as it is.
        added: linked for the same instruction set, to addresses that ``program`` leaves free.
        heap: memory that the program has besides, as far as no segment of it has it.
        places: symbols besides, each of a range of memory.

    Raises:
        ImageError: the heap is where code or constants are, or a name of ``places`` is the program's.
    """
    data = bytearray(program.data)
    segments = [one._replace(**_grown(one, program, heap)) for one in program.segments]
    segments += _beside(program, heap)
    moved: list[tuple[Segment, int]] = []
    for one in added.loaded:
        _align(data)
        moved.append((one, len(data) - one.offset))
        segments.append(one._replace(offset=len(data)))
        data += added.data[one.offset : one.offset + one.file_bytes]
    names = _Texts(program.content(program.sections[program.header[13]]))
    sections = [_without_relocations(one) for one in program.sections]
    numbers: dict[int, int] = {}
    for number, section in enumerate(added.sections):
        if section.flags & SHF_ALLOC and section.kind in {SHT_PROGBITS, SHT_NOBITS} and section.size_bytes:
            shift = next(shift for one, shift in moved if section.address in one.extent)
            numbers[number] = len(sections)
            name = names.add(_PREFIX + added.section_name(section).replace(_PREFIX, b""))
            sections.append(section._replace(name=name, offset=section.offset + shift, link=0, info=0))
    link = program.sections[program.symbol_table].link
    texts = names if link == program.header[13] else _Texts(program.content(program.sections[link]))
    rows = _symbol_rows(program, added, numbers, places)
    table = b"".join(
        struct.pack(program.order + SYMBOL, texts.add(one.name) if one.name else 0, *one[1:]) for one in rows
    )
    locals_first = sum(one.is_local for one in rows)
    for number, content in ((program.header[13], names.content), (link, texts.content), (program.symbol_table, table)):
        _align(data)
        changed = sections[number]._replace(offset=len(data), size_bytes=len(content))
        sections[number] = changed._replace(info=locals_first) if number == program.symbol_table else changed
        data += content
    if program.header[13] == link:  # one table for both kinds of names
        raise ImageError(
            "the program keeps the names of sections and symbols in one table; link it with GNU ld or lld."
        )
    _align(data)
    at_segments = len(data)
    data += b"".join(struct.pack(program.order + PROGRAM, *one) for one in segments)
    at_sections = len(data)
    data += b"".join(struct.pack(program.order + SECTION, *one) for one in sections)
    head = list(program.header)
    head[5], head[6], head[9], head[10], head[12] = at_segments, at_sections, 32, len(segments), len(sections)
    data[: struct.calcsize(HEADER)] = struct.pack(program.order + HEADER, *head)
    return bytes(data)


def _symbol_rows(
    program: ElfFile, added: ElfFile, numbers: dict[int, int], places: Sequence[tuple[bytes, MemoryRange]]
) -> list[Entry]:
    """The rows of both tables, those of local symbols first; what has a name of the program's gets another one."""
    taken = {one.name for one in program.symbols if one.section != SHN_UNDEF}
    if clash := next((name for name, _ in places if name in taken), None):
        raise ImageError(f"the program has a symbol {clash.decode()} already, which is wcet-probe's; rename it.")
    rows = list(program.symbols)
    for one in added.symbols:
        if one.section in numbers and one.kind in _KINDS:
            name = b"wp_own_" + one.name if one.name in taken and one.name[:1] != b"$" else one.name
            rows.append(one._replace(name=name, section=numbers[one.section]))
    rows += [Entry(name, at.base_address, at.size_bytes, _GLOBAL | STT_OBJECT, 0, SHN_ABS) for name, at in places]
    return sorted(rows, key=lambda one: not one.is_local)


def uncovered(program: ElfFile, heap: MemoryRange) -> MemoryRange | None:
    """The part of ``heap`` that no segment of ``program`` has; None where they have all of it.

    Raises:
        ImageError: a part of it is code or constants, or lies between segments.
    """
    start, end = heap.base_address, heap.end_address
    constant = [one for one in program.sections if one.flags & (SHF_ALLOC | SHF_WRITE) == SHF_ALLOC]
    if any(one.address < end and start < one.address + one.size_bytes for one in constant):
        raise _meets(heap)
    for one in sorted(program.loaded, key=lambda one: one.address):
        if one.extent.end_address <= start or end <= one.address:
            continue
        if not one.flags & PF_W or one.address > start:
            raise _meets(heap)
        start = min(end, one.extent.end_address)
    return MemoryRange(start, end - start) if start < end else None


def _meets(heap: MemoryRange) -> ImageError:
    place = f"from {heap.base_address:#x} to {heap.end_address:#x}"
    return ImageError(f"the heap {place} meets other memory of the program; correct [heap].")


def _neighbour(program: ElfFile, rest: MemoryRange) -> Segment | None:
    """The writable segment that ends in the page where ``rest`` begins."""
    near = [
        one
        for one in program.loaded
        if one.flags & PF_W and not one.flags & PF_X and 0 <= rest.base_address - one.extent.end_address < _PAGE_BYTES
    ]
    return max(near, key=lambda one: one.extent.end_address, default=None)


def _grown(one: Segment, program: ElfFile, heap: MemoryRange | None) -> dict[str, int]:
    rest = uncovered(program, heap) if heap else None
    if rest is None or one is not _neighbour(program, rest):
        return {}
    return {"size_bytes": rest.end_address - one.address}


def _beside(program: ElfFile, heap: MemoryRange | None) -> list[Segment]:
    rest = uncovered(program, heap) if heap else None
    if rest is None or _neighbour(program, rest):
        return []
    return [Segment(PT_LOAD, 0, rest.base_address, rest.base_address, 0, rest.size_bytes, PF_W | 4, _ALIGN)]


def _without_relocations(section: Section) -> Section:
    """A section; what tells how the linker made the file speaks of symbols by numbers, which change."""
    is_told = section.kind in {SHT_REL, SHT_RELA} and not section.flags & SHF_ALLOC
    return section._replace(kind=SHT_NULL) if is_told else section


class _Texts:
    """A table of names that grows."""

    def __init__(self, content: bytes) -> None:
        self._content, self._known = bytearray(content), dict[bytes, int]()

    @property
    def content(self) -> bytes:
        """The table."""
        return bytes(self._content)

    def add(self, name: bytes) -> int:
        """Where ``name`` is in it."""
        if name not in self._known:
            self._known[name] = len(self._content)
            self._content += name + b"\0"
        return self._known[name]


def _align(data: bytearray) -> None:
    data += bytes(-len(data) % _ALIGN)
