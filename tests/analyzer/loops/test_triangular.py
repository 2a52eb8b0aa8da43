"""Sums over the iterations of an enclosing loop, against the rounds that the two loops would make."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wcet_probe.analyzer.loops.triangular import summed

_BITS = 8


def headers(relation, step, distance):
    """Executions of a header that goes on while the distance is in ``relation`` to 0, counted one by one."""
    count, holds = 1, {"!=": lambda d: d != 0, "<": lambda d: d > 0, "<=": lambda d: d >= 0}[relation]
    while holds(distance):
        distance -= step
        count += 1
    return count


@given(
    relation=st.sampled_from(["!=", "<", "<="]),
    step=st.integers(1, 4),
    span=st.tuples(st.integers(0, 40), st.integers(0, 9)),
    rate=st.integers(-5, 5),
    outer=st.integers(1, 12),
)
def test_a_sum_covers_each_execution(relation, step, span, rate, outer):
    first, more = span
    if relation == "!=":
        first, more, rate = first * step, 0, rate * step
    distances = range(first, first + more + 1)
    within = [all(0 <= d + rate * i < 1 << _BITS for d in distances) for i in range(outer)]
    most = max((headers(relation, step, d + rate * i) for i in range(outer) if within[i] for d in distances), default=1)
    found = summed(relation, step, distances, rate=rate, outer=outer, header=most, bits=_BITS)
    runs = [sum(headers(relation, step, d + rate * i) if within[i] else most for i in range(outer)) for d in distances]
    assert max(runs) <= (outer * most if found is None else found)
    if all(within):
        assert (outer * most if found is None else found) == max(runs)


def test_a_round_whose_distance_is_no_number_has_the_most_executions():
    assert summed("<", 1, range(2, 3), rate=-1, outer=4, header=9, bits=_BITS) == 3 + 2 + 1 + 9
    assert summed("<", 1, range(254, 255), rate=1, outer=3, header=300, bits=_BITS) == 255 + 256 + 300


def test_a_sum_that_is_no_smaller_tells_nothing():
    assert summed("<", 1, range(5, 6), rate=0, outer=4, header=6, bits=_BITS) is None


@pytest.mark.parametrize(("header", "total"), [(4, 4 + 3 + 2 + 1), (3, 3 + 3 + 2 + 1)])
def test_no_round_counts_more_than_the_loops_own_bound(header, total):
    assert summed("!=", 1, range(3, 4), rate=-1, outer=4, header=header, bits=_BITS) == total
