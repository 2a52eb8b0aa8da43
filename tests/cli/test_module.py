"""``wcet-probe facts --prove --certificate`` and ``wcet-probe verify`` of what it writes.

Tests: cli.facts, cli.verify, evidence.modules, answer.bounds.module_certificate.
"""

import json

import pytest

from tests.module_certificates import true_certificate
from tests.support import images_dir
from wcet_probe.answer.bounds import module_certificate
from wcet_probe.build.program import load_program
from wcet_probe.catalog.lookup import load_allocator, load_target
from wcet_probe.cli import main
from wcet_probe.errors import AnalysisError
from wcet_probe.reports.formats.bound_document import tool_section

PROVE = ("facts", "first-fit", "--prove", "--target", "mpc603e", "--heap", "5000")


@pytest.fixture
def run(capsys):
    def call(*words):
        code = main([*map(str, words), *(["-q"] if words[0] == "facts" else [])])
        return code, *capsys.readouterr()

    return call


@pytest.fixture
def certificate(run, tmp_path):
    code, out, err = run(*PROVE, "--certificate", tmp_path / "module.json")
    assert code == 0, err
    image = tmp_path / "module.json.elf"
    told, command = out.splitlines()[-2:]
    assert told == f"certificate {tmp_path / 'module.json'}: alignments of first-fit/facts.toml:19"
    assert command == f"it is checked by: wcet-probe verify {tmp_path / 'module.json'} --image {image}"
    program = load_program(load_allocator("first-fit"), load_target("mpc603e"), "zig", images_dir(), 5000)
    assert image.read_bytes() == program.image.elf
    image.rename(tmp_path / "first-fit.elf")
    return tmp_path / "module.json"


def test_a_certificate_is_checked_in_full_in_part_or_refused(run, certificate, tmp_path):
    image = tmp_path / "first-fit.elf"
    code, out, err = run("verify", certificate, "--image", image)
    assert code == 0, err
    assert "alignment of first-fit/facts.toml:19" in out
    document = json.loads(certificate.read_text())

    certificate.write_text(json.dumps({**document, "facts": []}))
    code, out, _ = run("verify", certificate, "--image", image)
    assert code == 6
    assert "not checked" in out

    certificate.write_text(json.dumps({**document, "block": "arena:16:0:o0 null:64:0:o0"}))
    code, _, err = run("verify", certificate, "--image", image)
    assert code == 1
    assert "what malloc returns" in err

    certificate.write_text(json.dumps({**document, "more": 1}))
    code, _, err = run("verify", certificate, "--image", image)
    assert code == 2

    certificate.write_text(json.dumps({**document, "cells": {"arena:0": 8}}))
    assert run("verify", certificate, "--image", image)[0] == 2


def written(file, name):
    """The module certificate of an allocator as it is, and its image beside."""
    program = load_program(load_allocator(name), load_target("mpc603e"), "zig", images_dir(), 5000)
    file.write_text(json.dumps({**true_certificate(program, 5000), "tool": tool_section()}))
    file.with_name(f"{file.name}.elf").write_bytes(program.image.elf)


def test_a_module_certificate_needs_its_image(run, tmp_path):
    written(tmp_path / "module.json", "first-fit")
    code, _, err = run("verify", tmp_path / "module.json")
    assert code == 2
    assert "--image" in err


@pytest.mark.parametrize("name", ["kingsley", pytest.param("quick-fit", marks=pytest.mark.slow)])
def test_what_the_rules_do_not_follow_gets_no_certificate(run, tmp_path, name, monkeypatch):
    """Of the code of quick-fit they do not; that of kingsley they do, so it is told that they did not."""

    def refused(*_):
        raise AnalysisError("where the store at f+0x4 goes is not known to the checker's rules.")

    if name == "kingsley":
        monkeypatch.setattr(module_certificate, "module_certificate", refused)
    file = tmp_path / "none.json"
    code, out, err = run("facts", name, "--prove", "--target", "arm926ej-s", "--heap", "5000", "--certificate", file)
    assert code == 4
    assert "proved, under the lemmas below" in out
    assert "is not known to the checker's rules" in err
    assert not file.exists()


@pytest.mark.parametrize("options", [("all", "--prove"), ("first-fit", "--entry", "malloc")])
def test_a_certificate_is_of_one_allocator_that_is_proved_by_induction(run, tmp_path, options):
    code, _, err = run("facts", *options, "--target", "mpc603e", "--certificate", tmp_path / "none.json")
    assert code == 2
    assert "--certificate" in err


def test_a_long_certificate_is_read(run, tmp_path):
    """Of quick-fit, of which malloc alone has 100,000 characters, and one fact of four is not told."""
    file = tmp_path / "quick-fit.json"
    written(file, "quick-fit")
    assert max(len(one["certificate"]) for one in json.loads(file.read_text())["operations"]) > 20_000
    code, out, err = run("verify", file, "--image", f"{file}.elf")
    assert code == 6, err
    assert out.count("alignment of quick-fit/facts.toml") == 4
