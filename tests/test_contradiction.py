"""A search for contradictions: random programs, all that is proved of them held against runs on random words."""

import random

import pytest

from tests.path_check import Proved, attack, check_emulated, proved
from tests.random_programs import arguments, source
from tests.support import TARGETS, guest_of
from wcet_probe.catalog import load_target
from wcet_probe.errors import AnalysisError

FUNCTIONS = 12
LONGEST = 100_000
"""Bounds above it are not held against runs that hang."""


def programs(seed: int, target: str) -> list[Proved]:
    """Those functions of a random file that have a bound."""
    guest, found = guest_of(source(seed, FUNCTIONS), load_target(target), ".c"), []
    for number in range(FUNCTIONS):
        try:
            found.append(proved(guest, f"f{number}"))
        except AnalysisError:
            continue
    return found


def search(seed: int, target: str, runs: int) -> int:
    """Runs without a contradiction."""
    done, draw = 0, random.Random(f"{target} {seed}")
    for proof in programs(seed, target):
        if proof.bound.instructions > LONGEST:
            continue
        for _ in range(runs):
            attack(proof, *arguments(draw))
            done += 1
        check_emulated(proof, *arguments(draw))
    return done


@pytest.mark.parametrize("target", TARGETS)
def test_random_programs_do_not_contradict_their_proofs(target):
    assert sum(search(seed, target, 6) for seed in range(2)) > 40


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 140))
@pytest.mark.parametrize("target", TARGETS)
def test_many_random_programs_do_not_contradict_their_proofs(target, seed):
    search(seed, target, 12)
