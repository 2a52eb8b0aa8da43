"""The random campaign: what it takes for a finding."""

import random
from collections import Counter

from tests import random_campaign
from tests.support import assembler, guest_of
from wcet_probe.catalog.lookup import load_target

THOUSAND_ROUNDS = """
    mov r0, #1000
1:  subs r0, r0, #1
    bne 1b
    bx lr
"""


def test_runs_that_only_together_take_long_are_no_finding(monkeypatch):
    monkeypatch.setattr(random_campaign, "LONGEST", 3_000)
    monkeypatch.setattr(random_campaign, "HANGS", 5_000)
    target, found = load_target("cortex-m4"), Counter[str]()
    guest = guest_of(assembler({"f": THOUSAND_ROUNDS}, target), target)
    assert random_campaign._answer(guest, "f", random.Random(1), 6, found) == "bounded"
    assert found["runs"] == 6


CALLS_TWICE = "push {{lr}}\nbl {0}\nbl {0}\npop {{pc}}"


def test_accesses_of_what_is_not_expanded_are_no_finding():
    target, found = load_target("cortex-m4"), Counter[str]()
    texts = {f"f{depth}": CALLS_TWICE.format(f"f{depth + 1}") for depth in range(11)} | {"f11": "bx lr"}
    guest = guest_of(assembler(texts, target), target)
    assert random_campaign._answer(guest, "f0", random.Random(1), 2, found) == "bounded"
    assert found["runs"] == 2
    assert found["runs repeated"] == 0, "it is proved with calls that are not expanded"
