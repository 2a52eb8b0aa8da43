"""Random broken binaries held against the proof by a solver: none that a run shows to be broken may be proved.

``python -m tests.broken_campaign TALLY.json [--slices N]`` goes on where the tally ends. A slice is so many binaries of
one operation, allocator and core (`tests.broken_code`). Each is run first (`tests.held_blocks`, and of CAMA the guided
operations that ``verify-sets`` runs). Of one that is refuted the changed operation is deduced until something stays
open. Of the tally of a slice, ``refuted`` are those; ``open`` of them those that are not proved; ``given up`` those of
which nothing was open in so much processor time; and a *finding* is one that is proved, unless nothing but the
allocator's own check refutes it, which reads words that no operation does, or it refuses any heap, which keeps all
claims. Of those that are not refuted nothing is asked: they are equivalent, or do what was not looked at.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

from tests.broken_code import Broken, broken
from tests.held_blocks import HEAP_BYTES, REFUSES, refuted
from tests.support import images_dir
from wcet_probe.analyzer.deduction import execution
from wcet_probe.analyzer.deduction.obligations import Answers, Deduced
from wcet_probe.build.program import Program, load_program
from wcet_probe.cache_sets import deduction, half_fit_deduction
from wcet_probe.cache_sets.run import run_operations
from wcet_probe.cache_sets.specification import allowed_sets
from wcet_probe.catalog.lookup import load_allocator, load_target
from wcet_probe.errors import WcetProbeError

SUBJECTS = (
    ("cama", "mpc603e"),
    ("half-fit", "mpc603e"),
    ("cama", "cortex-m7"),
    ("cama", "arm926ej-s"),
    ("half-fit", "cortex-m7"),
)
ROLES = ("init", "free", "malloc")
BINARIES = 20
OPERATIONS, GUIDED = 1500, 6000
LIMIT_S = 20.0
"""Processor time of a part of an operation, in s: a broken one seldom takes more before something is open."""
BRANCHES = 60
"""More branches of one way than true versions have: it goes round and round."""
SMALL = ("init", "free-small", "malloc-small")
"""Parts of CAMA of which it is quickly known which instructions they execute."""


PROVED, GIVEN_UP = "proved", "given up"


class _OpenError(Exception):
    """Something is open."""


class _GivenUpError(Exception):
    """It takes too long."""


@cache
def subject(name: str, target: str) -> Program:
    """What is broken."""
    return load_program(load_allocator(name), load_target(target), "zig", images_dir())


def shown_broken(program: Program, *, checks: bool = True) -> str:
    """What runs show to be broken; empty if nothing. Without ``checks`` the allocator's own check is not asked."""
    found = refuted(program, OPERATIONS, checks=checks)
    if found or program.allocator.name != "cama":
        return found
    try:
        seen = run_operations(program, allowed_sets(program), HEAP_BYTES, operations=GUIDED, seed=1)
    except WcetProbeError as error:
        return f"{type(error).__name__}: {error}"
    named = {name: one for name, one in seen.violations.items() if checks or name != "invariant"}
    return ", ".join(f"{name} at {one.location or one.where}" for name, one in named.items())


def parts_of(program: Program, role: str) -> tuple[str, ...]:
    """The parts in which an operation is deduced."""
    own = deduction.WHOLE if program.allocator.name == "cama" else half_fit_deduction.WHOLE
    return own[role]


def deduced(program: Program, part: str) -> Deduced:
    """What is shown of a part."""
    if program.allocator.name == "cama":
        return deduction.deduce(program, (part,))[0]
    return half_fit_deduction.deduced(program, part)


@cache
def executed_by(name: str, target: str, part: str) -> frozenset[int]:
    """The instructions that a part of the true version is of, or may be."""
    lifters = []

    def keep(*arguments: Any) -> Any:
        lifters.append(lifter := original(*arguments).another())
        return lifter

    original = deduction.image_lifter
    with patch.object(deduction, "image_lifter", keep):
        assert not deduced(subject(name, target), part).open
    return frozenset(lifters[0]._instructions)


def not_shown(one: Broken, role: str, parts: Collection[str] = ()) -> str:
    """The first thing that stays open of a broken operation, or ``given up``; empty where it is proved.

    Parameters:
        one: the binary.
        role: the operation.
        parts: those that are asked; if there are none all, but for those that execute nothing changed.
    """
    program = one.program
    for part in parts or parts_of(program, role):
        name = program.allocator.name, program.target.name
        if not parts and name[0] == "cama" and part in SMALL and not executed_by(*name, part) & one.changed:
            continue
        try:
            with _to_the_first_open(), _limited(LIMIT_S):
                found = deduced(program, part).open
        except _OpenError as error:
            return str(error)
        except _GivenUpError:
            return GIVEN_UP
        if found:
            return found[0].what
    return ""


@contextmanager
def _to_the_first_open() -> Iterator[None]:
    """Let a deduction end where something is open."""

    def add(answers: Answers, what: str, instruction_address: int, is_shown: bool) -> None:  # noqa: FBT001
        if not is_shown:
            raise _OpenError(what)
        original(answers, what, instruction_address, is_shown)

    original: Callable[[Answers, str, int, bool], None] = Answers.add
    with patch.object(Answers, "add", add), patch.object(execution, "_BRANCH_LIMIT", BRANCHES):
        yield


@contextmanager
def _limited(seconds: float) -> Iterator[None]:
    """Give up after so much processor time."""

    def give_up(*_: object) -> None:
        raise _GivenUpError

    before = signal.signal(signal.SIGVTALRM, give_up)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def slice_of(number: int) -> tuple[str, str, str]:
    """Allocator, core and operation of a slice."""
    first, role = divmod(number, len(ROLES))
    return *SUBJECTS[first % len(SUBJECTS)], ROLES[role]


def run_slice(number: int, binaries: int = BINARIES) -> dict[str, Any]:
    """What became of the binaries of a slice: counts, and ``findings`` in words."""
    name, target, role = slice_of(number)
    found, findings = Counter[str](), list[str]()
    for index in range(binaries):
        one = broken(subject(name, target), role, number * BINARIES + index)
        found["binaries"] += 1
        why = shown_broken(one.program)
        if not why:
            continue
        found["refuted"] += 1
        outcome = _outcome(one, role, why)
        found[outcome] += 1
        if outcome == PROVED:
            findings.append(f"slice {number}, {name} on {target}, {one.text}: proved, and {why}")
    return {**found, "findings": findings}


def _outcome(one: Broken, role: str, why: str) -> str:
    """What becomes of a binary that a run refuted."""
    open_one = not_shown(one, role)
    if open_one:
        return GIVEN_UP if open_one == GIVEN_UP else "open"
    if why == REFUSES:
        return "proved, and refuses any heap"
    return PROVED if shown_broken(one.program, checks=False) else "proved, and refuted by its check alone"


def totals(tally: Mapping[str, Mapping[str, Any]]) -> Counter[str]:
    """The sums of all slices."""
    counts = ({name: value for name, value in one.items() if isinstance(value, int)} for one in tally.values())
    return sum(map(Counter[str], counts), Counter[str]())


def main() -> int:
    """Run slices; 0 if nothing was found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tally", type=Path)
    parser.add_argument("--slices", type=int, default=15, help="how many more slices (default: 15)")
    asked = parser.parse_args()
    if not asked.tally.parent.is_dir():
        parser.error(f"there is no folder {asked.tally.parent} for the tally; make it first.")
    tally: dict[str, Any] = {}
    with suppress(FileNotFoundError):
        tally = json.loads(asked.tally.read_text("utf-8"))
    for number in range(len(tally), len(tally) + asked.slices):
        tally[str(number)] = run_slice(number)
        new = asked.tally.with_suffix(".new")
        new.write_text(json.dumps(tally, indent=1) + "\n", "utf-8")
        new.replace(asked.tally)
        for finding in tally[str(number)]["findings"]:
            sys.stdout.write(f"{finding}\n")
    told = totals(tally)
    counts = ", ".join(f"{told[name]} {name}" for name in sorted(told))
    sys.stdout.write(f"{len(tally)} slices: {counts}\n")
    return 1 if told[PROVED] else 0


if __name__ == "__main__":
    sys.exit(main())
