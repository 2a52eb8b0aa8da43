"""Files are written whole or not at all."""

import os
import threading
from pathlib import Path

import pytest

from wcet_probe.errors import WcetProbeError
from wcet_probe.output_files import see_to_write, write_whole


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


def test_a_link_stays_and_what_it_leads_to_is_written(tmp_path):
    file, link = tmp_path / "folder" / "file", tmp_path / "link"
    link.symlink_to(file)
    for text in ("new", "newer"):
        write_whole(link, text)
        assert (link.is_symlink(), file.read_text()) == (True, text)


def test_what_is_no_regular_file_is_written_and_not_replaced(tmp_path):
    """Else root would have a file in the place of /dev/null."""
    pipe, read = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()), daemon=True)
    reader.start()
    write_whole(pipe, "text")
    reader.join(10)
    assert (read, pipe.is_fifo(), list(tmp_path.iterdir())) == (["text"], True, [pipe])


def test_a_full_device_is_told():
    with pytest.raises(WcetProbeError, match="cannot write /dev/full: No space left"):
        write_whole(Path("/dev/full"), "x")


def test_a_file_that_is_seen_to_stays_as_it_is(tmp_path):
    file = tmp_path / "new" / "file"
    see_to_write(file)
    assert list(file.parent.iterdir()) == []
    write_whole(file, "old")
    see_to_write(file)
    assert file.read_text() == "old"
    with pytest.raises(WcetProbeError, match="cannot write"):
        see_to_write(file / "below")
