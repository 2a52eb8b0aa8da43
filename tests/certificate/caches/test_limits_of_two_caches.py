"""A limit of misses of two caches: lines of one may be evicted by what the other never sees.

Tests: certificate.caches.counted.
"""

from dataclasses import replace
from unittest import mock

from tests.certificate.forgeries import solved_again
from tests.certificate.kernel.test_code import document_of
from tests.support import assembler, guest_of
from wcet_probe.catalog.lookup import load_target
from wcet_probe.certificate.check import check_bound

FIVE_LINES = """
 li 6, 60
 mtctr 6
 b 1f
 .balign 4096
1: lwz 7, 0(3)
 b 2f
 .balign 4096
2: b 3f
 .balign 4096
3: b 4f
 .balign 4096
4: b 5f
 .balign 4096
5: bdnz 1b
 blr
"""
"""Five lines of code in one set of four ways miss in each of 60 rounds; a word misses once."""
LIMIT, EVENT = "miss:0.0:scope", "miss:0.0"
OTHERS = tuple(f"f+0x{number}000" for number in range(2, 6))
FILL_CYCLES = 33


def two_caches(problem, derivations, followed):
    """The misses of four of the fetches are counted with those of the word, which has a line of its own."""
    if problem.unit != "cycles":
        return problem, derivations, followed
    nodes = tuple(replace(one, cost=one.cost - FILL_CYCLES) if one.name in OTHERS else one for one in problem.nodes)
    lines = 1 + len(OTHERS)
    constraints = tuple(
        replace(one, constant=2 * lines, coefficients={EVENT: 2}) if one.name == LIMIT else one
        for one in problem.constraints
        if one.name != "miss:0.0:executed"
    )
    missed = [f"miss {node} 0x10{node[-4:]} 0 {EVENT}" for node in OTHERS]
    said = [line for line in followed if not line.startswith("held ")]
    place = next(number for number, line in enumerate(said) if line.startswith("miss ")) + 1
    said[place:place] = missed
    return replace(problem, nodes=nodes, constraints=constraints), derivations, said


def test_lines_of_one_cache_do_not_stay_by_what_is_accessed_in_another():
    target = load_target("mpc603e")
    document, binary = document_of(guest_of(assembler({"f": FIVE_LINES}, target), target))
    forged = solved_again(document, two_caches)
    # As it is, each of the five misses in each round.
    assert forged["bound"]["cycles"] < 60 * 5 * FILL_CYCLES < document["bound"]["cycles"]
    with mock.patch("wcet_probe.certificate.check.check_shown", return_value=""):
        found = {one.check: one.verdict for one in check_bound(forged, binary).findings}
    assert {check for check, verdict in found.items() if verdict != "ok"} == {"limits of misses in cycles"}
