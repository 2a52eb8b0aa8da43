"""Ranges are tried of arguments that a function reads, and of no other: each takes a proof or two."""

from __future__ import annotations

import pytest

from tests.support import guest_of
from wcet_probe.analyzer.bound import prepare
from wcet_probe.analyzer.facts.language import Facts
from wcet_probe.analyzer.request import BoundRequest
from wcet_probe.analyzer.values.remembered import remember
from wcet_probe.answer.facts.read_arguments import read_arguments
from wcet_probe.catalog.lookup import load_target

SOURCE = """
static __attribute__((noinline)) int half(int n) { return n / 2; }
int one(int n) { return half(n) + 1; }
int third(int a, int b, int c) { return c; }
int none(void) { return 4; }
int pushed(int a) { __asm__ volatile("PUSHED"); return a + 1; }
int some(int a, int b, int c) { return a > 4 ? c : a; }
"""


PUSHED = {
    "cortex-m4": "push {r2, r3}; pop {r2, r3}",
    "arm926ej-s": "push {r2, r3}; pop {r2, r3}",
    "mpc603e": "stw 5, -8(1)",
}


@pytest.mark.parametrize("target", ["cortex-m4", "arm926ej-s", "mpc603e"])
def test_an_argument_is_read_where_a_way_reads_it_before_it_is_written(target):
    on = guest_of(SOURCE.replace("PUSHED", PUSHED[target]), load_target(target), ".c")
    found = {}
    for entry in ("one", "third", "none", "some", "pushed"):
        asked = BoundRequest(on.image, on.target, on.instructions, on.costs, entry, Facts(), {}, {})
        known = remember(on.image, on.target)
        read = read_arguments(prepare(asked, remembered=known).values, on.image, known.lifter, entry)
        found[entry] = [fact.index for fact in read]
    assert found == {"one": [0], "third": [2], "none": [], "some": [0, 2], "pushed": [0]}
