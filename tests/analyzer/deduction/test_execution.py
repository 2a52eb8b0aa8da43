"""Ways through machine code: all of them are told, and what cannot be followed is told, too."""

import operator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from wcet_probe.analyzer.deduction import execution
from wcet_probe.analyzer.deduction.execution import follow_paths
from wcet_probe.analyzer.deduction.formulas import condition, negation, unknown
from wcet_probe.analyzer.deduction.solver import Questions
from wcet_probe.analyzer.deduction.word_terms import WordTerms
from wcet_probe.analyzer.deduction.words import SPAN, Word
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
    follow_paths(
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
    follow_paths(lifter, WordTerms(Questions()), BASE, {"r3": Word(5)}, memory, ends.append)
    assert [end.memory.word for end in ends] == [Word(5)]
    assert memory.word == Word(1)


def test_words_of_registers_are_told_by_name():
    code = b"".join(word.to_bytes(4, "big") for word in (0x38800005, RETURN))  # li r4, 5; blr
    lifter = Lifter(LANGUAGE, Isa.POWERPC, lambda at, size: code[at - BASE : at - BASE + size])
    terms = WordTerms(Questions())
    found = []
    follow_paths(lifter, terms, BASE, {}, NoMemory(), lambda end: found.append((end.words(), end.is_at_join)))
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


def arm_ends(code, isa, memory=None, **numbers):
    """Ends of the ways through Arm code, of any registers that are these numbers, and the terms."""
    lifter = Lifter("ARM:LE:32:v7", isa, lambda at, size: code[at - BASE : at - BASE + size])
    terms = WordTerms(Questions())
    given_registers = {}
    for name, number in numbers.items():
        node = terms.known(unknown(name))
        terms.questions.assume(node.equals(number))
        given_registers[name] = Word(0, ((node, 1),))
    found = []
    follow_paths(lifter, terms, BASE, given_registers, memory or NoMemory(), found.append)
    return found, terms


def code_of(isa, compare, condition):
    """``mov r2, #0``, the comparison of r0 and r1, ``mov r2, #1`` under ``condition``, ``bx lr``."""
    if isa is Isa.ARM:
        return b"".join(
            word.to_bytes(4, "little") for word in (0xE3A02000, compare, condition << 28 | 0x03A02001, 0xE12FFF1E)
        )
    return b"".join(half.to_bytes(2, "little") for half in (0x2200, compare, 0xBF08 | condition << 4, 0x2201, 0x4770))


def holds_after(condition, one, other, *, adds):
    """Whether a condition of Arm holds after ``cmp``, or ``cmn``, of these numbers (DDI 0403, A7.3)."""
    signed = [number - SPAN if number >= SPAN // 2 else number for number in (one, other)]
    result = (one + other if adds else one - other) % SPAN
    is_negative, is_zero = result >= SPAN // 2, result == 0
    carry = one + other >= SPAN if adds else one >= other
    exact = sum(signed) if adds else operator.sub(*signed)
    overflow = not -SPAN // 2 <= exact < SPAN // 2
    is_less = is_negative != overflow
    plain = (
        is_zero, carry, is_negative, overflow, carry and not is_zero, not is_less, not is_zero and not is_less, True
    )  # fmt: skip
    return plain[condition // 2] != bool(condition % 2)


EDGES = st.sampled_from([0, 1, 5, (1 << 31) - 1, 1 << 31, (1 << 31) + 1, SPAN - 1])


@settings(max_examples=examples(12), deadline=None)
@given(EDGES, EDGES, st.integers(0, 13), st.booleans(), st.sampled_from([Isa.ARM, Isa.THUMB]))
def test_conditions_of_arm_are_those_of_the_machine(one, other, condition, adds, isa):
    compare = {Isa.ARM: (0xE1500001, 0xE1700001), Isa.THUMB: (0x4288, 0x42C8)}[isa][adds]
    ends, _ = arm_ends(code_of(isa, compare, condition), isa, r0=one, r1=other)
    expected = Word(int(holds_after(condition, one, other, adds=adds)))
    assert [(end.reason, end.registers("r2")) for end in ends] == [("", expected)]


@settings(max_examples=examples(8), deadline=None)
@given(st.integers(0, SPAN - 1), st.sampled_from([0, 1, 3, 12]))
def test_rbit_reverses_the_bits(number, register):
    """``rbit r2, rN; bx lr``, of a number and of a word over bits."""
    code = b"".join(half.to_bytes(2, "little") for half in (0xFA90 | register, 0xF2A0 | register, 0x4770))
    (end,), terms = arm_ends(code, Isa.THUMB, **{f"r{register}": number})
    of, result = end.registers(f"r{register}"), end.registers("r2")
    reversed_number = int(f"{number:032b}"[::-1], 2)
    premise = condition("bits equal", terms.bits(of), condition("bits constant", number))
    expected = condition("bits equal", terms.bits(result), condition("bits constant", reversed_number))
    assert terms.questions.bits_hold([premise], expected)
    assert not terms.questions.bits_hold([premise], negation(expected))
    assert terms.reversed_bits(Word(number)) == Word(reversed_number)


def is_shown(end, terms, result, **numbers):
    """Whether r2 is ``result`` at ``end`` where the registers at entry are ``numbers``, over bits."""
    given_words = {name: terms.bits(Word(0, ((unknown(name), 1),))) for name in numbers}
    premises = [
        condition("bits equal", given_words[name], condition("bits constant", numbers[name])) for name in numbers
    ]
    return terms.questions.bits_hold(
        premises, condition("bits equal", terms.bits(end.registers("r2")), condition("bits constant", result))
    )


def any_arm_ends(code, isa, *names):
    """Ends of the ways through Arm code, of any registers of these names, which bits are computed of."""
    lifter = Lifter("ARM:LE:32:v7", isa, lambda at, size: code[at - BASE : at - BASE + size])
    terms = WordTerms(Questions())
    registers = {name: Word(0, ((terms.known(unknown(name)), 1),)) for name in names}
    found = []
    follow_paths(lifter, terms, BASE, registers, NoMemory(), found.append)
    return found, terms


@pytest.mark.parametrize(
    ("isa", "code"),
    [
        (Isa.ARM, "102f6fe1 050052e3 0520a023 1eff2fe1"),
        (Isa.THUMB, "b0fa80f2 052a 28bf 0522 7047"),
    ],
)
def test_ways_of_a_conditional_instruction_that_computes_bits_are_joined(isa, code):
    """``clz r2, r0; cmp r2, #5; movhs r2, #5; bx lr``, in Thumb with ``it hs``."""
    (end,), terms = any_arm_ends(bytes.fromhex(code), isa, "r0")
    assert (end.reason, end.choices) == ("", ())
    for number in (0, 1, 1 << 26, 1 << 27, 1 << 30, SPAN - 1):
        least = min(32 - number.bit_length(), 5)
        assert is_shown(end, terms, least, r0=number)
        assert not is_shown(end, terms, least + 1, r0=number)


def test_flags_of_a_conditional_comparison_are_those_of_either_way():
    """``mov r2, #0; clz r0, r0; clz r1, r1; cmp r0, #5; cmplo r1, #3; movlo r2, #1; bx lr``."""
    words = (0xE3A02000, 0xE16F0F10, 0xE16F1F11, 0xE3500005, 0x33510003, 0x33A02001, 0xE12FFF1E)
    (end,), terms = any_arm_ends(b"".join(word.to_bytes(4, "little") for word in words), Isa.ARM, "r0", "r1")
    assert (end.reason, end.choices) == ("", ())
    for first, second in ((SPAN - 1, SPAN - 1), (SPAN - 1, 1), (1, SPAN - 1), (1, 1)):
        assert is_shown(end, terms, int(first != 1 and second != 1), r0=first, r1=second)


@pytest.mark.parametrize("code", ["102f6fe1 050052e3 00209025 1eff2fe1", "102f6fe1 050052e3 1eff2f21 1eff2fe1"])
def test_ways_of_a_conditional_access_or_return_are_not_joined(code):
    """``clz r2, r0; cmp r2, #5; ldrhs r2, [r0] or bxhs lr; bx lr``."""
    ends, _ = any_arm_ends(bytes.fromhex(code), Isa.ARM, "r0")
    assert len(ends) == 2


def ends_of(ends_before, *words):
    """Ends of the ways through these instructions of PowerPC, with a comparison that ends them."""
    code = b"".join(word.to_bytes(4, "big") for word in words)
    lifter = Lifter(LANGUAGE, Isa.POWERPC, lambda at, size: code[at - BASE : at - BASE + size])
    terms, found = WordTerms(Questions()), []
    given_word = Word(0, ((terms.known(unknown("argument")), 1),))
    follow_paths(lifter, terms, BASE, {"r3": given_word}, NoMemory(), found.append, ends_before=ends_before)
    return found


def test_ways_end_before_the_comparison_that_is_looked_for_and_nothing_of_it_is_executed():
    """``addi r3, r3, 1; cmplwi r3, 9; addi r3, r3, 1; cmplwi r3, 5; blr``."""
    code = 0x38630001, 0x28030009, 0x38630001, 0x28030005, RETURN
    asked = []

    def is_with_five(_, site, one, other):
        asked.append((site.instruction_address, one.constant))
        return Word(5) in {one, other}

    (end,) = ends_of(is_with_five, *code)
    assert (end.instruction_address, end.reason, end.is_at_join) == (BASE + 12, "", True)
    assert end.registers("r3") == Word(2, ((unknown("argument"), 1),))
    assert {at for at, _ in asked} == {BASE + 4, BASE + 12}
    (whole,) = ends_of(lambda *_: False, *code)
    assert (whole.instruction_address, whole.is_at_join) == (BASE + 16, False)


def test_a_constant_in_the_code_is_loaded_without_memory():
    """``ldr r2, [pc]; bx lr; .word 0x12345678`` in Thumb and in A32."""
    for isa, code in ((Isa.THUMB, "004a704778563412"), (Isa.ARM, "00209fe51eff2fe178563412")):
        (end,), _ = arm_ends(bytes.fromhex(code), isa)
        assert (end.reason, end.registers("r2")) == ("", Word(0x12345678))


@pytest.mark.parametrize(("condition_of_it", "number"), [(0, 5), (0, 6), (1, 5), (1, 6)])
def test_an_rbit_in_an_it_block_is_executed_only_where_its_condition_holds(condition_of_it, number):
    """``cmp r0, #5; it eq or ne; rbit r0, r0; bx lr``."""
    halves = (0x2805, 0xBF08 | condition_of_it << 4, 0xFA90, 0xF0A0, 0x4770)
    ends, _ = arm_ends(b"".join(half.to_bytes(2, "little") for half in halves), Isa.THUMB, r0=number)
    is_reversed = (number == 5) != bool(condition_of_it)
    kept = [end.registers("r0") == Word(0, ((unknown("r0"), 1),)) for end in ends if not end.reason]
    # Bit by bit it may be none that is known; then the way is told.
    assert (True not in kept) if is_reversed else (kept == [True])


def test_a_byte_is_not_extended_with_its_sign_as_if_it_were_a_word():
    """``movs r0, #0x80; sxtb r0, r0; bx lr``: 0xFFFFFF80, or told."""
    (end,), _ = arm_ends(bytes.fromhex("802040b27047"), Isa.THUMB)
    assert end.reason or end.registers("r0") == Word(0xFFFF_FF80)


def test_a_word_of_a_table_in_the_code_is_no_constant_of_the_instruction():
    """``adr r1, table; ldr r2, [r1, #0]; bx lr``: what the memory says of it, so that its set is not lost."""
    (end,), _ = arm_ends(bytes.fromhex("01a10a68704700bf78563412"), Isa.THUMB)
    assert end.reason == "no memory"


class Stack(NoMemory):
    def __init__(self, words=()):
        self.words = dict(words)

    def copy(self):
        return Stack(self.words)

    def load(self, address, _):
        return self.words[address]

    def store(self, address, value, _):
        self.words[address] = value


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("00b5 00bd", ""),  # push {lr}; pop {pc}
        ("01b5 00bd", "a return to another place than the caller"),  # push {r0, lr}; pop {pc}
        ("0047", "an operation that is not known, BRANCHIND"),  # bx r0
    ],
)
def test_where_a_return_by_the_stack_leads_to_is_looked_at(code, reason):
    (end,), _ = arm_ends(bytes.fromhex(code.replace(" ", "")), Isa.THUMB, Stack(), sp=0x2000, r0=0x1234)
    assert end.reason == reason
