"""Stores to lines that were filled before their scope began, against runs."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from tests.analyzer.concrete_caches import config_of
from tests.analyzer.relational_attacks import attack_stores
from tests.analyzer.relational_programs import LINE_BYTES, Program, Step, Variable
from wcet_probe.analyzer.dcache import allocated_before
from wcet_probe.analyzer.dcache.symbolic_blocks import SymbolicBlock
from wcet_probe.analyzer.dcache.younger_sets import LineAccess
from wcet_probe.analyzer.domains import strided

_VALUES = tuple(range(0, 160, 32))
_ANY = Variable(None, 0, _VALUES, strided.top(32))
_CONFIG = replace(config_of("fifo", 2, sets=2, write_allocate=False), line_bytes=LINE_BYTES, write_back=True)


def access(to: int, *, is_store: bool = False, is_certain: bool = True) -> Step:
    return Step(to, 0, is_store, is_certain, is_named=True)


def chase(*block: Step) -> Program:
    """Block 1 stores to what block 2 accesses by variable 0, and loads that anew."""
    before = Variable(1, 0, (0,), strided.top(32), {(0, 1): (2, 0), (2, 1): (0, 0)})
    variables = (Variable(1, 1, _VALUES, strided.top(32)), before, *([_ANY] * 4))
    steps = ((), (access(1, is_store=True),), block, ())
    return Program(steps, ((0, 1), (1, 2), (2, 1), (2, 3)), variables, {}, _CONFIG, 16, 12)


def test_a_line_that_was_filled_is_found():
    assert attack_stores(chase(access(0), access(2)), Random(0), 1000)["filled"]


@pytest.mark.parametrize(
    "block",
    [
        (access(0, is_certain=False), access(2), access(0), access(3)),
        (access(0), access(2), access(3), access(0), access(4)),
    ],
)
def test_an_access_before_may_have_filled_the_line_long_ago(block):
    attack_stores(chase(*block), Random(0), 3000)


def test_a_stay_that_goes_on_fills_its_line_once():
    again = Variable(1, 0, (0,), strided.top(32), {(0, 1): (0, 0), (1, 1): (0, 0)})
    steps = ((access(0), access(1)), (access(2, is_store=True),), ())
    program = Program(steps, ((0, 1), (1, 1), (1, 2)), (_ANY, _ANY, again), {}, _CONFIG, 16, 12)
    attack_stores(program, Random(0), 3000)


@pytest.mark.parametrize("is_certain", [True, False])
def test_a_line_is_modified_by_a_store_that_surely_takes_place(is_certain):
    line = SymbolicBlock(0, 0)
    read = LineAccess(line, fills=True, is_certain=True)
    store = LineAccess(line, fills=False, is_certain=is_certain, modifies=True)
    assert allocated_before._touched(allocated_before._touched({}, read), store) == {line: is_certain}
