"""Reports hold bounds against their binaries where these are at hand, refuse what does not hold, else say so first."""

import json
from hashlib import sha256

import pytest

from tests.certificate.forgeries import sealed
from tests.results import result
from tests.support import images_dir
from wcet_probe.build.program import load_program
from wcet_probe.catalog.lookup import load_allocator, load_target
from wcet_probe.cli import main
from wcet_probe.errors import UsageError, VerificationError
from wcet_probe.evidence.reported import checked_against_code

FULL, NONE = "Checked in full against the code: 1 bound", "Arithmetic only, as no binary was there"


@pytest.fixture
def report(monkeypatch, tmp_path, capsys):
    """Report a document; the exit code, the page without the places where long words break, and stderr."""
    monkeypatch.setenv("WCET_PROBE_CACHE_DIR", str(images_dir()))
    monkeypatch.chdir(tmp_path)

    def run(document, *options):
        (tmp_path / "it.json").write_text(json.dumps(document))
        code = main(["report", "it.json", "-q", "-o", "out", *map(str, options)])
        page = tmp_path / "out/report.html"
        text = page.read_text("utf-8").replace("<wbr>", "") if page.exists() else ""
        return code, text.partition("<nav")[0], text, capsys.readouterr().err

    return run


def checked(document, **options):
    return checked_against_code([document], images_dir(), **options)


def test_the_first_page_says_that_a_bound_was_checked_in_full(report):
    code, first_page, page, _ = report(result("tlsf"))
    assert code == 0
    assert FULL in first_page
    assert "it was checked in full against the code" in page


def one_node(document):
    bound = document["bound"]
    for place, text in enumerate(bound["certificates"]):
        most = 112
        lines = text.split("\n")
        head = [line for line in lines if line.startswith(("image", "entry-function", "target", "unit"))]
        name, address = next(line.split()[1:3] for line in lines if line.startswith("node "))
        graph = [f"bound {most}", f"optimum {most}", f"node {name} {address} {most}", f"entry {name}", f"exit {name} 0"]
        counts = [f"dual enter {most}", "count enter 1", f"count leave:{name} 1", ""]
        bound["certificates"][place] = "\n".join(["wcet-probe certificate 1", *head, *graph, *counts])
    bound.update(instructions=112, cycles=112, loops=[])
    observed = {"instructions": 112, "cycles": 112}
    document["observed"] |= observed
    for one in document["witnesses"].values():
        one.update(observed, value=112)
    document["slack"] = {"instructions": 0, "cycles": 0}


@pytest.mark.parametrize(
    ("forge", "words"),
    [
        (one_node, "the graph lacks the edge"),
        (lambda one: one["bound"].update(assumptions=[]), "used and not listed"),
        (lambda one: one["state"].update(candidates=[]), "the candidates are not those of the scenario"),
        (lambda one: one.update(command="wcet-probe something else"), "the command is not that of the question"),
        (lambda one: one["state"].update(why=["Nothing is slower."]), "the state or its reason is described otherwise"),
        (lambda one: one["bound"].update(worst_path=[]), "the worst_path that is shown is not that of the certificate"),
    ],
)
def test_what_its_code_contradicts_is_not_reported(report, forge, words):
    document = result("tlsf")
    forge(document)
    code, _, page, err = report(sealed(document))
    assert (code, page, err.count("\n")) == (1, "", 1)
    assert words in err


def test_without_its_binary_the_first_page_says_so_and_the_claim_too(report):
    document = result("tlsf")
    document["request"]["compiler"] = "clang-19"
    code, first_page, page, _ = report(document)
    assert code == 0
    assert NONE in first_page
    assert "its arithmetic alone was checked" in page


def test_no_compiler_that_a_document_names_is_run(tmp_path, report):
    ran = tmp_path / "ran"
    command = tmp_path / "cc"
    command.write_text(f"#!/bin/sh\ntouch {ran}\n")
    command.chmod(0o755)
    document = result("tlsf")
    document["request"]["compiler"] = str(command)
    assert report(document)[0] == 0
    assert not ran.exists()
    document = result("tlsf")
    document["allocator"] = f"{tmp_path}/own"
    assert checked(document) == (None,)


def test_another_hash_is_another_binary():
    document = result("tlsf")
    document["image"]["sha256"] = "0" * 64
    assert checked(document) == (None,)


def test_a_binary_that_is_given_is_taken(tmp_path):
    document = result("tlsf")
    elf = load_program(load_allocator("tlsf"), load_target("mpc603e"), "zig", images_dir()).image.elf
    document["request"]["compiler"] = "clang-19"
    assert sha256(elf).hexdigest() == document["image"]["sha256"]
    file = tmp_path / "tlsf.elf"
    file.write_bytes(elf)
    with pytest.raises(VerificationError, match="the command is not that of the question"):
        checked(document, images=[file])
    assert checked(result("tlsf"), images=[file]) == ((),)
    file.write_bytes(elf + b"1")
    with pytest.raises(UsageError, match="no result is about"):
        checked(document, images=[file])


def test_what_the_checker_cannot_see_is_named(monkeypatch):
    from wcet_probe.certificate.facts.findings import OPEN, Finding
    from wcet_probe.evidence import reported

    class Found:
        findings = (Finding("costs", OPEN, "a node"), Finding("code", "ok", ""), Finding("costs", OPEN, "two"))

    monkeypatch.setattr(reported, "check_file_result", lambda *_, **__: (Found, ()))
    assert checked(result("tlsf")) == (("costs",),)


def test_a_bound_in_part_says_so_on_the_first_page(report, monkeypatch):
    monkeypatch.setattr("wcet_probe.evidence.reported.checked_against_code", lambda *_, **__: (("costs", "loops"),))
    _, first_page, page, _ = report(result("tlsf"))
    assert "Checked in part against the code: 1 bound" in first_page
    assert "but for: costs; loops" in page


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--image", "x.elf"), "--image belongs to saved results"),
        (("--source", "."), "--facts and --source go with --image"),
    ],
)
def test_options_of_saved_results_do_not_go_with_a_run(options, words, capsys, tmp_path):
    assert main(["report", "tlsf", *options, "-o", str(tmp_path / "out")]) == 2
    assert words in capsys.readouterr().err
