"""A search for contradictions: random programs, all that is proved of them held against runs on random words."""

import random
from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from tests.path_check import Proved, attack, check_emulated, proved
from tests.random_programs import arguments, source
from tests.support import TARGETS, assembler, guest_of
from wcet_probe.analyzer.pcode.interpreter import DataAccess
from wcet_probe.answer.witness.contradiction import check_accesses
from wcet_probe.catalog.lookup import load_target
from wcet_probe.errors import AnalysisError, ContradictionError
from wcet_probe.model.proof import AccessRange
from wcet_probe.model.target import MemoryRange

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
        given = arguments(draw)
        if attack(proof, *given):
            check_emulated(proof, *given)
    return done


@pytest.mark.covering(0)
@pytest.mark.parametrize("target", TARGETS)
def test_random_programs_do_not_contradict_their_proofs(target):
    assert search(0, target, 6) > 20


def test_registers_are_held_against_all_copies_of_a_block():
    """What follows the two pointers is analysed for each, and registers differ."""
    body = (
        "lis 10, buf@ha\n addi 10, 10, buf@l\n cmpwi 3, 0\n beq 1f\n li 5, 7\n addi 4, 10, 64\n b 2f\n"
        "1: mr 4, 10\n li 5, 9\n2: lwz 7, 0(4)\n cmpwi 7, 3\n beq 3f\n lwz 7, 8(4)\n3: lwz 7, 4(4)\n blr"
    )
    target = load_target("mpc603e")
    data = ".data\n.balign 64\n.globl buf\nbuf: .space 256\n"
    proof = proved(guest_of(assembler({"f": body}, target) + data, target), "f")
    assert len(proof.bound.points) > len(set(proof.bound.points))
    assert len({(block.address, block.context) for block in proof.bound.worst_path}) == len(proof.bound.worst_path)
    for argument in (0, 1):
        attack(proof, argument)


def claimed(allowed):
    """As much of a bound as accesses are held against."""
    return SimpleNamespace(entry="f", accesses=allowed, words=())


FIRST, AGAIN, ELSEWHERE = 0x100, 0x104, 0x108
"""Instructions: of a first visit, of one again, and of a store of which no fact speaks."""


@pytest.mark.parametrize(
    ("accesses", "holds"),
    [
        ([(FIRST, 64), (AGAIN, 92)], True),
        ([(FIRST, 64), (ELSEWHERE, 128), (AGAIN, 64)], True),
        ([(FIRST, 64), (AGAIN, 96)], False),
        ([(FIRST, 64), (ELSEWHERE, 88), (AGAIN, 64)], False),
        ([(FIRST, 64), (ELSEWHERE, 88), (FIRST, 64), (AGAIN, 64)], True),
        ([(AGAIN, 64)], False),
    ],
)
def test_visits_are_held_against_runs(accesses, holds):
    target = load_target("mpc603e")
    image = guest_of(assembler({"f": "blr"}, target), target).image
    visits = {FIRST: "first", AGAIN: "again", ELSEWHERE: ""}
    allowed = tuple(AccessRange(at, (), at == ELSEWHERE, "number", 0, 4, 99, 4, visit=visits[at]) for at in visits)
    made = [DataAccess(step, at, to, 4, at == ELSEWHERE) for step, (at, to) in enumerate(accesses)]
    expected = nullcontext() if holds else pytest.raises(ContradictionError, match="against a fact about visits")
    with expected:
        check_accesses(claimed(allowed), made, image, target, frames=MemoryRange(4096, 64), subject="a test")


@pytest.mark.parametrize(
    ("accesses", "holds"),
    [
        ([(ELSEWHERE, 64), (FIRST, 92), (ELSEWHERE, 0), (FIRST, 4)], True),
        ([(ELSEWHERE, 64), (FIRST, 96), (FIRST, 100), (ELSEWHERE, 0), (AGAIN, 32)], True),
        ([(ELSEWHERE, 64), (FIRST, 96), (FIRST, 32), (ELSEWHERE, 0), (AGAIN, 64)], False),
        ([(FIRST, 64), (AGAIN, 0), (AGAIN, 96)], False),
    ],
)
def test_changes_of_line_are_counted_in_runs(accesses, holds):
    """Two of a fact's accesses, by whatever instruction, may go to another line than the access before."""
    target = load_target("mpc603e")
    image = guest_of(assembler({"f": "blr"}, target), target).image
    told = {FIRST: ("a fact", 2), AGAIN: ("a fact", 2), ELSEWHERE: None}
    allowed = tuple(AccessRange(at, (), False, "number", 0, 4, 99, 4, line_changes=told[at]) for at in told)
    made = [DataAccess(step, at, to, 4, False) for step, (at, to) in enumerate(accesses)]
    expected = nullcontext() if holds else pytest.raises(ContradictionError, match="more than 2 accesses went")
    with expected:
        check_accesses(claimed(allowed), made, image, target, frames=MemoryRange(4096, 64), subject="a test")


@pytest.mark.parametrize(("address", "holds"), [(0, True), (4, True), (28, False)])
def test_each_line_of_an_access_to_several_is_counted(address, holds):
    """Two lines of 32 bytes, or three where it begins at the end of one."""
    target = load_target("mpc603e")
    image = guest_of(assembler({"f": "blr"}, target), target).image
    allowed = AccessRange(FIRST, (), False, "number", 0, 4, 99, 4, lines=("a fact", 2, 2))
    expected = nullcontext() if holds else pytest.raises(ContradictionError, match="more than 2 lines were accessed")
    with expected:
        check_accesses(
            claimed((allowed,)),
            [DataAccess(0, FIRST, address, 36 if holds else 40, False)],
            image,
            target,
            frames=MemoryRange(8192, 64),
            subject="a test",
        )


@pytest.mark.parametrize(("address", "holds"), [(0, True), (4096 + 28, True), (32, False)])
def test_sets_that_facts_tell_are_held_against_runs(address, holds):
    target = load_target("mpc603e")
    image = guest_of(assembler({"f": "blr"}, target), target).image
    allowed = AccessRange(FIRST, (), False, "number", 0, 4, (1 << 30) - 1, 4, place="told", sets=frozenset({0}))
    expected = nullcontext() if holds else pytest.raises(ContradictionError, match="in a set of the cache")
    with expected:
        check_accesses(
            claimed((allowed,)),
            [DataAccess(0, FIRST, address, 4, False)],
            image,
            target,
            frames=MemoryRange(8192, 64),
            subject="a test",
        )


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, *range(100, 140)])
@pytest.mark.parametrize("target", TARGETS)
def test_many_random_programs_do_not_contradict_their_proofs(target, seed):
    search(seed, target, 12)
