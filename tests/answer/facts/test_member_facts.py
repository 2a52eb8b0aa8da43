"""The fact that is missing where calls go through a member of a structure that the file leaves empty."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.answer.facts.test_fact_skeleton import filled
from tests.support import image_of
from wcet_probe.catalog.lookup import load_target
from wcet_probe.cli.app import main
from wcet_probe.errors import ExitCode

SOURCE = """\
struct route { int gain; int (*handle)(int value, int gain); };
static struct route routes[4];
int leaf(int value, int gain) { return value * gain; }
void add(int i, int gain) { routes[i & 3] = (struct route){ gain, leaf }; }
int f(int i, int value)
{
    const struct route *one = &routes[i & 3];
    return one->handle(value, one->gain);
}
int twice(int i, int value)
{
    const struct route *one = &routes[i & 3];
    int first = one->handle(value, one->gain) + 1;
    const struct route *other = &routes[first & 3];
    return other->handle(first, other->gain) - 1;
}
"""


@pytest.mark.covering(0)
@pytest.mark.parametrize("target", ["cortex-m4", "arm926ej-s", "mpc603e"])
@pytest.mark.parametrize("entry", ["f", "twice"])
def test_a_member_that_firmware_fills_as_it_runs_is_asked_for_once(target, entry, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("guest.c").write_text(SOURCE, "utf-8")
    Path("f.elf").write_bytes(image_of(SOURCE, load_target(target), ".c").elf)
    asked = ("f.elf", "--entry", entry, "--target", target, "-q")
    assert main(["facts", *asked]) == ExitCode.OK
    text = capsys.readouterr().out
    assert text.count("[[calls]]") == 1
    assert 'through = "route.handle"\ntargets = ["?"]' in text
    assert "in the file, no object holds a function there" in text
    assert "offset = " not in text
    assert "sha256" not in text

    Path("facts.toml").write_text(filled(text), "utf-8")
    code = main(["bound", *asked, "--facts", "facts.toml", "--run", f"add(1, 3); {entry}(1, 5)"])
    assert code == ExitCode.OK, capsys.readouterr().err
