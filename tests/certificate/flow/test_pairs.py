"""Pairs of edges that exclude each other are found by following one of them, and only those that a bound rests on."""

from unittest.mock import patch

import pytest

from tests.certificate.kernel.test_code import document_of
from tests.support import guest_of
from wcet_probe.catalog.lookup import load_target
from wcet_probe.certificate.check import OK, check_bound
from wcet_probe.certificate.flow import pairs

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
