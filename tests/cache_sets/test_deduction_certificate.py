"""The certificate of a deduction: checked by either solver, and refused where it says anything else than what is so.

Tests: cache_sets.deduction_certificate, cache_sets.certificate_files.
"""

import json
import os
import threading
from copy import deepcopy
from dataclasses import replace
from functools import cache, partial

import pytest

from tests.analyzer.deduction.cama_builds import program
from tests.cache_sets.mutants import changed
from wcet_probe.analyzer.deduction.asked import asking_z3
from wcet_probe.cache_sets.certificate_files import CertificateFiles, certificate_files, deduced_by
from wcet_probe.cache_sets.deduction import deduce
from wcet_probe.cache_sets.deduction_certificate import checked, operations_of, with_certificate
from wcet_probe.cli import main
from wcet_probe.errors import UsageError, VerificationError

SMALL = ("caller", "free-small")


def deducing(own=None, operations=SMALL):
    return partial(_deduced, own or program(), operations)


def _deduced(own, operations, asked):
    return deduce(own, operations, asked=asked)


@cache
def certificate():
    parts, document = with_certificate(program(), deducing())
    return parts, json.dumps(document)


def document():
    return json.loads(certificate()[1])


@pytest.mark.parametrize("solver", ["z3", "cvc5"])
def test_what_is_checked_comes_to_the_same(solver, monkeypatch):
    monkeypatch.setattr("wcet_probe.analyzer.deduction.solver.Questions", None)  # nothing is searched for
    told = []
    parts = checked(program(), document(), deducing(), solver, lambda text, *_: told.append(text))
    own = [replace(one, questions=()) for one in parts]
    assert own == [replace(one, questions=()) for one in certificate()[0]]
    assert sum(one.shown for one in parts) == 111
    assert told[-1].startswith(f"asking {solver} what the certificate says to follow, 0 of 4")


def test_the_claims_are_carried():
    own = document()
    assert [one["name"] for one in own["claims"]][:3] == ["arena", "newest-area", "counts"]
    assert len(own["claims"]) == 30
    assert all("(assert " in one["formula"] for one in own["claims"])
    assert own["premises"][-1] == "arena-apart"


def first_shown(own, kind=list):
    """Where the first answer is that something follows from something: of an operation, a part, and its place."""
    for operation in own["operations"]:
        for part in operation["answers"]:
            for place, one in enumerate(part):
                if one and isinstance(one, kind):
                    return part, place
    raise AssertionError


def _without_an_answer(own):
    own["operations"][0]["answers"][0].pop()


def _with_an_answer_more(own):
    own["operations"][1]["answers"][0].append(None)


def _with_a_part_more(own):
    own["operations"][1]["answers"].append([])


def _without_a_part(own):
    own["operations"][1]["answers"] = []


def _without_a_way(own):
    own["operations"][1]["ways"].pop()


def _with_another_branch(own):
    own["operations"][1]["ways"][0][0][1] ^= True


def _without_an_obligation(own):
    own["operations"][1]["obligations"].pop()


def _shown_where_it_was_open(own):
    # what bits were asked first is not the case; it is said to follow
    part, place = first_shown(own, dict)
    part[place] = {"shown": not part[place]["shown"], "numbers": []}


def _with_too_few_formulas(own):
    part, place = first_shown(own)
    part[place] = part[place][1:]


def _with_another_formula(own):
    part, place = first_shown(own)
    part[place] = [part[place][0] ^ 1, *part[place][1:]]


def _with_a_formula_that_there_is_not(own):
    part, place = first_shown(own)
    part[place] = [100_000]


def _with_a_number_below_all(own):
    part, place = first_shown(own)
    part[place] = [-1]


def _with_another_claim(own):
    own["claims"][2]["formula"] = own["claims"][1]["formula"]


def _without_a_claim(own):
    own["claims"].pop()


def _of_another_binary(own):
    own["image_sha256"] = "0" * 64


def _with_fewer_premises(own):
    own["premises"].pop()


FORGERIES = {
    _without_an_answer: "of caller, part 1, question .* is another one: it is more",
    _with_an_answer_more: "of free-small, part 1, the certificate has an answer too many",
    _with_a_part_more: "of free-small the certificate has a part too many",
    _without_a_part: "of free-small, part 1, there are no answers for part 1",
    _without_a_way: "the ways of free-small are not those",
    _with_another_branch: "the ways of free-small are not those",
    _without_an_obligation: "the obligations of free-small are not those",
    _shown_where_it_was_open: "free-small",
    _with_too_few_formulas: "caller, part 1, question 1: it does not follow .* z3 finds values against it",
    _with_another_formula: "caller, part 1, question 1: it does not follow .* z3 finds values against it",
    _with_a_formula_that_there_is_not: "of caller, part 1, question 1 is another one: it is with .* formulas assumed",
    _with_a_number_below_all: "of caller the certificate has an answer that is none",
    _with_another_claim: "claims are not those of this program: counts",
    _without_a_claim: "claims are not those of this program",
    _of_another_binary: "binary is another one",
    _with_fewer_premises: "the certificate's premises: .* is told, and is .* 'arena-apart'.* here",
}


@pytest.mark.parametrize("forged", FORGERIES, ids=lambda one: one.__name__)
def test_a_forgery_is_refused(forged):
    own = document()
    forged(own)
    with pytest.raises(VerificationError, match=FORGERIES[forged]):
        checked(program(), own, deducing(), "z3")


def test_the_certificate_of_a_version_is_none_of_a_broken_one():
    """By the answers that were given of the right code, what a broken one does is not shown."""
    broken = changed("cama.c", ("small->tag |= CAMA_SMALL_FREE_BIT", "small->tag |= CAMA_SMALL_FREE_BIT << 1"))
    with pytest.raises(VerificationError, match="binary is another one"):
        checked(broken, document(), deducing(broken), "z3")
    own = document()
    own["image_sha256"] = with_certificate(broken, deducing(broken, ("caller",)))[1]["image_sha256"]
    with pytest.raises(VerificationError):
        checked(broken, own, deducing(broken), "z3")


@pytest.mark.parametrize(
    "own",
    [
        None, [], {}, "text",
        {"format": "wcet-probe-deduction", "version": 2, "operations": [{"operation": "init"}]},
        {"format": "wcet-probe-deduction", "version": 1, "operations": []},  # nothing of it would be checked
    ],
)  # fmt: skip
def test_another_document_is_refused(own):
    with pytest.raises(UsageError, match="no wcet-probe-deduction document of version 1"):
        operations_of(own)
    twice = deepcopy(document())
    twice["operations"] *= 2
    with pytest.raises(UsageError, match="no wcet-probe-deduction document"):
        operations_of(twice)


def test_a_file_is_written_and_checked(tmp_path):
    file = tmp_path / "new" / "certificate.json"
    deduced_by(CertificateFiles(written=file), program(), deducing(operations=("caller",)))
    files, operations = certificate_files(None, file, "cvc5", ())
    assert (files.solver, operations) == ("cvc5", ("caller",))
    parts = deduced_by(files, program(), deducing(operations=operations))
    assert [(one.operation, one.shown, len(one.open)) for one in parts] == [("caller", 30, 0)]


def test_a_file_stays_as_it_is_where_no_certificate_comes_of_it(tmp_path):
    file = tmp_path / "certificate.json"

    def interrupted(_):
        raise KeyboardInterrupt

    for text in (None, "of another run"):
        if text:
            file.write_text(text)
        with pytest.raises(KeyboardInterrupt):
            deduced_by(CertificateFiles(written=file), program(), interrupted)
        assert [one.read_text() for one in tmp_path.iterdir()] == ([text] if text else [])


def test_a_certificate_is_read_once(tmp_path):
    """From a pipe it can be read once, and what would be read later may be another one."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    threading.Thread(target=pipe.write_text, args=(certificate()[1],), daemon=True).start()
    files, operations = certificate_files(None, pipe, None, ())
    assert (files.checked, operations) == (document(), SMALL)


def test_an_operation_that_there_is_not_is_refused():
    own = document()
    own["operations"][0]["operation"] = "realloc"
    with pytest.raises(UsageError, match="realloc is nothing that is deduced of cama"):
        checked(program(), own, deducing(operations=operations_of(own)), "z3")


def test_an_operation_that_is_not_deduced_is_one_too_many():
    with pytest.raises(VerificationError, match="the certificate has operations too many: 'free-small'"):
        checked(program(), document(), deducing(operations=("caller",)), "z3")


def test_operations_that_the_certificate_is_not_of_are_refused():
    with pytest.raises(VerificationError, match="of malloc-small, part 1, there are no answers for part 1"):
        checked(program(), document(), deducing(operations=(*SMALL, "malloc-small")), "z3")


def test_without_files_z3_is_asked():
    assert deduced_by(CertificateFiles(), program(), lambda asked: (asked is asking_z3,)) == (True,)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--solver", "cvc5"], "--solver is whom --check asks"),
        (["--certificate", "FILE"], "--certificate writes what --deduce rests on"),
        (["--deduce", "init", "--check", "FILE"], "leave --deduce out"),
        (["--certificate", "FILE", "--check", "FILE"], "give one of them"),
    ],
)
def test_options_that_do_not_go_together_are_refused(options, message, tmp_path, capsys):
    named = [str(tmp_path / "file") if one == "FILE" else one for one in options]
    assert main(["verify-sets", "cama", "--target", "mpc603e", *named]) == 2
    assert message in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["half-fit", "--prove", "--check", "FILE"], "--check is of what --deduce shows of one ALLOCATOR"),
        (["all", "--prove", "--deduce", "--check", "FILE"], "--check is of what --deduce shows of one ALLOCATOR"),
        (["all", "--prove", "--deduce", "--certificate", "FILE"], "--certificate is of one ALLOCATOR and --prove"),
        (["half-fit", "--prove", "--deduce", "--certificate", "FILE", "--check", "FILE"], "give one of them"),
        (["half-fit", "--prove", "--deduce", "--solver", "cvc5"], "--solver is whom --check asks"),
    ],
)
def test_options_about_facts_that_do_not_go_together_are_refused(options, message, tmp_path, capsys):
    named = [str(tmp_path / "file") if one == "FILE" else one for one in options]
    assert main(["facts", "--target", "mpc603e", *named]) == 2
    assert message in " ".join(capsys.readouterr().err.split())


def test_facts_that_a_certificate_is_of_are_checked_by_the_command(tmp_path, capsys, monkeypatch):
    """As half-fit's are proved by all of its operations, what takes half a minute is left out here."""
    from wcet_probe.cache_sets import half_fit_deduction

    monkeypatch.setattr(half_fit_deduction, "OPERATIONS", ("caller",))
    file = str(tmp_path / "half-fit.json")
    command = ["facts", "half-fit", "--prove", "--deduce", "--target", "mpc603e", "-q"]
    assert main([*command, "--certificate", file]) == 0
    first = capsys.readouterr().out
    assert main([*command, "--check", file, "--solver", "cvc5"]) == 0
    assert capsys.readouterr().out == first
    forged = json.loads((tmp_path / "half-fit.json").read_text())
    forged["operations"][0]["obligations"].pop()
    (tmp_path / "half-fit.json").write_text(json.dumps(forged))
    assert main([*command, "--check", file]) == 1
    assert "the obligations of caller are not those that the certificate says" in capsys.readouterr().err
