"""A store that finds its line may be counted as a single write, where its node is charged one: held, and forged.

Tests: certificate.caches.cached.
"""

from dataclasses import replace
from functools import cache

import pytest

from tests.certificate.forgeries import sealed, solved_again
from tests.certificate.kernel.test_code import document_of
from tests.support import assembler, guest_of
from wcet_probe.catalog.lookup import load_target
from wcet_probe.certificate.check import check_bound
from wcet_probe.errors import VerificationError

BODY = """ldrb r2, [r0, #4]
cmp r1, #0
beq 1f
add r2, r2, #1
strb r2, [r0, #4]
1: mov r1, #20
2: ldr r0, [r0]
subs r1, r1, #1
bne 2b
bx lr
"""
STORE, STORE_ADDRESS = "f+0xc", "0x1000000c"
MODIFIED, SINGLE, SINGLES = "write-backs:modified", "write-backs:single", "write-backs:singles"


@cache
def true_bound():
    """On a core that fills no line for a store; few lines, so that they limit what is written back."""
    core = load_target("arm926ej-s")
    small = replace(core, dcache=replace(core.dcache, sets=4))
    document, binary = document_of(guest_of(assembler({"f": BODY}, small), small))
    return sealed(document), binary


def moved(*, cost=20, credit=-1, event=0):
    """The bound with the store counted as a single write, by its ``credit``, and its node and the event dearer."""
    document, binary = true_bound()

    def change(problem, derivations, followed):
        if problem.unit != "cycles":
            return problem, derivations, followed
        into = {f"f+0x0>{STORE}:fall:{STORE_ADDRESS}": credit} if credit else {}
        rows = {MODIFIED: {"write-backs": 1}, SINGLE: {SINGLES: 1, **into}}
        constraints = tuple(
            replace(one, coefficients=rows[one.name]) if one.name in rows else one for one in problem.constraints
        )
        nodes = tuple(replace(one, cost=one.cost + cost * (one.name == STORE)) for one in problem.nodes)
        events = tuple(replace(one, cost=one.cost + event * (one.name == SINGLES)) for one in problem.auxiliaries)
        return replace(problem, nodes=nodes, constraints=constraints, auxiliaries=events), derivations, followed

    shown = [
        {**row, "cost_cycles": row["cost_cycles"] + cost * (int(row["address"], 16) == int(STORE_ADDRESS, 16))}
        for row in document["bound"]["worst_path_cycles"]
    ]
    return solved_again({**document, "bound": {**document["bound"], "worst_path_cycles": shown}}, change), binary


def open_lines(document, binary):
    return [one.check for one in check_bound(document, binary).findings if one.verdict != "ok"]


def test_a_store_that_finds_its_line_is_counted_among_those_that_modify_one():
    document, binary = true_bound()
    assert open_lines(document, binary) == []
    text = document["bound"]["certificates"][1].split("\n")
    assert {f"must data {STORE} s0 4 1 0", f"dual {MODIFIED} 34", f"dual {SINGLE} 14"} <= set(text)


def test_it_may_be_counted_as_a_single_write_that_its_node_is_charged():
    """As where the analysis does not see that it finds its line: the limit of modified lines was not checked then."""
    document, binary = moved()
    assert open_lines(document, binary) == []
    assert document["bound"]["cycles"] == true_bound()[0]["bound"]["cycles"]


def test_it_is_refused_where_the_single_write_is_not_charged():
    document, binary = moved(cost=19)
    assert document["bound"]["cycles"] < true_bound()[0]["bound"]["cycles"]
    with pytest.raises(VerificationError, match=r"f\+0xc costs at least 22 cycles with its misses, not 21"):
        check_bound(document, binary)


@pytest.mark.parametrize("less", [{"credit": 0}, {"event": -1}])
def test_it_is_not_checked_where_a_premise_is_missing(less):
    document, binary = moved(**less)
    assert document["bound"]["cycles"] < true_bound()[0]["bound"]["cycles"]
    assert "limits of misses in cycles" in open_lines(document, binary)
