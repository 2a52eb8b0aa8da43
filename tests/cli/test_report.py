"""``wcet-probe report``: what it writes, from runs and from saved results, and when it writes nothing."""

import json
import subprocess
import sys

import pytest

from tests.support import images_dir
from wcet_probe.cli import main

FILES = ("report.html", "report.pdf", "results.json")
RUN = ("tlsf", "--heap", "64K", "--scenario", "worst-alloc")


@pytest.fixture
def call(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("WCET_PROBE_CACHE_DIR", str(images_dir()))
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        code = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A folder with the report of one run."""
    folder = tmp_path_factory.mktemp("saved")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WCET_PROBE_CACHE_DIR", str(images_dir()))
        assert main(["report", *RUN, "-q", "-o", str(folder)]) == 0
    return folder


def edited(saved, path, change):
    """The saved results, the first of them changed."""
    document = json.loads((saved / "results.json").read_text("utf-8"))
    change(document["results"][0])
    path.write_text(json.dumps(document), "utf-8")
    return path


def test_a_run_writes_three_files_and_names_them(saved, call):
    assert sorted(path.name for path in saved.iterdir()) == sorted(FILES)
    assert (saved / "report.pdf").read_bytes().startswith(b"%PDF-")
    assert (saved / "report.html").read_text("utf-8").startswith("<!")
    code, out, err = call("report", saved / "results.json", "-o", "again")
    assert (code, err) == (0, "")
    assert out.split() == [f"again/{name}" for name in FILES]


def test_the_same_documents_give_the_same_bytes(saved, call, tmp_path):
    assert call("report", saved / "results.json", "-o", "again")[0] == 0
    for name in FILES:
        assert (tmp_path / "again" / name).read_bytes() == (saved / name).read_bytes()


def test_saved_results_need_no_solver(saved, tmp_path):
    engines = "{'highspy', 'ziglang'}"
    script = f"import sys; from wcet_probe.cli import main; print(main(sys.argv[1:]), sys.modules.keys() & {engines})"
    command = [sys.executable, "-c", script, "report", str(saved / "results.json"), "-o", str(tmp_path / "out")]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=tmp_path)
    assert done.stdout.splitlines()[-1] == "0 set()", done.stdout + done.stderr


def test_several_allocators_targets_and_scenarios_are_one_report(call, tmp_path):
    targets = ("--target", "cortex-m4", "--target", "cortex-m0plus")
    code, _, err = call("report", "first-fit", "half-fit", *targets, "--heap", "8K", "-o", "out")
    assert (code, err) == (0, "")
    results = json.loads((tmp_path / "out/results.json").read_text("utf-8"))["results"]
    found = [(one["allocator"], one["target"], one["scenario"]) for one in results]
    scenarios = ("worst-alloc", "worst-free")
    assert found == [
        (allocator, target, scenario)
        for allocator in ("first-fit", "half-fit")
        for target in targets[1::2]
        for scenario in scenarios
    ]


def test_a_bound_that_does_not_check_is_not_reported(saved, call, tmp_path):
    def change(result):
        result["bound"]["instructions"] += 1

    file = edited(saved, tmp_path / "changed.json", change)
    code, out, err = call("report", file, "-o", "out")
    assert (code, out) == (1, "")
    assert "not verified" in err
    assert not (tmp_path / "out").exists()


def test_a_missing_bound_is_reported_and_told_by_the_exit_code(saved, call, tmp_path):
    def change(result):
        result |= {"bound": None, "slack": None, "gap": None, "formula": None, "verdict": "UNBOUNDED"}
        result["no_bound"] = "the loop at find+0x10 has no bound"

    file = edited(saved, tmp_path / "unbounded.json", change)
    code, _, err = call("report", file, "-o", "out")
    assert (code, err) == (4, "")
    assert "the loop at find+0x10 has no bound" in (tmp_path / "out/report.html").read_text("utf-8")


def test_against_an_earlier_report(saved, call, tmp_path):
    def change(result):
        result["bound"]["cycles"] += 11

    file = edited(saved, tmp_path / "earlier.json", change)
    assert call("report", saved / "results.json", "--against", file, "-o", "out")[0] == 0
    page = (tmp_path / "out/report.html").read_text("utf-8")
    assert "Numbers that moved" in page
    assert "-11" in page


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("tlsf.json", "-o", "out"), "cannot read tlsf.json"),
        (("{saved}", "tlsf", "-o", "out"), "tlsf is no saved result like the others"),
        (("{saved}", "--heap", "64K", "-o", "out"), "--heap belongs to a run"),
        (("{saved}", "--cross-check", "-o", "out"), "--cross-check belongs to a run"),
        (("tslf", "-o", "out"), "did you mean 'tlsf'?"),
        (("tlsf",), "'-o'"),
        (("{damaged}", "-o", "out"), "a given document is damaged"),
        (("{saved}", "-o", "{saved}"), "cannot write to"),
    ],
)
def test_bad_input_is_one_sentence(saved, call, tmp_path, arguments, words):
    damaged = edited(saved, tmp_path / "damaged.json", lambda result: result.pop("state"))
    places = {"saved": saved / "results.json", "damaged": damaged}
    code, out, err = call("report", *(argument.format(**places) for argument in arguments))
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert words in err
    assert not (tmp_path / "out").exists()
