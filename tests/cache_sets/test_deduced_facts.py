"""Facts of CAMA and half-fit about pointers are proved by what a solver shows of all operations, no less."""

from dataclasses import replace
from functools import cache

import pytest

from tests.analyzer.deduction import half_fit_builds as half_fit
from tests.analyzer.deduction.cama_builds import deduced, program
from wcet_probe.analyzer.deduction import half_fit_operations
from wcet_probe.analyzer.deduction.formulas import condition, negation, unknown
from wcet_probe.analyzer.deduction.obligations import Deduced, Obligation, Reached
from wcet_probe.analyzer.deduction.smt_lib import Assumed, Follows, FollowsOfBits
from wcet_probe.analyzer.domains.congruences import Congruence
from wcet_probe.answer.facts.fact_table import FactStatus, fact_rows
from wcet_probe.answer.facts.proved_facts import prepared_operations, proved_facts_text
from wcet_probe.cache_sets import deduced_facts as module
from wcet_probe.cache_sets import deduction, half_fit_deduction
from wcet_probe.cache_sets.deduced_facts import deduced_facts
from wcet_probe.cache_sets.deduction import OPERATIONS, WHOLE
from wcet_probe.catalog.lookup import load_target
from wcet_probe.cli import main

HEAP_BYTES = 65536
SHOWN = (Obligation(1, 0x100, "bits", is_shown=True),)
FACTS = 4


@cache
def prepared():
    return prepared_operations(program(), HEAP_BYTES)


@cache
def as_asserted():
    """Of each part that all was shown of it, and of addresses what CAMA's facts assert of them."""
    parts = []
    for name in OPERATIONS:
        role = next((one for one, own in WHOLE.items() if name in own and one in prepared()), None)
        reached, aligned = {}, {}
        one = prepared()[role] if role else None
        for access in (each for own in one.values.accesses.values() for each in own) if one else ():
            told = one.data.lines.places.pointers.of(access.instruction_address)
            form = one.values.terms.linear(access.pointer)
            if told.where and len(form.coefficients) == 1:
                what = Reached.BLOCK if told.sets is None else Reached.DESCRIPTOR
                classes = Congruence(told.alignment_bytes, form.constant % told.alignment_bytes)
                reached.setdefault(access.instruction_address, set()).add(what)
                aligned.setdefault(access.instruction_address, set()).add(classes)
        frozen = ({address: frozenset(own) for address, own in each.items()} for each in (reached, aligned))
        parts.append(Deduced(name, 1, SHOWN, ((),), *frozen))
    return tuple(parts)


def resting():
    """An instruction of malloc that accesses a descriptor, whose alignment and sets facts tell."""
    told = prepared()["malloc"].data.lines.places.pointers
    every = {at for part in as_asserted() for at in part.aligned if told.of(at).sets is not None}
    nothing = frozenset({Congruence(1, 0)})
    blind = [replace(one, aligned=dict.fromkeys(one.aligned, nothing), reached={}) for one in as_asserted()]
    open_ones = {at for claim in deduced_facts(program(), HEAP_BYTES, blind).claims for at, _ in claim.open_accesses}
    malloc = {at for one in as_asserted() if one.operation in WHOLE["malloc"] for at in one.aligned}
    return min(every & open_ones & malloc)


@pytest.fixture(autouse=True)
def prepared_once(monkeypatch):
    monkeypatch.setattr(module, "prepared_operations", lambda *_: prepared())


def test_what_is_shown_of_all_operations_proves_all_facts():
    found = deduced_facts(program(), HEAP_BYTES, as_asserted())
    assert [one.is_proved for one in found.claims] == [True] * FACTS
    assert [one.is_proved for one in found.sets] == [True] * (FACTS - 1)
    text = proved_facts_text(program(), found)
    assert text.count("proved, by what a solver (z3) shows") == 2 * FACTS - 1
    assert "premises: init-first, free-gets-held-blocks, caller-writes-own-blocks, arena-apart" in text
    assert "lemma" not in text
    rows = fact_rows(program(), HEAP_BYTES, found)
    assert [(row.alignment, row.lemmas) for row in rows] == [(FactStatus.PROVED, ())] * FACTS


@pytest.mark.parametrize("number", range(len(OPERATIONS)))
def test_nothing_is_proved_where_something_of_any_operation_is_open(number):
    """As of a version that is broken: a solver leaves the operation open, and the facts are lemmas again."""
    parts = list(as_asserted())
    wrong = Obligation(1, 0x100, "in the reserved sets", is_shown=False)
    opened = replace(parts[number], obligations=(*SHOWN, wrong))
    for others in ([*parts[:number], opened, *parts[number + 1 :]], [*parts[:number], *parts[number + 1 :]]):
        found = deduced_facts(program(), HEAP_BYTES, others)
        assert not found.claims
        assert "not shown as a whole" in found.why_not


@pytest.mark.parametrize(
    ("changes", "alignments", "sets"),
    [
        ({"aligned": Congruence(4, 0)}, False, True),
        ({"aligned": Congruence(32, 2)}, False, True),
        ({"aligned": Congruence(1, 0)}, False, True),
        ({"reached": Reached.AREA}, True, False),
        ({"reached": Reached.BLOCK}, True, False),
        ({"reached": Reached.STACK}, True, False),
    ],
)
def test_one_access_that_is_shown_to_go_elsewhere_is_a_lemma(changes, alignments, sets):
    """A link stored with an offset, a place at the begin of an area, an access that is to a block on one way."""
    parts = list(as_asserted())
    number = OPERATIONS.index("malloc-large")
    address = resting()
    given = {
        name: {**getattr(parts[number], name), address: getattr(parts[number], name)[address] | {one}}
        for name, one in changes.items()
    }
    parts[number] = replace(parts[number], **given)
    found = deduced_facts(program(), HEAP_BYTES, parts)
    assert all(one.is_proved for one in found.claims) == alignments
    assert all(one.is_proved for one in found.sets) == sets
    (left,) = [one for one in (*found.claims, *found.sets) if not one.is_proved]
    assert {at for at, _ in left.open_accesses} == {address}
    assert len([row for row in fact_rows(program(), HEAP_BYTES, found) if row.lemmas]) == (not sets)


def test_without_a_data_cache_nothing_is_tried():
    bare = replace(program(), target=load_target("cortex-m4"))
    assert "without a data cache" in deduced_facts(bare, HEAP_BYTES, as_asserted()).why_not


@pytest.mark.slow
def test_a_solver_proves_camas_facts():
    """All parts, in minutes."""
    found = deduced_facts(program(), HEAP_BYTES, [deduced(name) for name in OPERATIONS])
    assert [one.is_proved for one in found.claims] == [True] * FACTS
    assert [one.is_proved for one in found.sets] == [True] * (FACTS - 1)


HALF_FIT = half_fit_deduction.OPERATIONS


def half_fit_facts(parts, monkeypatch, target="mpc603e"):
    monkeypatch.setattr(module, "prepared_operations", prepared_operations)
    return deduced_facts(half_fit.program(target), HEAP_BYTES, parts)


def half_fit_as_executed(target="mpc603e"):
    """What is executed of half-fit, without asking whether its claims are kept."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(half_fit_operations._Run, "ask_claims", lambda *_: None)
        return [half_fit_deduction.deduced(half_fit.program(target), name) for name in HALF_FIT]


def test_where_half_fits_accesses_go_proves_its_fact(monkeypatch):
    """An address that is the sum of a payload and one or two sizes is told by its own class and those before it."""
    parts = half_fit_as_executed()
    found = half_fit_facts(parts, monkeypatch)
    assert [(one.is_proved, one.accesses) for one in found.claims] == [(True, 58)]
    assert {"arena-apart", "arena-not-wrapped"} <= {one.id for one in found.premises}
    assert not found.sets
    wrong = replace(parts[2], obligations=(Obligation(1, 0x100, "tags", is_shown=False),))
    assert not half_fit_facts([*parts[:2], wrong, parts[3]], monkeypatch).claims
    for address in (min(parts[3].aligned), max(parts[3].aligned)):
        bent = replace(parts[3], aligned={**parts[3].aligned, address: frozenset({Congruence(4, 0)})})
        assert [one.is_proved for one in half_fit_facts([*parts[:3], bent], monkeypatch).claims] == [False]


@pytest.mark.slow
@pytest.mark.parametrize("target", ["cortex-m7", "arm926ej-s"])
def test_of_a_store_of_two_words_the_access_before_tells_where_it_begins(monkeypatch, target):
    found = half_fit_facts(half_fit_as_executed(target), monkeypatch, target)
    assert [(one.is_proved, one.accesses) for one in found.claims] == [(True, 58)]


@pytest.mark.slow
@pytest.mark.parametrize("target", ["mpc603e", "cortex-m7"])
def test_a_solver_proves_half_fits_fact(monkeypatch, target):
    found = half_fit_facts([half_fit.deduced(name, target) for name in HALF_FIT], monkeypatch, target)
    assert [one.is_proved for one in found.claims] == [True]


def test_the_command_deduces_only_what_it_is_to_prove(capsys):
    assert main(["facts", "cama", "--deduce", "--target", "mpc603e"]) == 2
    assert "--deduce shows what --prove asks for" in capsys.readouterr().err
    assert main(["facts", "tlsf", "--prove", "--deduce", "--target", "mpc603e"]) == 2
    assert "written for cama and half-fit, not for tlsf" in capsys.readouterr().err


def test_the_command_writes_what_was_shown_for_another_solver(capsys, monkeypatch, tmp_path):
    command = ("facts", "cama", "--prove", "--target", "mpc603e", "--heap", str(HEAP_BYTES), "--smt-lib", str(tmp_path))
    assert main(command) == 2
    assert "--smt-lib writes what --deduce shows of one ALLOCATOR; give both" in capsys.readouterr().err
    number = unknown("number")
    none = condition("bits constant", 0)
    of_bits = FollowsOfBits((), negation(condition("bits less", condition("bits unknown", "word"), none)))
    asked = (Assumed(number >= 3), Follows(number > 0), of_bits)
    monkeypatch.setattr(deduction, "deduce", lambda *_: [replace(one, questions=(asked,)) for one in as_asserted()])
    assert main([*command, "--deduce"]) == 0
    parts = len(as_asserted())
    assert f"{2 * parts} questions in {2 * parts} files of SMT-LIB in {tmp_path}" in capsys.readouterr().err
    assert len(list(tmp_path.glob("*-1-integers.smt2"))) == len(list(tmp_path.glob("*-1-bits.smt2"))) == parts
    assert "(check-sat)" in (tmp_path / "init-1-bits.smt2").read_text()


def test_the_command_tells_what_the_deduction_proves(capsys, monkeypatch):
    monkeypatch.setattr(deduction, "deduce", lambda *_: as_asserted())
    assert main(["facts", "cama", "--prove", "--deduce", "--target", "mpc603e", "--heap", str(HEAP_BYTES)]) == 0
    out = capsys.readouterr().out
    assert out.count("proved, by what a solver (z3) shows") == 2 * FACTS - 1
    assert "invariant: what is followed is 0 modulo 32" in out
    monkeypatch.setattr("wcet_probe.catalog.lookup.allocator_names", lambda: ("cama", "first-fit"))
    assert main(["facts", "all", "--prove", "--deduce", "--target", "mpc603e", "--heap", str(HEAP_BYTES)]) == 0
    assert "5 facts; alignment proved of 5; 1 assert more" in capsys.readouterr().out
