"""Which alignments that facts assert are proved: all residues of each term are of the class, on each way."""

from types import SimpleNamespace

import pytest

from wcet_probe.analyzer import proved_alignment
from wcet_probe.analyzer.domains.congruences import Congruence
from wcet_probe.analyzer.invariants.kinds import NULL, Kind, Part, residue, summed
from wcet_probe.analyzer.proved_alignment import AlignmentClaim, alignment_claims
from wcet_probe.analyzer.values.bases import Base
from wcet_probe.analyzer.values.state import State
from wcet_probe.analyzer.values.terms import Terms

ALIGNED = Part(Kind.ARENA, True, residue(0) | residue(8) | residue(16))
ODD = Part(Kind.ARENA, True, residue(8) | residue(12))
CLASS = Congruence(8, 0)


class Setting:
    """One access through ``link + 4`` of which a fact asserts a class, and what its link may be."""

    def __init__(self, words, monkeypatch, *, asserted=CLASS, allowed=None, base=Base.NUMBER, lost=(), where="a fact"):
        terms = Terms()
        state = State(terms, big_endian=False)
        self.link = terms.symbol((0, 0, 0), 32)
        pointer = terms.apply("INT_ADD", (self.link, terms.constant(4, 32)), 32)
        access = SimpleNamespace(instruction_address=0x8000, base=base)
        transfer = SimpleNamespace(state=state, pointer=pointer)
        self.operation = SimpleNamespace(accesses=[SimpleNamespace(access=access, transfer=transfer)])
        self.memory = SimpleNamespace(lost=lost, found={})
        told = {} if asserted is None else {self.link: asserted}
        monkeypatch.setattr(proved_alignment, "asserted_of", lambda *_: told)
        pointers = SimpleNamespace(of=lambda _: SimpleNamespace(where=where))
        residues = SimpleNamespace(of_unknown=lambda _, own: allowed or own)
        self.places = SimpleNamespace(pointers=pointers, residues=residues)
        constant = (Part(Kind.NUMBER, False, residue(4)),)
        self.evaluator = SimpleNamespace(word=lambda *_: words, sum=lambda parts, _: summed(parts, constant))

    def claims(self):
        return alignment_claims([self.operation], [self.places], self.memory, self.evaluator)


def test_a_link_with_residues_of_the_class_alone_is_proved(monkeypatch):
    (claim,) = Setting((ALIGNED,), monkeypatch).claims()
    assert claim == AlignmentClaim("a fact", 1)
    assert claim.is_proved


def test_a_residue_outside_is_named(monkeypatch):
    (claim,) = Setting((ODD,), monkeypatch).claims()
    assert not claim.is_proved
    assert claim.open_accesses == ((0x8000, "it may be an address in the arena that is 12 modulo 64"),)


def test_what_is_not_followed_need_not_be_aligned(monkeypatch):
    """Null, and a number from the arena, by the lemmas."""
    number = Part(Kind.NUMBER, True, residue(12))
    (claim,) = Setting((*NULL, number, ALIGNED), monkeypatch).claims()
    assert claim.is_proved
    (claim,) = Setting((*NULL, number._replace(is_loaded=False), ALIGNED), monkeypatch).claims()
    assert not claim.is_proved


def test_the_class_that_is_taken_is_that_of_what_the_term_comes_from(monkeypatch):
    assert Setting((ODD,), monkeypatch, allowed=Congruence(4, 0)).claims()[0].is_proved
    (claim,) = Setting((ALIGNED,), monkeypatch, allowed=Congruence(128, 0)).claims()
    assert claim.open_accesses[0][1] == "residues are known modulo 64 only"


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"lost": ((0, 0),)}, "the address of a store is not known"),
        ({"base": Base.ANY}, "its address may be on the stack"),
    ],
)
def test_where_a_store_is_lost_or_the_stack_is_meant_nothing_is_proved(monkeypatch, changed, why):
    (claim,) = Setting((ALIGNED,), monkeypatch, **changed).claims()
    assert not claim.is_proved
    assert why in claim.open_accesses[0][1]


def test_what_no_fact_asserts_is_no_claim(monkeypatch):
    assert not Setting((ODD,), monkeypatch, asserted=None).claims()
    assert not Setting((ODD,), monkeypatch, where="").claims()
    assert not AlignmentClaim("a fact", 0).is_proved


def test_a_term_that_is_not_in_the_address_is_not_proved(monkeypatch):
    setting = Setting((ALIGNED,), monkeypatch)
    monkeypatch.setattr(proved_alignment, "asserted_of", lambda *_: {99: CLASS})
    assert setting.claims()[0].open_accesses[0][1] == "the address is made of something else here"
