"""What is proved of facts about pointers is no assumption of a bound any more; the checker says that it cannot tell."""

import json
from copy import deepcopy
from dataclasses import replace

import pytest

from tests.certificate.forgeries import sealed
from tests.support import images_dir
from wcet_probe.answer.proved_assumptions import claiming, with_claims
from wcet_probe.answer.proved_facts import ProvedFacts
from wcet_probe.answer.proving import allocator_facts, prove_operation
from wcet_probe.build.program import load_program
from wcet_probe.catalog.lookup import load_allocator, load_target
from wcet_probe.certificate.check import check_bound
from wcet_probe.errors import VerificationError
from wcet_probe.evidence.checking import allocator_binary
from wcet_probe.model.induction import LEMMAS, PREMISES
from wcet_probe.reports.dossier.qualification import load_qualification
from wcet_probe.reports.formats.bound_document import bound_section

HEAP_BYTES = 5000
BECAUSE = 'because = "it is said"'
PURE, WITH_LINES = "djgpp-sbrk/facts.toml:3", "djgpp-sbrk/facts.toml:11"


@pytest.fixture(scope="module")
def program():
    """Two facts, of which the second tells lines, too; its alignment needs the least block of a logarithm."""
    return load_program(load_allocator("djgpp-sbrk"), load_target("mpc603e"), "zig", images_dir())


@pytest.fixture(scope="module")
def plain(program):
    return prove_operation(program, "free", HEAP_BYTES)


@pytest.fixture(scope="module")
def claimed(program, plain):
    return claiming(lambda *_: plain)(program, "free", HEAP_BYTES)


@pytest.fixture(scope="module")
def document(program, claimed):
    return json.loads(json.dumps({"image": {"sha256": program.image.sha256}, "bound": bound_section(claimed)}))


@pytest.fixture(scope="module")
def binary(program):
    return allocator_binary(program, HEAP_BYTES)


def ids(bound):
    return [one.id for one in bound.assumptions]


def test_a_proved_alignment_is_no_assumption_but_its_lemmas_are(plain, claimed):
    assert (claimed.instructions, claimed.cycles) == (plain.instructions, plain.cycles)
    assert [(one.where, one.is_proved) for one in claimed.pointer_facts] == [(PURE, True), (WITH_LINES, True)]
    before, after = ids(plain), ids(claimed)
    assert {f"fact {PURE}", f"fact {WITH_LINES}"} <= set(before)
    assert f"fact {PURE}" not in after
    assert {f"proved {PURE}", f"proved {WITH_LINES}", f"fact {WITH_LINES}"} <= set(after)
    assert {f"induction {name}" for name in LEMMAS} | PREMISES.keys() <= set(after)
    (told,) = (one.statement for one in claimed.assumptions if one.id == f"proved {PURE}")
    assert all(name in told for name in (*LEMMAS, *PREMISES))
    assert ", where what is followed is an address in the arena that is 0 modulo 4" in told
    assert all(one.invariant.startswith("what is followed is ") for one in claimed.pointer_facts)
    (left,) = (one.statement for one in claimed.assumptions if one.id == f"fact {WITH_LINES}")
    assert left.startswith("addresses in djgpp_push are in at most")


def test_a_fact_that_is_not_proved_stays_an_assumption_and_says_why(program, plain):
    found = with_claims(plain, allocator_facts(program.allocator), ProvedFacts((), "the stack escapes"))
    assert found.assumptions == plain.assumptions
    assert {(one.is_proved, one.why_not, one.lemmas) for one in found.pointer_facts} == {
        (False, "the stack escapes", ())
    }


def test_what_is_said_of_another_operation_is_an_assumption_too():
    """What is proved of free's words is proved of those that init and malloc store, with what is said of them."""
    allocator = load_allocator("djgpp-sbrk")
    told = ('function = "djgpp_sbrk_init"', "index = 1", "min = 4096", "max = 5000")
    text = "\n".join(("[[pointer]]", "multiple_of = 4", BECAUSE, "[[argument]]", *told, BECAUSE))
    one = replace(allocator, facts=(("facts.toml", text),))
    program = load_program(one, load_target("mpc603e"), "zig", images_dir())
    bound = claiming()(program, "free", HEAP_BYTES)
    assert [one.is_proved for one in bound.pointer_facts] == [True]
    assert "fact facts.toml:4" in ids(bound)
    assert "fact facts.toml:4" not in ids(prove_operation(program, "free", HEAP_BYTES))


def test_somebody_discharges_what_a_proof_rests_on(claimed):
    data = load_qualification()
    assert not [one for one in ids(claimed) if data.discharge(one) is None]


def test_the_checker_does_not_say_that_it_is_proved_without_a_module_certificate(document, binary, program, plain):
    assert {one.check: one for one in check_bound(document, binary).findings}["proved facts"].verdict == "ok"
    bare = sealed({**document, "bound": {name: one for name, one in document["bound"].items() if name != "module"}})
    found = {one.check: one for one in check_bound(bare, binary).findings}
    assert found["proved facts"].verdict == "not checked"
    assert not check_bound(bare, binary).is_full
    before = {"image": {"sha256": program.image.sha256}, "bound": bound_section(plain)}
    assert "proved facts" not in {one.check for one in check_bound(before, binary).findings}


def without(section, name):
    section["assumptions"] = [one for one in section["assumptions"] if one["id"] != name]


def renamed(section, name, other):
    for one in section["assumptions"]:
        one["id"] = other if one["id"] == name else one["id"]


def unproved(section):
    for one in section["pointer_facts"]:
        one["is_proved"] = False


def another_lemma(section):
    for one in section["assumptions"]:
        if one["id"].startswith("induction "):
            one["statement"] = "nothing"


FORGERIES = {
    "a lemma that is not listed": (lambda one: without(one, "induction objects-apart"), "objects-apart is told"),
    "a premise that is not listed": (lambda one: without(one, "init-first"), "init-first is told"),
    "another lemma": (another_lemma, "is told otherwise"),
    "lines that are not listed": (lambda one: without(one, f"fact {WITH_LINES}"), "not all that the fact"),
    "a fact that is left out": (lambda one: without(one, f"proved {PURE}"), "is used and not listed"),
    "a verdict that is another": (unproved, "not those of the assumptions"),
    "a fact that does not stand there": (
        lambda one: renamed(one, f"proved {WITH_LINES}", "proved djgpp-sbrk/facts.toml:1"),
        "not those of the assumptions",
    ),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_what_is_told_wrongly_of_proofs_is_refused(name, document, binary):
    forge, reason = FORGERIES[name]
    forged = deepcopy(document)
    forge(forged["bound"])
    with pytest.raises(VerificationError, match=reason):
        check_bound(sealed(forged), binary)


def test_a_fact_is_proved_by_the_module_certificate_alone_where_the_analysis_loses_a_store():
    """On arm926ej-s the analysis does not know where tlsf's init stores; on cortex-m4 it tries no fact."""
    for target in ("arm926ej-s", "cortex-m4"):
        program = load_program(load_allocator("tlsf"), load_target(target), "zig", images_dir())
        bound = claiming()(program, "malloc", HEAP_BYTES)
        assert all(one.is_proved and "by the module certificate" in one.invariant for one in bound.pointer_facts)
        assert bound.module is not None
        assert {one["id"] for one in bound.module["assumptions"]} <= set(ids(bound))
        document = {"image": {"sha256": program.image.sha256}, "bound": bound_section(bound)}
        found = {one.check: one for one in check_bound(document, allocator_binary(program, HEAP_BYTES)).findings}
        assert found["proved facts"].verdict == "ok"
