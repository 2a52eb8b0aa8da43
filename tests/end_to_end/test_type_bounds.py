"""Bounds that rest on the width of a type have a verdict of their own; those that rest on a range have not."""

import copy
import json
import re

import pytest

from tests.ci_samples import FIXED, RESULT, read_budget_text
from tests.support import TARGETS, image_of
from wcet_probe.answer.firmware.firmware import FirmwareRequest, bound_firmware
from wcet_probe.catalog.lookup import load_target
from wcet_probe.ci.judge import judge
from wcet_probe.cli import main
from wcet_probe.reports.formats.schema import validate

SOURCE = """typedef unsigned u; volatile int sink; u count; unsigned short half;
int factorial(int n) { int r = 1; while (n > 1) { r *= n; sink = r; n--; } return r; }
void up(u a, u n) { for (u i = 0; i < n; i++) sink += a; }
void words(u n) { for (u i = 0; i < (n & 0xffff); i++) sink++; }
void lines(u n) { for (u i = 0; i < n / 32; i++) sink++; }
void pages(u n) { for (u i = 0; i < n >> 12; i++) sink++; }
void pages_of(u n) { if (n > 1 << 30) return; for (u i = 0; i < n >> 12; i++) sink++; }
void blocks(u n) { for (u i = 0; i < n >> 28; i++) sink++; }
void global(void) { u n = count; for (u i = 0; i < n; i++) sink++; }
void masked(u n) { for (u i = 0; i < (n & 63); i++) sink++; }
void checked(u n) { if (n > 100000) return; for (u i = 0; i < n; i++) sink++; }
void bytes(u n) { for (u i = 0; i < (n & 0xff); i++) sink++; }
void constant(void) { for (u i = 0; i < 3000000; i++) sink++; }
void bits(u n) { while (n) { sink = n; n >>= 1; } }
void cheap(u n) { for (u k = 0; k < 9; k++) sink ^= k; if (n & 1) return; for (u i = 0; i < 20; i++) sink++; }
"""
BY_TYPE = {
    "factorial": "argument 0",
    "up": "argument 1",
    "words": "argument 0",
    "lines": "argument 0",
    "pages": "argument 0",
    "global": "loaded",
}
BY_VALUE = ("pages_of", "blocks", "masked", "checked", "bytes", "constant", "bits", "cheap")


def bound(folder, target, entry, facts=""):
    core = load_target(target)
    (folder / "firmware.elf").write_bytes(image_of(SOURCE, core, ".c").elf)
    (folder / "facts.toml").write_text(facts)
    return bound_firmware(FirmwareRequest(folder / "firmware.elf", entry, core, [folder / "facts.toml"], [], {})).bound


@pytest.mark.covering(0)
@pytest.mark.parametrize("target", TARGETS)
def test_what_rests_on_a_type_is_told_with_the_line_to_add(tmp_path, target):
    for entry, value in BY_TYPE.items():
        (loop,) = bound(tmp_path, target, entry).by_type
        assert loop.location.startswith(f"{entry}+0x")
        assert "guest.c:" in loop.location
        assert value in loop.rests_on, (entry, loop)
        kind = "loop" if value == "loaded" else "argument"
        assert loop.remedy.startswith(f'[[{kind}]] function = "{entry}", ')


@pytest.mark.covering(0)
@pytest.mark.parametrize("target", TARGETS)
def test_what_rests_on_a_range_is_bounded(tmp_path, target):
    for entry in BY_VALUE:
        assert not bound(tmp_path, target, entry).by_type, entry


def test_with_the_line_it_is_bounded(tmp_path):
    for entry, index in (("factorial", 0), ("up", 1), ("words", 0)):
        facts = f'[[argument]]\nfunction = "{entry}"\nindex = {index}\nmin = 0\nmax = 40\nbecause = "a test"\n'
        found = bound(tmp_path, "cortex-m4", entry, facts)
        assert not found.by_type
        assert max(loop.max for loop in found.loops) <= 41


@pytest.fixture
def firmware(tmp_path):
    (tmp_path / "firmware.elf").write_bytes(image_of(SOURCE, load_target("cortex-m4"), ".c").elf)
    return ("bound", str(tmp_path / "firmware.elf"), "--target", "cortex-m4", "-q", "--entry")


def test_the_command_says_so_and_ends_with_exit_code_4(firmware, capsys):
    assert main([*firmware, "up"]) == 4
    out = capsys.readouterr().out
    assert re.search(
        "^BOUNDED_BY_TYPE: a proven upper bound, but that of 1 loop is the width of a type: add$", out, re.MULTILINE
    )
    assert '[[argument]] function = "up", index = 1, min = …, max = …, because' in out
    assert "argument 1 (r1)" in out
    assert main([*firmware, "masked"]) == 0
    assert "\nBOUNDED: " in capsys.readouterr().out


def test_the_document_says_so(firmware, capsys):
    assert main([*firmware, "factorial", "--json"]) == 4
    document = json.loads(capsys.readouterr().out)
    validate(document)
    assert document["verdict"] == "BOUNDED_BY_TYPE"
    (loop,) = document["bound"]["by_type"]
    assert loop["loop"] in {one["name"] for one in document["bound"]["loops"]}
    assert loop["max"] > 1 << 28
    assert main([*firmware, "masked", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    validate(document)
    assert document["verdict"] == "BOUNDED"
    assert "by_type" not in document["bound"]


def test_a_budget_is_not_met_by_it(tmp_path):
    (budget,) = read_budget_text(FIXED, tmp_path)
    document = copy.deepcopy(RESULT)
    assert not judge(budget, document).findings
    loop = {
        "loop": "f+0x8",
        "location": "f+0x8 (f.c:7)",
        "max": 1 << 32,
        "rests_on": "argument 0 (r0)",
        "remedy": "[[argument]]",
    }
    document["bound"]["by_type"] = [loop]
    outcome = judge(budget, document)
    assert outcome.verdict == "UNBOUNDED"
    assert "[[argument]]" in outcome.findings[0].message
