"""Lines that are in a cache where nodes begin, and for what a proof of the same bound is looked for."""

from unittest.mock import patch

import pytest

from tests.analyzer.ipet.hand_made import hand_made
from tests.certificate.test_code import document_of
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
    ("target", "is_open", "asked"), [("cortex-m4", False, 1), ("mpc603e", False, 1), ("mpc603e", True, 2)]
)
def test_a_proof_without_limits_is_looked_for_only_where_a_limit_was_not_shown(target, is_open, asked):
    """Otherwise the same was asked already, and there is none."""

    def none(problem, solution, unfollowed):
        unfollowed([one for one in problem.constraints if solution.dual.get(one.name)])

    shown = {"side_effect": lambda *_, **__: set()} if is_open else {"wraps": annotated.shown_limits}
    with (
        patch.object(annotated, "followed_solution", side_effect=none) as followed,
        patch.object(annotated, "shown_limits", **shown),
    ):
        document_of(guest_of(LOADS_IN_A_LOOP, load_target(target), ".c"))
    assert followed.call_count == asked
