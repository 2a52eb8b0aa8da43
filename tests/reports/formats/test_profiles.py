"""Paths as profiles: costs that add up, calls with their callees, files that other tools read."""

import json
import re
import shutil
import subprocess

import pytest

from tests.results import result
from wcet_probe.cli import main
from wcet_probe.errors import UsageError
from wcet_probe.reports.formats.document import dumps, results_document
from wcet_probe.reports.formats.profiles import PATHS, callgrind, collapsed, profile, speedscope

CASES = [("tlsf", "mpc603e"), ("cama", "cortex-m4"), ("best-fit", "arm926ej-s"), ("budgeted:tlsf", "cortex-m4")]


def expected(document, path):
    """Instructions, and the weight that speedscope and stacks have: cycles or instructions."""
    if path == "observed":
        return (document["observed"]["instructions"],) * 2
    if path == "worst":
        return (document["bound"]["instructions"],) * 2
    blocks = document["bound"]["worst_path_cycles"]
    return sum(block["instructions"] * block["executions"] for block in blocks), document["bound"]["cycles"]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("case", CASES)
def test_every_format_adds_up_to_the_document(case, path):
    document = result(*case)
    found = profile(document, path)
    instructions, weight = expected(document, path)
    totals = re.search(r"^totals: (\d+)(?: (\d+))?$", callgrind(found), re.MULTILINE)
    assert (int(totals[1]), int(totals[2] or totals[1])) == (instructions, weight)
    assert sum(int(line.rsplit(" ", 1)[1]) for line in collapsed(found).splitlines()) == weight
    (scoped,) = json.loads(speedscope(found))["profiles"]
    assert sum(scoped["weights"]) == scoped["endValue"] == weight
    assert len(scoped["weights"]) == len(scoped["samples"])


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("case", CASES)
def test_callgrind_annotate_reads_it(case, path, tmp_path):
    program = shutil.which("callgrind_annotate")
    if program is None:
        pytest.skip("callgrind_annotate, of Valgrind, is not installed")
    document = result(*case)
    file = tmp_path / "callgrind.out"
    file.write_text(callgrind(profile(document, path)))
    instructions, _ = expected(document, path)
    texts = [
        subprocess.run([program, *more, file], capture_output=True, text=True, check=True)
        for more in ([], ["--inclusive=yes", "--tree=both"])
    ]
    assert [text.stderr for text in texts] == ["", ""]
    for text in texts:
        assert re.search(r"^ *([\d,]+) .*PROGRAM TOTALS$", text.stdout, re.MULTILINE)[1] == f"{instructions:,}"
    if case[0] == "budgeted:tlsf":  # nothing is inlined into it from another file, which the tool would list apart
        assert re.search(r"^ *[\d,]+ \(100\.0%\) .*[*]  budgeted\.c:budgeted_malloc$", texts[1].stdout, re.MULTILINE)


def test_the_observed_calls_of_a_real_run():
    document = result("budgeted:tlsf", "cortex-m4")
    stacks = dict(line.rsplit(" ", 1) for line in collapsed(profile(document, "observed")).splitlines())
    assert set(stacks) == {"budgeted_malloc", "budgeted_malloc;tlsf_malloc"}


@pytest.mark.parametrize("case", [case for case in CASES if case[0] != "tlsf"])
def test_calls_of_the_worst_path_are_those_of_the_graph(case):
    document = result(*case)
    found = profile(document, "worst")
    counts = {}
    for (site, entry), count in found.calls.items():
        pair = found.places[site].function, found.places[entry].function
        counts[pair] = counts.get(pair, 0) + count
    calls = document["bound"]["graph"]["calls"]
    assert counts == {(c["caller"], c["callee"]): c["worst_executions"] for c in calls if c["worst_executions"]}


def made(code, path):
    """A document of 4-byte instructions, ``function control``, each a run; ``path`` goes through them by number."""
    rows = [line.split() for line in code]
    listing = [
        {
            "address": f"{0x100 + 4 * number:#010x}",
            "size_bytes": 4,
            "text": control,
            "control": control,
            "function": function,
            "file": "made.c",
            "line": number + 1,
        }
        for number, (function, control) in enumerate(rows)
    ]
    runs = [
        {"address": one["address"], "instructions": 1, "executions": path.count(n)} for n, one in enumerate(listing)
    ]
    return {
        "format": "wcet-probe-result",
        "tool": {"name": "wcet-probe", "version": "0"},
        "allocator": "made",
        "target": "up",
        "scenario": "here",
        "listing": listing,
        "observed": {"runs": runs, "path": path, "path_complete": True},
    }


CODE = [
    "outer next",
    "outer call",
    "outer call",
    "outer conditional-branch",
    "outer indirect",
    "middle branch",
    "inner conditional-branch",
    "inner indirect",
]


def stacks_of(path):
    return dict(line.rsplit(" ", 1) for line in collapsed(profile(made(CODE, path), "observed")).splitlines())


def test_a_tail_call_returns_for_its_caller():
    assert stacks_of([0, 1, 5, 6, 7, 2, 3, 4]) == {
        "outer": "5",
        "outer;middle": "1",
        "outer;middle;inner": "2",
    }


def test_a_call_whose_condition_fails_calls_nobody():
    assert stacks_of([0, 1, 2, 3, 4]) == {"outer": "5"}


def test_a_loop_whose_header_is_the_first_instruction_is_no_call():
    found = profile(made(CODE, [0, 1, 6, 6, 6, 7, 2, 3, 0, 1, 6, 7, 2, 3, 4]), "observed")
    assert dict(found.calls) == {(0x104, 0x118): 2}
    assert collapsed(found) == "outer 9\nouter;inner 6\n"


def test_a_recursive_call_returns_once_for_each_time():
    code = ["f conditional-branch", "f call", "f indirect"]
    found = profile(made(code, [0, 1, 0, 1, 0, 2, 2, 2]), "observed")
    assert collapsed(found) == "f 3\nf;f 3\nf;f;f 2\n"


def test_callgrind_tells_each_call_with_its_inclusive_cost():
    lines = callgrind(profile(made(CODE, [0, 1, 5, 6, 7, 2, 3, 4]), "observed")).splitlines()
    at = lines.index("cfn=middle")
    assert lines[at - 2 : at + 3] == ["0x104 2 1", "cfi=made.c", "cfn=middle", "calls=1 0x114 6", "0x104 2 3"]
    at = lines.index("cfn=inner")
    assert lines[at + 1 : at + 3] == ["calls=1 0x118 7", "0x114 6 2"]


def test_a_cut_path_has_all_costs_and_no_calls():
    document = made(CODE, [0, 1, 5, 6, 7, 2, 3, 4])
    document["observed"]["path_complete"] = False
    found = profile(document, "observed")
    assert collapsed(found) == "inner 2\nmiddle 1\nouter 5\n"
    assert "without calls" in callgrind(found)


def test_paths_that_are_not_there_are_refused():
    with pytest.raises(UsageError, match="no bound"):
        profile(result(prove=False), "worst")
    document = result()
    document["bound"]["worst_path"] = []
    with pytest.raises(UsageError, match="no path was found"):
        profile(document, "worst")


@pytest.fixture
def run(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def call(*words):
        code = main(["export", *words])
        streams = capsys.readouterr()
        return code, streams.out, streams.err

    return call


def test_help_fits_and_tells_examples_and_exit_codes(run):
    code, out, err = run("--help")
    assert (code, err) == (0, "")
    assert "Examples:" in out
    assert "Exit codes:" in out
    assert max(map(len, out.splitlines())) <= 80


def test_export_writes_a_file_or_stdout(run, tmp_path):
    (tmp_path / "one.json").write_text(dumps(result()))
    code, out, err = run("one.json", "--format", "collapsed")
    assert (code, out, err) == (0, f"tlsf_malloc {result()['observed']['instructions']}\n", "")
    assert run("one.json", "--format", "collapsed", "-o", "stacks.txt") == (0, "", "")
    assert (tmp_path / "stacks.txt").read_text() == out
    assert {file.name for file in tmp_path.iterdir()} == {"one.json", "stacks.txt"}


def test_export_of_a_bound_alone_is_its_worst_path(run, tmp_path):
    document = result()
    keys = {"tool", "target", "target_configuration", "image", "listing", "source_lines", "bound"}
    alone = {"format": "wcet-probe-bound", "version": 1, "sources": [], **{key: document[key] for key in keys}}
    (tmp_path / "bound.json").write_text(dumps(alone))
    code, out, _ = run("bound.json", "--format", "collapsed")
    assert (code, out) == (0, f"tlsf_malloc {document['bound']['instructions']}\n")
    assert run("bound.json", "--format", "collapsed", "--path", "observed")[0] == 2


def test_what_cannot_be_exported_is_one_sentence(run, tmp_path):
    document = result()
    (tmp_path / "one.json").write_text(dumps(document))
    (tmp_path / "two.json").write_text(dumps(results_document([document] * 2)))
    (tmp_path / "bad.json").write_text(dumps(document | {"heap_bytes": "many"}))
    (tmp_path / "no.json").write_text("[")
    cases = {
        ("one.json", "--format", "callgrnd"): "unknown format 'callgrnd': did you mean 'callgrind'?",
        ("one.json", "--format", "callgrind", "--path", "best"): "unknown path 'best'",
        ("two.json", "--format", "callgrind"): "two.json holds several results;",
        ("bad.json", "--format", "callgrind"): "document.heap_bytes must be integer;",
        ("no.json", "--format", "callgrind"): "no.json is no JSON (Expecting value: ",
        ("none.json", "--format", "callgrind"): "cannot read none.json: No such file or directory;",
    }
    for words, message in cases.items():
        code, out, err = run(*words)
        assert (code, out, err.count("\n")) == (2, "", 1), words
        assert err.startswith(f"wcet-probe: {message}"), err
    code, out, err = run("one.json", "--format", "callgrind", "-o", "one.json/where")
    assert (code, out) == (1, "")
    assert err.startswith("wcet-probe: cannot write one.json/where: "), err
