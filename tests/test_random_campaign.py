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
