"""What is said of tiny programs whose accesses are to lines known by name, held against their runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from contextlib import suppress
from random import Random
from typing import NamedTuple

from tests.analyzer.relational_programs import BrokenFactError, Program, Run, bound_of, most_events
from wcet_probe.analyzer.shared_misses import Shared
from wcet_probe.analyzer.symbolic_lines import Line

MOST_BLOCKS = 40


class _Misses(NamedTuple):
    """Misses in stays, by name: of persistent accesses, and of those that fill."""

    persistent: Counter[Line]
    filling: Counter[Line]


def attack(program: Program, random: Random, runs: int) -> Counter[str]:
    """Counts of what is said of ``program``, each held against ``runs`` runs; and of the blocks that they executed."""
    view, counts = program.view, Counter[str]({"bound": 1})
    for found in view.analysis.verdicts.values():
        for one in found:
            counts.update({"hit": one.is_hit, "persistent": one.is_persistent, "block": one.is_persistent_in_block})
            counts.update({"call": one.is_persistent_in_call, "kept": one.is_kept})
    starts = _starts(program)
    for _ in range(runs):
        run, point, missed, once = Run(program, random), 0, _Misses(Counter(), Counter()), Counter[int | None]()
        length = random.randint(1, MOST_BLOCKS)
        with suppress(BrokenFactError):
            while point is not None and sum(run.points.values()) < length:
                _forget(missed, starts.get(point, ()))
                _check_block(program, run, point, missed, once)
                before = Counter(run.taken)
                point = run.leave(point)
                for edge in run.taken - before:
                    _forget(missed, starts.get(edge, ()))
        assert run.cycles <= bound_of(view.data, run), (program, run.points, run.taken)
        counts["blocks"] += sum(run.points.values())
    return counts


def attack_limits(program: Program, random: Random, runs: int) -> Counter[str]:
    """What is said of the misses that accesses share, of all of them and of each group alone, held against runs."""
    view, counts = program.view, Counter[str]()
    places = [(point, index) for point, own in view.named.items() for index in range(len(own))]
    shares = {place: key for place in places if (key := view.shared(*place))}
    by_group: dict[int | None, set[Shared]] = {}
    for key in shares.values():
        by_group.setdefault(key.line.group if key.line else None, set()).add(key)
    parts = [frozenset(shares.values()), *map(frozenset, by_group.values())] if shares else []
    said = {part: view.shared_misses(part) for part in parts}
    for _ in range(runs if parts else 0):
        run, missed = _shared_misses_of(program, random, shares)
        for part in dict.fromkeys(parts):
            own, limits = said[part]
            most = sum(count * run.points[point] for point, count in own.items())
            if sum(missed[key] for key in part) > most:
                most += most_events(limits, {name: 1 for limit in limits for name, _ in limit.events}, run)
            assert sum(missed[key] for key in part) <= most, (program, part, run.points, run.taken)
            counts["limits"] += len(limits)
    return counts


def _shared_misses_of(
    program: Program, random: Random, shares: Mapping[tuple[int, int], Shared]
) -> tuple[Run, Counter[Shared]]:
    run, point, missed = Run(program, random), 0, Counter[Shared]()
    length = random.randint(1, MOST_BLOCKS)
    with suppress(BrokenFactError):
        while point is not None and sum(run.points.values()) < length:
            for event in run.block(point):
                if event.miss and (event.point, event.index) in shares:
                    missed[shares[event.point, event.index]] += 1
            point = run.leave(point)
    return run, missed


def _starts(program: Program) -> dict[int | tuple[int, int], set[int]]:
    """The groups whose stays begin at a point, or behind an edge."""
    view, found = program.view, dict[int | tuple[int, int], set[int]]()
    number_of = {leaf: number for number, leaf in enumerate(view.leaves)}
    for number, group in enumerate(view.lines.groups):
        for leaf in group.leaves:
            point = program.variables[number_of[leaf]].point
            if point is not None:
                found.setdefault(point, set()).add(number)
        for edge, silent in program.silent.items():
            if any(number_of[leaf] in silent for leaf in group.deciding):
                found.setdefault(edge, set()).add(number)
    return found


def _forget(missed: _Misses, groups: Collection[int]) -> None:
    for kind in missed:
        for line in [line for line in kind if line.group in groups]:
            del kind[line]


def _check_block(program: Program, run: Run, point: int, missed: _Misses, once: Counter[int | None]) -> None:
    """Execute a block; ``missed`` are the lines that were missed in their stays.

    ``once`` are the numbers of those on which accesses did that are persistent in the call.
    """
    verdicts, named, here = program.view.analysis.verdicts[point], program.view.named[point], Counter[Line]()
    for event in run.block(point):
        verdict, line = verdicts[event.index], named[event.index].line
        if event.miss:
            once[event.line] += verdict.is_persistent_in_call
            assert once[event.line] <= 1, (program, event, "in the call")
        if event.miss and line is not None:
            assert not verdict.is_hit, (program, event)
            assert not (verdict.is_kept and missed.filling[line]), (program, event, "filled before")
            missed.filling[line] += named[event.index].fills
            missed.persistent[line] += verdict.is_persistent
            here[line] += verdict.is_persistent_in_block
            assert missed.persistent[line] <= 1, (program, event, "in its stay")
            assert here[line] <= 1, (program, event, "in the block")
