"""Objects whose lines are counted: they stay only in sets in which all that the call accesses fits."""

from collections import Counter
from types import SimpleNamespace

import pytest

from tests.analyzer.concrete_caches import config_of
from wcet_probe.analyzer.dcache.object_lines import counted_constraints, counted_objects, object_constraints
from wcet_probe.analyzer.dcache.symbolic_blocks import ReferenceGroup, SymbolicBlock
from wcet_probe.analyzer.facts.memory import Objects

SETS = 4


def group(*, numbers=None, sets=None):
    return ReferenceGroup(frozenset(), frozenset(), 32, 0, numbers, sets, is_short=True, set_count=SETS)


def kept(policy, ways, accesses, groups=(), *, is_one_address=True):
    """The accesses that miss once a line: of ``accesses``, each a line or None, what a fact counts, and its sets."""
    told = [
        (line, number if objects or sets or line is None else None)
        for number, (line, objects, sets) in enumerate(accesses, 1)
    ]
    places = SimpleNamespace(
        objects_of=lambda number: accesses[number - 1][1], sets_of=lambda number: accesses[number - 1][2]
    )
    lines = SimpleNamespace(places=places, groups=list(groups))
    found = counted_objects(told, lines, config_of(policy, ways, sets=SETS), lambda _: is_one_address)
    return {number - 1: objects for number, objects in found.items()}


TWO = Objects("facts:1", lines=4, lines_per_set=2)
ONE = Objects("facts:2", lines=1, lines_per_set=1)
FIRST = frozenset({0})


@pytest.mark.parametrize(
    ("policy", "ways", "stays"),
    [
        ("lru", 2, True),
        ("lru", 1, False),
        ("fifo", 2, True),
        ("plru", 4, True),
        ("plru", 2, True),
        ("random", 4, False),
        ("round-robin", 4, False),
    ],
)
def test_two_lines_of_a_set_stay_as_the_policy_keeps_them(policy, ways, stays):
    assert (kept(policy, ways, [(None, TWO, FIRST)]) == {0: TWO}) is stays


def test_other_counted_lines_and_lines_by_number_take_their_part():
    line = SymbolicBlock(0, 0)
    own, other = (None, TWO, FIRST), (None, ONE, FIRST)
    assert kept("lru", 3, [own, other]).keys() == {0, 1}
    assert kept("lru", 2, [own, other]) == {}
    numbered = (line, None, None)
    assert kept("lru", 2, [own, numbered], [group(numbers=frozenset({5}))]) == {0: TWO}
    assert kept("lru", 2, [own, numbered], [group(numbers=frozenset({8}))]) == {}


def test_one_address_of_unknown_set_may_be_in_each():
    free = group()
    accesses = [(None, TWO, FIRST), (SymbolicBlock(0, 0), None, None)]
    assert kept("lru", 3, accesses, [free]) == {0: TWO}
    assert kept("lru", 2, accesses, [free]) == {}
    assert kept("lru", 8, accesses, [free], is_one_address=False) == {}


def test_an_access_without_a_name_spoils_the_sets_that_it_may_go_to():
    assert kept("lru", 8, [(None, TWO, FIRST), (None, None, frozenset({1, 2}))]) == {0: TWO}
    assert kept("lru", 8, [(None, TWO, FIRST), (None, None, frozenset({0}))]) == {}
    assert kept("lru", 8, [(None, TWO, FIRST), (None, None, None)]) == {}


def test_each_line_is_paid_once_and_no_miss_is_without_an_access():
    executed, most = counted_constraints("miss:x", {7: 2, 3: 1}, 5)
    assert (executed.points, executed.constant, executed.auxiliaries) == (((3, -1), (7, -2)), 0, (("miss:x", 1),))
    assert (most.points, most.constant) == ((), 5)


def test_facts_are_numbered_by_where_they_stand():
    found = list(object_constraints({ONE: {1: 1}, TWO: {2: 1}}))
    names = Counter(one.name.rsplit(":", 1)[0] for one in found)
    assert names == {"miss:objects:0": 2, "miss:objects:1": 2}
    assert [one.constant for one in found if one.name.endswith(":most")] == [4, 1]
