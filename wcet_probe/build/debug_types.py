"""Members of structures, as the debug information of an image has them: where they are in objects, which point to code.

(DWARF 5, §5.5: arrays; §5.7: structures and unions; §4.1: variables.)
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice

from elftools.dwarf.die import DIE
from elftools.dwarf.dwarf_expr import DWARFExprParser
from elftools.elf.elffile import ELFFile

from wcet_probe.build.image import DAMAGED, dwarf_of, live_functions, name_of, type_of
from wcet_probe.errors import ImageError, UsageError, unknown_name
from wcet_probe.identity import Same
from wcet_probe.model.image import Image

_KEPT = 8
_WORD_BYTES = 4
_OP_ADDRESS, _OP_ADDRESS_INDEX = 0x03, 0xA1
_STRUCTURES = frozenset({"DW_TAG_structure_type", "DW_TAG_union_type", "DW_TAG_class_type"})
_DEEPEST = 6
_MOST_MEMBERS = 2_000
"""Of one type: structures in structures, and elements of arrays of them, are members of the whole."""
_MOST_ELEMENTS = 64
_INDEX = re.compile(r"\[\d+\]")
_STEPS = re.compile(r"\w+")
_Names = tuple[str, str]
"""The path of a member, and the innermost structure with a name that it is in with the path from there."""


@dataclass(frozen=True, slots=True)
class Member:
    """A member that is a pointer, of a structure or of structures in it.

    Attributes:
        path, offset: from the start of the whole; of an array each element is one.
        owner: the innermost structure with a name that it is in, and the path from there, without indices.
        pointee: the name of the structure that it points to, or empty for what is none.
        is_code: whether it points to a function.
    """

    path: str
    offset: int
    owner: str
    pointee: str
    is_code: bool

    @property
    def name(self) -> str:
        """The last name of the path, without its index."""
        return str(_STEPS.findall(self.path.rpartition(".")[2])[0])


@dataclass(frozen=True, slots=True)
class StaticObject:
    """A variable of static storage that is a structure, or an array of ``count`` of ``size_bytes`` each."""

    structure: str
    count: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class DebugTypes:
    """What the debug information says of structures.

    Attributes:
        structures: the pointers in each type, by its name, without ``struct``, or that of a typedef; where units of
            the program have several types of one name, those of each.
        objects: the variables of static storage that are structures, or arrays of them, by address.
    """

    structures: Mapping[str, tuple[tuple[Member, ...], ...]] = field(default_factory=dict)
    objects: Mapping[int, StaticObject] = field(default_factory=dict)

    def members(self, structure: str) -> tuple[Member, ...]:
        """The pointers in ``structure``, of all types of that name."""
        return tuple(dict.fromkeys(one for each in self.structures.get(structure, ()) for one in each))


def debug_types(image: Image) -> DebugTypes:
    """The structures of ``image``, and its variables of them; nothing where there is no debug information.

    Raises:
        ImageError: damaged debug information.
    """
    return _debug_types(Same(image))


@dataclass(frozen=True, slots=True)
class CodePointer:
    """A member that points to a function: ``path`` and ``offset`` from a structure, ``member`` from the innermost one.

    Both names begin with that of the structure, and have no indices.
    """

    path: str
    member: str
    offset: int

    @property
    def name(self) -> str:
        """The last name of the path."""
        return self.path.rpartition(".")[2]


def code_pointers(image: Image) -> tuple[CodePointer, ...]:
    """The members that point to functions, of all structures.

    Raises:
        ImageError: damaged debug information.
    """
    types = debug_types(image)
    return tuple(
        CodePointer(f"{name}.{re.sub(_INDEX, '', one.path)}", one.owner, one.offset)
        for name in types.structures
        for one in types.members(name)
        if one.is_code
    )


def held_functions(image: Image, member: str) -> tuple[tuple[str, str], ...]:
    """Objects of static storage, and the functions that the file has in their ``member``; of `CodePointer` either name.

    Raises:
        ImageError: damaged debug information.
    """
    types, names = debug_types(image), {one.address: name for name, one in image.symbols.items() if not one.is_function}
    found: dict[tuple[str, str], None] = {}
    for address, one in sorted(types.objects.items()):
        for pointer in types.members(one.structure):
            path = f"{one.structure}.{re.sub(_INDEX, '', pointer.path)}"
            if not pointer.is_code or member not in {path, pointer.owner}:
                continue
            for number in range(min(one.count, _MOST_ELEMENTS)):
                function = held_function(image, address + number * one.size_bytes + pointer.offset)
                if function is not None:
                    found[names.get(address, f"{address:#x}"), function] = None
    return tuple(found)


def held_function(image: Image, address: int) -> str | None:
    """The function whose address the file has in the word at ``address``, if it has one there."""
    word = _initial_word(image, address)
    function = image.function_at(word & ~1) if word else None
    return function.name if function is not None and word is not None and function.address == word & ~1 else None


def _initial_word(image: Image, address: int) -> int | None:
    for segment in image.segments:
        start = address - segment.address
        if start >= 0 and start + _WORD_BYTES <= len(segment.data):
            word = segment.data[start : start + _WORD_BYTES]
            return int.from_bytes(word, "big" if image.big_endian else "little")
    return None


def field_offset(image: Image, symbol: str, path: str) -> int:
    """Where the member ``path`` begins in the object ``symbol``; the path is as in C, ``way[2].next``.

    Raises:
        UsageError: there is no debug information of the object, or no such member of four bytes.
        ImageError: damaged debug information.
    """
    try:
        entry = _variables(Same(image)).get(image.symbols[symbol].address)
        if entry is None:
            message = f"the debug information has no object {symbol}; build it with -g, or give its offset in bytes."
            raise UsageError(message)
        offset, found = 0, type_of(entry)
        for step in re.findall(r"\w+|\[\d+\]", path):
            distance, found = _stepped(found, step)
            offset += distance
        size = _size_of(found)
    except DAMAGED as error:
        raise _damaged(error) from error
    if size != _WORD_BYTES:
        raise UsageError(f"{symbol}.{path} has {size} bytes; name a member of 4.")
    return offset


def pointer_parameters(image: Image, function: str) -> tuple[tuple[str, bool], ...]:
    """What parameters of ``function`` point to, in order: the name of a structure, or empty; and whether it is code.

    Nothing is told of a function with a parameter that is more than a word, as that changes where the others are.

    Raises:
        ImageError: damaged debug information.
    """
    try:
        file = ELFFile(io.BytesIO(image.elf))
        entries = live_functions(dwarf_of(file), image, {function}) if file.has_dwarf_info() else iter(())
        entry = next(entries, None)
        found = [one for one in entry.iter_children() if one.tag == "DW_TAG_formal_parameter"] if entry else []
        types = [type_of(_declared(one)) for one in found]
        if any(kind is None or (_size_of(kind) or 0) > _WORD_BYTES for kind in types):
            return ()
        names = _typedefs(file)
        return tuple(_pointed(kind, names) for kind in types if kind is not None)
    except DAMAGED as error:
        raise _damaged(error) from error


def _declared(entry: DIE) -> DIE:
    """What a parameter of a function's concrete copy is a copy of."""
    is_copy = "DW_AT_abstract_origin" in entry.attributes
    return entry.get_DIE_from_attribute("DW_AT_abstract_origin") if is_copy else entry


def _damaged(error: Exception) -> ImageError:
    why = str(error) or type(error).__name__
    return ImageError(f"the file's types cannot be read ({why}); link it again with -g.")


@lru_cache(_KEPT)
def _debug_types(image: Same[Image]) -> DebugTypes:
    try:
        file = ELFFile(io.BytesIO(image.value.elf))
        if not file.has_dwarf_info():
            return DebugTypes()
        names = _typedefs(file)
        structures: dict[str, dict[tuple[Member, ...], None]] = {}
        for entry in _top_entries(file):
            name = _structure_name(entry, names) if entry.tag in _STRUCTURES else ""
            if name and "DW_AT_byte_size" in entry.attributes:
                members = tuple(islice(_pointers(entry, names, ("", name), 0, 0), _MOST_MEMBERS))
                structures.setdefault(name, {})[members] = None
        objects = {}
        for address, variable in _variables(image).items():
            kind, whole = type_of(variable), _size_of(type_of(variable))
            while kind is not None and kind.tag == "DW_TAG_array_type":
                kind = type_of(kind)
            if kind is not None and kind.tag in _STRUCTURES and (name := _structure_name(kind, names)):
                size = _size_of(kind) or 0
                objects[address] = StaticObject(name, (whole or 0) // size if size else 0, size)
        return DebugTypes({name: tuple(found) for name, found in structures.items()}, objects)
    except DAMAGED as error:
        raise _damaged(error) from error


def _top_entries(file: ELFFile) -> Iterator[DIE]:
    for unit in dwarf_of(file).iter_CUs():
        yield from unit.get_top_DIE().iter_children()


def _typedefs(file: ELFFile) -> Mapping[int, str]:
    """Names that typedefs give to structures, by the place of the structure's entry."""
    found: dict[int, str] = {}
    for entry in _top_entries(file):
        if entry.tag == "DW_TAG_typedef" and (kind := type_of(entry)) is not None and kind.tag in _STRUCTURES:
            found.setdefault(kind.offset, name_of(entry))
    return found


def _structure_name(entry: DIE, typedefs: Mapping[int, str]) -> str:
    return name_of(entry) or typedefs.get(entry.offset, "")


@lru_cache(_KEPT)
def _variables(image: Same[Image]) -> Mapping[int, DIE]:
    """The variables of static storage, those of functions too, by address."""
    file = ELFFile(io.BytesIO(image.value.elf))
    found: dict[int, DIE] = {}
    todo = list(_top_entries(file)) if file.has_dwarf_info() else []
    while todo:
        entry = todo.pop()
        if entry.tag == "DW_TAG_variable" and (address := _address_of(entry)):
            declared = entry
            if "DW_AT_specification" in entry.attributes:
                declared = entry.get_DIE_from_attribute("DW_AT_specification")
            found[address] = declared
        elif entry.tag in {"DW_TAG_subprogram", "DW_TAG_lexical_block"}:
            todo += entry.iter_children()
    return found


def _address_of(entry: DIE) -> int | None:
    """Where a variable is that has one place for all time (DWARF 5, §2.5.1.1 and §2.6.1.1.2)."""
    location = entry.attributes.get("DW_AT_location")
    operations = location.value if location is not None else None
    if not isinstance(operations, list) or not operations or operations[0] not in {_OP_ADDRESS, _OP_ADDRESS_INDEX}:
        return None
    parsed = DWARFExprParser(entry.cu.structs).parse_expr(operations)
    if len(parsed) != 1:
        return None
    (number,) = parsed[0].args
    return int(entry.dwarfinfo.get_addr(entry.cu, number) if operations[0] == _OP_ADDRESS_INDEX else number)


def _members(structure: DIE) -> Iterator[tuple[str, int, DIE]]:
    """The members by name, those of members without a name too."""
    for entry in structure.iter_children():
        kind = type_of(entry) if entry.tag == "DW_TAG_member" else None
        if kind is None or "DW_AT_bit_size" in entry.attributes:
            continue
        place = entry.attributes.get("DW_AT_data_member_location")
        offset = int(place.value) if place is not None else 0
        if name := name_of(entry):
            yield name, offset, kind
        elif kind.tag in _STRUCTURES:
            yield from ((inner, offset + distance, one) for inner, distance, one in _members(kind))


def _stepped(kind: DIE | None, step: str) -> tuple[int, DIE | None]:
    """How far the member or element ``step`` is from the start of what is of type ``kind``, and its type."""
    if step.startswith("["):
        element = type_of(kind) if kind is not None and kind.tag == "DW_TAG_array_type" else None
        if element is None or (size := _size_of(element)) is None:
            raise UsageError(f"there is no array in front of {step}; correct the member.")
        return int(step[1:-1]) * size, element
    found = {name: (offset, one) for name, offset, one in _members(kind)} if kind and kind.tag in _STRUCTURES else {}
    if step not in found:
        raise unknown_name("member", step, found)
    return found[step]


def _size_of(kind: DIE | None) -> int | None:
    if kind is None:
        return None
    if kind.tag == "DW_TAG_pointer_type":
        return _WORD_BYTES
    size = kind.attributes.get("DW_AT_byte_size")
    if size is None and kind.tag == "DW_TAG_array_type" and (inner := _size_of(type_of(kind))) is not None:
        size_of_all = inner
        for count in _lengths(kind):
            size_of_all *= count
        return size_of_all
    return int(size.value) if size is not None else None


def _lengths(array: DIE) -> Iterator[int]:
    for entry in array.iter_children():
        if entry.tag == "DW_TAG_subrange_type":
            count, last = entry.attributes.get("DW_AT_count"), entry.attributes.get("DW_AT_upper_bound")
            if count is not None and isinstance(count.value, int):
                yield count.value
            else:
                yield last.value + 1 if last is not None and isinstance(last.value, int) else 0


def _pointers(kind: DIE, names: Mapping[int, str], place: _Names, start: int, depth: int) -> Iterator[Member]:
    """The pointers in what is of the structure ``kind`` and lies ``start`` bytes from the whole."""
    path, owner = place
    if depth <= _DEEPEST:
        for name, offset, one in _members(kind):
            inside = f"{path}.{name}" if path else name, f"{owner}.{name}"
            yield from _pointers_in(one, names, inside, start + offset, depth + 1)


def _pointers_in(kind: DIE, names: Mapping[int, str], place: _Names, start: int, depth: int) -> Iterator[Member]:
    path, owner = place
    if kind.tag == "DW_TAG_pointer_type":
        pointee, is_code = _pointed(kind, names)
        yield Member(path, start, owner, pointee, is_code)
    elif kind.tag in _STRUCTURES:
        yield from _pointers(kind, names, (path, _structure_name(kind, names) or owner), start, depth)
    elif kind.tag == "DW_TAG_array_type" and (inner := type_of(kind)) is not None:
        lengths, size = list(_lengths(kind)), _size_of(inner)
        if len(lengths) == 1 and size:
            for number in range(min(lengths[0], _MOST_ELEMENTS)):
                yield from _pointers_in(inner, names, (f"{path}[{number}]", owner), start + number * size, depth)


def _pointed(kind: DIE, names: Mapping[int, str]) -> tuple[str, bool]:
    """The name of the structure that a pointer of type ``kind`` points to, or empty; and whether it points to code."""
    pointed = type_of(kind) if kind.tag == "DW_TAG_pointer_type" else None
    if pointed is None:
        return "", False
    if pointed.tag in _STRUCTURES:
        return _structure_name(pointed, names), False
    return "", pointed.tag == "DW_TAG_subroutine_type"
