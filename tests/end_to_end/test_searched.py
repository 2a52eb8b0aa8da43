"""What a search found beside a bound is run again behind the set-up that it was found with."""

import json

from tests.support import image_of
from wcet_probe.catalog.lookup import load_target
from wcet_probe.cli import main

SOURCE = """\
unsigned words[8];

__attribute__((noinline)) unsigned odd(unsigned n)
{
    unsigned sum = 0;
    for (unsigned i = 0; i < n && i < 8; i++)
        if (words[i] & 1)
            sum += words[i] / 3;
    return sum;
}

void set(unsigned word)
{
    for (unsigned i = 0; i < 8; i++)
        words[i] = word;
    odd(2);
}
"""


def test_the_set_up_of_a_search_is_a_part_of_its_witness(tmp_path, monkeypatch, capsys):
    """The search changes the first word only; the others are odd by `set`."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "firmware.elf").write_bytes(image_of(SOURCE, load_target("mpc603e"), ".c").elf)
    words = ["--run", "set(5); odd(8)", "--search", "8", "--vary", "&words:4", "--json", "-q"]
    assert main(["bound", "firmware.elf", "--entry", "odd", "--target", "mpc603e", *words]) == 0
    (tmp_path / "odd.json").write_text(capsys.readouterr().out)
    observed = json.loads((tmp_path / "odd.json").read_text())["observed"]
    assert observed["statements"][0] not in observed["found"]["script"]
    assert main(["pack", "odd.json", "--image", "firmware.elf", "-o", "odd.zip", "-q"]) == 0
    capsys.readouterr()
    main(["audit", "odd.zip", "-q"])
    (row,) = [line for line in capsys.readouterr().out.split("\n") if line.strip().startswith("replay")]
    assert " ok, " in row
