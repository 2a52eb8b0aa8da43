"""A bound whose facts are told to be proved: its module certificate proves them, or the line is not ok."""

import json
from copy import deepcopy
from dataclasses import replace

import pytest

from tests.answer.facts.test_proved_facts import HEAP_BYTES, program
from tests.certificate.forgeries import sealed
from tests.run_folder import once
from tests.support import images_dir
from wcet_probe.answer.bounds.bound_store import bound_key
from wcet_probe.answer.bounds.module_certificate import ModuleProof, module_certificate
from wcet_probe.answer.bounds.proving import allocator_facts, prove_operation
from wcet_probe.answer.facts.proved_assumptions import claiming, with_claims
from wcet_probe.answer.facts.proved_facts import proved_facts
from wcet_probe.build.program import load_program
from wcet_probe.catalog.lookup import load_allocator, load_target
from wcet_probe.certificate.check import check_bound
from wcet_probe.certificate.facts.findings import OK, OPEN
from wcet_probe.certificate.modules import asserted_proofs
from wcet_probe.certificate.modules.asserted_proofs import checked_proofs
from wcet_probe.certificate.modules.module import check_module
from wcet_probe.certificate.names.names import Address
from wcet_probe.certificate.names.near import Near
from wcet_probe.certificate.values.congruences import Congruence
from wcet_probe.certificate.values.numbers import TOP
from wcet_probe.certificate.values.residues import ALL, of_class
from wcet_probe.errors import VerificationError
from wcet_probe.evidence.checking import allocator_binary
from wcet_probe.reports.formats.bound_document import bound_section

GIVEN = program("kingsley", multiple_of=4)
BINARY = allocator_binary(GIVEN, HEAP_BYTES)
PROVE = claiming()
WHERE = "facts.toml:1"
OWN = load_program(load_allocator("kingsley"), load_target("mpc603e"), "zig", images_dir())
"""With its own facts, of which two are about pointers of different functions."""


def document_of(given, bound):
    return json.loads(json.dumps({"image": {"sha256": given.image.sha256}, "bound": bound_section(bound)}))


TRUE = json.loads(
    once(
        "claims",
        lambda: json.dumps(document_of(GIVEN, PROVE(GIVEN, "free", HEAP_BYTES))),
        bound_key(GIVEN, "free", HEAP_BYTES),
    )
)


def line(document, binary=BINARY):
    """The line of the proved facts."""
    return {one.check: one for one in check_bound(sealed(deepcopy(document)), binary).findings}.get("proved facts")


def refused(why, change, binary=BINARY):
    forged = deepcopy(TRUE)
    change(forged["bound"])
    with pytest.raises(VerificationError, match=why):
        line(forged, binary)


def with_module(**changes):
    return lambda section: section["module"].update(deepcopy(changes))


def without(name):
    def change(section):
        section["assumptions"] = [one for one in section["assumptions"] if one["id"] != name]

    return change


def test_a_bound_of_each_operation_is_checked_in_full_with_the_module_certificate_that_it_carries():
    for role in ("malloc", "free"):
        document = document_of(OWN, PROVE(OWN, role, HEAP_BYTES))
        assert check_bound(document, allocator_binary(OWN, HEAP_BYTES)).is_full, role
        told = "by the module certificate each access of which 2 speak has the class that is charged"
        assert line(document, allocator_binary(OWN, HEAP_BYTES)).found == told


def test_without_the_certificate_it_is_not_checked():
    document = deepcopy(TRUE)
    del document["bound"]["module"]
    assert (line(document).verdict, line(document).found) == (OPEN, "1 told to be proved by induction")


def test_a_bound_that_tells_of_no_proof_carries_none():
    plain = document_of(GIVEN, prove_operation(GIVEN, "free", HEAP_BYTES))
    assert line(plain) is None
    plain["bound"]["module"] = TRUE["bound"]["module"]
    with pytest.raises(VerificationError, match="no fact is told to be proved"):
        line(plain)


def test_the_certificate_of_another_binary_is_refused():
    other = program("kingsley", ("kingsley.c", "return bucket << 1;", "return (bucket << 1) + 4;"), multiple_of=4)
    document = module_certificate(other, HEAP_BYTES)
    refused("another image", lambda one: one.update(module=document))
    sha256 = other.image.sha256, GIVEN.image.sha256
    text = json.dumps(document).replace(*sha256)
    refused(None, lambda one: one.update(module=json.loads(text)))


@pytest.mark.parametrize(
    "changes",
    [
        {"allocator": "first-fit"},
        {"heap_bytes": HEAP_BYTES * 2},
        {"parameters": {"alignment": 16}},
    ],
)
def test_the_certificate_of_another_question_is_refused(changes):
    refused(f"is of other {next(iter(changes))}", with_module(**changes))


def test_the_certificate_of_another_core_is_refused():
    other = replace(BINARY, target=load_target("mpc755"))
    with pytest.raises(VerificationError, match="another target"):
        checked_proofs(TRUE["bound"], other, "kingsley_free", [])
    text = json.dumps(TRUE["bound"]["module"]["operations"]).replace("target mpc603e", "target mpc755")
    refused("another target", with_module(operations=json.loads(text)))


def test_the_certificate_of_other_operations_is_refused():
    points = GIVEN.allocator.entry_points
    more = replace(BINARY, entry_points={**points, "realloc": "kingsley_malloc"})
    refused("of an allocator with others", lambda _: None, more)
    refused("another function", lambda _: None, replace(BINARY, entry_points={**points, "malloc": points["check"]}))
    refused("the operations are not", with_module(operations=TRUE["bound"]["module"]["operations"][1:]))
    refused("of an allocator with others", lambda _: None, replace(BINARY, entry_points={}))  # of own firmware
    with pytest.raises(VerificationError, match="none of the operations"):
        checked_proofs(TRUE["bound"], BINARY, points["check"], [])


def test_a_cell_that_tells_a_weaker_class_proves_nothing():
    """Whoever weakens what is told of links must not tell the fact; and then it is not checked."""
    module = TRUE["bound"]["module"]
    weaker = {name: text.replace("arena*:8:0:o0", "arena*:2:0:o0") for name, text in module["cells"].items()}
    assert weaker != module["cells"]
    refused(None, with_module(cells=weaker))
    document = deepcopy(TRUE)
    document["bound"]["module"]["facts"] = []
    assert line(document).verdict == OPEN
    assert line(document).found.endswith("not checked: alignment of facts.toml:1, nothing is told of it")


def test_a_fact_that_asserts_more_than_the_cells_tell_is_refused():
    """The same code and certificate, and facts of a larger class, on which a bound is made to rest as proved."""
    strong = program("kingsley", multiple_of=16)
    claimed = with_claims(
        prove_operation(strong, "free", HEAP_BYTES),
        allocator_facts(strong.allocator),
        proved_facts(GIVEN, HEAP_BYTES),
        ModuleProof(TRUE["bound"]["module"], ()),
    )
    document, binary = document_of(strong, claimed), allocator_binary(strong, HEAP_BYTES)
    assert document["image"] == TRUE["image"]
    with pytest.raises(VerificationError, match=r"the fact facts.toml:1 does not hold at kingsley_"):
        line(document, binary)
    document["bound"]["module"]["facts"] = []
    assert line(document, binary).verdict == OPEN


def test_all_that_the_certificate_assumes_must_be_listed():
    names = [one["id"] for one in TRUE["bound"]["module"]["assumptions"]]
    assert len(names) > 7
    for name in names:
        refused(name.removeprefix("induction "), without(name))
    for change in ({"id": "more", "statement": "it holds"}, {"id": "saved-registers", "statement": "they stay"}):
        own = [*TRUE["bound"]["module"]["assumptions"], change]
        refused(f"assumes {change['id']}, which the bound does not list", with_module(assumptions=own))


def test_lemmas_of_the_certificate_may_be_no_others():
    for one in TRUE["bound"]["module"]["assumptions"]:
        others = [own for own in TRUE["bound"]["module"]["assumptions"] if own != one]
        refused(None, with_module(assumptions=others))
        if one["id"].startswith("induction "):
            refused("told otherwise", with_module(assumptions=[*others, {**one, "statement": "nothing"}]))


def test_a_fact_may_not_be_renamed():
    refused("a fact is told that there is not", with_module(facts=[{"where": "facts.toml:2", "accesses": 21}]))
    refused("speaks of 21 accesses", with_module(facts=[{"where": WHERE, "accesses": 20}]))

    def rename(section):
        for one in (*section["assumptions"], *section["pointer_facts"]):
            for key in {"id", "where"} & one.keys():
                one[key] = one[key].replace(WHERE, "facts.toml:2")

    refused("the assumption fact facts.toml:1 is used and not listed", rename)


def test_a_fact_is_proved_of_the_code_that_it_speaks_of_only():
    """The certificate tells one of two facts; that it is the other which the bound is told to be proved of, is seen."""
    binary, document = allocator_binary(OWN, HEAP_BYTES), document_of(OWN, PROVE(OWN, "malloc", HEAP_BYTES))
    facts = document["bound"]["module"]["facts"]
    assert [one["where"] for one in facts] == ["kingsley/facts.toml:28", "kingsley/facts.toml:32"]
    assert line(document, binary).verdict == OK
    for one in facts:
        forged = deepcopy(document)
        forged["bound"]["module"]["facts"] = [one]
        assert line(forged, binary).verdict == OPEN


def test_each_access_of_the_bound_is_asked_for(monkeypatch):
    """One that the operations of the certificate do not have, or at other addresses, leaves the proof open."""
    known = check_module(TRUE["bound"]["module"], BINARY)
    seen = set()
    for one, residues in known.aligned.items():
        for other in (None, residues << 1 | residues, ALL):
            aligned = {key: own for key, own in known.aligned.items() if key != one}
            aligned |= {} if other is None else {one: other & ALL}
            found = known._replace(aligned=aligned)
            monkeypatch.setattr(asserted_proofs, "check_module", lambda *_, found=found: found)
            if line(TRUE).verdict == OPEN:
                place = GIVEN.image.location(one.address)
                assert line(TRUE).found.endswith(f"not checked: the class of the access at {place}")
                seen.add((one, other is None))
    assert len(seen) == 6


def test_a_class_follows_from_the_number_or_the_residues():
    def follows(alignment, residues, number=TOP, near=None):
        return asserted_proofs._follows(Address(number, TOP, alignment, alignment, near), residues)

    eight = Congruence(8, 4)
    assert follows(Congruence(1, 0), None)
    assert follows(eight, of_class(Congruence(16, 12)))
    assert not follows(eight, of_class(Congruence(4, 0)))
    assert not follows(eight, None)
    assert not follows(Congruence(128, 4), of_class(Congruence(64, 4)))
    assert follows(eight, None, TOP._replace(low=12, high=12, stride=0))
    assert not follows(eight, of_class(eight), near=Near("s", 0, 4, Congruence(8, 0)))
    assert follows(eight, of_class(eight), near=Near("s", 0, 4, Congruence(1, 0)))


def test_where_accesses_are_not_followed_nothing_is_shown():
    points = GIVEN.allocator.entry_points
    assert checked_proofs(TRUE["bound"], BINARY, points["free"], None).verdict == OPEN
