"""What flags tell where nodes begin: a branch that the ways to it have decided, and what may not be said of it."""

import re
from contextlib import nullcontext
from unittest.mock import patch

import pytest

from tests.certificate.forgeries import graph_instead, sealed, solved_again
from tests.certificate.kernel.test_code import document_of, not_checked
from tests.certificate.kernel.test_return_addresses import forged as forged_graph
from tests.certificate.kernel.test_return_addresses import kept_at
from tests.support import assembler, guest_of
from wcet_probe.analyzer.ipet.decided_flags import known_flags
from wcet_probe.catalog.lookup import load_target
from wcet_probe.certificate.check import check_bound
from wcet_probe.certificate.kernel.flags import lacking
from wcet_probe.certificate.machines import powerpc
from wcet_probe.certificate.machines.machine import Machine
from wcet_probe.certificate.values.numbers import TOP, constant, number
from wcet_probe.certificate.values.state import Comparison, State, assume
from wcet_probe.errors import VerificationError

DECIDED = {
    "cortex-m4": """
 cmp r0, #7
 beq 3f
 cbz r3, 1f
 add r2, r2, #2
1: beq 2f
 add r2, r2, #1
 bx lr
2: add r3, r3, #1
 add r3, r3, #2
 add r3, r3, #3
3: bx lr
""",
    "mpc603e": """
 cmplwi cr1, 3, 0
 cmplwi 3, 0
 bne 4f
 blr
4: cmplwi cr7, 5, 0
 beq cr7, 1f
 addi 6, 6, 1
1: li 3, 1
 bne cr0, 3f
 blr
3: beq cr0, 2f
 addi 4, 4, 1
 blr
2: addi 5, 5, 1
 addi 5, 5, 2
 addi 5, 5, 3
 blr
""",
}


"""Several ways lead to the branch, as what holds on a single one is known without a record."""
CLEARED = """
 cmplwi cr1, 3, 0
 bne cr1, 1f
 blr
1: crclr {bit}
 beq cr1, 2f
 addi 4, 4, 1
 blr
2: addi 5, 5, 1
 addi 5, 5, 2
 addi 5, 5, 3
 blr
"""
"""A bit of a field is cleared before a branch on field 1 that was decided before."""


def guest(target):
    return guest_of(assembler({"f": DECIDED[target]}, load_target(target)), load_target(target))


@pytest.mark.parametrize("target", DECIDED)
def test_a_branch_that_was_decided_before_its_node_is_followed(target):
    on = guest(target)
    assert not_checked(on) == set()
    text = document_of(on)[0]["bound"]["certificates"][0]
    assert re.search(r"^flags \S+ (nzcv|cr0) ", text, re.MULTILINE)
    assert "\nexcluded " not in text


@pytest.mark.parametrize(("bit", "is_decided"), [("2", True), ("31", True), ("6", True), ("4", False)])
def test_clearing_a_bit_of_the_condition_register_changes_its_field_only(bit, *, is_decided):
    """Bit 6 is the one that the branch tests, which stays what it was; of it nothing is told where bit 4 is cleared."""
    core = load_target("mpc603e")
    binary = guest_of(assembler({"f": CLEARED.format(bit=bit)}, core), core)
    document, _ = document_of(binary)
    branches = re.findall(r"^edge \S+:jump:\S+ ", document["bound"]["certificates"][0], re.MULTILINE)
    assert (not_checked(binary) == set()) == (is_decided or len(branches) > 1)
    before = Comparison("r3", number(1, 9), None, constant(0))
    state = State({"r3": number(1, 9)}, {}, {"cr1": before})
    clear = next(one for one in document_of(binary)[1].instructions if "crclr" in one.text or "crxor" in one.text)
    (outcome,) = powerpc.outcomes_of(Machine(binary.image), clear, state)
    assert (outcome.state.flags.get("cr1") == before) == (bit in {"2", "31"})


@pytest.mark.parametrize("told", [(), ("flags g+12 cr0 signed numbers 0 1 4294967295 0 1 4294967295 !=s,>=s,>s",)])
def test_a_field_without_less_and_equal_is_greater_only_behind_a_comparison(told):
    """Clearing the bit of equality leaves none of the three; so that the branch on greater is not taken."""
    body = "cmpw 3, 3\n crxor 2, 2, 2\n blt 1f\n bgt 1f\n b h\n 1: blr\n"
    functions = {"f": "blr\n", "g": body, "h": "addi 4, 4, 1\n" * 20 + "blr\n"}
    nodes = {"g": ("g", 0, 3), "g+12": ("g", 12, 1), "x": ("g", 20, 1)}
    edges = {"a:jump": ("g", "x"), "a:fall": ("g", "g+12"), "b:jump": ("g+12", "x")}

    def change(guest, problem, derivations, _):
        said = [*kept_at(*nodes, places="r1 stack 0 0 0|lr link 0 0 0"), *told]
        changed = graph_instead(problem, guest, nodes, edges, ["x"], cycles_each=400)
        return changed, derivations, said if problem.unit == "instructions" else []

    with (
        patch("wcet_probe.certificate.kernel.coverage.only_edges", return_value={}) if told else nullcontext(),
        pytest.raises(VerificationError, match=r"lacks the edge from g\+0xc|flags|cr0"),
    ):
        forged_graph(functions, change, "mpc603e")


def forged(change):
    document, binary = document_of(guest("cortex-m4"))

    def changed(problem, derivations, followed):
        return problem, derivations, change(problem, followed)

    return check_bound(sealed(solved_again(document, changed)), binary)


def at_entry(problem, followed):
    """What is told of flags is told of the entry, and only there."""
    told = next((line for line in followed if line.startswith("flags ")), "")
    others = [line for line in followed if not line.startswith("flags ")]
    return [*others, *([re.sub(r"^flags \S+ ", f"flags {problem.entry} ", told)] if told else ())]


FORGED = {
    "of the entry": (at_entry, "at the entry|lacks the edge"),
    "left out": (lambda _, f: [line for line in f if not line.startswith("flags ")], "lacks the edge"),
    "too little": (lambda _, f: [re.sub(r"(numbers) .*", r"\1 1 0 0 7 0 0 -", line) for line in f], "does not follow"),
    "another relation": (lambda _, f: [line.replace(" !=u", " ==u") for line in f], "does not follow"),
    "signed": (lambda _, f: [line.replace(" either ", " signed ") for line in f], "does not follow"),
    "of a result": (lambda _, f: [line.replace(" numbers ", " result ") for line in f], "does not follow"),
    "told twice": (lambda _, f: [*f, *(line for line in f if line.startswith("flags "))], "told twice"),
    "of no number": (lambda _, f: [re.sub(r" 7 0 0 ", " 4294967295 1 1 ", line) for line in f], "is of no number"),
}


@pytest.mark.parametrize("name", FORGED)
def test_forged_flags_are_refused(name):
    change, reason = FORGED[name]
    with pytest.raises(VerificationError, match=reason):
        forged(change)


def test_flags_that_are_said_of_a_node_must_hold_on_all_ways():
    """Behind `beq` and behind what does not branch there the flags tell different things."""

    def change(problem, followed):
        if not any(line.startswith("invariant ") for line in followed):
            return followed
        told = [line for line in followed if not line.startswith("flags f+0x4 ")]
        assert any(node.name == "f+0x4" for node in problem.nodes)
        return [*told, "flags f+0x4 nzcv either numbers 7 0 0 7 0 0 -"]

    with pytest.raises(VerificationError, match="does not follow"):
        forged(change)


def test_what_was_learnt_of_a_number_is_told_of_its_flags():
    """r0 was compared twice, and is 0 by what one of the comparisons told."""
    flags = {"cr1": Comparison("r0", TOP, object(), constant(0), is_signed=True)}
    state = State({"r0": constant(0)}, {}, flags)
    assert known_flags(state)["cr1"].left_value == constant(0)
    wanted = {"cr1": Comparison(object(), number(0, 3), object(), constant(0), is_signed=True)}
    assert lacking(state, wanted) is None
    assert lacking(State({"r0": constant(0)}, {"r0": object()}, flags), wanted) == "cr1"
    assert lacking(State({"r0": constant(0)}), wanted) == "cr1"
    assert lacking(state, {"cr1": wanted["cr1"]._replace(is_signed=False)}) == "cr1"


def test_a_name_that_no_value_has_tells_nothing():
    flags = {"nzcv": Comparison(None, TOP, None, TOP)}
    state = State({"r0": constant(0)}, {"r0": None}, flags)
    assert lacking(state, {"nzcv": Comparison(object(), constant(0), object(), TOP)}) == "nzcv"


def test_what_other_flags_told_of_a_value_stays_where_these_tell_less():
    compared = {name: Comparison("r7", number(0, 7), None, constant(word)) for name, word in (("cr0", 0), ("cr1", 2))}
    small = assume(State({"r7": number(0, 7)}, flags=compared), "cr1", "<=", is_signed=True)
    found = assume(small, "cr0", "!=", is_signed=True)
    assert (found.read("r7"), found.flags["cr0"].left_value) == (number(1, 2), number(1, 2))
    assert assume(small, "cr0", ">", is_signed=True).read("r7") == number(1, 2)


SWITCHES = """
unsigned char head, small[64];
unsigned word;
unsigned f(unsigned n, unsigned m)
{
    unsigned s = n >> 3;
    switch (n & 7) {
    case 0: s += 1; break;
    case 1: s += m; break;
    case 2: s *= 3; break;
    case 3: s ^= n; break;
    case 4: s = word ^ s; break;
    case 5: s -= 7;
    }
    for (int i = 10; i > 0; i--)
        switch (n & 7) {
        case 0: s += 1; break;
        case 1: if (head > i * 6u + m) s += n * 4u + s; else s ^= i; break;
        case 2: s *= 3; break;
        case 3: s ^= n; break;
        case 4: small[n & 63] -= head; break;
        case 5: s -= 7;
        }
    return s;
}
"""


def test_tests_of_one_value_by_several_fields_are_checked():
    """A test that told less than one before it made the range larger again, and `verify` refused the bound."""
    document, binary = document_of(guest_of(SWITCHES, load_target("e200z6"), ".c"))
    assert check_bound(document, binary).findings
