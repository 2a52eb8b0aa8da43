"""The tables of a linked 32-bit ELF file, byte by byte, beside which another file is put (ELF gABI 4.1, chapter 4)."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, NamedTuple

from wcet_probe.errors import ImageError
from wcet_probe.model.target import MemoryRange

PT_LOAD = 1
PF_X, PF_W, PF_R = 1, 2, 4
SHT_NULL, SHT_PROGBITS, SHT_SYMTAB, SHT_RELA, SHT_NOBITS, SHT_REL = 0, 1, 2, 4, 8, 9
SHF_WRITE, SHF_ALLOC = 1, 2
SHN_UNDEF, SHN_ABS = 0, 0xFFF1
STT_NOTYPE, STT_OBJECT, STT_FUNC = 0, 1, 2
HEADER, PROGRAM, SECTION, SYMBOL = "16sHHIIIIIHHHHHH", "8I", "10I", "IIIBBH"
EM_ARM = 40


class Segment(NamedTuple):
    """A row of the program header table."""

    kind: int
    offset: int
    address: int
    physical: int
    file_bytes: int
    size_bytes: int
    flags: int
    align: int

    @property
    def extent(self) -> MemoryRange:
        """The addresses that it takes."""
        return MemoryRange(self.address, self.size_bytes)


class Section(NamedTuple):
    """A row of the section header table."""

    name: int
    kind: int
    flags: int
    address: int
    offset: int
    size_bytes: int
    link: int
    info: int
    align: int
    entry_bytes: int


class Entry(NamedTuple):
    """A row of the symbol table, with its name in place of the name's index."""

    name: bytes
    value: int
    size_bytes: int
    info: int
    other: int
    section: int

    @property
    def kind(self) -> int:
        """``STT_FUNC``, ``STT_OBJECT`` or another."""
        return self.info & 15

    @property
    def is_local(self) -> bool:
        """Whether it is one of several, perhaps, of its name."""
        return self.info >> 4 == 0


@dataclass(frozen=True, slots=True)
class ElfFile:
    """A linked ELF file: its bytes and its tables.

    Attributes:
        data: the bytes.
        order: of the bytes in a word, as ``struct`` says it.
        header: the fields of the file header.
        segments, sections: the rows of both tables.
        symbols: the rows of the symbol table, the first of which is nothing.
        symbol_table: number of the section that has them.
    """

    data: bytes
    order: Literal["<", ">"]
    header: tuple[bytes, int, int, int, int, int, int, int, int, int, int, int, int, int]
    segments: tuple[Segment, ...]
    sections: tuple[Section, ...]
    symbols: tuple[Entry, ...]
    symbol_table: int

    @property
    def machine(self) -> int:
        """The instruction set, by its number in ELF files."""
        return self.header[2]

    @property
    def flags(self) -> int:
        """What the ABI of the instruction set says of the file."""
        return self.header[7]

    @property
    def loaded(self) -> tuple[Segment, ...]:
        """The segments that are in memory."""
        return tuple(one for one in self.segments if one.kind == PT_LOAD and one.size_bytes)

    def content(self, section: Section) -> bytes:
        """The bytes of a section that the file has."""
        return self.data[section.offset : section.offset + section.size_bytes]

    def loaded_content(self, segment: Segment) -> bytes:
        """The bytes of a segment that the file has."""
        return self.data[segment.offset : segment.offset + segment.file_bytes]

    def section_name(self, section: Section) -> bytes:
        """Its name."""
        return _name(self.content(self.sections[self.header[13]]), section.name)


@lru_cache(maxsize=8)
def read_elf(data: bytes, name: str) -> ElfFile:
    """The tables of the linked file ``data``, which messages call ``name``.

    Raises:
        ImageError: it is none, is damaged, or has no symbol table.
    """
    try:
        return _read(data)
    except (struct.error, IndexError, ValueError) as error:
        message = (
            f"{name} is no usable 32-bit ELF file ({str(error) or type(error).__name__}); link it again, with symbols."
        )
        raise ImageError(message) from error


def _read(data: bytes) -> ElfFile:
    if data[:5] != b"\x7fELF\x01" or data[5] not in {1, 2}:
        raise ValueError("its head is another one")
    order: Literal["<", ">"] = "<" if data[5] == 1 else ">"
    header = struct.unpack_from(order + HEADER, data)
    if (header[10] and header[9] != struct.calcsize(PROGRAM)) or header[11] != struct.calcsize(SECTION):
        raise ValueError("its tables have rows of another size")
    segments = tuple(
        Segment(*struct.unpack_from(order + PROGRAM, data, header[5] + header[9] * number))
        for number in range(header[10])
    )
    sections = tuple(
        Section(*struct.unpack_from(order + SECTION, data, header[6] + header[11] * number))
        for number in range(header[12])
    )
    table = next((number for number, one in enumerate(sections) if one.kind == SHT_SYMTAB), None)
    if table is None:
        raise ValueError("it has no symbol table")
    if not header[13] < len(sections):
        raise ValueError("it has no names of sections")
    rows, names = sections[table], sections[sections[table].link]
    texts = data[names.offset : names.offset + names.size_bytes]
    symbols = tuple(
        Entry(_name(texts, row[0]), *row[1:])
        for row in struct.iter_unpack(order + SYMBOL, data[rows.offset : rows.offset + rows.size_bytes])
    )
    if any(one.offset + one.file_bytes > len(data) or one.address + one.size_bytes > 1 << 32 for one in segments):
        raise ValueError("a segment reaches beyond its end")
    return ElfFile(data, order, header, segments, sections, symbols, table)


def _name(texts: bytes, start: int) -> bytes:
    return texts[start : texts.index(b"\0", start)]
