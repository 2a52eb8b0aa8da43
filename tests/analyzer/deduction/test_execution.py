"""Ways through machine code: all of them are told, and what cannot be followed is told, too."""

import pytest

from wcet_probe.analyzer.deduction import execution
from wcet_probe.analyzer.deduction.execution import follow_ways
from wcet_probe.analyzer.deduction.formulas import unknown
from wcet_probe.analyzer.deduction.solver import Questions
from wcet_probe.analyzer.deduction.words import Word, WordTerms
from wcet_probe.analyzer.pcode.lift import Lifter
from wcet_probe.model.target import Isa

BASE = 0x1000
LANGUAGE = "PowerPC:BE:32:default"
RETURN = 0x4E800020
CLAMPED = (0x7C690034, 0x2C090005, 0x41800008, 0x39200005, 0x7D234B78, RETURN)  # cntlzw cmpwi blt li mr blr


class NoMemory:
    def copy(self):
        return self

    def load(self, *_):
        raise execution.Astray("no memory")

    store = load


def ways(*words, most=None, to_join=False):
    """Ends of the ways through these instructions, of any r3 up to ``most``, with what r3 is."""
    code = b"".join(word.to_bytes(4, "big") for word in words)
    lifter = Lifter(LANGUAGE, Isa.POWERPC, lambda at, size: code[at - BASE : at - BASE + size])
    terms = WordTerms(Questions())
    argument = terms.known(unknown("argument"), most if most is not None else (1 << 32) - 1)
    found = []
    follow_ways(
        lifter, terms, BASE, {"r3": Word(0, ((argument, 1),))}, NoMemory(),
        lambda end: found.append((end.reason, end.registers("r3"), end.choices)), to_join=to_join,
    )  # fmt: skip
    return found, terms


def test_both_ways_of_a_branch_are_followed():
    """``cmplwi r3, 0; beqlr; li r3, 1; blr``."""
    found, _ = ways(0x28030000, 0x4D820020, 0x38600001, RETURN)
    assert [reason for reason, _, _ in found] == ["", ""]
    assert Word(1) in [result for _, result, _ in found]
    assert {choice for _, _, choices in found for choice in choices} == {(BASE + 4, True), (BASE + 4, False)}


def test_a_way_that_is_impossible_is_left_out():
    """``cmplwi r3, 9; blelr; li r3, 1; blr`` of at most 9."""
    found, _ = ways(0x28030009, 0x4C810020, 0x38600001, RETURN, most=9)
    assert len(found) == 1


def test_ways_that_differ_in_one_computation_of_bits_are_joined():
    (only, *rest), terms = ways(*CLAMPED)
    assert not rest
    leaf = terms.leaves(only[1])
    assert leaf == (Word(0, ((unknown("argument"), 1),)),)


def test_ways_that_differ_in_what_integers_know_are_not_joined():
    """``cmplwi r3, 5; blt +8; li r3, 5; blr``."""
    found, _ = ways(0x28030005, 0x41800008, 0x38600005, RETURN)
    assert len(found) == 2


STORED = 0x90640000  # stw r3, 0(r4)
JOINED = (0x4081000C, 0x38600009, STORED, 0x38630001, STORED, RETURN)  # ble +12; li 9; stw; addi r3, r3, 1; stw; blr


def test_ways_end_where_the_first_branch_with_stores_before_and_behind_is_joined(monkeypatch):
    monkeypatch.setattr(NoMemory, "store", lambda *_: None)
    found, _ = ways(0x28030009, *JOINED, to_join=True)  # cmplwi r3, 9
    assert {result for _, result, _ in found} == {Word(9), Word(0, ((unknown("argument"), 1),))}
    behind, _ = ways(0x28030009, *JOINED)
    assert Word(10) in [result for _, result, _ in behind]


def test_a_branch_that_stores_nothing_is_not_what_is_joined(monkeypatch):
    """Before the branch of the test above is ``cmplwi r3, 12; ble +8; li r3, 5``."""
    monkeypatch.setattr(NoMemory, "store", lambda *_: None)
    found, _ = ways(0x2803000C, 0x40810008, 0x38600005, 0x28030009, *JOINED, to_join=True)
    assert {result for _, result, _ in found} == {Word(5), Word(9), Word(0, ((unknown("argument"), 1),))}


class OneWord(NoMemory):
    def __init__(self, word):
        self.word = word

    def copy(self):
        return OneWord(self.word)

    def store(self, _, value, __):
        self.word = value


def test_the_memory_at_entry_stays_as_it_was_where_something_is_stored_before_the_first_branch():
    """``stw r3, 0(r4); blr``: what is asked at an end is held against the memory at entry."""
    code = b"".join(word.to_bytes(4, "big") for word in (STORED, RETURN))
    lifter = Lifter(LANGUAGE, Isa.POWERPC, lambda at, size: code[at - BASE : at - BASE + size])
    memory, ends = OneWord(Word(1)), []
    follow_ways(lifter, WordTerms(Questions()), BASE, {"r3": Word(5)}, memory, ends.append)
    assert [end.memory.word for end in ends] == [Word(5)]
    assert memory.word == Word(1)


def test_words_of_registers_are_told_by_name():
    code = b"".join(word.to_bytes(4, "big") for word in (0x38800005, RETURN))  # li r4, 5; blr
    lifter = Lifter(LANGUAGE, Isa.POWERPC, lambda at, size: code[at - BASE : at - BASE + size])
    terms = WordTerms(Questions())
    found = []
    follow_ways(lifter, terms, BASE, {}, NoMemory(), lambda end: found.append((end.words(), end.is_at_join)))
    ((words, is_at_join),) = found
    assert (words["r4"], words["lr"]) == (Word(5), Word(0, ((execution.RETURN_ADDRESS, 1),)))
    assert "r3" not in words
    assert not is_at_join


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ((0x88630000, RETURN), "a load of 1 bytes"),
        ((0x80630000, RETURN), "no memory"),
        ((0x7C6321D6, RETURN), "an operation that is not known"),  # mullw r3, r3, r4
        ((0x38600000, 0x7C6803A6, RETURN), "a return to another place than the caller"),  # li r3, 0; mtlr r3
        ((0x38600000,), "there is no code"),
        ((0x48000000,), "more than 50 instructions"),  # b .
        ((0x7C6903A6, 0x42000000, RETURN), "more than 5 branches"),  # mtctr r3; bdnz .
    ],
)
def test_what_cannot_be_followed_is_told(words, reason, monkeypatch):
    monkeypatch.setattr(execution, "_STEP_LIMIT", 50)
    monkeypatch.setattr(execution, "_BRANCH_LIMIT", 5)
    found, _ = ways(*words)
    assert any(reason in told for told, _, _ in found)
