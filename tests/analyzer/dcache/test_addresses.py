"""Where accesses may go against addresses: sets, addresses that runs must show, and what facts say of both."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from tests.analyzer.concrete_caches import config_of
from tests.analyzer.random_relational_programs import random_program
from tests.analyzer.relational_programs import LINE_BYTES, Choice, Program, Step, Variable, View
from wcet_probe.analyzer.domains import strided
from wcet_probe.analyzer.facts.memory import Pointers
from wcet_probe.model.target import MemoryRange

SETS = 4


def view_of(variable: Variable, asserted: Pointers) -> View:
    """Of a program that reads ``variable`` once, with a fact about it."""
    config = replace(config_of("lru", 2, sets=SETS), line_bytes=LINE_BYTES)
    steps = (Step(0, 0, is_store=False, is_certain=True, is_named=True),)
    return Program((steps,), (), (variable,), {}, config, 4, 64, {(0, 0): asserted}).view


def test_a_fact_that_excludes_an_access_says_nothing_of_it():
    variable = Variable(None, 0, (0,), strided.top(32))
    for extent in (MemoryRange(64, 2), MemoryRange(65, 5)):
        view = view_of(variable, Pointers(4, extent=extent))
        (access,) = view.accesses[0]
        assert view.lines.places.sets_of(access) is None
        assert view.lines.places.observable(access) == strided.residue_class(32, 0, 4)


def test_sets_and_observable_addresses_hold_for_all_values():
    checked = 0
    for seed in range(150):
        program = random_program(Random(seed))
        view, config = program.view, program.config
        places = view.lines.places
        for point, steps in enumerate(program.steps):
            for step, access in zip(steps, view.accesses[point], strict=True):
                if not step.is_named or isinstance(step.to, Choice):
                    continue
                variable = None if step.to is None else program.variables[step.to]
                if variable is not None and variable.sources:
                    continue
                sets, asserted = places.sets_of(access), places.observable(access)
                for value in (0,) if variable is None else variable.choices:
                    address = value + step.offset
                    assert sets is None or address // LINE_BYTES % config.sets in sets
                    assert address in asserted
                    checked += 1
    assert checked > 2000
