"""The calling convention: a way that returns leaves what its caller keeps, and writes to no register that none may."""

import pytest

from tests.analyzer.deduction.test_execution import LANGUAGE, RETURN
from wcet_probe.analyzer.deduction import execution
from wcet_probe.analyzer.deduction.calling_convention import STACK_POINTER, callers_words, may_write, saved_words
from wcet_probe.analyzer.deduction.execution import follow_paths, stack_offset
from wcet_probe.analyzer.deduction.solver import Questions
from wcet_probe.analyzer.deduction.word_terms import WordTerms
from wcet_probe.analyzer.deduction.words import Word
from wcet_probe.analyzer.pcode.lift import Lifter
from wcet_probe.model.target import Isa

BASE = 0x1000
STACK = Word(0, ((STACK_POINTER, 1),))


class Frame:
    """A stack, by distances from the stack pointer at entry; nothing else is memory."""

    def __init__(self, words=()):
        self.words = dict(words)

    def copy(self):
        return Frame(self.words)

    def load(self, address, _):
        offset = stack_offset(address, STACK)
        if offset not in self.words:
            raise execution.Astray("no memory")
        return self.words[offset]

    def store(self, address, value, _):
        self.words[stack_offset(address, STACK)] = value


def ends(code, isa, **registers):
    """Ends of the ways through ``code``, with the stack pointer that the caller had."""
    language = LANGUAGE if isa is Isa.POWERPC else "ARM:LE:32:v7"
    lifter = Lifter(language, isa, lambda at, size: code[at - BASE : at - BASE + size])
    terms = WordTerms(Questions())
    terms.known(STACK_POINTER)
    found = []
    given = {"r1" if isa is Isa.POWERPC else "sp": STACK, **registers}
    follow_paths(lifter, terms, BASE, given, Frame(), lambda end: found.append((end.reason, end.untouched)))
    return found


def end(*words, **registers):
    """The end of the only way through these instructions of PowerPC: why it is not one, and what is untouched."""
    (found,) = ends(b"".join(word.to_bytes(4, "big") for word in words), Isa.POWERPC, **registers)
    return found


PUSH, POP = (0x9421FFF0, 0x93C10008), (0x83C10008, 0x38210010)  # stwu r1, -16(r1); stw r30, 8(r1) and back
CHANGE = 0x3BC00001  # li r30, 1


@pytest.mark.parametrize(
    ("code", "register"),
    [
        ([CHANGE], "r30"),
        ([*PUSH, CHANGE, *POP], None),
        ([*PUSH, CHANGE, POP[1]], "r30"),
        ([*PUSH, CHANGE, POP[0]], "r1"),
        ([*PUSH, CHANGE, 0x83E10008, POP[1]], "r30"),  # into r31
        ([*PUSH, CHANGE, 0x93C10008, *POP], "r30"),  # stored once more
        ([*PUSH, CHANGE, POP[0], 0x80210000], None),  # lwz r1, 0(r1)
        ([0x38210010], "r1"),
        ([0x7FC0F378, CHANGE, 0x7C1E0378], None),  # mr r0, r30 and back
        ([0x38600001], None),  # li r3, 1
    ],
)
def test_a_return_leaves_the_stack_pointer_and_saved_registers(code, register):
    reason, _ = end(*code, RETURN)
    assert reason == (f"a return with another {register} than the caller had" if register else "")


@pytest.mark.parametrize(
    "code",
    [
        0x7C600124,  # mtmsr r3
        0x7C7043A6,  # mtsprg0 r3
        0x2D030000,  # cmpwi cr2, r3, 0
        0x38400001,  # li r2, 1
        0x39A00001,  # li r13, 1
    ],
)
def test_a_register_that_no_function_may_change_is_not_written_to(code):
    reason, _ = end(code, RETURN)
    assert reason.startswith(("a write to a register that no function may change", "an operation that is not known"))


def test_what_is_not_given_behind_a_join_is_not_what_the_caller_had():
    saved = saved_words(Isa.POWERPC)
    back = {"lr": callers_words("r1")["return address"]}
    assert end(RETURN, **back, r30=saved["r30"])[0] == "a return with another r14 than the caller had"
    assert end(RETURN, **back, **saved) == ("", saved.keys() - {"r1"})
    assert end(RETURN, **back, **{**saved, "r31": saved["r30"]})[0] == "a return with another r31 than the caller had"


@pytest.mark.parametrize(
    ("code", "register"),
    [
        ("10b5 0124 10bd", None),  # push {r4, lr}; movs r4, 1; pop {r4, pc}
        ("10b5 0124 20bd", "r4"),  # pop {r5, pc}
        ("0124 7047", "r4"),  # movs r4, 1; bx lr
        ("00b5 01bc 7047", None),  # push {lr}; pop {r0}; bx lr
        ("01b4 7047", "sp"),  # push {r0}; bx lr
    ],
)
def test_arm_leaves_them_too(code, register):
    ((reason, _),) = ends(bytes.fromhex(code.replace(" ", "")), Isa.THUMB)
    assert reason == (f"a return with another {register} than the caller had" if register else "")


def test_what_may_be_written_to_are_the_registers_of_a_function():
    assert {"r2", "r13", "cr2", "cr3", "cr4", "msr", "f14"}.isdisjoint(may_write(Isa.POWERPC))
    assert {"cpsr", "spsr", "fpscr", "d8"}.isdisjoint(may_write(Isa.THUMB))
    assert may_write(Isa.ARM) >= {*(f"r{number}" for number in range(13)), "sp", "lr"}
