"""Reading a linked ELF into an :class:`~wcet_probe.model.image.Image`, through pyelftools."""

from __future__ import annotations

import hashlib
import io
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from pathlib import PurePosixPath
from typing import cast

from elftools.common.exceptions import DWARFError, ELFError
from elftools.construct import ConstructError
from elftools.dwarf.compileunit import CompileUnit
from elftools.dwarf.die import DIE
from elftools.dwarf.dwarf_expr import DWARFExprParser
from elftools.dwarf.dwarfinfo import DWARFInfo
from elftools.dwarf.lineprogram import LineProgram
from elftools.dwarf.locationlists import BaseAddressEntry, LocationEntry, LocationParser
from elftools.dwarf.ranges import BaseAddressEntry as BaseRange
from elftools.elf.constants import P_FLAGS, SH_FLAGS
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import Section, SymbolTableSection

from wcet_probe.build.location import linear_location
from wcet_probe.build.segments import Part, apart
from wcet_probe.errors import ImageError, unknown_name
from wcet_probe.identity import Same
from wcet_probe.model.image import Image, InlinedCall, LineTable, Segment, Symbol, VariableLocation
from wcet_probe.model.target import Isa, MemoryRange

_MACHINES = {"EM_ARM": (Isa.ARM, Isa.THUMB), "EM_PPC": (Isa.POWERPC,)}
DAMAGED = (
    *(ELFError, DWARFError, ConstructError),
    *(ValueError, KeyError, IndexError, AssertionError, EOFError, TypeError, AttributeError, ArithmeticError),
)
"""What pyelftools and the readers here raise of a file that is not as it should be."""
_KEPT = 32
"""Images that are remembered: campaigns ask for those of all allocators by turns."""
_IMAGES = 4
"""So many images keep what was read of their debug information, which is large."""
_MOST_REFERENCES = 1 << 10
"""From one entry of the debug information to the next: more than compilers write, fewer than a circle has."""
_SCOPES = frozenset({"DW_TAG_inlined_subroutine", "DW_TAG_lexical_block"})
_MAPPING = {"$a": Isa.ARM, "$t": Isa.THUMB, "$d": None}


_NO_EXECUTABLE = {
    "ET_REL": "the ELF is an object that is not linked; link it, with all that it calls, into an executable.",
    "ET_DYN": "the ELF has no fixed addresses (it is a shared object or position-independent); link it with -no-pie.",
}
_ARCHIVES = (b"!<arch>\n", b"!<thin>\n")


@lru_cache(maxsize=_KEPT)
def read_image(elf: bytes, isa: Isa, compiler: str, flags: tuple[str, ...] = ()) -> Image:
    """Read the ELF file ``elf``, linked for ``isa``; what was read of the same bytes before is given again.

    Parameters:
        elf: the bytes of an executable, 32-bit ELF.
        isa: the target's instruction set.
        compiler: identity of the compiler, for the record.
        flags: the compiler's flags, for the record.

    Raises:
        ImageError: no ELF, damaged, not an executable, or for another instruction set.
    """
    if elf.startswith(_ARCHIVES):
        message = "the file is an archive of objects; link the function, with all that it calls, into an executable."
        raise ImageError(message)
    try:
        return _read(elf, isa, compiler, flags)
    except DAMAGED as error:
        message = (
            f"the file is no usable ELF ({str(error) or type(error).__name__}); link it again as a 32-bit executable."
        )
        raise ImageError(message) from error


def source_paths(elf: bytes) -> tuple[PurePosixPath, ...]:
    """Paths of the source files that the line programs of the ELF file ``elf`` name, sorted, as the compiler saw them.

    Raises:
        ImageError: no ELF, or damaged debug information.
    """
    try:
        file = ELFFile(io.BytesIO(elf))
        if not file.has_dwarf_info():
            return ()
        dwarf = dwarf_of(file)
        return tuple(sorted({path for unit in dwarf.iter_CUs() for path in _unit_paths(dwarf, unit)}))
    except DAMAGED as error:
        message = f"the file's line table cannot be read ({str(error) or type(error).__name__}); link it again with -g."
        raise ImageError(message) from error


_LOCATIONS: dict[tuple[str, frozenset[str]], tuple[VariableLocation, ...]] = {}
"""What was asked last: bounds of one image for many parameters ask for the same."""


def variable_locations(image: Image, functions: Collection[str]) -> tuple[VariableLocation, ...]:
    """Where variables are in the binary functions ``functions``, inlined ones' too, as the debug information says.

    Left out are those in memory, in several pieces, or computed by more than sums and constant factors; of pointers
    those to what has no size; and those of other languages than C, where a reference may be another name of one.

    Raises:
        ImageError: damaged debug information.
    """
    key = image.sha256, frozenset(functions)
    if key in _LOCATIONS:
        return _LOCATIONS[key]
    _LOCATIONS.clear()
    try:
        dwarf = _debug_information(Same(image))
        if dwarf is None:
            return ()
        found = _Variables(dwarf)
        for entry in live_functions(dwarf, image, functions):
            found.add(entry, name_of(entry), entry.offset)
        return _LOCATIONS.setdefault(key, tuple(found.locations))
    except DAMAGED as error:
        message = f"the file's variables cannot be read ({str(error) or type(error).__name__}); link it again with -g."
        raise ImageError(message) from error


def inlined_calls(image: Image, functions: Collection[str]) -> tuple[InlinedCall, ...]:
    """The calls in ``functions`` of the binary in whose place the code of the callee is; outer ones first.

    Raises:
        ImageError: damaged debug information.
    """
    try:
        found, dwarf = list[InlinedCall](), _debug_information(Same(image))
        todo = [(entry, 0) for entry in live_functions(dwarf, image, functions)] if dwarf else []
        while dwarf and todo:
            entry, depth = todo.pop(0)
            line = entry.attributes.get("DW_AT_call_line") if entry.tag == "DW_TAG_inlined_subroutine" else None
            if line is not None:
                place = _file_name(dwarf, entry, "DW_AT_call_file"), int(line.value)
                found.append(InlinedCall(name_of(entry), *place, depth, tuple(_code_of(dwarf, entry))))
            inner = depth + (entry.tag == "DW_TAG_inlined_subroutine")
            todo += [(child, inner) for child in entry.iter_children() if child.tag in _SCOPES]
    except DAMAGED as error:
        message = f"the file's functions cannot be read ({str(error) or type(error).__name__}); link it again with -g."
        raise ImageError(message) from error
    return tuple(sorted(found, key=lambda one: one.depth))


def _code_of(dwarf: DWARFInfo, entry: DIE) -> Iterator[MemoryRange]:
    """The code of a function's copy (DWARF 5, §2.17)."""
    low, high, listed = (entry.attributes.get(f"DW_AT_{name}") for name in ("low_pc", "high_pc", "ranges"))
    if low is not None and high is not None:
        end = int(high.value) + (0 if high.form == "DW_FORM_addr" else int(low.value))
        yield MemoryRange(int(low.value), end - int(low.value))
    lists, base = dwarf.range_lists(), _base_address(entry)
    for one in (
        lists.get_range_list_at_offset(listed.value, cast("CompileUnit", entry.cu))
        if listed is not None and lists
        else ()
    ):
        if isinstance(one, BaseRange):
            base = one.base_address
        elif one.begin_offset < one.end_offset:
            yield MemoryRange(one.begin_offset + (0 if one.is_absolute else base), one.end_offset - one.begin_offset)


def _file_name(dwarf: DWARFInfo, entry: DIE, attribute: str) -> str:
    program, number = dwarf.line_program_for_CU(cast("CompileUnit", entry.cu)), entry.attributes.get(attribute)
    return _file_names(program).get(int(number.value), "?") if program is not None and number is not None else "?"


@lru_cache(maxsize=_IMAGES)
def _debug_information(image: Same[Image]) -> DWARFInfo | None:
    """That of an image, which keeps the entries that were read: each function of a proof asks for its own."""
    file = ELFFile(io.BytesIO(image.value.elf))
    return dwarf_of(file) if file.has_dwarf_info() else None


def dwarf_of(file: ELFFile) -> DWARFInfo:
    """The debug information of a linked file, as it is: relocations that a linker has left in were applied by it."""
    return file.get_dwarf_info(relocate_dwarf_sections=False)


def live_functions(dwarf: DWARFInfo, image: Image, functions: Collection[str]) -> Iterator[DIE]:
    """The entries of ``functions``; what the linker has dropped keeps its own, with an address of something else."""
    for unit in dwarf.iter_CUs():
        for entry in unit.get_top_DIE().iter_children():
            start = entry.attributes.get("DW_AT_low_pc") if entry.tag == "DW_TAG_subprogram" else None
            symbol = image.function_at(int(start.value) & ~1) if start is not None else None
            if symbol is not None and symbol.name in functions and symbol.name.partition(".")[0] == name_of(entry):
                yield entry


def require_symbol(image: Image, name: str) -> Symbol:
    """The symbol ``name`` of ``image``.

    Raises:
        ImageError: the image has no such symbol.
    """
    if name not in image.symbols:
        raise ImageError(str(unknown_name("symbol of the image", name, image.symbols)))
    return image.symbols[name]


def _read(elf: bytes, isa: Isa, compiler: str, flags: tuple[str, ...]) -> Image:
    file = ELFFile(io.BytesIO(elf))
    machine = file["e_machine"]
    if isa not in _MACHINES.get(machine, ()):
        message = f"the ELF is for {machine}, the target executes {isa}; choose a target of the file's instruction set."
        raise ImageError(message)
    if file.elfclass != 32 or file["e_type"] != "ET_EXEC":
        raise ImageError(_NO_EXECUTABLE.get(file["e_type"], "the ELF is no linked 32-bit executable; link it as one."))
    table = file.get_section_by_name(".symtab")
    if not isinstance(table, SymbolTableSection):
        message = "the ELF has no symbol table; link it without --strip."
        raise ImageError(message)
    symbols, mapping = _symbols(table, file)
    functions = _functions(symbols.values(), [*_executable_ends(file), *(start for start, isa in mapping if not isa)])
    sizes = {one.address: one.size_bytes for one in functions}
    for name, one in symbols.items():
        if one.is_function and not one.size_bytes:
            symbols[name] = replace(one, size_bytes=sizes.get(one.address, 0))
    return Image(
        elf=elf,
        sha256=hashlib.sha256(elf).hexdigest(),
        isa=isa,
        big_endian=not file.little_endian,
        segments=tuple(apart(_disjoint(_segments(file)), _parts(file))),
        symbols=symbols,
        functions=tuple(functions),
        code=tuple(_code_ranges(file, isa, mapping)),
        lines=_line_table(file),
        compiler=compiler,
        flags=flags,
    )


def _segments(file: ELFFile) -> Iterator[Segment]:
    for segment in file.iter_segments("PT_LOAD"):
        if segment["p_memsz"]:
            yield Segment(
                address=segment["p_vaddr"],
                data=segment.data(),
                size_bytes=segment["p_memsz"],
                writable=bool(segment["p_flags"] & P_FLAGS.PF_W),
                executable=bool(segment["p_flags"] & P_FLAGS.PF_X),
            )


def _disjoint(segments: Iterable[Segment]) -> list[Segment]:
    """``segments``, of which no two have a byte in common: what lies there would be what is loaded last.

    Raises:
        ImageError: two have, as those of overlays.
    """
    found = list(segments)
    for one, other in pairwise(sorted(found, key=lambda each: each.address)):
        if other.address < one.address + one.size_bytes:
            message = (
                f"the segments at {one.address:#010x} and {other.address:#010x} have memory in common, which holds one "
                "of them at a time; link the image without overlays."
            )
            raise ImageError(message)
    return found


def _parts(file: ELFFile) -> list[Part]:
    loaded = [one for one in file.iter_sections() if one["sh_flags"] & SH_FLAGS.SHF_ALLOC and one["sh_size"]]
    flags = SH_FLAGS.SHF_WRITE, SH_FLAGS.SHF_EXECINSTR
    return [
        Part(one["sh_addr"], one["sh_addr"] + one["sh_size"], *(bool(one["sh_flags"] & flag) for flag in flags))
        for one in loaded
    ]


def _symbols(table: SymbolTableSection, file: ELFFile) -> tuple[dict[str, Symbol], list[tuple[int, Isa | None]]]:
    """Functions and objects by name, and the ARM mapping symbols (AAELF32 §5.5.5) in address order."""
    symbols: dict[str, Symbol] = {}
    mapping: list[tuple[int, Isa | None]] = []
    thumb_bit = ~1 if file["e_machine"] == "EM_ARM" else ~0
    for entry in table.iter_symbols():
        kind, name, address = entry["st_info"]["type"], entry.name, entry["st_value"]
        if name[:2] in _MAPPING and name[2:3] in {"", "."}:
            mapping.append((address, _MAPPING[name[:2]]))
        elif name and entry["st_shndx"] != "SHN_UNDEF" and kind in {"STT_FUNC", "STT_OBJECT", "STT_NOTYPE"}:
            is_function = kind == "STT_FUNC"
            symbols[name] = Symbol(name, address & thumb_bit if is_function else address, entry["st_size"], is_function)
    return symbols, sorted(mapping, key=lambda item: item[0])


def _functions(symbols: Iterable[Symbol], ends: Iterable[int]) -> list[Symbol]:
    """The functions, one at each address, in order of their addresses.

    Hand-written assembly often tells no size: then a function reaches to the next one, to a table, or to the end of its
    section (``ends``); within a function that tells its size such a symbol is a label.
    """
    named = [symbol for symbol in symbols if symbol.is_function]
    sized = {symbol.address: symbol for symbol in named if symbol.size_bytes}
    starts = sorted(sized)
    found = dict(sized)
    for symbol in named:
        before = bisect_right(starts, symbol.address) - 1
        around = sized[starts[before]] if before >= 0 else None
        if around is None or symbol.address >= around.address + around.size_bytes:
            found[symbol.address] = symbol
    limits = sorted({*found, *ends})
    for address, symbol in found.items():
        following = bisect_right(limits, address)
        if not symbol.size_bytes and following < len(limits):
            found[address] = replace(symbol, size_bytes=limits[following] - address)
    return sorted(found.values(), key=lambda symbol: symbol.address)


def _executable_ends(file: ELFFile) -> Iterator[int]:
    for section in file.iter_sections():
        if section["sh_flags"] & SH_FLAGS.SHF_EXECINSTR:
            yield section["sh_addr"] + section["sh_size"]


def _code_ranges(file: ELFFile, isa: Isa, mapping: list[tuple[int, Isa | None]]) -> Iterator[MemoryRange]:
    """The instructions of each executable section; literal pools and jump tables between them are left out."""
    for section in file.iter_sections():
        if not section["sh_flags"] & SH_FLAGS.SHF_EXECINSTR or not section["sh_size"]:
            continue
        start, end = section["sh_addr"], section["sh_addr"] + section["sh_size"]
        marks = _marks(section, mapping) if mapping else [(start, isa)]
        for (begin, content), (stop, _) in pairwise([*marks, (end, None)]):
            if content is not None and content is not isa:
                message = (
                    f"the code at {begin:#010x} is {content}, the target executes {isa}: mixed code has no model; "
                    f"compile all of it as {isa} code, the libraries too, or choose another target."
                )
                raise ImageError(message)
            if content is not None and begin < stop:
                yield MemoryRange(begin, stop - begin)


def _marks(section: Section, mapping: list[tuple[int, Isa | None]]) -> list[tuple[int, Isa | None]]:
    first = bisect_left(mapping, section["sh_addr"], key=lambda item: item[0])
    last = bisect_left(mapping, section["sh_addr"] + section["sh_size"], key=lambda item: item[0])
    return mapping[first:last]


def _line_table(file: ELFFile) -> LineTable:
    if not file.has_dwarf_info():
        return LineTable()
    rows: dict[int, tuple[str, int]] = {}
    dwarf = dwarf_of(file)
    for unit in dwarf.iter_CUs():
        for begin, end, name, line in _line_rows(dwarf, unit):
            rows[begin] = (name, line)
            rows.setdefault(end, ("", 0))
    addresses = sorted(rows)
    return LineTable(
        addresses=tuple(addresses),
        files=tuple(rows[address][0] for address in addresses),
        lines=tuple(rows[address][1] for address in addresses),
    )


def _line_rows(dwarf: DWARFInfo, unit: CompileUnit) -> Iterator[tuple[int, int, str, int]]:
    """``(begin, end, file name, line)`` of each row of the unit's line program (DWARF 4 and 5, §6.2)."""
    program = dwarf.line_program_for_CU(unit)
    if program is None:
        return
    names = _file_names(program)
    states = [entry.state for entry in program.get_entries() if entry.state is not None]
    for row, following in pairwise(states):
        if not row.end_sequence and row.address < following.address:
            yield row.address, following.address, names.get(row.file, "?"), row.line


def _file_names(program: LineProgram) -> Mapping[int, str]:
    """The names of files by number, without folders."""
    listed = enumerate(program.header.file_entry, 0 if program.header.version >= 5 else 1)
    return {number: PurePosixPath(_text(entry.name)).name for number, entry in listed}


def _unit_paths(dwarf: DWARFInfo, unit: CompileUnit) -> Iterator[PurePosixPath]:
    """The files of a unit's line program; folder 0 is the compiler's, since DWARF 5 within the list (§6.2.4)."""
    program = dwarf.line_program_for_CU(unit)
    if program is None:
        return
    stated = unit.get_top_DIE().attributes.get("DW_AT_comp_dir")
    home = PurePosixPath(_text(stated.value) if stated is not None else ".")
    listed = [home / _text(folder) for folder in program.header.include_directory]
    folders = listed if program.header.version >= 5 else [home, *listed]
    for entry in program.header.file_entry:
        if entry.dir_index < len(folders):
            yield folders[entry.dir_index] / _text(entry.name)


def _origin(entry: DIE) -> DIE:
    """The entry that an inlined or concrete copy is of."""
    for _ in range(_MOST_REFERENCES):
        if "DW_AT_abstract_origin" not in entry.attributes:
            return entry
        entry = entry.get_DIE_from_attribute("DW_AT_abstract_origin")
    raise DWARFError("a copy is one of itself")


def name_of(entry: DIE) -> str:
    """The name of ``entry``, or of what it is a copy of; empty where it has none."""
    named = _origin(entry).attributes.get("DW_AT_name")
    return _text(named.value) if named is not None else ""


class _Variables:
    """Collects the locations of variables, unit by unit (DWARF 5, §2.6 and §4.1)."""

    def __init__(self, dwarf: DWARFInfo) -> None:
        self.locations: list[VariableLocation] = []
        self._lists = LocationParser(dwarf.location_lists())

    def add(self, entry: DIE, function: str, scope: int) -> None:
        """Those below ``entry``, which is code of the source function ``function``, of its copy ``scope``."""
        for child in entry.iter_children():
            if child.tag in {"DW_TAG_variable", "DW_TAG_formal_parameter"}:
                self._add_variable(child, function, scope)
            elif child.tag == "DW_TAG_inlined_subroutine":
                self.add(child, name_of(child), child.offset)
            elif child.tag == "DW_TAG_lexical_block":
                self.add(child, function, scope)

    def _add_variable(self, entry: DIE, function: str, scope: int) -> None:
        declared, location = _origin(entry), entry.attributes.get("DW_AT_location")
        line, unit_bytes = declared.attributes.get("DW_AT_decl_line"), _unit_bytes(declared)
        language = declared.cu.get_top_DIE().attributes.get("DW_AT_language")
        is_of_c = language is not None and language.value in _LANGUAGES_OF_C
        if location is None or line is None or unit_bytes is None or not is_of_c:
            return
        parser, base = DWARFExprParser(entry.cu.structs), _base_address(entry)
        found = self._lists.parse_from_attribute(location, entry.cu["version"], entry)
        for one in found if isinstance(found, list) else ():
            base = one.base_address if isinstance(one, BaseAddressEntry) else base
            if isinstance(one, LocationEntry) and 0 <= one.begin_offset < one.end_offset:
                start = 0 if one.is_absolute else base
                operations = _operations(parser, one.loc_expr)
                value, low, high = linear_location(operations), start + one.begin_offset, start + one.end_offset
                if value is not None:
                    place = (function, name_of(entry), int(line.value), scope)
                    self.locations.append(VariableLocation(*place, low, high, *value, unit_bytes))


def _operations(parser: DWARFExprParser, expression: Sequence[int]) -> list[tuple[str, tuple[object, ...]]]:
    """The operations of a location by name; none where one is not known, as those on types (DWARF 5, §2.5.1.6)."""
    try:
        return [(each.op_name, tuple(each.args)) for each in parser.parse_expr(expression)]
    except KeyError:
        return []


def _base_address(entry: DIE) -> int:
    low = entry.cu.get_top_DIE().attributes.get("DW_AT_low_pc")
    return int(low.value) if low is not None else 0


_LANGUAGES_OF_C = frozenset({0x01, 0x02, 0x0C, 0x1D, 0x2C, 0x3E})
"""C89, C, C99, C11, C17 and C23 (DWARF 5, §7.12, and the codes that were given since)."""
_QUALIFIERS = frozenset(
    {"DW_TAG_typedef", "DW_TAG_const_type", "DW_TAG_volatile_type", "DW_TAG_restrict_type", "DW_TAG_atomic_type"}
)


def _unit_bytes(entry: DIE) -> int | None:
    """Bytes of what the variable points to; 1 if it is a whole number, None if neither."""
    kind = type_of(entry)
    if kind is None or kind.tag != "DW_TAG_pointer_type":
        return 1 if kind is not None and kind.tag in {"DW_TAG_base_type", "DW_TAG_enumeration_type"} else None
    pointed = type_of(kind)
    size = pointed.attributes.get("DW_AT_byte_size") if pointed is not None else None
    return int(size.value) if size is not None else None


def type_of(entry: DIE) -> DIE | None:
    """The type of ``entry`` without its names and qualifiers."""
    found = entry.get_DIE_from_attribute("DW_AT_type") if "DW_AT_type" in entry.attributes else None
    for _ in range(_MOST_REFERENCES):
        if found is None or found.tag not in _QUALIFIERS:
            return found
        found = found.get_DIE_from_attribute("DW_AT_type") if "DW_AT_type" in found.attributes else None
    raise DWARFError("a type is another name of itself")


def _text(name: bytes | str) -> str:
    return name.decode("utf-8", "replace") if isinstance(name, bytes) else name
