"""What is said of tiny programs whose accesses are to lines known by name, held against their runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from contextlib import suppress
from random import Random
from typing import NamedTuple

from tests.analyzer.relational_programs import BrokenFactError, Event, Program, Run, bound_of, most_events
from wcet_probe.analyzer.dcache.miss_constraints import Shared, SharedMisses
from wcet_probe.analyzer.dcache.misses import DataMisses
from wcet_probe.analyzer.dcache.symbolic_blocks import Line
from wcet_probe.model.target import CacheConfig

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
            counts.update({"call": one.is_persistent_in_call, "kept": one.is_kept, "modified": one.is_modified})
    starts = _starts(program)
    for _ in range(runs):
        run = Run(program, random, is_modified=random.random() < 0.5)
        point, missed, once = 0, _Misses(Counter(), Counter()), Counter[int | None]()
        modified = 0
        length = random.randint(1, MOST_BLOCKS)
        with suppress(BrokenFactError):
            while point is not None and sum(run.points.values()) < length:
                _forget(missed, starts.get(point, ()))
                modified += _check_block(program, run, point, missed, once)
                before = Counter(run.taken)
                point = run.leave(point)
                for edge in run.taken - before:
                    _forget(missed, starts.get(edge, ()))
        assert run.cycles <= bound_of(view.data, run), (program, run.points, run.taken)
        if program.config.write_back:
            assert modified <= _most_modified(view.data, program.config, run), (program, run.points, run.taken)
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
            own, limits = said[part].misses, said[part].limits
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


_WEIGHTS = [(0, 1, 0), (1, 1, 0), (0, 0, 1), (1, 0, 1), (0, 1, 1), (1, 2, 3)]
"""Of a miss, a single write, and a line that is modified."""


def attack_stores(program: Program, random: Random, runs: int) -> Counter[str]:
    """What is said of single writes and modified lines, of the stores of each line alone, held against runs."""
    view, counts = program.view, Counter[str]()
    places = [(point, index) for point, own in view.named.items() for index in range(len(own))]
    shares = {place: key for place in places if (key := view.shared(*place))}
    parts = []
    for line, own in sorted(view.stores.items()):
        known = view.filled.get(line, {}).values()
        lines = {line, *(one.before for one in known)}
        keys = frozenset(key for key in shares.values() if key.line in lines)
        said = view.shared_misses(keys, frozenset({line}))
        misses = {place for place, key in shares.items() if key in keys}
        parts.append((own, misses, said))
        counts.update({"filled": len(known), "modified": sum(one.is_modified for one in known)})
        counts["limits"] += len(said.limits)
    worst: dict[tuple[int, tuple[int, int, int], frozenset[object]], tuple[int, Run]] = {}
    for _ in range(runs if any(own for own, _, _ in parts) else 0):
        run, events = _events_of(program, random)
        taken = frozenset([*run.points.items(), *run.taken.items()])
        for number, (own, misses, _) in enumerate(parts):
            missed = sum(event.miss is True for event in events if (event.point, event.index) in misses)
            stored = [event for event in events if (event.point, event.index) in own]
            singles, modified = sum(one.is_single for one in stored), sum(one.modifies for one in stored)
            for weights in _WEIGHTS:
                found = weights[0] * missed + weights[1] * singles + weights[2] * modified
                if found > worst.get((number, weights, taken), (0, run))[0]:
                    worst[number, weights, taken] = found, run
    for (number, weights, _), (found, run) in worst.items():
        said = parts[number][2]
        assert found <= _most_stored(said, weights, run), (program, said, weights, found, run.points, run.taken)
    return counts


def _most_stored(said: SharedMisses, weights: tuple[int, int, int], run: Run) -> int:
    miss, single, modifying = weights
    costs = {name: miss for limit in said.limits for name, _ in limit.events}
    costs |= {name: count * single for name, count in said.written.items()} | dict.fromkeys(said.modified, modifying)
    each = ((said.misses, miss), (said.writes, max(single, modifying)))
    most = sum(cost * count * run.points[point] for own, cost in each for point, count in own.items())
    return most + most_events(said.limits, costs, run)


def _most_modified(data: DataMisses, config: CacheConfig, run: Run) -> int:
    """How often stores modify lines at most that were not."""
    limits = [limit for limit in data.limits if limit.name not in {"write-backs:misses", "write-backs:visits"}]
    costs = {name: 0 for limit in limits for name, _ in limit.events} | {"write-backs": 1, "write-backs:singles": 1}
    return most_events(limits, costs, run) - config.sets * config.ways


def _events_of(program: Program, random: Random) -> tuple[Run, list[Event]]:
    run, point, events = Run(program, random, is_modified=random.random() < 0.5), 0, list[Event]()
    length = random.randint(1, MOST_BLOCKS // 4)
    with suppress(BrokenFactError):
        while point is not None and sum(run.points.values()) < length:
            for event in run.block(point):
                events.append(event)
            point = run.leave(point)
    return run, events


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


def _check_block(program: Program, run: Run, point: int, missed: _Misses, once: Counter[int | None]) -> int:
    """Execute a block, and count what modifies lines; ``missed`` are the lines that were missed in their stays.

    ``once`` are the numbers of those on which accesses did that are persistent in the call.
    """
    verdicts, named, here = program.view.analysis.verdicts[point], program.view.named[point], Counter[Line]()
    modified = 0
    for event in run.block(point):
        verdict, line = verdicts[event.index], named[event.index].line
        modified += event.modifies
        assert not (event.modifies and verdict.is_modified), (program, event, "modified before")
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
    return modified
