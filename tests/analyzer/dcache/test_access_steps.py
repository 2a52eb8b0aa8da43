"""Accesses as steps of the cache: in what order, and behind which of them a line is surely there."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.end_to_end.test_cache_soundness import analysed
from tests.support import assembler, guest_of
from wcet_probe.analyzer.dcache.access_steps import is_sure, resident_before, stays_resident, steps_of
from wcet_probe.analyzer.dcache.strided_traversals import StridedTraversals
from wcet_probe.analyzer.dcache.symbolic_blocks import SymbolicBlocks
from wcet_probe.analyzer.facts.memory import PointerFacts, Pointers
from wcet_probe.catalog.lookup import load_target

TARGET = load_target("cortex-m7")


def steps(body, **changed):
    """The values of ``body``, and the steps of each point, where the cache is ``changed``."""
    target = replace(TARGET, dcache=replace(TARGET.dcache, **changed))
    values = analysed(guest_of(assembler({"f": body}, target), target), "f").prepared.values
    lines = SymbolicBlocks(values, target.dcache, PointerFacts(Pointers(4), {}))
    traversals = StridedTraversals(values, lines, target.dcache)
    return values, {point: tuple(steps_of(values, point, lines, target, traversals)) for point in values.states}


def test_several_words_go_upwards_and_instructions_one_after_the_other():
    _, found = steps("str r2, [r0, #64]\n ldmia r0, {r1, r2, r3}\n ldr r2, [r0]\n bx lr")
    (own,) = found.values()
    assert [step.access.is_store for step in own] == [True, False, False, False, False]
    assert [step.access.constant for step in own] == [64, 0, 4, 8, 0]


@pytest.mark.parametrize("allocates", [True, False])
def test_behind_a_store_its_line_is_there_only_where_it_is_filled(allocates):
    _, found = steps("str r2, [r0]\n bx lr", write_allocate=allocates)
    ((only,),) = found.values()
    assert is_sure(only) == stays_resident(only) == allocates


ONE_OF_TWO = "cmp r2, #0\n beq 1f\n ldr r3, [r0]\n b 2f\n1: {}\n2: ldr r3, [r0, #4]\n bx lr"


@pytest.mark.parametrize(("other", "is_there"), [("ldr r3, [r1]", True), ("movs r3, #1", False)])
def test_where_ways_meet_a_line_is_there_if_it_is_on_each(other, is_there):
    values, found = steps(ONE_OF_TWO.format(other))
    last = max(found, key=lambda point: values.graph.points[point].block.address)
    assert resident_before(values, found)[last] == is_there
