"""A document that somebody gave is read to its end, and refused where it has none."""

from pathlib import Path

import pytest

from wcet_probe import json_text
from wcet_probe.errors import UsageError
from wcet_probe.json_text import read_json


def test_a_document_without_an_end_is_refused(monkeypatch):
    monkeypatch.setattr(json_text, "MOST_MIB", 2)
    with pytest.raises(UsageError, match="/dev/zero has more than 2 MiB, or no end; give what --json printed"):
        read_json(Path("/dev/zero"))


def test_a_document_of_many_parts_is_read_whole(tmp_path, monkeypatch):
    monkeypatch.setattr(json_text, "MOST_MIB", 4)
    file = tmp_path / "long.json"
    file.write_text(f'["{"x" * (3 << 20)}"]')
    assert read_json(file) == ["x" * (3 << 20)]
