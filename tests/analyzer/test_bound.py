"""The whole proof on functions whose graph grows while it is analysed."""

import pytest

from tests.analyzer.kept_stores import storing
from tests.end_to_end.test_cache_soundness import analysed
from tests.path_check import attack, check_emulated, proved
from tests.support import TARGETS, assembler, guest_of
from wcet_probe.analyzer.bound import prove_prepared
from wcet_probe.analyzer.prepared import Bounded
from wcet_probe.catalog.lookup import load_target
from wcet_probe.errors import AnalysisError

STATES = """typedef unsigned u; volatile u g; u tab[8];
u f(u n) { u st = 0, s = 0;
  for (u k = 0; k < 50; k++) {
    switch (st) {
      case 0: st = 3; g = 1; break;
      case 1: st = 4; g += 7; break;
      case 2: st = 1; g ^= 2; tab[1] = 1; break;
      case 3: st = 2; g -= 3; tab[2]++; break;
      case 4: st = 5; tab[3]++; g |= 2; break;
      case 5: st = 0; tab[4] += 5; g = g * 3; break;
      default: return 5; }
    s += st; }
  return s + n; }
"""


@pytest.mark.parametrize("target", TARGETS)
def test_targets_that_only_known_targets_lead_to(target):
    """At first the state is 0 for ever: each case that becomes known makes another one possible."""
    proof = proved(guest_of(STATES, load_target(target), ".c"), "f")
    attack(proof, 3)
    check_emulated(proof, 3)


TWO_CALLERS = {
    "f": "push {r4, lr}\n mov r4, r0\n ldr r0, =one\n bl through\n mov r0, r4\n bl through\n pop {r4, pc}\n .ltorg",
    "through": "push {r4, lr}\n blx r0\n pop {r4, pc}",
    "one": "bx lr",
}


def test_a_target_that_is_known_for_one_caller_only_is_not_known():
    target = load_target("cortex-m4")
    with pytest.raises(AnalysisError, match="targets of the indirect branch or call at through"):
        proved(guest_of(assembler(TWO_CALLERS, target), target), "f")


def test_a_better_system_that_the_solver_gives_up_leaves_the_bound(monkeypatch):
    """dlmalloc27 had no bound on heaps of 1 and 4 MiB where misses were counted by parts of the call."""
    prepared = analysed(guest_of(storing(0, 4), load_target("mpc603e"), ".c"), "f1").prepared
    stage = prepared.bounded({})
    assert stage.prepared.counted is not None

    def given_up():
        raise AnalysisError("the counts are too large for the solver")

    monkeypatch.setattr(Bounded, "relieved", lambda *_: None)
    gives_up = type("GivesUp", (), {"solved": lambda *_: given_up()})
    monkeypatch.setattr(Bounded, "counting", lambda _: gives_up())
    assert prove_prepared(prepared).cycles == stage.solved("cycles").solution.certified
