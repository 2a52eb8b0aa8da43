"""What is proved of facts about pointers is no assumption of a bound any more; the checker says that it cannot tell."""

import json
from copy import deepcopy
from dataclasses import replace

import pytest

from tests.answer.facts.test_proved_facts import program as changed_program
from tests.certificate.forgeries import sealed
from tests.support import images_dir
from wcet_probe.analyzer.assumptions import STACK_SEPARATION
from wcet_probe.analyzer.facts.language import PointerFact
from wcet_probe.analyzer.facts.memory import pointer_assumptions
from wcet_probe.answer.bounds.proving import allocator_facts, prove_operation
from wcet_probe.answer.facts.proved_assumptions import claiming, with_claims
from wcet_probe.answer.facts.proved_facts import ProvedFacts, proved_facts
from wcet_probe.build.program import load_program
from wcet_probe.catalog.lookup import load_allocator, load_target
from wcet_probe.certificate.check import check_bound
from wcet_probe.certificate.facts.findings import OPEN, Finding
from wcet_probe.certificate.modules.asserted_proofs import checked_proofs
from wcet_probe.certificate.names.known import Known
from wcet_probe.certificate.names.names import Address
from wcet_probe.certificate.values.congruences import UNALIGNED
from wcet_probe.certificate.values.numbers import TOP
from wcet_probe.errors import VerificationError
from wcet_probe.evidence.checking import allocator_binary, proofs_follow
from wcet_probe.model.induction import (
    DEDUCED_BY_ALL,
    DEDUCED_CHECK,
    DEDUCTION_PREMISES,
    LEMMAS,
    PREMISE_CHECK,
    PREMISES,
)
from wcet_probe.model.proof import Assumption
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


@pytest.mark.slow
def test_a_fact_is_proved_by_the_module_certificate_alone_where_the_analysis_loses_a_store():
    """On arm926ej-s the analysis does not know where tlsf's init stores; on cortex-m4 it tries no fact."""
    for target in ("arm926ej-s", "cortex-m4"):
        program = load_program(load_allocator("tlsf"), load_target(target), "zig", images_dir())
        bound = claiming(confirmed=proofs_follow)(program, "malloc", HEAP_BYTES)
        assert all(one.is_proved and "by the module certificate" in one.invariant for one in bound.pointer_facts)
        assert bound.module is not None
        assert {one["id"] for one in bound.module["assumptions"]} <= set(ids(bound))
        document = {"image": {"sha256": program.image.sha256}, "bound": bound_section(bound)}
        found = {one.check: one for one in check_bound(document, allocator_binary(program, HEAP_BYTES)).findings}
        assert found["proved facts"].verdict == "ok"


WIDE = """    size_t tag = *(volatile size_t *)&tlsf_control.fl_bitmap, size_of_it = block->size_and_free;
    size_t offset = (tag & 1) ? size_of_it & 0x3ffffffe : (tag & 0x0ffffffe) | 0x80000002u;
    (void)*(volatile unsigned char *)((char *)block + offset);
"""


@pytest.fixture(scope="module")
def united():
    """A program with an index that is one of two numbers with ranges, which have none together."""
    at = "    cut(block, size);\n    return payload_of(block);\n"
    return changed_program("tlsf", ("tlsf.c", at, WIDE + at), "arm926ej-s", 4)


@pytest.fixture(scope="module")
def alone(united):
    return claiming(confirmed=lambda *_: True)(united, "malloc", HEAP_BYTES)


@pytest.mark.slow
def test_what_a_module_certificate_tells_of_numbers_alone_is_not_taken_for_what_a_bound_charges(
    united, alone, monkeypatch
):
    """It leaves out numbers with a range where they are computed: of two, united, the checker would charge it."""
    assert [one.is_proved for one in alone.pointer_facts] == [True]
    (told,) = claiming()(united, "malloc", HEAP_BYTES).pointer_facts
    assert (told.is_proved, told.why_not[:9]) == (False, "where the")
    monkeypatch.setattr(Known, "leaves_unknown", lambda *_: True)
    assert not proofs_follow(united, HEAP_BYTES, alone)
    (told,) = claiming(confirmed=proofs_follow)(united, "malloc", HEAP_BYTES).pointer_facts
    assert (told.is_proved, told.why_not[:9]) == (False, "where the")


def test_no_class_is_charged_of_what_is_one_of_two_numbers_with_ranges(united, alone, monkeypatch):
    """As the analysis has it: so nothing is to be proved of them, and the fact is of what the bound rests on."""
    seen: list[Address] = []

    def noted(section, asked, entry, traced):
        executed = [one for node in traced for one in node.executed if one.instruction.text.startswith("ldrb")]
        seen.extend(words[0] for _, accesses in executed for words in accesses)
        return checked_proofs(section, asked, entry, traced)

    monkeypatch.setattr("wcet_probe.certificate.check.checked_proofs", noted)
    assert proofs_follow(united, HEAP_BYTES, alone)
    assert [one.alignment for one in seen if one.number == TOP] == [UNALIGNED]


def test_no_fact_follows_of_a_bound_that_is_not_checked_in_full(united, alone, monkeypatch):
    def less(document, asked):
        found = check_bound(document, asked)
        return replace(found, findings=(*found.findings, Finding("another", OPEN, "something")))

    monkeypatch.setattr("wcet_probe.evidence.checking.check_bound", less)
    assert not proofs_follow(united, HEAP_BYTES, alone)


# ------------------------------------------------------------------------------------------------------- by deduction


PREMISES_OF_ALL = (*PREMISES, "arena-apart")


@pytest.fixture(scope="module")
def deduced(program, plain):
    """As if a solver had shown of djgpp-sbrk what the induction finds; no claims are written for it."""
    told = tuple(Assumption(one, {**PREMISES, **DEDUCTION_PREMISES}[one], PREMISE_CHECK) for one in PREMISES_OF_ALL)

    def found(asked, heap_bytes):
        shown = proved_facts(asked, heap_bytes)
        rest = {"by": "deduction", "how": "as it was shown", "lemmas": {}, "premises": (*told, STACK_SEPARATION)}
        return replace(shown, **rest)

    return claiming(lambda *_: plain, found)(program, "free", HEAP_BYTES)


def test_what_is_deduced_rests_on_no_lemma_and_names_its_premises(plain, deduced):
    assert (deduced.instructions, deduced.cycles, deduced.module) == (plain.instructions, plain.cycles, None)
    assert {(one.is_proved, one.by, one.lemmas) for one in deduced.pointer_facts} == {
        (True, "deduction", (*PREMISES_OF_ALL, "stack-separation"))
    }
    assert not [one for one in ids(deduced) if one.startswith("induction ")]
    assert set(DEDUCED_BY_ALL) <= set(ids(deduced))
    (told,) = (one for one in deduced.assumptions if one.id == f"proved {PURE}")
    assert told.check == DEDUCED_CHECK
    assert "as it was shown, under init-first" in told.statement
    assert ", where what is followed is an address in the arena that is 0 modulo 4" in told.statement
    data = load_qualification()
    assert not [one for one in ids(deduced) if data.discharge(one) is None]


def test_sets_that_are_deduced_with_the_alignment_are_no_assumption():
    fact = PointerFact("f.toml:1", {}, "32", "1", "31", "so it is")
    proved, told = pointer_assumptions(fact, "as is shown", is_deduced=True)
    assert (proved.id, told.id) == ("proved f.toml:1", "fact f.toml:1")
    assert "cache sets 1 and up" in told.statement
    assert "cache sets" not in proved.statement
    (proved,) = pointer_assumptions(fact, "as is shown", sets_proved=True, is_deduced=True)
    assert "multiple of 32, and they are in cache sets 1 and up, 31 of them, as is shown" in proved.statement
    assert [one.id for one in pointer_assumptions(fact, sets_proved=True)] == ["fact f.toml:1"]
    lines = replace(fact, lines="3", lines_per_set="1")
    assert [one.id for one in pointer_assumptions(lines, "as is shown", sets_proved=True)] == [
        "proved f.toml:1",
        "fact f.toml:1",
    ]


def test_the_checker_cannot_tell_what_a_solver_showed(program, deduced, binary):
    document = json.loads(json.dumps({"image": {"sha256": program.image.sha256}, "bound": bound_section(deduced)}))
    found = {one.check: one for one in check_bound(document, binary).findings}["proved facts"]
    assert (found.verdict, found.found) == ("not checked", "2 told to be proved by a solver")


def by_induction(section):
    for one in section["pointer_facts"]:
        one["by"] = "induction"


def one_by_induction(section):
    section["pointer_facts"][0]["by"] = "induction"


def one_more_premise(section):
    section["pointer_facts"][0]["lemmas"].append("arena-not-wrapped")


def an_unknown_premise(section):
    section["pointer_facts"][0]["lemmas"].append("nobody-looks")


def with_sets(section):
    for one in section["pointer_facts"]:
        one["sets_proved"] = True
    without(section, f"fact {WITH_LINES}")


def another_premise(section):
    for one in section["assumptions"]:
        if one["id"] == "arena-apart":
            one["statement"] = "nothing"


DEDUCED_FORGERIES = {
    "a premise that is not listed": (lambda one: without(one, "free-gets-held-blocks"), "held-blocks is told"),
    "a premise of deductions that is not listed": (lambda one: without(one, "arena-apart"), "arena-apart is told"),
    "that stores miss the stack is not listed": (lambda one: without(one, "stack-separation"), "stack-separation is"),
    "another premise": (another_premise, "arena-apart is told otherwise"),
    "a premise more that is not listed": (one_more_premise, "arena-not-wrapped is told"),
    "a premise that nobody knows": (an_unknown_premise, "nobody-looks is not listed"),
    "lines for sets": (with_sets, "not all that the fact"),
    "an induction without its lemmas": (by_induction, "is told otherwise"),
    "one by induction": (one_by_induction, "and others by induction"),
}


@pytest.mark.parametrize("name", DEDUCED_FORGERIES)
def test_what_is_told_wrongly_of_a_deduction_is_refused(name, deduced, program, binary):
    forge, reason = DEDUCED_FORGERIES[name]
    forged = json.loads(json.dumps({"image": {"sha256": program.image.sha256}, "bound": bound_section(deduced)}))
    forge(forged["bound"])
    with pytest.raises(VerificationError, match=reason):
        check_bound(sealed(forged), binary)


def test_a_module_certificate_beside_a_deduction_is_refused(deduced, document, program, binary):
    forged = json.loads(json.dumps({"image": {"sha256": program.image.sha256}, "bound": bound_section(deduced)}))
    forged["bound"]["module"] = document["bound"]["module"]
    with pytest.raises(VerificationError, match="by a solver has no module certificate"):
        check_bound(sealed(forged), binary)
