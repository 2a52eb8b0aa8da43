"""Which places hold one value where nodes begin: branches that compare them go one way, and what may not be said."""

import re

import pytest

from tests.certificate.forgeries import sealed, solved_again, without_edges
from tests.certificate.kernel.test_code import document_of, not_checked
from tests.support import assembler, guest_of
from wcet_probe.catalog.lookup import load_target
from wcet_probe.certificate.check import check_bound
from wcet_probe.certificate.kernel.equalities import are_equal, beginning, differing
from wcet_probe.certificate.values.numbers import ANY, TOP, Value, constant, number
from wcet_probe.certificate.values.state import STATIC, Comparison, State, assume
from wcet_probe.errors import VerificationError

DEAR = "adds r2, #1\n" * 9 + " bx lr\n"
TAKEN = """
 {copied}
 cmp r0, #0
 bne 1f
 {back}
 bx lr
1: {between}
 cmp r1, r2
 beq 2f
 {back}
 {dear}
2: {back}
 bx lr
"""
"""A way that is not taken, for r2 is what r1 is: a dear one."""
COPIED = {"copied": "mov r2, r1", "between": "nop", "back": "nop", "dear": DEAR}
PROGRAMS = {
    "of registers": COPIED,
    "of a word of the stack": {**COPIED, "copied": "push {r1, r3}", "between": "ldr r2, [sp]", "back": "add sp, #8"},
    "by one number": {**COPIED, "copied": "movs r1, #7", "between": "movs r2, #7"},
}
POWERPC = """
 mr 5, 4
 cmplwi 3, 0
 bne 1f
 blr
1: cmpw 4, 5
 beq 2f
 addi 4, 4, 1
 addi 4, 4, 2
 addi 4, 4, 3
 blr
2: blr
"""
LOADED_AGAIN = {
    "cortex-m4": """
 sub sp, #8
 ldr r3, [sp]
 cmp r3, #0
 beq 1f
 ldr r3, [sp]
 cmp r3, #0
 beq 2f
1: add sp, #8
 bx lr
2: b 2b
""",
    "mpc603e": """
 stwu 1, -16(1)
 lwz 3, 8(1)
 cmpwi 3, 0
 beq 1f
 lwz 3, 8(1)
 cmpwi 3, 0
 beq 2f
1: addi 1, 1, 16
 blr
2: b 2b
""",
}
"""The second branch is not taken."""
BROKEN = {
    "one more": {**COPIED, "copied": "adds r2, r1, #1"},
    "another way": {**COPIED, "copied": "cmp r3, #9\n it ne\n movne r2, r1"},
    "changed between": {**COPIED, "between": "adds r1, #1"},
    "a part of it": {**COPIED, "copied": "uxth r2, r1"},
    "a word that is stored over": {
        **COPIED, "copied": "push {r1, r3}\n mov r12, sp", "between": "strb r3, [r12, #1]\n ldr r2, [sp]",
        "back": "add sp, #8",
    },
    "a word that may be stored over": {
        **COPIED, "copied": "push {r1, r3}\n add r12, sp, r3", "between": "str r3, [r12]\n ldr r2, [sp]",
        "back": "add sp, #8",
    },
}  # fmt: skip
"""Programs that take the dear way."""


def guest(program):
    return guest_of(assembler({"f": TAKEN.format(**program)}, load_target("cortex-m4")), load_target("cortex-m4"))


def text_of(on):
    return document_of(on)[0]["bound"]["certificates"][0]


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_way_that_equal_places_exclude_is_followed(name):
    on = guest(PROGRAMS[name])
    assert not_checked(on) == set()
    assert "\nexcluded " not in text_of(on)


@pytest.mark.parametrize("name", ["cortex-m4", "mpc603e"])
def test_what_a_branch_tells_of_a_word_of_which_nothing_was_known_is_known_where_it_is_loaded_again(name):
    """The checker did not know it of the word on the only edge to a node: it refused what had been proved."""
    core = load_target(name)
    on = guest_of(assembler({"f": LOADED_AGAIN[name]}, core), core)
    assert not_checked(on) == set()
    assert "\nexcluded " not in text_of(on)


def test_equal_registers_are_told_where_a_node_needs_them_only():
    assert re.findall(r"^equal .*", text_of(guest(COPIED)), re.MULTILINE) == ["equal f+0xa r2 r1"]
    core = load_target("mpc603e")
    on = guest_of(assembler({"f": POWERPC}, core), core)
    assert not_checked(on) == set()
    assert re.findall(r"^equal \S+ (.*)", text_of(on), re.MULTILINE) == ["r5 r4"]


def forged(program, change, *, is_cut=False):
    """What is said of equal places changed; ``is_cut``: without the way to what is dear."""
    document, binary = document_of(guest(program))

    def changed(problem, derivations, followed):
        dear = max(problem.nodes, key=lambda node: node.cost).name
        cut = [edge.name for edge in problem.edges if edge.target == dear]
        assert not is_cut or len(cut) == 1
        nodes = [node.name for node in problem.nodes]
        is_first = any(line.startswith("invariant ") for line in followed)
        return (
            without_edges(problem, cut) if is_cut else problem,
            derivations,
            change(nodes, followed) if is_first else followed,
        )

    return check_bound(sealed(solved_again(document, changed)), binary)


def instead(text):
    return lambda _, followed: [re.sub(r"^equal (\S+) .*", rf"equal \1 {text}", line) for line in followed]


FORGED = {
    "of the entry": (lambda n, f: [re.sub(r"^equal \S+", f"equal {n[0]}", one) for one in f], "entry|lacks the edge"),
    "of the entry, too": (lambda n, f: [*f, f"equal {n[0]} r2 r1"], "at the entry"),
    "left out": (lambda _, f: [one for one in f if not one.startswith("equal ")], "lacks the edge"),
    "another register": (instead("r2 r3"), "does not follow"),
    "another first one": (instead("r4 r1"), "does not follow"),
    "a word of the stack": (instead("r2 stack:-4"), "does not follow"),
    "told twice": (lambda _, f: [*f, *(one for one in f if one.startswith("equal "))], "told twice"),
    "of no node": (lambda _, f: [*f, "equal nowhere r2 r1"], "is of no node"),
    "of itself": (instead("r2 r2"), "is equal to one that is equal"),
    "of an equal one": (
        lambda _, f: [*f, *(re.sub(r"r2 r1", "r3 r2", one) for one in f if one.startswith("equal "))],
        "is equal to one that is equal",
    ),
    "of more": (lambda _, f: [*f, *(one.replace("r2", "r5") for one in f if one.startswith("equal "))], "not follow"),
}


@pytest.mark.parametrize("name", FORGED)
def test_forged_equalities_are_refused(name):
    change, reason = FORGED[name]
    with pytest.raises(VerificationError, match=reason):
        forged(COPIED, change)


@pytest.mark.parametrize("name", BROKEN)
@pytest.mark.parametrize("places", ["r2 r1", "stack:-8 r1"])
def test_a_way_that_is_taken_is_not_excluded_by_what_is_said_to_be_equal(name, places):
    nodes = re.findall(r"^node (\S+) ", text_of(guest(BROKEN[name])), re.MULTILINE)
    for place in range(1, len(nodes)):

        def change(own, followed, place=place):
            return [*followed, f"equal {own[place]} {places}"]

        with pytest.raises(VerificationError, match=r"does not follow|lacks the edge"):
            forged(BROKEN[name], change, is_cut=True)


def test_equality_is_of_one_name_or_of_one_number():
    state = State({"r0": constant(3), "r1": constant(3), "r2": number(1, 2), "r3": number(1, 2)}, {"r5": "r4"})
    assert are_equal(state, "r0", "r1")
    assert are_equal(state, "r4", "r5")
    assert not are_equal(state, "r2", "r3")
    zero = Value("any", 0, 0, 0)
    assert not are_equal(State({"r0": zero, "r1": zero}), "r0", "r1")
    assert not are_equal(State({"r0": constant(4), "r1": Value("stack", 4, 4, 0)}), "r0", "r1")
    assert differing(state, {"r1": "r0", "r3": "r2"}) == "r3"


def test_what_is_known_of_one_is_known_of_both():
    state = beginning({"r0": number(0, 9), "r1": number(2, 5), STATIC: ANY}, {}, {"r1": "r0", STATIC: "r0"})
    assert [state.read(place) for place in ("r0", "r1", STATIC)] == [number(2, 5)] * 3
    assert beginning({STATIC: ANY}, {}, {"r1": STATIC}).read(STATIC) == TOP


@pytest.mark.parametrize("relation", ["!=", "<", ">"])
@pytest.mark.parametrize("is_signed", [True, False])
def test_one_value_is_neither_less_nor_another_than_itself(relation, *, is_signed):
    def told(left, right):
        return State({}, {}, {"nzcv": Comparison(left, TOP, right, TOP)})

    assert assume(told("r0", "r0"), "nzcv", relation, is_signed=is_signed) is None
    assert assume(told("r0", "r1"), "nzcv", relation, is_signed=is_signed) is not None
    assert assume(told(None, None), "nzcv", relation, is_signed=is_signed) is not None
    assert assume(told("r0", "r0"), "nzcv", relation, is_signed=is_signed, holds=False) is not None
