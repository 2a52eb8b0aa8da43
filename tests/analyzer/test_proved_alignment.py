"""Which alignments that facts assert are proved: all residues of each term are of the class, on each way."""

from types import SimpleNamespace

import pytest

from wcet_probe.analyzer import proved_alignment
from wcet_probe.analyzer.dcache.asserted_alignment import AssertedOf
from wcet_probe.analyzer.domains.congruences import Congruence
from wcet_probe.analyzer.invariants.kinds import NULL, Kind, Part, residue, summed
from wcet_probe.analyzer.proved_alignment import (
    AlignmentClaim,
    Shown,
    alignment_claims,
    shown_alignments,
    shown_sets,
)
from wcet_probe.analyzer.values.states.bases import Base
from wcet_probe.analyzer.values.states.state import State
from wcet_probe.analyzer.values.symbolic.linear import Linear
from wcet_probe.analyzer.values.symbolic.terms import Terms

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


def test_the_invariant_is_told_in_words(monkeypatch):
    static = Part(Kind.STATIC, False, residue(40))
    (claim,) = Setting((ALIGNED, static), monkeypatch).claims()
    told = "an address in the arena that is 0 modulo 8 or an address in static data that is 40 modulo 64"
    assert claim.invariant == f"what is followed is {told}"
    assert not Setting((ALIGNED,), monkeypatch, lost=((0, 0),)).claims()[0].invariant


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


class ShownSetting(Setting):
    """The same access, of whose instruction a solver showed classes and sets."""

    def __init__(
        self,
        aligned,
        monkeypatch,
        *,
        sets=None,
        cache=(128, 32),
        asserted_sets=None,
        place="told",
        words_at=(1,),
        opcodes=("LOAD",),
        **others,
    ):
        super().__init__((), monkeypatch, **others)
        monkeypatch.setattr(proved_alignment, "_alignments", lambda *_: {})
        one = self.operation.accesses[0]
        terms = one.transfer.state.terms
        pointers = [terms.apply("INT_ADD", (self.link, terms.constant(4 * number, 32)), 32) for number in words_at]
        accesses = [SimpleNamespace(instruction_address=0x8000, pointer=each, base=Base.NUMBER) for each in pointers]
        code = SimpleNamespace(address=0x8000, ops=[SimpleNamespace(opcode=each) for each in opcodes])
        graph = SimpleNamespace(points=[SimpleNamespace(block=SimpleNamespace(instructions=[code]))])
        self.values = SimpleNamespace(states={0: None}, accesses={0: accesses}, terms=terms, graph=graph)
        told = SimpleNamespace(where=self.places.pointers.of(0).where, sets=asserted_sets)
        self.places.pointers = SimpleNamespace(of=lambda _: told, of_access=lambda _: told)
        self.places.config = SimpleNamespace(sets=128, line_bytes=32)
        self.places.place_of = lambda _: place
        shown = {} if aligned is None else {0x8000: frozenset(aligned)}
        self.shown = Shown(shown, {} if sets is None else {0x8000: frozenset(sets)}, cache)

    def alignments(self):
        return shown_alignments([self.values], [self.places], [self.shown])

    def sets(self):
        return shown_sets([self.values], [self.places], [self.shown])


def test_an_address_that_is_shown_tells_its_terms_class(monkeypatch):
    """The access is through ``link + 4``, and the link is to be a multiple of 8."""
    (claim,) = ShownSetting([Congruence(32, 4), Congruence(8, 4)], monkeypatch).alignments()
    assert claim == AlignmentClaim("a fact", 1)
    assert claim.is_proved
    assert claim.invariant == "what is followed is 0 modulo 8"  # of 0 modulo 32 and modulo 8
    assert ShownSetting(None, monkeypatch).alignments()[0].is_proved  # it is on no way


@pytest.mark.parametrize(
    ("shown", "why"),
    [
        (Congruence(32, 16), "12 modulo 32"),
        (Congruence(4, 0), "4, 12, 20, 28 modulo 32"),
        (Congruence(1, 0), "1, 2, 3, 4, … modulo 32"),
    ],
)
def test_an_address_of_another_class_is_open(monkeypatch, shown, why):
    (claim,) = ShownSetting([Congruence(32, 4), shown], monkeypatch).alignments()
    assert claim.open_accesses == ((0x8000, f"what is followed may be {why}"),)


def test_words_of_one_instruction_tell_their_term_together(monkeypatch):
    """Of ``link + 4`` and ``link + 8``, at 4 and 8 modulo 32, only 0 fits both; of one alone, so does 4."""
    shown = [Congruence(32, 4), Congruence(32, 8)]
    (both,) = ShownSetting(shown, monkeypatch, words_at=(1, 2), opcodes=("LOAD", "INT_ADD", "LOAD")).alignments()
    assert both.is_proved
    assert (both.accesses, both.invariant) == (2, "what is followed is 0 modulo 32")
    (alone,) = ShownSetting(shown, monkeypatch).alignments()
    assert alone.open_accesses == ((0x8000, "what is followed may be 4 modulo 32"),)
    (apart,) = ShownSetting(shown, monkeypatch, words_at=(1, 2), opcodes=("LOAD", "CBRANCH", "LOAD")).alignments()
    assert not apart.is_proved


@pytest.mark.parametrize(
    ("before", "is_proved", "told"),
    [
        (Congruence(8, 0), True, "0 modulo 8"),
        (Congruence(16, 8), True, "0 modulo 8"),
        (Congruence(8, 4), False, "4 modulo 8"),
        (Congruence(4, 0), False, "0 modulo 4"),
        (None, False, "0 modulo 4"),
    ],
)
def test_what_an_access_before_showed_tells_which_of_two_words_it_is(monkeypatch, before, is_proved, told):
    """An instruction that stores two words goes to 4 and 0 modulo 8, so that its first may be at either."""
    setting = ShownSetting([Congruence(8, 4), Congruence(8, 0)], monkeypatch)
    shown = {} if before is None else {setting.link: before}
    monkeypatch.setattr(proved_alignment, "_alignments", lambda *_: {0: (AssertedOf({}, shown),)})
    (claim,) = setting.alignments()
    assert (claim.is_proved, claim.invariant) == (is_proved, f"what is followed is {told}")


def test_nothing_that_is_shown_proves_nothing(monkeypatch):
    (claim,) = ShownSetting([Congruence(1, 0)], monkeypatch).alignments()
    assert claim.open_accesses == ((0x8000, "nothing is shown of what is followed"),)


def test_an_address_of_more_than_one_term_is_open(monkeypatch):
    setting = ShownSetting([Congruence(32, 4)], monkeypatch)
    monkeypatch.setattr(proved_alignment, "asserted_of", lambda *_: {99: CLASS})
    why = "the address is no sum of one unknown and a constant, nor of what was shown before"
    assert setting.alignments()[0].open_accesses[0][1] == why


@pytest.mark.parametrize(
    ("factors", "before", "expected"),
    [
        ({1: 1, 2: 1}, {2: Congruence(16, 8)}, {0}),  # 12 less 8 and 4, modulo 8
        ({1: 1, 2: 3}, {2: Congruence(8, 4)}, {4}),
        ({1: (1 << 32) - 1, 2: 1}, {2: Congruence(8, 0)}, {0}),  # 8 less than the sum of the others
        ({1: 1, 2: 1}, {2: Congruence(4, 0)}, None),  # of a class that says too little
        ({1: 1, 2: 1}, {}, None),
        ({1: 2, 2: 1}, {2: Congruence(8, 0)}, None),  # a half is not told
        ({2: 1}, {2: Congruence(8, 0)}, None),
        ({2: 1}, {1: Congruence(16, 12)}, {4}),  # it was shown itself
    ],
)
def test_one_of_several_terms_is_what_the_address_is_less_the_others(factors, before, expected):
    """The address is 4 modulo 8 wherever the access takes place."""
    rest = proved_alignment._rest(Linear(factors, 4, 32), 1, before, {Congruence(8, 4)}, 8)
    assert rest == (None if expected is None else frozenset(expected))
    assert proved_alignment._rest(None, 1, before, set(), 8) == frozenset()  # on no way


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"sets": {1, 2}}, ""),
        ({"sets": {1, 3}}, "it may be to set 3"),
        ({}, "it may be to a block, or to the stack"),
        ({"aligned": None}, ""),
        ({"sets": {1}, "cache": (64, 32)}, "the allocator is built for another cache"),
        ({"sets": {5}, "cache": (64, 32), "asserted_sets": frozenset(range(128))}, ""),
    ],
)
def test_sets_are_proved_where_all_that_are_shown_are_asserted(monkeypatch, changes, why):
    given = {"aligned": [Congruence(32, 4)], "asserted_sets": frozenset({1, 2}), **changes}
    (claim,) = ShownSetting(given.pop("aligned"), monkeypatch, **given).sets()
    assert claim.open_accesses == (((0x8000, why),) if why else ())
    told = {2: "the accesses are to 2 sets, 1 to", 1: "the accesses are to 1 sets, ", 0: "none is on any way"}
    assert claim.invariant.startswith(told[len(changes.get("sets", ()))])


def test_sets_that_no_fact_tells_are_no_claim(monkeypatch):
    assert not ShownSetting([], monkeypatch).sets()
    assert not ShownSetting([], monkeypatch, asserted_sets=frozenset({1}), place="static").sets()
    assert not ShownSetting([], monkeypatch, asserted_sets=frozenset({1}), where="").sets()
