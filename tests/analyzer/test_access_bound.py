"""Most accesses of a call against those of runs, in all and to each set."""

from dataclasses import replace

import pytest

from tests.analyzer.small_functions import POWERPC, THUMB, small_guest
from tests.path_check import interpret, proved
from wcet_probe.analyzer.access_bound import most_accesses, most_accesses_of
from wcet_probe.analyzer.bound import prepare
from wcet_probe.analyzer.facts.language import Facts
from wcet_probe.analyzer.request import BoundRequest
from wcet_probe.errors import UsageError

DATA = (
    ".pushsection .data\n.balign 32\n.globl place\n.type place, @object\n"
    "place: .space 128\n.size place, 128\n.popsection"
)
BODY = (
    "lis 9, place@ha\naddi 9, 9, place@l\nli 6, 3\nmtctr 6\n1: lwz 7, 0(9)\nstw 7, 32(9)\nbdnz 1b\n"
    f"cmpwi 3, 0\nbeq 2f\nlwz 7, 64(9)\n2: lwz 7, 30(9)\nblr\n{DATA}"
)
SETS = 4


def asked():
    guest = small_guest(BODY, POWERPC)
    cache = replace(guest.target.dcache, sets=SETS)
    target = replace(guest.target, dcache=cache)
    return guest, BoundRequest(guest.image, target, guest.instructions, guest.costs, "f", Facts(), {}, {})


def test_no_run_makes_more_accesses_and_one_makes_as_many():
    guest, request = asked()
    told = []
    found = most_accesses(request, told.append)
    assert "counting accesses" in told
    proof, most, by_set = proved(guest, "f"), 0, [0] * SETS
    line = request.target.dcache.line_bytes
    for argument in (0, 1):
        counts = [0] * SETS
        for one in interpret(proof, argument).accesses:
            for touched in range(one.address // line, (one.address + one.size_bytes - 1) // line + 1):
                counts[touched % SETS] += 1
        most = max(most, sum(counts))
        by_set = [max(pair) for pair in zip(by_set, counts, strict=True)]
    assert (found.accesses, list(found.by_set)) == (most, by_set)


def test_an_access_of_which_the_set_is_not_known_counts_in_each():
    guest = small_guest("lwz 5, 0(4)\nblr", POWERPC)
    found = most_accesses(
        BoundRequest(guest.image, guest.target, guest.instructions, guest.costs, "f", Facts(), {}, {})
    )
    assert found.accesses == 1
    assert set(found.by_set) == {1}
    assert len(found.by_set) == guest.target.dcache.sets


def test_an_access_counts_in_the_sets_that_are_shown_otherwise_and_in_no_other():
    guest = small_guest("lwz 5, 0(4)\nlwz 6, 0(3)\nblr", POWERPC)
    request = BoundRequest(guest.image, guest.target, guest.instructions, guest.costs, "f", Facts(), {}, {})
    first = guest.image.symbols["f"].address
    found = most_accesses_of(prepare(request), shown={first: frozenset({1, 2})})
    assert found.accesses == 2
    assert found.by_set[:4] == (1, 2, 2, 1)
    guest, request = asked()
    place = guest.image.symbols["f"].address + 16  # lwz 7, 0(9): its set is known
    plain = most_accesses(request)
    assert most_accesses_of(prepare(request), shown={place: frozenset(range(SETS))}) == plain


def test_a_core_without_a_data_cache_has_no_sets():
    guest = small_guest("bx lr", THUMB)
    request = BoundRequest(guest.image, guest.target, guest.instructions, guest.costs, "f", Facts(), {}, {})
    with pytest.raises(UsageError, match="cortex-m4 has no data cache, and so no sets; choose another target"):
        most_accesses(request)
