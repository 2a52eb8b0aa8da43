"""Lines that are in a cache where nodes begin, and for what a proof of the same bound is looked for."""

from unittest.mock import patch

import pytest

from tests.analyzer.ipet.hand_made import hand_made
from tests.certificate.kernel.test_code import document_of
from tests.support import guest_of
from wcet_probe.analyzer.ipet import annotated
from wcet_probe.catalog.lookup import load_target

LOADS_IN_A_LOOP = """volatile unsigned in, out;
void f(void) { for (unsigned i = 0; i < 9; i++) out = in; }
"""


def test_a_loaded_line_is_resident_on_both_ways():
    made = hand_made()
    word = made.names.claims["f"]["r0"].symbol, 0, 4
    assert {node: set(lines) for node, lines in made.annotations.must["data"].items()} == {
        "one-way": {word},
        "meeting": {word},
    }


def test_code_that_was_fetched_is_resident():
    made = hand_made()
    start = made.graph.nodes["f"][0]
    line = "number", start & -32, 32
    assert set(made.annotations.must["fetch"]["meeting"]) == {line}
    assert "f" not in made.annotations.must["fetch"]


@pytest.mark.parametrize(
    ("target", "all_shown", "asked"),
    [("cortex-m4", 99, 1), ("mpc603e", 99, 1), ("mpc603e", 0, 2), ("mpc603e", 1, 2)],
    ids=["no limits", "all are shown", "none is shown", "none is shown of another proof"],
)
def test_a_proof_without_limits_is_looked_for_only_where_a_limit_was_not_shown(target, all_shown, asked):
    """Otherwise the same was asked already, and there is none."""
    shown_limits, calls = annotated.shown_limits, []

    def shown(*args, **options):
        calls.append(args)
        return shown_limits(*args, **options) if len(calls) <= all_shown else set()

    def none(problem, solution, unfollowed):
        used = [one for one in problem.constraints if solution.dual.get(one.name)]
        unfollowed(used)
        unfollowed(used[1:])

    with (
        patch.object(annotated, "followed_solution", side_effect=none) as followed,
        patch.object(annotated, "shown_limits", shown),
    ):
        document_of(guest_of(LOADS_IN_A_LOOP, load_target(target), ".c"))
    assert followed.call_count == asked


def test_a_proof_at_the_costs_of_the_analysis_is_looked_for_where_the_checker_asks_for_more():
    node_cost = annotated.node_cost
    with (
        patch.object(annotated, "followed_solution", return_value=None) as followed,
        patch.object(annotated, "node_cost", lambda *args: node_cost(*args) + 1),
    ):
        document_of(guest_of(LOADS_IN_A_LOOP, load_target("cortex-m4"), ".c"))
    assert followed.call_count == 1
