"""What an allocator of one's own is called: in the configuration, beside a folder, in a manifest that is written.

Tests: catalog.lookup, catalog.own_allocator, catalog.new_manifest.
"""

import json

from tests.catalog.test_own_allocator import EXAMPLE, ROOT
from wcet_probe.catalog.lookup import load_allocator
from wcet_probe.catalog.own_allocator import read_own_name
from wcet_probe.cli.app import main
from wcet_probe.errors import ExitCode


def test_the_configuration_gives_a_name_that_every_command_knows(tmp_path, monkeypatch, capsys):
    (tmp_path / "wcet-probe.toml").write_text(f'allocators = ["{EXAMPLE}"]\n', "utf-8")
    monkeypatch.chdir(tmp_path)
    assert main(["pool", "--heap", "2KiB", "--json", "-q"]) == ExitCode.OK
    result = capsys.readouterr().out
    assert json.loads(result)["allocator"] == "pool"
    assert str(ROOT) not in result
    (tmp_path / "r.json").write_text(result, "utf-8")
    assert main(["pack", "r.json", "-o", "r.zip", "-q"]) == ExitCode.OK
    assert main(["audit", "r.zip", "-q"]) in (ExitCode.OK, ExitCode.CHECKED_IN_PART)
    assert main(["growth", "pool", "--heap", "1KiB", "--heap", "2KiB", "--heap", "4KiB", "-q"]) == ExitCode.OK
    assert main(["matrix", "--allocator", "pool", "--allocator", "tlsf", "--heap", "2KiB", "-q"]) == ExitCode.OK
    assert main(["show", "pool"]) == ExitCode.OK
    assert "claimed O(H): holds" in capsys.readouterr().out
    (tmp_path / "wcet-probe.toml").write_text("allocators = 3\n", "utf-8")
    assert main(["pool"]) == ExitCode.USAGE
    assert "allocators must be an array of folders" in capsys.readouterr().err


def test_a_name_that_no_configuration_lists_is_told_what_to_do(tmp_path, monkeypatch, capsys):
    """A folder of that name is there, as where a result of it is packed; or it is not."""
    monkeypatch.chdir(tmp_path)
    assert main([f"{EXAMPLE}/", "--heap", "2KiB", "--json", "-q"]) == ExitCode.OK
    (tmp_path / "r.json").write_text(capsys.readouterr().out, "utf-8")
    assert main(["pack", "r.json", "-o", "r.zip", "-q"]) == ExitCode.USAGE
    assert "known by its name where wcet-probe.toml lists its folder" in capsys.readouterr().err
    (tmp_path / "pool").symlink_to(EXAMPLE)
    for asked in (["pack", "r.json", "-o", "r.zip", "-q"], ["pool"]):
        assert main(asked) == ExitCode.USAGE
        told = capsys.readouterr().err
        assert "told by a slash, pool/" in told
        assert 'allocators = ["pool"] into wcet-probe.toml' in told
    (tmp_path / "wcet-probe.toml").write_text('allocators = ["pool"]\n', "utf-8")
    assert main(["pack", "r.json", "-o", "r.zip", "-q"]) == ExitCode.OK


def test_new_allocator_writes_a_manifest_that_the_tool_reads(tmp_path, capsys):
    home = tmp_path / "My Pool"
    home.mkdir()
    (home / "mine.c").write_text("", "utf-8")
    assert main(["new-allocator", str(home)]) == ExitCode.OK
    assert capsys.readouterr().out.endswith(f": wcet-probe new-allocator {home}\n")
    assert load_allocator(f"{home}/").name == "my-pool"
    taken = tmp_path / "tlsf"
    taken.mkdir()
    (taken / "tlsf.c").write_text("", "utf-8")
    (taken / "tlsf.h").write_text(
        "/* tlsf_malloc(...) */\ntlsf_t  tlsf_create(\n  void *mem);\nint tlsf_size(void);\n", "utf-8"
    )
    assert main(["new-allocator", str(taken)]) == ExitCode.OK
    assert read_own_name(taken) == "own-tlsf"
    assert "\n#   tlsf_t tlsf_create( void *mem);\n" in (taken / "manifest.toml").read_text("utf-8")
    assert "tlsf_size" not in (taken / "manifest.toml").read_text("utf-8")
    capsys.readouterr()
    assert main(["new-allocator", str(home), "-q"]) == ExitCode.FAILURE
    assert "my_pool_init" in capsys.readouterr().out
    assert main(["new-allocator", str(tmp_path / "nowhere")]) == ExitCode.USAGE
    assert main([f"{tmp_path}/nowhere/"]) == ExitCode.USAGE
    assert "write one with wcet-probe new-allocator" in capsys.readouterr().err
