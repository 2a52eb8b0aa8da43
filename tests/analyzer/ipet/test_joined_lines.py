"""What is known of lines in a cache where two ways meet."""

from tests.certificate.caches.test_residents import step
from tests.support import cache_config
from wcet_probe.analyzer.ipet.joined_lines import joined_balance, joined_must
from wcet_probe.certificate.caches.residents import (
    FULL,
    NOTHING,
    Bound,
    Residents,
    YoungerSet,
    balance_holds,
    must_holds,
)
from wcet_probe.certificate.caches.steps import Spot
from wcet_probe.certificate.values.congruences import Congruence
from wcet_probe.model.target import Replacement


def test_lines_that_differ_on_two_ways_are_counted_by_number():
    """Against the simulation: of four ways two other lines on either way evict nothing, though they are four."""
    config = cache_config(sets=1, ways=4, line_bytes=16, replacement=Replacement.LRU)
    residents = Residents(config, dict.fromkeys(("a", "b", "c", "d", "x", "y"), Congruence(16, 0)), {}.get)
    spot = Spot("x", 0, 16)
    one = {spot: YoungerSet(frozenset({"a", "b"}), 0)}
    other = {spot: YoungerSet(frozenset({"c", "d"}), 0)}
    both = joined_must(residents, one, other)
    assert both == {spot: YoungerSet(frozenset(), 2)}
    assert must_holds(residents, one, both)
    assert must_holds(residents, other, both)
    after = residents.touched(both, step(spot=Spot("y", 0, 16)))
    assert after[spot] == YoungerSet(frozenset({"y"}), 2)
    assert spot not in residents.touched(after, step(spot=Spot("a", 0, 16)))
    few = joined_must(residents, one, {spot: YoungerSet(frozenset({"a"}), 0)})
    assert few == one, "names where they do not evict it"


def test_lines_that_are_known_by_number_count_for_each_set_where_ways_meet():
    """Two lines on the one way, and a table of eight in eight sets on the other: neither way has more than two."""
    residents = Residents(cache_config(sets=8, ways=4, line_bytes=16), {}, {}.get)
    spot, table = Spot("x", 0, 16), frozenset(f"{16 * line:#x}" for line in range(8))
    one, other = {spot: YoungerSet(frozenset("ab"), 0)}, {spot: YoungerSet(table | {"c"}, 0)}
    both = joined_must(residents, one, other)
    assert both == {spot: YoungerSet(frozenset(), 2)}
    assert must_holds(residents, one, both)
    assert must_holds(residents, other, both)


def test_what_is_left_on_both_ways_is_what_either_leaves():
    residents = Residents(cache_config(sets=8, ways=4, line_bytes=16), {"s1": Congruence(4, 0)}, {}.get)
    one = Bound("s1", 4, {0: YoungerSet(frozenset({"a"}), 0)})
    other = Bound("s1", 4, {0: NOTHING, 64: None})
    both = joined_balance(residents, one, other)
    assert both == Bound("s1", 4, {0: YoungerSet(frozenset({"a"}), 0), 64: None})
    assert balance_holds(residents, one, both)
    assert balance_holds(residents, other, both)
    assert joined_balance(residents, FULL, one) == joined_balance(residents, one, FULL) == one
    assert joined_balance(residents, one, Bound("s2", 4, {0: NOTHING})) is None
    assert joined_balance(residents, one, None) is None
