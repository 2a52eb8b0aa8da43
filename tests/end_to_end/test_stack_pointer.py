"""Bounds where the stack pointer at entry is known: a run compares it, and other answers take it into account."""

import json

import pytest

from tests.resealed import reseal
from tests.support import image_of
from wcet_probe.catalog.lookup import load_target
from wcet_probe.cli import main
from wcet_probe.emu.layout import first_stack_pointer

TARGET = "arm926ej-s"
# The code's literals are in the first sets of the cache, and what is read of the array is in others.
SOURCE = """
unsigned far[128] __attribute__((aligned(4096)));
unsigned f(void)
{
    volatile unsigned own = 1;
    unsigned s = 0;
    for (unsigned i = 0; i < 64; i++) { own += i; s += far[64 + i] + own; }
    return s;
}
"""


@pytest.fixture(scope="module")
def image():
    return image_of(SOURCE, load_target(TARGET), ".c")


@pytest.fixture
def ask(image, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "firmware.elf").write_bytes(image.elf)

    def call(*options):
        code = main(["bound", "firmware.elf", "--entry", "f", "--target", TARGET, "-q", "--json", *options])
        captured = capsys.readouterr()
        return code, json.loads(captured.out) if captured.out else {}, captured.err

    return call


def test_a_known_stack_pointer_makes_a_bound_tight_and_is_held_against_runs(ask, image, tmp_path, capsys):
    pointer = first_stack_pointer(image, load_target(TARGET))
    _, without, _ = ask("--run", "f()")
    code, document, _ = ask("--stack-pointer", hex(pointer), "--run", "f()")
    assert code == 0
    observed = document["observed"]["cycles"]
    assert observed <= document["bound"]["cycles"] <= 1.3 * observed
    assert without["bound"]["cycles"] > 1.5 * document["bound"]["cycles"]
    (told,) = [one for one in document["bound"]["assumptions"] if one["id"] == "stack-pointer"]
    assert told["executions"] == 1
    (tmp_path / "result.json").write_text(json.dumps(document))
    assert main(["verify", "result.json", "--image", "firmware.elf"]) == 6
    assert "not checked" in " ".join(capsys.readouterr().out.split())
    document["bound"]["assumptions"].remove(told)
    reseal(document, tmp_path / "result.json")
    assert main(["verify", "result.json", "--image", "firmware.elf"]) not in {0, 6}
    assert "the assumption stack-pointer is used and not listed" in " ".join(capsys.readouterr().err.split())


def test_another_stack_pointer_is_a_contradiction_and_what_is_no_address_is_refused(ask, image):
    pointer = first_stack_pointer(image, load_target(TARGET))
    code, _, err = ask("--stack-pointer", hex(pointer - 64), "--run", "f()")
    assert code == 5
    assert "against the assumption stack-pointer" in err
    assert ask("--stack-pointer", "top")[0] == 2
    assert ask("--stack-pointer", "0x20000004")[0] == 2


def test_an_audit_holds_the_calls_that_it_repeats_against_the_stack_pointer(ask, image, tmp_path, capsys):
    pointer = first_stack_pointer(image, load_target(TARGET))
    _, document, _ = ask("--stack-pointer", hex(pointer), "--run", "f()")
    _, other, _ = ask("--run", "f()")
    (told,) = [one for one in document["bound"]["assumptions"] if one["id"] == "stack-pointer"]
    statement = f"the stack pointer is {pointer - 64:#x} at entry"
    other["bound"]["assumptions"].append({**told, "statement": statement})
    for one, codes in ((document, {0, 6}), (other, {5})):
        reseal(one, tmp_path / "result.json")
        assert main(["pack", "result.json", "--image", "firmware.elf", "-o", "evidence.zip", "-q"]) == 0
        assert main(["audit", "evidence.zip"]) in codes
    assert "against the assumption stack-pointer" in " ".join(capsys.readouterr().err.split())
