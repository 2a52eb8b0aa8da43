"""Of several bounds of a loop the least is taken; what is not used is told, and what is missing is an error."""

import pytest

from tests.path_check import attack, proved
from tests.support import assembler, guest_of
from wcet_probe.analyzer.facts.binding import code_sha256
from wcet_probe.analyzer.facts.file import parse_facts
from wcet_probe.catalog.lookup import load_target
from wcet_probe.errors import AnalysisError
from wcet_probe.model.proof import Origin

COUNTED = """
    movs r1, #9
1:  subs r1, r1, #1
    bne 1b
    bx lr
"""
LOADED = """
1:  ldr r1, [r0]
    cmp r1, #0
    bne 1b
    bx lr
"""
NESTED = """
    movs r2, #4
1:  movs r1, #6
2:  subs r1, r1, #1
    bne 2b
    subs r2, r2, #1
    bne 1b
    bx lr
"""
TWICE = LOADED.replace("    bx lr\n", "") + LOADED.replace("1:", "2:").replace("1b", "2b")


@pytest.fixture(scope="module")
def guest():
    target = load_target("cortex-m4")
    return guest_of(assembler({"counted": COUNTED, "loaded": LOADED, "nested": NESTED, "twice": TWICE}, target), target)


def bound(guest, name, *facts):
    digest = code_sha256(guest.image, name)
    text = "".join(
        f'[[loop]]\nfunction = "{name}"\noffset = {offset}\n{numbers}\nbecause = "so"\nsha256 = "{digest}"\n'
        for offset, numbers in facts
    )
    return proved(guest, name, parse_facts("facts.toml", text))


@pytest.mark.parametrize(
    ("number", "origin", "most"), [(4, Origin.FACT, 4), (9, Origin.PROVED, 9), (20, Origin.PROVED, 9)]
)
def test_the_least_is_taken_and_a_proved_one_where_they_are_equal(guest, number, origin, most):
    found = bound(guest, "counted", (2, f"max = {number}")).bound
    (loop,) = found.loops
    assert (loop.max, loop.origin) == (most, origin)
    assert [one.where for one in found.idle_facts] == ([] if origin is Origin.FACT else ["facts.toml:1"])
    assert any(one.id == "fact facts.toml:1" for one in found.assumptions) is (origin is Origin.FACT)


def test_of_two_facts_the_least(guest):
    (loop,) = bound(guest, "loaded", (0, "max = 7"), (0, "max = 5")).bound.loops
    assert loop.max == 5


def test_a_fact_of_no_round_still_lets_the_header_be_executed(guest):
    (loop,) = bound(guest, "loaded", (0, "max = 0")).bound.loops
    assert loop.max == 1


def test_a_total_limits_paths_whatever_the_loop_has(guest):
    free = bound(guest, "nested").bound
    total = bound(guest, "nested", (4, "total = 11")).bound
    assert {loop.max for loop in free.loops} == {4, 6}
    assert free.instructions - total.instructions == 2 * (24 - 11)
    assert total.flow_claims or total.claims
    assert any(one.id == "fact facts.toml:1" for one in total.assumptions)


def test_without_facts_the_bound_is_the_run(guest):
    proof = bound(guest, "nested")
    assert attack(proof) == proof.bound.instructions


def test_all_loops_without_a_bound_are_named_at_once(guest):
    with pytest.raises(AnalysisError, match=r"no bound for the loops at twice\+0x0.*twice\+0x6.*: say how often"):
        bound(guest, "twice")
    with pytest.raises(AnalysisError, match=r"no bound for the loop at twice\+0x6"):
        bound(guest, "twice", (0, "max = 3"))
