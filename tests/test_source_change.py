"""A module whose source is changed in one process leaves nothing to others."""

import importlib
import sys

from tests.source_change import SourceChange, _Finder


def test_what_is_compiled_of_a_changed_source_is_not_kept(tmp_path, monkeypatch):
    # Given: a module, and a process that keeps compiled files
    (tmp_path / "changed_here.py").write_text("VALUE = 1\n", "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setattr(sys, "pycache_prefix", None)
    monkeypatch.setattr(sys, "meta_path", [_Finder(SourceChange("changed_here", "= 1", "= 2")), *sys.meta_path])

    # When: it is imported with a change
    changed = importlib.import_module("changed_here")
    monkeypatch.delitem(sys.modules, "changed_here")

    # Then: the next one, who finds a source as old as before, compiles it as it is
    assert changed.VALUE == 2
    assert not list(tmp_path.rglob("*.pyc"))
