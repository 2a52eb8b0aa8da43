"""A round robin with one counter for the whole cache: what the machine takes, and that no bound is below it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.end_to_end.test_cache_soundness import NOTHING_TOLD, analysed
from tests.support import assembler, guest_of
from wcet_probe.analyzer.bound import prove
from wcet_probe.analyzer.facts.language import Facts
from wcet_probe.analyzer.request import BoundRequest
from wcet_probe.catalog.cache_option import apply_cache_option
from wcet_probe.catalog.lookup import load_target
from wcet_probe.model.scenario import InitialCache

ROUNDS, LINE_BYTES, SETS, WAYS = 18, 32, 128, 4
WAY_BYTES = SETS * LINE_BYTES
TARGET = load_target("arm926ej-s")


def rounds() -> str:
    """Loads A and B, of set 0, in turns, each followed by three lines of other sets that were not loaded before."""
    lines = ["ldr r1, =buf", f"add r2, r1, #{WAY_BYTES}"]
    others = iter(number for number in range(8 * SETS) if number % SETS)
    for _ in range(ROUNDS):
        for own in ("r1", "r2"):
            lines.append(f"ldr r0, [{own}]")
            for number in (next(others) for _ in range(3)):
                lines += [
                    f"add r3, r1, #{number * LINE_BYTES & 0xFF00}",
                    f"ldr r0, [r3, #{number * LINE_BYTES & 0xFF}]",
                ]
    return "\n".join([*lines, "bx lr", ".ltorg"])


@pytest.fixture(scope="module")
def guest():
    data = f".data\n.balign {WAY_BYTES}\n.globl buf\nbuf: .space {8 * WAY_BYTES}\n"
    return guest_of(assembler({"f": rounds()}, TARGET) + data, replace(TARGET, icache=None))


def observed(guest, cache: str = ""):
    target = apply_cache_option(guest.target, cache) if cache else guest.target
    with replace(guest, target=target).machine() as machine:
        return machine.measure("f", (), InitialCache.DIRTY)


def test_with_one_counter_two_lines_of_a_set_evict_each_other_though_there_are_four_ways(guest):
    """Four fills lie between two in set 0, so that the counter stands on the same way each time."""
    one, own = observed(guest), observed(guest, "d:policy=fifo")
    # Three lines behind each of A and B, which miss each time, or once; and the literal.
    assert (one.dcache.misses, own.dcache.misses) == (8 * ROUNDS + 1, 6 * ROUNDS + 2 + 1)
    assert one.cycles > own.cycles


def test_a_bound_is_not_below_what_one_counter_takes(guest):
    one = analysed(guest, "f")
    with_own_counters = apply_cache_option(guest.target, "d:policy=fifo")
    assert one.bound(with_own_counters, NOTHING_TOLD) < observed(guest).cycles <= one.bound(guest.target, NOTHING_TOLD)


@pytest.mark.parametrize("seed", range(WAYS))
def test_wherever_the_counter_stands_no_bound_is_exceeded(guest, seed):
    bound = analysed(guest, "f").bound(guest.target, NOTHING_TOLD)
    assert observed(guest, f"d:seed={seed}").cycles <= bound


@pytest.mark.parametrize(("cache", "is_said"), [("", False), ("d:policy=fifo", True), ("i:policy=fifo", True)])
def test_a_bound_that_rests_on_a_counter_for_each_set_says_so(cache, is_said):
    target = apply_cache_option(TARGET, cache) if cache else TARGET
    short = guest_of(assembler({"f": "bx lr"}, target), target)
    found = prove(BoundRequest(short.image, target, short.instructions, short.costs, "f", Facts(), {}, {}))
    assert ("fifo-replacement" in [one.id for one in found.assumptions]) is is_said
