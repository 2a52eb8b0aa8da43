"""Kinds of facts: how a place reads, and files of facts as one."""

import pytest

from wcet_probe.analyzer.facts.expressions import parse
from wcet_probe.analyzer.facts.file import parse_facts
from wcet_probe.analyzer.facts.language import FlowTerm, Place, merged_facts
from wcet_probe.errors import UsageError

KINDS = """
[parameters]
N = 3

[[loop]]
function = "f"
line = 1
max = 1
because = "so"

[[argument]]
function = "f"
index = 0
min = 0
max = 4
because = "so"

[[recursion]]
function = "f"
max_depth = 2
because = "so"

[[calls]]
function = "f"
line = 1
targets = ["g"]
because = "so"

[[calls]]
through = "disk.read"
targets = ["g"]
because = "so"

[[infeasible]]
function = "f"
line = 2
because = "so"

[[flow]]
function = "f"
sum = { "point a" = 1 }
max = 3
because = "so"

[[pointer]]
multiple_of = 8
because = "so"

[[word]]
symbol = "w"
offset = 0
min = 0
max = 1
because = "so"
"""


@pytest.mark.parametrize(
    ("place", "words"),
    [
        (Place("f", offset=18), "f+0x12"),
        (Place("f", line=7), "line 7 of f"),
        (Place("f", "a.c", "walk"), "walk of f"),
    ],
)
def test_a_place_says_which_of_the_three_it_is(place, words):
    assert str(place) == words


def test_a_term_of_a_sum_reads_as_it_is_written():
    assert str(FlowTerm("then", Place("f", name="better"), parse("-2"), "")) == "-2 * then better of f"


def test_no_kind_of_fact_is_lost_where_files_are_read_as_one():
    first, second = parse_facts("a.toml", KINDS), parse_facts("b.toml", KINDS.replace("N = 3", "N = 3\nM = 4"))
    merged = merged_facts((first, second))
    kinds = [name for name in merged.__slots__ if isinstance(getattr(merged, name), tuple)]
    told = [name for name in kinds if getattr(first, name)]
    assert set(kinds) - set(told) == {"given", "lemmas"}
    assert all(getattr(merged, name) == getattr(first, name) + getattr(second, name) for name in kinds)
    assert (merged.file, set(merged.parameters)) == ("a.toml, b.toml", {"N", "M"})


def test_bounds_that_are_given_come_from_each_file():
    given = '[[calls]]\nfunction = "f"\nbound_by = "f.json"\nbecause = "so"\n'
    parts = [parse_facts(name, given) for name in ("a.toml", "b.toml")]
    assert [one.where for one in merged_facts(parts).given] == ["a.toml:1", "b.toml:1"]


def test_a_parameter_of_two_values_is_refused():
    parts = [parse_facts(name, f"[parameters]\nN = {number}") for number, name in enumerate(("a.toml", "b.toml"))]
    with pytest.raises(UsageError, match=r"b.toml: \[parameters\] key N: another file declares it differently; rename"):
        merged_facts(parts)
