"""The command, in a folder of its own and with the images of the tests."""

import pytest

from tests.support import images_dir
from wcet_probe.cli import main


@pytest.fixture
def call(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("WCET_PROBE_CACHE_DIR", str(images_dir()))
    monkeypatch.chdir(tmp_path)

    def run_command(*arguments):
        code = main(list(arguments))
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run_command
