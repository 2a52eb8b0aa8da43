from pathlib import Path

import pytest

from wcet_probe.config import CACHE_DIR_VARIABLE, Config, cache_dir, load_config
from wcet_probe.errors import UsageError


def write(file, text):
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, "utf-8")


def test_nothing_is_configured_where_there_is_no_file(tmp_path):
    assert load_config(tmp_path) == Config()


def test_the_file_of_the_nearest_folder_upwards_counts(tmp_path):
    write(tmp_path / "wcet-probe.toml", 'cc = "clang"\ntarget = "mpc603e"\nheap = "64K"\ncache-dir = "kept"\n')
    deep = tmp_path / "a" / "b"
    deep.mkdir(parents=True)
    assert load_config(deep) == Config("clang", tmp_path / "kept", "mpc603e", 65536)
    write(tmp_path / "a" / "wcet-probe.toml", "heap = 4096\n")
    assert load_config(deep) == Config(heap_bytes=4096)


def test_pyproject_counts_where_it_has_the_table(tmp_path):
    write(tmp_path / "wcet-probe.toml", 'target = "far"\n')
    write(tmp_path / "a" / "pyproject.toml", "[tool.other]\n")
    assert load_config(tmp_path / "a").target == "far"
    write(tmp_path / "a" / "pyproject.toml", '[tool.wcet-probe]\ntarget = "near"\n')
    assert load_config(tmp_path / "a").target == "near"
    write(tmp_path / "a" / "wcet-probe.toml", 'target = "nearest"\n')
    assert load_config(tmp_path / "a").target == "nearest"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('targt = "x"', "'targt': did you mean 'target'?"),
        ("target = 4", "target must be a text in quotation marks, not 4."),
        ('cc = ""', "cc must be a text in quotation marks, not ''."),
        ("heap = true", "heap must be a text in quotation marks, not True."),
        ("heap = 0", "a size of 0 holds nothing"),
        ('heap = "4 pages"', "'4 pages' is no size in bytes"),
        ("heap = ", "is no valid TOML"),
    ],
)
def test_a_bad_file_is_one_usage_error(tmp_path, text, sentence):
    write(tmp_path / "wcet-probe.toml", text)
    with pytest.raises(UsageError) as error:
        load_config(tmp_path)
    assert sentence in str(error.value)


def test_bytes_that_are_no_text_and_tables_that_are_none(tmp_path):
    (tmp_path / "wcet-probe.toml").write_bytes(b"\xff")
    with pytest.raises(UsageError, match="no valid TOML"):
        load_config(tmp_path)
    write(tmp_path / "a" / "pyproject.toml", "[tool]\nwcet-probe = 4\n")
    with pytest.raises(UsageError, match="must be a table"):
        load_config(tmp_path / "a")


def test_the_cache_folder_is_of_the_environment_then_the_file_then_the_user(monkeypatch):
    config = Config(cache_dir=Path("/from/file"))
    monkeypatch.setenv(CACHE_DIR_VARIABLE, "/from/environment")
    assert cache_dir(config) == Path("/from/environment")
    monkeypatch.setenv(CACHE_DIR_VARIABLE, "")
    assert cache_dir(config) == Path("/from/file")
    monkeypatch.setenv("XDG_CACHE_HOME", "/from/user")
    assert cache_dir(Config()) == Path("/from/user/wcet-probe")
