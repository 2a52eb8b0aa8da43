"""Assembly with one loop, of which the bound is held against runs."""

from collections.abc import Iterable, Sequence

from tests.path_check import Proved, attack, proved
from tests.support import assembler, guest_of
from wcet_probe.catalog.lookup import load_target
from wcet_probe.model.proof import LoopBound


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
