"""The least bound of a loop is taken, whoever says it."""

from wcet_probe.analyzer.facts.binding import BoundFact
from wcet_probe.analyzer.loops.chosen_bounds import chosen_bound, followed_count
from wcet_probe.model.proof import Origin


def fact(where, **numbers):
    given = {"max_expression": "n", "max_header": None, "total_expression": "t"} | numbers
    return BoundFact("f", 0x1000, None, "fact", where, "so", **given)


def test_nothing_known_is_no_bound():
    assert chosen_bound(None, ()) is None


def test_the_least_is_taken_and_a_proved_one_where_they_are_equal():
    count = followed_count(4)
    proved = chosen_bound(count, [fact("a", max_header=4), fact("b", max_header=5)])
    assert (proved.max_header, proved.origin, proved.where, proved.count) == (4, Origin.PROVED, "", count)
    least = chosen_bound(count, [fact("b", max_header=5), fact("a", max_header=3)])
    assert (least.max_header, least.origin, least.where, least.expression) == (3, Origin.FACT, "a", "n")


def test_a_header_is_executed_once_for_each_entry_also_where_the_body_never_is():
    assert chosen_bound(None, [fact("a", max_header=0)]).max_header == 1
    assert chosen_bound(None, [fact("a", total=0)]).max_header == 1


def test_a_total_in_all_bounds_each_entry_but_one_for_each_round_of_another_loop_does_not():
    """Of 7 executions of the body, and one of the header on top, none enters it more often."""
    total = fact("a", total=7, total_for_each_entry=1)
    found = chosen_bound(None, [total])
    assert (found.max_header, found.expression, found.offset) == (8, "t", 1)
    assert chosen_bound(None, [fact("a", total=7, within=(0x2000,))]) is None


def test_rounds_that_were_followed_are_counted_with_the_one_that_ends_the_loop():
    """Of 3 executions of the header, 2 rounds are left at first."""
    count = followed_count(3)
    assert (count.max_header, count.distance_high) == (3, 2)
    assert chosen_bound(count, ()).expression == "followed round by round from constants"
