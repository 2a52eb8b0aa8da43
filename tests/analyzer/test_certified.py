"""Certificates of what was solved: with records for the checker, of code and of caches."""

from __future__ import annotations

import pytest

from tests.analyzer.test_call_summaries import _summarised as _summarised  # noqa: PLC0414  a fixture
from tests.analyzer.test_call_summaries import bound_of, chain
from tests.support import guest_of
from wcet_probe.catalog.lookup import load_target


@pytest.mark.parametrize("target", ["cortex-m4", "mpc603e"])
def test_a_certificate_has_records_of_the_code_and_of_caches_where_there_are_any(target):
    instructions, cycles = bound_of(guest_of(chain(1), load_target(target), ".c"), "f1").certify()
    assert "\ninvariant " in instructions
    assert ("\nmust " in cycles and "\nheld " in cycles) == (target == "mpc603e")


@pytest.mark.usefixtures("summarised")
def test_where_calls_are_not_expanded_there_are_records_of_the_code_and_none_of_caches():
    proved = bound_of(guest_of(chain(1), load_target("mpc603e"), ".c"), "f1")
    assert proved.summarised
    for text in (proved.certify()[0], *(instructions for instructions, _ in proved.certify_callees())):
        assert "\ninvariant " in text
    assert not any("\nmust " in text for text in proved.certify())
