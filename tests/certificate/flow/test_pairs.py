"""Pairs of edges that exclude each other are found by following one of them, and only those that a bound rests on."""

from dataclasses import replace
from unittest.mock import patch

import pytest

from tests.certificate.forgeries import solved_again
from tests.certificate.kernel.test_code import document_of
from tests.support import assembler, guest_of
from wcet_probe.analyzer.ipet.flow_system import Constraint
from wcet_probe.catalog.lookup import load_target
from wcet_probe.certificate.check import OK, check_bound
from wcet_probe.certificate.flow import pairs
from wcet_probe.certificate.values.numbers import WORD, constant, number
from wcet_probe.certificate.values.state import Comparison, State, apart

SOURCE = """typedef unsigned u; volatile u out; u a, b;
void f(u x, u y) {{ {loops} }}
"""
LOOP = """
for (u i = 0; i < {n}; i++) {{
  if (x & 1) {{ out = a; __asm__ volatile(""); }}
  out = i;
  if (x & {bit}) {{ out = b; out = i + 1; }}
}}
if (y < {n}) {{ out = b; out = 7; }}
"""


@pytest.fixture(scope="module")
def linked():
    """A bound that rests on ways of which a call takes one: conditions are tested again behind each loop."""
    loops = "".join(LOOP.format(n=5 + number, bit=1 if number % 2 else 3) for number in range(6))
    return document_of(guest_of(SOURCE.format(loops=loops), load_target("cortex-m4"), ".c", "-O1"))


def found_of(document, binary):
    return {one.check: (one.verdict, one.found) for one in check_bound(document, binary).findings}


def test_as_many_pairs_are_shown_as_the_bound_rests_on(linked):
    document, binary = linked
    found = found_of(document, binary)
    for text, unit in zip(document["bound"]["certificates"], ("instructions", "cycles"), strict=True):
        used = sum(line.startswith("dual conflict:") for line in text.splitlines())
        verdict, words = found[f"constraints in {unit}"]
        assert used > 0
        assert verdict == OK
        assert words.startswith(f"{used} pairs of edges exclude each other")
        assert text.count("\nconstraint conflict:") > used


def test_a_pair_that_takes_too_long_to_follow_is_not_checked(linked):
    with patch.multiple(pairs, _MOST_STEPS=0, _STEPS_EACH=0):
        verdict, words = found_of(*linked)["constraints in instructions"]
    assert verdict != OK
    assert "conflict:" in words


AROUND = """
 and r0, r0, #255
 subs r0, #24
 cmp r0, #44
 blo 1f
 adds r2, #1
1: adds r1, #1
 cmp r0, #{bound}
 bhs 2f
 adds r3, #1
 adds r3, #2
 adds r3, #3
2: bx lr
"""
"""A number from -24 to 231; without a sign it is at least 44, or less than that."""


def proved(body):
    target = load_target("cortex-m4")
    return document_of(guest_of(assembler({"f": body}, target), target))


def around(bound):
    return proved(AROUND.format(bound=bound))


def assert_that_pairs_are_shown(document, binary):
    assert "dual conflict:" in document["bound"]["certificates"][0]
    assert {one.verdict for one in check_bound(document, binary).findings} == {OK}


def test_a_number_that_goes_around_0_is_followed_on_either_side_of_it():
    assert_that_pairs_are_shown(*around(44))


def test_a_pair_of_which_a_number_between_takes_both_is_not_shown():
    """The certificate is that of the other program, which takes as many instructions on each way."""
    true, _ = around(44)
    document, binary = around(45)
    assert document["bound"]["instructions"] > true["bound"]["instructions"]
    assert is_not_shown(true, document, binary)


def is_not_shown(true, document, binary):
    """Whether the pair that the ``true`` bound rests on, put into ``document``, is not shown there."""
    lines = true["bound"]["certificates"][0].split("\n")
    (used,) = (line.split(" ")[1] for line in lines if line.startswith("dual conflict:"))
    (pair,) = (line for line in lines if line.startswith(f"constraint {used} "))
    name, _, most, *edges = pair.removeprefix("constraint ").split(" ")
    taken = dict(zip(edges[1::2], map(int, edges[::2]), strict=True))

    def change(problem, derivations, followed):
        constraints = (*problem.constraints, Constraint(name, taken, "<=", int(most)))
        return replace(problem, constraints=constraints), derivations, followed

    forged = solved_again(document, change)
    assert forged["bound"]["instructions"] == true["bound"]["instructions"]
    with patch("wcet_probe.certificate.check.check_shown", return_value=""):
        found = found_of(forged, binary)
    return found["constraints in instructions"][0] != OK


ROUNDS = """
 cmp r0, #9
 blo 2f
 movs r1, #3
 movs r3, #0
1: mul r2, r1, r1
 cmp r2, r0
 bhi 2f
 adds r1, #2
 {step}, #1
 cmp r1, #61
 blo 1b
2: cmp r0, #1
 bhi 3f
 adds r3, #2
 adds r3, #3
3: bx lr
"""
"""What is at least 9 is compared with squares, and is not 1 behind that, unless each round makes it less."""


def rounds(step):
    return proved(ROUNDS.format(step=step))


def test_what_no_round_changes_is_behind_a_loop_as_it_was_before():
    assert_that_pairs_are_shown(*rounds("adds r3"))


def test_what_rounds_change_is_not_as_it_was_before():
    true, _ = rounds("adds r3")
    document, binary = rounds("subs r0")
    assert document["bound"]["instructions"] > true["bound"]["instructions"]
    assert is_not_shown(true, document, binary)


def test_a_state_is_told_apart_by_the_sign_of_what_was_compared():
    holding = frozenset({(">=", False)})
    told = Comparison("r1", number(-24, 231), None, constant(44), holding=holding)
    state = State({"r1": number(-24, 231), "r2": number(-24, 231), "r3": number(-1, 1)}, {"r2": "r1"}, {"nzcv": told})
    below, above = sorted(apart(state), key=lambda one: one.read("r1").high)[::-1]
    assert below.read("r1") == below.read("r2") == number(WORD - 24, WORD - 1)
    assert above.read("r1") == above.read("r2") == number(44, 231)
    assert all(one.read("r3") == number(-1, 1) for one in (below, above))
    less = told._replace(holding=frozenset({("<", False)}))
    assert [one.read("r1") for one in apart(State(state.values, state.names, {"nzcv": less}))] == [number(0, 43)]
    unknown = State({"r1": number(-24, 231)}, {}, {"nzcv": told._replace(holding=frozenset())})
    assert apart(unknown) == [unknown]
