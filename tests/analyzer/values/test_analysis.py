"""Values through stack slots, calls and gamma nodes: each executed edge is in it, and each register in its range."""

import random

import pytest

from tests.path_check import attack, proved
from tests.support import TARGETS, guest_of
from wcet_probe.analyzer.graph.supergraph import EXIT
from wcet_probe.catalog.lookup import load_target

HEAPLESS = """typedef unsigned u; u g[16];
static __attribute__((noinline)) u pick(u *p, u n) { u s = 0; for (u i = 0; i < n; i++) s += p[i]; return s; }
u spilled(u n) { u a[8]; for (u i = 0; i < 8; i++) a[i] = i * n; return pick(a, n & 7) + pick(g, 16); }
u chosen(u n) { u k = n > 5 ? 3 : n; u j = n & 1 ? k : 2; for (u i = 0; i < k + j; i++) g[i] = n; return k; }
u saved(u n, u m) { u r = pick(g, m & 3); if (n < 4) { g[n] = r; r = pick(g, n); } return r + n + m; }
"""


@pytest.mark.parametrize("target", TARGETS)
def test_stack_calls_and_choices(target):
    guest, draw = guest_of(HEAPLESS, load_target(target), ".c"), random.Random(2)
    for name in ("spilled", "chosen", "saved"):
        proof = proved(guest, name)
        assert any(edge.target == EXIT for edge in proof.values.edges)
        for _ in range(20):
            attack(proof, draw.choice((draw.randrange(9), draw.getrandbits(32))), draw.getrandbits(32))
