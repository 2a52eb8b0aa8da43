"""Hits that the analysis of lines known by name does not find, of all that can happen in small programs.

Tests: analyzer.dcache.analysis.
"""

from __future__ import annotations

from collections import Counter
from itertools import product
from random import Random

import pytest

from tests.analyzer.concrete_caches import contents, touches
from tests.analyzer.random_relational_programs import random_program
from tests.analyzer.relational_programs import LINE_BYTES, Program, choices_of
from wcet_probe.model.target import Replacement


def reachable(program: Program, constraint: int) -> dict[tuple[int, int], set[bool]] | None:
    """Whether each access can hit and miss, of all runs from any start; None where there are too many situations.

    Only for programs whose accesses are named and certain and whose states are never silent.
    """
    config = program.config
    per_set = [
        contents(config.replacement, config.ways, tuple(range(number, program.line_count, config.sets)))
        for number in range(config.sets)
    ]
    values = list(product(*(one.choices for one in program.variables)))
    size = len(values)
    for own in per_set:
        size *= len(own)
    if size > constraint:
        return None
    found: dict[tuple[int, int], set[bool]] = {}
    waiting = [(0, value, content) for value in values for content in product(*per_set)]
    seen = set(waiting)
    while waiting:
        point, value, content = waiting.pop()
        if len(seen) > 8 * constraint:
            return None
        for after in _passed(program, point, value, content, found):
            for source, target in program.edges:
                if source == point and (target, *after) not in seen:
                    seen.add((target, *after))
                    waiting.append((target, *after))
    return found


def _passed(program, point, value, content, found):
    """All values and contents behind a block."""
    config, ways = program.config, {(value, content)}
    own = [(n, v) for n, v in enumerate(program.variables) if v.point == point]
    steps = program.steps[point]
    for index in range(len(steps) + 1):
        for number, variable in own:
            if variable.place == index:
                ways = {((*v[:number], new, *v[number + 1 :]), c) for v, c in ways for new in variable.choices}
        if index == len(steps):
            break
        step, after = steps[index], set()
        for v, c in ways:
            line = (step.offset + (v[step.to] if isinstance(step.to, int) else 0)) // LINE_BYTES
            number = line % config.sets
            fills = config.write_allocate or not step.is_store
            for hit, new in touches(config.replacement, config.ways, c[number], line, fills=fills):
                found.setdefault((point, index), set()).add(not hit)
                after.add((v, (*c[:number], new, *c[number + 1 :])))
        ways = after
    return ways


def undecided(policy: Replacement, programs: int, constraint: int) -> Counter[str]:
    """Accesses without a verdict of a hit, and how many of them hit in all that can happen."""
    counts, number = Counter[str](), 0
    while counts["programs"] < programs:
        program = random_program(Random(f"exact {policy} {number}"), policy, most_ways=2)
        number += 1
        steps = [step for block in program.steps for step in block]
        merged = any(variable.sources for variable in program.variables)
        if (
            merged
            or program.killed
            or choices_of(program)
            or not all(step.is_named and step.is_certain for step in steps)
        ):
            continue
        found = reachable(program, constraint)
        if found is None:
            continue
        counts["programs"] += 1
        for (point, index), misses in found.items():
            is_hit = program.view.analysis.verdicts[point][index].is_hit
            assert not (is_hit and True in misses), (program, point, index)
            counts["hit"] += is_hit
            counts["unknown"] += not is_hit
            counts["decidable"] += not is_hit and misses == {False}
    return counts


@pytest.mark.parametrize("policy", Replacement)
def test_few_accesses_that_always_hit_are_not_found(policy):
    counts = undecided(policy, 12, 3000)
    assert counts["hit"] > 3
    assert counts["decidable"] < 0.25 * counts["unknown"]


@pytest.mark.slow
@pytest.mark.parametrize("policy", Replacement)
def test_few_accesses_that_always_hit_are_not_found_in_many_programs(policy):
    counts = undecided(policy, 400, 20_000)
    assert counts["decidable"] < 0.2 * counts["unknown"]
