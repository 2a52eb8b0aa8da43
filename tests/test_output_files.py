"""Files are written whole or not at all."""

import pytest

from wcet_probe.errors import WcetProbeError
from wcet_probe.output_files import write_whole


def test_text_and_bytes_are_written_and_folders_made(tmp_path):
    write_whole(tmp_path / "a" / "b", "é\n")
    write_whole(tmp_path / "c", b"\xff")
    assert (tmp_path / "a" / "b").read_bytes() == "é\n".encode()
    assert (tmp_path / "c").read_bytes() == b"\xff"


def test_a_file_that_cannot_be_written_stays_as_it_was(tmp_path, monkeypatch):
    file = tmp_path / "f"
    write_whole(file, "old")
    monkeypatch.setattr("pathlib.Path.replace", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left")))
    with pytest.raises(WcetProbeError, match=r"cannot write .*: No space left"):
        write_whole(file, "new")
    assert file.read_text() == "old"
    assert list(tmp_path.iterdir()) == [file]


def test_a_place_that_is_none_is_said(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("")
    for bad in (tmp_path / "folder", tmp_path / "file" / "f"):
        with pytest.raises(WcetProbeError, match="cannot write"):
            write_whole(bad, "x")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["file", "folder"]
