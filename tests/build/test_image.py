"""Reading ELF files: symbols, code without literal pools, source lines; and files that are none."""

from __future__ import annotations

import io
import struct
from dataclasses import replace
from types import SimpleNamespace

import pytest
from elftools.elf.elffile import ELFFile
from hypothesis import given, settings
from hypothesis import strategies as st

import wcet_probe.build.image as image_module
from tests.examples import examples
from tests.support import TARGETS, assembler, image_of, tlsf_guest
from wcet_probe.build.compilers import functions_of_clang, unshared_functions
from wcet_probe.build.image import dwarf_of, inlined_calls, read_image, require_symbol, variable_locations
from wcet_probe.catalog.lookup import load_target
from wcet_probe.errors import ImageError
from wcet_probe.model.image import LineTable
from wcet_probe.model.target import Isa

LITERAL = {"cortex-m4": "ldr r0, =0x12345678\nbx lr\n.ltorg", "arm926ej-s": "ldr r0, =0x12345678\nbx lr\n.ltorg"}


@pytest.fixture(params=TARGETS)
def image(request):
    return tlsf_guest(request.param).image


def test_symbols_have_no_thumb_bit(image):
    for name in ("tlsf_init", "tlsf_malloc", "tlsf_free", "tlsf_check", "wp_replay"):
        symbol = image.symbols[name]
        assert symbol.is_function
        assert symbol.address % 2 == 0
        assert symbol.size_bytes > 0
        assert image.function_at(symbol.address + symbol.size_bytes - 2) == symbol
    assert not image.symbols["tlsf_control"].is_function
    assert list(image.functions) == sorted(image.functions, key=lambda s: s.address)


def test_code_and_data_lie_in_their_segments(image):
    code, *data = sorted(image.segments, key=lambda s: not s.executable)
    assert code.executable
    assert not code.writable
    assert all(s.writable and not s.executable for s in data)
    for extent in image.code:
        assert code.address <= extent.base_address < extent.end_address <= code.address + code.size_bytes
    control = image.symbols["tlsf_control"]
    assert any(s.address <= control.address < s.address + s.size_bytes for s in data)


def test_locations_name_function_file_and_line(image):
    malloc = image.symbols["tlsf_malloc"]
    assert image.location(malloc.address).startswith("tlsf_malloc+0x0 (tlsf.c:")
    assert image.location(0xDEADBEE0) == "0xdeadbee0"
    harness = image.symbols["wp_replay"]
    assert "replay.c:" in image.location(harness.address + 4)


def test_nearly_each_instruction_of_a_function_has_a_line(image):
    """The compiler gives line 0 to a few that stand for several lines: most, a tenth, where it joins inlined copies."""
    free = image.symbols["tlsf_free"]
    found = [image.lines.find(address) for address in range(free.address, free.address + free.size_bytes, 2)]
    assert found.count(None) < len(found) / 8
    assert {line[0] for line in found if line} <= {"tlsf.c", "bit_search.h"}


@pytest.mark.parametrize("target", LITERAL)
def test_a_literal_pool_is_no_code(target):
    image = image_of(assembler({"f": LITERAL[target], "g": "bx lr"}, load_target(target)), load_target(target))
    f, g = image.symbols["f"], image.symbols["g"]
    pool = f.address + f.size_bytes - 4
    assert not any(pool in extent for extent in image.code)
    assert any(f.address in extent for extent in image.code)
    assert any(g.address in extent for extent in image.code)


def test_an_image_is_identified_by_its_bytes(image):
    again = read_image(image.elf, image.isa, image.compiler, image.flags)
    assert again == image
    other = read_image(image.elf + b"\0", image.isa, image.compiler, image.flags)
    assert other.sha256 != image.sha256


def test_an_unknown_symbol_is_named_with_the_nearest(image):
    with pytest.raises(ImageError, match="unknown symbol of the image 'tlsf_maloc': did you mean 'tlsf_malloc'"):
        require_symbol(image, "tlsf_maloc")


def test_the_wrong_instruction_set_is_refused():
    thumb, arm, powerpc = (tlsf_guest(target).image for target in TARGETS)
    with pytest.raises(ImageError, match="choose a target of the file's instruction set"):
        read_image(powerpc.elf, Isa.ARM, "test")
    with pytest.raises(ImageError, match="choose a target"):
        read_image(arm.elf, Isa.POWERPC, "test")
    for elf, isa in ((thumb.elf, Isa.ARM), (arm.elf, Isa.THUMB)):
        with pytest.raises(ImageError, match="mixed code has no model"):
            read_image(elf, isa, "test")


@pytest.mark.parametrize(
    ("kind", "remedy"),
    [
        (1, "is an object that is not linked; link it, with all that it calls, into an executable"),  # ET_REL
        (3, "no fixed addresses .*; link it with -no-pie"),  # ET_DYN
        (4, "no linked 32-bit executable; link it as one"),  # ET_CORE
    ],
)
def test_an_elf_that_is_no_executable_is_refused_with_what_to_do(kind, remedy):
    elf = bytearray(tlsf_guest("arm926ej-s").image.elf)
    struct.pack_into("<H", elf, 16, kind)
    with pytest.raises(ImageError, match=remedy):
        read_image(bytes(elf), Isa.ARM, "test")


@pytest.mark.parametrize("magic", [b"!<arch>\n", b"!<thin>\n"])
def test_an_archive_is_refused_with_what_to_do(magic):
    with pytest.raises(ImageError, match="is an archive of objects; link the function"):
        read_image(magic + b"/               0           0     0     0       4         `\n", Isa.ARM, "test")


@pytest.mark.parametrize("target", TARGETS)
def test_relocations_that_the_linker_has_left_in_are_not_applied_again(target):
    source = "int x[4];\nint f(int n) {\n  int s = 0;\n  while (n--) s += x[n & 3];\n  return s;\n}\n"
    plain, kept = (image_of(source, load_target(target), ".c", link_flags=flags) for flags in ((), ("--emit-relocs",)))
    assert len(kept.elf) > len(plain.elf)
    assert kept.lines.find(kept.symbols["f"].address) is not None
    assert kept.lines == plain.lines


def test_an_elf_without_symbols_is_refused():
    elf = bytearray(tlsf_guest("arm926ej-s").image.elf)
    (table_at,), (size, count) = struct.unpack_from("<I", elf, 32), struct.unpack_from("<HH", elf, 46)
    for i in range(count):
        at = table_at + i * size + 4
        if struct.unpack_from("<I", elf, at)[0] == 2:  # sh_type: SHT_SYMTAB
            struct.pack_into("<I", elf, at, 1)
    with pytest.raises(ImageError, match="without --strip"):
        read_image(bytes(elf), Isa.ARM, "test")


def test_segments_with_memory_in_common_are_refused():
    """What is analysed would be the one, what is run the other."""
    elf = bytearray(tlsf_guest("arm926ej-s").image.elf)
    (table_at,), (size, count) = struct.unpack_from("<I", elf, 28), struct.unpack_from("<HH", elf, 42)
    rows = [table_at + number * size for number in range(count)]
    code, data, *_ = [row for row in rows if struct.unpack_from("<I", elf, row)[0] == 1]  # PT_LOAD
    address, _, _, size_bytes = struct.unpack_from("<4I", elf, code + 8)
    struct.pack_into("<I", elf, data + 8, address + size_bytes)
    read_image(bytes(elf), Isa.ARM, "test")
    struct.pack_into("<I", elf, data + 8, address + size_bytes - 1)
    with pytest.raises(ImageError, match="have memory in common, which holds one of them at a time"):
        read_image(bytes(elf), Isa.ARM, "test")


@pytest.mark.parametrize("data", [b"", b"\x7fELF", b"#!/bin/sh\n", bytes(4096), b"\x7fELF\x01\x01\x01" + bytes(60)])
def test_what_is_no_elf_is_refused(data):
    with pytest.raises(ImageError):
        read_image(data, Isa.ARM, "test")


@given(st.integers(0, 2000), st.integers(0, 255))
@settings(max_examples=examples(50))
def test_a_damaged_elf_is_read_or_refused(at, value):
    """One byte changed, in headers and code: never any other error than the one sentence."""
    elf = bytearray(tlsf_guest("arm926ej-s").image.elf)
    elf[at if at < 200 else len(elf) - 1 - at] = value
    try:
        read_image(bytes(elf), Isa.ARM, "test")
    except ImageError as error:
        assert str(error).endswith((".", "?"))  # noqa: PT017  (both outcomes are right)


@given(st.integers(0, 6000))
@settings(max_examples=examples(25))
def test_a_truncated_elf_is_refused(length):
    elf = tlsf_guest("mpc603e").image.elf
    with pytest.raises(ImageError):
        read_image(elf[: min(length, len(elf) - 1)], Isa.POWERPC, "test")


def test_a_line_table_covers_ranges():
    table = LineTable(addresses=(16, 20, 24), files=("a.c", "", "b.c"), lines=(3, 0, 5))
    assert [table.find(address) for address in (12, 16, 19, 20, 23, 24, 900)] == [
        None, ("a.c", 3), ("a.c", 3), None, None, ("b.c", 5), ("b.c", 5),
    ]  # fmt: skip
    assert LineTable().find(0) is None


@pytest.mark.parametrize("follow", [image_module._origin, image_module.type_of])
def test_debug_information_in_a_circle_has_an_end(follow):
    entry = SimpleNamespace(tag="DW_TAG_typedef", attributes={"DW_AT_abstract_origin": 1, "DW_AT_type": 1})
    entry.get_DIE_from_attribute = lambda _: entry
    with pytest.raises(image_module.DAMAGED):
        follow(entry)


def test_what_pyelftools_stumbles_over_is_refused(monkeypatch):
    """A name of the line table that is missing is a TypeError deep in it, of other damage an AttributeError."""
    elf = tlsf_guest("mpc603e").image.elf
    for error in (
        TypeError("not NoneType"),
        AttributeError("no attribute"),
        OverflowError("too large"),
        ZeroDivisionError(),
    ):

        def fail(*_, error=error):
            raise error

        monkeypatch.setattr("wcet_probe.build.image.ELFFile", fail)
        with pytest.raises(ImageError, match="no usable ELF"):
            read_image(elf, Isa.POWERPC, "test")


def test_of_other_languages_than_c_no_variable_is_told():
    """A reference of C++ is another name of one, of which a reader of its name knows nothing."""
    image = image_of("unsigned f(unsigned n) { return n * n + 1; }", load_target("cortex-m4"), ".c")
    file = ELFFile(io.BytesIO(image.elf))
    (unit,) = dwarf_of(file).iter_CUs()
    language = unit.get_top_DIE().attributes["DW_AT_language"]
    place = file.get_section_by_name(".debug_info")["sh_offset"] + language.offset
    for code, is_told in ((language.value, True), (0x21, False), (0x1C, False), (0x0C, True)):
        elf = image.elf[:place] + code.to_bytes(2, "little") + image.elf[place + 2 :]
        assert bool(variable_locations(read_image(elf, Isa.THUMB, "test"), ["f"])) is is_told


def test_debug_information_of_an_image_is_read_once(monkeypatch):
    """A proof asks for inlined calls and the compiler anew for each function that it analyses by itself."""
    image = image_of(
        "static int g(int x) { return 3 * x; } int f(int x) { return g(x); }", load_target("cortex-m4"), ".c"
    )
    read = []
    monkeypatch.setattr("wcet_probe.build.image.dwarf_of", lambda file: read.append(1) or dwarf_of(file))
    monkeypatch.setattr("wcet_probe.build.compilers.dwarf_of", lambda file: read.append(2) or dwarf_of(file))
    image = replace(image)
    for _ in range(3):
        inlined_calls(image, ["f"])
        inlined_calls(image, ["g"])
        variable_locations(image, ["f"])
        assert image.symbols["f"].address & ~1 in functions_of_clang(image)
        assert image.symbols["f"].address & ~1 in unshared_functions(image)
    assert sorted(read) == [1, 2, 2]
