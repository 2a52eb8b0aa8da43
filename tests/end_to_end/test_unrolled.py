"""A count that is divided by the iterations of a round is an assumption of its own, which the checker finds, too."""

import json

import pytest

from tests.resealed import reseal
from tests.support import image_of
from wcet_probe.catalog.lookup import load_target
from wcet_probe.cli import main

SOURCE = """\
unsigned words[128];

unsigned find(unsigned n, unsigned key)
{
    _Pragma("loopbound min 0 max 42")
    _Pragma("clang loop unroll_count(4)")
    for (unsigned i = 0; i < n; i += 3) {
        if (words[i] == key)
            return i;
        words[i] = key;
    }
    return n;
}
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "guest.c").write_text(SOURCE)
    (tmp_path / "firmware.elf").write_bytes(image_of(SOURCE, load_target("cortex-m4"), ".c").elf)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_divided_count_is_packed_and_its_assumption_cannot_be_left_out(folder, capsys):
    assert main(["bound", "firmware.elf", "--entry", "find", "--json", "-q"]) == 0
    document = json.loads(capsys.readouterr().out)
    (listed,) = [one for one in document["bound"]["assumptions"] if one["id"] == "rounds guest.c:5"]
    assert " is 4 iterations of " in listed["statement"]
    assert packed(folder, document, capsys) == (0, "")
    assert main(["verify", "find.json", "--image", "firmware.elf"]) == 0
    capsys.readouterr()
    for other in (listed["statement"].replace(" is 4 ", " is 5 "), "it is so"):
        listed["statement"] = other
        code, error = packed(folder, document, capsys)
        assert code == 1
        assert "no assumption says that a round of the loop" in error


def packed(folder, document, capsys):
    reseal(document, folder / "find.json")
    code = main(["pack", "find.json", "--image", "firmware.elf", "-o", "pack.zip"])
    return code, capsys.readouterr().err
