"""Bad input and bad luck: one sentence with the remedy on stderr, nothing on stdout, the documented exit code.

Tests: cli.app, errors.
"""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from wcet_probe.cli import app
from wcet_probe.errors import BuildError, ContradictionError, UsageError

RUN = ("toyfit", "--target", "toy-cached")
PACKAGE = Path(app.__file__).absolute().parents[1]

BAD_INPUT = [
    (("toyfti",), "unknown allocator or command 'toyfti': did you mean 'toyfit'?"),
    (("lst",), "unknown allocator or command 'lst': did you mean 'list'?"),
    (("budgeted:toyfit",), "unknown allocator 'budgeted:toyfit': did you mean 'toyfit'?"),
    (("toyfit", "--target", "toy-cashed"), "unknown target 'toy-cashed': did you mean 'toy-cached'?"),
    ((*RUN, "--scenario", "worst-aloc"), "unknown scenario of toyfit 'worst-aloc': did you mean 'worst-alloc'?"),
    ((*RUN, "--scenaro", "x"), "unknown option '--scenaro': did you mean '--scenario'?"),
    (("--heap", "4M", "toyfit"), "option --heap goes behind an allocator: wcet-probe tlsf --heap …"),
    (("--versio",), "unknown option '--versio': did you mean '--version'?"),
    ((*RUN, "--param", "bit=4"), "unknown parameter of toyfit 'bit': did you mean 'bits'?"),
    ((*RUN, "--param", "bits"), "parameter 'bits' is not NAME=NUMBER: see wcet-probe show ALLOCATOR for both."),
    ((*RUN, "--initial-cache", "dirt"), "unknown initial cache 'dirt': did you mean 'dirty'?"),
    ((*RUN, "--cache", "ways=3,policy=plr"), "unknown cache policy 'plr': did you mean 'plru'?"),
    ((*RUN, "--cache", "sise=4K"), "unknown cache setting 'sise': did you mean 'size'?"),
    ((*RUN, "--heap", "4 apples"), "'4 apples' is no size in bytes: write it like 4096, 4K, 4KiB or 4MiB."),
    ((*RUN, "--heap", "4GiB"), "size '4GiB' does not fit into 32-bit addresses: it must be below 4 GiB."),
    (("list", "target"), "unknown kind 'target': did you mean 'targets'?"),
    (("list",), "missing argument 'allocators|scenarios|targets|workloads'; see wcet-probe list --help."),
    (("show", "toyfot"), "unknown name 'toyfot': did you mean 'toyfit'?"),
    (("show", "targt", "toy-plain"), "unknown kind 'targt': did you mean 'target'?"),
    (("show", "target", "toyfit"), "unknown target 'toyfit': did you mean 'toy-plain'?"),
    (("show",), "show needs one name, of an allocator, a scenario or a target: see wcet-probe show --help."),
    ((*RUN, "--why", "--no-bound"), "--why explains a bound; leave --no-bound out."),
    ((*RUN, "--deduce"), "--deduce shows what --prove-facts asks for; give both."),
    (
        (*RUN, "--prove-facts", "--deduce"),
        "claims to be deduced are written for cama and half-fit, not for toyfit: leave --deduce out.",
    ),
    (("verify-sets", "toyfit", "--smt-lib", "questions"), "--smt-lib writes what --deduce shows; give both."),
    (("toyfit", "more"), "got unexpected extra argument (more); see wcet-probe toyfit --help."),
]


@pytest.mark.parametrize(("arguments", "sentence"), BAD_INPUT, ids=[" ".join(case[0]) for case in BAD_INPUT])
def test_bad_input(world, arguments, sentence):
    assert world.run(*arguments) == (2, "", f"wcet-probe: {sentence}\n")


@pytest.mark.parametrize("command", [["toyfit"], ["bound", "x.elf", "--entry", "f"]])
@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ('heap = "4 apples"', "heap: '4 apples' is no size in bytes: write it like 4096, 4K, 4KiB or 4MiB."),
        ('target = "toy-cashed"', "unknown target 'toy-cashed': did you mean 'toy-cached'?"),
    ],
)
def test_a_bad_value_of_a_configuration_file_names_the_file(world, tmp_path, command, line, sentence):
    file = tmp_path / "wcet-probe.toml"
    file.write_text(line)
    assert world.run(*command) == (2, "", f"wcet-probe: {file}: {sentence}\n")


def test_a_compiler_of_a_configuration_file_names_the_file(world, tmp_path):
    file = tmp_path / "wcet-probe.toml"
    file.write_text('cc = "clang-1"')
    world.fail_with(BuildError("no compiler; use --cc zig."))
    assert world.run(*RUN) == (1, "", f"wcet-probe: {file}: cc: no compiler; use --cc zig.\n")
    assert world.run(*RUN, "--cc", "gcc-1") == (1, "", "wcet-probe: no compiler; use --cc zig.\n")


def test_seed_out_of_range(world):
    code, out, err = world.run(*RUN, "--seed", "-1")
    assert (code, out) == (2, "")
    assert err.startswith("wcet-probe: invalid value for '--seed'")
    assert err.endswith("; see wcet-probe toyfit --help.\n")


@pytest.mark.parametrize(
    ("error", "code", "sentence"),
    [
        (UsageError("the heap is too small; give at least 1 KiB."), 2, "the heap is too small; give at least 1 KiB."),
        (BuildError("no compiler; use --cc zig."), 1, "no compiler; use --cc zig."),
        (ContradictionError("the engines disagree."), 5, "the engines disagree."),
        (KeyboardInterrupt(), 130, "interrupted; nothing was written."),
        (
            OSError(errno.ENOSPC, "No space", "/a"),
            1,
            "No space (/a); free some space, or choose another cache folder with WCET_PROBE_CACHE_DIR.",
        ),
        (
            OSError(errno.EROFS, "Read-only", "/a"),
            1,
            "Read-only (/a); check its permissions, or choose another cache folder with WCET_PROBE_CACHE_DIR.",
        ),
        (
            FileNotFoundError(errno.ENOENT, "No such file or directory", "/a/b"),
            1,
            (
                "no such file or folder (/a/b): it was removed meanwhile, or its folder is not there; make that, or "
                "choose another cache folder with WCET_PROBE_CACHE_DIR."
            ),
        ),
        *(
            (
                FileNotFoundError(errno.ENOENT, "No such file or directory", str(own / "a.c")),
                1,
                f"{own}/a.c is missing, which is a part of wcet-probe: the installation is broken; install it again.",
            )
            for own in (PACKAGE, (PACKAGE / "targets").resolve(), Path(sys.prefix))
        ),
        (
            ZeroDivisionError("by zero"),
            1,
            "a bug of wcet-probe (ZeroDivisionError: by zero); run again with -v for the traceback, and report it.",
        ),
    ],
    ids=lambda value: type(value).__name__,
)
def test_bad_luck(world, monkeypatch, error, code, sentence):
    monkeypatch.setattr("wcet_probe.cli.streams.close_quietly", lambda: None)
    world.fail_with(error)
    found, out, err = world.run(*RUN)
    assert (found, out) == (code, "")
    assert err.strip() == f"wcet-probe: {sentence}"


def test_one_failure_of_several_prints_no_result(world, monkeypatch):
    from wcet_probe.answer.witness import probe

    def observe(request, progress, *, proving):
        if request.heap_bytes == 8:
            raise UsageError("a heap of 8 bytes is too small.")
        return world.observe(request, progress, proving=proving)

    monkeypatch.setattr(probe, "observe", observe)
    assert world.run(*RUN, "--heap", "4M", "--heap", "8")[:2] == (2, "")


def test_traceback_only_when_asked_for(world):
    world.fail_with(ZeroDivisionError("division by zero"))
    assert "Traceback" not in world.run(*RUN)[2]
    assert "Traceback" in world.run(*RUN, "-v")[2]


def _shell(command):
    program = "from wcet_probe.cli import main; import sys; sys.exit(main())"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    line = command.replace("wcet-probe", f'"{sys.executable}" -c "{program}"')
    return subprocess.run(["/bin/bash", "-c", line], capture_output=True, text=True, check=False, env=environment)


@pytest.mark.parametrize("option", ["", "--json"])
def test_broken_pipe_is_quiet(option):
    done = _shell(f"(sleep 1; wcet-probe show cortex-m4 {option}; echo $? >&2) | true")
    assert done.stderr == "141\n"


def test_a_help_page_whose_reader_left_is_no_failure():
    assert _shell("(sleep 1; wcet-probe --help; echo $? >&2) | true").stderr == "141\n"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")  # noqa: PTH110  (a device)
@pytest.mark.parametrize("option", ["", "--json"])
def test_full_disk_is_one_sentence(option):
    done = _shell(f"wcet-probe list targets {option} >/dev/full")
    assert done.returncode == 1
    assert done.stderr.startswith("wcet-probe: No space left on device; check the place that the output goes to")
    assert done.stderr.count("\n") == 1
