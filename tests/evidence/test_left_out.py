"""States whose block an own allocator's heap refuses are left out: what an audit makes of that.

Tests: evidence.checking, evidence.audit.
"""

from __future__ import annotations

import json

from tests.answer.studies.test_own_steps import BUMP, HEADER
from tests.answer.witness.test_bench import paged
from wcet_probe.cli import main
from wcet_probe.errors import ExitCode


def test_it_measures_that_they_are_refused_and_that_no_other_is_missing(tmp_path, monkeypatch, capsys):
    (tmp_path / "manifest.toml").write_text(HEADER, "utf-8")
    (tmp_path / "bump.c").write_text(paged(BUMP), "utf-8")
    (tmp_path / "wcet-probe.toml").write_text('allocators = ["."]\n', "utf-8")
    monkeypatch.chdir(tmp_path)
    assert main(["bump", "--scenario", "worst-free", "--heap", "16KiB", "--json", "-q"]) == ExitCode.OK
    document = json.loads(capsys.readouterr().out)
    assert main(["bump", "--scenario", "worst-free", "--heap", "16KiB", "-q"]) == ExitCode.OK
    refused = document["state"]["left_out"]
    assert f"; {len(refused)} more are none of this allocator" in " ".join(capsys.readouterr().out.split())
    for name in "rs":
        if name == "s":
            refused.insert(0, document["state"]["candidates"].pop(1)["variant"])
        (tmp_path / f"{name}.json").write_text(json.dumps(document), "utf-8")
        assert main(["pack", f"{name}.json", "-o", f"{name}.zip"]) == ExitCode.OK
    assert main(["audit", "r.zip"]) in (ExitCode.OK, ExitCode.CHECKED_IN_PART)
    assert "more states are said to be none of this allocator" in " ".join(capsys.readouterr().out.split())
    assert main(["audit", "s.zip"]) == ExitCode.FAILURE
    assert "is left out, and can be measured" in capsys.readouterr().err
    del document["state"]["left_out"]
    (tmp_path / "t.json").write_text(json.dumps(document), "utf-8")
    assert main(["pack", "t.json", "-o", "t.zip"]) == ExitCode.FAILURE
    assert "the states that are left out are others" in capsys.readouterr().err
