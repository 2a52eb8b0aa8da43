"""Assembly with one loop, of which the bound is held against runs."""

import random
from collections.abc import Callable, Iterable, Sequence

import pytest

from tests.path_check import Proved, attack, proved
from tests.support import assembler, guest_of
from wcet_probe.catalog.lookup import load_target
from wcet_probe.errors import AnalysisError
from wcet_probe.model.proof import Bound, LoopBound


def proof_of(core: str, text: str) -> Proved:
    """The proof of a function ``f`` with the instructions ``text``."""
    return proved(guest_of(assembler({"f": text}, load_target(core)), load_target(core)), "f")


def hold(core: str, text: str, most: int, runs: Iterable[Sequence[int]]) -> LoopBound:
    """The bound of the one loop, ``most`` executions of its header, held against ``runs``, told by arguments."""
    proof = proof_of(core, text)
    (loop,) = proof.bound.loops
    assert loop.max == most
    for arguments in runs:
        attack(proof, *arguments)
    return loop


def refuse(core: str, text: str) -> None:
    """Nothing is proved of a function with the instructions ``text``."""
    with pytest.raises(AnalysisError, match=r"no bound for the loop|never returns"):
        proof_of(core, text)


def refuse_or_bound_by_width(prove: Callable[[], Bound], where: str) -> None:
    """Nothing is known of the count of a loop at ``where``: it has no bound, or that of any word that it counts by."""
    try:
        (by_type,) = prove().by_type
    except AnalysisError as error:
        told = str(error)
    else:
        told = f"no bound for the loop at {by_type.loop}" if by_type.max >= (1 << 32) - 1 else ""
    assert f"no bound for the loop at {where}" in told


def hold_random(
    core: str,
    programs: int,
    loop: Callable[[random.Random], str],
    runs: Callable[[random.Random], Iterable[Sequence[int]]],
) -> None:
    """Random programs, those with a bound held against ``runs``; more than one of twenty has one."""
    bounded = 0
    for number in range(programs):
        draw = random.Random(f"{programs} {number}")
        try:
            proof = proof_of(core, loop(draw))
        except AnalysisError:
            continue
        if not proof.bound.by_type:
            bounded += 1
            for arguments in runs(draw):
                attack(proof, *arguments)
    assert bounded > 0.05 * programs
