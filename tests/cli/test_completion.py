"""What a shell is offered, by click's own protocol; and by Bash itself, which splits words at colons."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from wcet_probe.catalog.lookup import allocator_names, target_names
from wcet_probe.cli.app import main
from wcet_probe.scenarios.lookup import scenario_names

PROGRAM = Path(sys.executable).with_name("wcet-probe")
HEAVY = ("rich", "unicorn", "capstone", "highspy", "numpy", "pypcode", "elftools", "jinja2", "typst")


@pytest.fixture
def offered(monkeypatch, capsys):
    """What is offered for the last of the words."""

    def complete(*words):
        monkeypatch.setenv("_WCET_PROBE_COMPLETE", "bash_complete")
        monkeypatch.setenv("COMP_WORDS", "\n".join(("wcet-probe", *words)))
        monkeypatch.setenv("COMP_CWORD", str(len(words)))
        with pytest.raises(SystemExit):
            main([])
        told = capsys.readouterr()
        assert not told.err
        return told.out.split()

    return complete


def plain(names):
    return [f"plain,{name}" for name in names]


def test_commands_and_allocators_are_completed(offered):
    everything = offered("")
    assert {*plain(("bound", "growth", "completion"))} <= {*everything}
    assert {*plain(allocator_names())} <= {*everything}
    assert offered("tls") == ["plain,tlsf"]
    assert offered("gro") == ["plain,growth"]


@pytest.mark.parametrize(
    "words", [("tlsf",), ("growth", "tlsf"), ("matrix",), ("bound", "fw.elf"), ("tlsf", "--heap", "nonsense")]
)
def test_targets_are_completed(offered, words):
    assert offered(*words, "--target", "mpc") == plain(name for name in target_names() if name.startswith("mpc"))


def test_scenarios_are_those_of_the_allocator(offered):
    assert offered("tlsf", "--scenario", "") == plain(scenario_names("tlsf"))
    assert offered("growth", "cama", "--scenario", "") == plain(scenario_names("cama"))
    assert {*offered("matrix", "--scenario", "")} >= {*plain(scenario_names("tlsf"))}


def test_options_and_shells_are_completed(offered):
    assert offered("tlsf", "--init") == ["plain,--initial-cache"]
    assert offered("budgeted", ":", "tlsf", "--init") == ["plain,--initial-cache"]
    assert offered("completion", "") == plain(("bash", "zsh", "fish"))
    assert offered("matrix", "--allocator", "half") == ["plain,half-fit"]


def test_a_wrong_line_offers_nothing(offered):
    assert offered("tslf", "--tar") == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_script_for_each_shell(capsys, shell):
    assert main(["completion", shell]) == 0
    assert f"_WCET_PROBE_COMPLETE={shell}_complete" in capsys.readouterr().out


def test_an_unknown_shell_is_suggested(capsys):
    assert main(["completion", "bsh"]) == 2
    assert capsys.readouterr().err == "wcet-probe: unknown shell 'bsh': did you mean 'bash'?\n"


@pytest.mark.skipif(not shutil.which("bash") or not PROGRAM.is_file(), reason="no bash, or no installed wcet-probe")
@pytest.mark.parametrize(
    ("words", "reply"),
    [
        (["tlsf", "--target", "mpc6"], "mpc603e"),
        (["budgeted", ":", "tlsf", "--initial"], "--initial-cache"),
    ],
)
def test_the_script_works_in_bash(capsys, words, reply):
    main(["completion", "bash"])
    script = capsys.readouterr().out
    line = " ".join(f"'{word}'" for word in ("wcet-probe", *words))
    call = f'COMP_WORDS=({line}); COMP_CWORD={len(words)}; _wcet_probe_completion "{PROGRAM}"; echo "${{COMPREPLY[@]}}"'
    done = subprocess.run(
        [str(shutil.which("bash")), "--norc", "-c", f"{script}\n{call}"], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"{reply}\n"


def test_completing_loads_nothing_heavy():
    program = (
        "import sys\n"
        "from wcet_probe.cli import main\n"
        "try: main([])\n"
        f"except SystemExit: print([name for name in sys.modules if name.split('.')[0] in {HEAVY!r}])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env={
            "_WCET_PROBE_COMPLETE": "bash_complete",
            "COMP_WORDS": "wcet-probe\ntlsf\n--scenario\nw",
            "COMP_CWORD": "3",
        },
    )
    assert done.stdout.splitlines()[-1] == "[]"
