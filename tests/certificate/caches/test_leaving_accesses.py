"""What a conditional load that jumps misses is charged on the ways on which it jumps, and asked for there.

Tests: certificate.caches.misses, analyzer.dcache.miss_constraints.
"""

from dataclasses import replace
from functools import cache

import pytest

from tests.analyzer.test_firmware_tables import SWITCH_BY_LOAD
from tests.certificate.forgeries import solved_again
from tests.certificate.kernel.test_code import document_of
from tests.support import assembler, guest_of
from wcet_probe.catalog.lookup import load_target
from wcet_probe.certificate.check import check_bound
from wcet_probe.errors import VerificationError


@cache
def proved():
    target = load_target("arm926ej-s")
    return document_of(guest_of(assembler({"f": SWITCH_BY_LOAD}, target), target))


def edges_cheaper(is_meant, by):
    def change(problem, derivations, followed):
        if problem.unit == "cycles":
            own = (replace(one, extra_cost=one.extra_cost - by) if is_meant(one) else one for one in problem.edges)
            problem = replace(problem, edges=tuple(own))
        return problem, derivations, followed

    return change


def is_jump(edge):
    return ":jump:" in edge.name and edge.source == "f+0x0"


def test_a_switch_is_checked_in_full():
    document, binary = proved()
    assert [found for found in check_bound(document, binary).findings if found.verdict != "ok"] == []


def test_no_bound_is_checked_that_leaves_out_the_miss_of_the_jump():
    document, binary = proved()
    for by in (1, 34):
        with pytest.raises(VerificationError, match="costs at least"):
            check_bound(solved_again(document, edges_cheaper(is_jump, by)), binary)


def without_a_write_back(problem, derivations, followed):
    """The ways on which the table is read give no credit for a line that its fill writes back."""
    own = tuple(
        replace(one, coefficients={edge: f for edge, f in one.coefficients.items() if ":jump:" not in edge})
        if one.name == "write-backs:misses"
        else one
        for one in problem.constraints
    )
    return replace(problem, constraints=own), derivations, followed


def test_a_fill_on_the_way_out_may_write_a_line_back():
    document, binary = proved()
    findings = check_bound(solved_again(document, without_a_write_back), binary).findings
    limits = next(found for found in findings if found.check == "limits of misses in cycles")
    assert limits.verdict == "not checked"
