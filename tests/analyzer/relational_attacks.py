"""What is said of tiny programs whose accesses are to lines known by name, held against their runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from contextlib import suppress
from random import Random
from typing import NamedTuple

from tests.analyzer.relational_programs import Program
from tests.analyzer.relational_runs import BrokenFactError, Event, Run, bound_of, cycles_of_points, most_events
from wcet_probe.analyzer.dcache.miss_constraints import Shared, SharedMisses
from wcet_probe.analyzer.dcache.misses import DataMisses
from wcet_probe.analyzer.dcache.symbolic_blocks import SymbolicBlock
from wcet_probe.model.target import CacheConfig

MOST_BLOCKS = 40


class _Misses(NamedTuple):
    """Misses in scopes, by name: of persistent accesses, and of those that fill."""

    persistent: Counter[SymbolicBlock]
    filling: Counter[SymbolicBlock]


class _Dearest:
    """Of the runs of each path the dearest, and that which modified most lines: what is said depends on the path."""

    def __init__(self) -> None:
        self._cycles: dict[frozenset[object], tuple[int, Run]] = {}
        self._modified: dict[frozenset[object], tuple[int, Run]] = {}

    def add(self, run: Run, modified: int) -> None:
        path = frozenset([*run.points.items(), *run.taken.items()])
        for found, kept in ((run.cycles, self._cycles), (modified, self._modified)):
            if found > kept.get(path, (-1, run))[0]:
                kept[path] = found, run

    def check(self, program: Program) -> None:
        data = program.view.data
        for cycles, run in self._cycles.values():
            if cycles > cycles_of_points(data, run):
                assert cycles <= bound_of(data, run), (program, run.points, run.taken)
        for modified, run in self._modified.values() if program.config.write_back else ():
            assert modified <= _most_modified(data, program.config, run), (program, run.points, run.taken)


def attack(program: Program, random: Random, runs: int) -> Counter[str]:
    """Counts of what is said of ``program``, each held against ``runs`` runs; and of the blocks that they executed."""
    view, counts = program.view, Counter[str]({"bound": 1})
    for found in view.analysis.verdicts.values():
        for one in found:
            counts.update({"hit": one.is_hit, "persistent": one.is_persistent, "block": one.is_persistent_in_block})
            counts.update({"call": one.is_persistent_in_call, "kept": one.is_kept, "modified": one.is_modified})
    starts = _starts(program)
    dearest = _Dearest()
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
        dearest.add(run, modified)
        counts["blocks"] += sum(run.points.values())
    dearest.check(program)
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
            own, constraints = said[part].misses, said[part].constraints
            most = sum(count * run.points[point] for point, count in own.items())
            if sum(missed[key] for key in part) > most:
                most += most_events(
                    constraints, {name: 1 for constraint in constraints for name, _ in constraint.auxiliaries}, run
                )
            assert sum(missed[key] for key in part) <= most, (program, part, run.points, run.taken)
            counts["limits"] += len(constraints)
    return counts


def _shared_misses_of(
    program: Program, random: Random, shares: Mapping[tuple[int, int], Shared]
) -> tuple[Run, Counter[Shared]]:
    run, point, missed = Run(program, random), 0, Counter[Shared]()
    length = random.randint(1, MOST_BLOCKS)
    with suppress(BrokenFactError):
        while point is not None and sum(run.points.values()) < length:
            for auxiliary in run.block(point):
                if auxiliary.miss and (auxiliary.point, auxiliary.index) in shares:
                    missed[shares[auxiliary.point, auxiliary.index]] += 1
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
        known = view.allocated.get(line, {}).values()
        lines = {line, *(one.before for one in known)}
        keys = frozenset(key for key in shares.values() if key.line in lines)
        said = view.shared_misses(keys, frozenset({line}))
        misses = {place for place, key in shares.items() if key in keys}
        parts.append((own, misses, said))
        counts.update({"filled": len(known), "modified": sum(one.is_modified for one in known)})
        counts["limits"] += len(said.constraints)
    worst: dict[tuple[int, tuple[int, int, int], frozenset[object]], tuple[int, Run]] = {}
    for _ in range(runs if any(own for own, _, _ in parts) else 0):
        run, auxiliaries = _events_of(program, random)
        taken = frozenset([*run.points.items(), *run.taken.items()])
        for number, (own, misses, _) in enumerate(parts):
            missed = sum(
                auxiliary.miss is True for auxiliary in auxiliaries if (auxiliary.point, auxiliary.index) in misses
            )
            stored = [auxiliary for auxiliary in auxiliaries if (auxiliary.point, auxiliary.index) in own]
            singles, modified = sum(one.is_single for one in stored), sum(one.modifies for one in stored)
            for weights in _WEIGHTS:
                found = weights[0] * missed + weights[1] * singles + weights[2] * modified
                if found > worst.get((number, weights, taken), (0, run))[0]:
                    worst[number, weights, taken] = found, run
    for (number, weights, _), (found, run) in worst.items():
        said = parts[number][2]
        if found <= _stored_at_points(said, weights, run):
            continue
        assert found <= _most_stored(said, weights, run), (program, said, weights, found, run.points, run.taken)
    return counts


def _most_stored(said: SharedMisses, weights: tuple[int, int, int], run: Run) -> int:
    miss, single, modifying = weights
    costs = {name: miss for constraint in said.constraints for name, _ in constraint.auxiliaries}
    costs |= {name: count * single for name, count in said.written.items()} | dict.fromkeys(said.modified, modifying)
    return _stored_at_points(said, weights, run) + most_events(said.constraints, costs, run)


def _stored_at_points(said: SharedMisses, weights: tuple[int, int, int], run: Run) -> int:
    """What is said of points alone: where that is enough, no linear program need be solved."""
    miss, single, modifying = weights
    each = ((said.misses, miss), (said.writes, max(single, modifying)))
    return sum(cost * count * run.points[point] for own, cost in each for point, count in own.items())


def _most_modified(data: DataMisses, config: CacheConfig, run: Run) -> int:
    """How often stores modify lines at most that were not."""
    constraints = [
        constraint
        for constraint in data.constraints
        if constraint.name not in {"write-backs:misses", "write-backs:visits"}
    ]
    costs = {name: 0 for constraint in constraints for name, _ in constraint.auxiliaries} | {
        "write-backs": 1,
        "write-backs:singles": 1,
    }
    return most_events(constraints, costs, run) - config.sets * config.ways


def _events_of(program: Program, random: Random) -> tuple[Run, list[Event]]:
    run, point, auxiliaries = Run(program, random, is_modified=random.random() < 0.5), 0, list[Event]()
    length = random.randint(1, MOST_BLOCKS // 4)
    with suppress(BrokenFactError):
        while point is not None and sum(run.points.values()) < length:
            for auxiliary in run.block(point):
                auxiliaries.append(auxiliary)
            point = run.leave(point)
    return run, auxiliaries


def _starts(program: Program) -> dict[int | tuple[int, int], set[int]]:
    """The groups whose scopes begin at a point, or behind an edge."""
    view, found = program.view, dict[int | tuple[int, int], set[int]]()
    number_of = {symbol: number for number, symbol in enumerate(view.symbols)}
    for number, group in enumerate(view.lines.groups):
        for symbol in group.symbols:
            point = program.variables[number_of[symbol]].point
            if point is not None:
                found.setdefault(point, set()).add(number)
        for edge, killed in program.killed.items():
            if any(number_of[symbol] in killed for symbol in group.deciding):
                found.setdefault(edge, set()).add(number)
    return found


def _forget(missed: _Misses, groups: Collection[int]) -> None:
    for kind in missed:
        for line in [line for line in kind if line.group in groups]:
            del kind[line]


def _check_block(program: Program, run: Run, point: int, missed: _Misses, once: Counter[int | None]) -> int:
    """Execute a block, and count what modifies lines; ``missed`` are the lines that were missed in their scopes.

    ``once`` are the numbers of those on which accesses did that are persistent in the call.
    """
    verdicts, named, here = program.view.analysis.verdicts[point], program.view.named[point], Counter[SymbolicBlock]()
    modified = 0
    for auxiliary in run.block(point):
        verdict, line = verdicts[auxiliary.index], named[auxiliary.index].line
        modified += auxiliary.modifies
        assert not (auxiliary.modifies and verdict.is_modified), (program, auxiliary, "modified before")
        if auxiliary.miss:
            once[auxiliary.line] += verdict.is_persistent_in_call
            assert once[auxiliary.line] <= 1, (program, auxiliary, "in the call")
        if auxiliary.miss and line is not None:
            assert not verdict.is_hit, (program, auxiliary)
            assert not (verdict.is_kept and missed.filling[line]), (program, auxiliary, "filled before")
            missed.filling[line] += named[auxiliary.index].fills
            missed.persistent[line] += verdict.is_persistent
            here[line] += verdict.is_persistent_in_block
            assert missed.persistent[line] <= 1, (program, auxiliary, "in its stay")
            assert here[line] <= 1, (program, auxiliary, "in the block")
    return modified
