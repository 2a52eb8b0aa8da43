"""Finding the sources of an ELF file."""

import re

import pytest

from tests.support import image_of
from wcet_probe.build.image import source_paths
from wcet_probe.build.sources import find_sources, included_files, renumbered_files
from wcet_probe.catalog.lookup import load_target
from wcet_probe.errors import ImageError

SOURCE = "int f(int a)\n{\n    return a + 1;\n}\n"


@pytest.fixture(scope="module")
def elf():
    return image_of(SOURCE, load_target("cortex-m4"), ".c").elf


def test_a_source_below_a_root_is_read(elf, tmp_path):
    (tmp_path / "guest.c").write_text(SOURCE)
    assert find_sources(elf, [tmp_path / "nowhere", tmp_path]) == {"guest.c": SOURCE}


def test_the_longest_tail_of_the_path_goes_first(elf, tmp_path):
    (path,) = source_paths(elf)
    folder = tmp_path.joinpath(*path.parent.parts[-1:]) if path.parent.is_absolute() else tmp_path
    folder.mkdir(exist_ok=True)
    (tmp_path / "guest.c").write_text("wrong")
    (folder / "guest.c").write_text(SOURCE)
    assert find_sources(elf, [tmp_path]) == {"guest.c": SOURCE}


def test_nothing_outside_of_the_roots_is_read(elf, tmp_path):
    assert find_sources(elf, [tmp_path]) == {}
    assert find_sources(elf, []) == {}


def test_a_name_with_two_texts_is_left_out(elf, tmp_path, monkeypatch):
    paths = source_paths(elf)
    monkeypatch.setattr(
        "wcet_probe.build.sources.source_paths", lambda _: [path / "../x/guest.c" for path in paths] * 2
    )
    (tmp_path / "guest.c").write_text(SOURCE)
    assert find_sources(elf, [tmp_path]) == {"guest.c": SOURCE}
    other = paths[0].with_name("other") / "guest.c"
    monkeypatch.setattr("wcet_probe.build.sources.source_paths", lambda _: [*paths, other])
    (tmp_path / "other").mkdir()
    (tmp_path / "other/guest.c").write_text("something else")
    assert find_sources(elf, [tmp_path]) == {}


def test_what_is_included_and_has_no_lines_is_there_by_another_name(elf, tmp_path):
    (tmp_path / "src").mkdir()
    (tmp_path / "inc").mkdir()
    source = (
        '#include "../inc/a.h"\n#include <b.h>\n#include "a.h"\n#include "nowhere.h"\n#include "../../outside.h"\n'
        f'#include "{"a" * 5000}"\n#include "\0"\n' + SOURCE
    )
    (tmp_path / "src/guest.c").write_text(source)
    (tmp_path / "inc/a.h").write_text('#include "a.h"\n#include "../src/guest.c"\n#define A f(1)\n')
    (tmp_path / "src/b.h").write_text("#define B f(2)\n")
    (tmp_path / "src/a.h").write_text("#define D f(4)\n")
    (tmp_path.parent / "outside.h").write_text("#define C f(3)\n")
    found = find_sources(elf, [tmp_path / "src", tmp_path])
    other = next(name for name in found if re.fullmatch(r"\./[0-9a-f]{8}/a\.h", name))
    assert found.keys() == {"guest.c", "./a.h", "./b.h", other}
    assert found["./b.h"] == "#define B f(2)\n"
    assert {found["./a.h"][-4:], found[other][-4:]} == {"(1)\n", "(4)\n"}


def test_what_is_included_is_told_as_it_is_written():
    text = '#include <string.h>\n  # include "../inc/own.h" // own\n#include FILE\nint include;\n'
    assert list(included_files(text)) == ["string.h", "../inc/own.h", "FILE"]


def test_what_is_no_elf_is_refused():
    with pytest.raises(ImageError, match="line table cannot be read"):
        find_sources(b"no elf", [])


def test_a_file_with_lines_of_other_code_is_told():
    def of(**texts):
        return renumbered_files({f"{name}.c": text for name, text in texts.items()})

    assert of(a='int x;\n#line 3 "a.c"\n# 4 "gen/a.c" 2\n#line 5\nint y;\n#define line 9\n') == set()
    assert of(a="#line 1\n") == of(a="int x;\n # 9\n") == {"a.c"}
    assert of(a='#line 2 "b.c"\n', b="int y;") == of(a='# 2 "gen/b.c" 1\n') == {"b.c"}
    assert of(a="#line NUMBER\n", b="int y;") == {"a.c", "b.c"}
    assert of(a="#line 2 NAME\n", b="int y;") == of(a='#line 2 "\\x62.c"\n', b="int y;") == {"a.c", "b.c"}
    assert of(a='#define X \\\n 1\n/*\n*/ #line 5 "a.c" // own\n') == set()


@pytest.mark.parametrize(
    "spelt",
    [
        "%:line 2",
        "%: 2",
        "??=line 2",
        "#/* of a */ line 2",
        "/* a\n * b */ #line 2",
        "#li\\\nne 2",
        "#??/\nline 2",
        "\f#\vline\v2",
        "\ufeff#line 2",
    ],
)
def test_a_directive_is_told_however_it_is_spelt(spelt):
    assert renumbered_files({"a.c": f'{spelt} "b.c"\n', "b.c": "int y;"}) == {"b.c"}
