"""Calls of a replay that are held against a proof cost what a replay counts of each operation.

Tests: emu.machine, model.held_calls.
"""

from __future__ import annotations

import random
from functools import cache

import pytest

from tests.support import Guest, images_dir, tlsf, trace_of
from wcet_probe.answer.bounds.proving import prove_operation
from wcet_probe.build.program import load_program
from wcet_probe.catalog.lookup import load_target
from wcet_probe.emu.machine import Machine
from wcet_probe.model.scenario import InitialCache, Trace

pytestmark = pytest.mark.usefixtures("each_engine")

HEAP_BYTES = 1 << 14
OPERATIONS = 300


def workload() -> Trace:
    draw, live, operations = random.Random(3), [], []
    for slot in range(OPERATIONS):
        if live and draw.random() < 0.4:
            operations.append((1, live.pop(draw.randrange(len(live))), 0))
        else:
            operations.append((0, slot, draw.randrange(1, 600)))
            live.append(slot)
    return trace_of(operations)


@cache
def proofs(target: str):
    program = load_program(tlsf(), load_target(target), "zig", images_dir())
    return program, {kind: prove_operation(program, kind, HEAP_BYTES) for kind in ("malloc", "free")}


def machine_of(target: str, *, held: bool) -> Machine:
    program, bounds = proofs(target)
    watched = {claim.loop.name: claim.loop for bound in bounds.values() for claim in bound.loop_claims}
    guest = Guest(program.image, program.target, program.instructions, program.costs)
    machine = guest.machine(HEAP_BYTES, watched=tuple(watched.values()), bounds=tuple(bounds.values()) if held else ())
    assert machine.call("tlsf_init", machine.heap.base_address, HEAP_BYTES) == 0
    return machine


@pytest.mark.covering(0)
@pytest.mark.parametrize("target", ["cortex-m4", "arm926ej-s", "mpc603e"])
def test_costs_of_held_calls_are_those_of_the_operations(target):
    trace = workload()
    with machine_of(target, held=False) as machine:
        columns = machine.replay_operations(trace, InitialCache.COLD)
    with machine_of(target, held=True) as machine:
        machine.replay_observed(trace)
        assert machine.broken_claim() is None
        calls = dict(zip(("malloc", "free"), machine.held_calls(), strict=True))
    for number, kind in enumerate(("malloc", "free")):
        own = [row for row, one in enumerate(trace.kinds) if one == number]
        assert calls[kind].calls == len(own) > 50
        assert calls[kind].instructions == max(columns.instructions[row] for row in own)
        assert calls[kind].cycles == max(columns.cycles[row] for row in own)


@pytest.mark.parametrize("target", ["cortex-m4", "arm926ej-s", "mpc603e"])
def test_a_replay_that_is_not_observed_holds_nothing(target):
    with machine_of(target, held=True) as machine:
        machine.replay(workload())
        assert [calls.calls for calls in machine.held_calls()] == [0, 0]
