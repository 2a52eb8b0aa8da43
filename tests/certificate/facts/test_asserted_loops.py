"""A fact about a loop is not taken for one about a loop in it that no keyword of its own line tells."""

import json
import re

import pytest

from tests.analyzer.loops.test_source_calls import NESTED
from tests.resealed import verified
from tests.support import image_of
from wcet_probe.analyzer.facts.source_index import index_sources
from wcet_probe.catalog.lookup import load_target
from wcet_probe.certificate.facts.asserted import are_told_apart, hidden_loops, loop_behind, read_asserted
from wcet_probe.cli import main

MACRO = "#define CLEAR(p) do { unsigned k = 0; while ((p)[k] != 0) (p)[k++] = 0; } while (0)\n"
SOURCE = """\
#define CLEAR(p) do { unsigned k = 0; while ((p)[k] != 0) (p)[k++] = 0; } while (0)
void f(unsigned n, volatile unsigned *p)
{
    /* loop: outer */
    do {
        p[7] = n;
        CLEAR(p);
        p[6] = n;
    } while (p[5] < n);
}
"""
FACT = '[[loop]]\nfunction = "f"\n{} = {}\nmax = 4\nbecause = "it is so"\nsha256 = "{}"\n'


def test_the_bound_of_a_loop_in_a_macro_by_the_fact_about_the_loop_around_it_is_not_checked(
    tmp_path, monkeypatch, capsys
):
    """Both say 4, so that all numbers are right: what is told of the outer loop does not hold of the inner one."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "guest.c").write_text(SOURCE)
    (tmp_path / "firmware.elf").write_bytes(image_of(SOURCE, load_target("cortex-m4"), ".c").elf)
    offset = "0x0"
    by_text, by_code = index_sources({"guest.c": SOURCE}).function("f").sha256, "0" * 64
    for _ in range(3):  # the product tells the offset and the hash
        facts = (("label", '"outer"', by_text), ("offset", offset, by_code))
        (tmp_path / "facts.toml").write_text("".join(FACT.format(*one) for one in facts))
        code = main(["bound", "firmware.elf", "--entry", "f", "--facts", "facts.toml", "--json", "-q"])
        shown = capsys.readouterr()
        if code == 0:
            break
        by_code = (re.findall("now it is ([0-9a-f]{64})", shown.err) or [by_code])[0]
        offset = (re.findall(r"f\+(0x\w+)", shown.err) or [offset])[-1]
    assert code == 0, shown.err
    assert verified(tmp_path, json.loads(shown.out), capsys)[0] == 0
    code, text = verified(tmp_path, json.loads(shown.out.replace("facts.toml:7", "facts.toml:1")), capsys)
    assert code == 6
    assert f"speaks of the loop f+{offset}, and not of one within it on the same line" in text


def checked_in_part(source, tmp_path, capsys):
    """The bound of ``f`` in ``source``, and what `verify` says of it."""
    (tmp_path / "guest.c").write_text(source)
    (tmp_path / "firmware.elf").write_bytes(image_of(source, load_target("cortex-m4"), ".c").elf)
    assert main(["bound", "firmware.elf", "--entry", "f", "--source", ".", "--json", "-q"]) == 0
    document = json.loads(capsys.readouterr().out)
    code, text = verified(tmp_path, document, capsys, "--source", ".")
    assert code == 6
    return document, text


def test_how_often_the_sources_call_a_function_only_the_result_says(tmp_path, monkeypatch, capsys):
    """Pragmas of several loops make that number; of a number that its author makes up, each bound would follow."""
    monkeypatch.chdir(tmp_path)
    nothing = "wcet_probe.analyzer.facts.binding.match_loops"
    monkeypatch.setattr(nothing, lambda sites, _: dict.fromkeys(site.header_address for site in sites))
    monkeypatch.setattr("wcet_probe.analyzer.facts.binding.joined_loops", lambda *_: {})
    source = NESTED.replace("WORK", "")
    document, text = checked_in_part(source, tmp_path, capsys)
    assert "calls add, in all 13 times" in text
    document["bound"]["flow_claims"][0]["where"] = "guest.c:1"
    assert verified(tmp_path, document, capsys, "--source", ".")[0] not in {0, 6}


HIDDEN = {
    "CLEAR(p);": {2},
    "if (x)\n    INDIRECT(p);\nf(p);": {3},
    "again:\n    x++;\nif (x)\n    goto again;": {2, 3, 4, 5},
    "UNKNOWN(p);\nunknown(p);": {2},
    "each_of(p) {\n    f(p);\n}": {2, 3, 4},
    'asm("1: b 1b");\nf(p);': {2},
    "for (;;) f(p);": {2},
    "do { f(p); } while (x);": {2},
}
"""By what stands in a loop from line 2 on: the lines that may be of a loop in it."""


@pytest.mark.parametrize("body", HIDDEN)
def test_lines_of_macros_jumps_back_assembly_and_loops_beside_are_of_loops_within(body):
    last = 3 + body.count("\n")
    text = f"void g(int x) {{ while (x) {{\n{body}\nf(x); }}\n}}\n{MACRO}#define INDIRECT(q) CLEAR(q)\n"
    asserted = read_asserted([], {"g.c": text})
    outer = loop_behind(asserted, "g.c", 1)
    assert outer.last_line == last
    apart = {line for line in range(1, last + 1) if are_told_apart(asserted, outer, [("g.c", line)])}
    assert apart == set(range(1, last + 1)) - HIDDEN[body]


def test_calls_attributes_and_jumps_ahead_hide_no_loop():
    text = """#define ONCE(x) do { f(x); } while (0)
    __attribute__((noinline)) int g(int x) { if (f(x)) goto out; ONCE(x); switch (x) { default: f(x); }
        out: return sizeof(x); }
    int h(int x) { goto out; while (x) x = f(x); out: return x; }\n"""
    assert not hidden_loops(read_asserted([], {"g.c": text}), "g.c")


def test_that_rounds_are_iterations_of_several_loops_only_the_result_says(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    nothing = "wcet_probe.analyzer.facts.binding.match_loops"
    monkeypatch.setattr(nothing, lambda sites, _: dict.fromkeys(site.header_address for site in sites))
    source = NESTED.replace("WORK", "").replace("void add", "unsigned add").replace("sum += k;", "return sum += k;")
    document, text = checked_in_part(source, tmp_path, capsys)
    assert "are iterations of several loops, 24 in all" in text  # 3 and a test, each with 4 and a test
    smaller = json.loads(json.dumps(document).replace("allow 24", "allow 23"))
    assert verified(tmp_path, smaller, capsys, "--source", ".")[0] not in {0, 6}
