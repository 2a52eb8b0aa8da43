"""Packs of results whose facts are proved: by a module certificate, which is checked, or told to be by a solver.

Tests: evidence.audit.
"""

import json
import re
from dataclasses import replace

import pytest

from tests.evidence.packs import edited, failure, rows, run, tampered
from tests.support import images_dir
from wcet_probe.analyzer.assumptions import STACK_SEPARATION
from wcet_probe.answer.facts.proved_facts import premises_of, proved_facts
from wcet_probe.cache_sets.claimed import CLAIMED, Claimed
from wcet_probe.certificate.kernel.verify import bound_digest
from wcet_probe.evidence.packing import evidence_members
from wcet_probe.model.induction import DEDUCTION_PREMISES, PREMISES
from wcet_probe.reports.dossier.blocks import Table
from wcet_probe.reports.dossier.dossier import build_dossier


@pytest.fixture(scope="module")
def proved():
    """A result whose facts are proved, with the module certificate of that."""
    return run("mpc603e", "--prove-facts", "--scenario", "worst-free", allocator="kingsley")


def test_a_pack_carries_the_proof_of_facts(proved):
    members = evidence_members([("proved.json", proved)], images_dir())
    found = rows(members)
    assert found["proved facts"].verdict.startswith("ok, by the module certificate")
    assert not [check for check in found.values() if check.error]

    def name(key, value):
        return edited(lambda one: one["bound"]["module"].update({key: value}))

    for change, why in (
        (edited(lambda one: one["bound"].pop("module")), None),
        (edited(lambda one: one["bound"]["module"].update(facts=[])), None),
        (name("heap_bytes", 16384), "is of other heap_bytes"),
        (name("allocator", "tlsf"), "is of other allocator"),
        (name("parameters", {}), "is of other parameters"),
        (name("block", "arena:16:0:o0 null:64:0:o0"), "is not the block that is told"),
        (edited(lambda one: one["bound"]["module"]["image"].update(sha256="0" * 64)), "about another image"),
    ):
        forged = tampered(members, "results/proved.json", change)
        if why is None:
            assert rows(forged)["proved facts"].verdict.startswith("not checked")
        else:
            assert why in str(failure(forged, replayed=False))


def test_a_result_is_verified_with_the_proof_of_its_facts(call, proved, tmp_path):
    (image,) = (
        data
        for name, data in evidence_members([("proved.json", proved)], images_dir()).items()
        if name.endswith(".elf")
    )
    (tmp_path / "proved.json").write_bytes(proved)
    (tmp_path / "image.elf").write_bytes(image)
    code, out, _ = call("verify", "proved.json", "--image", "image.elf")
    assert re.search(r"proved facts\s+ok", out)
    document = json.loads(proved)
    del document["bound"]["module"]
    document["bound"]["digest"] = bound_digest(document["bound"])
    (tmp_path / "proved.json").write_text(json.dumps(document))
    left, out, _ = call("verify", "proved.json", "--image", "image.elf")
    assert re.search(r"proved facts\s+not checked", out)
    assert (code, left) == (0, 6)


# ------------------------------------------------------------------------------------------------------- by deduction


@pytest.fixture(scope="module")
def by_solver():
    """A result whose facts are told to be deduced: what the induction finds stands in for a solver's answer."""

    def shown(program, heap_bytes, _parts):
        told = premises_of({**PREMISES, "arena-apart": DEDUCTION_PREMISES["arena-apart"]})
        rest = {"by": "deduction", "how": "by what a solver shows", "lemmas": {}, "premises": (*told, STACK_SEPARATION)}
        return replace(proved_facts(program, heap_bytes), **rest)

    with pytest.MonkeyPatch.context() as patch:
        own = Claimed(
            lambda _, progress, __: progress("asking") or (), {}, lambda *_: {}, ("arena-apart",), lambda _: ()
        )
        patch.setitem(CLAIMED, "kingsley", own)
        patch.setattr("wcet_probe.cache_sets.deduced_facts.deduced_facts", shown)
        return run("mpc603e", "--prove-facts", "--deduce", "--scenario", "worst-free", allocator="kingsley")


def test_what_is_deduced_is_told_as_proved_and_not_checked(by_solver):
    document = json.loads(by_solver)
    assert "--prove-facts --deduce --json" in document["command"]
    bound = document["bound"]
    assert "module" not in bound
    assert all((one["is_proved"], one["by"]) == (True, "deduction") for one in bound["pointer_facts"])
    members = evidence_members([("a.json", by_solver)], images_dir())
    found = rows(members)
    assert re.fullmatch(r"not checked: \d told to be proved by a solver", found["proved facts"].verdict)
    assert not [check for check in found.values() if check.error]


@pytest.mark.parametrize(
    ("key", "value"), [("by", "induction"), ("is_proved", False), ("lemmas", ["x"]), ("where", "f.toml:1")]
)
def test_a_deduction_that_is_told_otherwise_is_refused(by_solver, key, value):
    def told(document):
        document["bound"]["pointer_facts"][0][key] = value

    members = evidence_members([("a.json", by_solver)], images_dir())
    assert failure(tampered(members, "results/a.json", edited(told)), replayed=False)


def test_a_command_without_the_solver_is_another(by_solver):
    def told(document):
        document["command"] = document["command"].replace(" --deduce", "")

    members = evidence_members([("a.json", by_solver)], images_dir())
    assert failure(tampered(members, "results/a.json", edited(told)), replayed=False)


def test_a_dossier_and_the_account_tell_what_is_deduced_apart_from_assumptions(by_solver):
    dossier = build_dossier([json.loads(by_solver)])
    every = [*sections_of(dossier.sections)]
    tables = [block for one in every for block in one.blocks if isinstance(block, Table)]
    (table,) = (one for one in tables if one.caption == "Facts that are proved")
    assert all("arena-apart (A-" in row[2] and "what is followed is" in row[1] for row in table.rows)
    (assumed,) = (one for one in tables if one.caption == "Assumptions")
    assert not [row for row in assumed.rows if row[1].startswith("proved ")]
    assert [row for row in assumed.rows if row[1] == "arena-apart"]


def sections_of(parts):
    for part in parts:
        yield part
        yield from sections_of(part.sections)
