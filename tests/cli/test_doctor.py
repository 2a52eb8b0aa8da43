import json
import shutil
import sys

import pytest

from wcet_probe.cli import doctor


@pytest.fixture(autouse=True)
def fast(monkeypatch):
    """Nothing is run and nothing heavy imported; the native core loads."""
    monkeypatch.setattr(doctor, "_library", lambda distribution, _module: f"version of {distribution}")
    monkeypatch.setattr(doctor, "_packaged_compiler", lambda: "clang version 22")
    monkeypatch.setattr(doctor, "_native_core", lambda: "loads")


def checks(world, *, code):
    found, out, err = world.run("doctor", "--json")
    assert (found, err) == (code, "")
    doc = json.loads(out)
    assert (doc["format"], doc["version"]) == ("wcet-probe-doctor", 1)
    return {check["name"]: check for check in doc["checks"]}


def test_all_is_there(world, monkeypatch):
    monkeypatch.setenv("PATH", "")
    found = checks(world, code=0)
    assert found["unicorn"] == {"name": "unicorn", "status": "ok", "found": "version of unicorn", "remedy": ""}
    assert found["clang"]["status"] == "optional"


def test_a_line_a_check(world):
    code, out, err = world.run("doctor")
    assert (code, err) == (0, "")
    assert all(line.split()[0] in {"ok", "optional"} for line in out.splitlines())


def test_what_is_missing_has_a_remedy(world, monkeypatch):
    def absent():
        raise ModuleNotFoundError("wcet_probe.emu.native")

    monkeypatch.setattr(doctor, "_native_core", absent)
    core = checks(world, code=1)["native core"]
    assert (core["status"], core["found"]) == ("missing", "not found")
    assert core["remedy"].startswith("install wcet-probe again")


def test_a_cache_folder_that_cannot_be_written(world, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("WCET_PROBE_CACHE_DIR", str(tmp_path / "file" / "cache"))
    folder = checks(world, code=1)["cache folder"]
    assert folder["status"] == "missing"
    assert "WCET_PROBE_CACHE_DIR" in folder["remedy"]


def test_a_full_cache_folder(world, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(10 << 20, 6 << 20, 4 << 20))
    assert "has only 4 MiB free" in checks(world, code=1)["cache folder"]["found"]


def test_system_compilers_are_found_on_path(world, monkeypatch, tmp_path):
    for name in ("clang", "powerpc-linux-gnu-gcc"):
        (tmp_path / name).write_text("")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    found = checks(world, code=0)
    assert found["clang"]["found"] == str(tmp_path / "clang")
    assert found["powerpc-*-gcc"]["found"] == str(tmp_path / "powerpc-linux-gnu-gcc")


def test_an_old_python(world, monkeypatch):
    monkeypatch.setattr(sys, "version_info", (3, 10))
    assert checks(world, code=1)["Python"]["remedy"] == "install Python 3.11 or newer"
