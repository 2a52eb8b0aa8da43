"""A fact about a loop that is unrolled inside of another one is not taken for a fact about that one."""

import json

from tests.resealed import verified
from tests.support import image_of
from wcet_probe.analyzer.facts.source_index import index_sources
from wcet_probe.catalog.lookup import load_target
from wcet_probe.cli import main

SOURCE = """\
unsigned f(unsigned n, volatile unsigned *p)
{
    unsigned sum = 0;
    /* loop: outer */
    while (p[5] < n) {
        /* loop: inner */
        _Pragma("unroll") for (unsigned j = 0; j < 4; j++) {
            sum += p[j];
        }
    }
    return sum;
}
"""
FACT = '[[loop]]\nfunction = "f"\nlabel = "{}"\nmax = 4\nbecause = "it is so"\nsha256 = "{}"\noptional = true\n'


def test_the_bound_of_a_loop_by_the_fact_about_one_unrolled_in_it_is_not_checked(tmp_path, monkeypatch, capsys):
    """Both say 4, so that all numbers are right: what is told of the inner loop does not hold of the outer one."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "guest.c").write_text(SOURCE)
    (tmp_path / "firmware.elf").write_bytes(image_of(SOURCE, load_target("cortex-m4"), ".c").elf)
    digest = index_sources({"guest.c": SOURCE}).function("f").sha256
    (tmp_path / "facts.toml").write_text("".join(FACT.format(label, digest) for label in ("outer", "inner")))
    assert main(["bound", "firmware.elf", "--entry", "f", "--facts", "facts.toml", "--json", "-q"]) == 0
    text = capsys.readouterr().out
    assert verified(tmp_path, json.loads(text), capsys)[0] == 0
    code, shown = verified(tmp_path, json.loads(text.replace("facts.toml:1", "facts.toml:8")), capsys)
    assert code == 6
    assert "has code of the loop at guest.c:5 too" in shown
